package nfs

import (
	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// The operations that change names, and READLINK.

// opCreate is CREATE, RFC 8881 section 18.4: everything but files.
func (m *compound) opCreate() nfs4.Status {
	var a nfs4.CreateArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := checkName(a.Name); s != nfs4.OK {
		return s
	}
	how := memstore.Create{Target: a.Target, Major: a.Major, Minor: a.Minor}
	mode := uint16(defaultMode)
	switch a.Type {
	case nfs4.TypeDir:
		how.Type, mode = memstore.TypeDir, defaultDir
	case nfs4.TypeLnk:
		how.Type = memstore.TypeSymlink
	case nfs4.TypeBlk:
		how.Type = memstore.TypeBlock
	case nfs4.TypeChr:
		how.Type = memstore.TypeChar
	case nfs4.TypeSock:
		how.Type = memstore.TypeSocket
	case nfs4.TypeFIFO:
		how.Type = memstore.TypeFIFO
	default:
		return nfs4.ErrBadType
	}
	var s nfs4.Status
	if how.Set, s = m.takeAttrs(&a.Attr); s != nfs4.OK {
		return s
	}
	if how.Set.Mask&memstore.SetMode == 0 {
		how.Set.Mask |= memstore.SetMode
		how.Set.Mode = mode
	}
	made, err := m.cur.i.Create(&m.k.who, a.Name, &how)
	if err != nil {
		return m.fail(err)
	}
	m.setCur(made.Inode, m.cur.exp)
	res := nfs4.CreateRes{Dir: change(&made.Dir), Set: a.Attr.Mask}
	res.Set.Clear(nfs4.AttrSize) // which only files have
	res.Encode(m.k.w)
	return nfs4.OK
}

// opRemove is REMOVE, RFC 8881 section 18.25.
func (m *compound) opRemove() nfs4.Status {
	var a nfs4.Name
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := checkName(a.Name); s != nfs4.OK {
		return s
	}
	ch, err := m.cur.i.Remove(&m.k.who, a.Name, memstore.RemoveAny)
	if err != nil {
		return m.fail(err)
	}
	res := nfs4.DirRes{Dir: change(&ch)}
	res.Encode(m.k.w)
	return nfs4.OK
}

// opRename is RENAME, RFC 8881 section 18.26.
func (m *compound) opRename() nfs4.Status {
	var a nfs4.RenameArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	for _, name := range [...]string{a.From, a.To} {
		if s := checkName(name); s != nfs4.OK {
			return s
		}
	}
	from, to, err := m.cur.exp.Store.Rename(&m.k.who, m.saved.i, a.From, m.cur.i, a.To, 0)
	if err != nil {
		return m.fail(err)
	}
	res := nfs4.RenameRes{From: change(&from), To: change(&to)}
	res.Encode(m.k.w)
	return nfs4.OK
}

// opLink is LINK, RFC 8881 section 18.9.
func (m *compound) opLink() nfs4.Status {
	var a nfs4.Name
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := checkName(a.Name); s != nfs4.OK {
		return s
	}
	if m.saved.i.Type() == memstore.TypeDir {
		return nfs4.ErrIsDir
	}
	ch, _, err := m.cur.i.Link(&m.k.who, a.Name, m.saved.i)
	if err != nil {
		return m.fail(err)
	}
	res := nfs4.DirRes{Dir: change(&ch)}
	res.Encode(m.k.w)
	return nfs4.OK
}

// change is the change_info4 of a directory: the store takes both numbers in
// the step of the change.
func change(ch *memstore.Changed) nfs4.ChangeInfo {
	return nfs4.ChangeInfo{Atomic: true, Before: ch.Before.Change, After: ch.After.Change}
}

// opReadLink is READLINK, RFC 8881 section 18.24.
func (m *compound) opReadLink() nfs4.Status {
	if m.cur.i.Type() != memstore.TypeSymlink {
		return m.wrongType()
	}
	target, err := m.cur.i.Readlink(&m.k.who)
	if err != nil {
		return m.fail(err)
	}
	if m.room() < 4+len(target)+3 {
		return m.tooBig()
	}
	res := nfs4.Name{Name: target}
	res.Encode(m.k.w)
	return nfs4.OK
}

// wrongType is the status for a file of a type that the operation is not for.
func (m *compound) wrongType() nfs4.Status {
	if m.minor == nfs4.Minor0 {
		return nfs4.ErrInval
	}
	return nfs4.ErrWrongType
}
