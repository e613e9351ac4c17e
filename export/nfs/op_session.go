package nfs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"os"

	"ramserver/export"
	"ramserver/export/nfs/nfs4"
)

// The operations on clients and sessions of minor versions 1 and 2.

// clientFlags is what a client may say of itself in EXCHANGE_ID.
const clientFlags = nfs4.ExchgIDSuppMovedRefer | nfs4.ExchgIDSuppMovedMigr | nfs4.ExchgIDBindPrincStateid |
	nfs4.ExchgIDMaskPNFS | nfs4.ExchgIDUpdConfirmedRecA

// opExchangeID is EXCHANGE_ID, RFC 8881 section 18.35. The cases are numbered as
// in section 18.35.4.
func (m *compound) opExchangeID() nfs4.Status {
	k := m.k
	var a nfs4.ExchangeIDArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	flags := uint32(clientFlags)
	if m.minor >= nfs4.Minor2 {
		flags |= nfs4.ExchgIDSuppFenceOps
	}
	if a.Flags&^flags != 0 || a.Protect.How != nfs4.ProtectNone {
		// Nobody has the kind of credential that the other ways to protect
		// state need.
		return nfs4.ErrInval
	}
	cs, who := k.c.s.clients, k.principal()
	owner := clientName{name: string(a.Owner)}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var cl *client4 // the confirmed one
	if r := cs.records[owner]; r != nil {
		cl = r.confirmed
	}
	switch {
	case a.Flags&nfs4.ExchgIDUpdConfirmedRecA != 0:
		switch {
		case cl == nil:
			return nfs4.ErrNoEnt // case 7
		case cl.verifier != a.Verf:
			return nfs4.ErrNotSame // case 8
		case cl.who != who:
			return nfs4.ErrPerm // case 9
		}
		// Case 6.
	case cl != nil && cl.who == who && cl.verifier == a.Verf:
		// Case 2.
	default:
		if cl != nil && cl.who != who {
			// Case 3.
			if cl.busy() && !cl.expired() {
				return nfs4.ErrClidInUse
			}
			cs.drop(cl)
		}
		// Cases 1, 4 and 5.
		var status nfs4.Status
		if cl, status = k.newClient(owner, a.Verf); status != nfs4.OK {
			return status
		}
	}
	name := k.serverOwner()
	res := nfs4.ExchangeIDRes{
		ClientID: cl.id, Seq: cl.sequence + 1, Flags: nfs4.ExchgIDUseNonPNFS,
		ServerMajor: name, Scope: name,
	}
	if cs.records[owner].confirmed == cl {
		res.Flags |= nfs4.ExchgIDConfirmedR
	}
	res.Encode(k.w)
	return nfs4.OK
}

// serverName is what a server on a machine with some stores is called: the same
// after a restart.
func serverName(exports *export.Table) [sha256.Size]byte {
	h := sha256.New()
	host, _ := os.Hostname()
	machine, _ := os.ReadFile("/etc/machine-id") // copies of a machine often have one hostname
	fmt.Fprintf(h, "ramserver nfs\x00%s\x00%s", host, machine)
	for _, e := range exports.All() {
		fmt.Fprintf(h, "\x00%d %d", e.ID, e.Store.ID())
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// serverOwner is what the server calls itself to a client. Sessions of servers
// with one name are taken for sessions of one (RFC 8881 section 2.10.5), so
// another port has another name.
func (k *call) serverOwner() []byte {
	port := 0
	if a, ok := k.c.Conn.LocalAddr().(*net.TCPAddr); ok {
		port = a.Port
	}
	name := sha256.Sum256(binary.BigEndian.AppendUint16(k.c.s.name[:], uint16(port)))
	return name[:16]
}

// opCreateSession is CREATE_SESSION, RFC 8881 section 18.36. The client id has one
// slot for it. After an error some clients count on, and some do not; either is
// executed, and so is a retransmission, with the same outcome.
func (m *compound) opCreateSession() nfs4.Status {
	k := m.k
	var a nfs4.CreateSessionArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	cs := k.c.s.clients
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cl := cs.client(a.ClientID)
	switch {
	case cl == nil || cl.zero != nil:
		return nfs4.ErrStaleClientID
	case a.Seq == cl.sequence && cl.created != (nfs4.CreateSessionRes{}):
		cl.created.Encode(k.w)
		return nfs4.OK
	case a.Seq != cl.sequence+1 && !(a.Seq == cl.sequence && cl.refused):
		return nfs4.ErrSeqMisordered
	case cl.who != k.principal() && cs.records[cl.owner].confirmed != cl:
		return nfs4.ErrClidInUse
	}
	res, status := m.createSession(cl, &a)
	if status == nfs4.ErrDelay {
		return status // nothing has happened
	}
	cl.sequence, cl.created, cl.refused = a.Seq, res, status != nfs4.OK
	if status != nfs4.OK {
		return status
	}
	res.Encode(k.w)
	return nfs4.OK
}

// createSession makes the session that a client asks for, which confirms the
// client. Called with clients.mu held.
func (m *compound) createSession(cl *client4, a *nfs4.CreateSessionArgs) (res nfs4.CreateSessionRes, status nfs4.Status) {
	if a.Flags&^(nfs4.SessionPersist|nfs4.SessionConnBackChan|nfs4.SessionConnRDMA) != 0 {
		return res, nfs4.ErrInval
	}
	s := m.k.c.s
	fore, status := grant(a.Fore, uint32(s.maxRecord), maxSlots)
	if status != nfs4.OK {
		return res, status
	}
	back, status := grant(a.Back, uint32(s.maxRecord), maxBackSlots)
	if status != nfs4.OK {
		return res, status
	}
	sess, status := s.clients.newSession(cl, m.minor, fore, back)
	if status != nfs4.OK {
		return res, status
	}
	s.clients.confirm(cl)
	cl.renew()
	res = nfs4.CreateSessionRes{Session: sess.id, Seq: a.Seq, Fore: sess.fore, Back: back}
	if sess.setCallback(a.CBProgram, a.Sec) && a.Flags&nfs4.SessionConnBackChan != 0 {
		res.Flags = nfs4.SessionConnBackChan
		sess.bind(m.k.c)
	}
	return res, nfs4.OK
}

// opSequence is SEQUENCE, RFC 8881 section 18.46.
func (m *compound) opSequence() nfs4.Status {
	k := m.k
	var a nfs4.SequenceArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	const header = 40 // of the call without a credential
	cs := k.c.s.clients
	sess := cs.session(&a.Session)
	switch {
	case sess == nil:
		return nfs4.ErrBadSession
	case a.Slot >= sess.fore.MaxRequests:
		return nfs4.ErrBadSlot
	case a.HighestSlot >= sess.fore.MaxRequests:
		return nfs4.ErrBadHighSlot
	case m.count > int(sess.fore.MaxOps):
		return nfs4.ErrTooManyOps
	case header+m.all.Len()+k.freshSize > int(sess.fore.MaxRequest):
		return nfs4.ErrReqTooBig
	}
	m.limit, m.caching = int(sess.fore.MaxResponse), a.CacheThis
	sum := uint64(0)
	if a.CacheThis {
		m.limit = int(sess.fore.MaxResponseCached)
		if k.fresh == nil {
			rest := k.args
			sum = requestSum(rest.Rest(), k.hdr.Cred.UID)
		}
	}
	if m.room() < sequenceSize {
		return m.tooBig()
	}
	cl, sl := sess.client, &sess.slots[a.Slot]
	at := len(k.w.B)
	status, uncached := sl.begin(a.Seq, sum, k.w)
	if status != nfs4.OK && status != replayed {
		return status
	}
	if cl.gone.Load() {
		return nfs4.ErrBadSession // it was dropped just now
	}
	cl.renew()
	if status == replayed {
		k.w.B = append(k.w.B[:m.start], k.w.B[at:]...)
		return replayed
	}
	if sess.back.path.Load() == pathUntried {
		sess.probe(k.c.s)
	}
	m.sess, m.client, k.who.Holder = sess, cl, &cl.holder
	m.about = nfs4.ReferringCall{Session: sess.id, Seq: a.Seq, Slot: a.Slot}
	if m.uncached = uncached; !uncached {
		m.slot = sl
	}
	last := sess.fore.MaxRequests - 1
	res := nfs4.SequenceRes{
		Session: a.Session, Seq: a.Seq, Slot: a.Slot, HighestSlot: last, TargetHighestSlot: last,
		Flags: sess.backFlags(),
	}
	res.Encode(k.w)
	return nfs4.OK
}

// sequenceSize is the size of SEQUENCE4resok.
const sequenceSize = 16 + 5*4

// finish gives the slot of a compound back, with its results, if there are any.
func (m *compound) finish(results []byte, good bool) {
	if m.slot == nil {
		return
	}
	if !m.caching || !good {
		results = nil
	}
	m.slot.end(results)
	m.slot = nil
}

// opBindConnToSession is BIND_CONN_TO_SESSION, RFC 8881 section 18.34. Any
// connection may be used for requests in any session, so only the other
// direction is remembered.
func (m *compound) opBindConnToSession() nfs4.Status {
	k := m.k
	var a nfs4.BindConnToSessionArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	sess := k.c.s.clients.session(&a.Session)
	if sess == nil {
		return nfs4.ErrBadSession
	}
	sess.client.renew()
	res := nfs4.BindConnToSessionRes{Session: a.Session, Dir: nfs4.DirFore}
	switch a.Dir {
	case nfs4.DirFore:
		if sess.bound(k.c) {
			return nfs4.ErrInval
		}
	case nfs4.DirBack:
		res.Dir = nfs4.DirBack
		sess.bind(k.c)
	default:
		res.Dir = nfs4.DirBoth
		sess.bind(k.c)
	}
	res.Encode(k.w)
	return nfs4.OK
}

// opBackchannelCtl is BACKCHANNEL_CTL, RFC 8881 section 18.33.
func (m *compound) opBackchannelCtl() nfs4.Status {
	var a nfs4.BackchannelCtlArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if !m.sess.setCallback(a.Program, a.Sec) {
		return nfs4.ErrNoEnt // only handles of RPCSEC_GSS, which are not known here
	}
	return nfs4.OK
}

// opDestroySession is DESTROY_SESSION, RFC 8881 section 18.37.
func (m *compound) opDestroySession() nfs4.Status {
	k := m.k
	var id nfs4.SessionID
	if id.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	sess := k.c.s.clients.session(&id)
	switch {
	case sess == nil:
		return nfs4.ErrBadSession
	case sess == m.sess && m.index < m.count-1:
		return nfs4.ErrNotOnlyOp // the last one in the session
	case !sess.client.dropSession(sess):
		return nfs4.ErrBadSession
	}
	return nfs4.OK
}

// opDestroyClientID is DESTROY_CLIENTID, RFC 8881 section 18.50.
func (m *compound) opDestroyClientID() nfs4.Status {
	k := m.k
	var a nfs4.ClientID
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	cs := k.c.s.clients
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cl := cs.client(a.ID)
	switch {
	case cl == nil || cl.zero != nil:
		return nfs4.ErrStaleClientID
	case cl.busy():
		return nfs4.ErrClientIDBusy
	}
	cs.drop(cl)
	return nfs4.OK
}

// opReclaimComplete is RECLAIM_COMPLETE, RFC 8881 section 18.51. Nothing
// outlives the server, so there is nothing to reclaim; a client says so before
// it opens anything.
func (m *compound) opReclaimComplete() nfs4.Status {
	k := m.k
	var a nfs4.ReclaimCompleteArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	if a.OneFS {
		if m.cur.none() {
			return nfs4.ErrNoFileHandle
		}
		return nfs4.OK
	}
	cl := m.client
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.reclaimed {
		return nfs4.ErrCompleteAlready
	}
	cl.reclaimed = true
	return nfs4.OK
}

// opSetSSV is SET_SSV, RFC 8881 section 18.47, for clients that EXCHANGE_ID has
// granted a way to protect state which there is not.
func (m *compound) opSetSSV() nfs4.Status {
	var a nfs4.SetSSVArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	return nfs4.ErrInval
}

// opTestStateid is TEST_STATEID, RFC 8881 section 18.48.
func (m *compound) opTestStateid() nfs4.Status {
	k := m.k
	n := k.args.Count(maxTested, stateidSize)
	if !k.decoded() {
		return nfs4.ErrBadXDR
	}
	if m.room() < 4+4*n {
		return m.tooBig()
	}
	k.w.Uint32(uint32(n))
	for range n {
		var sid nfs4.Stateid
		sid.Decode(&k.args)
		status := nfs4.ErrBadStateid
		if sid != nfs4.CurrentStateid {
			_, status = m.state(&sid)
		}
		k.w.Uint32(uint32(status))
	}
	return nfs4.OK
}

// maxTested bounds the stateids of one TEST_STATEID, and stateidSize is the size
// of each.
const (
	maxTested   = 1 << 16
	stateidSize = 16
)

// opFreeStateid is FREE_STATEID, RFC 8881 section 18.38: of a lock owner that
// has nothing locked any more, or of a delegation that was revoked.
func (m *compound) opFreeStateid() nfs4.Status {
	k := m.k
	var a nfs4.StateidArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	st, status := m.named(&a.Stateid)
	switch {
	case status != nfs4.OK:
		return status
	case st.revoked.Load():
		st.deleg.forgetRevoked()
		return nfs4.OK
	case st.deleg != nil:
		return nfs4.ErrLocksHeld
	}
	m.enterOwner(st.owner)
	if status := st.valid(&a.Stateid); status != nfs4.OK {
		return status
	}
	if st.of == nil || st.open.Locked(*st.locker) {
		return nfs4.ErrLocksHeld
	}
	st.of.dropLock(st)
	return nfs4.OK
}
