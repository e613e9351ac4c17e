//go:build kernel && linux

package kerneltest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const address = "10.77.0.1" // of the server in every namespace, see uml-run

var (
	stage     string // folder that guests see as $HOSTDIR
	ramserver string
	long      = os.Getenv("KERNEL_ALL") == "1"
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kerneltest:", err)
		code = 1
	}
	os.Exit(code)
}

// run builds and makes what all guests use.
func run(m *testing.M) (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("needs root, for a network namespace and mounts in the guest")
	}
	if out, err := exec.Command("./setup").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("setup: %w\n%s", err, out)
	}
	if stage, err = os.MkdirTemp("", "kerneltest-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(stage)
	if err := os.Chmod(stage, 0755); err != nil { // other users of a guest reach posixtest in it
		return 1, err
	}
	ramserver = filepath.Join(stage, "ramserver")
	for _, args := range [][]string{
		{"go", "build", "-o", ramserver, "ramserver/cmd/ramserver"},
		{"go", "test", "-c", "-o", filepath.Join(stage, "posixtest.test"), "ramserver/loopback/posixtest"},
		{"go", "test", "-c", "-o", filepath.Join(stage, "coherence.test"), "ramserver/loopback/coherence"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, c := range []struct {
		name string
		make func(dir string) error
	}{
		{"", func(dir string) error { return os.CopyFS(dir, os.DirFS("guest")) }},
		{"repo", makeRepo},
		{"cproject", makeCProject},
		{"tree", makeTree},
	} {
		if err := c.make(filepath.Join(stage, c.name)); err != nil {
			return 1, fmt.Errorf("making %s: %w", c.name, err)
		}
	}
	return m.Run(), nil
}

// network is a namespace with the addresses that uml-run gives out.
type network struct {
	*testing.T
	name string
}

func newNetwork(t *testing.T) *network {
	n := &network{t, fmt.Sprintf("ramserver-%d-%s", os.Getpid(), strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))}
	uml := func(arg string) {
		cmd := exec.Command("./uml-run", arg)
		cmd.Env = append(os.Environ(), "UML_NS="+n.name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("uml-run %s: %v\n%s", arg, err, out)
		}
	}
	uml("-p")
	t.Cleanup(func() { uml("-d") })
	return n
}

// exec runs a command in the network and returns what it printed.
func (n *network) exec(args ...string) string {
	n.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", n.name}, args...)...).CombinedOutput()
	if err != nil {
		n.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start starts a command in the network and waits until it has printed a line
// that ends with ready, unless that is "". The test's end stops it by SIGTERM.
func (n *network) start(ready string, args ...string) {
	n.Helper()
	name := filepath.Base(args[0])
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.name}, args...)...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		n.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		n.Fatal(err)
	}
	var log tail
	isReady, eof := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(eof)
		seen := false
		for s := bufio.NewScanner(pipe); s.Scan(); {
			log.add(s.Text())
			if !seen && strings.HasSuffix(s.Text(), ready) {
				seen = true
				close(isReady)
			}
		}
		io.Copy(io.Discard, pipe) // after a line too long to scan
	}()
	n.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-eof:
		case <-time.After(20 * time.Second):
			n.Errorf("%s does not stop", name)
			cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil && args[0] == ramserver {
			n.Errorf("%s: %v", name, err)
		}
		if n.Failed() || log.contains("panic") {
			n.Errorf("log of %s:\n%s", name, log.String())
		}
	})
	if ready == "" {
		return
	}
	select {
	case <-isReady:
	case <-eof:
		n.Fatalf("%s ended before it was ready", name)
	case <-time.After(20 * time.Second):
		n.Fatalf("%s is not ready", name)
	}
}

// serve starts a server in the network.
func (n *network) serve(args ...string) {
	n.Helper()
	n.start("ramserver: ready", append([]string{ramserver, "serve", "--listen", address, "--allow", "10.77.0.0/24",
		"--squash", "none", "--state-dir", filepath.Join(n.TempDir(), "state")}, args...)...)
}

// mount is serve with a mount by FUSE too, in the test's mount namespace, not one of
// its own.
func (n *network) mount(disk string, args ...string) {
	n.Helper()
	n.start("ramserver: ready", append([]string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", os.Getpid()),
		ramserver, "mount", disk, "--foreground", "--via", "fuse", "--size", "64M", "--listen", address, "--allow", "10.77.0.0/24",
		"--squash", "none", "--state-dir", filepath.Join(n.TempDir(), "state")}, args...)...)
}

// guest runs a script in a guest and passes on what it prints.
func (n *network) guest(limit time.Duration, script string, args ...string) {
	n.Helper()
	n.guestNumber(1, limit, script, args...)
}

// guestNumber is guest for one of several that run at once.
func (n *network) guestNumber(number int, limit time.Duration, script string, args ...string) {
	n.Helper()
	if err := n.tryGuest(number, limit, script, args...); err != nil {
		n.Errorf("%s: %v", script, err)
	}
}

// tryGuest is guestNumber for a guest that may fail.
func (n *network) tryGuest(number int, limit time.Duration, script string, args ...string) error {
	cmd := exec.Command("./uml-run", append([]string{"-n", fmt.Sprint(number), "-t", fmt.Sprint(int(limit.Seconds())), filepath.Join(stage, script)}, args...)...)
	cmd.Env = append(os.Environ(), "UML_NS="+n.name)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	steps := 0
	for s := bufio.NewScanner(pipe); s.Scan(); {
		line := strings.TrimRight(s.Text(), "\r")
		if strings.HasPrefix(line, "ok ") {
			steps++
		}
		fmt.Printf("%-22s %s\n", strings.TrimPrefix(n.Name(), "Test"), line)
	}
	io.Copy(io.Discard, pipe)
	if err := cmd.Wait(); err != nil {
		return err
	}
	if steps == 0 {
		return errors.New("it did nothing")
	}
	return nil
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines = append(l.lines, line); len(l.lines) > 200 {
		l.lines = l.lines[100:]
	}
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *tail) contains(word string) bool { return strings.Contains(l.String(), word) }

func TestPosix(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.serve("--size", "512M")
	n.guest(10*time.Minute, "posix.sh", "TestMount")
}

// TestPosix4 is the same by version 4.
func TestPosix4(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4.2", "4.1", "4.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t)
			n.serve("--size", "512M")
			n.guest(10*time.Minute, "posix.sh", "vers="+version, "TestMount")
		})
	}
}

func TestFsx(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, engine string
		always          bool
	}{{"3", "native", true}, {"4.2", "native", true}, {"4.1", "native", false}, {"4.0", "native", false}, {"3", "go-nfs", false}} {
		if !c.always && !long {
			continue
		}
		t.Run(c.engine+c.version, func(t *testing.T) {
			n := newNetwork(t)
			n.serve("--size", "512M", "--nfs-engine", c.engine)
			howLong := time.Minute
			if long {
				howLong = 15 * time.Minute
			}
			n.guest(howLong+5*time.Minute, "posix.sh", "vers="+c.version, "TestFsx", "-test.parallel=3", "-test.timeout=30m", "-fsx.time", howLong.String())
		})
	}
}

// TestLocks has locks of NFS version 3 on the server.
func TestLocks(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.serve("--size", "64M")
	n.guest(5*time.Minute, "locks.sh")
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3", "4.2", "4.1", "4.0"} {
		if (version == "4.1" || version == "4.0") && !long {
			continue
		}
		for _, part := range []string{"build", "files"} {
			t.Run(version+"/"+part, func(t *testing.T) {
				t.Parallel()
				n := newNetwork(t)
				n.serve("--size", "512M")
				n.guest(10*time.Minute, "programs.sh", "vers="+version, part)
			})
		}
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3", "4.2"} {
		t.Run(version, func(t *testing.T) {
			n := newNetwork(t)
			n.serve("--size", "32M", "--inodes", "600")
			n.guest(5*time.Minute, "full.sh", "vers="+version)
		})
	}
}

// TestRestart has a server stopped, and another started, under a mount.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4.2", "4.0"} {
		t.Run(version, func(t *testing.T) {
			n := newNetwork(t)
			state := filepath.Join(t.TempDir(), "state")
			n.serve("--size", "64M", "--state-dir", state)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				n.guest(3*time.Minute, "restart.sh", "vers="+version)
			}()
			defer func() { <-ended }()
			stop := filepath.Join(stage, "stop-"+version)
			for {
				if _, err := os.Stat(stop); err == nil {
					break
				}
				select {
				case <-ended:
					t.Fatal("the guest did not ask for a restart")
				case <-time.After(50 * time.Millisecond):
				}
			}
			n.exec(ramserver, "stop", "--state-dir", state)
			n.serve("--size", "64M", "--state-dir", state)
			if err := os.Remove(stop); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestExports mounts without port options, by our port mapper and by Debian's,
// which then had port 111 first and tells of us as long as we run.
func TestExports(t *testing.T) {
	t.Parallel()
	exports := []string{"--size", "64M", "--export", "ramdisk", "--export", "ro,path=/ro,ro", "--export", "anon,size=16M,squash=all"}
	t.Run("portmap", func(t *testing.T) {
		t.Parallel()
		n := newNetwork(t)
		n.serve(exports...)
		n.guest(5*time.Minute, "exports.sh")
	})
	t.Run("rpcbind", func(t *testing.T) {
		t.Parallel()
		n := newNetwork(t)
		// Its socket and lock are files below /run; the namespace shares those
		// with the machine, and a machine has one rpcbind.
		n.start("", "sh", "-c", "mount -t tmpfs tmpfs /run && exec rpcbind -f")
		n.exec("sh", "-c", "for i in $(seq 100); do rpcinfo -p 127.0.0.1 && exit; sleep 0.1; done; exit 1")
		before := n.exec("rpcinfo", "-p", "127.0.0.1")
		t.Run("mounted", func(t *testing.T) {
			n := &network{t, n.name}
			n.serve(exports...)
			n.guest(5*time.Minute, "exports.sh")
		})
		if after := n.exec("rpcinfo", "-p", "127.0.0.1"); after != before {
			t.Errorf("registered after the server stopped:\n%sbefore it started:\n%s", after, before)
		}
	})
}

// TestMountCommand has "ramserver mount" and its server in the guest itself.
func TestMountCommand(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4.2", "3"} {
		t.Run(version, func(t *testing.T) {
			newNetwork(t).guest(8*time.Minute, "mount.sh", "vers="+version)
		})
	}
}

// TestLibnfs uses a client that is not Linux's: libnfs, from within the network.
// Debian's cannot send a WRITE of version 4 of more than 3,840 bytes; version 3
// has made the large file that version 4 reads.
func TestLibnfs(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.serve("--size", "64M")
	large := bytes.Repeat([]byte("libnfs\n"), 500_000)
	small := large[:3500]
	for _, c := range []struct {
		name, at, options string
		content           []byte
	}{
		{"by-portmap", "/ramdisk/", "version=3", large},
		{"by-port", "/ramdisk/", "version=3&nfsport=2049&mountport=2049", large},
		{"version-4", "//", "version=4", small},
		{"by-port", "//", "version=4&nfsport=2049", large},
	} {
		url := func(name string) string {
			return "nfs://" + address + c.at + name + "?uid=0&gid=0&" + c.options
		}
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, c.content, 0644); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(c.options, "version=4") || len(c.content) == len(small) {
			n.exec("nfs-cp", file, url(c.name))
		}
		if got := n.exec("nfs-cat", url(c.name)); got != string(c.content) {
			t.Errorf("%s: nfs-cat gave %d bytes, want %d", c.name, len(got), len(c.content))
		}
		if got := n.exec("nfs-ls", url("")); !strings.Contains(got, fmt.Sprint(len(c.content))) || !strings.Contains(got, c.name) {
			t.Errorf("%s: nfs-ls does not show the file:\n%s", c.name, got)
		}
		back := filepath.Join(t.TempDir(), "back")
		n.exec("nfs-cp", url(c.name), back)
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, c.content) {
			t.Errorf("%s: copied back %d bytes, want %d (%v)", c.name, len(got), len(c.content), err)
		}
	}
}

// smb are the arguments with which a server serves SMB to the guests' user.
func (n *network) smb() []string {
	n.Helper()
	users := filepath.Join(n.TempDir(), "users")
	add := exec.Command(ramserver, "user", "add", "root", "--smb-users", users)
	add.Stdin = strings.NewReader("secret")
	if out, err := add.CombinedOutput(); err != nil {
		n.Fatalf("user add: %v\n%s", err, out)
	}
	return []string{"--smb-port", "1445", "--smb-users", users}
}

// TestSMB mounts by the kernel's SMB client: encrypted in full, else a smoke.
func TestSMB(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options string
		full    bool
	}{
		{"vers=3.1.1,seal", true}, {"vers=3.1.1,sign", long}, {"vers=3.1.1", long}, {"vers=3.0,seal", long}, {"vers=3.0,sign", long}, {"vers=3.0", long}, {"vers=2.1,sign", long}, {"vers=2.1", long},
	} {
		t.Run(strings.NewReplacer("vers=", "", ",", "").Replace(c.options), func(t *testing.T) {
			signing := "required"
			if !strings.Contains(c.options, ",s") {
				signing = "enabled"
			}
			n := newNetwork(t)
			n.serve(append([]string{"--size", "512M", "--smb-signing", signing}, n.smb()...)...)
			mount := "vers=cifs:" + c.options + ",mfsymlinks,modefromsid,idsfromsid"
			if !c.full {
				n.guest(2*time.Minute, "smb.sh", mount)
				return
			}
			n.guest(5*time.Minute, "posix.sh", mount, "TestMount")
			// sqlite changes locks that it has for stronger ones, which SMB's are not
			// changed for: they have to stay in the client.
			n.guest(10*time.Minute, "programs.sh", mount+",nobrl", "build")
			n.guest(10*time.Minute, "programs.sh", mount, "files")
			n.guest(5*time.Minute, "smb.sh", mount)
		})
	}
}
