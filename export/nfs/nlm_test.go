package nfs

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// nlmRig is a rig with a file and the client's side of NLM: a portmapper, and an
// NLM and NSM that note what they are sent.
type nlmRig struct {
	*rig
	t       *testing.T
	fh      []byte
	inode   *memstore.Inode
	granted chan nfs3.NLMTestArgs
	results chan uint32 // procedures of messages
	notices chan nfs3.NSMNotify
	answer  nfs3.NLMStatus // to GRANTED
	deaf    atomic.Bool    // it hangs up
}

func startNLM(t *testing.T, change func(*Config)) *nlmRig {
	r := &nlmRig{t: t, granted: make(chan nfs3.NLMTestArgs, 8), results: make(chan uint32, 8), notices: make(chan nfs3.NSMNotify, 8)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.callback(c)
		}
	}()
	p := testPortmap(t)
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), l.Addr().(*net.TCPAddr).AddrPort().Port())
	here := netip.MustParseAddrPort("127.0.0.1:700")
	for _, program := range []uint32{rpc.ProgramNLM, rpc.ProgramStatus} {
		if !p.set(0, binding{program, map[uint32]uint32{rpc.ProgramNLM: 4, rpc.ProgramStatus: 1}[program], netTCP, at}, here) {
			t.Fatal("the client's NLM cannot be registered")
		}
	}
	r.rig = start(t, func(c *Config) {
		c.bindPort = p.listeners[0].Addr().(*net.TCPAddr).AddrPort().Port()
		if change != nil {
			change(c)
		}
	})
	r.fh = r.create("f")
	r.inode, err = r.store.Root().Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// callback serves a connection to the client's NLM.
func (r *nlmRig) callback(c net.Conn) {
	defer c.Close()
	for {
		rec, err := readRecord(c)
		if err != nil || r.deaf.Load() {
			return
		}
		in := xdr.NewReader(rec)
		var h rpc.Call
		if h.Decode(&in) != nil {
			return
		}
		var w xdr.Writer
		at := rpc.BeginRecord(&w)
		rpc.Accepted(&w, h.XID, rpc.Success)
		switch {
		case h.Procedure == 0:
		case h.Program == rpc.ProgramStatus:
			var a nfs3.NSMNotify
			a.Decode(&in)
			r.notices <- a
		case h.Procedure == nfs3.NLMProcGranted:
			var a nfs3.NLMTestArgs
			a.Decode(&in)
			r.granted <- a
			(&nfs3.NLMRes{Cookie: a.Cookie, Status: r.answer}).Encode(&w)
		default:
			r.results <- h.Procedure
		}
		rpc.EndRecord(&w, at, 0)
		c.Write(w.B)
	}
}

func (r *nlmRig) lockOf(host string, svid int32, off, n uint64) nfs3.NLMLock {
	return nfs3.NLMLock{Caller: host, FH: r.fh, Owner: fmt.Appendf(nil, "%d@%s", svid, host), SVID: svid, Off: off, Len: n}
}

// do makes one request and returns the status.
func (r *nlmRig) do(op, host string, svid int32, off, n uint64) nfs3.NLMStatus {
	r.t.Helper()
	var res nfs3.NLMRes
	l := r.lockOf(host, svid, off, n)
	cookie := []byte(op)
	var err error
	call := func(proc uint32, args encoder) { err = r.one.Call(rpc.ProgramNLM, 4, proc, args, &res) }
	switch op {
	case "lock", "share-lock", "wait":
		call(nfs3.NLMProcLock, &nfs3.NLMLockArgs{Cookie: cookie, Block: op == "wait", Exclusive: op != "share-lock", Lock: l, State: 1})
	case "unlock":
		call(nfs3.NLMProcUnlock, &nfs3.NLMUnlockArgs{Cookie: cookie, Lock: l})
	case "cancel":
		call(nfs3.NLMProcCancel, &nfs3.NLMCancelArgs{Cookie: cookie, Block: true, Exclusive: true, Lock: l})
	default:
		r.t.Fatalf("no such request: %s", op)
	}
	if err != nil || string(res.Cookie) != op {
		r.t.Fatalf("%s: %v, cookie %q", op, err, res.Cookie)
	}
	return res.Status
}

// Ranges of owners and hosts, in one script: what one step leaves, the next meets.
func TestNLM(t *testing.T) {
	r := startNLM(t, nil)
	const yes, no, blocked = nfs3.NLMGranted, nfs3.NLMDenied, nfs3.NLMBlocked
	for i, s := range []struct {
		op, host string
		svid     int32
		off, n   uint64
		want     nfs3.NLMStatus
	}{
		{"lock", "a", 1, 0, 10, yes},
		{"lock", "a", 1, 5, 10, yes}, // merges with its own: 0 to 15
		{"lock", "a", 2, 14, 1, no},  // another process there
		{"lock", "b", 1, 14, 1, no},  // the same number on another host
		{"share-lock", "b", 1, 0, 1, no},
		{"lock", "b", 1, 15, 0, yes}, // to the end
		{"lock", "a", 1, 1 << 50, 1, no},
		{"unlock", "a", 1, 5, 2, yes}, // splits
		{"lock", "b", 1, 5, 2, yes},
		{"lock", "b", 1, 4, 1, no},
		{"unlock", "b", 1, 0, 0, yes},
		{"share-lock", "a", 1, 7, 8, yes}, // a downgrade
		{"share-lock", "b", 1, 7, 8, yes},
		{"lock", "a", 1, 7, 1, no}, // an upgrade against another's
		{"wait", "a", 1, 7, 8, blocked},
		{"wait", "a", 1, 7, 8, blocked}, // asked again
		{"cancel", "a", 1, 7, 8, yes},
		{"cancel", "a", 1, 7, 8, no},
		{"unlock", "b", 1, 0, 0, yes},
		{"unlock", "b", 9, 0, 0, yes}, // nothing is no error
		{"lock", "a", 1, 7, 8, yes},
		{"wait", "a", 1, 7, 8, yes},
		{"unlock", "a", 1, 0, 0, yes},
		{"lock", "b", 7, ^uint64(0), 1, yes},
		{"lock", "a", 7, ^uint64(0) - 1, 0, no},
		{"unlock", "b", 7, 0, 0, yes},
	} {
		if got := r.do(s.op, s.host, s.svid, s.off, s.n); got != s.want {
			t.Errorf("step %d: %s %s %d %d+%d: %v, want %v", i, s.op, s.host, s.svid, s.off, s.n, got, s.want)
		}
	}
	for _, c := range r.s.nlm.of(netip.MustParseAddr("127.0.0.1")) {
		c.mu.Lock()
		if len(c.files) != 0 || len(c.waits) != 0 {
			t.Errorf("%s has %d files open and waits for %d locks", c.holder.Name, len(c.files), len(c.waits))
		}
		c.mu.Unlock()
	}
	bad := r.lockOf("a", 1, 0, 1)
	bad.FH = bytes.Repeat([]byte{9}, 32)
	var res nfs3.NLMRes
	if err := r.one.Call(rpc.ProgramNLM, 4, nfs3.NLMProcLock, &nfs3.NLMLockArgs{Lock: bad}, &res); err != nil || res.Status != nfs3.NLMStaleFH {
		t.Errorf("a bad handle: %v, %v", res.Status, err)
	}
	bad.FH = r.root
	if err := r.one.Call(rpc.ProgramNLM, 4, nfs3.NLMProcLock, &nfs3.NLMLockArgs{Lock: bad}, &res); err != nil || res.Status != nfs3.NLMFailed {
		t.Errorf("a directory: %v, %v", res.Status, err)
	}
	for proc := uint32(16); proc < 20; proc++ {
		if err := r.one.Call(rpc.ProgramNLM, 4, proc, nil, nil); err != rpc.ProcUnavail {
			t.Errorf("procedure %d: %v", proc, err)
		}
	}
	if err := r.one.Call(rpc.ProgramNLM, 3, nfs3.NLMProcNull, nil, nil); err == nil {
		t.Error("version 3 is answered")
	}
}

// TEST tells who is in the way: a client's owner, or one that only the store
// knows.
func TestNLMTest(t *testing.T) {
	r := startNLM(t, nil)
	test := func(host string) (res nfs3.NLMTestRes) {
		t.Helper()
		a := nfs3.NLMTestArgs{Cookie: []byte("c"), Exclusive: true, Lock: r.lockOf(host, 5, 0, 0)}
		if err := r.one.Call(rpc.ProgramNLM, 4, nfs3.NLMProcTest, &a, &res); err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := test("b"); res.Status != nfs3.NLMGranted {
		t.Errorf("nothing is locked: %v", res.Status)
	}
	r.do("lock", "a", 5, 10, 10)
	if res := test("a"); res.Status != nfs3.NLMGranted {
		t.Errorf("its own lock: %v", res.Status)
	}
	if res := test("b"); res.Status != nfs3.NLMDenied || !res.Holder.Exclusive || res.Holder.SVID != 5 || string(res.Holder.Owner) != "5@a" || res.Holder.Off != 10 || res.Holder.Len != 10 {
		t.Errorf("another's lock: %+v", res)
	}
	r.do("unlock", "a", 5, 0, 0)

	h := &memstore.Holder{Name: "other"}
	o, err := r.inode.Open(&memstore.Caller{Holder: h}, memstore.OpenArgs{Access: memstore.AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	owner := memstore.LockOwner{Holder: h, ID: "x"}
	if _, err := o.Lock(memstore.LockArgs{Owner: owner, Off: 3, Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	if res := test("b"); res.Status != nfs3.NLMDenied || res.Holder.SVID != 0 || len(res.Holder.Owner) != 0 || res.Holder.Off != 3 || res.Holder.Len != 0 {
		t.Errorf("a lock of another protocol: %+v", res)
	}
	// And waiting for one.
	if got := r.do("wait", "b", 5, 0, 0); got != nfs3.NLMBlocked {
		t.Errorf("waiting: %v", got)
	}
	if err := o.Unlock(memstore.LockArgs{Owner: owner}); err != nil {
		t.Fatal(err)
	}
	if a := r.grant(); a.Lock.SVID != 5 {
		t.Errorf("granted to %d", a.Lock.SVID)
	}
	wait(t, "the client is settled", func() bool { return r.waiting() == 0 })
	if _, err := o.Lock(memstore.LockArgs{Owner: owner, Off: 100, N: 1}); err != memstore.ErrLocked {
		t.Errorf("what NLM has locked is locked for others: %v", err)
	}
	r.do("unlock", "b", 5, 0, 0)
}

// grant is the next GRANTED that the client was sent.
func (r *nlmRig) grant() nfs3.NLMTestArgs {
	r.t.Helper()
	select {
	case a := <-r.granted:
		return a
	case <-time.After(10 * time.Second):
		r.t.Fatal("nothing is granted")
	}
	panic("not reached")
}

// waiting is how many locks are waited for, or not known to be had.
func (r *nlmRig) waiting() (n int) {
	for _, c := range r.s.nlm.of(netip.MustParseAddr("127.0.0.1")) {
		c.mu.Lock()
		n += len(c.waits)
		c.mu.Unlock()
	}
	return n
}

// A lock that is waited for is granted by a call to the client, with the cookie
// of its request; one that the client does not want any more is released.
func TestNLMGranted(t *testing.T) {
	r := startNLM(t, nil)
	r.do("lock", "a", 1, 0, 10)
	if got := r.do("wait", "b", 2, 5, 10); got != nfs3.NLMBlocked {
		t.Fatal(got)
	}
	r.do("unlock", "a", 1, 0, 10)
	if a := r.grant(); string(a.Cookie) != "wait" || !a.Exclusive || a.Lock.SVID != 2 || a.Lock.Off != 5 || a.Lock.Len != 10 || a.Lock.Caller != "b" || !bytes.Equal(a.Lock.FH, r.fh) {
		t.Errorf("granted %+v", a)
	}
	wait(t, "the grant is known", func() bool { return r.waiting() == 0 })
	if got := r.do("lock", "a", 1, 5, 1); got != nfs3.NLMDenied {
		t.Errorf("the range that was granted is locked: %v", got)
	}

	r.answer = nfs3.NLMDenied
	if got := r.do("wait", "a", 1, 5, 1); got != nfs3.NLMBlocked {
		t.Fatal(got)
	}
	r.do("unlock", "b", 2, 0, 0)
	r.grant()
	wait(t, "the lock is released again", func() bool { return r.waiting() == 0 })
	if got := r.do("lock", "c", 1, 0, 0); got != nfs3.NLMGranted {
		t.Errorf("after a grant that nobody wanted: %v", got)
	}
	r.do("unlock", "c", 1, 0, 0)
}

// Requests as messages are answered by messages.
func TestNLMMessages(t *testing.T) {
	r := startNLM(t, nil)
	l := r.lockOf("a", 1, 0, 10)
	for _, m := range []struct {
		proc, res uint32
		args      encoder
	}{
		{nfs3.NLMProcTestMsg, nfs3.NLMProcTestRes, &nfs3.NLMTestArgs{Lock: l}},
		{nfs3.NLMProcLockMsg, nfs3.NLMProcLockRes, &nfs3.NLMLockArgs{Lock: l, Exclusive: true}},
		{nfs3.NLMProcUnlockMsg, nfs3.NLMProcUnlockRes, &nfs3.NLMUnlockArgs{Lock: l}},
		{nfs3.NLMProcCancelMsg, nfs3.NLMProcCancelRes, &nfs3.NLMCancelArgs{Lock: l}},
		{nfs3.NLMProcGrantedMsg, nfs3.NLMProcGrantedRes, &nfs3.NLMTestArgs{Lock: l}},
	} {
		if err := r.one.Call(rpc.ProgramNLM, 4, m.proc, m.args, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-r.results:
			if got != m.res {
				t.Errorf("procedure %d is answered by %d, want %d", m.proc, got, m.res)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("procedure %d is not answered", m.proc)
		}
	}
}

// A share mode binds others, not who has it.
func TestNLMShare(t *testing.T) {
	r := startNLM(t, nil)
	share := func(proc uint32, host, owner string, access, deny uint32) nfs3.NLMStatus {
		t.Helper()
		var res nfs3.NLMShareRes
		a := nfs3.NLMShareArgs{Caller: host, FH: r.fh, Owner: []byte(owner), Access: access, Deny: deny}
		if err := r.one.Call(rpc.ProgramNLM, 4, proc, &a, &res); err != nil {
			t.Fatal(err)
		}
		return res.Status
	}
	const rd, wr = nfs3.NLMShareRead, nfs3.NLMShareWrite
	for i, s := range []struct {
		proc         uint32
		host, owner  string
		access, deny uint32
		want         nfs3.NLMStatus
	}{
		{nfs3.NLMProcShare, "a", "1", rd | wr, wr, nfs3.NLMGranted},
		{nfs3.NLMProcShare, "a", "1", rd | wr, wr, nfs3.NLMGranted},
		{nfs3.NLMProcShare, "b", "1", rd, 0, nfs3.NLMGranted},
		{nfs3.NLMProcShare, "b", "2", wr, 0, nfs3.NLMDenied},
		{nfs3.NLMProcShare, "a", "1", rd | wr, rd | wr, nfs3.NLMDenied},
		{nfs3.NLMProcUnshare, "b", "1", 0, 0, nfs3.NLMGranted},
		{nfs3.NLMProcShare, "a", "1", rd | wr, rd | wr, nfs3.NLMGranted},
	} {
		if got := share(s.proc, s.host, s.owner, s.access, s.deny); got != s.want {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
	}
	if _, err := r.one.Write(r.fh, 0, []byte("mine"), nfs3.FileSync); err != nil {
		t.Errorf("a write of the host that shares it: %v", err)
	}
	if _, _, err := r.inode.WriteAt(memstore.Root(), nil, []byte("x"), 0); err != memstore.ErrShareViolation {
		t.Errorf("a write of another: %v", err)
	}
	if got := r.do("lock", "a", 1, 0, 0); got != nfs3.NLMGranted {
		t.Errorf("a lock of the host that shares it: %v", got)
	}
	if err := r.one.Call(rpc.ProgramNLM, 4, nfs3.NLMProcFreeAll, &nfs3.NLMNotify{Name: "a"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := share(nfs3.NLMProcShare, "b", "1", wr, 0); got != nfs3.NLMGranted {
		t.Errorf("after FREE_ALL: %v", got)
	}
	share(nfs3.NLMProcUnshare, "b", "1", 0, 0)
}

// What a host that has restarted had locked is released: when it says so, or
// locks something in its new state.
func TestNSM(t *testing.T) {
	r := startNLM(t, nil)
	packets, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.s.ServePackets(packets) }()
	here := netip.MustParseAddr("127.0.0.1")
	notify := func(name string, state int32) {
		t.Helper()
		u, err := dialRemote(t.Context(), netUDP, here, packets.LocalAddr().(*net.UDPAddr).AddrPort(), rpc.ProgramStatus, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		if _, err := u.call(nfs3.NSMProcNotify, &nfs3.NSMNotify{Name: name, State: state}); err != nil {
			t.Fatal(err)
		}
	}
	r.do("lock", "a", 1, 0, 10)
	r.do("lock", "b", 1, 10, 10)
	notify("b.example.org", 1) // the state in which it has locked
	if got := r.do("lock", "c", 1, 10, 1); got != nfs3.NLMDenied {
		t.Errorf("after a notice of the same state: %v", got)
	}
	notify("b.example.org", 3)
	if got := r.do("lock", "c", 1, 10, 1); got != nfs3.NLMGranted {
		t.Errorf("after a notice: %v", got)
	}
	if got := r.do("lock", "c", 1, 0, 1); got != nfs3.NLMDenied {
		t.Errorf("of another host: %v", got)
	}
	var res nfs3.NLMRes
	if err := r.one.Call(rpc.ProgramNLM, 4, nfs3.NLMProcLock, &nfs3.NLMLockArgs{Lock: r.lockOf("a", 1, 500, 1), State: 5}, &res); err != nil || res.Status != nfs3.NLMGranted {
		t.Fatal(res.Status, err)
	}
	if got := r.do("lock", "c", 1, 0, 1); got != nfs3.NLMGranted {
		t.Errorf("of a host that locks in another state: %v", got)
	}
	packets.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A host that is gone does not keep others waiting for ever.
func TestNLMGone(t *testing.T) {
	r := startNLM(t, func(c *Config) { c.expiry = 300 * time.Millisecond })
	r.do("lock", "a", 1, 0, 10)
	here := netip.MustParseAddr("127.0.0.1")
	wait(t, "the client was reached", func() bool { return r.s.nlm.of(here)[0].reached.Load() })
	if got := r.do("wait", "b", 1, 0, 10); got != nfs3.NLMBlocked {
		t.Fatal(got)
	}
	// It answers, and keeps its lock.
	time.Sleep(time.Second)
	if r.waiting() != 1 {
		t.Fatal("a client that answers has lost its lock")
	}
	// It is found no more, nor anybody else of the same address.
	r.deaf.Store(true)
	wait(t, "the lock is had", func() bool {
		return r.inode.LocksOf(&r.client("a").holder) == 0 && r.inode.LocksOf(&r.client("b").holder) == 1
	})
}

func (r *nlmRig) client(name string) *nlmClient {
	all := r.s.nlm.of(netip.MustParseAddr("127.0.0.1"))
	return all[slices.IndexFunc(all, func(c *nlmClient) bool { return c.key.name == name })]
}

// The next server tells the hosts that held locks.
func TestLockHosts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	var first int32
	t.Run("first", func(t *testing.T) {
		r := startNLM(t, func(c *Config) { c.LockHosts = path })
		r.do("lock", "a", 1, 0, 10)
		first = r.s.nlm.hosts.state
	})
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatal(fi, err)
	}
	t.Run("second", func(t *testing.T) {
		r := startNLM(t, func(c *Config) { c.LockHosts = path })
		select {
		case n := <-r.notices:
			if n.State != r.s.nlm.hosts.state || n.State == first || n.State%2 != 1 {
				t.Errorf("state %d after %d", n.State, first)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nobody is told")
		}
		wait(t, "it is told once", func() bool { return len(r.s.nlm.hosts.toTell()) == 0 })
	})
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openHostList(path); err == nil {
		t.Error("a file that is no list is read")
	}
}
