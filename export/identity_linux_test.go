package export

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The test binary started with this variable connects to the address in it
// and stays connected until its input ends.
const dialVariable = "EXPORT_TEST_DIAL"

func TestMain(m *testing.M) {
	if addr := os.Getenv(dialVariable); addr != "" {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Stdin.Read(make([]byte, 1))
		conn.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOwner(t *testing.T) {
	for _, tc := range []struct{ name, network, addr, dial string }{
		{"IPv4", "tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"IPv4, another loopback address", "tcp4", "127.0.0.5:0", "127.0.0.5"},
		{"IPv6", "tcp6", "[::1]:0", "::1"},
		{"IPv4 to a socket for both", "tcp", "[::]:0", "127.0.0.1"},
		{"IPv6 to a socket for both", "tcp", "[::]:0", "::1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := net.Listen(tc.network, tc.addr)
			if err != nil {
				t.Skip(err)
			}
			defer l.Close()
			_, port, _ := net.SplitHostPort(l.Addr().String())
			client, err := net.Dial("tcp", net.JoinHostPort(tc.dial, port))
			if err != nil {
				t.Skip(err)
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			p := NewPeer(server)
			if uid, ok := p.Owner(); !ok || uid != uint32(os.Getuid()) {
				t.Errorf("owner %d, known %v; want %d", uid, ok, os.Getuid())
			}
		})
	}
}

// Another user of the machine is that user whatever it claims.
func TestOwnerOther(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to act as another user")
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The binary under test lies in a folder that only root can enter.
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Env = append(os.Environ(), dialVariable+"="+l.Addr().String())
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second))
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := NewPeer(server)
	if uid, ok := p.Owner(); !ok || uid != 65534 {
		t.Fatalf("owner %d, known %v; want 65534", uid, ok)
	}
	e := &Export{Squash: SquashNone, Anon: IDs{7, 8}, InsecurePorts: true}
	if c := e.Cred(p, 0, 0, []uint32{0, 1}, true); c.UID != 65534 || c.GID == 0 || len(c.Groups) != 0 {
		t.Errorf("user 65534 claiming root runs as %v", c)
	}
}

// The kernel reports closed sockets as user 0's.
func TestOwnerGone(t *testing.T) {
	closed, server := pair(t, "tcp4", "127.0.0.1:0")
	closed.Write([]byte("remove everything"))
	closed.Close()
	if p := NewPeer(server); p.owner != ownerGone {
		t.Errorf("after close: owner state %d, user %d", p.owner, p.uid)
	}

	reset, server := pair(t, "tcp4", "127.0.0.1:0")
	reset.Write([]byte("remove everything"))
	reset.(*net.TCPConn).SetLinger(0)
	reset.Close()
	if p := NewPeer(server); p.owner == ownerKnown {
		t.Errorf("after reset: user %d", p.uid)
	}

	half, server := pair(t, "tcp4", "127.0.0.1:0")
	half.(*net.TCPConn).CloseWrite()
	if p := NewPeer(server); p.owner != ownerKnown || p.uid != uint32(os.Getuid()) {
		t.Errorf("half closed: owner state %d, user %d", p.owner, p.uid)
	}
}

func BenchmarkNewPeer(b *testing.B) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	for b.Loop() {
		NewPeer(server)
	}
}
