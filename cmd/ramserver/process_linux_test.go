package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"

	"golang.org/x/sys/unix"
)

func TestGroupLimit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		groups string
		files  map[string]string
		want   int64 // 0: none
	}{
		{"version 2", "0::/a/b\n", map[string]string{"a/memory.max": "max", "a/b/memory.max": "1000"}, 1000},
		{"the smaller above", "0::/a/b\n", map[string]string{"a/memory.max": "500", "a/b/memory.max": "1000"}, 500},
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max"}, 0},
		{"the host's path, inside a container", "0::/docker/xyz\n", map[string]string{"memory.max": "700"}, 700},
		{"version 1", "5:cpu,memory:/c\n1:name=systemd:/\n", map[string]string{"memory/c/memory.limit_in_bytes": "300"}, 300},
		{"another controller", "5:cpu:/c\n", map[string]string{"memory/c/memory.limit_in_bytes": "300"}, 0},
		{"nonsense", "x\n::\n0::\n", nil, 0},
	} {
		root := t.TempDir()
		for name, content := range tc.files {
			os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700)
			if err := os.WriteFile(filepath.Join(root, name), []byte(content+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, ok := groupLimit(tc.groups, root)
		if got != tc.want || ok != (tc.want != 0) {
			t.Errorf("%s: got %d, %v; want %d", tc.name, got, ok, tc.want)
		}
	}
	if m, err := memory(); err != nil || m.bytes < 1<<20 {
		t.Errorf("memory: %v, %v", m, err)
	}
}

// Where root has CAP_SYS_RESOURCE, every thread is an I/O flusher, and the
// process is not the first to be killed.
func TestHarden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := unix.PrctlRetInt(unix.PR_GET_IO_FLUSHER, 0, 0, 0, 0); err != nil {
		t.Skipf("needs CAP_SYS_RESOURCE: %v", err)
	}
	s := start(t, stateDir(t), "default")
	proc := fmt.Sprintf("/proc/%d", s.cmd.Process.Pid)
	if b, err := os.ReadFile(proc + "/oom_score_adj"); err != nil || strings.TrimSpace(string(b)) != "-900" {
		t.Errorf("oom_score_adj is %s, %v", b, err)
	}
	threads, _ := filepath.Glob(proc + "/task/*/stat")
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		// Field 9, flags, is the seventh behind the name; PF_MEMALLOC_NOIO
		// and PF_LOCAL_THROTTLE of include/linux/sched.h.
		const flusher = 0x00080000 | 0x00100000
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		flags, err := strconv.ParseUint(fields[6], 10, 64)
		if err != nil || flags&flusher != flusher {
			t.Errorf("%s: flags %#x", path, flags)
		}
	}
}

// Another user of this machine, with a client that claims to be root, gets
// what that user may, and root what root may.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as another user")
	}
	s := start(t, stateDir(t), "default", "--mode", "755", "--export", "ramdisk", "--export", "all,path=/all,mode=1777", "--insecure-ports")
	addr := netip.MustParseAddrPort(s.status().Listen[0])
	const user = 65534
	create := func(c *client.Client, mountPath, name string) (nfs3.CreateRes, error) {
		t.Helper()
		m, err := c.Mount(mountPath)
		if err != nil {
			t.Fatal(err)
		}
		return c.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: m.FH, Name: name}, Mode: nfs3.Unchecked})
	}

	they, err := client.New(dialAs(t, user, addr), client.Options{UID: 0, GID: 0, Groups: []uint32{0}})
	if err != nil {
		t.Fatal(err)
	}
	if res, _ := create(they, "/ramdisk", "theirs"); res.Status != nfs3.ErrAcces {
		t.Errorf("user %d makes a file in root's folder: %v", user, res.Status)
	}
	if res, err := create(they, "/all", "theirs"); err != nil || res.Attr.Attr.UID != user || res.Attr.Attr.GID == 0 {
		t.Errorf("user %d makes a file: %+v, %v", user, res, err)
	}

	root, err := client.Dial(context.Background(), addr.String(), client.Options{UID: 0, GID: 0})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if res, err := create(root, "/ramdisk", "ours"); err != nil || res.Attr.Attr.UID != 0 {
		t.Errorf("root makes a file: %+v, %v", res, err)
	}
}

// dialAs connects with a socket that belongs to another user.
func dialAs(t *testing.T, uid int, to netip.AddrPort) net.Conn {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A socket's owner is the user of the thread that makes it, as for files.
	if err := unix.Setfsuid(uid); err != nil {
		t.Fatal(err)
	}
	defer unix.Setfsuid(0)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// The control socket answers its owner only, not even root.
func TestControlOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as another user")
	}
	state := stateDir(t)
	if err := os.Chown(state, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Open(program) // in a folder that only root can enter
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd := exec.Command("/proc/self/fd/3", "serve", "--state-dir", state, "--size", "1M", "--nfs-port", "0", "--portmap", "off")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var conn net.Conn
	for range 500 {
		if conn, err = net.Dial("unix", filepath.Join(state, "default.sock")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "GET /status HTTP/1.0\r\n\r\n")
	if b, err := io.ReadAll(conn); len(b) > 0 || os.IsTimeout(err) {
		t.Errorf("root is answered: %q, %v", b, err)
	}
}

// A client that never reads its replies holds the end up, but not after a
// second signal.
func TestSecondSignal(t *testing.T) {
	s := start(t, stateDir(t), "default")
	conn, err := net.Dial("tcp", s.status().Listen[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(4096)
	calls := []byte(strings.Repeat(string(nullCall), 1000))
	for {
		conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := conn.Write(calls); err != nil {
			break
		}
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		t.Fatalf("ended with replies to send: %s", s.errs)
	case <-time.After(sameSignal + 200*time.Millisecond):
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code := s.wait(); code != 1 {
		t.Errorf("exit status %d", code)
	}
}
