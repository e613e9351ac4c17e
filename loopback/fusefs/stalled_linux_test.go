package fusefs_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	wire "ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/loopback/coherence"
	"ramserver/memstore"
)

// slow is a file system with one file, "source", which nobody can read before
// gone is closed.
type slow struct {
	fuse.RawFileSystem
	asked chan bool
	gone  chan struct{} // closed: read
}

const slowSize = 60 << 10

func (s *slow) attr(a *fuse.Attr) {
	*a = fuse.Attr{Ino: 2, Mode: unix.S_IFREG | 0o444, Size: slowSize, Nlink: 1}
}

func (s *slow) Lookup(_ <-chan struct{}, _ *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if name != "source" {
		return fuse.ENOENT
	}
	out.NodeId = 2
	out.SetEntryTimeout(time.Hour)
	out.SetAttrTimeout(time.Hour)
	s.attr(&out.Attr)
	return fuse.OK
}

func (s *slow) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.attr(&out.Attr)
	if in.NodeId == fuse.FUSE_ROOT_ID {
		out.Attr = fuse.Attr{Ino: 1, Mode: unix.S_IFDIR | 0o755, Nlink: 2}
	}
	out.SetTimeout(time.Hour)
	return fuse.OK
}

func (s *slow) Open(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (s *slow) Read(_ <-chan struct{}, _ *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	select {
	case s.asked <- true:
	default:
	}
	<-s.gone
	clear(buf)
	return fuse.ReadResultData(buf), fuse.OK
}

// newSlow mounts one until the test ends.
func newSlow(t *testing.T) (*slow, string) {
	t.Helper()
	dir := t.TempDir()
	s := &slow{fuse.NewDefaultRawFileSystem(), make(chan bool, 1), make(chan struct{})}
	k, err := fuse.NewServer(s, dir, &fuse.MountOptions{DirectMountStrict: true, AllowOther: true, Name: "slow", FsName: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	go k.Serve()
	if err := k.WaitMount(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

// TestPassthroughStalled: a local process stays in the middle of a write that does
// not go through the store, because the write's source, a mapping of something
// else, does not come. Who changes that file has to wait. Nobody else does: not who
// looks at it, not who works in its folders, not the connection by which a client
// changes it, by which the source may have to come.
func TestPassthroughStalled(t *testing.T) {
	dir, store, mount := newMount(t)
	passes(t, dir, func() uint64 { return mount.Stats().Passed })
	source, slowDir := newSlow(t)
	from, err := filepath.Rel(dir, filepath.Join(slowDir, "source"))
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(source.gone) })

	proc, other := newLocal(t, dir), newLocal(t, dir)
	t.Cleanup(release) // before they are waited for
	c := &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}
	root := store.Root()
	proc.Do(coherence.Call{Op: "create", Name: "to", Data: make([]byte, 100<<10)})
	proc.Do(coherence.Call{Op: "create", Name: "from", Data: make([]byte, 100<<10)})
	to, err := root.Lookup(c, "to")
	if err != nil {
		t.Fatal(err)
	}
	made, err := root.Create(c, "d", &memstore.Create{Type: memstore.TypeDir, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	d := made.Inode
	for _, name := range []string{"x", "y", "z"} {
		if _, _, err := d.Link(c, name, to); err != nil {
			t.Fatal(err)
		}
	}
	newShell(t, dir).run("ls -l d; cat to >/dev/null")
	wires, err := wire.Dial(context.Background(), serveNFS(t, store), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer wires.Close()
	m, err := wires.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	fh, err := wires.Walk(append([]byte(nil), m.FH...), "to")
	if err != nil {
		t.Fatal(err)
	}
	fh = append([]byte(nil), fh...)

	poured := make(chan coherence.Answer, 1)
	go func() { poured <- proc.Do(coherence.Call{Op: "pour", Name: from, To: "to"}) }()
	select {
	case <-source.asked:
	case a := <-poured:
		t.Fatalf("the process does not wait: %+v", a)
	}
	time.Sleep(20 * time.Millisecond)

	// They wait.
	p := make([]byte, 64<<10)
	waits := map[string]func() error{
		"write":  func() error { _, _, err := to.WriteAt(c, nil, p, 0); return err },
		"append": func() error { _, _, _, err := to.Append(c, nil, p); return err },
		"truncate": func() error {
			_, err := to.SetAttr(c, nil, &memstore.SetAttr{Mask: memstore.SetSize, Size: 200 << 10})
			return err
		},
		"punch":    func() error { _, err := to.Punch(c, nil, 0, 4096); return err },
		"allocate": func() error { _, err := to.Allocate(c, nil, 0, 4096, false); return err },
		"clone":    func() error { _, _, err := to.Clone(c, nil, 0, to, nil, 64<<10, 4096); return err },
		"seek": func() error {
			_, err := to.SeekHole(c, nil, 0)
			if err == memstore.ErrNoData {
				return nil // "empty" came first
			}
			return err
		},
		"empty": func() error {
			_, err := d.Create(c, "x", &memstore.Create{Type: memstore.TypeFile, Exist: memstore.ExistOpen,
				Set: memstore.SetAttr{Mask: memstore.SetSize}, Open: &memstore.OpenArgs{Access: memstore.AccessRead}})
			return err
		},
	}
	var done sync.Map
	var all sync.WaitGroup
	for what, do := range waits {
		all.Go(func() {
			if err := do(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			done.Store(what, true)
		})
	}
	// Many calls by one connection, and behind them one that can be answered.
	ended, answered := make(chan error, 1), make(chan bool, 1)
	const writes = 20
	go func() {
		ended <- wires.Run(writes+1, writes+1, func(i int, w *xdr.Writer) []byte {
			if i < writes {
				wires.AppendCall(w, rpc.ProgramNFS, nfs3.Version, nfs3.ProcWrite)
				(&nfs3.WriteArgs{FH: fh, Count: 4096, Stable: nfs3.FileSync, Data: p[:4096]}).Encode(w)
			} else {
				wires.AppendCall(w, rpc.ProgramNFS, nfs3.Version, nfs3.ProcGetAttr)
				(&nfs3.FHArgs{FH: fh}).Encode(w)
			}
			return nil
		}, func(i int, _ []byte) error {
			if i == writes {
				answered <- true
			}
			return nil
		})
	}()
	time.Sleep(50 * time.Millisecond)

	// They do not.
	file := func(c coherence.Call) func() error {
		return func() error {
			if a := other.Do(c); a.Err != "" {
				return os.NewSyscallError(a.Err, unix.EIO)
			}
			return nil
		}
	}
	for _, x := range []struct {
		what string
		do   func() error
	}{
		{"attributes", func() error { _, err := to.GetAttr(c); return err }},
		{"read", func() error { _, _, _, err := to.ReadAt(c, nil, make([]byte, 64<<10), 0); return err }},
		{"mode", func() error {
			_, err := to.SetAttr(c, nil, &memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o666})
			return err
		}},
		{"list", func() error { _, _, err := d.ReadDir(c, 0, make([]memstore.DirEntry, 10)); return err }},
		{"rename", func() error { _, _, err := store.Rename(c, d, "y", d, "w", 0); return err }},
		{"remove", func() error { _, err := d.Remove(c, "z", memstore.RemoveAny); return err }},
		{"create", func() error { _, err := d.Create(c, "new", &memstore.Create{Type: memstore.TypeFile}); return err }},
		{"one connection", func() error { <-answered; return nil }},
		{"local list", file(coherence.Call{Op: "list"})},
		{"local create", file(coherence.Call{Op: "create", Name: "d/local", Data: []byte("x")})},
		{"local read", file(coherence.Call{Op: "see", Name: "from"})},
	} {
		within(t, 2*time.Second, x.what, func() {
			if err := x.do(); err != nil {
				t.Errorf("%s: %v", x.what, err)
			}
		})
	}
	done.Range(func(what, _ any) bool { t.Errorf("%s did not wait", what); return true })
	release()
	within(t, 10*time.Second, "what has waited", func() {
		if a := <-poured; a.Err != "" {
			t.Error(a.Err)
		}
		all.Wait()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
