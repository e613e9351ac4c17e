// Package billyfs is a store as a go-billy v5 file system: Basic, TempFile,
// Dir, Symlink, Chroot, Change and Capable, with files that can be locked.
//
// # Paths
//
// A path is cleaned as text first: "a/../b" is "b" whatever "a" is, and a path
// that climbs above the root is billy.ErrCrossedBoundary. It is relative to
// the root with or without a slash in front. Symbolic links are then followed,
// at most 40 in a path (syscall.ELOOP after that), relative to where they are;
// an absolute link starts at the root, and one that climbs above the root is
// billy.ErrCrossedBoundary too. On Windows a backslash separates as a slash
// does.
//
// Create, OpenFile with os.O_CREATE, Rename, Symlink and TempFile make missing
// parent directories with mode 0755. There is no umask.
//
// # Errors
//
// Errors are *os.PathError or *os.LinkError around a syscall.Errno, as package
// os gives on Unix, so that errors.Is finds fs.ErrNotExist, fs.ErrExist,
// fs.ErrPermission and numbers such as syscall.ENOSPC. A closed file answers
// fs.ErrClosed.
//
// # Waiting
//
// A call that has to wait for another holder of the store, such as a client
// that gives up a lease, blocks until that is done.
package billyfs

import (
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-billy/v5"

	"ramserver/memstore"
)

// tempDir is where TempFile makes files when no directory is given.
const tempDir = "/tmp"

// FS is a directory tree of a store, seen by one caller. It is constant, and
// safe for concurrent use.
type FS struct {
	caller *memstore.Caller
	top    *memstore.Inode // the root, if parent is nil
	parent *FS             // of a chroot
	base   []string        // the root's path in parent
}

var (
	_ billy.Filesystem = (*FS)(nil)
	_ billy.Change     = (*FS)(nil)
	_ billy.Capable    = (*FS)(nil)
)

// New returns a store's whole tree as seen by c, whose permissions hold.
// A nil c is the superuser.
func New(s *memstore.Store, c *memstore.Caller) *FS { return NewAt(s.Root(), c) }

// NewAt is New with another inode as the root, and the boundary, of the tree.
// It need not be a directory: "" and "." are paths of the root itself.
func NewAt(root *memstore.Inode, c *memstore.Caller) *FS {
	if c == nil {
		c = memstore.Root()
	}
	own := *c
	return &FS{caller: &own, top: root}
}

// Capabilities is everything that billy knows.
func (f *FS) Capabilities() billy.Capability { return billy.AllCapabilities }

// Root is the path that Chroot was given, from the root that New or NewAt made.
func (f *FS) Root() string {
	if f.parent == nil {
		return "/"
	}
	return path.Join(f.parent.Root(), path.Join(f.base...))
}

// Chroot returns the tree below a directory. The directory is looked up at
// each use: it need not exist yet, is made by what makes parents, and may be
// renamed away.
func (f *FS) Chroot(name string) (billy.Filesystem, error) {
	parts, err := split(name)
	if err != nil {
		return nil, err
	}
	return &FS{caller: f.caller, parent: f, base: parts}, nil
}

// Join is filepath.Join.
func (f *FS) Join(elem ...string) string { return filepath.Join(elem...) }

// Create is OpenFile for reading and writing with mode 0666, emptying a file
// that exists.
func (f *FS) Create(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Open opens a file for reading.
func (f *FS) Open(name string) (billy.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile, for regular files: a directory answers
// syscall.EISDIR, any other file syscall.ENXIO. The file is a *File.
func (f *FS) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	file, err := f.open(name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return file, nil
}

// Races with others who make and remove the same name are run again this often.
const maxTries = 1000

func (f *FS) open(name string, flag int, perm os.FileMode) (*File, error) {
	args := memstore.OpenArgs{Access: access(flag)}
	how := look{follow: true}
	if flag&os.O_CREATE != 0 {
		how.parents = true
		how.follow = flag&os.O_EXCL == 0
	}
	for range maxTries {
		p, err := f.find(name, how)
		if err != nil {
			return nil, err
		}
		file := &File{name: display(name), flag: flag, inode: p.inode, caller: f.caller}
		if p.inode == nil {
			if flag&os.O_CREATE == 0 {
				return nil, memstore.ErrNotExist
			}
			made, err := f.create(p, &memstore.Create{Type: memstore.TypeFile, Open: &args}, perm)
			if errors.Is(err, memstore.ErrExist) && flag&os.O_EXCL == 0 {
				continue
			}
			if err != nil {
				return nil, err
			}
			file.inode, file.open = made.Inode, made.Open
			return file, nil
		}
		switch {
		case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
			return nil, memstore.ErrExist
		case p.inode.Type() == memstore.TypeDir:
			return nil, memstore.ErrIsDir
		case p.inode.Type() == memstore.TypeSymlink: // the root itself
			return nil, syscall.ELOOP
		case p.inode.Type() != memstore.TypeFile:
			return nil, syscall.ENXIO
		}
		err = Await(func() (err error) {
			file.open, err = p.inode.Open(f.caller, args)
			return err
		})
		if errors.Is(err, memstore.ErrStale) && p.dir != nil {
			continue // removed since it was found
		}
		if err != nil {
			return nil, err
		}
		if flag&os.O_TRUNC != 0 {
			o := file.open
			if args.Access&memstore.AccessWrite == 0 {
				o = nil // then the mode decides
			}
			if err := setAttr(p.inode, f.caller, o, &memstore.SetAttr{Mask: memstore.SetSize}); err != nil {
				file.open.Close()
				return nil, err
			}
		}
		return file, nil
	}
	return nil, memstore.ErrExist
}

func access(flag int) memstore.Access {
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		return memstore.AccessWrite
	case os.O_RDWR:
		return memstore.AccessRead | memstore.AccessWrite
	}
	return memstore.AccessRead
}

// create makes an inode at a free place.
func (f *FS) create(p place, a *memstore.Create, perm os.FileMode) (made memstore.Created, err error) {
	a.Set.Mask |= memstore.SetMode
	a.Set.Mode = unixMode(perm)
	err = Await(func() error {
		made, err = p.dir.Create(f.caller, p.name, a)
		return err
	})
	return made, err
}

// TempFile makes a file with mode 0600 and a name that begins with prefix in a
// directory, "/tmp" if none is given, and opens it for reading and writing.
func (f *FS) TempFile(dir, prefix string) (billy.File, error) {
	if strings.ContainsRune(filepath.ToSlash(prefix), '/') {
		return nil, pathError("createtemp", prefix, memstore.ErrInvalid)
	}
	if dir == "" {
		dir = tempDir
		if err := f.MkdirAll(dir, os.ModeSticky|0o777); err != nil {
			return nil, err
		}
	}
	for {
		name := filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64(), 36))
		file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// Stat describes a file, of a link what it leads to.
func (f *FS) Stat(name string) (os.FileInfo, error) { return f.stat("stat", name, true) }

// Lstat describes a file, of a link the link itself.
func (f *FS) Lstat(name string) (os.FileInfo, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (os.FileInfo, error) {
	i, err := f.lookup(name, follow)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	a, err := getAttr(i, f.caller)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return &FileInfo{name: base(name), attr: a}, nil
}

// base is the name that os.Stat gives to a file.
func base(name string) string { return path.Base(path.Clean("/" + filepath.ToSlash(name))) }

// display is a file's path as billy shows it: clean and without a slash in
// front.
func display(name string) string {
	return strings.TrimPrefix(filepath.Join(string(filepath.Separator), name), string(filepath.Separator))
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]os.FileInfo, error) {
	infos, err := f.readDir(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return infos, nil
}

func (f *FS) readDir(name string) ([]os.FileInfo, error) {
	d, err := f.lookup(name, true)
	if err != nil {
		return nil, err
	}
	infos := []os.FileInfo{}
	buf := make([]memstore.DirEntry, 128)
	for cookie, eof := uint64(0), false; !eof; {
		var n int
		if n, eof, err = d.ReadDir(f.caller, cookie, buf); err != nil {
			return nil, err
		}
		for _, e := range buf[:n] {
			cookie = e.Cookie
			a, err := getAttr(e.Inode, f.caller)
			if errors.Is(err, memstore.ErrStale) {
				continue // removed since it was listed
			}
			if err != nil {
				return nil, err
			}
			infos = append(infos, &FileInfo{name: e.Name, attr: a})
		}
	}
	slices.SortFunc(infos, func(a, b os.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return infos, nil
}

// MkdirAll makes a directory and its parents, all with mode perm.
func (f *FS) MkdirAll(name string, perm os.FileMode) error {
	p, err := f.find(name, look{follow: true, parents: true, last: true, perm: perm})
	if err == nil && p.inode.Type() != memstore.TypeDir {
		err = memstore.ErrNotDir
	}
	return pathError("mkdir", name, err)
}

// Rename moves a file or directory. It replaces what is at newname, if that is
// not a directory or an empty one for a directory.
func (f *FS) Rename(oldname, newname string) error {
	return linkError("rename", oldname, newname, f.rename(oldname, newname))
}

func (f *FS) rename(oldname, newname string) error {
	from, err := f.find(oldname, look{})
	switch {
	case err != nil:
		return err
	case from.dir == nil:
		return syscall.EBUSY
	case from.inode == nil:
		return memstore.ErrNotExist
	}
	to, err := f.find(newname, look{parents: true})
	switch {
	case err != nil:
		return err
	case to.dir == nil:
		return syscall.EBUSY
	}
	return Await(func() error {
		_, _, err := from.dir.Store().Rename(f.caller, from.dir, from.name, to.dir, to.name, 0)
		return err
	})
}

// Remove removes a file, a link or an empty directory. The root is busy.
func (f *FS) Remove(name string) error {
	p, err := f.find(name, look{})
	if err == nil && p.dir == nil {
		err = syscall.EBUSY
	}
	if err == nil {
		err = Await(func() error {
			_, err := p.dir.Remove(f.caller, p.name, memstore.RemoveAny)
			return err
		})
	}
	return pathError("remove", name, err)
}

// Symlink makes a link to target, which is kept as it is.
func (f *FS) Symlink(target, link string) error {
	p, err := f.find(link, look{parents: true})
	switch {
	case err != nil:
	case p.inode != nil:
		err = memstore.ErrExist
	default:
		_, err = f.create(p, &memstore.Create{Type: memstore.TypeSymlink, Target: target}, 0o777)
	}
	return linkError("symlink", target, link, err)
}

// Readlink returns a link's target as it was given to Symlink.
func (f *FS) Readlink(link string) (string, error) {
	i, err := f.lookup(link, false)
	if err != nil {
		return "", pathError("readlink", link, err)
	}
	target, err := i.Readlink(f.caller)
	return target, pathError("readlink", link, err)
}

// Chmod sets the permission, set-id and sticky bits.
func (f *FS) Chmod(name string, mode os.FileMode) error {
	return f.change("chmod", name, true, &memstore.SetAttr{Mask: memstore.SetMode, Mode: unixMode(mode)})
}

// Chown sets owner and group, of a link those of what it leads to. -1 leaves
// one as it is.
func (f *FS) Chown(name string, uid, gid int) error { return f.chown("chown", name, true, uid, gid) }

// Lchown is Chown, of a link those of the link itself.
func (f *FS) Lchown(name string, uid, gid int) error { return f.chown("lchown", name, false, uid, gid) }

func (f *FS) chown(op, name string, follow bool, uid, gid int) error {
	var s memstore.SetAttr
	for _, id := range []int{uid, gid} {
		if id < -1 || uint64(id+1) > math.MaxUint32 {
			return pathError(op, name, memstore.ErrInvalid)
		}
	}
	if uid != -1 {
		s.Mask |= memstore.SetUID
		s.UID = uint32(uid)
	}
	if gid != -1 {
		s.Mask |= memstore.SetGID
		s.GID = uint32(gid)
	}
	return f.change(op, name, follow, &s)
}

// Chtimes sets the times of last access and modification, in nanoseconds from
// the years 1902 to 2486. A zero time leaves one as it is.
func (f *FS) Chtimes(name string, atime, mtime time.Time) error {
	var s memstore.SetAttr
	for _, t := range []struct {
		time time.Time
		mask memstore.SetMask
		ns   *int64
	}{{atime, memstore.SetAtime, &s.Atime}, {mtime, memstore.SetMtime, &s.Mtime}} {
		if t.time.IsZero() {
			continue
		}
		*t.ns = memstore.Time(t.time.Unix(), int64(t.time.Nanosecond()))
		if !time.Unix(memstore.Seconds(*t.ns)).Equal(t.time) {
			return pathError("chtimes", name, memstore.ErrInvalid)
		}
		s.Mask |= t.mask
	}
	return f.change("chtimes", name, true, &s)
}

func (f *FS) change(op, name string, follow bool, s *memstore.SetAttr) error {
	i, err := f.lookup(name, follow)
	if err == nil {
		err = setAttr(i, f.caller, nil, s)
	}
	return pathError(op, name, err)
}

func getAttr(i *memstore.Inode, c *memstore.Caller) (a memstore.Attr, err error) {
	err = Await(func() error {
		a, err = i.GetAttr(c)
		return err
	})
	return a, err
}

func setAttr(i *memstore.Inode, c *memstore.Caller, o *memstore.Open, s *memstore.SetAttr) error {
	return Await(func() error {
		_, err := i.SetAttr(c, o, s)
		return err
	})
}

// Await runs a call of the store until it need not wait for another holder.
func Await(call func() error) error {
	for {
		err := call()
		var w *memstore.Wait
		if !errors.As(err, &w) {
			return err
		}
		<-w.Done()
	}
}
