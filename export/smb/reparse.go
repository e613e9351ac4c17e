package smb

import (
	"strings"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// What is neither a file nor a directory is a reparse point to clients: symlinks as
// Windows has them, and special files as its NFS server makes them.

var specials = map[memstore.Type]uint64{
	memstore.TypeFIFO:   wire.SpecialFIFO,
	memstore.TypeSocket: wire.SpecialSocket,
	memstore.TypeBlock:  wire.SpecialBlock,
	memstore.TypeChar:   wire.SpecialChar,
}

// maxReparse bounds the data of a reparse point, in bytes.
const maxReparse = 16 << 10

// getReparsePoint is MS-FSA section 2.1.5.10.14.
func (r *request) getReparsePoint(f *file, _ []byte, max int) ([]byte, wire.Status) {
	p := wire.Reparse{Tag: tagOf(f.inode.Type())}
	switch p.Tag {
	case 0:
		return nil, wire.StatusNotAReparsePoint
	case wire.TagSymlink:
		target, err := f.inode.Readlink(&r.who)
		if err != nil {
			return nil, r.status(err)
		}
		p.Target = appendTarget(nil, target)
		if !strings.HasPrefix(target, "/") {
			p.Flags = wire.SymlinkRelative
		}
	default:
		a, err := f.inode.GetAttr(&r.who)
		if err != nil {
			return nil, r.status(err)
		}
		p.Special, p.Major, p.Minor = specials[a.Type], a.Major, a.Minor
	}
	b := p.Append(nil)
	if len(b) > max {
		if max < 8 {
			return nil, wire.StatusBufferTooSmall
		}
		return b[:max], wire.StatusBufferOverflow
	}
	return b, wire.StatusOK
}

// setReparsePoint makes a symlink or a special file of an empty file or directory,
// MS-FSA section 2.1.5.10.37: another inode takes its place, in one step.
func (r *request) setReparsePoint(f *file, in []byte, _ int) ([]byte, wire.Status) {
	var p wire.Reparse
	switch {
	case f.access&(rightWriteData|rightWriteAttrs) == 0:
		return nil, wire.StatusAccessDenied
	case r.t.exp.ReadOnly:
		return nil, wire.StatusMediaWriteProtected
	case len(in) < 8 || len(in) > maxReparse:
		return nil, wire.StatusReparseDataInvalid
	}
	if !p.Decode(in) {
		if tag := uint32(in[0]) | uint32(in[1])<<8 | uint32(in[2])<<16 | uint32(in[3])<<24; tag != wire.TagSymlink && tag != wire.TagNFS {
			return nil, wire.StatusReparseNotHandled
		}
		return nil, wire.StatusReparseDataInvalid
	}
	a, err := f.inode.GetAttr(&r.who)
	if err != nil {
		return nil, r.status(err)
	}
	dir, name := f.where()
	switch {
	case dir == nil || f.stream != "":
		return nil, wire.StatusAccessDenied
	case a.Type != memstore.TypeFile && a.Type != memstore.TypeDir, a.Type == memstore.TypeFile && a.Size > 0:
		return nil, wire.StatusReparseTagMismatch
	}
	dos := a.DOS
	if a.Type == memstore.TypeDir {
		dos |= wire.AttrDirectory // so that Windows knows of what it is a link
	}
	c := memstore.Create{
		Set:   memstore.SetAttr{Mask: memstore.SetDOS | memstore.SetMode, DOS: dos, Mode: a.Mode},
		Major: p.Major, Minor: p.Minor,
		Open: &memstore.OpenArgs{Access: f.open.Access() & memstore.AccessDelete},
	}
	switch {
	case p.Tag == wire.TagSymlink || p.Special == wire.SpecialLink:
		c.Type, c.Target = memstore.TypeSymlink, targetOf(p.Target)
	default:
		for t, s := range specials {
			if s == p.Special {
				c.Type = t
			}
		}
	}
	made, err := dir.CreateTemp(&r.who, &c)
	if err != nil {
		return nil, r.status(err)
	}
	who := r.who
	who.Open = f.open
	if err := dir.Replace(&who, name, f.inode, made.Inode); err != nil {
		made.Open.Close()
		return nil, r.status(err)
	}
	f.open.Close()
	f.open, f.inode, f.dir, f.name = made.Open, made.Inode, dir, name
	return nil, wire.StatusOK
}

// targetOf is a symlink's target from a client.
func targetOf(b []byte) string {
	parts := strings.Split(wire.String(b), `\`)
	for i, p := range parts {
		parts[i] = fromWire(p)
	}
	return strings.Join(parts, "/")
}
