//go:build linux

package posixtest

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var openTests = []test{
	{"OpenFlags", 0, openFlags},
	{"OpenModes", 0, openModes},
	{"Umask", 0, umask},
	{"Append", 0, appendMode},
	{"DirectIO", DirectIO, directIO},
	{"Tmpfile", Tmpfile, tmpfile},
	{"Unlinked", 0, unlinked},
	{"ReplacedWhileOpen", 0, replacedWhileOpen},
	{"Fifo", 0, fifo},
	{"Socket", 0, socket},
	{"Devices", Root, devices},
}

func openFlags(e *env) {
	const full = "twelve bytes"
	e.write("file", full)
	e.mkdir("dir")
	e.ok(os.Symlink("file", e.p("link")))
	e.ok(os.Symlink("nowhere", e.p("dangling")))
	for _, c := range []struct {
		name  string
		flags int
		want  unix.Errno
		size  int64 // of file afterwards
	}{
		{"file", unix.O_RDONLY, 0, 12},
		{"file", unix.O_RDWR | unix.O_CREAT, 0, 12},
		{"file", unix.O_RDWR | unix.O_CREAT | unix.O_EXCL, unix.EEXIST, 12},
		{"file", unix.O_WRONLY | unix.O_TRUNC, 0, 0},
		{"link", unix.O_WRONLY | unix.O_TRUNC, 0, 0},
		{"file", unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, 0, 0},
		{"file", unix.O_RDONLY | unix.O_DIRECTORY, unix.ENOTDIR, 12},
		{"file", unix.O_RDONLY | unix.O_NOFOLLOW, 0, 12},
		{"link", unix.O_RDONLY, 0, 12},
		{"link", unix.O_RDONLY | unix.O_NOFOLLOW, unix.ELOOP, 12},
		{"link", unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL, unix.EEXIST, 12},
		{"dangling", unix.O_RDONLY, unix.ENOENT, 12},
		{"dangling", unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, unix.EEXIST, 12},
		{"dir", unix.O_RDONLY, 0, 12},
		{"dir", unix.O_RDONLY | unix.O_DIRECTORY, 0, 12},
		{"dir", unix.O_WRONLY, unix.EISDIR, 12},
		{"dir", unix.O_RDWR, unix.EISDIR, 12},
		{"dir", unix.O_RDONLY | unix.O_CREAT, unix.EISDIR, 12},
		{"dir", unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL, unix.EEXIST, 12},
		{"absent", unix.O_RDWR, unix.ENOENT, 12},
	} {
		e.write("file", full)
		err := try(e.p(c.name), c.flags, 0644)
		if c.want == 0 {
			e.ok(err, "open", c.name, c.flags)
		} else {
			e.fails(c.want, err, "open", c.name, c.flags)
		}
		e.equal(e.stat("file").Size, c.size, "size after open", c.name, c.flags)
	}

	e.ok(try(e.p("dangling"), unix.O_WRONLY|unix.O_CREAT, 0644), "create through a dangling link")
	e.equal(e.exists("nowhere"), true, "target of the dangling link exists")

	var b [1]byte
	_, err := unix.Write(e.open("file", unix.O_RDONLY, 0), b[:])
	e.fails(unix.EBADF, err, "write to a descriptor open for reading")
	_, err = unix.Read(e.open("file", unix.O_WRONLY, 0), b[:])
	e.fails(unix.EBADF, err, "read from a descriptor open for writing")
	_, err = unix.Read(e.open("dir", unix.O_RDONLY, 0), b[:])
	e.fails(unix.EISDIR, err, "read a folder")
}

// openModes: the mode given to a creating open does not bind that open itself,
// and is not changed by opening again.
func openModes(e *env) {
	t := e.task(nil)
	for _, mode := range []uint32{0, 0200, 0400, 0444, 0600, 0640, 0666, 0755, 0777} {
		name := "f" + string(rune('a'+mode%26))
		e.ok(t.do(func() error {
			unix.Umask(0)
			fd, err := unix.Open(e.p(name), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, mode)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if _, err := unix.Write(fd, []byte("data")); err != nil {
				return err
			}
			var b [4]byte
			_, err = unix.Pread(fd, b[:], 0)
			return err
		}), "create, write and read with mode", mode)
		st := e.stat(name)
		e.equal(st.Mode, unix.S_IFREG|mode, "mode of a new file")
		e.equal(st.Size, int64(4), "size")
		e.ok(os.Remove(e.p(name)))
	}
	e.write("old", "")
	e.ok(os.Chmod(e.p("old"), 0640))
	e.ok(try(e.p("old"), unix.O_RDWR|unix.O_CREAT, 0777))
	e.equal(e.stat("old").Mode&07777, uint32(0640), "mode after opening with another")
}

func umask(e *env) {
	t := e.task(nil)
	for _, c := range []struct{ mask, mode, want uint32 }{
		{0, 0777, 0777}, {022, 0666, 0644}, {027, 0777, 0750}, {077, 0666, 0600}, {0777, 0777, 0},
	} {
		e.ok(t.do(func() error {
			unix.Umask(int(c.mask))
			if err := try(e.p("file"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, c.mode); err != nil {
				return err
			}
			if err := unix.Mkdir(e.p("dir"), c.mode); err != nil {
				return err
			}
			if err := unix.Mknod(e.p("fifo"), unix.S_IFIFO|c.mode, 0); err != nil {
				return err
			}
			return unix.Symlink("x", e.p("link"))
		}))
		e.equal(e.stat("file").Mode, unix.S_IFREG|c.want, "file")
		e.equal(e.stat("dir").Mode, unix.S_IFDIR|c.want, "folder")
		e.equal(e.stat("fifo").Mode, unix.S_IFIFO|c.want, "FIFO")
		e.equal(e.stat("link").Mode, uint32(unix.S_IFLNK|0777), "symlink")
		for _, name := range []string{"file", "dir", "fifo", "link"} {
			e.ok(os.Remove(e.p(name)))
		}
	}
}

func appendMode(e *env) {
	e.write("f", "0123")
	a, b := e.open("f", unix.O_WRONLY|unix.O_APPEND, 0), e.open("f", unix.O_RDWR|unix.O_APPEND, 0)
	for _, w := range []struct {
		fd   int
		data string
	}{{a, "A"}, {b, "B"}, {a, "C"}} {
		_, err := unix.Write(w.fd, []byte(w.data))
		e.ok(err)
	}
	e.equal(e.read("f"), "0123ABC")
	// On Linux pwrite(2) appends too, whatever offset is given.
	_, err := unix.Pwrite(b, []byte("D"), 0)
	e.ok(err)
	e.equal(e.read("f"), "0123ABCD")
	e.ok(unix.Ftruncate(b, 2))
	_, err = unix.Write(a, []byte("E"))
	e.ok(err)
	e.equal(e.read("f"), "01E")

	// Two processes append records: none is lost, none is torn. NFS has no
	// append, so two clients may overwrite each other, but not two processes of
	// one client.
	const records, size = 200, 512
	writer := func(c byte) *task {
		t := e.task(nil)
		t.start(func() error {
			fd, err := unix.Open(e.p("log"), unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC, 0644)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			for range records {
				if _, err := unix.Write(fd, bytes.Repeat([]byte{c}, size)); err != nil {
					return err
				}
			}
			return nil
		})
		return t
	}
	x, y := writer('x'), writer('y')
	e.ok(x.wait())
	e.ok(y.wait())
	log, count := e.read("log"), map[byte]int{}
	e.equal(len(log), 2*records*size, "size of the log")
	for ; len(log) >= size; log = log[size:] {
		if log[:size] != strings.Repeat(log[:1], size) {
			e.Fatal("a record is torn")
		}
		count[log[0]]++
	}
	e.equal(count['x'], records, "records of the first process")
	e.equal(count['y'], records, "records of the second process")
}

func directIO(e *env) {
	const block = 4096
	fd := e.open("f", unix.O_RDWR|unix.O_CREAT|unix.O_DIRECT, 0644)
	buf, err := unix.Mmap(-1, 0, 4*block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	e.ok(err)
	defer unix.Munmap(buf)
	for i := range buf {
		buf[i] = byte(i / 7)
	}
	n, err := unix.Pwrite(fd, buf, block)
	e.ok(err)
	e.equal(n, len(buf), "bytes written")
	e.equal(e.read("f"), string(make([]byte, block))+string(buf), "what a buffered read sees")
	want := string(buf[2*block:])
	n, err = unix.Pread(fd, buf, 3*block)
	e.ok(err)
	e.equal(n, 2*block, "a read up to the end of the file")
	e.equal(string(buf[:n]), want, "read")
	e.write("f", strings.Repeat("new ", block))
	n, err = unix.Pread(fd, buf[:block], 0)
	e.ok(err)
	e.equal(string(buf[:n]), strings.Repeat("new ", block/4), "read after a buffered write")
}

func tmpfile(e *env) {
	fd, err := unix.Open(e.dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0640)
	e.ok(err)
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("hidden"))
	e.ok(err)
	e.equal(int(e.fstat(fd).Nlink), 0, "links before linkat")
	e.equal(len(e.names(".")), 0, "names in the folder")
	self := "/proc/thread-self/fd/"
	e.ok(unix.Linkat(unix.AT_FDCWD, self+itoa(fd), unix.AT_FDCWD, e.p("named"), unix.AT_SYMLINK_FOLLOW), "linkat")
	e.equal(e.read("named"), "hidden")
	e.equal(int(e.fstat(fd).Nlink), 1, "links after linkat")
	e.equal(e.stat("named").Mode&0777, uint32(0640), "mode")

	fd, err = unix.Open(e.dir, unix.O_WRONLY|unix.O_TMPFILE|unix.O_EXCL|unix.O_CLOEXEC, 0640)
	e.ok(err)
	defer unix.Close(fd)
	e.fails(unix.ENOENT, unix.Linkat(unix.AT_FDCWD, self+itoa(fd), unix.AT_FDCWD, e.p("never"), unix.AT_SYMLINK_FOLLOW),
		"linkat of a file made with O_EXCL")
	_, err = unix.Open(e.dir, unix.O_RDONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0640)
	e.fails(unix.EINVAL, err, "O_TMPFILE for reading only")
}

// unlinked: a removed file lives on in what holds it open.
func unlinked(e *env) {
	e.write("f", "before")
	fd := e.open("f", unix.O_RDWR, 0)
	e.ok(os.Remove(e.p("f")))
	e.fails(unix.ENOENT, try(e.p("f"), unix.O_RDONLY, 0), "open of a removed file")
	if e.local() {
		e.equal(int(e.fstat(fd).Nlink), 0, "links of a removed file")
	}
	_, err := unix.Pwrite(fd, []byte(" and after"), 6)
	e.ok(err)
	e.ok(unix.Fsync(fd))
	e.ok(unix.Fchmod(fd, 0600))
	e.ok(unix.Ftruncate(fd, 12))
	b := make([]byte, 100)
	n, err := unix.Pread(fd, b, 0)
	e.ok(err)
	e.equal(string(b[:n]), "before and a", "removed file")
	e.equal(e.fstat(fd).Mode&0777, uint32(0600), "mode of a removed file")
	e.write("f", "another")
	n, err = unix.Pread(fd, b, 0)
	e.ok(err)
	e.equal(string(b[:n]), "before and a", "removed file with a successor")

	e.mkdir("dir")
	d := e.open("dir", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	e.ok(os.Remove(e.p("dir")))
	if e.local() {
		e.fails(unix.ENOENT, unix.Mkdirat(d, "x", 0755), "mkdir in a removed folder")
		_, err := unix.ReadDirent(d, make([]byte, 1024))
		if err != nil {
			e.fails(unix.ENOENT, err, "list a removed folder")
		}
	}
}

func replacedWhileOpen(e *env) {
	e.write("old", "old")
	e.write("new", "new")
	fd := e.open("old", unix.O_RDONLY, 0)
	e.ok(unix.Rename(e.p("new"), e.p("old")))
	b := make([]byte, 10)
	n, err := unix.Pread(fd, b, 0)
	e.ok(err)
	e.equal(string(b[:n]), "old", "file that was replaced")
	e.equal(e.read("old"), "new", "file that replaced it")
}

func fifo(e *env) {
	e.ok(unix.Mkfifo(e.p("fifo"), 0640))
	e.equal(e.stat("fifo").Mode, uint32(unix.S_IFIFO|0640))
	e.fails(unix.ENXIO, try(e.p("fifo"), unix.O_WRONLY|unix.O_NONBLOCK, 0), "write end without a reader")
	r := e.open("fifo", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	w := e.open("fifo", unix.O_WRONLY|unix.O_NONBLOCK, 0)
	_, err := unix.Write(w, []byte("through"))
	e.ok(err)
	b := make([]byte, 10)
	n, err := unix.Read(r, b)
	e.ok(err)
	e.equal(string(b[:n]), "through")
	e.equal(e.stat("fifo").Size, int64(0), "size of a FIFO")
	_, err = unix.Seek(r, 0, unix.SEEK_CUR)
	e.fails(unix.ESPIPE, err, "seek in a FIFO")
}

func socket(e *env) {
	// A socket's path holds 107 bytes; a short one leads through the folder.
	dir := e.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	addr := &unix.SockaddrUnix{Name: "/proc/self/fd/" + itoa(dir) + "/sock"}
	newSocket := func() int {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		e.ok(err)
		e.Cleanup(func() { unix.Close(s) })
		return s
	}
	s := newSocket()
	e.ok(unix.Bind(s, addr))
	e.equal(e.stat("sock").Mode&unix.S_IFMT, uint32(unix.S_IFSOCK))
	e.ok(unix.Connect(newSocket(), addr), "connect")
	e.fails(unix.EADDRINUSE, unix.Bind(newSocket(), addr), "bind to the same name")
	e.fails(unix.ENXIO, try(e.p("sock"), unix.O_RDWR, 0), "open of a socket")
	e.ok(os.Remove(e.p("sock")))
	e.fails(unix.ENOENT, unix.Connect(newSocket(), addr), "connect to a removed socket")
}

func devices(e *env) {
	for _, c := range []struct {
		name         string
		mode         uint32
		major, minor uint32
	}{
		{"null", unix.S_IFCHR | 0666, 1, 3},
		{"wide", unix.S_IFCHR | 0600, 4000, 1 << 18},
		{"disk", unix.S_IFBLK | 0660, 7, 200},
	} {
		e.ok(unix.Mknod(e.p(c.name), c.mode, int(unix.Mkdev(c.major, c.minor))), c.name)
		e.ok(os.Chmod(e.p(c.name), os.FileMode(c.mode&0777)))
		st := e.stat(c.name)
		e.equal(st.Mode, c.mode, c.name)
		e.equal([2]uint32{unix.Major(st.Rdev), unix.Minor(st.Rdev)}, [2]uint32{c.major, c.minor}, "device number of", c.name)
		e.fails(unix.EEXIST, unix.Mknod(e.p(c.name), c.mode, 0), "mknod again")
	}
	nobody := user{uid: 65534, gid: 65534}
	e.ok(os.Chmod(e.dir, 0777))
	e.fails(unix.EPERM, nobody.do(func() error { return unix.Mknod(e.p("mine"), unix.S_IFCHR|0600, 259) }), "mknod of a device as a user")
	e.ok(nobody.do(func() error { return unix.Mkfifo(e.p("pipe"), 0600) }), "mkfifo as a user")
}
