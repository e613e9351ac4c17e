package nfs

import (
	"encoding/binary"
	"strings"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// The operations on the current and the saved filehandle.

// opPutFH is PUTFH, RFC 8881 section 18.19.
func (m *compound) opPutFH() nfs4.Status {
	var a nfs4.FH
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if pseudoHandle(a.FH) {
		return m.putPseudo()
	}
	i, err := m.resolve(a.FH)
	if err != nil {
		return m.fail(err)
	}
	m.setCur(i, m.k.exp)
	return nfs4.OK
}

// resolve is call.resolve for a compound, which may go from one export to
// another.
func (m *compound) resolve(fh []byte) (*memstore.Inode, error) {
	m.k.exp = nil
	return m.k.resolve(fh)
}

// The handle of the pseudo root has a version of its own.
const pseudoVersion = 2

func pseudoHandle(fh []byte) bool {
	return len(fh) == handleSize && binary.BigEndian.Uint32(fh) == pseudoVersion
}

// handle is the wire's handle of f.
func (m *compound) handle(b *[handleSize]byte, f *fileRef) []byte {
	if f.root {
		*b = [handleSize]byte{}
		binary.BigEndian.PutUint32(b[:], pseudoVersion)
	} else {
		m.k.c.s.mask.put(b, f.exp, f.i)
	}
	return b[:]
}

// putPseudo makes the pseudo root the current filehandle, if there is one.
func (m *compound) putPseudo() nfs4.Status {
	if len(m.k.c.s.cfg.Exports.All()) == 1 {
		return nfs4.ErrStale
	}
	m.setCur(nil, nil)
	m.cur.root = true
	return nfs4.OK
}

// opPutRootFH is PUTROOTFH and PUTPUBFH, RFC 8881 sections 18.20 and 18.21: the
// root of the only export, or the pseudo root, which lists them.
func (m *compound) opPutRootFH() nfs4.Status {
	all := m.k.c.s.cfg.Exports.All()
	if len(all) > 1 {
		return m.putPseudo()
	}
	if !m.k.admits(all[0]) {
		return nfs4.ErrAccess
	}
	m.k.use(all[0])
	m.setCur(all[0].Root, all[0])
	return nfs4.OK
}

// opGetFH is GETFH, RFC 8881 section 18.8.
func (m *compound) opGetFH() nfs4.Status {
	var b [handleSize]byte
	res := nfs4.FH{FH: m.handle(&b, &m.cur)}
	res.Encode(m.k.w)
	return nfs4.OK
}

// opSaveFH is SAVEFH, RFC 8881 section 18.28.
func (m *compound) opSaveFH() nfs4.Status {
	m.saved, m.savedSid = m.cur, m.sid
	return nfs4.OK
}

// opRestoreFH is RESTOREFH, RFC 8881 section 18.27.
func (m *compound) opRestoreFH() nfs4.Status {
	if m.saved.none() {
		if m.minor == 0 {
			return nfs4.ErrRestoreFH
		}
		return nfs4.ErrNoFileHandle
	}
	m.cur, m.sid = m.saved, m.savedSid
	if m.cur.exp != nil {
		m.k.use(m.cur.exp)
	}
	return nfs4.OK
}

// opLookup is LOOKUP, RFC 8881 section 18.13.
func (m *compound) opLookup() nfs4.Status {
	var a nfs4.Name
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if m.cur.root {
		if s := checkName(a.Name); s != nfs4.OK {
			return s
		}
		e := m.k.c.s.cfg.Exports.ByName(a.Name)
		if e == nil || !m.k.admits(e) {
			return nfs4.ErrNoEnt
		}
		m.k.use(e)
		m.setCur(e.Root, e)
		return nfs4.OK
	}
	switch {
	case m.cur.i.Type() == memstore.TypeDir:
		if s := checkName(a.Name); s != nfs4.OK {
			return s
		}
	case m.cur.i.Type() == memstore.TypeSymlink:
		return nfs4.ErrSymlink
	}
	i, err := m.k.find(m.cur.i, a.Name)
	if err != nil {
		return m.fail(err)
	}
	m.setCur(i, m.cur.exp)
	return nfs4.OK
}

// checkName refuses names that the store has another meaning for, or none.
// Whatever else is wrong with a name the store finds; which characters it is made
// of does not matter besides.
func checkName(name string) nfs4.Status {
	switch {
	case name == "":
		return nfs4.ErrInval
	case name == ".", name == "..":
		return nfs4.ErrBadName
	case strings.IndexByte(name, '/') >= 0, strings.IndexByte(name, 0) >= 0:
		return nfs4.ErrBadChar
	}
	return nfs4.OK
}

// opLookupP is LOOKUPP, RFC 8881 section 18.14. No way leads up from an export,
// but to the pseudo root.
func (m *compound) opLookupP() nfs4.Status {
	switch {
	case m.cur.root:
		return nfs4.ErrNoEnt
	case m.cur.i.Type() == memstore.TypeSymlink:
		return nfs4.ErrSymlink
	case m.cur.i.Type() != memstore.TypeDir:
		return nfs4.ErrNotDir
	case m.cur.i == m.cur.exp.Root:
		if m.putPseudo() != nfs4.OK {
			return nfs4.ErrNoEnt
		}
		return nfs4.OK
	}
	i, err := m.k.find(m.cur.i, "..")
	if err != nil {
		return m.fail(err)
	}
	m.setCur(i, m.cur.exp)
	return nfs4.OK
}
