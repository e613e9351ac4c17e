//go:build linux

package posixtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var linkTests = []test{
	{"HardLinks", 0, hardLinks},
	{"Symlinks", 0, symlinks},
}

var renameTests = []test{
	{"Rename", 0, rename},
	{"RenameFolders", 0, renameFolders},
	{"RenameFlags", RenameFlags, renameFlags},
}

var dirTests = []test{
	{"FolderLinks", 0, folderLinks},
	{"Readdir", 0, readdir},
	{"ReaddirSeek", 0, readdirSeek},
	{"ReaddirWhileChanging", 0, readdirWhileChanging},
	{"ReaddirConcurrent", 0, readdirConcurrent},
	{"LargeFolder", 0, largeFolder},
}

func hardLinks(e *env) {
	e.write("a", "one")
	e.mkdir("dir")
	e.ok(os.Link(e.p("a"), e.p("b")))
	e.ok(os.Link(e.p("b"), e.p("dir/c")))
	for _, name := range []string{"a", "b", "dir/c"} {
		st := e.stat(name)
		e.equal(int(st.Nlink), 3, "links of", name)
		e.equal(st.Ino, e.stat("a").Ino, "inode of", name)
	}
	e.write("b", "two!")
	e.equal(e.read("dir/c"), "two!")
	e.ok(os.Remove(e.p("a")))
	e.equal(int(e.stat("b").Nlink), 2, "links after unlink")
	// Renaming one name to another of the same file does nothing.
	e.ok(unix.Rename(e.p("b"), e.p("dir/c")))
	e.equal(e.exists("b") && e.exists("dir/c"), true, "both names after rename")
	e.ok(os.Remove(e.p("b")))
	e.equal(e.read("dir/c"), "two!")
	e.equal(int(e.stat("dir/c").Nlink), 1, "links of the last name")

	// link(2) does not follow: the symlink itself gets a second name.
	e.ok(os.Symlink("dir/c", e.p("s")))
	e.ok(os.Link(e.p("s"), e.p("s2")))
	e.equal(int(e.stat("s").Nlink), 2, "links of a symlink")
	e.ok(unix.Linkat(unix.AT_FDCWD, e.p("s"), unix.AT_FDCWD, e.p("followed"), unix.AT_SYMLINK_FOLLOW))
	e.equal(e.stat("followed").Ino, e.stat("dir/c").Ino, "AT_SYMLINK_FOLLOW")

	const many = 300
	for i := range many {
		e.ok(os.Link(e.p("dir/c"), e.p(fmt.Sprint("many", i))))
	}
	e.equal(int(e.stat("dir/c").Nlink), many+2, "links")
}

func symlinks(e *env) {
	e.mkdir("dir")
	e.write("dir/file", "content")
	for _, target := range []string{
		"dir/file", "./dir/../dir/file", e.p("dir/file"), "nowhere", "..", "/", " ", "a\nb\xff",
		strings.Repeat("x/", 500), strings.Repeat("t", 4095),
	} {
		e.ok(os.Symlink(target, e.p("link")))
		got, err := os.Readlink(e.p("link"))
		e.ok(err)
		e.equal(got, target, "readlink")
		st := e.stat("link")
		e.equal(st.Size, int64(len(target)), "size of a symlink")
		e.equal(st.Mode&unix.S_IFMT, uint32(unix.S_IFLNK), "type")
		e.ok(os.Remove(e.p("link")))
	}

	e.ok(os.Symlink("dir", e.p("todir")))
	e.equal(e.read("todir/file"), "content")
	e.ok(os.Symlink("../dir/file", e.p("dir/back")))
	e.equal(e.read("todir/back"), "content")
	e.ok(os.Symlink(e.p("dir/file"), e.p("absolute")))
	e.equal(e.read("absolute"), "content")
	e.ok(os.Remove(e.p("absolute")))
	e.equal(e.exists("dir/file"), true, "unlink of a symlink leaves its target")

	// A chain of 40 links is followed, one of 41 is not.
	e.write("chain0", "end")
	for i := range 41 {
		e.ok(os.Symlink(fmt.Sprint("chain", i), e.p(fmt.Sprint("chain", i+1))))
	}
	e.equal(e.read("chain40"), "end")
	e.fails(unix.ELOOP, try(e.p("chain41"), unix.O_RDONLY, 0), "41 links")

	b := make([]byte, 4)
	n, err := unix.Readlink(e.p("todir"), b[:2])
	e.ok(err)
	e.equal(string(b[:n]), "di", "readlink into a short buffer is cut")
}

func rename(e *env) {
	for _, c := range []struct{ what, setup, from, to, after string }{
		{"to a new name", "f=1", "f", "g", "g=1"},
		{"to itself", "f=1", "f", "f", "f=1"},
		{"over a file", "f=1 g=2", "f", "g", "g=1"},
		{"over a symlink", "f=1 l->f", "f", "l", "l=1"},
		{"a symlink", "l->x", "l", "m", "m->x"},
		{"a symlink over a file", "f=1 l->x", "l", "f", "f->x"},
		{"into a folder", "d/ f=1", "f", "d/f", "d/ d/f=1"},
		{"out of a folder", "d/ d/f=1", "d/f", "f", "d/ f=1"},
		{"over a file in another folder", "d/ d/f=1 f=2", "d/f", "f", "d/ f=1"},
		{"an empty folder", "d/", "d", "e", "e/"},
		{"an empty folder over an empty one", "d/ e/", "d", "e", "e/"},
		{"a full folder over an empty one", "d/ d/f=1 e/", "d", "e", "e/ e/f=1"},
		{"a folder into another", "d/ d/f=1 e/", "d", "e/d", "e/ e/d/ e/d/f=1"},
		{"a folder out of another", "d/ d/e/ d/e/f=1", "d/e", "e", "d/ e/ e/f=1"},
		{"a folder with a trailing slash", "d/", "d/", "e/", "e/"},
		{"through ..", "d/ f=1", "d/../f", "d/../g", "d/ g=1"},
	} {
		for _, w := range strings.Fields(c.setup) {
			e.plant(w)
		}
		src := strings.TrimSuffix(c.from, "/")
		ino := e.stat(src).Ino
		e.ok(unix.Rename(e.p(c.from), e.p(c.to)), c.what)
		e.equal(e.stat(strings.TrimSuffix(c.to, "/")).Ino, ino, "inode:", c.what)
		e.equal(e.tree(), c.after, c.what)
		e.clear()
	}
}

// plant makes "name=content", "name->target" or "folder/".
func (e *env) plant(word string) {
	e.Helper()
	if name, target, ok := strings.Cut(word, "->"); ok {
		e.ok(os.Symlink(target, e.p(name)))
	} else if name, content, ok := strings.Cut(word, "="); ok {
		e.write(name, content)
	} else {
		e.ok(os.Mkdir(e.p(strings.TrimSuffix(word, "/")), 0755))
	}
}

// tree is what plant made, as it is now, sorted.
func (e *env) tree() string {
	e.Helper()
	var words []string
	e.ok(fs.WalkDir(os.DirFS(e.dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
		case d.IsDir():
			words = append(words, path+"/")
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(e.p(path))
			if err != nil {
				return err
			}
			words = append(words, path+"->"+target)
		default:
			words = append(words, path+"="+e.read(path))
		}
		return nil
	}))
	sort.Strings(words)
	return strings.Join(words, " ")
}

// clear empties the test's folder.
func (e *env) clear() {
	e.Helper()
	for _, name := range e.names(".") {
		e.ok(os.RemoveAll(e.p(name)))
	}
}

func renameFolders(e *env) {
	e.mkdir("from/dir/deep", "to")
	fromLinks, toLinks := e.stat("from").Nlink, e.stat("to").Nlink
	cwd := e.open("from/dir/deep", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	e.ok(unix.Rename(e.p("from/dir"), e.p("to/dir")))
	if !e.local() {
		e.ok(try(e.p("from"), unix.O_RDONLY, 0)) // revalidates
		e.ok(try(e.p("to"), unix.O_RDONLY, 0))
	}
	e.equal(e.stat("from").Nlink, fromLinks-1, "links of the old parent")
	e.equal(e.stat("to").Nlink, toLinks+1, "links of the new parent")
	e.equal(e.stat("to/dir/..").Ino, e.stat("to").Ino, "..")
	var st unix.Stat_t
	e.ok(unix.Fstatat(cwd, "../..", &st, 0), "../.. from within the moved folder")
	e.equal(st.Ino, e.stat("to").Ino, "../.. from within the moved folder")
	e.fails(unix.EINVAL, unix.Rename(e.p("to"), e.p("to/dir/deep/x")), "into its own subtree after the move")

	// A writer's folder may be moved away below it.
	fd, err := unix.Openat(cwd, "file", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0644)
	e.ok(err)
	e.ok(unix.Close(fd))
	e.equal(e.exists("to/dir/deep/file"), true)
}

func renameFlags(e *env) {
	at := unix.AT_FDCWD
	for _, c := range []struct {
		what, setup, from, to string
		flags                 uint
		want                  unix.Errno
		after                 string
	}{
		{"NOREPLACE to a new name", "f=1", "f", "g", unix.RENAME_NOREPLACE, 0, "g=1"},
		{"NOREPLACE over a file", "f=1 g=2", "f", "g", unix.RENAME_NOREPLACE, unix.EEXIST, "f=1 g=2"},
		{"NOREPLACE over a folder", "d/ e/", "d", "e", unix.RENAME_NOREPLACE, unix.EEXIST, "d/ e/"},
		{"NOREPLACE over a dangling symlink", "f=1 l->x", "f", "l", unix.RENAME_NOREPLACE, unix.EEXIST, "f=1 l->x"},
		{"EXCHANGE of files", "f=1 g=2", "f", "g", unix.RENAME_EXCHANGE, 0, "f=2 g=1"},
		{"EXCHANGE of file and folder", "f=1 d/ d/x=2", "f", "d", unix.RENAME_EXCHANGE, 0, "d=1 f/ f/x=2"},
		{"EXCHANGE of full folders", "d/ d/x=1 e/ e/y=2", "d", "e", unix.RENAME_EXCHANGE, 0, "d/ d/y=2 e/ e/x=1"},
		{"EXCHANGE across folders", "d/ d/f=1 f=2", "d/f", "f", unix.RENAME_EXCHANGE, 0, "d/ d/f=2 f=1"},
		{"EXCHANGE with nothing", "f=1", "f", "g", unix.RENAME_EXCHANGE, unix.ENOENT, "f=1"},
		{"EXCHANGE with its parent", "d/ d/f=1", "d/f", "d", unix.RENAME_EXCHANGE, unix.EINVAL, "d/ d/f=1"},
		{"EXCHANGE with its child", "d/ d/e/", "d", "d/e", unix.RENAME_EXCHANGE, unix.EINVAL, "d/ d/e/"},
		{"both flags", "f=1 g=2", "f", "g", unix.RENAME_EXCHANGE | unix.RENAME_NOREPLACE, unix.EINVAL, "f=1 g=2"},
	} {
		for _, w := range strings.Fields(c.setup) {
			e.plant(w)
		}
		if err := unix.Renameat2(at, e.p(c.from), at, e.p(c.to), c.flags); c.want == 0 {
			e.ok(err, c.what)
		} else {
			e.fails(c.want, err, c.what)
		}
		e.equal(e.tree(), c.after, c.what)
		e.clear()
	}
}

// folderLinks: a folder's link count is 2 and one for each folder in it.
func folderLinks(e *env) {
	want := func(n int, when string) {
		e.Helper()
		if !e.local() {
			e.ok(try(e.dir, unix.O_RDONLY, 0)) // revalidates
		}
		e.equal(int(e.stat(".").Nlink), n, when)
	}
	want(2, "empty")
	e.mkdir("a", "b")
	want(4, "after two mkdir")
	e.write("f", "")
	e.ok(os.Symlink("a", e.p("l")))
	want(4, "after a file and a symlink")
	e.ok(os.Remove(e.p("a")))
	want(3, "after rmdir")
	e.mkdir("c")
	e.ok(unix.Rename(e.p("b"), e.p("c")))
	want(3, "after a folder replaced another")
	e.ok(unix.Rename(e.p("f"), e.p("l")))
	want(3, "after a file replaced a symlink")
}

// A dirent is what getdents64(2) tells of a name.
type dirent struct {
	ino    uint64
	cookie int64 // where the next one starts
	kind   byte
	name   string
}

// next reads the next entries of a folder into a buffer of size bytes; none at
// its end.
func next(fd, size int) ([]dirent, error) {
	b := make([]byte, size)
	n, err := unix.Getdents(fd, b)
	if err != nil {
		return nil, err
	}
	var list []dirent
	for b = b[:n]; len(b) > 0; {
		reclen := binary.NativeEndian.Uint16(b[16:])
		name := string(b[19:reclen])
		list = append(list, dirent{
			ino:    binary.NativeEndian.Uint64(b),
			cookie: int64(binary.NativeEndian.Uint64(b[8:])),
			kind:   b[18],
			name:   name[:strings.IndexByte(name, 0)],
		})
		b = b[reclen:]
	}
	return list, nil
}

// list reads a folder from where fd stands to its end, size bytes at a time,
// without "." and "..".
func list(fd, size int) ([]dirent, error) {
	var all []dirent
	for {
		part, err := next(fd, size)
		if err != nil || len(part) == 0 {
			return all, err
		}
		for _, d := range part {
			if d.name != "." && d.name != ".." {
				all = append(all, d)
			}
		}
	}
}

// names is the sorted content of a folder. It leaves out what an NFS client
// keeps for itself.
func (e *env) names(dir string) []string {
	e.Helper()
	fd, err := unix.Open(e.p(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	e.ok(err)
	defer unix.Close(fd)
	all, err := list(fd, 8192)
	e.ok(err)
	var names []string
	for _, d := range all {
		if e.local() || !strings.HasPrefix(d.name, ".nfs") {
			names = append(names, d.name)
		}
	}
	sort.Strings(names)
	return names
}

func readdir(e *env) {
	e.mkdir("dir")
	e.write("file", "")
	e.ok(os.Symlink("x", e.p("link")))
	e.ok(unix.Mkfifo(e.p("fifo"), 0644))
	fd := e.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	kinds := map[string]byte{".": unix.DT_DIR, "..": unix.DT_DIR, "dir": unix.DT_DIR, "file": unix.DT_REG, "link": unix.DT_LNK, "fifo": unix.DT_FIFO}
	for {
		part, err := next(fd, 300)
		e.ok(err)
		if len(part) == 0 {
			break
		}
		for _, d := range part {
			want, ok := kinds[d.name]
			if !ok {
				e.Fatalf("%q is listed and does not exist, or twice", d.name)
			}
			delete(kinds, d.name)
			if d.kind != want && (e.local() || d.kind != unix.DT_UNKNOWN) {
				e.Errorf("type of %s: got %d, want %d", d.name, d.kind, want)
			}
			if d.name != ".." {
				e.equal(d.ino, e.stat(d.name).Ino, "inode of", d.name)
			}
		}
	}
	if len(kinds) != 0 {
		e.Errorf("not listed: %v", kinds)
	}
	_, err := next(fd, 8)
	if err != nil { // at the end there may be nothing to fit
		e.fails(unix.EINVAL, err, "getdents into a buffer too small")
	}
	_, err = unix.Seek(fd, 0, unix.SEEK_SET)
	e.ok(err)
	e.write("late", "")
	again, err := list(fd, 4096)
	e.ok(err)
	e.equal(len(again), 5, "names after rewinding")
}

// readdirSeek: the place of an entry can be kept and gone back to.
func readdirSeek(e *env) {
	for i := range 100 {
		e.write(fmt.Sprint("file", i), "")
	}
	fd := e.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	all, err := list(fd, 500)
	e.ok(err)
	e.equal(len(all), 100, "names")
	for _, i := range []int{0, 1, 50, 97, 98} {
		_, err := unix.Seek(fd, all[i].cookie, unix.SEEK_SET)
		e.ok(err)
		rest, err := list(fd, 500)
		e.ok(err)
		if len(rest) == 0 || rest[0].name == "." {
			e.Errorf("nothing after entry %d", i)
			continue
		}
		e.equal(rest[0].name, all[i+1].name, "name after entry", i)
		e.equal(len(rest), 99-i, "names after entry", i)
	}
}

// readdirWhileChanging: between the parts of a listing names come and go. One
// that was there all the time is listed once.
func readdirWhileChanging(e *env) {
	const stay = 150
	for i := range stay {
		e.write(fmt.Sprint("stay", i), "")
		e.write(fmt.Sprint("go", i), "")
	}
	for _, size := range []int{280, 1024, 4096} {
		fd := e.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		seen := map[string]int{}
		for i := 0; ; i++ {
			part, err := next(fd, size)
			e.ok(err)
			if len(part) == 0 {
				break
			}
			for _, d := range part {
				seen[d.name]++
			}
			if i < stay {
				e.ok(os.Remove(e.p(fmt.Sprint("go", i))))
				e.write(fmt.Sprint("come", i), "")
				e.ok(unix.Rename(e.p(fmt.Sprint("come", i)), e.p(fmt.Sprint("go", i))))
			}
		}
		for i := range stay {
			e.equal(seen[fmt.Sprint("stay", i)], 1, "times that stay", i, "was listed in parts of", size)
		}
	}
}

func readdirConcurrent(e *env) {
	const stay = 200
	for i := range stay {
		e.write(fmt.Sprint("stay", i), "")
	}
	var done atomic.Bool
	changer := e.task(nil)
	changer.start(func() error {
		for i := 0; !done.Load(); i++ {
			name := e.p(fmt.Sprint("flux", i%50))
			if err := try(name, unix.O_WRONLY|unix.O_CREAT, 0644); err != nil {
				return err
			}
			if i%3 == 0 {
				if err := unix.Rename(name, e.p(fmt.Sprint("moved", i%20))); err != nil {
					return err
				}
			} else if err := unix.Unlink(name); err != nil {
				return err
			}
		}
		return nil
	})
	for range 20 {
		fd, err := unix.Open(e.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		e.ok(err)
		all, err := list(fd, 1024)
		unix.Close(fd)
		e.ok(err)
		seen := map[string]int{}
		for _, d := range all {
			seen[d.name]++
		}
		for i := range stay {
			e.equal(seen[fmt.Sprint("stay", i)], 1, "times that stay", i, "was listed")
		}
	}
	done.Store(true)
	e.ok(changer.wait())
}

func largeFolder(e *env) {
	const n = 5000
	name := func(i int) string { return e.p("entry-" + strconv.Itoa(i)) }
	for i := range n {
		e.ok(try(name(i), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0644))
	}
	e.equal(len(e.names(".")), n, "names")
	for i := 0; i < n; i += 7 {
		var st unix.Stat_t
		e.ok(unix.Lstat(name(i), &st))
	}
	for i := 0; i < n; i += 2 {
		e.ok(unix.Unlink(name(i)))
	}
	for i, got := range e.names(".") {
		if i == n/2 || !strings.HasPrefix(got, "entry-") {
			e.Fatalf("unexpected %q", got)
		}
	}
	e.equal(len(e.names(".")), n/2, "names after every second was removed")

	// A program that lists and removes as it goes, as rm -r does, leaves nothing.
	fd := e.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for {
		part, err := next(fd, 2048)
		e.ok(err)
		if len(part) == 0 {
			break
		}
		for _, d := range part {
			if d.name == "." || d.name == ".." {
				continue
			}
			if err := unix.Unlink(e.p(d.name)); err != nil && !errors.Is(err, unix.ENOENT) {
				e.Fatal(err)
			}
		}
	}
	e.equal(len(e.names(".")), 0, "names left")
}
