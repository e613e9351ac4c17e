package nfs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"ramserver/export"
	"ramserver/export/nfs/nfs3"
	"ramserver/memstore"
)

// A file handle on the wire is 32 bytes, which version 1 of MOUNT can carry
// too (RFC 1094 section 2.3.3), big-endian:
//
//	version     4   1
//	export      4   export.Export.ID
//	store       8 ] memstore.Handle
//	inode       8 ]
//	generation  8 ]
//
// What cannot be one is BADHANDLE; one of an inode, store or export that is
// gone is STALE. After a restart all are, but for those of the exports' roots: a
// store's root has the same handle again, and any other root has inode and
// generation 0.
//
// Two exports may offer parts of one store, and a client that knows a handle
// of one must not reach the file through the other by exchanging the export's
// number. So the generation in the handles of an export that is not its
// store's whole tree is masked by a secret of this server, export and inode.
// In the other direction there is nothing to protect: an export of the whole
// tree offers the file anyway.
const (
	handleSize    = 32
	handleVersion = 1
)

// handleMask makes the masks of exported subtrees.
type handleMask [32]byte

func newHandleMask() (m handleMask) {
	rand.Read(m[:])
	return m
}

// of is what the generation of an inode is masked with in handles of e.
func (m *handleMask) of(e *export.Export, ino uint64) uint64 {
	if e.Root == e.Store.Root() {
		return 0
	}
	var b [len(m) + 12]byte
	copy(b[:], m[:])
	binary.BigEndian.PutUint32(b[len(m):], e.ID)
	binary.BigEndian.PutUint64(b[len(m)+4:], ino)
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:])
}

// put writes the handle of i in e to b.
func (m *handleMask) put(b *[handleSize]byte, e *export.Export, i *memstore.Inode) {
	h := i.Handle()
	gen := h.Gen ^ m.of(e, h.Ino)
	if i == e.Root && i != e.Store.Root() {
		h.Ino, gen = 0, 0
	}
	binary.BigEndian.PutUint32(b[0:], handleVersion)
	binary.BigEndian.PutUint32(b[4:], e.ID)
	binary.BigEndian.PutUint64(b[8:], h.Store)
	binary.BigEndian.PutUint64(b[16:], h.Ino)
	binary.BigEndian.PutUint64(b[24:], gen)
}

// handleExport returns the id of the export that a handle belongs to.
func handleExport(fh []byte) (uint32, error) {
	if len(fh) != handleSize || binary.BigEndian.Uint32(fh) != handleVersion {
		return 0, nfs3.ErrBadHandle
	}
	return binary.BigEndian.Uint32(fh[4:]), nil
}

// inode finds what a handle of e names.
func (m *handleMask) inode(fh []byte, e *export.Export) (*memstore.Inode, error) {
	h := memstore.Handle{
		Store: binary.BigEndian.Uint64(fh[8:]),
		Ino:   binary.BigEndian.Uint64(fh[16:]),
		Gen:   binary.BigEndian.Uint64(fh[24:]),
	}
	if h == (memstore.Handle{Store: e.Store.ID()}) {
		h = e.Root.Handle()
	} else {
		h.Gen ^= m.of(e, h.Ino)
	}
	return e.Store.ByHandle(h)
}
