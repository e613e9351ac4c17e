package gonfs

import (
	"crypto/sha256"
	"encoding/binary"

	"ramserver/export"
	"ramserver/memstore"
)

// A handle on the wire has the form of the native engine's: version, export,
// store, inode and generation in 4, 4, 8, 8 and 8 bytes.
const (
	handleSize    = 32
	handleVersion = 1
)

// noHandle stands for what could not be found. Nothing has it.
var noHandle [handleSize]byte

// handleMask is a secret of the server. It masks generations in handles of
// exports that are not their store's whole tree, so that a handle of one
// export cannot be made into one of another whose rules are milder.
type handleMask [32]byte

func (m *handleMask) of(e *export.Export, ino uint64) uint64 {
	if e.Root == e.Store.Root() {
		return 0
	}
	b := binary.BigEndian.AppendUint32(m[:len(m):len(m)], e.ID)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, ino))
	return binary.BigEndian.Uint64(sum[:])
}

// put makes the handle of i in e.
func (m *handleMask) put(e *export.Export, i *memstore.Inode) []byte {
	h := i.Handle()
	b := make([]byte, 0, handleSize)
	b = binary.BigEndian.AppendUint32(b, handleVersion)
	b = binary.BigEndian.AppendUint32(b, e.ID)
	b = binary.BigEndian.AppendUint64(b, h.Store)
	b = binary.BigEndian.AppendUint64(b, h.Ino)
	return binary.BigEndian.AppendUint64(b, h.Gen^m.of(e, h.Ino))
}

// find finds what a handle names.
func (m *handleMask) find(t *export.Table, fh []byte) (*export.Export, *memstore.Inode, error) {
	if len(fh) != handleSize || binary.BigEndian.Uint32(fh) != handleVersion {
		return nil, nil, memstore.ErrStale
	}
	e := t.ByID(binary.BigEndian.Uint32(fh[4:]))
	if e == nil {
		return nil, nil, memstore.ErrStale
	}
	ino := binary.BigEndian.Uint64(fh[16:])
	i, err := e.Store.ByHandle(memstore.Handle{
		Store: binary.BigEndian.Uint64(fh[8:]),
		Ino:   ino,
		Gen:   binary.BigEndian.Uint64(fh[24:]) ^ m.of(e, ino),
	})
	return e, i, err
}
