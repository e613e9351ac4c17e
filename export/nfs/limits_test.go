package nfs

import (
	"fmt"
	"net/netip"
	"testing"

	"ramserver/export"
	"ramserver/export/nfs/nfs4"
)

// What clients hold is bounded; who has to wait for a place is told so.
func TestLimits(t *testing.T) {
	s, _, _ := newServer(t)
	cs := s.clients
	c := open4(t, s, "one", 1)
	one := cs.client(c.id)
	opened := func(name string) op { return opening("o", name, nfs4.ShareRead, 0, new(nfs4.OpenRes)) }
	create := func(seq uint32, change func(a *nfs4.CreateSessionArgs)) nfs4.Status {
		a := nfs4.CreateSessionArgs{ClientID: c.id, Seq: seq, Fore: channel, Back: channel}
		change(&a)
		status, _ := send4(t, s, nfs4.Minor2, op{nfs4.OpCreateSession, &a, new(nfs4.CreateSessionRes)})
		return status
	}

	// Sessions of a client.
	seq := one.sequence
	for len(one.sessions) < maxSessions {
		if seq++; create(seq, func(*nfs4.CreateSessionArgs) {}) != nfs4.OK {
			t.Fatalf("session %d", len(one.sessions))
		}
	}
	seq++
	if got := create(seq, func(*nfs4.CreateSessionArgs) {}); got != nfs4.ErrNoSpc {
		t.Errorf("one session too many: %v", got)
	}
	for len(one.sessions) > 1 {
		one.dropSession(one.sessions[1])
	}

	// What a session may have.
	for _, tt := range []struct {
		what   string
		change func(a *nfs4.CreateSessionArgs)
		want   nfs4.Status
	}{
		{"small requests", func(a *nfs4.CreateSessionArgs) { a.Fore.MaxRequest = minMessage - 1 }, nfs4.ErrTooSmall},
		{"small replies", func(a *nfs4.CreateSessionArgs) { a.Fore.MaxResponse = minMessage - 1 }, nfs4.ErrTooSmall},
		{"one operation", func(a *nfs4.CreateSessionArgs) { a.Fore.MaxOps = 1 }, nfs4.ErrTooSmall},
		{"small callbacks", func(a *nfs4.CreateSessionArgs) { a.Back.MaxRequest = minMessage - 1 }, nfs4.ErrTooSmall},
		{"as much as can be asked for", func(a *nfs4.CreateSessionArgs) {
			const all = 1<<32 - 1
			a.Fore = nfs4.ChannelAttrs{MaxRequest: all, MaxResponse: all, MaxResponseCached: all, MaxOps: all, MaxRequests: all}
			a.Back = a.Fore
		}, nfs4.OK},
	} {
		seq++
		if got := create(seq, tt.change); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
	large := one.sessions[1]
	want := nfs4.ChannelAttrs{
		MaxRequest: uint32(s.maxRecord), MaxResponse: uint32(s.maxRecord), MaxResponseCached: maxKept, MaxOps: maxOps, MaxRequests: maxSlots,
	}
	if large.fore != want || large.back.attrs.MaxRequests != maxBackSlots {
		t.Errorf("granted %+v and %+v", large.fore, large.back.attrs)
	}

	// Opens, locks and delegations of a client, and of all.
	one.count += maxStatesOfClient
	c.must(nfs4.ErrDelay, putRootFH(), opened("f"))
	one.count -= maxStatesOfClient
	cs.count.Add(maxStates)
	c.must(nfs4.ErrDelay, putRootFH(), opened("f"))
	cs.count.Add(-maxStates)
	c.must(nfs4.OK, putRootFH(), opened("f"))

	// Owners of a client. Those that have nothing open are forgotten.
	for n := range 1000 {
		one.openOwner(fmt.Append(nil, n)).leave()
	}
	if n := len(one.owners); n > 2 {
		t.Errorf("%d owners are kept, one of whom has a file open", n)
	}
	for n := range maxOwners {
		one.owners[fmt.Sprint("owner ", n)] = new(openOwner)
	}
	c.must(nfs4.ErrDelay, putRootFH(), opening("another", "f", nfs4.ShareRead, 0, nil))
	c.must(nfs4.OK, putRootFH(), opened("f"))
	for n := range maxOwners {
		delete(one.owners, fmt.Sprint("owner ", n))
	}

	// Replies that are kept for sessions.
	free := cs.memory.Load()
	cs.memory.Store(one.host.memory.Load() + 1)
	seq++
	if got := create(seq, func(*nfs4.CreateSessionArgs) {}); got != nfs4.ErrDelay {
		t.Errorf("no memory for replies: %v", got)
	}
	cs.memory.Store(free)
	if got := create(seq, func(*nfs4.CreateSessionArgs) {}); got != nfs4.OK {
		t.Errorf("memory for replies again: %v", got)
	}
}

// begin4 has a client of a host begin: EXCHANGE_ID, and CREATE_SESSION too if it
// is to be known.
func begin4(s *Server, host, name string, known bool) (*client4, nfs4.Status) {
	k := &call{c: &conn{s: s, peer: export.PacketPeer(netip.AddrPortFrom(netip.MustParseAddr(host), 1000))}}
	cs := s.clients
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cl, status := k.newClient(clientName{name: host + " " + name}, 1)
	if status == nfs4.OK && known {
		cs.confirm(cl)
	}
	return cl, status
}

// A client that begins finds room while others of its host have only begun, and
// when those have made themselves known none. Hosts do not take all places: each
// leaves as many to the others as it has.
func TestManyClients(t *testing.T) {
	const a, b, c = "10.0.0.1", "10.0.0.2", "fd00::3"
	s, _, _ := newServer(t)
	cs := s.clients
	many := func(host string, from, n int, known bool) (begun int) {
		for n := range n {
			if _, status := begin4(s, host, fmt.Sprint(from+n), known); status == nfs4.OK {
				begun++
			}
		}
		return begun
	}
	first, _ := begin4(s, b, "first", false)
	oldest, _ := begin4(s, a, "oldest", false)
	if n := many(a, 0, maxClients, false); n != maxClients || cs.known != maxClients/2+1 || !oldest.gone.Load() || first.gone.Load() {
		t.Errorf("%d have begun, %d are there, the oldest: %v, another host's: %v", n, cs.known, !oldest.gone.Load(), !first.gone.Load())
	}
	cs.mu.Lock()
	cs.all.each(func(cl *client4) { cs.confirm(cl) })
	cs.mu.Unlock()
	for _, tt := range []struct {
		host string
		want int
	}{{a, 0}, {b, maxClients/4 - 1}, {c, maxClients / 8}, {a, 0}, {b, 0}, {c, 0}, {"fd00::4", maxClients / 16}} {
		if n := many(tt.host, maxClients, maxClients, true); n != tt.want {
			t.Errorf("%d more of %s, want %d", n, tt.host, tt.want)
		}
	}

	// With no place left, those that have expired make room for a host with few.
	for n := 0; cs.known < maxClients; n++ {
		if got := many(fmt.Sprint("10.0.1.", n), 0, maxClients, true); got == 0 {
			t.Fatalf("%d are known, and there is no place", cs.known)
		}
	}
	const late = "10.0.9.9"
	if n := many(late, 0, 1, true); n != 0 {
		t.Error("one too many")
	}
	for _, cl := range []*client4{first, oldest} {
		cl.seen.Store(cs.now.Load() - cs.expiry - 10)
		cs.mu.Lock()
		if !cl.gone.Load() {
			cl.enqueue(&cs.late)
		}
		cs.mu.Unlock()
	}
	if n := many(a, 2*maxClients, 1, true); n != 0 || first.gone.Load() {
		t.Error("a host with many takes the place of one that expired")
	}
	if n := many(late, 0, 2, true); n != 1 || !first.gone.Load() || cs.known != maxClients {
		t.Errorf("%d have begun in the place of one, %d are there", n, cs.known)
	}
	cs.dropAll()
	if cs.known != 0 || len(cs.hosts) != 0 || len(cs.records) != 0 || cs.late.Len() != 0 {
		t.Errorf("left: %d clients, %d hosts, %d names", cs.known, len(cs.hosts), len(cs.records))
	}
}

// Nor do they take all states, or all memory for replies.
func TestHostsShare(t *testing.T) {
	s, _, _ := newServer(t)
	cs := s.clients
	one, _ := begin4(s, "10.0.0.1", "one", true)
	two, _ := begin4(s, "10.0.0.1", "two", true)
	other, _ := begin4(s, "10.0.0.2", "other", true)
	states := func(cl *client4) (n int64) {
		for cl.countState() {
			n++
		}
		return n
	}
	if a, b, c := states(one), states(two), states(other); a != maxStates/2 || b != 0 || c != maxStates/4 {
		t.Errorf("%d states, %d of a client of the same host, %d of another's", a, b, c)
	}
	free := cs.memory.Load()
	sessions := func(cl *client4) (n int64) {
		for {
			fore := nfs4.ChannelAttrs{MaxResponseCached: maxKept, MaxRequests: maxSlots}
			sess, status := cs.newSession(cl, nfs4.Minor2, fore, nfs4.ChannelAttrs{MaxRequests: 1})
			if status != nfs4.OK {
				return n
			}
			n += sess.cost
		}
	}
	within := func(got, want int64) bool { return got <= want && got > want-4*maxKept }
	if a, c := sessions(one)+sessions(two), sessions(other); !within(a, free/2) || !within(c, free/4) {
		t.Errorf("%d bytes of %d for a host's sessions, %d for another's", a, free, c)
	}
	one.uncount(maxStates / 2)
	other.uncount(maxStates / 4)
	cs.dropAll()
	if got := cs.memory.Load(); got != free || one.host.memory.Load() != 0 || one.host.states.Load() != 0 {
		t.Errorf("%d bytes are free, were %d", got, free)
	}
}

// BenchmarkExchangeID is a client that begins, when few and when many are known.
func BenchmarkExchangeID(b *testing.B) {
	for _, n := range []int{0, maxClients/2 - 1} {
		b.Run(fmt.Sprint("known=", n), func(b *testing.B) {
			s, _, _ := newServer(b)
			for n := range n {
				begin4(s, "10.0.0.1", fmt.Sprint(n), true)
			}
			for n := 0; b.Loop(); n++ {
				if _, status := begin4(s, "10.0.0.1", fmt.Sprint("new ", n%maxClients), false); status != nfs4.OK {
					b.Fatal(status)
				}
			}
		})
	}
}
