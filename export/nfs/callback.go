package nfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// Calls to clients of minor versions 1 and 2 (RFC 8881 section 2.10.3.1). A
// session has a channel for them: connections that the client made and gave to
// it, on which our calls and its replies go between its calls and our replies,
// and slots, in each of which one call at a time is under way.
//
// A path is tried before it is relied upon, by a CB_SEQUENCE alone: when the
// client has first used a session that has a connection, and again after it gave
// it another one.

// Limits of callbacks.
const (
	maxBackSlots  = 16
	maxBackReply  = 4 << 10         // bytes
	callbackTry   = 5 * time.Second // for one reply, then another connection is tried
	callbackPause = 20 * time.Millisecond
	callbackRest  = time.Second // the longest pause between two attempts
	callbackProbe = 15 * time.Second
)

// What is known of a session's way to its client.
const (
	pathNone    = iota // never asked for
	pathUntried        // there is a connection
	pathTrying
	pathUp
	pathDown // no connection, or no answer
)

// backchannel is a session's way to its client.
//
// Fields are (c) constant, (a) atomic, or protected by mu.
type backchannel struct {
	attrs nfs4.ChannelAttrs // (c) what the client takes
	path  atomic.Uint32     // (a) changes with client4.mu held

	mu      sync.Mutex
	program uint32        // (mu) of the client
	cred    rpc.Cred      // (mu) that it wants to see
	conns   []*conn       // (mu) the one that is to be tried first comes first
	free    []uint32      // (mu) slots
	changed chan struct{} // (mu) closed when a slot comes, or all is over

	slots []backSlot // each belongs to who took it
	over  bool       // (mu) the session has ended
}

// backSlot is a slot of a session for calls to the client.
type backSlot struct {
	seq   uint32 // of the last call that the client is known to have had
	doubt bool   // it may have had one more
}

// callbacks is what a connection has to do with calls to its client.
type callbacks struct {
	mu       sync.Mutex
	xid      uint32                 // (mu) of the last call
	waiting  map[uint32]chan []byte // (mu) who waits for which reply
	sessions []*session             // (mu) whose channel it belongs to
	gone     bool                   // (mu)
}

// Errors of a callback, besides the client's status.
var (
	errNoPath = errors.New("the client cannot be called")
	errNoWait = errors.New("nobody waits for the answer any more")
)

// setCallback notes which program the client wants to be called as, and with
// which credential. It reports false, and changes nothing, if it offers none that
// can be used.
func (sess *session) setCallback(program uint32, sec []nfs4.CBSec) bool {
	cred, ok := credOf(sec)
	if ok {
		b := &sess.back
		b.mu.Lock()
		defer b.mu.Unlock()
		b.program, b.cred = program, cred
	}
	return ok
}

// credOf chooses the credential for callbacks from those that a client offers.
func credOf(sec []nfs4.CBSec) (rpc.Cred, bool) {
	for i := range sec {
		switch c := &sec[i]; c.Flavor {
		case nfs4.AuthNone:
			return rpc.Cred{Flavor: rpc.AuthNone}, true
		case nfs4.AuthSys:
			cred := rpc.Cred{Flavor: rpc.AuthSys, Stamp: c.Stamp, Machine: strings.Clone(c.Machine), UID: c.UID, GID: c.GID}
			cred.NGroups = copy(cred.Group[:], c.Groups)
			return cred, true
		}
	}
	return rpc.Cred{Flavor: rpc.AuthNone}, len(sec) == 0
}

// backFlags is what SEQUENCE says about a session's way to its client, RFC 8881
// section 18.46.3. A client that never gave one is not told that there is none.
func (sess *session) backFlags() (flags uint32) {
	if sess.back.path.Load() == pathDown {
		flags |= nfs4.SeqCBPathDownSession
	}
	return flags | sess.client.flags.Load()
}

// setPath changes what is known of the way by a session. Called with client4.mu
// held.
func (sess *session) setPath(path uint32) {
	sess.back.path.Store(path)
	sess.client.pathChanged()
}

// pathChanged finds out whether any of the client's sessions leads to it. Called
// with cl.mu held.
func (cl *client4) pathChanged() {
	some, asked := false, false
	for _, sess := range cl.sessions {
		switch sess.back.path.Load() {
		case pathDown:
			asked = true
		case pathUntried, pathTrying, pathUp:
			some = true
		}
	}
	if asked && !some {
		cl.flags.Or(nfs4.SeqCBPathDown)
	} else {
		cl.flags.And(^uint32(nfs4.SeqCBPathDown))
	}
	if cl.paths != nil {
		close(cl.paths)
		cl.paths = nil
	}
}

// callable tells whether the client has answered a callback, and nothing is known
// to have broken since.
func (cl *client4) callable() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return slices.ContainsFunc(cl.sessions, func(sess *session) bool { return sess.back.path.Load() == pathUp })
}

// bind makes a connection one by which the session's client is called.
func (sess *session) bind(c *conn) {
	cb := &c.back
	cb.mu.Lock()
	if cb.gone {
		cb.mu.Unlock()
		return
	}
	if !slices.Contains(cb.sessions, sess) {
		cb.sessions = append(cb.sessions, sess)
	}
	cb.mu.Unlock()

	b := &sess.back
	b.mu.Lock()
	if b.over {
		b.mu.Unlock()
		cb.unbind(sess)
		return
	}
	b.conns = slices.DeleteFunc(b.conns, func(o *conn) bool { return o == c })
	b.conns = slices.Insert(b.conns, 0, c)
	b.mu.Unlock()

	cl := sess.client
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if p := b.path.Load(); p != pathUp && p != pathTrying {
		sess.setPath(pathUntried)
	} else {
		cl.pathChanged()
	}
}

// bound tells whether the session's client is called by a connection.
func (sess *session) bound(c *conn) bool {
	sess.back.mu.Lock()
	defer sess.back.mu.Unlock()
	return slices.Contains(sess.back.conns, c)
}

func (cb *callbacks) unbind(sess *session) {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	cb.sessions = slices.DeleteFunc(cb.sessions, func(o *session) bool { return o == sess })
}

// signal wakes who waits for a slot. Called with b.mu held.
func (b *backchannel) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// endBack ends the way to a client by a session that has ended.
func (sess *session) endBack() {
	b := &sess.back
	b.mu.Lock()
	conns := b.conns
	b.conns, b.over = nil, true
	b.signal()
	b.mu.Unlock()
	for _, c := range conns {
		c.back.unbind(sess)
	}
}

// hungUp ends the callbacks of a connection that has ended.
func (c *conn) hungUp() {
	cb := &c.back
	cb.mu.Lock()
	sessions, waiting := cb.sessions, cb.waiting
	cb.gone, cb.sessions, cb.waiting = true, nil, nil
	cb.mu.Unlock()
	for _, reply := range waiting {
		close(reply)
	}
	for _, sess := range sessions {
		b := &sess.back
		b.mu.Lock()
		b.conns = slices.DeleteFunc(b.conns, func(o *conn) bool { return o == c })
		none := len(b.conns) == 0
		b.mu.Unlock()
		cl := sess.client
		cl.mu.Lock()
		if none && b.path.Load() != pathNone {
			sess.setPath(pathDown)
		}
		cl.mu.Unlock()
	}
}

// callbackReply passes on the reply to a callback that the connection has
// received. A connection that was never called, or sends a large one, does not
// speak the protocol; a late one is for nobody.
func (c *conn) callbackReply(rec []byte) error {
	cb := &c.back
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.xid == 0 || len(rec) < 8 || len(rec) > maxBackReply {
		return rpc.ErrNotCall
	}
	xid := binary.BigEndian.Uint32(rec)
	if reply := cb.waiting[xid]; reply != nil {
		delete(cb.waiting, xid)
		reply <- bytes.Clone(rec)
	}
	return nil
}

// expect announces a call by the connection and returns its xid and where the
// reply will come, which is closed if the connection ends; nil if it has.
func (cb *callbacks) expect() (uint32, chan []byte) {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.gone {
		return 0, nil
	}
	if cb.waiting == nil {
		cb.waiting = make(map[uint32]chan []byte)
	}
	if cb.xid++; cb.xid == 0 {
		cb.xid = 1
	}
	reply := make(chan []byte, 1)
	cb.waiting[cb.xid] = reply
	return cb.xid, reply
}

func (cb *callbacks) forget(xid uint32) {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	delete(cb.waiting, xid)
}

// cbOp is an operation of a CB_COMPOUND behind its CB_SEQUENCE. None has results
// that anybody looks at.
type cbOp struct {
	number nfs4.CBOp
	args   encoder
	about  nfs4.ReferringCall // the request whose reply made the client know of it
}

// callBack has a client execute an operation, by any of its sessions, and returns
// its status. It tries until it is answered, and stops when quit is closed or the
// client is dropped.
func (cl *client4) callBack(op *cbOp, quit <-chan struct{}) (nfs4.Status, error) {
	pause := callbackPause
	for {
		cl.mu.Lock()
		if cl.paths == nil {
			cl.paths = make(chan struct{})
		}
		sess, changed, gone := cl.backSession(), cl.paths, cl.gone.Load()
		cl.mu.Unlock()
		switch {
		case gone:
			return 0, errNoPath
		case sess != nil:
			status, err := sess.call(op, quit)
			if err == errNoWait {
				return status, err
			}
			sess.tried(err == nil)
			if err == nil && status != nfs4.ErrDelay {
				return status, nil
			}
		}
		late := time.NewTimer(pause)
		select {
		case <-late.C:
			pause = min(2*pause, callbackRest)
		case <-changed:
		case <-quit:
			late.Stop()
			return 0, errNoWait
		case <-cl.s.done:
			late.Stop()
			return 0, errNoWait
		}
		late.Stop()
	}
}

// backSession is the session by which the client is called, or nil: one whose way
// is known to be good, or else one that has any. Called with cl.mu held.
func (cl *client4) backSession() (best *session) {
	for _, sess := range cl.sessions {
		switch sess.back.path.Load() {
		case pathUp:
			return sess
		case pathUntried, pathTrying:
			best = sess
		case pathDown:
			if best == nil {
				best = sess
			}
		}
	}
	return best
}

// tried notes whether the client has answered by the session.
func (sess *session) tried(answered bool) {
	cl := sess.client
	cl.mu.Lock()
	defer cl.mu.Unlock()
	switch p := sess.back.path.Load(); {
	case answered && p != pathUp:
		sess.setPath(pathUp)
	case !answered && (p == pathUp || p == pathTrying):
		sess.setPath(pathDown)
	}
}

// probe finds out whether the client answers by the session. It is called when
// the client is known to know the session.
func (sess *session) probe(s *Server) {
	if !s.clients.begin() {
		return
	}
	cl := sess.client
	cl.mu.Lock()
	mine := sess.back.path.Load() == pathUntried
	if mine {
		sess.setPath(pathTrying)
	}
	cl.mu.Unlock()
	if !mine {
		s.running.Done()
		return
	}
	go func() {
		defer s.running.Done()
		status, err := sess.call(nil, s.done)
		sess.tried(err == nil && status == nfs4.OK)
	}()
}

// call is one CB_COMPOUND in a slot of the session: of an operation, or if op is
// nil none.
func (sess *session) call(op *cbOp, quit <-chan struct{}) (nfs4.Status, error) {
	b := &sess.back
	n, err := b.takeSlot(quit)
	if err != nil {
		return 0, err
	}
	defer b.giveSlot(n)
	if b.slots[n].doubt && op != nil {
		// What the client did last in the slot is not known: it must not take
		// this call for a repetition of that one.
		if _, err := sess.exchange(n, nil, quit); err != nil {
			return 0, err
		}
	}
	return sess.exchange(n, op, quit)
}

// takeSlot takes a slot when there is one.
func (b *backchannel) takeSlot(quit <-chan struct{}) (uint32, error) {
	for {
		b.mu.Lock()
		if last := len(b.free) - 1; last >= 0 && !b.over {
			n := b.free[last]
			b.free = b.free[:last]
			b.mu.Unlock()
			return n, nil
		}
		changed, over := b.changed, b.over
		b.mu.Unlock()
		if over {
			return 0, errNoPath
		}
		select {
		case <-changed:
		case <-quit:
			return 0, errNoWait
		}
	}
}

func (b *backchannel) giveSlot(n uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, n)
	b.signal()
}

// exchange sends a CB_COMPOUND in a slot that the caller has taken until it is
// answered, or there is no connection for that.
func (sess *session) exchange(n uint32, op *cbOp, quit <-chan struct{}) (nfs4.Status, error) {
	b := &sess.back
	sl := &b.slots[n]
	began, pause := time.Now(), callbackPause
	var silent []*conn // by which it was sent in vain
	for time.Since(began) < callbackProbe {
		msg := sess.callbackMessage(n, sl.seq+1, op)
		c := b.conn(silent)
		if c == nil || len(msg)-rpc.MarkSize > int(b.attrs.MaxRequest) {
			break
		}
		silent = append(silent, c)
		xid, reply := c.back.expect()
		if reply == nil {
			continue
		}
		binary.BigEndian.PutUint32(msg[rpc.MarkSize:], xid)
		sl.doubt = true
		c.s.running.Go(func() { c.sendParked(msg) }) // a client that does not read holds it up
		answer := b.await(reply, silent)
		c.back.forget(xid)
		if answer == nil {
			select {
			case <-quit:
				return 0, errNoWait
			default:
				continue
			}
		}
		first, status, err := callbackResult(answer, op != nil)
		c.traceCallback(sess, op, xid, first, status, err, began)
		if err != nil {
			return 0, err
		}
		silent = nil
		switch first {
		case nfs4.OK:
			sl.seq++
			sl.doubt = false
			return status, nil
		case nfs4.ErrRetryUncachedRep, nfs4.ErrSeqFalseRetry:
			// It had this number before.
			sl.seq++
			sl.doubt = false
			if op == nil {
				return nfs4.OK, nil
			}
			continue
		case nfs4.ErrDelay, nfs4.ErrBadSession:
			// It has not got to know the session, or is about to leave it.
			sl.doubt = false
		default:
			return 0, errNoPath
		}
		rest := time.NewTimer(pause)
		pause = min(2*pause, callbackRest)
		select {
		case <-rest.C:
		case <-quit:
			rest.Stop()
			return 0, errNoWait
		}
	}
	return 0, errNoPath
}

// conn is a connection to call the client by that is none of the silent ones, or
// nil.
func (b *backchannel) conn(silent []*conn) *conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		if !slices.Contains(silent, c) {
			return c
		}
	}
	return nil
}

// await waits for a reply, whether anybody still needs it or not: it says what the
// client has had in the slot. It returns none if the connection has ended, or was
// silent for long while there is another one: by one that stands nothing is sent
// twice (RFC 8881 section 2.9.2).
func (b *backchannel) await(reply <-chan []byte, silent []*conn) []byte {
	began := time.Now()
	for {
		late := time.NewTimer(callbackTry)
		select {
		case answer := <-reply:
			late.Stop()
			return answer
		case <-late.C:
			if b.conn(silent) != nil || time.Since(began) >= callbackProbe {
				return nil
			}
		}
	}
}

// callbackMessage is a record with a CB_COMPOUND, without its xid.
func (sess *session) callbackMessage(slot, seq uint32, op *cbOp) []byte {
	b := &sess.back
	b.mu.Lock()
	program, cred := b.program, b.cred
	b.mu.Unlock()
	var w xdr.Writer
	at := rpc.BeginRecord(&w)
	head := rpc.Call{Program: program, Version: nfs4.CBVersion, Procedure: nfs4.CBProcCompound, Cred: cred}
	head.Encode(&w)
	args := nfs4.CBCompoundArgs{Minor: sess.minor, Count: 1}
	if op != nil {
		args.Count = 2
	}
	args.Encode(&w)
	sequence := nfs4.CBSequenceArgs{Session: sess.id, Seq: seq, Slot: slot, HighestSlot: uint32(len(b.slots) - 1)}
	if op != nil && op.about.Session == sess.id {
		sequence.Referring = []nfs4.ReferringCall{op.about}
	}
	w.Uint32(uint32(nfs4.OpCBSequence))
	sequence.Encode(&w)
	if op != nil {
		w.Uint32(uint32(op.number))
		op.args.Encode(&w)
	}
	rpc.EndRecord(&w, at, 0)
	return w.B
}

// callbackResult is what a reply says of a CB_COMPOUND: the status of its
// CB_SEQUENCE, and of the operation behind it, if there was one.
func callbackResult(reply []byte, behind bool) (first, second nfs4.Status, err error) {
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		return 0, 0, err
	}
	var head nfs4.CompoundRes
	head.Decode(&r)
	var sequence, op nfs4.OpHead
	if head.Count == 0 {
		return 0, 0, fmt.Errorf("callback: no results, %w", head.Status)
	}
	if sequence.Decode(&r); sequence.Status == nfs4.OK {
		new(nfs4.CBSequenceRes).Decode(&r)
	}
	if sequence.Status == nfs4.OK && behind {
		op.Decode(&r)
	}
	return sequence.Status, op.Status, r.Err()
}

// traceCallback logs a callback and its answer as one line.
func (c *conn) traceCallback(sess *session, op *cbOp, xid uint32, first, status nfs4.Status, err error, began time.Time) {
	if !c.s.trace {
		return
	}
	text := fmt.Sprintf("4.%d CB_SEQUENCE", sess.minor)
	if op != nil {
		text += fmt.Sprintf(" %v %s", op.number, describe(op.args))
	}
	answer := first.String()
	switch {
	case err != nil:
		answer = err.Error()
	case first == nfs4.OK:
		answer = status.String()
	}
	c.s.log.Debug("CB_COMPOUND", "args", text, "answer", answer, "peer", c.Conn.RemoteAddr(), "xid", xid, "took", time.Since(began))
}
