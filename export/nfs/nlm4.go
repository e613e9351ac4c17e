package nfs

import (
	"encoding/binary"
	"errors"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// The procedures of NLM version 4, RFC 1813 appendix II. Most requests exist as
// a call and as a message (MSG), whose result goes to the client's own NLM by
// another (RES).

// nlmRequest decodes k.args and executes them. It returns the result, nil if
// they cannot be decoded, and the client's name.
type nlmRequest func(k *call) (caller string, res encoder)

// nlmCall is the procedure of a request as a call.
func nlmCall(request nlmRequest) func(*call) bool {
	return func(k *call) bool {
		_, res := request(k)
		if res == nil {
			return false
		}
		res.Encode(k.w)
		return true
	}
}

// nlmMessage is the procedure of a request as a message that proc answers.
func nlmMessage(request nlmRequest, proc uint32) func(*call) bool {
	return func(k *call) bool {
		caller, res := request(k)
		if res == nil {
			return false
		}
		k.wait = nil // what is refused now is asked for again
		if c := k.c.s.nlm.client(k, caller, true); c != nil {
			c.mu.Unlock()
			var w xdr.Writer
			res.Encode(&w)
			c.post(proc, encoded(w.B))
		}
		return true
	}
}

// encoded is arguments that are encoded already.
type encoded []byte

func (b encoded) Encode(w *xdr.Writer) { w.B = append(w.B, b...) }

// nlmTest is TEST: which lock is in the way.
func (k *call) nlmTest() (string, encoder) {
	var a nfs3.NLMTestArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	res := nfs3.NLMTestRes{Cookie: a.Cookie}
	i, err := k.lockable(a.Lock.FH)
	if err == nil {
		args := memstore.LockArgs{Off: a.Lock.Off, N: a.Lock.Len}
		if c := k.c.s.nlm.client(k, a.Lock.Caller, false); c != nil {
			args = c.lockArgs(&a.Lock)
			c.mu.Unlock()
		}
		args.Exclusive = a.Exclusive
		var info memstore.LockInfo
		if info, err = i.TestLock(args); err == memstore.ErrLocked {
			res.Holder = k.c.s.nlm.holder(&info)
		}
	}
	res.Status = k.nlmStatus(err)
	return a.Lock.Caller, &res
}

// holder is a lock that is in the way as its own client knows it. The owners of
// other protocols are nobody whom a client could know.
func (n *nlm) holder(l *memstore.LockInfo) nfs3.NLMHolder {
	h := nfs3.NLMHolder{Exclusive: l.Exclusive, Off: l.Off, Len: l.N}
	n.mu.Lock()
	defer n.mu.Unlock()
	if id := l.Owner.ID; n.byHolder[l.Owner.Holder] != nil && len(id) >= 4 {
		h.SVID = int32(binary.BigEndian.Uint32([]byte(id)))
		h.Owner = []byte(id[4:])
	}
	return h
}

// nlmLock is LOCK.
func (k *call) nlmLock() (string, encoder) {
	var a nfs3.NLMLockArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	i, err := k.lockable(a.Lock.FH)
	if err == nil {
		if c := k.c.s.nlm.client(k, a.Lock.Caller, true); c != nil {
			c.restart(a.State, false)
			err = c.lock(i, &a, a.Block && !a.Reclaim)
			c.mu.Unlock()
		} else {
			err = nfs3.NLMDeniedNoLocks
		}
	}
	return a.Lock.Caller, &nfs3.NLMRes{Cookie: a.Cookie, Status: k.nlmStatus(err)}
}

// nlmCancel is CANCEL: the client does not want to wait any more.
func (k *call) nlmCancel() (string, encoder) {
	var a nfs3.NLMCancelArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	i, err := k.resolve(a.Lock.FH)
	if err == nil {
		err = memstore.ErrLocked
		if c := k.c.s.nlm.client(k, a.Lock.Caller, false); c != nil {
			err = c.cancel(i, &a.Lock, a.Exclusive)
			c.mu.Unlock()
		}
	}
	return a.Lock.Caller, &nfs3.NLMRes{Cookie: a.Cookie, Status: k.nlmStatus(err)}
}

// nlmUnlock is UNLOCK. Nothing to unlock is no error.
func (k *call) nlmUnlock() (string, encoder) {
	var a nfs3.NLMUnlockArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	i, err := k.resolve(a.Lock.FH)
	if err == nil {
		if c := k.c.s.nlm.client(k, a.Lock.Caller, false); c != nil {
			err = c.unlock(i, &a.Lock)
			c.mu.Unlock()
		}
	}
	return a.Lock.Caller, &nfs3.NLMRes{Cookie: a.Cookie, Status: k.nlmStatus(err)}
}

// nlmGranted is GRANTED, which is for clients: this server waits for no lock.
func (k *call) nlmGranted() (string, encoder) {
	var a nfs3.NLMTestArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	return a.Lock.Caller, &nfs3.NLMRes{Cookie: a.Cookie, Status: k.nlmStatus(memstore.ErrLocked)}
}

// nlmShare is SHARE: an open with a share mode, of which an owner has one for
// each file.
func (k *call) nlmShare() (string, encoder) {
	var a nfs3.NLMShareArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	i, err := k.lockable(a.FH)
	if err == nil {
		if c := k.c.s.nlm.client(k, a.Caller, true); c != nil {
			err = c.share(i, &a)
			c.mu.Unlock()
		} else {
			err = nfs3.NLMDeniedNoLocks
		}
	}
	return a.Caller, &nfs3.NLMShareRes{Cookie: a.Cookie, Status: k.nlmStatus(err)}
}

// nlmUnshare is UNSHARE.
func (k *call) nlmUnshare() (string, encoder) {
	var a nfs3.NLMShareArgs
	if a.Decode(&k.args); !k.decoded() {
		return "", nil
	}
	i, err := k.resolve(a.FH)
	if err == nil {
		if c := k.c.s.nlm.client(k, a.Caller, false); c != nil {
			c.unshare(i, &a)
			c.mu.Unlock()
		}
	}
	return a.Caller, &nfs3.NLMShareRes{Cookie: a.Cookie, Status: k.nlmStatus(err)}
}

// nlmFreeAll is FREE_ALL: the client has restarted, and holds nothing.
func (k *call) nlmFreeAll() bool {
	var a nfs3.NLMNotify
	if a.Decode(&k.args); !k.decoded() {
		return false
	}
	if c := k.c.s.nlm.client(k, a.Name, false); c != nil {
		c.release()
		c.mu.Unlock()
	}
	return true
}

// lockable finds the file that a handle names. Who may read or write it, or owns
// it, may lock it.
func (k *call) lockable(fh []byte) (*memstore.Inode, error) {
	i, err := k.resolve(fh)
	if err != nil {
		return nil, err
	}
	if i.Type() != memstore.TypeFile {
		return nil, nfs3.NLMFailed
	}
	if i.Access(&k.who, memstore.AccessRead|memstore.AccessWrite) == 0 {
		if a, err := i.GetAttr(&k.who); err != nil {
			return nil, err
		} else if a.UID != k.who.UID {
			return nil, memstore.ErrAccess
		}
	}
	return i, nil
}

// nlmStatus is the status of the results for an error.
func (k *call) nlmStatus(err error) nfs3.NLMStatus {
	s := nlmStatusOf(err)
	switch s {
	case nfs3.NLMGranted, nfs3.NLMBlocked:
	case nfs3.NLMDenied:
		errors.As(err, &k.wait)
	default:
		k.failed = true
	}
	k.said = s
	return s
}

// nlmStatusOf maps an error to the status that is nearest to it. DENIED is what
// a client tries again.
func nlmStatusOf(err error) nfs3.NLMStatus {
	var s nfs3.NLMStatus
	var wait *memstore.Wait
	switch {
	case err == nil:
		return nfs3.NLMGranted
	case errors.As(err, &s):
		return s
	case err == memstore.ErrLocked, err == memstore.ErrShareViolation, err == memstore.ErrDeletePending, errors.As(err, &wait):
		return nfs3.NLMDenied
	case err == memstore.ErrNoSpace:
		return nfs3.NLMDeniedNoLocks
	case err == memstore.ErrStale, err == memstore.ErrClosed, err == nfs3.ErrStale, err == nfs3.ErrBadHandle:
		return nfs3.NLMStaleFH
	}
	return nfs3.NLMFailed
}
