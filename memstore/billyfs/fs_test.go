package billyfs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/util"

	"ramserver/memstore"
)

// newStore makes a store that is checked at the end of the test.
func newStore(t testing.TB, size int64) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Name: "test", Size: size, RootMode: 0o1777})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newFS makes a file system over a new store, with a tree in it: a line
// "path/" is a directory, "path -> target" a link, "path text" a file.
func newFS(t testing.TB, tree string) *FS {
	t.Helper()
	f := New(newStore(t, 64<<20), nil)
	plant(t, f, tree)
	return f
}

func plant(t testing.TB, f *FS, tree string) {
	t.Helper()
	for line := range strings.Lines(tree) {
		line = strings.TrimSpace(line)
		var err error
		if name, target, ok := strings.Cut(line, " -> "); ok {
			err = f.Symlink(target, strings.TrimSpace(name))
		} else if name, ok := strings.CutSuffix(line, "/"); ok {
			err = f.MkdirAll(name, 0o755)
		} else if name, text, ok := strings.Cut(line, " "); ok {
			err = util.WriteFile(f, name, []byte(strings.TrimSpace(text)), 0o644)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func read(f billy.Basic, name string) (string, error) {
	b, err := util.ReadFile(f, name)
	return string(b), err
}

const tree = `
	f           top
	d/f         hello
	d/sub/g     deep
	rel      -> d/f
	abs      -> /d/f
	updown   -> d/sub/../f
	dirlink  -> d
	slash    -> d/
	d/back   -> ..
	d/abs    -> /f
	d/up     -> ../f
	out      -> ../f
	d/out    -> ../../f
	dangling -> nowhere
	loop1    -> loop2
	loop2    -> loop1
	self     -> self
`

func TestPaths(t *testing.T) {
	root := newFS(t, tree)
	for _, c := range []struct {
		chroot, path, content string
		err                   error
	}{
		{"", "d/f", "hello", nil},
		{"", "/d/f", "hello", nil},
		{"", ".//d/./f", "hello", nil},
		{"", "none/../d/f", "hello", nil}, // cleaned as text
		{"", "dirlink/../f", "top", nil},
		{"", "rel", "hello", nil},
		{"", "abs", "hello", nil},
		{"", "updown", "hello", nil},
		{"", "dirlink/f", "hello", nil},
		{"", "slash/f", "hello", nil},
		{"", "d/back/f", "top", nil},
		{"", "d/back/d/back/rel", "hello", nil},
		{"", "d/up", "top", nil},
		{"", "", "", syscall.EISDIR},
		{"", "/", "", syscall.EISDIR},
		{"", "slash", "", syscall.EISDIR},
		{"", "none", "", fs.ErrNotExist},
		{"", "none/f", "", fs.ErrNotExist},
		{"", "f/f", "", syscall.ENOTDIR},
		{"", "dangling", "", fs.ErrNotExist},
		{"", "loop1", "", syscall.ELOOP},
		{"", "self/f", "", syscall.ELOOP},
		{"", "a\x00b", "", syscall.EINVAL},
		{"", strings.Repeat("x", 256), "", syscall.ENAMETOOLONG},
		{"", "..", "", billy.ErrCrossedBoundary},
		{"", "/../f", "", billy.ErrCrossedBoundary},
		{"", "d/../../f", "", billy.ErrCrossedBoundary},
		{"", "out", "", billy.ErrCrossedBoundary},
		{"", "d/out", "", billy.ErrCrossedBoundary},

		{"d", "f", "hello", nil},
		{"d", "/sub/g", "deep", nil},
		{"d", "abs", "hello", nil}, // the chroot's /f
		{"d", "../f", "", billy.ErrCrossedBoundary},
		{"d", "up", "", billy.ErrCrossedBoundary},
		{"d", "back/f", "", billy.ErrCrossedBoundary},
		{"dirlink", "f", "hello", nil},
		{"none", "f", "", fs.ErrNotExist},
		{"f", "f", "", syscall.ENOTDIR},
		{"loop1", "f", "", syscall.ELOOP},
	} {
		var f billy.Filesystem = root
		if c.chroot != "" {
			var err error
			if f, err = root.Chroot(c.chroot); err != nil {
				t.Fatal(err)
			}
		}
		got, err := read(f, c.path)
		if got != c.content || !errors.Is(err, c.err) {
			t.Errorf("in %q: %q is %q, %v; want %q, %v", c.chroot, c.path, got, err, c.content, c.err)
		}
	}
}

func TestLinkLimit(t *testing.T) {
	f := newFS(t, "l0 -> f\nf x")
	for n := range maxLinks {
		plant(t, f, fmt.Sprintf("l%d -> l%d", n+1, n))
	}
	if _, err := f.Stat(fmt.Sprintf("l%d", maxLinks-1)); err != nil {
		t.Errorf("%d links: %v", maxLinks, err)
	}
	if _, err := f.Stat(fmt.Sprintf("l%d", maxLinks)); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("%d links: %v, want ELOOP", maxLinks+1, err)
	}
}

func TestChroot(t *testing.T) {
	root := newFS(t, "secret x\nj/d/f inside\nj/up -> ..\nj/d/up2 -> ../..")
	for _, name := range []string{"..", "j/../..", "/.."} {
		if _, err := root.Chroot(name); err != billy.ErrCrossedBoundary {
			t.Errorf("Chroot(%q): %v", name, err)
		}
	}
	j, _ := root.Chroot("j")
	if j.Root() != "/j" {
		t.Errorf("root is %q", j.Root())
	}
	// A chroot in a chroot is bound by both.
	for _, name := range []string{"up", "d/up2"} {
		inner, err := j.Chroot(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inner.Stat("secret"); err != billy.ErrCrossedBoundary {
			t.Errorf("Stat in chroot %q: %v", name, err)
		}
		if err := util.WriteFile(inner, "new", nil, 0o644); err != billy.ErrCrossedBoundary {
			t.Errorf("Create in chroot %q: %v", name, err)
		}
	}
	// One that does not exist is made by what makes parents, and by nothing else.
	later, _ := root.Chroot("not/yet")
	if _, err := later.ReadDir(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadDir: %v", err)
	}
	if _, err := root.Stat("not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Chroot made its directory: %v", err)
	}
	if err := util.WriteFile(later, "a/b", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := read(root, "not/yet/a/b"); got != "x" {
		t.Error(got, err)
	}
	for name, op := range map[string]func() error{
		"rename out":  func() error { return j.Rename("d/f", "../f") },
		"rename in":   func() error { return j.Rename("../secret", "s") },
		"remove":      func() error { return j.Remove("../secret") },
		"mkdir":       func() error { return j.MkdirAll("up/new", 0o755) },
		"symlink":     func() error { return j.Symlink("x", "up/new") },
		"chmod":       func() error { return j.(billy.Change).Chmod("up/secret", 0) },
		"temp file":   func() error { _, err := j.TempFile("up", ""); return err },
		"lstat":       func() error { _, err := j.Lstat("../secret"); return err },
		"remove link": func() error { return j.Remove("up/secret") },
	} {
		if err := op(); err != billy.ErrCrossedBoundary {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory that is moved while a path is walked must not lead out of the
// root.
func TestMovedWhileWalking(t *testing.T) {
	s := newStore(t, 64<<20)
	root := New(s, nil)
	plant(t, root, "secret x\njail/a/b/up -> ../../secret\nelsewhere/")
	var jailInode *memstore.Inode
	jailInode, err := s.Root().Lookup(memstore.Root(), "jail")
	if err != nil {
		t.Fatal(err)
	}
	jail := NewAt(jailInode, nil)
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 500 {
			if err := root.Rename("jail/a/b", "elsewhere/b"); err != nil {
				t.Error(err)
			}
			if err := root.Rename("elsewhere/b", "jail/a/b"); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if _, err := jail.Stat("a/b/up"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("left the root: %v", err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestOpenFile(t *testing.T) {
	const (
		r, w, rw = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
		creat    = os.O_CREATE
		excl     = os.O_EXCL
		trunc    = os.O_TRUNC
		app      = os.O_APPEND
	)
	for _, c := range []struct {
		path     string
		flag     int
		err      error
		readErr  error
		writeErr error
		content  string // after writing "new"
	}{
		{"f", r, nil, nil, syscall.EBADF, "old text"},
		{"f", w, nil, syscall.EBADF, nil, "new text"},
		{"f", rw, nil, nil, nil, "new text"},
		{"f", rw | trunc, nil, io.EOF, nil, "new"},
		{"f", r | trunc, nil, io.EOF, syscall.EBADF, ""},
		{"f", w | app, nil, syscall.EBADF, nil, "old textnew"},
		{"f", rw | creat, nil, nil, nil, "new text"},
		{"f", rw | creat | excl, fs.ErrExist, nil, nil, ""},
		{"none", rw, fs.ErrNotExist, nil, nil, ""},
		{"none", rw | creat, nil, io.EOF, nil, "new"},
		{"none", rw | creat | excl, nil, io.EOF, nil, "new"},
		{"a/b/none", w | creat, nil, syscall.EBADF, nil, "new"},
		{"link", rw, nil, nil, nil, "new text"},
		{"link", rw | creat | excl, fs.ErrExist, nil, nil, ""},
		{"dangling", rw, fs.ErrNotExist, nil, nil, ""},
		{"dangling", rw | creat, nil, io.EOF, nil, "new"}, // makes the target
		{"dangling", rw | creat | excl, fs.ErrExist, nil, nil, ""},
		{"far/x", rw | creat, fs.ErrNotExist, nil, nil, ""}, // a link's parents are not made
		{"dir", r, syscall.EISDIR, nil, nil, ""},
		{"dir", rw | creat, syscall.EISDIR, nil, nil, ""},
		{"f/x", rw | creat, syscall.ENOTDIR, nil, nil, ""},
	} {
		f := newFS(t, "f old text\nlink -> f\ndangling -> target\nfar -> no/where\ndir/")
		name := fmt.Sprintf("%s %#x", c.path, c.flag)
		file, err := f.OpenFile(c.path, c.flag, 0o640)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
		if err != nil {
			var pe *os.PathError
			if file != nil || !errors.As(err, &pe) || pe.Path != c.path {
				t.Errorf("%s: %v, %v: want no file and a PathError", name, file, err)
			}
			continue
		}
		if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, c.readErr) {
			t.Errorf("%s: read: %v, want %v", name, err, c.readErr)
		}
		if _, err := file.Write([]byte("new")); !errors.Is(err, c.writeErr) {
			t.Errorf("%s: write: %v, want %v", name, err, c.writeErr)
		}
		if err := file.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		if got, err := read(f, c.path); got != c.content || err != nil {
			t.Errorf("%s: content %q, %v, want %q", name, got, err, c.content)
		}
	}
}

func TestModes(t *testing.T) {
	f := newFS(t, "")
	want := func(name string, mode os.FileMode) {
		t.Helper()
		fi, err := f.Lstat(name)
		if err != nil || fi.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", name, fi.Mode(), err, mode)
		}
	}
	util.WriteFile(f, "new/f", nil, 0o751)
	want("new/f", 0o751)
	want("new", os.ModeDir|0o755)
	f.Create("c")
	want("c", 0o666)
	f.MkdirAll("m/n", 0o2750|os.ModeSticky)
	want("m", os.ModeDir|os.ModeSticky|0o750)
	want("m/n", os.ModeDir|os.ModeSticky|0o750)
	f.Symlink("c", "l")
	want("l", os.ModeSymlink|0o777)
	if err := f.Chmod("l", 0o4|os.ModeSetuid); err != nil {
		t.Error(err)
	}
	want("c", os.ModeSetuid|0o4)
	want("l", os.ModeSymlink|0o777)
	tmp, err := f.TempFile("", "")
	if err != nil {
		t.Fatal(err)
	}
	want(tmp.Name(), 0o600)
	want("tmp", os.ModeDir|os.ModeSticky|0o777)
}

func TestChange(t *testing.T) {
	f := newFS(t, "f x\nl -> f")
	attr := func(name string) memstore.Attr {
		fi, err := f.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return fi.(*FileInfo).Attr()
	}
	for _, c := range []struct {
		op       func() error
		name     string
		uid, gid uint32
	}{
		{func() error { return f.Chown("l", 1, 2) }, "f", 1, 2},
		{func() error { return f.Lchown("l", 3, 4) }, "l", 3, 4},
		{func() error { return f.Chown("f", -1, 5) }, "f", 1, 5},
		{func() error { return f.Chown("f", 6, -1) }, "f", 6, 5},
	} {
		if err := c.op(); err != nil {
			t.Error(err)
		}
		if a := attr(c.name); a.UID != c.uid || a.GID != c.gid {
			t.Errorf("%s is of %d:%d, want %d:%d", c.name, a.UID, a.GID, c.uid, c.gid)
		}
	}
	if err := f.Chown("f", -2, 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("uid -2: %v", err)
	}
	at, mt := time.Unix(1, 2), time.Date(1969, 1, 1, 0, 0, 0, 3, time.UTC)
	if err := f.Chtimes("l", at, mt); err != nil {
		t.Fatal(err)
	}
	if a := attr("f"); a.Atime != at.UnixNano() || a.Mtime != mt.UnixNano() {
		t.Errorf("times %d %d", a.Atime, a.Mtime)
	}
	if err := f.Chtimes("f", time.Time{}, at); err != nil {
		t.Fatal(err)
	}
	if a := attr("f"); a.Atime != at.UnixNano() || a.Mtime != at.UnixNano() {
		t.Errorf("times %d %d after a zero time", a.Atime, a.Mtime)
	}
	if err := f.Chtimes("f", at, time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("year 2500: %v", err)
	}
}

func TestRename(t *testing.T) {
	for _, c := range []struct {
		from, to string
		err      error
	}{
		{"f", "new", nil},
		{"f", "no/such/dir/new", nil}, // parents are made
		{"f", "g", nil},               // replaced
		{"f", "f", nil},
		{"f", "link", nil}, // the link is replaced, not followed
		{"link", "new", nil},
		{"d", "new", nil},
		{"d", "empty", nil},
		{"f", "d", syscall.EISDIR},
		{"d", "f", syscall.ENOTDIR},
		{"empty", "d", syscall.ENOTEMPTY},
		{"d", "d/y", syscall.EINVAL},
		{"d", "d/x/y", syscall.ENOTDIR},
		{"none", "new", fs.ErrNotExist},
		{"none", "made/new", fs.ErrNotExist},
		{"f", "g/x", syscall.ENOTDIR},
		{"", "new", syscall.EBUSY},
		{"f", "/", syscall.EBUSY},
	} {
		f := newFS(t, "f F\ng G\nd/x X\nempty/\nlink -> f")
		before, _ := f.Lstat(c.from)
		err := f.Rename(c.from, c.to)
		if !errors.Is(err, c.err) {
			t.Errorf("%s to %s: %v, want %v", c.from, c.to, err, c.err)
		}
		if err != nil {
			var le *os.LinkError
			if !errors.As(err, &le) || le.Op != "rename" || le.Old != c.from || le.New != c.to {
				t.Errorf("%s to %s: %#v", c.from, c.to, err)
			}
			if _, err := f.Stat("made"); err == nil {
				t.Errorf("%s to %s: parents were made", c.from, c.to)
			}
			continue
		}
		after, err := f.Lstat(c.to)
		if err != nil || after.(*FileInfo).Attr().Ino != before.(*FileInfo).Attr().Ino {
			t.Errorf("%s to %s: another file is there, %v", c.from, c.to, err)
		}
		if _, err := f.Lstat(c.from); c.from != c.to && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", c.from, err)
		}
	}
}

func TestRemove(t *testing.T) {
	f := newFS(t, "f F\nd/x X\nempty/\nlink -> f\ndirlink -> d")
	for _, c := range []struct {
		name string
		err  error
	}{
		{"none", fs.ErrNotExist},
		{"d", syscall.ENOTEMPTY},
		{"f/x", syscall.ENOTDIR},
		{"", syscall.EBUSY},
		{".", syscall.EBUSY},
		{"link", nil},
		{"dirlink", nil},
		{"f", nil}, // was not removed with the link
		{"empty", nil},
		{"d/x", nil},
		{"d", nil},
		{"d", fs.ErrNotExist},
	} {
		if err := f.Remove(c.name); !errors.Is(err, c.err) {
			t.Errorf("%q: %v, want %v", c.name, err, c.err)
		}
	}
}

func TestReadDir(t *testing.T) {
	f := newFS(t, "d/b/\nd/a x\nd/c -> a\nlink -> d")
	for _, name := range []string{"d", "link"} {
		infos, err := f.ReadDir(name)
		var got []string
		for _, fi := range infos {
			got = append(got, fi.Name()+" "+fi.Mode().String())
		}
		want := []string{"a -rw-r--r--", "b drwxr-xr-x", "c Lrwxrwxrwx"}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if infos, err := f.ReadDir("d/b"); infos == nil || len(infos) != 0 || err != nil {
		t.Errorf("empty: %v, %v", infos, err)
	}
	if _, err := f.ReadDir("d/a"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	for n := range 1000 {
		plant(t, f, fmt.Sprintf("many/%03d x", n))
	}
	infos, err := f.ReadDir("many")
	if len(infos) != 1000 || err != nil {
		t.Fatalf("%d entries, %v", len(infos), err)
	}
	for n, fi := range infos {
		if fi.Name() != fmt.Sprintf("%03d", n) {
			t.Fatalf("entry %d is %s", n, fi.Name())
		}
	}
}

func TestSymlink(t *testing.T) {
	f := newFS(t, "f x")
	for _, target := range []string{"f", "/abs", "../up", "a/", strings.Repeat("x/", 2000)} {
		if err := f.Symlink(target, "p/l"); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Readlink("p/l"); got != target || err != nil {
			t.Errorf("%.20q became %.20q, %v", target, got, err)
		}
		f.Remove("p/l")
	}
	if err := f.Symlink("x", "f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if _, err := f.Readlink("f"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("of a file: %v", err)
	}
	if err := f.Symlink(strings.Repeat("x", memstore.MaxSymlink+1), "l"); !errors.Is(err, syscall.ENAMETOOLONG) && !errors.Is(err, syscall.EINVAL) {
		t.Errorf("too long: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	s := newStore(t, 64<<20)
	root := New(s, nil)
	user := New(s, &memstore.Caller{Cred: memstore.Cred{UID: 1000, GID: 1000}})
	plant(t, root, "readable x\nd/f x")
	util.WriteFile(root, "secret", nil, 0o600)
	util.WriteFile(user, "mine", []byte("x"), 0o444)
	for name, op := range map[string]func() error{
		"read":          func() error { _, err := user.Open("secret"); return err },
		"write":         func() error { _, err := user.OpenFile("readable", os.O_RDWR, 0); return err },
		"write own":     func() error { _, err := user.OpenFile("mine", os.O_RDWR, 0); return err },
		"truncate":      func() error { _, err := user.OpenFile("readable", os.O_TRUNC, 0); return err },
		"create":        func() error { _, err := user.Create("d/g"); return err },
		"remove":        func() error { return user.Remove("d/f") },
		"remove sticky": func() error { return user.Remove("readable") },
		"rename":        func() error { return user.Rename("d/f", "f") },
		"mkdir":         func() error { return user.MkdirAll("d/e/f", 0o755) },
		"chmod":         func() error { return user.Chmod("readable", 0o777) },
		"chown":         func() error { return user.Chown("mine", 0, 0) },
		"chtimes":       func() error { return user.Chtimes("readable", time.Unix(0, 0), time.Unix(0, 0)) },
	} {
		if err := op(); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A file that is made may be written whatever its mode.
	file, err := user.OpenFile("ro", os.O_RDWR|os.O_CREATE, 0o444)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	file.Close()
	fi, err := root.Stat("ro")
	if a := fi.(*FileInfo).Attr(); a.UID != 1000 || a.GID != 1000 || err != nil {
		t.Error(a, err)
	}
	// So may one of NewFile by its owner, and by nobody else.
	i, err := s.Root().Lookup(memstore.Root(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[uint32]error{1000: nil, 1001: fs.ErrPermission} {
		c := &memstore.Caller{Cred: memstore.Cred{UID: uid, GID: 5}}
		if _, err := NewFile(i, c, "mine", os.O_RDWR).Write([]byte("y")); !errors.Is(err, want) {
			t.Errorf("uid %d: %v", uid, err)
		}
	}
	if err := NewFile(i, memstore.Root(), "mine", os.O_RDWR).Lock(); !errors.Is(err, syscall.ENOTSUP) {
		t.Errorf("lock without an open: %v", err)
	}
}

func TestNewAtFile(t *testing.T) {
	s := newStore(t, 64<<20)
	plant(t, New(s, nil), "f text\nl -> f")
	for name, want := range map[string]error{"f": nil, "l": syscall.ELOOP} {
		i, err := s.Root().Lookup(memstore.Root(), name)
		if err != nil {
			t.Fatal(err)
		}
		f := NewAt(i, nil)
		if _, err := f.Open(""); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.Open("x"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s/x: %v", name, err)
		}
	}
}

func TestSpecialFiles(t *testing.T) {
	s := newStore(t, 64<<20)
	for typ, mode := range map[memstore.Type]os.FileMode{
		memstore.TypeFIFO:   os.ModeNamedPipe,
		memstore.TypeSocket: os.ModeSocket,
		memstore.TypeBlock:  os.ModeDevice,
		memstore.TypeChar:   os.ModeDevice | os.ModeCharDevice,
	} {
		name := fmt.Sprint(typ)
		if _, err := s.Root().Create(memstore.Root(), name, &memstore.Create{Type: typ, Major: 3, Minor: 7}); err != nil {
			t.Fatal(err)
		}
		f := New(s, nil)
		if _, err := f.Open(name); !errors.Is(err, syscall.ENXIO) {
			t.Errorf("open %v: %v", mode, err)
		}
		if fi, err := f.Stat(name); err != nil || fi.Mode().Type() != mode {
			t.Errorf("%v, %v, want %v", fi.Mode(), err, mode)
		}
	}
}

func TestTempFile(t *testing.T) {
	f := newFS(t, "")
	var mu sync.Mutex
	names := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				file, err := f.TempFile("a/tmp", "pre")
				if err != nil {
					t.Error(err)
					return
				}
				file.Close()
				mu.Lock()
				names[file.Name()] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(names) != 800 {
		t.Errorf("%d names for 800 files", len(names))
	}
	for name := range names {
		if !strings.HasPrefix(name, f.Join("a/tmp/pre")) {
			t.Fatal(name)
		}
		if err := f.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.TempFile("", "a/b"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a slash in the prefix: %v", err)
	}
}

// Concurrent makers and removers of the same names get answers that some order
// explains.
func TestConcurrentTree(t *testing.T) {
	f := newFS(t, "")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for k := range 100 {
				dir := fmt.Sprintf("d%d/e%d", k%3, k%2)
				name := f.Join(dir, "f")
				for op, err := range map[string]error{
					"mkdir":  f.MkdirAll(dir, 0o755),
					"write":  util.WriteFile(f, name, []byte("x"), 0o644),
					"rename": f.Rename(name, f.Join(dir, fmt.Sprint(n))),
					"list":   func() error { _, err := f.ReadDir(dir); return err }(),
					"remove": f.Remove(f.Join(dir, fmt.Sprint((n+1)%8))),
				} {
					missing := op == "rename" || op == "remove"
					if err != nil && !(missing && errors.Is(err, fs.ErrNotExist)) {
						t.Errorf("%s: %v", op, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestErrorNumbers(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, id := range v.Names {
				if strings.HasPrefix(id.Name, "Err") {
					named++
				}
			}
		}
		return true
	})
	if named != len(errnos) {
		t.Errorf("the store has %d errors, %d have a number", named, len(errnos))
	}
	for e, n := range errnos {
		if got := Errno(fmt.Errorf("wrapped: %w", e)); got != n {
			t.Errorf("%v became %v, want %v", e, got, n)
		}
	}
	if errors.Is(pathError("", "", nil), io.EOF) || linkError("", "", "", nil) != nil {
		t.Error("no error became one")
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range [][3]string{
		{"..", "../..", "a/b/secret"},
		{"/..", "/a/..", "a/b"},
		{"../secret", "a", "d/b"},
		{"d/b", "../a", "a/../a"},
		{"d/../d/./b", "/../secret", "a\\..\\b"},
		{"", ".", "a//b/"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, target1, target2, name string) {
		s, err := memstore.New(memstore.Config{Name: "fuzz", Size: 1 << 20, RootMode: 0o755})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		root := New(s, nil)
		plant(t, root, "secret x\njail/d/\njail/f y")
		jail, _ := root.Chroot("jail")
		jail.Symlink(target1, "a")
		jail.Symlink(target2, "d/b")
		if got, _ := read(jail, name); got == "x" {
			t.Fatalf("%q with a -> %q, d/b -> %q left the root", name, target1, target2)
		}
		util.WriteFile(jail, name, []byte("z"), 0o644)
		jail.MkdirAll(name+"/m", 0o755)
		jail.Rename("f", name)
		jail.Remove(name)
		infos, err := root.ReadDir("/")
		if len(infos) != 2 || err != nil {
			t.Fatalf("the jail's writing left the root: %v, %v", infos, err)
		}
		if got, err := read(root, "secret"); got != "x" {
			t.Fatalf("secret is %q, %v", got, err)
		}
	})
}
