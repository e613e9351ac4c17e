package nfs

import (
	"math"
	"slices"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// The procedures of NFS version 3, RFC 1813 section 3.3, each in three phases:
// resolve the handles, one call of the store, reply. Attributes for the reply
// come from the same step of the store where it makes a change.

// null is the procedure that every program has, RFC 5531 section 12.
func (k *call) null() bool { return true }

// getattr is GETATTR, RFC 1813 section 3.3.1.
func (k *call) getattr() bool {
	var a nfs3.FHArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var attr memstore.Attr
	i, err := k.resolve(a.FH)
	if err == nil {
		attr, err = i.GetAttr(&k.who)
	}
	res := nfs3.GetAttrRes{Status: k.status(err)}
	if err == nil {
		setFattr(&res.Attr, &attr, k.exp.Store.ID())
	}
	res.Encode(k.w)
	return true
}

// setattr is SETATTR, RFC 1813 section 3.3.2.
func (k *call) setattr() bool {
	var a nfs3.SetAttrArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var ch memstore.Changed
	i, err := k.resolveToChange(a.FH)
	if err == nil {
		var set memstore.SetAttr
		if set, err = setAttrOf(&a.Attr); err == nil && a.Check {
			set.Mask |= memstore.SetGuard
			set.GuardCtime, err = storeTime(a.Guard)
		}
		if err == nil {
			ch, err = i.SetAttr(&k.who, k.shared(i, memstore.AccessWrite), &set)
		}
	}
	res := nfs3.WccRes{Status: k.status(err)}
	k.wcc(&res.Wcc, i, &ch)
	res.Encode(k.w)
	return true
}

// lookup is LOOKUP, RFC 1813 section 3.3.3.
func (k *call) lookup() bool {
	var a nfs3.DirOp
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var i *memstore.Inode
	var attr memstore.Attr
	d, err := k.resolve(a.Dir)
	if err == nil {
		if i, err = k.find(d, a.Name); err == nil {
			attr, err = i.GetAttr(&k.who)
		}
	}
	var fh [handleSize]byte
	res := nfs3.LookupRes{Status: k.status(err)}
	if err == nil {
		res.FH = k.handle(&fh, i)
		k.attr(&res.Attr, &attr)
	}
	k.post(&res.Dir, d)
	res.Encode(k.w)
	return true
}

// find looks a name up and stays inside the export: ".." of its root is the
// root itself, and from a directory that was moved out of it no way leads up.
func (k *call) find(d *memstore.Inode, name string) (*memstore.Inode, error) {
	if name == ".." && d == k.exp.Root {
		name = "."
	}
	i, err := d.Lookup(&k.who, name)
	if err == nil && (i == nil || name == ".." && !k.exports(i)) {
		err = memstore.ErrStale
	}
	return i, err
}

// exports tells whether a directory is in the export.
func (k *call) exports(d *memstore.Inode) bool {
	top := k.exp.Store.Root()
	if k.exp.Root == top {
		return true
	}
	for d != k.exp.Root {
		if d == top {
			return false
		}
		d = d.Parent()
	}
	return true
}

// access is ACCESS, RFC 1813 section 3.3.4. What a bit does not mean for a
// type of file is not granted.
func (k *call) access() bool {
	var a nfs3.AccessArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var attr memstore.Attr
	i, err := k.resolve(a.FH)
	if err == nil {
		attr, err = i.GetAttr(&k.who)
	}
	res := nfs3.AccessRes{Status: k.status(err)}
	k.attr(&res.Attr, &attr)
	if err == nil {
		res.Access = k.rights(i)
		res.Access &= a.Access & 0x3f
	}
	res.Encode(k.w)
	return true
}

// rights is what the caller may do with i, as bits that ACCESS has in every
// version.
func (k *call) rights(i *memstore.Inode) (may uint32) {
	const all = memstore.AccessRead | memstore.AccessWrite | memstore.AccessExecute
	got := i.Access(&k.who, all)
	dir := i.Type() == memstore.TypeDir
	if got&memstore.AccessRead != 0 {
		may |= nfs4.AccessRead | nfs4.AccessXattrRead | nfs4.AccessXattrList
	}
	if got&memstore.AccessWrite != 0 && !k.exp.ReadOnly {
		may |= nfs4.AccessModify | nfs4.AccessExtend | nfs4.AccessXattrWrite
		if dir {
			may |= nfs4.AccessDelete
		}
	}
	if got&memstore.AccessExecute != 0 {
		if dir {
			may |= nfs4.AccessLookup
		} else {
			may |= nfs4.AccessExecute
		}
	}
	return may
}

// readlink is READLINK, RFC 1813 section 3.3.5.
func (k *call) readlink() bool {
	var a nfs3.FHArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var target string
	i, err := k.resolve(a.FH)
	if err == nil {
		target, err = i.Readlink(&k.who)
	}
	res := nfs3.ReadLinkRes{Status: k.status(err), Target: target}
	k.post(&res.Attr, i)
	res.Encode(k.w)
	return true
}

// readHead is the size of READ3resok before the data.
const readHead = 4 + nfs3.PostOpAttrSize + 4 + 4 + 4

// read is READ, RFC 1813 section 3.3.6. Small data is copied behind the head of
// the reply; large data is sent from the store's pages, which stay pinned until
// it is. While too much is pinned already, a read is answered in part.
func (k *call) read() bool {
	var a nfs3.ReadArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	count := int(min(a.Count, uint32(k.c.s.cfg.MaxIO)))
	// No file reaches MaxFileSize: from there on it is EOF.
	off := int64(min(a.Offset, memstore.MaxFileSize))

	i, err := k.resolve(a.FH)
	pages := count > copyMax && k.work != nil && err == nil && k.c.s.large.TryTake(int64(count))
	if pages {
		k.pinned = int64(count)
	} else {
		count = min(count, copyMax)
	}

	var res nfs3.ReadRes
	var attr memstore.Attr
	at := len(k.w.B)
	n := 0
	switch {
	case err != nil:
	case pages:
		n, res.EOF, attr, err = i.ReadView(&k.who, k.shared(i, memstore.AccessRead), off, count, &k.work.view)
		k.pages = n
	default:
		k.w.B = slices.Grow(k.w.B, readHead+count+3)
		data := k.w.B[at+readHead : at+readHead+count]
		n, res.EOF, attr, err = i.ReadAt(&k.who, k.shared(i, memstore.AccessRead), data, off)
	}
	res.Status, res.Count = k.status(err), uint32(n)
	if err != nil {
		k.post(&res.Attr, i)
	} else {
		k.attr(&res.Attr, &attr)
	}
	res.EncodeHead(k.w)
	switch {
	case pages && n == 0:
		k.dropPages()
	case !pages && err == nil:
		k.w.B = k.w.B[:at+readHead+n]
		k.w.Pad(n)
	}
	return true
}

// write is WRITE, RFC 1813 section 3.3.7. Everything is as stable as it gets
// the moment it is written.
func (k *call) write() bool {
	var a nfs3.WriteArgs
	if k.fresh != nil {
		a.DecodeHead(&k.args)
	} else {
		a.Decode(&k.args)
	}
	if !k.decoded() || k.fresh == nil && int(a.Count) > len(a.Data) {
		return false
	}
	n := 0
	var ch memstore.Changed
	i, err := k.resolveToChange(a.FH)
	switch {
	case err != nil:
	case k.fresh != nil:
		n, ch, err = i.WriteFresh(&k.who, k.shared(i, memstore.AccessWrite), k.fresh)
	case a.Offset > memstore.MaxFileSize:
		err = memstore.ErrFileTooLarge
	default:
		n, ch, err = i.WriteAt(&k.who, k.shared(i, memstore.AccessWrite), a.Data[:a.Count], int64(a.Offset))
	}
	res := nfs3.WriteRes{
		Status: k.status(err), Count: uint32(n), Committed: nfs3.FileSync, Verf: k.c.s.verifier,
	}
	k.wcc(&res.Wcc, i, &ch)
	res.Encode(k.w)
	return true
}

// Modes of what a client creates without saying which. A file of an EXCLUSIVE
// create is its owner's until the SETATTR that follows.
const (
	defaultMode   = 0o644
	defaultDir    = 0o755
	exclusiveMode = 0o600
)

// create is CREATE, RFC 1813 section 3.3.8.
func (k *call) create() bool {
	var a nfs3.CreateArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	how := memstore.Create{Type: memstore.TypeFile}
	mode := uint16(defaultMode)
	switch a.Mode {
	case nfs3.Unchecked:
		how.Exist = memstore.ExistOpen
	case nfs3.Exclusive:
		how.Exist, how.Verifier = memstore.ExistVerifier, a.Verf
		mode = exclusiveMode
	}
	return k.make(&a.Where, &a.Attr, mode, &how)
}

// mkdir is MKDIR, RFC 1813 section 3.3.9.
func (k *call) mkdir() bool {
	var a nfs3.MkdirArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	return k.make(&a.Where, &a.Attr, defaultDir, &memstore.Create{Type: memstore.TypeDir})
}

// symlink is SYMLINK, RFC 1813 section 3.3.10.
func (k *call) symlink() bool {
	var a nfs3.SymlinkArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	return k.make(&a.Where, &a.Attr, 0o777, &memstore.Create{Type: memstore.TypeSymlink, Target: a.Target})
}

// mknod is MKNOD, RFC 1813 section 3.3.11.
func (k *call) mknod() bool {
	var a nfs3.MknodArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	how := memstore.Create{Major: a.Major, Minor: a.Minor} // without a type it is BADTYPE
	switch a.Type {
	case nfs3.TypeChr:
		how.Type = memstore.TypeChar
	case nfs3.TypeBlk:
		how.Type = memstore.TypeBlock
	case nfs3.TypeSock:
		how.Type = memstore.TypeSocket
	case nfs3.TypeFIFO:
		how.Type = memstore.TypeFIFO
	}
	return k.make(&a.Where, &a.Attr, defaultMode, &how)
}

// make creates an inode and encodes CREATE3res, which all that do share. It
// always reports true.
func (k *call) make(where *nfs3.DirOp, attr *nfs3.Sattr, mode uint16, how *memstore.Create) bool {
	var made memstore.Created
	d, err := k.resolveToChange(where.Dir)
	if err == nil && how.Type == 0 {
		err = memstore.ErrBadType
	}
	if err == nil {
		if how.Set, err = setAttrOf(attr); err == nil {
			if !attr.SetMode {
				how.Set.Mask |= memstore.SetMode
				how.Set.Mode = mode
			}
			made, err = d.Create(&k.who, where.Name, how)
		}
	}
	var fh [handleSize]byte
	res := nfs3.CreateRes{Status: k.status(err)}
	if err == nil {
		res.FH = nfs3.PostOpFH{Follows: true, FH: k.handle(&fh, made.Inode)}
		k.attr(&res.Attr, &made.Attr)
	}
	k.wcc(&res.Dir, d, &made.Dir)
	res.Encode(k.w)
	return true
}

// remove is REMOVE, RFC 1813 section 3.3.12.
func (k *call) remove() bool { return k.unlink(memstore.RemoveFile) }

// rmdir is RMDIR, RFC 1813 section 3.3.13.
func (k *call) rmdir() bool { return k.unlink(memstore.RemoveDir) }

func (k *call) unlink(kind memstore.RemoveKind) bool {
	var a nfs3.DirOp
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var ch memstore.Changed
	d, err := k.resolveToChange(a.Dir)
	if err == nil {
		ch, err = d.Remove(&k.who, a.Name, kind)
	}
	res := nfs3.WccRes{Status: k.status(err)}
	k.wcc(&res.Wcc, d, &ch)
	res.Encode(k.w)
	return true
}

// rename is RENAME, RFC 1813 section 3.3.14.
func (k *call) rename() bool {
	var a nfs3.RenameArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var to *memstore.Inode
	var chFrom, chTo memstore.Changed
	from, err := k.resolveToChange(a.From.Dir)
	if err == nil {
		if to, err = k.resolveToChange(a.To.Dir); err == nil {
			chFrom, chTo, err = k.exp.Store.Rename(&k.who, from, a.From.Name, to, a.To.Name, 0)
		}
	}
	res := nfs3.RenameRes{Status: k.status(err)}
	k.wcc(&res.From, from, &chFrom)
	k.wcc(&res.To, to, &chTo)
	res.Encode(k.w)
	return true
}

// link is LINK, RFC 1813 section 3.3.15.
func (k *call) link() bool {
	var a nfs3.LinkArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	var d *memstore.Inode
	var ch memstore.Changed
	var attr memstore.Attr
	i, err := k.resolveToChange(a.FH)
	if err == nil {
		if d, err = k.resolveToChange(a.Link.Dir); err == nil {
			ch, attr, err = d.Link(&k.who, a.Link.Name, i)
		}
	}
	res := nfs3.LinkRes{Status: k.status(err)}
	if k.attr(&res.Attr, &attr); !res.Attr.Follows {
		k.post(&res.Attr, i)
	}
	k.wcc(&res.Dir, d, &ch)
	res.Encode(k.w)
	return true
}

// readdir is READDIR, RFC 1813 section 3.3.16.
func (k *call) readdir() bool {
	var a nfs3.ReadDirArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	k.list(a.FH, a.Cookie, a.Count, math.MaxUint32, false)
	return true
}

// readdirplus is READDIRPLUS, RFC 1813 section 3.3.17.
func (k *call) readdirplus() bool {
	var a nfs3.ReadDirPlusArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	k.list(a.FH, a.Cookie, a.MaxCount, a.DirCount, true)
	return true
}

// Cookies that the store leaves to "." and "..".
const (
	cookieDot    = 1
	cookieDotDot = 2
)

// listing is a directory's entries being encoded.
type listing struct {
	k         *call
	plus      bool
	room      int // bytes left of what the client takes
	names     int // bytes left of what it takes of names alone
	listed    int
	truncated bool
}

// list encodes the results of READDIR and READDIRPLUS. maxCount bounds them,
// without their status; dirCount bounds what READDIR would show of them, but
// not below one entry. Cookies are the store's, which stay good whatever
// becomes of the directory, so the cookie verifier is always zero and not
// looked at.
func (k *call) list(fh []byte, cookie uint64, maxCount, dirCount uint32, plus bool) {
	d, err := k.resolve(fh)
	var attr memstore.Attr
	if err == nil {
		// Before the entries: what is added meanwhile must look newer.
		attr, err = d.GetAttr(&k.who)
	}
	const around = nfs3.PostOpAttrSize + 8 + nfs3.DirEndSize
	if err == nil && maxCount < around {
		err = nfs3.ErrTooSmall
	}
	at := len(k.w.B)
	head := nfs3.ReadDirHead{Status: k.status(err)}
	k.attr(&head.Dir, &attr)
	head.Encode(k.w)
	if err != nil {
		return
	}
	l := listing{k: k, plus: plus, room: min(int(maxCount), dirMax) - around, names: int(dirCount)}
	eof, err := l.run(d, cookie)
	if err == nil && l.truncated && l.listed == 0 {
		err = nfs3.ErrTooSmall
	}
	if err != nil {
		k.w.B = k.w.B[:at]
		head.Status = k.status(err)
		head.Encode(k.w)
		return
	}
	nfs3.EncodeDirEnd(k.w, eof)
}

func (l *listing) run(d *memstore.Inode, cookie uint64) (eof bool, err error) {
	var entries *[readDirBatch]memstore.DirEntry
	if l.k.work != nil {
		entries = &l.k.work.entries
	} else {
		entries = new([readDirBatch]memstore.DirEntry)
	}
	// The store checks the permission, for "." and ".." too.
	n, eof, err := d.ReadDir(&l.k.who, max(cookie, cookieDotDot), entries[:])
	if err != nil {
		return false, err
	}
	if cookie < cookieDot && !l.add(".", cookieDot, d) {
		return false, nil
	}
	if cookie < cookieDotDot {
		up := d
		if p := d.Parent(); d != l.k.exp.Root && l.k.exports(p) {
			up = p
		}
		if !l.add("..", cookieDotDot, up) {
			return false, nil
		}
	}
	for {
		for i := range entries[:n] {
			e := &entries[i]
			if e.Inode == nil {
				continue // removed while it was listed
			}
			if !l.add(e.Name, e.Cookie, e.Inode) {
				return false, nil
			}
			cookie = e.Cookie
		}
		if eof {
			return true, nil
		}
		if n, eof, err = d.ReadDir(&l.k.who, max(cookie, cookieDotDot), entries[:]); err != nil {
			return false, err
		}
	}
}

// add encodes an entry if there is room for it.
func (l *listing) add(name string, cookie uint64, i *memstore.Inode) bool {
	size := nfs3.EntrySize(len(name))
	bare := size
	if l.plus {
		size = nfs3.EntryPlusSize(len(name), handleSize)
	}
	if size > l.room || bare > l.names && l.listed > 0 {
		l.truncated = true
		return false
	}
	l.room -= size
	l.names -= bare
	l.listed++
	e := nfs3.EntryPlus{Entry: nfs3.Entry{FileID: i.Ino(), Name: name, Cookie: cookie}}
	if !l.plus {
		e.Entry.Encode(l.k.w)
		return true
	}
	// One that is gone by now is listed without attributes and handle.
	var fh [handleSize]byte
	if l.k.post(&e.Attr, i); e.Attr.Follows {
		e.FH = nfs3.PostOpFH{Follows: true, FH: l.k.handle(&fh, i)}
	}
	e.Encode(l.k.w)
	return true
}

// fsstat is FSSTAT, RFC 1813 section 3.3.18.
func (k *call) fsstat() bool {
	var a nfs3.FHArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	i, err := k.resolve(a.FH)
	res := nfs3.FSStatRes{Status: k.status(err)}
	k.post(&res.Attr, i)
	if err == nil {
		st := k.exp.Store.Statfs()
		res.TotalBytes = uint64(st.TotalBytes)
		res.FreeBytes = uint64(max(0, st.TotalBytes-st.UsedBytes))
		res.AvailBytes = res.FreeBytes
		res.TotalFiles = uint64(st.TotalInodes)
		res.FreeFiles = uint64(max(0, st.TotalInodes-st.UsedInodes))
		res.AvailFiles = res.FreeFiles
	}
	res.Encode(k.w)
	return true
}

// fsinfo is FSINFO, RFC 1813 section 3.3.19.
func (k *call) fsinfo() bool {
	var a nfs3.FHArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	i, err := k.resolve(a.FH)
	size := uint32(k.c.s.cfg.MaxIO)
	res := nfs3.FSInfoRes{
		Status:  k.status(err),
		ReadMax: size, ReadPref: size, ReadMult: 4096,
		WriteMax: size, WritePref: size, WriteMult: 4096,
		DirPref:     dirMax,
		MaxFileSize: memstore.MaxFileSize,
		TimeDelta:   nfs3.Time{Nsec: 1},
		Properties:  nfs3.FSFLink | nfs3.FSFSymlink | nfs3.FSFHomogeneous | nfs3.FSFCanSetTime,
	}
	k.post(&res.Attr, i)
	res.Encode(k.w)
	return true
}

// pathconf is PATHCONF, RFC 1813 section 3.3.20.
func (k *call) pathconf() bool {
	var a nfs3.FHArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	i, err := k.resolve(a.FH)
	res := nfs3.PathConfRes{
		Status:  k.status(err),
		LinkMax: memstore.MaxLinks, NameMax: memstore.MaxName,
		NoTrunc: true, ChownRestricted: true, CasePreserving: true,
	}
	k.post(&res.Attr, i)
	res.Encode(k.w)
	return true
}

// commit is COMMIT, RFC 1813 section 3.3.21. There is nothing left to do.
func (k *call) commit() bool {
	var a nfs3.CommitArgs
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	i, err := k.resolveToChange(a.FH)
	res := nfs3.CommitRes{Status: k.status(err), Verf: k.c.s.verifier}
	k.post(&res.Wcc.After, i)
	res.Encode(k.w)
	return true
}
