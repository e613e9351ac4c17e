//go:build !linux

package nfs

import (
	"net"
	"net/netip"
)

// truncated marks a packet that was larger than the buffer. Where the flag is
// not known, what is left of the packet does not decode.
const truncated = 0

// wantDestination does nothing: a reply leaves from the address that the
// system chooses, which on a machine with several may be another one than was
// asked.
func wantDestination(*net.UDPConn, bool) error { return nil }

func destination([]byte) (netip.Addr, bool) { return netip.Addr{}, false }
