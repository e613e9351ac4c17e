package nfs

import (
	"strings"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// The operations that minor version 2 has added: holes, copies inside the
// server, and extended attributes.

// opAllocate is ALLOCATE, RFC 7862 section 15.1.
func (m *compound) opAllocate() nfs4.Status {
	return m.onRange(func(i *memstore.Inode, o *memstore.Open, off, n int64) error {
		_, err := i.Allocate(&m.k.who, o, off, n, false)
		return err
	})
}

// opDeallocate is DEALLOCATE, RFC 7862 section 15.4.
func (m *compound) opDeallocate() nfs4.Status {
	return m.onRange(func(i *memstore.Inode, o *memstore.Open, off, n int64) error {
		_, err := i.Punch(&m.k.who, o, off, n)
		return err
	})
}

// onRange changes a range of the current file.
func (m *compound) onRange(change func(i *memstore.Inode, o *memstore.Open, off, n int64) error) nfs4.Status {
	var a nfs4.RangeArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := m.onlyFile(); s != nfs4.OK {
		return s
	}
	o, s := m.openOf(&a.Stateid, memstore.AccessWrite)
	switch {
	case s != nfs4.OK:
		return s
	case a.Length == 0, a.Offset+a.Length < a.Offset:
		return nfs4.ErrInval
	case a.Offset+a.Length > memstore.MaxFileSize:
		return nfs4.ErrFBig
	}
	return m.fail(change(m.cur.i, o, int64(a.Offset), int64(a.Length)))
}

// opSeek is SEEK, RFC 7862 section 15.11. With no data behind an offset in the file
// the answer is its end.
func (m *compound) opSeek() nfs4.Status {
	var a nfs4.SeekArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := m.onlyFile(); s != nfs4.OK {
		return s
	}
	o, s := m.openOf(&a.Stateid, memstore.AccessRead)
	if s != nfs4.OK {
		return s
	}
	i, who := m.cur.i, &m.k.who
	seek := i.SeekData
	switch a.What {
	case nfs4.SeekData:
	case nfs4.SeekHole:
		seek = i.SeekHole
	default:
		return nfs4.ErrUnionNotSupp
	}
	pos, err := seek(who, o, int64(min(a.Offset, memstore.MaxFileSize)))
	if err != nil && err != memstore.ErrNoData {
		return m.fail(err)
	}
	none := err != nil
	attr, err := i.GetAttr(who)
	switch {
	case err != nil:
		return m.fail(err)
	case none && a.Offset >= uint64(attr.Size):
		return nfs4.ErrNXIO
	case none:
		pos = attr.Size
	}
	res := nfs4.SeekRes{EOF: pos >= attr.Size, Offset: uint64(pos)}
	res.Encode(m.k.w)
	return nfs4.OK
}

// opClone is CLONE, RFC 7862 section 15.13: all of it, or an error.
func (m *compound) opClone() nfs4.Status {
	var a nfs4.CloneArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	_, s := m.clone(&a, true)
	return s
}

// copyMost is up to how much a COPY may have to copy for real, in bytes: what
// lies differently in its pages cannot be shared. A client asks again for the
// rest.
const copyMost = 4 << 20

// opCopy is COPY, RFC 7862 section 15.2, always synchronous.
func (m *compound) opCopy() nfs4.Status {
	var a nfs4.CopyArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	switch {
	case a.Servers > 0:
		return nfs4.ErrNotSupp
	case m.saved.i == m.cur.i && m.cur.i.Type() == memstore.TypeFile:
		return nfs4.ErrInval // unlike CLONE, RFC 7862 section 15.2.3
	}
	if (a.FromOffset^a.ToOffset)%freshMin != 0 && (a.Count == 0 || a.Count > copyMost) {
		a.Count = copyMost
	}
	n, s := m.clone(&a.CloneArgs, false)
	if s != nfs4.OK {
		return s
	}
	res := nfs4.CopyRes{
		Write:       nfs4.WriteRes64{Count: uint64(n), Committed: nfs4.FileSync, Verf: m.k.c.s.verifier},
		Consecutive: true, Synchronous: true,
	}
	res.Encode(m.k.w)
	return nfs4.OK
}

// clone makes a range of the current file the same as one of the saved file.
// Only if whole is set must the source have all of it.
func (m *compound) clone(a *nfs4.CloneArgs, whole bool) (int64, nfs4.Status) {
	if m.saved.i == nil || m.saved.i.Type() != memstore.TypeFile || m.cur.i.Type() != memstore.TypeFile {
		return 0, nfs4.ErrWrongType
	}
	to, s := m.openOf(&a.To, memstore.AccessWrite)
	if s != nfs4.OK {
		return 0, s
	}
	from, s := m.openOfSaved(&a.From)
	if s != nfs4.OK {
		return 0, s
	}
	const most = memstore.MaxFileSize
	if a.FromOffset > most || a.ToOffset > most || a.Count > most {
		return 0, nfs4.ErrInval
	}
	src, err := m.saved.i.GetAttr(&m.k.who)
	if err != nil {
		return 0, m.fail(err)
	}
	if int64(a.FromOffset) > src.Size || whole && int64(a.Count) > src.Size-int64(a.FromOffset) {
		return 0, nfs4.ErrInval
	}
	n, _, err := m.cur.i.Clone(&m.k.who, to, int64(a.ToOffset), m.saved.i, from, int64(a.FromOffset), int64(a.Count))
	if err != nil && (whole || n == 0) {
		return 0, m.fail(err)
	}
	return n, nfs4.OK
}

// openOfSaved is openOf for reading the saved file.
func (m *compound) openOfSaved(sid *nfs4.Stateid) (*memstore.Open, nfs4.Status) {
	cur, own := m.cur, m.sid
	m.cur, m.sid = m.saved, m.savedSid
	o, s := m.openOf(sid, memstore.AccessRead)
	m.cur, m.sid = cur, own
	return o, s
}

// opIOAdvise is IO_ADVISE, RFC 7862 section 15.5: no hint is followed.
func (m *compound) opIOAdvise() nfs4.Status {
	var a nfs4.IOAdviseArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if _, s := m.openOf(&a.Stateid, 0); s != nfs4.OK {
		return s
	}
	var none nfs4.Bitmap
	none.Encode(m.k.w)
	return nfs4.OK
}

// userXattr is what the store calls the attributes that clients reach, whose
// names on the wire are without it (RFC 8276 section 7).
const userXattr = "user."

// opGetXattr is GETXATTR, RFC 8276 section 8.4.2.
func (m *compound) opGetXattr() nfs4.Status {
	var a nfs4.Name
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	v, err := m.cur.i.GetXattr(&m.k.who, userXattr+a.Name)
	if err != nil {
		return m.fail(err)
	}
	if m.room() < 4+len(v)+3 {
		return m.tooBig()
	}
	m.k.w.Opaque(v)
	return nfs4.OK
}

// opSetXattr is SETXATTR, RFC 8276 section 8.4.3.
func (m *compound) opSetXattr() nfs4.Status {
	var a nfs4.SetXattrArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if a.Name == "" {
		return nfs4.ErrInval
	}
	rules := [...]memstore.XattrRule{
		nfs4.SetXattrEither: memstore.XattrEither, nfs4.SetXattrCreate: memstore.XattrCreate, nfs4.SetXattrReplace: memstore.XattrReplace,
	}
	ch, err := m.cur.i.SetXattr(&m.k.who, userXattr+a.Name, a.Value, rules[a.Option])
	return m.changedXattr(&ch, err)
}

// opRemoveXattr is REMOVEXATTR, RFC 8276 section 8.4.5.
func (m *compound) opRemoveXattr() nfs4.Status {
	var a nfs4.Name
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	ch, err := m.cur.i.RemoveXattr(&m.k.who, userXattr+a.Name)
	return m.changedXattr(&ch, err)
}

func (m *compound) changedXattr(ch *memstore.Changed, err error) nfs4.Status {
	if err != nil {
		return m.fail(err)
	}
	info := change(ch)
	info.Encode(m.k.w)
	return nfs4.OK
}

// opListXattrs is LISTXATTRS, RFC 8276 section 8.4.4. A cookie is how many names
// came before.
func (m *compound) opListXattrs() nfs4.Status {
	var a nfs4.ListXattrsArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	names, err := m.cur.i.ListXattr(&m.k.who)
	if err != nil {
		return m.fail(err)
	}
	w := m.k.w
	const around = 8 + 4 + 4
	at := len(w.B)
	end := at + min(int(a.MaxCount), m.room()) - 4
	if end < at+around-4 {
		return nfs4.ErrTooSmall
	}
	w.Uint64(0)
	w.Uint32(0)
	cookie, n, eof := uint64(0), uint32(0), true
	for _, name := range names {
		name, ok := strings.CutPrefix(name, userXattr)
		if !ok {
			continue
		}
		if cookie++; cookie <= a.Cookie {
			continue
		}
		if len(w.B)+4+len(name)+-len(name)&3 > end {
			cookie--
			eof = false
			break
		}
		w.String(name)
		n++
	}
	switch {
	case !eof && n == 0:
		return nfs4.ErrTooSmall
	case cookie < a.Cookie:
		return nfs4.ErrBadCookie
	}
	w.PatchUint32(at, uint32(cookie>>32))
	w.PatchUint32(at+4, uint32(cookie))
	w.PatchUint32(at+8, n)
	w.Bool(eof)
	return nfs4.OK
}
