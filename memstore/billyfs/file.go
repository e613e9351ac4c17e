package billyfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/go-git/go-billy/v5"

	"ramserver/memstore"
)

// File is an open file. Read, Write and Seek share an offset and take turns;
// ReadAt and WriteAt do not use it. A file that is removed stays readable and
// writable until it is closed. With os.O_APPEND each Write goes to the end of
// the file in one step of the store.
//
// A Write that does not fit writes what does and answers syscall.ENOSPC.
type File struct {
	name   string           // (c)
	flag   int              // (c)
	inode  *memstore.Inode  // (c)
	caller *memstore.Caller // (c)
	open   *memstore.Open   // (c) nil: made by NewFile

	closed atomic.Bool
	owner  atomic.Uint64 // of locks; 0 before the first

	mu  sync.Mutex
	off int64 // protected by mu
}

var (
	_ billy.File  = (*File)(nil)
	_ io.WriterAt = (*File)(nil)
)

// holder owns the locks of files whose caller is no holder of its own.
var holder = &memstore.Holder{Name: "billyfs"}

// owners counts those who took locks.
var owners atomic.Uint64

// NewFile returns a file on an inode without opening it, as a stateless
// protocol needs it: each call is checked on its own, and whoever owns the
// file may read and write it whatever its mode (RFC 1813 section 4.4). It does
// not keep a removed file, cannot be locked, and need not be closed.
func NewFile(i *memstore.Inode, c *memstore.Caller, name string, flag int) *File {
	return &File{name: name, flag: flag, inode: i, caller: c}
}

// Name is the path that the file was opened by, cleaned and without a slash in
// front.
func (f *File) Name() string { return f.name }

// Stat describes the file.
func (f *File) Stat() (os.FileInfo, error) {
	a, err := f.attr()
	if err != nil {
		return nil, f.fail("stat", err)
	}
	return &FileInfo{name: base(f.name), attr: a}, nil
}

func (f *File) attr() (memstore.Attr, error) {
	if f.closed.Load() {
		return memstore.Attr{}, fs.ErrClosed
	}
	return getAttr(f.inode, f.caller)
}

// ready tells whether the file is open for what is wanted.
func (f *File) ready(want memstore.Access) error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	if access(f.flag)&want == 0 {
		return syscall.EBADF
	}
	return nil
}

// fail makes the error of a call. A call that lost a race against Close says
// so.
func (f *File) fail(op string, err error) error {
	if err != nil && f.closed.Load() {
		err = fs.ErrClosed
	}
	return pathError(op, f.name, err)
}

// Read reads at the offset; io.EOF at the end of the file.
func (f *File) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(memstore.AccessRead); err != nil {
		return 0, f.fail("read", err)
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, _, err := f.readAt(p, f.off)
	f.off += int64(n)
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return n, f.fail("read", err)
}

// ReadAt fills p from off; io.EOF if the file ends before.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	err := f.ready(memstore.AccessRead)
	if err == nil && off < 0 {
		err = memstore.ErrInvalid
	}
	var done int
	for eof := false; err == nil && done < len(p); {
		var n int
		if eof {
			return done, io.EOF
		}
		if n, eof, err = f.readAt(p[done:], off+int64(done)); n == 0 && err == nil {
			return done, io.EOF
		}
		done += n
	}
	return done, f.fail("read", err)
}

func (f *File) readAt(p []byte, off int64) (n int, eof bool, err error) {
	err = Await(func() error {
		n, eof, _, err = f.inode.ReadAt(f.caller, f.open, p, off)
		return err
	})
	return n, eof, err
}

// Write writes at the offset, or at the end of the file with os.O_APPEND.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(memstore.AccessWrite); err != nil {
		return 0, f.fail("write", err)
	}
	if f.flag&os.O_APPEND == 0 {
		n, err := f.writeAt(p, f.off)
		f.off += int64(n)
		return n, f.fail("write", err)
	}
	var at int64
	n, err := each(p, func(p []byte) (n int, err error) {
		at, n, _, err = f.inode.Append(f.caller, f.open, p)
		return n, err
	})
	if n > 0 {
		f.off = at + int64(n)
	}
	return n, f.fail("write", err)
}

// WriteAt writes at off. It is refused with os.O_APPEND.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	err := f.ready(memstore.AccessWrite)
	if err == nil && (off < 0 || f.flag&os.O_APPEND != 0) {
		err = memstore.ErrInvalid
	}
	if err != nil {
		return 0, f.fail("write", err)
	}
	n, err := f.writeAt(p, off)
	return n, f.fail("write", err)
}

func (f *File) writeAt(p []byte, off int64) (int, error) {
	done := int64(0)
	return each(p, func(p []byte) (int, error) {
		n, _, err := f.inode.WriteAt(f.caller, f.open, p, off+done)
		done += int64(n)
		return n, err
	})
}

// each writes all of p with a call that may write less.
func each(p []byte, write func([]byte) (int, error)) (done int, err error) {
	for len(p) > 0 && err == nil {
		var n int
		err = Await(func() error {
			n, err = write(p)
			return err
		})
		if n == 0 && err == nil {
			err = memstore.ErrNoSpace
		}
		done += n
		p = p[n:]
	}
	return done, err
}

// Seek sets the offset. It may lie behind the end of the file.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Load() {
		return 0, f.fail("seek", fs.ErrClosed)
	}
	var from int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		from = f.off
	case io.SeekEnd:
		a, err := f.attr()
		if err != nil {
			return 0, f.fail("seek", err)
		}
		from = a.Size
	default:
		return 0, f.fail("seek", memstore.ErrInvalid)
	}
	if offset < -from || offset > math.MaxInt64-from {
		return 0, f.fail("seek", memstore.ErrInvalid)
	}
	f.off = from + offset
	return f.off, nil
}

// Truncate sets the file's size; what it grows by reads as zeroes. The offset
// stays.
func (f *File) Truncate(size int64) error {
	err := f.ready(memstore.AccessWrite)
	if errors.Is(err, syscall.EBADF) || err == nil && size < 0 {
		err = memstore.ErrInvalid
	}
	if err == nil {
		err = setAttr(f.inode, f.caller, f.open, &memstore.SetAttr{Mask: memstore.SetSize, Size: size})
	}
	return f.fail("truncate", err)
}

// Lock takes the whole file for this File alone and waits until it can. It is
// advisory, as flock's, but the store's POSIX locks of other holders are in its
// way as it is in theirs. Locking again does nothing; Close unlocks.
func (f *File) Lock() error {
	err := f.lockable()
	if err == nil {
		a := f.lockArgs()
		err = Await(func() error {
			_, err := f.open.Lock(a)
			return err
		})
	}
	return f.fail("lock", err)
}

// Unlock gives the file free.
func (f *File) Unlock() error {
	err := f.lockable()
	if err == nil {
		err = f.open.Unlock(f.lockArgs())
	}
	return f.fail("unlock", err)
}

func (f *File) lockable() error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	if f.open == nil {
		return memstore.ErrNotSupported
	}
	return nil
}

func (f *File) lockArgs() memstore.LockArgs {
	if f.owner.Load() == 0 {
		f.owner.CompareAndSwap(0, owners.Add(1))
	}
	own := memstore.LockOwner{Holder: f.caller.Holder, ID: "billyfs " + strconv.FormatUint(f.owner.Load(), 10)}
	if own.Holder == nil {
		own.Holder = holder
	}
	return memstore.LockArgs{Owner: own, Exclusive: true, Wait: true}
}

// Close closes the file. A second time is fs.ErrClosed.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	if f.open != nil {
		f.open.Close()
	}
	return nil
}
