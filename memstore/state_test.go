package memstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func mustOpen(t *testing.T, i *Inode, a OpenArgs) *Open {
	t.Helper()
	o, err := i.Open(Root(), a)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestShareModes(t *testing.T) {
	const r, w, d = AccessRead, AccessWrite, AccessDelete
	for _, tt := range []struct {
		first, second OpenArgs
		want          error
	}{
		{OpenArgs{Access: r}, OpenArgs{Access: r | w}, nil},
		{OpenArgs{Access: r, Deny: w}, OpenArgs{Access: r}, nil},
		{OpenArgs{Access: r, Deny: w}, OpenArgs{Access: w}, ErrShareViolation},
		{OpenArgs{Access: w}, OpenArgs{Access: r, Deny: w}, ErrShareViolation},
		{OpenArgs{Access: r, Deny: r | w}, OpenArgs{Access: 0}, nil},
		{OpenArgs{Access: d}, OpenArgs{Access: r, Deny: d}, ErrShareViolation},
	} {
		s := newStore(t, 1<<20)
		f := mustCreate(t, s.Root(), "f", TypeFile)
		a := mustOpen(t, f, tt.first)
		b, err := f.Open(Root(), tt.second)
		wantErr(t, fmt.Sprint(tt.first, tt.second), err, tt.want)
		if b != nil {
			b.Close()
		}
		a.Close()
		b = mustOpen(t, f, tt.second)
		b.Close()
	}

	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	o := mustOpen(t, f, OpenArgs{Access: r | w, Deny: w | d})
	c := Root()
	_, _, err := f.WriteAt(c, nil, []byte("x"), 0)
	wantErr(t, "write without an open against deny write", err, ErrShareViolation)
	_, _, err = f.WriteAt(c, o, []byte("x"), 0)
	wantErr(t, "write by the open itself", err, nil)
	_, err = f.SetAttr(c, nil, &SetAttr{Mask: SetSize})
	wantErr(t, "truncate against deny write", err, ErrShareViolation)
	_, err = s.Root().Create(c, "f", &Create{Type: TypeFile, Exist: ExistOpen, Set: SetAttr{Mask: SetSize}})
	wantErr(t, "create with truncation against deny write", err, ErrShareViolation)
	_, _, _, err = f.ReadAt(c, nil, make([]byte, 1), 0)
	wantErr(t, "read", err, nil)
	_, err = s.Root().Remove(c, "f", RemoveFile)
	wantErr(t, "remove against deny delete", err, ErrShareViolation)
	wantErr(t, "downgrade", o.Change(c, OpenArgs{Access: r}), nil)
	_, _, err = f.WriteAt(c, o, []byte("x"), 0)
	wantErr(t, "write after the downgrade", err, ErrAccess)
	_, err = s.Root().Remove(c, "f", RemoveFile)
	wantErr(t, "remove after the downgrade", err, nil)
	o.Close()
}

// TestOpenOwner is the upgrade of an open by its owner: it is one open, which
// has and denies what all of the owner's asked for, and which is in the way of
// the owner's next, as of others'.
func TestOpenOwner(t *testing.T) {
	const r, w = AccessRead, AccessWrite
	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	alice, bob := new(int), new(int)
	o := mustOpen(t, f, OpenArgs{Access: r, Deny: w, Owner: alice})
	_, err := f.Open(Root(), OpenArgs{Access: w, Owner: bob})
	wantErr(t, "another owner against deny write", err, ErrShareViolation)
	_, err = f.Open(Root(), OpenArgs{Access: w, Owner: alice})
	wantErr(t, "the owner itself against deny write", err, ErrShareViolation)
	_, err = f.Open(Root(), OpenArgs{Access: r, Deny: r, Owner: alice})
	wantErr(t, "deny read against the owner itself", err, ErrShareViolation)
	if up := mustOpen(t, f, OpenArgs{Access: r, Deny: AccessDelete, Owner: alice}); up != o || o.Access() != r {
		t.Errorf("the owner's second open: %p with access %d, want %p with %d", up, o.Access(), o, r)
	}
	wantErr(t, "change to more", o.Change(Root(), OpenArgs{Access: r | w}), nil)
	c, err := s.Root().Create(Root(), "f", &Create{Type: TypeFile, Exist: ExistOpen, Open: &OpenArgs{Access: r, Owner: alice}})
	if err != nil || c.New || c.Open != o {
		t.Errorf("create of what the owner has open: %v, new %t, %p, want %p", err, c.New, c.Open, o)
	}
	_, err = f.Open(Root(), OpenArgs{Access: r, Deny: r, Owner: bob})
	wantErr(t, "deny read against a reader", err, ErrShareViolation)
	wantErr(t, "downgrade", o.Change(Root(), OpenArgs{Access: r}), nil)
	b := mustOpen(t, f, OpenArgs{Access: w, Owner: bob})
	_, err = f.Open(Root(), OpenArgs{Access: r, Deny: w, Owner: alice})
	wantErr(t, "upgrade against a writer", err, ErrShareViolation)
	if o.Access() != r {
		t.Errorf("access after a refused upgrade: %d, want %d", o.Access(), r)
	}
	o.Close()
	if again := mustOpen(t, f, OpenArgs{Access: r, Owner: alice}); again == o {
		t.Error("a closed open was returned")
	} else {
		again.Close()
	}
	b.Close()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestLocks(t *testing.T) {
	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	c := Root()
	alice, bob := &Holder{Name: "alice"}, &Holder{Name: "bob"}
	a := mustOpen(t, f, OpenArgs{Access: AccessRead | AccessWrite})
	b := mustOpen(t, f, OpenArgs{Access: AccessRead | AccessWrite})
	of := func(h *Holder, off, n uint64, excl bool) LockArgs {
		return LockArgs{Owner: LockOwner{Holder: h}, Off: off, N: n, Exclusive: excl}
	}
	lock := func(o *Open, l LockArgs) error { _, err := o.Lock(l); return err }
	wantErr(t, "alice 0-10", lock(a, of(alice, 0, 10, true)), nil)
	wantErr(t, "bob 5-15", lock(b, of(bob, 5, 10, false)), ErrLocked)
	wantErr(t, "bob 10-20", lock(b, of(bob, 10, 10, true)), nil)
	info, err := f.TestLock(of(alice, 0, 0, false))
	if err != ErrLocked || info.Owner.Holder != bob || info.Off != 10 || info.N != 10 || !info.Exclusive {
		t.Errorf("test: %+v %v", info, err)
	}
	wantErr(t, "alice's downgrade", lock(a, of(alice, 0, 10, false)), nil)
	wantErr(t, "bob shares", lock(b, of(bob, 0, 5, false)), nil)

	waiting := of(alice, 10, 1, true)
	waiting.Wait = true
	_, err = a.Lock(waiting)
	var w *Wait
	if !errors.As(err, &w) {
		t.Fatalf("lock with wait: %v", err)
	}
	select {
	case <-w.Done():
		t.Fatal("nothing was unlocked yet")
	default:
	}
	wantErr(t, "bob unlocks", b.Unlock(of(bob, 10, 10, true)), nil)
	<-w.Done()
	wantErr(t, "alice again", lock(a, waiting), nil)

	// Mandatory locks stop others' I/O and conflict with advisory ones.
	m := LockArgs{Off: 100, N: 10, Exclusive: true, Mandatory: true}
	wantErr(t, "mandatory", lock(b, m), nil)
	wantErr(t, "the same again", lock(b, m), ErrLocked)
	wantErr(t, "advisory against mandatory", lock(a, of(alice, 105, 1, false)), ErrLocked)
	_, _, err = f.WriteAt(c, nil, []byte("x"), 100)
	wantErr(t, "write into it", err, ErrLocked)
	_, _, _, err = f.ReadAt(c, a, make([]byte, 200), 0)
	wantErr(t, "read over it", err, ErrLocked)
	_, _, err = f.WriteAt(c, b, []byte("x"), 100)
	wantErr(t, "write by its open", err, nil)
	wantErr(t, "unlock of another range", b.Unlock(LockArgs{Off: 100, N: 9, Mandatory: true}), ErrRange)
	b.Close()
	_, _, err = f.WriteAt(c, nil, []byte("x"), 100)
	wantErr(t, "write after the close", err, nil)
	wantErr(t, "all of it", lock(a, of(alice, 0, 0, true)), nil)
	a.Close()
	if f.x != nil {
		t.Errorf("left after the last close: %+v", f.x)
	}
}

// TestSlim closes files and says what stays of their opens.
func TestSlim(t *testing.T) {
	s := newStore(t, 1<<20)
	c, h := &Caller{}, &Holder{Name: "alice"}
	for name, tt := range map[string]struct {
		leave func(f *Inode, o *Open)
		stays bool
	}{
		"nothing": {func(*Inode, *Open) {}, false},
		"a lock": {func(_ *Inode, o *Open) {
			_, err := o.Lock(LockArgs{Owner: LockOwner{Holder: h}, N: 1})
			wantErr(t, "Lock", err, nil)
		}, false},
		"an attribute": {func(f *Inode, _ *Open) {
			_, err := f.SetXattr(c, "user.a", []byte("1"), XattrEither)
			wantErr(t, "SetXattr", err, nil)
		}, true},
		"a stream's name that is not there": {func(f *Inode, _ *Open) {
			_, _, err := f.OpenStream(c, "s", StreamArgs{})
			wantErr(t, "OpenStream", err, ErrNotExist)
		}, false},
		"a stream": {func(f *Inode, _ *Open) {
			o, _, err := f.OpenStream(c, "s", StreamArgs{Create: true})
			wantErr(t, "OpenStream", err, nil)
			o.Close()
		}, true},
		"another open": {func(f *Inode, _ *Open) { mustOpen(t, f, OpenArgs{Access: AccessRead}) }, true},
	} {
		f := mustCreate(t, s.Root(), name, TypeFile)
		o := mustOpen(t, f, OpenArgs{Access: AccessRead | AccessWrite})
		tt.leave(f, o)
		o.Close()
		if stays := f.x != nil; stays != tt.stays {
			t.Errorf("%s: stays %v", name, stays)
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// Locks are bounded, over all files, and a holder leaves as many to the others as
// it has.
func TestLockLimits(t *testing.T) {
	s := newStore(t, 1<<20)
	alice, bob := &Holder{Name: "alice"}, &Holder{Name: "bob"}
	opens := make([]*Open, 2)
	for n := range opens {
		opens[n] = mustOpen(t, mustCreate(t, s.Root(), fmt.Sprint(n), TypeFile), OpenArgs{Access: AccessRead | AccessWrite})
	}
	range1 := func(h *Holder, off, n uint64) LockArgs {
		return LockArgs{Owner: LockOwner{Holder: h}, Off: off, N: n, Exclusive: true}
	}
	// take locks single bytes, with others between, until it may not.
	take := func(h *Holder, from uint64) (n uint64) {
		for ; ; n++ {
			if _, err := opens[n%2].Lock(range1(h, from+2*n, 1)); err != nil {
				wantErr(t, "one too many", err, ErrNoSpace)
				return n
			}
		}
	}
	const free = 40
	s.locks.Add(maxLocksOfStore - free)
	if a, b := take(alice, 1000), take(bob, 2000); a != free/2 || b != free/4 {
		t.Errorf("%d and %d locks of %d", a, b, free)
	}
	if _, err := opens[0].Lock(LockArgs{Owner: LockOwner{Holder: bob}, Off: 1000, N: 1, Exclusive: true, Poll: func() {}}); err != ErrLocked {
		t.Errorf("a lock of another's: %v", err)
	}
	if n := len(opens[0].inode.x.waiters); n != 0 {
		t.Errorf("%d wait, who have no place for that", n)
	}

	// What is unlocked in the middle of a range makes two.
	wantErr(t, "unlock", opens[0].Unlock(range1(bob, 2000, 1)), nil)
	_, err := opens[0].Lock(range1(bob, 0, 10))
	wantErr(t, "another one", err, nil)
	wantErr(t, "unlock in the middle", opens[0].Unlock(range1(bob, 4, 2)), ErrNoSpace)
	wantErr(t, "unlock the first half", opens[0].Unlock(range1(bob, 0, 5)), nil)
	wantErr(t, "unlock the rest", opens[0].Unlock(range1(bob, 0, 0)), nil)
	s.locks.Add(free - maxLocksOfStore)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	for _, o := range opens {
		o.Close()
	}
	if n := [...]int64{s.locks.Load(), alice.locks.Load(), bob.locks.Load()}; n != [3]int64{} {
		t.Errorf("locks are left: %v", n)
	}
}

// TestLockClasses: the flock and fcntl locks of one machine do not see each
// other; what has no class, and a mandatory lock, sees both.
func TestLockClasses(t *testing.T) {
	s := newStore(t, 1<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	local, client := &Holder{Name: "local"}, &Holder{Name: "client"}
	o := mustOpen(t, f, OpenArgs{Access: AccessRead | AccessWrite})
	defer o.Close()
	fcntl := LockArgs{Owner: LockOwner{local, "1", LockFcntl}, N: 10, Exclusive: true, PID: 7}
	flock := LockArgs{Owner: LockOwner{local, "1", LockFlock}, Exclusive: true, PID: 8}
	nfs := LockArgs{Owner: LockOwner{client, "1", 0}, Exclusive: true}
	smb := LockArgs{N: 5, Exclusive: true, Mandatory: true}
	for _, c := range []struct {
		name    string
		hold    []LockArgs
		lock    LockArgs
		want    error
		wantPID uint32
	}{
		{"flock beside fcntl", []LockArgs{fcntl}, flock, nil, 0},
		{"fcntl beside flock", []LockArgs{flock}, fcntl, nil, 0},
		{"a client's against fcntl", []LockArgs{fcntl}, nfs, ErrLocked, 7},
		{"a client's against flock", []LockArgs{flock}, nfs, ErrLocked, 8},
		{"a client's against both", []LockArgs{flock, fcntl}, nfs, ErrLocked, 8},
		{"fcntl against a client's", []LockArgs{nfs}, fcntl, ErrLocked, 0},
		{"flock against a client's", []LockArgs{nfs}, flock, ErrLocked, 0},
		{"mandatory against fcntl", []LockArgs{fcntl}, smb, ErrLocked, 7},
		{"mandatory against flock", []LockArgs{flock}, smb, ErrLocked, 8},
		{"fcntl against mandatory", []LockArgs{smb}, fcntl, ErrLocked, 0},
		{"flock against mandatory", []LockArgs{smb}, flock, ErrLocked, 0},
	} {
		for _, l := range c.hold {
			if _, err := o.Lock(l); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		info, err := o.Lock(c.lock)
		wantErr(t, c.name, err, c.want)
		if info.PID != c.wantPID {
			t.Errorf("%s: process %d, want %d", c.name, info.PID, c.wantPID)
		}
		for _, l := range append(c.hold, c.lock) {
			o.Unlock(l)
		}
	}
}

func TestWatch(t *testing.T) {
	s := newStore(t, 4<<20)
	c, root := Root(), s.Root()
	d := mustCreate(t, root, "d", TypeDir)
	f := mustCreate(t, d, "f", TypeFile)
	tree, err := root.Watch(WatchName|WatchDir|WatchWrite, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := d.Watch(WatchName|WatchAttr, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt(c, nil, []byte("x"), 0)
	f.SetAttr(c, nil, &SetAttr{Mask: SetMode, Mode: 0o600})
	mustCreate(t, d, "sub", TypeDir)
	mustCreate(t, root, "top", TypeFile)
	s.Rename(c, d, "f", d, "g", 0)
	s.Rename(c, d, "g", root, "g", 0)
	root.Remove(c, "g", RemoveFile)
	got, overflow, ended := tree.Take(nil)
	want := []WatchEvent{
		{WatchModified, "d/f", ""}, {WatchAdded, "d/sub", ""}, {WatchAdded, "top", ""},
		{WatchRenamedFrom, "d/f", ""}, {WatchRenamedTo, "d/g", ""},
		{WatchRemoved, "d/g", ""}, {WatchAdded, "g", ""}, {WatchRemoved, "g", ""},
	}
	if !slices.Equal(got, want) || overflow || ended {
		t.Errorf("tree: %v %v %v", got, overflow, ended)
	}
	got, _, _ = flat.Take(nil)
	want = []WatchEvent{{WatchModified, "f", ""}, {WatchRenamedFrom, "f", ""}, {WatchRenamedTo, "g", ""}, {WatchRemoved, "g", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("directory: %v", got)
	}
	for n := range watchBytes / eventCost {
		mustCreate(t, root, fmt.Sprint(n), TypeFile)
	}
	if got, overflow, _ := tree.Take(nil); len(got) != 0 || !overflow {
		t.Errorf("%d events, overflow %v", len(got), overflow)
	}
	long := strings.Repeat("n", MaxName)
	for range watchBytes/(eventCost+MaxName)/2 + 1 {
		mustCreate(t, root, long, TypeFile)
		root.Remove(c, long, RemoveFile)
	}
	if got, overflow, _ := tree.Take(nil); len(got) != 0 || !overflow {
		t.Errorf("%d events of long names, overflow %v", len(got), overflow)
	}
	tree.Close()
	d.Remove(c, "sub", RemoveDir)
	root.Remove(c, "d", RemoveDir)
	<-flat.Wait()
	if _, _, ended := flat.Take(nil); !ended {
		t.Error("the watch of a removed directory goes on")
	}
	flat.Close()
	if s.watches.Load() != 0 || s.recursive.Load() != 0 {
		t.Error("watches are left")
	}
}

// What watches keep is bounded for those of one client, and for all; who is not told
// something is told so, and what was taken, left or closed makes room.
func TestWatchRoom(t *testing.T) {
	s := newStore(t, 4<<20)
	root := s.Root()
	const each = eventCost + 4
	all := &WatchRoom{Max: 15 * each}
	mine, theirs := &WatchRoom{Max: 10 * each, All: all}, &WatchRoom{Max: 10 * each, All: all}
	watch := func(room *WatchRoom) *Watch {
		w, err := root.Watch(WatchName, false, room)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	made := 1000
	change := func(n int) {
		for range n {
			mustCreate(t, root, fmt.Sprint(made), TypeFile)
			made++
		}
	}
	take := func(what string, w *Watch, c <-chan struct{}, events int, overflow bool) {
		t.Helper()
		if got, over, _ := w.Take(c); len(got) != events || over != overflow {
			t.Errorf("%s: %d events, overflow %t, want %d and %t", what, len(got), over, events, overflow)
		}
	}
	used := func(what string, m, th int64) {
		t.Helper()
		if m, th = m*each, th*each; mine.used.Load() != m || theirs.used.Load() != th || all.used.Load() != m+th {
			t.Errorf("%s: %d, %d and %d bytes are kept, want %d and %d", what, mine.used.Load(), theirs.used.Load(), all.used.Load(), m, th)
		}
	}
	one, two := watch(mine), watch(mine)
	change(5)
	used("full", 10, 0)
	change(1) // the one that hears of it first loses what it has, for the other
	used("over", 6, 0)
	take("over", one, nil, 0, true)
	take("the other", two, nil, 6, false)
	used("taken", 0, 0)

	first, second := one.Wait(), one.Wait()
	change(3)
	<-first
	<-second
	two.Close()
	used("woken", 3, 0)
	one.Leave(first)
	take("the second", one, second, 1, false)
	take("what the first left", one, nil, 2, false)
	used("left", 0, 0)

	three := watch(theirs)
	change(7)
	used("both", 7, 7)
	change(1)
	used("over of all", 8, 0)
	take("over of all", three, nil, 0, true)
	four := three.Wait()
	change(1)
	one.Close()
	three.Close()
	take("closed", three, four, 0, false)
	used("closed", 0, 0)
}

func TestXattrs(t *testing.T) {
	s := newStore(t, 4<<20)
	f := mustCreate(t, s.Root(), "f", TypeFile)
	c := Root()
	set := func(name string, n int, rule XattrRule) error {
		_, err := f.SetXattr(c, name, make([]byte, n), rule)
		return err
	}
	wantErr(t, "replace missing", set("user.a", 1, XattrReplace), ErrNoXattr)
	wantErr(t, "create", set("user.a", 1, XattrCreate), nil)
	wantErr(t, "create again", set("user.a", 1, XattrCreate), ErrExist)
	wantErr(t, "replace", set("user.a", 5, XattrReplace), nil)
	wantErr(t, "no name", set("", 5, 0), ErrInvalid)
	wantErr(t, "largest", set("user.b", MaxXattr, 0), nil)
	wantErr(t, "too large", set("user.b", MaxXattr+1, 0), ErrXattrTooBig)
	if v, err := f.GetXattr(c, "user.a"); len(v) != 5 || err != nil {
		t.Error(v, err)
	}
	if names, _ := f.ListXattr(c); !slices.Equal(names, []string{"user.a", "user.b"}) {
		t.Error(names)
	}
	var err error
	for n := 0; err == nil; n++ {
		err = set(fmt.Sprint("user.", n), MaxXattr, 0)
	}
	wantErr(t, "too many", err, ErrXattrTooBig)
	_, err = f.RemoveXattr(c, "user.a")
	wantErr(t, "remove", err, nil)
	_, err = f.RemoveXattr(c, "user.a")
	wantErr(t, "remove again", err, ErrNoXattr)
}

func TestNewRefusesNonsense(t *testing.T) {
	for _, cfg := range []Config{{}, {Size: 100}, {Size: 1 << 20, Inodes: -1}, {Size: 1 << 20, Inodes: 1 << 40}} {
		if _, err := New(cfg); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	s := newStore(t, 1<<20)
	_, err := s.ByHandle(Handle{})
	wantErr(t, "empty handle", err, ErrStale)
	_, err = s.ByHandle(Handle{s.ID(), 1 << 60, 1})
	wantErr(t, "wild handle", err, ErrStale)
}

func TestInodeLimit(t *testing.T) {
	s, err := New(Config{Size: 1 << 20, Inodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustCreate(t, s.Root(), "a", TypeFile)
	mustCreate(t, s.Root(), "b", TypeDir)
	_, err = s.Root().Create(Root(), "c", &Create{Type: TypeFile})
	wantErr(t, "one too many", err, ErrNoSpace)
	s.Root().Remove(Root(), "b", RemoveDir)
	mustCreate(t, s.Root(), "c", TypeFile)
}
