package fusefs_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// side changes and sees one directory of files: as a local process or as a
// client of the network.
type side interface {
	do(call) answer
}

// call is one call of a side; which fields count depends on op.
type call struct {
	Op       string
	Name, To string
	Off      int64
	Data     []byte
}

// answer is what it saw. Err is "", "absent" or a message.
type answer struct {
	Err   string
	Data  []byte
	Names []string
	Size  int64
	Mode  uint32
	Nlink uint64
}

func failed(err error) answer {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, memstore.ErrNotExist) {
		return answer{Err: "absent"}
	}
	return answer{Err: err.Error()}
}

// local is a local process: a child, since a server must not use its own mount.
type local struct {
	enc *gob.Encoder
	dec *gob.Decoder
}

const localEnv = "FUSEFS_TEST_LOCAL"

func newLocal(t *testing.T, dir string) *local {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = childEnv(localEnv + "=" + dir)
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
			t.Errorf("local process: %v", err)
		}
	})
	return &local{gob.NewEncoder(in), gob.NewDecoder(out)}
}

func (l *local) do(c call) (a answer) {
	err := l.enc.Encode(c)
	if err == nil {
		err = l.dec.Decode(&a)
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(localEnv); dir != "" {
		serveLocal(dir)
		return
	}
	os.Exit(m.Run())
}

// serveLocal is the local process. It has every file open and mapped that it
// ever read, so that the kernel has much to forget.
func serveLocal(dir string) {
	enc, dec := gob.NewEncoder(os.Stdout), gob.NewDecoder(os.Stdin)
	held := map[string]*os.File{}
	for {
		var c call
		if err := dec.Decode(&c); err != nil {
			return
		}
		if err := enc.Encode(localCall(dir, c, held)); err != nil {
			return
		}
	}
}

func localCall(dir string, c call, held map[string]*os.File) (a answer) {
	at, to := filepath.Join(dir, c.Name), filepath.Join(dir, c.To)
	var err error
	switch c.Op {
	case "create":
		err = os.WriteFile(at, c.Data, 0o644)
	case "write":
		var f *os.File
		if f, err = os.OpenFile(at, os.O_WRONLY, 0); err == nil {
			_, err = f.WriteAt(c.Data, c.Off)
			err = errors.Join(err, f.Close())
		}
	case "append":
		var f *os.File
		if f, err = os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, err = f.Write(c.Data)
			err = errors.Join(err, f.Close())
		}
	case "truncate":
		err = os.Truncate(at, c.Off)
	case "chmod":
		err = os.Chmod(at, os.FileMode(c.Off))
	case "rename":
		err = unix.Rename(at, to)
	case "link":
		err = os.Link(at, to)
	case "remove":
		err = os.Remove(at)
	case "xattr":
		if err = unix.Setxattr(at, c.To, c.Data, 0); err == nil {
			a.Data = make([]byte, len(c.Data))
			_, err = unix.Getxattr(at, c.To, a.Data)
		}
	case "pour":
		err = pour(at, to)
	case "list":
		a.Names, err = names(dir)
	case "stat":
		var st unix.Stat_t
		err = unix.Stat(at, &st)
	case "read":
		a.Data, err = os.ReadFile(at)
	case "see":
		var st unix.Stat_t
		if err = unix.Stat(at, &st); err != nil {
			break
		}
		a.Size, a.Mode, a.Nlink = st.Size, st.Mode&0o7777, uint64(st.Nlink)
		if a.Data, err = os.ReadFile(at); err == nil {
			err = seeHeld(at, &st, a.Data, held)
		}
	}
	if err != nil {
		return failed(err)
	}
	return a
}

// seeHeld checks that a file is the same through a descriptor and a mapping that
// stay from an earlier look.
func seeHeld(at string, st *unix.Stat_t, want []byte, held map[string]*os.File) (err error) {
	key := fmt.Sprint(st.Ino)
	f := held[key]
	if f != nil {
		var was unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &was); err != nil {
			return fmt.Errorf("fstat of what is held: %w", err)
		}
		if was.Nlink == 0 {
			f.Close() // its number was given to another file
			f = nil
		}
	}
	if f == nil {
		if f, err = os.Open(at); err != nil {
			return err
		}
		held[key] = f
	}
	got := make([]byte, len(want)+1)
	n, err := f.ReadAt(got, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if !bytes.Equal(got[:n], want) {
		return fmt.Errorf("a descriptor that is held open reads other bytes: %s", differ(got[:n], want))
	}
	if len(want) == 0 {
		return nil
	}
	m, err := unix.Mmap(int(f.Fd()), 0, len(want), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(m)
	// A mapping of what somebody just made shorter faults.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("a mapping: %v", e)
		}
	}()
	if !bytes.Equal(m, want) {
		return fmt.Errorf("a mapping has other bytes: %s", differ(m, want))
	}
	return nil
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

func names(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out, err
}

// client is a client of the network: another holder in the store.
type client struct {
	dir *memstore.Inode
	c   *memstore.Caller
}

func (n *client) do(c call) (a answer) {
	i, err := n.dir.Lookup(n.c, c.Name)
	if err != nil && c.Op != "create" && c.Op != "list" {
		return failed(err)
	}
	switch c.Op {
	case "create":
		var r memstore.Created
		r, err = n.dir.Create(n.c, c.Name, &memstore.Create{
			Type:  memstore.TypeFile,
			Set:   memstore.SetAttr{Mask: memstore.SetMode | memstore.SetSize, Mode: 0o644},
			Exist: memstore.ExistOpen,
		})
		if err == nil && len(c.Data) > 0 {
			_, _, err = r.Inode.WriteAt(n.c, nil, c.Data, 0)
		}
	case "write":
		_, _, err = i.WriteAt(n.c, nil, c.Data, c.Off)
	case "append":
		_, _, _, err = i.Append(n.c, nil, c.Data)
	case "truncate":
		_, err = i.SetAttr(n.c, nil, &memstore.SetAttr{Mask: memstore.SetSize, Size: c.Off})
	case "chmod":
		_, err = i.SetAttr(n.c, nil, &memstore.SetAttr{Mask: memstore.SetMode, Mode: uint16(c.Off)})
	case "rename":
		_, _, err = n.dir.Store().Rename(n.c, n.dir, c.Name, n.dir, c.To, 0)
	case "link":
		_, _, err = n.dir.Link(n.c, c.To, i)
	case "remove":
		_, err = n.dir.Remove(n.c, c.Name, memstore.RemoveAny)
	case "list":
		buf := make([]memstore.DirEntry, 100)
		var k int
		k, _, err = n.dir.ReadDir(n.c, 0, buf)
		for _, e := range buf[:k] {
			a.Names = append(a.Names, e.Name)
		}
		slices.Sort(a.Names)
	case "see":
		var attr memstore.Attr
		if attr, err = i.GetAttr(n.c); err != nil {
			break
		}
		a.Size, a.Mode, a.Nlink = attr.Size, uint32(attr.Mode), uint64(attr.Nlink)
		a.Data = make([]byte, attr.Size)
		_, _, _, err = i.ReadAt(n.c, nil, a.Data, 0)
	}
	if err != nil {
		return failed(err)
	}
	return a
}

// differ says where got is not want.
func differ(got, want []byte) string {
	for k := range min(len(got), len(want)) {
		if got[k] != want[k] {
			return fmt.Sprintf("at %d of %d, want %d bytes", k, len(got), len(want))
		}
	}
	return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
}

// content is what a file must be.
type content struct {
	data  []byte
	mode  uint32
	nlink uint64
}

// model is what the directory must be.
type model map[string]*content

// change makes a random call and does the same to the model.
func (m model) change(rnd *rand.Rand) call {
	names := []string{"a", "b", "c", "d", "e", "f"}
	name, to := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
	f := m[name]
	data := make([]byte, 1+rnd.IntN(1<<rnd.IntN(15)))
	for k := range data {
		data[k] = byte(rnd.Uint32())
	}
	const most = 50 << 10
	gone := func(name string) {
		if f := m[name]; f != nil {
			f.nlink--
			delete(m, name)
		}
	}
	if f == nil {
		m[name] = &content{data, 0o644, 1}
		return call{Op: "create", Name: name, Data: data}
	}
	switch rnd.IntN(8) {
	case 0:
		f.data = data
		return call{Op: "create", Name: name, Data: data}
	case 1:
		off := rnd.Int64N(most / 2)
		f.data = append(f.data, make([]byte, max(0, int(off)+len(data)-len(f.data)))...)
		copy(f.data[off:], data)
		return call{Op: "write", Name: name, Off: off, Data: data}
	case 2:
		if len(f.data) > most {
			break
		}
		f.data = append(f.data, data...)
		return call{Op: "append", Name: name, Data: data}
	case 3:
		size := rnd.IntN(most)
		f.data = append(f.data, make([]byte, max(0, size-len(f.data)))...)[:size]
		return call{Op: "truncate", Name: name, Off: int64(size)}
	case 4:
		f.mode = 0o600 + uint32(rnd.IntN(0o100))
		return call{Op: "chmod", Name: name, Off: int64(f.mode)}
	case 5:
		if f != m[to] {
			gone(to)
			delete(m, name)
			m[to] = f
		}
		return call{Op: "rename", Name: name, To: to}
	case 6:
		if m[to] != nil {
			break
		}
		f.nlink++
		m[to] = f
		return call{Op: "link", Name: name, To: to}
	}
	gone(name)
	return call{Op: "remove", Name: name}
}

// check compares what a side sees of some names, and of the whole directory,
// with the model.
func (m model) check(s side, names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		a, f := s.do(call{Op: "see", Name: name}), m[name]
		switch {
		case f == nil && a.Err != "absent":
			return fmt.Errorf("%s is there, or %q", name, a.Err)
		case f == nil:
		case a.Err != "":
			return fmt.Errorf("%s: %s", name, a.Err)
		case a.Size != int64(len(f.data)) || a.Mode != f.mode || a.Nlink != f.nlink:
			return fmt.Errorf("%s: size, mode and links are %d, %o, %d, want %d, %o, %d", name, a.Size, a.Mode, a.Nlink, len(f.data), f.mode, f.nlink)
		case !bytes.Equal(a.Data, f.data):
			return fmt.Errorf("%s: %s", name, differ(a.Data, f.data))
		}
	}
	var want []string
	for name := range m {
		want = append(want, name)
	}
	slices.Sort(want)
	if a := s.do(call{Op: "list"}); a.Err != "" || !slices.Equal(a.Names, want) {
		return fmt.Errorf("lists %q %s, want %q", a.Names, a.Err, want)
	}
	return nil
}

// TestCoherence makes changes on either side and looks at once from the other.
func TestCoherence(t *testing.T) {
	dir, store, mount := newMount(t)
	sides := [...]side{newLocal(t, dir), &client{store.Root(), &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}}}
	seed := uint64(time.Now().UnixNano())
	rnd, m := rand.New(rand.NewPCG(seed, 0)), model{}
	for step := range 1000 {
		by := rnd.IntN(2)
		c := m.change(rnd)
		a := sides[by].do(c)
		what := fmt.Sprintf("seed %d, step %d, side %d: %s %s %s at %d, %d bytes", seed, step, by, c.Op, c.Name, c.To, c.Off, len(c.Data))
		if a.Err != "" {
			t.Fatalf("%s: %s", what, a.Err)
		}
		for k, who := range []string{"local process", "client"} {
			if err := m.check(sides[k], c.Name, c.To); err != nil {
				t.Fatalf("%s: seen by the %s: %v", what, who, err)
			}
		}
	}
	t.Logf("%+v", mount.Stats())
}

// TestBothSides changes one directory from both sides at once, and fails when
// that comes to a stop.
func TestBothSides(t *testing.T) {
	dir, store, mount := newMount(t)
	runs := 5 * time.Second
	if s := os.Getenv("FUSEFS_TEST_TIME"); s != "" {
		var err error
		if runs, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(runs)
	const each = 3
	addr := serveNFS(t, store)
	done := make(chan int, 3*each)
	for k := range 3 * each {
		var s side
		switch k / each {
		case 0:
			s = newLocal(t, dir)
		case 1:
			s = newNFSClient(t, addr)
		default:
			s = &client{store.Root(), &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}}
		}
		go func() {
			rnd, n := rand.New(rand.NewPCG(uint64(k), 1)), 0
			for ; time.Now().Before(end); n++ {
				name, to := fmt.Sprint(rnd.IntN(8)), fmt.Sprint(rnd.IntN(8))
				switch op := [...]string{"create", "rename", "remove", "link", "see", "list", "append"}[rnd.IntN(7)]; op {
				case "create", "append":
					s.do(call{Op: op, Name: name, Data: []byte("data")})
				default:
					s.do(call{Op: op, Name: name, To: to})
				}
			}
			done <- n
		}()
	}
	total := 0
	for range 3 * each {
		select {
		case n := <-done:
			total += n
			if n == 0 {
				t.Error("somebody never got to do anything")
			}
		case <-time.After(time.Until(end) + 5*time.Second):
			panic("no progress for 5 s")
		}
	}
	t.Logf("%d calls in %v; %+v", total, runs, mount.Stats())

	// Nothing changes any more: all must see the same.
	near := newLocal(t, dir)
	for _, far := range []side{&client{store.Root(), memstore.Root()}, newNFSClient(t, addr)} {
		if a, b := near.do(call{Op: "list"}), far.do(call{Op: "list"}); a.Err+b.Err != "" || !slices.Equal(a.Names, b.Names) {
			t.Errorf("locally %q %s, %T %q %s", a.Names, a.Err, far, b.Names, b.Err)
		}
		for k := range 8 {
			c := call{Op: "see", Name: fmt.Sprint(k)}
			if a, b := near.do(c), far.do(c); a.Err != b.Err || !bytes.Equal(a.Data, b.Data) || a.Size != b.Size || a.Nlink != b.Nlink {
				t.Errorf("%s: locally %+v, %T %+v", c.Name, a, far, b)
			}
		}
	}
}
