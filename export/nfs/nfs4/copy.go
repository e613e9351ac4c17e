package nfs4

import "ramserver/export/nfs/xdr"

// RangeArgs is ALLOCATE4args and DEALLOCATE4args, RFC 7862 sections 15.1 and
// 15.4.
type RangeArgs struct {
	Stateid        Stateid
	Offset, Length uint64 // bytes
}

// Decode reads the arguments.
func (a *RangeArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Offset = r.Uint64()
	a.Length = r.Uint64()
}

// Encode writes the arguments.
func (a *RangeArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	w.Uint64(a.Offset)
	w.Uint64(a.Length)
}

// What SEEK looks for, data_content4, RFC 7862 section 11.11.
const (
	SeekData = 0
	SeekHole = 1
)

// SeekArgs is SEEK4args, RFC 7862 section 15.11.
type SeekArgs struct {
	Stateid Stateid
	Offset  uint64
	What    uint32
}

// Decode reads the arguments.
func (a *SeekArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Offset = r.Uint64()
	a.What = r.Uint32()
}

// Encode writes the arguments.
func (a *SeekArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	w.Uint64(a.Offset)
	w.Uint32(a.What)
}

// SeekRes is seek_res4, RFC 7862 section 15.11.
type SeekRes struct {
	EOF    bool
	Offset uint64
}

// Decode reads the results.
func (a *SeekRes) Decode(r *xdr.Reader) {
	a.EOF = r.Bool()
	a.Offset = r.Uint64()
}

// Encode writes the results.
func (a *SeekRes) Encode(w *xdr.Writer) {
	w.Bool(a.EOF)
	w.Uint64(a.Offset)
}

// CloneArgs is CLONE4args, RFC 7862 section 15.13: from the saved file to the
// current one.
type CloneArgs struct {
	From, To             Stateid
	FromOffset, ToOffset uint64
	Count                uint64 // bytes; 0: to the end of the file
}

// Decode reads the arguments.
func (a *CloneArgs) Decode(r *xdr.Reader) {
	a.From.Decode(r)
	a.To.Decode(r)
	a.FromOffset = r.Uint64()
	a.ToOffset = r.Uint64()
	a.Count = r.Uint64()
}

// Encode writes the arguments.
func (a *CloneArgs) Encode(w *xdr.Writer) {
	a.From.Encode(w)
	a.To.Encode(w)
	w.Uint64(a.FromOffset)
	w.Uint64(a.ToOffset)
	w.Uint64(a.Count)
}

// CopyArgs is COPY4args, RFC 7862 section 15.2, within one server. Of a copy
// from other servers only their number is read: Servers is then not 0, and
// nothing behind it may be decoded.
type CopyArgs struct {
	CloneArgs
	Consecutive, Synchronous bool
	Servers                  uint32
}

// Decode reads the arguments.
func (a *CopyArgs) Decode(r *xdr.Reader) {
	a.CloneArgs.Decode(r)
	a.Consecutive = r.Bool()
	a.Synchronous = r.Bool()
	a.Servers = r.Uint32()
}

// Encode writes the arguments of a copy within the server.
func (a *CopyArgs) Encode(w *xdr.Writer) {
	a.CloneArgs.Encode(w)
	w.Bool(a.Consecutive)
	w.Bool(a.Synchronous)
	w.Uint32(0)
}

// CopyRes is COPY4resok of a synchronous copy, RFC 7862 section 15.2.
type CopyRes struct {
	Write       WriteRes64
	Consecutive bool
	Synchronous bool
}

// WriteRes64 is write_response4 without a callback, RFC 7862 section 11.
type WriteRes64 struct {
	Count     uint64 // bytes
	Committed Stable
	Verf      uint64
}

// Decode reads the results.
func (a *CopyRes) Decode(r *xdr.Reader) {
	if r.Uint32() != 0 {
		r.Fail(xdr.ErrLength) // a stateid for a callback, which only others have
	}
	a.Write.Count = r.Uint64()
	a.Write.Committed = Stable(r.Enum(uint32(FileSync)))
	a.Write.Verf = r.Uint64()
	a.Consecutive = r.Bool()
	a.Synchronous = r.Bool()
}

// Encode writes the results.
func (a *CopyRes) Encode(w *xdr.Writer) {
	w.Uint32(0)
	w.Uint64(a.Write.Count)
	w.Uint32(uint32(a.Write.Committed))
	w.Uint64(a.Write.Verf)
	w.Bool(a.Consecutive)
	w.Bool(a.Synchronous)
}

// Options of SETXATTR, setxattr_option4, RFC 8276 section 8.4.3.
const (
	SetXattrEither  = 0
	SetXattrCreate  = 1
	SetXattrReplace = 2
)

// SetXattrArgs is SETXATTR4args, RFC 8276 section 8.4.3.
type SetXattrArgs struct {
	Option uint32
	Name   string
	Value  []byte
}

// Decode reads the arguments.
func (a *SetXattrArgs) Decode(r *xdr.Reader) {
	a.Option = r.Enum(SetXattrReplace)
	a.Name = r.String(unbounded)
	a.Value = r.Opaque(unbounded)
}

// Encode writes the arguments.
func (a *SetXattrArgs) Encode(w *xdr.Writer) {
	w.Uint32(a.Option)
	w.String(a.Name)
	w.Opaque(a.Value)
}

// ListXattrsArgs is LISTXATTRS4args, RFC 8276 section 8.4.4.
type ListXattrsArgs struct {
	Cookie   uint64
	MaxCount uint32 // bytes of the names and what is around them
}

// Decode reads the arguments.
func (a *ListXattrsArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Uint64()
	a.MaxCount = r.Uint32()
}

// Encode writes the arguments.
func (a *ListXattrsArgs) Encode(w *xdr.Writer) {
	w.Uint64(a.Cookie)
	w.Uint32(a.MaxCount)
}

// IOAdviseArgs is IO_ADVISE4args, RFC 7862 section 15.5.
type IOAdviseArgs struct {
	RangeArgs
	Hints Bitmap
}

// Decode reads the arguments.
func (a *IOAdviseArgs) Decode(r *xdr.Reader) {
	a.RangeArgs.Decode(r)
	a.Hints.Decode(r)
}

// Encode writes the arguments.
func (a *IOAdviseArgs) Encode(w *xdr.Writer) {
	a.RangeArgs.Encode(w)
	a.Hints.Encode(w)
}
