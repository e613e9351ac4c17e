package fusefs

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// lockOwner is one of the kernel's lock owners: for fcntl a process or an open
// file, for flock an open file.
func (s *server) lockOwner(id uint64, flock bool) memstore.LockOwner {
	o := memstore.LockOwner{Holder: s.holder, Class: memstore.LockFcntl}
	if flock {
		o.Class = memstore.LockFlock
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], id)
	o.ID = string(b[:])
	return o
}

// lockArgs is a request's lock. The kernel counts the last byte in, and the
// largest offset stands for all behind it.
func (s *server) lockArgs(in *fuse.LkIn) memstore.LockArgs {
	a := memstore.LockArgs{
		Owner:     s.lockOwner(in.Owner, in.LkFlags&fuse.LK_FLOCK != 0),
		Off:       in.Lk.Start,
		Exclusive: in.Lk.Typ == unix.F_WRLCK,
		PID:       in.Lk.Pid,
	}
	if in.Lk.End < math.MaxInt64 {
		a.N = in.Lk.End - in.Lk.Start + 1
	}
	return a
}

func (s *server) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	i, err := s.local.Inode(in.NodeId)
	if err != nil {
		return status(err)
	}
	var l memstore.LockInfo
	st := try(cancel, func() (err error) {
		l, err = i.TestLock(s.lockArgs(in))
		return err
	})
	if st == fuse.OK {
		out.Lk = fuse.FileLock{Typ: unix.F_UNLCK}
	}
	if st != fuse.EBUSY {
		return st
	}
	out.Lk = fuse.FileLock{Start: l.Off, End: math.MaxInt64, Typ: unix.F_RDLCK, Pid: l.PID}
	if l.N != 0 {
		out.Lk.End = min(l.Off+l.N-1, math.MaxInt64)
	}
	if l.Exclusive {
		out.Lk.Typ = unix.F_WRLCK
	}
	return fuse.OK
}

func (s *server) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return s.lock(cancel, in, false)
}

func (s *server) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return s.lock(cancel, in, true)
}

func (s *server) lock(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	f := s.files.get(in.Fh)
	if f == nil || in.Lk.End < in.Lk.Start {
		return fuse.EINVAL
	}
	a := s.lockArgs(in)
	if in.Lk.Typ == unix.F_UNLCK {
		return status(f.open.Unlock(a))
	}
	flock := in.LkFlags&fuse.LK_FLOCK != 0
	if !flock {
		s.posixLocks.Store(true)
	}
	a.Wait = wait
	st := try(cancel, func() error {
		l, err := f.open.Lock(a)
		if err == memstore.ErrLocked && l.Owner.Holder == s.holder {
			// Its owner may have closed the file already: the kernel does not
			// wait for RELEASE.
			time.Sleep(time.Millisecond)
			_, err = f.open.Lock(a)
		}
		if _, waits := err.(*memstore.Wait); waits && flock {
			// flock(2): a conversion gives the old lock up first, so that two
			// who both want to convert do not wait for each other.
			f.open.Unlock(a)
		}
		return err
	})
	switch st {
	case fuse.EBUSY:
		return fuse.EAGAIN
	case fuse.Status(unix.ENOSPC):
		return fuse.Status(unix.ENOLCK)
	}
	return st
}
