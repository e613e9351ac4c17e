package nfs

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// TestSettle: a change that the mount on this machine has to forget something for
// is acknowledged after that, and nothing else of its connection waits for it.
func TestSettle(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	f, err := r.store.Root().Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	began, forgotten := make(chan int, 10), make(chan bool)
	local, err := r.store.AttachLocal(&memstore.Holder{Name: "mount"}, func(stale []memstore.Stale) {
		began <- len(stale)
		<-forgotten
	})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Detach()
	if _, err := local.Know(f); err != nil {
		t.Fatal(err)
	}
	c := r.dial(client.Options{})
	xid := uint32(0)
	message := func(proc uint32, args encoder) []byte {
		xid++
		msg := call3(rpc.ProgramNFS, proc, args)
		binary.BigEndian.PutUint32(msg, xid)
		return msg
	}
	send := func(messages ...[]byte) {
		t.Helper()
		if _, err := c.Conn().Write(calls(messages...)); err != nil {
			t.Fatal(err)
		}
	}
	// expect reads replies, which may come in any order.
	expect := func(want ...uint32) {
		t.Helper()
		var got []uint32
		for range want {
			reply, err := client.ReadRecord(c.Conn())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, binary.BigEndian.Uint32(reply))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("replies to %v, want %v", got, want)
		}
	}
	set := &nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetSize: true, Size: 9}}
	write := &nfs3.WriteArgs{FH: fh, Count: 4, Data: []byte("data"), Stable: nfs3.FileSync}
	truncate := message(nfs3.ProcSetAttr, set) // 1
	send(truncate, message(nfs3.ProcNull, nil))
	expect(2)
	if n := <-began; n != 1 {
		t.Errorf("%d things to forget", n)
	}
	// A retransmission is not answered either, and what comes meanwhile is
	// forgotten together.
	again := bytes.Clone(truncate)
	send(again, message(nfs3.ProcWrite, write), message(nfs3.ProcGetAttr, &nfs3.FHArgs{FH: fh}), // 3, 4
		message(nfs3.ProcWrite, write), message(nfs3.ProcSetAttr, set), message(nfs3.ProcNull, nil)) // 5 to 7
	expect(4, 7)
	c.Conn().SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Conn().Read(make([]byte, 1)); err == nil {
		t.Fatal("a reply came before the mount had forgotten")
	}
	c.Conn().SetReadDeadline(time.Time{})
	forgotten <- true
	expect(1)
	if n := <-began; n != 3 {
		t.Errorf("%d things to forget", n)
	}
	forgotten <- true
	expect(3, 5, 6)
	send(again, message(nfs3.ProcNull, nil))
	expect(1, 8)
	if n := r.s.Stats().Replayed; n != 1 {
		t.Errorf("%d replayed", n)
	}

	// A larger WRITE, whose data goes straight into pages.
	send(message(nfs3.ProcWrite, &nfs3.WriteArgs{FH: fh, Count: 128 << 10, Data: make([]byte, 128<<10)}), message(nfs3.ProcNull, nil))
	expect(10)
	<-began
	forgotten <- true
	expect(9)
	close(forgotten)
}

// TestSettle4 is about compounds: what such a reply says is kept for a
// retransmission, and the next compound may be executed in its slot.
func TestSettle4(t *testing.T) {
	r := start(t, nil)
	var told atomic.Int32
	local, err := r.store.AttachLocal(&memstore.Holder{Name: "mount"}, func([]memstore.Stale) { told.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	defer local.Detach()
	remove := func(name string) op {
		t.Helper()
		r.create(name)
		i, err := r.store.Root().Lookup(memstore.Root(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := local.Know(i); err != nil {
			t.Fatal(err)
		}
		return op{nfs4.OpRemove, &nfs4.Name{Name: name}, new(nfs4.DirRes)}
	}
	c := r.connect(t, "one", false)
	for _, name := range []string{"f", "g"} {
		gone := remove(name)
		c.must(nfs4.OK, putFH(r.root), gone)
		if status, _ := c.send(0, op{nfs4.OpSequence, &nfs4.SequenceArgs{Session: c.sess, Seq: c.seq, CacheThis: true}, new(nfs4.SequenceRes)},
			putFH(r.root), gone); status != nfs4.OK {
			t.Errorf("%s removed once more: %v", name, status)
		}
	}
	nc, err := r.connection()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	zero := &client40Test{t: t, s: r.s, nc: nc}
	gone := remove("h")
	zero.must(nfs4.OK, putFH(r.root), gone)
	if status, _ := zero.again(putFH(r.root), gone); status != nfs4.OK {
		t.Errorf("by version 4.0 removed once more: %v", status)
	}
	if told.Load() < 3 {
		t.Errorf("the mount has forgotten something %d times", told.Load())
	}
}
