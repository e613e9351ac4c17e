//go:build linux

package posixtest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var permTests = []test{
	{"Access", Root, access},
	{"FolderAccess", Root, folderAccess},
	{"OpenOutlivesMode", Root, openOutlivesMode},
	{"Chown", Root, chown},
	{"Chmod", Root, chmod},
	{"Suid", Root, suid},
	{"Setgid", Root, setgid},
	{"Sticky", Root, sticky},
	{"TimesByOthers", Root, timesByOthers},
}

// Users that exist nowhere: a file system must not look them up.
var (
	alice = user{uid: 12001, gid: 13001, groups: []uint32{14001, 14002}}
	bob   = user{uid: 12002, gid: 13002}
	carol = user{uid: 12003, gid: 13003, groups: []uint32{14009, 14002, 13001}}
	root  = user{}
)

// make makes a file with an owner and a mode.
func (e *env) make(name string, owner, group int, mode uint32) {
	e.Helper()
	e.write(name, "data")
	e.own(name, owner, group, mode)
}

func (e *env) own(name string, owner, group int, mode uint32) {
	e.Helper()
	e.ok(os.Lchown(e.p(name), owner, group))
	e.ok(unix.Chmod(e.p(name), mode))
}

// access: the first of owner, group and others that fits decides, even if the
// next would allow more. Root may read and write everything, and run what
// anyone may run.
func access(e *env) {
	a, g := alice.uid, alice.gid
	for _, c := range []struct {
		mode     uint32
		uid, gid int
		as       user
		want     string
	}{
		{0600, a, g, alice, "rw-"},
		{0077, a, g, alice, "---"},
		{0500, a, g, alice, "r-x"},
		{0300, a, g, alice, "-wx"},
		{0060, bob.uid, g, alice, "rw-"},
		{0607, bob.uid, g, alice, "---"},
		{0070, bob.uid, 14002, alice, "rwx"}, // supplementary
		{0707, bob.uid, 14002, alice, "---"},
		{0040, bob.uid, g, carol, "r--"}, // last of several
		{0006, bob.uid, bob.gid, alice, "rw-"},
		{0770, bob.uid, bob.gid, alice, "---"},
		{0007, bob.uid, bob.gid, alice, "rwx"},
		{0000, a, g, root, "rw-"},
		{0010, a, g, root, "rwx"},
		{0600, 0, 0, alice, "---"},
		{0644, 0, 0, alice, "r--"},
	} {
		e.make("f", c.uid, c.gid, c.mode)
		var opened, asked []byte
		e.ok(c.as.do(func() error {
			for _, b := range []struct {
				letter byte
				flags  int
				mode   uint32
			}{{'r', unix.O_RDONLY, unix.R_OK}, {'w', unix.O_WRONLY, unix.W_OK}, {'x', -1, unix.X_OK}} {
				letter := func(err error) byte {
					if err == nil {
						return b.letter
					}
					return '-'
				}
				err := unix.Access(e.p("f"), b.mode)
				if err != nil && err != unix.EACCES {
					return err
				}
				asked = append(asked, letter(err))
				if b.flags >= 0 {
					if err = try(e.p("f"), b.flags, 0); err != nil && err != unix.EACCES {
						return err
					}
				}
				opened = append(opened, letter(err))
			}
			return nil
		}))
		what := fmt.Sprintf("mode %04o owner %d:%d as %d:", c.mode, c.uid, c.gid, c.as.uid)
		e.equal(string(asked), c.want, what, "access")
		e.equal(string(opened), c.want, what, "open")
	}
	e.make("f", a, g, 0444)
	e.fails(unix.EACCES, alice.do(func() error { return unix.Truncate(e.p("f"), 0) }), "truncate of a file that may only be read")
	e.fails(unix.EACCES, alice.do(func() error { return try(e.p("f"), unix.O_RDONLY|unix.O_TRUNC, 0) }), "O_TRUNC on a file that may only be read")
	e.equal(e.read("f"), "data")
}

// folderAccess: r lists, x looks up, w and x change.
func folderAccess(e *env) {
	calls := []struct {
		letter byte
		do     func(dir string) error
	}{
		{'l', func(d string) error { return try(d, unix.O_RDONLY|unix.O_DIRECTORY, 0) }},
		{'s', func(d string) error { var st unix.Stat_t; return unix.Stat(d+"/f", &st) }},
		{'o', func(d string) error { return try(d+"/f", unix.O_RDONLY, 0) }},
		{'c', func(d string) error { return try(d+"/new", unix.O_WRONLY|unix.O_CREAT, 0644) }},
		{'m', func(d string) error { return unix.Mkdir(d+"/sub", 0755) }},
		{'y', func(d string) error { return unix.Symlink("x", d+"/sym") }},
		{'n', func(d string) error { return unix.Link(d+"/f", d+"/link") }},
		{'r', func(d string) error { return unix.Rename(d+"/f", d+"/g") }},
		{'u', func(d string) error { return unix.Unlink(d + "/g") }},
	}
	for _, c := range []struct {
		mode uint32
		want string
	}{
		{0700, "lsocmynru"},
		{0500, "lso------"},
		{0100, "-so------"},
		{0400, "l--------"},
		{0300, "-socmynru"},
		{0600, "l--------"},
		{0077, "---------"},
	} {
		dir := fmt.Sprintf("d%04o", c.mode)
		e.mkdir(dir)
		e.make(dir+"/f", alice.uid, alice.gid, 0644)
		e.write(dir+"/g", "")
		e.own(dir, alice.uid, alice.gid, c.mode)
		var got []byte
		e.ok(alice.do(func() error {
			for _, call := range calls {
				err := call.do(e.p(dir))
				if err == nil {
					got = append(got, call.letter)
				} else if got = append(got, '-'); err != unix.EACCES {
					return fmt.Errorf("%c: %w", call.letter, err)
				}
			}
			return nil
		}), dir)
		e.equal(string(got), c.want, dir)
	}
}

// openOutlivesMode: permission is asked at open; what is open stays usable.
func openOutlivesMode(e *env) {
	e.make("f", alice.uid, alice.gid, 0600)
	e.ok(os.Chmod(e.dir, 0777))
	e.ok(alice.do(func() error {
		fd, err := unix.Open(e.p("f"), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Fchmod(fd, 0); err != nil {
			return err
		}
		if _, err := unix.Pwrite(fd, []byte("DATA+"), 0); err != nil {
			return fmt.Errorf("write after chmod 0: %w", err)
		}
		if err := unix.Fsync(fd); err != nil {
			return fmt.Errorf("fsync after chmod 0: %w", err)
		}
		unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) // so that a network client asks the server
		if _, err := unix.Pread(fd, make([]byte, 5), 0); err != nil {
			return fmt.Errorf("read after chmod 0: %w", err)
		}
		if err := unix.Ftruncate(fd, 4); err != nil {
			return fmt.Errorf("ftruncate after chmod 0: %w", err)
		}
		if err := try(e.p("f"), unix.O_RDONLY, 0); err != unix.EACCES {
			return fmt.Errorf("open after chmod 0: got %v, want EACCES", errName(err))
		}
		return nil
	}))
	e.equal(e.read("f"), "DATA")
}

func chown(e *env) {
	for _, c := range []struct {
		what     string
		as       user
		uid, gid int
		want     unix.Errno
	}{
		{"root gives away", root, bob.uid, bob.gid, 0},
		{"owner keeps", alice, alice.uid, -1, 0},
		{"owner gives away", alice, bob.uid, -1, unix.EPERM},
		{"owner to own group", alice, -1, alice.gid, 0},
		{"owner to supplementary group", alice, -1, 14002, 0},
		{"owner to foreign group", alice, -1, bob.gid, unix.EPERM},
		{"other takes", bob, bob.uid, -1, unix.EPERM},
		{"other to own group", bob, -1, bob.gid, unix.EPERM},
	} {
		e.make("f", alice.uid, alice.gid, 0666)
		err := c.as.do(func() error { return unix.Chown(e.p("f"), c.uid, c.gid) })
		st := e.stat("f")
		want := [2]int{alice.uid, alice.gid}
		if c.want != 0 {
			e.fails(c.want, err, c.what)
		} else {
			e.ok(err, c.what)
			if c.uid >= 0 {
				want[0] = c.uid
			}
			if c.gid >= 0 {
				want[1] = c.gid
			}
		}
		e.equal([2]int{int(st.Uid), int(st.Gid)}, want, c.what)
	}
	e.ok(os.Symlink("f", e.p("link")))
	before := e.stat("f")
	e.ok(os.Lchown(e.p("link"), bob.uid, bob.gid))
	e.equal(e.stat("link").Uid, uint32(bob.uid), "owner of a symlink after lchown")
	e.equal(e.stat("f").Uid, before.Uid, "owner of its target")
}

func chmod(e *env) {
	e.make("f", alice.uid, bob.gid, 0600)
	e.mkdir("d")
	for _, mode := range []uint32{0, 0777, 0600, 01777, 02750, 04755, 07777} {
		e.ok(unix.Chmod(e.p("f"), mode))
		e.equal(e.stat("f").Mode&07777, mode, "file")
		e.ok(unix.Chmod(e.p("d"), mode))
		e.equal(e.stat("d").Mode&07777, mode, "folder")
	}
	e.fails(unix.EPERM, bob.do(func() error { return unix.Chmod(e.p("f"), 0666) }), "chmod by another")
	e.ok(alice.do(func() error { return unix.Chmod(e.p("f"), 02770) }), "chmod by the owner")
	e.equal(e.stat("f").Mode&07777, uint32(0770), "setgid for a group that the owner is not in")
	e.own("f", alice.uid, 14001, 0600)
	e.ok(alice.do(func() error { return unix.Chmod(e.p("f"), 02770) }))
	e.equal(e.stat("f").Mode&07777, uint32(02770), "setgid for a supplementary group")
}

// suid: who changes a program's bytes or owner does not keep its privileges.
func suid(e *env) {
	write := func() error {
		fd, err := unix.Open(e.p("f"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte("evil"))
		return err
	}
	owner := func(uid, gid int) func() error {
		return func() error { return unix.Chown(e.p("f"), uid, gid) }
	}
	for _, c := range []struct {
		what       string
		mode, want uint32
		as         user
		do         func() error
	}{
		{"write by another", 06777, 0777, bob, write},
		{"write by another, setgid without x", 02767, 02767, bob, write},
		{"write by the owner", 04777, 0777, alice, write},
		{"write by root", 06777, 06777, root, write},
		{"chown by root", 06755, 0755, root, owner(bob.uid, bob.gid)},
		{"chgrp by the owner", 06755, 0755, alice, owner(-1, 14001)},
		{"chmod", 06755, 06755, root, func() error { return unix.Chmod(e.p("f"), 06755) }},
	} {
		e.make("f", alice.uid, alice.gid, c.mode)
		if c.mode == 02767 {
			// Without x for the group the bit means mandatory locking, and a
			// member of it keeps it; one who is not in it does not.
			c.as = user{uid: bob.uid, gid: alice.gid}
		}
		e.ok(c.as.do(c.do), c.what)
		if !e.local() {
			e.ok(try(e.p("f"), unix.O_RDONLY, 0)) // revalidates
		}
		e.equal(fmt.Sprintf("%04o", e.stat("f").Mode&07777), fmt.Sprintf("%04o", c.want), c.what)
	}
	e.mkdir("d")
	e.own("d", alice.uid, alice.gid, 06755)
	e.ok(os.Chown(e.p("d"), bob.uid, bob.gid))
	e.equal(e.stat("d").Mode&07777, uint32(06755), "chown of a folder keeps its bits")
}

// setgid: what is made in a setgid folder belongs to its group, and a folder
// made there is setgid as well.
func setgid(e *env) {
	e.mkdir("plain", "shared")
	e.own("plain", 0, 14001, 0777)
	e.own("shared", 0, 14009, 02777)
	for _, c := range []struct {
		dir  string
		gid  uint32
		sgid uint32
	}{{"plain", uint32(alice.gid), 0}, {"shared", 14009, unix.S_ISGID}} {
		at := e.p(c.dir)
		e.ok(alice.do(func() error {
			unix.Umask(0)
			for _, err := range []error{
				try(at+"/file", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0666),
				try(at+"/member", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 02777),
				unix.Mkdir(at+"/sub", 0755),
				unix.Mkfifo(at+"/fifo", 0644),
				unix.Symlink("x", at+"/link"),
			} {
				if err != nil {
					return err
				}
			}
			return nil
		}))
		for _, name := range []string{"file", "member", "sub", "fifo", "link"} {
			st := e.stat(c.dir + "/" + name)
			e.equal([2]uint32{st.Uid, st.Gid}, [2]uint32{uint32(alice.uid), c.gid}, "owner of", name, "in", c.dir)
		}
		e.equal(e.stat(c.dir+"/sub").Mode&07777, 0755|c.sgid, "folder made in", c.dir)
		e.equal(e.stat(c.dir+"/file").Mode&07777, uint32(0666), "file made in", c.dir)
	}
	e.equal(e.stat("plain/member").Mode&07777, uint32(02777), "setgid file of a member of its group")
	e.equal(e.stat("shared/member").Mode&07777, uint32(0777), "setgid file of one who is not in its group")
}

// sticky: in a sticky folder only the owner of a name, of the folder, or root
// removes it.
func sticky(e *env) {
	e.mkdir("tmp")
	e.own("tmp", carol.uid, carol.gid, 01777)
	at := e.p("tmp")
	setup := func() {
		e.make("tmp/f", alice.uid, alice.gid, 0666)
		e.make("tmp/b", bob.uid, bob.gid, 0666)
	}
	for _, c := range []struct {
		what string
		as   user
		do   func() error
		want unix.Errno
	}{
		{"other removes", bob, func() error { return unix.Unlink(at + "/f") }, unix.EPERM},
		{"other renames", bob, func() error { return unix.Rename(at+"/f", at+"/x") }, unix.EPERM},
		{"other replaces", bob, func() error { return unix.Rename(at+"/b", at+"/f") }, unix.EPERM},
		{"other writes", bob, func() error { return try(at+"/f", unix.O_WRONLY, 0) }, 0},
		{"owner of the file removes", alice, func() error { return unix.Unlink(at + "/f") }, 0},
		{"owner of the file renames", alice, func() error { return unix.Rename(at+"/f", at+"/y") }, 0},
		{"owner of the folder removes", carol, func() error { return unix.Unlink(at + "/f") }, 0},
		{"root removes", root, func() error { return unix.Unlink(at + "/f") }, 0},
	} {
		setup()
		if err := c.as.do(c.do); c.want == 0 {
			e.ok(err, c.what)
		} else {
			e.fails(c.want, err, c.what)
		}
	}
	e.mkdir("tmp/dir")
	e.own("tmp/dir", alice.uid, alice.gid, 0777)
	e.fails(unix.EPERM, bob.do(func() error { return unix.Rmdir(at + "/dir") }), "other removes a folder")
}

func timesByOthers(e *env) {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	past := []unix.Timespec{{Sec: 1000}, {Sec: 1000}}
	for _, c := range []struct {
		what  string
		mode  uint32
		as    user
		times []unix.Timespec
		want  unix.Errno
	}{
		{"owner sets", 0444, alice, past, 0},
		{"owner touches", 0444, alice, now, 0},
		{"writer sets", 0666, bob, past, unix.EPERM},
		{"writer touches", 0666, bob, now, 0},
		{"reader sets", 0644, bob, past, unix.EPERM},
		{"reader touches", 0644, bob, now, unix.EACCES},
	} {
		e.make("f", alice.uid, alice.gid, c.mode)
		err := c.as.do(func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, e.p("f"), c.times, 0) })
		if c.want == 0 {
			e.ok(err, c.what)
		} else {
			e.fails(c.want, err, c.what)
		}
	}
}
