package fusefs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkCalls is what a process waits for, on the mount and on tmpfs. Run it
// with -v to see the child's results.
func BenchmarkCalls(b *testing.B) {
	dir := inChild(b)
	if dir == "" {
		b.Skip("it runs in the child")
	}
	shm, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(shm)
	for _, at := range []struct{ name, dir string }{{"fuse", dir}, {"tmpfs", shm}} {
		b.Run(at.name, func(b *testing.B) { calls(b, at.dir) })
	}
}

func calls(b *testing.B, dir string) {
	name := func(n int) string { return filepath.Join(dir, fmt.Sprint(n)) }
	ok := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	data := make([]byte, 1<<20)
	open := func(flags int) int {
		fd, err := unix.Open(name(-1), flags|unix.O_CLOEXEC, 0o644)
		ok(err)
		return fd
	}
	const files = 2000
	each := func(what string, call func(n int)) {
		b.Run(what, func(b *testing.B) {
			for k := 0; b.Loop(); k++ {
				call(k % files)
			}
		})
	}
	write := func(n int) {
		fd, err := unix.Open(name(n), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		ok(err)
		_, err = unix.Write(fd, data[:1024])
		ok(err)
		ok(unix.Close(fd))
	}
	b.Run("create+write+close", func(b *testing.B) {
		n := 0
		for ; b.Loop(); n++ {
			write(n)
		}
		for n--; n >= 0; n-- {
			ok(unix.Unlink(name(n)))
		}
	})
	for n := range files {
		write(n)
	}
	each("open+close", func(n int) {
		fd, err := unix.Open(name(n), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		ok(err)
		ok(unix.Close(fd))
	})
	each("stat", func(n int) {
		var st unix.Stat_t
		ok(unix.Stat(name(n), &st))
	})
	each("list", func(int) {
		_, err := os.ReadDir(dir)
		ok(err)
	})
	b.Run("unlink", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if n >= files {
				b.StopTimer()
				write(n)
				b.StartTimer()
			}
			ok(unix.Unlink(name(n)))
		}
	})
	const size = 64 << 20
	fd := open(unix.O_RDWR | unix.O_CREAT)
	defer unix.Close(fd)
	for _, n := range []int{4 << 10, 1 << 20} {
		for _, rw := range []struct {
			name string
			call func(int, []byte, int64) (int, error)
		}{{"write", unix.Pwrite}, {"read", unix.Pread}} {
			b.Run(fmt.Sprintf("%s/%d", rw.name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for off := int64(0); b.Loop(); off = (off + int64(n)) % size {
					_, err := rw.call(fd, data[:n], off)
					ok(err)
				}
			})
		}
		ok(unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
	}
}
