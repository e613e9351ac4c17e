package nfs

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
)

// What minor version 0 (RFC 7530) has of its own. There are no sessions: a client
// is known by SETCLIENTID, gives signs of life by whatever names it or what it
// holds, and numbers what each of its owners does instead of using slots. Opens,
// locks and stateids are those of the later minor versions.
//
// Of one client, one operation with such a number is executed at a time: it has
// the client's turn.

// client40 is a client of minor version 0.
//
// Fields are (a) atomic, or protected by clients.mu, by turn, or by client4.mu.
type client40 struct {
	confirmed atomic.Bool // (a) by SETCLIENTID_CONFIRM

	verifier uint64 // (clients.mu) by which SETCLIENTID_CONFIRM confirms or has confirmed the client
	update   uint64 // (clients.mu) the same of a SETCLIENTID since then, or 0

	turn  sync.Mutex
	swept int64 // (turn) when owners were swept last, in seconds of Server.now

	lockers map[string]*lockOwner // (client4.mu) those that have a stateid
}

// openOwner40 is what an open owner of minor version 0 has besides. An owner that
// has nothing open is kept as long as a client is, to answer what it did last
// again.
type openOwner40 struct {
	confirmed atomic.Bool // (a) by OPEN_CONFIRM
	sequence              // (turn)
	used      int64       // (turn) last, in seconds of Server.now
	closed    *state      // (turn) what CLOSE has closed, while that may come again
}

// lockOwner is a lock owner of minor version 0, for as long as it has a stateid.
type lockOwner struct {
	name   string   // (c)
	states []*state // (client4.mu)
	sequence
}

// sequence orders what an owner does, and keeps the last result for a
// retransmission: RFC 7530 sections 9.1.7 and 9.1.9. Protected by the client's
// turn.
type sequence struct {
	seq    uint32
	op     nfs4.Op // 0: the owner is new, and begins with any number
	sum    uint64  // of the arguments
	status nfs4.Status
	result []byte  // behind the status
	made   fileRef // the current filehandle behind an OPEN
}

// place is where an operation belongs in a sequence.
type place struct {
	in  *sequence
	seq uint32
}

// repeated is what an operation answers instead of a status when it was executed
// before: it has appended the results of that time, and compound.before is the
// status.
const repeated = replayed - 1

// opSetClientID is SETCLIENTID, RFC 7530 section 16.33. Nobody is called back.
func (m *compound) opSetClientID() nfs4.Status {
	k := m.k
	var a nfs4.SetClientIDArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	cs := k.c.s.clients
	name := clientName{minor0: true, name: string(a.ID)}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var cl *client4 // the confirmed one
	if r := cs.records[name]; r != nil {
		cl = r.confirmed
	}
	if cl != nil && cl.who != k.principal() {
		if cl.busy() && !cl.expired() {
			used := nfs4.ClientAddr{NetID: "tcp", Addr: rpc.FormatUaddr(cl.addr)}
			if cl.addr.Addr().Is6() {
				used.NetID = "tcp6"
			}
			used.Encode(k.w)
			return nfs4.ErrClidInUse
		}
		cs.drop(cl)
		cl = nil
	}
	verifier := max(1, random64())
	if cl != nil && cl.verifier == a.Verf {
		// It only wants to be called back in another way.
		if u := cs.records[name].unconfirmed; u != nil {
			cs.drop(u)
		}
		cl.zero.update = verifier
	} else {
		if cl != nil {
			cl.zero.update = 0
		}
		var status nfs4.Status
		if cl, status = k.newClient(name, a.Verf); status != nfs4.OK {
			return status
		}
		cl.zero.verifier = verifier
	}
	res := nfs4.ClientConfirm{ID: cl.id, Verf: verifier}
	res.Encode(k.w)
	return nfs4.OK
}

// opSetClientIDConfirm is SETCLIENTID_CONFIRM, RFC 7530 section 16.34.
func (m *compound) opSetClientIDConfirm() nfs4.Status {
	k := m.k
	var a nfs4.ClientConfirm
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	cs := k.c.s.clients
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cl := cs.client(a.ID)
	switch {
	case cl == nil || cl.zero == nil:
		return nfs4.ErrStaleClientID
	case cl.who != k.principal():
		return nfs4.ErrClidInUse
	case a.Verf == cl.zero.verifier:
		// For the first time, or again.
		cs.confirm(cl)
	case a.Verf == cl.zero.update && a.Verf != 0:
		cl.zero.verifier, cl.zero.update = a.Verf, 0
	default:
		return nfs4.ErrStaleClientID
	}
	cl.renew()
	return nfs4.OK
}

// opRenew is RENEW, RFC 7530 section 16.27.
func (m *compound) opRenew() nfs4.Status {
	var a nfs4.ClientID
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	return m.useClient(a.ID)
}

// useClient makes the client that an operation names the compound's.
func (m *compound) useClient(id uint64) nfs4.Status {
	cs := m.k.c.s.clients
	cl := cs.client(id)
	switch {
	case cl == nil && uint8(id>>56) == cs.boot:
		return nfs4.ErrExpired
	case cl == nil || cl.zero == nil || !cl.zero.confirmed.Load():
		return nfs4.ErrStaleClientID
	}
	m.adopt(cl)
	return nfs4.OK
}

// adopt makes a client the compound's; it gives a sign of life (RFC 7530 section
// 9.5).
func (m *compound) adopt(cl *client4) {
	m.client, m.k.who.Holder = cl, &cl.holder
	cl.renew()
}

// lost is the status for a stateid that names nothing.
func (cs *clients) lost(sid *nfs4.Stateid) nfs4.Status {
	switch {
	case sid.Other[0] != cs.boot:
		return nfs4.ErrStaleStateid
	case cs.all.get(uint32(sid.Other[4])<<8|uint32(sid.Other[5])) == nil:
		return nfs4.ErrExpired
	}
	return nfs4.ErrBadStateid
}

// takeTurn waits for the client's turn, which the operation has until leave.
func (m *compound) takeTurn() {
	m.client.zero.turn.Lock()
	m.turnOf = m.client
}

// opener40 is opener for minor version 0. An owner that has not confirmed its
// first OPEN may have been meant to do something else: whatever it opens next
// takes the place of that (RFC 7530 section 16.18.5).
func (m *compound) opener40(a *nfs4.OpenArgs) (*openOwner, nfs4.Status) {
	if a.Claim > nfs4.ClaimDelegPrev || a.Create && a.Mode == nfs4.Exclusive41 {
		return nil, nfs4.ErrBadXDR
	}
	if status := m.useClient(a.Owner.Client); status != nfs4.OK {
		return nil, status
	}
	m.takeTurn()
	o := m.client.openOwner(a.Owner.Owner)
	if o == nil {
		m.client.forgetOwners(0)
		if o = m.client.openOwner(a.Owner.Owner); o == nil {
			return nil, nfs4.ErrResource
		}
	}
	m.owner = o
	q := &o.zero.sequence
	status := m.next(q, a.Seq)
	if status != repeated && !o.zero.confirmed.Load() {
		o.closeAll()
		if status != nfs4.OK {
			*q = sequence{}
			status = m.next(q, a.Seq)
		}
	}
	return o, status
}

// follow takes the operation's place among what the owner of st does.
func (m *compound) follow(st *state, seq uint32) nfs4.Status {
	q := &st.owner.zero.sequence
	if st.by != nil {
		q = &st.by.sequence
	}
	status := m.next(q, seq)
	if status == nfs4.OK && !st.owner.zero.confirmed.Load() && m.number != nfs4.OpOpenConfirm {
		return nfs4.ErrBadStateid
	}
	return status
}

// next takes the operation's place in a sequence. It answers repeated if the
// operation was executed before.
func (m *compound) next(q *sequence, seq uint32) nfs4.Status {
	switch {
	case m.follows(q, seq):
		at := 0
		if m.places[0].in != nil {
			at = 1
		}
		m.places[at] = place{q, seq}
		return nfs4.OK
	case seq != q.seq || q.op != m.number || q.sum != m.sum():
		return nfs4.ErrBadSeqid
	case m.room() < len(q.result):
		return nfs4.ErrResource
	}
	m.k.w.B = append(m.k.w.B, q.result...)
	if q.op == nfs4.OpOpen && q.status == nfs4.OK {
		m.setCur(q.made.i, q.made.exp)
	}
	m.before = q.status
	return repeated
}

// follows tells whether seq is the next number of a sequence, or the last one
// while the operation itself, which has waited for another holder, is what came
// last.
func (m *compound) follows(q *sequence, seq uint32) bool {
	return q.op == 0 || seq == q.seq+1 ||
		m.again && seq == q.seq && q.op == m.number && q.status == nfs4.ErrDelay && q.sum == m.sum()
}

// sum is a sum of the arguments of the operation, which have been decoded.
func (m *compound) sum() uint64 {
	all := m.all
	end := all.Len() - m.k.args.Len()
	return maphash.Bytes(requestSeed, all.Rest()[m.all.Len()-m.left:end])
}

// note keeps what became of the operation in the sequences where it has a place.
// Errors that say that it is in none do not count (RFC 7530 section 9.1.7).
func (m *compound) note() {
	switch m.status {
	case nfs4.ErrStaleClientID, nfs4.ErrStaleStateid, nfs4.ErrBadStateid, nfs4.ErrBadSeqid,
		nfs4.ErrBadXDR, nfs4.ErrResource, nfs4.ErrNoFileHandle:
		return
	}
	if m.owner != nil {
		m.owner.zero.used = m.client.s.now.Load()
	}
	for i := range m.places {
		q := m.places[i].in
		if q == nil {
			continue
		}
		if q == &m.owner.zero.sequence && (m.number != nfs4.OpClose || m.status != nfs4.OK) {
			m.owner.forgetClosed()
		}
		q.seq, q.op, q.sum, q.status = m.places[i].seq, m.number, m.sum(), m.status
		q.result = append(q.result[:0], m.k.w.B[m.at+8:]...)
		q.made = fileRef{}
		if m.number == nfs4.OpOpen && m.status == nfs4.OK {
			q.made = m.cur
		}
	}
}

// closeAll closes what an owner has open. Called with mu held.
func (o *openOwner) closeAll() {
	for _, st := range o.opens {
		o.close(st)
	}
	o.forgetClosed()
}

// keepClosed keeps what was closed just now, so that its stateid leads to the
// owner when CLOSE comes again. Called with mu held.
func (o *openOwner) keepClosed(st *state) {
	o.forgetClosed()
	st.ended = true
	o.zero.closed = st
}

// forgetClosed ends that. Called with mu held.
func (o *openOwner) forgetClosed() {
	if st := o.zero.closed; st != nil {
		o.zero.closed = nil
		o.client.remove(st)
	}
}

// sweepOwners forgets the owners that were not used for as long as a client is
// kept.
func (cl *client4) sweepOwners() {
	cl.zero.turn.Lock()
	defer cl.zero.turn.Unlock()
	now, expiry := cl.s.now.Load(), cl.s.expiry
	if now-cl.zero.swept > expiry/4 {
		cl.zero.swept = now
		cl.forgetOwners(expiry)
	}
}

// forgetOwners forgets the owners that have nothing open, or have not confirmed
// it, if they were not used for more than idle seconds. Called with turn held.
func (cl *client4) forgetOwners(idle int64) {
	now := cl.s.now.Load()
	var old []*openOwner
	cl.mu.Lock()
	for _, o := range cl.owners {
		if (len(o.opens) == 0 || !o.zero.confirmed.Load()) && now-o.zero.used > idle {
			old = append(old, o)
		}
	}
	cl.mu.Unlock()
	for _, o := range old {
		o.mu.Lock()
		o.closeAll()
		o.mu.Unlock()
		cl.mu.Lock()
		if cl.owners[o.name] == o {
			delete(cl.owners, o.name)
			cl.uncount(1)
		}
		cl.mu.Unlock()
	}
}

// opOpenConfirm is OPEN_CONFIRM, RFC 7530 section 16.18.
func (m *compound) opOpenConfirm() nfs4.Status {
	k := m.k
	var a nfs4.OpenConfirmArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	st, status := m.enterOpen(&a.Stateid, a.Seq)
	if status != nfs4.OK {
		return status
	}
	if st.owner.zero.confirmed.Swap(true) {
		return nfs4.ErrBadStateid
	}
	st.bump()
	res := nfs4.StateidArgs{Stateid: st.stateid()}
	res.Encode(k.w)
	return nfs4.OK
}

// locker finds or makes the lock owner of a LOCK that gives its name. One that is
// known goes on with its numbers.
func (m *compound) locker(a *nfs4.Owner, seq uint32) (*lockOwner, nfs4.Status) {
	of := m.client
	switch status := m.useClient(a.Client); {
	case status != nfs4.OK:
		return nil, status
	case m.client != of:
		m.adopt(of)
		return nil, nfs4.ErrBadStateid
	}
	of.mu.Lock()
	lo := of.zero.lockers[string(a.Owner)]
	of.mu.Unlock()
	if lo == nil {
		lo = &lockOwner{name: string(a.Owner)}
	}
	if !m.follows(&lo.sequence, seq) {
		return nil, nfs4.ErrBadSeqid
	}
	return lo, m.next(&lo.sequence, seq)
}

// addLock notes a lock owner's state. Called with client4.mu held.
func (c *client40) addLock(st *state) {
	if c.lockers == nil {
		c.lockers = make(map[string]*lockOwner)
	}
	c.lockers[st.by.name] = st.by
	st.by.states = append(st.by.states, st)
}

// removeLock undoes addLock. A lock owner without a state is forgotten.
func (c *client40) removeLock(st *state) {
	lo := st.by
	lo.states = slices.DeleteFunc(lo.states, func(o *state) bool { return o == st })
	if len(lo.states) == 0 && c.lockers[lo.name] == lo {
		delete(c.lockers, lo.name)
	}
}

// opReleaseLockOwner is RELEASE_LOCKOWNER, RFC 7530 section 16.37.
func (m *compound) opReleaseLockOwner() nfs4.Status {
	var a nfs4.Owner
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if status := m.useClient(a.Client); status != nfs4.OK {
		return status
	}
	m.takeTurn()
	cl := m.client
	cl.mu.Lock()
	lo := cl.zero.lockers[string(a.Owner)]
	var states []*state
	if lo != nil {
		states = slices.Clone(lo.states)
	}
	cl.mu.Unlock()
	for _, st := range states {
		if st.open.Locked(*st.locker) {
			return nfs4.ErrLocksHeld
		}
	}
	for _, st := range states {
		st.owner.mu.Lock()
		st.of.dropLock(st)
		st.owner.mu.Unlock()
	}
	return nfs4.OK
}
