//go:build linux

package posixtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// FsxOptions bound a run of Fsx. It ends with the first bound that is reached.
type FsxOptions struct {
	Seed  uint64        // of the random choices
	Ops   int           // number of operations; 0: no bound
	Time  time.Duration // 0: no bound
	Size  int           // largest file size in bytes; 0: 256 KiB
	Lacks Feature
}

// fsx is one file and the model of what it must hold.
type fsx struct {
	*testing.T
	FsxOptions
	rnd  *rand.Rand
	path string
	fd   int
	want []byte
	buf  []byte
	log  []string // the last operations, oldest first
	ops  int
}

// An fsxOp does one operation on the file and on the model, and says what it
// did.
type fsxOp struct {
	weight int
	needs  Feature
	do     func(*fsx) string
}

var fsxOps = []fsxOp{
	{20, 0, (*fsx).pread},
	{20, 0, (*fsx).pwrite},
	{4, 0, (*fsx).appendWrite},
	{15, 0, (*fsx).mapRead},
	{15, 0, (*fsx).mapWrite},
	{6, 0, (*fsx).truncate},
	{6, Fallocate, (*fsx).punch},
	{4, Fallocate, (*fsx).allocate},
	{3, 0, (*fsx).copyRange},
	{3, HoleSearch, (*fsx).holes},
	{3, 0, (*fsx).reopen},
	{3, 0, (*fsx).drop},
	{1, 0, (*fsx).checkAll},
}

// Fsx does random operations on a new file in dir and checks what every one of
// them reads against a model. On a difference it prints the seed, the first
// byte that is wrong and the last operations.
func Fsx(t *testing.T, dir string, o FsxOptions) {
	if o.Size == 0 {
		o.Size = 256 << 10
	}
	x := &fsx{T: t, FsxOptions: o, rnd: rand.New(rand.NewPCG(o.Seed, 0)), fd: -1,
		path: filepath.Join(dir, fmt.Sprintf("fsx-%d-%d", os.Getpid(), o.Seed)), buf: make([]byte, o.Size)}
	defer func() {
		if x.fd >= 0 {
			unix.Close(x.fd)
		}
		os.Remove(x.path)
		if x.Failed() {
			t.Logf("seed %d, operation %d; the last ones:\n%s", o.Seed, x.ops, strings.Join(x.log, "\n"))
		}
	}()
	x.open(unix.O_CREAT | unix.O_EXCL)
	var ops []fsxOp
	for _, op := range fsxOps {
		if op.needs&o.Lacks == 0 {
			for range op.weight {
				ops = append(ops, op)
			}
		}
	}
	start := time.Now()
	for ; (o.Ops == 0 || x.ops < o.Ops) && (o.Time == 0 || time.Since(start) < o.Time); x.ops++ {
		what := ops[x.rnd.IntN(len(ops))].do(x)
		if x.log = append(x.log, fmt.Sprintf("%8d %s, size %d", x.ops, what, len(x.want))); len(x.log) > 40 {
			x.log = x.log[1:]
		}
		// Not after each: it makes a network client write everything out.
		if x.rnd.IntN(10) == 0 {
			x.checkSize(what)
		}
	}
	x.checkSize("the end")
	x.checkAll()
	t.Logf("%d operations, seed %d", x.ops, o.Seed)
}

func (x *fsx) checkSize(after string) {
	x.Helper()
	var st unix.Stat_t
	x.must(unix.Fstat(x.fd, &st))
	if st.Size != int64(len(x.want)) {
		x.Fatalf("size after %s is %d, want %d", after, st.Size, len(x.want))
	}
}

func (x *fsx) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *fsx) open(flags int) {
	fd, err := unix.Open(x.path, flags|unix.O_RDWR|unix.O_CLOEXEC, 0644)
	x.must(err)
	x.fd = fd
}

// span chooses a range with room for growth up to limit: often small, often at
// the borders of pages.
func (x *fsx) span(limit int) (off, n int) {
	if limit == 0 {
		return 0, 0
	}
	off = x.rnd.IntN(limit)
	if x.rnd.IntN(3) == 0 {
		off = off / page * page
	}
	n = 1 + x.rnd.IntN([]int{16, page, 64 << 10, limit}[x.rnd.IntN(4)])
	if x.rnd.IntN(3) == 0 {
		n = (n + page - 1) / page * page
	}
	return off, min(n, limit-off)
}

// same compares what was read at an offset with the model.
func (x *fsx) same(how string, got []byte, off int) {
	x.Helper()
	want := x.want[off:][:len(got)]
	if bytes.Equal(got, want) {
		return
	}
	i, n := 0, 0
	for j := len(got) - 1; j >= 0; j-- {
		if got[j] != want[j] {
			i, n = j, n+1
		}
	}
	x.Fatalf("%s at %d, %d bytes: %d bytes differ, the first at %d: got %#x, want %#x", how, off, len(got), n, off+i, got[i], want[i])
}

// fill makes n bytes that tell where they were written and when.
func (x *fsx) fill(off, n int) []byte {
	b := x.buf[:n]
	seed := byte(x.rnd.Uint32())
	for i := range b {
		b[i] = seed + byte((off+i)/251)
	}
	return b
}

// put writes to the model, which grows with zeros.
func (x *fsx) put(b []byte, off int) {
	x.resize(max(len(x.want), off+len(b)))
	copy(x.want[off:], b)
}

func (x *fsx) resize(n int) {
	if n > len(x.want) {
		x.want = append(x.want, make([]byte, n-len(x.want))...)
	}
	x.want = x.want[:n]
}

func (x *fsx) pread() string {
	off, n := x.span(x.Size)
	b := x.buf[:n]
	got, err := unix.Pread(x.fd, b, int64(off))
	x.must(err)
	if want := min(n, max(0, len(x.want)-off)); got != want {
		x.Fatalf("read at %d, %d bytes: got %d, want %d", off, n, got, want)
	}
	if got > 0 {
		x.same("read", b[:got], off)
	}
	return fmt.Sprintf("read %d+%d", off, n)
}

func (x *fsx) pwrite() string {
	off, n := x.span(x.Size)
	b := x.fill(off, n)
	got, err := unix.Pwrite(x.fd, b, int64(off))
	x.must(err)
	if got != n {
		x.Fatalf("write at %d, %d bytes: wrote %d", off, n, got)
	}
	x.put(b, off)
	return fmt.Sprintf("write %d+%d", off, n)
}

func (x *fsx) appendWrite() string {
	off := len(x.want)
	n := min(1+x.rnd.IntN(page), x.Size-off)
	if n <= 0 {
		return "append nothing"
	}
	fd, err := unix.Open(x.path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	x.must(err)
	b := x.fill(off, n)
	_, err = unix.Write(fd, b)
	x.must(err)
	x.must(unix.Close(fd))
	x.put(b, off)
	return fmt.Sprintf("append %d+%d", off, n)
}

// mapped maps the pages that hold a range of the file.
func (x *fsx) mapped(off, n, prot int, do func([]byte)) {
	start := off / page * page
	m, err := unix.Mmap(x.fd, int64(start), off-start+n, prot, unix.MAP_SHARED)
	x.must(err)
	do(m[off-start:])
	if x.rnd.IntN(4) == 0 {
		x.must(unix.Msync(m, unix.MS_SYNC))
	}
	x.must(unix.Munmap(m))
}

func (x *fsx) mapRead() string {
	off, n := x.span(len(x.want))
	if n > 0 {
		x.mapped(off, n, unix.PROT_READ, func(m []byte) { x.same("mapped read", m, off) })
	}
	return fmt.Sprintf("mapread %d+%d", off, n)
}

// mapWrite writes through a mapping; half of the time the file grows first.
func (x *fsx) mapWrite() string {
	limit := len(x.want)
	if x.rnd.IntN(2) == 0 {
		limit = x.Size
	}
	off, n := x.span(limit)
	if n == 0 {
		return "mapwrite nothing"
	}
	if off+n > len(x.want) {
		x.must(unix.Ftruncate(x.fd, int64(off+n)))
	}
	b := x.fill(off, n)
	x.mapped(off, n, unix.PROT_READ|unix.PROT_WRITE, func(m []byte) { copy(m, b) })
	x.put(b, off)
	return fmt.Sprintf("mapwrite %d+%d", off, n)
}

func (x *fsx) truncate() string {
	n := x.rnd.IntN(x.Size + 1)
	if x.rnd.IntN(3) == 0 {
		n = n / page * page
	}
	x.must(unix.Ftruncate(x.fd, int64(n)))
	x.resize(n)
	return fmt.Sprintf("truncate %d", n)
}

func (x *fsx) punch() string {
	off, n := x.span(x.Size)
	x.must(unix.Fallocate(x.fd, unix.FALLOC_FL_KEEP_SIZE|unix.FALLOC_FL_PUNCH_HOLE, int64(off), int64(n)))
	if off < len(x.want) {
		clear(x.want[off:min(off+n, len(x.want))])
	}
	return fmt.Sprintf("punch %d+%d", off, n)
}

func (x *fsx) allocate() string {
	off, n := x.span(x.Size)
	mode := uint32(x.rnd.IntN(2)) * unix.FALLOC_FL_KEEP_SIZE
	if x.Lacks&KeepSize != 0 {
		mode = 0
	}
	x.must(unix.Fallocate(x.fd, mode, int64(off), int64(n)))
	if mode == 0 {
		x.resize(max(len(x.want), off+n))
	}
	return fmt.Sprintf("fallocate %d %d+%d", mode, off, n)
}

// copyRange copies within the file, between ranges that do not overlap.
func (x *fsx) copyRange() string {
	if len(x.want) < 2 {
		return "copy nothing"
	}
	half := len(x.want) / 2
	from, n := x.span(half)
	to := half + x.rnd.IntN(x.Size-half)
	n = min(n, x.Size-to)
	if n == 0 {
		return "copy nothing"
	}
	src, dst := int64(from), int64(to)
	for left := n; left > 0; {
		got, err := unix.CopyFileRange(x.fd, &src, x.fd, &dst, left, 0)
		x.must(err)
		if got == 0 {
			x.Fatalf("copy of %d+%d to %d: end of file with %d left", from, n, to, left)
		}
		left -= got
	}
	x.put(append([]byte(nil), x.want[from:from+n]...), to)
	return fmt.Sprintf("copy %d+%d to %d", from, n, to)
}

// holes checks that what hole search calls a hole reads as zeros.
func (x *fsx) holes() string {
	size := int64(len(x.want))
	for at := int64(0); at < size; {
		data, err := unix.Seek(x.fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			data = size
		} else {
			x.must(err)
		}
		for i := at; i < data; i++ {
			if x.want[i] != 0 {
				x.Fatalf("hole from %d to %d over data at %d", at, data, i)
			}
		}
		if data == size {
			break
		}
		at, err = unix.Seek(x.fd, data, unix.SEEK_HOLE)
		x.must(err)
		if at <= data {
			x.Fatalf("SEEK_HOLE from data at %d gives %d", data, at)
		}
	}
	return "holes"
}

func (x *fsx) reopen() string {
	x.must(unix.Close(x.fd))
	x.open(0)
	return "reopen"
}

// drop writes everything out and lets the kernel forget it, so that a network
// client reads it anew.
func (x *fsx) drop() string {
	x.must(unix.Fsync(x.fd))
	x.must(unix.Fadvise(x.fd, 0, 0, unix.FADV_DONTNEED))
	return "drop"
}

func (x *fsx) checkAll() string {
	b, err := os.ReadFile(x.path)
	x.must(err)
	if len(b) != len(x.want) {
		x.Fatalf("whole file: got %d bytes, want %d", len(b), len(x.want))
	}
	x.same("whole file", b, 0)
	return "check"
}
