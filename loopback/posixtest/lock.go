//go:build linux

package posixtest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var lockTests = []test{
	{"RangeLocks", Locks, rangeLocks},
	{"RangeLocksWait", Locks, rangeLocksWait},
	{"RangeLocksEnd", Locks, rangeLocksEnd},
	{"OpenLocks", Locks, openLocks},
	{"Flock", Locks, flock},
	{"FlockBesideRangeLocks", Locks | Local, flockBesideRangeLocks},
}

func rng(kind int16, start, length int64) unix.Flock_t {
	return unix.Flock_t{Type: kind, Start: start, Len: length}
}

const (
	shared    = unix.F_RDLCK
	exclusive = unix.F_WRLCK
	unlock    = unix.F_UNLCK
)

// locker is another process with a file open.
type locker struct {
	*task
	fd int
}

func (e *env) locker(name string) *locker {
	e.Helper()
	l := &locker{task: e.task(nil)}
	e.ok(l.do(func() (err error) {
		l.fd, err = unix.Open(e.p(name), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0644)
		return err
	}))
	return l
}

func (l *locker) lock(kind int16, start, length int64) error {
	lk := rng(kind, start, length)
	return l.do(func() error { return unix.FcntlFlock(uintptr(l.fd), unix.F_SETLK, &lk) })
}

// conflict is the first lock that stands against one of the given kind, and
// which process has it.
func (l *locker) conflict(kind int16, start, length int64) (unix.Flock_t, int, error) {
	lk := rng(kind, start, length)
	err := l.do(func() error { return unix.FcntlFlock(uintptr(l.fd), unix.F_GETLK, &lk) })
	pid := int(lk.Pid)
	lk.Pid = 0
	return lk, pid, err
}

// rangeLocks: locks of one process merge and split; those of two conflict
// where they overlap, unless both are shared. Length 0 reaches to the end of
// all files.
func rangeLocks(e *env) {
	a, b := e.locker("f"), e.locker("f")
	for _, c := range []struct {
		who           *locker
		kind          int16
		start, length int64
		want          unix.Errno
	}{
		{a, exclusive, 0, 10, 0},
		{a, exclusive, 5, 10, 0}, // merges with its own: 0 to 15
		{b, exclusive, 14, 1, unix.EAGAIN},
		{b, shared, 0, 1, unix.EAGAIN},
		{b, exclusive, 15, 5, 0},
		{a, exclusive, 15, 1, unix.EAGAIN},
		{a, unlock, 5, 2, 0}, // splits: 0 to 5, 7 to 15
		{b, exclusive, 5, 2, 0},
		{b, exclusive, 4, 1, unix.EAGAIN},
		{b, exclusive, 7, 1, unix.EAGAIN},
		{b, unlock, 0, 0, 0},
		{a, shared, 7, 8, 0}, // downgrade
		{b, shared, 7, 8, 0},
		{a, exclusive, 7, 1, unix.EAGAIN}, // upgrade against another's
		{b, unlock, 7, 8, 0},
		{a, exclusive, 7, 1, 0},
		{a, unlock, 0, 0, 0},
		{a, exclusive, 100, 0, 0},
		{b, exclusive, 1 << 40, 1, unix.EAGAIN},
		{b, exclusive, 99, 1, 0},
		{b, exclusive, 99, 2, unix.EAGAIN},
		{a, unlock, 0, 0, 0},
		{b, exclusive, 99, 2, 0},
		{b, exclusive, 1<<63 - 1, 1, 0},
		{b, exclusive, -1, 1, unix.EINVAL},
	} {
		if err := c.who.lock(c.kind, c.start, c.length); c.want == 0 {
			e.ok(err, "lock", c.kind, c.start, c.length)
		} else {
			e.fails(c.want, err, "lock", c.kind, c.start, c.length)
		}
	}
	e.ok(b.lock(unlock, 0, 0))
	e.ok(a.lock(exclusive, 10, 10))
	for _, c := range []struct {
		start, length int64
		want          unix.Flock_t
	}{
		{0, 10, rng(unlock, 0, 10)},
		{0, 0, rng(exclusive, 10, 10)},
		{19, 1, rng(exclusive, 10, 10)},
		{20, 0, rng(unlock, 20, 0)},
	} {
		got, pid, err := b.conflict(shared, c.start, c.length)
		e.ok(err)
		e.equal(got, c.want, "F_GETLK", c.start, c.length)
		if e.local() && got.Type != unlock {
			e.equal(pid, os.Getpid(), "F_GETLK, process")
		}
	}
	ro := e.open("f", unix.O_RDONLY, 0)
	lk := rng(exclusive, 500, 1)
	e.fails(unix.EBADF, unix.FcntlFlock(uintptr(ro), unix.F_SETLK, &lk), "exclusive lock of a descriptor open for reading")
}

// retry runs a call again that a signal of the Go runtime interrupted.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func rangeLocksWait(e *env) {
	a, b := e.locker("f"), e.locker("f")
	e.ok(a.lock(exclusive, 0, 10))
	lk := rng(exclusive, 5, 10)
	got := make(chan error, 1)
	b.start(func() error {
		got <- retry(func() error { return unix.FcntlFlock(uintptr(b.fd), unix.F_SETLKW, &lk) })
		return nil
	})
	select {
	case err := <-got:
		e.Fatalf("the lock was had before the other was given back: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	e.ok(a.lock(unlock, 0, 10))
	e.ok(<-got)
	e.ok(b.wait())
	e.fails(unix.EAGAIN, a.lock(exclusive, 5, 1))
}

// rangeLocksEnd: closing any descriptor of a file drops the process's locks on
// it, and so does its end.
func rangeLocksEnd(e *env) {
	b := e.locker("f")
	a := &locker{}
	var err error
	a.task, err = startTask(nil)
	e.ok(err)
	e.ok(a.do(func() (err error) {
		a.fd, err = unix.Open(e.p("f"), unix.O_RDWR|unix.O_CLOEXEC, 0)
		return err
	}))
	e.ok(a.lock(exclusive, 0, 0))
	e.fails(unix.EAGAIN, b.lock(exclusive, 0, 1))
	e.ok(a.do(func() error { return try(e.p("f"), unix.O_RDONLY, 0) }))
	e.ok(b.lock(exclusive, 0, 1), "lock after the other closed a descriptor")
	e.ok(b.lock(unlock, 0, 0))

	e.ok(a.lock(exclusive, 0, 0))
	e.fails(unix.EAGAIN, b.lock(exclusive, 0, 1))
	a.end()
	// Any descriptor of the file does it, also a copy of one that was opened when
	// nobody had locked the file.
	for _, how := range []struct {
		flags int
		kind  int16
	}{{unix.O_WRONLY | unix.O_CREAT, exclusive}, {unix.O_RDONLY, shared}} {
		var c locker
		c.task, err = startTask(nil)
		e.ok(err)
		e.ok(c.do(func() (err error) {
			c.fd, err = unix.Open(e.p("copied"), how.flags|unix.O_CLOEXEC, 0644)
			return err
		}))
		other := e.locker("copied")
		e.ok(c.lock(how.kind, 0, 0))
		e.fails(unix.EAGAIN, other.lock(exclusive, 0, 1))
		e.ok(c.do(func() error {
			fd, err := unix.Dup(c.fd)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}))
		e.ok(other.lock(exclusive, 0, 1), "lock after the other closed a copy of its descriptor")
		e.ok(other.lock(unlock, 0, 0))
		c.end()
	}
	lk := rng(exclusive, 0, 1)
	e.ok(b.do(func() error {
		return retry(func() error { return unix.FcntlFlock(uintptr(b.fd), unix.F_SETLKW, &lk) })
	}), "lock after the other ended")
}

// openLocks: the locks of an open file description belong to it, not to the
// process.
func openLocks(e *env) {
	a, b := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644), e.open("f", unix.O_RDWR, 0)
	lock := func(fd int, kind int16, start, length int64) error {
		lk := rng(kind, start, length)
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk)
	}
	e.ok(lock(a, exclusive, 0, 10))
	e.fails(unix.EAGAIN, lock(b, shared, 5, 1))
	e.ok(lock(b, exclusive, 10, 1))
	e.ok(try(e.p("f"), unix.O_RDONLY, 0))
	e.fails(unix.EAGAIN, lock(b, shared, 5, 1), "after another descriptor was closed")
	l := e.locker("f")
	e.fails(unix.EAGAIN, l.lock(exclusive, 0, 1), "lock of a process against one of a description")
	e.ok(lock(a, unlock, 0, 0))
	e.ok(l.lock(exclusive, 0, 1))
}

func flock(e *env) {
	a, b := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644), e.open("f", unix.O_RDWR, 0)
	dup, err := unix.Dup(a)
	e.ok(err)
	for _, c := range []struct {
		fd, how int
		want    unix.Errno
	}{
		{a, unix.LOCK_EX, 0},
		{b, unix.LOCK_EX, unix.EWOULDBLOCK},
		{b, unix.LOCK_SH, unix.EWOULDBLOCK},
		{dup, unix.LOCK_EX, 0}, // the same description
		{a, unix.LOCK_SH, 0},
		{b, unix.LOCK_SH, 0},
		{a, unix.LOCK_EX, unix.EWOULDBLOCK},
		{b, unix.LOCK_UN, 0},
		{a, unix.LOCK_EX, 0},
	} {
		if err := unix.Flock(c.fd, c.how|unix.LOCK_NB); c.want == 0 {
			e.ok(err, "flock", c.how)
		} else {
			e.fails(c.want, err, "flock", c.how)
		}
	}
	e.ok(unix.Flock(dup, unix.LOCK_UN), "unlock by a duplicate")
	e.ok(unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB))
	e.ok(unix.Flock(b, unix.LOCK_UN))
	e.ok(unix.Flock(dup, unix.LOCK_EX))
	e.ok(unix.Close(dup))
	e.fails(unix.EWOULDBLOCK, unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), "a duplicate was closed")
}

// flockBesideRangeLocks: flock and fcntl do not see each other, in one process
// or two, and each goes on standing against its like.
func flockBesideRangeLocks(e *env) {
	a, b := e.locker("f"), e.locker("f")
	flock := func(l *locker, how int) error {
		return l.do(func() error { return unix.Flock(l.fd, how|unix.LOCK_NB) })
	}
	e.ok(a.lock(exclusive, 0, 0))
	e.ok(flock(a, unix.LOCK_EX), "flock over the process's own range lock")
	e.ok(flock(a, unix.LOCK_UN))
	e.ok(flock(b, unix.LOCK_EX), "flock over another's range lock")
	e.fails(unix.EWOULDBLOCK, flock(a, unix.LOCK_SH))
	e.fails(unix.EAGAIN, b.lock(shared, 5, 1))
	e.ok(a.lock(unlock, 0, 0))
	e.ok(b.lock(exclusive, 0, 10), "range lock over the process's own flock")
	e.ok(a.lock(exclusive, 10, 10), "range lock over another's flock")
	got, _, err := a.conflict(exclusive, 20, 0)
	e.ok(err)
	e.equal(got, rng(unlock, 20, 0), "F_GETLK against a flock")
	e.ok(flock(b, unix.LOCK_UN))
	e.fails(unix.EAGAIN, b.lock(exclusive, 10, 1), "range lock after the flock's end")
	e.ok(flock(a, unix.LOCK_EX))
	e.fails(unix.EWOULDBLOCK, flock(b, unix.LOCK_SH))
}
