package nfs

import (
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// opReadDir is READDIR, RFC 8881 section 18.23. Cookies are the store's, which
// stay good whatever becomes of the directory, so the cookie verifier is always
// zero and not looked at. "." and ".." are not listed.
func (m *compound) opReadDir() nfs4.Status {
	k := m.k
	var a nfs4.ReadDirArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	switch {
	case a.Cookie == cookieDot, a.Cookie == cookieDotDot:
		return nfs4.ErrBadCookie
	case !a.Mask.And(writeOnly).Empty():
		return nfs4.ErrInval
	case !m.cur.root && m.cur.i.Type() != memstore.TypeDir:
		return nfs4.ErrNotDir
	}
	const around = 8 + nfs4.DirEndSize
	l := listing4{m: m, want: a.Mask, end: len(k.w.B) + min(int(min(a.MaxCount, dirMax)), m.room())}
	if l.end-len(k.w.B) < around {
		return nfs4.ErrTooSmall
	}
	l.end -= nfs4.DirEndSize
	k.w.Uint64(0)
	var eof bool
	var err error
	if m.cur.root {
		eof = l.exports(a.Cookie)
	} else {
		eof, err = l.run(m.cur.i, a.Cookie)
	}
	switch {
	case err != nil:
		return m.fail(err)
	case !eof && l.listed == 0:
		return nfs4.ErrTooSmall
	}
	nfs4.EncodeDirEnd(k.w, eof)
	return nfs4.OK
}

// listing4 is a directory's entries being encoded.
type listing4 struct {
	m      *compound
	want   nfs4.Bitmap
	end    int // of what the client takes, in the batch
	listed int
}

// exports lists the pseudo root: the exports that the client may use.
func (l *listing4) exports(cookie uint64) (eof bool) {
	k := l.m.k
	for n, e := range k.c.s.cfg.Exports.All() {
		at := cookieDotDot + 1 + uint64(n)
		if at <= cookie || !k.admits(e) {
			continue
		}
		k.use(e)
		if ok, err := l.add(e.Name, at, &fileRef{i: e.Root, exp: e}); !ok || err != nil {
			return false
		}
	}
	return true
}

func (l *listing4) run(d *memstore.Inode, cookie uint64) (eof bool, err error) {
	k := l.m.k
	var entries *[readDirBatch]memstore.DirEntry
	if k.work != nil {
		entries = &k.work.entries
	} else {
		entries = new([readDirBatch]memstore.DirEntry)
	}
	for {
		n, eof, err := d.ReadDir(&k.who, max(cookie, cookieDotDot), entries[:])
		if err != nil {
			return false, err
		}
		for i := range entries[:n] {
			e := &entries[i]
			cookie = e.Cookie
			if e.Inode == nil {
				continue // removed while it was listed
			}
			ok, err := l.add(e.Name, e.Cookie, &fileRef{i: e.Inode, exp: l.m.cur.exp})
			if !ok || err != nil {
				return false, err
			}
		}
		if eof {
			return true, nil
		}
	}
}

// add encodes an entry if there is room for it. One that is gone by now is left
// out.
func (l *listing4) add(name string, cookie uint64, f *fileRef) (ok bool, err error) {
	m, w := l.m, l.m.k.w
	at := len(w.B)
	if at+nfs4.EntryHeadSize(len(name)) > l.end {
		return false, nil
	}
	attr, err := m.attr(f)
	switch {
	case err == memstore.ErrStale:
		return true, nil
	case err != nil:
		if l.listed > 0 {
			return false, nil // its turn comes with the next call
		}
		return false, err
	}
	nfs4.EncodeEntryHead(w, cookie, name)
	m.putAttrs(l.want, f, &attr, nfs4.OK)
	if len(w.B) > l.end {
		w.B = w.B[:at]
		return false, nil
	}
	l.listed++
	return true, nil
}

// opSecInfo is SECINFO, RFC 8881 section 18.29.
func (m *compound) opSecInfo() nfs4.Status {
	var a nfs4.Name
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if s := checkName(a.Name); s != nfs4.OK {
		return s
	}
	if m.cur.root {
		if e := m.k.c.s.cfg.Exports.ByName(a.Name); e == nil || !m.k.admits(e) {
			return nfs4.ErrNoEnt
		}
	} else if _, err := m.k.find(m.cur.i, a.Name); err != nil {
		return m.fail(err)
	}
	return m.secInfo()
}

// opSecInfoNoName is SECINFO_NO_NAME, RFC 8881 section 18.45.
func (m *compound) opSecInfoNoName() nfs4.Status {
	const parent = 1
	style := m.k.args.Enum(parent)
	if !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	if style == parent {
		if s := m.opLookupP(); s != nfs4.OK {
			return s
		}
	}
	return m.secInfo()
}

// secInfo lists the flavors, and takes the current filehandle away, which it does
// not in minor version 0 (RFC 8881 section 2.6.3.1.1.8).
func (m *compound) secInfo() nfs4.Status {
	w := m.k.w
	w.Uint32(2)
	w.Uint32(rpc.AuthSys)
	w.Uint32(rpc.AuthNone)
	if m.minor > nfs4.Minor0 {
		m.setCur(nil, nil)
	}
	return nfs4.OK
}
