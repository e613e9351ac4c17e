package smb

import (
	"strconv"
	"strings"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// dosXattr has the attributes that POSIX does not know, as Samba writes them: a
// number in hexadecimal. A file without it has AttrArchive, anything else none.
const dosXattr = "user.DOSATTRIB"

// keptAttrs are those that are kept there.
const keptAttrs = wire.AttrReadOnly | wire.AttrHidden | wire.AttrSystem | wire.AttrArchive | wire.AttrTemporary |
	wire.AttrSparse | wire.AttrOffline | wire.AttrNotIndexed

// kept returns an inode's attributes among keptAttrs.
func (r *request) kept(i *memstore.Inode) uint32 {
	v, err := i.GetXattr(&r.who, dosXattr)
	if err != nil {
		return keptDefault(i)
	}
	hex, _, _ := strings.Cut(string(v), "\x00")
	n, err := strconv.ParseUint(strings.TrimPrefix(hex, "0x"), 16, 32)
	if err != nil {
		return keptDefault(i)
	}
	return uint32(n) & keptAttrs
}

func keptDefault(i *memstore.Inode) uint32 {
	if i.Type() == memstore.TypeFile {
		return wire.AttrArchive
	}
	return 0
}

// keep sets them. Whether the client may is known.
func (r *request) keep(i *memstore.Inode, attrs uint32) error {
	attrs &= keptAttrs
	if attrs == r.kept(i) {
		return nil
	}
	c := r.server()
	var err error
	if attrs == keptDefault(i) {
		if _, err = i.RemoveXattr(&c, dosXattr); err == memstore.ErrNoXattr {
			err = nil
		}
		return err
	}
	_, err = i.SetXattr(&c, dosXattr, []byte("0x"+strconv.FormatUint(uint64(attrs), 16)), memstore.XattrEither)
	return err
}

// server is the caller for what the client may do by its open, whatever the mode
// says.
func (r *request) server() memstore.Caller {
	c := r.who
	c.Cred = memstore.Cred{}
	return c
}

// dosAttrs are all attributes of an inode as clients see them.
func (r *request) dosAttrs(i *memstore.Inode) uint32 {
	attrs := r.kept(i)
	switch i.Type() {
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
func tagOf(i *memstore.Inode) uint32 {
	switch i.Type() {
	case memstore.TypeFile, memstore.TypeDir:
		return 0
	case memstore.TypeSymlink:
		return wire.TagSymlink
	}
	return wire.TagNFS
}

// infoOf is what is told about an inode, from its attributes and who asks.
func (r *request) infoOf(i *memstore.Inode, a *memstore.Attr) wire.FileInfo {
	f := wire.FileInfo{
		Times: wire.FileTimes{
			Creation: wire.NanoTime(a.Btime), Access: wire.NanoTime(a.Atime), Write: wire.NanoTime(a.Mtime), Change: wire.NanoTime(a.Ctime),
		},
		Attributes: r.dosAttrs(i),
		Links:      a.Nlink,
		Index:      a.Ino,
		Volume:     i.Store().ID(),
		Tag:        tagOf(i),
	}
	switch a.Type {
	case memstore.TypeDir:
		f.Directory = true
		f.Links = 1 // names of it, not of what is below
	case memstore.TypeFile:
		f.Size, f.Allocation = uint64(a.Size), uint64(a.Used)
	}
	return f
}

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
			rights = rightWriteDAC | rightWriteOwner | rightWriteAttrs | rightWriteEA
		case c.Member(a.GID):
			bits >>= 3
		}
		bits &= 7
		if !isDir && bits&4 != 0 {
			bits |= 1 // programs of Windows have no mode that says so
		}
		rights |= modeRights(bits, isDir)
		if dir != nil && dir.MayRemove(c, i) == nil {
			rights |= rightDelete
		}
	}
	if r.t.exp.ReadOnly {
		rights &= rightsReadOnly
	}
	return rights
}
