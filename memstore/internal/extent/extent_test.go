package extent

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(Map{}); n > 40 {
		t.Errorf("an empty Map takes %d bytes", n)
	}
}

func extents(m *Map) []Extent { return slices.Collect(m.All()) }

func check(t testing.TB, m *Map, want ...Extent) {
	t.Helper()
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	got := extents(m)
	if !slices.Equal(got, want) {
		t.Errorf("extents %+v, want %+v", got, want)
	}
	bytes := int64(0)
	for _, e := range want {
		bytes += e.Len
	}
	if m.Len() != len(want) || m.Bytes() != bytes {
		t.Errorf("Len = %d, Bytes = %d, want %d, %d", m.Len(), m.Bytes(), len(want), bytes)
	}
}

func TestInsertJoins(t *testing.T) {
	for _, tt := range []struct {
		name   string
		insert []Extent
		want   []Extent
	}{
		{"one", []Extent{{0, 100, 10, 10}}, []Extent{{0, 100, 10, 10}}},
		{"behind", []Extent{{0, 100, 10, 10}, {10, 110, 20, 10}}, []Extent{{0, 100, 30, 10}}},
		{"before", []Extent{{10, 110, 20, 10}, {0, 100, 10, 10}}, []Extent{{0, 100, 30, 10}}},
		{"between", []Extent{{0, 100, 10, 10}, {20, 120, 10, 10}, {10, 110, 10, 10}}, []Extent{{0, 100, 30, 10}}},
		{"not in file", []Extent{{0, 100, 10, 10}, {20, 110, 10, 10}}, []Extent{{0, 100, 10, 10}, {20, 110, 10, 10}}},
		{"not in memory", []Extent{{0, 100, 10, 10}, {10, 120, 10, 10}}, []Extent{{0, 100, 10, 10}, {10, 120, 10, 10}}},
		{"another page size", []Extent{{0, 100, 10, 10}, {10, 110, 20, 20}}, []Extent{{0, 100, 10, 10}, {10, 110, 20, 20}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Map
			for _, e := range tt.insert {
				m.Insert(e)
			}
			check(t, &m, tt.want...)
		})
	}
}

func TestInsertPanics(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    Extent
	}{
		{"overlaps at its end", Extent{5, 0, 10, 10}},
		{"overlaps at its start", Extent{25, 0, 10, 5}},
		{"is inside", Extent{15, 0, 5, 5}},
		{"is around", Extent{0, 0, 100, 50}},
		{"is there", Extent{10, 110, 20, 10}},
		{"no length", Extent{50, 0, 0, 10}},
		{"no page size", Extent{50, 0, 10, 0}},
		{"half a page", Extent{50, 0, 15, 10}},
		{"before 0", Extent{-10, 0, 10, 10}},
		{"beyond the largest offset", Extent{math.MaxInt64 - 9, 0, 10, 10}},
	} {
		for _, more := range []bool{false, true} {
			func() {
				var m Map
				m.Insert(Extent{10, 110, 20, 10})
				if more {
					m.Insert(Extent{1000, 0, 10, 10})
				} else if tt.name[:4] == "over" || tt.name[:2] == "is" {
					return // a single extent is checked with the next one
				}
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", tt.name)
					}
				}()
				m.Insert(tt.e)
			}()
		}
	}
}

func TestFind(t *testing.T) {
	var m Map
	if _, ok := m.Find(0); ok {
		t.Error("found in an empty map")
	}
	a, b := Extent{10, 100, 20, 10}, Extent{50, 500, 5, 5}
	m.Insert(a)
	for _, off := range []int64{0, 10, 29} {
		if e, ok := m.Find(off); !ok || e != a {
			t.Errorf("Find(%d) = %+v, %v", off, e, ok)
		}
	}
	if _, ok := m.Find(30); ok {
		t.Error("found behind the only extent")
	}
	m.Insert(b)
	for _, tt := range []struct {
		off  int64
		want Extent
	}{{0, a}, {10, a}, {29, a}, {30, b}, {49, b}, {54, b}, {55, Extent{}}, {math.MaxInt64, Extent{}}} {
		if e, ok := m.Find(tt.off); ok != (tt.want != Extent{}) || e != tt.want {
			t.Errorf("Find(%d) = %+v, %v, want %+v", tt.off, e, ok, tt.want)
		}
		got := slices.Collect(m.From(tt.off))
		if len(got) > 0 && got[0] != tt.want || (len(got) > 0) != (tt.want != Extent{}) {
			t.Errorf("From(%d) = %+v", tt.off, got)
		}
	}
}

func TestCut(t *testing.T) {
	one := []Extent{{100, 1000, 40, 10}}
	two := []Extent{{100, 1000, 40, 10}, {140, 5000, 60, 20}}
	for _, tt := range []struct {
		name         string
		have         []Extent
		off, n       int64
		removed, now []Extent
	}{
		{"nothing there", nil, 0, 100, nil, nil},
		{"nothing asked", one, 100, 0, nil, one},
		{"before", one, 0, 100, nil, one},
		{"behind", one, 140, 100, nil, one},
		{"all", one, 0, math.MaxInt64, one, nil},
		{"exactly", one, 100, 40, one, nil},
		{"beyond the largest offset", one, 120, math.MaxInt64, []Extent{{120, 1020, 20, 10}}, []Extent{{100, 1000, 20, 10}}},
		{"the start", one, 50, 60, []Extent{{100, 1000, 10, 10}}, []Extent{{110, 1010, 30, 10}}},
		{"the end", one, 130, 60, []Extent{{130, 1030, 10, 10}}, []Extent{{100, 1000, 30, 10}}},
		{"the middle", one, 110, 20, []Extent{{110, 1010, 20, 10}}, []Extent{{100, 1000, 10, 10}, {130, 1030, 10, 10}}},
		{"parts of pages", one, 105, 30, []Extent{{110, 1010, 20, 10}}, []Extent{{100, 1000, 10, 10}, {130, 1030, 10, 10}}},
		{"within a page", one, 111, 8, nil, one},
		{"parts of two pages", one, 111, 18, nil, one},
		{"over two", two, 115, 50, []Extent{{120, 1020, 20, 10}, {140, 5000, 20, 20}}, []Extent{{100, 1000, 20, 10}, {160, 5020, 40, 20}}},
		{"the first of two", two, 100, 45, []Extent{{100, 1000, 40, 10}}, []Extent{{140, 5000, 60, 20}}},
		{"the last of two", two, 139, 100, []Extent{{140, 5000, 60, 20}}, []Extent{{100, 1000, 40, 10}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Map
			for _, e := range tt.have {
				m.Insert(e)
			}
			var removed []Extent
			m.Cut(tt.off, tt.n, func(e Extent) { removed = append(removed, e) })
			if !slices.Equal(removed, tt.removed) {
				t.Errorf("removed %+v, want %+v", removed, tt.removed)
			}
			check(t, &m, tt.now...)
		})
	}
}

func TestClear(t *testing.T) {
	for n := range 3 {
		var m Map
		for i := range n {
			m.Insert(Extent{int64(i) * 20, 0, 10, 10})
		}
		want := extents(&m)
		var got []Extent
		m.Clear(func(e Extent) { got = append(got, e) })
		if !slices.Equal(got, want) {
			t.Errorf("cleared %+v, want %+v", got, want)
		}
		check(t, &m)
	}
}

// Many extents in random order, out again in another one.
func TestManyLeaves(t *testing.T) {
	const n = 20000
	var m Map
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for _, i := range order {
		m.Insert(Extent{int64(i) * 8, uint64(i) * 16, 8, 8})
	}
	if err := m.Check(); err != nil || m.Len() != n {
		t.Fatal(m.Len(), err)
	}
	for i := range int64(n) {
		if e, ok := m.Find(i*8 + 7); !ok || e != (Extent{i * 8, uint64(i) * 16, 8, 8}) {
			t.Fatalf("Find(%d) = %+v, %v", i*8+7, e, ok)
		}
	}
	// All but a few from the middle of each leaf: what stays needs few leaves.
	for i := range int64(n) {
		if i%200 != 0 {
			m.Cut(i*8, 8, func(Extent) {})
		}
	}
	if err := m.Check(); err != nil || m.Len() != n/200 {
		t.Fatal(m.Len(), err)
	}
	capacity := 0
	for _, leaf := range m.tree.leaves {
		capacity += cap(leaf)
	}
	if capacity > 8*n/200 {
		t.Errorf("room for %d extents, with %d in use", capacity, n/200)
	}
	m.Cut(0, math.MaxInt64, func(Extent) {})
	check(t, &m)
}

func TestNoAllocations(t *testing.T) {
	var m Map
	for i := range 1000 {
		m.Insert(Extent{int64(i) * 20, 0, 10, 10})
	}
	sum := int64(0)
	if n := testing.AllocsPerRun(100, func() {
		for e := range m.From(5000) {
			sum += e.Len
		}
		e, _ := m.Find(sum % 20000)
		sum += e.Len
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMap compares a map with the page of each unit of a small file.
func FuzzMap(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		seed := make([]byte, 2000)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	// A file that is filled with single pages, in order and backwards.
	for _, step := range []int{1, -1} {
		var seed []byte
		for i := range 2048 {
			at := (i*step + 2048) % 2048 * 2
			seed = append(seed, 0, byte(at>>8), byte(at), 0)
		}
		f.Add(seed)
	}
	type unit struct {
		page int    // offset of its page
		size uint32 // 0: a hole
		addr uint64 // of its page
	}
	const size = 4096
	f.Fuzz(func(t *testing.T, ops []byte) {
		var m Map
		model := make([]unit, size)
		addr := uint64(1)
		for ; len(ops) >= 4; ops = ops[4:] {
			off := (int(ops[1])<<8 + int(ops[2])) % size
			switch ops[0] % 4 {
			case 0, 1, 2:
				page := 1 << (ops[0] >> 2 % 4)
				n := 1 + int(ops[3]%8)
				end := off + n*page
				if end > size {
					continue
				}
				if slices.ContainsFunc(model[off:end], func(u unit) bool { return u.size != 0 }) {
					continue
				}
				// Often directly behind the last one in memory, or where it
				// continues its predecessor.
				if off > 0 && model[off-1].size != 0 && ops[3]&8 != 0 {
					p := model[off-1]
					addr = p.addr + uint64(p.size)
				} else if ops[3]&16 != 0 {
					addr += 1000
				}
				m.Insert(Extent{int64(off), addr, int64(n * page), uint32(page)})
				for i := range n {
					for k := range page {
						at := off + i*page
						model[at+k] = unit{page: at, size: uint32(page), addr: addr + uint64(i*page)}
					}
				}
				addr += uint64(n * page)
			case 3:
				n := int(ops[3])
				if ops[0]&4 != 0 {
					n *= 16
				}
				last := int64(-1)
				m.Cut(int64(off), int64(n), func(e Extent) {
					if e.Off < last || e.Off < int64(off) || e.End() > int64(off+n) {
						t.Fatalf("Cut(%d, %d) removed %+v after %d", off, n, e, last)
					}
					last = e.End()
					for at := int(e.Off); at < int(e.End()); at++ {
						u := model[at]
						want := e.Addr + uint64(at) - uint64(e.Off)
						if u.size != e.Page || u.addr+uint64(at-u.page) != want {
							t.Fatalf("Cut(%d, %d) removed %+v; at %d was %+v", off, n, e, at, u)
						}
						model[at] = unit{}
					}
				})
				for at := off; at < min(off+n, size); at++ {
					if u := model[at]; u.size != 0 && u.page >= off && u.page+int(u.size) <= off+n {
						t.Fatalf("Cut(%d, %d) left page %+v", off, n, u)
					}
				}
			}
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		bytes := int64(0)
		for at, u := range model {
			if u.size != 0 {
				bytes++
			}
			next := at
			for next < size && model[next].size == 0 {
				next++
			}
			e, ok := m.Find(int64(at))
			if ok != (next < size) {
				t.Fatalf("Find(%d) = %+v, %v, want something at %d", at, e, ok, next)
			}
			if !ok {
				continue
			}
			u = model[next]
			if e.Off > int64(next) || next > at && e.Off != int64(next) || e.End() <= int64(next) || e.Page != u.size ||
				(e.Off-int64(u.page))%int64(u.size) != 0 || e.Addr+uint64(int64(u.page)-e.Off) != u.addr {
				t.Fatalf("Find(%d) = %+v, want %+v", at, e, u)
			}
		}
		if m.Bytes() != bytes {
			t.Fatalf("Bytes = %d, want %d", m.Bytes(), bytes)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for _, bm := range []struct {
		name string
		n    int
	}{{"1", 1}, {"16", 16}, {"1000", 1000}, {"100000", 100_000}, {"2600000", 2_600_000}} {
		b.Run(bm.name, func(b *testing.B) {
			var m Map
			for i := range bm.n {
				m.Insert(Extent{int64(i) * 8192, 0, 4096, 4096})
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			offs := make([]int64, 4096)
			for i := range offs {
				offs[i] = rnd.Int64N(int64(bm.n) * 8192)
			}
			i := 0
			for b.Loop() {
				m.Find(offs[i&4095])
				i++
			}
		})
	}
}

// BenchmarkInsertRandom fills a sparse file of 10 GiB by 4 KiB.
func BenchmarkInsertRandom(b *testing.B) {
	const n = 2_600_000
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for b.Loop() {
		var m Map
		for _, i := range order {
			m.Insert(Extent{int64(i) * 4096, uint64(i) * 8192, 4096, 4096})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/insert")
}

func BenchmarkInsertSequential(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		var m Map
		for i := range n {
			m.Insert(Extent{int64(i) * 4096, uint64(i) * 8192, 4096, 4096})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/insert")
}
