package smb

import (
	"math"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// lock is LOCK, MS-SMB2 section 3.3.5.14.
func (r *request) lock() wire.Status {
	var q wire.LockRequest
	if !q.Decode(r.msg) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case status != wire.StatusOK:
		return status
	case f.pipe != nil, f.inode.Type() != memstore.TypeFile:
		return wire.StatusInvalidDeviceRequest
	}
	if q.Element(0).Flags&wire.LockUnlock != 0 {
		status = f.unlockAll(&q)
	} else {
		status = r.lockAll(f, &q)
	}
	if status == wire.StatusOK {
		wire.EncodeEmpty(r.w)
	}
	return status
}

// unlockAll unlocks ranges one after the other; those before one that is not locked
// stay unlocked.
func (f *file) unlockAll(q *wire.LockRequest) wire.Status {
	for k := range q.Len() {
		if e := q.Element(k); e.Flags != wire.LockUnlock {
			return wire.StatusInvalidParameter
		} else if f.open.Unlock(lockArgs(e)) != nil {
			return wire.StatusRangeNotLocked
		}
	}
	return wire.StatusOK
}

// lockAll locks all ranges or none. A single one may wait.
func (r *request) lockAll(f *file, q *wire.LockRequest) wire.Status {
	if f.access&(rightReadData|rightWriteData|rightAppend|rightExecute) == 0 {
		return wire.StatusAccessDenied
	}
	for k := range q.Len() {
		e := q.Element(k)
		switch e.Flags &^ wire.LockNoWait {
		case wire.LockShared, wire.LockExclusive:
		default:
			return wire.StatusInvalidParameter
		}
		if e.Flags&wire.LockNoWait == 0 && q.Len() > 1 {
			return wire.StatusInvalidParameter
		}
		if e.Length > 0 && e.Offset+e.Length-1 < e.Offset {
			return wire.StatusInvalidLockRange
		}
	}
	for k := range q.Len() {
		_, err := f.open.Lock(lockArgs(q.Element(k)))
		if err == nil {
			continue
		}
		for k > 0 {
			k--
			f.open.Unlock(lockArgs(q.Element(k)))
		}
		if err == memstore.ErrLocked {
			return wire.StatusLockNotGranted
		}
		return r.status(err)
	}
	return wire.StatusOK
}

// lockArgs is an element as the store has it, where an empty range at the last byte
// is that byte.
func lockArgs(e wire.LockElement) memstore.LockArgs {
	if e.Length == 0 && e.Offset == math.MaxUint64 {
		e.Offset--
	}
	return memstore.LockArgs{
		Off: e.Offset, N: e.Length, Exclusive: e.Flags&wire.LockExclusive != 0,
		Mandatory: true, Wait: e.Flags&wire.LockNoWait == 0,
	}
}
