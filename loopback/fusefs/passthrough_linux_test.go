package fusefs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// passes skips the test where files cannot be passed through.
func passes(t *testing.T, dir string, passed func() uint64) {
	t.Helper()
	newShell(t, dir).run("exec 3<>probe; exec 3>&-; rm probe")
	if passed() == 0 {
		if os.Getenv("STRICT") == "1" && os.Getenv("FUSEFS_TEST_PASSTHROUGH") == "" {
			t.Fatal("no open is passed through")
		}
		t.Skip("no open is passed through")
	}
}

// TestPassthrough: a process reads and writes a file by itself, and a client
// sees it while it is open, and mapped, and after that.
func TestPassthrough(t *testing.T) {
	dir, store, mount := newMount(t)
	passes(t, dir, func() uint64 { return mount.Stats().Passed })
	name := filepath.Join(dir, "f")
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if n, err := unix.Pwrite(fd, data, 0); n != len(data) {
		t.Fatal(n, err)
	}
	got := make([]byte, len(data))
	if n, err := unix.Pread(fd, got, 0); n != len(data) || !bytes.Equal(got, data) {
		t.Error(n, err)
	}
	if s := mount.Stats(); s.Reads+s.Writes > 0 {
		t.Errorf("the server was asked: %+v", s)
	}
	i, err := store.Root().Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	c := &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}
	see := func(what string) memstore.Attr {
		t.Helper()
		n, _, a, err := i.ReadAt(c, nil, got, 0)
		if err != nil || a.Size != int64(len(data)) || !bytes.Equal(got[:n], data) {
			t.Errorf("%s: client reads %d bytes, size %d, %v: %s", what, n, a.Size, err, differ(got[:n], data))
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Size != a.Size || st.Mtim.Nano() != a.Mtime {
			t.Errorf("%s: stat has size %d and mtime %d, %v, client %d and %d", what, st.Size, st.Mtim.Nano(), err, a.Size, a.Mtime)
		}
		return a
	}
	first := see("written")
	m, err := unix.Mmap(fd, 0, len(data), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // clock ticks of the kernel
	copy(m, "mapped")
	copy(data, "mapped")
	if a := see("mapped"); a.Change <= first.Change || a.Mtime <= first.Mtime {
		t.Errorf("change counter and mtime were %d, %d, are %d, %d", first.Change, first.Mtime, a.Change, a.Mtime)
	}
	if _, _, err := i.WriteAt(c, nil, []byte("client"), 100); err != nil {
		t.Fatal(err)
	}
	copy(data[100:], "client")
	if !bytes.Equal(m, data) {
		t.Error("mapping: ", differ(m, data))
	}
	see("written by the client")
	if _, err := i.SetAttr(c, nil, &memstore.SetAttr{Mask: memstore.SetSize, Size: 5000}); err != nil {
		t.Fatal(err)
	}
	data = data[:5000]
	see("truncated by the client")
	unix.Close(fd)
	copy(m[10:], "closed")
	copy(data[10:], "closed")
	fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	see("closed, and mapped still")
	unix.Munmap(m)
	unix.Close(fd)
	for loose := true; loose; { // until the kernel has told of the close
		a, err := i.GetAttr(c)
		if err != nil {
			t.Fatal(err)
		}
		loose = a.Loose
	}
}

// TestPassthroughSetID: a write by an ordinary user clears the set-user bit.
func TestPassthroughSetID(t *testing.T) {
	dir, _, mount := newMount(t)
	passes(t, dir, func() uint64 { return mount.Stats().Passed })
	sh := newShell(t, dir)
	for _, before := range []string{"chmod 4777 f; exec 3<>f", "chmod 777 f; exec 3<>f; chmod 4777 f"} {
		sh.run("echo data >f; " + before)
		got := sh.run("setpriv --reuid 1000 --clear-groups sh -c 'echo x >&3'; exec 3>&-; stat -c %a f")
		if got != "777" {
			t.Errorf("%s: mode %s after a write by another", before, got)
		}
	}
}

// TestPassthroughFull: memory is one limit for what passes through and the rest.
func TestPassthroughFull(t *testing.T) {
	dir, store, mount := newMount(t)
	passes(t, dir, func() uint64 { return mount.Stats().Passed })
	sh := newShell(t, dir)
	size := store.Statfs().TotalBytes
	for round := range 2 {
		got := sh.run("exec 3<>f; head -c 2G /dev/zero 2>&1 >&3 | grep -o 'No space left'; exec 3>&-; stat -c %s f; df --output=avail -B1 . | tail -1; (echo x >g) 2>/dev/null; stat -c %s g; rm f g")
		var filled, free, more int64
		if n, err := fmt.Sscanf(got, "No space left\n%d\n%d\n%d", &filled, &free, &more); n != 3 {
			t.Fatal(err, got)
		}
		if filled < size-8<<20 || free > 5<<20 {
			t.Errorf("round %d: %d bytes of %d written, %d free then, %d bytes more", round, filled, size, free, more)
		}
	}
}
