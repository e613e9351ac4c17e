package coherence

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// Side changes and sees a folder of files.
type Side interface {
	Do(Call) Answer
}

// Call is a call of a side; which fields count depends on Op.
type Call struct {
	Op       string
	Name, To string
	Off      int64
	Data     []byte
}

// Answer is what it saw.
type Answer struct {
	Err    string // "", Absent, Exists or a message
	Data   []byte
	Names  []string
	Size   int64
	Mode   uint32
	Nlink  uint64
	Change uint64 // by which a client tells whether a file has changed, 0 if the side knows none
}

// What errors mean to all sides.
const (
	Absent = "absent"
	Exists = "exists"
)

// Failed is the answer of a call that failed.
func Failed(err error) Answer {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Answer{Err: Absent}
	case errors.Is(err, fs.ErrExist):
		return Answer{Err: Exists}
	}
	return Answer{Err: err.Error()}
}

// Process is a process of its own, since a server must not use its own mount.
type Process struct {
	enc *gob.Encoder
	dec *gob.Decoder
}

// The environment of a process: its folder, and whether that is a mount by NFS,
// where what is open or mapped need not be the newest.
const (
	dirEnv = "COHERENCE_DIR"
	nfsEnv = "COHERENCE_NFS"
)

// Start starts a program that calls Main in a folder, until the test ends.
func Start(t testing.TB, program, dir string) *Process {
	t.Helper()
	cmd := exec.Command(program)
	// With the race detector a process that ends would sleep for a second.
	cmd.Env = append(os.Environ(), dirEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("process in %s: %v", dir, err)
		}
	})
	return NewProcess(out, in)
}

// NewProcess is a process that is there already.
func NewProcess(from io.Reader, to io.Writer) *Process {
	return &Process{gob.NewEncoder(to), gob.NewDecoder(from)}
}

// Do has the process make a call.
func (p *Process) Do(c Call) (a Answer) {
	err := p.enc.Encode(c)
	if err == nil {
		err = p.dec.Decode(&a)
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// Main is the process, if the environment says that this is one, and then returns
// true when it is at its end.
func Main() bool {
	w := worker{dir: os.Getenv(dirEnv), nfs: os.Getenv(nfsEnv) != ""}
	if w.dir == "" {
		return false
	}
	enc, dec := gob.NewEncoder(os.Stdout), gob.NewDecoder(os.Stdin)
	for {
		var c Call
		if err := dec.Decode(&c); err != nil {
			return true
		}
		a, err := w.do(c)
		if err != nil {
			a = Failed(err)
		}
		if err := enc.Encode(a); err != nil {
			return true
		}
	}
}

// worker is the process itself, and what it has open and mapped.
type worker struct {
	dir  string
	nfs  bool
	held []*held
}

// held is a file that stays mapped, and open, if file is not nil.
type held struct {
	ino      uint64
	file     *os.File
	m        []byte // larger than any file gets
	writable bool
}

const mapSize = 1 << 20

func (w *worker) do(c Call) (a Answer, err error) {
	at, to := filepath.Join(w.dir, c.Name), filepath.Join(w.dir, c.To)
	switch c.Op {
	case "create":
		err = os.WriteFile(at, c.Data, 0o644)
	case "write":
		err = w.with(at, os.O_WRONLY, c.To, func(f *os.File) error {
			_, err := f.WriteAt(c.Data, c.Off)
			return err
		})
	case "append":
		err = w.with(at, os.O_WRONLY|os.O_APPEND, "", func(f *os.File) error {
			_, err := f.Write(c.Data)
			return err
		})
	case "truncate":
		if c.To == "" {
			return a, os.Truncate(at, c.Off)
		}
		err = w.with(at, os.O_WRONLY, c.To, func(f *os.File) error { return f.Truncate(c.Off) })
	case "chmod":
		err = os.Chmod(at, os.FileMode(c.Off))
	case "rename":
		err = unix.Rename(at, to)
	case "link":
		err = os.Link(at, to)
	case "remove":
		err = os.Remove(at)
	case "hold":
		_, err = w.hold(at, c.To == "writable")
	case "map":
		err = w.store(at, c)
	case "let":
		err = w.let(at, c.To == "mapped")
	case "reset":
		for len(w.held) > 0 {
			err = errors.Join(err, w.drop(w.held[0]))
		}
	case "xattr":
		if err = unix.Setxattr(at, c.To, c.Data, 0); err == nil {
			a.Data = make([]byte, len(c.Data))
			_, err = unix.Getxattr(at, c.To, a.Data)
		}
	case "pour":
		err = pour(at, to)
	case "list":
		var list []os.DirEntry
		list, err = os.ReadDir(w.dir)
		for _, e := range list {
			a.Names = append(a.Names, e.Name())
		}
	case "stat":
		var st unix.Stat_t
		err = unix.Stat(at, &st)
	case "read":
		a.Data, err = os.ReadFile(at)
	case "cached":
		err = w.with(at, os.O_RDONLY, "", func(f *os.File) error {
			var all unix.CachestatRange
			var st unix.Cachestat_t
			err := unix.Cachestat(uint(f.Fd()), &all, &st, 0)
			a.Size = int64(st.Cache) * int64(os.Getpagesize())
			return err
		})
	case "see":
		return w.see(at)
	default:
		err = fmt.Errorf("no operation %q", c.Op)
	}
	return a, err
}

// with does something with a file that it opens for that, or with one that is open
// and writable already if how is "held".
func (w *worker) with(at string, flags int, how string, do func(*os.File) error) error {
	if how == "held" {
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err != nil {
			return pathError(at, err)
		}
		if h := w.find(st.Ino, true); h != nil && h.file != nil {
			return do(h.file)
		}
	}
	f, err := os.OpenFile(at, flags, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

func pathError(at string, err error) error { return &os.PathError{Op: "stat", Path: at, Err: err} }

func (w *worker) find(ino uint64, writable bool) *held {
	for _, h := range w.held {
		if h.ino == ino && h.writable == writable {
			return h
		}
	}
	return nil
}

// hold opens a file and maps it, if that is not so.
func (w *worker) hold(at string, writable bool) (*held, error) {
	flags, prot := os.O_RDONLY, unix.PROT_READ
	if writable {
		flags, prot = os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE
	}
	f, err := os.OpenFile(at, flags, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if h := w.find(st.Ino, writable); h != nil {
		if h.file != nil {
			return h, f.Close()
		}
		h.file = f
		return h, nil
	}
	m, err := unix.Mmap(int(f.Fd()), 0, mapSize, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	h := &held{st.Ino, f, m, writable}
	w.held = append(w.held, h)
	return h, nil
}

// store changes what a mapping has of the file, and has that written if To is
// "sync".
func (w *worker) store(at string, c Call) (err error) {
	h, err := w.hold(at, true)
	if err != nil {
		return err
	}
	st, err := h.file.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	defer faults(&err)()
	copy(h.m[c.Off%st.Size():st.Size()], c.Data)
	if c.To == "sync" {
		err = unix.Msync(h.m, unix.MS_SYNC)
	}
	return err
}

// faults makes a fault of a mapping an error.
func faults(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if e := recover(); e != nil {
			*err = fmt.Errorf("a mapping: %v", e)
		}
	}
}

// let closes a file that is held, and unmaps it too if it is not to stay mapped.
func (w *worker) let(at string, mapped bool) error {
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil {
		return pathError(at, err)
	}
	for _, writable := range []bool{false, true} {
		h := w.find(st.Ino, writable)
		if h == nil {
			continue
		}
		if !mapped {
			if err := w.drop(h); err != nil {
				return err
			}
		} else if h.file != nil {
			if err := h.file.Close(); err != nil {
				return err
			}
			h.file = nil
		}
	}
	return nil
}

func (w *worker) drop(h *held) error {
	for k := range w.held {
		if w.held[k] == h {
			w.held = append(w.held[:k], w.held[k+1:]...)
			break
		}
	}
	err := unix.Munmap(h.m)
	if h.file != nil {
		err = errors.Join(err, h.file.Close())
	}
	return err
}

// pour writes what a mapping of one file has to another.
func pour(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(m)
	g, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = g.WriteAt(m, 0)
	return errors.Join(err, g.Close())
}

// see looks at a file by its name, and checks that what is held of it is the same.
func (w *worker) see(at string) (a Answer, err error) {
	var st unix.Stat_t
	if !w.nfs {
		if err := unix.Stat(at, &st); err != nil {
			return a, pathError(at, err)
		}
	}
	f, err := os.Open(at)
	if err != nil {
		return a, err
	}
	defer f.Close()
	if w.nfs { // an open is what makes attributes new
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return a, err
		}
	}
	if a.Data, err = io.ReadAll(f); err != nil {
		return a, err
	}
	a.Size, a.Mode, a.Nlink = st.Size, st.Mode&0o7777, uint64(st.Nlink)
	if w.nfs {
		return a, nil
	}
	for _, writable := range []bool{false, true} {
		if h := w.find(st.Ino, writable); h != nil && err == nil {
			err = h.check(a.Data)
		}
	}
	return a, err
}

func (h *held) check(want []byte) (err error) {
	if h.file != nil {
		got := make([]byte, len(want)+1)
		n, err := h.file.ReadAt(got, 0)
		if err != nil && err != io.EOF {
			return err
		}
		if !bytes.Equal(got[:n], want) {
			return fmt.Errorf("a descriptor that is held open reads other bytes: %s", Differ(got[:n], want))
		}
	}
	want = want[:min(len(want), mapSize)]
	// What somebody just made shorter faults.
	defer faults(&err)()
	if !bytes.Equal(h.m[:len(want)], want) {
		return fmt.Errorf("a mapping has other bytes: %s", Differ(h.m[:len(want)], want))
	}
	return nil
}

// Differ says where got is not want.
func Differ(got, want []byte) string {
	for k := range min(len(got), len(want)) {
		if got[k] != want[k] {
			return fmt.Sprintf("at %d of %d, want %d bytes", k, len(got), len(want))
		}
	}
	return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
}
