package nfs4

import "ramserver/export/nfs/xdr"

// CreateArgs is CREATE4args, RFC 8881 section 18.4. Target counts for a symbolic
// link, Major and Minor for devices: the RFC's createtype4. A type that cannot
// be made is answered with BADTYPE and has neither.
type CreateArgs struct {
	Type         Type
	Target       string
	Major, Minor uint32
	Name         string
	Attr         Fattr
}

// Decode reads the arguments.
func (a *CreateArgs) Decode(r *xdr.Reader) {
	switch a.Type = Type(r.Uint32()); a.Type {
	case TypeLnk:
		a.Target = r.String(unbounded)
	case TypeBlk, TypeChr:
		a.Major = r.Uint32()
		a.Minor = r.Uint32()
	}
	a.Name = r.String(unbounded)
	a.Attr.Decode(r)
}

// Encode writes the arguments.
func (a *CreateArgs) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Type))
	switch a.Type {
	case TypeLnk:
		w.String(a.Target)
	case TypeBlk, TypeChr:
		w.Uint32(a.Major)
		w.Uint32(a.Minor)
	}
	w.String(a.Name)
	a.Attr.Encode(w)
}

// CreateRes is CREATE4resok, RFC 8881 section 18.4.
type CreateRes struct {
	Dir ChangeInfo
	Set Bitmap // attributes that were set
}

// Decode reads the results.
func (a *CreateRes) Decode(r *xdr.Reader) {
	a.Dir.Decode(r)
	a.Set.Decode(r)
}

// Encode writes the results.
func (a *CreateRes) Encode(w *xdr.Writer) {
	a.Dir.Encode(w)
	a.Set.Encode(w)
}

// DirRes is the result of the operations that change one directory: REMOVE4resok
// and LINK4resok, RFC 8881 sections 18.25 and 18.9, and with the change attribute
// of a file SETXATTR4resok and REMOVEXATTR4resok, RFC 8276 section 8.4.
type DirRes struct{ Dir ChangeInfo }

// Decode reads the results.
func (a *DirRes) Decode(r *xdr.Reader) { a.Dir.Decode(r) }

// Encode writes the results.
func (a *DirRes) Encode(w *xdr.Writer) { a.Dir.Encode(w) }

// RenameArgs is RENAME4args, RFC 8881 section 18.26: From is a name in the saved
// file handle, To in the current one.
type RenameArgs struct{ From, To string }

// Decode reads the arguments.
func (a *RenameArgs) Decode(r *xdr.Reader) {
	a.From = r.String(unbounded)
	a.To = r.String(unbounded)
}

// Encode writes the arguments.
func (a *RenameArgs) Encode(w *xdr.Writer) {
	w.String(a.From)
	w.String(a.To)
}

// RenameRes is RENAME4resok, RFC 8881 section 18.26.
type RenameRes struct{ From, To ChangeInfo }

// Decode reads the results.
func (a *RenameRes) Decode(r *xdr.Reader) {
	a.From.Decode(r)
	a.To.Decode(r)
}

// Encode writes the results.
func (a *RenameRes) Encode(w *xdr.Writer) {
	a.From.Encode(w)
	a.To.Encode(w)
}

// ReadDirArgs is READDIR4args, RFC 8881 section 18.23.
type ReadDirArgs struct {
	Cookie     uint64
	CookieVerf uint64
	DirCount   uint32 // bytes of names and cookies, a hint
	MaxCount   uint32 // bytes of READDIR4resok
	Mask       Bitmap
}

// Decode reads the arguments.
func (a *ReadDirArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Uint64()
	a.CookieVerf = r.Uint64()
	a.DirCount = r.Uint32()
	a.MaxCount = r.Uint32()
	a.Mask.Decode(r)
}

// Encode writes the arguments.
func (a *ReadDirArgs) Encode(w *xdr.Writer) {
	w.Uint64(a.Cookie)
	w.Uint64(a.CookieVerf)
	w.Uint32(a.DirCount)
	w.Uint32(a.MaxCount)
	a.Mask.Encode(w)
}

// ReadDirRes is READDIR4resok as a whole, RFC 8881 section 18.23. A server writes
// CookieVerf, and for each entry [EncodeEntryHead] and a fattr4, and ends by
// [EncodeDirEnd].
type ReadDirRes struct {
	CookieVerf uint64
	Entries    []Entry
	EOF        bool
}

// Entry is entry4, RFC 8881 section 18.23.
type Entry struct {
	Cookie uint64
	Name   string
	Attr   Fattr
}

// DirEndSize is what [EncodeDirEnd] writes, in bytes.
const DirEndSize = 8

// EntryHeadSize is what [EncodeEntryHead] writes for a name of n bytes, in bytes.
func EntryHeadSize(n int) int { return 4 + 8 + 4 + n + -n&3 }

// EncodeEntryHead writes the bool that announces an entry, its cookie and its
// name. Its attributes are to follow.
func EncodeEntryHead(w *xdr.Writer, cookie uint64, name string) {
	w.Bool(true)
	w.Uint64(cookie)
	w.String(name)
}

// EncodeDirEnd ends a list of directory entries. With eof there are no more in
// the directory.
func EncodeDirEnd(w *xdr.Writer, eof bool) {
	w.Bool(false)
	w.Bool(eof)
}

// Decode reads the results.
func (a *ReadDirRes) Decode(r *xdr.Reader) {
	a.CookieVerf = r.Uint64()
	for r.Bool() {
		var e Entry
		e.Cookie = r.Uint64()
		e.Name = r.String(unbounded)
		e.Attr.Decode(r)
		a.Entries = append(a.Entries, e)
	}
	a.EOF = r.Bool()
}

// Encode writes the results.
func (a *ReadDirRes) Encode(w *xdr.Writer) {
	w.Uint64(a.CookieVerf)
	for i := range a.Entries {
		e := &a.Entries[i]
		EncodeEntryHead(w, e.Cookie, e.Name)
		e.Attr.Encode(w)
	}
	EncodeDirEnd(w, a.EOF)
}
