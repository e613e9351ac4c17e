package link

import "net"

// sendAll sends b, or pages if there are any, as the net package does.
func sendAll(nc net.Conn, b []byte, pages *net.Buffers) (int64, error) {
	if pages != nil {
		return pages.WriteTo(nc)
	}
	n, err := nc.Write(b)
	return int64(n), err
}
