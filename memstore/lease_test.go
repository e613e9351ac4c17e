package memstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// parseRights is the inverse of format: "RWH" or a part of it.
func parseRights(s string) (r Rights) {
	for n, c := range "RWH" {
		if strings.ContainsRune(s, c) {
			r |= 1 << n
		}
	}
	return r
}

// mayWait tells whether err is a Wait.
func mayWait(err error) bool {
	var w *Wait
	return errors.As(err, &w)
}

// TestLeaseBreaks is the table of package doc's "Leases", in the order of the
// holder's leases: of data only, and of attributes too.
func TestLeaseBreaks(t *testing.T) {
	const r, w = AccessRead, AccessWrite
	set := func(mask SetMask) func(*Caller, *Inode) error {
		return func(c *Caller, f *Inode) error { _, err := f.SetAttr(c, nil, &SetAttr{Mask: mask}); return err }
	}
	open := func(a OpenArgs) func(*Caller, *Inode) error {
		return func(c *Caller, f *Inode) error {
			o, err := f.Open(c, a)
			if err == nil {
				o.Close()
			}
			return err
		}
	}
	create := func(a Create) func(*Caller, *Inode) error {
		return func(c *Caller, f *Inode) error {
			a.Type, a.Exist = TypeFile, ExistOpen
			o, err := f.home.Create(c, "f", &a)
			if o.Open != nil {
				o.Open.Close()
			}
			return err
		}
	}
	for _, tt := range []struct {
		what        string
		data, attrs string
		do          func(c *Caller, f *Inode) error
	}{
		{"open r", "W", "W", open(OpenArgs{Access: r})},
		{"open w", "RW", "RW", open(OpenArgs{Access: w})},
		{"open r deny w", "W", "W", open(OpenArgs{Access: r, Deny: w})},
		{"open r deny r", "RW", "RW", open(OpenArgs{Access: r, Deny: r})},
		{"create r", "W", "W", create(Create{Open: &OpenArgs{Access: r}})},
		{"create w", "RW", "RW", create(Create{Open: &OpenArgs{Access: w}})},
		{"create r truncate", "RW", "RW", create(Create{Open: &OpenArgs{Access: r}, Set: SetAttr{Mask: SetSize}})},
		{"create truncate", "RW", "RW", create(Create{Set: SetAttr{Mask: SetSize}})},
		{"create", "", "W", create(Create{})},
		{"read", "W", "W", func(c *Caller, f *Inode) error { _, _, _, err := f.ReadAt(c, nil, make([]byte, 1), 0); return err }},
		{"view", "W", "W", func(c *Caller, f *Inode) error { _, _, _, err := f.ReadView(c, nil, 0, 1, new(View)); return err }},
		{"seek", "W", "W", func(c *Caller, f *Inode) error { _, err := f.SeekHole(c, nil, 0); return err }},
		{"clone from", "W", "W", func(c *Caller, f *Inode) error {
			g, err := f.home.Lookup(c, "g")
			if err == nil {
				_, _, err = g.Clone(c, nil, 0, f, nil, 0, 0)
			}
			return err
		}},
		{"clone to", "RW", "RW", func(c *Caller, f *Inode) error {
			g, err := f.home.Lookup(c, "g")
			if err == nil {
				_, _, err = f.Clone(c, nil, 0, g, nil, 0, 0)
			}
			return err
		}},
		{"write", "RW", "RW", func(c *Caller, f *Inode) error { _, _, err := f.WriteAt(c, nil, []byte("x"), 0); return err }},
		{"append", "RW", "RW", func(c *Caller, f *Inode) error { _, _, _, err := f.Append(c, nil, []byte("x")); return err }},
		{"write fresh", "RW", "RW", func(c *Caller, f *Inode) error {
			var fresh Fresh
			if err := f.NewFresh(&fresh, 0, slotSize); err != nil {
				return err
			}
			defer fresh.Release()
			_, _, err := f.WriteFresh(c, nil, &fresh)
			return err
		}},
		{"truncate", "RW", "RW", set(SetSize)},
		{"allocate", "RW", "RW", func(c *Caller, f *Inode) error { _, err := f.Allocate(c, nil, 0, 1, true); return err }},
		{"punch", "RW", "RW", func(c *Caller, f *Inode) error { _, err := f.Punch(c, nil, 0, 1); return err }},
		{"getattr", "", "W", func(c *Caller, f *Inode) error { _, err := f.GetAttr(c); return err }},
		{"test a lock", "W", "W", func(c *Caller, f *Inode) error {
			_, err := f.TestLock(LockArgs{Owner: LockOwner{Holder: c.Holder}, Exclusive: true})
			return err
		}},
		{"chmod", "W", "RW", set(SetMode)},
		{"chown", "W", "RW", set(SetUID)},
		{"utimes", "W", "RW", set(SetMtimeNow)},
		{"set xattr", "W", "RW", func(c *Caller, f *Inode) error { _, err := f.SetXattr(c, "user.a", nil, 0); return err }},
		{"remove xattr", "W", "RW", func(c *Caller, f *Inode) error { _, err := f.RemoveXattr(c, "user.b"); return err }},
		{"link", "W", "RW", func(c *Caller, f *Inode) error { _, _, err := f.home.Link(c, "h", f); return err }},
		{"remove", "H", "RWH", func(c *Caller, f *Inode) error { _, err := f.home.Remove(c, "f", RemoveAny); return err }},
		{"rename", "H", "RWH", func(c *Caller, f *Inode) error {
			_, _, err := f.s.Rename(c, f.home, "f", f.home, "h", 0)
			return err
		}},
		{"exchange", "H", "RWH", func(c *Caller, f *Inode) error {
			_, _, err := f.s.Rename(c, f.home, "g", f.home, "f", RenameExchange)
			return err
		}},
		{"replace", "H", "RWH", func(c *Caller, f *Inode) error {
			_, _, err := f.s.Rename(c, f.home, "g", f.home, "f", 0)
			return err
		}},

		{"lookup", "", "", func(c *Caller, f *Inode) error { _, err := f.home.Lookup(c, "f"); return err }},
		{"access", "", "", func(c *Caller, f *Inode) error { f.Access(c, r); return nil }},
		{"create exclusively", "", "", func(c *Caller, f *Inode) error {
			if _, err := f.home.Create(c, "f", &Create{Type: TypeFile}); err != ErrExist {
				return err
			}
			return nil
		}},
		{"get xattr", "", "", func(c *Caller, f *Inode) error { _, err := f.GetXattr(c, "user.b"); return err }},
		{"rename onto itself", "", "", func(c *Caller, f *Inode) error {
			_, _, err := f.s.Rename(c, f.home, "f", f.home, "f", 0)
			return err
		}},
	} {
		for granted := Rights(1); granted <= CacheRead|CacheWrite|CacheHandle; granted++ {
			for _, attrs := range []bool{false, true} {
				want := parseRights(tt.data)
				if attrs {
					want = parseRights(tt.attrs)
				}
				what := fmt.Sprintf("%s against %03b, attributes %v", tt.what, granted, attrs)
				testBreak(t, what, granted, granted&want, attrs, tt.do)
			}
		}
	}
}

// testBreak does one thing against one lease, by its holder, and by others.
func testBreak(t *testing.T, what string, granted, lost Rights, attrs bool, do func(*Caller, *Inode) error) {
	for _, who := range []string{"holder", "client", "nobody"} {
		s, err := New(Config{Size: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		f := mustCreate(t, s.Root(), "f", TypeFile)
		mustCreate(t, s.Root(), "g", TypeFile)
		if _, err := f.SetXattr(Root(), "user.b", nil, 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.WriteAt(Root(), nil, make([]byte, 10), 0); err != nil {
			t.Fatal(err)
		}
		holder := &Caller{Holder: &Holder{Name: "holder", CachesAttrs: attrs}}
		told := make(chan Rights, 2)
		o, err := f.Open(holder, OpenArgs{Access: AccessRead})
		if err != nil {
			t.Fatal(err)
		}
		l := o.Lease(holder, granted, func(keep Rights) { told <- keep })
		if l == nil || l.Rights() != granted || l.Inode() != f {
			t.Fatalf("%s: granted %v", what, l)
		}
		o.Close()
		c := map[string]*Caller{"holder": holder, "client": {Holder: &Holder{Name: "client"}}, "nobody": Root()}[who]
		before := snapshot(s)
		err = do(c, f)
		if who == "holder" || lost == 0 {
			if err != nil || l.breaking.Load() != nil {
				t.Errorf("%s by %s: %v", what, who, err)
			}
			l.Yield(0)
		} else {
			if !mayWait(err) || snapshot(s) != before {
				t.Errorf("%s by %s: %v, and the store %q, was %q", what, who, err, snapshot(s), before)
			}
			if err := do(c, f); !mayWait(err) {
				t.Errorf("%s by %s again: %v", what, who, err)
			}
			if keep := <-told; keep != granted&^lost {
				t.Errorf("%s by %s: told to keep %03b", what, who, keep)
			}
			var w *Wait
			errors.As(err, &w)
			l.Yield(granted&^lost | lost&-lost) // all but one of what was asked for
			if lost&(lost-1) != 0 {
				select {
				case <-w.Done():
					t.Errorf("%s by %s: over before all was given up", what, who)
				default:
				}
			}
			l.Yield(granted &^ lost)
			<-w.Done()
			if err := do(c, f); err != nil {
				t.Errorf("%s by %s in the end: %v", what, who, err)
			}
			l.Yield(0)
		}
		if len(told) > 0 {
			t.Errorf("%s by %s: told once more", what, who)
		}
		wantErr(t, "Check", s.Check(), nil)
		s.Close()
	}
}

// snapshot is all that a store shows.
func snapshot(s *Store) string {
	var b strings.Builder
	s.table.each(func(i *Inode) {
		a := i.attr()
		a.Atime = 0
		fmt.Fprintf(&b, "%+v %d\n", a, len(i.x.xattrsOf()))
	})
	return b.String()
}

func (x *extra) xattrsOf() map[string][]byte {
	if x == nil {
		return nil
	}
	return x.xattrs
}

// TestLeaseGrants: what others have open or may cache decides what is granted.
func TestLeaseGrants(t *testing.T) {
	const r, w = AccessRead, AccessWrite
	for _, tt := range []struct {
		mine   OpenArgs
		open   *OpenArgs // by another
		lease  string    // of another
		want   string
		grants bool
	}{
		{OpenArgs{Access: r}, nil, "", "RWH", true},
		{OpenArgs{Access: r | w}, nil, "", "RWH", true},
		{OpenArgs{Access: r}, &OpenArgs{Access: r}, "", "RH", true},
		{OpenArgs{Access: r}, &OpenArgs{Access: r}, "", "RW", false},
		{OpenArgs{Access: r}, &OpenArgs{Access: w}, "", "R", false},
		{OpenArgs{Access: r}, &OpenArgs{Access: w}, "", "H", true},
		{OpenArgs{Access: w}, &OpenArgs{Access: r}, "", "R", true},
		{OpenArgs{Access: w}, &OpenArgs{Access: r, Deny: r}, "", "R", false},
		{OpenArgs{Access: r}, nil, "RH", "RH", true},
		{OpenArgs{Access: r}, nil, "RH", "RWH", false},
		{OpenArgs{Access: r}, nil, "H", "RWH", true},
		{OpenArgs{Access: r}, nil, "R", "H", true},
	} {
		s := newStore(t, 1<<20)
		f := mustCreate(t, s.Root(), "f", TypeFile)
		me, other := &Caller{Holder: &Holder{Name: "me"}}, &Caller{Holder: &Holder{Name: "other"}}
		nothing := func(Rights) {}
		if tt.lease != "" {
			o, _ := f.Open(other, OpenArgs{Access: r})
			if l := o.Lease(other, parseRights(tt.lease), nothing); l == nil {
				t.Fatal("the other's lease is not granted")
			} else {
				defer l.Yield(0)
			}
			o.Close()
		}
		mine, err := f.Open(me, tt.mine)
		for mayWait(err) {
			f.x.leases[0].Yield(CacheHandle)
			f.x.broken = 0
			mine, err = f.Open(me, tt.mine)
		}
		if tt.open != nil {
			a := *tt.open
			if a.Deny&tt.mine.Access != 0 {
				continue
			}
			o, err := f.Open(other, a)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
		}
		l := mine.Lease(me, parseRights(tt.want), nothing)
		if (l != nil) != tt.grants {
			t.Errorf("%+v: granted %v", tt, l != nil)
		}
		if l != nil {
			wantErr(t, "Check", s.Check(), nil)
			l.Yield(0)
		}
		mine.Close()
	}

	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	me := &Caller{Holder: &Holder{Name: "me"}}
	nothing := func(Rights) {}
	o, _ := f.Open(me, OpenArgs{Access: r})
	d, _ := s.Root().Open(me, OpenArgs{Access: r})
	n, _ := f.Open(Root(), OpenArgs{Access: r})
	for what, l := range map[string]*Lease{
		"a directory":      d.Lease(me, CacheRead, nothing),
		"nobody":           n.Lease(Root(), CacheRead, nothing),
		"another's open":   n.Lease(me, CacheRead, nothing),
		"no rights":        o.Lease(me, 0, nothing),
		"more than allows": o.Lease(me, CacheRead|CacheWrite, nothing),
	} {
		if l != nil {
			t.Errorf("granted: %s", what)
		}
	}
	l := o.Lease(me, CacheRead, nothing)
	n.Close()
	if more := o.Lease(me, CacheWrite, nothing); more != l || l.Rights() != CacheRead|CacheWrite {
		t.Errorf("extended to %v", more)
	}
	o.Close()
	if o.Lease(me, CacheRead, nothing) != nil {
		t.Error("granted: a closed open")
	}
	l.Yield(0)
	l.Yield(0)
	d.Close()
	wantErr(t, "Check", s.Check(), nil)
}

// TestLeaseKeepsInode: a holder may remove what it has a lease on, and gives it
// back later.
func TestLeaseKeepsInode(t *testing.T) {
	s := newStore(t, 1<<20)
	me := &Caller{Holder: &Holder{Name: "me", CachesAttrs: true}}
	r, err := s.Root().Create(me, "f", &Create{Type: TypeFile, Open: &OpenArgs{Access: AccessRead | AccessWrite}})
	if err != nil {
		t.Fatal(err)
	}
	l := r.Open.Lease(me, CacheRead|CacheWrite|CacheHandle, func(Rights) { t.Error("recalled") })
	if _, err := s.Root().Remove(me, "f", RemoveFile); err != nil {
		t.Fatal(err)
	}
	r.Open.Close()
	if a, err := r.Inode.GetAttr(me); err != nil || a.Nlink != 0 {
		t.Errorf("removed by its holder: %+v, %v", a, err)
	}
	wantErr(t, "Check", s.Check(), nil)
	l.Yield(0)
	if _, err := r.Inode.GetAttr(me); err != ErrStale {
		t.Errorf("given back: %v", err)
	}
	wantErr(t, "Check", s.Check(), nil)
}

// TestLeasePause: what was broken is not granted again at once, and a break
// that nobody answers ends by taking the lease.
func TestLeasePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, 1<<20)
		f := mustCreate(t, s.Root(), "f", TypeFile)
		me := &Caller{Holder: &Holder{Name: "me"}}
		o, _ := f.Open(me, OpenArgs{Access: AccessRead})
		told := 0
		grant := func() *Lease { return o.Lease(me, CacheRead, func(Rights) { told++ }) }
		l := grant()
		var waiting sync.WaitGroup
		var done atomic.Int32
		for range 5 {
			waiting.Go(func() {
				for {
					_, _, err := f.WriteAt(Root(), nil, []byte("x"), 0)
					var w *Wait
					if !errors.As(err, &w) {
						break
					}
					<-w.Done()
				}
				done.Add(1)
			})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if told != 1 || done.Load() != 0 {
			t.Fatalf("told %d times; %d went on", told, done.Load())
		}
		if grant() != nil {
			t.Error("granted while it is broken")
		}
		l.Yield(0)
		waiting.Wait()
		time.Sleep(leasePause - time.Second)
		if done.Load() != 5 || grant() != nil {
			t.Errorf("%d of 5 went on, or granted soon after a break", done.Load())
		}
		time.Sleep(time.Second)
		if l = grant(); l == nil {
			t.Error("not granted long after a break")
		}
		l.Yield(0)
		o.Close()
		wantErr(t, "Check", s.Check(), nil)
	})
}

// TestLeaseOfLocalMount: the mount asks for what it does not know, and forgets
// what another may now change without asking.
func TestLeaseOfLocalMount(t *testing.T) {
	s := newStore(t, 1<<20)
	local, mount, forgot := attach(t, s)
	client := &Caller{Holder: &Holder{Name: "client", CachesAttrs: true}}
	f := mustCreate(t, s.Root(), "f", TypeFile)
	if _, err := local.Know(f); err != nil {
		t.Fatal(err)
	}
	forgot()
	told := make(chan Rights, 1)
	grant := func(r Rights) *Lease {
		o, err := f.Open(client, OpenArgs{Access: AccessRead})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		return o.Lease(client, r, func(keep Rights) { told <- keep })
	}
	l := grant(CacheRead)
	if got := forgot(); got != "" {
		t.Errorf("forgot %s for one who reads", got)
	}
	if _, err := local.Know(f); err != nil {
		t.Error(err)
	}
	l.Yield(0)
	l = grant(CacheRead | CacheWrite)
	if got := forgot(); got != "[f]+data" {
		t.Errorf("forgot %s for one who writes", got)
	}
	if _, err := local.Know(f); !mayWait(err) {
		t.Errorf("the mount is told of attributes: %v", err)
	}
	<-told
	l.Yield(0)
	if _, err := local.Know(f); err != nil {
		t.Error(err)
	}
	if f.x != nil {
		f.x.broken = 0
	}
	o, err := f.Open(mount, OpenArgs{Access: AccessWrite})
	if err != nil {
		t.Fatal(err)
	}
	if grant(CacheRead) != nil {
		t.Error("granted while the mount writes")
	}
	o.Close()
	local.Detach()
	wantErr(t, "Check", s.Check(), nil)
}

// TestLeaseOpen: a holder reads and writes by its lease whatever the mode has
// become, and what it yields it can do no more.
func TestLeaseOpen(t *testing.T) {
	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	me := &Caller{Cred: Cred{UID: 7, GID: 7}, Holder: &Holder{Name: "me"}}
	set := func(mode uint16) {
		t.Helper()
		if _, err := f.SetAttr(&Caller{Holder: me.Holder}, nil, &SetAttr{Mask: SetMode, Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	set(0o666)
	o, err := f.Open(me, OpenArgs{Access: AccessRead | AccessWrite})
	if err != nil {
		t.Fatal(err)
	}
	l := o.Lease(me, CacheRead|CacheWrite|CacheHandle, nil)
	o.Close()
	set(0)
	try := func(what string, read, write error) {
		t.Helper()
		_, _, _, err := f.ReadAt(me, l.Open(), make([]byte, 1), 0)
		wantErr(t, what+" by the lease to read", err, read)
		_, _, err = f.WriteAt(me, l.Open(), []byte("x"), 0)
		wantErr(t, what+" by the lease to write", err, write)
	}
	_, _, _, err = f.ReadAt(me, nil, make([]byte, 1), 0)
	wantErr(t, "without an open", err, ErrAccess)
	try("whole", nil, nil)
	l.Yield(CacheRead)
	try("a part", nil, ErrAccess)
	l.Yield(0)
	try("nothing", ErrAccess, ErrAccess)
}
