package memstore

import (
	"sync"
	"testing"
	"time"
)

// A name that goes from one inode to another in one step.
func TestReplace(t *testing.T) {
	s := newStore(t, 1<<20)
	root, c := s.Root(), Root()
	user := caller(10, 20)
	f, old := mustCreate(t, root, "f", TypeFile), mustCreate(t, root, "old", TypeFile)
	dir, full := mustCreate(t, root, "dir", TypeDir), mustCreate(t, root, "full", TypeDir)
	mustCreate(t, full, "x", TypeFile)
	other := newStore(t, 1<<20)
	kept := mustCreate(t, root, "kept", TypeFile)
	denies := mustOpen(t, kept, OpenArgs{Deny: AccessDelete})
	defer denies.Close()
	gone := mustCreate(t, root, "gone", TypeFile)
	if _, err := root.Remove(c, "gone", RemoveFile); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what   string
		d      *Inode
		c      *Caller
		name   string
		old, i *Inode
		want   error
	}{
		{"what the name does not stand for", root, c, "old", f, f, ErrExist},
		{"another than the name stands for", root, c, "old", kept, f, ErrNotExist},
		{"no name", root, c, "none", old, f, ErrNotExist},
		{"by a directory", root, c, "old", old, dir, ErrPerm},
		{"a directory that is not empty", root, c, "full", full, f, ErrNotEmpty},
		{"in a file", f, c, "old", old, f, ErrNotDir},
		{"by what is gone", root, c, "old", old, gone, ErrStale},
		{"by another store's", root, c, "old", old, mustCreate(t, other.Root(), "f", TypeFile), ErrXDev},
		{"what denies that", root, c, "kept", kept, f, ErrShareViolation},
		{"in another's directory", full, user, "x", full.is("x"), f, ErrAccess},
	} {
		if tt.d == f {
			wantErr(t, tt.what, tt.d.Replace(tt.c, tt.name, tt.old, old), tt.want)
			continue
		}
		wantErr(t, tt.what, tt.d.Replace(tt.c, tt.name, tt.old, tt.i), tt.want)
		wantErr(t, "Check", s.Check(), nil)
	}

	w, err := root.Watch(WatchName|WatchDir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	wantErr(t, "a file", root.Replace(c, "old", old, f), nil)
	if i := root.is("old"); i != f {
		t.Error("the name stands for another")
	}
	if a, _ := f.GetAttr(c); a.Nlink != 2 {
		t.Errorf("%d links", a.Nlink)
	}
	_, err = old.GetAttr(c)
	wantErr(t, "what had it", err, ErrStale)
	made, err := root.CreateTemp(c, &Create{Type: TypeSymlink, Target: "target", Open: &OpenArgs{}})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "a directory", root.Replace(c, "dir", dir, made.Inode), nil)
	made.Open.Close()
	if target, err := root.is("dir").Readlink(c); target != "target" || err != nil {
		t.Errorf("%q, %v", target, err)
	}
	if a, _ := root.GetAttr(c); a.Nlink != 3 {
		t.Errorf("%d links of the directory", a.Nlink)
	}
	events, _, _ := w.Take(nil)
	want := []WatchEvent{{Action: WatchModified, Path: "old"}, {Action: WatchRemoved, Path: "dir"}, {Action: WatchAdded, Path: "dir"}}
	if len(events) != len(want) || events[0] != want[0] || events[1] != want[1] || events[2] != want[2] {
		t.Errorf("%v, want %v", events, want)
	}
	wantErr(t, "Check", s.Check(), nil)
}

// Many names change hands at once, by locks in any order.
func TestReplaceTogether(t *testing.T) {
	s := newStore(t, 1<<20)
	root, c := s.Root(), Root()
	names := []string{"a", "b", "c"}
	for _, name := range names {
		mustCreate(t, root, name, TypeFile)
	}
	var wg sync.WaitGroup
	end := time.Now().Add(50 * time.Millisecond)
	for k := range 4 {
		wg.Go(func() {
			for n := k; time.Now().Before(end); n++ {
				old, i := root.peek(names[n%3]), root.peek(names[n/3%3])
				switch err := root.Replace(c, names[n%3], old, i); err {
				case nil, ErrExist, ErrNotExist, ErrStale:
				default:
					t.Error(err)
					return
				}
				if n%7 == 0 {
					r, err := root.CreateTemp(c, &Create{Type: TypeFile, Open: &OpenArgs{}})
					if err != nil {
						t.Error(err)
						return
					}
					root.Replace(c, names[n%3], root.peek(names[n%3]), r.Inode)
					r.Open.Close()
				}
			}
		})
	}
	wg.Wait()
	wantErr(t, "Check", s.Check(), nil)
}
