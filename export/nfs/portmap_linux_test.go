package nfs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramserver/export/nfs/rpc"

	"golang.org/x/sys/unix"
)

// The test binary runs TestPortmapReal again, in a network of its own, with
// this variable set.
const namespaceVariable = "NFS_TEST_NAMESPACE"

// TestPortmapReal lets Debian's rpcinfo and rpcbind at port 111.
func TestPortmapReal(t *testing.T) {
	if os.Getenv(namespaceVariable) != "" {
		testPortmapReal(t)
		return
	}
	if os.Getuid() != 0 {
		skip(t, "needs root, for a network namespace")
	}
	for _, prog := range []string{"rpcbind", "rpcinfo", "ip"} {
		if _, err := exec.LookPath(prog); err != nil {
			skip(t, "needs %s (Debian: rpcbind, iproute2)", prog)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestPortmapReal$", "-test.v")
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("STRICT") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func testPortmapReal(t *testing.T) {
	// rpcbind's lock and socket stay in here.
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	run(t, "ip", "link", "set", "lo", "up")
	run(t, "ip", "addr", "add", "10.0.0.1/32", "dev", "lo")
	run(t, "ip", "addr", "add", "10.0.0.2/32", "dev", "lo")
	start := func(t *testing.T, mode string, port uint16) *Portmap {
		t.Helper()
		p, err := StartPortmap(PortmapConfig{Mode: mode, Exports: portmapTable(t), Log: discard, NFS: []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), port), netip.AddrPortFrom(netip.IPv6Unspecified(), port),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("served", func(t *testing.T) {
		p := start(t, "auto", 2049)
		defer p.Close()
		if !p.Serves() || len(p.registered) > 0 {
			t.Errorf("port 111 is free, but: %v", p)
		}
		for _, args := range []string{
			"-p 127.0.0.1", "127.0.0.1", "-s 127.0.0.1", // DUMP of versions 2, 3 and 4
			"-p 10.0.0.2",
		} {
			out := run(t, "rpcinfo", strings.Fields(args)...)
			for _, want := range []string{"100000", "100003", "100005"} {
				if !strings.Contains(out, want) {
					t.Errorf("rpcinfo %s has no %s:\n%s", args, want, out)
				}
			}
		}
		for _, args := range []string{
			"-T tcp 127.0.0.1 100000", "-T udp 127.0.0.1 100000", "-T tcp6 ::1 100000", "-T udp6 ::1 100000",
			"-T udp 10.0.0.1 100000", "-T udp 10.0.0.2 100000", // the reply has to come from there
			"-u 10.0.0.2 100000 2",
		} {
			if out := run(t, "rpcinfo", strings.Fields(args)...); !strings.Contains(out, "ready and waiting") {
				t.Errorf("rpcinfo %s:\n%s", args, out)
			}
		}
		if out := run(t, "rpcinfo", "-l", "127.0.0.1", "100003", "3"); !regexp.MustCompile(`inet/tcp/cots_ord +127\.0\.0\.1\.8\.1`).MatchString(out) {
			t.Errorf("GETADDRLIST:\n%s", out)
		}
		if out := run(t, "rpcinfo", "-m", "127.0.0.1"); !strings.Contains(out, "PORTMAP (version 2) statistics") {
			t.Errorf("GETSTAT:\n%s", out)
		}
		// A local program registers as rpc.statd does.
		c, err := dialBind(rpc.PortmapPort)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.set(binding{rpc.ProgramStatus, 1, netUDP, netip.MustParseAddrPort("0.0.0.0:5000")}); err != nil {
			t.Error(err)
		}
		if out := run(t, "rpcinfo", "-p", "127.0.0.1"); !regexp.MustCompile(`100024 +1 +udp +5000`).MatchString(out) {
			t.Errorf("after SET:\n%s", out)
		}
		run(t, "rpcinfo", "-d", "100024", "1")
		if out := run(t, "rpcinfo", "-p", "127.0.0.1"); strings.Contains(out, "100024") {
			t.Errorf("after rpcinfo -d:\n%s", out)
		}
	})

	t.Run("registered", func(t *testing.T) {
		stop := startRPCBind(t)
		defer stop()
		p := start(t, "auto", 2049)
		if !p.Serves() || len(p.registered) == 0 {
			t.Fatalf("rpcbind has the port, but: %v", p)
		}
		out := run(t, "rpcinfo", "127.0.0.1")
		for _, want := range []string{
			`100003 +3 +tcp +0\.0\.0\.0\.8\.1`, `100003 +3 +tcp6 +::\.8\.1`, `100005 +1 +tcp`, `100005 +3 +tcp6`,
		} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("no %s in\n%s", want, out)
			}
		}
		// As after the end of a process that could not unregister.
		again := start(t, "on", 2049)
		if !again.Serves() {
			t.Errorf("the second time: %v", again)
		}
		if other := start(t, "auto", 2050); other.Serves() {
			t.Errorf("another's registration is taken for ours: %v", other)
		}
		if _, err := StartPortmap(PortmapConfig{Mode: "on", Log: discard, NFS: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:2050")}}); err == nil || !strings.Contains(err.Error(), "registered at port 2049") {
			t.Errorf("in mode on: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if out := run(t, "rpcinfo", "-p", "127.0.0.1"); strings.Contains(out, "100003") || strings.Contains(out, "100005") {
			t.Errorf("after Close:\n%s", out)
		}
	})
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func startRPCBind(t *testing.T) (stop func()) {
	t.Helper()
	cmd := exec.Command("rpcbind", "-f")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	for range 500 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", rpc.PortmapPort))
		if err == nil {
			c.Close()
			return stop
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	t.Fatal("rpcbind does not listen")
	return nil
}
