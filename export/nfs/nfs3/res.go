package nfs3

import "ramserver/export/nfs/xdr"

// GetAttrRes is GETATTR3res, RFC 1813 section 3.3.1.
type GetAttrRes struct {
	Status Status
	Attr   Fattr // with OK only
}

// Decode reads the results.
func (a *GetAttrRes) Decode(r *xdr.Reader) {
	if a.Status = Status(r.Uint32()); a.Status == OK {
		a.Attr.Decode(r)
	}
}

// Encode writes the results.
func (a *GetAttrRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	if a.Status == OK {
		a.Attr.Encode(w)
	}
}

// WccRes is the result of the procedures that answer with a status and weak
// cache consistency data: SETATTR3res, REMOVE3res and RMDIR3res, RFC 1813
// sections 3.3.2, 3.3.12 and 3.3.13.
type WccRes struct {
	Status Status
	Wcc    WccData // of the file, or of the directory that held the name
}

// Decode reads the results.
func (a *WccRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Wcc.Decode(r)
}

// Encode writes the results.
func (a *WccRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Wcc.Encode(w)
}

// LookupRes is LOOKUP3res, RFC 1813 section 3.3.3.
type LookupRes struct {
	Status Status
	FH     []byte     // with OK only
	Attr   PostOpAttr // of the file; with OK only
	Dir    PostOpAttr
}

// Decode reads the results.
func (a *LookupRes) Decode(r *xdr.Reader) {
	if a.Status = Status(r.Uint32()); a.Status == OK {
		a.FH = r.Opaque(MaxFH)
		a.Attr.Decode(r)
	}
	a.Dir.Decode(r)
}

// Encode writes the results.
func (a *LookupRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	if a.Status == OK {
		w.Opaque(a.FH)
		a.Attr.Encode(w)
	}
	a.Dir.Encode(w)
}

// AccessRes is ACCESS3res, RFC 1813 section 3.3.4.
type AccessRes struct {
	Status Status
	Attr   PostOpAttr
	Access uint32 // with OK only
}

// Decode reads the results.
func (a *AccessRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	if a.Status == OK {
		a.Access = r.Uint32()
	}
}

// Encode writes the results.
func (a *AccessRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.Uint32(a.Access)
	}
}

// ReadLinkRes is READLINK3res, RFC 1813 section 3.3.5.
type ReadLinkRes struct {
	Status Status
	Attr   PostOpAttr
	Target string // with OK only
}

// Decode reads the results.
func (a *ReadLinkRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	if a.Status == OK {
		a.Target = r.String(unbounded)
	}
}

// Encode writes the results.
func (a *ReadLinkRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.String(a.Target)
	}
}

// ReadRes is READ3res, RFC 1813 section 3.3.6.
type ReadRes struct {
	Status Status
	Attr   PostOpAttr
	Count  uint32 // bytes; with OK only, as the rest
	EOF    bool
	Data   []byte
}

// Decode reads the results.
func (a *ReadRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	if a.Status == OK {
		a.Count = r.Uint32()
		a.EOF = r.Bool()
		a.Data = r.Opaque(unbounded)
	}
}

// EncodeHead writes the results but the data, of which, with OK, Count bytes and
// their padding are to follow: a server may send them straight from a file.
func (a *ReadRes) EncodeHead(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.Uint32(a.Count)
		w.Bool(a.EOF)
		w.Uint32(a.Count)
	}
}

// Encode writes the results.
func (a *ReadRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.Uint32(a.Count)
		w.Bool(a.EOF)
		w.Opaque(a.Data)
	}
}

// WriteRes is WRITE3res, RFC 1813 section 3.3.7.
type WriteRes struct {
	Status    Status
	Wcc       WccData
	Count     uint32 // bytes; with OK only, as the rest
	Committed Stable
	Verf      uint64 // writeverf3: changes when a server may have lost uncommitted data
}

// Decode reads the results.
func (a *WriteRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Wcc.Decode(r)
	if a.Status == OK {
		a.Count = r.Uint32()
		a.Committed = Stable(r.Enum(uint32(FileSync)))
		a.Verf = r.Uint64()
	}
}

// Encode writes the results.
func (a *WriteRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Wcc.Encode(w)
	if a.Status == OK {
		w.Uint32(a.Count)
		w.Uint32(uint32(a.Committed))
		w.Uint64(a.Verf)
	}
}

// CreateRes is the result of the procedures that make a name: CREATE3res,
// MKDIR3res, SYMLINK3res and MKNOD3res, RFC 1813 sections 3.3.8 to 3.3.11.
type CreateRes struct {
	Status Status
	FH     PostOpFH   // with OK only
	Attr   PostOpAttr // with OK only
	Dir    WccData
}

// Decode reads the results.
func (a *CreateRes) Decode(r *xdr.Reader) {
	if a.Status = Status(r.Uint32()); a.Status == OK {
		a.FH.Decode(r)
		a.Attr.Decode(r)
	}
	a.Dir.Decode(r)
}

// Encode writes the results.
func (a *CreateRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	if a.Status == OK {
		a.FH.Encode(w)
		a.Attr.Encode(w)
	}
	a.Dir.Encode(w)
}

// RenameRes is RENAME3res, RFC 1813 section 3.3.14.
type RenameRes struct {
	Status   Status
	From, To WccData // of the directories
}

// Decode reads the results.
func (a *RenameRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.From.Decode(r)
	a.To.Decode(r)
}

// Encode writes the results.
func (a *RenameRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.From.Encode(w)
	a.To.Encode(w)
}

// LinkRes is LINK3res, RFC 1813 section 3.3.15.
type LinkRes struct {
	Status Status
	Attr   PostOpAttr // of the file
	Dir    WccData
}

// Decode reads the results.
func (a *LinkRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	a.Dir.Decode(r)
}

// Encode writes the results.
func (a *LinkRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	a.Dir.Encode(w)
}

// ReadDirHead is what READDIR3res and READDIRPLUS3res begin with, RFC 1813
// sections 3.3.16 and 3.3.17. With OK a server lets any number of [Entry] or
// [EntryPlus] follow, and ends by [EncodeDirEnd].
type ReadDirHead struct {
	Status     Status
	Dir        PostOpAttr
	CookieVerf uint64 // with OK only
}

// Decode reads the head.
func (a *ReadDirHead) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Dir.Decode(r)
	if a.Status == OK {
		a.CookieVerf = r.Uint64()
	}
}

// Encode writes the head.
func (a *ReadDirHead) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Dir.Encode(w)
	if a.Status == OK {
		w.Uint64(a.CookieVerf)
	}
}

// Sizes of the parts of a reply on the wire, in bytes, for the limits a client
// sets: Count of READDIR and MaxCount of READDIRPLUS bound the results without
// their status.
const (
	FattrSize      = 84
	PostOpAttrSize = 4 + FattrSize
	DirEndSize     = 8
)

// EncodeDirEnd ends a list of directory entries. With eof there are no more in
// the directory.
func EncodeDirEnd(w *xdr.Writer, eof bool) {
	w.Bool(false)
	w.Bool(eof)
}

// Entry is entry3, RFC 1813 section 3.3.16.
type Entry struct {
	FileID uint64
	Name   string
	Cookie uint64
}

// EntrySize is the size of an [Entry] in a list, for a name of n bytes.
func EntrySize(n int) int { return 4 + 8 + 4 + n + -n&3 + 8 }

// Decode reads an entry, behind the bool that announces it.
func (e *Entry) Decode(r *xdr.Reader) {
	e.FileID = r.Uint64()
	e.Name = r.String(unbounded)
	e.Cookie = r.Uint64()
}

// Encode writes an entry and the bool that announces it.
func (e *Entry) Encode(w *xdr.Writer) {
	w.Bool(true)
	w.Uint64(e.FileID)
	w.String(e.Name)
	w.Uint64(e.Cookie)
}

// EntryPlus is entryplus3, RFC 1813 section 3.3.17.
type EntryPlus struct {
	Entry
	Attr PostOpAttr
	FH   PostOpFH
}

// EntryPlusSize is the size of an [EntryPlus] with attributes and a handle of fh
// bytes in a list, for a name of n bytes. [EntrySize] of it counts against
// DirCount.
func EntryPlusSize(n, fh int) int { return EntrySize(n) + PostOpAttrSize + 4 + 4 + fh + -fh&3 }

// Decode reads an entry, behind the bool that announces it.
func (e *EntryPlus) Decode(r *xdr.Reader) {
	e.Entry.Decode(r)
	e.Attr.Decode(r)
	e.FH.Decode(r)
}

// Encode writes an entry and the bool that announces it.
func (e *EntryPlus) Encode(w *xdr.Writer) {
	e.Entry.Encode(w)
	e.Attr.Encode(w)
	e.FH.Encode(w)
}

// ReadDirRes is READDIR3res as a whole, RFC 1813 section 3.3.16.
type ReadDirRes struct {
	ReadDirHead
	Entries []Entry
	EOF     bool
}

// Decode reads the results.
func (a *ReadDirRes) Decode(r *xdr.Reader) {
	a.ReadDirHead.Decode(r)
	if a.Status != OK {
		return
	}
	for r.Bool() {
		var e Entry
		e.Decode(r)
		a.Entries = append(a.Entries, e)
	}
	a.EOF = r.Bool()
}

// Encode writes the results.
func (a *ReadDirRes) Encode(w *xdr.Writer) {
	a.ReadDirHead.Encode(w)
	if a.Status != OK {
		return
	}
	for i := range a.Entries {
		a.Entries[i].Encode(w)
	}
	EncodeDirEnd(w, a.EOF)
}

// ReadDirPlusRes is READDIRPLUS3res as a whole, RFC 1813 section 3.3.17.
type ReadDirPlusRes struct {
	ReadDirHead
	Entries []EntryPlus
	EOF     bool
}

// Decode reads the results.
func (a *ReadDirPlusRes) Decode(r *xdr.Reader) {
	a.ReadDirHead.Decode(r)
	if a.Status != OK {
		return
	}
	for r.Bool() {
		var e EntryPlus
		e.Decode(r)
		a.Entries = append(a.Entries, e)
	}
	a.EOF = r.Bool()
}

// Encode writes the results.
func (a *ReadDirPlusRes) Encode(w *xdr.Writer) {
	a.ReadDirHead.Encode(w)
	if a.Status != OK {
		return
	}
	for i := range a.Entries {
		a.Entries[i].Encode(w)
	}
	EncodeDirEnd(w, a.EOF)
}

// FSStatRes is FSSTAT3res, RFC 1813 section 3.3.18. All but the first two count
// with OK only.
type FSStatRes struct {
	Status                            Status
	Attr                              PostOpAttr
	TotalBytes, FreeBytes, AvailBytes uint64 // Avail is what is left for the caller
	TotalFiles, FreeFiles, AvailFiles uint64
	Invarsec                          uint32 // seconds the numbers are expected to hold
}

// Decode reads the results.
func (a *FSStatRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	if a.Status == OK {
		a.TotalBytes = r.Uint64()
		a.FreeBytes = r.Uint64()
		a.AvailBytes = r.Uint64()
		a.TotalFiles = r.Uint64()
		a.FreeFiles = r.Uint64()
		a.AvailFiles = r.Uint64()
		a.Invarsec = r.Uint32()
	}
}

// Encode writes the results.
func (a *FSStatRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.Uint64(a.TotalBytes)
		w.Uint64(a.FreeBytes)
		w.Uint64(a.AvailBytes)
		w.Uint64(a.TotalFiles)
		w.Uint64(a.FreeFiles)
		w.Uint64(a.AvailFiles)
		w.Uint32(a.Invarsec)
	}
}

// Properties in FSINFO, RFC 1813 section 3.3.19.
const (
	FSFLink        = 0x01 // hard links
	FSFSymlink     = 0x02 // symbolic links
	FSFHomogeneous = 0x08 // PATHCONF is the same for every file
	FSFCanSetTime  = 0x10 // times can be set to TimeDelta
)

// FSInfoRes is FSINFO3res, RFC 1813 section 3.3.19. Sizes are bytes; all but the
// first two count with OK only.
type FSInfoRes struct {
	Status                         Status
	Attr                           PostOpAttr
	ReadMax, ReadPref, ReadMult    uint32
	WriteMax, WritePref, WriteMult uint32
	DirPref                        uint32
	MaxFileSize                    uint64
	TimeDelta                      Time
	Properties                     uint32
}

// Decode reads the results.
func (a *FSInfoRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	if a.Status == OK {
		a.ReadMax = r.Uint32()
		a.ReadPref = r.Uint32()
		a.ReadMult = r.Uint32()
		a.WriteMax = r.Uint32()
		a.WritePref = r.Uint32()
		a.WriteMult = r.Uint32()
		a.DirPref = r.Uint32()
		a.MaxFileSize = r.Uint64()
		a.TimeDelta.Decode(r)
		a.Properties = r.Uint32()
	}
}

// Encode writes the results.
func (a *FSInfoRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.Uint32(a.ReadMax)
		w.Uint32(a.ReadPref)
		w.Uint32(a.ReadMult)
		w.Uint32(a.WriteMax)
		w.Uint32(a.WritePref)
		w.Uint32(a.WriteMult)
		w.Uint32(a.DirPref)
		w.Uint64(a.MaxFileSize)
		a.TimeDelta.Encode(w)
		w.Uint32(a.Properties)
	}
}

// PathConfRes is PATHCONF3res, RFC 1813 section 3.3.20. All but the first two
// count with OK only.
type PathConfRes struct {
	Status          Status
	Attr            PostOpAttr
	LinkMax         uint32
	NameMax         uint32 // bytes
	NoTrunc         bool   // longer names are refused
	ChownRestricted bool
	CaseInsensitive bool
	CasePreserving  bool
}

// Decode reads the results.
func (a *PathConfRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Attr.Decode(r)
	if a.Status == OK {
		a.LinkMax = r.Uint32()
		a.NameMax = r.Uint32()
		a.NoTrunc = r.Bool()
		a.ChownRestricted = r.Bool()
		a.CaseInsensitive = r.Bool()
		a.CasePreserving = r.Bool()
	}
}

// Encode writes the results.
func (a *PathConfRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Attr.Encode(w)
	if a.Status == OK {
		w.Uint32(a.LinkMax)
		w.Uint32(a.NameMax)
		w.Bool(a.NoTrunc)
		w.Bool(a.ChownRestricted)
		w.Bool(a.CaseInsensitive)
		w.Bool(a.CasePreserving)
	}
}

// CommitRes is COMMIT3res, RFC 1813 section 3.3.21.
type CommitRes struct {
	Status Status
	Wcc    WccData
	Verf   uint64 // writeverf3; with OK only
}

// Decode reads the results.
func (a *CommitRes) Decode(r *xdr.Reader) {
	a.Status = Status(r.Uint32())
	a.Wcc.Decode(r)
	if a.Status == OK {
		a.Verf = r.Uint64()
	}
}

// Encode writes the results.
func (a *CommitRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	a.Wcc.Encode(w)
	if a.Status == OK {
		w.Uint64(a.Verf)
	}
}
