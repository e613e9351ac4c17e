package nfs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ramserver/export"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// The procedures of NSM version 1: hosts that have locks of each other's files
// tell each other when they have restarted. What a host's own NLM asks of it is
// refused here, as this server's NLM needs nobody to ask.

// nsmStat is STAT: whether the server would monitor a host. It answers its own
// state.
func (k *call) nsmStat() bool {
	var a nfs3.NSMName
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	(&nfs3.NSMStatRes{Failed: true, State: k.c.s.nlm.hosts.state}).Encode(k.w)
	return true
}

// nsmMon is MON, for programs of this machine, which have a monitor of their own.
func (k *call) nsmMon() bool {
	k.failed = true
	(&nfs3.NSMStatRes{Failed: true, State: k.c.s.nlm.hosts.state}).Encode(k.w)
	return true
}

// nsmUnmon is UNMON and UNMON_ALL: nothing was monitored.
func (k *call) nsmUnmon() bool {
	(&nfs3.NSMState{State: k.c.s.nlm.hosts.state}).Encode(k.w)
	return true
}

// nsmNotify is NOTIFY: a host has restarted, and what it had locked is released.
// Only root of that host may say so, as far as a port shows.
func (k *call) nsmNotify() bool {
	var a nfs3.NSMNotify
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	from := k.c.peer.Addr()
	if uid, known := k.c.peer.Owner(); known && uid != 0 || !known && from.Port() >= 1024 && !k.c.s.insecurePorts() {
		k.failed = true
		return true
	}
	k.c.s.nlm.notified(from.Addr(), a.Name, a.State)
	return true
}

func (s *Server) insecurePorts() bool {
	return slices.ContainsFunc(s.cfg.Exports.All(), func(e *export.Export) bool { return e.InsecurePorts })
}

// ServePackets answers NSM by UDP, as which hosts send their notices, until
// Shutdown: then it returns nil. It closes c.
func (s *Server) ServePackets(c *net.UDPConn) error {
	defer c.Close()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.listeners[c] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	if err := wantDestination(c, c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is4()); err != nil {
		return fmt.Errorf("nfs: packets: %w", err)
	}
	servePackets(c, s.cfg.Exports.Admits, func(w *xdr.Writer, rec []byte, from netip.AddrPort, _ netip.Addr) {
		r := xdr.NewReader(rec)
		var h rpc.Call
		if h.Decode(&r) == nil && h.Program != rpc.ProgramStatus {
			rpc.Accepted(w, h.XID, rpc.ProgUnavail)
			return
		}
		// Notices are rare: one has a connection of its own.
		k := call{c: &conn{s: s, peer: export.PacketPeer(from)}, w: w}
		if k.serve(rec) != nil {
			w.B = w.B[:0]
			return
		}
		w.B = w.B[rpc.MarkSize:]
		s.mu.Lock()
		s.ended.add(&k.c.count)
		s.mu.Unlock()
	})
	return nil
}

// hostList is the hosts that hold or held locks, in a file, for those that come
// after this server to tell them that their locks are lost.
//
// The file has the server's state, and lines of a host's address and the
// server's own that it used.
type hostList struct {
	path  string // (c) "" for no file
	state int32  // (c) of this server's NSM: odd, and another one after each start

	mu    sync.Mutex
	hosts map[lockHost]bool // (mu) true: to be told of the start
}

type lockHost struct{ host, server netip.Addr }

// maxHosts bounds the list.
const maxHosts = maxNLMClients

// openHostList reads the list that an earlier server has left at path.
func openHostList(path string) (*hostList, error) {
	// Without an earlier one's state the time makes one that none had.
	l := &hostList{path: path, state: int32(time.Now().Unix()) | 1, hosts: make(map[lockHost]bool)}
	if path == "" {
		return l, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() && len(l.hosts) < maxHosts {
		var last int32
		if n, _ := fmt.Sscanf(lines.Text(), "state %d", &last); n == 1 {
			l.state = max(l.state, last+2) | 1
			continue
		}
		host, server, _ := strings.Cut(lines.Text(), " ")
		h, err1 := netip.ParseAddr(host)
		s, err2 := netip.ParseAddr(server)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%s: %q is not a host and a server", path, lines.Text())
		}
		l.hosts[lockHost{h, s}] = true
	}
	return l, lines.Err()
}

// add notes a host before it gets its first lock.
func (l *hostList) add(host, server netip.Addr) error {
	h := lockHost{host, server}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.hosts[h]; ok || len(l.hosts) >= maxHosts {
		return nil
	}
	l.hosts[h] = false
	return l.write()
}

// told takes note that a host knows of the start, or cannot be told.
func (l *hostList) told(h lockHost) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[h] {
		delete(l.hosts, h)
	}
	return l.write()
}

// toTell is the hosts that have not been told of the start.
func (l *hostList) toTell() (all []lockHost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h, tell := range maps.All(l.hosts) {
		if tell {
			all = append(all, h)
		}
	}
	return all
}

// write puts the list into the file. Called with l.mu held.
func (l *hostList) write() error {
	if l.path == "" {
		return nil
	}
	b := fmt.Appendf(nil, "state %d\n", l.state)
	for h := range l.hosts {
		b = fmt.Appendf(b, "%s %s\n", h.host, h.server)
	}
	// Under another name first: a file that is there is whole.
	tmp := l.path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, l.path)
}

// tellHosts sends NOTIFY to the hosts that an earlier server has left locks of,
// several times if need be.
func (n *nlm) tellHosts() {
	all := n.hosts.toTell()
	for pause := time.Second; len(all) > 0; pause = min(2*pause, maxTellPause) {
		select {
		case <-time.After(pause):
		case <-n.s.done:
			return
		}
		late := pause == maxTellPause
		all = slices.DeleteFunc(all, func(h lockHost) bool {
			err := n.tell(h)
			if err != nil && !late {
				return false
			}
			if err != nil {
				n.s.log.Warn("a client that had locks cannot be told that they are lost", "client", h.host, "error", err)
			}
			if err := n.hosts.told(h); err != nil {
				n.s.log.Warn("the list of hosts with locks cannot be written", "error", err)
			}
			return true
		})
	}
}

// maxTellPause is the longest pause between two attempts. They take a few
// minutes.
const maxTellPause = 128 * time.Second

func (n *nlm) tell(h lockHost) error {
	r, err := dialProgram(n.ctx, h.server, h.host, n.bindPort, rpc.ProgramStatus, nfs3.NSMVersion1)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.call(nfs3.NSMProcNotify, &nfs3.NSMNotify{Name: hostName(), State: n.hosts.state})
	return err
}
