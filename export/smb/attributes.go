package smb

import (
	"time"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// keptAttrs are the attributes that POSIX does not know, which the store keeps for
// us. What SMB has not made has none of them.
const keptAttrs = wire.AttrReadOnly | wire.AttrHidden | wire.AttrSystem | wire.AttrArchive | wire.AttrTemporary |
	wire.AttrSparse | wire.AttrOffline | wire.AttrNotIndexed

// server is the caller for what the client may do by its open, whatever the mode
// says.
func (r *request) server() *memstore.Caller {
	c := r.who
	c.Cred = memstore.Cred{}
	return &c
}

// dosAttrs are all attributes of an inode as clients see them.
func dosAttrs(a *memstore.Attr) uint32 {
	attrs := uint32(a.DOS)
	switch a.Type {
	case memstore.TypeFile:
	case memstore.TypeDir:
		attrs |= wire.AttrDirectory
	default:
		attrs |= wire.AttrReparse
	}
	if attrs == 0 {
		attrs = wire.AttrNormal
	}
	return attrs
}

// tagOf is the tag of the reparse point that an inode is, or 0.
func tagOf(t memstore.Type) uint32 {
	switch t {
	case memstore.TypeFile, memstore.TypeDir:
		return 0
	case memstore.TypeSymlink:
		return wire.TagSymlink
	}
	return wire.TagNFS
}

// infoOf is what is told about an inode with these attributes.
func infoOf(a *memstore.Attr) wire.FileInfo {
	f := wire.FileInfo{
		Times: wire.FileTimes{
			Creation: fileTime(a.Btime), Access: fileTime(a.Atime), Write: fileTime(a.Mtime), Change: fileTime(a.Ctime),
		},
		Attributes: dosAttrs(a),
		Links:      a.Nlink,
		Index:      a.Ino,
		Tag:        tagOf(a.Type),
	}
	switch a.Type {
	case memstore.TypeDir:
		f.Directory = true
		f.Links = 1 // names of it, not of what is below
	case memstore.TypeFile:
		f.Size, f.Allocation = uint64(a.Size), uint64(a.Used+wire.SectorSize-1)&^(wire.SectorSize-1)
	}
	return f
}

func fileTime(t int64) uint64 { return wire.FileTime(time.Unix(memstore.Seconds(t))) }

// maxRights are the rights that a caller has to an inode that stands in dir, nil
// for a share's root.
func (r *request) maxRights(dir, i *memstore.Inode, a *memstore.Attr) uint32 {
	c := &r.who
	isDir := a.Type == memstore.TypeDir
	var rights uint32
	switch {
	case c.UID == 0:
		rights = rightsFull
	default:
		bits := a.Mode
		switch {
		case c.UID == a.UID:
			bits >>= 6
			rights = rightWriteDAC // who may change the mode, gets the rest by that
			if bits&2 != 0 {
				rights |= rightWriteOwner
			}
		case c.Member(a.GID):
			bits >>= 3
		}
		bits &= 7
		if !isDir && bits&4 != 0 {
			bits |= 1 // programs of Windows have no mode that says so
		}
		rights |= modeRights(bits, isDir)
		if bits&2 != 0 {
			rights |= rightDeleteChild // means nothing for a file, and is asked for
		}
		if dir != nil && dir.MayRemove(c, i) == nil {
			rights |= rightDelete
		}
	}
	if r.t.exp.ReadOnly {
		rights &= rightsReadOnly
	}
	return rights
}
