package exporttest

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"path"
	"strings"
	"testing"
	"time"

	"ramserver/export"
	"ramserver/export/smb"
	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// smbSession is SMB. A handle is a path, as what is not open has no other name.
type smbSession struct{ c *smbtest.Client }

// startSMB serves st to the users of the scripts and returns where.
func startSMB(t *testing.T, st *memstore.Store) (addr string) {
	table, err := export.New(&export.Export{Name: "suite", Store: st, Root: st.Root()})
	if err != nil {
		t.Fatal(err)
	}
	var list []smb.User
	for name, cred := range users {
		list = append(list, smb.User{Name: name, Hash: ntlm.HashPassword(name), Cred: cred})
	}
	known, err := smb.NewUsers("", list...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := smb.New(smb.Config{Exports: table, Users: known})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func enterSMB(t *testing.T, addr string, cred memstore.Cred) smbSession {
	for name, u := range users {
		if u.UID != cred.UID {
			continue
		}
		c, err := smbtest.Dial(t.Context(), addr, smbtest.Options{User: name, Password: name, Share: "suite"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return smbSession{c}
	}
	t.Fatalf("no user %d", cred.UID)
	return smbSession{}
}

// wordsSMB is what the protocol's errors are to the others.
var wordsSMB = map[wire.Status]string{
	wire.StatusAccessDenied:      "acces",
	wire.StatusNameCollision:     "exist",
	wire.StatusNameNotFound:      "noent",
	wire.StatusPathNotFound:      "noent",
	wire.StatusFileIsADirectory:  "isdir",
	wire.StatusNotADirectory:     "notdir",
	wire.StatusDirectoryNotEmpty: "notempty",
	wire.StatusInvalidParameter:  "inval",
	wire.StatusNotAReparsePoint:  "inval",
	wire.StatusNameInvalid:       "badname",
	wire.StatusPathSyntaxBad:     "badname",
	wire.StatusStoppedOnSymlink:  "symlink",
	wire.StatusSharingViolation:  "share violation",
	wire.StatusFileLockConflict:  "locked",
	wire.StatusLockNotGranted:    "denied",
	wire.StatusDeletePending:     "delete pending",
}

// What a file is opened for, MS-SMB2 section 2.2.13.1.
const (
	smbRead       = 1 << 0
	smbWrite      = 1 << 1
	smbAppend     = 1 << 2
	smbExecute    = 1 << 5
	smbReadAttrs  = 1 << 7
	smbWriteAttrs = 1 << 8
	smbDelete     = 1 << 16
	smbReadSD     = 1 << 17
	smbWriteMode  = 1 << 18
	smbWriteOwner = 1 << 19
)

func (s smbSession) root() handle { return "" }

// find opens what has a path, a symlink itself too.
func (s smbSession) find(h handle, access, options uint32, contexts ...wire.CreateContext) (*smbtest.File, error) {
	return s.c.Open(smbtest.OpenArgs{Path: smbtest.Path(h.(string)), Access: access | smbReadAttrs, Share: smbtest.ShareAll,
		Disposition: wire.FileOpen, Options: options | wire.OptOpenReparse, Contexts: contexts})
}

// with opens what has a path, and closes it again.
func (s smbSession) with(h handle, access, options uint32, do func(*smbtest.File) error) error {
	f, err := s.find(h, access, options)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

func (s smbSession) lookup(dir handle, name string) (handle, error) {
	h := join(dir, name)
	switch name { // which a client's system finds
	case ".":
		h = dir.(string)
	case "..":
		h = strings.TrimPrefix(path.Dir(dir.(string)), ".")
	}
	return h, s.with(h, 0, 0, func(*smbtest.File) error { return nil })
}

func (s smbSession) getattr(h handle) (a memstore.Attr, err error) {
	err = s.with(h, smbReadSD, 0, func(f *smbtest.File) error {
		b, err := f.Info(wire.FileAll)
		if err != nil {
			return err
		}
		le := binary.LittleEndian
		ns := func(at int) int64 {
			sec, nsec := wire.UnixTime(le.Uint64(b[at:]))
			return sec*1e9 + nsec
		}
		a = memstore.Attr{Btime: ns(0), Atime: ns(8), Mtime: ns(16), Ctime: ns(24), Size: int64(le.Uint64(b[48:])), Nlink: le.Uint32(b[56:]), Ino: le.Uint64(b[64:])}
		if a.Mode, a.UID, a.GID, err = f.Security(); err != nil {
			return err
		}
		a.Type = memstore.TypeFile
		if attrs := le.Uint32(b[32:]); attrs&wire.AttrDirectory != 0 {
			a.Type = memstore.TypeDir
		} else if attrs&wire.AttrReparse != 0 {
			p, err := reparse(f)
			if err != nil {
				return err
			}
			a.Type, a.Major, a.Minor = specialTypes[p.Special], p.Major, p.Minor
			if p.Tag == wire.TagSymlink {
				a.Type, a.Size = memstore.TypeSymlink, int64(len(wire.String(p.Target)))
			}
		}
		return nil
	})
	return a, err
}

var specialTypes = map[uint64]memstore.Type{wire.SpecialFIFO: memstore.TypeFIFO, wire.SpecialSocket: memstore.TypeSocket,
	wire.SpecialBlock: memstore.TypeBlock, wire.SpecialChar: memstore.TypeChar}

func reparse(f *smbtest.File) (p wire.Reparse, err error) {
	b, err := f.Ioctl(wire.FsctlGetReparsePoint, nil, 32<<10)
	if err == nil && !p.Decode(b) {
		err = errors.New("the reparse point is malformed")
	}
	return p, err
}

func (s smbSession) setattr(h handle, a memstore.SetAttr) error {
	var access, parts uint32
	if a.Mask&memstore.SetGuard != 0 {
		return errors.ErrUnsupported
	}
	if a.Mask&memstore.SetMode != 0 {
		access, parts = smbWriteMode, smbtest.DACL
	}
	if a.Mask&memstore.SetUID != 0 {
		access, parts = access|smbWriteOwner, parts|smbtest.Owner|smbtest.Group
	}
	times := a.Mask&(memstore.SetAtime|memstore.SetMtime|memstore.SetAtimeNow|memstore.SetMtimeNow) != 0
	if times {
		access |= smbWriteAttrs
	}
	options := uint32(0)
	if a.Mask&memstore.SetSize != 0 {
		access, options = access|smbWrite, wire.OptNonDirectory
	}
	return s.with(h, access, options, func(f *smbtest.File) error {
		if parts != 0 {
			if err := f.SetSecurity(parts, a.Mode, a.UID, a.GID); err != nil {
				return err
			}
		}
		if times {
			b := make([]byte, 40)
			put := func(at int, mask memstore.SetMask, ns int64) {
				if a.Mask&mask != 0 {
					binary.LittleEndian.PutUint64(b[at:], wire.FileTime(time.Unix(0, ns)))
				}
			}
			now := time.Now().UnixNano()
			put(8, memstore.SetAtime, a.Atime)
			put(16, memstore.SetMtime, a.Mtime)
			put(8, memstore.SetAtimeNow, now)
			put(16, memstore.SetMtimeNow, now)
			if err := f.SetInfo(wire.FileBasic, b); err != nil {
				return err
			}
		}
		if a.Mask&memstore.SetSize == 0 {
			return nil
		}
		return f.SetInfo(wire.FileEndOfFile, binary.LittleEndian.AppendUint64(nil, uint64(a.Size)))
	})
}

func (s smbSession) access(h handle) (got memstore.Access, err error) {
	f, err := s.find(h, 0, 0, wire.CreateContext{Name: "MxAc"})
	if err != nil {
		return 0, err
	}
	b := f.Contexts["MxAc"]
	if len(b) < 8 {
		return 0, errors.New("no maximal access")
	}
	rights := binary.LittleEndian.Uint32(b[4:])
	for right, bit := range map[uint32]memstore.Access{smbRead: memstore.AccessRead, smbWrite: memstore.AccessWrite, smbExecute: memstore.AccessExecute} {
		if rights&right != 0 {
			got |= bit
		}
	}
	return got, f.Close()
}

func (s smbSession) read(h handle, off int64, n int) (data []byte, eof bool, err error) {
	err = s.with(h, smbRead, wire.OptNonDirectory, func(f *smbtest.File) (err error) {
		data, eof, err = readSMB(f, off, n)
		return err
	})
	return data, eof, err
}

func readSMB(f *smbtest.File, off int64, n int) ([]byte, bool, error) {
	data, err := f.Read(off, n)
	if err != nil && err != wire.StatusEndOfFile {
		return nil, false, err
	}
	b, err := f.Info(wire.FileStandard)
	if err != nil {
		return nil, false, err
	}
	return data, off+int64(len(data)) >= int64(binary.LittleEndian.Uint64(b[8:])), nil
}

func (s smbSession) write(h handle, off int64, data []byte) (n int, err error) {
	err = s.with(h, smbWrite, wire.OptNonDirectory, func(f *smbtest.File) (err error) {
		n, err = f.Write(off, data)
		return err
	})
	return n, err
}

func (s smbSession) create(dir handle, name string, c memstore.Create) error {
	a := smbtest.OpenArgs{Path: smbtest.Path(join(dir, name)), Access: smbReadAttrs, Share: smbtest.ShareAll, Disposition: wire.FileCreate}
	if c.Set.Mask&memstore.SetMode != 0 {
		a.Contexts = []wire.CreateContext{{Name: "SecD", Data: smbtest.Descriptor(smbtest.DACL, c.Set.Mode, 0, 0)}}
	}
	if c.Type == memstore.TypeDir {
		a.Options = wire.OptDirectory
	} else {
		a.Options = wire.OptNonDirectory
	}
	switch {
	case c.Type == memstore.TypeFile && c.Exist == memstore.ExistVerifier:
		return errors.ErrUnsupported
	case c.Type == memstore.TypeFile && c.Exist == memstore.ExistOpen && c.Set.Mask&memstore.SetSize != 0:
		a.Disposition = wire.FileOverwriteIf
	case c.Type == memstore.TypeFile && c.Exist == memstore.ExistOpen:
		a.Disposition = wire.FileOpenIf
	case c.Type != memstore.TypeFile && c.Type != memstore.TypeDir:
		a.Access |= smbWriteAttrs | smbDelete
		a.Options |= wire.OptOpenReparse
	}
	f, err := s.c.Open(a)
	if err != nil {
		return err
	}
	if c.Type != memstore.TypeFile && c.Type != memstore.TypeDir {
		p := wire.Reparse{Tag: wire.TagNFS, Major: c.Major, Minor: c.Minor}
		for special, typ := range specialTypes {
			if typ == c.Type {
				p.Special = special
			}
		}
		if c.Type == memstore.TypeSymlink {
			p = wire.Reparse{Tag: wire.TagSymlink, Target: wire.AppendUTF16(nil, smbtest.Path(c.Target)), Flags: wire.SymlinkRelative}
		}
		if _, err = f.Ioctl(wire.FsctlSetReparsePoint, p.Append(nil), 0); err != nil {
			err = errors.Join(err, f.Remove())
		}
	}
	return errors.Join(err, f.Close())
}

// join is a path below a directory.
func join(dir handle, name string) string {
	if dir.(string) == "" {
		return name
	}
	return dir.(string) + "/" + name
}

func (s smbSession) remove(dir handle, name string) error {
	return s.with(join(dir, name), smbDelete, wire.OptNonDirectory, (*smbtest.File).Remove)
}

func (s smbSession) rmdir(dir handle, name string) error {
	return s.with(join(dir, name), smbDelete, wire.OptDirectory, (*smbtest.File).Remove)
}

func (s smbSession) rename(from handle, fromName string, to handle, toName string) error {
	return s.with(join(from, fromName), smbDelete, 0, func(f *smbtest.File) error {
		return f.SetInfo(wire.FileRename, smbtest.Rename(smbtest.Path(join(to, toName)), true))
	})
}

func (s smbSession) link(h, dir handle, name string) error {
	return s.with(h, smbWriteAttrs, 0, func(f *smbtest.File) error {
		return f.SetInfo(wire.FileLink, smbtest.Rename(smbtest.Path(join(dir, name)), false))
	})
}

func (s smbSession) readlink(h handle) (target string, err error) {
	err = s.with(h, 0, 0, func(f *smbtest.File) error {
		p, err := reparse(f)
		target = strings.ReplaceAll(wire.String(p.Target), `\`, "/")
		return err
	})
	return target, err
}

func (s smbSession) list(dir handle) (names []string, err error) {
	err = s.with(dir, smbRead, wire.OptDirectory, func(f *smbtest.File) (err error) {
		names, err = f.Names()
		return err
	})
	return names, err
}

// smbOpen is an open file of SMB. Its locks are its own; they are exact, and bind
// everybody.
type smbOpen struct{ f *smbtest.File }

func (s smbSession) open(dir handle, name string, access, deny memstore.Access) (opened, error) {
	a := smbtest.OpenArgs{Path: smbtest.Path(join(dir, name)), Access: smbReadAttrs, Share: smbtest.ShareAll, Disposition: wire.FileOpen}
	for bit, rights := range map[memstore.Access]uint32{memstore.AccessRead: smbRead, memstore.AccessWrite: smbWrite | smbAppend, memstore.AccessDelete: smbDelete} {
		if access&bit != 0 {
			a.Access |= rights
		}
	}
	for bit, share := range map[memstore.Access]uint32{memstore.AccessRead: wire.ShareRead, memstore.AccessWrite: wire.ShareWrite, memstore.AccessDelete: wire.ShareDelete} {
		if deny&bit != 0 {
			a.Share &^= share
		}
	}
	f, err := s.c.Open(a)
	return smbOpen{f}, err
}

func (o smbOpen) change(access, deny memstore.Access) error { return errors.ErrUnsupported }

func (o smbOpen) read(off int64, n int) ([]byte, bool, error) { return readSMB(o.f, off, n) }

func (o smbOpen) write(off int64, data []byte) (int, error) { return o.f.Write(off, data) }

func (o smbOpen) truncate(size int64) error {
	return o.f.SetInfo(wire.FileEndOfFile, binary.LittleEndian.AppendUint64(nil, uint64(size)))
}

func smbLock(exclusive bool, off, n uint64) wire.LockElement {
	e := wire.LockElement{Offset: off, Length: n, Flags: wire.LockShared | wire.LockNoWait}
	if exclusive {
		e.Flags = wire.LockExclusive | wire.LockNoWait
	}
	if n == 0 {
		e.Length = math.MaxUint64 - off
	}
	return e
}

func (o smbOpen) lock(_ string, exclusive bool, off, n uint64) error {
	return o.f.Lock(smbLock(exclusive, off, n))
}

func (o smbOpen) unlock(_ string, off, n uint64) error {
	e := smbLock(false, off, n)
	e.Flags = wire.LockUnlock
	return o.f.Lock(e)
}

// test takes a lock and gives it back: there is no other way to find out.
func (o smbOpen) test(owner string, exclusive bool, off, n uint64) error {
	if err := o.lock(owner, exclusive, off, n); err != nil {
		return err
	}
	return o.unlock(owner, off, n)
}

func (o smbOpen) close() error { return o.f.Close() }

// doom has the file go when the last has closed it.
func (o smbOpen) doom() error { return o.f.Remove() }

// watch begins to wait for changes of names, or of what is in files, below a
// directory, and returns how to learn of them.
func (s smbSession) watch(dir handle, what string) (told func() (string, error), err error) {
	f, err := s.find(dir, smbRead, wire.OptDirectory)
	if err != nil {
		return nil, err
	}
	filter := map[string]uint32{"names": wire.FilterFileName | wire.FilterDirName, "data": wire.FilterSize | wire.FilterWrite, "attributes": wire.FilterAttributes}[what]
	call := f.Notify(filter, true, 64<<10)
	if !call.Waits() {
		_, err := call.Wait()
		return nil, errors.Join(errors.New("it does not wait"), err)
	}
	return func() (string, error) {
		changes, err := call.Changes()
		words := make([]string, 0, 2*len(changes))
		for _, c := range changes {
			words = append(words, []string{"", "added", "removed", "modified", "from", "to"}[c.Action], strings.ReplaceAll(c.Path, `\`, "/"))
		}
		return strings.Join(words, " "), errors.Join(err, f.Close())
	}, nil
}
