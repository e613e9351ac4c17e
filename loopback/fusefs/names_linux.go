package fusefs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

func (s *server) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	d, err := s.local.Inode(h.NodeId)
	if err != nil {
		return status(err)
	}
	return try(cancel, func() error {
		i, err := d.Lookup(s.root, name)
		if err == nil {
			err = s.entry(out, i)
		}
		if err == memstore.ErrNotExist || err == memstore.ErrStale {
			// Node 0: the kernel may remember that the name is absent, or that it
			// is by now.
			*out = fuse.EntryOut{}
			out.SetEntryTimeout(lease)
			return nil
		}
		return err
	})
}

// create makes an inode and tells the kernel of it.
func (s *server) create(cancel <-chan struct{}, h *fuse.InHeader, name string, a *memstore.Create, out *fuse.EntryOut) fuse.Status {
	d, err := s.local.Inode(h.NodeId)
	if err != nil {
		return status(err)
	}
	r, err := d.Create(s.maker(h), name, a)
	if err != nil {
		return status(err)
	}
	return try(cancel, func() error { return s.entry(out, r.Inode) })
}

func (s *server) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	a := &memstore.Create{Set: owned(&in.InHeader, in.Mode)}
	a.Major, a.Minor = decodeDev(in.Rdev)
	for t, bits := range fileTypes {
		if in.Mode&unix.S_IFMT == bits {
			a.Type = memstore.Type(t)
		}
	}
	return s.create(cancel, &in.InHeader, name, a, out)
}

func (s *server) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	a := &memstore.Create{Type: memstore.TypeDir, Set: owned(&in.InHeader, in.Mode)}
	return s.create(cancel, &in.InHeader, name, a, out)
}

func (s *server) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	a := &memstore.Create{Type: memstore.TypeSymlink, Target: target, Set: owned(h, 0o777)}
	return s.create(cancel, h, name, a, out)
}

func (s *server) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	i, err := s.local.Inode(h.NodeId)
	if err != nil {
		return nil, status(err)
	}
	target, err := i.Readlink(s.root)
	return []byte(target), status(err)
}

func (s *server) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	var i *memstore.Inode
	st := try(cancel, func() error {
		d, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		if i, err = s.local.Inode(in.Oldnodeid); err != nil {
			return err
		}
		_, _, err = d.Link(s.root, name, i)
		return err
	})
	if st != fuse.OK {
		return st
	}
	return try(cancel, func() error { return s.entry(out, i) })
}

func (s *server) remove(cancel <-chan struct{}, h *fuse.InHeader, name string, kind memstore.RemoveKind) fuse.Status {
	return try(cancel, func() error {
		d, err := s.local.Inode(h.NodeId)
		if err != nil {
			return err
		}
		_, err = d.Remove(s.root, name, kind)
		return err
	})
}

func (s *server) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(cancel, h, name, memstore.RemoveFile)
}

func (s *server) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(cancel, h, name, memstore.RemoveDir)
}

func (s *server) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	var flags memstore.RenameFlags
	switch in.Flags {
	case 0:
	case unix.RENAME_NOREPLACE:
		flags = memstore.RenameNoReplace
	case unix.RENAME_EXCHANGE:
		flags = memstore.RenameExchange
	default:
		return fuse.EINVAL
	}
	return try(cancel, func() error {
		fromDir, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		toDir, err := s.local.Inode(in.Newdir)
		if err != nil {
			return err
		}
		_, _, err = s.store.Rename(s.root, fromDir, from, toDir, to, flags)
		return err
	})
}

// dirBuf is a part of a directory, as it is listed.
type dirBuf [128]memstore.DirEntry

var dirBufs = sync.Pool{New: func() any { return new(dirBuf) }}

func (s *server) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.list(in, func(e *fuse.DirEntry, _ *memstore.Inode) bool {
		return out.AddDirEntry(*e)
	})
}

func (s *server) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.list(in, func(e *fuse.DirEntry, i *memstore.Inode) bool {
		entry := out.AddDirLookupEntry(*e)
		if entry != nil && i != nil && s.entry(entry, i) != nil {
			// Removed meanwhile, or another may have attributes that the store does
			// not know yet. Without a node the kernel takes the name only.
			*entry = fuse.EntryOut{}
		}
		return entry != nil
	})
}

// list adds the entries behind the request's offset until add reports that
// there is no room. Offsets 1 and 2 are behind "." and "..", the rest are the
// directory's cookies. i is nil for those two.
func (s *server) list(in *fuse.ReadIn, add func(e *fuse.DirEntry, i *memstore.Inode) bool) fuse.Status {
	d, err := s.local.Inode(in.NodeId)
	if err != nil {
		return status(err)
	}
	cookie := in.Offset
	if cookie == 0 {
		if !add(&fuse.DirEntry{Name: ".", Ino: d.Ino(), Mode: unix.S_IFDIR, Off: 1}, nil) {
			return fuse.EINVAL
		}
		cookie = 1
	}
	if cookie == 1 {
		if !add(&fuse.DirEntry{Name: "..", Ino: d.Parent().Ino(), Mode: unix.S_IFDIR, Off: 2}, nil) {
			return fuse.OK
		}
		cookie = 2
	}
	buf := dirBufs.Get().(*dirBuf)
	defer func() {
		clear(buf[:])
		dirBufs.Put(buf)
	}()
	for {
		n, eof, err := d.ReadDir(s.root, cookie, buf[:])
		if err != nil {
			return status(err)
		}
		for k := range buf[:n] {
			e := &buf[k]
			if !add(&fuse.DirEntry{Name: e.Name, Ino: e.Inode.Ino(), Mode: fileTypes[e.Inode.Type()], Off: e.Cookie}, e.Inode) {
				return fuse.OK
			}
			cookie = e.Cookie
		}
		if eof {
			return fuse.OK
		}
	}
}
