package export

import (
	"net"
	"net/netip"
	"os/user"
	"slices"
	"strconv"
)

// Peer is the other end of a connection. It is constant.
type Peer struct {
	addr  netip.AddrPort // IPv4-mapped addresses unmapped, without a zone
	local bool           // it is on this machine

	owner  ownerState
	uid    uint32   // of the socket's owner, if known
	gid    uint32   // its primary group, if hasGID
	hasGID bool     // the system knows the user
	groups []uint32 // all its groups
}

// ownerState is what is known of the owner of a peer's socket.
type ownerState uint8

const (
	ownerUnknown ownerState = iota // another machine, or a system that does not tell
	ownerKnown
	ownerGone // the socket was closed before it could be asked for
)

// NewPeer looks at the other end of a connection, once for its life. On Linux
// it asks the kernel for the owner of a local peer's socket and the system's
// user database for that user's groups. A connection that is not TCP is never
// admitted.
func NewPeer(conn net.Conn) *Peer {
	remote, ok1 := conn.RemoteAddr().(*net.TCPAddr)
	here, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return &Peer{}
	}
	from, to := unmapped(remote), unmapped(here)
	p := &Peer{addr: from, local: local(from.Addr(), to.Addr())}
	if remote.Zone != "" {
		// The same link-local address can be another machine's on another link.
		p.local = false
	}
	if p.local {
		p.uid, p.owner = socketOwner(from, to)
	}
	if p.owner != ownerKnown && !from.Addr().IsLoopback() {
		// Address translation, as of containers, can make another machine's
		// packets look like our own.
		p.local = false
	}
	if p.owner == ownerKnown && p.uid != 0 {
		p.gid, p.groups, p.hasGID = groupsOf(p.uid)
	}
	return p
}

// PacketPeer is the sender of a packet. Its socket's owner is not asked for.
func PacketPeer(from netip.AddrPort) *Peer {
	from = netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())
	return &Peer{addr: from, local: from.Addr().IsLoopback()}
}

func unmapped(a *net.TCPAddr) netip.AddrPort {
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// local tells whether a connection seems not to leave this machine. No system
// takes packets from outside that claim to come from loopback.
func local(from, to netip.Addr) bool {
	return from.IsLoopback() && to.IsLoopback() || from == to
}

// Addr is the peer's address and port.
func (p *Peer) Addr() netip.AddrPort { return p.addr }

// Local tells whether the peer is on this machine.
func (p *Peer) Local() bool { return p.local }

// Owner is the user who owns the peer's socket, if that is known.
func (p *Peer) Owner() (uid uint32, ok bool) { return p.uid, p.owner == ownerKnown }

func (p *Peer) String() string { return p.addr.String() }

func (p *Peer) member(gid uint32) bool { return slices.Contains(p.groups, gid) }

// groupsOf asks the system for a user's groups, the primary one among them.
func groupsOf(uid uint32) (gid uint32, groups []uint32, ok bool) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return 0, nil, false
	}
	primary, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return 0, nil, false
	}
	groups = []uint32{uint32(primary)}
	ids, _ := u.GroupIds() // without them only the primary one is believed
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil && uint32(g) != groups[0] {
			groups = append(groups, uint32(g))
		}
	}
	return groups[0], groups, true
}
