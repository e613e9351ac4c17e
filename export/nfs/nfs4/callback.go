package nfs4

import "ramserver/export/nfs/xdr"

// CBVersion is the version of a client's callback program, and CBProcCompound
// its procedure besides the null procedure, RFC 8881 section 19.
const (
	CBVersion      = 1
	CBProcCompound = 1
)

// CBCompoundArgs is what CB_COMPOUND4args begins with, RFC 8881 section 19.2:
// Count operations follow.
type CBCompoundArgs struct {
	Tag   []byte
	Minor uint32
	Ident uint32 // minor version 0
	Count uint32
}

// Decode reads the head of the arguments.
func (a *CBCompoundArgs) Decode(r *xdr.Reader) {
	a.Tag = r.Opaque(unbounded)
	a.Minor = r.Uint32()
	a.Ident = r.Uint32()
	a.Count = r.Uint32()
}

// Encode writes the head of the arguments.
func (a *CBCompoundArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.Tag)
	w.Uint32(a.Minor)
	w.Uint32(a.Ident)
	w.Uint32(a.Count)
}

// ReferringCall is referring_call4 with its session, RFC 8881 section 20.9: a
// request of the client that a callback is about, and whose reply it may not
// have seen yet.
type ReferringCall struct {
	Session SessionID
	Seq     uint32
	Slot    uint32
}

// CBSequenceArgs is CB_SEQUENCE4args, RFC 8881 section 20.9, with one referring
// call of each session at most.
type CBSequenceArgs struct {
	Session     SessionID
	Seq         uint32
	Slot        uint32
	HighestSlot uint32
	CacheThis   bool
	Referring   []ReferringCall
}

// Decode reads the arguments. Of a session's referring calls it keeps the last.
func (a *CBSequenceArgs) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	a.Seq = r.Uint32()
	a.Slot = r.Uint32()
	a.HighestSlot = r.Uint32()
	a.CacheThis = r.Bool()
	for range r.Count(maxArray, len(SessionID{})+4) {
		var c ReferringCall
		c.Session.Decode(r)
		for range r.Count(maxArray, 8) {
			c.Seq = r.Uint32()
			c.Slot = r.Uint32()
		}
		a.Referring = append(a.Referring, c)
	}
}

// Encode writes the arguments.
func (a *CBSequenceArgs) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Seq)
	w.Uint32(a.Slot)
	w.Uint32(a.HighestSlot)
	w.Bool(a.CacheThis)
	w.Uint32(uint32(len(a.Referring)))
	for i := range a.Referring {
		c := &a.Referring[i]
		c.Session.Encode(w)
		w.Uint32(1)
		w.Uint32(c.Seq)
		w.Uint32(c.Slot)
	}
}

// CBSequenceRes is CB_SEQUENCE4resok, RFC 8881 section 20.9.
type CBSequenceRes struct {
	Session           SessionID
	Seq               uint32
	Slot              uint32
	HighestSlot       uint32
	TargetHighestSlot uint32
}

// Decode reads the results.
func (a *CBSequenceRes) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	a.Seq = r.Uint32()
	a.Slot = r.Uint32()
	a.HighestSlot = r.Uint32()
	a.TargetHighestSlot = r.Uint32()
}

// Encode writes the results.
func (a *CBSequenceRes) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Seq)
	w.Uint32(a.Slot)
	w.Uint32(a.HighestSlot)
	w.Uint32(a.TargetHighestSlot)
}

// CBRecallArgs is CB_RECALL4args, RFC 8881 section 20.2.
type CBRecallArgs struct {
	Stateid  Stateid
	Truncate bool // the file is about to be truncated: its data need not be written
	FH       []byte
}

// Decode reads the arguments.
func (a *CBRecallArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Truncate = r.Bool()
	a.FH = r.Opaque(MaxFH)
}

// Encode writes the arguments.
func (a *CBRecallArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	w.Bool(a.Truncate)
	w.Opaque(a.FH)
}

// CBNotifyLockArgs is CB_NOTIFY_LOCK4args, RFC 8881 section 20.11: a lock that
// the owner was denied may be had now.
type CBNotifyLockArgs struct {
	FH    []byte
	Owner Owner
}

// Decode reads the arguments.
func (a *CBNotifyLockArgs) Decode(r *xdr.Reader) {
	a.FH = r.Opaque(MaxFH)
	a.Owner.Decode(r)
}

// Encode writes the arguments.
func (a *CBNotifyLockArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.FH)
	a.Owner.Encode(w)
}
