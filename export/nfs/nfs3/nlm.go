package nfs3

import (
	"fmt"

	"ramserver/export/nfs/xdr"
)

// NLMVersion4 is the version of the Network Lock Manager for clients of NFS
// version 3: RFC 1813 appendix II, and X/Open's "Protocols for
// Interworking: XNFS, Version 3W" for what that does not repeat.
const NLMVersion4 = 4

// Procedures of the NLM program. A client can make a request as a call, or as a
// message (MSG) that is answered by a message to the client's own NLM (RES).
const (
	NLMProcNull       = 0
	NLMProcTest       = 1
	NLMProcLock       = 2
	NLMProcCancel     = 3
	NLMProcUnlock     = 4
	NLMProcGranted    = 5 // to a client that waits
	NLMProcTestMsg    = 6
	NLMProcLockMsg    = 7
	NLMProcCancelMsg  = 8
	NLMProcUnlockMsg  = 9
	NLMProcGrantedMsg = 10
	NLMProcTestRes    = 11
	NLMProcLockRes    = 12
	NLMProcCancelRes  = 13
	NLMProcUnlockRes  = 14
	NLMProcGrantedRes = 15
	NLMProcShare      = 20
	NLMProcUnshare    = 21
	NLMProcNMLock     = 22 // LOCK by a client that tells nobody of its restarts
	NLMProcFreeAll    = 23
)

// Limits in bytes, RFC 1813 section 6.1.2.
const (
	maxNetObj  = 1024 // MAXNETOBJ_SZ
	MaxNLMName = 1024 // LM_MAXSTRLEN
)

// NLMStatus is nlm4_stats, RFC 1813 section 6.1.4.
type NLMStatus uint32

// Status values of NLM.
const (
	NLMGranted           NLMStatus = 0
	NLMDenied            NLMStatus = 1 // another's lock is in the way
	NLMDeniedNoLocks     NLMStatus = 2 // the server has no room for it
	NLMBlocked           NLMStatus = 3 // GRANTED will follow
	NLMDeniedGracePeriod NLMStatus = 4
	NLMDeadlock          NLMStatus = 5
	NLMROFS              NLMStatus = 6
	NLMStaleFH           NLMStatus = 7
	NLMFBig              NLMStatus = 8
	NLMFailed            NLMStatus = 9
)

var nlmNames = [...]string{"GRANTED", "DENIED", "DENIED_NOLOCKS", "BLOCKED", "DENIED_GRACE_PERIOD", "DEADLCK", "ROFS", "STALE_FH", "FBIG", "FAILED"}

// String returns the name in RFC 1813 without its prefix: "GRANTED".
func (s NLMStatus) String() string {
	if int(s) < len(nlmNames) {
		return nlmNames[s]
	}
	return fmt.Sprintf("nlm4_stats %d", uint32(s))
}

func (s NLMStatus) Error() string { return "NLM4_" + s.String() }

// NLMLock is nlm4_lock, RFC 1813 section 6.1.4: a range of a file, and its
// owner as the client knows it.
type NLMLock struct {
	Caller   string // the client's name
	FH       []byte
	Owner    []byte // opaque
	SVID     int32  // of the owner on the client, such as a process
	Off, Len uint64 // bytes; length 0: to the end of the file, however it grows
}

// Decode reads an nlm4_lock.
func (l *NLMLock) Decode(r *xdr.Reader) {
	l.Caller = r.String(MaxNLMName)
	l.FH = r.Opaque(maxNetObj)
	l.Owner = r.Opaque(maxNetObj)
	l.SVID = r.Int32()
	l.Off = r.Uint64()
	l.Len = r.Uint64()
}

// Encode writes an nlm4_lock.
func (l *NLMLock) Encode(w *xdr.Writer) {
	w.String(l.Caller)
	w.Opaque(l.FH)
	w.Opaque(l.Owner)
	w.Int32(l.SVID)
	w.Uint64(l.Off)
	w.Uint64(l.Len)
}

// NLMLockArgs is nlm4_lockargs of XNFS: the argument of LOCK,
// LOCK_MSG and NM_LOCK.
type NLMLockArgs struct {
	Cookie    []byte // goes back with the result
	Block     bool   // the client wants to wait
	Exclusive bool
	Lock      NLMLock
	Reclaim   bool  // the client had it before the server restarted
	State     int32 // of the client's NSM: another one after each of its restarts
}

// Decode reads the arguments.
func (a *NLMLockArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Block = r.Bool()
	a.Exclusive = r.Bool()
	a.Lock.Decode(r)
	a.Reclaim = r.Bool()
	a.State = r.Int32()
}

// Encode writes the arguments.
func (a *NLMLockArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.Bool(a.Block)
	w.Bool(a.Exclusive)
	a.Lock.Encode(w)
	w.Bool(a.Reclaim)
	w.Int32(a.State)
}

// NLMCancelArgs is nlm4_cancargs
type NLMCancelArgs struct {
	Cookie    []byte
	Block     bool
	Exclusive bool
	Lock      NLMLock
}

// Decode reads the arguments.
func (a *NLMCancelArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Block = r.Bool()
	a.Exclusive = r.Bool()
	a.Lock.Decode(r)
}

// Encode writes the arguments.
func (a *NLMCancelArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.Bool(a.Block)
	w.Bool(a.Exclusive)
	a.Lock.Encode(w)
}

// NLMTestArgs is nlm4_testargs of XNFS: the argument of TEST and
// of GRANTED.
type NLMTestArgs struct {
	Cookie    []byte
	Exclusive bool
	Lock      NLMLock
}

// Decode reads the arguments.
func (a *NLMTestArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Exclusive = r.Bool()
	a.Lock.Decode(r)
}

// Encode writes the arguments.
func (a *NLMTestArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.Bool(a.Exclusive)
	a.Lock.Encode(w)
}

// NLMUnlockArgs is nlm4_unlockargs
type NLMUnlockArgs struct {
	Cookie []byte
	Lock   NLMLock
}

// Decode reads the arguments.
func (a *NLMUnlockArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Lock.Decode(r)
}

// Encode writes the arguments.
func (a *NLMUnlockArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	a.Lock.Encode(w)
}

// NLMRes is nlm4_res, RFC 1813 section 6.1.4.
type NLMRes struct {
	Cookie []byte
	Status NLMStatus
}

// Decode reads the result.
func (a *NLMRes) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Status = NLMStatus(r.Uint32())
}

// Encode writes the result.
func (a *NLMRes) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.Uint32(uint32(a.Status))
}

// NLMHolder is nlm4_holder, RFC 1813 section 6.1.4: the lock that is in the way.
type NLMHolder struct {
	Exclusive bool
	SVID      int32
	Owner     []byte
	Off, Len  uint64
}

// NLMTestRes is nlm4_testres
type NLMTestRes struct {
	Cookie []byte
	Status NLMStatus
	Holder NLMHolder // with NLMDenied only
}

// Decode reads the result.
func (a *NLMTestRes) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	if a.Status = NLMStatus(r.Uint32()); a.Status == NLMDenied {
		h := &a.Holder
		h.Exclusive = r.Bool()
		h.SVID = r.Int32()
		h.Owner = r.Opaque(maxNetObj)
		h.Off = r.Uint64()
		h.Len = r.Uint64()
	}
}

// Encode writes the result.
func (a *NLMTestRes) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.Uint32(uint32(a.Status))
	if a.Status == NLMDenied {
		h := &a.Holder
		w.Bool(h.Exclusive)
		w.Int32(h.SVID)
		w.Opaque(h.Owner)
		w.Uint64(h.Off)
		w.Uint64(h.Len)
	}
}

// Share modes of an NLMShareArgs: what the client denies to others (fsh4_mode)
// and what it does itself (fsh4_access), RFC 1813 section 6.1.4.
const (
	NLMShareRead  = 1
	NLMShareWrite = 2
	nlmShareAll   = NLMShareRead | NLMShareWrite
)

// NLMShareArgs is nlm4_shareargs of XNFS: the argument of SHARE and
// UNSHARE.
type NLMShareArgs struct {
	Cookie  []byte
	Caller  string
	FH      []byte
	Owner   []byte
	Deny    uint32 // 0, NLMShareRead, NLMShareWrite or both
	Access  uint32 // the same
	Reclaim bool
}

// Decode reads the arguments.
func (a *NLMShareArgs) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Caller = r.String(MaxNLMName)
	a.FH = r.Opaque(maxNetObj)
	a.Owner = r.Opaque(maxNetObj)
	a.Deny = r.Enum(nlmShareAll)
	a.Access = r.Enum(nlmShareAll)
	a.Reclaim = r.Bool()
}

// Encode writes the arguments.
func (a *NLMShareArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.String(a.Caller)
	w.Opaque(a.FH)
	w.Opaque(a.Owner)
	w.Uint32(a.Deny)
	w.Uint32(a.Access)
	w.Bool(a.Reclaim)
}

// NLMShareRes is nlm4_shareres
type NLMShareRes struct {
	Cookie   []byte
	Status   NLMStatus
	Sequence int32 // says nothing
}

// Decode reads the result.
func (a *NLMShareRes) Decode(r *xdr.Reader) {
	a.Cookie = r.Opaque(maxNetObj)
	a.Status = NLMStatus(r.Uint32())
	a.Sequence = r.Int32()
}

// Encode writes the result.
func (a *NLMShareRes) Encode(w *xdr.Writer) {
	w.Opaque(a.Cookie)
	w.Uint32(uint32(a.Status))
	w.Int32(a.Sequence)
}

// NLMNotify is nlm4_notify of XNFS: the argument of FREE_ALL.
type NLMNotify struct {
	Name  string // the client's
	State int32
}

// Decode reads the arguments.
func (a *NLMNotify) Decode(r *xdr.Reader) {
	a.Name = r.String(MaxNLMName)
	a.State = r.Int32()
}

// Encode writes the arguments.
func (a *NLMNotify) Encode(w *xdr.Writer) {
	w.String(a.Name)
	w.Int32(a.State)
}
