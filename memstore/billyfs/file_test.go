package billyfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-billy/v5/util"

	"ramserver/memstore"
)

func openFile(t testing.TB, f *FS, name string, flag int) *File {
	t.Helper()
	file, err := f.OpenFile(name, flag, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return file.(*File)
}

func TestRead(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 4_500)
	f := newFS(t, "")
	if err := util.WriteFile(f, "f", content, 0o644); err != nil {
		t.Fatal(err)
	}
	file := openFile(t, f, "f", os.O_RDONLY)
	defer file.Close()
	if err := iotest.TestReader(file, content); err != nil {
		t.Error(err)
	}
}

func TestSeek(t *testing.T) {
	f := newFS(t, "f 0123456789")
	for _, c := range []struct {
		from   int64
		offset int64
		whence int
		want   int64
		err    error
	}{
		{5, 3, io.SeekStart, 3, nil},
		{5, 3, io.SeekCurrent, 8, nil},
		{5, -5, io.SeekCurrent, 0, nil},
		{5, -3, io.SeekEnd, 7, nil},
		{5, 100, io.SeekEnd, 110, nil},
		{5, math.MaxInt64, io.SeekStart, math.MaxInt64, nil},
		{5, -1, io.SeekStart, 5, syscall.EINVAL},
		{5, -6, io.SeekCurrent, 5, syscall.EINVAL},
		{5, -11, io.SeekEnd, 5, syscall.EINVAL},
		{5, math.MaxInt64, io.SeekCurrent, 5, syscall.EINVAL},
		{5, math.MinInt64, io.SeekEnd, 5, syscall.EINVAL},
		{5, 0, 3, 5, syscall.EINVAL},
	} {
		file := openFile(t, f, "f", os.O_RDWR)
		file.Seek(c.from, io.SeekStart)
		got, err := file.Seek(c.offset, c.whence)
		at, _ := file.Seek(0, io.SeekCurrent)
		if !errors.Is(err, c.err) || err == nil && got != c.want || at != c.want {
			t.Errorf("Seek(%d, %d) from %d: %d, %v, then at %d; want %d, %v",
				c.offset, c.whence, c.from, got, err, at, c.want, c.err)
		}
		file.Close()
	}
}

func TestOffsets(t *testing.T) {
	f := newFS(t, "f 0123456789")
	file := openFile(t, f, "f", os.O_RDWR)
	defer file.Close()
	p := make([]byte, 4)
	if n, err := file.ReadAt(p, 8); n != 2 || err != io.EOF {
		t.Errorf("ReadAt over the end: %d, %v", n, err)
	}
	if n, err := file.ReadAt(p, -1); n != 0 || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("ReadAt(-1): %d, %v", n, err)
	}
	if n, err := file.WriteAt(p, -1); n != 0 || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("WriteAt(-1): %d, %v", n, err)
	}
	if n, err := file.WriteAt(p, math.MaxInt64-1); n != 0 || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("WriteAt the largest offset: %d, %v", n, err)
	}
	if n, err := file.ReadAt(p, math.MaxInt64-1); n != 0 || err != io.EOF {
		t.Errorf("ReadAt the largest offset: %d, %v", n, err)
	}
	if at, _ := file.Seek(0, io.SeekCurrent); at != 0 {
		t.Errorf("the offset moved to %d", at)
	}
	file.WriteAt([]byte("xy"), 12)
	if got, _ := read(f, "f"); got != "0123456789\x00\x00xy" {
		t.Errorf("%q", got)
	}
}

func TestTruncate(t *testing.T) {
	f := newFS(t, "f 0123456789")
	file := openFile(t, f, "f", os.O_RDWR)
	defer file.Close()
	file.Seek(5, io.SeekStart)
	for _, c := range []struct {
		size int64
		want string
		err  error
	}{
		{4, "0123", nil},
		{6, "0123\x00\x00", nil},
		{0, "", nil},
		{2, "\x00\x00", nil},
		{-1, "\x00\x00", syscall.EINVAL},
		{math.MaxInt64, "\x00\x00", syscall.EFBIG},
	} {
		err := file.Truncate(c.size)
		got, _ := read(f, "f")
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Truncate(%d): %q, %v", c.size, got, err)
		}
	}
	if at, _ := file.Seek(0, io.SeekCurrent); at != 5 {
		t.Errorf("the offset moved to %d", at)
	}
	ro := openFile(t, f, "f", os.O_RDONLY)
	defer ro.Close()
	if err := ro.Truncate(0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("opened for reading: %v", err)
	}
}

func TestClosed(t *testing.T) {
	f := newFS(t, "f x")
	file := openFile(t, f, "f", os.O_RDWR)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1)
	for name, op := range map[string]func() error{
		"read":     func() error { _, err := file.Read(p); return err },
		"read at":  func() error { _, err := file.ReadAt(p, 0); return err },
		"write":    func() error { _, err := file.Write(p); return err },
		"write at": func() error { _, err := file.WriteAt(p, 0); return err },
		"seek":     func() error { _, err := file.Seek(0, io.SeekStart); return err },
		"truncate": func() error { return file.Truncate(0) },
		"stat":     func() error { _, err := file.Stat(); return err },
		"lock":     file.Lock,
		"unlock":   file.Unlock,
		"close":    file.Close,
	} {
		var pe *os.PathError
		if err := op(); !errors.Is(err, fs.ErrClosed) || !errors.As(err, &pe) || pe.Path != "f" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemovedFile(t *testing.T) {
	for name, unname := range map[string]func(f *FS) error{
		"removed":  func(f *FS) error { return f.Remove("f") },
		"replaced": func(f *FS) error { return f.Rename("g", "f") },
	} {
		f := newFS(t, "f old\ng new")
		file := openFile(t, f, "f", os.O_RDWR)
		if err := unname(f); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte("O"), 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := io.ReadAll(file); string(got) != "Old" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if fi, err := file.Stat(); err != nil || fi.(*FileInfo).Attr().Nlink != 0 {
			t.Errorf("%s: %v", name, err)
		}
		file.Close()
	}
}

func TestNoSpace(t *testing.T) {
	f := New(newStore(t, 1<<20), nil)
	file := openFile(t, f, "f", os.O_RDWR|os.O_CREATE)
	defer file.Close()
	n, err := file.Write(make([]byte, 2<<20))
	if n == 0 || n >= 1<<20 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if at, _ := file.Seek(0, io.SeekCurrent); at != int64(n) {
		t.Errorf("the offset is %d after %d bytes", at, n)
	}
	if n, err := file.Write(make([]byte, 1<<20)); n >= 1<<20 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v to a full store", n, err)
	}
	if err := file.Truncate(0); err != nil {
		t.Error(err)
	}
	if n, err := file.WriteAt(make([]byte, 64<<10), 0); n != 64<<10 || err != nil {
		t.Errorf("wrote %d, %v after it was emptied", n, err)
	}
}

// Read and Write of one File share an offset, whoever calls them.
func TestSharedOffset(t *testing.T) {
	const workers, each, size = 8, 100, 64
	f := newFS(t, "")
	file := openFile(t, f, "f", os.O_RDWR|os.O_CREATE)
	defer file.Close()
	run := func(do func(p []byte, worker int)) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for range each {
					do(make([]byte, size), w)
				}
			})
		}
		wg.Wait()
	}
	run(func(p []byte, w int) {
		if _, err := file.Write(bytes.Repeat([]byte{byte(w)}, size)); err != nil {
			t.Error(err)
		}
		if _, err := file.ReadAt(p, 0); err != nil && err != io.EOF {
			t.Error(err)
		}
	})
	if at, _ := file.Seek(0, io.SeekStart); at != 0 {
		t.Fatal(at)
	}
	var mu sync.Mutex
	var count [workers]int
	run(func(p []byte, _ int) {
		if n, err := file.Read(p); n != size || err != nil || !bytes.Equal(p, bytes.Repeat(p[:1], size)) {
			t.Errorf("%d, %v: %v", n, err, p)
			return
		}
		mu.Lock()
		count[p[0]]++
		mu.Unlock()
	})
	for w, n := range count {
		if n != each {
			t.Errorf("read %d of the %d writes of worker %d", n, each, w)
		}
	}
}

// Nobody's append is lost or torn, whatever File it goes through.
func TestAppend(t *testing.T) {
	const workers, each = 8, 200
	f := newFS(t, "")
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			file := openFile(t, f, "log", os.O_WRONLY|os.O_APPEND|os.O_CREATE)
			defer file.Close()
			for n := range each {
				file.Seek(0, io.SeekStart) // does not matter
				line := fmt.Sprintf("%d %d %s\n", w, n, strings.Repeat("x", 20*w))
				if _, err := io.WriteString(file, line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, _ := read(f, "log")
	var next [workers]int
	for line := range strings.Lines(got) {
		var w, n int
		var x string
		fmt.Sscan(line, &w, &n, &x)
		if next[w] != n || len(x) != 20*w {
			t.Fatalf("%q, want line %d", line, next[w])
		}
		next[w]++
	}
	if next != [workers]int{each, each, each, each, each, each, each, each} {
		t.Error(next)
	}
	file := openFile(t, f, "log", os.O_RDWR|os.O_APPEND)
	defer file.Close()
	if _, err := file.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("WriteAt of a file for appending: %v", err)
	}
	file.Write([]byte("end"))
	if at, _ := file.Seek(0, io.SeekCurrent); at != int64(len(got)+3) {
		t.Errorf("the offset is %d, want %d", at, len(got)+3)
	}
}

func TestLock(t *testing.T) {
	const workers, each = 8, 50
	f := newFS(t, "f 0")
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			file := openFile(t, f, "f", os.O_RDWR)
			defer file.Close()
			for range each {
				if err := file.Lock(); err != nil {
					t.Error(err)
					return
				}
				got, _ := read(f, "f")
				n, _ := strconv.Atoi(got)
				if _, err := file.WriteAt([]byte(strconv.Itoa(n+1)), 0); err != nil {
					t.Error(err)
				}
				if err := file.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, _ := read(f, "f"); got != strconv.Itoa(workers*each) {
		t.Errorf("counted to %s, want %d", got, workers*each)
	}
}

func TestLockRules(t *testing.T) {
	f := newFS(t, "f x")
	a, b := openFile(t, f, "f", os.O_RDWR), openFile(t, f, "f", os.O_RDONLY)
	defer b.Close()
	probe := memstore.LockArgs{Owner: memstore.LockOwner{Holder: &memstore.Holder{Name: "probe"}}, Off: 1 << 40, N: 1}
	locked := func() bool {
		_, err := a.inode.TestLock(probe)
		return err != nil
	}
	if err := a.Lock(); err != nil || !locked() {
		t.Fatal(err, locked())
	}
	if err := a.Lock(); err != nil { // again
		t.Fatal(err)
	}
	if err := b.Unlock(); err != nil || !locked() { // not its own
		t.Errorf("%v, locked %v", err, locked())
	}
	if err := a.Unlock(); err != nil || locked() {
		t.Errorf("%v, locked %v after one Unlock", err, locked())
	}
	if err := b.Lock(); err != nil { // of a file opened for reading, as flock
		t.Error(err)
	}
	if err := b.Unlock(); err != nil {
		t.Error(err)
	}
	if err := a.Lock(); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() { got <- b.Lock() }()
	if err := a.Close(); err != nil { // unlocks
		t.Fatal(err)
	}
	if err := <-got; err != nil || !locked() {
		t.Errorf("%v, locked %v", err, locked())
	}
}

// FuzzFile runs a program of calls on a File and on a byte slice.
func FuzzFile(f *testing.F) {
	f.Add([]byte("w\x05r\x05s\x02r\x09t\x03W\x07R\x02"), false)
	f.Add([]byte("r\x05W\x80\x00\x00\x07\x02"), true)
	f.Add([]byte("w\xffw\xffs\x00r\xfft\xf0r\x80"), true)
	f.Fuzz(func(t *testing.T, program []byte, app bool) {
		s, err := memstore.New(memstore.Config{Name: "fuzz", Size: 16 << 20, RootMode: 0o755})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		flag := os.O_RDWR | os.O_CREATE
		if app {
			flag |= os.O_APPEND
		}
		file := openFile(t, New(s, nil), "f", flag)
		var model []byte
		var off int
		grow := func(n int) { model = append(model, make([]byte, max(0, n-len(model)))...) }
		write := func(p []byte, at int) {
			grow(at + len(p))
			copy(model[at:], p)
		}
		for k := 0; k+1 < min(len(program), 200); k += 2 {
			v := int(program[k+1])
			size := v * v // crosses pages
			p := bytes.Repeat(program[k:k+1], size)
			switch program[k] % 6 {
			case 0:
				if n, err := file.Write(p); n != size || err != nil {
					t.Fatal(n, err)
				}
				if size > 0 { // else the offset stays, with os.O_APPEND too
					if app {
						off = len(model)
					}
					write(p, off)
					off += size
				}
			case 1:
				want := model[min(off, len(model)):min(off+size, len(model))]
				n, err := io.ReadFull(file, p)
				if !bytes.Equal(p[:n], want) || (err == nil) != (n == size) {
					t.Fatal(n, err)
				}
				off += n
			case 2:
				off = size
				file.Seek(int64(off), io.SeekStart)
			case 3:
				if err := file.Truncate(int64(size)); err != nil {
					t.Fatal(err)
				}
				grow(size)
				model = model[:size]
			case 4:
				if _, err := file.WriteAt(p, int64(v)); (err == nil) == app {
					t.Fatal(err)
				}
				if !app && size > 0 {
					write(p, v)
				}
			case 5:
				n, err := file.ReadAt(p, int64(v))
				if want := model[min(v, len(model)):min(v+size, len(model))]; !bytes.Equal(p[:n], want) || (err == io.EOF) != (n < size) {
					t.Fatal(n, err)
				}
			}
		}
		if end, err := file.Seek(0, io.SeekEnd); end != int64(len(model)) || err != nil {
			t.Fatal(end, err, len(model))
		}
		file.Close()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
