package nfs

import (
	"bytes"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// The operations on attributes.

// opGetAttr is GETATTR, RFC 8881 section 18.7.
func (m *compound) opGetAttr() nfs4.Status {
	var a nfs4.GetAttrArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if !a.Mask.And(writeOnly).Empty() {
		return nfs4.ErrInval
	}
	attr, err := m.attr(&m.cur)
	if err != nil {
		return m.fail(err)
	}
	m.putAttrs(a.Mask, &m.cur, &attr, nfs4.OK)
	return nfs4.OK
}

// opAccess is ACCESS, RFC 8881 section 18.1 and RFC 8276 section 8.4.1.
func (m *compound) opAccess() nfs4.Status {
	var a nfs4.AccessArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	known := uint32(nfs4.AccessRead | nfs4.AccessLookup | nfs4.AccessModify | nfs4.AccessExtend | nfs4.AccessDelete | nfs4.AccessExecute)
	if m.minor >= nfs4.Minor2 {
		known |= nfs4.AccessXattrRead | nfs4.AccessXattrWrite | nfs4.AccessXattrList
	}
	if a.Access&^known != 0 {
		return nfs4.ErrInval
	}
	res := nfs4.AccessRes{Supported: known &^ nfs4.AccessExecute, Access: nfs4.AccessRead | nfs4.AccessLookup}
	if !m.cur.root {
		if m.cur.i.Type() != memstore.TypeDir {
			res.Supported = known &^ (nfs4.AccessLookup | nfs4.AccessDelete)
		}
		res.Access = m.k.rights(m.cur.i)
	}
	res.Supported &= a.Access
	res.Access &= res.Supported
	res.Encode(m.k.w)
	return nfs4.OK
}

// opVerify is VERIFY, RFC 8881 section 18.31.
func (m *compound) opVerify() nfs4.Status {
	return m.verify(nfs4.OK, nfs4.ErrNotSame)
}

// opNVerify is NVERIFY, RFC 8881 section 18.15.
func (m *compound) opNVerify() nfs4.Status {
	return m.verify(nfs4.ErrSame, nfs4.OK)
}

// verify compares attributes as they are encoded, which each can be in one way
// only.
func (m *compound) verify(same, different nfs4.Status) nfs4.Status {
	k := m.k
	var a nfs4.Fattr
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	switch {
	case a.More || !a.Mask.AndNot(supported[m.minor]).Empty():
		return nfs4.ErrAttrNotSupp
	case !a.Mask.And(writeOnly).Empty() || a.Mask.Has(nfs4.AttrRdAttrError):
		return nfs4.ErrInval
	}
	attr, err := m.attr(&m.cur)
	if err != nil {
		return m.fail(err)
	}
	at := len(k.w.B)
	m.putAttrs(a.Mask, &m.cur, &attr, nfs4.OK)
	var ours nfs4.Fattr
	r := xdr.NewReader(k.w.B[at:])
	ours.Decode(&r)
	k.w.B = k.w.B[:at]
	if bytes.Equal(ours.Vals, a.Vals) {
		return same
	}
	return different
}
