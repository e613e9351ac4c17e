package nfs3

import "ramserver/export/nfs/xdr"

// FHArgs is the argument of the procedures that take one file handle:
// GETATTR3args, READLINK3args, FSSTAT3args, FSINFO3args and PATHCONF3args, RFC
// 1813 sections 3.3.1, 3.3.5, 3.3.18, 3.3.19 and 3.3.20.
//
// LOOKUP3args, REMOVE3args and RMDIR3args, sections 3.3.3, 3.3.12 and 3.3.13,
// are one [DirOp].
type FHArgs struct{ FH []byte }

// Decode reads the arguments.
func (a *FHArgs) Decode(r *xdr.Reader) { a.FH = r.Opaque(MaxFH) }

// Encode writes the arguments.
func (a *FHArgs) Encode(w *xdr.Writer) { w.Opaque(a.FH) }

// SetAttrArgs is SETATTR3args, RFC 1813 section 3.3.2. With Check the change is
// made only if the file's ctime is Guard, the RFC's sattrguard3.
type SetAttrArgs struct {
	FH    []byte
	Attr  Sattr
	Check bool
	Guard Time
}

// Decode reads the arguments.
func (a *SetAttrArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Attr.Decode(r)
	if a.Check = r.Bool(); a.Check {
		a.Guard.Decode(r)
	}
}

// Encode writes the arguments.
func (a *SetAttrArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	a.Attr.Encode(w)
	w.Bool(a.Check)
	if a.Check {
		a.Guard.Encode(w)
	}
}

// Bits of ACCESS, RFC 1813 section 3.3.4.
const (
	AccessRead    = 0x01
	AccessLookup  = 0x02
	AccessModify  = 0x04
	AccessExtend  = 0x08
	AccessDelete  = 0x10
	AccessExecute = 0x20
)

// AccessArgs is ACCESS3args, RFC 1813 section 3.3.4.
type AccessArgs struct {
	FH     []byte
	Access uint32
}

// Decode reads the arguments.
func (a *AccessArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Access = r.Uint32()
}

// Encode writes the arguments.
func (a *AccessArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	w.Uint32(a.Access)
}

// ReadArgs is READ3args, RFC 1813 section 3.3.6.
type ReadArgs struct {
	FH     []byte
	Offset uint64
	Count  uint32 // bytes
}

// Decode reads the arguments.
func (a *ReadArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Offset = r.Uint64()
	a.Count = r.Uint32()
}

// Encode writes the arguments.
func (a *ReadArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	w.Uint64(a.Offset)
	w.Uint32(a.Count)
}

// Stable is stable_how, RFC 1813 section 3.3.7.
type Stable uint32

// How stable a WRITE is to be.
const (
	Unstable Stable = 0
	DataSync Stable = 1
	FileSync Stable = 2
)

// WriteArgs is WRITE3args, RFC 1813 section 3.3.7.
type WriteArgs struct {
	FH     []byte
	Offset uint64
	Count  uint32 // bytes; the data's own length may differ
	Stable Stable
	Data   []byte
}

// DecodeHead reads the arguments but the data, whose length it returns. The data
// and its padding follow: a server may receive them straight into a file. The
// length is bounded by the caller.
func (a *WriteArgs) DecodeHead(r *xdr.Reader) (length uint32) {
	a.FH = r.Opaque(MaxFH)
	a.Offset = r.Uint64()
	a.Count = r.Uint32()
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
	w.Opaque(a.FH)
	w.Uint64(a.Offset)
	w.Uint32(a.Count)
	w.Uint32(uint32(a.Stable))
	w.Uint32(length)
}

// Encode writes the arguments.
func (a *WriteArgs) Encode(w *xdr.Writer) {
	a.EncodeHead(w, uint32(len(a.Data)))
	w.Fixed(a.Data)
}

// CreateMode is createmode3, RFC 1813 section 3.3.8.
type CreateMode uint32

// What CREATE does about a name that exists.
const (
	Unchecked CreateMode = 0 // uses the file
	Guarded   CreateMode = 1 // answers EXIST
	Exclusive CreateMode = 2 // answers EXIST unless it was made with the same verifier
)

// CreateArgs is CREATE3args, RFC 1813 section 3.3.8. Attr counts in the modes
// Unchecked and Guarded, Verf in Exclusive: the RFC's createhow3.
type CreateArgs struct {
	Where DirOp
	Mode  CreateMode
	Attr  Sattr
	Verf  uint64 // createverf3, eight bytes that only the client understands
}

// Decode reads the arguments.
func (a *CreateArgs) Decode(r *xdr.Reader) {
	a.Where.Decode(r)
	a.Mode = CreateMode(r.Enum(uint32(Exclusive)))
	if a.Mode == Exclusive {
		a.Verf = r.Uint64()
	} else {
		a.Attr.Decode(r)
	}
}

// Encode writes the arguments.
func (a *CreateArgs) Encode(w *xdr.Writer) {
	a.Where.Encode(w)
	w.Uint32(uint32(a.Mode))
	if a.Mode == Exclusive {
		w.Uint64(a.Verf)
	} else {
		a.Attr.Encode(w)
	}
}

// MkdirArgs is MKDIR3args, RFC 1813 section 3.3.9.
type MkdirArgs struct {
	Where DirOp
	Attr  Sattr
}

// Decode reads the arguments.
func (a *MkdirArgs) Decode(r *xdr.Reader) {
	a.Where.Decode(r)
	a.Attr.Decode(r)
}

// Encode writes the arguments.
func (a *MkdirArgs) Encode(w *xdr.Writer) {
	a.Where.Encode(w)
	a.Attr.Encode(w)
}

// SymlinkArgs is SYMLINK3args, RFC 1813 section 3.3.10.
type SymlinkArgs struct {
	Where  DirOp
	Attr   Sattr
	Target string
}

// Decode reads the arguments.
func (a *SymlinkArgs) Decode(r *xdr.Reader) {
	a.Where.Decode(r)
	a.Attr.Decode(r)
	a.Target = r.String(unbounded)
}

// Encode writes the arguments.
func (a *SymlinkArgs) Encode(w *xdr.Writer) {
	a.Where.Encode(w)
	a.Attr.Encode(w)
	w.String(a.Target)
}

// MknodArgs is MKNOD3args, RFC 1813 section 3.3.11. Attr counts for devices,
// sockets and FIFOs, Major and Minor for devices: the RFC's mknoddata3. Any
// other type, which a server answers with BADTYPE, has neither.
type MknodArgs struct {
	Where        DirOp
	Type         Type
	Attr         Sattr
	Major, Minor uint32
}

// Decode reads the arguments.
func (a *MknodArgs) Decode(r *xdr.Reader) {
	a.Where.Decode(r)
	a.Type = Type(r.Uint32())
	switch a.Type {
	case TypeChr, TypeBlk:
		a.Attr.Decode(r)
		a.Major = r.Uint32()
		a.Minor = r.Uint32()
	case TypeSock, TypeFIFO:
		a.Attr.Decode(r)
	}
}

// Encode writes the arguments.
func (a *MknodArgs) Encode(w *xdr.Writer) {
	a.Where.Encode(w)
	w.Uint32(uint32(a.Type))
	switch a.Type {
	case TypeChr, TypeBlk:
		a.Attr.Encode(w)
		w.Uint32(a.Major)
		w.Uint32(a.Minor)
	case TypeSock, TypeFIFO:
		a.Attr.Encode(w)
	}
}

// RenameArgs is RENAME3args, RFC 1813 section 3.3.14.
type RenameArgs struct{ From, To DirOp }

// Decode reads the arguments.
func (a *RenameArgs) Decode(r *xdr.Reader) {
	a.From.Decode(r)
	a.To.Decode(r)
}

// Encode writes the arguments.
func (a *RenameArgs) Encode(w *xdr.Writer) {
	a.From.Encode(w)
	a.To.Encode(w)
}

// LinkArgs is LINK3args, RFC 1813 section 3.3.15.
type LinkArgs struct {
	FH   []byte
	Link DirOp
}

// Decode reads the arguments.
func (a *LinkArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Link.Decode(r)
}

// Encode writes the arguments.
func (a *LinkArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	a.Link.Encode(w)
}

// ReadDirArgs is READDIR3args, RFC 1813 section 3.3.16.
type ReadDirArgs struct {
	FH         []byte
	Cookie     uint64
	CookieVerf uint64
	Count      uint32 // bytes of READDIR3resok
}

// Decode reads the arguments.
func (a *ReadDirArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Cookie = r.Uint64()
	a.CookieVerf = r.Uint64()
	a.Count = r.Uint32()
}

// Encode writes the arguments.
func (a *ReadDirArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	w.Uint64(a.Cookie)
	w.Uint64(a.CookieVerf)
	w.Uint32(a.Count)
}

// ReadDirPlusArgs is READDIRPLUS3args, RFC 1813 section 3.3.17.
type ReadDirPlusArgs struct {
	FH         []byte
	Cookie     uint64
	CookieVerf uint64
	DirCount   uint32 // bytes of names, file ids and cookies
	MaxCount   uint32 // bytes of READDIRPLUS3resok
}

// Decode reads the arguments.
func (a *ReadDirPlusArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Cookie = r.Uint64()
	a.CookieVerf = r.Uint64()
	a.DirCount = r.Uint32()
	a.MaxCount = r.Uint32()
}

// Encode writes the arguments.
func (a *ReadDirPlusArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	w.Uint64(a.Cookie)
	w.Uint64(a.CookieVerf)
	w.Uint32(a.DirCount)
	w.Uint32(a.MaxCount)
}

// CommitArgs is COMMIT3args, RFC 1813 section 3.3.21.
type CommitArgs struct {
	FH     []byte
	Offset uint64
	Count  uint32 // bytes; 0 is to the end of the file
}

// Decode reads the arguments.
func (a *CommitArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Offset = r.Uint64()
	a.Count = r.Uint32()
}

// Encode writes the arguments.
func (a *CommitArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	w.Uint64(a.Offset)
	w.Uint32(a.Count)
}
