package nfs

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// truncated marks a packet that was larger than the buffer.
const truncated = unix.MSG_TRUNC

// wantDestination has the kernel tell which of our addresses a packet was
// sent to (ip(7), IP_PKTINFO; RFC 3542 section 6.2), in a control message
// that makes a reply leave from there.
func wantDestination(c *net.UDPConn, v4 bool) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	level, option := unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
	if v4 {
		level, option = unix.IPPROTO_IP, unix.IP_PKTINFO
	}
	var e error
	if err := raw.Control(func(fd uintptr) { e = unix.SetsockoptInt(int(fd), level, option, 1) }); err != nil {
		return err
	}
	return e
}

// destination reads our address from the control message.
func destination(control []byte) (netip.Addr, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return netip.Addr{}, false
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4([4]byte(m.Data[4:8])), true // ipi_spec_dst
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16([16]byte(m.Data[:16])), true // ipi6_addr
		}
	}
	return netip.Addr{}, false
}
