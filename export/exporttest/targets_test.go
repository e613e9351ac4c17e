package exporttest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ramserver/export"
	"ramserver/export/nfs"
	"ramserver/export/nfs/client"
	"ramserver/export/nfs/gonfs"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

var targets = []target{
	{"store", startStore},
	{"nfs3", func(t *testing.T) func(memstore.Cred) session {
		addr := startNFS(t, newStore(t), native)
		return func(c memstore.Cred) session { return enterNFS3(t, addr, c) }
	}},
	{nfs41, func(t *testing.T) func(memstore.Cred) session {
		addr := startNFS(t, newStore(t), native)
		return func(c memstore.Cred) session { return enterNFS4(t, addr, nfs4.Minor1, c) }
	}},
	{nfs40, func(t *testing.T) func(memstore.Cred) session {
		addr := startNFS(t, newStore(t), native)
		return func(c memstore.Cred) session { return enterNFS4(t, addr, nfs4.Minor0, c) }
	}},
	{smbName, func(t *testing.T) func(memstore.Cred) session {
		addr := startSMB(t, newStore(t))
		return func(c memstore.Cred) session { return enterSMB(t, addr, c) }
	}},
	{goNFS, func(t *testing.T) func(memstore.Cred) session {
		addr := startNFS(t, newStore(t), func(table *export.Table) (server, error) {
			return gonfs.NewServer(gonfs.Config{Exports: table})
		})
		return func(c memstore.Cred) session { return enterNFS3(t, addr, c) }
	}},
}

func native(table *export.Table) (server, error) { return nfs.NewServer(nfs.Config{Exports: table}) }

// word is the name of an error, the same for all targets.
func word(err error) string {
	var s3 nfs3.Status
	if errors.As(err, &s3) {
		return strings.ToLower(s3.String())
	}
	var s4 nfs4.Status
	if errors.As(err, &s4) {
		if w := words4[s4]; w != "" {
			return w
		}
		return strings.ToLower(s4.String())
	}
	var status wire.Status
	if errors.As(err, &status) {
		if w := wordsSMB[status]; w != "" {
			return w
		}
		return strings.ToLower(status.String())
	}
	for known, w := range words {
		if errors.Is(err, known) {
			return w
		}
	}
	return err.Error()
}

var words = map[error]string{
	memstore.ErrAccess:       "acces",
	memstore.ErrBadType:      "badtype",
	memstore.ErrExist:        "exist",
	memstore.ErrFileTooLarge: "fbig",
	memstore.ErrInvalid:      "inval",
	memstore.ErrIsDir:        "isdir",
	memstore.ErrNameTooLong:  "nametoolong",
	memstore.ErrNoSpace:      "nospc",
	memstore.ErrNotDir:       "notdir",
	memstore.ErrNotEmpty:     "notempty",
	memstore.ErrNotExist:     "noent",
	memstore.ErrNotSymlink:   "inval",
	memstore.ErrNotSync:      "not_sync",
	memstore.ErrPerm:         "perm",
	memstore.ErrStale:        "stale",
	memstore.ErrTooManyLinks: "mlink",
	memstore.ErrXDev:         "xdev",
}

// words4 is what has another name in version 4 than in version 3.
var words4 = map[nfs4.Status]string{nfs4.ErrAccess: "acces", nfs4.ErrNotSame: "not_sync"}

func newStore(t *testing.T) *memstore.Store {
	st, err := memstore.New(memstore.Config{Name: "suite", Size: 256 << 20, RootMode: 0o1777})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Check(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// storeSession is the store without a protocol.
type storeSession struct {
	st *memstore.Store
	c  *memstore.Caller
}

func startStore(t *testing.T) func(memstore.Cred) session {
	st := newStore(t)
	return func(c memstore.Cred) session { return storeSession{st, &memstore.Caller{Cred: c}} }
}

func (s storeSession) root() handle { return s.st.Root() }

func (s storeSession) lookup(dir handle, name string) (handle, error) {
	i, err := dir.(*memstore.Inode).Lookup(s.c, name)
	return i, err
}

func (s storeSession) getattr(h handle) (memstore.Attr, error) {
	return h.(*memstore.Inode).GetAttr(s.c)
}

func (s storeSession) setattr(h handle, a memstore.SetAttr) error {
	_, err := h.(*memstore.Inode).SetAttr(s.c, nil, &a)
	return err
}

func (s storeSession) access(h handle) (memstore.Access, error) {
	return h.(*memstore.Inode).Access(s.c, memstore.AccessRead|memstore.AccessWrite|memstore.AccessExecute), nil
}

func (s storeSession) read(h handle, off int64, n int) ([]byte, bool, error) {
	b := make([]byte, n)
	got, eof, _, err := h.(*memstore.Inode).ReadAt(s.c, nil, b, off)
	return b[:got], eof, err
}

func (s storeSession) write(h handle, off int64, data []byte) (int, error) {
	n, _, err := h.(*memstore.Inode).WriteAt(s.c, nil, data, off)
	return n, err
}

func (s storeSession) create(dir handle, name string, c memstore.Create) error {
	_, err := dir.(*memstore.Inode).Create(s.c, name, &c)
	return err
}

func (s storeSession) remove(dir handle, name string) error {
	_, err := dir.(*memstore.Inode).Remove(s.c, name, memstore.RemoveFile)
	return err
}

func (s storeSession) rmdir(dir handle, name string) error {
	_, err := dir.(*memstore.Inode).Remove(s.c, name, memstore.RemoveDir)
	return err
}

func (s storeSession) rename(from handle, fromName string, to handle, toName string) error {
	_, _, err := s.st.Rename(s.c, from.(*memstore.Inode), fromName, to.(*memstore.Inode), toName, 0)
	return err
}

func (s storeSession) link(h, dir handle, name string) error {
	_, _, err := dir.(*memstore.Inode).Link(s.c, name, h.(*memstore.Inode))
	return err
}

func (s storeSession) readlink(h handle) (string, error) { return h.(*memstore.Inode).Readlink(s.c) }

func (s storeSession) list(dir handle) ([]string, error) {
	names := []string{".", ".."} // which the store leaves to the protocols
	var cookie uint64
	for {
		var buf [7]memstore.DirEntry
		n, eof, err := dir.(*memstore.Inode).ReadDir(s.c, cookie, buf[:])
		if err != nil {
			return nil, err
		}
		for _, e := range buf[:n] {
			names = append(names, e.Name)
			cookie = e.Cookie
		}
		if eof {
			return names, nil
		}
	}
}

// server is what both engines are.
type server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// nfsSession is NFS version 3 over TCP.
type nfsSession struct {
	c *client.Client
	h []byte
}

// startNFS serves st and returns where.
func startNFS(t *testing.T, st *memstore.Store, start func(*export.Table) (server, error)) (addr string) {
	table, err := export.New(&export.Export{Name: "suite", Store: st, Root: st.Root(),
		Squash: export.SquashNone, Anon: export.DefaultAnon, InsecurePorts: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := start(table)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	if os.Getuid() != 0 {
		l = believing{l}
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return addr
}

func enterNFS3(t *testing.T, addr string, cred memstore.Cred) nfsSession {
	c, err := client.Dial(t.Context(), addr, client.Options{UID: cred.UID, GID: cred.GID, Groups: cred.Groups})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m, err := c.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	return nfsSession{c, bytes.Clone(m.FH)}
}

// believing hides whose socket a client has, which Linux tells the server, so
// that the users of the scripts are believed where the tests do not run as root.
type believing struct{ net.Listener }

type believed struct{ net.Conn }

func (l believing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return believed{c}, nil
}

func (believed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 700} }

func (s nfsSession) root() handle { return s.h }

func (s nfsSession) lookup(dir handle, name string) (handle, error) {
	res, err := s.c.Lookup(dir.([]byte), name)
	return bytes.Clone(res.FH), err
}

func (s nfsSession) getattr(h handle) (memstore.Attr, error) {
	a, err := s.c.GetAttr(h.([]byte))
	types := map[nfs3.Type]memstore.Type{nfs3.TypeReg: memstore.TypeFile, nfs3.TypeDir: memstore.TypeDir, nfs3.TypeLnk: memstore.TypeSymlink,
		nfs3.TypeFIFO: memstore.TypeFIFO, nfs3.TypeSock: memstore.TypeSocket, nfs3.TypeBlk: memstore.TypeBlock, nfs3.TypeChr: memstore.TypeChar}
	ns := func(t nfs3.Time) int64 { return int64(t.Sec)*1e9 + int64(t.Nsec) }
	return memstore.Attr{
		Ino: a.FileID, Type: types[a.Type], Mode: uint16(a.Mode), Nlink: a.Nlink, UID: a.UID, GID: a.GID, Size: int64(a.Size),
		Major: a.Major, Minor: a.Minor, Atime: ns(a.Atime), Mtime: ns(a.Mtime), Ctime: ns(a.Ctime),
	}, err
}

func wireTime(ns int64) nfs3.Time { return nfs3.Time{Sec: uint32(ns / 1e9), Nsec: uint32(ns % 1e9)} }

func wireAttr(a memstore.SetAttr) nfs3.Sattr {
	w := nfs3.Sattr{
		SetMode: a.Mask&memstore.SetMode != 0, Mode: uint32(a.Mode),
		SetUID: a.Mask&memstore.SetUID != 0, UID: a.UID,
		SetGID: a.Mask&memstore.SetGID != 0, GID: a.GID,
		SetSize: a.Mask&memstore.SetSize != 0, Size: uint64(a.Size),
	}
	if a.Mask&memstore.SetAtimeNow != 0 {
		w.AtimeHow = nfs3.SetToServerTime
	}
	if a.Mask&memstore.SetMtimeNow != 0 {
		w.MtimeHow = nfs3.SetToServerTime
	}
	if a.Mask&memstore.SetAtime != 0 {
		w.AtimeHow, w.Atime = nfs3.SetToClientTime, wireTime(a.Atime)
	}
	if a.Mask&memstore.SetMtime != 0 {
		w.MtimeHow, w.Mtime = nfs3.SetToClientTime, wireTime(a.Mtime)
	}
	return w
}

func (s nfsSession) setattr(h handle, a memstore.SetAttr) error {
	_, err := s.c.SetAttr(nfs3.SetAttrArgs{FH: h.([]byte), Attr: wireAttr(a),
		Check: a.Mask&memstore.SetGuard != 0, Guard: wireTime(a.GuardCtime)})
	return err
}

func (s nfsSession) access(h handle) (got memstore.Access, err error) {
	res, err := s.c.Access(h.([]byte), 0x3f)
	if res.Access&nfs3.AccessRead != 0 {
		got |= memstore.AccessRead
	}
	if res.Access&(nfs3.AccessModify|nfs3.AccessExtend) != 0 {
		got |= memstore.AccessWrite
	}
	if res.Access&(nfs3.AccessLookup|nfs3.AccessExecute) != 0 {
		got |= memstore.AccessExecute
	}
	return got, err
}

func (s nfsSession) read(h handle, off int64, n int) ([]byte, bool, error) {
	res, err := s.c.Read(h.([]byte), uint64(off), uint32(n))
	return bytes.Clone(res.Data), res.EOF, err
}

func (s nfsSession) write(h handle, off int64, data []byte) (int, error) {
	res, err := s.c.Write(h.([]byte), uint64(off), data, nfs3.Unstable)
	return int(res.Count), err
}

func (s nfsSession) create(dir handle, name string, c memstore.Create) (err error) {
	d := dir.([]byte)
	where := nfs3.DirOp{Dir: d, Name: name}
	attr := wireAttr(c.Set)
	switch c.Type {
	case memstore.TypeFile:
		args := nfs3.CreateArgs{Where: where, Attr: attr, Verf: c.Verifier}
		switch c.Exist {
		case memstore.ExistFail:
			args.Mode = nfs3.Guarded
		case memstore.ExistVerifier:
			args.Mode = nfs3.Exclusive
		}
		_, err = s.c.Create(args)
	case memstore.TypeDir:
		_, err = s.c.Mkdir(d, name, attr)
	case memstore.TypeSymlink:
		_, err = s.c.Symlink(d, name, c.Target, attr)
	default:
		types := map[memstore.Type]nfs3.Type{memstore.TypeFIFO: nfs3.TypeFIFO, memstore.TypeSocket: nfs3.TypeSock,
			memstore.TypeBlock: nfs3.TypeBlk, memstore.TypeChar: nfs3.TypeChr}
		_, err = s.c.Mknod(nfs3.MknodArgs{Where: where, Type: types[c.Type], Attr: attr, Major: c.Major, Minor: c.Minor})
	}
	return err
}

func (s nfsSession) remove(dir handle, name string) error {
	_, err := s.c.Remove(dir.([]byte), name)
	return err
}

func (s nfsSession) rmdir(dir handle, name string) error {
	_, err := s.c.Rmdir(dir.([]byte), name)
	return err
}

func (s nfsSession) rename(from handle, fromName string, to handle, toName string) error {
	_, err := s.c.Rename(from.([]byte), fromName, to.([]byte), toName)
	return err
}

func (s nfsSession) link(h, dir handle, name string) error {
	_, err := s.c.Link(h.([]byte), dir.([]byte), name)
	return err
}

func (s nfsSession) readlink(h handle) (string, error) {
	res, err := s.c.ReadLink(h.([]byte))
	return strings.Clone(res.Target), err
}

func (s nfsSession) list(dir handle) (names []string, err error) {
	args := nfs3.ReadDirArgs{FH: dir.([]byte), Count: 4096}
	for {
		res, err := s.c.ReadDir(args)
		if err != nil {
			return nil, err
		}
		for _, e := range res.Entries {
			names = append(names, strings.Clone(e.Name))
			args.Cookie = e.Cookie
		}
		if res.EOF {
			return names, nil
		}
		args.CookieVerf = res.CookieVerf
	}
}
