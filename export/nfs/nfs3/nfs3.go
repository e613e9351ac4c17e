// Package nfs3 is the wire form of NFS version 3 and of the MOUNT protocol (RFC
// 1813): the arguments and results of every procedure.
//
// A type has Decode and Encode in wire order. Decode fills a zero value: it does
// not clear what the message leaves out. It bounds every length by the
// protocol's limit or by the input, and its byte slices and strings alias the
// input. A result is one flat struct: Status says which arm of the RFC's
// union is on the wire, and what the other arm holds is left out. Where several
// procedures have the same form they share a type: [FHArgs], [DirOp],
// [WccRes], [CreateRes].
package nfs3

import (
	"encoding/binary"
	"fmt"
	"math"

	"ramserver/export/nfs/xdr"
)

// Version of the NFS program, RFC 1813 section 3.
const Version = 3

// Procedures of the NFS program, RFC 1813 section 3.
const (
	ProcNull        = 0
	ProcGetAttr     = 1
	ProcSetAttr     = 2
	ProcLookup      = 3
	ProcAccess      = 4
	ProcReadLink    = 5
	ProcRead        = 6
	ProcWrite       = 7
	ProcCreate      = 8
	ProcMkdir       = 9
	ProcSymlink     = 10
	ProcMknod       = 11
	ProcRemove      = 12
	ProcRmdir       = 13
	ProcRename      = 14
	ProcLink        = 15
	ProcReadDir     = 16
	ProcReadDirPlus = 17
	ProcFSStat      = 18
	ProcFSInfo      = 19
	ProcPathConf    = 20
	ProcCommit      = 21
)

// ProcNames are the names of the procedures by number, in RFC 1813's spelling.
var ProcNames = [...]string{"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE",
	"CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK",
	"READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT"}

// MaxFH is NFS3_FHSIZE, the length limit of a file handle in bytes, RFC 1813
// section 2.4.
const MaxFH = 64

// unbounded is the limit of filename3 and nfspath3, which the RFC does not
// limit: the message itself does, and the server answers NAMETOOLONG.
const unbounded = math.MaxInt32

// Status is nfsstat3, RFC 1813 section 2.6. It is an error to a client when it
// is not [OK].
type Status uint32

// Status values, RFC 1813 section 2.6.
const (
	OK             Status = 0
	ErrPerm        Status = 1
	ErrNoEnt       Status = 2
	ErrIO          Status = 5
	ErrNXIO        Status = 6
	ErrAcces       Status = 13
	ErrExist       Status = 17
	ErrXDev        Status = 18
	ErrNoDev       Status = 19
	ErrNotDir      Status = 20
	ErrIsDir       Status = 21
	ErrInval       Status = 22
	ErrFBig        Status = 27
	ErrNoSpc       Status = 28
	ErrROFS        Status = 30
	ErrMLink       Status = 31
	ErrNameTooLong Status = 63
	ErrNotEmpty    Status = 66
	ErrDQuot       Status = 69
	ErrStale       Status = 70
	ErrRemote      Status = 71
	ErrBadHandle   Status = 10001
	ErrNotSync     Status = 10002
	ErrBadCookie   Status = 10003
	ErrNotSupp     Status = 10004
	ErrTooSmall    Status = 10005
	ErrServerFault Status = 10006
	ErrBadType     Status = 10007
	ErrJukebox     Status = 10008
)

// String returns the name in RFC 1813 without its prefix: "NOENT".
func (s Status) String() string {
	switch s {
	case OK:
		return "OK"
	case ErrPerm:
		return "PERM"
	case ErrNoEnt:
		return "NOENT"
	case ErrIO:
		return "IO"
	case ErrNXIO:
		return "NXIO"
	case ErrAcces:
		return "ACCES"
	case ErrExist:
		return "EXIST"
	case ErrXDev:
		return "XDEV"
	case ErrNoDev:
		return "NODEV"
	case ErrNotDir:
		return "NOTDIR"
	case ErrIsDir:
		return "ISDIR"
	case ErrInval:
		return "INVAL"
	case ErrFBig:
		return "FBIG"
	case ErrNoSpc:
		return "NOSPC"
	case ErrROFS:
		return "ROFS"
	case ErrMLink:
		return "MLINK"
	case ErrNameTooLong:
		return "NAMETOOLONG"
	case ErrNotEmpty:
		return "NOTEMPTY"
	case ErrDQuot:
		return "DQUOT"
	case ErrStale:
		return "STALE"
	case ErrRemote:
		return "REMOTE"
	case ErrBadHandle:
		return "BADHANDLE"
	case ErrNotSync:
		return "NOT_SYNC"
	case ErrBadCookie:
		return "BAD_COOKIE"
	case ErrNotSupp:
		return "NOTSUPP"
	case ErrTooSmall:
		return "TOOSMALL"
	case ErrServerFault:
		return "SERVERFAULT"
	case ErrBadType:
		return "BADTYPE"
	case ErrJukebox:
		return "JUKEBOX"
	}
	return fmt.Sprintf("nfsstat3 %d", uint32(s))
}

func (s Status) Error() string { return "NFS3ERR_" + s.String() }

// Type is ftype3, RFC 1813 section 2.6.
type Type uint32

// Types of files.
const (
	TypeReg  Type = 1
	TypeDir  Type = 2
	TypeBlk  Type = 3
	TypeChr  Type = 4
	TypeLnk  Type = 5
	TypeSock Type = 6
	TypeFIFO Type = 7
)

// Time is nfstime3, RFC 1813 section 2.6: seconds and nanoseconds since 1970.
type Time struct{ Sec, Nsec uint32 }

// Decode reads an nfstime3.
func (t *Time) Decode(r *xdr.Reader) {
	t.Sec = r.Uint32()
	t.Nsec = r.Uint32()
}

// Encode writes an nfstime3.
func (t *Time) Encode(w *xdr.Writer) {
	w.Uint32(t.Sec)
	w.Uint32(t.Nsec)
}

// Fattr is fattr3, RFC 1813 section 2.6. It takes 84 bytes.
type Fattr struct {
	Type         Type
	Mode         uint32 // permission bits, 0 to 07777
	Nlink        uint32
	UID, GID     uint32
	Size         uint64 // bytes
	Used         uint64 // bytes of storage
	Major, Minor uint32 // of a device
	FSID         uint64
	FileID       uint64
	Atime        Time
	Mtime        Time
	Ctime        Time
}

// Decode reads a fattr3.
func (a *Fattr) Decode(r *xdr.Reader) {
	a.Type = Type(r.Uint32())
	a.Mode = r.Uint32()
	a.Nlink = r.Uint32()
	a.UID = r.Uint32()
	a.GID = r.Uint32()
	a.Size = r.Uint64()
	a.Used = r.Uint64()
	a.Major = r.Uint32()
	a.Minor = r.Uint32()
	a.FSID = r.Uint64()
	a.FileID = r.Uint64()
	a.Atime.Decode(r)
	a.Mtime.Decode(r)
	a.Ctime.Decode(r)
}

// Encode writes a fattr3.
// Nearly every reply has one, so it is written with one check of its room.
func (a *Fattr) Encode(w *xdr.Writer) {
	b, put := w.Extend(FattrSize), binary.BigEndian
	put.PutUint32(b[0:], uint32(a.Type))
	put.PutUint32(b[4:], a.Mode)
	put.PutUint32(b[8:], a.Nlink)
	put.PutUint32(b[12:], a.UID)
	put.PutUint32(b[16:], a.GID)
	put.PutUint64(b[20:], a.Size)
	put.PutUint64(b[28:], a.Used)
	put.PutUint32(b[36:], a.Major)
	put.PutUint32(b[40:], a.Minor)
	put.PutUint64(b[44:], a.FSID)
	put.PutUint64(b[52:], a.FileID)
	for i, t := range [...]Time{a.Atime, a.Mtime, a.Ctime} {
		put.PutUint32(b[60+8*i:], t.Sec)
		put.PutUint32(b[64+8*i:], t.Nsec)
	}
}

// PostOpAttr is post_op_attr, RFC 1813 section 2.6: attributes, if there are any.
type PostOpAttr struct {
	Follows bool
	Attr    Fattr
}

// Decode reads a post_op_attr.
func (a *PostOpAttr) Decode(r *xdr.Reader) {
	if a.Follows = r.Bool(); a.Follows {
		a.Attr.Decode(r)
	}
}

// Encode writes a post_op_attr.
func (a *PostOpAttr) Encode(w *xdr.Writer) {
	w.Bool(a.Follows)
	if a.Follows {
		a.Attr.Encode(w)
	}
}

// WccAttr is wcc_attr, RFC 1813 section 2.6: the attributes before a change that
// let a client tell whether others changed the file too.
type WccAttr struct {
	Size  uint64
	Mtime Time
	Ctime Time
}

// Decode reads a wcc_attr.
func (a *WccAttr) Decode(r *xdr.Reader) {
	a.Size = r.Uint64()
	a.Mtime.Decode(r)
	a.Ctime.Decode(r)
}

// Encode writes a wcc_attr.
func (a *WccAttr) Encode(w *xdr.Writer) {
	w.Uint64(a.Size)
	a.Mtime.Encode(w)
	a.Ctime.Encode(w)
}

// WccData is wcc_data, RFC 1813 section 2.6: weak cache consistency data. Before
// counts if HasBefore is set, the RFC's pre_op_attr.
type WccData struct {
	HasBefore bool
	Before    WccAttr
	After     PostOpAttr
}

// Decode reads a wcc_data.
func (d *WccData) Decode(r *xdr.Reader) {
	if d.HasBefore = r.Bool(); d.HasBefore {
		d.Before.Decode(r)
	}
	d.After.Decode(r)
}

// Encode writes a wcc_data.
func (d *WccData) Encode(w *xdr.Writer) {
	w.Bool(d.HasBefore)
	if d.HasBefore {
		d.Before.Encode(w)
	}
	d.After.Encode(w)
}

// TimeHow is time_how, RFC 1813 section 2.6.
type TimeHow uint32

// Ways to set a time.
const (
	DontChange      TimeHow = 0
	SetToServerTime TimeHow = 1
	SetToClientTime TimeHow = 2
)

// Sattr is sattr3, RFC 1813 section 2.6: the attributes to set. A value counts
// if its Set field is true, a time if its How is SetToClientTime.
type Sattr struct {
	SetMode  bool
	Mode     uint32
	SetUID   bool
	UID      uint32
	SetGID   bool
	GID      uint32
	SetSize  bool
	Size     uint64
	AtimeHow TimeHow
	Atime    Time
	MtimeHow TimeHow
	Mtime    Time
}

// Decode reads a sattr3.
func (a *Sattr) Decode(r *xdr.Reader) {
	if a.SetMode = r.Bool(); a.SetMode {
		a.Mode = r.Uint32()
	}
	if a.SetUID = r.Bool(); a.SetUID {
		a.UID = r.Uint32()
	}
	if a.SetGID = r.Bool(); a.SetGID {
		a.GID = r.Uint32()
	}
	if a.SetSize = r.Bool(); a.SetSize {
		a.Size = r.Uint64()
	}
	if a.AtimeHow = TimeHow(r.Enum(uint32(SetToClientTime))); a.AtimeHow == SetToClientTime {
		a.Atime.Decode(r)
	}
	if a.MtimeHow = TimeHow(r.Enum(uint32(SetToClientTime))); a.MtimeHow == SetToClientTime {
		a.Mtime.Decode(r)
	}
}

// Encode writes a sattr3.
func (a *Sattr) Encode(w *xdr.Writer) {
	w.Bool(a.SetMode)
	if a.SetMode {
		w.Uint32(a.Mode)
	}
	w.Bool(a.SetUID)
	if a.SetUID {
		w.Uint32(a.UID)
	}
	w.Bool(a.SetGID)
	if a.SetGID {
		w.Uint32(a.GID)
	}
	w.Bool(a.SetSize)
	if a.SetSize {
		w.Uint64(a.Size)
	}
	w.Uint32(uint32(a.AtimeHow))
	if a.AtimeHow == SetToClientTime {
		a.Atime.Encode(w)
	}
	w.Uint32(uint32(a.MtimeHow))
	if a.MtimeHow == SetToClientTime {
		a.Mtime.Encode(w)
	}
}

// PostOpFH is post_op_fh3, RFC 1813 section 2.6: a file handle, if there is one.
type PostOpFH struct {
	Follows bool
	FH      []byte
}

// Decode reads a post_op_fh3.
func (h *PostOpFH) Decode(r *xdr.Reader) {
	if h.Follows = r.Bool(); h.Follows {
		h.FH = r.Opaque(MaxFH)
	}
}

// Encode writes a post_op_fh3.
func (h *PostOpFH) Encode(w *xdr.Writer) {
	w.Bool(h.Follows)
	if h.Follows {
		w.Opaque(h.FH)
	}
}

// DirOp is diropargs3, RFC 1813 section 2.6: a name in a directory.
type DirOp struct {
	Dir  []byte
	Name string
}

// Decode reads a diropargs3.
func (d *DirOp) Decode(r *xdr.Reader) {
	d.Dir = r.Opaque(MaxFH)
	d.Name = r.String(unbounded)
}

// Encode writes a diropargs3.
func (d *DirOp) Encode(w *xdr.Writer) {
	w.Opaque(d.Dir)
	w.String(d.Name)
}
