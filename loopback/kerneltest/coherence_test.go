//go:build kernel && linux

package kerneltest

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"ramserver/loopback/coherence"
)

// TestCoherence has the server's machine, by FUSE, and a guest, by NFS, change and
// see the same files.
func TestCoherence(t *testing.T) {
	t.Parallel()
	changes := 300
	if long {
		changes = 3000
	}
	for _, version := range []string{"4.2", "3"} {
		t.Run(version, func(t *testing.T) {
			n := newNetwork(t)
			disk := filepath.Join(t.TempDir(), "disk")
			n.mount(disk)
			l := n.listen("7777")
			defer l.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				n.guest(10*time.Minute, "coherence.sh", "vers="+version, "7777")
			}()
			defer func() { <-done }()
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			coherence.Run(t, coherence.Options{
				Parties: []coherence.Party{
					{Name: "FUSE", Side: coherence.Start(t, filepath.Join(stage, "coherence.test"), disk), Maps: true},
					{Name: "NFS", Side: coherence.NewProcess(conn, conn)},
				},
				Changes: changes,
			})
		})
	}
}

// listen listens in the network for one that begins to speak within a minute.
func (n *network) listen(port string) *net.TCPListener {
	n.Helper()
	var l net.Listener
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the thread, which no one else may use
		ns, err := os.Open(filepath.Join("/run/netns", n.name))
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			l, err = net.Listen("tcp", net.JoinHostPort(address, port))
		}
		made <- err
	}()
	if err := <-made; err != nil {
		n.Fatal(err)
	}
	tcp := l.(*net.TCPListener)
	if err := tcp.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		n.Fatal(err)
	}
	return tcp
}
