package nfs

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"ramserver/export"
	"ramserver/export/nfs/rpc"
)

// replayCache is the duplicate request cache (RFC 1813 section 4.5) of version 3
// and, where owners number nothing, 4.0 (RFC 7530 section 15.1): it
// remembers the results of recent requests that must not be executed twice,
// so that a client which sent one again, because the reply or the connection
// was lost, gets the answer of the first time.
//
// A request is known by a keyed hash of its xid, the client's address and user,
// the procedure and the first bytes of the arguments. The port is not part of it:
// Linux sends again from the same one, but others need not. The cache is a
// fixed array of sets; a new entry takes the place of the same client's oldest
// in its set, or else of the oldest, so that a busy client does not push out
// what others may yet ask for. A client counts its xids up, and gets one set
// after the other, which is also how the memory of both arrays is laid out.
type replayCache struct {
	seed    maphash.Seed
	sets    [replaySets]replaySet
	results [replayWays][replaySets][replayMax]byte // protected by replaySet.mu
}

const (
	replaySets = 512
	replayWays = 8
	replayArgs = 256       // bytes of the arguments that are hashed
	replayMax  = 384       // bytes of results that are kept; CREATE's are 248, and of version 4.0 with all attributes that Linux asks for 300
	replayAge  = 120       // seconds for which results are given again
	replayBusy = 1<<16 - 1 // replayEntry.length of a request in progress
)

type replaySet struct {
	mu      sync.Mutex
	next    uint16                  // (mu) counts entries made
	keys    [replayWays]uint64      // (mu) 0: free
	entries [replayWays]replayEntry // (mu)
}

type replayEntry struct {
	client uint32 // clientHash
	time   uint32 // seconds
	order  uint16 // replaySet.next when it was made
	length uint16 // of the results
}

func newReplayCache() *replayCache { return &replayCache{seed: maphash.MakeSeed()} }

// replayKey names a request.
type replayKey struct {
	key    uint64
	client uint32
	set    uint32
}

// key makes the name of a request. client is what clientHash made of its
// sender.
func (r *replayCache) key(h *rpc.Call, client uint32, args []byte) replayKey {
	sum := maphash.Bytes(r.seed, args[:min(len(args), replayArgs)])
	sum = maphash.Comparable(r.seed, [3]uint64{sum,
		uint64(h.XID)<<32 | uint64(h.Procedure), uint64(client)<<32 | uint64(h.Cred.UID)})
	return replayKey{max(sum, 1), client, (h.XID + client) % replaySets}
}

// clientHash stands for a client's address, and on this machine for the user
// whom its socket belongs to: what one claims to be must not get it another's
// reply.
func (r *replayCache) clientHash(p *export.Peer) uint32 {
	uid, _ := p.Owner()
	return uint32(maphash.Comparable(r.seed, struct {
		addr netip.Addr
		uid  uint32
	}{p.Addr().Addr(), uid}))
}

// begin looks for a request. If it was answered before, its results are
// appended to b. Else, unless it is still in progress, the request is noted
// and must be ended by end or forget. now is in seconds.
func (r *replayCache) begin(k replayKey, now uint32, b []byte) (reply []byte, known, busy bool) {
	s := &r.sets[k.set]
	s.mu.Lock()
	defer s.mu.Unlock()
	victim, best := 0, -1
	for way := range s.keys {
		e := &s.entries[way]
		stale := s.keys[way] == 0 || now-e.time > replayAge
		if s.keys[way] == k.key && !stale {
			if e.length == replayBusy {
				return b, true, true
			}
			return append(b, r.results[way][k.set][:e.length]...), true, false
		}
		rank := 0
		switch {
		case s.keys[way] == k.key:
			rank = 3
		case stale:
			rank = 2
		case e.client == k.client:
			rank = 1
		}
		if rank > best || rank == best && s.next-e.order > s.next-s.entries[victim].order {
			victim, best = way, rank
		}
	}
	s.next++
	s.keys[victim] = k.key
	s.entries[victim] = replayEntry{client: k.client, time: now, order: s.next, length: replayBusy}
	return b, false, false
}

// end keeps the results of a request. One that has lost its place to others
// meanwhile is not kept, nor are results that are larger than those of any
// procedure that needs it.
func (r *replayCache) end(k replayKey, results []byte) {
	if len(results) > replayMax {
		r.forget(k)
		return
	}
	s := &r.sets[k.set]
	s.mu.Lock()
	defer s.mu.Unlock()
	for way, key := range s.keys {
		if e := &s.entries[way]; key == k.key && e.length == replayBusy {
			e.length = uint16(copy(r.results[way][k.set][:], results))
			return
		}
	}
}

// forget drops a request whose reply must not be given again.
func (r *replayCache) forget(k replayKey) {
	s := &r.sets[k.set]
	s.mu.Lock()
	defer s.mu.Unlock()
	for way, key := range s.keys {
		if key == k.key {
			s.keys[way], s.entries[way] = 0, replayEntry{}
			return
		}
	}
}
