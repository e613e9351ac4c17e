package nfs

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// live4 is a client with a session over connections by which it is called too.
type live4 struct {
	*rig
	t     testing.TB
	ex    nfs4.ExchangeIDRes
	sess  nfs4.SessionID
	flags uint32 // of the last SEQUENCE

	mu      sync.Mutex
	seq     uint32
	xid     uint32
	conns   []*conn4
	calls   []string // operations that it was called with
	seqs    []uint32 // (mu) of its slots for callbacks
	answer  func(number nfs4.CBOp, args any) nfs4.Status
	silent  bool                     // does not answer callbacks
	refuses nfs4.Status              // instead of CB_SEQUENCE
	about   []nfs4.ReferringCall     // of the last callback
	replies map[uint32]chan<- []byte // by xid
}

// conn4 is one of its connections.
type conn4 struct {
	net.Conn
	writing sync.Mutex
}

// connection is a new one to the server.
func (r *rig) connection() (net.Conn, error) {
	if r.pipes == nil {
		return net.Dial("tcp", r.addr)
	}
	ours, theirs := net.Pipe()
	r.pipes.conns <- theirs
	return ours, nil
}

// pipes is a listener for connections that are none of the system's, so that a
// test has a clock of its own.
type pipes struct {
	conns chan net.Conn
	ended sync.Once
}

// startPiped runs a server for a test with a clock of its own. The caller ends it.
func startPiped(t testing.TB, change func(*Config)) (r *rig, end func()) {
	r = &rig{t: t, store: newStore(t, t.Name()), pipes: &pipes{conns: make(chan net.Conn)}}
	cfg := Config{Exports: newTable(t, exportOf(r.store, "ramdisk"))}
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.s, err = NewServer(cfg); err != nil {
		t.Fatal(err)
	}
	go r.s.Serve(r.pipes)
	return r, func() {
		if err := r.s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

type piped struct{ net.Conn }

func (piped) RemoteAddr() net.Addr { return (*script)(nil).RemoteAddr() }
func (piped) LocalAddr() net.Addr  { return (*script)(nil).LocalAddr() }

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return piped{c}, nil
}

func (p *pipes) Close() error {
	p.ended.Do(func() { close(p.conns) })
	return nil
}

func (*pipes) Addr() net.Addr { return (*script)(nil).LocalAddr() }

// connect makes a client whose first connection can be called if back is set.
func (r *rig) connect(t testing.TB, name string, back bool) *live4 {
	t.Helper()
	c := &live4{rig: r, t: t, replies: make(map[uint32]chan<- []byte), seqs: make([]uint32, 4)}
	c.dial4()
	var made nfs4.CreateSessionRes
	if status, _ := c.send(0, exchangeID(name, 1, &c.ex)); status != nfs4.OK {
		t.Fatalf("EXCHANGE_ID: %v", status)
	}
	args := &nfs4.CreateSessionArgs{ClientID: c.ex.ClientID, Seq: c.ex.Seq, Fore: channel, Back: channel, CBProgram: 0x40000000}
	args.Back.MaxRequests = uint32(len(c.seqs))
	if back {
		args.Flags = nfs4.SessionConnBackChan
	}
	if status, _ := c.send(0, op{nfs4.OpCreateSession, args, &made}); status != nfs4.OK {
		t.Fatalf("CREATE_SESSION: %v", status)
	}
	if made.Flags != args.Flags {
		t.Errorf("CREATE_SESSION with flags %#x answers %#x", args.Flags, made.Flags)
	}
	c.sess = made.Session
	c.must(nfs4.OK, op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
	if back {
		wait(t, "the client can be called", func() bool { return c.client().callable() })
	}
	return c
}

func (c *live4) client() *client4 { return c.s.clients.client(c.ex.ClientID) }

// dial4 makes one more connection.
func (c *live4) dial4() *conn4 {
	c.t.Helper()
	nc, err := c.connection()
	if err != nil {
		c.t.Fatal(err)
	}
	n := &conn4{Conn: nc}
	c.t.Cleanup(func() { nc.Close() })
	c.mu.Lock()
	c.conns = append(c.conns, n)
	c.mu.Unlock()
	go c.read(n)
	return n
}

// read passes on replies and answers callbacks.
func (c *live4) read(n *conn4) {
	for {
		rec, err := client.ReadRecord(n)
		if err != nil {
			return
		}
		if binary.BigEndian.Uint32(rec[4:]) == 1 {
			c.mu.Lock()
			xid := binary.BigEndian.Uint32(rec)
			if reply := c.replies[xid]; reply != nil {
				delete(c.replies, xid)
				reply <- rec
			}
			c.mu.Unlock()
			continue
		}
		if reply := c.called(rec); reply != nil {
			go n.write(reply) // which a pipe may hold up
		}
	}
}

func (n *conn4) write(msg []byte) {
	n.writing.Lock()
	defer n.writing.Unlock()
	n.Write(calls(msg))
}

// called executes a CB_COMPOUND as RFC 8881 section 2.10.6.1 has it.
func (c *live4) called(rec []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := xdr.NewReader(rec)
	var h rpc.Call
	var head nfs4.CBCompoundArgs
	if err := h.Decode(&r); err != nil || h.Program != 0x40000000 || h.Version != 1 || h.Procedure != 1 {
		c.t.Errorf("called with %+v, %v", h, err)
	}
	head.Decode(&r)
	var seq nfs4.CBSequenceArgs
	if number := nfs4.CBOp(r.Uint32()); number != nfs4.OpCBSequence || head.Minor != nfs4.Minor2 {
		c.t.Errorf("called back with %v of minor version %d", number, head.Minor)
	}
	seq.Decode(&r)
	c.about = seq.Referring
	if c.silent {
		return nil
	}
	var w xdr.Writer
	rpc.Accepted(&w, h.XID, rpc.Success)
	at := w.Len()
	res := nfs4.CompoundRes{Count: 1, Status: c.refuses}
	put := func(o nfs4.CBOp, s nfs4.Status) {
		(&nfs4.OpHead{Op: nfs4.Op(o), Status: s}).Encode(&w)
	}
	res.Encode(&w)
	if res.Status == nfs4.OK {
		switch last := &c.seqs[seq.Slot]; {
		case seq.Seq == *last+1:
			*last = seq.Seq
		case seq.Seq == *last:
			res.Status = nfs4.ErrRetryUncachedRep
		default:
			res.Status = nfs4.ErrSeqMisordered
		}
	}
	put(nfs4.OpCBSequence, res.Status)
	if res.Status == nfs4.OK {
		(&nfs4.CBSequenceRes{Session: seq.Session, Seq: seq.Seq, Slot: seq.Slot}).Encode(&w)
		if head.Count == 2 {
			res.Count = 2
			number := nfs4.CBOp(r.Uint32())
			c.calls = append(c.calls, number.String())
			var args any
			switch number {
			case nfs4.OpCBRecall:
				args = decode[nfs4.CBRecallArgs](&r)
			case nfs4.OpCBNotifyLock:
				args = decode[nfs4.CBNotifyLockArgs](&r)
			}
			if c.answer != nil {
				res.Status = c.answer(number, args)
			}
			put(number, res.Status)
		}
	}
	if r.Err() != nil || res.Count == head.Count && r.Len() != 0 {
		c.t.Errorf("callback: %v, %d bytes left", r.Err(), r.Len())
	}
	binary.BigEndian.PutUint32(w.B[at:], uint32(res.Status))
	binary.BigEndian.PutUint32(w.B[at+8:], res.Count)
	return w.B
}

// send executes a COMPOUND by one of the connections.
func (c *live4) send(n int, ops ...op) (nfs4.Status, int) {
	c.t.Helper()
	c.mu.Lock()
	c.xid++
	xid := c.xid
	reply := make(chan []byte, 1)
	c.replies[xid] = reply
	conn := c.conns[n]
	c.mu.Unlock()
	conn.write(call4(xid, nfs4.Minor2, ops...))
	select {
	case rec := <-reply:
		return results4(c.t, rec, ops...)
	case <-time.After(20 * time.Second):
		c.t.Fatalf("no reply to %v", ops)
		return 0, 0
	}
}

// run executes operations in the session, one compound at a time.
func (c *live4) run(ops ...op) nfs4.Status {
	c.t.Helper()
	c.seq++
	res := new(nfs4.SequenceRes)
	sequence := op{nfs4.OpSequence, &nfs4.SequenceArgs{Session: c.sess, Seq: c.seq, CacheThis: true}, res}
	status, _ := c.send(0, append([]op{sequence}, ops...)...)
	c.flags = res.Flags
	return status
}

func (c *live4) must(want nfs4.Status, ops ...op) {
	c.t.Helper()
	if status := c.run(ops...); status != want {
		c.t.Fatalf("%v, want %v", status, want)
	}
}

func (c *live4) bind(n int, dir uint32, want nfs4.Status) {
	c.t.Helper()
	var res nfs4.BindConnToSessionRes
	status, _ := c.send(n, op{nfs4.OpBindConnToSession, &nfs4.BindConnToSessionArgs{Session: c.sess, Dir: dir}, &res})
	if status != want {
		c.t.Fatalf("BIND_CONN_TO_SESSION: %v, want %v", status, want)
	}
}

// call calls the client back.
func (c *live4) call(number nfs4.CBOp, args encoder) (nfs4.Status, error) {
	quit := make(chan struct{})
	late := time.AfterFunc(10*time.Second, func() { close(quit) })
	defer late.Stop()
	if !c.s.clients.begin() {
		c.t.Fatal("the server has ended")
	}
	defer c.s.running.Done()
	return c.client().callBack(&cbOp{number: number, args: args}, quit)
}

// underWay is how many callbacks are not answered yet.
func (c *live4) underWay() int {
	b := &c.s.clients.session(&c.sess).back
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.slots) - len(b.free)
}

func (c *live4) saw() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// A client is called by any connection that it gave for that, and its requests
// tell it when there is none.
func TestCallback(t *testing.T) {
	r := start(t, nil)
	notify := &nfs4.CBNotifyLockArgs{FH: []byte("fh"), Owner: nfs4.Owner{Owner: []byte("o")}}
	call := func(c *live4, want nfs4.Status) {
		t.Helper()
		if status, err := c.call(nfs4.OpCBNotifyLock, notify); status != want || err != nil {
			t.Errorf("%v, %v, want %v", status, err, want)
		}
	}
	c := r.connect(t, "one", true)
	call(c, nfs4.OK)
	c.answer = func(nfs4.CBOp, any) nfs4.Status { return nfs4.ErrNotSupp }
	call(c, nfs4.ErrNotSupp)
	c.must(nfs4.OK)
	if c.flags != 0 {
		t.Errorf("flags %#x", c.flags)
	}
	c.bind(0, nfs4.DirFore, nfs4.ErrInval) // it is for both

	// Another connection is taken when the first is gone.
	c.dial4()
	c.bind(1, nfs4.DirBackOrBoth, nfs4.OK)
	c.conns[1].Close()
	c.answer = nil
	call(c, nfs4.OK)
	if n := len(c.saw()); n != 3 {
		t.Errorf("called with %v", c.saw())
	}

	// By a connection that is not for that the client is told that it cannot be
	// called, until it is.
	c.dial4()
	c.conns[0].Close()
	c.conns[0] = c.conns[2]
	wait(t, "it is known that the client cannot be called", func() bool { return !c.client().callable() })
	c.must(nfs4.OK)
	if want := uint32(nfs4.SeqCBPathDown | nfs4.SeqCBPathDownSession); c.flags != want {
		t.Errorf("flags %#x, want %#x", c.flags, want)
	}
	done := make(chan bool)
	go func() {
		call(c, nfs4.OK)
		close(done)
	}()
	c.bind(0, nfs4.DirForeOrBoth, nfs4.OK)
	<-done
	c.must(nfs4.OK)
	if c.flags != 0 {
		t.Errorf("flags %#x", c.flags)
	}

	// A client that does not know its session any more cannot be called.
	c.mu.Lock()
	c.refuses = nfs4.ErrBadSlot
	c.mu.Unlock()
	go call(c, nfs4.OK)
	wait(t, "it is known that the client does not answer", func() bool { return !c.client().callable() })
	c.mu.Lock()
	c.refuses = nfs4.OK
	c.mu.Unlock()
	wait(t, "it does again", func() bool { return c.client().callable() })

	// One that never gave a connection is not told so.
	other := r.connect(t, "other", false)
	other.must(nfs4.OK)
	if other.flags != 0 || other.client().callable() {
		t.Errorf("flags %#x", other.flags)
	}
	other.must(nfs4.OK, op{nfs4.OpBackchannelCtl, &nfs4.BackchannelCtlArgs{Program: 0x40000000, Sec: []nfs4.CBSec{{Flavor: nfs4.AuthSys, Machine: "m"}}}, nil})
	other.must(nfs4.ErrNoEnt, op{nfs4.OpBackchannelCtl, &nfs4.BackchannelCtlArgs{Sec: []nfs4.CBSec{{Flavor: nfs4.AuthRPCSecGSS, Service: 1}}}, nil})
	other.bind(0, nfs4.DirFore, nfs4.OK)
	other.bind(0, nfs4.DirForeOrBoth, nfs4.OK)
	other.must(nfs4.OK)
	wait(t, "it can be called", func() bool { return other.client().callable() })
	call(other, nfs4.OK)
}

// Replies that nobody waits for do no harm, unless nobody was ever called.
func TestCallbackReplies(t *testing.T) {
	r := start(t, nil)
	c := r.connect(t, "one", true)
	var w xdr.Writer
	rpc.Accepted(&w, 77, rpc.Success)
	c.conns[0].write(w.B)
	c.must(nfs4.OK)
	d := r.dial(client.Options{})
	if _, err := d.Conn().Write(calls(w.B)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReadRecord(d.Conn()); err == nil {
		t.Error("a connection that was never called goes on after a reply")
	}
}

// Slots are used by one call at a time, and one that was not answered is not
// taken for the next.
func TestCallbackSlots(t *testing.T) {
	r := start(t, nil)
	c := r.connect(t, "one", true)
	notify := &nfs4.CBNotifyLockArgs{FH: []byte("fh"), Owner: nfs4.Owner{Owner: []byte("o")}}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, err := c.call(nfs4.OpCBNotifyLock, notify); status != nfs4.OK || err != nil {
				t.Errorf("%v, %v", status, err)
			}
		})
	}
	all.Wait()
	if n := len(c.saw()); n != 20 {
		t.Errorf("called %d times", n)
	}
	// The client loses an answer with its connection.
	c.mu.Lock()
	c.silent = true
	c.mu.Unlock()
	all.Go(func() {
		if status, err := c.call(nfs4.OpCBNotifyLock, notify); status != nfs4.OK || err != nil {
			t.Errorf("%v, %v", status, err)
		}
	})
	wait(t, "the call is under way", func() bool { return c.underWay() > 0 })
	c.dial4()
	c.bind(1, nfs4.DirBackOrBoth, nfs4.OK)
	c.mu.Lock()
	c.silent = false
	for i := range c.seqs {
		c.seqs[i]++ // as if it had executed a call in each
	}
	c.mu.Unlock()
	c.conns[0].Close()
	all.Wait()
}

// Who waits for a lock is told when it may be had, and nobody takes it before
// him.
func TestNotifyLock(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	holder, waiter, other := r.connect(t, "holder", true), r.connect(t, "waiter", true), r.connect(t, "other", true)
	sid := make(map[*live4]nfs4.Stateid)
	for _, c := range []*live4{holder, waiter, other} {
		var res nfs4.OpenRes
		c.must(nfs4.OK, putRootFH(), opening("o", "f", nfs4.ShareBoth, 0, &res))
		if sid[c] = res.Stateid; res.Flags&nfs4.OpenMayNotifyLock == 0 {
			t.Errorf("flags of OPEN %#x", res.Flags)
		}
	}
	lock := func(c *live4, kind nfs4.LockType, want nfs4.Status) nfs4.Stateid {
		t.Helper()
		var res nfs4.StateidArgs
		c.must(want, putFH(fh), op{nfs4.OpLock, &nfs4.LockArgs{
			Type: kind, Length: 10, Stateid: sid[c], NewOwner: true, Owner: nfs4.Owner{Owner: []byte("locker")},
		}, &res})
		return res.Stateid
	}
	told := make(chan nfs4.CBNotifyLockArgs, 1)
	waiter.mu.Lock()
	waiter.answer = func(number nfs4.CBOp, args any) nfs4.Status {
		told <- args.(nfs4.CBNotifyLockArgs)
		return nfs4.OK
	}
	waiter.mu.Unlock()
	held := lock(holder, nfs4.LockWrite, nfs4.OK)
	lock(other, nfs4.LockWrite, nfs4.ErrDenied)
	lock(waiter, nfs4.LockWriteW, nfs4.ErrDenied)
	lock(waiter, nfs4.LockWriteW, nfs4.ErrDenied)
	holder.must(nfs4.OK, putFH(fh), op{nfs4.OpLockU, &nfs4.LockUArgs{Type: nfs4.LockWrite, Stateid: held, Length: 10}, new(nfs4.StateidArgs)})
	lock(other, nfs4.LockRead, nfs4.ErrDenied)
	a := <-told
	if string(a.Owner.Owner) != "locker" || a.Owner.Client != waiter.ex.ClientID || string(a.FH) != string(fh) {
		t.Errorf("told of %+v", a)
	}
	lock(waiter, nfs4.LockWriteW, nfs4.OK)
	if n := len(other.saw()) + len(holder.saw()); n != 0 || len(waiter.saw()) != 1 {
		t.Errorf("called with %v, others %d times", waiter.saw(), n)
	}
}

// Whatever a client answers, a callback has a result.
func FuzzCallbackResult(f *testing.F) {
	var w xdr.Writer
	rpc.Accepted(&w, 1, rpc.Success)
	(&nfs4.CompoundRes{Count: 2}).Encode(&w)
	(&nfs4.OpHead{Op: nfs4.Op(nfs4.OpCBSequence)}).Encode(&w)
	(&nfs4.CBSequenceRes{Seq: 1}).Encode(&w)
	(&nfs4.OpHead{Op: nfs4.Op(nfs4.OpCBRecall), Status: nfs4.ErrBadStateid}).Encode(&w)
	f.Add(w.B, true)
	f.Add(w.B[:len(w.B)-8], false)
	f.Add(w.B[:40], true)
	f.Fuzz(func(t *testing.T, reply []byte, behind bool) {
		first, second, err := callbackResult(reply, behind)
		if err == nil && first != nfs4.OK && second != nfs4.OK {
			t.Errorf("%v, and behind it %v", first, second)
		}
	})
}
