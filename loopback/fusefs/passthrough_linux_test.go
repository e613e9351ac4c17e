package fusefs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"ramserver/loopback/coherence"
	"ramserver/loopback/fusefs"
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
			t.Errorf("%s: client reads %d bytes, size %d, %v: %s", what, n, a.Size, err, coherence.Differ(got[:n], data))
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
		t.Error("mapping: ", coherence.Differ(m, data))
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

// TestPassthroughCoherence changes a file that a local process has open and
// mapped all the time, by that process and by a client, and looks at once from
// both, through everything that they have.
func TestPassthroughCoherence(t *testing.T) {
	dir, store, mount := newMount(t)
	passes(t, dir, func() uint64 { return mount.Stats().Passed })
	const most = 300 << 10
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	name := filepath.Join(dir, "f")
	ok := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	open := func(flags int) int {
		fd, err := unix.Open(name, flags|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		ok(err)
		return fd
	}
	fd, appends := open(unix.O_RDWR), open(unix.O_WRONLY|unix.O_APPEND)
	m, err := unix.Mmap(fd, 0, most, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	ok(err)
	defer func() {
		unix.Munmap(m)
		unix.Close(fd)
		unix.Close(appends)
	}()
	root := memstore.Root()
	i, err := store.Root().Lookup(root, "f")
	ok(err)
	other, err := store.Root().Create(root, "other", &memstore.Create{Type: memstore.TypeFile})
	ok(err)
	source := make([]byte, most)
	for k := range source {
		source[k] = byte(rnd.Uint32())
	}
	if n, _, err := other.Inode.WriteAt(root, nil, source, 0); n != most || err != nil {
		t.Fatal(n, err)
	}
	c := &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}
	var model []byte
	put := func(off int, p []byte) {
		model = append(model, make([]byte, max(0, off+len(p)-len(model)))...)
		copy(model[off:], p)
	}
	resize := func(n int) { model = append(model, make([]byte, max(0, n-len(model)))...)[:n:n] }
	var last memstore.Attr
	for step := range 1000 {
		off, n := rnd.IntN(most/2), 1+rnd.IntN(1<<rnd.IntN(17))
		p := source[rnd.IntN(most-n):][:n]
		inside := len(model) > 0
		op := rnd.IntN(11)
		switch op {
		case 0:
			_, err = unix.Pwrite(fd, p, int64(off))
			put(off, p)
		case 1:
			if inside {
				off %= len(model)
				copy(m[off:len(model)], p)
				copy(model[off:], p)
			}
		case 2:
			err = unix.Ftruncate(fd, int64(off))
			resize(off)
		case 3:
			if len(model)+n <= most {
				_, err = unix.Write(appends, p)
				put(len(model), p)
			}
		case 4:
			err = unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(n))
			clear(model[min(off, len(model)):min(off+n, len(model))])
		case 5: // what is mapped stays so
			ok(unix.Close(fd))
			fd = open(unix.O_RDWR)
		case 6:
			_, _, err = i.WriteAt(c, nil, p, int64(off))
			put(off, p)
		case 7:
			_, err = i.SetAttr(c, nil, &memstore.SetAttr{Mask: memstore.SetSize, Size: int64(off)})
			resize(off)
		case 8:
			if len(model)+n <= most {
				_, _, _, err = i.Append(c, nil, p)
				put(len(model), p)
			}
		case 9:
			_, err = i.Punch(c, nil, int64(off), int64(n))
			clear(model[min(off, len(model)):min(off+n, len(model))])
		case 10:
			_, _, err = i.Clone(c, nil, int64(off), other.Inode, nil, int64(off/2), int64(n))
			put(off, source[off/2:][:n])
		}
		what := fmt.Sprintf("seed %d, step %d, operation %d at %d, %d bytes", seed, step, op, off, n)
		if err != nil {
			t.Fatal(what, err)
		}
		got := make([]byte, most)
		k, _, a, err := i.ReadAt(c, nil, got, 0)
		if err != nil || int(a.Size) != len(model) || !bytes.Equal(got[:k], model) {
			t.Fatalf("%s: client: size %d, %v: %s", what, a.Size, err, coherence.Differ(got[:k], model))
		}
		if a.Change <= last.Change || a.Mtime < last.Mtime || a.Ctime < last.Ctime {
			t.Fatalf("%s: client has attributes %+v after %+v", what, a, last)
		}
		last = a
		var st unix.Stat_t
		ok(unix.Fstat(fd, &st))
		if int(st.Size) != len(model) || st.Mtim.Nano() != a.Mtime {
			t.Fatalf("%s: process: size %d, want %d; mtime %d, want %d", what, st.Size, len(model), st.Mtim.Nano(), a.Mtime)
		}
		if k, err := unix.Pread(fd, got, 0); err != nil || !bytes.Equal(got[:k], model) {
			t.Fatalf("%s: process: %v: %s", what, err, coherence.Differ(got[:k], model))
		}
		if !bytes.Equal(m[:len(model)], model) {
			t.Fatalf("%s: mapping: %s", what, coherence.Differ(m[:len(model)], model))
		}
	}
	if s := mount.Stats(); s.Reads+s.Writes > 0 {
		t.Errorf("the server was asked: %+v", s)
	}
}

// TestPassthroughSource: a process writes without the store from a mapping that
// the store is asked for, while clients change both files, and have to wait for
// it. Nobody waits for ever.
func TestPassthroughSource(t *testing.T) {
	dir, store, mount := newMount(t)
	passes(t, dir, func() uint64 { return mount.Stats().Passed })
	proc, c := newLocal(t, dir), &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}
	var files []*memstore.Inode
	for _, name := range []string{"from", "to"} {
		if a := proc.Do(coherence.Call{Op: "create", Name: name, Data: make([]byte, 60<<10)}); a.Err != "" {
			t.Fatal(a.Err)
		}
		i, err := store.Root().Lookup(c, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, i)
	}
	from, to := files[0], files[1]
	runs := 2 * time.Second
	end := time.Now().Add(runs)
	ended := make(chan string)
	loop := func(what string, do func() error) {
		go func() {
			n := 0
			for ; time.Now().Before(end); n++ {
				if err := do(); err != nil {
					ended <- fmt.Sprintf("%s: %v", what, err)
					return
				}
			}
			t.Log(what, n)
			ended <- ""
		}()
	}
	p, q := make([]byte, 60<<10), make([]byte, 60<<10)
	all := []func() error{
		func() error {
			if a := proc.Do(coherence.Call{Op: "pour", Name: "from", To: "to"}); a.Err != "" {
				return errors.New(a.Err)
			}
			return nil
		},
		func() (err error) { _, _, err = to.WriteAt(c, nil, p, 0); return err },
		func() (err error) { _, _, err = from.WriteAt(c, nil, q, 0); return err },
		func() (err error) { _, _, err = to.Clone(c, nil, 0, from, nil, 0, 0); return err },
		func() (err error) { _, _, err = from.Clone(c, nil, 0, to, nil, 0, 0); return err },
		func() error {
			// Twice, so that the names stand for the same files most of the time.
			for range 2 {
				if _, _, err := store.Rename(c, store.Root(), "x", store.Root(), "y", memstore.RenameExchange); err != nil {
					return err
				}
			}
			return nil
		},
	}
	// The same files, by names that the process does not use.
	for k, name := range []string{"x", "y"} {
		if _, _, err := store.Root().Link(c, name, files[k]); err != nil {
			t.Fatal(err)
		}
	}
	for k, what := range []string{"pour", "write to", "write from", "clone", "clone back", "rename"} {
		loop(what, all[k])
	}
	for range all {
		select {
		case failed := <-ended:
			if failed != "" {
				t.Error(failed)
			}
		case <-time.After(runs + 20*time.Second):
			mount.Abort()
			t.Fatal("it has come to a stop")
		}
	}
}

// TestOneCopy reads a large file over and over, which is in memory once, whoever
// wrote it. Where the kernel asks for data it has another copy in its cache, as long
// as it has nothing better to do with that memory.
func TestOneCopy(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("KERNEL_ALL") == "1" {
		size = 1 << 30
	}
	for _, c := range []struct {
		passthrough fusefs.Passthrough
		cached      int64
	}{{fusefs.PassthroughAuto, 0}, {fusefs.PassthroughNever, size}} {
		t.Run(string(c.passthrough), func(t *testing.T) {
			// With room to move what the client has written.
			dir, store, mount := newMountSized(t, 2*size+size/4, fusefs.Options{Passthrough: c.passthrough})
			if c.cached == 0 {
				passes(t, dir, func() uint64 { return mount.Stats().Passed })
			}
			l, sh := newLocal(t, dir), newShell(t, dir)
			for _, by := range []string{"local", "client"} {
				began := memoryInUse(t)
				if by == "local" {
					sh.run(fmt.Sprintf("head -c %d /dev/zero >f", size))
				} else {
					r, err := store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile})
					if err != nil {
						t.Fatal(err)
					}
					p := make([]byte, 1<<20)
					for off := int64(0); off < size; off += 1 << 20 {
						if n, _, err := r.Inode.WriteAt(memstore.Root(), nil, p, off); n < 1<<20 {
							t.Fatal(n, err)
						}
					}
				}
				for range 5 {
					if got := sh.run("cat f | wc -c"); got != fmt.Sprint(size) {
						t.Errorf("read %s bytes, want %d", got, size)
					}
				}
				t.Logf("written by the %s: the machine's memory in use has grown by %d of %d bytes", by, memoryInUse(t)-began, size)
				if used := store.Statfs().UsedBytes; used < size || used > size+1<<20 {
					t.Errorf("written by the %s: %d bytes take %d of the store", by, size, used)
				}
				a := l.Do(coherence.Call{Op: "cached", Name: "f"})
				if strings.Contains(a.Err, "not implemented") {
					t.Skip("the kernel does not tell what is cached")
				}
				if a.Err != "" || a.Size > c.cached {
					t.Errorf("written by the %s: %d bytes are cached besides, %s; want %d at most", by, a.Size, a.Err, c.cached)
				}
				sh.run("rm f")
			}
			if s := mount.Stats(); c.cached == 0 && s.Reads > 0 {
				t.Errorf("the server was asked: %+v", s)
			}
		})
	}
}

// memoryInUse is what the machine uses for processes, tmpfs and caches of files, in
// bytes. Others on the machine use some of it.
func memoryInUse(t *testing.T) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var name string
		var kib int64
		if fmt.Sscanf(line, "%s %d", &name, &kib); name == "AnonPages:" || name == "Cached:" { // which Shmem is part of
			n += kib << 10
		}
	}
	return n
}
