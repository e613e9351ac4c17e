package nfs

import (
	"container/list"
	"net/netip"
	"sync/atomic"

	"ramserver/export"
)

// host4 is the clients of NFSv4 that speak from one address, and what they have
// together of what there is a number of: places for clients, states, and memory
// for replies. It gets more only while as much would be left for others as it
// has, so that nobody takes the places of all.
//
// Fields are (c) constant, (a) atomic, or protected by clients.mu.
type host4 struct {
	key hostKey // (c)

	clients     int       // (clients.mu)
	unconfirmed list.List // (clients.mu) those of them, oldest first

	states atomic.Int64 // (a) of clients.count
	memory atomic.Int64 // (a) bytes, taken from clients.memory
}

// hostKey is an address. A user of this machine other than root is a host of his
// own.
type hostKey struct {
	addr netip.Addr
	uid  uint32
}

// host is where a peer's clients are counted. It is known when it has one. Called
// with clients.mu held.
func (cs *clients) host(p *export.Peer) *host4 {
	key := hostKey{addr: p.Addr().Addr().Unmap()}
	if uid, ok := p.Owner(); ok {
		key.uid = uid
	}
	h := cs.hosts[key]
	if h == nil {
		h = &host4{key: key}
	}
	return h
}

// modest is of how much of everything a host may have up to one part when clients
// of others that have expired are dropped for it.
const modest = 64

// makeRoom makes sure that there is a place for one more client of a host, if need
// be by dropping one that nobody will miss: the oldest of its own that are not
// confirmed, or the one that expired first. It reports false if there is none.
// What it takes does not depend on how many there are. Called with clients.mu
// held.
func (cs *clients) makeRoom(h *host4) bool {
	switch {
	case h.clients < maxClients-cs.known:
		return true
	case h.unconfirmed.Len() > 0:
		cs.drop(h.unconfirmed.Front().Value.(*client4))
		return true
	}
	return h.clients < maxClients/modest && cs.dropLate()
}

// dropLate drops the client that expired first, and reports whether there was one.
// Called with clients.mu held.
func (cs *clients) dropLate() bool {
	for cs.late.Len() > 0 {
		cl := cs.late.Front().Value.(*client4)
		cl.unqueue()
		if cl.expired() {
			cs.drop(cl)
			return true
		}
	}
	return false
}

// enter counts a new client. Called with clients.mu held.
func (cs *clients) enter(cl *client4) {
	h := cl.host
	cs.known++
	h.clients++
	cs.hosts[h.key] = h
	cl.enqueue(&h.unconfirmed)
}

// left undoes enter. Called with clients.mu held.
func (cs *clients) left(cl *client4) {
	h := cl.host
	cl.unqueue()
	cs.known--
	if h.clients--; h.clients == 0 {
		delete(cs.hosts, h.key)
	}
}

// enqueue makes the client one that may be dropped for others, unqueue one that may
// not. Called with clients.mu held.
func (cl *client4) enqueue(q *list.List) { cl.queue, cl.queued = q, q.PushBack(cl) }

func (cl *client4) unqueue() {
	if cl.queue != nil {
		cl.queue.Remove(cl.queued)
		cl.queue, cl.queued = nil, nil
	}
}

// countState counts one more state of the client, if there is a place for it.
func (cl *client4) countState() bool {
	cs := cl.s
	all, own := cs.count.Add(1), cl.host.states.Add(1)
	if own <= maxStates-all+1 {
		return true
	}
	cl.uncount(1)
	return false
}

// makeStateRoom may find a place for a state by the time that the client asks
// again.
func (cl *client4) makeStateRoom() {
	if cl.host.states.Load() < maxStates/modest {
		cl.s.mu.Lock()
		defer cl.s.mu.Unlock()
		cl.s.dropLate()
	}
}

// uncount undoes countState, for a number of states.
func (cl *client4) uncount(n int) {
	cl.s.count.Add(int64(-n))
	cl.host.states.Add(int64(-n))
}
