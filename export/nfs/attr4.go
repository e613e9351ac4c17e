package nfs

import (
	"math"
	"math/bits"
	"strconv"
	"time"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// settable is the attributes that a client may set, RFC 8881 section 5.6.
// Access and modification time have another number for that; size is not in
// what an exclusive create keeps beside its verifier only because that takes
// these two (section 18.16.4).
var (
	settable  = nfs4.Bits(nfs4.AttrSize, nfs4.AttrMode, nfs4.AttrOwner, nfs4.AttrOwnerGroup, nfs4.AttrTimeAccessSet, nfs4.AttrTimeCreate, nfs4.AttrTimeModifySet)
	exclusive = settable.AndNot(writeOnly)
	writeOnly = nfs4.Bits(nfs4.AttrTimeAccessSet, nfs4.AttrTimeModifySet)
)

// supported is the attributes that files have, by minor version.
var supported = func() (v [3]nfs4.Bitmap) {
	v[0] = nfs4.Bits(nfs4.AttrSupportedAttrs, nfs4.AttrType, nfs4.AttrFHExpireType, nfs4.AttrChange, nfs4.AttrSize,
		nfs4.AttrLinkSupport, nfs4.AttrSymlinkSupport, nfs4.AttrNamedAttr, nfs4.AttrFSID, nfs4.AttrUniqueHandles,
		nfs4.AttrLeaseTime, nfs4.AttrRdAttrError, nfs4.AttrACLSupport, nfs4.AttrCanSetTime, nfs4.AttrCaseInsensitive,
		nfs4.AttrCasePreserving, nfs4.AttrChownRestricted, nfs4.AttrFileHandle, nfs4.AttrFileID, nfs4.AttrFilesAvail,
		nfs4.AttrFilesFree, nfs4.AttrFilesTotal, nfs4.AttrHomogeneous, nfs4.AttrMaxFileSize, nfs4.AttrMaxLink,
		nfs4.AttrMaxName, nfs4.AttrMaxRead, nfs4.AttrMaxWrite, nfs4.AttrMode, nfs4.AttrNoTrunc, nfs4.AttrNumLinks,
		nfs4.AttrOwner, nfs4.AttrOwnerGroup, nfs4.AttrRawDev, nfs4.AttrSpaceAvail, nfs4.AttrSpaceFree,
		nfs4.AttrSpaceTotal, nfs4.AttrSpaceUsed, nfs4.AttrTimeAccess, nfs4.AttrTimeAccessSet, nfs4.AttrTimeCreate,
		nfs4.AttrTimeDelta, nfs4.AttrTimeMetadata, nfs4.AttrTimeModify, nfs4.AttrTimeModifySet, nfs4.AttrMountedOnFileID)
	v[1] = v[0].Or(nfs4.Bits(nfs4.AttrSuppAttrExclCreat))
	v[2] = v[1].Or(nfs4.Bits(nfs4.AttrChangeAttrType, nfs4.AttrXattrSupport, nfs4.AttrOpenArguments))
	return v
}()

// Sizes of encoded attributes, in bytes: attrsMax is the most that all of them
// take, attrsMin what there is without any.
const (
	attrsMax = 640
	attrsMin = 4 + 4
)

// pseudoIno numbers the pseudo root, and from there on the directories in it
// that exports are mounted on.
const pseudoIno = 1

// pseudoAttr is the attributes of the pseudo root, which does not change while
// the server runs.
func (s *Server) pseudoAttr() memstore.Attr {
	t := s.started.UnixNano()
	return memstore.Attr{
		Ino: pseudoIno, Change: uint64(t), Atime: t, Mtime: t, Ctime: t, Btime: t,
		Nlink: 2 + uint32(len(s.cfg.Exports.All())), Mode: 0o555, Type: memstore.TypeDir,
	}
}

// attr is the attributes of f.
func (m *compound) attr(f *fileRef) (memstore.Attr, error) {
	if f.root {
		return m.k.c.s.pseudoAttr(), nil
	}
	return f.i.GetAttr(&m.k.who)
}

// putAttrs appends those attributes of f that are wanted and supported: fattr4,
// RFC 8881 section 3.3.7. a is f's. With failed, they are those of a READDIR
// entry whose attributes there are not.
func (m *compound) putAttrs(want nfs4.Bitmap, f *fileRef, a *memstore.Attr, failed nfs4.Status) {
	k, w := m.k, m.k.w
	s := k.c.s
	want = want.And(supported[m.minor])
	want.Encode(w)
	at := len(w.B)
	w.Uint32(0)
	var st memstore.Statfs
	if f.exp != nil && !want.And(usage).Empty() {
		st = f.exp.Store.Statfs()
	}
	for n, word := range want {
		for ; word != 0; word &= word - 1 {
			switch n*32 + bits.TrailingZeros32(word) {
			case nfs4.AttrSupportedAttrs:
				supported[m.minor].Encode(w)
			case nfs4.AttrType:
				w.Uint32(uint32(wireType[a.Type]))
			case nfs4.AttrFHExpireType, nfs4.AttrACLSupport, nfs4.AttrChangeAttrType:
				// Handles are persistent, there are no ACLs, and the change
				// attribute only grows.
				w.Uint32(0)
			case nfs4.AttrChange:
				w.Uint64(a.Change)
			case nfs4.AttrSize:
				w.Uint64(uint64(a.Size))
			case nfs4.AttrLinkSupport, nfs4.AttrSymlinkSupport, nfs4.AttrUniqueHandles, nfs4.AttrCanSetTime,
				nfs4.AttrCasePreserving, nfs4.AttrChownRestricted, nfs4.AttrHomogeneous, nfs4.AttrNoTrunc:
				w.Bool(true)
			case nfs4.AttrNamedAttr, nfs4.AttrCaseInsensitive:
				w.Bool(false)
			case nfs4.AttrFSID:
				if f.exp == nil {
					w.Uint64(0)
					w.Uint64(0)
				} else {
					w.Uint64(f.exp.Store.ID())
					w.Uint64(uint64(f.exp.ID))
				}
			case nfs4.AttrLeaseTime:
				w.Uint32(uint32(s.cfg.ClientExpiry / time.Second))
			case nfs4.AttrRdAttrError:
				w.Uint32(uint32(failed))
			case nfs4.AttrFileHandle:
				var b [handleSize]byte
				w.Opaque(m.handle(&b, f))
			case nfs4.AttrFileID:
				w.Uint64(a.Ino)
			case nfs4.AttrFilesAvail, nfs4.AttrFilesFree:
				w.Uint64(uint64(max(0, st.TotalInodes-st.UsedInodes)))
			case nfs4.AttrFilesTotal:
				w.Uint64(uint64(st.TotalInodes))
			case nfs4.AttrMaxFileSize:
				w.Uint64(memstore.MaxFileSize)
			case nfs4.AttrMaxLink:
				w.Uint32(memstore.MaxLinks)
			case nfs4.AttrMaxName:
				w.Uint32(memstore.MaxName)
			case nfs4.AttrMaxRead, nfs4.AttrMaxWrite:
				w.Uint64(uint64(s.cfg.MaxIO))
			case nfs4.AttrMode:
				w.Uint32(uint32(a.Mode))
			case nfs4.AttrNumLinks:
				w.Uint32(a.Nlink)
			case nfs4.AttrOwner:
				putID(w, a.UID)
			case nfs4.AttrOwnerGroup:
				putID(w, a.GID)
			case nfs4.AttrRawDev:
				w.Uint32(a.Major)
				w.Uint32(a.Minor)
			case nfs4.AttrSpaceAvail, nfs4.AttrSpaceFree:
				w.Uint64(uint64(max(0, st.TotalBytes-st.UsedBytes)))
			case nfs4.AttrSpaceTotal:
				w.Uint64(uint64(st.TotalBytes))
			case nfs4.AttrSpaceUsed:
				w.Uint64(uint64(a.Used))
			case nfs4.AttrTimeAccess:
				putTime(w, a.Atime)
			case nfs4.AttrTimeCreate:
				putTime(w, a.Btime)
			case nfs4.AttrTimeDelta:
				putTime(w, 1)
			case nfs4.AttrTimeMetadata:
				putTime(w, a.Ctime)
			case nfs4.AttrTimeModify:
				putTime(w, a.Mtime)
			case nfs4.AttrMountedOnFileID:
				w.Uint64(m.mountedOn(f, a.Ino))
			case nfs4.AttrSuppAttrExclCreat:
				exclusive.Encode(w)
			case nfs4.AttrXattrSupport:
				w.Bool(f.i != nil)
			case nfs4.AttrOpenArguments:
				s.putOpenArguments(w)
			}
		}
	}
	w.PatchUint32(at, uint32(len(w.B)-at-4))
}

// putOpenArguments appends open_arguments4, RFC 9754 section 3: what OPEN makes
// something of. Each is a set of numbers that OPEN has: access, deny, what is
// wanted of a delegation, claim, mode of creation.
func (s *Server) putOpenArguments(w *xdr.Writer) {
	nfs4.Bits(nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth).Encode(w)
	nfs4.Bits(0, nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth).Encode(w)
	want := nfs4.Bits(nfs4.WantAnyDeleg>>8, nfs4.WantNoDeleg>>8, nfs4.WantCancel>>8)
	if s.cfg.NoDelegations {
		want.Clear(nfs4.WantAnyDeleg >> 8)
	}
	want.Encode(w)
	nfs4.Bits(uint(nfs4.ClaimNull), uint(nfs4.ClaimPrevious), uint(nfs4.ClaimDelegCur), uint(nfs4.ClaimFH), uint(nfs4.ClaimDelegCurFH)).Encode(w)
	nfs4.Bits(uint(nfs4.Unchecked), uint(nfs4.Guarded), uint(nfs4.Exclusive), uint(nfs4.Exclusive41)).Encode(w)
}

// usage is the attributes that come from the store's usage.
var usage = nfs4.Bits(nfs4.AttrFilesAvail, nfs4.AttrFilesFree, nfs4.AttrFilesTotal,
	nfs4.AttrSpaceAvail, nfs4.AttrSpaceFree, nfs4.AttrSpaceTotal)

// mountedOn is mounted_on_fileid: where a file is the root of an export below
// the pseudo root, the number of the directory there.
func (m *compound) mountedOn(f *fileRef, ino uint64) uint64 {
	if f.exp == nil || f.i != f.exp.Root {
		return ino
	}
	all := m.k.c.s.cfg.Exports.All()
	if len(all) == 1 {
		return ino
	}
	for n, e := range all {
		if e == f.exp {
			return pseudoIno + 1 + uint64(n)
		}
	}
	return ino
}

// putID appends a user or group as a string of its number, which is what
// RFC 8881 section 5.9 offers to those who share no names.
func putID(w *xdr.Writer, id uint32) {
	var digits [12]byte // and zeroes to pad with
	n := len(strconv.AppendUint(digits[:0], uint64(id), 10))
	w.Uint32(uint32(n))
	w.B = append(w.B, digits[:n+-n&3]...)
}

// putTime appends nfstime4, RFC 8881 section 3.3.1, whose nanoseconds count up
// from a second that may be negative.
func putTime(w *xdr.Writer, ns int64) {
	sec, nsec := memstore.Seconds(ns)
	w.Int64(sec)
	w.Uint32(uint32(nsec))
}

// takeAttrs decodes the attributes that a client sets, fattr4. Nothing is set if one of them cannot be.
func (m *compound) takeAttrs(f *nfs4.Fattr) (set memstore.SetAttr, status nfs4.Status) {
	mask, v := f.Mask, xdr.NewReader(f.Vals)
	switch {
	case f.More || !mask.AndNot(supported[m.minor]).Empty():
		return set, nfs4.ErrAttrNotSupp
	case !mask.AndNot(settable).Empty():
		return set, nfs4.ErrInval
	}
	if mask.Has(nfs4.AttrSize) {
		size := v.Uint64()
		if size > memstore.MaxFileSize {
			status = nfs4.ErrFBig
			size = 0
		}
		set.Mask |= memstore.SetSize
		set.Size = int64(size)
	}
	if mask.Has(nfs4.AttrMode) {
		set.Mask |= memstore.SetMode
		set.Mode = uint16(v.Uint32() & memstore.ModeMask)
	}
	ok, valid := true, true
	if mask.Has(nfs4.AttrOwner) {
		set.Mask |= memstore.SetUID
		set.UID, ok = takeID(&v, &valid)
	}
	if mask.Has(nfs4.AttrOwnerGroup) {
		var isID bool
		set.Mask |= memstore.SetGID
		set.GID, isID = takeID(&v, &valid)
		ok = ok && isID
	}
	if !ok {
		status = nfs4.ErrBadOwner
	}
	if mask.Has(nfs4.AttrTimeAccessSet) {
		if v.Enum(1) == 0 {
			set.Mask |= memstore.SetAtimeNow
		} else {
			set.Mask |= memstore.SetAtime
			set.Atime = takeTime(&v, &valid)
		}
	}
	if mask.Has(nfs4.AttrTimeCreate) {
		set.Mask |= memstore.SetBtime
		set.Btime = takeTime(&v, &valid)
	}
	if mask.Has(nfs4.AttrTimeModifySet) {
		if v.Enum(1) == 0 {
			set.Mask |= memstore.SetMtimeNow
		} else {
			set.Mask |= memstore.SetMtime
			set.Mtime = takeTime(&v, &valid)
		}
	}
	switch {
	case v.Err() != nil || v.Len() > 0:
		return set, nfs4.ErrBadXDR
	case !valid:
		return set, nfs4.ErrInval
	}
	return set, status
}

// takeID decodes a user or group, of which only numbers are known. It reports
// false for anything else. An empty name is not valid.
func takeID(r *xdr.Reader, valid *bool) (uint32, bool) {
	s := r.String(math.MaxInt32)
	if s == "" {
		*valid = false
		return 0, false
	}
	id, err := strconv.ParseUint(s, 10, 32)
	return uint32(id), err == nil && s[0] != '+'
}

// takeTime decodes nfstime4. A whole second of nanoseconds is not valid.
func takeTime(r *xdr.Reader, valid *bool) int64 {
	sec, frac := r.Int64(), r.Uint32()
	if frac >= 1e9 {
		*valid = false
		return 0
	}
	return memstore.Time(sec, int64(frac))
}
