package billyfs

import (
	"os"
	"time"

	"ramserver/memstore"
)

// FileInfo is an os.FileInfo with everything that the store knows.
type FileInfo struct {
	name string
	attr memstore.Attr
}

// Attr is the attributes, all of one instant.
func (i *FileInfo) Attr() memstore.Attr { return i.attr }

// Name is the last element of the path.
func (i *FileInfo) Name() string { return i.name }

// Size is the length in bytes, of a link that of its target.
func (i *FileInfo) Size() int64 { return i.attr.Size }

// Mode is the type and the permission, set-id and sticky bits.
func (i *FileInfo) Mode() os.FileMode {
	return types[i.attr.Type] | osMode(i.attr.Mode)
}

// ModTime is the time of last modification, in nanoseconds.
func (i *FileInfo) ModTime() time.Time { return time.Unix(memstore.Seconds(i.attr.Mtime)) }

// IsDir tells whether it is a directory.
func (i *FileInfo) IsDir() bool { return i.attr.Type == memstore.TypeDir }

// Sys is a *syscall.Stat_t without a device number on Linux and macOS, and
// elsewhere a *memstore.Attr.
func (i *FileInfo) Sys() any { return i.sys() }

var types = [...]os.FileMode{
	memstore.TypeFile:    0,
	memstore.TypeDir:     os.ModeDir,
	memstore.TypeSymlink: os.ModeSymlink,
	memstore.TypeFIFO:    os.ModeNamedPipe,
	memstore.TypeSocket:  os.ModeSocket,
	memstore.TypeBlock:   os.ModeDevice,
	memstore.TypeChar:    os.ModeDevice | os.ModeCharDevice,
}

// bits pairs os's mode bits above the permissions with POSIX's.
var bits = [...]struct {
	os   os.FileMode
	unix uint16
}{
	{os.ModeSetuid, memstore.ModeSetUID},
	{os.ModeSetgid, memstore.ModeSetGID},
	{os.ModeSticky, memstore.ModeSticky},
}

func osMode(m uint16) os.FileMode {
	mode := os.FileMode(m) & os.ModePerm
	for _, b := range bits {
		if m&b.unix != 0 {
			mode |= b.os
		}
	}
	return mode
}

func unixMode(m os.FileMode) uint16 {
	mode := uint16(m & os.ModePerm)
	for _, b := range bits {
		if m&b.os != 0 {
			mode |= b.unix
		}
	}
	return mode
}
