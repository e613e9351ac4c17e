package nfs

import (
	"slices"
	"strings"
	"sync"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// The procedures of MOUNT versions 1 (RFC 1094 appendix A) and 3 (RFC 1813
// section 5.2). A mount is nothing but a handle for a path; the list of who
// mounted what is a courtesy that no access depends on.

// mnt3 is MNT of version 3, RFC 1813 section 5.2.1.
func (k *call) mnt3() bool {
	var a nfs3.MountPath
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var fh [handleSize]byte
	res := nfs3.MountRes{Status: k.mount(a.Path, &fh), FH: fh[:], Flavors: mountFlavors[:]}
	res.Encode(k.w)
	return true
}

var mountFlavors = [...]uint32{rpc.AuthSys, rpc.AuthNone}

// mnt1 is MNT of version 1, RFC 1094 section A.5.2.
func (k *call) mnt1() bool {
	var a nfs3.MountPath
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var res nfs3.MountRes1
	res.Status = k.mount(a.Path, &res.FH)
	res.Encode(k.w)
	return true
}

// mount finds the directory that a client wants to mount, as the client and
// without following symbolic links.
func (k *call) mount(path string, fh *[handleSize]byte) nfs3.MountStatus {
	i, err := k.walk(path)
	if err != nil {
		return mountStatus(k.status(err))
	}
	k.c.s.mask.put(fh, k.exp, i)
	k.c.s.mounts.add(Mount{Host: k.host(), Path: strings.Clone(path)})
	return nfs3.MountOK
}

func (k *call) walk(path string) (*memstore.Inode, error) {
	e, rest, ok := k.c.s.cfg.Exports.Find(path)
	if !ok {
		return nil, nfs3.ErrNoEnt
	}
	if !e.Admit(k.c.peer) {
		return nil, nfs3.ErrAcces
	}
	k.use(e)
	i := e.Root
	for name := range strings.SplitSeq(rest, "/") {
		if name == "" {
			continue
		}
		var err error
		if i, err = i.Lookup(&k.who, name); err != nil {
			return nil, err
		}
		if i == nil {
			return nil, nfs3.ErrNoEnt
		}
	}
	if i.Type() != memstore.TypeDir {
		return nil, nfs3.ErrNotDir
	}
	return i, nil
}

// mountStatus is the mountstat3 that is nearest to a status of NFS, RFC 1813
// section 5.1.5.
func mountStatus(s nfs3.Status) nfs3.MountStatus {
	switch s {
	case nfs3.ErrPerm, nfs3.ErrNoEnt, nfs3.ErrIO, nfs3.ErrAcces, nfs3.ErrNotDir, nfs3.ErrInval, nfs3.ErrNameTooLong, nfs3.ErrNotSupp:
		return nfs3.MountStatus(s)
	case nfs3.ErrStale:
		return nfs3.MountErrNoEnt
	}
	return nfs3.MountErrServerFault
}

// dump is DUMP, RFC 1813 section 5.2.2. A client that may not use any export
// sees an empty list.
func (k *call) dump() bool {
	var list nfs3.MountList
	if slices.ContainsFunc(k.c.s.cfg.Exports.All(), k.admits) {
		for _, m := range k.c.s.mounts.all() {
			list = append(list, nfs3.Mounted(m))
		}
	}
	list.Encode(k.w)
	return true
}

// umnt is UMNT, RFC 1813 section 5.2.3.
func (k *call) umnt() bool {
	var a nfs3.MountPath
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	host := k.host()
	k.c.s.mounts.remove(func(m Mount) bool { return m.Host == host && m.Path == a.Path })
	return true
}

// umntall is UMNTALL, RFC 1813 section 5.2.4.
func (k *call) umntall() bool {
	host := k.host()
	k.c.s.mounts.remove(func(m Mount) bool { return m.Host == host })
	return true
}

// exportList is EXPORT, RFC 1813 section 5.2.5: what the client may use, and
// the networks that may use it besides this machine.
func (k *call) exportList() bool {
	var list nfs3.ExportList
	for n, e := range k.c.s.cfg.Exports.All() {
		if !k.admits(e) {
			continue
		}
		groups := []string{"localhost"} // no group at all would be everybody
		for _, net := range e.Allow {
			groups = append(groups, net.String())
		}
		if n == 0 {
			list = append(list, nfs3.Exported{Path: "/", Groups: groups})
		}
		list = append(list, nfs3.Exported{Path: "/" + e.Name, Groups: groups})
	}
	list.Encode(k.w)
	return true
}

func (k *call) host() string { return k.c.peer.Addr().Addr().String() }

// Mount is an entry of the list of mounts: a client's address, and the path as
// it gave it.
type Mount struct{ Host, Path string }

// maxMounts bounds the list, on which clients may leave what they like.
const maxMounts = 1024

// mountList is who mounted what, the oldest first.
type mountList struct {
	mu   sync.Mutex
	list []Mount // (mu)
}

// add notes a mount. The oldest is forgotten when there are too many.
func (l *mountList) add(m Mount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.list, m) {
		return
	}
	if len(l.list) == maxMounts {
		l.list = slices.Delete(l.list, 0, 1)
	}
	l.list = append(l.list, m)
}

func (l *mountList) has(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(m Mount) bool { return m.Host == host })
}

func (l *mountList) remove(which func(Mount) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, which)
}

func (l *mountList) all() []Mount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}
