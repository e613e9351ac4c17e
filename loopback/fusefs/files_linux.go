package fusefs

import (
	"math"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// file is an open file of the kernel.
type file struct {
	inode *memstore.Inode
	open  *memstore.Open
}

// files finds open files by their handles. Handle 0 is none.
type files struct {
	mu   sync.RWMutex
	list []*file  // (mu) by handle
	free []uint64 // (mu) handles of closed files
}

func (t *files) add(f *file) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		fh := t.free[n-1]
		t.free = t.free[:n-1]
		t.list[fh] = f
		return fh
	}
	if len(t.list) == 0 {
		t.list = append(t.list, nil)
	}
	t.list = append(t.list, f)
	return uint64(len(t.list) - 1)
}

func (t *files) get(fh uint64) *file {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if fh >= uint64(len(t.list)) {
		return nil
	}
	return t.list[fh]
}

// remove takes a handle out and closes its file.
func (t *files) remove(fh uint64) {
	t.mu.Lock()
	var f *file
	if fh < uint64(len(t.list)) {
		f = t.list[fh]
	}
	if f != nil {
		t.list[fh] = nil
		t.free = append(t.free, fh)
	}
	t.mu.Unlock()
	if f != nil {
		f.open.Close()
	}
}

func (t *files) closeAll() {
	for fh := range t.list {
		t.remove(uint64(fh))
	}
}

// file finds an open file, with which the kernel is about to do something.
func (s *server) file(fh uint64) *file {
	f := s.files.get(fh)
	if f != nil {
		s.local.Tell(f.inode)
	}
	return f
}

// wants is the access that open flags ask for. O_TRUNC needs to write, with
// O_RDONLY too.
func wants(flags uint32) memstore.Access {
	var a memstore.Access
	switch flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		a = memstore.AccessRead
	case unix.O_WRONLY:
		a = memstore.AccessWrite
	default:
		a = memstore.AccessRead | memstore.AccessWrite
	}
	if flags&unix.O_TRUNC != 0 {
		a |= memstore.AccessWrite
	}
	return a
}

func (s *server) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return try(cancel, func() error {
		i, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		o, err := i.Open(s.root, memstore.OpenArgs{Access: wants(in.Flags)})
		if err != nil {
			return err
		}
		if in.Flags&unix.O_TRUNC != 0 {
			c := *s.root
			if in.Mode&fuse.OPEN_KILL_SUIDGID != 0 {
				c.UID = ordinary
			}
			if _, err := i.SetAttr(&c, o, &memstore.SetAttr{Mask: memstore.SetSize}); err != nil {
				o.Close()
				return err
			}
		}
		if s.use(out, &file{i, o}, in.Flags) {
			// The kernel may have attributes that it was to keep.
			s.forget.later(memstore.Stale{Inode: i})
		}
		return nil
	})
}

func (s *server) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	a := memstore.Create{
		Type: memstore.TypeFile, Set: owned(&in.InHeader, in.Mode),
		Exist: memstore.ExistOpen, Open: &memstore.OpenArgs{Access: wants(in.Flags)},
	}
	if in.Flags&unix.O_EXCL != 0 {
		a.Exist = memstore.ExistFail
	}
	if in.Flags&unix.O_TRUNC != 0 {
		a.Set.Mask |= memstore.SetSize
	}
	return try(cancel, func() error {
		d, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		r, err := d.Create(s.maker(&in.InHeader), name, &a)
		if err == memstore.ErrExist && a.Exist == memstore.ExistOpen {
			// Somebody just made something else of the name: the kernel looks
			// again.
			return memstore.ErrStale
		}
		if err != nil {
			return err
		}
		if err := s.opened(out, &r, in.Flags); err != nil {
			return err
		}
		if !r.New {
			// The kernel takes these attributes for the newest, which they need
			// not be for an inode that it may know.
			out.SetAttrTimeout(0)
		}
		return nil
	})
}

func (s *server) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	d, err := s.local.Inode(in.NodeId)
	if err != nil {
		return status(err)
	}
	r, err := d.CreateTemp(s.maker(&in.InHeader), &memstore.Create{
		Type: memstore.TypeFile, Set: owned(&in.InHeader, in.Mode),
		Open: &memstore.OpenArgs{Access: wants(in.Flags)},
	})
	if err == nil {
		err = s.opened(out, &r, in.Flags)
	}
	return status(err)
}

// opened tells the kernel of a file that was created and opened.
func (s *server) opened(out *fuse.CreateOut, r *memstore.Created, flags uint32) error {
	if err := s.entry(&out.EntryOut, r.Inode); err != nil {
		r.Open.Close()
		return err
	}
	if s.use(&out.OpenOut, &file{r.Inode, r.Open}, flags) {
		out.SetAttrTimeout(0)
	}
	return nil
}

// use tells the kernel how it may use an open file, and reports whether it can
// change its attributes by a mapping.
//
// What is open for writing only gains nothing by the kernel's cache, since
// every write goes to the store at once; without it, data is in memory once,
// and the kernel does not ask for security.capability before the first write.
func (s *server) use(out *fuse.OpenOut, f *file, flags uint32) (loose bool) {
	out.Fh = s.files.add(f)
	access := wants(flags &^ unix.O_TRUNC)
	use, id := s.local.Use(f.open, access)
	switch use {
	case memstore.UseAsked:
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_DIRECT_IO
		return false
	case memstore.UseCached:
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		return false
	case memstore.UseMapped:
		out.OpenFlags = fuse.FOPEN_PASSTHROUGH | fuse.FOPEN_DIRECT_IO
	default:
		out.OpenFlags = fuse.FOPEN_PASSTHROUGH
	}
	out.BackingID = id
	s.passed.Add(1)
	return access == memstore.AccessRead|memstore.AccessWrite
}

func (s *server) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { s.files.remove(in.Fh) }

// Flush comes with every close of a descriptor, which drops the fcntl locks
// that the process has on the file, whichever descriptor they were taken through
// (POSIX, close). The kernel sends no other request for that, so no open can do
// without it (FOPEN_NOFLUSH), unless the kernel keeps the locks.
func (s *server) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if s.alone {
		return fuse.ENOSYS // it does not ask again
	}
	if f := s.file(in.Fh); f != nil && s.posixLocks.Load() {
		f.open.Unlock(memstore.LockArgs{Owner: s.lockOwner(in.LockOwner, false)})
	}
	return fuse.OK
}

// copyMax is up to which size bytes are copied rather than sent from where they
// lie.
const copyMax = 32 << 10

func (s *server) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f := s.file(in.Fh)
	if f == nil {
		return nil, fuse.EBADF
	}
	var r fuse.ReadResult
	var n int
	st := try(cancel, func() (err error) {
		if len(buf) <= copyMax {
			n, _, _, err = f.inode.ReadAt(s.root, f.open, buf, int64(in.Offset))
			r = fuse.ReadResultData(buf[:n])
			return err
		}
		v := views.Get().(*view)
		if n, _, _, err = f.inode.ReadView(s.root, f.open, int64(in.Offset), len(buf), &v.View); err != nil {
			v.Done()
			return err
		}
		v.n = n
		r = v
		return nil
	})
	if st != fuse.OK {
		return nil, st
	}
	s.reads.Add(1)
	s.readBytes.Add(uint64(n))
	return r, fuse.OK
}

// view is the result of a read, in the store's own memory.
type view struct {
	memstore.View
	n int
}

var views = sync.Pool{New: func() any { return new(view) }}

func (v *view) Size() int                       { return v.n }
func (v *view) Slices() ([][]byte, fuse.Status) { return v.View.Slices, fuse.OK }
func (v *view) Bytes(b []byte) ([]byte, fuse.Status) {
	b = b[:0]
	for _, p := range v.View.Slices {
		b = append(b, p...)
	}
	return b, fuse.OK
}

func (v *view) Done() {
	v.Release()
	views.Put(v)
}

func (s *server) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	f := s.file(in.Fh)
	if f == nil {
		return 0, fuse.EBADF
	}
	c := *s.root
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		c.UID = ordinary
		if a, err := f.inode.GetAttr(s.root); err == nil && setIDs(a.Mode) != 0 {
			// The kernel does not expect the mode to change.
			defer s.forget.later(memstore.Stale{Inode: f.inode})
		}
	}
	// Pages of a mapping are written to where they belong, whatever the flags.
	appends := in.Flags&unix.O_APPEND != 0 && in.WriteFlags&fuse.WRITE_CACHE == 0
	var n int
	st := try(cancel, func() (err error) {
		if !appends {
			n, _, err = f.inode.WriteAt(&c, f.open, data, int64(in.Offset))
			return err
		}
		var off int64
		off, n, _, err = f.inode.Append(&c, f.open, data)
		if off != int64(in.Offset) {
			// Somebody else has made the file longer, and the kernel has put the
			// bytes into its cache where it thought the end was.
			s.forget.later(memstore.Stale{Inode: f.inode, Data: true})
		}
		return err
	})
	s.writes.Add(1)
	s.writeBytes.Add(uint64(n))
	return uint32(n), st
}

func (s *server) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	f := s.file(in.Fh)
	if f == nil {
		return fuse.EBADF
	}
	if in.Offset > math.MaxInt64 || in.Length > math.MaxInt64 {
		return fuse.EINVAL
	}
	off, n := int64(in.Offset), int64(in.Length)
	c := *s.root
	if in.Uid != 0 {
		c.UID = ordinary // see setIDs
	}
	keep := in.Mode&unix.FALLOC_FL_KEEP_SIZE != 0
	return try(cancel, func() (err error) {
		switch in.Mode &^ unix.FALLOC_FL_KEEP_SIZE {
		case 0:
			_, err = f.inode.Allocate(&c, f.open, off, n, keep)
		case unix.FALLOC_FL_PUNCH_HOLE:
			if !keep {
				return memstore.ErrNotSupported
			}
			_, err = f.inode.Punch(&c, f.open, off, n)
		case unix.FALLOC_FL_ZERO_RANGE:
			if _, err = f.inode.Punch(&c, f.open, off, n); err == nil {
				_, err = f.inode.Allocate(&c, f.open, off, n, keep)
			}
		default:
			err = memstore.ErrNotSupported
		}
		return err
	})
}

func (s *server) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	f := s.file(in.Fh)
	if f == nil {
		return fuse.EBADF
	}
	return try(cancel, func() error {
		seek := f.inode.SeekData
		switch in.Whence {
		case unix.SEEK_DATA:
		case unix.SEEK_HOLE:
			seek = f.inode.SeekHole
		default:
			return memstore.ErrInvalid
		}
		// What is open for writing only may be searched too.
		pos, err := seek(s.root, nil, int64(in.Offset))
		out.Offset = uint64(pos)
		return err
	})
}

// CopyFileRange shares the memory of both files where it can.
func (s *server) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	from, to := s.file(in.FhIn), s.file(in.FhOut)
	if from == nil || to == nil {
		return 0, fuse.EBADF
	}
	if in.Flags != 0 || in.OffIn > math.MaxInt64 || in.OffOut > math.MaxInt64 {
		return 0, fuse.EINVAL
	}
	c := *s.root
	if in.Uid != 0 {
		c.UID = ordinary // see setIDs
	}
	n := int64(min(in.Len, 1<<31))
	if n == 0 {
		return 0, fuse.OK
	}
	var done int64
	st := try(cancel, func() (err error) {
		done, _, err = to.inode.Clone(&c, to.open, int64(in.OffOut), from.inode, from.open, int64(in.OffIn), n)
		if done > 0 {
			err = nil
		}
		return err
	})
	return uint32(done), st
}
