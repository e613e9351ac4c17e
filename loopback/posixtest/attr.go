//go:build linux

package posixtest

import (
	"bytes"
	"fmt"
	"os"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

var attrTests = []test{
	{"SetTimes", 0, setTimes},
	{"TimesMove", 0, timesMove},
	{"BirthTime", BirthTime, birthTime},
	{"Statfs", 0, statfs},
	{"Xattr", Xattr, xattrs},
	{"XattrOfOthers", Xattr | Root, xattrOfOthers},
}

func setTimes(e *env) {
	e.write("f", "")
	e.mkdir("d")
	e.ok(os.Symlink("f", e.p("l")))
	ts := func(sec, nsec int64) unix.Timespec { return unix.Timespec{Sec: sec, Nsec: nsec} }
	omit := ts(0, unix.UTIME_OMIT)
	set := func(name string, a, m unix.Timespec) {
		e.Helper()
		e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, e.p(name), []unix.Timespec{a, m}, unix.AT_SYMLINK_NOFOLLOW), name)
	}
	for _, name := range []string{"f", "d", "l"} {
		for _, c := range []struct{ a, m unix.Timespec }{
			{ts(1_000_000_000, 123456789), ts(1_234_567_890, 987654321)},
			{ts(0, 0), ts(1, 1)},
			{ts(1<<31-1, 999999999), ts(1<<31, 5)}, // past 2038
		} {
			set(name, c.a, c.m)
			st := e.stat(name)
			e.equal(st.Atim, c.a, "atime of", name)
			e.equal(st.Mtim, c.m, "mtime of", name)
		}
		set(name, ts(7, 7), omit)
		set(name, omit, ts(8, 8))
		st := e.stat(name)
		e.equal(st.Atim, ts(7, 7), "atime of", name, "after setting one")
		e.equal(st.Mtim, ts(8, 8), "mtime of", name, "after setting one")
		set(name, omit, omit)
		e.equal(e.stat(name).Mtim, ts(8, 8), "mtime of", name, "after setting none")
		set(name, omit, ts(0, unix.UTIME_NOW))
		now := e.stat(name)
		e.equal(now.Mtim.Sec > 1_600_000_000, true, "UTIME_NOW is about now")
		e.equal(now.Mtim, now.Ctim, "mtime and ctime of", name, "after UTIME_NOW")
	}
	// A change of the past is a change now.
	before := e.stat("f").Ctim
	tick()
	set("f", ts(5, 5), ts(5, 5))
	e.equal(e.stat("f").Ctim != before, true, "ctime moves when times are set")
	e.fails(unix.EINVAL, unix.UtimesNanoAt(unix.AT_FDCWD, e.p("f"), []unix.Timespec{ts(0, 1e9+1), omit}, 0), "1,000,000,001 ns")
}

// timesMove: which stamps each call moves, m for mtime and c for ctime, of the
// file "f" and of its folder.
func timesMove(e *env) {
	for _, c := range []struct {
		call         string
		file, folder string
		do           func(fd int) error
	}{
		{"read", "", "", func(fd int) error { _, err := unix.Pread(fd, make([]byte, 4), 0); return err }},
		{"write", "mc", "", func(fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 0); return err }},
		{"write of nothing", "", "", func(fd int) error { _, err := unix.Pwrite(fd, nil, 0); return err }},
		{"ftruncate", "mc", "", func(fd int) error { return unix.Ftruncate(fd, 1) }},
		{"ftruncate to the same size", "mc", "", func(fd int) error { return unix.Ftruncate(fd, 4) }},
		{"truncate", "mc", "", func(int) error { return unix.Truncate(e.p("f"), 100) }},
		{"open with O_TRUNC", "mc", "", func(int) error { return try(e.p("f"), unix.O_WRONLY|unix.O_TRUNC, 0) }},
		{"open", "", "", func(int) error { return try(e.p("f"), unix.O_RDWR, 0) }},
		{"chmod", "c", "", func(fd int) error { return unix.Fchmod(fd, 0600) }},
		{"chown", "c", "", func(fd int) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) }},
		{"link", "c", "mc", func(int) error { return unix.Link(e.p("f"), e.p("g")) }},
		{"unlink of one link", "c", "mc", func(int) error { return unix.Unlink(e.p("g")) }},
		{"rename", "c", "mc", func(int) error {
			if err := unix.Rename(e.p("f"), e.p("f2")); err != nil {
				return err
			}
			return unix.Rename(e.p("f2"), e.p("f"))
		}},
		{"create", "", "mc", func(int) error { return try(e.p("new"), unix.O_WRONLY|unix.O_CREAT, 0644) }},
		{"open with O_CREAT of what exists", "", "", func(int) error { return try(e.p("new"), unix.O_WRONLY|unix.O_CREAT, 0644) }},
		{"unlink", "", "mc", func(int) error { return unix.Unlink(e.p("new")) }},
		{"mkdir", "", "mc", func(int) error { return unix.Mkdir(e.p("new"), 0755) }},
		{"create in a folder below", "", "", func(int) error { return try(e.p("new/x"), unix.O_WRONLY|unix.O_CREAT, 0644) }},
		{"unlink in a folder below", "", "", func(int) error { return unix.Unlink(e.p("new/x")) }},
		{"rmdir", "", "mc", func(int) error { return unix.Rmdir(e.p("new")) }},
		{"symlink", "", "mc", func(int) error { return unix.Symlink("f", e.p("new")) }},
		{"mkfifo", "", "mc", func(int) error { return unix.Mkfifo(e.p("fifo"), 0644) }},
		{"replace", "", "mc", func(int) error { return unix.Rename(e.p("new"), e.p("fifo")) }},
		{"stat", "", "", func(int) error { _, err := os.Stat(e.p("f")); return err }},
		{"mkdir that fails", "", "", func(int) error {
			if err := unix.Mkdir(e.p("f"), 0755); err != unix.EEXIST {
				return fmt.Errorf("got %v", err)
			}
			return nil
		}},
	} {
		e.write("f", "data")
		fd := e.open("f", unix.O_RDWR, 0)
		f, d := e.fresh("f"), e.fresh(".")
		tick()
		e.ok(c.do(fd), c.call)
		e.equal(moved(f, e.fresh("f")), c.file, c.call, "moves of the file")
		e.equal(moved(d, e.fresh(".")), c.folder, c.call, "moves of the folder")
	}
}

// fresh is stat, through an open where a network client may have kept old
// attributes.
func (e *env) fresh(name string) unix.Stat_t {
	e.Helper()
	if !e.local() {
		e.ok(try(e.p(name), unix.O_RDONLY, 0))
	}
	return e.stat(name)
}

func moved(before, after unix.Stat_t) (what string) {
	if before.Mtim != after.Mtim {
		what += "m"
	}
	if before.Ctim != after.Ctim {
		what += "c"
	}
	return what
}

func birthTime(e *env) {
	birth := func() unix.StatxTimestamp {
		var st unix.Statx_t
		e.ok(unix.Statx(unix.AT_FDCWD, e.p("f"), 0, unix.STATX_BTIME, &st))
		if st.Mask&unix.STATX_BTIME == 0 {
			e.Fatal("statx gives no birth time")
		}
		return st.Btime
	}
	e.write("f", "")
	born := birth()
	tick()
	e.write("f", "x")
	e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, e.p("f"), make([]unix.Timespec, 2), 0))
	e.equal(birth(), born, "birth time after changes")
}

// statfs: the counts are sane and follow what is stored.
func statfs(e *env) {
	usage := func() unix.Statfs_t {
		var st unix.Statfs_t
		e.ok(unix.Statfs(e.dir, &st))
		return st
	}
	st := usage()
	e.equal(st.Namelen, int64(255), "longest name")
	if st.Bsize <= 0 || st.Blocks == 0 || st.Bfree > st.Blocks || st.Bavail > st.Bfree || st.Ffree > st.Files || st.Files == 0 {
		e.Errorf("statfs: %+v", st)
	}
	const size = 4 << 20
	// Others may use the file system meanwhile: one try in three has to fit.
	var why string
	for range 3 {
		before := usage()
		fd := e.open("f", unix.O_WRONLY|unix.O_CREAT, 0644)
		_, err := unix.Pwrite(fd, bytes.Repeat([]byte{'x'}, size), 0)
		e.ok(err)
		e.ok(unix.Fsync(fd))
		full := usage()
		e.ok(unix.Ftruncate(fd, 0))
		e.ok(unix.Fsync(fd))
		empty := usage()
		used := (int64(before.Bfree) - int64(full.Bfree)) * int64(before.Bsize)
		left := (int64(before.Bfree) - int64(empty.Bfree)) * int64(before.Bsize)
		if used >= size && used < size*5/4 && left < size/4 {
			return
		}
		why = fmt.Sprintf("4 MiB took %d bytes, %d of them stayed", used, left)
		tick()
	}
	e.Error(why)
}

// xattrMax is the most bytes of a value and of a list that Linux takes.
const xattrMax = 64 << 10

func xattrs(e *env) {
	e.write("f", "")
	e.mkdir("d")
	for _, name := range []string{"f", "d"} {
		path := e.p(name)
		get := func(attr string) (string, error) {
			b := make([]byte, xattrMax)
			n, err := unix.Getxattr(path, attr, b)
			return string(b[:max(n, 0)]), err
		}
		_, err := get("user.a")
		e.fails(unix.ENODATA, err, "get of an absent attribute")
		e.fails(unix.ENODATA, unix.Setxattr(path, "user.a", nil, unix.XATTR_REPLACE), "XATTR_REPLACE of an absent attribute")
		for _, value := range []string{"", "v", "\x00\xff\n", strings.Repeat("v", 4000)} {
			e.ok(unix.Setxattr(path, "user.a", []byte(value), 0))
			got, err := get("user.a")
			e.ok(err)
			e.equal(got, value, "attribute")
		}
		e.fails(unix.EEXIST, unix.Setxattr(path, "user.a", nil, unix.XATTR_CREATE), "XATTR_CREATE of a present attribute")
		n, err := unix.Getxattr(path, "user.a", nil)
		e.ok(err)
		e.equal(n, 4000, "size of an attribute")
		_, err = unix.Getxattr(path, "user.a", make([]byte, 10))
		e.fails(unix.ERANGE, err, "get into a short buffer")
		e.ok(unix.Setxattr(path, "user.b", []byte("2"), unix.XATTR_CREATE))
		e.equal(e.attrs(name), "user.a user.b", "list")
		_, err = unix.Listxattr(path, make([]byte, 3))
		e.fails(unix.ERANGE, err, "list into a short buffer")

		before := e.stat(name)
		tick()
		e.ok(unix.Removexattr(path, "user.b"))
		e.equal(moved(before, e.stat(name)), "c", "removexattr moves")
		before = e.stat(name)
		tick()
		e.ok(unix.Setxattr(path, "user.a", []byte("2"), unix.XATTR_REPLACE))
		e.equal(moved(before, e.stat(name)), "c", "setxattr moves")
		e.fails(unix.ENODATA, unix.Removexattr(path, "user.b"), "remove of an absent attribute")
		e.equal(e.attrs(name), "user.a", "list")

		e.ok(unix.Setxattr(path, "user."+strings.Repeat("n", 250), nil, 0), "a name of 255 bytes")
		e.ok(unix.Removexattr(path, "user."+strings.Repeat("n", 250)))
		e.fails(unix.ERANGE, unix.Setxattr(path, "user."+strings.Repeat("n", 251), nil, 0), "a name of 256 bytes")
		e.fails(unix.E2BIG, unix.Setxattr(path, "user.x", make([]byte, xattrMax+1), 0), "a value over 64 KiB")
	}
	e.ok(unix.Rename(e.p("f"), e.p("g")))
	e.equal(e.attrs("g"), "user.a", "attributes after rename")
	e.ok(os.Symlink("g", e.p("l")))
	e.fails(unix.EPERM, unix.Lsetxattr(e.p("l"), "user.a", nil, 0), "user attribute of a symlink")
}

// attrs is the sorted list of a name's user attributes.
func (e *env) attrs(name string) string {
	e.Helper()
	b := make([]byte, xattrMax)
	n, err := unix.Listxattr(e.p(name), b)
	e.ok(err)
	var list []string
	for a := range strings.SplitSeq(string(b[:n]), "\x00") {
		if strings.HasPrefix(a, "user.") {
			list = append(list, a)
		}
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}

func xattrOfOthers(e *env) {
	e.make("f", alice.uid, alice.gid, 0604)
	e.ok(alice.do(func() error { return unix.Setxattr(e.p("f"), "user.a", []byte("1"), 0) }))
	e.ok(bob.do(func() error { _, err := unix.Getxattr(e.p("f"), "user.a", make([]byte, 9)); return err }), "get by a reader")
	e.fails(unix.EACCES, bob.do(func() error { return unix.Setxattr(e.p("f"), "user.a", nil, 0) }), "set by a reader")
	e.fails(unix.EACCES, bob.do(func() error { return unix.Removexattr(e.p("f"), "user.a") }), "remove by a reader")
	e.own("f", alice.uid, alice.gid, 0600)
	e.fails(unix.EACCES, bob.do(func() error { _, err := unix.Getxattr(e.p("f"), "user.a", make([]byte, 9)); return err }), "get by one without r")
}
