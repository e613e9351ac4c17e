package client

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// Op is one operation of a COMPOUND. Args is nil if it has no arguments. Res
// decodes the results that stand behind the status of an operation that
// succeeds; it is nil if there are none.
type Op struct {
	Op   nfs4.Op
	Args interface{ Encode(*xdr.Writer) }
	Res  interface{ Decode(*xdr.Reader) }
}

// OpError is the operation that failed and ended its COMPOUND. It wraps its
// nfs4.Status.
type OpError struct {
	Op     nfs4.Op
	Index  int // in the COMPOUND
	Status nfs4.Status
	Denied nfs4.LockDenied // what is in the way of a lock, with DENIED
}

func (e *OpError) Error() string { return fmt.Sprintf("%v: %v", e.Op, e.Status) }

func (e *OpError) Unwrap() error { return e.Status }

// Compound makes one COMPOUND of a minor version of NFS version 4.
func (c *Client) Compound(minor uint32, ops ...Op) error {
	var w xdr.Writer
	c.AppendCall(&w, rpc.ProgramNFS, nfs4.Version, nfs4.ProcCompound)
	args := nfs4.CompoundArgs{Minor: minor, Count: uint32(len(ops))}
	args.Encode(&w)
	for _, o := range ops {
		w.Uint32(uint32(o.Op))
		if o.Args != nil {
			o.Args.Encode(&w)
		}
	}
	reply, err := c.Exchange(w.B)
	if err != nil {
		return err
	}
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		return err
	}
	return decodeResults(&r, ops)
}

// decodeResults decodes a COMPOUND4res whole.
func decodeResults(r *xdr.Reader, ops []Op) error {
	var head nfs4.CompoundRes
	head.Decode(r)
	n := int(head.Count)
	if r.Err() == nil && (n > len(ops) || head.Status == nfs4.OK && n < len(ops)) {
		return fmt.Errorf("client: %d results of %d operations with status %v", n, len(ops), head.Status)
	}
	var failed *OpError
	for i := range n {
		var oh nfs4.OpHead
		oh.Decode(r)
		if r.Err() != nil {
			return r.Err()
		}
		if last := i == n-1; oh.Op != ops[i].Op && !(last && oh.Op == nfs4.OpIllegal) || last && oh.Status != head.Status || !last && oh.Status != nfs4.OK {
			return fmt.Errorf("client: result %d of %d is of %v with %v; operation %v, status of all %v", i, n, oh.Op, oh.Status, ops[i].Op, head.Status)
		}
		if oh.Status != nfs4.OK {
			failed = &OpError{Op: oh.Op, Index: i, Status: oh.Status}
			switch {
			case oh.Op == nfs4.OpSetAttr:
				var none nfs4.SetAttrRes
				none.Decode(r)
			case oh.Status == nfs4.ErrDenied:
				failed.Denied.Decode(r)
			}
			break
		}
		if ops[i].Res != nil {
			ops[i].Res.Decode(r)
		}
	}
	switch {
	case r.Err() != nil:
		return r.Err()
	case r.Len() != 0:
		return fmt.Errorf("client: reply has %d bytes behind its results", r.Len())
	case failed != nil:
		return failed
	case head.Status != nfs4.OK:
		return head.Status
	}
	return nil
}

// Session is a session of NFS version 4.1 or 4.2 without a backchannel. Its
// methods may be called by several goroutines; they take turns.
//
// Their compounds are SEQUENCE, PUTFH and what the method's comment says.
// Results alias the reply, which nobody else has. A refusal is an [OpError].
type Session struct {
	c        *Client
	minor    uint32
	ClientID uint64
	Info     nfs4.CreateSessionRes // what the server granted

	mu   sync.Mutex // held over a whole exchange
	seqs []uint32   // (mu) of the last compound, by slot
	zero *minor0    // (mu) nil but in minor version 0
}

// SessionOptions says what session a client asks for.
type SessionOptions struct {
	Owner string // what the client calls itself; the server knows one client by one name
	Verf  uint64 // another one when the client has started anew
	Minor uint32 // 0: the newest minor version
	Slots uint32 // compounds in flight; 0: one
}

// Session begins to speak NFS version 4.1 or 4.2: EXCHANGE_ID, CREATE_SESSION and
// RECLAIM_COMPLETE.
func (c *Client) Session(o SessionOptions) (*Session, error) {
	if o.Minor == 0 {
		o.Minor = nfs4.MaxMinor
	}
	var who nfs4.ExchangeIDRes
	id := nfs4.ExchangeIDArgs{Verf: o.Verf, Owner: []byte(o.Owner), Flags: nfs4.ExchgIDUseNonPNFS}
	if err := c.Compound(o.Minor, Op{nfs4.OpExchangeID, &id, &who}); err != nil {
		return nil, err
	}
	const size = 2 << 20 // more than the largest READ and WRITE
	fore := nfs4.ChannelAttrs{MaxRequest: size, MaxResponse: size, MaxResponseCached: 4096, MaxOps: 16, MaxRequests: max(1, o.Slots)}
	back := nfs4.ChannelAttrs{MaxRequest: 4096, MaxResponse: 4096, MaxOps: 2, MaxRequests: 1}
	s := &Session{c: c, minor: o.Minor, ClientID: who.ClientID}
	args := nfs4.CreateSessionArgs{ClientID: who.ClientID, Seq: who.Seq, Fore: fore, Back: back, Sec: []nfs4.CBSec{{}}}
	if err := c.Compound(o.Minor, Op{nfs4.OpCreateSession, &args, &s.Info}); err != nil {
		return nil, err
	}
	s.seqs = make([]uint32, s.Info.Fore.MaxRequests)
	err := s.Do(Op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
	if err != nil && !errors.Is(err, nfs4.ErrCompleteAlready) { // the client has another session
		return nil, err
	}
	return s, nil
}

// Close ends the session, and the client if that holds nothing any more. The
// connection stays.
func (s *Session) Close() error {
	if err := s.c.Compound(s.minor, Op{nfs4.OpDestroySession, &s.Info.Session, nil}); err != nil {
		return err
	}
	return s.c.Compound(s.minor, Op{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: s.ClientID}, nil})
}

// Do makes one COMPOUND of SEQUENCE and ops, in the first slot. The server is to
// keep its results if one of ops must not be executed twice.
func (s *Session) Do(ops ...Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zero != nil {
		return s.c.Compound(nfs4.Minor0, ops...)
	}
	s.seqs[0]++
	var res nfs4.SequenceRes
	seq := nfs4.SequenceArgs{Session: s.Info.Session, Seq: s.seqs[0], CacheThis: slices.ContainsFunc(ops, Op.once)}
	err := s.c.Compound(s.minor, append([]Op{{nfs4.OpSequence, &seq, &res}}, ops...)...)
	if e, ok := err.(*OpError); ok {
		if e.Index--; e.Index < 0 {
			s.seqs[0]-- // the slot is as it was
		}
	}
	return err
}

// once tells whether an operation must not be executed twice.
func (o Op) once() bool {
	switch o.Op {
	case nfs4.OpAccess, nfs4.OpCommit, nfs4.OpGetAttr, nfs4.OpGetFH, nfs4.OpGetXattr, nfs4.OpListXattrs, nfs4.OpLockT, nfs4.OpLookup,
		nfs4.OpLookupP, nfs4.OpNVerify, nfs4.OpPutFH, nfs4.OpPutRootFH, nfs4.OpRead, nfs4.OpReadDir, nfs4.OpReadLink,
		nfs4.OpRestoreFH, nfs4.OpSaveFH, nfs4.OpSeek, nfs4.OpTestStateid, nfs4.OpVerify, nfs4.OpWrite:
		return false
	}
	return true
}

// AppendCompound writes the header of a call, and of a COMPOUND of SEQUENCE and n
// operations, which are to follow. With keep the server is to keep the results.
// The XID and the slot are left to [Session.Run].
func (s *Session) AppendCompound(w *xdr.Writer, n int, keep bool) {
	s.c.AppendCall(w, rpc.ProgramNFS, nfs4.Version, nfs4.ProcCompound)
	args := nfs4.CompoundArgs{Minor: s.minor, Count: uint32(1 + n)}
	args.Encode(w)
	w.Uint32(uint32(nfs4.OpSequence))
	seq := nfs4.SequenceArgs{Session: s.Info.Session, HighestSlot: uint32(len(s.seqs) - 1), CacheThis: keep}
	seq.Encode(w)
}

// Run is [Client.Run] for compounds: gen writes what AppendCompound wrote before,
// and the operations. A compound that fails ends the run. There must be a slot
// for each that is outstanding.
func (s *Session) Run(depth, total int, gen func(i int, w *xdr.Writer) (payload []byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if depth > len(s.seqs) {
		return fmt.Errorf("client: %d compounds in flight on %d slots", depth, len(s.seqs))
	}
	var w xdr.Writer
	s.AppendCompound(&w, 0, false)
	const slotAt = 4 + 4 + 4 + 4 // from the end: sequence number, slot, highest slot, whether to keep
	at := w.Len() - slotAt
	free := make([]uint32, len(s.seqs)) // slots
	for i := range free {
		free[i] = uint32(i)
	}
	return s.c.Run(depth, total, func(i int, w *xdr.Writer) []byte {
		begun := w.Len()
		payload := gen(i, w)
		slot := free[len(free)-1]
		free = free[:len(free)-1]
		s.seqs[slot]++
		w.PatchUint32(begun+at, s.seqs[slot])
		w.PatchUint32(begun+at+4, slot)
		return payload
	}, func(_ int, reply []byte) error {
		r := xdr.NewReader(reply)
		if _, err := rpc.DecodeReply(&r); err != nil {
			return err
		}
		var all nfs4.CompoundRes
		var head nfs4.OpHead
		var res nfs4.SequenceRes
		all.Decode(&r)
		head.Decode(&r)
		res.Decode(&r)
		switch {
		case all.Status != nfs4.OK:
			return all.Status
		case r.Err() != nil:
			return r.Err()
		case uint64(res.Slot) >= uint64(len(s.seqs)) || len(free) == len(s.seqs):
			return errSlot
		}
		free = append(free, res.Slot)
		return nil
	})
}

var errSlot = errors.New("client: a result of a slot that is not in use")
