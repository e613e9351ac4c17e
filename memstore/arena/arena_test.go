package arena

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// newArena makes an arena that is closed at the end of the test, after a check
// that nothing is left in use.
func newArena(t testing.TB, c Config) *Arena {
	t.Helper()
	a := New(c)
	t.Cleanup(func() {
		if st := a.Stats(); st.Pages != 0 || st.Used != 0 || st.Pins != 0 {
			t.Errorf("left in use: %+v", st)
		}
		a.Walk(func(addr Addr, size, refs, pins int) {
			t.Errorf("left in use: page %#x of %d bytes, %d references, %d pins", addr, size, refs, pins)
		})
		check(t, a)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// check verifies the counters and sets of an arena that nobody uses just now.
func check(t testing.TB, a *Arena) {
	t.Helper()
	a.trimMu.Lock()
	defer a.trimMu.Unlock()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf("check: "+format, args...)
	}
	type sum struct{ used, resident int }
	heaps := map[*heap]sum{}
	a.eachSpan(func(sp *span) {
		sp.h.mu.Lock()
		defer sp.h.mu.Unlock()
		cold := bitmap(sp.r.cold[sp.index][:])
		free := 0
		for i := range sp.counts {
			if isFree := sp.counts[i].Load() == 0; isFree != sp.free.has(i) {
				bad("page %d of span %#x: count %#x, free %v", i, sp.base(), sp.counts[i].Load(), sp.free.has(i))
			} else if isFree {
				free++
			} else {
				for u := i * sp.size / a.unit; u <= ((i+1)*sp.size-1)/a.unit; u++ {
					if cold.has(u) {
						bad("used page %d of span %#x is cold", i, sp.base())
					}
				}
			}
		}
		if free != sp.nfree || sp.free.count() != free {
			bad("span %#x: %d free, counted %d", sp.base(), free, sp.nfree)
		}
		if want := sp.nfree > 0 && sp != sp.h.current; want != sp.listed {
			bad("span %#x: %d free, listed %v", sp.base(), sp.nfree, sp.listed)
		}
		s := heaps[sp.h]
		s.used += sp.pages - free
		s.resident += a.warmUnits(sp.r, sp.index)
		heaps[sp.h] = s
	})
	for i := range a.heaps {
		h := &a.heaps[i]
		if s := heaps[h]; s.used != h.used || s.resident != h.resident {
			bad("heap %d: %d pages, %d units, counted %d, %d", i, s.used, s.resident, h.used, h.resident)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	listed := map[*region]bool{}
	for r := a.dirty; r != nil; r = r.next {
		listed[r] = true
	}
	owned, resident := 0, 0
	for i, r := range *a.regions.Load() {
		if r == nil {
			continue
		}
		if listed[r] != (r.dirty != 0) || r.dirty&^r.free != 0 {
			bad("region %d: dirty %#x, free %#x, listed %v", i, r.dirty, r.free, listed[r])
		}
		for s, sp := range r.spans {
			isFree := r.free>>s&1 != 0
			if isFree != (sp == nil) {
				bad("region %d span %d: free %v, has an owner %v", i, s, isFree, sp != nil)
			}
			if sp != nil {
				owned++
				continue
			}
			n := a.warmUnits(r, s)
			resident += n
			if isDirty := r.dirty>>s&1 != 0; isDirty != (n > 0) {
				bad("region %d span %d: %d units resident, dirty %v", i, s, n, isDirty)
			}
			if i < a.fresh && n == 0 {
				bad("region %d has a cold span, the first to look in is %d", i, a.fresh)
			}
		}
	}
	if owned != a.owned || resident != a.resident {
		bad("%d spans in heaps, %d units of free ones, counted %d, %d", owned, resident, a.owned, a.resident)
	}
}

func mustAlloc(t testing.TB, a *Arena, size, count int, shard uint64, zero bool) (Addr, int) {
	t.Helper()
	addr, n, err := a.Alloc(size, count, shard, zero)
	if err != nil {
		t.Fatal(err)
	}
	if n < 1 || n > count {
		t.Fatalf("Alloc of %d pages returned %d", count, n)
	}
	return addr, n
}

func TestClassSize(t *testing.T) {
	prev := 0
	for i, c := range classes {
		size := int(c)
		if size <= prev || size%32 != 0 {
			t.Errorf("class %d: %d after %d", i, size, prev)
		}
		for n := prev + 1; n <= size; n++ {
			if got := ClassSize(n); got != size {
				t.Fatalf("ClassSize(%d) = %d, want %d", n, got, size)
			}
		}
		prev = size
	}
	if prev != MaxPage {
		t.Errorf("the largest page is %d", prev)
	}
	for _, n := range []int{-1, 0, MaxPage + 1} {
		mustPanic(t, fmt.Sprint("ClassSize ", n), func() { ClassSize(n) })
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func TestBitmap(t *testing.T) {
	const n = 200
	b, model := make(bitmap, (n+63)/64), make([]bool, n)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		i := rnd.IntN(n)
		k := rnd.IntN(n - i + 1)
		value := rnd.IntN(2) == 0
		if value {
			b.set(i, k)
		} else {
			b.clear(i, k)
		}
		count := 0
		for j := range model {
			if j >= i && j < i+k {
				model[j] = value
			}
			if model[j] {
				count++
			}
			if b.has(j) != model[j] {
				t.Fatalf("has(%d) = %v", j, b.has(j))
			}
		}
		from, end := rnd.IntN(n), rnd.IntN(n+1)
		for _, want := range []bool{true, false} {
			j := from
			for j < end && model[j] != want {
				j++
			}
			got := b.next(from, end)
			if !want {
				got = b.run(from, end)
			}
			if from < end && got != j || from >= end && got != end {
				t.Fatalf("first %v in [%d, %d) = %d, want %d", want, from, end, got, j)
			}
		}
		if b.count() != count {
			t.Fatalf("count = %d, want %d", b.count(), count)
		}
	}
}

// A file that is written in order is consecutive in memory, also over spans.
func TestConsecutive(t *testing.T) {
	for _, tt := range []struct{ size, count, calls int }{
		{64, 1, 100}, {4096, 1, 1000}, {4096, 16, 100}, {MaxPage, 16, 60}, {MaxPage, 5, 190}, {MaxPage, 64, 240},
	} {
		t.Run(fmt.Sprintf("%dx%d", tt.count, tt.size), func(t *testing.T) {
			a := newArena(t, Config{})
			var all []Addr
			for range tt.calls {
				addr, n := mustAlloc(t, a, tt.size, tt.count, 7, false)
				for i := range n {
					all = append(all, addr+Addr(i*tt.size))
				}
			}
			runs := 1
			for i := 1; i < len(all); i++ {
				if all[i] != all[i-1]+Addr(tt.size) {
					runs++
				}
			}
			if want := 1 + len(all)*tt.size/regionSize; runs > want {
				t.Errorf("%d pages in %d runs, want %d", len(all), runs, want)
			}
			for _, addr := range all {
				a.Free(addr)
			}
		})
	}
}

// Writers of different shards do not cut each other's files into spans.
func TestConsecutiveShards(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	a := newArena(t, Config{})
	var all [4][]Addr
	for range 8 {
		for shard := range all {
			addr, n := mustAlloc(t, a, MaxPage, 16, uint64(shard), false)
			if n != 16 {
				t.Fatalf("%d pages", n)
			}
			all[shard] = append(all[shard], addr)
		}
	}
	for shard, addrs := range all {
		if addrs[7] != addrs[0]+7*spanSize {
			t.Errorf("shard %d: %#x", shard, addrs)
		}
		for _, addr := range addrs {
			for i := range Addr(16) {
				a.Free(addr + i*MaxPage)
			}
		}
	}
}

func TestRefsAndPins(t *testing.T) {
	a := newArena(t, Config{})
	p, _ := mustAlloc(t, a, 1000, 1, 0, false)
	want := func(refs int, pins int64) {
		t.Helper()
		if got := a.Refs(p); got != refs || a.Shared(p) != (refs > 1) {
			t.Errorf("Refs = %d, Shared = %v, want %d", got, a.Shared(p), refs)
		}
		if got := a.Stats().Pins; got != pins {
			t.Errorf("%d pins, want %d", got, pins)
		}
	}
	if a.PageSize(p+1023) != 1024 || a.PageStart(p+1023) != p {
		t.Errorf("page of %d bytes at %#x, want 1024 at %#x", a.PageSize(p+1023), a.PageStart(p+1023), p)
	}
	want(1, 0)
	a.Ref(p)
	want(2, 0)
	a.Pin(p)
	a.Pin(p)
	want(2, 2)
	if a.Free(p) {
		t.Error("Free of a shared page says that it was the last reference")
	}
	if !a.Free(p) {
		t.Error("Free of the last reference says that it was not")
	}
	want(0, 2)
	mustPanic(t, "Ref of a pinned page without references", func() { a.Ref(p) })
	mustPanic(t, "Pin of a pinned page without references", func() { a.Pin(p) })
	a.Unpin(p)
	if q, _ := mustAlloc(t, a, 1000, 1, 0, false); q == p {
		t.Error("a pinned page was used again")
	} else {
		a.Free(q)
	}
	a.Unpin(p)
	want(0, 0)
}

func TestSaturation(t *testing.T) {
	a := newArena(t, Config{})
	p, _ := mustAlloc(t, a, 64, 1, 0, false)
	for range maxCount - 1 {
		a.Ref(p)
	}
	for range maxCount {
		a.Pin(p)
	}
	if a.Ref(p) || a.Pin(p) || a.Refs(p) != maxCount {
		t.Errorf("%d references after saturation", a.Refs(p))
	}
	for range maxCount {
		a.Unpin(p)
		a.Free(p)
	}
}

func TestInvariantsPanic(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(a *Arena, p Addr)
	}{
		{"double Free", func(a *Arena, p Addr) { a.Free(p); a.Free(p) }},
		{"double Free of a pinned page", func(a *Arena, p Addr) { a.Pin(p); a.Free(p); a.Free(p) }},
		{"Unpin without Pin", func(a *Arena, p Addr) { a.Unpin(p) }},
		{"Ref of a free page", func(a *Arena, p Addr) { a.Free(p); a.Ref(p) }},
		{"Pin of a free page", func(a *Arena, p Addr) { a.Free(p); a.Pin(p) }},
		{"Free of 0", func(a *Arena, p Addr) { a.Free(0) }},
		{"Bytes of 0", func(a *Arena, p Addr) { a.Bytes(0, 1) }},
		{"Bytes beyond the region", func(a *Arena, p Addr) { a.Bytes(p, regionSize+1) }},
		{"no pages", func(a *Arena, p Addr) { a.Alloc(1, 0, 0, false) }},
		{"no size", func(a *Arena, p Addr) { a.Alloc(0, 1, 0, false) }},
	} {
		a := New(Config{})
		p, _ := mustAlloc(t, a, 4096, 1, 0, false)
		mustPanic(t, tt.name, func() { tt.f(a, p) })
		a.Close()
	}
}

var ones = bytes.Repeat([]byte{0xff}, MaxPage)

func isZero(mem []byte) bool {
	for len(mem) > 0 {
		n := min(len(mem), len(zeros))
		if !bytes.Equal(mem[:n], zeros[:n]) {
			return false
		}
		mem = mem[n:]
	}
	return true
}

func TestZero(t *testing.T) {
	for _, size := range []int{64, 3584, 4096, 5 << 10, 36 << 10, MaxPage} {
		a := newArena(t, Config{})
		rnd := rand.New(rand.NewPCG(1, uint64(size)))
		var pages []Addr
		for round := range 4 {
			for range 1 + spanSize/16/size {
				addr, n := mustAlloc(t, a, size, 1+rnd.IntN(20), 0, true)
				mem := a.Bytes(addr, n*size)
				if !isZero(mem) {
					t.Fatalf("size %d, round %d: %d pages are not zero", size, round, n)
				}
				for len(mem) > 0 {
					mem = mem[copy(mem, ones):]
				}
				for i := range n {
					pages = append(pages, addr+Addr(i*size))
				}
			}
			rnd.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })
			for len(pages) > round%2*7 {
				a.Free(pages[len(pages)-1])
				pages = pages[:len(pages)-1]
			}
			if round%3 == 1 {
				a.Trim()
			}
		}
		for _, p := range pages {
			a.Free(p)
		}
	}
}

// Read, Write, Zero and Bytes are the same memory, whether the OS pages were
// used before or not.
func TestCopy(t *testing.T) {
	for _, size := range []int{64, 1000, 4096, 5000, MaxPage} {
		a := newArena(t, Config{})
		rnd := rand.New(rand.NewPCG(1, uint64(size)))
		addr, n := mustAlloc(t, a, size, spanSize, 0, true)
		total := n * a.PageSize(addr)
		model, got := make([]byte, total), make([]byte, total)
		random := make([]byte, 4*MaxPage)
		rand.NewChaCha8([32]byte{}).Read(random)
		for range 100 {
			off := rnd.IntN(total)
			k := rnd.IntN(min(total-off, 3*MaxPage) + 1)
			switch rnd.IntN(4) {
			case 0, 1:
				copy(model[off:off+k], random[rnd.IntN(MaxPage):])
				a.Write(addr+Addr(off), model[off:off+k])
			case 2:
				clear(model[off : off+k])
				a.Zero(addr+Addr(off), k)
			case 3:
				a.Read(got[off:off+k], addr+Addr(off))
				if !bytes.Equal(got[off:off+k], model[off:off+k]) {
					t.Fatalf("size %d: Read of %d bytes at %d", size, k, off)
				}
			}
		}
		if !bytes.Equal(a.Bytes(addr, total), model) {
			t.Fatalf("size %d: Bytes", size)
		}
		for i := range n {
			a.Free(addr + Addr(i*total/n))
		}
	}
}

func TestWarm(t *testing.T) {
	a := newArena(t, Config{})
	addr, _ := mustAlloc(t, a, 64, 64, 0, false)
	want := func(off, n int, write, warm bool) {
		t.Helper()
		for range 2 { // to ask changes nothing
			if got := a.Warm(addr+Addr(off), n, write); got != (warm || !osFile) {
				t.Errorf("Warm(%d, %d, %v) = %v", off, n, write, got)
			}
		}
	}
	want(0, 0, true, true)
	want(0, 4096, true, false)
	a.Write(addr, ones[:2048])
	want(0, 2048, true, false) // the rest of the OS page is still to come
	a.Zero(addr+2048, 2048)
	want(0, 4096, true, false) // to clear is no use
	a.Write(addr+2048, ones[:2048])
	want(0, 4096, true, true)
	want(100, 1, false, false)
	a.Read(make([]byte, 4096), addr)
	want(100, 1, false, true)
	for i := range Addr(64) {
		a.Free(addr + i*64)
	}
	a.Trim()
	addr, _ = mustAlloc(t, a, 64, 64, 0, false)
	want(0, 4096, true, false)
	want(0, 4096, false, false)
	for i := range Addr(64) {
		a.Free(addr + i*64)
	}
}

func TestLimit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	a := newArena(t, Config{Limit: 4 << 20})
	var pages []Addr
	fill := func(shard uint64) int {
		for n := 0; ; {
			addr, k, err := a.Alloc(MaxPage, 100, shard, false)
			if errors.Is(err, ErrLimit) {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range k {
				pages = append(pages, addr+Addr(i*MaxPage))
			}
			n += k
		}
	}
	if n := fill(0); n != 64 {
		t.Fatalf("%d pages of 64 KiB fit into 4 MiB", n)
	}
	// Every other page becomes free; another shard finds them.
	for i := range pages[:32] {
		a.Free(pages[i])
		pages = slices.Delete(pages, i, i+1)
	}
	if n := fill(1); n != 32 {
		t.Fatalf("%d of 32 free pages found by another shard", n)
	}
	for _, p := range pages {
		a.Free(p)
	}
	pages = nil
	// An empty span that some heap keeps is no obstacle to others.
	if n := fill(2); n != 64 {
		t.Fatalf("%d pages fit again", n)
	}
	for _, p := range pages {
		a.Free(p)
	}
	if _, _, err := New(Config{Limit: 1}).Alloc(1, 1, 0, false); err != nil {
		t.Errorf("the smallest limit: %v", err)
	}
}

// Memory that is freed and needed again does not grow, and is not given back
// as long as it is in use.
func TestRecycle(t *testing.T) {
	a := newArena(t, Config{})
	const size = 64 << 20
	var file []Addr
	for len(file) < size/MaxPage {
		addr, n := mustAlloc(t, a, MaxPage, size/MaxPage-len(file), 3, false)
		for i := range n {
			file = append(file, addr+Addr(i*MaxPage))
		}
	}
	for range 4 {
		for i := 0; i < len(file); i += 16 {
			var fresh []Addr
			for len(fresh) < 16 {
				addr, n := mustAlloc(t, a, MaxPage, 16-len(fresh), 3, false)
				for k := range n {
					fresh = append(fresh, addr+Addr(k*MaxPage))
				}
			}
			for k, p := range fresh {
				a.Free(file[i+k])
				file[i+k] = p
			}
		}
	}
	if st := a.Stats(); st.Used != size || st.Resident > size+4<<20 {
		t.Errorf("after overwriting: %+v", st)
	}
	for _, p := range file {
		a.Free(p)
	}
}

// Free memory goes back two seconds later, beside used pages too, and the
// trimmer ends when there is no more.
func TestTrimmer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t, Config{})
		var kept, pages []Addr
		for i := range 600 {
			p, n := mustAlloc(t, a, MaxPage-i%9*7000, 3, uint64(i), false)
			size := a.PageSize(p)
			clear(a.Bytes(p, n*size))
			for k := range n {
				if q := p + Addr(k*size); i%50 == 0 {
					kept = append(kept, q)
				} else {
					pages = append(pages, q)
				}
			}
		}
		peak := a.Stats()
		for _, p := range pages {
			a.Free(p)
		}
		time.Sleep(1400 * time.Millisecond)
		synctest.Wait()
		if st := a.Stats(); st.Resident < peak.Resident*9/10 {
			t.Errorf("given back too early: %+v", st)
		}
		time.Sleep(700 * time.Millisecond)
		synctest.Wait()
		if st := a.Stats(); st.Free > 2<<20 {
			t.Errorf("2.1 s after most was freed: %+v", st)
		}
		check(t, a)
		for _, p := range kept {
			a.Free(p)
		}
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		if st := a.Stats(); st.Resident != 0 || st.Meta != 0 || st.Mapped > regionSize {
			t.Errorf("2.1 s after all was freed: %+v", st)
		}
		if a.awake.Load() {
			t.Error("the trimmer still runs")
		}
	})
}

// What a page holds is a function of its address and a number. Pages begin and
// end at multiples of 32 bytes.
func pattern(mem []byte, addr Addr, seed uint64) {
	for i := 0; i < len(mem); i += 32 {
		binary.LittleEndian.PutUint64(mem[i:], (uint64(addr)+uint64(i))*0x9e3779b97f4a7c15^seed)
	}
}

func hasPattern(mem []byte, addr Addr, seed uint64) bool {
	for i := 0; i < len(mem); i += 32 {
		if binary.LittleEndian.Uint64(mem[i:]) != (uint64(addr)+uint64(i))*0x9e3779b97f4a7c15^seed {
			return false
		}
	}
	return true
}

// user uses an arena at random and checks it against what must hold: pages
// have their content as long as they have a reference or a pin.
type user struct {
	t     testing.TB
	a     *Arena
	pages []held
	bytes int
	seed  uint64
	buf   [MaxPage]byte
}

type held struct {
	addr       Addr
	size       int
	refs, pins int
	seed       uint64
}

func (u *user) step(op, x, y byte) {
	if op%8 < 3 && u.bytes < 4<<20 {
		size := 1 + int(x)*int(x)
		if op%8 == 0 {
			size = 1 + int(x)*8
		}
		zero := y&1 != 0
		addr, n := mustAlloc(u.t, u.a, size, 1+int(y>>4), uint64(y>>1&7), zero)
		size = ClassSize(size)
		for i := range n {
			p := held{addr: addr + Addr(i*size), size: size, refs: 1, seed: u.seed}
			u.seed++
			mem := u.a.Bytes(p.addr, size)
			if zero && !isZero(mem) {
				u.t.Fatalf("page %#x of %d bytes is not zero", p.addr, size)
			}
			if y&8 != 0 {
				pattern(mem, p.addr, p.seed)
			} else {
				pattern(u.buf[:size], p.addr, p.seed)
				u.a.Write(p.addr, u.buf[:size])
			}
			u.pages = append(u.pages, p)
			u.bytes += size
		}
		return
	}
	if len(u.pages) == 0 {
		return
	}
	i := (int(x)<<8 + int(y)) % len(u.pages)
	p := &u.pages[i]
	switch op % 8 {
	case 3:
		if p.refs > 0 && u.a.Ref(p.addr) {
			p.refs++
		}
	case 4:
		if p.refs > 0 && u.a.Pin(p.addr) {
			p.pins++
		}
	case 5:
		if p.pins > 0 {
			u.drop(i, true)
		}
	default:
		if p.refs > 0 {
			u.drop(i, false)
		} else {
			u.drop(i, true)
		}
	}
}

func (u *user) drop(i int, pin bool) {
	p := &u.pages[i]
	u.a.Read(u.buf[:p.size], p.addr)
	if !hasPattern(u.a.Bytes(p.addr, p.size), p.addr, p.seed) || !hasPattern(u.buf[:p.size], p.addr, p.seed) {
		u.t.Fatalf("page %#x of %d bytes was overwritten", p.addr, p.size)
	}
	last := false
	if pin {
		p.pins--
		u.a.Unpin(p.addr)
	} else {
		p.refs--
		if last = u.a.Free(p.addr); last != (p.refs == 0) {
			u.t.Fatalf("Free says last: %v with %d references left", last, p.refs)
		}
	}
	if p.refs == 0 && p.pins == 0 {
		u.bytes -= p.size
		u.pages[i] = u.pages[len(u.pages)-1]
		u.pages = u.pages[:len(u.pages)-1]
	}
}

func (u *user) compare() {
	st := u.a.Stats()
	pins := 0
	model := map[Addr]held{}
	for _, p := range u.pages {
		model[p.addr] = p
		pins += p.pins
	}
	if st.Used != int64(u.bytes) || st.Pages != int64(len(u.pages)) || st.Pins != int64(pins) || st.Resident < st.Used {
		u.t.Fatalf("%+v, want %d pages of %d bytes, %d pins", st, len(u.pages), u.bytes, pins)
	}
	n := 0
	u.a.Walk(func(addr Addr, size, refs, pins int) {
		n++
		if p := model[addr]; p.size != size || p.refs != refs || p.pins != pins {
			u.t.Fatalf("Walk: page %#x of %d bytes, %d references, %d pins; want %+v", addr, size, refs, pins, p)
		}
	})
	if n != len(u.pages) {
		u.t.Fatalf("Walk: %d pages, want %d", n, len(u.pages))
	}
	check(u.t, u.a)
}

func (u *user) end() {
	for len(u.pages) > 0 {
		u.drop(len(u.pages)-1, u.pages[len(u.pages)-1].refs == 0)
	}
}

func FuzzArena(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		seed := make([]byte, 3000)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		a := newArena(t, Config{})
		u := &user{t: t, a: a}
		for i := 0; i+3 <= len(ops); i += 3 {
			if ops[i] == 0xff {
				a.Trim()
				check(t, a)
				continue
			}
			u.step(ops[i], ops[i+1], ops[i+2])
		}
		u.compare()
		u.end()
	})
}

// A span without a free page has memory to give back behind its last page, which
// another page size has left there. That does not make it one with free pages.
func TestTrimTail(t *testing.T) {
	a := newArena(t, Config{})
	var pages []Addr
	alloc := func(size, count int) {
		for got := 0; got < count; {
			addr, n := mustAlloc(t, a, size, count-got, 0, false)
			for i := range n {
				pages = append(pages, addr+Addr(i*size))
			}
			got += n
		}
	}
	free := func(n int) {
		for range n {
			a.Free(pages[0])
			pages = pages[1:]
		}
	}
	alloc(MaxPage, 2*spanSize/MaxPage)
	free(spanSize / MaxPage) // another span is where pages come from
	const size = 36 << 10
	rest := len(pages)
	alloc(size, spanSize/size+1)
	a.Free(pages[rest])
	pages = append(pages[:rest], pages[rest+1:]...)
	alloc(size, spanSize/size+1) // and from another again
	a.Trim()
	check(t, a)
	alloc(size, 2*spanSize/size)
	free(len(pages))
}

// Several users at once, with a trimmer that never rests.
func TestConcurrent(t *testing.T) {
	a := newArena(t, Config{})
	var wg, trims sync.WaitGroup
	stop := make(chan struct{})
	trims.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				a.trim(i%2 == 0)
				a.Stats()
				a.Walk(func(Addr, int, int, int) {})
			}
		}
	})
	for i := range 4 {
		wg.Go(func() {
			u := &user{t: t, a: a, seed: uint64(i) << 32}
			rnd := rand.New(rand.NewPCG(5, uint64(i)))
			for range 1500 {
				x := rnd.Uint32()
				u.step(byte(x), byte(x>>8), byte(x>>16))
			}
			u.end()
		})
	}
	// One page that one frees while others unpin it: exactly one of them makes
	// it free.
	wg.Go(func() {
		for range 1000 {
			p, _ := mustAlloc(t, a, 4096, 1, 1, false)
			a.Pin(p)
			a.Pin(p)
			var race sync.WaitGroup
			race.Go(func() { a.Unpin(p) })
			race.Go(func() { a.Unpin(p) })
			a.Free(p)
			race.Wait()
		}
	})
	wg.Wait()
	close(stop)
	trims.Wait()
}
