package smb

import (
	"bytes"
	"encoding/binary"
	"math"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// setInfo is SET_INFO, MS-SMB2 section 3.3.5.21.
func (r *request) setInfo() wire.Status {
	var q wire.SetInfoRequest
	if !q.Decode(r.msg) || len(q.Data) > r.c.maxIO() || !r.paid(len(q.Data)) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case f == nil:
		return status
	case f.pipe != nil:
		// How a client reads is its own affair.
		if q.Type != wire.InfoFile || q.Class != wire.FilePipe {
			return wire.StatusInvalidParameter
		}
		wire.AppendSetInfoReply(r.w)
		return wire.StatusOK
	}
	switch q.Type {
	case wire.InfoFile:
		c, ok := setClasses[q.Class]
		switch {
		case !ok:
			return wire.StatusInvalidInfoClass
		case len(q.Data) < c.size:
			return wire.StatusInfoLengthMismatch
		case f.access&c.rights != c.rights:
			return wire.StatusAccessDenied
		}
		status = c.set(r, f, q.Data)
	case wire.InfoFS, wire.InfoQuota:
		status = wire.StatusNotSupported
	case wire.InfoSecurity:
		status = r.setSecurity(f, &q)
	default:
		status = wire.StatusInvalidParameter
	}
	if status == wire.StatusOK {
		wire.AppendSetInfoReply(r.w)
	}
	return status
}

// setClasses are the classes that can be set: the size of their data at least, and
// what the file must be open for (MS-SMB2 section 3.3.5.21.1).
var setClasses map[uint8]setClass

type setClass struct {
	size   int
	rights uint32
	set    func(*request, *file, []byte) wire.Status
}

func init() {
	setClasses = map[uint8]setClass{
		wire.FileBasic:         {36, rightWriteAttrs, (*request).setBasic},
		wire.FileRename:        {20, rightDelete, (*request).setRename},
		wire.FileRenameEx:      {20, rightDelete, (*request).setRename},
		wire.FileLink:          {20, 0, (*request).setLink},
		wire.FileDisposition:   {1, rightDelete, (*request).setDisposition},
		wire.FileDispositionEx: {4, rightDelete, (*request).setDispositionEx},
		wire.FilePosition:      {8, 0, (*request).setPosition},
		wire.FileFullEA:        {0, rightWriteEA, (*request).setEA},
		wire.FileMode:          {4, 0, (*request).setMode},
		wire.FileAllocation:    {8, rightWriteData, (*request).setAllocation},
		wire.FileEndOfFile:     {8, rightWriteData, (*request).setEndOfFile},
	}
}

// Times that stop and resume the changes of a time by what else is done with the
// open file (MS-FSCC section 2.4.7).
const (
	timeFreeze = math.MaxUint64
	timeThaw   = math.MaxUint64 - 1
)

// setBasic sets times and attributes, MS-FSA section 2.1.5.15.2.
func (r *request) setBasic(f *file, b []byte) wire.Status {
	var info wire.BasicInfo
	info.Decode(b)
	isDir := f.inode.Type() == memstore.TypeDir
	if isDir && info.Attributes&wire.AttrTemporary != 0 || !isDir && info.Attributes&wire.AttrDirectory != 0 {
		return wire.StatusInvalidParameter
	}
	var set memstore.SetAttr
	frozen := f.frozen
	for _, t := range []struct {
		mask memstore.SetMask
		from uint64
		to   *int64
	}{
		{memstore.SetBtime, info.Times.Creation, &set.Btime},
		{memstore.SetAtime, info.Times.Access, &set.Atime},
		{memstore.SetMtime, info.Times.Write, &set.Mtime},
		{memstore.SetCtime, info.Times.Change, &set.Ctime},
	} {
		switch {
		case t.from == 0:
		case t.from == timeFreeze:
			frozen |= t.mask
		case t.from == timeThaw:
			frozen &^= t.mask
		case t.from > math.MaxInt64:
			return wire.StatusInvalidParameter
		default:
			set.Mask |= t.mask
			frozen |= t.mask // as NTFS does
			*t.to = memstore.Time(wire.UnixTime(t.from))
		}
	}
	a, err := f.inode.GetAttr(&r.who)
	if err != nil {
		return r.status(err)
	}
	if info.Attributes != 0 {
		set.Mask |= memstore.SetDOS
		set.DOS = uint16(info.Attributes&keptAttrs&^wire.AttrSparse) | a.DOS&wire.AttrSparse
	}
	if set.Mask != 0 {
		if set.Mask&memstore.SetCtime == 0 && frozen&memstore.SetCtime != 0 {
			set.Mask |= memstore.SetCtime
			set.Ctime = a.Ctime
		}
		if _, err := f.inode.SetAttr(r.server(), nil, &set); err != nil {
			return r.status(err)
		}
	}
	f.frozen = frozen
	return wire.StatusOK
}

// Flags of FileRenameEx and FileDispositionEx, MS-FSCC sections 2.4.43 and 2.4.12.
const (
	renameReplace = 1 << 0

	disposeDelete      = 1 << 0
	disposeOnClose     = 1 << 3
	disposeReadOnlyToo = 1 << 4
)

// setRename gives the file another name, MS-FSA section 2.1.5.15.11.
func (r *request) setRename(f *file, b []byte) wire.Status {
	var info wire.RenameInfo
	if info.Decode(b) && len(info.Name) > 1 && info.Name[0] == ':' && info.Name[1] == 0 {
		return r.renameStream(f, info.Name, info.Flags&renameReplace != 0)
	}
	if f.stream != "" {
		return wire.StatusSharingViolation // as Windows says
	}
	to, replace, status := r.target(f, b)
	if status != wire.StatusOK {
		return status
	}
	dir, name := f.where()
	if dir == nil {
		return wire.StatusAccessDenied
	}
	c := r.who
	c.Open = f.open
	flags := memstore.RenameNoReplace
	switch {
	case to.inode != f.inode:
	case to.dir != dir || to.name != name: // another name of the same file
		if !replace {
			return wire.StatusNameCollision
		}
		_, err := dir.Remove(&c, name, memstore.RemoveFile)
		if err == nil {
			f.dir, f.name = to.dir, to.name
		}
		return r.status(err)
	case to.name == to.written:
		return wire.StatusOK
	default: // another way to write the same name
		to.name = to.written
	}
	if to.inode != nil && to.inode != f.inode || to.name != to.written {
		if !replace {
			return wire.StatusNameCollision
		}
		if status := r.mayReplace(to.inode); status != wire.StatusOK {
			return status
		}
		flags = 0
	}
	_, _, err := r.t.exp.Store.Rename(&c, dir, name, to.dir, to.name, flags|memstore.RenamePinned)
	switch err {
	case nil:
		f.dir, f.name = to.dir, to.name
	case memstore.ErrIsDir, memstore.ErrNotDir, memstore.ErrNotEmpty:
		return wire.StatusAccessDenied
	}
	return r.status(err)
}

// target reads to where a file is to be renamed or linked.
func (r *request) target(f *file, b []byte) (to path, replace bool, status wire.Status) {
	var info wire.RenameInfo
	if !info.Decode(b) || info.Root != 0 || len(info.Name) == 0 {
		return to, false, wire.StatusInvalidParameter
	}
	if f.dir == nil {
		return to, false, wire.StatusAccessDenied // the share's root
	}
	if r.t.exp.ReadOnly {
		return to, false, wire.StatusMediaWriteProtected
	}
	to, status = r.find(bytes.TrimPrefix(info.Name, []byte{'\\', 0}))
	if status == wire.StatusOK && (to.stream != "" || to.dir == nil) {
		status = wire.StatusNameInvalid
	}
	return to, info.Flags&renameReplace != 0, status
}

// mayReplace tells whether what has a name may lose it to another file.
func (r *request) mayReplace(i *memstore.Inode) wire.Status {
	a, err := i.GetAttr(&r.who)
	switch {
	case err != nil:
		return r.status(err)
	case a.Type == memstore.TypeDir:
		// Linux's client removes an empty one and tries again, but not for this.
		var one [1]memstore.DirEntry
		if n, _, err := i.ReadDir(memstore.Root(), 0, one[:]); err == nil && n > 0 {
			return wire.StatusDirectoryNotEmpty
		}
		return wire.StatusAccessDenied
	case a.DOS&wire.AttrReadOnly != 0:
		return wire.StatusAccessDenied
	}
	return wire.StatusOK
}

// where is by which name the file is found: as which it was opened, or if that is
// not its own any more the one that it got last.
func (f *file) where() (dir *memstore.Inode, name string) {
	if f.dir == nil {
		return nil, ""
	}
	if i, err := f.dir.Lookup(memstore.Root(), f.name); err == nil && i == f.inode {
		return f.dir, f.name
	}
	return f.inode.LastName()
}

// setLink gives the file one more name, MS-FSA section 2.1.5.15.6.
func (r *request) setLink(f *file, b []byte) wire.Status {
	if f.inode.Type() == memstore.TypeDir {
		return wire.StatusFileIsADirectory
	}
	var err error
	for range 10 { // somebody may make or remove the name meanwhile
		to, replace, status := r.target(f, b)
		switch {
		case status != wire.StatusOK:
			return status
		case to.inode != nil && !replace:
			return wire.StatusNameCollision
		case to.inode == f.inode:
			return wire.StatusOK
		case to.inode != nil:
			if status := r.mayReplace(to.inode); status != wire.StatusOK {
				return status
			}
			err = to.dir.Replace(&r.who, to.name, to.inode, f.inode)
		default:
			_, _, err = to.dir.Link(&r.who, to.name, f.inode)
		}
		if err != memstore.ErrNotExist && err != memstore.ErrExist {
			break
		}
	}
	return r.status(err)
}

// setDisposition says whether the file goes with its last open, MS-FSA section
// 2.1.5.15.3.
func (r *request) setDisposition(f *file, b []byte) wire.Status {
	if b[0] == 0 {
		return r.dispose(f, 0)
	}
	return r.dispose(f, disposeDelete)
}

// setDispositionEx is setDisposition with flags, MS-FSA section 2.1.5.15.4.
func (r *request) setDispositionEx(f *file, b []byte) wire.Status {
	flags := binary.LittleEndian.Uint32(b)
	if flags&disposeOnClose != 0 {
		if f.options&wire.OptDeleteOnClose == 0 {
			return wire.StatusNotSupported
		}
		f.deleteOnClose = flags&disposeDelete != 0
		return wire.StatusOK
	}
	return r.dispose(f, flags)
}

func (r *request) dispose(f *file, flags uint32) wire.Status {
	if flags&disposeDelete == 0 {
		f.open.Spare()
		return wire.StatusOK
	}
	a, err := f.inode.GetAttr(&r.who)
	if err != nil {
		return r.status(err)
	}
	dir, name := f.where()
	if f.stream != "" {
		dir = f.inode // which is not looked at
	}
	switch {
	case a.DOS&wire.AttrReadOnly != 0 && flags&disposeReadOnlyToo == 0:
		return wire.StatusCannotDelete
	case dir == nil:
		return wire.StatusAccessDenied
	}
	return r.status(f.open.Doom(dir, name))
}

func (r *request) setPosition(f *file, b []byte) wire.Status {
	n := binary.LittleEndian.Uint64(b)
	if n > math.MaxInt64 {
		return wire.StatusInvalidParameter
	}
	f.position = n
	return wire.StatusOK
}

func (r *request) setEA(f *file, b []byte) wire.Status { return r.setEAs(f.inode, b) }

// setMode changes how a file is open, MS-FSA section 2.1.5.15.8.
func (r *request) setMode(f *file, b []byte) wire.Status {
	const settable = 0x3E
	mode := binary.LittleEndian.Uint32(b)
	if mode&^settable != 0 {
		return wire.StatusInvalidParameter
	}
	f.options = f.options&^settable | mode
	return wire.StatusOK
}

// setAllocation reserves memory for a file, or cuts it, MS-FSA section 2.1.5.15.1.
func (r *request) setAllocation(f *file, b []byte) wire.Status {
	n := int64(binary.LittleEndian.Uint64(b))
	if n < 0 || f.data().Type() != memstore.TypeFile {
		return wire.StatusInvalidParameter
	}
	a, err := f.data().GetAttr(&r.who)
	switch {
	case err != nil:
		return r.status(err)
	case n < a.Size:
		return r.resize(f, n)
	}
	_, err = f.data().Allocate(&r.who, f.open, 0, n, true)
	return r.status(err)
}

// setEndOfFile cuts or extends a file, MS-FSA section 2.1.5.15.5.
func (r *request) setEndOfFile(f *file, b []byte) wire.Status {
	n := int64(binary.LittleEndian.Uint64(b))
	if n < 0 || f.data().Type() != memstore.TypeFile {
		return wire.StatusInvalidParameter
	}
	return r.resize(f, n)
}

func (r *request) resize(f *file, n int64) wire.Status {
	ch, err := f.data().SetAttr(&r.who, f.open, &memstore.SetAttr{Mask: memstore.SetSize, Size: n})
	if err == nil {
		r.restore(f, &ch)
	}
	return r.status(err)
}

// restore puts back the times that a change of data should have left as they were.
func (r *request) restore(f *file, ch *memstore.Changed) {
	if f.frozen&(memstore.SetMtime|memstore.SetCtime) == 0 {
		return
	}
	set := memstore.SetAttr{Mask: f.frozen & memstore.SetMtime, Mtime: ch.Before.Mtime}
	set.Mask |= memstore.SetCtime
	if set.Ctime = ch.After.Ctime; f.frozen&memstore.SetCtime != 0 {
		set.Ctime = ch.Before.Ctime
	}
	f.data().SetAttr(r.server(), nil, &set)
}

// setSecurity makes a mode, an owner and a group of a security descriptor. MS-SMB2
// section 3.3.5.21.3.
func (r *request) setSecurity(f *file, q *wire.SetInfoRequest) wire.Status {
	need := uint32(0)
	if q.Additional&(secOwner|secGroup) != 0 {
		need |= rightWriteOwner
	}
	if q.Additional&secDACL != 0 {
		need |= rightWriteDAC
	}
	if q.Additional&secSACL != 0 {
		need |= rightSystem
	}
	if f.access&need != need {
		return wire.StatusAccessDenied
	}
	a, err := f.inode.GetAttr(&r.who)
	if err != nil {
		return r.status(err)
	}
	set, err := parseSD(q.Data, q.Additional, &a)
	switch err {
	case nil:
	case errUnknownSID:
		return wire.StatusInvalidOwner
	default:
		return wire.StatusInvalidSecurityDescriptor
	}
	_, err = f.inode.SetAttr(&r.who, nil, &set)
	return r.status(err)
}
