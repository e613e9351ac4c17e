package nfs

import (
	"math"

	"ramserver/export/nfs/nfs3"
	"ramserver/memstore"
)

var wireType = [...]nfs3.Type{
	memstore.TypeFile:    nfs3.TypeReg,
	memstore.TypeDir:     nfs3.TypeDir,
	memstore.TypeSymlink: nfs3.TypeLnk,
	memstore.TypeFIFO:    nfs3.TypeFIFO,
	memstore.TypeSocket:  nfs3.TypeSock,
	memstore.TypeBlock:   nfs3.TypeBlk,
	memstore.TypeChar:    nfs3.TypeChr,
}

// setFattr converts attributes to the wire's. fsid is the store's id: it tells
// clients where inode numbers are unique. By the change time Linux' client tells
// whether what it has of a file is the newest.
func setFattr(w *nfs3.Fattr, a *memstore.Attr, fsid uint64) {
	*w = nfs3.Fattr{
		Type: wireType[a.Type], Mode: uint32(a.Mode), Nlink: a.Nlink,
		UID: a.UID, GID: a.GID,
		Size: uint64(a.Size), Used: uint64(a.Used),
		Major: a.Major, Minor: a.Minor,
		FSID: fsid, FileID: a.Ino,
		Atime: wireTime(a.Atime), Mtime: wireTime(a.Mtime), Ctime: wireTime(a.Shown),
	}
}

// wireTime converts a time stamp to nfstime3, whose seconds are unsigned: what
// is before 1970 or after 2106 becomes the nearest time that it can say.
func wireTime(ns int64) nfs3.Time {
	sec, nsec := memstore.Seconds(ns)
	switch {
	case sec < 0:
		return nfs3.Time{}
	case sec > math.MaxUint32:
		return nfs3.Time{Sec: math.MaxUint32, Nsec: 1e9 - 1}
	}
	return nfs3.Time{Sec: uint32(sec), Nsec: uint32(nsec)}
}

// storeTime is the inverse. A whole second of nanoseconds is INVAL.
func storeTime(t nfs3.Time) (int64, error) {
	if t.Nsec >= 1e9 {
		return 0, nfs3.ErrInval
	}
	return memstore.Time(int64(t.Sec), int64(t.Nsec)), nil
}

// setAttrOf converts the attributes that a client wants to set.
func setAttrOf(a *nfs3.Sattr) (s memstore.SetAttr, err error) {
	if a.SetMode {
		s.Mask |= memstore.SetMode
		s.Mode = uint16(a.Mode & memstore.ModeMask)
	}
	if a.SetUID {
		s.Mask |= memstore.SetUID
		s.UID = a.UID
	}
	if a.SetGID {
		s.Mask |= memstore.SetGID
		s.GID = a.GID
	}
	if a.SetSize {
		if a.Size > memstore.MaxFileSize {
			return s, memstore.ErrFileTooLarge
		}
		s.Mask |= memstore.SetSize
		s.Size = int64(a.Size)
	}
	switch a.AtimeHow {
	case nfs3.SetToServerTime:
		s.Mask |= memstore.SetAtimeNow
	case nfs3.SetToClientTime:
		s.Mask |= memstore.SetAtime
		if s.Atime, err = storeTime(a.Atime); err != nil {
			return s, err
		}
	}
	switch a.MtimeHow {
	case nfs3.SetToServerTime:
		s.Mask |= memstore.SetMtimeNow
	case nfs3.SetToClientTime:
		s.Mask |= memstore.SetMtime
		if s.Mtime, err = storeTime(a.Mtime); err != nil {
			return s, err
		}
	}
	return s, nil
}
