package nfs

import (
	"container/list"
	"encoding/binary"
	mathrand "math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// What the clients of NFSv4 hold. All of it that others can see is in the
// store: opens, share modes, byte-range locks. Here is what the client knows it
// by: client ids, sessions, owners and stateids.
//
// Locks, in this order:
//
//	client40.turn      minor version 0: see v40.go
//	  openOwner.mu     held over calls of the store, so that what a client makes
//	    clients.mu     of one file happens in the same order there and here
//	      delegation.mu
//	        client4.mu
//	          table.mu, slot.mu, backchannel.mu, callbacks.mu
//
// A request on what is open already takes none of them but its slot's.

// Limits of what clients may hold.
const (
	maxClients        = 16 << 10
	maxStates         = 1 << 20 // of all clients, and open owners of minor version 0
	maxStatesOfClient = 1 << 18
	maxOwners         = 1 << 16 // of a client
	maxSessions       = 64      // of a client
)

// clients is who uses NFSv4, and what they hold.
type clients struct {
	expiry int64         // (c) seconds
	now    *atomic.Int64 // (c) Server.now
	boot   uint8         // (c) in client ids and stateids: tells most of an earlier server's

	all      table[client4]
	sessions table[session]
	states   table[state]
	count    atomic.Int64 // states, and open owners of minor version 0
	memory   atomic.Int64 // bytes that are not yet promised to sessions for replies

	life    sync.Mutex
	closed  bool            // (life)
	running *sync.WaitGroup // (c) Server.running
	done    chan struct{}   // (c) Server.done

	mu      sync.Mutex
	records map[clientName]*record // (mu)
	hosts   map[hostKey]*host4     // (mu) those that have a client
	known   int                    // (mu) clients
	late    list.List              // (mu) clients that had expired when sweep saw them, the first one first
}

// clientName is what a client calls itself: client_owner4.co_ownerid, or in minor
// version 0 nfs_client_id4.id, which is another name.
type clientName struct {
	minor0 bool
	name   string
}

// record is who calls himself by one name: the client that does, and the one
// that will once it is confirmed by CREATE_SESSION or SETCLIENTID_CONFIRM.
type record struct{ confirmed, unconfirmed *client4 }

// principal is as whom a client speaks for itself. Whoever else uses its name is
// not believed to be it (RFC 8881 section 2.4.3).
type principal struct {
	flavor, uid uint32
	system      bool // not any user of the client's machine
}

func (k *call) principal() principal {
	p := principal{flavor: k.hdr.Cred.Flavor, uid: k.hdr.Cred.UID, system: k.c.peer.Addr().Port() < 1024}
	if uid, ok := k.c.peer.Owner(); ok {
		if p.system = uid == 0; !p.system {
			p.uid = uid
		}
	}
	return p
}

// client4 is one client, from EXCHANGE_ID or SETCLIENTID until it is dropped.
//
// Fields are (c) constant, (a) atomic, or protected by clients.mu or by mu.
type client4 struct {
	s        *clients        // (c)
	id       uint64          // (c) 8 bits of clients.boot, 32 random ones, 24 of index
	owner    clientName      // (c)
	verifier uint64          // (c) another one when the client has started anew
	who      principal       // (c)
	addr     netip.AddrPort  // (c) where it spoke first
	host     *host4          // (c)
	holder   memstore.Holder // (c)
	zero     *client40       // (c) of a client of minor version 0, else nil

	seen  atomic.Int64  // (a) when it was heard of last, in seconds of Server.now
	gone  atomic.Bool   // (a) it is dropped; changes with mu held
	flags atomic.Uint32 // (a) of SEQUENCE, in all its sessions

	sequence uint32                // (clients.mu) of the last CREATE_SESSION
	created  nfs4.CreateSessionRes // (clients.mu) its results, zero if it failed
	refused  bool                  // (clients.mu) it failed
	queue    *list.List            // (clients.mu) of those that are dropped for others, or nil
	queued   *list.Element         // (clients.mu) its place there

	mu        sync.Mutex
	reclaimed bool                  // (mu) RECLAIM_COMPLETE was called
	sessions  []*session            // (mu)
	owners    map[string]*openOwner // (mu)
	spare     *openOwner            // (mu) one of them, that nobody uses and has nothing open
	states    *state                // (mu) a list
	count     int                   // (mu) of states
	paths     chan struct{}         // (mu) closed when there may be another way to call it; nil if nobody waits

	delegations map[*memstore.Inode]*delegation // (mu)
	revoked     int                             // (mu) delegations, of which the client has not taken note
}

// state is what a stateid stands for: what an open owner has open of a file, what
// a lock owner has locked by such an open, or a delegation.
type state struct {
	other  [12]byte            // (c) of the stateid: clients.boot, 3 bytes of index, 2 of the client's, 6 random
	uid    uint32              // (c) of an open: whose it is
	client *client4            // (c)
	open   *memstore.Open      // (c) of a lock state, that of its open; of a delegation, the one that it came with
	owner  *openOwner          // (c) the same; nil of a delegation
	of     *state              // (c) of a lock state: its open; nil in an open's
	locker *memstore.LockOwner // (c) of a lock state
	by     *lockOwner          // (c) the same; nil but in minor version 0
	deleg  *delegation         // (c) of a delegation

	seq     atomic.Uint32 // (a) of the stateid; changes with owner.mu held
	access  atomic.Uint32 // (a) of an open, as in OPEN, 0 when it is closed; changes with owner.mu held
	revoked atomic.Bool   // (a) a delegation that was taken from the client
	asked   [2]uint8      // (owner.mu) which access and which deny OPENs asked for, as bits
	deny    uint32        // (owner.mu)
	ended   bool          // (owner.mu, or the delegation's mu) closed or freed
	locks   []*state      // (owner.mu) of an open

	next, prev *state // (client.mu)
}

// stateid is the state's on the wire.
func (st *state) stateid() nfs4.Stateid { return nfs4.Stateid{Seq: st.seq.Load(), Other: st.other} }

// bump counts a change of the state. The number 0 is left out (RFC 8881 section
// 8.2.2). Called with owner.mu held.
func (st *state) bump() {
	if st.seq.Add(1) == 0 {
		st.seq.Store(1)
	}
}

// openOwner is who opens, such as a user of the client.
type openOwner struct {
	client *client4 // (c)
	name   string   // (c)
	users  int      // (client.mu) calls that are about it now

	mu    sync.Mutex
	opens map[*memstore.Open]*state // (mu)

	zero openOwner40
}

// newClients makes the empty set. A client has expired when it gave no sign of
// life for expiry seconds; memory bounds what is kept of replies, in bytes.
func newClients(s *Server, expiry int64, memory int64) *clients {
	cs := &clients{
		expiry: expiry, now: &s.now, running: &s.running, done: s.done,
		records: make(map[clientName]*record), hosts: make(map[hostKey]*host4),
	}
	cs.boot = uint8(1 + random64()%255)
	cs.memory.Store(memory)
	return cs
}

// begin announces a goroutine of the server, which says when it ends by
// running.Done. It reports false if none may begin any more.
func (cs *clients) begin() bool {
	cs.life.Lock()
	defer cs.life.Unlock()
	if !cs.closed {
		cs.running.Add(1)
	}
	return !cs.closed
}

// close lets no goroutine begin any more.
func (cs *clients) close() {
	cs.life.Lock()
	defer cs.life.Unlock()
	cs.closed = true
}

// random64 is a number that nobody guesses.
func random64() uint64 {
	return mathrand.Uint64() // ChaCha8, keyed by the system
}

// newClient makes a client that is not yet confirmed. Called with clients.mu
// held.
func (k *call) newClient(owner clientName, verifier uint64) (*client4, nfs4.Status) {
	cs := k.c.s.clients
	if r := cs.records[owner]; r != nil && r.unconfirmed != nil {
		cs.drop(r.unconfirmed)
	}
	host := cs.host(k.c.peer)
	if !cs.makeRoom(host) {
		return nil, nfs4.ErrDelay
	}
	index := cs.all.number()
	cl := &client4{
		s:        cs,
		id:       uint64(cs.boot)<<56 | random64()>>32<<24 | uint64(index)&(1<<24-1),
		owner:    owner,
		verifier: verifier,
		who:      k.principal(),
		addr:     k.c.peer.Addr(),
		host:     host,
		owners:   make(map[string]*openOwner),
	}
	if owner.minor0 {
		cl.zero = new(client40)
	}
	cl.holder.Name, cl.holder.CachesAttrs = "nfs client "+k.c.peer.Addr().String(), true
	cl.holder.Drop = func() { cs.dropExpired(cl) }
	cl.renew()
	cs.all.put(index, cl)
	r := cs.records[owner]
	if r == nil {
		r = new(record)
		cs.records[owner] = r
	}
	r.unconfirmed = cl
	cs.enter(cl)
	return cl, nfs4.OK
}

// client finds a client by its id, or returns nil.
func (cs *clients) client(id uint64) *client4 {
	cl := cs.all.get(uint32(id & (1<<24 - 1)))
	if cl == nil || cl.id != id {
		return nil
	}
	return cl
}

// confirm makes a client the one that has its name. Whoever had it before has
// started anew and holds nothing any more. Called with clients.mu held.
func (cs *clients) confirm(cl *client4) {
	r := cs.records[cl.owner]
	if old := r.confirmed; old != nil && old != cl {
		cs.drop(old)
	}
	r.confirmed = cl
	cl.unqueue()
	if r.unconfirmed == cl {
		r.unconfirmed = nil
	}
	if cl.zero != nil {
		cl.zero.confirmed.Store(true)
	}
}

// drop ends a client and everything that it holds. Called with clients.mu held.
func (cs *clients) drop(cl *client4) {
	cl.mu.Lock()
	if cl.gone.Load() {
		cl.mu.Unlock()
		return
	}
	cl.gone.Store(true)
	sessions, states := cl.sessions, cl.states
	cl.sessions, cl.states, cl.count = nil, nil, 0
	if cl.zero != nil {
		cl.uncount(len(cl.owners))
		clear(cl.zero.lockers)
	}
	clear(cl.owners)
	cl.spare = nil
	cl.pathChanged()
	cl.mu.Unlock()

	for _, sess := range sessions {
		cs.endSession(sess)
	}
	for st := states; st != nil; st = st.next {
		cs.forget(st)
		if st.deleg != nil {
			st.deleg.lost()
		} else {
			st.open.Close()
		}
	}
	cs.all.remove(uint32(cl.id & (1<<24 - 1)))
	cs.left(cl)
	r := cs.records[cl.owner]
	switch cl {
	case r.confirmed:
		r.confirmed = nil
	case r.unconfirmed:
		r.unconfirmed = nil
	}
	if *r == (record{}) {
		delete(cs.records, cl.owner)
	}
}

// dropExpired is drop for a client that was not heard of for too long, unless it
// was meanwhile: somebody else is in need of what it holds.
func (cs *clients) dropExpired(cl *client4) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cl.holder.Expired.Store(cl.expired()); cl.expired() {
		cs.drop(cl)
	}
}

// dropAll ends all clients, when the server stops.
func (cs *clients) dropAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.all.each(cs.drop)
}

// sweep drops clients that have expired. One that holds something gets as much
// time again, unless that is in another's way: it may only have lost its
// connection.
func (cs *clients) sweep() {
	cs.all.each(func(cl *client4) {
		if cl.zero != nil {
			cl.sweepOwners()
		}
		if !cl.expired() {
			return
		}
		cl.holder.Expired.Store(true)
		cs.mu.Lock()
		defer cs.mu.Unlock()
		switch idle := cl.idle(); {
		case idle > 2*cs.expiry, idle > cs.expiry && !cl.holds():
			cs.drop(cl)
		case cl.queue == nil && !cl.gone.Load():
			cl.enqueue(&cs.late)
		}
	})
}

// idle is for how long the client was not heard of, in seconds.
func (cl *client4) idle() int64 {
	return cl.s.now.Load() - cl.seen.Load() - 1 // the clock is up to a second behind where seen is set
}

func (cl *client4) expired() bool { return cl.idle() > cl.s.expiry }

// renew notes a sign of life.
func (cl *client4) renew() {
	if now := cl.s.now.Load(); cl.seen.Load() != now {
		cl.seen.Store(now)
		cl.holder.Expired.Store(false)
	}
}

// holds tells whether the client has anything open or locked, busy whether it
// has that or a session.
func (cl *client4) holds() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.states != nil
}

func (cl *client4) busy() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.states != nil || len(cl.sessions) > 0
}

// add makes a state known by a stateid. The client may have been dropped
// meanwhile, or have too much already.
func (cl *client4) add(st *state) nfs4.Status {
	cs := cl.s
	if !cl.countState() {
		cl.makeStateRoom()
		return nfs4.ErrDelay
	}
	index := cs.states.number()
	binary.BigEndian.PutUint32(st.other[:], uint32(cs.boot)<<24|index)
	binary.BigEndian.PutUint64(st.other[4:], random64())
	binary.BigEndian.PutUint16(st.other[4:], uint16(cl.id))
	st.seq.Store(1)

	cl.mu.Lock()
	defer cl.mu.Unlock()
	status := nfs4.OK
	switch {
	case cl.gone.Load():
		status = nfs4.ErrExpired
	case cl.count >= maxStatesOfClient:
		status = nfs4.ErrDelay
	}
	if status != nfs4.OK {
		cl.uncount(1)
		cs.states.forget(index)
		return status
	}
	if st.next = cl.states; st.next != nil {
		st.next.prev = st
	}
	cl.states = st
	cl.count++
	if st.by != nil {
		cl.zero.addLock(st)
	}
	cs.states.put(index, st)
	return nfs4.OK
}

// stateIndex is a state's place in clients.states.
func stateIndex(other *[12]byte) uint32 { return binary.BigEndian.Uint32(other[:]) & (1<<24 - 1) }

// remove undoes add. Called with owner.mu held, or the delegation's mu.
func (cl *client4) remove(st *state) {
	st.ended = true
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.gone.Load() {
		return // drop does it
	}
	if st.next != nil {
		st.next.prev = st.prev
	}
	if st.prev != nil {
		st.prev.next = st.next
	} else {
		cl.states = st.next
	}
	cl.count--
	if st.by != nil {
		cl.zero.removeLock(st)
	}
	cl.s.forget(st)
}

// forget ends a stateid.
func (cs *clients) forget(st *state) {
	cs.states.remove(stateIndex(&st.other))
	st.client.uncount(1)
}

// state finds what a stateid names, for the compound's client. The special
// stateids name nothing.
func (m *compound) state(sid *nfs4.Stateid) (*state, nfs4.Status) {
	st, status := m.named(sid)
	switch {
	case status != nfs4.OK:
		return nil, status
	case st.of == nil && st.access.Load() == 0:
		return nil, nfs4.ErrBadStateid
	case st.revoked.Load():
		return nil, nfs4.ErrDelegRevoked
	}
	return st, st.at(sid)
}

// named is state, whatever the number in the stateid.
func (m *compound) named(sid *nfs4.Stateid) (*state, nfs4.Status) {
	if *sid == nfs4.CurrentStateid && m.minor > nfs4.Minor0 {
		*sid = m.sid
	}
	if sid.Special() {
		return nil, nfs4.ErrBadStateid
	}
	cs := m.k.c.s.clients
	st := cs.states.get(stateIndex(&sid.Other))
	found := st != nil && st.other == sid.Other
	switch {
	case m.minor == nfs4.Minor0 && !found:
		return nil, cs.lost(sid)
	case m.minor == nfs4.Minor0 && st.client.zero != nil:
		m.adopt(st.client)
	case !found || st.client != m.client:
		return nil, nfs4.ErrBadStateid
	}
	return st, nfs4.OK
}

// at compares the number in a stateid with the state's, RFC 8881 section 8.2.2
// and RFC 7530 section 9.1.4.
func (st *state) at(sid *nfs4.Stateid) nfs4.Status {
	switch ahead := int32(sid.Seq - st.seq.Load()); {
	case ahead == 0 || sid.Seq == 0 && st.client.zero == nil:
		return nfs4.OK
	case ahead > 0:
		return nfs4.ErrBadStateid
	}
	return nfs4.ErrOldStateid
}

// openOf is the open by which a READ, WRITE or change of size with a stateid is
// made; nil for the special stateids that stand for none (RFC 8881 section
// 8.2.3).
func (m *compound) openOf(sid *nfs4.Stateid, want memstore.Access) (*memstore.Open, nfs4.Status) {
	if *sid == nfs4.AnonymousStateid || *sid == nfs4.BypassStateid {
		return nil, nfs4.OK
	}
	st, status := m.state(sid)
	if status != nfs4.OK {
		return nil, status
	}
	if st.open.Inode() != m.cur.i {
		return nil, nfs4.ErrBadStateid
	}
	if st.deleg != nil {
		if want&memstore.AccessWrite != 0 && !st.deleg.write {
			return nil, nfs4.ErrOpenMode
		}
		return st.deleg.open.Load(), nfs4.OK
	}
	open := st
	if st.of != nil {
		open = st.of
	}
	access := open.access.Load()
	if m.minor == nfs4.Minor0 && !st.owner.zero.confirmed.Load() {
		return nil, nfs4.ErrBadStateid
	}
	if m.minor == nfs4.Minor0 && open.uid != m.k.who.UID && m.cur.i.Access(&m.k.who, want) != want {
		// Somebody who may only have found out the stateid.
		return nil, nfs4.ErrAccess
	}
	switch {
	case want&memstore.AccessWrite != 0 && access&nfs4.ShareWrite == 0:
		return nil, nfs4.ErrOpenMode
	case want&memstore.AccessRead != 0 && access&nfs4.ShareRead == 0:
		// A client that writes part of a page may have to read the rest, by
		// what it has open for writing (RFC 8881 section 9.1.2). That does not
		// give it permission to.
		return nil, nfs4.OK
	}
	return st.open, nfs4.OK
}

// enterOpen finds the open that a stateid names in the current file, and locks
// its owner for the operation. seq is the operation's place in what the owner
// does, which counts in minor version 0.
func (m *compound) enterOpen(sid *nfs4.Stateid, seq uint32) (*state, nfs4.Status) {
	return m.enter(sid, seq, false)
}

// enterLock is enterOpen for what a lock owner has locked by an open; the owner of
// that is locked, and seq is the lock owner's.
func (m *compound) enterLock(sid *nfs4.Stateid, seq uint32) (*state, nfs4.Status) {
	return m.enter(sid, seq, true)
}

func (m *compound) enter(sid *nfs4.Stateid, seq uint32, lock bool) (*state, nfs4.Status) {
	st, status := m.named(sid)
	if status != nfs4.OK {
		return nil, status
	}
	if st.open.Inode() != m.cur.i || st.deleg != nil || lock != (st.of != nil) {
		return nil, nfs4.ErrBadStateid
	}
	if m.minor == nfs4.Minor0 {
		m.takeTurn()
	}
	m.enterOwner(st.owner)
	if m.minor == nfs4.Minor0 {
		if status := m.follow(st, seq); status != nfs4.OK {
			return nil, status
		}
	}
	return st, st.valid(sid)
}

// enterOwner locks an owner for the operation.
func (m *compound) enterOwner(o *openOwner) {
	o.client.mu.Lock()
	o.enter()
	o.client.mu.Unlock()
	o.mu.Lock()
	m.owner = o
}

// valid tells whether a state that was found by sid is still what that names.
// Called with owner.mu held.
func (st *state) valid(sid *nfs4.Stateid) nfs4.Status {
	if st.ended || st.client.gone.Load() {
		return nfs4.ErrBadStateid
	}
	return st.at(sid)
}

// leave unlocks what the operation has locked. It is called when the operation
// has ended, also by a panic.
func (m *compound) leave() {
	if o := m.owner; o != nil {
		m.owner = nil
		o.leave()
	}
	if cl := m.turnOf; cl != nil {
		m.turnOf, m.places = nil, [2]place{}
		cl.zero.turn.Unlock()
	}
}

// openOwner finds or makes an open owner, and locks it until leave. It returns
// nil if the client was dropped or has too many.
func (cl *client4) openOwner(name []byte) *openOwner {
	cl.mu.Lock()
	o := cl.owners[string(name)]
	if o == nil {
		if cl.gone.Load() || len(cl.owners) >= maxOwners || cl.zero != nil && !cl.countState() {
			cl.mu.Unlock()
			return nil
		}
		o = &openOwner{client: cl, name: string(name), opens: make(map[*memstore.Open]*state)}
		cl.owners[o.name] = o
	}
	o.enter()
	cl.mu.Unlock()
	o.mu.Lock()
	return o
}

// enter counts a call. Called with client.mu held.
func (o *openOwner) enter() {
	o.users++
	if o.client.spare == o {
		o.client.spare = nil
	}
}

// leave unlocks an owner. One that has nothing open is forgotten when the next
// one has nothing open: many open a file, close it and open another. In minor
// version 0 it is forgotten after a while.
func (o *openOwner) leave() {
	cl := o.client
	cl.mu.Lock()
	o.users--
	if cl.zero == nil && o.users == 0 && len(o.opens) == 0 && cl.owners[o.name] == o {
		if cl.spare != nil {
			delete(cl.owners, cl.spare.name)
		}
		cl.spare = o
	}
	cl.mu.Unlock()
	o.mu.Unlock()
}

// lockOwner is what a lock owner is to the store. Its id begins with the
// client's, so that others can be told who is in their way.
func (cl *client4) lockOwner(name []byte) memstore.LockOwner {
	return memstore.LockOwner{Holder: &cl.holder, ID: string(append(binary.BigEndian.AppendUint64(nil, cl.id), name...))}
}

// table finds what clients name by an index with one atomic load. What is found
// there has to be compared with the rest of the name.
type table[T any] struct {
	chunks atomic.Pointer[[]*tableChunk[T]]

	mu   sync.Mutex
	free []uint32 // (mu)
	next uint32   // (mu)
}

const tableChunkSize = 256

type tableChunk[T any] [tableChunkSize]atomic.Pointer[T]

func (t *table[T]) get(index uint32) *T {
	chunks := t.chunks.Load()
	if chunks == nil || int(index/tableChunkSize) >= len(*chunks) {
		return nil
	}
	return (*chunks)[index/tableChunkSize][index%tableChunkSize].Load()
}

// number takes an index that is free, for put or forget.
func (t *table[T]) number() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		index := t.free[n-1]
		t.free = t.free[:n-1]
		return index
	}
	index := t.next
	t.next++
	var chunks []*tableChunk[T]
	if p := t.chunks.Load(); p != nil {
		chunks = *p
	}
	if int(index/tableChunkSize) >= len(chunks) {
		// Appending may write behind the end of a slice that readers hold,
		// which they do not look at.
		chunks = append(chunks, new(tableChunk[T]))
		t.chunks.Store(&chunks)
	}
	return index
}

func (t *table[T]) put(index uint32, v *T) {
	(*t.chunks.Load())[index/tableChunkSize][index%tableChunkSize].Store(v)
}

func (t *table[T]) forget(index uint32) {
	t.mu.Lock()
	t.free = append(t.free, index)
	t.mu.Unlock()
}

func (t *table[T]) remove(index uint32) {
	t.put(index, nil)
	t.forget(index)
}

// each calls fn for everything there is. What comes or goes meanwhile may be
// left out.
func (t *table[T]) each(fn func(*T)) {
	chunks := t.chunks.Load()
	if chunks == nil {
		return
	}
	for _, c := range *chunks {
		for i := range c {
			if v := c[i].Load(); v != nil {
				fn(v)
			}
		}
	}
}
