package nfs

import (
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
)

// Limits of a session, RFC 8881 section 18.36; sizes in bytes.
const (
	maxSlots   = 64
	maxKept    = 8 << 10 // of a reply that is kept for a retransmission
	minReplies = 4 << 20 // of all sessions
	fixedCost  = 2 << 10 // of a session with its slots for callbacks
	minMessage = 128     // the least that a request and a reply need
)

// session is a session: a number of slots, in each of which one compound at a
// time is executed, once (RFC 8881 section 2.10.6).
//
// All fields are constant, but for what is in slots and back.
type session struct {
	id     nfs4.SessionID // 4 bytes of index, 12 random ones, which nobody else guesses
	client *client4
	slots  []slot
	cost   int64  // bytes at most, of clients.memory
	minor  uint32 // version of CREATE_SESSION

	fore nfs4.ChannelAttrs
	back backchannel
}

// slot remembers the last compound, to answer it again.
type slot struct {
	mu    sync.Mutex
	seq   uint32 // (mu) of the last compound
	used  bool   // (mu) there was one
	busy  bool   // (mu) it is still executed
	kept  bool   // (mu) reply is its results
	sum   uint64 // (mu) of what it asked for, or 0
	reply []byte // (mu)
}

// session finds a session by its id, or returns nil.
func (cs *clients) session(id *nfs4.SessionID) *session {
	sess := cs.sessions.get(binary.BigEndian.Uint32(id[:]))
	if sess == nil || sess.id != *id {
		return nil
	}
	return sess
}

// newSession makes a session with slots for which there is memory: see host4.
// Called with clients.mu held.
func (cs *clients) newSession(cl *client4, minor uint32, fore, back nfs4.ChannelAttrs) (*session, nfs4.Status) {
	each := int64(fore.MaxResponseCached) + int64(unsafe.Sizeof(slot{}))
	room := (cs.memory.Load()-cl.host.memory.Load())/2 - fixedCost
	if room < each {
		return nil, nfs4.ErrDelay
	}
	fore.MaxRequests = uint32(min(int64(fore.MaxRequests), room/each))
	sess := &session{
		client: cl,
		minor:  minor,
		slots:  make([]slot, fore.MaxRequests),
		cost:   fixedCost + each*int64(fore.MaxRequests),
		fore:   fore,
	}
	b := &sess.back
	b.attrs, b.slots, b.changed = back, make([]backSlot, back.MaxRequests), make(chan struct{})
	for n := back.MaxRequests; n > 0; n-- {
		b.free = append(b.free, n-1)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if len(cl.sessions) >= maxSessions {
		return nil, nfs4.ErrNoSpc
	}
	cs.memory.Add(-sess.cost)
	cl.host.memory.Add(sess.cost)
	index := cs.sessions.number()
	rand.Read(sess.id[4:])
	binary.BigEndian.PutUint32(sess.id[:], index)
	cl.sessions = append(cl.sessions, sess)
	cs.sessions.put(index, sess)
	return sess, nfs4.OK
}

// endSession makes a session unknown. What is executed in it is finished. It
// must be none of its client's any more.
func (cs *clients) endSession(sess *session) {
	cs.sessions.remove(binary.BigEndian.Uint32(sess.id[:]))
	cs.memory.Add(sess.cost)
	sess.client.host.memory.Add(-sess.cost)
	sess.endBack()
}

// dropSession ends a session of a client that lives on. It reports false if
// somebody else did already.
func (cl *client4) dropSession(sess *session) bool {
	cl.mu.Lock()
	i := slices.Index(cl.sessions, sess)
	if i >= 0 {
		cl.sessions = slices.Delete(cl.sessions, i, i+1)
		cl.pathChanged()
	}
	cl.mu.Unlock()
	if i >= 0 {
		cl.s.endSession(sess)
	}
	return i >= 0
}

// grant is what a session gets of what its client asks for, for calls in one
// direction.
func grant(a nfs4.ChannelAttrs, message, slots uint32) (nfs4.ChannelAttrs, nfs4.Status) {
	if a.MaxRequest < minMessage || a.MaxResponse < minMessage || a.MaxOps < 2 {
		return a, nfs4.ErrTooSmall
	}
	g := nfs4.ChannelAttrs{
		MaxRequest:  min(a.MaxRequest, message),
		MaxResponse: min(a.MaxResponse, message),
		MaxOps:      min(a.MaxOps, maxOps),
		MaxRequests: min(max(a.MaxRequests, 1), slots),
	}
	g.MaxResponseCached = min(a.MaxResponseCached, g.MaxResponse, maxKept)
	return g, nfs4.OK
}

// begin takes the slot for a compound. seq and sum are the request's. It is
// replayed if the compound was executed before and its results are kept; they
// are appended to w. If they were not to be kept, uncached is true.
func (sl *slot) begin(seq uint32, sum uint64, w *xdr.Writer) (status nfs4.Status, uncached bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	switch {
	case seq == sl.seq+1 && !sl.busy:
		sl.seq, sl.used, sl.busy, sl.kept, sl.sum = seq, true, true, false, sum
		return nfs4.OK, false
	case seq != sl.seq || !sl.used:
		return nfs4.ErrSeqMisordered, false
	case sl.busy:
		return nfs4.ErrDelay, false
	case sl.sum != 0 && sum != 0 && sl.sum != sum:
		return nfs4.ErrSeqFalseRetry, false
	case !sl.kept:
		return nfs4.OK, true
	}
	w.B = append(w.B, sl.reply...)
	return replayed, false
}

// end gives the slot back. reply is the results if they are to be kept, else nil.
func (sl *slot) end(reply []byte) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.busy = false
	if reply != nil {
		sl.reply = append(sl.reply[:0], reply...)
		sl.kept = true
	}
}

// requestSeed keys the sums of requests.
var requestSeed = maphash.MakeSeed()

// requestSum is a sum of what a compound asks for behind its SEQUENCE, and as
// whom, to tell a retransmission from another request with the same number. It
// leaves out most of what a WRITE carries, and is never 0.
func requestSum(args []byte, uid uint32) uint64 {
	const looked = 256
	return max(1, maphash.Bytes(requestSeed, args[:min(len(args), looked)])+uint64(uid))
}
