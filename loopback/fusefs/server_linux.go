package fusefs

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// lease is for how long the kernel may keep what it was told: as good as for
// ever, since it is told to forget what becomes stale.
const lease = 365 * 24 * time.Hour

// server answers the requests of one mount's kernel.
type server struct {
	fuse.RawFileSystem // what is not answered here: ENOSYS

	store  *memstore.Store
	local  *memstore.Local
	holder *memstore.Holder
	root   *memstore.Caller // passes every check; see package doc
	log    *slog.Logger
	alone  bool // (c) the kernel keeps locks

	files  files
	kernel *fuse.Server // (c) from Init on
	forget *invalidator

	// posixLocks tells that there ever was an fcntl lock, which a close might
	// have to drop.
	posixLocks atomic.Bool

	reads, readBytes, writes, writeBytes, passed, panics atomic.Uint64
}

func (s *server) String() string      { return "ramserver" }
func (s *server) Init(k *fuse.Server) { s.kernel = k }

// ordinary is the uid of a caller that must not keep a file's set-id bits.
const ordinary = 65534

// maker is the caller for what a request creates.
func (s *server) maker(h *fuse.InHeader) *memstore.Caller {
	return &memstore.Caller{Cred: memstore.Cred{GID: h.Gid}, Holder: s.holder}
}

// owned is the attributes of what a request creates.
func owned(h *fuse.InHeader, mode uint32) memstore.SetAttr {
	return memstore.SetAttr{
		Mask: memstore.SetMode | memstore.SetUID,
		Mode: uint16(mode & memstore.ModeMask),
		UID:  h.Uid,
	}
}

// try calls op until it need not wait for another holder.
func try(cancel <-chan struct{}, op func() error) fuse.Status {
	for {
		err := op()
		if err == nil {
			return fuse.OK
		}
		var w *memstore.Wait
		if !errors.As(err, &w) {
			return status(err)
		}
		select {
		case <-w.Done():
		case <-cancel:
			w.Cancel()
			return fuse.EINTR
		}
	}
}

var statuses = map[error]unix.Errno{
	memstore.ErrAccess:         unix.EACCES,
	memstore.ErrBadType:        unix.EINVAL,
	memstore.ErrClosed:         unix.ENODEV,
	memstore.ErrExist:          unix.EEXIST,
	memstore.ErrFileTooLarge:   unix.EFBIG,
	memstore.ErrInvalid:        unix.EINVAL,
	memstore.ErrIsDir:          unix.EISDIR,
	memstore.ErrLocked:         unix.EBUSY,
	memstore.ErrNameTooLong:    unix.ENAMETOOLONG,
	memstore.ErrNoData:         unix.ENXIO,
	memstore.ErrNoSpace:        unix.ENOSPC,
	memstore.ErrNotDir:         unix.ENOTDIR,
	memstore.ErrNotEmpty:       unix.ENOTEMPTY,
	memstore.ErrNotExist:       unix.ENOENT,
	memstore.ErrNotSupported:   unix.EOPNOTSUPP,
	memstore.ErrNotSymlink:     unix.EINVAL,
	memstore.ErrNotSync:        unix.EAGAIN,
	memstore.ErrNoXattr:        unix.ENODATA,
	memstore.ErrPerm:           unix.EPERM,
	memstore.ErrRange:          unix.ERANGE,
	memstore.ErrDeletePending:  unix.EBUSY,
	memstore.ErrShareViolation: unix.EBUSY,
	memstore.ErrStale:          unix.ESTALE,
	memstore.ErrTooManyLinks:   unix.EMLINK,
	memstore.ErrXDev:           unix.EXDEV,
	memstore.ErrXattrTooBig:    unix.E2BIG,
}

// status is a store's error as the kernel wants it.
func status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	if errno, ok := statuses[err]; ok {
		return fuse.Status(errno)
	}
	return fuse.EIO
}

var fileTypes = [...]uint32{
	memstore.TypeFile:    unix.S_IFREG,
	memstore.TypeDir:     unix.S_IFDIR,
	memstore.TypeSymlink: unix.S_IFLNK,
	memstore.TypeFIFO:    unix.S_IFIFO,
	memstore.TypeSocket:  unix.S_IFSOCK,
	memstore.TypeBlock:   unix.S_IFBLK,
	memstore.TypeChar:    unix.S_IFCHR,
}

// split is nanoseconds as seconds, rounded down, and the rest.
func split(ns int64) (sec uint64, nsec uint32) {
	s, n := memstore.Seconds(ns)
	return uint64(s), uint32(n)
}

// join is the inverse of split.
func join(sec uint64, nsec uint32) int64 { return memstore.Time(int64(sec), int64(nsec)) }

// encodeDev is a device number as the kernel passes it in 32 bits: 12 bits of
// the major and 20 of the minor number, the minor's lowest 8 first.
func encodeDev(major, minor uint32) uint32 {
	return minor&0xff | major&0xfff<<8 | minor>>8<<20
}

func decodeDev(dev uint32) (major, minor uint32) {
	return dev >> 8 & 0xfff, dev&0xff | dev>>20<<8
}

func fill(out *fuse.Attr, a *memstore.Attr) {
	out.Ino = a.Ino
	out.Size = uint64(a.Size)
	out.Blocks = uint64(a.Used+511) / 512
	out.Blksize = 4096
	out.Atime, out.Atimensec = split(a.Atime)
	out.Mtime, out.Mtimensec = split(a.Mtime)
	out.Ctime, out.Ctimensec = split(a.Ctime)
	out.Mode = fileTypes[a.Type] | uint32(a.Mode)
	out.Nlink = a.Nlink
	out.Uid, out.Gid = a.UID, a.GID
	out.Rdev = encodeDev(a.Major, a.Minor)
}

// entry tells the kernel of an inode, which it then knows.
func (s *server) entry(out *fuse.EntryOut, i *memstore.Inode) error {
	a, err := s.local.Know(i)
	if err != nil {
		return err
	}
	out.NodeId = a.Ino
	out.Generation = a.Gen
	out.SetEntryTimeout(lease)
	out.SetAttrTimeout(attrLease(&a))
	fill(&out.Attr, &a)
	return nil
}

// attrLease is for how long the kernel may keep attributes: not at all while a
// process may change them through a mapping of which the kernel does not tell.
func attrLease(a *memstore.Attr) time.Duration {
	if a.Loose {
		return 0
	}
	return lease
}

func (s *server) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const block = 4096
	st := s.store.Statfs()
	free := uint64(st.TotalBytes-st.UsedBytes) / block
	inodes := uint64(max(0, st.TotalInodes-st.UsedInodes))
	*out = fuse.StatfsOut{
		Blocks: uint64(st.TotalBytes) / block, Bfree: free, Bavail: free,
		Files: uint64(st.TotalInodes), Ffree: inodes,
		Bsize: block, Frsize: block, NameLen: memstore.MaxName,
	}
	return fuse.OK
}

func (s *server) Forget(ino, n uint64) {
	if i, err := s.local.Inode(ino); err == nil {
		s.local.Forget(i, n)
	}
}

func (s *server) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return try(cancel, func() error {
		i, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		a, err := i.GetAttr(s.root)
		if err != nil {
			return err
		}
		fill(&out.Attr, &a)
		out.SetTimeout(attrLease(&a))
		return nil
	})
}

// Statx is asked when a process wants the birth time too.
func (s *server) Statx(cancel <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	return try(cancel, func() error {
		i, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		a, err := i.GetAttr(s.root)
		if err != nil {
			return err
		}
		var f fuse.Attr
		fill(&f, &a)
		out.AttrValid, out.AttrValidNsec = uint64(attrLease(&a)/time.Second), 0
		out.Statx = fuse.Statx{
			Mask: unix.STATX_BASIC_STATS | unix.STATX_BTIME,
			Ino:  f.Ino, Size: f.Size, Blocks: f.Blocks, Blksize: f.Blksize,
			Nlink: f.Nlink, Uid: f.Uid, Gid: f.Gid, Mode: uint16(f.Mode),
			RdevMajor: a.Major, RdevMinor: a.Minor,
			Atime: fuse.SxTime{Sec: f.Atime, Nsec: f.Atimensec},
			Mtime: fuse.SxTime{Sec: f.Mtime, Nsec: f.Mtimensec},
			Ctime: fuse.SxTime{Sec: f.Ctime, Nsec: f.Ctimensec},
		}
		out.Btime.Sec, out.Btime.Nsec = split(a.Btime)
		return nil
	})
}

// setIDs are the bits that a change by an ordinary user clears: set-uid, and
// set-gid where the group may execute.
func setIDs(mode uint16) uint16 {
	bits := mode & memstore.ModeSetUID
	if mode&0o010 != 0 {
		bits |= mode & memstore.ModeSetGID
	}
	return bits
}

func (s *server) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	var set memstore.SetAttr
	if mode, ok := in.GetMode(); ok {
		set.Mask |= memstore.SetMode
		set.Mode = uint16(mode)
	}
	if uid, ok := in.GetUID(); ok {
		set.Mask |= memstore.SetUID
		set.UID = uid
	}
	if gid, ok := in.GetGID(); ok {
		set.Mask |= memstore.SetGID
		set.GID = gid
	}
	if size, ok := in.GetSize(); ok {
		set.Mask |= memstore.SetSize
		set.Size = int64(size)
	}
	switch {
	case in.Valid&fuse.FATTR_ATIME_NOW != 0:
		set.Mask |= memstore.SetAtimeNow
	case in.Valid&fuse.FATTR_ATIME != 0:
		set.Mask |= memstore.SetAtime
		set.Atime = join(in.Atime, in.Atimensec)
	}
	switch {
	case in.Valid&fuse.FATTR_MTIME_NOW != 0:
		set.Mask |= memstore.SetMtimeNow
	case in.Valid&fuse.FATTR_MTIME != 0:
		set.Mask |= memstore.SetMtime
		set.Mtime = join(in.Mtime, in.Mtimensec)
	}
	var open *memstore.Open
	if fh, ok := in.GetFh(); ok && set.Mask&memstore.SetSize != 0 {
		if f := s.files.get(fh); f != nil {
			open = f.open
		}
	}
	return try(cancel, func() error {
		i, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		if in.Valid&fuse.FATTR_KILL_SUIDGID != 0 && set.Mask&memstore.SetMode == 0 {
			a, err := i.GetAttr(s.root)
			if err != nil {
				return err
			}
			if setIDs(a.Mode) != 0 {
				set.Mask |= memstore.SetMode
				set.Mode = a.Mode &^ setIDs(a.Mode)
			}
		}
		ch, err := i.SetAttr(s.root, open, &set)
		if err != nil {
			return err
		}
		fill(&out.Attr, &ch.After)
		out.SetTimeout(attrLease(&ch.After))
		return nil
	})
}
