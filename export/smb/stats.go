package smb

import (
	"cmp"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// counters are one connection's, so that connections do not share a cache
// line. They are added up when somebody asks.
type counters struct {
	calls        [commandCount]atomic.Uint64
	errors       [commandCount]atomic.Uint64
	failedLogons atomic.Uint64
	panics       atomic.Uint64
	in, out      atomic.Uint64
}

func (n *counters) add(m *counters) {
	for i := range m.calls {
		n.calls[i].Add(m.calls[i].Load())
		n.errors[i].Add(m.errors[i].Load())
	}
	n.failedLogons.Add(m.failedLogons.Load())
	n.panics.Add(m.panics.Load())
	n.in.Add(m.in.Load())
	n.out.Add(m.out.Load())
}

// Stats is what a server has done since it was made, and for whom.
type Stats struct {
	Commands     []CommandStats // in the order of their numbers
	BytesIn      uint64         // received, headers among them
	BytesOut     uint64         // sent
	FailedLogons uint64
	Panics       uint64 // requests that failed in the server
	Accepted     uint64 // connections
	Evicted      uint64 // connections closed to make room for others
	Conns        []ConnStats
	Sessions     []SessionStats
}

// CommandStats counts the requests of one command.
type CommandStats struct {
	Name   string // as in MS-SMB2: "TREE_CONNECT"
	Calls  uint64
	Errors uint64
}

// ConnStats is one connection.
type ConnStats struct {
	Peer     netip.AddrPort
	Since    time.Time
	Calls    uint64
	BytesIn  uint64
	BytesOut uint64
}

// SessionStats is one user's logon.
type SessionStats struct {
	Peer      netip.AddrPort
	User      string
	Since     time.Time
	Shares    []string
	Files     int  // open ones
	Encrypted bool // every request has to be
}

// Stats adds up what the connections have counted.
func (s *Server) Stats() Stats {
	var sum counters
	var st Stats
	var sessions []*session
	s.mu.Lock()
	sum.add(&s.ended)
	for c := range s.conns {
		sum.add(&c.count)
		cs := ConnStats{Peer: c.addr(), Since: c.Since, BytesIn: c.count.in.Load(), BytesOut: c.count.out.Load()}
		for i := range c.count.calls {
			cs.Calls += c.count.calls[i].Load()
		}
		st.Conns = append(st.Conns, cs)
	}
	for _, ss := range s.sessions {
		sessions = append(sessions, ss)
	}
	st.Accepted, st.Evicted = s.accepted, s.evicted
	s.mu.Unlock()
	slices.SortFunc(st.Conns, func(a, b ConnStats) int {
		return cmp.Or(a.Since.Compare(b.Since), a.Peer.Compare(b.Peer))
	})
	for _, ss := range sessions {
		ss.mu.Lock()
		if !ss.since.IsZero() {
			x := SessionStats{Peer: ss.c.addr(), User: ss.user, Since: ss.since, Files: len(ss.files), Encrypted: ss.mustSeal}
			for _, t := range ss.trees {
				if t.exp != nil {
					x.Shares = append(x.Shares, t.exp.Name)
				}
			}
			slices.Sort(x.Shares)
			x.Shares = slices.Compact(x.Shares)
			st.Sessions = append(st.Sessions, x)
		}
		ss.mu.Unlock()
	}
	slices.SortFunc(st.Sessions, func(a, b SessionStats) int {
		return cmp.Or(a.Since.Compare(b.Since), a.Peer.Compare(b.Peer))
	})
	st.BytesIn, st.BytesOut = sum.in.Load(), sum.out.Load()
	st.FailedLogons, st.Panics = sum.failedLogons.Load(), sum.panics.Load()
	for i := range commands {
		st.Commands = append(st.Commands, CommandStats{commands[i].name, sum.calls[i].Load(), sum.errors[i].Load()})
	}
	return st
}

func (c *conn) addr() netip.AddrPort {
	a, _ := netip.ParseAddrPort(c.Conn.RemoteAddr().String())
	return a
}
