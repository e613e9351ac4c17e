package memstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// attach makes a mount whose kernel knows the root, and collects what it is told
// to forget, such as "dir/name-child" for an entry and "file+data".
func attach(t *testing.T, s *Store) (*Local, *Caller, func() string) {
	t.Helper()
	var told []string
	h := &Holder{Name: "mount"}
	l, err := s.AttachLocal(h, func(stale []Stale) {
		for _, w := range stale {
			path, _ := w.Inode.Path()
			what := "[" + path
			if w.Name != "" {
				what += "]/" + w.Name
			} else {
				what += "]"
			}
			if w.Child != nil {
				what += "-gone"
			}
			if w.Data {
				what += "+data"
			}
			told = append(told, what)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, &Caller{Holder: h}, func() string {
		slices.Sort(told)
		got := strings.Join(slices.Compact(told), " ")
		told = nil
		return got
	}
}

func TestLocalForgets(t *testing.T) {
	s := newStore(t, 1<<20)
	root := s.Root()
	l, mount, told := attach(t, s)
	f, g, d, unknown := mustCreate(t, root, "f", TypeFile), mustCreate(t, root, "g", TypeFile), mustCreate(t, root, "d", TypeDir), mustCreate(t, root, "u", TypeFile)
	mustCreate(t, mustCreate(t, root, "hidden", TypeDir), "h", TypeFile)
	for _, i := range []*Inode{f, g, d} {
		if _, err := l.Know(i); err != nil {
			t.Fatal(err)
		}
	}
	told()
	var size SetAttr
	size.Mask = SetSize
	for _, c := range []struct {
		what string
		do   func(c *Caller) error
		want string // "" for the same done by the mount itself
	}{
		{"write", func(c *Caller) error { _, _, err := f.WriteAt(c, nil, []byte("x"), 0); return err }, "[f]+data"},
		{"append", func(c *Caller) error { _, _, _, err := f.Append(c, nil, []byte("x")); return err }, "[f]+data"},
		{"truncate", func(c *Caller) error { _, err := f.SetAttr(c, nil, &size); return err }, "[f]+data"},
		{"allocate", func(c *Caller) error { _, err := f.Allocate(c, nil, 0, 10, false); return err }, "[f]+data"},
		{"punch", func(c *Caller) error { _, err := f.Punch(c, nil, 0, 10); return err }, "[f]+data"},
		{"clone", func(c *Caller) error { _, _, err := g.Clone(c, nil, 0, f, nil, 0, 0); return err }, "[g]+data"},
		{"chmod", func(c *Caller) error { _, err := f.SetAttr(c, nil, &SetAttr{Mask: SetMode}); return err }, "[f]"},
		{"xattr", func(c *Caller) error { _, err := f.SetXattr(c, "a", nil, XattrEither); return err }, "[f]"},
		{"read", func(c *Caller) error { _, _, _, err := f.ReadAt(c, nil, make([]byte, 1), 0); return err }, ""},
		{"chmod of what the kernel does not know", func(c *Caller) error { _, err := unknown.SetAttr(c, nil, &SetAttr{Mask: SetMode}); return err }, ""},
		{"create", func(c *Caller) error { _, err := d.Create(c, "n", &Create{Type: TypeFile}); return err }, "[d]/n"},
		{"create again", func(c *Caller) error {
			_, err := root.Create(c, "f", &Create{Type: TypeFile, Exist: ExistOpen, Set: size})
			return err
		}, "[f]+data"},
		{"remove", func(c *Caller) error { _, err := d.Remove(c, "n", RemoveAny); return err }, "[d]/n-gone"},
		{"link", func(c *Caller) error { _, _, err := d.Link(c, "f", f); return err }, "[d/f] [d]/f"},
		{"remove a link", func(c *Caller) error { _, err := d.Remove(c, "f", RemoveAny); return err }, "[] [d]/f-gone"},
		{"exchange", func(c *Caller) error { _, _, err := s.Rename(c, root, "f", root, "g", RenameExchange); return err }, "[]/f []/g [f] [g]"},
		{"move", func(c *Caller) error { _, _, err := s.Rename(c, root, "f", d, "f", 0); return err }, "[]/f [d/f] [d]/f"},
		{"move back", func(c *Caller) error { _, _, err := s.Rename(c, d, "f", root, "f", 0); return err }, "[]/f [d]/f [f]"},
		{"refused", func(c *Caller) error {
			if _, err := d.Create(c, "/", &Create{Type: TypeFile}); err == nil {
				return errors.New("no error")
			}
			return nil
		}, ""},
	} {
		other := &Caller{Holder: &Holder{Name: "client"}}
		by := other
		for _, who := range []string{"another", "nobody", "the mount"} {
			want := c.want
			switch who {
			case "nobody":
				by = Root()
			case "the mount":
				by, want = mount, ""
			}
			err := c.do(by)
			// Most calls can be done once only; what they undo is the next's.
			if err != nil && who == "another" {
				t.Fatalf("%s: %v", c.what, err)
			}
			if got := told(); err == nil && got != want {
				t.Errorf("%s by %s: told %q, want %q", c.what, who, got, want)
			}
		}
	}
	l.Detach()
	wantErr(t, "Check", s.Check(), nil)
}

func TestLocalKeepsInodes(t *testing.T) {
	s := newStore(t, 1<<20)
	l, mount, _ := attach(t, s)
	if _, err := s.AttachLocal(&Holder{}, nil); err != ErrExist {
		t.Errorf("a second mount: %v", err)
	}
	for _, kind := range []Type{TypeFile, TypeDir, TypeSymlink} {
		what := fmt.Sprint("type ", kind)
		r, err := s.Root().Create(mount, "f", &Create{Type: kind, Target: "t"})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Inode
		if _, err := l.Inode(f.Ino()); err != ErrStale {
			t.Errorf("%s: found before it is known: %v", what, err)
		}
		if f.Told() {
			t.Errorf("%s: told before it is known", what)
		}
		for range 3 {
			if a, err := l.Know(f); err != nil || a.Ino != f.Ino() {
				t.Fatal(a, err)
			}
		}
		if _, err := s.Root().Remove(Root(), "f", RemoveAny); err != nil {
			t.Fatal(err)
		}
		f.Untell()
		if f.Told() || !f.Known() {
			t.Errorf("%s: told %v and known %v after Untell", what, f.Told(), f.Known())
		}
		l.Forget(f, 2)
		if a, err := f.GetAttr(mount); err != nil || a.Nlink != 0 {
			t.Errorf("%s: removed, but known: %d links, %v", what, a.Nlink, err)
		}
		if i, err := l.Inode(f.Ino()); i != f || !f.Told() {
			t.Errorf("%s: removed, but known: told %v, %v", what, f.Told(), err)
		}
		wantErr(t, "Check", s.Check(), nil)
		l.Forget(f, 1)
		if _, err := f.GetAttr(mount); err != ErrStale {
			t.Errorf("%s: removed and forgotten: %v", what, err)
		}
		if _, err := l.Know(f); err != ErrStale {
			t.Errorf("%s: known after its end: %v", what, err)
		}
		wantErr(t, "Check", s.Check(), nil)
	}

	// What is open outlives being forgotten, and what is known outlives being
	// closed.
	for _, closeFirst := range []bool{false, true} {
		f := mustCreate(t, s.Root(), "f", TypeFile)
		o := mustOpen(t, f, OpenArgs{Access: AccessRead})
		if _, err := l.Know(f); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Root().Remove(Root(), "f", RemoveAny); err != nil {
			t.Fatal(err)
		}
		release := []func(){func() { l.Forget(f, 1) }, o.Close}
		if closeFirst {
			slices.Reverse(release)
		}
		release[0]()
		if _, err := f.GetAttr(mount); err != nil {
			t.Error(err)
		}
		release[1]()
		if _, err := f.GetAttr(mount); err != ErrStale {
			t.Error(err)
		}
		wantErr(t, "Check", s.Check(), nil)
	}

	f := mustCreate(t, s.Root(), "f", TypeFile)
	if _, err := l.Know(f); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Root().Remove(Root(), "f", RemoveAny); err != nil {
		t.Fatal(err)
	}
	l.Detach()
	if _, err := f.GetAttr(Root()); err != ErrStale {
		t.Errorf("after the mount's end: %v", err)
	}
	if l, err := s.AttachLocal(&Holder{}, nil); err != nil {
		t.Errorf("mounted again: %v", err)
	} else {
		l.Detach()
	}
	wantErr(t, "Check", s.Check(), nil)
}

func TestCreateTemp(t *testing.T) {
	s := newStore(t, 1<<20)
	d := mustCreate(t, s.Root(), "d", TypeDir)
	if _, err := d.SetAttr(Root(), nil, &SetAttr{Mask: SetMode | SetGID, Mode: ModeSetGID | 0o777, GID: 7}); err != nil {
		t.Fatal(err)
	}
	before, _ := d.GetAttr(Root())
	user := caller(10, 20)
	args := &Create{Type: TypeFile, Set: SetAttr{Mask: SetMode, Mode: 0o600}, Open: &OpenArgs{Access: AccessRead | AccessWrite}}
	r, err := d.CreateTemp(user, args)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Attr; a.Nlink != 0 || a.UID != 10 || a.GID != 7 || a.Mode != 0o600 {
		t.Errorf("%+v", a)
	}
	if after, _ := d.GetAttr(Root()); after != before {
		t.Errorf("the directory became %+v, was %+v", after, before)
	}
	if _, _, err := r.Inode.WriteAt(user, r.Open, []byte("data"), 0); err != nil {
		t.Error(err)
	}
	wantErr(t, "Check", s.Check(), nil)
	if _, _, err := d.Link(user, "named", r.Inode); err != nil {
		t.Fatal(err)
	}
	r.Open.Close()
	wantErr(t, "Check", s.Check(), nil)
	if i, err := d.Lookup(user, "named"); i != r.Inode {
		t.Error(err)
	}

	used := s.Statfs().UsedInodes
	if r, err = d.CreateTemp(user, args); err != nil {
		t.Fatal(err)
	}
	r.Open.Close()
	if _, err := r.Inode.GetAttr(user); err != ErrStale {
		t.Errorf("closed without a name: %v", err)
	}
	if got := s.Statfs().UsedInodes; got != used {
		t.Errorf("%d inodes, had %d", got, used)
	}
	for _, c := range []struct {
		what string
		d    *Inode
		c    *Caller
		a    Create
		want error
	}{
		{"in a file", mustCreate(t, s.Root(), "f", TypeFile), Root(), *args, ErrNotDir},
		{"without permission", s.Root(), user, *args, nil},
		{"not opened", d, user, Create{Type: TypeFile}, ErrInvalid},
		{"a directory", d, user, Create{Type: TypeDir, Open: args.Open}, ErrInvalid},
	} {
		r, err := c.d.CreateTemp(c.c, &c.a)
		wantErr(t, c.what, err, c.want)
		if err == nil {
			r.Open.Close()
		}
	}
	if _, err := s.Root().Remove(Root(), "f", RemoveAny); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Check", s.Check(), nil)
}

func TestCapabilitiesAreDropped(t *testing.T) {
	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	const name = "security.capability"
	for _, c := range []struct {
		what string
		do   func() error
		want error
	}{
		{"chmod", func() error { _, err := f.SetAttr(Root(), nil, &SetAttr{Mask: SetMode, Mode: 0o755}); return err }, nil},
		{"write", func() error { _, _, err := f.WriteAt(Root(), nil, []byte("x"), 0); return err }, ErrNoXattr},
		{"truncate", func() error { _, err := f.SetAttr(Root(), nil, &SetAttr{Mask: SetSize}); return err }, ErrNoXattr},
		{"chown", func() error { _, err := f.SetAttr(Root(), nil, &SetAttr{Mask: SetUID}); return err }, ErrNoXattr},
	} {
		if _, err := f.SetXattr(Root(), name, []byte("v"), XattrEither); err != nil {
			t.Fatal(err)
		}
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		_, err := f.GetXattr(Root(), name)
		wantErr(t, "after "+c.what, err, c.want)
		wantErr(t, "Check", s.Check(), nil)
	}
}
