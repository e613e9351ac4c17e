package memstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// newBacked makes a store with a backing.
func newBacked(t testing.TB, size int64) (*Store, *backing) {
	t.Helper()
	needBacking(t)
	s := newStore(t, size)
	b, err := s.makeBacking()
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

func needBacking(t testing.TB) {
	t.Helper()
	tmp, err := mountTmpfs(tmpfsPage)
	if err != nil {
		if os.Getenv("STRICT") == "1" {
			t.Fatal(err)
		}
		t.Skipf("no tmpfs of its own, which root has: %v", err)
	}
	tmp.close()
}

// TestBackedAgainstModel changes files that become backed and paged again, and
// that local processes write to.
func TestBackedAgainstModel(t *testing.T) {
	needBacking(t)
	for seed := range uint64(3) {
		for _, size := range []int64{64 << 20, 700 << 10} {
			t.Run(fmt.Sprintf("seed=%d,size=%d", seed, size), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(size)))
				dataOps(t, size, 250, r.Int64N, func(i *Inode, model []byte) []byte {
					if _, err := i.s.makeBacking(); err != nil {
						t.Fatal(err)
					}
					i.mu.Lock()
					defer i.mu.Unlock()
					switch r.IntN(4) {
					case 0:
						i.toBacked()
					case 1:
						if i.backed() != nil {
							i.toPaged()
						}
					case 2:
						if b := i.backed(); b != nil && i.size > 0 {
							b.held, b.loose = true, true
							off := r.Int64N(i.size)
							n := b.file.write(pattern[r.IntN(100):][:r.IntN(20000)], off)
							model = append(model, make([]byte, max(0, off+int64(n)-int64(len(model))))...)
							b.file.read(model, 0)
						}
					}
					return model
				})
			})
		}
	}
}

// TestBackedLimit: what backed files take and what else is used are one sum.
func TestBackedLimit(t *testing.T) {
	const size = 16 << 20
	s, _ := newBacked(t, size)
	c := Root()
	a, b := mustCreate(t, s.Root(), "a", TypeFile), mustCreate(t, s.Root(), "b", TypeFile)
	a.toBacked()
	fill := func(i *Inode) (n int64) {
		for {
			m, _, err := i.WriteAt(c, nil, pattern, n)
			n += int64(m)
			if errors.Is(err, ErrNoSpace) {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(i *Inode, size int64) {
		t.Helper()
		if _, err := i.SetAttr(c, nil, &SetAttr{Mask: SetSize, Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		if n := fill(a); n < size-64<<10 {
			t.Errorf("round %d: %d of %d bytes in a backed file", round, n, size)
		}
		if n := fill(b); n > 0 {
			t.Errorf("round %d: %d bytes more in a paged file", round, n)
		}
		truncate(a, size/2)
		if n := fill(b); n < size/2-128<<10 || n > size/2 {
			t.Errorf("round %d: %d bytes in a paged file, when a backed one has half", round, n)
		}
		if u := s.Statfs(); u.UsedBytes < size-64<<10 || u.UsedBytes > size {
			t.Errorf("round %d: %d bytes used of a full store", round, u.UsedBytes)
		}
		truncate(b, 0)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	truncate(a, 0)
	if a.backed() != nil {
		t.Error("an empty file is backed")
	}
	if n := fill(b); n < size-128<<10 {
		t.Errorf("%d bytes in a paged file", n)
	}
}

// TestBackedLimitRaces takes and gives back memory of both kinds at once.
func TestBackedLimitRaces(t *testing.T) {
	s, _ := newBacked(t, 8<<20)
	var wg sync.WaitGroup
	for k := range 4 {
		i := mustCreate(t, s.Root(), fmt.Sprint(k), TypeFile)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 0))
			for range 300 {
				if k < 2 {
					i.lock()
					i.toBacked()
					i.mu.Unlock()
				}
				i.WriteAt(Root(), nil, pattern, r.Int64N(4)<<20)
				if r.IntN(3) == 0 {
					i.SetAttr(Root(), nil, &SetAttr{Mask: SetSize, Size: r.Int64N(2) << 20})
				}
			}
		})
	}
	wg.Wait()
}

// TestBackedAppend: an append goes where the file ends, whoever made it longer.
func TestBackedAppend(t *testing.T) {
	s, _ := newBacked(t, 1<<20)
	i := mustCreate(t, s.Root(), "f", TypeFile)
	i.toBacked()
	var want []byte
	for k := range 100 {
		p := pattern[k:][:k]
		if k%2 == 0 {
			i.x.backed.held, i.x.backed.loose = true, true
			i.x.backed.file.append(p)
		} else if off, n, _, err := i.Append(Root(), nil, p); err != nil || n != k || off != int64(len(want)) {
			t.Fatalf("append of %d bytes at %d: %d at %d, %v", k, len(want), n, off, err)
		}
		want = append(want, p...)
	}
	if got := content(t, i); !bytes.Equal(got, want) {
		t.Error("the appends are mixed up")
	}
}

// TestPassthroughUse is the table of how the kernel uses opens.
func TestPassthroughUse(t *testing.T) {
	const r, w, rw = AccessRead, AccessWrite, AccessRead | AccessWrite
	for _, tt := range []struct {
		name   string
		size   int64
		always bool
		opens  []Access
		want   []Use
	}{
		{"small", 100, false, []Access{r, w, rw}, []Use{UseCached, UseAsked, UseCached}},
		{"small, written first", 100, false, []Access{rw, r, w}, []Use{UsePassthrough, UsePassthrough, UsePassthrough}},
		{"small, asked first", 100, false, []Access{w, rw, w, r}, []Use{UseAsked, UsePassthrough, UsePassthrough, UsePassthrough}},
		{"large", 1 << 20, false, []Access{r, w, rw}, []Use{UsePassthrough, UsePassthrough, UsePassthrough}},
		{"large, written", 1 << 20, false, []Access{w}, []Use{UsePassthrough}},
		{"always", 0, true, []Access{w, r}, []Use{UsePassthrough, UsePassthrough}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newBacked(t, 4<<20)
			l, registered := passthrough(t, s, tt.always)
			defer l.Detach()
			c := &Caller{Holder: l.holder}
			i := mustCreate(t, s.Root(), "f", TypeFile)
			if _, err := i.SetAttr(Root(), nil, &SetAttr{Mask: SetSize, Size: tt.size}); err != nil {
				t.Fatal(err)
			}
			var opens []*Open
			id := int32(0)
			for k, a := range tt.opens {
				o, err := i.Open(c, OpenArgs{Access: a})
				if err != nil {
					t.Fatal(err)
				}
				use, got := l.Use(o, a)
				if use != tt.want[k] {
					t.Errorf("open %d: use %d, want %d", k, use, tt.want[k])
				}
				if id == 0 {
					id = got
				} else if use == UsePassthrough && got != id {
					t.Errorf("open %d has id %d, an earlier one %d", k, got, id)
				}
				opens = append(opens, o)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			for _, o := range opens {
				o.Close()
			}
			if len(registered) > 0 {
				t.Errorf("%d files are registered still", len(registered))
			}
			if err := s.Check(); err != nil { // which tidies up
				t.Error(err)
			}
			if tt.size <= smallFile && i.backed() != nil {
				t.Error("a small file is backed when it is closed")
			}
		})
	}
}

// passthrough makes a local mount whose kernel knows the files that it returns.
func passthrough(t *testing.T, s *Store, always bool) (*Local, map[int32]int) {
	t.Helper()
	l, err := s.AttachLocal(&Holder{Name: "mount"}, func([]Stale) {})
	if err != nil {
		t.Fatal(err)
	}
	registered, last := map[int32]int{}, int32(0)
	if err := l.Passthrough(Passthrough{
		Register: func(fd int) (int32, error) {
			last++
			registered[last] = fd
			return last, nil
		},
		Unregister: func(id int32) { delete(registered, id) },
		Always:     always,
	}); err != nil {
		t.Fatal(err)
	}
	return l, registered
}

// TestLoose: what a local process writes and maps is seen by everybody, with
// attributes that change, and nobody caches it, until the last mapping is gone.
func TestLoose(t *testing.T) {
	s, _ := newBacked(t, 4<<20)
	l, registered := passthrough(t, s, false)
	defer l.Detach()
	i := mustCreate(t, s.Root(), "f", TypeFile)
	o, err := i.Open(&Caller{Holder: l.holder}, OpenArgs{Access: AccessRead | AccessWrite})
	if err != nil {
		t.Fatal(err)
	}
	client := &Caller{Holder: &Holder{Name: "client"}}
	co, err := i.Open(client, OpenArgs{Access: AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	defer co.Close()
	lease := func(want bool) {
		t.Helper()
		g := co.Lease(client, CacheRead, func(Rights) {})
		if (g != nil) != want {
			t.Errorf("lease %v, want %v", g != nil, want)
		}
		if g != nil {
			g.Yield(0)
		}
	}
	see := func(want string) Attr {
		t.Helper()
		var buf [20]byte
		n, _, a, err := i.ReadAt(client, nil, buf[:], 0)
		if got := string(buf[:n]); err != nil || got != want || a.Size != int64(len(want)) {
			t.Errorf("read %q, size %d, %v, want %q", got, a.Size, err, want)
		}
		return a
	}
	_, id := l.Use(o, AccessRead|AccessWrite)

	// What the kernel does for the process: it opens the file that is registered.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", registered[id]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Pwrite(fd, []byte("hello"), 0)
	before := see("hello")
	m, err := unix.Mmap(fd, 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	m[0] = 'j'
	after := see("jello")
	if after.Change <= before.Change || !after.Loose {
		t.Errorf("attributes %+v after %+v", after, before)
	}
	lease(false)

	unix.Close(fd)
	o.Close()
	m[1] = 'u'
	see("jullo")
	lease(false)
	if err := s.Check(); err != nil || i.backed() == nil {
		t.Errorf("a mapped file: backed %v, %v", i.backed(), err)
	}
	again, err := i.Open(&Caller{Holder: l.holder}, OpenArgs{Access: AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	if use, _ := l.Use(again, AccessRead); use != UsePassthrough {
		t.Errorf("use %d of a small file that is mapped passed through", use)
	}
	again.Close()

	unix.Munmap(m)
	if a := see("jullo"); a.Loose {
		t.Error("it is loose, but nobody has it")
	}
	lease(true)
}

// TestPassthroughNoRoom: without memory for a copy, or a descriptor, a file is
// cached and stays paged.
func TestPassthroughNoRoom(t *testing.T) {
	for _, what := range []string{"memory", "descriptors"} {
		t.Run(what, func(t *testing.T) {
			s, b := newBacked(t, 4<<20)
			l, _ := passthrough(t, s, false)
			defer l.Detach()
			i := mustCreate(t, s.Root(), "f", TypeFile)
			size := int64(1 << 20)
			if what == "memory" {
				size = 3 << 20
			} else {
				b.most = 0
			}
			for off := int64(0); off < size; off += 1 << 20 {
				if n, _, err := i.WriteAt(Root(), nil, pattern, off); n < 1<<20 {
					t.Fatal(n, err)
				}
			}
			o, err := i.Open(&Caller{Holder: l.holder}, OpenArgs{Access: AccessRead})
			if err != nil {
				t.Fatal(err)
			}
			if use, _ := l.Use(o, AccessRead); use != UseCached || i.backed() != nil {
				t.Errorf("use %d", use)
			}
			if got := content(t, i); !bytes.Equal(got[size-1<<20:], pattern) {
				t.Error("it has other bytes")
			}
			o.Close()
		})
	}
}

// TestMappedForReading: a mapping that outlives its open shows what a client
// makes of the file.
func TestMappedForReading(t *testing.T) {
	s, _ := newBacked(t, 4<<20)
	l, registered := passthrough(t, s, true)
	defer l.Detach()
	i := mustCreate(t, s.Root(), "f", TypeFile)
	write := func(what string) {
		t.Helper()
		if _, err := i.SetAttr(Root(), nil, &SetAttr{Mask: SetSize}); err != nil {
			t.Fatal(err)
		}
		if n, _, err := i.WriteAt(Root(), nil, []byte(what), 0); n != len(what) {
			t.Fatal(n, err)
		}
		if err := s.Check(); err != nil { // which tidies up
			t.Fatal(err)
		}
	}
	write("before")
	o, err := i.Open(&Caller{Holder: l.holder}, OpenArgs{Access: AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	_, id := l.Use(o, AccessRead)
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", registered[id]), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(fd, 0, 6, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	o.Close()
	write("after!")
	if string(m) != "after!" {
		t.Errorf("the mapping has %q", m)
	}
	unix.Munmap(m)
	write("again")
	if i.backed() != nil {
		t.Error("it is backed, but nobody has it")
	}
}
