//go:build linux

package posixtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Feature is a set of abilities that a mount may lack.
type Feature uint

const (
	Root        Feature = 1 << iota // the caller is uid 0 and the file system believes it
	Local                           // one kernel sees every change: no silly renames, no attribute cache
	Locks                           // fcntl, open file description and flock locks
	Xattr                           // extended attributes in the user namespace
	HoleSearch                      // SEEK_HOLE and SEEK_DATA find holes
	Fallocate                       // fallocate: preallocation and punched holes
	KeepSize                        // fallocate takes space behind the end of a file
	Tmpfile                         // O_TMPFILE
	RenameFlags                     // renameat2 with RENAME_NOREPLACE and RENAME_EXCHANGE
	DirectIO                        // O_DIRECT
	BirthTime                       // statx reports STATX_BTIME

	// NFS3 is what a Linux NFSv3 client cannot offer, whatever the server does.
	NFS3 = Local | Xattr | HoleSearch | Fallocate | KeepSize | Tmpfile | RenameFlags | BirthTime
	// NFS40, NFS41 and NFS42 are the same of versions 4.0, 4.1, and 4.2, which has
	// added the operations for what is missing there.
	NFS40 = NFS3
	NFS41 = NFS3
	NFS42 = Local | KeepSize | Tmpfile | RenameFlags | BirthTime
	// CIFS is the same of Linux's SMB client, where everybody is the user who mounted.
	CIFS = NFS3 | Root
)

var featureNames = []struct {
	name string
	f    Feature
}{
	{"root", Root}, {"local", Local}, {"locks", Locks}, {"xattr", Xattr},
	{"holes", HoleSearch}, {"fallocate", Fallocate}, {"keepsize", KeepSize}, {"tmpfile", Tmpfile},
	{"renameflags", RenameFlags}, {"direct", DirectIO}, {"btime", BirthTime},
	{"nfs3", NFS3}, {"nfs4.0", NFS40}, {"nfs4.1", NFS41}, {"nfs4.2", NFS42}, {"cifs", CIFS},
}

// ParseFeatures reads a comma-separated list of features, such as "nfs3,root".
func ParseFeatures(list string) (Feature, error) {
	var f Feature
next:
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		for _, n := range featureNames {
			if n.name == word {
				f |= n.f
				continue next
			}
		}
		return 0, fmt.Errorf("posixtest: unknown feature %q", word)
	}
	return f, nil
}

func (f Feature) String() string {
	var names []string
	for _, n := range featureNames {
		if f&n.f == n.f && !strings.HasPrefix(n.name, "nfs") && n.name != "cifs" {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// A test is one part of the suite. It runs in a fresh folder of mode 0755.
type test struct {
	name  string
	needs Feature
	run   func(*env)
}

// Run runs the suite in a new folder below dir and removes it again. The cases
// that need one of the features in lacks are skipped.
func Run(t *testing.T, dir string, lacks Feature) {
	if os.Geteuid() != 0 && lacks&Root == 0 {
		skip(t, "not root: the cases with other users do not run")
		lacks |= Root
	}
	top, err := os.MkdirTemp(dir, "posixtest-")
	if err == nil {
		err = os.Chmod(top, 0755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Errorf("cannot empty the folder again: %v", err)
		}
	})
	if lacks&Root == 0 {
		if err := bob.do(func() error { return try(top, unix.O_RDONLY|unix.O_DIRECTORY, 0) }); err != nil {
			t.Fatalf("other users cannot reach %s: %v", top, err)
		}
	}
	for _, group := range [][]test{openTests, errorTests, permTests, linkTests, renameTests, dirTests, dataTests, attrTests, lockTests} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				if miss := c.needs & lacks; miss != 0 {
					t.Skipf("the mount has no %v", miss)
				}
				e := &env{T: t, dir: filepath.Join(top, c.name), lacks: lacks}
				e.ok(os.Mkdir(e.dir, 0755))
				e.ok(os.Chmod(e.dir, 0755))
				c.run(e)
			})
		}
	}
}

// skip notes that something was left out that no feature accounts for.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("STRICT") == "1" {
		t.Fatalf("STRICT=1: %s", why)
	}
	t.Log(why)
}

// env is what a test works with: its folder and short forms of the usual calls.
// Names are relative to the folder.
type env struct {
	*testing.T
	dir   string
	lacks Feature
}

// local reports whether the mount is one kernel's own (see Local).
func (e *env) local() bool { return e.lacks&Local == 0 }

// p is the path of a name in the test's folder. It keeps what filepath.Join
// would clean away: a trailing slash, "." and "..".
func (e *env) p(name string) string { return e.dir + "/" + name }

func (e *env) ok(err error, what ...any) {
	e.Helper()
	if err != nil {
		e.Fatal(append(what, err)...)
	}
}

func (e *env) fails(want unix.Errno, err error, what ...any) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Error(append(what, fmt.Sprintf("got %v, want %v", errName(err), errName(want)))...)
	}
}

func (e *env) equal(got, want any, what ...any) {
	e.Helper()
	if got != want {
		e.Error(append(what, fmt.Sprintf("got %v, want %v", got, want))...)
	}
}

// errName is the symbol of an errno, or the error itself.
func errName(err error) string {
	var no unix.Errno
	if errors.As(err, &no) {
		return unix.ErrnoName(no)
	}
	if err == nil {
		return "success"
	}
	return err.Error()
}

// open opens a file until the test ends.
func (e *env) open(name string, flags int, mode uint32) int {
	e.Helper()
	fd, err := unix.Open(e.p(name), flags|unix.O_CLOEXEC, mode)
	e.ok(err, "open", name)
	e.Cleanup(func() { unix.Close(fd) })
	return fd
}

// try opens and closes a file and reports how the open went.
func try(path string, flags int, mode uint32) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func (e *env) write(name, data string) {
	e.Helper()
	e.ok(os.WriteFile(e.p(name), []byte(data), 0644))
}

func (e *env) read(name string) string {
	e.Helper()
	b, err := os.ReadFile(e.p(name))
	e.ok(err)
	return string(b)
}

func (e *env) mkdir(names ...string) {
	e.Helper()
	for _, n := range names {
		e.ok(os.MkdirAll(e.p(n), 0755))
	}
}

// stat is lstat(2) of a name.
func (e *env) stat(name string) unix.Stat_t {
	e.Helper()
	var st unix.Stat_t
	e.ok(unix.Lstat(e.p(name), &st), "lstat", name)
	return st
}

func (e *env) fstat(fd int) unix.Stat_t {
	e.Helper()
	var st unix.Stat_t
	e.ok(unix.Fstat(fd, &st), "fstat")
	return st
}

func (e *env) exists(name string) bool {
	_, err := os.Lstat(e.p(name))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		e.Error(err)
	}
	return err == nil
}

// tick waits until a time stamp taken now differs from one taken before. The
// kernel's stamps move with its clock interrupt, every 1 to 10 ms.
func tick() {
	var before, now unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &before)
	for now = before; now == before; {
		time.Sleep(time.Millisecond)
		unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now)
	}
}
