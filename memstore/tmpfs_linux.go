package memstore

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tmpfs is a tmpfs that is mounted nowhere.
type tmpfs struct {
	dir int // (c) its root directory
	ctx int // descriptor by which it is resized, or -1; see resize
}

// mountTmpfs makes a tmpfs of at most size bytes. Only root can.
func mountTmpfs(size int64) (t tmpfs, err error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return t, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fs)
	for _, o := range [...][2]string{{"size", strconv.FormatInt(size, 10)}, {"nr_inodes", "0"}, {"mode", "0700"}} {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return t, fmt.Errorf("tmpfs %s=%s: %w", o[0], o[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return t, os.NewSyscallError("fsconfig", err)
	}
	t.ctx = -1
	if t.dir, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0); err != nil {
		return t, os.NewSyscallError("fsmount", err)
	}
	return t, nil
}

func (t *tmpfs) close() {
	if t.ctx >= 0 {
		unix.Close(t.ctx)
	}
	unix.Close(t.dir)
}

// resize reports false where more is in use.
func (t *tmpfs) resize(size int64) bool {
	if t.ctx < 0 {
		ctx, err := unix.Fspick(t.dir, "", unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)
		if err != nil {
			return false
		}
		t.ctx = ctx
	}
	err := unix.FsconfigSetString(t.ctx, "size", strconv.FormatInt(size, 10))
	if err == nil {
		err = unix.FsconfigReconfigure(t.ctx)
	}
	if err != nil {
		// It cannot be used after a refusal.
		unix.Close(t.ctx)
		t.ctx = -1
	}
	return err == nil
}

// used is the bytes that files take.
func (t *tmpfs) used() int64 {
	var st unix.Statfs_t
	if unix.Fstatfs(t.dir, &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * int64(st.Bsize)
}

// create makes a file without a name.
func (t *tmpfs) create() (tmpFile, error) {
	fd, err := unix.Openat(t.dir, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOATIME, 0o600)
	return tmpFile(fd), err
}

// mostTmpFiles is how many descriptors files may take.
func mostTmpFiles() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int64(min(l.Cur/2, 1<<17))
}

// tmpFile is a file of a tmpfs: its descriptor.
type tmpFile int

func (f tmpFile) close() { unix.Close(int(f)) }

// read fills p from off on; what is behind the end is zero.
func (f tmpFile) read(p []byte, off int64) {
	for len(p) > 0 {
		n, err := unix.Pread(int(f), p, off)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			clear(p)
			return
		}
		p, off = p[n:], off+int64(n)
	}
}

// write returns how much of p there was room for.
func (f tmpFile) write(p []byte, off int64) (done int) {
	for done < len(p) {
		n, err := unix.Pwrite(int(f), p[done:], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		done += n
	}
	return done
}

// append is write at the end, wherever that is.
func (f tmpFile) append(p []byte) (done int) {
	for done < len(p) {
		n, err := unix.Pwritev2(int(f), [][]byte{p[done:]}, 0, unix.RWF_APPEND)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		done += n
	}
	return done
}

func (f tmpFile) truncate(size int64) bool {
	return again(func() error { return unix.Ftruncate(int(f), size) }) == nil
}

func (f tmpFile) punch(off, n int64) bool {
	return f.fallocate(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// allocate makes all the pages, or none.
func (f tmpFile) allocate(off, n int64, keepSize bool) bool {
	mode := uint32(0)
	if keepSize {
		mode = unix.FALLOC_FL_KEEP_SIZE
	}
	return f.fallocate(mode, off, n)
}

func (f tmpFile) fallocate(mode uint32, off, n int64) bool {
	return again(func() error { return unix.Fallocate(int(f), mode, off, n) }) == nil
}

// seek finds data, or a hole, from off on; ok is false if there is none.
func (f tmpFile) seek(off int64, hole bool) (pos int64, ok bool) {
	whence := unix.SEEK_DATA
	if hole {
		whence = unix.SEEK_HOLE
	}
	pos, err := unix.Seek(int(f), off, whence)
	return pos, err == nil
}

// stat is the file's size and times, and the bytes that it takes.
func (f tmpFile) stat() (st tmpStat) {
	var s unix.Stat_t
	if unix.Fstat(int(f), &s) == nil {
		st = tmpStat{s.Size, s.Blocks * 512, s.Mtim.Nano(), s.Atim.Nano()}
	}
	return st
}

// alone tells whether nobody else has the file open or mapped: else a lease for
// writing is refused.
func (f tmpFile) alone() bool {
	if _, err := unix.FcntlInt(uintptr(f), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	unix.FcntlInt(uintptr(f), unix.F_SETLEASE, unix.F_UNLCK)
	return true
}

func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
