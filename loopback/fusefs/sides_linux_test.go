package fusefs_test

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ramserver/loopback/coherence"
	"ramserver/memstore"
)

// shell is a local process that runs one line after another.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newShell(t *testing.T, dir string) *shell {
	t.Helper()
	cmd := exec.Command("bash")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &shell{t, in, bufio.NewReader(out)}
}

// run returns what a line printed, without the last newline.
func (s *shell) run(line string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\necho; echo END\n"); err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for {
		l, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		if l == "END\n" {
			return strings.TrimRight(b.String(), "\n")
		}
		b.WriteString(l)
	}
}

// TestRemovedByOthers: what a process holds stays usable when a client removes
// it, and is gone when the process lets go.
func TestRemovedByOthers(t *testing.T) {
	dir, store, _ := newMount(t)
	client := &client{store.Root(), memstore.Root()}
	empty := store.Statfs()
	sh := newShell(t, dir)
	for _, c := range []struct{ local, remove, again, want string }{
		{"echo data >f; exec 3<>f", "f", "cat <&3; stat -L -c %h /proc/self/fd/3; ls", "data\n0"},
		{"echo data >f; exec 3<>f; cat f", "f", "echo more >&3; cat /proc/self/fd/3", "more"},
		{"mkdir d; cd d; ls -a", "d", "stat -c '%F %h' .; touch x; ls; cd ..; ls", "directory 0\ntouch: cannot touch 'x': No such file or directory"},
		{"ln -s target l; readlink l; exec 3<.", "l", "ls -a | wc -l; exec 3>&-", "2"},
	} {
		sh.run(c.local)
		if a := client.Do(coherence.Call{Op: "remove", Name: c.remove}); a.Err != "" {
			t.Fatal(a.Err)
		}
		if got := sh.run(c.again); got != c.want {
			t.Errorf("%s; removed; %s:\n%s\nwant:\n%s", c.local, c.again, got, c.want)
		}
		sh.run("exec 3>&-")
		// The kernel says that it has forgotten some time after.
		deadline := time.Now().Add(3 * time.Second)
		for store.Statfs() != empty && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if got := store.Statfs(); got != empty {
			t.Errorf("%s; removed: %+v are used, want %+v", c.local, got, empty)
		}
	}
}

// TestLocksOfBothSides: what either side has locked the other cannot lock.
func TestLocksOfBothSides(t *testing.T) {
	dir, store, _ := newMount(t)
	sh := newShell(t, dir)
	sh.run("echo data >f; exec 3<>f")
	f, err := store.Root().Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	holder := &memstore.Holder{Name: "client"}
	o, err := f.Open(&memstore.Caller{Holder: holder}, memstore.OpenArgs{Access: memstore.AccessRead | memstore.AccessWrite})
	if err != nil {
		t.Fatal(err)
	}
	lock := memstore.LockArgs{Owner: memstore.LockOwner{Holder: holder, ID: "x"}, Off: 10, N: 5, Exclusive: true}
	try := func() error { _, err := o.Lock(lock); return err }
	for _, c := range []struct{ line, want string }{
		{"flock -n 3 && echo locked", "locked"},
		{"", "busy"},
		{"flock -u 3", ""},
		{"", "ok"},
		{"flock -n 3 || echo busy", "busy"},
		{"flock -n -s 3 || echo busy", "busy"},
		{"flock -w 0.05 3 || echo busy", "busy"}, // waits, and is interrupted
	} {
		got := ""
		if c.line != "" {
			got = sh.run(c.line)
		} else if err := try(); err == nil {
			got = "ok"
		} else if err == memstore.ErrLocked {
			got = "busy"
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
	// One who waits gets the lock when the client closes its file.
	done := make(chan string)
	go func() { done <- sh.run("flock 3 && echo locked") }()
	select {
	case got := <-done:
		t.Errorf("did not wait: %q", got)
	case <-time.After(50 * time.Millisecond):
	}
	o.Close()
	if got := <-done; got != "locked" {
		t.Errorf("after the client's close: %q", got)
	}
	// Closing the last descriptor unlocks.
	sh.run("exec 3>&-")
	if o, err = f.Open(memstore.Root(), memstore.OpenArgs{Access: memstore.AccessWrite}); err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	deadline := time.Now().Add(3 * time.Second)
	for err = try(); err == memstore.ErrLocked && time.Now().Before(deadline); err = try() {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAppendBehindOthers: O_APPEND is the end of the file, whoever moved it.
func TestAppendBehindOthers(t *testing.T) {
	dir, store, _ := newMount(t)
	client := &client{store.Root(), memstore.Root()}
	sh := newShell(t, dir)
	for _, open := range []string{"exec 3>>f", "exec 3<>f; exec 3>>f"} {
		sh.run("echo 1 >f; cat f; " + open)
		client.Do(coherence.Call{Op: "append", Name: "f", Data: []byte("2\n")})
		sh.run("echo 3 >&3")
		client.Do(coherence.Call{Op: "append", Name: "f", Data: []byte("4\n")})
		sh.run("echo 5 >&3")
		if got := sh.run("tr '\\n' ' ' <f; stat -c %s f; exec 3>&-"); got != "1 2 3 4 5 10" {
			t.Errorf("%s: %q", open, got)
		}
	}
}

// TestXattrClasses: which names the mount takes.
func TestXattrClasses(t *testing.T) {
	dir, _, _ := newMount(t)
	l := newLocal(t, dir)
	l.Do(coherence.Call{Op: "create", Name: "f"})
	acl := "\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x04\x00\x04\x00\xff\xff\xff\xff\x20\x00\x04\x00\xff\xff\xff\xff"
	for _, c := range []struct{ name, want string }{
		{"user.a", ""}, {"trusted.a", ""}, {"security.a", ""},
		{"system.posix_acl_access", "operation not supported"},
		{"other.a", "operation not supported"},
		{"user.", "operation not supported"},
	} {
		if a := l.Do(coherence.Call{Op: "xattr", Name: "f", To: c.name, Data: []byte(acl)}); a.Err != c.want {
			t.Errorf("%s: %q, want %q", c.name, a.Err, c.want)
		}
	}
}
