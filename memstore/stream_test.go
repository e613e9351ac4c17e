package memstore

import "testing"

func TestStreams(t *testing.T) {
	s := newStore(t, 16<<20)
	c := Root()
	f := mustCreate(t, s.Root(), "f", TypeFile)
	rw := OpenArgs{Access: AccessRead | AccessWrite, Deny: AccessWrite}
	open := func(name string, a StreamArgs) (*Open, error) {
		o, _, err := f.OpenStream(c, name, a)
		return o, err
	}
	_, err := open("one", StreamArgs{Open: rw})
	wantErr(t, "none", err, ErrNotExist)
	one, err := open("one", StreamArgs{Open: rw, Create: true})
	wantErr(t, "made", err, nil)
	if _, _, err := one.Inode().WriteAt(c, one, []byte("stream"), 0); err != nil {
		t.Fatal(err)
	}
	_, err = open("ONE", StreamArgs{Open: rw})
	wantErr(t, "a share mode of its own", err, ErrShareViolation)
	_, err = open("One", StreamArgs{Open: OpenArgs{}, Create: true, Fail: true})
	wantErr(t, "is there", err, ErrExist)
	base, err := f.Open(c, OpenArgs{Access: AccessRead | AccessWrite, Deny: AccessRead | AccessWrite})
	wantErr(t, "the file is another", err, nil)
	two, err := open("two", StreamArgs{Open: OpenArgs{Access: AccessDelete}, Create: true})
	wantErr(t, "a second", err, nil)
	wantErr(t, "renamed onto one that is open", two.RenameStream("one", true), ErrAccess)
	wantErr(t, "renamed", two.RenameStream("three", false), nil)
	if got := f.Streams(); len(got) != 2 || got[0].Name != "one" || got[0].Size != 6 || got[1].Name != "three" {
		t.Errorf("streams are %+v", got)
	}
	wantErr(t, "doomed", two.Doom(nil, ""), nil)
	two.Close()
	if got := f.Streams(); len(got) != 1 {
		t.Errorf("streams are %+v", got)
	}
	if !f.StreamsOpen() {
		t.Error("none is open")
	}

	// With the file its streams go, but for who has one open.
	base.Close()
	if _, err := s.Root().Remove(c, "f", RemoveAny); err != nil {
		t.Fatal(err)
	}
	if n, _, _, err := one.Inode().ReadAt(c, one, make([]byte, 9), 0); n != 6 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	one.Close()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if got := s.Statfs().UsedInodes; got != 1 {
		t.Errorf("%d inodes are left", got)
	}
}
