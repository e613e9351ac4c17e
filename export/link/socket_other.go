//go:build !linux || race

package link

import "net"

// socket is the way to a connection's bytes: the net package's, by whose calls the race
// detector knows what comes before what.
type socket struct{}

func (*socket) init(net.Conn) {}

func (*socket) read(nc net.Conn, b []byte) (int, error) { return nc.Read(b) }

func (*socket) send(nc net.Conn, b []byte, pages *net.Buffers) (int64, error) {
	return sendAll(nc, b, pages)
}
