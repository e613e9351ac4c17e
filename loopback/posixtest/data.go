//go:build linux

package posixtest

import (
	"bytes"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var dataTests = []test{
	{"Sparse", 0, sparse},
	{"Truncate", 0, truncate},
	{"ReadBounds", 0, readBounds},
	{"Vectored", 0, vectored},
	{"Holes", HoleSearch, holes},
	{"Fallocate", Fallocate, fallocate},
	{"Mmap", 0, mmap},
	{"MmapPastEnd", 0, mmapPastEnd},
	{"CopyRange", 0, copyRange},
	{"Sync", 0, syncCalls},
}

func itoa(n int) string { return strconv.Itoa(n) }

const page = 4096

func sparse(e *env) {
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644)
	for _, off := range []int64{0, 100_000, 1 << 31, 1<<32 + 5, 1 << 40} {
		_, err := unix.Pwrite(fd, []byte("data"), off)
		e.ok(err, "write at", off)
	}
	e.ok(unix.Fsync(fd))
	st := e.fstat(fd)
	e.equal(st.Size, int64(1<<40+4), "size")
	if st.Blocks*512 > 1<<20 {
		e.Errorf("a file with 20 bytes of data takes %d", st.Blocks*512)
	}
	unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	zero := make([]byte, 10_000)
	for _, c := range []struct {
		off  int64
		want string
	}{
		{0, "data" + string(zero)},
		{99_998, "\x00\x00data\x00"},
		{50_000, string(zero)},
		{1<<31 - 2, "\x00\x00data\x00"},
		{1<<32 + 3, "\x00\x00data\x00"},
		{1<<40 - 5_000, string(zero[:5_000]) + "data"},
	} {
		b := make([]byte, len(c.want))
		n, err := unix.Pread(fd, b, c.off)
		e.ok(err)
		e.equal(string(b[:n]) == c.want, true, "bytes at", c.off)
	}
	// Hole search may report no holes, but never one over data.
	for _, off := range []int64{0, 100_000, 1 << 31, 1<<32 + 5} {
		at, err := unix.Seek(fd, off, unix.SEEK_DATA)
		e.ok(err)
		e.equal(at, off, "SEEK_DATA at data")
		at, err = unix.Seek(fd, off, unix.SEEK_HOLE)
		e.ok(err)
		e.equal(at >= off+4, true, "SEEK_HOLE lies behind the data at", off)
	}
	_, err := unix.Seek(fd, 1<<40+4, unix.SEEK_DATA)
	e.fails(unix.ENXIO, err, "SEEK_DATA at the end")
}

func truncate(e *env) {
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644)
	// What was cut off does not come back when the file grows again.
	for _, c := range []struct{ full, cut, grown int }{
		{10, 3, 20}, {page, 0, page}, {page, 100, page}, {3 * page, page + 1, 3 * page}, {3 * page, page, 2*page + 5},
		{200_000, 70_000, 150_000}, {1_500_000, 1_048_577, 1_500_000}, {100, 100, 100_000},
	} {
		e.ok(unix.Ftruncate(fd, 0))
		data := bytes.Repeat([]byte{'x'}, c.full)
		_, err := unix.Pwrite(fd, data, 0)
		e.ok(err)
		e.ok(unix.Ftruncate(fd, int64(c.cut)))
		e.equal(e.stat("f").Size, int64(c.cut), "size after shrinking")
		if c.grown%2 == 0 {
			e.ok(unix.Ftruncate(fd, int64(c.grown)))
		} else {
			_, err := unix.Pwrite(fd, []byte{0}, int64(c.grown-1))
			e.ok(err)
		}
		e.equal(e.stat("f").Size, int64(c.grown), "size after growing")
		want := append(data[:c.cut:c.cut], make([]byte, c.grown-c.cut)...)
		e.equal(e.read("f") == string(want), true, "content after", c.full, c.cut, c.grown)
		e.ok(unix.Fsync(fd))
		unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
		e.equal(e.read("f") == string(want), true, "content read anew after", c.full, c.cut, c.grown)
	}
	e.fails(unix.EINVAL, unix.Ftruncate(e.open("f", unix.O_RDONLY, 0), 0), "ftruncate of a descriptor open for reading")
	e.ok(unix.Ftruncate(fd, 1<<40))
	e.equal(e.stat("f").Size, int64(1<<40), "size")
}

func readBounds(e *env) {
	e.write("f", "0123456789")
	fd := e.open("f", unix.O_RDWR, 0)
	for _, c := range []struct {
		off  int64
		n    int
		want string
	}{{0, 10, "0123456789"}, {0, 100, "0123456789"}, {9, 5, "9"}, {10, 5, ""}, {1 << 40, 5, ""}, {3, 0, ""}, {3, 2, "34"}} {
		b := make([]byte, c.n)
		n, err := unix.Pread(fd, b, c.off)
		e.ok(err)
		e.equal(string(b[:n]), c.want, "read at", c.off)
	}
	_, err := unix.Pread(fd, make([]byte, 1), -1)
	e.fails(unix.EINVAL, err, "read at -1")
	n, err := unix.Pwrite(fd, nil, 1<<30)
	e.ok(err)
	e.equal(n, 0, "write of nothing")
	e.equal(e.stat("f").Size, int64(10), "size after a write of nothing far out")
	_, err = unix.Pwrite(fd, []byte("x"), 1<<63-1)
	e.fails(unix.EINVAL, err, "write past the largest offset")
	for _, c := range []struct {
		off    int64
		whence int
		want   int64
	}{{4, unix.SEEK_SET, 4}, {-2, unix.SEEK_END, 8}, {100, unix.SEEK_CUR, 108}} {
		at, err := unix.Seek(fd, c.off, c.whence)
		e.ok(err)
		e.equal(at, c.want, "lseek")
	}
	_, err = unix.Seek(fd, -1, unix.SEEK_SET)
	e.fails(unix.EINVAL, err, "lseek to -1")
}

func vectored(e *env) {
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644)
	var out [][]byte
	var want []byte
	for i := range 50 {
		part := bytes.Repeat([]byte{byte('a' + i%26)}, i*300)
		out, want = append(out, part), append(want, part...)
	}
	n, err := unix.Pwritev(fd, out, 7)
	e.ok(err)
	e.equal(n, len(want), "bytes written")
	in := [][]byte{make([]byte, 1), make([]byte, len(want)-1), make([]byte, 10)}
	n, err = unix.Preadv(fd, in, 7)
	e.ok(err)
	e.equal(n, len(want), "bytes read")
	e.equal(bytes.Equal(append(in[0], in[1]...), want), true, "content")
}

func holes(e *env) {
	const unit = 1 << 20 // larger than any file system's allocation unit
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644)
	for _, i := range []int64{1, 2, 5} {
		_, err := unix.Pwrite(fd, bytes.Repeat([]byte{'x'}, unit), i*unit)
		e.ok(err)
	}
	e.ok(unix.Ftruncate(fd, 8*unit))
	for _, c := range []struct {
		from      int64
		data, end int64 // -1: none
	}{
		{0, 1 * unit, 0}, {1 * unit, 1 * unit, 3 * unit}, {2*unit + 17, 2*unit + 17, 3 * unit},
		{3 * unit, 5 * unit, 3 * unit}, {5 * unit, 5 * unit, 6 * unit}, {6 * unit, -1, 6 * unit}, {7*unit + 1, -1, 7*unit + 1},
	} {
		at, err := unix.Seek(fd, c.from, unix.SEEK_DATA)
		if c.data < 0 {
			e.fails(unix.ENXIO, err, "SEEK_DATA from", c.from)
		} else {
			e.ok(err)
			e.equal(at, c.data, "SEEK_DATA from", c.from)
		}
		at, err = unix.Seek(fd, c.from, unix.SEEK_HOLE)
		e.ok(err)
		e.equal(at, c.end, "SEEK_HOLE from", c.from)
	}
	_, err := unix.Seek(fd, 8*unit, unix.SEEK_HOLE)
	e.fails(unix.ENXIO, err, "SEEK_HOLE at the end")
}

func fallocate(e *env) {
	const keep, punch = unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE
	const unit = 64 << 10
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644)
	e.ok(unix.Fallocate(fd, 0, 0, 4*unit))
	st := e.fstat(fd)
	e.equal(st.Size, int64(4*unit), "size after preallocation")
	e.equal(st.Blocks*512 >= 4*unit, true, "space is taken")
	e.equal(e.read("f") == string(make([]byte, 4*unit)), true, "preallocated space reads as zeros")
	if e.lacks&KeepSize == 0 {
		e.ok(unix.Fallocate(fd, keep, 4*unit, unit))
		e.equal(e.fstat(fd).Size, int64(4*unit), "size with KEEP_SIZE")
	}

	data := bytes.Repeat([]byte{'x'}, 4*unit)
	_, err := unix.Pwrite(fd, data, 0)
	e.ok(err)
	e.ok(unix.Fallocate(fd, 0, unit, unit))
	e.equal(e.read("f") == string(data), true, "preallocation keeps data")
	full := e.fstat(fd).Blocks
	for _, c := range [][2]int64{{unit, unit}, {3*unit + 100, 50}, {3*unit - 10, 20}, {4*unit - 5, 100}} {
		e.ok(unix.Fallocate(fd, keep|punch, c[0], c[1]))
		clear(data[c[0]:min(c[0]+c[1], 4*unit)])
	}
	e.equal(e.read("f") == string(data), true, "content with holes punched")
	e.equal(e.fstat(fd).Size, int64(4*unit), "size with holes punched")
	e.equal(e.fstat(fd).Blocks < full, true, "a punched hole gives space back")

	e.fails(unix.EOPNOTSUPP, unix.Fallocate(fd, punch, 0, 1), "PUNCH_HOLE without KEEP_SIZE")
	e.fails(unix.EINVAL, unix.Fallocate(fd, 0, 0, 0), "length 0")
	e.fails(unix.EINVAL, unix.Fallocate(fd, 0, -1, 1), "offset -1")
	e.fails(unix.EBADF, unix.Fallocate(e.open("f", unix.O_RDONLY, 0), 0, 0, 1), "a descriptor open for reading")
	e.fails(unix.EFBIG, unix.Fallocate(fd, 0, 1<<63-2, 1<<62), "past the largest offset")
}

func mmap(e *env) {
	const size = 5*page + 100
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
	e.write("f", string(data))
	fd := e.open("f", unix.O_RDWR, 0)
	whole, err := unix.Mmap(fd, 0, 6*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	e.ok(err)
	m := whole[:size]
	e.equal(bytes.Equal(m, data), true, "mapped content")
	e.equal(bytes.Count(whole[size:], []byte{0}), 6*page-size, "zeros between the end and the end of its page")

	copy(m[page-3:], "mapped")
	copy(data[page-3:], "mapped")
	e.equal(e.read("f") == string(data), true, "read of what was written through the mapping")
	_, err = unix.Pwrite(fd, []byte("written"), 3*page-2)
	e.ok(err)
	copy(data[3*page-2:], "written")
	e.equal(bytes.Equal(m, data), true, "mapping of what was written by a call")
	e.ok(unix.Msync(whole, unix.MS_SYNC))
	e.ok(unix.Munmap(whole))
	unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	e.equal(e.read("f") == string(data), true, "content read anew")

	// A private mapping keeps its changes; a mapping outlives its descriptor,
	// and its file's name.
	m, err = unix.Mmap(fd, page, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	e.ok(err)
	copy(m, "private")
	e.equal(e.read("f") == string(data), true, "a private mapping changes no file")
	e.ok(unix.Munmap(m))
	fd, err = unix.Open(e.p("f"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	e.ok(err)
	m, err = unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	e.ok(err)
	e.ok(unix.Close(fd))
	copy(m, "closed")
	e.equal(e.read("f")[:6], "closed")
	e.ok(os.Remove(e.p("f")))
	e.equal(string(m[:6]), "closed", "mapping of a removed file")
	copy(m, "gone..")
	e.ok(unix.Munmap(m))

	e.write("r", "x")
	_, err = unix.Mmap(e.open("r", unix.O_RDONLY, 0), 0, page, unix.PROT_WRITE, unix.MAP_SHARED)
	e.fails(unix.EACCES, err, "writable mapping of a descriptor open for reading")
	_, err = unix.Mmap(e.open("r", unix.O_WRONLY, 0), 0, page, unix.PROT_READ, unix.MAP_SHARED)
	e.fails(unix.EACCES, err, "mapping of a descriptor open for writing only")
}

// mmapPastEnd: a page of a mapping that lies behind the file's end faults, also
// when the file shrank below it.
func mmapPastEnd(e *env) {
	e.write("f", strings.Repeat("x", 2*page))
	fd := e.open("f", unix.O_RDWR, 0)
	m, err := unix.Mmap(fd, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	e.ok(err)
	defer unix.Munmap(m)
	faults := func(at int) (fault bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { fault = recover() != nil }()
		m[at]++
		return
	}
	e.equal(faults(page), false, "inside")
	e.equal(faults(2*page), true, "behind the end")
	e.ok(unix.Ftruncate(fd, 10))
	e.equal(faults(9), false, "inside after shrinking")
	e.equal(faults(page), true, "behind the new end")
	e.ok(unix.Ftruncate(fd, 3*page))
	e.equal(faults(2*page), false, "inside after growing")
	e.equal(m[page], byte(0), "what was cut off")
}

func copyRange(e *env) {
	src := strings.Repeat("source data ", 50_000)
	e.write("a", src)
	e.write("b", "0123456789")
	a, b := e.open("a", unix.O_RDONLY, 0), e.open("b", unix.O_RDWR, 0)
	from, to, left := int64(5), int64(8), len(src)
	for left > 0 {
		n, err := unix.CopyFileRange(a, &from, b, &to, left, 0)
		e.ok(err)
		if n == 0 {
			break
		}
		left -= n
	}
	e.equal(left, 5, "a copy ends at the end of its source, bytes left")
	e.equal(e.read("b") == "01234567"+src[5:], true, "content")
	from, to = 0, 100
	_, err := unix.CopyFileRange(b, &from, b, &to, 200, 0)
	e.fails(unix.EINVAL, err, "overlapping copy in one file")
}

func syncCalls(e *env) {
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT, 0644)
	_, err := unix.Write(fd, []byte("data"))
	e.ok(err)
	e.ok(unix.Fsync(fd), "fsync")
	e.ok(unix.Fdatasync(fd), "fdatasync")
	e.ok(unix.Syncfs(fd), "syncfs")
	e.ok(unix.Fsync(e.open(".", unix.O_RDONLY, 0)), "fsync of a folder")
	if err := unix.SyncFileRange(fd, 0, 4, unix.SYNC_FILE_RANGE_WRITE); err != nil && !errors.Is(err, unix.ENOSYS) {
		e.Error("sync_file_range:", err)
	}
	s := e.open("sync", unix.O_WRONLY|unix.O_CREAT|unix.O_SYNC, 0644)
	_, err = unix.Write(s, []byte("data"))
	e.ok(err, "write with O_SYNC")
	e.equal(e.read("sync"), "data")
}
