package memstore

import (
	"testing"
	"testing/synctest"
)

func TestDoom(t *testing.T) {
	const d = AccessDelete
	s := newStore(t, 1<<20)
	root, c := s.Root(), Root()
	has := func(name string) bool {
		_, err := root.Lookup(c, name)
		return err == nil
	}

	f := mustCreate(t, root, "f", TypeFile)
	a, b := mustOpen(t, f, OpenArgs{Access: d}), mustOpen(t, f, OpenArgs{Access: AccessWrite})
	wantErr(t, "doom", a.Doom(root, "f"), nil)
	_, err := f.Open(c, OpenArgs{Access: AccessRead})
	wantErr(t, "open", err, ErrDeletePending)
	_, err = root.Create(c, "f", &Create{Type: TypeFile, Exist: ExistOpen, Open: &OpenArgs{Access: AccessRead}})
	wantErr(t, "create and open", err, ErrDeletePending)
	a.Close()
	if !has("f") || !f.Doomed() {
		t.Error("it is gone before its last open")
	}
	_, _, err = f.WriteAt(c, b, []byte("x"), 0)
	wantErr(t, "write meanwhile", err, nil)
	b.Close()
	if has("f") {
		t.Error("it is there after its last open")
	}

	f = mustCreate(t, root, "f", TypeFile)
	a = mustOpen(t, f, OpenArgs{Access: d})
	a.Doom(root, "f")
	a.Spare()
	mustOpen(t, f, OpenArgs{}).Close()
	a.Close()
	if !has("f") {
		t.Error("what was spared is gone")
	}

	// A rename by somebody else does not save it, and another file of its name is
	// safe.
	a = mustOpen(t, f, OpenArgs{Access: d})
	a.Doom(root, "f")
	if _, _, err := s.Rename(c, root, "f", root, "g", 0); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, root, "f", TypeFile)
	a.Close()
	if !has("f") || has("g") {
		t.Error("the wrong file is gone")
	}

	// Of two names one goes, and it can be opened again.
	f, _ = root.Lookup(c, "f")
	if _, _, err := root.Link(c, "h", f); err != nil {
		t.Fatal(err)
	}
	a = mustOpen(t, f, OpenArgs{Access: d})
	a.Doom(root, "f")
	a.Close()
	if has("f") || !has("h") {
		t.Error("the wrong name is gone")
	}
	mustOpen(t, f, OpenArgs{}).Close()

	dir := mustCreate(t, root, "dir", TypeDir)
	mustCreate(t, dir, "x", TypeFile)
	a = mustOpen(t, dir, OpenArgs{Access: d})
	wantErr(t, "doom a directory that is not empty", a.Doom(root, "dir"), ErrNotEmpty)
	if _, err := dir.Remove(c, "x", RemoveFile); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "doom an empty directory", a.Doom(root, "dir"), nil)
	mustCreate(t, dir, "y", TypeFile)
	a.Close()
	if !has("dir") || dir.Doomed() {
		t.Error("a directory with entries is gone, or cannot be opened any more")
	}

	o := mustOpen(t, root, OpenArgs{Access: d})
	wantErr(t, "doom the root", o.Doom(root, ""), ErrAccess)
	o.Close()
}

func TestRenameThroughOpen(t *testing.T) {
	s := newStore(t, 1<<20)
	root := s.Root()
	f := mustCreate(t, root, "f", TypeFile)
	b := mustOpen(t, f, OpenArgs{Access: AccessRead})
	a := mustOpen(t, f, OpenArgs{Access: AccessRead, Deny: AccessDelete})
	_, _, err := s.Rename(&Caller{Open: b}, root, "f", root, "g", 0)
	wantErr(t, "rename through another open", err, ErrShareViolation)
	_, _, err = s.Rename(&Caller{Open: a}, root, "f", root, "g", 0)
	wantErr(t, "rename through the open that denies it to others", err, nil)
	a.Close()
	b.Close()
}

// Whoever caches what is to be removed is asked for it; who closes the last open
// does not wait.
func TestDoomLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, 1<<20)
		root, c := s.Root(), Root()
		f := mustCreate(t, root, "f", TypeFile)
		holder := &Caller{Holder: &Holder{Name: "client", CachesAttrs: true}}
		o, err := f.Open(holder, OpenArgs{Access: AccessRead})
		if err != nil {
			t.Fatal(err)
		}
		recalled := 0
		lease := o.Lease(holder, CacheRead|CacheHandle, func(Rights) { recalled++ })
		if lease == nil {
			t.Fatal("no lease")
		}
		o.Close()
		a := mustOpen(t, f, OpenArgs{Access: AccessDelete})
		wantErr(t, "doom", a.Doom(root, "f"), nil)
		a.Close()
		synctest.Wait()
		if _, err := root.Lookup(c, "f"); err != nil || recalled != 1 {
			t.Errorf("while it is held: %v, recalled %d times", err, recalled)
		}
		_, err = f.Open(c, OpenArgs{Access: AccessRead})
		wantErr(t, "open meanwhile", err, ErrDeletePending)
		lease.Yield(0)
		synctest.Wait()
		_, err = root.Lookup(c, "f")
		wantErr(t, "after it was given back", err, ErrNotExist)
	})
}
