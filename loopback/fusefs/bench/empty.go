//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// empty is the least that makes files and removes them: names and sizes in two
// maps. What it does not answer, such as FLUSH, the kernel asks for once.
type empty struct {
	fuse.RawFileSystem

	mu    sync.Mutex
	names map[string]uint64 // (mu) of the root
	sizes map[uint64]uint64 // (mu) by inode
	last  uint64            // (mu)
}

// serveEmpty serves until somebody unmounts it, with the options of a mount of
// ramserver's.
func serveEmpty(dir string) error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/dev/fuse", Err: err}
	}
	data := fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=0,max_read=%d,default_permissions,allow_other", fd, unix.S_IFDIR, 1<<20)
	if err := unix.Mount("empty", dir, "fuse.empty", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return err
	}
	s, err := fuse.NewServer(&empty{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		names:         map[string]uint64{}, sizes: map[uint64]uint64{}, last: fuse.FUSE_ROOT_ID,
	}, "/dev/fd/"+strconv.Itoa(fd), &fuse.MountOptions{MaxWrite: 1 << 20, MaxBackground: 64, ExplicitDataCacheControl: true})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	s.Serve()
	return nil
}

func attr(out *fuse.Attr, ino, size uint64) {
	out.Ino, out.Size, out.Nlink, out.Mode = ino, size, 1, unix.S_IFREG|0o644
	if ino == fuse.FUSE_ROOT_ID {
		out.Mode = unix.S_IFDIR | 0o755
	}
}

const forEver = 1 << 20 // seconds

func (e *empty) Lookup(_ <-chan struct{}, _ *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	out.EntryValid, out.AttrValid = forEver, forEver
	if ino := e.names[name]; ino != 0 {
		out.NodeId = ino
		attr(&out.Attr, ino, e.sizes[ino])
	}
	return fuse.OK
}

func (e *empty) Create(_ <-chan struct{}, _ *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.names[name], e.sizes[e.last] = e.last, 0
	out.NodeId, out.EntryValid, out.AttrValid = e.last, forEver, forEver
	out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_KEEP_CACHE
	attr(&out.Attr, e.last, 0)
	return fuse.OK
}

func (e *empty) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sizes[in.NodeId] = max(e.sizes[in.NodeId], in.Offset+uint64(len(data)))
	return uint32(len(data)), fuse.OK
}

func (e *empty) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	out.AttrValid = forEver
	attr(&out.Attr, in.NodeId, e.sizes[in.NodeId])
	return fuse.OK
}

func (e *empty) Unlink(_ <-chan struct{}, _ *fuse.InHeader, name string) fuse.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sizes, e.names[name])
	delete(e.names, name)
	return fuse.OK
}
