package memstore

import (
	"fmt"
	"testing"
	"unsafe"
)

// Every file has one. The allocator's next size is 192.
func TestInodeSize(t *testing.T) {
	if size := unsafe.Sizeof(Inode{}); size > 176 {
		t.Errorf("an inode has %d bytes, more than 176: what few need belongs to extra", size)
	}
}

func BenchmarkStore(b *testing.B) {
	newFile := func(b *testing.B) (*Store, *Inode) {
		s, err := New(Config{Name: "bench", Size: 4 << 30})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s, mustCreate(b, s.Root(), "f", TypeFile)
	}
	c := Root()
	b.Run("getattr", func(b *testing.B) {
		_, f := newFile(b)
		b.ReportAllocs()
		for b.Loop() {
			f.GetAttr(c)
		}
	})
	b.Run("handle+lookup", func(b *testing.B) {
		s, _ := newFile(b)
		for n := range 1000 {
			mustCreate(b, s.Root(), fmt.Sprint("name", n), TypeFile)
		}
		h := s.Root().Handle()
		b.ReportAllocs()
		for b.Loop() {
			d, _ := s.ByHandle(h)
			d.Lookup(c, "name500")
		}
	})
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		p := make([]byte, size)
		b.Run(fmt.Sprint("read/", size), func(b *testing.B) {
			_, f := newFile(b)
			for off := int64(0); off < 64<<20; off += 1 << 20 {
				f.WriteAt(c, nil, make([]byte, 1<<20), off)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				f.ReadAt(c, nil, p, n*int64(size)%(64<<20))
			}
		})
		b.Run(fmt.Sprint("view/", size), func(b *testing.B) {
			_, f := newFile(b)
			for off := int64(0); off < 64<<20; off += 1 << 20 {
				f.WriteAt(c, nil, make([]byte, 1<<20), off)
			}
			b.ReportAllocs()
			var v View
			for n := int64(0); b.Loop(); n++ {
				f.ReadView(c, nil, n*int64(size)%(64<<20), size, &v)
				v.Release()
			}
		})
		b.Run(fmt.Sprint("overwrite/", size), func(b *testing.B) {
			_, f := newFile(b)
			for off := int64(0); off < 64<<20; off += 1 << 20 {
				f.WriteAt(c, nil, make([]byte, 1<<20), off)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				f.WriteAt(c, nil, p, n*int64(size)%(64<<20))
			}
		})
		b.Run(fmt.Sprint("append/", size), func(b *testing.B) {
			_, f := newFile(b)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				if n*int64(size) >= 1<<30 {
					f.SetAttr(c, nil, &SetAttr{Mask: SetSize})
					n = 0
				}
				f.WriteAt(c, nil, p, n*int64(size))
			}
		})
	}
	b.Run("fresh/1048576", func(b *testing.B) {
		_, f := newFile(b)
		b.SetBytes(1 << 20)
		b.ReportAllocs()
		p := make([]byte, slotSize)
		var fresh Fresh
		for n := int64(0); b.Loop(); n++ {
			if err := f.NewFresh(&fresh, n<<20%(64<<20), 1<<20); err != nil {
				b.Fatal(err)
			}
			for _, s := range fresh.Slices {
				for len(s) > 0 {
					s = s[copy(s, p):]
				}
			}
			f.WriteFresh(c, nil, &fresh)
		}
	})
	args := &Create{Type: TypeFile, Set: SetAttr{Mask: SetMode, Mode: 0o644}}
	var names [20_000]string
	for n := range names {
		names[n] = fmt.Sprint("file-", 10_000_000+n)
	}
	for _, what := range []string{"create", "remove"} {
		b.Run(fmt.Sprint(what, "/", len(names)), func(b *testing.B) {
			s, _ := newFile(b)
			d := mustCreate(b, s.Root(), "d", TypeDir)
			fill := func() {
				for _, name := range names {
					d.Create(c, name, args)
				}
			}
			empty := func() {
				for _, name := range names {
					d.Remove(c, name, RemoveFile)
				}
			}
			fill()
			empty()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n %= len(names); n == 0 {
					b.StopTimer()
					empty()
					if what == "remove" {
						fill()
					}
					b.StartTimer()
				}
				if what == "remove" {
					d.Remove(c, names[n], RemoveFile)
				} else {
					d.Create(c, names[n], args)
				}
			}
		})
	}
	for _, names := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint("create+remove/", names), func(b *testing.B) {
			s, _ := newFile(b)
			for n := range names {
				mustCreate(b, s.Root(), fmt.Sprint("name", n), TypeFile)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				s.Root().Create(c, "another", args)
				s.Root().Remove(c, "another", RemoveFile)
			}
		})
	}
}
