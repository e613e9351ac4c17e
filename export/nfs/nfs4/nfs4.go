// Package nfs4 is the wire form of NFS version 4: minor versions 0 (RFC 7530,
// RFC 7531), 1 (RFC 8881, RFC 5662) and 2 (RFC 7862, RFC 7863), extended
// attributes (RFC 8276) and the umask of a creation (RFC 8275).
//
// A COMPOUND is a [CompoundArgs], which says how many operations follow, and for
// each its [Op] and arguments. The answer is a [CompoundRes], and for each
// operation executed an [OpHead] and the results: XxxArgs and XxxRes are a type
// each, without the status, and results are there with OK only, unless their
// type says otherwise. An operation without a type has neither arguments nor
// results, or shares a type: [FH], [Name], [StateidArgs], [ClientID].
//
// A type has Decode and Encode in wire order. Decode fills a zero value: it does
// not clear what the message leaves out. It bounds every length by the
// protocol's limit or by the input, and its byte slices and strings alias the
// input. The operations that a client sends all the time are decoded without an
// allocation.
package nfs4

import (
	"math"

	"ramserver/export/nfs/xdr"
)

// Version of the NFS program, and procedures of it, RFC 8881 section 16.
const (
	Version      = 4
	ProcNull     = 0
	ProcCompound = 1
)

// Minor versions.
const (
	Minor0   = 0
	Minor1   = 1
	Minor2   = 2
	MaxMinor = Minor2
)

// Limits, RFC 8881 section 3.1, in bytes.
const (
	MaxFH     = 128  // of a file handle
	MaxOpaque = 1024 // of an owner, a server's scope
)

// unbounded is the limit of names, tags and link targets, which the RFCs do not
// limit: the message itself does. maxArray is that of arrays.
const (
	unbounded = math.MaxInt32
	maxArray  = math.MaxInt32
)

// enum reads an enum whose members are first to last.
func enum(r *xdr.Reader, first, last uint32) uint32 {
	v := r.Uint32()
	if v < first || v > last {
		r.Fail(xdr.ErrEnum)
		return first
	}
	return v
}

// Void is the arguments or results of an operation that has none.
type Void struct{}

// Decode reads nothing.
func (*Void) Decode(*xdr.Reader) {}

// Encode writes nothing.
func (*Void) Encode(*xdr.Writer) {}

// CompoundArgs is what COMPOUND4args begins with, RFC 8881 section 16.2: Count
// operations follow.
type CompoundArgs struct {
	Tag   []byte // what the client likes; the answer has it too
	Minor uint32
	Count uint32
}

// Decode reads the head of the arguments.
func (a *CompoundArgs) Decode(r *xdr.Reader) {
	a.Tag = r.Opaque(unbounded)
	a.Minor = r.Uint32()
	a.Count = r.Uint32()
}

// Encode writes the head of the arguments.
func (a *CompoundArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Tag)
	w.Uint32(a.Minor)
	w.Uint32(a.Count)
}

// CompoundRes is what COMPOUND4res begins with, RFC 8881 section 16.2, and
// CB_COMPOUND4res, section 19.2: Count results follow.
type CompoundRes struct {
	Status Status // of the last operation executed
	Tag    []byte
	Count  uint32
}

// Decode reads the head of the results.
func (a *CompoundRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Tag = r.Opaque(unbounded)
	a.Count = r.Uint32()
}

// Encode writes the head of the results.
func (a *CompoundRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	w.Opaque(a.Tag)
	w.Uint32(a.Count)
}

// OpHead is what the result of an operation begins with. Results follow, with OK.
type OpHead struct {
	Op     Op
	Status Status
}

// Decode reads the head of a result.
func (a *OpHead) Decode(r *xdr.Reader) {
	a.Op = Op(r.Uint32())
	a.Status = Status(r.Uint32())
}

// Encode writes the head of a result.
func (a *OpHead) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Op))
	w.Uint32(uint32(a.Status))
}

// Type is nfs_ftype4, RFC 8881 section 3.3.13.
type Type uint32

// Types of files.
const (
	TypeReg       Type = 1
	TypeDir       Type = 2
	TypeBlk       Type = 3
	TypeChr       Type = 4
	TypeLnk       Type = 5
	TypeSock      Type = 6
	TypeFIFO      Type = 7
	TypeAttrDir   Type = 8
	TypeNamedAttr Type = 9
)

// Time is nfstime4, RFC 8881 section 3.3.1: seconds and nanoseconds since 1970.
type Time struct {
	Sec  int64
	Nsec uint32
}

// Decode reads an nfstime4.
func (t *Time) Decode(r *xdr.Reader) {
	t.Sec = r.Int64()
	t.Nsec = r.Uint32()
}

// Encode writes an nfstime4.
func (t *Time) Encode(w *xdr.Writer) {
	w.Int64(t.Sec)
	w.Uint32(t.Nsec)
}

// ChangeInfo is change_info4, RFC 8881 section 3.3.3: the change attribute of a
// directory from before and after an operation. If Atomic is set nothing else
// came between.
type ChangeInfo struct {
	Atomic        bool
	Before, After uint64
}

// Decode reads a change_info4.
func (c *ChangeInfo) Decode(r *xdr.Reader) {
	c.Atomic = r.Bool()
	c.Before = r.Uint64()
	c.After = r.Uint64()
}

// Encode writes a change_info4.
func (c *ChangeInfo) Encode(w *xdr.Writer) {
	w.Bool(c.Atomic)
	w.Uint64(c.Before)
	w.Uint64(c.After)
}

// Stateid is stateid4, RFC 8881 section 3.3.12. Other names the state, Seq
// counts its changes.
type Stateid struct {
	Seq   uint32
	Other [12]byte
}

// Special stateids, RFC 8881 section 8.2.3. Of the first two Seq has to be as it
// stands here; a stateid of minor version 0 is never the last two.
var (
	AnonymousStateid = Stateid{}
	BypassStateid    = Stateid{Seq: math.MaxUint32, Other: ones} // READ in spite of locks
	CurrentStateid   = Stateid{Seq: 1}                           // the compound's current one
	InvalidStateid   = Stateid{Seq: math.MaxUint32}              // is never valid
	ones             = [12]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
)

// Special reports whether a stateid names no state by itself: Other is all zeroes
// or all ones, whatever Seq is.
func (s *Stateid) Special() bool { return s.Other == [12]byte{} || s.Other == ones }

// Decode reads a stateid4.
func (s *Stateid) Decode(r *xdr.Reader) {
	s.Seq = r.Uint32()
	copy(s.Other[:], r.Fixed(len(s.Other)))
}

// Encode writes a stateid4.
func (s *Stateid) Encode(w *xdr.Writer) {
	w.Uint32(s.Seq)
	w.B = append(w.B, s.Other[:]...)
}

// StateidArgs is the argument or the result of the operations that take or
// answer one stateid: CLOSE4res, LOCK4resok, LOCKU4res, OPEN_CONFIRM4resok,
// OPEN_DOWNGRADE4resok, DELEGRETURN4args, FREE_STATEID4args,
// OFFLOAD_CANCEL4args and OFFLOAD_STATUS4args.
type StateidArgs struct{ Stateid Stateid }

// Decode reads a stateid4.
func (a *StateidArgs) Decode(r *xdr.Reader) { a.Stateid.Decode(r) }

// Encode writes a stateid4.
func (a *StateidArgs) Encode(w *xdr.Writer) { a.Stateid.Encode(w) }

// FH is nfs_fh4, RFC 8881 section 3.3.4: PUTFH4args and GETFH4resok.
type FH struct{ FH []byte }

// Decode reads a file handle.
func (a *FH) Decode(r *xdr.Reader) { a.FH = r.Opaque(MaxFH) }

// Encode writes a file handle.
func (a *FH) Encode(w *xdr.Writer) { w.Opaque(a.FH) }

// Name is component4, RFC 8881 section 3.2: LOOKUP4args, REMOVE4args,
// LINK4args, SECINFO4args, GETXATTR4args, REMOVEXATTR4args and READLINK4resok.
type Name struct{ Name string }

// Decode reads a name.
func (a *Name) Decode(r *xdr.Reader) { a.Name = r.String(unbounded) }

// Encode writes a name.
func (a *Name) Encode(w *xdr.Writer) { w.String(a.Name) }

// ClientID is clientid4, RFC 8881 section 3.2: DESTROY_CLIENTID4args,
// DELEGPURGE4args and RENEW4args.
type ClientID struct{ ID uint64 }

// Decode reads a clientid4.
func (a *ClientID) Decode(r *xdr.Reader) { a.ID = r.Uint64() }

// Encode writes a clientid4.
func (a *ClientID) Encode(w *xdr.Writer) { w.Uint64(a.ID) }

// Owner is state_owner4, RFC 8881 section 3.3.10: who opens or locks. In minor
// versions 1 and 2 the client is the session's, and Client is not looked at.
// RELEASE_LOCKOWNER4args, RFC 7530 section 16.37, is one.
type Owner struct {
	Client uint64
	Owner  []byte
}

// Decode reads a state_owner4.
func (o *Owner) Decode(r *xdr.Reader) {
	o.Client = r.Uint64()
	o.Owner = r.Opaque(MaxOpaque)
}

// Encode writes a state_owner4.
func (o *Owner) Encode(w *xdr.Writer) {
	w.Uint64(o.Client)
	w.Opaque(o.Owner)
}

// Fattr is fattr4, RFC 8881 section 3.3.9, with its values as they are on the
// wire: GETATTR4resok, VERIFY4args, NVERIFY4args and CB_GETATTR4resok. Values stand
// in the order of their numbers.
type Fattr struct {
	Mask Bitmap
	More bool // it has a number too large for Mask: nobody supports that
	Vals []byte
}

// Decode reads a fattr4.
func (a *Fattr) Decode(r *xdr.Reader) {
	a.More = a.Mask.decode(r)
	a.Vals = r.Opaque(unbounded)
}

// Encode writes a fattr4.
func (a *Fattr) Encode(w *xdr.Writer) {
	a.Mask.Encode(w)
	w.Opaque(a.Vals)
}
