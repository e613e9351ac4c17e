package nfs4

import "ramserver/export/nfs/xdr"

// LockType is nfs_lock_type4, RFC 8881 section 18.10.
type LockType uint32

// Types of byte-range locks. With the last two the client will ask again: the
// server may keep its place.
const (
	LockRead   LockType = 1
	LockWrite  LockType = 2
	LockReadW  LockType = 3
	LockWriteW LockType = 4
)

// Write reports whether a lock of the type excludes all others.
func (t LockType) Write() bool { return t == LockWrite || t == LockWriteW }

// Waits reports whether the client will ask again if it does not get the lock.
func (t LockType) Waits() bool { return t == LockReadW || t == LockWriteW }

func decodeLockType(r *xdr.Reader) LockType {
	return LockType(enum(r, uint32(LockRead), uint32(LockWriteW)))
}

// LockArgs is LOCK4args, RFC 8881 section 18.10. A length of all ones is to the
// end of the file. The result with OK is a [StateidArgs], with DENIED a
// [LockDenied]. What follows NewOwner is its locker4.
type LockArgs struct {
	Type    LockType
	Reclaim bool
	Offset  uint64
	Length  uint64

	NewOwner bool    // the owner's first lock of the file
	OpenSeq  uint32  // with NewOwner; minor version 0
	Stateid  Stateid // of the open with NewOwner, else of the lock
	LockSeq  uint32  // minor version 0
	Owner    Owner   // with NewOwner
}

// Decode reads the arguments.
func (a *LockArgs) Decode(r *xdr.Reader) {
	a.Type = decodeLockType(r)
	a.Reclaim = r.Bool()
	a.Offset = r.Uint64()
	a.Length = r.Uint64()
	if a.NewOwner = r.Bool(); a.NewOwner {
		a.OpenSeq = r.Uint32()
	}
	a.Stateid.Decode(r)
	a.LockSeq = r.Uint32()
	if a.NewOwner {
		a.Owner.Decode(r)
	}
}

// Encode writes the arguments.
func (a *LockArgs) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Type))
	w.Bool(a.Reclaim)
	w.Uint64(a.Offset)
	w.Uint64(a.Length)
	w.Bool(a.NewOwner)
	if a.NewOwner {
		w.Uint32(a.OpenSeq)
	}
	a.Stateid.Encode(w)
	w.Uint32(a.LockSeq)
	if a.NewOwner {
		a.Owner.Encode(w)
	}
}

// LockDenied is LOCK4denied, RFC 8881 section 18.10: the lock in the way, in
// answers of LOCK and LOCKT with DENIED.
type LockDenied struct {
	Offset uint64
	Length uint64
	Type   LockType
	Owner  Owner
}

// Decode reads a LOCK4denied.
func (a *LockDenied) Decode(r *xdr.Reader) {
	a.Offset = r.Uint64()
	a.Length = r.Uint64()
	a.Type = decodeLockType(r)
	a.Owner.Decode(r)
}

// Encode writes a LOCK4denied.
func (a *LockDenied) Encode(w *xdr.Writer) {
	w.Uint64(a.Offset)
	w.Uint64(a.Length)
	w.Uint32(uint32(a.Type))
	a.Owner.Encode(w)
}

// LockTArgs is LOCKT4args, RFC 8881 section 18.11.
type LockTArgs struct {
	Type   LockType
	Offset uint64
	Length uint64
	Owner  Owner
}

// Decode reads the arguments.
func (a *LockTArgs) Decode(r *xdr.Reader) {
	a.Type = decodeLockType(r)
	a.Offset = r.Uint64()
	a.Length = r.Uint64()
	a.Owner.Decode(r)
}

// Encode writes the arguments.
func (a *LockTArgs) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Type))
	w.Uint64(a.Offset)
	w.Uint64(a.Length)
	a.Owner.Encode(w)
}

// LockUArgs is LOCKU4args, RFC 8881 section 18.12. The result is a [StateidArgs].
type LockUArgs struct {
	Type    LockType
	Seq     uint32 // minor version 0
	Stateid Stateid
	Offset  uint64
	Length  uint64
}

// Decode reads the arguments.
func (a *LockUArgs) Decode(r *xdr.Reader) {
	a.Type = decodeLockType(r)
	a.Seq = r.Uint32()
	a.Stateid.Decode(r)
	a.Offset = r.Uint64()
	a.Length = r.Uint64()
}

// Encode writes the arguments.
func (a *LockUArgs) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Type))
	w.Uint32(a.Seq)
	a.Stateid.Encode(w)
	w.Uint64(a.Offset)
	w.Uint64(a.Length)
}
