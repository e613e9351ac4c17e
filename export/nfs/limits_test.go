package nfs

import (
	"bytes"
	"fmt"
	"testing"

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
	cs.memory.Store(1)
	seq++
	if got := create(seq, func(*nfs4.CreateSessionArgs) {}); got != nfs4.ErrDelay {
		t.Errorf("no memory for replies: %v", got)
	}
	cs.memory.Store(free)
	if got := create(seq, func(*nfs4.CreateSessionArgs) {}); got != nfs4.OK {
		t.Errorf("memory for replies again: %v", got)
	}
}

// A client that begins finds room while others have only begun, and when those
// have made themselves known none; who is known keeps what he has.
func TestManyClients(t *testing.T) {
	s, _, _ := newServer(t)
	cs := s.clients
	first := open4(t, s, "first", 1)
	names := func(from, n int) {
		var messages [][]byte
		for n := range n {
			messages = append(messages, call4(uint32(n), nfs4.Minor2, exchangeID(fmt.Sprint("client ", from+n), 1, nil)))
		}
		if replies, err := converse(t, s, bytes.NewReader(calls(messages...))); len(replies) != n {
			t.Fatal(len(replies), err)
		}
	}
	names(0, maxClients+10)
	if n := len(cs.records); n != maxClients {
		t.Errorf("%d clients are known", n)
	}
	first.must(nfs4.OK)
	cs.mu.Lock()
	cs.all.each(func(cl *client4) { cs.confirm(cl) })
	cs.mu.Unlock()
	if status, _ := send4(t, s, nfs4.Minor2, exchangeID("late", 1, nil)); status != nfs4.ErrDelay {
		t.Errorf("one more: %v", status)
	}
	first.must(nfs4.OK)
}
