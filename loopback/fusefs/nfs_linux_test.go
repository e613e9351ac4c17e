package fusefs_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"

	"ramserver/export"
	"ramserver/export/nfs"
	wire "ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
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

func (n *nfsClient) do(c call) (a answer) {
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
		return err
	}()
	if err != nil {
		return nfsFailed(err)
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
	case "append":
		_, err = n.Write(fh, size, c.Data, nfs3.FileSync)
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
		r, err = n.Read(fh, 0, 1<<20)
		a.Size, a.Data = int64(size), bytes.Clone(r.Data)
	}
	if err != nil {
		return nfsFailed(err)
	}
	return a
}

func nfsFailed(err error) answer {
	if err == nfs3.ErrNoEnt {
		return answer{Err: "absent"}
	}
	return answer{Err: err.Error()}
}
