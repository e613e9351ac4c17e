package nfs4

import "ramserver/export/nfs/xdr"

// Bits of ACCESS, RFC 8881 section 18.1 and, the last three, RFC 8276 section
// 8.5.
const (
	AccessRead       = 0x001
	AccessLookup     = 0x002
	AccessModify     = 0x004
	AccessExtend     = 0x008
	AccessDelete     = 0x010
	AccessExecute    = 0x020
	AccessXattrRead  = 0x040
	AccessXattrWrite = 0x080
	AccessXattrList  = 0x100
)

// AccessArgs is ACCESS4args, RFC 8881 section 18.1.
type AccessArgs struct{ Access uint32 }

// Decode reads the arguments.
func (a *AccessArgs) Decode(r *xdr.Reader) { a.Access = r.Uint32() }

// Encode writes the arguments.
func (a *AccessArgs) Encode(w *xdr.Writer) { w.Uint32(a.Access) }

// AccessRes is ACCESS4resok, RFC 8881 section 18.1: which of the bits asked for
// the server knows, and which of those are granted.
type AccessRes struct{ Supported, Access uint32 }

// Decode reads the results.
func (a *AccessRes) Decode(r *xdr.Reader) {
	a.Supported = r.Uint32()
	a.Access = r.Uint32()
}

// Encode writes the results.
func (a *AccessRes) Encode(w *xdr.Writer) {
	w.Uint32(a.Supported)
	w.Uint32(a.Access)
}

// GetAttrArgs is GETATTR4args, RFC 8881 section 18.7. The results are a [Fattr].
type GetAttrArgs struct{ Mask Bitmap }

// Decode reads the arguments.
func (a *GetAttrArgs) Decode(r *xdr.Reader) { a.Mask.Decode(r) }

// Encode writes the arguments.
func (a *GetAttrArgs) Encode(w *xdr.Writer) { a.Mask.Encode(w) }

// SetAttrArgs is SETATTR4args, RFC 8881 section 18.30.
type SetAttrArgs struct {
	Stateid Stateid // counts if the size is set
	Attr    Fattr
}

// Decode reads the arguments.
func (a *SetAttrArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Attr.Decode(r)
}

// Encode writes the arguments.
func (a *SetAttrArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	a.Attr.Encode(w)
}

// SetAttrRes is what follows the status in SETATTR4res, whatever that is: which
// attributes were set, RFC 8881 section 18.30.
type SetAttrRes struct{ Set Bitmap }

// Decode reads the results.
func (a *SetAttrRes) Decode(r *xdr.Reader) { a.Set.Decode(r) }

// Encode writes the results.
func (a *SetAttrRes) Encode(w *xdr.Writer) { a.Set.Encode(w) }

// ReadArgs is READ4args, RFC 8881 section 18.22, and READ_PLUS4args, RFC 7862
// section 15.10.
type ReadArgs struct {
	Stateid Stateid
	Offset  uint64
	Count   uint32 // bytes
}

// Decode reads the arguments.
func (a *ReadArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Offset = r.Uint64()
	a.Count = r.Uint32()
}

// Encode writes the arguments.
func (a *ReadArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	w.Uint64(a.Offset)
	w.Uint32(a.Count)
}

// ReadRes is READ4resok, RFC 8881 section 18.22.
type ReadRes struct {
	EOF  bool
	Data []byte
}

// Decode reads the results.
func (a *ReadRes) Decode(r *xdr.Reader) {
	a.EOF = r.Bool()
	a.Data = r.Opaque(unbounded)
}

// EncodeHead writes the results but the data, of which count bytes and their
// padding are to follow: a server may send them straight from a file.
func (a *ReadRes) EncodeHead(w *xdr.Writer, count uint32) {
	w.Bool(a.EOF)
	w.Uint32(count)
}

// Encode writes the results.
func (a *ReadRes) Encode(w *xdr.Writer) {
	w.Bool(a.EOF)
	w.Opaque(a.Data)
}

// Stable is stable_how4, RFC 8881 section 18.32.
type Stable uint32

// How stable a WRITE is to be.
const (
	Unstable Stable = 0
	DataSync Stable = 1
	FileSync Stable = 2
)

// WriteArgs is WRITE4args, RFC 8881 section 18.32.
type WriteArgs struct {
	Stateid Stateid
	Offset  uint64
	Stable  Stable
	Data    []byte
}

// WriteHeadSize is the size of the arguments but the data, in bytes.
const WriteHeadSize = 16 + 8 + 4 + 4

// DecodeHead reads the arguments but the data, whose length it returns. The data
// and its padding follow: a server may receive them straight into a file. The
// length is bounded by the caller.
func (a *WriteArgs) DecodeHead(r *xdr.Reader) (length uint32) {
	a.Stateid.Decode(r)
	a.Offset = r.Uint64()
	a.Stable = Stable(r.Enum(uint32(FileSync)))
	return r.Uint32()
}

// Decode reads the arguments.
func (a *WriteArgs) Decode(r *xdr.Reader) {
	n := a.DecodeHead(r)
	if uint64(n) > uint64(r.Len()) {
		r.Fail(xdr.ErrShort)
		return
	}
	a.Data = r.Fixed(int(n))
}

// EncodeHead writes the arguments but the data, of which length bytes and their
// padding are to follow.
func (a *WriteArgs) EncodeHead(w *xdr.Writer, length uint32) {
	a.Stateid.Encode(w)
	w.Uint64(a.Offset)
	w.Uint32(uint32(a.Stable))
	w.Uint32(length)
}

// Encode writes the arguments.
func (a *WriteArgs) Encode(w *xdr.Writer) {
	a.EncodeHead(w, uint32(len(a.Data)))
	w.Fixed(a.Data)
}

// WriteRes is WRITE4resok, RFC 8881 section 18.32.
type WriteRes struct {
	Count     uint32 // bytes
	Committed Stable
	Verf      uint64 // verifier4: changes when a server may have lost uncommitted data
}

// Decode reads the results.
func (a *WriteRes) Decode(r *xdr.Reader) {
	a.Count = r.Uint32()
	a.Committed = Stable(r.Enum(uint32(FileSync)))
	a.Verf = r.Uint64()
}

// Encode writes the results.
func (a *WriteRes) Encode(w *xdr.Writer) {
	w.Uint32(a.Count)
	w.Uint32(uint32(a.Committed))
	w.Uint64(a.Verf)
}

// CommitArgs is COMMIT4args, RFC 8881 section 18.3. A count of 0 is to the end of
// the file.
type CommitArgs struct {
	Offset uint64
	Count  uint32
}

// Decode reads the arguments.
func (a *CommitArgs) Decode(r *xdr.Reader) {
	a.Offset = r.Uint64()
	a.Count = r.Uint32()
}

// Encode writes the arguments.
func (a *CommitArgs) Encode(w *xdr.Writer) {
	w.Uint64(a.Offset)
	w.Uint32(a.Count)
}

// CommitRes is COMMIT4resok, RFC 8881 section 18.3.
type CommitRes struct{ Verf uint64 }

// Decode reads the results.
func (a *CommitRes) Decode(r *xdr.Reader) { a.Verf = r.Uint64() }

// Encode writes the results.
func (a *CommitRes) Encode(w *xdr.Writer) { w.Uint64(a.Verf) }
