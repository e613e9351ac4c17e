package fusefs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// TestStatuses: every error of the store has an errno of its own choice.
func TestStatuses(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../memstore/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(x ast.Node) bool {
		if v, ok := x.(*ast.ValueSpec); ok && ast.IsExported(v.Names[0].Name) {
			n++
		}
		return true
	})
	if n != len(statuses) {
		t.Errorf("the store has %d errors, %d have an errno", n, len(statuses))
	}
	for err, errno := range statuses {
		if errno == unix.EIO || errno == unix.ENOSYS || status(err) != fuse.Status(errno) {
			t.Errorf("%v: %v", err, errno)
		}
	}
	if st := status(unix.EBADMSG); st != fuse.EIO {
		t.Errorf("an error that is not the store's: %v", st)
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		ns   int64
		sec  int64
		nsec uint32
	}{
		{0, 0, 0}, {1, 0, 1}, {1e9, 1, 0}, {1500000000123456789, 1500000000, 123456789},
		{-1, -1, 999999999}, {-1e9, -1, 0}, {-1500000001, -2, 499999999},
	} {
		if sec, nsec := split(c.ns); int64(sec) != c.sec || nsec != c.nsec {
			t.Errorf("%d ns is %d s and %d ns, want %d and %d", c.ns, int64(sec), nsec, c.sec, c.nsec)
		}
		if ns := join(uint64(c.sec), c.nsec); ns != c.ns {
			t.Errorf("%d s and %d ns is %d, want %d", c.sec, c.nsec, ns, c.ns)
		}
	}
}

func TestDevices(t *testing.T) {
	for _, c := range [][2]uint32{{0, 0}, {1, 3}, {8, 255}, {8, 256}, {4095, 1<<20 - 1}} {
		dev := encodeDev(c[0], c[1])
		if major, minor := decodeDev(dev); major != c[0] || minor != c[1] {
			t.Errorf("%d:%d became %d:%d", c[0], c[1], major, minor)
		}
		if want := uint32(unix.Mkdev(c[0], c[1])); dev != want {
			t.Errorf("%d:%d is %#x, want %#x", c[0], c[1], dev, want)
		}
	}
}

func TestFiles(t *testing.T) {
	store, err := memstore.New(memstore.Config{Name: t.Name(), Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile})
	if err != nil {
		t.Fatal(err)
	}
	var list files
	open := func() (uint64, *file) {
		o, err := r.Inode.Open(memstore.Root(), memstore.OpenArgs{})
		if err != nil {
			t.Fatal(err)
		}
		f := &file{r.Inode, o}
		return list.add(f), f
	}
	a, fa := open()
	b, fb := open()
	if a == 0 || b == 0 || a == b || list.get(a) != fa || list.get(b) != fb {
		t.Errorf("handles %d and %d", a, b)
	}
	for _, fh := range []uint64{0, b + 1, math.MaxUint64} {
		if list.get(fh) != nil {
			t.Errorf("handle %d is a file", fh)
		}
		list.remove(fh)
	}
	list.remove(a)
	list.remove(a)
	if list.get(a) != nil || list.get(b) != fb {
		t.Error("the wrong file was removed")
	}
	if c, fc := open(); c != a || list.get(c) != fc {
		t.Errorf("handle %d, want %d again", c, a)
	}
	list.closeAll()
	if _, err := store.Root().Remove(memstore.Root(), "f", memstore.RemoveAny); err != nil {
		t.Fatal(err)
	}
	if err := store.Check(); err != nil {
		t.Error(err) // an open was left
	}
}
