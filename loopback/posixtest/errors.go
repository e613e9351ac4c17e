//go:build linux

package posixtest

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var errorTests = []test{
	{"Errors", 0, errorTable},
	{"Names", 0, names},
	{"LongNames", 0, longNames},
	{"DeepPath", 0, deepPath},
}

// errorTable: what each call answers when it cannot be done. The names stand
// for what their name says; "full" is a folder that holds "x".
func errorTable(e *env) {
	e.write("file", "")
	e.mkdir("dir", "full", "full/x")
	e.ok(os.Symlink("file", e.p("tofile")))
	e.ok(os.Symlink("dir", e.p("todir")))
	e.ok(os.Symlink("nowhere", e.p("dangling")))
	e.ok(os.Symlink("loop", e.p("loop")))
	long := strings.Repeat("n", 256)

	open := func(name string, flags int) error { return try(e.p(name), flags, 0644) }
	creat := func(name string) error { return open(name, unix.O_WRONLY|unix.O_CREAT) }
	stat := func(name string) error { var st unix.Stat_t; return unix.Stat(e.p(name), &st) }
	mkdir := func(name string) error { return unix.Mkdir(e.p(name), 0755) }
	rmdir := func(name string) error { return unix.Rmdir(e.p(name)) }
	unlink := func(name string) error { return unix.Unlink(e.p(name)) }
	link := func(from, to string) error { return unix.Link(e.p(from), e.p(to)) }
	symlink := func(target, name string) error { return unix.Symlink(target, e.p(name)) }
	mkfifo := func(name string) error { return unix.Mkfifo(e.p(name), 0644) }
	readlink := func(name string) error {
		_, err := unix.Readlink(e.p(name), make([]byte, 10))
		return err
	}
	rename := func(from, to string) error { return unix.Rename(e.p(from), e.p(to)) }
	truncate := func(name string, size int64) error { return unix.Truncate(e.p(name), size) }

	for _, c := range []struct {
		call string
		err  error
		want unix.Errno
	}{
		{"stat absent", stat("absent"), unix.ENOENT},
		{"stat absent/x", stat("absent/x"), unix.ENOENT},
		{"stat file/x", stat("file/x"), unix.ENOTDIR},
		{"stat file/", stat("file/"), unix.ENOTDIR},
		{"stat file/.", stat("file/."), unix.ENOTDIR},
		{"stat loop", stat("loop"), unix.ELOOP},
		{"stat loop/x", stat("loop/x"), unix.ELOOP},
		{"stat dangling", stat("dangling"), unix.ENOENT},
		{"stat (256 bytes)", stat(long), unix.ENAMETOOLONG},

		{"open loop", open("loop", unix.O_RDONLY), unix.ELOOP},
		{"creat file/x", creat("file/x"), unix.ENOTDIR},
		{"creat absent/x", creat("absent/x"), unix.ENOENT},
		{"creat dir", creat("dir"), unix.EISDIR},
		{"creat absent/", creat("absent/"), unix.EISDIR},
		{"creat (256 bytes)", creat(long), unix.ENAMETOOLONG},

		{"mkdir dir", mkdir("dir"), unix.EEXIST},
		{"mkdir file", mkdir("file"), unix.EEXIST},
		{"mkdir dangling", mkdir("dangling"), unix.EEXIST},
		{"mkdir .", mkdir("."), unix.EEXIST},
		{"mkdir absent/x", mkdir("absent/x"), unix.ENOENT},
		{"mkdir file/x", mkdir("file/x"), unix.ENOTDIR},
		{"mkdir (256 bytes)", mkdir(long), unix.ENAMETOOLONG},

		{"rmdir absent", rmdir("absent"), unix.ENOENT},
		{"rmdir file", rmdir("file"), unix.ENOTDIR},
		{"rmdir full", rmdir("full"), unix.ENOTEMPTY},
		{"rmdir todir", rmdir("todir"), unix.ENOTDIR},
		{"rmdir todir/", rmdir("todir/"), unix.ENOTDIR},
		{"rmdir dir/.", rmdir("dir/."), unix.EINVAL},
		{"rmdir full/x/..", rmdir("full/x/.."), unix.ENOTEMPTY},

		{"unlink absent", unlink("absent"), unix.ENOENT},
		{"unlink dir", unlink("dir"), unix.EISDIR},
		{"unlink file/", unlink("file/"), unix.ENOTDIR},
		{"unlink file/x", unlink("file/x"), unix.ENOTDIR},
		{"unlink (256 bytes)", unlink(long), unix.ENAMETOOLONG},

		{"link absent new", link("absent", "new"), unix.ENOENT},
		{"link file dir", link("file", "dir"), unix.EEXIST},
		{"link file file", link("file", "file"), unix.EEXIST},
		{"link file dangling", link("file", "dangling"), unix.EEXIST},
		{"link dir new", link("dir", "new"), unix.EPERM},
		{"link file file/x", link("file", "file/x"), unix.ENOTDIR},
		{"link file absent/x", link("file", "absent/x"), unix.ENOENT},
		{"link file (256 bytes)", link("file", long), unix.ENAMETOOLONG},
		{"link (other file system) new", unix.Link("/proc/self/status", e.p("new")), unix.EXDEV},

		{"symlink (empty) new", symlink("", "new"), unix.ENOENT},
		{"symlink x file", symlink("x", "file"), unix.EEXIST},
		{"symlink x dangling", symlink("x", "dangling"), unix.EEXIST},
		{"symlink x absent/x", symlink("x", "absent/x"), unix.ENOENT},
		{"symlink (4096 bytes) new", symlink(strings.Repeat("t", 4096), "new"), unix.ENAMETOOLONG},
		{"symlink x (256 bytes)", symlink("x", long), unix.ENAMETOOLONG},
		{"readlink file", readlink("file"), unix.EINVAL},
		{"readlink dir", readlink("dir"), unix.EINVAL},
		{"readlink absent", readlink("absent"), unix.ENOENT},

		{"mkfifo file", mkfifo("file"), unix.EEXIST},
		{"mkfifo dir", mkfifo("dir"), unix.EEXIST},
		{"mkfifo file/x", mkfifo("file/x"), unix.ENOTDIR},

		{"rename absent new", rename("absent", "new"), unix.ENOENT},
		{"rename file absent/x", rename("file", "absent/x"), unix.ENOENT},
		{"rename file file/x", rename("file", "file/x"), unix.ENOTDIR},
		{"rename file dir", rename("file", "dir"), unix.EISDIR},
		{"rename dir file", rename("dir", "file"), unix.ENOTDIR},
		{"rename dir full", rename("dir", "full"), unix.ENOTEMPTY},
		{"rename full/x full", rename("full/x", "full"), unix.ENOTEMPTY},
		{"rename dir dir/x", rename("dir", "dir/x"), unix.EINVAL},
		{"rename full full/x/y", rename("full", "full/x/y"), unix.EINVAL},
		{"rename dir tofile", rename("dir", "tofile"), unix.ENOTDIR},
		{"rename file/ new", rename("file/", "new"), unix.ENOTDIR},
		{"rename file new/", rename("file", "new/"), unix.ENOTDIR},
		{"rename . new", rename(".", "new"), unix.EBUSY},
		{"rename dir full/..", rename("dir", "full/.."), unix.EBUSY},
		{"rename file (256 bytes)", rename("file", long), unix.ENAMETOOLONG},
		{"rename (other file system) new", unix.Rename("/proc/self/status", e.p("new")), unix.EXDEV},

		{"truncate absent", truncate("absent", 0), unix.ENOENT},
		{"truncate dir", truncate("dir", 0), unix.EISDIR},
		{"truncate file -1", truncate("file", -1), unix.EINVAL},
	} {
		e.fails(c.want, c.err, c.call)
	}
	if got := strings.Join(e.names("."), " "); got != "dangling dir file full loop todir tofile" {
		e.Errorf("calls that failed left their mark: %s", got)
	}
}

// names: a name is any bytes but "/" and NUL.
func names(e *env) {
	bytes := make([]byte, 0, 255)
	for b := 255; b > 0; b-- {
		if b != '/' {
			bytes = append(bytes, byte(b))
		}
	}
	want := []string{string(bytes), "...", "..x", " ", "-", "\n", "\xff", "é", "e\u0301", "Case", "case", `back\slash`, "a:b", "con", "name."}
	for _, name := range want {
		e.ok(os.WriteFile(e.p(name), []byte(name), 0644), name)
	}
	got := map[string]bool{}
	for _, name := range e.names(".") {
		got[name] = true
	}
	e.equal(len(got), len(want), "number of names")
	for _, name := range want {
		e.equal(got[name], true, "listed:", name)
		e.equal(e.read(name), name, "content of", name)
		e.ok(unix.Rename(e.p(name), e.p("moved")), name)
		e.ok(unix.Rename(e.p("moved"), e.p(name)), name)
		e.ok(os.Remove(e.p(name)), name)
	}
}

func longNames(e *env) {
	for _, n := range []int{1, 100, 254, 255} {
		name := strings.Repeat("n", n)
		e.write(name, "x")
		e.equal(e.names(".")[0], name)
		e.ok(unix.Rename(e.p(name), e.p("short")))
		e.ok(os.Link(e.p("short"), e.p(name)))
		e.ok(os.Remove(e.p(name)))
		e.ok(os.Mkdir(e.p(name), 0755))
		e.ok(os.Remove(e.p(name)))
		e.ok(os.Symlink("x", e.p(name)))
		e.ok(os.Remove(e.p(name)))
		e.ok(os.Remove(e.p("short")))
	}
}

// deepPath: one path holds 4,095 bytes; what lies deeper is reached in steps.
func deepPath(e *env) {
	step := strings.Repeat("d", 200)
	at := e.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range 30 {
		e.ok(unix.Mkdirat(at, step, 0755))
		next, err := unix.Openat(at, step, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		e.ok(err)
		e.Cleanup(func() { unix.Close(next) })
		at = next
	}
	fd, err := unix.Openat(at, "bottom", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0644)
	e.ok(err)
	e.ok(unix.Close(fd))
	e.fails(unix.ENAMETOOLONG, try(e.p(strings.Repeat(step+"/", 30)+"bottom"), unix.O_RDONLY, 0))

	// Resolution climbs back through "..".
	up, err := unix.Openat(at, strings.Repeat("../", 30), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	e.ok(err)
	defer unix.Close(up)
	e.equal(e.fstat(up).Ino, e.stat(".").Ino, "the folder above")
}
