package memstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// newStore makes a store that is checked and closed at the end of the test.
func newStore(t testing.TB, size int64) *Store {
	t.Helper()
	s, err := New(Config{Name: t.Name(), Size: size, RootMode: 0o777})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustCreate(t testing.TB, d *Inode, name string, typ Type) *Inode {
	t.Helper()
	r, err := d.Create(Root(), name, &Create{Type: typ, Set: SetAttr{Mask: SetMode, Mode: 0o755}, Target: "target"})
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return r.Inode
}

// content is a file's bytes as ReadAt and as ReadView give them.
func content(t testing.TB, i *Inode) []byte {
	t.Helper()
	a, err := i.GetAttr(Root())
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, a.Size+10)
	n, eof, _, err := i.ReadAt(Root(), nil, p, 0)
	if err != nil || !eof || int64(n) != a.Size {
		t.Fatalf("read of %d bytes: %d, eof %v, %v", a.Size, n, eof, err)
	}
	var v View
	m, eof, _, err := i.ReadView(Root(), nil, 0, len(p), &v)
	if err != nil || !eof || m != n {
		t.Fatalf("view of %d bytes: %d, eof %v, %v", a.Size, m, eof, err)
	}
	if got := bytes.Join(v.Slices, nil); !bytes.Equal(got, p[:n]) {
		t.Fatalf("view and read differ")
	}
	v.Release()
	return p[:n]
}

// pattern is bytes that are not zero and repeat at no power of two.
var pattern = func() []byte {
	p := make([]byte, 1<<20)
	for j := range p {
		p[j] = byte(1 + j*7%251)
	}
	return p
}()

// dataOps runs operations on three files against byte slices. Each operation
// takes its numbers from next. reform, which may be nil, is called before each
// for the file that it changes, and may do something to it too.
func dataOps(t testing.TB, size int64, steps int, next func(n int64) int64, reform func(i *Inode, model []byte) []byte) {
	s := newStore(t, size)
	c := Root()
	names := []string{"a", "b", "c"}
	files := make([]*Inode, len(names))
	models := make([][]byte, len(names))
	for k, name := range names {
		files[k] = mustCreate(t, s.Root(), name, TypeFile)
	}
	// Offsets near what matters: pages, slots, the end of the file.
	offset := func(k int) int64 {
		var base int64
		switch next(4) {
		case 0:
			base = int64(len(models[k]))
		case 1:
			base = next(5) * slotSize
		case 2:
			base = next(80) * pageSize
		}
		return max(0, base+next(5)-2)
	}
	length := func() int64 {
		switch next(4) {
		case 0:
			return next(100)
		case 1:
			return next(3) * pageSize
		case 2:
			return next(3)*slotSize + next(3)
		}
		return next(20000)
	}
	serial := 0
	payload := func(n int64) []byte {
		serial += 12345
		return pattern[serial%4096:][:n]
	}
	put := func(k int, off int64, p []byte) {
		if len(p) == 0 {
			return
		}
		if grow := off + int64(len(p)) - int64(len(models[k])); grow > 0 {
			models[k] = append(models[k], make([]byte, grow)...)
		}
		copy(models[k][off:], p)
	}
	for step := range steps {
		k := int(next(int64(len(files))))
		f, what := files[k], ""
		if reform != nil {
			models[k] = reform(f, models[k])
		}
		switch next(9) {
		case 0, 1:
			off, p := offset(k), payload(length())
			n, _, err := f.WriteAt(c, nil, p, off)
			what = fmt.Sprintf("write %s %d+%d: %d %v", names[k], off, len(p), n, err)
			if err != nil && !errors.Is(err, ErrNoSpace) || err != nil && n != 0 {
				t.Fatal(what)
			}
			put(k, off, p[:n])
		case 2:
			off, p := next(5)*slotSize, payload((1+next(3))*slotSize)
			var fresh Fresh
			if err := f.NewFresh(&fresh, off, len(p)); err != nil {
				t.Fatal(err)
			}
			rest := p
			for _, b := range fresh.Slices {
				rest = rest[copy(b, rest):]
			}
			if next(4) == 0 {
				fresh.Release()
				continue
			}
			n, _, err := f.WriteFresh(c, nil, &fresh)
			what = fmt.Sprintf("fresh %s %d+%d: %d %v", names[k], off, len(p), n, err)
			if err != nil && !errors.Is(err, ErrNoSpace) {
				t.Fatal(what)
			}
			put(k, off, p[:n])
		case 3:
			size := offset(k)
			_, err := f.SetAttr(c, nil, &SetAttr{Mask: SetSize, Size: size})
			what = fmt.Sprintf("truncate %s %d: %v", names[k], size, err)
			if err == nil {
				if size <= int64(len(models[k])) {
					models[k] = models[k][:size:size]
				} else {
					models[k] = append(models[k], make([]byte, size-int64(len(models[k])))...)
				}
			} else if !errors.Is(err, ErrNoSpace) {
				t.Fatal(what)
			}
		case 4:
			off, n := offset(k), length()
			_, err := f.Punch(c, nil, off, n)
			what = fmt.Sprintf("punch %s %d+%d: %v", names[k], off, n, err)
			if err == nil {
				m := models[k]
				clear(m[min(off, int64(len(m))):min(off+n, int64(len(m)))])
			} else if got := content(t, f); errors.Is(err, ErrNoSpace) && len(got) == len(models[k]) {
				// Half done: the front is zero, the rest as it was.
				for at := off; at < off+n && got[at] == 0; at++ {
					models[k][at] = 0
				}
			} else if !errors.Is(err, ErrNoSpace) {
				t.Fatal(what)
			}
		case 5:
			off, n, keep := offset(k), 1+length(), next(2) == 0
			_, err := f.Allocate(c, nil, off, n, keep)
			what = fmt.Sprintf("allocate %s %d+%d %v: %v", names[k], off, n, keep, err)
			switch {
			case err == nil && !keep && off+n > int64(len(models[k])):
				models[k] = append(models[k], make([]byte, off+n-int64(len(models[k])))...)
			case err != nil && !errors.Is(err, ErrNoSpace):
				t.Fatal(what)
			}
			if err == nil {
				// What was allocated can be written in a full store.
				used := s.used.Load()
				s.used.Store(s.size)
				p := payload(n)
				if m, _, err := f.WriteAt(c, nil, p, off); m != len(p) {
					t.Fatalf("%s: then a write of %d: %d %v", what, n, m, err)
				}
				s.used.Add(used - s.size)
				put(k, off, p)
			}
		case 6, 7:
			from := int(next(int64(len(files))))
			srcOff, off, n := offset(from), offset(k), length()
			if next(2) == 0 {
				srcOff, off = roundDown(srcOff, pageSize), roundDown(off, pageSize)
			}
			done, _, err := f.Clone(c, nil, off, files[from], nil, srcOff, n)
			what = fmt.Sprintf("clone %s %d to %s %d+%d: %d %v", names[from], srcOff, names[k], off, n, done, err)
			if err != nil && !errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrInvalid) {
				t.Fatal(what)
			}
			if done > 0 {
				put(k, off, bytes.Clone(models[from][srcOff:srcOff+done]))
			}
		case 8:
			a, _ := f.GetAttr(c)
			off := offset(k)
			what = fmt.Sprintf("seek %s %d", names[k], off)
			if d, err := f.SeekData(c, nil, off); err == nil {
				if d < off || d >= a.Size || bytes.Count(models[k][off:d], []byte{0}) != int(d-off) {
					t.Fatalf("%s: data at %d", what, d)
				}
			} else if off < a.Size && bytes.Count(models[k][off:], []byte{0}) != len(models[k])-int(off) {
				t.Fatalf("%s: no data: %v", what, err)
			}
			if h, err := f.SeekHole(c, nil, off); (err == nil) != (off < a.Size) || err == nil && (h < off || h > a.Size) {
				t.Fatalf("%s: hole at %d, %v", what, h, err)
			}
		}
		for other, f := range files {
			if other != k && step%16 != 0 {
				continue
			}
			if got, want := content(t, f), models[other]; !bytes.Equal(got, want) {
				at := 0
				for at < len(got) && at < len(want) && got[at] == want[at] {
					at++
				}
				t.Fatalf("step %d, %s: %s has %d bytes, want %d; first difference at %d", step, what, names[other], len(got), len(want), at)
			}
		}
		if step%16 == 0 {
			if err := s.Check(); err != nil {
				t.Fatalf("step %d, %s: %v", step, what, err)
			}
		}
	}
	for _, name := range names {
		if _, err := s.Root().Remove(c, name, RemoveFile); err != nil {
			t.Fatal(err)
		}
	}
	s.reaper.drain()
	if got := s.Statfs().UsedBytes; got != inodeCost {
		t.Errorf("%d bytes used by an empty store, want %d", got, inodeCost)
	}
}

func TestDataAgainstModel(t *testing.T) {
	for seed := range uint64(3) {
		for _, size := range []int64{64 << 20, 700 << 10} {
			t.Run(fmt.Sprintf("seed=%d,size=%d", seed, size), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(size)))
				dataOps(t, size, 120, r.Int64N, nil)
			})
		}
	}
}

func FuzzData(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), false)
	f.Add(bytes.Repeat([]byte{6, 1, 2, 200, 3, 0}, 50), true)
	f.Fuzz(func(t *testing.T, in []byte, small bool) {
		if len(in) > 2000 {
			return
		}
		pos := 0
		next := func(n int64) int64 {
			var v int64
			for range 2 {
				if pos < len(in) {
					v = v<<8 | int64(in[pos])
					pos++
				}
			}
			return v % n
		}
		size := int64(64 << 20)
		if small {
			size = 700 << 10
		}
		dataOps(t, size, len(in)/8, next, nil)
	})
}

func TestMemoryOfSmallFiles(t *testing.T) {
	s := newStore(t, 1<<30)
	for _, tt := range []struct{ size, most int64 }{
		{0, 0}, {1, 64}, {300, 320}, {4096, 4096}, {5000, 5120}, {20000, 20480}, {70000, 65536 + 5120},
	} {
		f := mustCreate(t, s.Root(), fmt.Sprint(tt.size), TypeFile)
		if n, _, err := f.WriteAt(Root(), nil, make([]byte, tt.size), 0); int64(n) != tt.size || err != nil {
			t.Fatal(n, err)
		}
		if a, _ := f.GetAttr(Root()); a.Used > tt.most {
			t.Errorf("file of %d bytes uses %d, want at most %d", tt.size, a.Used, tt.most)
		}
	}
}

func TestFullStore(t *testing.T) {
	s := newStore(t, 1<<20)
	c := Root()
	f := mustCreate(t, s.Root(), "f", TypeFile)
	p := make([]byte, 256<<10)
	var off int64
	short := false
	for {
		n, _, err := f.WriteAt(c, nil, p, off)
		off += int64(n)
		if err != nil {
			if !errors.Is(err, ErrNoSpace) || n != 0 {
				t.Fatal(n, err)
			}
			break
		}
		short = n < len(p)
	}
	if !short {
		t.Error("no short write came before ErrNoSpace")
	}
	if off < 900<<10 {
		t.Errorf("only %d bytes fit into 1 MiB", off)
	}
	if n, _, err := f.WriteAt(c, nil, p, 0); n != len(p) || err != nil {
		t.Errorf("overwriting in a full store: %d, %v", n, err)
	}
	var fresh Fresh
	if err := f.NewFresh(&fresh, 0, slotSize); err != nil {
		t.Fatal(err)
	}
	if n, _, err := f.WriteFresh(c, nil, &fresh); n != slotSize || err != nil {
		t.Errorf("overwriting whole pages in a full store: %d, %v", n, err)
	}
	for {
		if _, err := s.Root().Create(c, fmt.Sprint("g", off), &Create{Type: TypeFile}); err != nil {
			if !errors.Is(err, ErrNoSpace) {
				t.Fatal(err)
			}
			break
		}
		off++
	}
	if _, _, err := s.Rename(c, s.Root(), "f", s.Root(), "a much longer name than before", 0); err != nil {
		t.Errorf("rename in a full store: %v", err)
	}
	if _, err := f.SetAttr(c, nil, &SetAttr{Mask: SetSize, Size: 10}); err != nil {
		t.Errorf("truncate in a full store: %v", err)
	}
	if n, _, err := f.WriteAt(c, nil, p, 0); n != len(p) || err != nil {
		t.Errorf("after a truncate: %d, %v", n, err)
	}
}
