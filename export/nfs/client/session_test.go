package client

import (
	"errors"
	"strings"
	"testing"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// results is a COMPOUND4res of encoded results.
type results struct {
	status nfs4.Status
	heads  []nfs4.OpHead
	bodies []interface{ Encode(*xdr.Writer) }
}

func (a results) Encode(w *xdr.Writer) {
	head := nfs4.CompoundRes{Status: a.status, Count: uint32(len(a.heads))}
	head.Encode(w)
	for i, h := range a.heads {
		h.Encode(w)
		if a.bodies[i] != nil {
			a.bodies[i].Encode(w)
		}
	}
}

// What a COMPOUND's answer must be to be believed, and what is made of it.
func TestCompound(t *testing.T) {
	type heads = []nfs4.OpHead
	type bodies = []interface{ Encode(*xdr.Writer) }
	put, get := nfs4.OpPutFH, nfs4.OpGetFH
	denied := &nfs4.LockDenied{Offset: 7, Length: 8, Type: nfs4.LockWrite}
	for _, c := range []struct {
		name string
		last Op // behind PUTFH
		res  results
		want string // of the error
	}{
		{"success", Op{get, nil, new(nfs4.FH)}, results{0, heads{{Op: put}, {Op: get}}, bodies{nil, &nfs4.FH{FH: []byte{1}}}}, ""},
		{"the first fails", Op{get, nil, new(nfs4.FH)}, results{nfs4.ErrStale, heads{{Op: put, Status: nfs4.ErrStale}}, bodies{nil}}, "PUTFH: NFS4ERR_STALE"},
		{"the last fails", Op{get, nil, new(nfs4.FH)}, results{nfs4.ErrNoEnt, heads{{Op: put}, {Op: get, Status: nfs4.ErrNoEnt}}, bodies{nil, nil}}, "GETFH: NFS4ERR_NOENT"},
		{"an illegal operation", Op{99, nil, nil}, results{nfs4.ErrOpIllegal, heads{{Op: put}, {Op: nfs4.OpIllegal, Status: nfs4.ErrOpIllegal}}, bodies{nil, nil}}, "ILLEGAL: NFS4ERR_OP_ILLEGAL"},
		{"nothing is executed", Op{get, nil, nil}, results{status: nfs4.ErrMinorVersMismatch}, "NFS4ERR_MINOR_VERS_MISMATCH"},
		{"SETATTR has results with an error", Op{nfs4.OpSetAttr, nil, nil}, results{nfs4.ErrPerm, heads{{Op: put}, {Op: nfs4.OpSetAttr, Status: nfs4.ErrPerm}}, bodies{nil, new(nfs4.SetAttrRes)}}, "SETATTR: NFS4ERR_PERM"},
		{"LOCK says what is in the way", Op{nfs4.OpLock, nil, nil}, results{nfs4.ErrDenied, heads{{Op: put}, {Op: nfs4.OpLock, Status: nfs4.ErrDenied}}, bodies{nil, denied}}, "LOCK: NFS4ERR_DENIED"},
		{"a result is missing", Op{get, nil, nil}, results{0, heads{{Op: put}}, bodies{nil}}, "1 results of 2 operations"},
		{"too many results", Op{get, nil, nil}, results{0, heads{{Op: put}, {Op: get}, {Op: get}}, bodies{nil, nil, nil}}, "3 results of 2"},
		{"another operation", Op{get, nil, nil}, results{0, heads{{Op: put}, {Op: put}}, bodies{nil, nil}}, "is of PUTFH"},
		{"another status", Op{get, nil, nil}, results{nfs4.ErrStale, heads{{Op: put}, {Op: get, Status: nfs4.ErrNoEnt}}, bodies{nil, nil}}, "status of all NFS4ERR_STALE"},
		{"a failure in the middle", Op{get, nil, nil}, results{0, heads{{Op: put, Status: nfs4.ErrStale}, {Op: get}}, bodies{nil, nil}}, "with NFS4ERR_STALE"},
		{"too short", Op{get, nil, new(nfs4.FH)}, results{0, heads{{Op: put}, {Op: get}}, bodies{nil, nil}}, "input ends"},
		{"too long", Op{get, nil, nil}, results{0, heads{{Op: put}, {Op: get}}, bodies{nil, &nfs4.FH{}}}, "4 bytes behind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := serve(t, Options{}, func(call rpc.Call, args *xdr.Reader) []byte {
				var head nfs4.CompoundArgs
				head.Decode(args)
				if call.Version != 4 || call.Procedure != 1 || head.Minor != 2 || head.Count != 2 {
					t.Errorf("version %d procedure %d, %+v", call.Version, call.Procedure, head)
				}
				return record(call.XID, c.res)
			})
			err := cl.Compound(2, Op{put, &nfs4.FH{FH: []byte{9}}, nil}, c.last)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			var failed *OpError
			if errors.As(err, &failed) && failed.Status == nfs4.ErrDenied && failed.Denied.Offset != 7 {
				t.Errorf("denied by %+v", failed.Denied)
			}
		})
	}
}

// session answers EXCHANGE_ID, CREATE_SESSION and everything in the session, of
// which it checks the slots.
func session(t *testing.T, slots uint32) *Session {
	seqs := make([]uint32, slots)
	cl := serve(t, Options{}, func(call rpc.Call, args *xdr.Reader) []byte {
		var head nfs4.CompoundArgs
		head.Decode(args)
		op := nfs4.Op(args.Uint32())
		res := results{heads: []nfs4.OpHead{{Op: op}}}
		switch op {
		case nfs4.OpExchangeID:
			res.bodies = append(res.bodies, &nfs4.ExchangeIDRes{ClientID: 5, Seq: 6})
		case nfs4.OpCreateSession:
			var a nfs4.CreateSessionArgs
			if a.Decode(args); a.ClientID != 5 || a.Seq != 6 {
				t.Errorf("CREATE_SESSION %+v", a)
			}
			res.bodies = append(res.bodies, &nfs4.CreateSessionRes{Session: nfs4.SessionID{1}, Fore: nfs4.ChannelAttrs{MaxRequests: slots}})
		case nfs4.OpSequence:
			var a nfs4.SequenceArgs
			a.Decode(args)
			if seqs[a.Slot]++; a.Seq != seqs[a.Slot] || a.Session != (nfs4.SessionID{1}) {
				t.Errorf("SEQUENCE %+v, want number %d", a, seqs[a.Slot])
			}
			res.bodies = append(res.bodies, &nfs4.SequenceRes{Slot: a.Slot})
			for range head.Count - 1 {
				res.heads = append(res.heads, nfs4.OpHead{Op: nfs4.Op(args.Uint32())})
				res.bodies = append(res.bodies, nil)
			}
		}
		return record(call.XID, res)
	})
	s, err := cl.Session(SessionOptions{Owner: "me", Minor: 1, Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every compound takes a slot that is free, and its next number.
func TestSessionRun(t *testing.T) {
	s := session(t, 4)
	var msg xdr.Writer
	s.AppendCompound(&msg, 1, false)
	msg.Uint32(uint32(nfs4.OpSaveFH))
	gen := func(_ int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg.B...)
		return nil
	}
	for range 2 {
		if err := s.Run(4, 100, gen); err != nil {
			t.Fatal(err)
		}
		if err := s.Do(Op{nfs4.OpSaveFH, nil, nil}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Run(5, 10, gen); err == nil {
		t.Error("five compounds run on four slots")
	}
}
