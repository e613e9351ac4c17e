package gonfs

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-billy/v5"
	gonfs "github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/file"

	"ramserver/export"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
	"ramserver/memstore/billyfs"
)

// tree is an export as the file system that go-nfs sees.
//
// Its paths are not of names. One has two handles, that of a directory's parent
// and its own, since go-nfs takes the last away for ".."; what is no directory
// has its own twice. A third element is a name in the directory. So a path
// leads to the inode at once, wherever that is meanwhile, and no name in it is
// ever followed or taken apart.
type tree struct {
	// Two trees are compared by reflect.DeepEqual, field by field; this one
	// decides.
	id uint32

	handler *handler
	export  *export.Export
	root    *memstore.Inode // what was mounted

	call   int // that who is of
	who    memstore.Caller
	groups [len(rpc.Cred{}.Group)]uint32
}

var (
	_ billy.Filesystem = (*tree)(nil)
	_ billy.Capable    = (*tree)(nil)
	_ gonfs.UnixChange = (*tree)(nil)
)

// caller is as whom the running call acts.
func (t *tree) caller() *memstore.Caller {
	h := t.handler
	if t.call != h.call {
		t.call = h.call
		n := copy(t.groups[:], h.cred.Groups())
		t.who.Cred = t.export.Cred(h.peer, h.cred.UID, h.cred.GID, t.groups[:n], h.cred.Flavor == rpc.AuthSys)
	}
	return &t.who
}

// at is the file system whose root is i.
func (t *tree) at(i *memstore.Inode) *billyfs.FS { return billyfs.NewAt(i, t.caller()) }

func (t *tree) token(i *memstore.Inode) string {
	return string(t.handler.server.mask.put(t.export, i))
}

// Join makes a path; see tree.
func (t *tree) Join(elem ...string) string { return strings.Join(elem, "/") }

// resolve takes a path apart: an inode, and a name in it unless that is "".
func (t *tree) resolve(path string) (i *memstore.Inode, name string, err error) {
	const two = handleSize + 1 + handleSize
	fh := path
	if len(path) > two && path[two] == '/' {
		name = path[two+1:]
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, separators) {
			return nil, "", errno(memstore.ErrInvalid)
		}
		fh = path[:two]
	}
	if len(fh) == two {
		fh = fh[handleSize+1:]
	}
	e, i, err := t.handler.server.mask.find(t.handler.server.exports, []byte(fh))
	if err == nil && e != t.export {
		err = memstore.ErrXDev
	}
	return i, name, errno(err)
}

// separators are what no name can have for billyfs.
const separators = "/" + string(os.PathSeparator)

// lookup finds the inode of a path. A link is not followed.
func (t *tree) lookup(path string) (*memstore.Inode, error) {
	i, name, err := t.resolve(path)
	if err == nil && name != "" {
		i, err = i.Lookup(t.caller(), name)
	}
	return i, errno(err)
}

// errno gives an error of the store the form that go-nfs looks for.
func errno(err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "nfs", Err: billyfs.Errno(err)}
}

// Capabilities leaves writing out of read-only exports.
func (t *tree) Capabilities() billy.Capability {
	c := billy.AllCapabilities
	if t.export.ReadOnly {
		c &^= billy.WriteCapability
	}
	return c
}

// info is a file's attributes in the form that go-nfs looks for.
type info struct{ *billyfs.FileInfo }

// Mode has the set-id and sticky bits where POSIX has them, since go-nfs puts it
// on the wire as it is.
func (i info) Mode() os.FileMode {
	return i.FileInfo.Mode().Type() | os.FileMode(i.Attr().Mode)
}

// Sys is what go-nfs asks for besides.
func (i info) Sys() any {
	a := i.Attr()
	return &file.FileInfo{Nlink: a.Nlink, UID: a.UID, GID: a.GID, Major: a.Major, Minor: a.Minor, Fileid: a.Ino}
}

// Lstat describes what a path names.
func (t *tree) Lstat(path string) (os.FileInfo, error) {
	i, err := t.lookup(path)
	if err != nil {
		return nil, err
	}
	fi, err := t.at(i).Lstat("")
	if err != nil {
		return nil, err
	}
	return info{fi.(*billyfs.FileInfo)}, nil
}

// Stat is Lstat: a server follows no link.
func (t *tree) Stat(path string) (os.FileInfo, error) { return t.Lstat(path) }

// Open returns a file for READ.
func (t *tree) Open(path string) (billy.File, error) { return t.OpenFile(path, os.O_RDONLY, 0) }

// OpenFile returns a file for WRITE, or for SETATTR of a size. Nothing is
// opened in the store, as go-nfs does not close what it opens in every case;
// whoever owns the file may read and write it whatever its mode (RFC 1813
// section 4.4).
func (t *tree) OpenFile(path string, flag int, _ os.FileMode) (billy.File, error) {
	i, err := t.lookup(path)
	if err != nil {
		return nil, status(err)
	}
	return t.open(i, path, flag)
}

func (t *tree) open(i *memstore.Inode, path string, flag int) (billy.File, error) {
	switch i.Type() {
	case memstore.TypeFile:
	case memstore.TypeDir:
		return nil, status(errno(memstore.ErrIsDir))
	default:
		return nil, status(errno(memstore.ErrInvalid))
	}
	want := memstore.AccessRead
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		want = memstore.AccessWrite
	}
	c := t.caller()
	if i.Access(c, want) != want {
		if a, err := i.GetAttr(c); err != nil || a.UID != c.UID {
			return nil, status(errno(memstore.ErrAccess))
		}
	}
	return openFile{billyfs.NewFile(i, c, path, flag)}, nil
}

// openFile is a file whose Truncate answers as SETATTR wants it.
type openFile struct{ *billyfs.File }

func (f openFile) Truncate(size int64) error { return status(f.File.Truncate(size)) }

// Create makes a file with mode 0666, or empties one. It is found under its
// name's path again.
func (t *tree) Create(path string) (billy.File, error) {
	dir, name, err := t.resolve(path)
	if err != nil {
		return nil, err
	}
	const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := t.at(dir).OpenFile(name, flag, 0o666)
	if err == nil {
		f.Close()
		return t.OpenFile(path, os.O_RDWR, 0)
	}
	if !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if f, err = t.OpenFile(path, os.O_RDWR, 0); err == nil {
		err = f.Truncate(0)
	}
	return f, err
}

// Rename moves a name.
func (t *tree) Rename(from, to string) error {
	fromDir, fromName, err := t.resolve(from)
	if err != nil {
		return err
	}
	toDir, toName, err := t.resolve(to)
	if err != nil {
		return err
	}
	return errno(billyfs.Await(func() error {
		_, _, err := t.export.Store.Rename(t.caller(), fromDir, fromName, toDir, toName, 0)
		return err
	}))
}

// Remove removes a name, of an empty directory too.
func (t *tree) Remove(path string) error {
	dir, name, err := t.resolve(path)
	if err != nil {
		return err
	}
	return t.at(dir).Remove(name)
}

// ReadDir lists a directory.
func (t *tree) ReadDir(path string) ([]os.FileInfo, error) {
	dir, err := t.lookup(path)
	if err != nil {
		return nil, err
	}
	infos, err := t.at(dir).ReadDir("")
	for n, fi := range infos {
		infos[n] = info{fi.(*billyfs.FileInfo)}
	}
	return infos, err
}

// MkdirAll makes one directory.
func (t *tree) MkdirAll(path string, perm os.FileMode) error {
	return t.make(path, &memstore.Create{Type: memstore.TypeDir}, uint32(perm))
}

// Symlink makes a link.
func (t *tree) Symlink(target, path string) error {
	return t.make(path, &memstore.Create{Type: memstore.TypeSymlink, Target: target}, 0o777)
}

// Mknod makes a block device; go-nfs does not ask for others.
func (t *tree) Mknod(path string, mode, major, minor uint32) error {
	return t.make(path, &memstore.Create{Type: memstore.TypeBlock, Major: major, Minor: minor}, mode)
}

// Mkfifo makes a FIFO.
func (t *tree) Mkfifo(path string, mode uint32) error {
	return t.make(path, &memstore.Create{Type: memstore.TypeFIFO}, mode)
}

// Socket makes a socket.
func (t *tree) Socket(path string) error {
	return t.make(path, &memstore.Create{Type: memstore.TypeSocket}, 0o777)
}

func (t *tree) make(path string, a *memstore.Create, mode uint32) error {
	dir, name, err := t.resolve(path)
	if err != nil {
		return err
	}
	a.Set = memstore.SetAttr{Mask: memstore.SetMode, Mode: uint16(mode) & memstore.ModeMask}
	var made memstore.Created
	if err := billyfs.Await(func() (err error) {
		made, err = dir.Create(t.caller(), name, a)
		return err
	}); err != nil {
		return errno(err)
	}
	if h := t.handler; h.due != nil && h.duePath == path {
		copy(h.due, h.server.mask.put(t.export, made.Inode))
	}
	return nil
}

// Link is not asked for: LINK is answered before.
func (t *tree) Link(_, _ string) error { return billy.ErrNotSupported }

// Readlink returns a link's target.
func (t *tree) Readlink(path string) (string, error) {
	i, err := t.lookup(path)
	if err != nil {
		return "", err
	}
	return t.at(i).Readlink("")
}

// change does something to what a path names, as SETATTR wants it.
func (t *tree) change(path string, do func(*billyfs.FS) error) error {
	i, err := t.lookup(path)
	if err == nil {
		err = do(t.at(i))
	}
	return status(err)
}

// Chmod sets the permissions.
func (t *tree) Chmod(path string, mode os.FileMode) error {
	return t.change(path, func(f *billyfs.FS) error { return f.Chmod("", mode) })
}

// Chown sets owner and group.
func (t *tree) Chown(path string, uid, gid int) error { return t.Lchown(path, uid, gid) }

// Lchown sets owner and group.
func (t *tree) Lchown(path string, uid, gid int) error {
	return t.change(path, func(f *billyfs.FS) error { return f.Lchown("", uid, gid) })
}

// Chtimes sets the times.
func (t *tree) Chtimes(path string, atime, mtime time.Time) error {
	return t.change(path, func(f *billyfs.FS) error { return f.Chtimes("", atime, mtime) })
}

// status is the error of a call from SETATTR, which sends a status as it is and
// makes an RPC error of other errors.
func status(err error) error {
	var n syscall.Errno
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &n):
		n = syscall.EIO
	}
	s := gonfs.NFSStatusIO
	switch n {
	case syscall.EACCES:
		s = gonfs.NFSStatusAccess
	case syscall.EPERM:
		s = gonfs.NFSStatusPerm
	case syscall.ENOENT:
		s = gonfs.NFSStatusNoEnt
	case syscall.ESTALE:
		s = gonfs.NFSStatusStale
	case syscall.EISDIR:
		s = gonfs.NFSStatusIsDir
	case syscall.EINVAL:
		s = gonfs.NFSStatusInval
	case syscall.ENOSPC:
		s = gonfs.NFSStatusNoSPC
	case syscall.EFBIG:
		s = gonfs.NFSStatusFBig
	case syscall.EBUSY:
		s = gonfs.NFSStatusAccess
	}
	return &gonfs.NFSStatusError{NFSStatus: s, WrappedErr: err}
}

// What go-nfs does not use.

func (t *tree) TempFile(_, _ string) (billy.File, error) { return nil, billy.ErrNotSupported }
func (t *tree) Chroot(string) (billy.Filesystem, error)  { return nil, billy.ErrNotSupported }
func (t *tree) Root() string                             { return "/" }
