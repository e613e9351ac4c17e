package nfs

import (
	"slices"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// opOpen is OPEN, RFC 8881 section 18.16.
func (m *compound) opOpen() nfs4.Status {
	k := m.k
	var a nfs4.OpenArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	o, status := m.opener(&a)
	if status != nfs4.OK {
		return status
	}
	access := a.Access
	if m.minor > nfs4.Minor0 {
		access &^= nfs4.WantMask | nfs4.WantSignalWhenAvail | nfs4.WantPushWhenUncontended
	}
	if access == 0 || access > nfs4.ShareBoth || a.Deny > nfs4.ShareBoth {
		return nfs4.ErrInval
	}
	if status := m.claim(&a); status != nfs4.OK {
		return status
	}
	if m.cur.exp.ReadOnly && (a.Create || access&nfs4.ShareWrite != 0) {
		return nfs4.ErrROFS
	}
	// Execute is permission enough to read (RFC 8881 section 6.2.1.3.1).
	how := memstore.OpenArgs{Access: shares(access), Deny: shares(a.Deny), Owner: o, ByExecute: true}
	res := nfs4.OpenRes{Flags: nfs4.OpenLockTypePOSIX}
	switch {
	case m.minor > nfs4.Minor0:
		res.Flags |= nfs4.OpenPreserveUnlinked
		if m.client.callable() {
			res.Flags |= nfs4.OpenMayNotifyLock
		}
	case !o.zero.confirmed.Load():
		res.Flags |= nfs4.OpenConfirm
	}
	var open *memstore.Open
	if a.Create {
		open, status = m.openCreating(&a, &how, &res)
	} else {
		open, status = m.openExisting(&a, &how, &res)
	}
	if status != nfs4.OK {
		return status
	}
	st := o.opens[open]
	if st == nil {
		st = &state{client: o.client, open: open, owner: o, uid: k.who.UID}
		if status := o.client.add(st); status != nfs4.OK {
			open.Close()
			return status
		}
		o.opens[open] = st
	} else {
		st.bump()
	}
	st.access.Store(st.access.Load() | access)
	st.deny |= a.Deny
	st.asked[0] |= 1 << access
	st.asked[1] |= 1 << a.Deny
	if a.Named() {
		m.setCur(open.Inode(), m.cur.exp)
	}
	res.Stateid = st.stateid()
	m.sid = res.Stateid
	res.Delegation = m.delegate(open, access, a.Access&nfs4.WantMask)
	res.Encode(k.w)
	return nfs4.OK
}

// opener finds who opens, and locks him for the operation.
func (m *compound) opener(a *nfs4.OpenArgs) (*openOwner, nfs4.Status) {
	if m.minor == nfs4.Minor0 {
		return m.opener40(a)
	}
	if m.owner = m.client.openOwner(a.Owner.Owner); m.owner == nil {
		return nil, nfs4.ErrDelay
	}
	return m.owner, nfs4.OK
}

// claim checks why the client may open the file: no state outlives the server.
func (m *compound) claim(a *nfs4.OpenArgs) nfs4.Status {
	if m.cur.root {
		// There are only directories.
		switch e := m.k.c.s.cfg.Exports.ByName(a.Name); {
		case a.Create:
			return nfs4.ErrROFS
		case a.Named() && (e == nil || !m.k.admits(e)):
			return nfs4.ErrNoEnt
		}
		return nfs4.ErrIsDir
	}
	cl := m.client
	cl.mu.Lock()
	reclaimed := cl.reclaimed
	cl.mu.Unlock()
	switch a.Claim {
	case nfs4.ClaimNull, nfs4.ClaimDelegCur:
		if a.Create && a.Claim == nfs4.ClaimDelegCur {
			return nfs4.ErrInval
		}
		if status := checkName(a.Name); status != nfs4.OK {
			return status
		}
		if m.cur.i.Type() == memstore.TypeSymlink {
			return nfs4.ErrSymlink
		}
	case nfs4.ClaimFH, nfs4.ClaimDelegCurFH:
		if a.Create {
			return nfs4.ErrInval
		}
	case nfs4.ClaimPrevious:
		return nfs4.ErrNoGrace
	default:
		if m.minor == nfs4.Minor0 {
			return nfs4.ErrNotSupp
		}
		return nfs4.ErrReclaimBad
	}
	if !reclaimed && m.minor > nfs4.Minor0 {
		return nfs4.ErrGrace // RFC 8881 section 18.51.3
	}
	return nfs4.OK
}

// shares is an access or a deny of OPEN to the store.
func shares(bits uint32) (a memstore.Access) {
	if bits&nfs4.ShareRead != 0 {
		a |= memstore.AccessRead
	}
	if bits&nfs4.ShareWrite != 0 {
		a |= memstore.AccessWrite
	}
	return a
}

// openExisting opens a file that must be there.
func (m *compound) openExisting(a *nfs4.OpenArgs, how *memstore.OpenArgs, res *nfs4.OpenRes) (*memstore.Open, nfs4.Status) {
	who, i := &m.k.who, m.cur.i
	if a.Named() {
		dir, err := i.GetAttr(who)
		if err != nil {
			return nil, m.fail(err)
		}
		res.Dir = nfs4.ChangeInfo{Before: dir.Change, After: dir.Change}
		if i, err = m.k.find(i, a.Name); err != nil {
			return nil, m.fail(err)
		}
	}
	if status := m.openable(i); status != nfs4.OK {
		return nil, status
	}
	if a.Claim == nfs4.ClaimDelegCur || a.Claim == nfs4.ClaimDelegCurFH {
		if status := m.claimed(&a.Stateid, i, a.Access); status != nfs4.OK {
			return nil, status
		}
		how.Again = true
	}
	open, err := i.Open(who, *how)
	return open, m.fail(err)
}

// openable is the status of an OPEN or a LOCKT for a file's type.
func (m *compound) openable(i *memstore.Inode) nfs4.Status {
	switch i.Type() {
	case memstore.TypeFile:
		return nfs4.OK
	case memstore.TypeDir:
		return nfs4.ErrIsDir
	case memstore.TypeSymlink:
		return nfs4.ErrSymlink
	}
	if m.minor == nfs4.Minor0 && m.number == nfs4.OpOpen {
		return nfs4.ErrSymlink // RFC 7530 section 16.16.4
	}
	return m.wrongType()
}

// openCreating opens a file that need not be there.
func (m *compound) openCreating(a *nfs4.OpenArgs, how *memstore.OpenArgs, res *nfs4.OpenRes) (*memstore.Open, nfs4.Status) {
	who, dir := &m.k.who, m.cur.i
	create := memstore.Create{Type: memstore.TypeFile, Verifier: a.Verf, Open: how}
	var status nfs4.Status
	if create.Set, status = m.takeAttrs(&a.Attr); status != nfs4.OK {
		return nil, status
	}
	if create.Set.Mask&memstore.SetMode == 0 {
		create.Set.Mask |= memstore.SetMode
		create.Set.Mode = defaultMode
	}
	res.Set = a.Attr.Mask
	switch a.Mode {
	case nfs4.Unchecked:
		create.Exist = memstore.ExistOpen
	case nfs4.Exclusive41:
		if !a.Attr.Mask.AndNot(exclusive).Empty() {
			return nil, nfs4.ErrInval
		}
		fallthrough
	case nfs4.Exclusive:
		// The client is to set the times, which hold the verifier until then.
		create.Exist = memstore.ExistVerifier
		res.Set = res.Set.Or(nfs4.Bits(nfs4.AttrTimeAccess, nfs4.AttrTimeModify))
	}
	made, err := dir.Create(who, a.Name, &create)
	if err != nil {
		status := m.fail(err)
		if status == nfs4.ErrExist && a.Mode == nfs4.Unchecked {
			// It is no file.
			i, err := m.k.find(dir, a.Name)
			if err != nil {
				return nil, m.fail(err)
			}
			if s := m.openable(i); s != nfs4.OK {
				status = s
			}
		}
		return nil, status
	}
	if !made.New && a.Mode == nfs4.Unchecked {
		// Of these attributes only a size of 0 is for a file that is there.
		if res.Set = res.Set.And(nfs4.Bits(nfs4.AttrSize)); create.Set.Size != 0 {
			res.Set.Clear(nfs4.AttrSize)
		}
	}
	res.Dir = change(&made.Dir)
	return made.Open, nfs4.OK
}

// opClose is CLOSE, RFC 8881 section 18.2. What was locked by the open is
// unlocked.
func (m *compound) opClose() nfs4.Status {
	k := m.k
	var a nfs4.CloseArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	st, status := m.enterOpen(&a.Stateid, a.Seq)
	if status != nfs4.OK {
		return status
	}
	st.owner.close(st)
	m.sid = nfs4.Stateid{}
	res := nfs4.StateidArgs{Stateid: nfs4.InvalidStateid}
	if m.minor == nfs4.Minor0 {
		st.bump()
		res.Stateid = st.stateid()
	}
	res.Encode(k.w)
	return nfs4.OK
}

// close ends an open and what is locked by it. Called with mu held.
func (o *openOwner) close(st *state) {
	for _, l := range st.locks {
		st.client.remove(l)
	}
	delete(o.opens, st.open)
	st.open.Close()
	st.access.Store(0)
	if st.client.zero != nil {
		o.keepClosed(st)
		return
	}
	st.client.remove(st)
}

// dropLock forgets a lock state of an open. Called with owner.mu held.
func (st *state) dropLock(l *state) {
	st.locks = slices.DeleteFunc(st.locks, func(o *state) bool { return o == l })
	st.client.remove(l)
}

// opOpenDowngrade is OPEN_DOWNGRADE, RFC 8881 section 18.18.
func (m *compound) opOpenDowngrade() nfs4.Status {
	k := m.k
	var a nfs4.OpenDowngradeArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	st, status := m.enterOpen(&a.Stateid, a.Seq)
	if status != nfs4.OK {
		return status
	}
	access := a.Access
	if m.minor > nfs4.Minor0 {
		access &^= nfs4.WantMask
	}
	if access == 0 || access > nfs4.ShareBoth || a.Deny > nfs4.ShareBoth {
		return nfs4.ErrInval
	}
	left := [2]uint8{within(st.asked[0], access), within(st.asked[1], a.Deny)}
	if union(left[0]) != access || union(left[1]) != a.Deny {
		return nfs4.ErrInval
	}
	how := memstore.OpenArgs{Access: shares(access), Deny: shares(a.Deny), Owner: st.owner}
	if err := st.open.Change(&k.who, how); err != nil {
		return m.fail(err)
	}
	st.asked = left
	st.access.Store(access)
	st.deny = a.Deny
	st.bump()
	res := nfs4.StateidArgs{Stateid: st.stateid()}
	m.sid = res.Stateid
	res.Encode(k.w)
	return nfs4.OK
}

// within is those of the numbers that are bits of asked which have no other
// bits than v.
func within(asked uint8, v uint32) (in uint8) {
	for n := range uint32(4) {
		if asked&(1<<n) != 0 && n&^v == 0 {
			in |= 1 << n
		}
	}
	return in
}

// union is all bits of the numbers that are bits of asked.
func union(asked uint8) (v uint32) {
	for n := range uint32(4) {
		if asked&(1<<n) != 0 {
			v |= n
		}
	}
	return v
}
