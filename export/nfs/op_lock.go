package nfs

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// opLock is LOCK, RFC 8881 section 18.10. Who is to wait asks again, and keeps his
// place meanwhile if he can be told when his turn has come.
func (m *compound) opLock() nfs4.Status {
	k := m.k
	var a nfs4.LockArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	var st, open *state
	var status nfs4.Status
	if a.NewOwner {
		open, status = m.enterOpen(&a.Stateid, a.OpenSeq)
	} else if st, status = m.enterLock(&a.Stateid, a.LockSeq); status == nfs4.OK {
		open = st.of
	}
	if status != nfs4.OK {
		return status
	}
	how := memstore.LockArgs{Exclusive: a.Type.Write()}
	if status := lockRange(&how, a.Offset, a.Length); status != nfs4.OK {
		return status
	}
	if a.Reclaim {
		return nfs4.ErrNoGrace
	}
	need := uint32(nfs4.ShareRead)
	if how.Exclusive {
		need = nfs4.ShareWrite
	}
	if open.access.Load()&need == 0 {
		return nfs4.ErrOpenMode
	}
	fresh := false
	if a.NewOwner {
		var by *lockOwner
		if m.minor == nfs4.Minor0 {
			if by, status = m.locker(&a.Owner, a.LockSeq); status != nfs4.OK {
				return status
			}
		}
		if st, fresh, status = open.lockState(m.client.lockOwner(a.Owner.Owner), by); status != nfs4.OK {
			return status
		}
	}
	how.Owner = *st.locker
	if a.Type.Waits() {
		how.Poll = m.notifyLock(*st.locker)
	}
	if held, err := st.open.Lock(how); err != nil {
		if fresh {
			open.dropLock(st)
		}
		if errors.Is(err, memstore.ErrLocked) {
			return m.denied(&held)
		}
		return m.fail(err)
	}
	if !fresh {
		st.bump()
	}
	res := nfs4.StateidArgs{Stateid: st.stateid()}
	m.sid = res.Stateid
	res.Encode(k.w)
	return nfs4.OK
}

// notifyLock makes what tells a lock owner that a lock in the current file may be
// had now (RFC 8881 section 20.11); nil if the client cannot be called.
func (m *compound) notifyLock(by memstore.LockOwner) func() {
	cl := m.client
	if m.minor == nfs4.Minor0 || !cl.callable() {
		return nil
	}
	var fh [handleSize]byte
	m.k.c.s.mask.put(&fh, m.cur.exp, m.cur.i)
	return func() {
		if !cl.s.begin() {
			return
		}
		defer cl.s.running.Done()
		quit := make(chan struct{})
		late := time.AfterFunc(memstore.LockTurn, func() { close(quit) })
		defer late.Stop()
		args := &nfs4.CBNotifyLockArgs{FH: fh[:], Owner: nfs4.Owner{Client: cl.id, Owner: []byte(by.ID[8:])}}
		cl.callBack(&cbOp{number: nfs4.OpCBNotifyLock, args: args}, quit)
	}
}

// lockRange fills in a range from the wire, where all ones are a length without
// end.
func lockRange(how *memstore.LockArgs, off, n uint64) nfs4.Status {
	switch {
	case n == math.MaxUint64:
		n = 0
	case n == 0 || off > math.MaxUint64-n:
		return nfs4.ErrInval
	}
	how.Off, how.N = off, n
	return nfs4.OK
}

// lockState finds or makes the state of a lock owner by an open. Called with
// owner.mu held.
func (st *state) lockState(locker memstore.LockOwner, by *lockOwner) (l *state, fresh bool, status nfs4.Status) {
	for _, l := range st.locks {
		if *l.locker == locker {
			return l, false, nfs4.OK
		}
	}
	l = &state{client: st.client, open: st.open, owner: st.owner, of: st, locker: &locker, by: by}
	if status := st.client.add(l); status != nfs4.OK {
		return nil, false, status
	}
	st.locks = append(st.locks, l)
	return l, true, nfs4.OK
}

// denied answers which lock is in the way.
func (m *compound) denied(held *memstore.LockInfo) nfs4.Status {
	res := nfs4.LockDenied{Offset: held.Off, Length: held.N, Type: nfs4.LockRead}
	if held.N == 0 {
		res.Length = math.MaxUint64
	}
	if held.Exclusive {
		res.Type = nfs4.LockWrite
	}
	id := []byte(held.Owner.ID)
	if len(id) >= 8 {
		cl := m.k.c.s.clients.client(binary.BigEndian.Uint64(id))
		if cl != nil && &cl.holder == held.Owner.Holder {
			res.Owner.Client, id = cl.id, id[8:]
		}
	}
	const fixed = 8 + 8 + 4 + 8 + 4
	res.Owner.Owner = id[:min(len(id), nfs4.MaxOpaque, max(0, m.room()-fixed)&^3)]
	res.Encode(m.k.w)
	return nfs4.ErrDenied
}

// opLockT is LOCKT, RFC 8881 section 18.11.
func (m *compound) opLockT() nfs4.Status {
	k := m.k
	var a nfs4.LockTArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	if m.minor == nfs4.Minor0 {
		if status := m.useClient(a.Owner.Client); status != nfs4.OK {
			return status
		}
	}
	how := memstore.LockArgs{Exclusive: a.Type.Write(), Owner: m.client.lockOwner(a.Owner.Owner)}
	if status := lockRange(&how, a.Offset, a.Length); status != nfs4.OK {
		return status
	}
	if status := m.openable(m.cur.i); status != nfs4.OK {
		return status
	}
	held, err := m.cur.i.TestLock(how)
	if errors.Is(err, memstore.ErrLocked) {
		return m.denied(&held)
	}
	return m.fail(err)
}

// opLockU is LOCKU, RFC 8881 section 18.12.
func (m *compound) opLockU() nfs4.Status {
	k := m.k
	var a nfs4.LockUArgs
	if a.Decode(&k.args); !k.decoded() {
		return nfs4.ErrBadXDR
	}
	st, status := m.enterLock(&a.Stateid, a.Seq)
	if status != nfs4.OK {
		return status
	}
	var how memstore.LockArgs
	if status := lockRange(&how, a.Offset, a.Length); status != nfs4.OK {
		return status
	}
	how.Owner = *st.locker
	if err := st.open.Unlock(how); err != nil {
		return m.fail(err)
	}
	st.bump()
	res := nfs4.StateidArgs{Stateid: st.stateid()}
	m.sid = res.Stateid
	res.Encode(k.w)
	return nfs4.OK
}
