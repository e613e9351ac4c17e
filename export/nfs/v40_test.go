package nfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// client40Test is a client of minor version 0.
type client40Test struct {
	t   testing.TB
	s   *Server
	nc  net.Conn // nil: each COMPOUND has a connection of its own
	uid uint32
	xid uint32
	id  uint64
}

// open40 makes a client that may open files.
func open40(t testing.TB, s *Server, name string, verf uint64) *client40Test {
	t.Helper()
	c := &client40Test{t: t, s: s, xid: 1000}
	c.begin(name, verf)
	return c
}

// begin makes the client known.
func (c *client40Test) begin(name string, verf uint64) {
	c.t.Helper()
	var res nfs4.ClientConfirm
	c.must(nfs4.OK, setClientID(name, verf, &res))
	c.must(nfs4.OK, confirmClientID(res))
	c.id = res.ID
}

func setClientID(name string, verf uint64, res *nfs4.ClientConfirm) op {
	return op{nfs4.OpSetClientID, &nfs4.SetClientIDArgs{Verf: verf, ID: []byte(name), CBAddr: nfs4.ClientAddr{NetID: "tcp", Addr: "127.0.0.1.3.4"}}, res}
}

func confirmClientID(c nfs4.ClientConfirm) op { return op{nfs4.OpSetClientIDConfirm, &c, nil} }

func renew(id uint64) op { return op{nfs4.OpRenew, &nfs4.ClientID{ID: id}, nil} }

// run executes one COMPOUND.
func (c *client40Test) run(ops ...op) (nfs4.Status, int) {
	c.t.Helper()
	c.xid++
	return c.again(ops...)
}

// again sends the last COMPOUND once more, or another one as if it was that.
func (c *client40Test) again(ops ...op) (nfs4.Status, int) {
	c.t.Helper()
	call := call4(c.xid, nfs4.Minor0, ops...)
	if c.uid != 0 {
		const uid = 24 + 8 + 4 + 4 + 4 // header, flavor, length, stamp, "test"
		binary.BigEndian.PutUint32(call[uid:], c.uid)
	}
	if c.nc != nil {
		if _, err := c.nc.Write(calls(call)); err != nil {
			c.t.Fatal(err)
		}
		reply, err := client.ReadRecord(c.nc)
		if err != nil {
			c.t.Fatal(err)
		}
		return results4(c.t, reply, ops...)
	}
	replies, err := converse(c.t, c.s, bytes.NewReader(calls(call)))
	if len(replies) != 1 {
		c.t.Fatalf("%d replies (%v)", len(replies), err)
	}
	return results4(c.t, replies[0], ops...)
}

func (c *client40Test) must(want nfs4.Status, ops ...op) {
	c.t.Helper()
	if status, n := c.run(ops...); status != want {
		c.t.Errorf("%v after %d operations, want %v", status, n, want)
	}
}

// opening is an OPEN by a name, of an owner and as its operation number seq.
func (c *client40Test) opening(owner string, seq uint32, name string, access, deny uint32, res *nfs4.OpenRes) op {
	return op{nfs4.OpOpen, &nfs4.OpenArgs{
		Seq: seq, Access: access, Deny: deny, Owner: nfs4.Owner{Client: c.id, Owner: []byte(owner)}, Name: name,
	}, res}
}

func confirming(sid nfs4.Stateid, seq uint32, res *nfs4.StateidArgs) op {
	return op{nfs4.OpOpenConfirm, &nfs4.OpenConfirmArgs{Stateid: sid, Seq: seq}, res}
}

func closing40(sid nfs4.Stateid, seq uint32) op {
	return op{nfs4.OpClose, &nfs4.CloseArgs{Seq: seq, Stateid: sid}, new(nfs4.StateidArgs)}
}

// open opens a file for reading and writing by a new owner, whose next number
// is 3.
func (c *client40Test) open(owner, name string) nfs4.Stateid {
	c.t.Helper()
	var res nfs4.OpenRes
	var sid nfs4.StateidArgs
	c.must(nfs4.OK, putRootFH(), c.opening(owner, 1, name, nfs4.ShareBoth, 0, &res))
	c.must(nfs4.OK, putRootFH(), lookup(name), confirming(res.Stateid, 2, &sid))
	if res.Flags&nfs4.OpenConfirm == 0 {
		c.t.Fatalf("a new owner need not confirm: flags %#x", res.Flags)
	}
	return sid.Stateid
}

// What exists in minor version 0.
func TestMinor0(t *testing.T) {
	s, _, file := newServer(t)
	for o := nfs4.Op(0); o < nfs4.OpEnd+1; o++ {
		c := &client40Test{t: t, s: s, xid: uint32(o) * 10}
		want := nfs4.OK
		switch {
		case o < nfs4.OpAccess || o > nfs4.OpReleaseLockOwner:
			want = nfs4.ErrOpIllegal
		case o == nfs4.OpDelegPurge || o == nfs4.OpOpenAttr:
			want = nfs4.ErrNotSupp
		}
		arg := bare(o)
		if o == nfs4.OpGetFH {
			arg.res = new(nfs4.FH)
		}
		status, n := c.run(putFH(file), arg)
		switch {
		case n != 2:
			t.Errorf("%v: %v after %d operations", o, status, n)
		case want == nfs4.OK && (status == nfs4.ErrOpIllegal || status == nfs4.ErrNotSupp), want != nfs4.OK && status != want:
			t.Errorf("%v: %v, want %v", o, status, want)
		}
	}
	for _, o := range []nfs4.Op{nfs4.OpSetClientID, nfs4.OpSetClientIDConfirm, nfs4.OpRenew, nfs4.OpOpenConfirm, nfs4.OpReleaseLockOwner} {
		if status, _ := run4(t, s, 2, putRootFH(), bare(o)); status != nfs4.ErrNotSupp {
			t.Errorf("%v in minor version 2: %v", o, status)
		}
	}

	c := &client40Test{t: t, s: s, xid: 5000}
	many := slices.Repeat([]op{putRootFH()}, maxOps)
	c.must(nfs4.OK, many...)
	if status, n := c.run(append(many, putRootFH())...); status != nfs4.ErrResource || n != maxOps+1 {
		t.Errorf("too many operations: %v after %d", status, n)
	}
	c.must(nfs4.OK, op{nfs4.OpPutPubFH, nil, nil}, op{nfs4.OpSecInfo, &nfs4.Name{Name: "f"}, new(flavors)}, lookup("f"))
	c.must(nfs4.ErrRestoreFH, restoreFH())
	c.must(nfs4.ErrBadStateid, putFH(file), read4(nfs4.CurrentStateid, nil))
	c.must(nfs4.OK, putFH(file), read4(nfs4.AnonymousStateid, new(nfs4.ReadRes)), read4(nfs4.BypassStateid, new(nfs4.ReadRes)))
}

// flavors is SECINFO4resok without RPCSEC_GSS.
type flavors []uint32

func (f *flavors) Decode(r *xdr.Reader) {
	for range r.Count(10, 4) {
		*f = append(*f, r.Uint32())
	}
}

// The cases of RFC 7530 sections 16.33.5 and 16.34.5.
func TestSetClientID(t *testing.T) {
	s, _, _ := newServer(t)
	c := &client40Test{t: t, s: s, xid: 1}
	other := &client40Test{t: t, s: s, xid: 5000, uid: 1000}
	set := func(c *client40Test, verf uint64) (res nfs4.ClientConfirm) {
		t.Helper()
		c.must(nfs4.OK, setClientID("name", verf, &res))
		return res
	}
	first := set(c, 1)
	c.must(nfs4.ErrStaleClientID, renew(first.ID))
	c.must(nfs4.ErrStaleClientID, confirmClientID(nfs4.ClientConfirm{ID: first.ID, Verf: first.Verf + 1}))
	c.must(nfs4.ErrStaleClientID, confirmClientID(nfs4.ClientConfirm{ID: first.ID ^ 1<<60, Verf: first.Verf}))
	other.must(nfs4.ErrClidInUse, confirmClientID(first))

	// Not confirmed: the next takes its place.
	second := set(c, 1)
	if second.ID == first.ID || second.Verf == first.Verf {
		t.Errorf("two clients are %x and %x", first, second)
	}
	c.must(nfs4.ErrStaleClientID, confirmClientID(first))
	c.must(nfs4.OK, confirmClientID(second))
	c.must(nfs4.OK, confirmClientID(second)) // a retransmission
	c.must(nfs4.OK, renew(second.ID))

	// The same client: the id stays, for another way to call it back.
	update := set(c, 1)
	if update.ID != second.ID || update.Verf == second.Verf {
		t.Errorf("a client is %x, and with another callback %x", second, update)
	}
	c.must(nfs4.OK, confirmClientID(second))
	c.must(nfs4.OK, confirmClientID(update))
	c.must(nfs4.OK, confirmClientID(update))
	c.must(nfs4.ErrStaleClientID, confirmClientID(second))

	// Another has the name while the client holds something.
	c.id = update.ID
	sid := c.open("o", "f")
	if status, _ := other.run(setClientID("name", 9, nil)); status != nfs4.ErrClidInUse {
		t.Errorf("a name in use: %v", status)
	}

	// The client starts anew, and what it holds goes when that is confirmed.
	anew := set(c, 2)
	if anew.ID == update.ID {
		t.Errorf("a client that started anew is %x as before", anew.ID)
	}
	c.must(nfs4.OK, renew(update.ID))
	c.must(nfs4.OK, putRootFH(), lookup("f"), read4(sid, new(nfs4.ReadRes)))
	c.must(nfs4.OK, confirmClientID(anew))
	c.must(nfs4.ErrExpired, renew(update.ID))
	c.must(nfs4.ErrExpired, putRootFH(), lookup("f"), read4(sid, nil))
	if n := s.clients.count.Load(); n != 0 {
		t.Errorf("%d states are left", n)
	}

	// Another may have the name of one that holds nothing.
	mine := set(other, 3)
	other.must(nfs4.OK, confirmClientID(mine))
	c.must(nfs4.ErrExpired, renew(anew.ID))

	// Minor versions 1 and 2 have other clients, of other names.
	one := open4(t, s, "name", 1)
	other.must(nfs4.OK, renew(mine.ID))
	c.must(nfs4.ErrStaleClientID, renew(one.id))
	one.must(nfs4.ErrStaleClientID, op{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: mine.ID}, nil})
	if status, _ := send4(t, s, nfs4.Minor1, createSession(mine.ID, 1, new(nfs4.CreateSessionRes))); status != nfs4.ErrStaleClientID {
		t.Errorf("a session of a client of minor version 0: %v", status)
	}
	c.must(nfs4.ErrStaleClientID, renew(1234))
}

func TestOpen40(t *testing.T) {
	s, _, file := newServer(t)
	c := open40(t, s, "one", 1)
	const r, w, both = nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth
	var res, again nfs4.OpenRes
	var sid, same nfs4.StateidArgs
	var fh nfs4.FH
	anyone := nfs4.Owner{Client: c.id, Owner: []byte("x")}

	// What OPEN refuses.
	for n, tt := range []struct {
		what string
		args nfs4.OpenArgs
		want nfs4.Status
	}{
		{"another client", nfs4.OpenArgs{Access: r, Owner: nfs4.Owner{Client: 1}, Name: "f"}, nfs4.ErrStaleClientID},
		{"no access", nfs4.OpenArgs{Owner: anyone, Name: "f"}, nfs4.ErrInval},
		{"what later versions want of delegations", nfs4.OpenArgs{Access: r | nfs4.WantNoDeleg, Owner: anyone, Name: "f"}, nfs4.ErrInval},
		{"a file without a name", nfs4.OpenArgs{Access: r, Owner: anyone, Claim: nfs4.ClaimFH}, nfs4.ErrBadXDR},
		{"a way to create of later versions", nfs4.OpenArgs{Access: r, Owner: anyone, Name: "g", Create: true, Mode: nfs4.Exclusive41}, nfs4.ErrBadXDR},
		{"from before a restart", nfs4.OpenArgs{Access: r, Owner: anyone, Claim: nfs4.ClaimPrevious}, nfs4.ErrNoGrace},
		{"by a delegation", nfs4.OpenArgs{Access: r, Owner: anyone, Claim: nfs4.ClaimDelegCur, Name: "f"}, nfs4.ErrBadStateid},
		{"by a delegation from before", nfs4.OpenArgs{Access: r, Owner: anyone, Claim: nfs4.ClaimDelegPrev, Name: "f"}, nfs4.ErrNotSupp},
		{"no file", nfs4.OpenArgs{Access: r, Owner: anyone, Name: "none"}, nfs4.ErrNoEnt},
	} {
		tt.args.Seq = uint32(n)
		if status, _ := c.run(putRootFH(), op{nfs4.OpOpen, &tt.args, nil}); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}

	// An owner begins with any number, and has to confirm it.
	first := c.opening("o", 77, "f", r, 0, &res)
	c.must(nfs4.OK, putRootFH(), first, getFH(&fh))
	if res.Flags != nfs4.OpenConfirm|nfs4.OpenLockTypePOSIX || res.Delegation.Type != nfs4.DelegateNone || !bytes.Equal(fh.FH, file) {
		t.Errorf("the first OPEN: %+v of %x", res, fh.FH)
	}
	c.must(nfs4.ErrBadStateid, putFH(file), read4(res.Stateid, nil))
	c.must(nfs4.ErrBadStateid, putFH(file), closing40(res.Stateid, 78))
	c.must(nfs4.OK, putRootFH(), c.opening("o", 77, "f", r, 0, &again), getFH(&fh))
	if again != res || !bytes.Equal(fh.FH, file) {
		t.Errorf("again it is %+v, want %+v", again, res)
	}
	// Another OPEN takes its place.
	c.must(nfs4.OK, putRootFH(), c.opening("o", 5, "f", both, 0, &again))
	c.must(nfs4.ErrBadStateid, putFH(file), confirming(res.Stateid, 6, nil))
	if n := s.clients.count.Load(); n != 2+1 { // both owners, one open
		t.Errorf("%d states and owners, want 3", n)
	}
	c.must(nfs4.ErrBadSeqid, putFH(file), confirming(again.Stateid, 7, nil))
	c.must(nfs4.OK, putFH(file), confirming(again.Stateid, 6, &sid))
	c.must(nfs4.OK, putFH(file), confirming(again.Stateid, 6, &same))
	if sid != same || sid.Stateid.Seq != again.Stateid.Seq+1 {
		t.Errorf("confirmed %v twice: %v, %v", again.Stateid, sid, same)
	}
	c.must(nfs4.ErrBadStateid, putFH(file), confirming(sid.Stateid, 7, nil))

	// The stateid's number counts.
	c.must(nfs4.ErrOldStateid, putFH(file), read4(again.Stateid, nil))
	old := sid.Stateid
	old.Seq = 0
	c.must(nfs4.ErrOldStateid, putFH(file), read4(old, nil))
	old.Seq = sid.Stateid.Seq + 1
	c.must(nfs4.ErrBadStateid, putFH(file), read4(old, nil))
	c.must(nfs4.OK, putFH(file), write4(sid.Stateid, "text"), read4(sid.Stateid, new(nfs4.ReadRes)))

	// An error counts too, and what is repeated has the same.
	c.must(nfs4.ErrNoEnt, putRootFH(), c.opening("o", 7, "none", r, 0, nil))
	c.must(nfs4.ErrNoEnt, putRootFH(), c.opening("o", 7, "none", r, 0, nil))
	c.must(nfs4.ErrBadSeqid, putRootFH(), c.opening("o", 7, "f", r, 0, nil))
	c.must(nfs4.ErrBadSeqid, putRootFH(), c.opening("o", 9, "f", r, 0, nil))
	c.must(nfs4.ErrNoFileHandle, c.opening("o", 8, "f", r, 0, nil))

	// Opens of one owner are one.
	c.must(nfs4.OK, putRootFH(), c.opening("o", 8, "f", r, 0, &res))
	if res.Stateid.Other != sid.Stateid.Other || res.Flags&nfs4.OpenConfirm != 0 {
		t.Errorf("the second OPEN is %+v, the first %v", res, sid)
	}
}

// Share modes, which bind their owner too, OPEN_DOWNGRADE and CLOSE.
func TestShare40(t *testing.T) {
	s, _, file := newServer(t)
	c := open40(t, s, "one", 1)
	const r, w, both = nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth
	var res, more nfs4.OpenRes
	var sid nfs4.StateidArgs
	downgrade := func(seq, access, deny uint32) op {
		return op{nfs4.OpOpenDowngrade, &nfs4.OpenDowngradeArgs{Stateid: sid.Stateid, Seq: seq, Access: access, Deny: deny}, &sid}
	}
	c.must(nfs4.OK, putRootFH(), c.opening("o", 1, "f", r, w, &res))
	c.must(nfs4.OK, putFH(file), confirming(res.Stateid, 2, &sid))
	c.must(nfs4.ErrShareDenied, putRootFH(), c.opening("o", 3, "f", w, 0, nil))
	c.must(nfs4.ErrShareDenied, putRootFH(), c.opening("o", 4, "f", r, r, nil))
	c.must(nfs4.ErrShareDenied, putRootFH(), c.opening("p", 1, "f", w, 0, nil))
	c.must(nfs4.OK, putRootFH(), c.opening("o", 5, "f", r, 0, &more))
	sid.Stateid = more.Stateid
	c.must(nfs4.ErrInval, putFH(file), downgrade(6, both, 0))
	c.must(nfs4.ErrInval, putFH(file), downgrade(7, 0, 0))
	c.must(nfs4.OK, putFH(file), downgrade(8, r, 0))
	was := sid.Stateid
	sid.Stateid = more.Stateid
	c.must(nfs4.OK, putFH(file), downgrade(8, r, 0)) // a retransmission
	if sid.Stateid != was {
		t.Errorf("a retransmission is answered %v, first it was %v", sid.Stateid, was)
	}
	c.must(nfs4.OK, putRootFH(), c.opening("o", 9, "f", w, 0, &more))

	// CLOSE, also twice.
	c.must(nfs4.ErrOldStateid, putFH(file), closing40(was, 10))
	c.must(nfs4.OK, putFH(file), closing40(more.Stateid, 11))
	c.must(nfs4.OK, putFH(file), closing40(more.Stateid, 11))
	c.must(nfs4.ErrBadStateid, putFH(file), read4(more.Stateid, nil))
	c.must(nfs4.ErrBadStateid, putFH(file), closing40(more.Stateid, 12))
	c.must(nfs4.OK, putFH(file), closing40(more.Stateid, 11)) // the other does not count

	// The owner is known still.
	c.must(nfs4.ErrBadSeqid, putRootFH(), c.opening("o", 13, "f", w, 0, nil))
	c.must(nfs4.OK, putRootFH(), c.opening("o", 12, "f", w, 0, &res))
	if res.Flags&nfs4.OpenConfirm != 0 || res.Stateid.Other == more.Stateid.Other {
		t.Errorf("opened again: %+v, before %v", res, more.Stateid)
	}
	c.must(nfs4.ErrBadStateid, putFH(file), closing40(more.Stateid, 11))
	c.must(nfs4.OK, putFH(file), closing40(res.Stateid, 13))
}

// What a stateid of an open gives to another user than its own.
func TestStolenStateid(t *testing.T) {
	s, _, file := newServer(t)
	c := open40(t, s, "one", 1)
	sid := c.open("o", "f")
	for _, mode := range []uint32{0o600, 0o666} {
		set := op{nfs4.OpSetAttr, &nfs4.SetAttrArgs{Attr: nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrMode), Vals: binary.BigEndian.AppendUint32(nil, mode)}}, new(nfs4.Bitmap)}
		c.must(nfs4.OK, putFH(file), set)
		want := nfs4.OK
		if mode == 0o600 {
			want = nfs4.ErrAccess
		}
		c.uid = 1000
		c.must(want, putFH(file), read4(sid, new(nfs4.ReadRes)))
		c.must(want, putFH(file), write4(sid, "text"))
		c.uid = 0
	}
}

func TestLock40(t *testing.T) {
	s, _, file := newServer(t)
	c, two := open40(t, s, "one", 1), open40(t, s, "two", 1)
	sid, theirs := c.open("o", "f"), two.open("o", "f")
	const end = 1<<64 - 1
	var held, again, other nfs4.StateidArgs
	first := func(c *client40Test, sid nfs4.Stateid, openSeq uint32, owner string, seq uint32, off, n uint64, res *nfs4.StateidArgs) op {
		return op{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockWrite, Offset: off, Length: n, NewOwner: true, OpenSeq: openSeq,
			Stateid: sid, LockSeq: seq, Owner: nfs4.Owner{Client: c.id, Owner: []byte(owner)}}, res}
	}
	more := func(sid nfs4.Stateid, seq uint32, off, n uint64, res *nfs4.StateidArgs) op {
		return op{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockWrite, Offset: off, Length: n, Stateid: sid, LockSeq: seq}, res}
	}
	unlock := func(sid nfs4.Stateid, seq uint32, off, n uint64, res *nfs4.StateidArgs) op {
		return op{nfs4.OpLockU, &nfs4.LockUArgs{Type: nfs4.LockWrite, Seq: seq, Stateid: sid, Offset: off, Length: n}, res}
	}
	test := func(c *client40Test, owner string, off, n uint64) op {
		return op{nfs4.OpLockT, &nfs4.LockTArgs{Type: nfs4.LockWrite, Offset: off, Length: n, Owner: nfs4.Owner{Client: c.id, Owner: []byte(owner)}}, nil}
	}
	release := func(c *client40Test, owner string) op {
		return op{nfs4.OpReleaseLockOwner, &nfs4.Owner{Client: c.id, Owner: []byte(owner)}, nil}
	}
	for _, tt := range []struct {
		what string
		c    *client40Test
		op   func() op
		want nfs4.Status
	}{
		{"an owner of another client", c, func() op {
			return op{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockRead, Length: 1, NewOwner: true, OpenSeq: 3, Stateid: sid, Owner: nfs4.Owner{Client: two.id}}, nil}
		}, nfs4.ErrBadStateid},
		{"an owner of no client", c, func() op {
			return op{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockRead, Length: 1, NewOwner: true, OpenSeq: 3, Stateid: sid}, nil}
		}, nfs4.ErrStaleClientID},
		{"a wrong number of the open's owner", c, func() op { return first(c, sid, 4, "p", 1, 0, 10, nil) }, nfs4.ErrBadSeqid},
		{"nothing", c, func() op { return first(c, sid, 3, "p", 1, 0, 0, nil) }, nfs4.ErrInval},
		{"after a restart", c, func() op {
			return op{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockRead, Reclaim: true, Length: 1, NewOwner: true, OpenSeq: 4, Stateid: sid, Owner: nfs4.Owner{Client: c.id}}, nil}
		}, nfs4.ErrNoGrace},
		{"the first lock", c, func() op { return first(c, sid, 5, "p", 50, 0, 10, &held) }, nfs4.OK},
		{"the same again", c, func() op { return first(c, sid, 5, "p", 50, 0, 10, &again) }, nfs4.OK},
		{"as a new owner, with a wrong number", c, func() op { return first(c, sid, 6, "p", 53, 20, 1, nil) }, nfs4.ErrBadSeqid},
		{"as a new owner, with the next number", c, func() op { return first(c, sid, 6, "p", 51, 20, 1, &held) }, nfs4.OK},
		{"a wrong number", c, func() op { return more(held.Stateid, 53, 10, 5, nil) }, nfs4.ErrBadSeqid},
		{"more", c, func() op { return more(held.Stateid, 52, 10, 5, &other) }, nfs4.OK},
		{"the same number for something else", c, func() op { return unlock(held.Stateid, 52, 10, 5, nil) }, nfs4.ErrBadSeqid},
		{"more again", c, func() op { return more(held.Stateid, 52, 10, 5, &held) }, nfs4.OK},
		{"an old stateid", c, func() op { return unlock(again.Stateid, 53, 10, 5, nil) }, nfs4.ErrOldStateid},
		{"by the open's stateid", c, func() op { return more(sid, 54, 0, 1, nil) }, nfs4.ErrBadStateid},
		{"as a new owner by the lock's stateid", c, func() op { return first(c, held.Stateid, 7, "q", 1, 30, 1, nil) }, nfs4.ErrBadStateid},
		{"what another has locked", two, func() op { return first(two, theirs, 3, "p", 1, 14, end, nil) }, nfs4.ErrDenied},
		{"the same again", two, func() op { return first(two, theirs, 3, "p", 1, 14, end, nil) }, nfs4.ErrDenied},
		{"a test of it", two, func() op { return test(two, "p", 14, end) }, nfs4.ErrDenied},
		{"a test of one's own", c, func() op { return test(c, "p", 0, end) }, nfs4.OK},
		{"a test by another owner", c, func() op { return test(c, "q", 0, end) }, nfs4.ErrDenied},
		{"a test by nobody", c, func() op { return op{nfs4.OpLockT, &nfs4.LockTArgs{Type: nfs4.LockRead, Length: 1}, nil} }, nfs4.ErrStaleClientID},
		{"an owner with locks", c, func() op { return release(c, "p") }, nfs4.ErrLocksHeld},
		{"an owner of another client, which has none", two, func() op { return release(two, "p") }, nfs4.OK},
		{"an unlock", c, func() op { return unlock(held.Stateid, 54, 0, end, &held) }, nfs4.OK},
		{"what is free now", two, func() op { return first(two, theirs, 4, "p", 9, 0, end, &other) }, nfs4.OK},
		{"an owner without locks", c, func() op { return release(c, "p") }, nfs4.OK},
		{"its stateid", c, func() op { return unlock(held.Stateid, 55, 0, end, nil) }, nfs4.ErrBadStateid},
		{"its name again", c, func() op { return first(c, sid, 7, "p", 1, 0, 1, nil) }, nfs4.ErrDenied},
		{"the open's close, which unlocks", two, func() op { return closing40(theirs, 5) }, nfs4.OK},
		{"then it is new", c, func() op { return first(c, sid, 8, "p", 1, 0, 1, &held) }, nfs4.OK},
		{"a lock's stateid for an open's", c, func() op { return closing40(held.Stateid, 9) }, nfs4.ErrBadStateid},
		{"a read by it", c, func() op { return read4(held.Stateid, new(nfs4.ReadRes)) }, nfs4.OK},
	} {
		if status, _ := tt.c.run(putFH(file), tt.op()); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}
	if again.Stateid.Seq != 1 || again.Stateid.Other == sid.Other {
		t.Errorf("the first lock is %v, of the open %v", again.Stateid, sid)
	}
	c.must(nfs4.OK, putFH(file), closing40(sid, 9))
	for _, c := range []*client40Test{c, two} {
		if cl := s.clients.client(c.id); len(cl.zero.lockers) != 0 {
			t.Errorf("%d lock owners are left", len(cl.zero.lockers))
		}
	}
}

// What has no number of its own is executed once all the same.
func TestRetransmission40(t *testing.T) {
	s, _, file := newServer(t)
	c := &client40Test{t: t, s: s, xid: 100}
	for _, tt := range []struct {
		what  string
		ops   []op
		other nfs4.Status // of the same with another xid
	}{
		{"CREATE", []op{putRootFH(), {nfs4.OpCreate, &nfs4.CreateArgs{Type: nfs4.TypeDir, Name: "d"}, new(nfs4.CreateRes)}, getFH(new(nfs4.FH)),
			{nfs4.OpGetAttr, &nfs4.GetAttrArgs{Mask: nfs4.Bitmap{0x0010011a, 0x00b0a23a}}, new(nfs4.Fattr)}}, nfs4.ErrExist},
		{"LINK", []op{putFH(file), saveFH(), putRootFH(), {nfs4.OpLink, &nfs4.Name{Name: "l"}, new(nfs4.DirRes)}}, nfs4.ErrExist},
		{"RENAME", []op{putRootFH(), saveFH(), {nfs4.OpRename, &nfs4.RenameArgs{From: "l", To: "m"}, new(nfs4.RenameRes)}}, nfs4.ErrNoEnt},
		{"REMOVE", []op{putRootFH(), {nfs4.OpRemove, &nfs4.Name{Name: "m"}, new(nfs4.DirRes)}}, nfs4.ErrNoEnt},
	} {
		c.must(nfs4.OK, tt.ops...)
		if status, _ := c.again(tt.ops...); status != nfs4.OK {
			t.Errorf("%s again: %v", tt.what, status)
		}
		c.must(tt.other, tt.ops...)
	}
}

// A client and its owners are known for a while after their last sign of life.
func TestExpiry40(t *testing.T) {
	const expiry = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		r, end := startPiped(t, func(cfg *Config) { cfg.ClientExpiry = expiry })
		defer end()
		if _, err := r.store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile}); err != nil {
			t.Fatal(err)
		}
		var res nfs4.OpenRes
		c, idle := open40(t, r.s, "one", 1), open40(t, r.s, "idle", 1)
		sid := c.open("keeps", "f")
		gone := c.open("closes", "f")
		c.must(nfs4.OK, putRootFH(), lookup("f"), closing40(gone, 3))
		c.must(nfs4.OK, putRootFH(), c.opening("never confirms", 1, "f", nfs4.ShareRead, 0, &res))
		if n := r.s.clients.count.Load(); n != 3+2+1 { // owners, opens, and one that was closed just now
			t.Errorf("%d states and owners, want 6", n)
		}

		// Whatever names the client or what it holds is a sign of life.
		for n := range 6 {
			time.Sleep(expiry / 2)
			if n%2 == 0 {
				c.must(nfs4.OK, renew(c.id))
			} else {
				c.must(nfs4.OK, putRootFH(), lookup("f"), read4(sid, new(nfs4.ReadRes)))
			}
		}
		if n := r.s.clients.count.Load(); n != 2 {
			t.Errorf("%d states and owners, want 2: who has nothing open is forgotten", n)
		}
		c.must(nfs4.OK, putRootFH(), c.opening("closes", 99, "f", nfs4.ShareRead, 0, &res))
		if res.Flags&nfs4.OpenConfirm == 0 {
			t.Error("an owner that was forgotten need not confirm")
		}
		c.must(nfs4.ErrBadStateid, putRootFH(), lookup("f"), closing40(gone, 3))
		c.must(nfs4.ErrExpired, renew(idle.id))

		time.Sleep(2*expiry + 5*time.Second)
		c.must(nfs4.ErrExpired, renew(c.id))
		c.must(nfs4.ErrExpired, putRootFH(), c.opening("keeps", 3, "f", nfs4.ShareRead, 0, nil))
		c.must(nfs4.ErrExpired, putRootFH(), lookup("f"), read4(sid, nil))
		c.must(nfs4.ErrExpired, putRootFH(), lookup("f"), closing40(sid, 3))
		sid.Other[0]++ // another server's
		c.must(nfs4.ErrStaleStateid, putRootFH(), lookup("f"), closing40(sid, 3))
		c.must(nfs4.ErrStaleClientID, renew(c.id^1<<56))
		if n := r.s.clients.count.Load(); n != 0 || len(r.s.clients.records) != 0 {
			t.Errorf("%d states and owners of %d clients are left", n, len(r.s.clients.records))
		}
		c.begin("one", 1)
		c.open("keeps", "f")
	})
}

// An OPEN that has to wait for another client is one step of its owner, whether
// it is had in the end or not.
func TestParked40(t *testing.T) {
	for _, gives := range []bool{true, false} {
		t.Run(fmt.Sprint(gives), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, end := startPiped(t, nil)
				defer end()
				if _, err := r.store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile}); err != nil {
					t.Fatal(err)
				}
				holder := r.connect(t, "holder", true)
				if gives {
					holder.answer = holder.returning()
				}
				open, _ := holder.open("f", nfs4.ShareRead)
				if open.Delegation.Type != nfs4.DelegateRead {
					t.Fatalf("got %+v", open.Delegation)
				}
				nc, err := r.connection()
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				c := &client40Test{t: t, s: r.s, nc: nc, xid: 1}
				c.begin("one", 1)
				var res, again nfs4.OpenRes
				var sid nfs4.StateidArgs
				c.must(nfs4.OK, putRootFH(), c.opening("o", 1, "f", nfs4.ShareRead, 0, &res))
				c.must(nfs4.OK, putRootFH(), lookup("f"), confirming(res.Stateid, 2, &sid))

				want := nfs4.ErrDelay
				if gives {
					want = nfs4.OK
				}
				began := time.Now()
				c.must(want, putRootFH(), c.opening("o", 3, "f", nfs4.ShareWrite, 0, &res))
				if took := time.Since(began); !gives && took < parkTime || gives && took >= parkTime {
					t.Errorf("answered after %v", took)
				}
				c.must(want, putRootFH(), c.opening("o", 3, "f", nfs4.ShareWrite, 0, &again))
				if gives && again != res {
					t.Errorf("again it is %+v, want %+v", again, res)
				}
				if !gives {
					time.Sleep(DefaultClientExpiry + 5*time.Second) // it is revoked
				}
				c.must(nfs4.OK, putRootFH(), c.opening("o", 4, "f", nfs4.ShareWrite, 0, &res))
				if res.Stateid.Other != sid.Stateid.Other {
					t.Errorf("opened %v, then %v", sid, res.Stateid)
				}
			})
		})
	}
}

// A client with too many owners loses those that have nothing open, unless they
// were used just now.
func TestManyOwners40(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := startPiped(t, nil)
		defer end()
		if _, err := r.store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile}); err != nil {
			t.Fatal(err)
		}
		c := open40(t, r.s, "one", 1)
		cl := r.s.clients.client(c.id)
		fill := func() {
			for n := 0; len(cl.owners) < maxOwners; n++ {
				o := cl.openOwner(fmt.Append(nil, n))
				o.zero.used = r.s.now.Load()
				o.leave()
			}
		}
		fill()
		c.must(nfs4.ErrResource, putRootFH(), c.opening("o", 1, "f", nfs4.ShareRead, 0, nil))
		time.Sleep(2 * time.Second)
		c.open("o", "f")
		fill()
		time.Sleep(2 * time.Second)
		c.open("p", "f")
		if n := r.s.clients.count.Load(); n != 4 {
			t.Errorf("%d states and owners, want 4", n)
		}
	})
}
