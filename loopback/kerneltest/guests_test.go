//go:build kernel && linux

package kerneltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestGuests has two clients lock and change the same files.
func TestGuests(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.serve("--size", "64M")
	in := n.folder("guests")
	var both sync.WaitGroup
	both.Go(func() { n.guestNumber(1, 5*time.Minute, "guests.sh", "one", in) })
	both.Go(func() { n.guestNumber(2, 5*time.Minute, "guests.sh", "two", in) })
	both.Wait()
}

// TestDeadGuest kills a client that has files open and locked. Another gets
// them, and nothing is left of it on the server.
func TestDeadGuest(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	state := filepath.Join(t.TempDir(), "state")
	n.serve("--size", "64M", "--client-expiry", "5s", "--state-dir", state)
	in := n.folder("dead")
	dead := make(chan error, 1)
	go func() { dead <- n.tryGuest(1, 5*time.Minute, "guests.sh", "doomed", in) }()
	if !n.await(in, "doomed") {
		return
	}
	type client struct {
		Opens       int `json:"opens"`
		Locks       int `json:"locks"`
		Delegations int `json:"delegations"`
	}
	var status struct {
		Stores []struct {
			Inodes int `json:"used_inodes"`
		} `json:"stores"`
		Clients []client `json:"nfs4_clients"`
	}
	ask := func() {
		text := n.exec(ramserver, "status", "--json", "--interval", "0", "--state-dir", state)
		status.Clients = nil
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			t.Fatalf("status: %v\n%s", err, text)
		}
	}
	if ask(); len(status.Clients) != 1 || status.Clients[0].Opens < 100 || status.Clients[0].Locks < 101 || status.Clients[0].Delegations == 0 {
		t.Errorf("before it dies, a client has %+v", status.Clients)
	}
	n.kill(1)
	<-dead
	n.guestNumber(2, 5*time.Minute, "guests.sh", "heir", in)
	time.Sleep(12 * time.Second) // two client expiries
	ask()
	// The root, 99 files that the clients had open, one that had locks, and one that
	// was delegated; one was removed while it was open.
	if len(status.Clients) != 0 || len(status.Stores) != 1 || status.Stores[0].Inodes != 102 {
		t.Errorf("%d clients are left, and stores %+v, not one with 102 inodes", len(status.Clients), status.Stores)
	}
}

// TestClone has the server copy a large file by sharing its pages.
func TestClone(t *testing.T) {
	n := newNetwork(t)
	n.serve("--size", "1500M")
	in := n.folder("clone")
	n.guestNumber(1, 10*time.Minute, "guests.sh", "clone", in)
	text, err := os.ReadFile(filepath.Join(stage, filepath.Base(in), "clone"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", bytes.TrimSpace(text))
}

// folder makes a folder by which guests tell each other how far they are, and
// returns what they call it.
func (n *network) folder(name string) string {
	folder, err := os.MkdirTemp(stage, name)
	if err != nil {
		n.Fatal(err)
	}
	return "/run/host/" + filepath.Base(folder)
}

// await waits until a guest has made a file in a folder; tell makes one.
func (n *network) await(folder, name string) bool {
	n.Helper()
	for began := time.Now(); time.Since(began) < 4*time.Minute; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(stage, filepath.Base(folder), name)); err == nil {
			return true
		}
	}
	n.Errorf("no guest has told of %s", name)
	return false
}

func (n *network) tell(folder, name string) {
	n.Helper()
	if err := os.WriteFile(filepath.Join(stage, filepath.Base(folder), name), nil, 0644); err != nil {
		n.Error(err)
	}
}

// kill ends a guest as a crash does: nobody hears of it.
func (n *network) kill(number int) {
	n.Helper()
	pids, err := exec.Command("ip", "netns", "pids", n.name).Output()
	if err != nil {
		n.Fatal(err)
	}
	killed := 0
	for pid := range strings.FieldsSeq(string(pids)) {
		args, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if id, err := strconv.Atoi(pid); err == nil && bytes.Contains(args, fmt.Appendf(nil, "ifname=tap%d,", number)) && bytes.HasPrefix(args, []byte("linux.uml")) {
			syscall.Kill(id, syscall.SIGKILL)
			killed++
		}
	}
	if killed == 0 {
		n.Error("there is no guest to kill")
	}
}
