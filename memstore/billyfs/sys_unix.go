//go:build linux || darwin

package billyfs

import (
	"syscall"

	"golang.org/x/sys/unix"

	"ramserver/memstore"
)

var formats = [...]uint16{
	memstore.TypeFile:    unix.S_IFREG,
	memstore.TypeDir:     unix.S_IFDIR,
	memstore.TypeSymlink: unix.S_IFLNK,
	memstore.TypeFIFO:    unix.S_IFIFO,
	memstore.TypeSocket:  unix.S_IFSOCK,
	memstore.TypeBlock:   unix.S_IFBLK,
	memstore.TypeChar:    unix.S_IFCHR,
}

func (i *FileInfo) sys() any {
	a := &i.attr
	st := &syscall.Stat_t{
		Ino: a.Ino, Uid: a.UID, Gid: a.GID, Size: a.Size,
		Blocks: (a.Used + 511) / 512, // st_blocks is in units of 512 bytes everywhere
	}
	// The widths of these differ between systems.
	set(&st.Mode, uint64(formats[a.Type]|a.Mode))
	set(&st.Nlink, uint64(a.Nlink))
	set(&st.Rdev, unix.Mkdev(a.Major, a.Minor))
	set(&st.Blksize, 64<<10)
	setTimes(st, a)
	return st
}

func timespec(t int64) (ts syscall.Timespec) {
	sec, nsec := memstore.Seconds(t)
	set(&ts.Sec, uint64(sec))
	set(&ts.Nsec, uint64(nsec))
	return ts
}

func set[T uint16 | uint32 | uint64 | int32 | int64](field *T, v uint64) { *field = T(v) }
