package fusefs_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
	"ramserver/loopback/fusefs"
	"ramserver/loopback/posixtest"
	"ramserver/memstore"
)

// newMount mounts a new store until the test ends, and then checks the store.
func newMount(t testing.TB) (string, *memstore.Store, *fusefs.Mount) {
	t.Helper()
	return newMountWith(t, fusefs.Options{})
}

func newMountWith(t testing.TB, o fusefs.Options) (string, *memstore.Store, *fusefs.Mount) {
	t.Helper()
	return newMountSized(t, 1<<30, o)
}

func newMountSized(t testing.TB, size int64, o fusefs.Options) (string, *memstore.Store, *fusefs.Mount) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: mounts nothing")
	}
	if fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil || os.Geteuid() != 0 {
		why := "not root, or /dev/fuse does not work"
		if os.Getenv("STRICT") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	} else {
		unix.Close(fd)
	}
	store, err := memstore.New(memstore.Config{Name: t.Name(), Size: size})
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir, which only root can enter.
	dir, err := os.MkdirTemp("", "fusefs-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o.Passthrough == "" {
		o.Passthrough = fusefs.Passthrough(os.Getenv("FUSEFS_TEST_PASSTHROUGH"))
	}
	m, err := fusefs.New(context.Background(), store, dir, o)
	if err != nil {
		os.Remove(dir)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
			m.Abort()
		}
		os.Remove(dir)
		if err := store.Check(); err != nil {
			t.Error(err)
		}
		store.Close()
		if n := m.Stats().Panics; n > 0 {
			t.Errorf("%d requests panicked", n)
		}
	})
	return dir, store, m
}

// childEnv is the environment of a child that does as the variable says.
func childEnv(do string) []string {
	// With the race detector a process that ends would sleep for a second.
	return append(os.Environ(), do, "GORACE=atexit_sleep_ms=0")
}

// inChild runs the test again in a process of its own, as everybody but the
// server has it: a server that faults on its own mount, or collects garbage
// while it waits for itself, would wait for ever. It returns the mount in the
// child, and "" in the parent when the child is done.
func inChild(t testing.TB) string {
	t.Helper()
	return inChildWith(t, fusefs.Options{})
}

func inChildWith(t testing.TB, o fusefs.Options) string {
	t.Helper()
	const env = "FUSEFS_TEST_DIR"
	if dir := os.Getenv(env); dir != "" {
		return dir
	}
	dir, _, _ := newMountWith(t, o)
	args := []string{"-test.run=^" + t.Name() + "$", "-test.timeout=2m"}
	if _, ok := t.(*testing.B); ok {
		args = []string{"-test.run=^$", "-test.bench=^" + t.Name() + "$", "-test.benchtime=" + flag.Lookup("test.benchtime").Value.String()}
	}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = childEnv(env + "=" + dir)
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("%s", out)
	}
	if err != nil {
		t.Errorf("in the child: %v", err)
	}
	return ""
}

func TestPosix(t *testing.T) {
	if dir := inChild(t); dir != "" {
		posixtest.Run(t, dir, 0)
	}
}

// TestPosixAlone has the kernel keep the locks.
func TestPosixAlone(t *testing.T) {
	if dir := inChildWith(t, fusefs.Options{Alone: true}); dir != "" {
		posixtest.Run(t, dir, 0)
	}
}

func TestFsx(t *testing.T) {
	if dir := inChild(t); dir != "" {
		posixtest.Fsx(t, dir, posixtest.FsxOptions{Seed: 1, Ops: 1500})
	}
}
