package export

import (
	"net"
	"net/netip"
	"testing"
)

// pair connects over loopback and returns both ends.
func pair(t *testing.T, network, addr string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Skipf("no %s here: %v", network, err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestNewPeer(t *testing.T) {
	for _, tc := range []struct{ network, addr string }{
		{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"},
	} {
		client, server := pair(t, tc.network, tc.addr)
		p := NewPeer(server)
		if p.String() != client.LocalAddr().String() || !p.Local() {
			t.Errorf("%s: got %v, local %v; want %v, local", tc.addr, p, p.Local(), client.LocalAddr())
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if p := NewPeer(a); p.Local() || (&Export{}).Admit(p) {
		t.Error("a pipe is admitted")
	}
}

func TestLocal(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.9.9.9", true},
		{"::1", "::1", true},
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"127.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "127.0.0.1", false},
	} {
		if got := local(netip.MustParseAddr(tc.from), netip.MustParseAddr(tc.to)); got != tc.want {
			t.Errorf("from %s to %s: local is %v", tc.from, tc.to, got)
		}
	}
}
