package arena

import (
	"bytes"
	"os"
	"testing"
)

// BenchmarkFresh writes memory that was never touched by 1 MiB from a warm
// buffer, with Write and through Bytes, against pwrite of the same into a file
// in /dev/shm. How memory is given back does not count.
func BenchmarkFresh(b *testing.B) {
	const total, step = 256 << 20, 1 << 20
	buf := bytes.Repeat([]byte{1}, step)
	inArena := func(write func(a *Arena, addr Addr, p []byte)) func(b *testing.B) {
		return func(b *testing.B) {
			b.SetBytes(total)
			for range b.N {
				b.StopTimer()
				a := New(Config{})
				b.StartTimer()
				for done := 0; done < total; {
					addr, n, err := a.Alloc(MaxPage, step/MaxPage, 0, false)
					if err != nil {
						b.Fatal(err)
					}
					write(a, addr, buf[:n*MaxPage])
					done += n * MaxPage
				}
				b.StopTimer()
				a.Close()
				b.StartTimer()
			}
		}
	}
	b.Run("write", inArena((*Arena).Write))
	b.Run("bytes", inArena(func(a *Arena, addr Addr, p []byte) { copy(a.Bytes(addr, len(p)), p) }))
	b.Run("tmpfs", func(b *testing.B) {
		b.SetBytes(total)
		for range b.N {
			b.StopTimer()
			f, err := os.CreateTemp("/dev/shm", "arena")
			if err != nil {
				b.Skip(err)
			}
			os.Remove(f.Name())
			b.StartTimer()
			for done := int64(0); done < total; done += step {
				if _, err := f.WriteAt(buf, done); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			f.Close()
			b.StartTimer()
		}
	})
}

// BenchmarkReplace allocates and frees a page, with 64 MiB in use.
func BenchmarkReplace(b *testing.B) {
	for _, bm := range []struct {
		name        string
		size, count int
	}{{"300B", 300, 1}, {"4KiB", 4096, 1}, {"64KiB", MaxPage, 1}, {"1MiB", MaxPage, 16}} {
		b.Run(bm.name, func(b *testing.B) {
			a := New(Config{})
			defer a.Close()
			size := ClassSize(bm.size)
			file := make([]Addr, 64<<20/size)
			at := 0
			replace := func() {
				for need := bm.count; need > 0; {
					addr, n, err := a.Alloc(size, need, 0, false)
					if err != nil {
						b.Fatal(err)
					}
					for i := range n {
						if file[at] != 0 {
							a.Free(file[at])
						}
						file[at] = addr + Addr(i*size)
						at = (at + 1) % len(file)
					}
					need -= n
				}
			}
			for range len(file) {
				replace()
			}
			b.SetBytes(int64(size * bm.count))
			b.ReportAllocs()
			for b.Loop() {
				replace()
			}
		})
	}
}

func BenchmarkPin(b *testing.B) {
	a := New(Config{})
	defer a.Close()
	addr, _, err := a.Alloc(MaxPage, 1, 0, false)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		a.Pin(addr)
		a.Unpin(addr)
	}
}

func BenchmarkBytes(b *testing.B) {
	a := New(Config{})
	defer a.Close()
	addr, _, err := a.Alloc(MaxPage, 1, 0, false)
	if err != nil {
		b.Fatal(err)
	}
	sum := 0
	for b.Loop() {
		sum += len(a.Bytes(addr, 4096))
	}
	_ = sum
}
