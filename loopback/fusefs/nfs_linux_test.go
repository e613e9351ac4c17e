package fusefs_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"ramserver/export"
	"ramserver/export/nfs"
	wire "ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	smbwire "ramserver/export/smb/wire"
	"ramserver/loopback/coherence"
	"ramserver/memstore"
)

// serveNFS serves a store until the test ends, and returns where.
func serveNFS(t *testing.T, store *memstore.Store) string {
	t.Helper()
	table, err := export.New(&export.Export{
		Name: "ramdisk", Store: store, Root: store.Root(), Squash: export.SquashNone, InsecurePorts: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := nfs.NewServer(nfs.Config{Exports: table})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return l.Addr().String()
}

// nfsClient is a client by a connection of its own.
type nfsClient struct {
	*wire.Client
	root []byte
}

func newNFSClient(t *testing.T, addr string) *nfsClient {
	t.Helper()
	c, err := wire.Dial(context.Background(), addr, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m, err := c.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	return &nfsClient{c, bytes.Clone(m.FH)}
}

func (n *nfsClient) Do(c coherence.Call) (a coherence.Answer) {
	var fh []byte
	var size uint64
	err := func() error {
		if c.Op == "list" || c.Op == "remove" || c.Op == "rename" || c.Op == "create" {
			return nil
		}
		found, err := n.Lookup(n.root, c.Name)
		if err != nil {
			return err
		}
		fh = bytes.Clone(found.FH)
		at, err := n.GetAttr(fh)
		size, a.Mode, a.Nlink = at.Size, at.Mode, uint64(at.Nlink)
		a.Change = uint64(at.Ctime.Sec)*1e9 + uint64(at.Ctime.Nsec)
		return err
	}()
	if err != nil {
		return refused(err)
	}
	switch c.Op {
	case "create":
		var r nfs3.CreateRes
		r, err = n.Create(nfs3.CreateArgs{
			Where: nfs3.DirOp{Dir: n.root, Name: c.Name},
			Attr:  nfs3.Sattr{SetMode: true, Mode: 0o644, SetSize: true},
		})
		if err == nil {
			_, err = n.Write(bytes.Clone(r.FH.FH), 0, c.Data, nfs3.FileSync)
		}
	case "write":
		_, err = n.Write(fh, uint64(c.Off), c.Data, nfs3.Unstable)
	case "append":
		_, err = n.Write(fh, size, c.Data, nfs3.FileSync)
	case "truncate":
		_, err = n.SetAttr(nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetSize: true, Size: uint64(c.Off)}})
	case "chmod":
		_, err = n.SetAttr(nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetMode: true, Mode: uint32(c.Off)}})
	case "rename":
		_, err = n.Rename(n.root, c.Name, n.root, c.To)
	case "link":
		_, err = n.Link(fh, n.root, c.To)
	case "remove":
		_, err = n.Remove(n.root, c.Name)
	case "list":
		var list []nfs3.EntryPlus
		list, err = n.List(n.root)
		for _, e := range list {
			if e.Name != "." && e.Name != ".." {
				a.Names = append(a.Names, e.Name)
			}
		}
		slices.Sort(a.Names)
	case "see":
		var r nfs3.ReadRes
		r, err = n.Read(fh, 0, uint32(size)+1)
		a.Size, a.Data = int64(size), bytes.Clone(r.Data)
	}
	if err != nil {
		return refused(err)
	}
	return a
}

// refused is the answer of a call that a server refused, or the store.
func refused(err error) coherence.Answer {
	for _, e := range []error{memstore.ErrNotExist, nfs3.ErrNoEnt, nfs4.ErrNoEnt, smbwire.StatusNameNotFound} {
		if errors.Is(err, e) {
			return coherence.Answer{Err: coherence.Absent}
		}
	}
	for _, e := range []error{memstore.ErrExist, nfs3.ErrExist, nfs4.ErrExist, smbwire.StatusNameCollision} {
		if errors.Is(err, e) {
			return coherence.Answer{Err: coherence.Exists}
		}
	}
	return coherence.Failed(err)
}

// nfs4Client is a client by version 4.2, which opens what it reads and writes.
type nfs4Client struct {
	*wire.Session
	root []byte
}

func newNFS4Client(t *testing.T, addr string) *nfs4Client {
	t.Helper()
	c, err := wire.Dial(context.Background(), addr, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := c.Session(wire.SessionOptions{Owner: c.Conn().LocalAddr().String()})
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	return &nfs4Client{s, root}
}

// open opens a file for as long as do takes.
func (n *nfs4Client) open(a nfs4.OpenArgs, do func(fh []byte, sid nfs4.Stateid) error) error {
	a.Owner = nfs4.Owner{Owner: []byte("owner")}
	r, fh, err := n.Open(n.root, a)
	if err != nil {
		return err
	}
	return errors.Join(do(fh, r.Stateid), n.CloseFile(fh, r.Stateid))
}

func (n *nfs4Client) Do(c coherence.Call) (a coherence.Answer) {
	write := func(at func(fh []byte) (uint64, error), args nfs4.OpenArgs) error {
		args.Access, args.Name = nfs4.ShareWrite, c.Name
		return n.open(args, func(fh []byte, sid nfs4.Stateid) error {
			off, err := at(fh)
			if err == nil {
				_, err = n.Write(fh, sid, off, c.Data, nfs4.Unstable)
			}
			return err
		})
	}
	set := func(attr wire.SetAttr) error {
		fh, err := n.Lookup(n.root, c.Name)
		if err != nil {
			return err
		}
		return n.SetAttr(fh, nfs4.AnonymousStateid, attr)
	}
	var err error
	switch c.Op {
	case "create":
		mode, size := uint32(0o644), uint64(0)
		attr := wire.SetAttr{Mode: &mode, Size: &size}
		err = write(func([]byte) (uint64, error) { return 0, nil }, nfs4.OpenArgs{Create: true, Mode: nfs4.Unchecked, Attr: attr.Fattr()})
	case "write":
		err = write(func([]byte) (uint64, error) { return uint64(c.Off), nil }, nfs4.OpenArgs{})
	case "append":
		err = write(func(fh []byte) (uint64, error) {
			at, err := n.GetAttr(fh)
			return at.Size, err
		}, nfs4.OpenArgs{})
	case "truncate":
		size := uint64(c.Off)
		err = set(wire.SetAttr{Size: &size})
	case "chmod":
		mode := uint32(c.Off)
		err = set(wire.SetAttr{Mode: &mode})
	case "rename":
		err = n.Rename(n.root, c.Name, n.root, c.To)
	case "link":
		var fh []byte
		if fh, err = n.Lookup(n.root, c.Name); err == nil {
			err = n.Link(fh, n.root, c.To)
		}
	case "remove":
		err = n.Remove(n.root, c.Name)
	case "list":
		var r nfs4.ReadDirRes
		r, err = n.ReadDir(n.root, nfs4.ReadDirArgs{DirCount: 8 << 10, MaxCount: 8 << 10})
		for _, e := range r.Entries {
			a.Names = append(a.Names, strings.Clone(e.Name))
		}
		slices.Sort(a.Names)
	case "see":
		err = n.open(nfs4.OpenArgs{Access: nfs4.ShareRead, Name: c.Name}, func(fh []byte, sid nfs4.Stateid) error {
			at, err := n.GetAttr(fh)
			if err != nil {
				return err
			}
			r, err := n.Read(fh, sid, 0, uint32(at.Size)+1)
			a.Size, a.Mode, a.Nlink, a.Change, a.Data = int64(at.Size), at.Mode, uint64(at.Nlink), at.Change, r.Data
			return err
		})
	}
	if err != nil {
		return refused(err)
	}
	return a
}
