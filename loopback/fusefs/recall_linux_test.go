package fusefs_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	wire "ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// TestRecallByOneConnection: a local process waits for a client's lease, and in
// its directory's lock the kernel waits for the process before it forgets what
// the client has changed. The client's connection, by which it gives the lease
// back, does not wait for the kernel.
func TestRecallByOneConnection(t *testing.T) {
	dir, store, _ := newMount(t)
	sh := newShell(t, dir)
	sh.run("mkdir d; echo data >d/f; ls -l d")
	d, err := store.Root().Lookup(memstore.Root(), "d")
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.Dial(context.Background(), serveNFS(t, store), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	root := bytes.Clone(m.FH)
	fh, err := c.Walk(root, "d")
	if err != nil {
		t.Fatal(err)
	}

	holder := &memstore.Caller{Holder: &memstore.Holder{Name: "client", CachesAttrs: true}}
	o, err := f.Open(holder, memstore.OpenArgs{Access: memstore.AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	recalled := make(chan bool, 1)
	lease := o.Lease(holder, memstore.CacheRead|memstore.CacheHandle, func(memstore.Rights) { recalled <- true })
	if lease == nil {
		t.Fatal("no lease")
	}
	o.Close()
	defer lease.Yield(0)
	removed := make(chan string, 1)
	go func() { removed <- sh.run("rm d/f; ls d") }()
	<-recalled

	// The client makes a file in the directory, and then calls NULL, which
	// stands for the return of its delegation.
	var calls xdr.Writer
	for xid, args := range []interface{ Encode(*xdr.Writer) }{
		&nfs3.CreateArgs{Where: nfs3.DirOp{Dir: fh, Name: "x"}, Mode: nfs3.Guarded}, nil,
	} {
		at := rpc.BeginRecord(&calls)
		proc := uint32(nfs3.ProcCreate)
		if args == nil {
			proc = nfs3.ProcNull
		}
		c.AppendCall(&calls, rpc.ProgramNFS, nfs3.Version, proc)
		calls.PatchUint32(at+rpc.MarkSize, uint32(xid))
		if args != nil {
			args.Encode(&calls)
		}
		rpc.EndRecord(&calls, at, 0)
	}
	c.Conn().SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Conn().Write(calls.B); err != nil {
		t.Fatal(err)
	}
	for _, xid := range []byte{1, 0} {
		reply, err := wire.ReadRecord(c.Conn())
		if err != nil {
			t.Fatalf("reply %d: %v", xid, err)
		}
		if reply[3] != xid {
			t.Errorf("reply %d came first", reply[3])
		}
		if xid == 1 {
			lease.Yield(0)
		}
	}
	if got := <-removed; got != "x" {
		t.Errorf("left: %q", got)
	}
}
