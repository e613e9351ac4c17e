package memstore

import "testing"

// What SMB's way of renaming refuses, and POSIX's does not.
func TestRenamePinned(t *testing.T) {
	s := newStore(t, 16<<20)
	root, c := s.Root(), Root()
	dir := mustCreate(t, root, "dir", TypeDir)
	sub := mustCreate(t, dir, "sub", TypeDir)
	f := mustCreate(t, sub, "f", TypeFile)
	mustCreate(t, root, "g", TypeFile)
	open := func(i *Inode, a OpenArgs) *Open {
		t.Helper()
		o, err := i.Open(c, a)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	rename := func(from, to string, toDir *Inode, flags RenameFlags) error {
		_, _, err := s.Rename(c, root, from, toDir, to, flags)
		return err
	}
	pinned := open(f, OpenArgs{Access: AccessRead, Pin: true})
	wantErr(t, "something below is open", rename("dir", "e", root, RenamePinned), ErrAccess)
	wantErr(t, "it is replaced", rename("g", "f", sub, RenamePinned), ErrAccess)
	pinned.Close()
	other := open(f, OpenArgs{Access: AccessRead})
	wantErr(t, "an open without Pin", rename("dir", "e", root, RenamePinned), nil)
	wantErr(t, "and back", rename("e", "dir", root, 0), nil)
	other.Close()
	for _, a := range []OpenArgs{{Access: AccessDelete}, {Access: AccessRead, Deny: AccessWrite}} {
		o := open(sub, a)
		wantErr(t, "to where somebody may remove the directory", rename("g", "h", sub, RenamePinned), ErrShareViolation)
		o.Close()
	}
	o := open(sub, OpenArgs{Access: AccessRead, Pin: true})
	wantErr(t, "into a directory that is open", rename("g", "f", sub, RenamePinned), nil)
	o.Close()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
