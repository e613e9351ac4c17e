package export

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// TCP states of include/net/tcp_states.h.
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
)

// socketOwner asks the kernel who owns the local socket at the other end of a
// connection from "from" to "to", where to is our end.
//
// A socket that its process has closed, or that waits in TIME_WAIT, has no
// inode and is reported as user 0's, a listening one can answer for its port,
// and the same pair of addresses can be used again once our end is reset.
// So the peer's socket counts only if it has an inode and a state that is
// behind the handshake, and our own end exists after it was looked at.
func socketOwner(from, to netip.AddrPort) (uint32, ownerState) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, ownerUnknown
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return 0, ownerUnknown
	}
	peer, peerOK := findSocket(fd, from, to)
	our, ourOK := findSocket(fd, to, from)
	switch {
	case !ourOK || our.inode == 0:
		// The kernel does not tell (no tcp_diag), or the connection is gone.
		return 0, ownerUnknown
	case !peerOK || peer.inode == 0:
		return 0, ownerGone
	case peer.state != tcpEstablished && peer.state != tcpFinWait1 && peer.state != tcpFinWait2:
		return 0, ownerGone
	}
	return peer.uid, ownerKnown
}

type diagSocket struct {
	state      uint8
	uid, inode uint32
}

// Sizes of struct nlmsghdr, struct inet_diag_req_v2 and struct inet_diag_msg.
const (
	nlHeaderSize = 16
	diagReqSize  = 56
	diagMsgSize  = 72
)

// findSocket finds the TCP socket whose own end is src and whose other end is
// dst (sock_diag(7)).
func findSocket(fd int, src, dst netip.AddrPort) (diagSocket, bool) {
	var family byte = unix.AF_INET6
	if src.Addr().Is4() {
		family = unix.AF_INET
	}
	b := make([]byte, 0, nlHeaderSize+diagReqSize)
	b = binary.NativeEndian.AppendUint32(b, nlHeaderSize+diagReqSize)
	b = binary.NativeEndian.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)            // sequence, port id
	b = append(b, family, unix.IPPROTO_TCP, 0, 0)    // no extensions
	b = binary.NativeEndian.AppendUint32(b, 1<<32-1) // any state
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	for _, a := range []netip.Addr{src.Addr(), dst.Addr()} {
		var field [16]byte
		copy(field[:], a.AsSlice())
		b = append(b, field[:]...)
	}
	b = append(b, 0, 0, 0, 0)                             // any interface
	b = append(b, 255, 255, 255, 255, 255, 255, 255, 255) // no cookie

	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return diagSocket{}, false
	}
	reply := make([]byte, 1024)
	var n int
	for {
		var err error
		n, _, err = unix.Recvfrom(fd, reply, 0)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return diagSocket{}, false
		}
	}
	if n < nlHeaderSize+diagMsgSize || binary.NativeEndian.Uint16(reply[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return diagSocket{}, false // NLMSG_ERROR: there is none
	}
	m := reply[nlHeaderSize:]
	if binary.BigEndian.Uint16(m[4:]) != src.Port() || binary.BigEndian.Uint16(m[6:]) != dst.Port() {
		return diagSocket{}, false // one that listens on the port
	}
	return diagSocket{
		state: m[1],
		uid:   binary.NativeEndian.Uint32(m[64:]),
		inode: binary.NativeEndian.Uint32(m[68:]),
	}, true
}
