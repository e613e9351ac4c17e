package client

import (
	"errors"
	"strconv"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
)

// file makes a COMPOUND of operations on a file.
func (s *Session) file(fh []byte, ops ...Op) error {
	return s.Do(append([]Op{{nfs4.OpPutFH, &nfs4.FH{FH: fh}, nil}}, ops...)...)
}

// Root is PUTROOTFH, GETFH.
func (s *Session) Root() ([]byte, error) {
	var fh nfs4.FH
	err := s.Do(Op{nfs4.OpPutRootFH, nil, nil}, Op{nfs4.OpGetFH, nil, &fh})
	return fh.FH, err
}

// Lookup is LOOKUP, GETFH.
func (s *Session) Lookup(dir []byte, name string) ([]byte, error) {
	var fh nfs4.FH
	err := s.file(dir, Op{nfs4.OpLookup, &nfs4.Name{Name: name}, nil}, Op{nfs4.OpGetFH, nil, &fh})
	return fh.FH, err
}

// Parent is LOOKUPP, GETFH.
func (s *Session) Parent(dir []byte) ([]byte, error) {
	var fh nfs4.FH
	err := s.file(dir, Op{nfs4.OpLookupP, nil, nil}, Op{nfs4.OpGetFH, nil, &fh})
	return fh.FH, err
}

// Attr is the attributes that [Session.GetAttr] asks for.
type Attr struct {
	Type                       nfs4.Type
	Change                     uint64
	Size                       uint64 // bytes
	FSID                       [2]uint64
	FileID                     uint64
	Mode                       uint32
	Nlink                      uint32
	Owner, Group               string
	Major, Minor               uint32
	Used                       uint64 // bytes
	Atime, Btime, Ctime, Mtime nfs4.Time
}

var attrs = nfs4.Bits(nfs4.AttrType, nfs4.AttrChange, nfs4.AttrSize, nfs4.AttrFSID, nfs4.AttrFileID, nfs4.AttrMode,
	nfs4.AttrNumLinks, nfs4.AttrOwner, nfs4.AttrOwnerGroup, nfs4.AttrRawDev, nfs4.AttrSpaceUsed, nfs4.AttrTimeAccess,
	nfs4.AttrTimeCreate, nfs4.AttrTimeMetadata, nfs4.AttrTimeModify)

// Decode reads a fattr4 of just these attributes.
func (a *Attr) Decode(r *xdr.Reader) {
	var f nfs4.Fattr
	f.Decode(r)
	if f.Mask != attrs {
		r.Fail(errAttrs)
		return
	}
	v := xdr.NewReader(f.Vals)
	a.Type = nfs4.Type(v.Uint32())
	a.Change = v.Uint64()
	a.Size = v.Uint64()
	a.FSID = [2]uint64{v.Uint64(), v.Uint64()}
	a.FileID = v.Uint64()
	a.Mode = v.Uint32()
	a.Nlink = v.Uint32()
	a.Owner = v.String(len(f.Vals))
	a.Group = v.String(len(f.Vals))
	a.Major = v.Uint32()
	a.Minor = v.Uint32()
	a.Used = v.Uint64()
	a.Atime.Decode(&v)
	a.Btime.Decode(&v)
	a.Ctime.Decode(&v)
	a.Mtime.Decode(&v)
	if v.Err() != nil || v.Len() > 0 {
		r.Fail(errAttrs)
	}
}

var errAttrs = errors.New("client: not the attributes that were asked for")

// GetAttr is GETATTR.
func (s *Session) GetAttr(fh []byte) (a Attr, err error) {
	err = s.file(fh, Op{nfs4.OpGetAttr, &nfs4.GetAttrArgs{Mask: attrs}, &a})
	return a, err
}

// SetAttr is attributes to set; what is nil is left alone. A Time with Nsec of
// [ServerTime] is the server's.
type SetAttr struct {
	Size                *uint64
	Mode                *uint32
	UID, GID            *uint32
	Atime, Btime, Mtime *nfs4.Time
}

// ServerTime in Nsec makes a time to set the server's own.
const ServerTime = 1 << 30

// Fattr is the attributes on the wire.
func (a *SetAttr) Fattr() (f nfs4.Fattr) {
	var w xdr.Writer
	if a.Size != nil {
		f.Mask.Set(nfs4.AttrSize)
		w.Uint64(*a.Size)
	}
	if a.Mode != nil {
		f.Mask.Set(nfs4.AttrMode)
		w.Uint32(*a.Mode)
	}
	if a.UID != nil {
		f.Mask.Set(nfs4.AttrOwner)
		w.String(strconv.FormatUint(uint64(*a.UID), 10))
	}
	if a.GID != nil {
		f.Mask.Set(nfs4.AttrOwnerGroup)
		w.String(strconv.FormatUint(uint64(*a.GID), 10))
	}
	if a.Atime != nil {
		f.Mask.Set(nfs4.AttrTimeAccessSet)
		encodeSetTime(&w, a.Atime)
	}
	if a.Btime != nil {
		f.Mask.Set(nfs4.AttrTimeCreate)
		a.Btime.Encode(&w)
	}
	if a.Mtime != nil {
		f.Mask.Set(nfs4.AttrTimeModifySet)
		encodeSetTime(&w, a.Mtime)
	}
	f.Vals = w.B
	return f
}

// encodeSetTime writes a settime4, RFC 8881 section 3.3.10.
func encodeSetTime(w *xdr.Writer, t *nfs4.Time) {
	if t.Nsec == ServerTime {
		w.Uint32(0)
		return
	}
	w.Uint32(1)
	t.Encode(w)
}

// SetAttr is SETATTR. The stateid counts with a size.
func (s *Session) SetAttr(fh []byte, sid nfs4.Stateid, a SetAttr) error {
	args := nfs4.SetAttrArgs{Stateid: sid, Attr: a.Fattr()}
	return s.file(fh, Op{nfs4.OpSetAttr, &args, new(nfs4.SetAttrRes)})
}

// Access is ACCESS.
func (s *Session) Access(fh []byte, want uint32) (res nfs4.AccessRes, err error) {
	err = s.file(fh, Op{nfs4.OpAccess, &nfs4.AccessArgs{Access: want}, &res})
	return res, err
}

// Open is OPEN in dir, or with CLAIM_FH of it, and GETFH: the handle of the file.
func (s *Session) Open(dir []byte, a nfs4.OpenArgs) (res nfs4.OpenRes, fh []byte, err error) {
	if s.zero != nil {
		return s.open0(dir, a)
	}
	var got nfs4.FH
	err = s.file(dir, Op{nfs4.OpOpen, &a, &res}, Op{nfs4.OpGetFH, nil, &got})
	return res, got.FH, err
}

// OpenDowngrade is OPEN_DOWNGRADE.
func (s *Session) OpenDowngrade(fh []byte, sid nfs4.Stateid, access, deny uint32) (nfs4.Stateid, error) {
	var res nfs4.StateidArgs
	args := nfs4.OpenDowngradeArgs{Stateid: sid, Access: access, Deny: deny}
	err := s.state(fh, sid, &args.Seq, Op{nfs4.OpOpenDowngrade, &args, &res}, &res)
	return res.Stateid, err
}

// CloseFile is CLOSE.
func (s *Session) CloseFile(fh []byte, sid nfs4.Stateid) error {
	var res nfs4.StateidArgs
	args := nfs4.CloseArgs{Stateid: sid}
	return s.state(fh, sid, &args.Seq, Op{nfs4.OpClose, &args, &res}, &res)
}

// state makes a COMPOUND of an operation on the state that sid names, with a
// number in minor version 0.
func (s *Session) state(fh []byte, sid nfs4.Stateid, number *uint32, op Op, res *nfs4.StateidArgs) error {
	if s.zero != nil {
		return s.state0(fh, sid, number, op, res)
	}
	return s.file(fh, op)
}

// Read is READ.
func (s *Session) Read(fh []byte, sid nfs4.Stateid, off uint64, count uint32) (res nfs4.ReadRes, err error) {
	err = s.file(fh, Op{nfs4.OpRead, &nfs4.ReadArgs{Stateid: sid, Offset: off, Count: count}, &res})
	return res, err
}

// Write is WRITE.
func (s *Session) Write(fh []byte, sid nfs4.Stateid, off uint64, data []byte, how nfs4.Stable) (res nfs4.WriteRes, err error) {
	err = s.file(fh, Op{nfs4.OpWrite, &nfs4.WriteArgs{Stateid: sid, Offset: off, Stable: how, Data: data}, &res})
	return res, err
}

// Commit is COMMIT.
func (s *Session) Commit(fh []byte, off uint64, count uint32) (res nfs4.CommitRes, err error) {
	err = s.file(fh, Op{nfs4.OpCommit, &nfs4.CommitArgs{Offset: off, Count: count}, &res})
	return res, err
}

// Create is CREATE, GETFH: of anything but a file.
func (s *Session) Create(dir []byte, a nfs4.CreateArgs) ([]byte, error) {
	var fh nfs4.FH
	err := s.file(dir, Op{nfs4.OpCreate, &a, new(nfs4.CreateRes)}, Op{nfs4.OpGetFH, nil, &fh})
	return fh.FH, err
}

// Remove is REMOVE: of a file or an empty directory.
func (s *Session) Remove(dir []byte, name string) error {
	return s.file(dir, Op{nfs4.OpRemove, &nfs4.Name{Name: name}, new(nfs4.DirRes)})
}

// Rename is SAVEFH, PUTFH, RENAME.
func (s *Session) Rename(fromDir []byte, from string, toDir []byte, to string) error {
	return s.two(fromDir, toDir, Op{nfs4.OpRename, &nfs4.RenameArgs{From: from, To: to}, new(nfs4.RenameRes)})
}

// Link is SAVEFH, PUTFH, LINK: it gives fh a further name in dir.
func (s *Session) Link(fh, dir []byte, name string) error {
	return s.two(fh, dir, Op{nfs4.OpLink, &nfs4.Name{Name: name}, new(nfs4.DirRes)})
}

// two makes a COMPOUND of an operation on a saved and a current filehandle.
func (s *Session) two(saved, cur []byte, op Op) error {
	return s.file(saved, Op{nfs4.OpSaveFH, nil, nil}, Op{nfs4.OpPutFH, &nfs4.FH{FH: cur}, nil}, op)
}

// ReadLink is READLINK.
func (s *Session) ReadLink(fh []byte) (string, error) {
	var res nfs4.Name
	err := s.file(fh, Op{nfs4.OpReadLink, nil, &res})
	return res.Name, err
}

// ReadDir is READDIR: one page of names.
func (s *Session) ReadDir(dir []byte, a nfs4.ReadDirArgs) (res nfs4.ReadDirRes, err error) {
	err = s.file(dir, Op{nfs4.OpReadDir, &a, &res})
	return res, err
}

// Lock is LOCK. What is in the way stands in the [OpError].
func (s *Session) Lock(fh []byte, a nfs4.LockArgs) (nfs4.Stateid, error) {
	if s.zero != nil {
		return s.lock0(fh, a)
	}
	var res nfs4.StateidArgs
	err := s.file(fh, Op{nfs4.OpLock, &a, &res})
	return res.Stateid, err
}

// LockT is LOCKT. What is in the way stands in the [OpError].
func (s *Session) LockT(fh []byte, a nfs4.LockTArgs) error {
	a.Owner.Client = s.ClientID // which counts in minor version 0 only
	return s.file(fh, Op{nfs4.OpLockT, &a, nil})
}

// LockU is LOCKU.
func (s *Session) LockU(fh []byte, a nfs4.LockUArgs) (nfs4.Stateid, error) {
	var res nfs4.StateidArgs
	err := s.state(fh, a.Stateid, &a.Seq, Op{nfs4.OpLockU, &a, &res}, &res)
	return res.Stateid, err
}

// FreeStateid is FREE_STATEID.
func (s *Session) FreeStateid(sid nfs4.Stateid) error {
	return s.Do(Op{nfs4.OpFreeStateid, &nfs4.StateidArgs{Stateid: sid}, nil})
}
