package nfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// client4Test is a client with a session of one slot.
type client4Test struct {
	t    testing.TB
	s    *Server
	id   uint64
	sess nfs4.SessionID
	seq  uint32
	uid  uint32 // as whom it calls in the session
}

var channel = nfs4.ChannelAttrs{MaxRequest: 1 << 20, MaxResponse: 1 << 20, MaxResponseCached: 4096, MaxOps: maxOps, MaxRequests: 1}

func exchangeID(name string, verf uint64, res *nfs4.ExchangeIDRes) op {
	return op{nfs4.OpExchangeID, &nfs4.ExchangeIDArgs{Verf: verf, Owner: []byte(name)}, res}
}

func createSession(id uint64, seq uint32, res *nfs4.CreateSessionRes) op {
	return op{nfs4.OpCreateSession, &nfs4.CreateSessionArgs{ClientID: id, Seq: seq, Fore: channel, Back: channel}, res}
}

// open4 makes a client that is ready to open files.
func open4(t testing.TB, s *Server, name string, verf uint64) *client4Test {
	t.Helper()
	c := &client4Test{t: t, s: s}
	var ex nfs4.ExchangeIDRes
	var made nfs4.CreateSessionRes
	if status, _ := send4(t, s, nfs4.Minor2, exchangeID(name, verf, &ex)); status != nfs4.OK {
		t.Fatalf("EXCHANGE_ID: %v", status)
	}
	if status, _ := send4(t, s, nfs4.Minor2, createSession(ex.ClientID, ex.Seq, &made)); status != nfs4.OK {
		t.Fatalf("CREATE_SESSION: %v", status)
	}
	c.id, c.sess = ex.ClientID, made.Session
	c.must(nfs4.OK, op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
	return c
}

func (c *client4Test) sequence(cache bool) op {
	return op{nfs4.OpSequence, &nfs4.SequenceArgs{Session: c.sess, Seq: c.seq, CacheThis: cache}, new(nfs4.SequenceRes)}
}

// run executes operations in the session and returns how many were answered.
func (c *client4Test) run(ops ...op) (nfs4.Status, int) {
	c.t.Helper()
	c.seq++
	status, n := send4As(c.t, c.s, c.uid, nfs4.Minor2, append([]op{c.sequence(true)}, ops...)...)
	return status, n - 1
}

func (c *client4Test) must(want nfs4.Status, ops ...op) {
	c.t.Helper()
	if status, n := c.run(ops...); status != want {
		c.t.Errorf("%v after %d operations, want %v", status, n, want)
	}
}

func TestSession(t *testing.T) {
	s, _, _ := newServer(t)
	var ex, again nfs4.ExchangeIDRes
	var made, replayed nfs4.CreateSessionRes
	must := func(want nfs4.Status, ops ...op) {
		t.Helper()
		if status, _ := send4(t, s, nfs4.Minor1, ops...); status != want {
			t.Errorf("%v, want %v", status, want)
		}
	}
	must(nfs4.OK, exchangeID("one", 1, &ex))
	must(nfs4.ErrStaleClientID, createSession(ex.ClientID+1, ex.Seq, &made))
	must(nfs4.ErrSeqMisordered, createSession(ex.ClientID, ex.Seq+1, &made))
	must(nfs4.OK, createSession(ex.ClientID, ex.Seq, &made))
	must(nfs4.OK, createSession(ex.ClientID, ex.Seq, &replayed))
	if made != replayed {
		t.Errorf("a session is %+v, and when it is asked for again %+v", made, replayed)
	}
	wrong := nfs4.CreateSessionArgs{ClientID: ex.ClientID, Seq: ex.Seq + 1, Fore: channel, Back: channel, Flags: 8}
	must(nfs4.ErrInval, op{nfs4.OpCreateSession, &wrong, nil})
	must(nfs4.ErrInval, op{nfs4.OpCreateSession, &wrong, nil})
	must(nfs4.ErrSeqMisordered, createSession(ex.ClientID, ex.Seq, &replayed))
	// Some clients take the number of what failed again, and some the next.
	must(nfs4.OK, createSession(ex.ClientID, ex.Seq+1, &replayed))
	must(nfs4.OK, op{nfs4.OpDestroySession, &replayed.Session, nil})
	wrong.Seq = ex.Seq + 2
	must(nfs4.ErrInval, op{nfs4.OpCreateSession, &wrong, nil})
	must(nfs4.OK, createSession(ex.ClientID, ex.Seq+3, &replayed))
	must(nfs4.OK, op{nfs4.OpDestroySession, &replayed.Session, nil})
	ex.Seq += 3
	must(nfs4.OK, exchangeID("one", 1, &again))
	if again.ClientID != ex.ClientID || again.Flags&nfs4.ExchgIDConfirmedR == 0 || again.Seq != ex.Seq+1 {
		t.Errorf("the same client is %+v, then %+v", ex, again)
	}
	must(nfs4.ErrNoEnt, op{nfs4.OpExchangeID, &nfs4.ExchangeIDArgs{Owner: []byte("two"), Flags: nfs4.ExchgIDUpdConfirmedRecA}, nil})
	must(nfs4.ErrNotOnlyOp, exchangeID("two", 1, &again), putRootFH())
	must(nfs4.OK, op{nfs4.OpBindConnToSession, &nfs4.BindConnToSessionArgs{Session: made.Session, Dir: nfs4.DirForeOrBoth}, new(nfs4.BindConnToSessionRes)})
	must(nfs4.ErrClientIDBusy, op{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: ex.ClientID}, nil})

	c := &client4Test{t: t, s: s, id: ex.ClientID, sess: made.Session}
	for _, tt := range []struct {
		what string
		args nfs4.SequenceArgs
		want nfs4.Status
	}{
		{"another session", nfs4.SequenceArgs{Seq: 1}, nfs4.ErrBadSession},
		{"another slot", nfs4.SequenceArgs{Session: c.sess, Seq: 1, Slot: 1}, nfs4.ErrBadSlot},
		{"another highest slot", nfs4.SequenceArgs{Session: c.sess, Seq: 1, HighestSlot: 1}, nfs4.ErrBadHighSlot},
		{"a number too large", nfs4.SequenceArgs{Session: c.sess, Seq: 2}, nfs4.ErrSeqMisordered},
		{"a number too small", nfs4.SequenceArgs{Session: c.sess, Seq: 0}, nfs4.ErrSeqMisordered},
	} {
		if status, _ := send4(t, s, nfs4.Minor1, op{nfs4.OpSequence, &tt.args, new(nfs4.SequenceRes)}); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}

	// Nothing is executed twice.
	mkdir := op{nfs4.OpCreate, &nfs4.CreateArgs{Type: nfs4.TypeDir, Name: "d"}, new(nfs4.CreateRes)}
	c.seq = 1
	once := call4(1, nfs4.Minor1, c.sequence(true), putRootFH(), mkdir)
	first, _ := converse(t, s, bytes.NewReader(calls(once)))
	second, _ := converse(t, s, bytes.NewReader(calls(once)))
	if status, _ := results4(t, first[0], c.sequence(true), putRootFH(), mkdir); status != nfs4.OK || !bytes.Equal(first[0], second[0]) {
		t.Errorf("%v; a retransmission is answered\n%x, the call was\n%x", status, second[0], first[0])
	}
	must(nfs4.ErrSeqFalseRetry, c.sequence(true), putRootFH(), putRootFH())
	c.seq = 2
	must(nfs4.OK, c.sequence(false), putRootFH())
	must(nfs4.ErrRetryUncachedRep, c.sequence(false), putRootFH())
	c.must(nfs4.ErrRepTooBigToCache, putRootFH(), op{nfs4.OpTestStateid, testStateids(make([]nfs4.Stateid, 2000)), nil})

	c.must(nfs4.OK, op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
	c.must(nfs4.ErrCompleteAlready, op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
	c.must(nfs4.ErrNotOnlyOp, op{nfs4.OpDestroySession, &c.sess, nil}, putRootFH())
	c.must(nfs4.OK, op{nfs4.OpDestroySession, &c.sess, nil})
	c.must(nfs4.ErrBadSession)
	must(nfs4.OK, op{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: c.id}, nil})
	must(nfs4.ErrStaleClientID, op{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: c.id}, nil})
	if n := len(s.clients.records); n != 0 || s.clients.client(c.id) != nil {
		t.Errorf("%d clients are left", n)
	}
}

// A server that starts again is the same one to its clients; one with other
// stores is not.
func TestServerOwner(t *testing.T) {
	owner := func(store string) string {
		s, err := NewServer(Config{Exports: newTable(t, exportOf(newStore(t, store), "ramdisk"))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Shutdown(t.Context()) })
		var ex nfs4.ExchangeIDRes
		if status, _ := send4(t, s, nfs4.Minor1, exchangeID("one", 1, &ex)); status != nfs4.OK {
			t.Fatal(status)
		}
		if !bytes.Equal(ex.ServerMajor, ex.Scope) || len(ex.Scope) == 0 {
			t.Errorf("server owner %x, scope %x", ex.ServerMajor, ex.Scope)
		}
		return string(ex.ServerMajor)
	}
	if a, b := owner("a"), owner("a"); a != b {
		t.Errorf("server owner %x, and after a restart %x", a, b)
	}
	if a, b := owner("a"), owner("b"); a == b {
		t.Errorf("two stores have one server owner, %x", a)
	}
}

// Whatever address a client comes by, and by however many connections, it finds
// one server and its session there (RFC 8881 section 2.10.5). Another port may be
// another server.
func TestTrunking(t *testing.T) {
	r := start(t, nil)
	listen := func(addr string) string {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		go r.s.Serve(believing{l})
		return l.Addr().String()
	}
	_, port, _ := net.SplitHostPort(r.addr)
	owner := func(c *client.Client) string {
		t.Helper()
		var ex nfs4.ExchangeIDRes
		if err := c.Compound(nfs4.Minor2, client.Op{Op: nfs4.OpExchangeID, Args: &nfs4.ExchangeIDArgs{Verf: 1, Owner: []byte("one")}, Res: &ex}); err != nil {
			t.Fatal(err)
		}
		return string(ex.ServerMajor)
	}
	sess, err := r.one.Session(client.SessionOptions{Owner: "one", Verf: 1})
	if err != nil {
		t.Fatal(err)
	}
	first := owner(r.one)
	for n, tt := range []struct {
		addr string
		same bool
	}{
		{r.addr, true},
		{listen(net.JoinHostPort("127.0.0.2", port)), true},
		{listen("127.0.0.1:0"), false},
	} {
		r.addr = tt.addr
		other := r.dial(client.Options{})
		if got := owner(other); (got == first) != tt.same {
			t.Errorf("%s: server owner %x, by %s it is %x", tt.addr, got, r.one.Conn().RemoteAddr(), first)
		}
		seq := nfs4.SequenceArgs{Session: sess.Info.Session, Seq: uint32(2 + n)} // RECLAIM_COMPLETE was 1
		if err := other.Compound(nfs4.Minor2, client.Op{Op: nfs4.OpSequence, Args: &seq, Res: new(nfs4.SequenceRes)}); err != nil {
			t.Errorf("%s: %v", tt.addr, err)
		}
	}
}

// testStateids encodes TEST_STATEID4args.
type testStateids []nfs4.Stateid

func (v testStateids) Encode(w *xdr.Writer) {
	w.Uint32(uint32(len(v)))
	for i := range v {
		v[i].Encode(w)
	}
}

// opening is an OPEN by a name.
func opening(owner, name string, access, deny uint32, res *nfs4.OpenRes) op {
	return op{nfs4.OpOpen, &nfs4.OpenArgs{Access: access, Deny: deny, Owner: nfs4.Owner{Owner: []byte(owner)}, Name: name}, res}
}

// creating is the same for a file that need not be there.
func creating(name string, mode nfs4.CreateMode, verf uint64, res *nfs4.OpenRes) op {
	return op{nfs4.OpOpen, &nfs4.OpenArgs{
		Access: nfs4.ShareBoth, Owner: nfs4.Owner{Owner: []byte("creator")}, Name: name,
		Create: true, Mode: mode, Verf: verf,
	}, res}
}

func closing(sid nfs4.Stateid) op {
	return op{nfs4.OpClose, &nfs4.CloseArgs{Stateid: sid}, new(nfs4.StateidArgs)}
}

func write4(sid nfs4.Stateid, data string) op {
	return op{nfs4.OpWrite, &nfs4.WriteArgs{Stateid: sid, Data: []byte(data)}, new(nfs4.WriteRes)}
}

func read4(sid nfs4.Stateid, res *nfs4.ReadRes) op {
	return op{nfs4.OpRead, &nfs4.ReadArgs{Stateid: sid, Count: 100}, res}
}

func TestOpen(t *testing.T) {
	s, _, file := newServer(t)
	one, two := open4(t, s, "one", 1), open4(t, s, "two", 1)
	const r, w, both = nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth
	var res, more nfs4.OpenRes
	var read nfs4.ReadRes

	// What OPEN refuses.
	for _, tt := range []struct {
		what string
		op   op
		want nfs4.Status
	}{
		{"no access", opening("o", "f", 0, 0, nil), nfs4.ErrInval},
		{"an access that there is not", opening("o", "f", 4, 0, nil), nfs4.ErrInval},
		{"a deny that there is not", opening("o", "f", r, 4, nil), nfs4.ErrInval},
		{"no file", opening("o", "none", r, 0, nil), nfs4.ErrNoEnt},
		{"no name", opening("o", "", r, 0, nil), nfs4.ErrInval},
		{"a name that is there", creating("f", nfs4.Guarded, 0, nil), nfs4.ErrExist},
		{"a file that another made", creating("f", nfs4.Exclusive41, 7, nil), nfs4.ErrExist},
		{"from before a restart", op{nfs4.OpOpen, &nfs4.OpenArgs{Access: r, Claim: nfs4.ClaimPrevious}, nil}, nfs4.ErrNoGrace},
		{"by a delegation", op{nfs4.OpOpen, &nfs4.OpenArgs{Access: r, Claim: nfs4.ClaimDelegCur, Name: "f"}, nil}, nfs4.ErrBadStateid},
		{"the directory", op{nfs4.OpOpen, &nfs4.OpenArgs{Access: r, Claim: nfs4.ClaimFH}, nil}, nfs4.ErrIsDir},
	} {
		if status, _ := one.run(putRootFH(), tt.op); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}

	// A client that has not said that it reclaims nothing waits.
	var ex nfs4.ExchangeIDRes
	var made nfs4.CreateSessionRes
	send4(t, s, nfs4.Minor1, exchangeID("three", 1, &ex))
	send4(t, s, nfs4.Minor1, createSession(ex.ClientID, ex.Seq, &made))
	three := &client4Test{t: t, s: s, id: ex.ClientID, sess: made.Session}
	three.must(nfs4.ErrGrace, putRootFH(), opening("o", "f", r, 0, nil))

	// Open, use by the stateid and as the current one, close.
	one.must(nfs4.OK, putRootFH(), opening("o", "f", w, 0, &res), write4(nfs4.CurrentStateid, "text"))
	one.must(nfs4.OK, putFH(file), read4(res.Stateid, &read)) // as some have to, to write part of a page
	one.must(nfs4.OK, putRootFH(), opening("o", "f", r, 0, &more))
	if more.Stateid.Other != res.Stateid.Other || more.Stateid.Seq != res.Stateid.Seq+1 {
		t.Errorf("one owner's opens of a file are %v and %v", res.Stateid, more.Stateid)
	}
	one.must(nfs4.ErrOldStateid, putFH(file), read4(res.Stateid, &read))
	one.must(nfs4.OK, putFH(file), read4(more.Stateid, &read))
	if string(read.Data) != "text" {
		t.Errorf("read %q", read.Data)
	}
	two.must(nfs4.ErrBadStateid, putFH(file), read4(more.Stateid, &read))
	one.must(nfs4.ErrBadStateid, putRootFH(), closing(more.Stateid))

	// Share modes, and a downgrade.
	two.must(nfs4.ErrShareDenied, putRootFH(), opening("o", "f", r, w, nil))
	downgrade := func(access uint32, res *nfs4.StateidArgs) op {
		return op{nfs4.OpOpenDowngrade, &nfs4.OpenDowngradeArgs{Stateid: more.Stateid, Access: access}, res}
	}
	var down nfs4.StateidArgs
	one.must(nfs4.OK, putFH(file), downgrade(r, &down))
	more.Stateid = down.Stateid
	one.must(nfs4.ErrInval, putFH(file), downgrade(both, &down))
	one.must(nfs4.ErrOpenMode, putFH(file), write4(more.Stateid, "x"))
	var denies nfs4.OpenRes
	two.must(nfs4.OK, putRootFH(), opening("o", "f", r, w, &denies))
	one.must(nfs4.ErrShareDenied, putRootFH(), opening("o", "f", w, 0, nil))
	two.must(nfs4.OK, putFH(file), closing(denies.Stateid))
	one.must(nfs4.OK, putFH(file), closing(more.Stateid))
	one.must(nfs4.ErrBadStateid, putFH(file), closing(more.Stateid))

	// Files that are made.
	one.must(nfs4.OK, putRootFH(), creating("g", nfs4.Exclusive41, 7, &res), closing(nfs4.CurrentStateid))
	one.must(nfs4.OK, putRootFH(), creating("g", nfs4.Exclusive41, 7, &res), closing(nfs4.CurrentStateid))
	one.must(nfs4.OK, putRootFH(), creating("h", nfs4.Guarded, 0, &res), closing(nfs4.CurrentStateid))
	one.must(nfs4.OK, putRootFH(), creating("h", nfs4.Unchecked, 0, &res))
	one.must(nfs4.OK, putRootFH(), op{nfs4.OpRemove, &nfs4.Name{Name: "h"}, new(nfs4.DirRes)})

	// Of what UNCHECKED asks for, a file that is there gets only a size of 0.
	var size nfs4.Fattr
	sized := func(n uint64, res *nfs4.OpenRes) op {
		o := creating("g", nfs4.Unchecked, 0, res)
		o.args.(*nfs4.OpenArgs).Attr = nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: uint64s{n}.bytes()}
		return o
	}
	one.must(nfs4.OK, putRootFH(), opening("o", "g", w, 0, &res), write4(nfs4.CurrentStateid, "text"), closing(nfs4.CurrentStateid))
	for _, tt := range []struct {
		asked, becomes uint64
		set            nfs4.Bitmap
	}{{2, 4, nfs4.Bitmap{}}, {9, 4, nfs4.Bitmap{}}, {0, 0, nfs4.Bits(nfs4.AttrSize)}} {
		one.must(nfs4.OK, putRootFH(), sized(tt.asked, &res), getAttr(&size, nfs4.AttrSize), closing(nfs4.CurrentStateid))
		if !bytes.Equal(size.Vals, uint64s{tt.becomes}.bytes()) || res.Set != tt.set {
			t.Errorf("OPEN with size %d: %x, said to have set %v; want %d, %v", tt.asked, size.Vals, res.Set, tt.becomes, tt.set)
		}
	}

	// The client starts anew: what it had open is closed.
	if n := s.clients.count.Load(); n != 1 {
		t.Errorf("%d states, want 1", n)
	}
	open4(t, s, "one", 2)
	one.must(nfs4.ErrBadSession)
	if n := s.clients.count.Load(); n != 0 {
		t.Errorf("%d states are left", n)
	}
}

// Who may execute a file has to read it for that. There is no way to say so in
// OPEN, and READ is not asked again.
func TestOpenToExecute(t *testing.T) {
	s, root, file := newServer(t)
	mode := func(v uint32) op {
		return op{nfs4.OpSetAttr, &nfs4.SetAttrArgs{Attr: nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrMode), Vals: binary.BigEndian.AppendUint32(nil, v)}}, new(nfs4.SetAttrRes)}
	}
	owner, user := open4(t, s, "root", 1), open4(t, s, "user", 1)
	user.uid = 1000
	for _, tt := range []struct {
		mode, access uint32
		want         nfs4.Status
	}{
		{0o444, nfs4.ShareRead, nfs4.OK},
		{0o111, nfs4.ShareRead, nfs4.OK},
		{0o110, nfs4.ShareRead, nfs4.ErrAccess},
		{0o222, nfs4.ShareRead, nfs4.ErrAccess},
		{0o333, nfs4.ShareBoth, nfs4.OK},
		{0o111, nfs4.ShareBoth, nfs4.ErrAccess},
		{0o111, nfs4.ShareWrite, nfs4.ErrAccess},
		{0o222, nfs4.ShareWrite, nfs4.OK},
	} {
		owner.must(nfs4.OK, putFH(file), mode(tt.mode))
		ops := []op{putFH(root), opening("o", "f", tt.access, 0, new(nfs4.OpenRes))}
		if tt.want == nfs4.OK {
			if tt.access&nfs4.ShareRead != 0 {
				ops = append(ops, read4(nfs4.CurrentStateid, new(nfs4.ReadRes)))
			}
			ops = append(ops, closing(nfs4.CurrentStateid))
		}
		if status, _ := user.run(ops...); status != tt.want {
			t.Errorf("a file with mode %#o opened for %d: %v, want %v", tt.mode, tt.access, status, tt.want)
		}
	}
}

// A client is told which values of OPEN's arguments the server makes something of
// (RFC 9754 section 3), and the others are refused.
func TestOpenArguments(t *testing.T) {
	s, _, file := newServer(t)
	c := open4(t, s, "one", 1)
	var attr nfs4.Fattr
	c.must(nfs4.OK, putFH(file), getAttr(&attr, nfs4.AttrOpenArguments))
	r := xdr.NewReader(attr.Vals)
	var access, deny, want, claim, mode nfs4.Bitmap
	for _, b := range []*nfs4.Bitmap{&access, &deny, &want, &claim, &mode} {
		b.Decode(&r)
	}
	if r.Err() != nil || r.Len() != 0 {
		t.Fatalf("%v, %d bytes left of %x", r.Err(), r.Len(), attr.Vals)
	}
	const wantAt = 8 // where the values of what is wanted begin in the access
	tell := func(what string, in *nfs4.Bitmap, n uint, args nfs4.OpenArgs) {
		t.Helper()
		args.Owner.Owner = []byte("o")
		var res nfs4.OpenRes
		dir, name := putRootFH(), "f"
		switch {
		case args.Create:
			name = fmt.Sprint("made ", n)
		case args.Claim != nfs4.ClaimNull:
			dir = putFH(file)
		}
		args.Name = name
		var fh nfs4.FH
		status, _ := c.run(dir, op{nfs4.OpOpen, &args, &res}, getFH(&fh))
		refused := status == nfs4.ErrInval || status == nfs4.ErrNotSupp || status == nfs4.ErrReclaimBad
		if in.Has(n) == refused {
			t.Errorf("%s %d: %v, told that it is known: %v", what, n, status, in.Has(n))
		}
		if status == nfs4.OK {
			c.must(nfs4.OK, putFH(fh.FH), closing(res.Stateid))
		}
	}
	for n := range uint(5) {
		tell("access", &access, n, nfs4.OpenArgs{Access: uint32(n)})
		tell("deny", &deny, n, nfs4.OpenArgs{Access: nfs4.ShareRead, Deny: uint32(n)})
	}
	for n := range uint(4) {
		tell("mode", &mode, n, nfs4.OpenArgs{Access: nfs4.ShareRead, Create: true, Mode: nfs4.CreateMode(n)})
	}
	for n := range uint(7) {
		tell("claim", &claim, n, nfs4.OpenArgs{Access: nfs4.ShareRead, Claim: nfs4.Claim(n)})
	}
	for _, n := range []uint{3, 4, 5} {
		tell("want", &want, n, nfs4.OpenArgs{Access: nfs4.ShareRead | uint32(n)<<wantAt})
	}
	// Delegated time stamps, a delegation instead of an open (sections 5 and 4).
	for _, n := range []uint{20, 21} {
		tell("want", &want, n, nfs4.OpenArgs{Access: nfs4.ShareRead | 1<<n})
	}
}

func TestLock(t *testing.T) {
	s, _, file := newServer(t)
	one, two := open4(t, s, "one", 1), open4(t, s, "two", 1)
	var first, second nfs4.OpenRes
	one.must(nfs4.OK, putRootFH(), opening("o", "f", nfs4.ShareBoth, 0, &first))
	two.must(nfs4.OK, putRootFH(), opening("o", "f", nfs4.ShareRead, 0, &second))
	lock := func(sid nfs4.Stateid, owner string, kind nfs4.LockType, off, n uint64, res *nfs4.StateidArgs) op {
		return op{nfs4.OpLock, &nfs4.LockArgs{
			Type: kind, Offset: off, Length: n, Stateid: sid,
			NewOwner: owner != "", Owner: nfs4.Owner{Owner: []byte(owner)},
		}, res}
	}
	test := func(kind nfs4.LockType, off, n uint64) op {
		return op{nfs4.OpLockT, &nfs4.LockTArgs{Type: kind, Offset: off, Length: n, Owner: nfs4.Owner{Owner: []byte("p")}}, nil}
	}
	unlock := func(sid nfs4.Stateid, off, n uint64, res *nfs4.StateidArgs) op {
		return op{nfs4.OpLockU, &nfs4.LockUArgs{Type: nfs4.LockRead, Stateid: sid, Offset: off, Length: n}, res}
	}
	free := func(sid nfs4.Stateid) op { return op{nfs4.OpFreeStateid, &nfs4.StateidArgs{Stateid: sid}, nil} }
	const end = 1<<64 - 1
	var held, theirs nfs4.StateidArgs
	one.must(nfs4.OK, putFH(file), lock(first.Stateid, "p", nfs4.LockWrite, 0, 10, &held))
	for _, tt := range []struct {
		what string
		c    *client4Test
		op   op
		want nfs4.Status
	}{
		{"a range of nothing", one, lock(first.Stateid, "p", nfs4.LockRead, 0, 0, nil), nfs4.ErrInval},
		{"a range past the end", one, lock(first.Stateid, "p", nfs4.LockRead, 2, end-1, nil), nfs4.ErrInval},
		{"by a lock's stateid as an open's", one, lock(held.Stateid, "p", nfs4.LockRead, 0, 1, nil), nfs4.ErrBadStateid},
		{"for writing, by an open for reading", two, lock(second.Stateid, "p", nfs4.LockWrite, 0, 1, nil), nfs4.ErrOpenMode},
		{"what another has locked", two, lock(second.Stateid, "p", nfs4.LockRead, 9, end, nil), nfs4.ErrDenied},
		{"a test of it", two, test(nfs4.LockRead, 9, 1), nfs4.ErrDenied},
		{"a test of what is free", two, test(nfs4.LockWrite, 10, end), nfs4.OK},
		{"a test of one's own", one, test(nfs4.LockWrite, 0, end), nfs4.OK},
		{"what is free", two, lock(second.Stateid, "p", nfs4.LockRead, 10, end, &theirs), nfs4.OK},
		{"a stateid with locks", one, free(held.Stateid), nfs4.ErrLocksHeld},
		{"a stateid of an open", one, free(first.Stateid), nfs4.ErrLocksHeld},
		{"a read by a lock's stateid", one, read4(held.Stateid, new(nfs4.ReadRes)), nfs4.OK},
		{"an unlock by an open's stateid", one, unlock(first.Stateid, 0, 5, nil), nfs4.ErrBadStateid},
		{"an unlock", one, unlock(held.Stateid, 0, end, &held), nfs4.OK},
		{"what is free now", two, lock(second.Stateid, "p", nfs4.LockRead, 0, 10, &theirs), nfs4.OK},
	} {
		if status, _ := tt.c.run(putFH(file), tt.op); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}
	one.must(nfs4.OK, free(held.Stateid))
	one.must(nfs4.ErrBadStateid, free(held.Stateid))
	one.must(nfs4.ErrDenied, putFH(file), test(nfs4.LockWrite, 0, 1))
	two.must(nfs4.OK, putFH(file), closing(second.Stateid))
	one.must(nfs4.OK, putFH(file), test(nfs4.LockWrite, 0, end))
	two.must(nfs4.ErrBadStateid, putFH(file), unlock(theirs.Stateid, 0, 1, nil))
	one.must(nfs4.OK, putFH(file), closing(first.Stateid))
	if n := s.clients.count.Load(); n != 0 {
		t.Errorf("%d states are left", n)
	}
}

// A client that is not heard of loses what it holds, a bit later than itself.
func TestExpiry(t *testing.T) {
	for _, tt := range []struct {
		what  string
		holds bool
		idle  time.Duration
		gone  bool
	}{
		{"in time", false, DefaultClientExpiry, false},
		{"late", false, DefaultClientExpiry + 2*time.Second, true},
		{"late with a file open", true, DefaultClientExpiry + 2*time.Second, false},
		{"very late with a file open", true, 2*DefaultClientExpiry + 2*time.Second, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := new(Server)
			s.now.Store(int64(tt.idle / time.Second))
			cs := newClients(s, int64(DefaultClientExpiry/time.Second), 1<<20)
			i, err := newStore(t, t.Name()).Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile, Open: &memstore.OpenArgs{Access: memstore.AccessRead}})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Open.Close()
			cl := &client4{s: cs, owner: clientName{name: "one"}, host: new(host4), owners: make(map[string]*openOwner)}
			cl.id = uint64(cs.all.number())
			cs.all.put(uint32(cl.id), cl)
			cs.records[cl.owner] = &record{unconfirmed: cl}
			cs.enter(cl)
			cs.confirm(cl)
			if tt.holds {
				o := cl.openOwner([]byte("o"))
				cl.add(&state{client: cl, open: i.Open, owner: o})
				o.leave()
			}
			cs.sweep()
			if gone := cs.client(cl.id) == nil; gone != tt.gone || gone && cs.count.Load() != 0 {
				t.Errorf("dropped: %v, %d states", gone, cs.count.Load())
			}
			if may := cl.queue == &cs.late; may != (tt.holds && !tt.gone) {
				t.Errorf("it may be dropped for others: %v", may)
			}
		})
	}
}

// What minor version 2 has added, on the wire and in the store.
func TestCopies(t *testing.T) {
	s, _, _ := newServer(t)
	e := s.cfg.Exports.All()[0]
	c := open4(t, s, "copies", 1)
	var a, b nfs4.FH
	var made nfs4.OpenRes
	c.must(nfs4.OK, putRootFH(), creating("a", nfs4.Unchecked, 0, &made), getFH(&a))
	c.must(nfs4.OK, putRootFH(), creating("b", nfs4.Unchecked, 0, &made), getFH(&b))
	a.FH, b.FH = bytes.Clone(a.FH), bytes.Clone(b.FH)
	const unit = 64 << 10
	data := bytes.Repeat([]byte("0123456789abcdef"), 2*unit/16)
	i, err := e.Root.Lookup(memstore.Root(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.WriteAt(memstore.Root(), nil, data, 0); err != nil {
		t.Fatal(err)
	}
	to, err := e.Root.Lookup(memstore.Root(), "b")
	if err != nil {
		t.Fatal(err)
	}
	saved := func(ops ...op) []op {
		return append([]op{putFH(a.FH), {nfs4.OpSaveFH, &nfs4.Void{}, nil}, putFH(b.FH)}, ops...)
	}
	var copied nfs4.CopyRes
	var seek, last nfs4.SeekRes
	for _, tt := range []struct {
		name string
		ops  []op
		want nfs4.Status
	}{
		{"clone", saved(op{nfs4.OpClone, &nfs4.CloneArgs{ToOffset: unit}, nil}), nfs4.OK},
		{"clone of more than there is", saved(op{nfs4.OpClone, &nfs4.CloneArgs{FromOffset: unit, Count: 2 * unit}, nil}), nfs4.ErrInval},
		{"copy", saved(op{nfs4.OpCopy, &nfs4.CopyArgs{CloneArgs: nfs4.CloneArgs{ToOffset: 3 * unit, Count: 3 * unit}, Synchronous: true}, &copied}), nfs4.OK},
		{"copy in one file", []op{putFH(a.FH), saveFH(), {nfs4.OpCopy, &nfs4.CopyArgs{CloneArgs: nfs4.CloneArgs{ToOffset: 3 * unit, Count: unit}}, nil}}, nfs4.ErrInval},
		{"copy behind the end", saved(op{nfs4.OpCopy, &nfs4.CopyArgs{CloneArgs: nfs4.CloneArgs{FromOffset: 3 * unit, Count: 1}}, nil}), nfs4.ErrInval},
		{"allocate", []op{putFH(b.FH), {nfs4.OpAllocate, &nfs4.RangeArgs{Offset: 5 * unit, Length: unit}, nil}}, nfs4.OK},
		{"allocate nothing", []op{putFH(b.FH), {nfs4.OpAllocate, &nfs4.RangeArgs{Offset: 5 * unit}, nil}}, nfs4.ErrInval},
		{"punch", []op{putFH(b.FH), {nfs4.OpDeallocate, &nfs4.RangeArgs{Offset: unit, Length: unit}, nil}}, nfs4.OK},
		{"data", []op{putFH(b.FH), {nfs4.OpSeek, &nfs4.SeekArgs{What: nfs4.SeekData}, &seek}}, nfs4.OK},
		{"punch the end", []op{putFH(b.FH), {nfs4.OpDeallocate, &nfs4.RangeArgs{Offset: 5 * unit, Length: unit}, nil}}, nfs4.OK},
		{"data in the last hole", []op{putFH(b.FH), {nfs4.OpSeek, &nfs4.SeekArgs{Offset: 5*unit + 1, What: nfs4.SeekData}, &last}}, nfs4.OK},
		{"data behind the end", []op{putFH(b.FH), {nfs4.OpSeek, &nfs4.SeekArgs{Offset: 6 * unit, What: nfs4.SeekData}, nil}}, nfs4.ErrNXIO},
		{"a hole behind the end", []op{putFH(b.FH), {nfs4.OpSeek, &nfs4.SeekArgs{Offset: 6 * unit, What: nfs4.SeekHole}, nil}}, nfs4.ErrNXIO},
		{"something else", []op{putFH(b.FH), {nfs4.OpSeek, &nfs4.SeekArgs{What: 2}, nil}}, nfs4.ErrUnionNotSupp},
		{"set an attribute", []op{putFH(b.FH), {nfs4.OpSetXattr, &nfs4.SetXattrArgs{Name: "x", Value: []byte("v")}, new(nfs4.ChangeInfo)}}, nfs4.OK},
		{"make one that is there", []op{putFH(b.FH), {nfs4.OpSetXattr, &nfs4.SetXattrArgs{Option: nfs4.SetXattrCreate, Name: "x"}, nil}}, nfs4.ErrExist},
		{"replace one that is not", []op{putFH(b.FH), {nfs4.OpSetXattr, &nfs4.SetXattrArgs{Option: nfs4.SetXattrReplace, Name: "y"}, nil}}, nfs4.ErrNoXattr},
		{"get one that is not there", []op{putFH(b.FH), {nfs4.OpGetXattr, &nfs4.Name{Name: "y"}, nil}}, nfs4.ErrNoXattr},
		{"list into nothing", []op{putFH(b.FH), {nfs4.OpListXattrs, &nfs4.ListXattrsArgs{MaxCount: 16}, nil}}, nfs4.ErrTooSmall},
		{"remove one", []op{putFH(b.FH), {nfs4.OpRemoveXattr, &nfs4.Name{Name: "x"}, new(nfs4.ChangeInfo)}}, nfs4.OK},
		{"advise", []op{putFH(b.FH), {nfs4.OpIOAdvise, &nfs4.IOAdviseArgs{}, new(nfs4.Bitmap)}}, nfs4.OK},
	} {
		if status, _ := c.run(tt.ops...); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, status, tt.want)
		}
	}
	if copied.Write.Count != 2*unit || !copied.Synchronous {
		t.Errorf("copied %+v", copied)
	}
	if last.Offset != 6*unit || !last.EOF {
		t.Errorf("behind the last data is %+v", last)
	}
	if seek.Offset != 2*unit || seek.EOF {
		t.Errorf("data is at %+v", seek)
	}
	want := slices.Concat(make([]byte, 2*unit), data[unit:], data, make([]byte, unit))
	got := make([]byte, len(want)+1)
	n, _, _, err := to.ReadAt(memstore.Root(), nil, got, 0)
	if err != nil || !bytes.Equal(got[:n], want) {
		t.Errorf("the file has %d bytes, want %d, which are other ones; %v", n, len(want), err)
	}
	if err := e.Store.Check(); err != nil {
		t.Error(err)
	}
}
