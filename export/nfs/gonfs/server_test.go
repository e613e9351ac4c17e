package gonfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/util"
	nfsclient "github.com/willscott/go-nfs-client/nfs"
	clientrpc "github.com/willscott/go-nfs-client/nfs/rpc"

	"ramserver/export"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
	"ramserver/memstore/billyfs"
)

// world is a server and its store, seen from inside.
type world struct {
	t      testing.TB
	server *Server
	store  *memstore.Store
	fs     *billyfs.FS
	addr   string
}

// serve starts a server with the exports that are made from a store: its whole
// tree alone if there are none. All is checked and stopped at the test's end.
func serve(t testing.TB, exports func(*memstore.Store) []*export.Export) *world {
	t.Helper()
	s, err := memstore.New(memstore.Config{Name: "test", Size: 256 << 20, RootMode: 0o1777, RootUID: uint32(max(0, os.Getuid()))})
	if err != nil {
		t.Fatal(err)
	}
	list := []*export.Export{{Name: "ram", Store: s, Root: s.Root()}}
	if exports != nil {
		list = exports(s)
	}
	table, err := export.New(list...)
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewServer(Config{Exports: table})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(5 * time.Second); serving() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines are left", serving())
			}
		}
	})
	return &world{t, server, s, billyfs.New(s, nil), l.Addr().String()}
}

// serving counts the goroutines of servers, go-nfs's among them.
func serving() (n int) {
	buf := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "willscott/go-nfs.") || strings.Contains(stack, "gonfs.(*Server)") {
			n++
		}
	}
	return n
}

// client is a raw one.
type client struct {
	t    testing.TB
	conn net.Conn
	xid  uint32
	cred rpc.Cred
}

func (w *world) dial() *client {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	return &client{t: w.t, conn: conn, cred: rpc.Cred{Flavor: rpc.AuthSys, UID: uint32(max(0, os.Getuid())), GID: uint32(max(0, os.Getgid()))}}
}

type encoder interface{ Encode(*xdr.Writer) }
type decoder interface{ Decode(*xdr.Reader) }

func (c *client) send(program, version, procedure uint32, args encoder) {
	c.t.Helper()
	c.xid++
	var w xdr.Writer
	at := rpc.BeginRecord(&w)
	(&rpc.Call{XID: c.xid, Program: program, Version: version, Procedure: procedure, Cred: c.cred}).Encode(&w)
	if args != nil {
		args.Encode(&w)
	}
	rpc.EndRecord(&w, at, 0)
	if _, err := c.conn.Write(w.B); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) receive(res decoder) error {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var mark [4]byte
	if _, err := io.ReadFull(c.conn, mark[:]); err != nil {
		return err
	}
	n, _ := rpc.MarkOf(mark[:])
	b := make([]byte, n)
	if _, err := io.ReadFull(c.conn, b); err != nil {
		return err
	}
	r := xdr.NewReader(b)
	xid, err := rpc.DecodeReply(&r)
	if xid != c.xid {
		c.t.Fatalf("reply to %d, want %d", xid, c.xid)
	}
	if err == nil && res != nil {
		res.Decode(&r)
		err = r.Err()
	}
	return err
}

// call makes a call of NFS version 3 that must be answered.
func (c *client) call(procedure uint32, args encoder, res decoder) {
	c.t.Helper()
	c.send(rpc.ProgramNFS, nfs3.Version, procedure, args)
	if err := c.receive(res); err != nil {
		c.t.Fatalf("%s: %v", nfs3.ProcNames[procedure], err)
	}
}

func (c *client) mount(path string) ([]byte, nfs3.MountStatus) {
	c.t.Helper()
	c.send(rpc.ProgramMount, nfs3.MountVersion3, nfs3.MountProcMnt, &nfs3.MountPath{Path: path})
	var res nfs3.MountRes
	if err := c.receive(&res); err != nil {
		c.t.Fatal(err)
	}
	return res.FH, res.Status
}

func (c *client) root() []byte {
	c.t.Helper()
	fh, status := c.mount("/")
	if status != nfs3.MountOK {
		c.t.Fatal(status)
	}
	return fh
}

func (c *client) lookup(dir []byte, name string) ([]byte, nfs3.Status) {
	c.t.Helper()
	var res nfs3.LookupRes
	c.call(nfs3.ProcLookup, &nfs3.DirOp{Dir: dir, Name: name}, &res)
	return res.FH, res.Status
}

// walk looks up a path that must be there.
func (c *client) walk(path string) []byte {
	c.t.Helper()
	fh := c.root()
	for name := range strings.SplitSeq(path, "/") {
		var status nfs3.Status
		if fh, status = c.lookup(fh, name); status != nfs3.OK {
			c.t.Fatalf("%s of %s: %v", name, path, status)
		}
	}
	return fh
}

func (c *client) getattr(fh []byte) (nfs3.Fattr, nfs3.Status) {
	c.t.Helper()
	var res nfs3.GetAttrRes
	c.call(nfs3.ProcGetAttr, &nfs3.FHArgs{FH: fh}, &res)
	return res.Attr, res.Status
}

func (c *client) read(fh []byte, off uint64, count uint32) (string, nfs3.Status) {
	c.t.Helper()
	var res nfs3.ReadRes
	c.call(nfs3.ProcRead, &nfs3.ReadArgs{FH: fh, Offset: off, Count: count}, &res)
	return string(res.Data), res.Status
}

func (c *client) write(fh []byte, off uint64, data string) nfs3.Status {
	c.t.Helper()
	var res nfs3.WriteRes
	c.call(nfs3.ProcWrite, &nfs3.WriteArgs{FH: fh, Offset: off, Count: uint32(len(data)), Data: []byte(data)}, &res)
	if res.Status == nfs3.OK && (int(res.Count) != len(data) || res.Committed != nfs3.FileSync) {
		c.t.Errorf("wrote %d of %d bytes, %v", res.Count, len(data), res.Committed)
	}
	return res.Status
}

func (w *world) plant(files ...string) {
	w.t.Helper()
	for _, f := range files {
		name, text, _ := strings.Cut(f, " ")
		if err := util.WriteFile(w.fs, name, []byte(text), 0o666); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Its own client mounts and works.
func TestGoNFSClient(t *testing.T) {
	w := serve(t, nil)
	// The client picks a port at random, which may be in use.
	var c *clientrpc.Client
	var err error
	for range 10 {
		if c, err = clientrpc.DialTCP("tcp", w.addr, false); err == nil {
			break
		}
	}
	w.do(err)
	defer c.Close()
	auth := clientrpc.NewAuthUnix("host", uint32(max(0, os.Getuid())), 0).Auth()
	mounter := nfsclient.Mount{Client: c}
	w.plant("dir/there text")
	target, err := mounter.Mount("/ram", auth)
	w.do(err)
	if _, err := target.Mkdir("/dir/sub", 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := target.OpenFile("/dir/sub/f", 0o640)
	w.do(err)
	content := bytes.Repeat([]byte("0123456789"), 50_000)
	if n, err := f.Write(content); n != len(content) || err != nil {
		t.Fatal(n, err)
	}
	w.do(f.Close())
	f, err = target.Open("/dir/sub/f")
	w.do(err)
	if got, err := io.ReadAll(f); !bytes.Equal(got, content) || err != nil {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if got, err := util.ReadFile(w.fs, "dir/sub/f"); !bytes.Equal(got, content) || err != nil {
		t.Errorf("the store has %d bytes, %v", len(got), err)
	}
	if fi, err := w.fs.Stat("dir/sub/f"); err != nil || fi.Mode() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	entries, err := target.ReadDirPlus("/dir")
	w.do(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.FileName)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"sub", "there"}) {
		t.Errorf("listed %q", names)
	}
	w.do(target.Rename("/dir/sub/f", "/moved"))
	w.do(target.Remove("/moved"))
	w.do(target.RmDir("/dir/sub"))
	if err := target.Remove("/moved"); !os.IsNotExist(err) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestHandles(t *testing.T) {
	w := serve(t, nil)
	w.plant("a/b/f text")
	c := w.dial()
	dir, file := c.walk("a/b"), c.walk("a/b/f")
	is := func(when, content string) {
		t.Helper()
		if got, status := c.read(file, 0, 100); got != content || status != nfs3.OK {
			t.Errorf("%s: read %q, %v", when, got, status)
		}
	}
	w.do(w.fs.Rename("a", "x"))
	is("directory renamed", "text")
	w.do(w.fs.Rename("x/b/f", "elsewhere/g"))
	is("moved", "text")
	if status := c.write(file, 0, "TE"); status != nfs3.OK {
		t.Errorf("write: %v", status)
	}
	is("written", "TExt")
	w.plant("x/b/child c")
	if child, status := c.lookup(dir, "child"); status != nfs3.OK {
		t.Errorf("child of the renamed directory: %v", status)
	} else if got, _ := c.read(child, 0, 9); got != "c" {
		t.Errorf("child is %q", got)
	}
	if up, status := c.lookup(dir, ".."); status != nfs3.OK || !bytes.Equal(up, c.walk("x")) {
		t.Errorf("the directory above is another, %v", status)
	}
	root := c.root()
	if up, status := c.lookup(root, ".."); status != nfs3.OK || !bytes.Equal(up, root) {
		t.Errorf("above the root is something, %v", status)
	}

	// With two names, either may go.
	i, err := w.store.ByHandle(handleOf(t, w, "elsewhere/g"))
	w.do(err)
	_, _, err = w.store.Root().Link(memstore.Root(), "second", i)
	w.do(err)
	w.do(w.fs.Remove("elsewhere/g"))
	is("first name removed", "TExt")
	w.plant("elsewhere/g other")
	is("and its name given to another", "TExt")
	w.do(w.fs.Remove("second"))
	if _, status := c.getattr(file); status != nfs3.ErrStale {
		t.Errorf("removed: %v", status)
	}
	for name, fh := range map[string][]byte{"nothing": noHandle[:], "short": root[:8], "no such inode": append(root[:31:31], root[31]+1)} {
		if _, status := c.getattr(fh); status != nfs3.ErrStale {
			t.Errorf("%s: %v", name, status)
		}
	}
}

func handleOf(t testing.TB, w *world, name string) memstore.Handle {
	t.Helper()
	i := w.store.Root()
	for part := range strings.SplitSeq(name, "/") {
		var err error
		if i, err = i.Lookup(memstore.Root(), part); err != nil {
			t.Fatal(err)
		}
	}
	return i.Handle()
}

// The root's handle is the same after a restart; others are stale.
func TestRestart(t *testing.T) {
	var roots, files [2][]byte
	for n := range roots {
		t.Run(fmt.Sprint("start ", n), func(t *testing.T) {
			w := serve(t, nil)
			w.plant("f x")
			c := w.dial()
			roots[n], files[n] = c.root(), c.walk("f")
			if n == 0 {
				return
			}
			if _, status := c.getattr(roots[0]); status != nfs3.OK {
				t.Errorf("root: %v", status)
			}
			if _, status := c.getattr(files[0]); status != nfs3.ErrStale {
				t.Errorf("file: %v", status)
			}
		})
	}
	if !bytes.Equal(roots[0], roots[1]) {
		t.Error("the root's handle changed")
	}
}

// exports are a whole tree, a part of it read-only, and that part with
// everybody squashed.
func exports(s *memstore.Store) []*export.Export {
	root := memstore.Root()
	made, err := s.Root().Create(root, "part", &memstore.Create{
		Type: memstore.TypeDir, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o777}})
	if err != nil {
		panic(err)
	}
	anon := export.IDs{UID: 4000, GID: 4001}
	return []*export.Export{
		{Name: "all", Store: s, Root: s.Root()},
		{Name: "ro", Store: s, Root: made.Inode, ReadOnly: true},
		{Name: "anon", Store: s, Root: made.Inode, Squash: export.SquashAll, Anon: anon},
	}
}

func TestMount(t *testing.T) {
	w := serve(t, exports)
	w.plant("part/sub/f x", "f x")
	w.do(w.fs.Symlink("part", "link"))
	c := w.dial()
	for _, m := range []struct {
		path   string
		status nfs3.MountStatus
		inode  string
	}{
		{"/", nfs3.MountOK, ""},
		{"/all", nfs3.MountOK, ""},
		{"/part/sub", nfs3.MountOK, "part/sub"},
		{"/all/part//sub/", nfs3.MountOK, "part/sub"},
		{"/ro", nfs3.MountOK, "part"},
		{"/ro/sub", nfs3.MountOK, "part/sub"},
		{"/none", nfs3.MountErrNoEnt, ""},
		{"/ro/../f", nfs3.MountErrNoEnt, ""},
		{"/f", nfs3.MountErrNotDir, ""},
		{"/f/g", nfs3.MountErrNotDir, ""},
		{"/link/sub", nfs3.MountErrNotDir, ""}, // not followed
		{"/" + strings.Repeat("x", 256), nfs3.MountErrNameTooLong, ""},
	} {
		fh, status := c.mount(m.path)
		if status != m.status {
			t.Errorf("%s: %v, want %v", m.path, status, m.status)
		}
		if status != nfs3.MountOK {
			continue
		}
		want := w.store.Root().Ino()
		if m.inode != "" {
			want = handleOf(t, w, m.inode).Ino
		}
		if a, _ := c.getattr(fh); a.FileID != want {
			t.Errorf("%s is inode %d, want %d", m.path, a.FileID, want)
		}
	}
	// A mounted folder is a starting place: ".." leads out of it. An
	// export's root is a boundary.
	sub, _ := c.mount("/ro/sub")
	ro, _ := c.mount("/ro")
	if up, status := c.lookup(sub, ".."); status != nfs3.OK || !bytes.Equal(up, ro) {
		t.Errorf("above the mounted folder: %v", status)
	}
	if up, status := c.lookup(ro, ".."); status != nfs3.OK || !bytes.Equal(up, ro) {
		t.Errorf("above the export: %v", status)
	}
}

func TestExportRules(t *testing.T) {
	w := serve(t, exports)
	w.plant("part/f x")
	w.do(util.WriteFile(w.fs, "part/secret", nil, 0o600))
	c := w.dial()

	ro, _ := c.mount("/ro")
	file, _ := c.lookup(ro, "f")
	mode := nfs3.Sattr{SetMode: true, Mode: 0o700}
	for procedure, args := range map[uint32]encoder{
		nfs3.ProcWrite:   &nfs3.WriteArgs{FH: file, Count: 1, Data: []byte("y")},
		nfs3.ProcSetAttr: &nfs3.SetAttrArgs{FH: file, Attr: mode},
		nfs3.ProcCreate:  &nfs3.CreateArgs{Where: nfs3.DirOp{Dir: ro, Name: "new"}},
		nfs3.ProcMkdir:   &nfs3.MkdirArgs{Where: nfs3.DirOp{Dir: ro, Name: "new"}},
		nfs3.ProcSymlink: &nfs3.SymlinkArgs{Where: nfs3.DirOp{Dir: ro, Name: "new"}, Target: "x"},
		nfs3.ProcMknod:   &nfs3.MknodArgs{Where: nfs3.DirOp{Dir: ro, Name: "new"}, Type: nfs3.TypeFIFO},
		nfs3.ProcRemove:  &nfs3.DirOp{Dir: ro, Name: "f"},
		nfs3.ProcRmdir:   &nfs3.DirOp{Dir: ro, Name: "f"},
		nfs3.ProcRename:  &nfs3.RenameArgs{From: nfs3.DirOp{Dir: ro, Name: "f"}, To: nfs3.DirOp{Dir: ro, Name: "g"}},
	} {
		var res statusOnly
		c.call(procedure, args, &res)
		if res.Status != nfs3.ErrROFS {
			t.Errorf("%s in a read-only export: %v", nfs3.ProcNames[procedure], res.Status)
		}
	}
	if got, status := c.read(file, 0, 9); got != "x" || status != nfs3.OK {
		t.Errorf("read %q, %v", got, status)
	}

	anon, _ := c.mount("/anon")
	secret, _ := c.lookup(anon, "secret")
	if _, status := c.read(secret, 0, 1); status != nfs3.ErrAcces {
		t.Errorf("read of another's: %v", status)
	}
	if status := c.write(secret, 0, "x"); status != nfs3.ErrAcces {
		t.Errorf("write of another's: %v", status)
	}
	var made nfs3.CreateRes
	c.call(nfs3.ProcCreate, &nfs3.CreateArgs{Where: nfs3.DirOp{Dir: anon, Name: "mine"}, Attr: nfs3.Sattr{SetMode: true, Mode: 0o400}}, &made)
	if a, _ := c.getattr(made.FH.FH); a.UID != 4000 || a.GID != 4001 || a.Mode&0o7777 != 0o400 {
		t.Errorf("made as %d:%d with mode %o", a.UID, a.GID, a.Mode)
	}
	// Its owner may write it whatever its mode.
	if status := c.write(made.FH.FH, 0, "x"); status != nfs3.OK {
		t.Errorf("write of the owner's: %v", status)
	}

	// A handle of one export is not one of another.
	all := c.walk("part/secret")
	forged := slices.Clone(all)
	copy(forged[4:8], anon[4:8])
	if _, status := c.getattr(forged); status != nfs3.ErrStale {
		t.Errorf("a handle made into another export's: %v", status)
	}
	var renamed statusOnly
	c.call(nfs3.ProcRename, &nfs3.RenameArgs{From: nfs3.DirOp{Dir: anon, Name: "mine"}, To: nfs3.DirOp{Dir: c.root(), Name: "mine"}}, &renamed)
	if renamed.Status != nfs3.ErrNotSupp {
		t.Errorf("rename between exports: %v", renamed.Status)
	}

	// A peer that is not admitted can use neither path nor handle.
	h := newHandler(w.server, &export.Peer{})
	if _, _, err := h.FromHandle(all); err == nil {
		t.Error("a handle served who is not admitted")
	}
}

// statusOnly is the status that every result begins with.
type statusOnly struct{ nfs3.Status }

func (s *statusOnly) Decode(r *xdr.Reader) { s.Status = nfs3.Status(r.Uint32()) }

// A name is one element of a path, whatever is in it.
func TestNames(t *testing.T) {
	w := serve(t, nil)
	w.plant("d/f x", "secret x")
	w.do(w.fs.Symlink("/d", "link"))
	c := w.dial()
	root := c.root()
	d, link := c.walk("d"), c.walk("link")
	spoof := string(d) + "/" + string(root)
	for _, name := range []string{"", "d/f", "../secret", "d/../secret", "/d", "a\x00b", string(root), spoof, spoof + "/secret"} {
		if _, status := c.lookup(d, name); status != nfs3.ErrNoEnt {
			t.Errorf("LOOKUP of %q: %v", name, status)
		}
		for procedure, args := range map[uint32]encoder{
			nfs3.ProcCreate:  &nfs3.CreateArgs{Where: nfs3.DirOp{Dir: d, Name: name}},
			nfs3.ProcMkdir:   &nfs3.MkdirArgs{Where: nfs3.DirOp{Dir: d, Name: name}},
			nfs3.ProcSymlink: &nfs3.SymlinkArgs{Where: nfs3.DirOp{Dir: d, Name: name}, Target: "x"},
			nfs3.ProcRemove:  &nfs3.DirOp{Dir: d, Name: name},
			nfs3.ProcRename:  &nfs3.RenameArgs{From: nfs3.DirOp{Dir: root, Name: "secret"}, To: nfs3.DirOp{Dir: d, Name: name}},
		} {
			var res statusOnly
			c.call(procedure, args, &res)
			if res.Status == nfs3.OK {
				t.Errorf("%s of %q: OK", nfs3.ProcNames[procedure], name)
			}
		}
	}
	// Nothing follows a link.
	if _, status := c.lookup(link, "f"); status != nfs3.ErrNotDir {
		t.Errorf("LOOKUP in a link: %v", status)
	}
	for procedure, args := range map[uint32]encoder{
		nfs3.ProcCreate: &nfs3.CreateArgs{Where: nfs3.DirOp{Dir: root, Name: "link"}},
		nfs3.ProcMkdir:  &nfs3.MkdirArgs{Where: nfs3.DirOp{Dir: root, Name: "link"}},
		nfs3.ProcRead:   &nfs3.ReadArgs{FH: link, Count: 1},
		nfs3.ProcWrite:  &nfs3.WriteArgs{FH: link, Count: 1, Data: []byte("x")},
	} {
		var res statusOnly
		c.call(procedure, args, &res)
		if res.Status == nfs3.OK {
			t.Errorf("%s of a link: OK", nfs3.ProcNames[procedure])
		}
	}
	infos, err := w.fs.ReadDir("d")
	if len(infos) != 1 || err != nil {
		t.Errorf("%v, %v in the directory", infos, err)
	}
	if _, err := w.fs.Stat("secret"); err != nil {
		t.Error(err)
	}
}

func TestSymlinkAndSpecialFiles(t *testing.T) {
	w := serve(t, nil)
	c := w.dial()
	root := c.root()
	for _, target := range []string{"x", "/abs", strings.Repeat("y/", 2000), strings.Repeat("z", memstore.MaxSymlink)} {
		name := fmt.Sprint("l", len(target))
		var made nfs3.CreateRes
		c.call(nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: nfs3.DirOp{Dir: root, Name: name}, Target: target}, &made)
		var res nfs3.ReadLinkRes
		c.call(nfs3.ProcReadLink, &nfs3.FHArgs{FH: made.FH.FH}, &res)
		if res.Status != nfs3.OK || res.Target != target {
			t.Errorf("%.10q became %.10q, %v", target, res.Target, res.Status)
		}
	}
	for typ, name := range map[nfs3.Type]string{nfs3.TypeFIFO: "fifo", nfs3.TypeSock: "sock", nfs3.TypeBlk: "blk"} {
		var made nfs3.CreateRes
		c.call(nfs3.ProcMknod, &nfs3.MknodArgs{Where: nfs3.DirOp{Dir: root, Name: name}, Type: typ,
			Attr: nfs3.Sattr{SetMode: true, Mode: 0o640}, Major: 7, Minor: 300}, &made)
		if made.Status != nfs3.OK {
			t.Errorf("%s: %v", name, made.Status)
			continue
		}
		a, status := c.getattr(made.FH.FH) // the handle that came with the reply
		if status != nfs3.OK || a.Type != typ || a.Mode&0o777 != 0o640 {
			t.Errorf("%s: %+v, %v", name, a, status)
		}
		if typ == nfs3.TypeBlk && (a.Major != 7 || a.Minor != 300) {
			t.Errorf("device %d, %d", a.Major, a.Minor)
		}
	}
}

func TestSetAttr(t *testing.T) {
	w := serve(t, nil)
	w.plant("f 0123456789")
	c := w.dial()
	fh := c.walk("f")
	set := func(a nfs3.Sattr) nfs3.Status {
		t.Helper()
		var res nfs3.WccRes
		c.call(nfs3.ProcSetAttr, &nfs3.SetAttrArgs{FH: fh, Attr: a}, &res)
		return res.Status
	}
	at := nfs3.Time{Sec: 1e9, Nsec: 7}
	for _, s := range []struct {
		attr nfs3.Sattr
		want nfs3.Status
	}{
		{nfs3.Sattr{SetMode: true, Mode: 0o604}, nfs3.OK},
		{nfs3.Sattr{SetSize: true, Size: 4}, nfs3.OK},
		{nfs3.Sattr{AtimeHow: nfs3.SetToClientTime, Atime: at, MtimeHow: nfs3.SetToClientTime, Mtime: at}, nfs3.OK},
		{nfs3.Sattr{SetSize: true, Size: 1<<63 - 1}, nfs3.ErrFBig},
		{nfs3.Sattr{SetSize: true, Size: 1 << 63}, nfs3.ErrInval},
	} {
		if got := set(s.attr); got != s.want {
			t.Errorf("%+v: %v, want %v", s.attr, got, s.want)
		}
	}
	if a, _ := c.getattr(fh); a.Mode != 0o604 || a.Size != 4 || a.Mtime != at {
		t.Errorf("%+v", a)
	}
	w.do(w.fs.Chmod("f", os.ModeSetgid|0o644))
	if a, _ := c.getattr(fh); a.Mode != 0o2644 {
		t.Errorf("mode %o", a.Mode)
	}
	var st nfs3.FSStatRes
	c.call(nfs3.ProcFSStat, &nfs3.FHArgs{FH: fh}, &st)
	if want := w.store.Statfs(); st.TotalBytes != uint64(want.TotalBytes) || st.AvailBytes == 0 || st.AvailFiles >= st.TotalFiles {
		t.Errorf("%+v", st)
	}
}

// A listing has each name once that is there all the time, whatever comes and
// goes, and never a BADCOOKIE.
func TestReadDirWhileItChanges(t *testing.T) {
	w := serve(t, nil)
	for n := range 2000 {
		w.plant(fmt.Sprintf("d/%04d x", n))
	}
	c := w.dial()
	dir := c.walk("d")
	seen := map[string]int{}
	var cookie, verf uint64
	for calls := 0; ; calls++ {
		var res nfs3.ReadDirRes
		c.call(nfs3.ProcReadDir, &nfs3.ReadDirArgs{FH: dir, Cookie: cookie, CookieVerf: verf, Count: 8192}, &res)
		if res.Status != nfs3.OK {
			t.Fatalf("call %d: %v", calls, res.Status)
		}
		for _, e := range res.Entries {
			seen[e.Name]++
			cookie = e.Cookie
			var gone statusOnly
			c.call(nfs3.ProcRemove, &nfs3.DirOp{Dir: dir, Name: e.Name}, &gone)
		}
		verf = res.CookieVerf
		w.plant(fmt.Sprintf("d/0000new%d x", calls))
		if res.EOF {
			break
		}
	}
	for n := range 2000 {
		if name := fmt.Sprintf("%04d", n); seen[name] != 1 {
			t.Fatalf("%s was listed %d times", name, seen[name])
		}
	}
	if infos, err := w.fs.ReadDir("d"); err != nil || len(infos) > 200 {
		t.Errorf("%d names are left, %v", len(infos), err)
	}
}

func TestListings(t *testing.T) {
	var l listings
	few := make([]os.FileInfo, 10)
	first := l.add("a", few)
	if l.find("a", first) == nil || l.find("b", first) != nil || l.find("a", first+2) != nil {
		t.Error("a listing is not found by its path and number alone")
	}
	big := make([]os.FileInfo, maxNames+1)
	if v := l.add("big", big); l.find("big", v) == nil || l.find("a", first) != nil {
		t.Error("the newest listing does not take the place of others")
	}
	for range 2 * maxListings {
		l.add("c", few)
	}
	if len(l.all) != maxListings || l.names != maxListings*len(few) {
		t.Errorf("%d listings of %d names", len(l.all), l.names)
	}
}

func TestLargeIO(t *testing.T) {
	w := serve(t, nil)
	w.plant("f ")
	c := w.dial()
	fh := c.walk("f")
	data := strings.Repeat("0123456789abcdef", maxIO/16)
	if status := c.write(fh, 1, data); status != nfs3.OK {
		t.Fatal(status)
	}
	if got, status := c.read(fh, 1, 1<<31); got != data || status != nfs3.OK { // cut
		t.Errorf("read %d bytes, %v", len(got), status)
	}
	if got, status := c.read(fh, 0, 3); got != "\x0001" || status != nfs3.OK {
		t.Errorf("read %q, %v", got, status)
	}
	if status := c.write(fh, 1<<63, "x"); status == nfs3.OK {
		t.Error("wrote at 2^63")
	}
	if got, status := c.read(fh, 1<<63, 1<<20); status == nfs3.OK && got != "" {
		t.Errorf("read %d bytes at 2^63", len(got))
	}
}

func TestCalls(t *testing.T) {
	w := serve(t, nil)
	w.plant("f text")
	fh := w.dial().walk("f")
	mismatch := func(err error, low, high uint32, rpcs bool) bool {
		var m *rpc.MismatchError
		return errors.As(err, &m) && m.Low == low && m.High == high && m.RPC == rpcs
	}
	for _, c := range []struct {
		name                        string
		program, version, procedure uint32
		args                        raw
		ok                          func(error) bool
	}{
		{"null", rpc.ProgramNFS, 3, 0, nil, func(err error) bool { return err == nil }},
		{"NFS version 4", rpc.ProgramNFS, 4, 1, nil, func(err error) bool { return mismatch(err, 3, 3, false) }},
		{"MOUNT version 1", rpc.ProgramMount, 1, 1, nil, func(err error) bool { return mismatch(err, 3, 3, false) }},
		{"portmap", rpc.ProgramPortmap, 2, 3, nil, func(err error) bool { return err == rpc.ProgUnavail }},
		{"procedure 22", rpc.ProgramNFS, 3, 22, nil, func(err error) bool { return err == rpc.ProcUnavail }},
		{"MOUNT EXPORT", rpc.ProgramMount, 3, 5, nil, func(err error) bool { return err == rpc.ProcUnavail }},
		{"no arguments", rpc.ProgramNFS, 3, 1, nil, func(err error) bool { return err == rpc.GarbageArgs }},
		{"1 GiB of handle", rpc.ProgramNFS, 3, 1, raw{0x40, 0, 0, 0}, func(err error) bool { return err == rpc.GarbageArgs }},
		{"4 GiB of path", rpc.ProgramMount, 3, 1, raw{255, 255, 255, 255}, func(err error) bool { return err == rpc.GarbageArgs }},
		{"a name without end", rpc.ProgramNFS, 3, 3, append(append(raw{0, 0, 0, 32}, fh...), 0x7f, 255, 255, 255), func(err error) bool { return err == rpc.GarbageArgs }},
	} {
		// Each of them leaves the connection good.
		conn := w.dial()
		for range 2 {
			conn.send(c.program, c.version, c.procedure, c.args)
			if err := conn.receive(nil); !c.ok(err) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if got, _ := conn.read(fh, 0, 9); got != "text" {
			t.Errorf("after %s: read %q", c.name, got)
		}
	}
	c := w.dial()
	var link nfs3.LinkRes
	c.call(nfs3.ProcLink, &nfs3.LinkArgs{FH: fh, Link: nfs3.DirOp{Dir: c.root(), Name: "g"}}, &link)
	if link.Status != nfs3.ErrNotSupp {
		t.Errorf("LINK: %v", link.Status)
	}
	c.cred = rpc.Cred{Flavor: 6} // RPCSEC_GSS
	c.send(rpc.ProgramNFS, 3, 0, nil)
	var denied rpc.AuthStat
	if err := c.receive(nil); !errors.As(err, &denied) {
		t.Errorf("another flavor: %v", err)
	}
	c.cred = rpc.Cred{}
	if got, status := c.read(fh, 0, 9); got != "text" || status != nfs3.OK {
		t.Errorf("AUTH_NONE: read %q, %v", got, status)
	}
}

// raw is arguments as they are on the wire.
type raw []byte

func (a raw) Encode(w *xdr.Writer) { w.B = append(w.B, a...) }

func TestRecords(t *testing.T) {
	w := serve(t, nil)
	var call xdr.Writer
	(&rpc.Call{XID: 1, Program: rpc.ProgramNFS, Version: 3}).Encode(&call)
	record := func(marks ...uint32) []byte {
		var b []byte
		rest := call.B
		for _, m := range marks {
			n, _ := rpc.Mark(m)
			b = binary.BigEndian.AppendUint32(b, m)
			n = min(n, len(rest))
			b, rest = append(b, rest[:n]...), rest[n:]
		}
		return b
	}
	const last = rpc.LastFragment
	n := uint32(len(call.B))
	for _, c := range []struct {
		name string
		data []byte
		good bool
	}{
		{"one fragment", record(last | n), true},
		{"three fragments", record(3, 10, last|n-13), true},
		{"an empty one at the end", record(n, last), true},
		{"an empty one before", record(0, last|n), false},
		{"too long", record(last | maxRecord), false},
		{"too long in parts", record(n, last|maxRecord-n), false},
		{"an empty record", record(last), false},
		{"a header cut short", record(last | n - 4), false},
		{"a reply", []byte{128, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false},
		{"another protocol", []byte("GET / HTTP/1.1\r\n\r\n"), false},
	} {
		conn := w.dial()
		conn.xid = 1
		if _, err := conn.conn.Write(c.data); err != nil {
			t.Fatal(err)
		}
		if err := conn.receive(nil); c.good != (err == nil) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestConcurrentClients(t *testing.T) {
	w := serve(t, nil)
	var wg sync.WaitGroup
	for n := range 8 {
		c := w.dial()
		root := c.root()
		wg.Go(func() {
			for k := range 50 {
				name := fmt.Sprintf("%d", (n+k)%4)
				var made nfs3.CreateRes
				c.call(nfs3.ProcCreate, &nfs3.CreateArgs{Where: nfs3.DirOp{Dir: root, Name: name}}, &made)
				if made.Status == nfs3.OK {
					c.write(made.FH.FH, uint64(k), "data")
				}
				var list nfs3.ReadDirPlusRes
				c.call(nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{FH: root, DirCount: 4096, MaxCount: 65536}, &list)
				if list.Status != nfs3.OK {
					t.Error(list.Status)
				}
				var res statusOnly
				c.call(nfs3.ProcRename, &nfs3.RenameArgs{From: nfs3.DirOp{Dir: root, Name: name}, To: nfs3.DirOp{Dir: root, Name: fmt.Sprint(n)}}, &res)
				c.call(nfs3.ProcRemove, &nfs3.DirOp{Dir: root, Name: fmt.Sprint(n)}, &res)
			}
		})
	}
	wg.Wait()
}

// Shutdown lets a call that was received be answered, and closes what idles or
// is in the middle of a record.
func TestShutdown(t *testing.T) {
	w := serve(t, nil)
	w.plant("f ")
	busy, idle, midway := w.dial(), w.dial(), w.dial()
	fh := busy.walk("f")
	idle.root()
	midway.root()
	if _, err := midway.conn.Write([]byte{128, 0, 1, 0, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("x"), 1<<20)
	stop := make(chan error)
	go func() {
		for {
			if fi, err := w.fs.Stat("f"); err != nil || fi.Size() > 0 {
				break // the call is running, or has run
			}
			runtime.Gosched()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stop <- w.server.Shutdown(ctx)
	}()
	var res nfs3.WriteRes
	busy.call(nfs3.ProcWrite, &nfs3.WriteArgs{FH: fh, Count: 1 << 20, Data: data}, &res)
	if res.Status != nfs3.OK || res.Count != 1<<20 {
		t.Errorf("wrote %d, %v", res.Count, res.Status)
	}
	if err := <-stop; err != nil {
		t.Error(err)
	}
	for name, c := range map[string]*client{"busy": busy, "idle": idle, "midway": midway} {
		if err := c.receive(nil); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s connection: %v", name, err)
		}
	}
	if conn, err := net.Dial("tcp", w.addr); err == nil {
		conn.Close()
		t.Error("still listening")
	}
}

func TestConfig(t *testing.T) {
	if _, err := NewServer(Config{}); err == nil {
		t.Error("a server without exports")
	}
}

// tcpPipe looks as if it came from this machine.
type tcpPipe struct{ net.Conn }

func (tcpPipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }
func (tcpPipe) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049} }

// FuzzCall sends a call's record, with a good handle where the input has the
// letters HANDLE, to a server of its own.
func FuzzCall(f *testing.F) {
	seed := func(procedure uint32, args encoder) {
		var w xdr.Writer
		(&rpc.Call{XID: 1, Program: rpc.ProgramNFS, Version: 3, Procedure: procedure,
			Cred: rpc.Cred{Flavor: rpc.AuthSys, NGroups: 1}}).Encode(&w)
		args.Encode(&w)
		f.Add(w.B)
	}
	fh := append([]byte("HANDLE"), make([]byte, handleSize-6)...)
	at := nfs3.DirOp{Dir: fh, Name: "d"}
	seed(nfs3.ProcGetAttr, &nfs3.FHArgs{FH: fh})
	seed(nfs3.ProcSetAttr, &nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetSize: true, Size: 9, SetMode: true}})
	seed(nfs3.ProcLookup, &nfs3.DirOp{Dir: fh, Name: ".."})
	seed(nfs3.ProcAccess, &nfs3.AccessArgs{FH: fh, Access: 63})
	seed(nfs3.ProcRead, &nfs3.ReadArgs{FH: fh, Offset: 1 << 63, Count: 1 << 31})
	seed(nfs3.ProcWrite, &nfs3.WriteArgs{FH: fh, Count: 9, Data: []byte("abc")})
	seed(nfs3.ProcCreate, &nfs3.CreateArgs{Where: at, Mode: nfs3.Guarded})
	seed(nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at})
	seed(nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at, Target: "target"})
	seed(nfs3.ProcMknod, &nfs3.MknodArgs{Where: at, Type: nfs3.TypeBlk})
	seed(nfs3.ProcRemove, &at)
	seed(nfs3.ProcRename, &nfs3.RenameArgs{From: at, To: at})
	seed(nfs3.ProcLink, &nfs3.LinkArgs{FH: fh, Link: at})
	seed(nfs3.ProcReadDir, &nfs3.ReadDirArgs{FH: fh, Cookie: 3, Count: 4096})
	seed(nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{FH: fh, DirCount: 512, MaxCount: 4096})
	seed(nfs3.ProcCommit, &nfs3.CommitArgs{FH: fh})
	f.Fuzz(func(t *testing.T, call []byte) {
		if len(call) > 1<<16 {
			return
		}
		s, err := memstore.New(memstore.Config{Name: "fuzz", Size: 1 << 20, RootMode: 0o777})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		table, err := export.New(&export.Export{Name: "x", Store: s, Root: s.Root()})
		if err != nil {
			t.Fatal(err)
		}
		server, err := NewServer(Config{Exports: table})
		if err != nil {
			t.Fatal(err)
		}
		root := server.mask.put(table.All()[0], s.Root())
		for at := 0; ; at += handleSize {
			n := bytes.Index(call[at:], []byte("HANDLE"))
			if n < 0 || len(call)-at-n < handleSize {
				break
			}
			at += n
			call = slices.Concat(call[:at], root, call[at+handleSize:])
		}
		here, there := net.Pipe()
		server.add(tcpPipe{there})
		here.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := here.Write(binary.BigEndian.AppendUint32(nil, rpc.LastFragment|uint32(len(call)))); err != nil {
			t.Fatal(err)
		}
		here.Write(call) // fails when the connection is closed meanwhile
		var mark [4]byte
		if _, err := io.ReadFull(here, mark[:]); err == nil {
			n, _ := rpc.MarkOf(mark[:])
			if _, err := io.CopyN(io.Discard, here, int64(n)); err != nil {
				t.Fatal(err)
			}
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("no answer")
		}
		here.Close()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
