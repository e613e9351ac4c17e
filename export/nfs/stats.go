package nfs

import (
	"cmp"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"ramserver/export/nfs/nfs4"
)

// counters are one connection's, so that connections do not share a cache
// line. They are added up when somebody asks.
type counters struct {
	calls    [maxProcedures]atomic.Uint64
	errors   [maxProcedures]atomic.Uint64
	ops      [nfs4.OpEnd]atomic.Uint64
	refused  atomic.Uint64
	replayed atomic.Uint64
	panics   atomic.Uint64
	in, out  atomic.Uint64
}

func (n *counters) add(m *counters) {
	for i := range m.calls {
		n.calls[i].Add(m.calls[i].Load())
		n.errors[i].Add(m.errors[i].Load())
	}
	for i := range m.ops {
		n.ops[i].Add(m.ops[i].Load())
	}
	n.refused.Add(m.refused.Load())
	n.replayed.Add(m.replayed.Load())
	n.panics.Add(m.panics.Load())
	n.in.Add(m.in.Load())
	n.out.Add(m.out.Load())
}

// Stats is what a server has done since it was made, and for whom.
type Stats struct {
	Procedures []ProcedureStats // of every program, in the order of their numbers
	Operations []OperationStats // of the COMPOUNDs of NFS version 4, those that were called
	BytesIn    uint64           // received, record marks and headers among them
	BytesOut   uint64           // sent
	Refused    uint64           // calls denied, or to what is not served
	Replayed   uint64           // retransmissions answered as the first time
	Panics     uint64           // calls that failed in the server
	Accepted   uint64           // connections
	Evicted    uint64           // connections closed to make room for others
	Conns      []ConnStats      // oldest first
	Mounts     []Mount          // what clients said they mounted
	Clients4   []Client4Stats   // of NFS version 4, by address
}

// Client4Stats is a client of NFS version 4 and what it holds.
type Client4Stats struct {
	Name        string // what it calls itself
	Addr        netip.AddrPort
	Minor0      bool // it speaks minor version 0
	Idle        time.Duration
	Callable    bool // it has answered callbacks
	Sessions    int
	Opens       int
	Locks       int // lock owners by file
	Delegations int
	Revoked     int // delegations, of which it has not taken note
}

// ProcedureStats counts the calls of one procedure.
type ProcedureStats struct {
	Program string // "nfs", "mount", "nlm" or "nsm"
	Version uint32
	Name    string // as in RFC 1813: "GETATTR"
	Calls   uint64
	Errors  uint64 // whose results were an error, GARBAGE_ARGS and SYSTEM_ERR among them
}

// OperationStats counts an operation of NFS version 4.
type OperationStats struct {
	Name  string // as in RFC 8881: "GETATTR"
	Calls uint64
}

// ConnStats is one connection.
type ConnStats struct {
	Peer     netip.AddrPort
	Since    time.Time
	Calls    uint64
	BytesIn  uint64
	BytesOut uint64
}

// Stats adds up what the connections have counted.
func (s *Server) Stats() Stats {
	var sum counters
	var st Stats
	s.mu.Lock()
	sum.add(&s.ended)
	for c := range s.conns {
		sum.add(&c.count)
		cs := ConnStats{Since: c.Since, BytesIn: c.count.in.Load(), BytesOut: c.count.out.Load()}
		cs.Peer, _ = netip.ParseAddrPort(c.Conn.RemoteAddr().String())
		for i := range c.count.calls {
			cs.Calls += c.count.calls[i].Load()
		}
		st.Conns = append(st.Conns, cs)
	}
	st.Accepted, st.Evicted = s.accepted, s.evicted
	s.mu.Unlock()
	slices.SortFunc(st.Conns, func(a, b ConnStats) int {
		return cmp.Or(a.Since.Compare(b.Since), a.Peer.Compare(b.Peer))
	})
	st.BytesIn, st.BytesOut = sum.in.Load(), sum.out.Load()
	st.Refused, st.Replayed, st.Panics = sum.refused.Load(), sum.replayed.Load(), sum.panics.Load()
	for _, p := range programs {
		for v, procs := range p.versions {
			for i := range procs {
				if procs[i].run == nil {
					continue
				}
				st.Procedures = append(st.Procedures, ProcedureStats{
					Program: p.name, Version: p.low + uint32(v), Name: procs[i].name,
					Calls:  sum.calls[procs[i].index].Load(),
					Errors: sum.errors[procs[i].index].Load(),
				})
			}
		}
	}
	for op := range nfs4.OpEnd {
		if n := sum.ops[op].Load(); n > 0 {
			st.Operations = append(st.Operations, OperationStats{op.String(), n})
		}
	}
	st.Mounts = s.mounts.all()
	s.clients.all.each(func(cl *client4) { st.Clients4 = append(st.Clients4, cl.stats()) })
	slices.SortFunc(st.Clients4, func(a, b Client4Stats) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Name, b.Name))
	})
	return st
}

func (cl *client4) stats() Client4Stats {
	st := Client4Stats{
		Name: cl.owner.name, Addr: cl.addr, Minor0: cl.zero != nil,
		Idle: time.Duration(max(0, cl.idle())) * time.Second, Callable: cl.callable(),
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	st.Sessions, st.Delegations, st.Revoked = len(cl.sessions), len(cl.delegations), cl.revoked
	for s := cl.states; s != nil; s = s.next {
		switch {
		case s.deleg != nil:
		case s.of != nil:
			st.Locks++
		case s.access.Load() != 0:
			st.Opens++
		}
	}
	return st
}
