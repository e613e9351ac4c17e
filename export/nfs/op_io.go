package nfs

import (
	"slices"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// The operations on data, and SETATTR, which may change its size.

// opSetAttr is SETATTR, RFC 8881 section 18.30. Its results are which attributes
// were set, none with an error.
func (m *compound) opSetAttr() nfs4.Status {
	var a nfs4.SetAttrArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	set, s := m.takeAttrs(&a.Attr)
	if s != nfs4.OK {
		return s
	}
	var o *memstore.Open
	if set.Mask&memstore.SetSize != 0 {
		if s := m.onlyFile(); s != nfs4.OK {
			return s
		}
		if o, s = m.openOf(&a.Stateid, memstore.AccessWrite); s != nfs4.OK {
			return s
		}
	}
	if _, err := m.cur.i.SetAttr(&m.k.who, o, &set); err != nil {
		return m.fail(err)
	}
	a.Attr.Mask.Encode(m.k.w)
	return nfs4.OK
}

// onlyFile refuses what is not a regular file, for operations on data.
func (m *compound) onlyFile() nfs4.Status {
	switch m.cur.i.Type() {
	case memstore.TypeFile:
		return nfs4.OK
	case memstore.TypeDir:
		return nfs4.ErrIsDir
	case memstore.TypeSymlink:
		return nfs4.ErrSymlink
	}
	return m.wrongType()
}

// opRead is READ, RFC 8881 section 18.22, done as by call.read. The store's
// pages can follow the reply only if nothing else does.
func (m *compound) opRead() nfs4.Status {
	k := m.k
	var a nfs4.ReadArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := m.onlyFile(); s != nfs4.OK {
		return s
	}
	o, s := m.openOf(&a.Stateid, memstore.AccessRead)
	if s != nfs4.OK {
		return s
	}
	const head = 4 + 4 // of READ4resok
	off := int64(min(a.Offset, memstore.MaxFileSize))
	count := int(min(a.Count, uint32(k.c.s.cfg.MaxIO)))
	pages := count > copyMax && m.index == m.count-1 && k.work != nil && m.reply()+head+count+3 <= m.limit && k.c.s.large.TryTake(int64(count))
	if !pages {
		count = min(count, copyMax, m.room()-head-3)
		if count < 0 {
			return m.tooBig()
		}
	}
	at := len(k.w.B)
	var res nfs4.ReadRes
	var n int
	var err error
	if pages {
		k.pinned = int64(count)
		n, res.EOF, _, err = m.cur.i.ReadView(&k.who, o, off, count, &k.work.view)
		k.pages = n
		if n == 0 || err != nil {
			k.dropPages()
		}
	} else {
		k.w.B = slices.Grow(k.w.B, head+count+3)
		n, res.EOF, _, err = m.cur.i.ReadAt(&k.who, o, k.w.B[at+head:at+head+count], off)
	}
	if err != nil {
		return m.fail(err)
	}
	res.EncodeHead(k.w, uint32(n))
	if !pages {
		k.w.B = k.w.B[:at+head+n]
		k.w.Pad(n)
	}
	return nfs4.OK
}

// opWrite is WRITE, RFC 8881 section 18.32, done as by call.write.
func (m *compound) opWrite() nfs4.Status {
	k := m.k
	var a nfs4.WriteArgs
	if k.fresh != nil {
		a.DecodeHead(&k.args)
	} else {
		a.Decode(&k.args)
	}
	if !k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := m.onlyFile(); s != nfs4.OK {
		return s
	}
	o, s := m.openOf(&a.Stateid, memstore.AccessWrite)
	if s != nfs4.OK {
		return s
	}
	if a.Offset > memstore.MaxFileSize {
		return nfs4.ErrFBig
	}
	var n int
	var err error
	if k.fresh != nil {
		n, _, err = m.cur.i.WriteFresh(&k.who, o, k.fresh)
	} else {
		n, _, err = m.cur.i.WriteAt(&k.who, o, a.Data, int64(a.Offset))
	}
	if err != nil {
		return m.fail(err)
	}
	k.fresh = nil // another WRITE may follow
	res := nfs4.WriteRes{Count: uint32(n), Committed: nfs4.FileSync, Verf: k.c.s.verifier}
	res.Encode(k.w)
	return nfs4.OK
}

// opCommit is COMMIT, RFC 8881 section 18.3. There is nothing left to do.
func (m *compound) opCommit() nfs4.Status {
	var a nfs4.CommitArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := m.onlyFile(); s != nfs4.OK {
		return s
	}
	res := nfs4.CommitRes{Verf: m.k.c.s.verifier}
	res.Encode(m.k.w)
	return nfs4.OK
}
