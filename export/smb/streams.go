package smb

import (
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// A named stream is open beside the file that has it: that open asks for nothing,
// denies others at most to remove the file, and keeps it until then.

// openStream opens or makes a stream, and the file if there is none.
func (k *creating) openStream() wire.Status {
	q, r := k.q, k.r
	creates := q.Disposition != wire.FileOpen && q.Disposition != wire.FileOverwrite
	empties := q.Disposition == wire.FileSupersede || q.Disposition >= wire.FileOverwrite
	switch {
	case k.inode == nil && !creates:
		return wire.StatusNameNotFound
	case creates && r.t.exp.ReadOnly:
		return wire.StatusMediaWriteProtected
	}
	if k.inode == nil {
		made, err := k.dir.Create(&r.who, k.name, &memstore.Create{
			Type: memstore.TypeFile,
			Set: memstore.SetAttr{
				Mask: memstore.SetMode | memstore.SetDOS, Mode: newFileMode, DOS: uint16(k.attrs&newAttrs | wire.AttrArchive),
			},
		})
		if err != nil {
			return k.changed(err)
		}
		k.inode = made.Inode
	}
	var err error
	if k.attr, err = k.inode.GetAttr(&r.who); err != nil {
		return k.changed(err)
	}
	if k.attr.Type != memstore.TypeFile && k.attr.Type != memstore.TypeDir {
		return wire.StatusAccessDenied
	}
	most := r.maxRights(k.dir, k.inode, &k.attr)
	if k.attr.DOS&wire.AttrReadOnly != 0 {
		most &^= rightWriteData | rightAppend | rightDeleteChild
	}
	need := k.access &^ rightMaximum
	if empties {
		need |= rightWriteData
	}
	if need&^most != 0 {
		return wire.StatusAccessDenied
	}
	k.granted = k.access &^ rightMaximum
	if k.access&rightMaximum != 0 {
		k.granted |= most
	}
	if q.Options&wire.OptDeleteOnClose != 0 && k.granted&rightDelete == 0 {
		return wire.StatusAccessDenied
	}
	args := k.args()
	if empties {
		args.Access |= memstore.AccessWrite
	}
	if k.base, err = k.inode.Open(&r.who, memstore.OpenArgs{Deny: args.Deny & memstore.AccessDelete, Pin: true}); err != nil {
		return k.changed(err)
	}
	open, made, err := k.inode.OpenStream(&r.who, k.stream, memstore.StreamArgs{
		Open:   args,
		Create: creates,
		Fail:   q.Disposition == wire.FileCreate,
		Empty:  empties,
	})
	if err != nil {
		k.base.Close()
		return r.status(err)
	}
	k.open = open
	if empties && args.Access != k.args().Access {
		if err := open.Change(&r.who, k.args()); err != nil {
			k.abandon()
			return r.status(err)
		}
	}
	k.action = wire.ActionOpened
	switch {
	case made:
		k.action = wire.ActionCreated
	case q.Disposition == wire.FileSupersede:
		k.action = wire.ActionSuperseded
	case empties:
		k.action = wire.ActionOverwritten
	}
	return k.streamAttr()
}

// streamAttr finds the attributes of the open stream.
func (k *creating) streamAttr() wire.Status {
	r := k.r
	a, err := k.inode.GetAttr(&r.who)
	if err == nil {
		err = sizeOf(k.open.Inode(), &r.who, &a)
	}
	if err != nil {
		k.abandon()
		return r.status(err)
	}
	k.attr = a
	return wire.StatusOK
}

// abandon closes what was opened for a CREATE that has failed.
func (k *creating) abandon() {
	k.open.Close()
	if k.base != nil {
		k.base.Close()
	}
}

// attrs are the attributes of an open file; a stream has those of its file, and its
// own size.
func (r *request) attrs(f *file) (memstore.Attr, error) {
	a, err := f.inode.GetAttr(&r.who)
	if err == nil && f.stream != "" {
		err = sizeOf(f.data(), &r.who, &a)
	}
	return a, err
}

func sizeOf(s *memstore.Inode, c *memstore.Caller, a *memstore.Attr) error {
	b, err := s.GetAttr(c)
	a.Size, a.Used, a.Type = b.Size, b.Used, memstore.TypeFile
	return err
}

// appendStreams appends the streams of a file, MS-FSCC section 2.4.49: its data is
// the first.
func appendStreams(b []byte, f *file, a *memstore.Attr) []byte {
	at := -1
	add := func(name string, size, used int64) {
		u := wire.AppendUTF16([]byte{':', 0}, name)
		u = wire.AppendUTF16(u, ":$DATA")
		b, at = wire.AppendStream(b, at, u, uint64(size), uint64(used+wire.SectorSize-1)&^(wire.SectorSize-1))
	}
	if f.inode.Type() == memstore.TypeFile {
		add("", a.Size, a.Used)
	}
	for _, s := range f.inode.Streams() {
		add(s.Name, s.Size, s.Used)
	}
	return b
}

// renameStream gives a stream another name, MS-FSA section 2.1.5.15.12.
func (r *request) renameStream(f *file, name []byte, replace bool) wire.Status {
	leaf, stream, _, status := cutStream(wire.String(name))
	switch {
	case status != wire.StatusOK:
		return status
	case leaf != "" || f.stream == "":
		return wire.StatusInvalidParameter
	case stream == "":
		return r.becomeData(f)
	}
	switch err := f.open.RenameStream(stream, replace); err {
	case nil:
		f.stream = stream
		return wire.StatusOK
	case memstore.ErrExist:
		return wire.StatusNameCollision
	default:
		return r.status(err)
	}
}

// becomeData makes a stream what the data of its file is.
func (r *request) becomeData(f *file) wire.Status {
	if f.inode.Type() != memstore.TypeFile {
		return wire.StatusFileIsADirectory
	}
	c := r.server()
	if _, err := f.inode.SetAttr(c, nil, &memstore.SetAttr{Mask: memstore.SetSize}); err != nil {
		return r.status(err)
	}
	if _, _, err := f.inode.Clone(c, nil, 0, f.data(), nil, 0, 0); err != nil {
		return r.status(err)
	}
	return r.status(f.open.Doom(nil, ""))
}
