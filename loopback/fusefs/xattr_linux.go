package fusefs

import (
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// settable tells whether the mount has extended attributes of the name's class.
// Who may use which is for the kernel to check. ACLs (system.posix_acl_*) are
// not enforced by the store, so they are refused.
func settable(name string) bool {
	for _, class := range [...]string{"user.", "trusted.", "security."} {
		if len(name) > len(class) && strings.HasPrefix(name, class) {
			return true
		}
	}
	return false
}

func (s *server) GetXAttr(_ <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if !settable(name) {
		return 0, fuse.ENOTSUP
	}
	i, err := s.local.Inode(h.NodeId)
	if err != nil {
		return 0, status(err)
	}
	v, err := i.GetXattr(s.root, name)
	if err != nil {
		return 0, status(err)
	}
	if len(v) > len(dest) {
		return uint32(len(v)), fuse.ERANGE
	}
	return uint32(copy(dest, v)), fuse.OK
}

func (s *server) ListXAttr(_ <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	i, err := s.local.Inode(h.NodeId)
	if err != nil {
		return 0, status(err)
	}
	names, err := i.ListXattr(s.root)
	if err != nil {
		return 0, status(err)
	}
	var list []byte
	for _, name := range names {
		if settable(name) && (h.Uid == 0 || !strings.HasPrefix(name, "trusted.")) {
			list = append(append(list, name...), 0)
		}
	}
	if len(list) > len(dest) {
		return uint32(len(list)), fuse.ERANGE
	}
	return uint32(copy(dest, list)), fuse.OK
}

func (s *server) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	if !settable(name) {
		return fuse.ENOTSUP
	}
	rule := memstore.XattrEither
	switch in.Flags {
	case unix.XATTR_CREATE:
		rule = memstore.XattrCreate
	case unix.XATTR_REPLACE:
		rule = memstore.XattrReplace
	}
	return try(cancel, func() error {
		i, err := s.local.Inode(in.NodeId)
		if err != nil {
			return err
		}
		_, err = i.SetXattr(s.root, name, value, rule)
		return err
	})
}

func (s *server) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if !settable(name) {
		return fuse.ENOTSUP
	}
	return try(cancel, func() error {
		i, err := s.local.Inode(h.NodeId)
		if err != nil {
			return err
		}
		_, err = i.RemoveXattr(s.root, name)
		return err
	})
}
