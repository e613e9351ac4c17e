// Package rpc is the message layer of ONC RPC version 2 (RFC 5531) and its
// binding protocols (RFC 1833): record marks, call and reply headers,
// AUTH_NONE and AUTH_SYS, portmap version 2 and rpcbind versions 3 and 4.
//
// It decodes in place and appends to buffers; it owns no socket.
package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ramserver/export/nfs/xdr"
)

// Version is the only version of the RPC protocol, RFC 5531 section 9.
const Version = 2

// Program numbers, assigned by IANA.
const (
	ProgramPortmap = 100000
	ProgramNFS     = 100003
	ProgramMount   = 100005
	ProgramNLM     = 100021
	ProgramStatus  = 100024
)

// ProcNull is the procedure without arguments and results that every program
// has, RFC 5531 section 12.
const ProcNull = 0

// Message types, msg_type in RFC 5531 section 9.
const (
	msgCall  = 0
	msgReply = 1
)

// Reply status, reply_stat in RFC 5531 section 9.
const (
	msgAccepted = 0
	msgDenied   = 1
)

// Reject status, reject_stat in RFC 5531 section 9.
const (
	rejectMismatch = 0
	rejectAuth     = 1
)

// Authentication flavors, RFC 5531 section 8.2.
const (
	AuthNone = 0
	AuthSys  = 1
)

const (
	maxAuth    = 400 // bytes of an opaque_auth body, RFC 5531 section 8.2
	maxMachine = 255 // bytes of a machine name, RFC 5531 appendix A
	maxGroups  = 16  // supplementary groups, RFC 5531 appendix A
)

// AcceptStat says what became of a call whose header was in order, RFC 5531
// section 9. It is an error to a client when it is not [Success].
type AcceptStat uint32

// Accept status.
const (
	Success      AcceptStat = 0
	ProgUnavail  AcceptStat = 1 // no such program here
	ProgMismatch AcceptStat = 2 // no such version; the reply names the lowest and the highest
	ProcUnavail  AcceptStat = 3 // no such procedure
	GarbageArgs  AcceptStat = 4 // arguments that cannot be decoded
	SystemErr    AcceptStat = 5 // the server failed, for example for want of memory
)

var acceptNames = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}

// String returns the name in RFC 5531.
func (s AcceptStat) String() string {
	if int(s) < len(acceptNames) {
		return acceptNames[s]
	}
	return fmt.Sprintf("accept_stat %d", uint32(s))
}

func (s AcceptStat) Error() string { return "rpc: " + s.String() }

// AuthStat says why a credential or verifier was refused, RFC 5531 section 9.
type AuthStat uint32

// Authentication status.
const (
	AuthBadCred      AuthStat = 1 // the credential's body is malformed
	AuthRejectedCred AuthStat = 2 // a flavor that is not served, or a credential no longer valid
	AuthBadVerf      AuthStat = 3 // the verifier is malformed
	AuthRejectedVerf AuthStat = 4 // the verifier expired or was replayed
	AuthTooWeak      AuthStat = 5 // refused for security reasons
	AuthInvalidResp  AuthStat = 6 // seen by a client: a bogus response verifier
	AuthFailed       AuthStat = 7 // reason unknown
)

var authNames = [...]string{"AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF", "AUTH_REJECTEDVERF", "AUTH_TOOWEAK", "AUTH_INVALIDRESP", "AUTH_FAILED"}

// String returns the name in RFC 5531.
func (s AuthStat) String() string {
	if int(s) < len(authNames) {
		return authNames[s]
	}
	return fmt.Sprintf("auth_stat %d", uint32(s))
}

func (s AuthStat) Error() string { return "rpc: call denied: " + s.String() }

// MismatchError is PROG_MISMATCH, or RPC_MISMATCH where RPC is set: a version
// outside of Low to High.
type MismatchError struct {
	RPC       bool
	Low, High uint32
}

func (e *MismatchError) Error() string {
	if e.RPC {
		return fmt.Sprintf("rpc: RPC_MISMATCH: server speaks RPC versions %d to %d", e.Low, e.High)
	}
	return fmt.Sprintf("rpc: PROG_MISMATCH: server speaks program versions %d to %d", e.Low, e.High)
}

// What a message can be that is not answered, or not by [AuthError].
var (
	ErrNotCall  = errors.New("rpc: message is not a call")
	ErrNotReply = errors.New("rpc: message is not a reply")
	ErrVersion  = errors.New("rpc: RPC version of the call is not 2")
)

// Record marking, RFC 5531 section 11: on a stream a message is a record of one
// or more fragments, each behind a four-byte mark.
const (
	MarkSize     = 4
	LastFragment = 1 << 31
)

// Mark takes a fragment's mark apart. The length is at most 2^31-1 bytes; the
// caller bounds it.
func Mark(mark uint32) (length int, last bool) {
	return int(mark &^ LastFragment), mark&LastFragment != 0
}

// MarkOf reads the mark in the first four bytes of b.
func MarkOf(b []byte) (length int, last bool) { return Mark(binary.BigEndian.Uint32(b)) }

// BeginRecord leaves room for the mark of a record of one fragment and returns
// its position, for [EndRecord].
func BeginRecord(w *xdr.Writer) int {
	at := w.Len()
	w.Uint32(0)
	return at
}

// EndRecord fills in the mark at position at. The record is what was appended
// since BeginRecord, and extra bytes that follow on the wire from elsewhere.
func EndRecord(w *xdr.Writer, at, extra int) {
	w.PatchUint32(at, LastFragment|uint32(w.Len()-at-MarkSize+extra))
}

// Cred is opaque_auth and authsys_parms, RFC 5531 sections 8.2 and appendix A.
type Cred struct {
	Flavor   uint32 // AuthNone or AuthSys; the fields below are AUTH_SYS
	Stamp    uint32 // an arbitrary number of the caller's
	Machine  string // aliases the call's buffer
	UID, GID uint32
	NGroups  int // of Group
	Group    [maxGroups]uint32
}

// Groups returns the supplementary groups; the slice aliases c.
func (c *Cred) Groups() []uint32 { return c.Group[:c.NGroups] }

// decode reads a credential. A refused one is an AuthStat, so that the call is
// answered.
func (c *Cred) decode(r *xdr.Reader) error {
	*c = Cred{Flavor: r.Uint32()}
	body := r.Opaque(maxAuth)
	if err := r.Err(); err == xdr.ErrLength {
		return AuthBadCred
	} else if err != nil {
		return err
	}
	switch c.Flavor {
	case AuthNone:
		return nil
	case AuthSys:
	default:
		return AuthRejectedCred
	}
	p := xdr.NewReader(body)
	c.Stamp = p.Uint32()
	c.Machine = p.String(maxMachine)
	c.UID = p.Uint32()
	c.GID = p.Uint32()
	c.NGroups = p.Count(maxGroups, 4)
	for i := range c.NGroups {
		c.Group[i] = p.Uint32()
	}
	if p.Err() != nil || p.Len() != 0 {
		*c = Cred{Flavor: AuthSys}
		return AuthBadCred
	}
	return nil
}

func (c *Cred) encode(w *xdr.Writer) {
	w.Uint32(c.Flavor)
	at := w.Len()
	w.Uint32(0)
	if c.Flavor == AuthSys {
		w.Uint32(c.Stamp)
		w.String(c.Machine)
		w.Uint32(c.UID)
		w.Uint32(c.GID)
		w.Uint32(uint32(c.NGroups))
		for _, g := range c.Groups() {
			w.Uint32(g)
		}
	}
	w.PatchUint32(at, uint32(w.Len()-at-4))
}

// Call is the header of a call, RFC 5531 section 9. Arguments follow it.
type Call struct {
	XID       uint32
	Program   uint32
	Version   uint32
	Procedure uint32
	Cred      Cred
}

// Decode reads a header and leaves r at the arguments. It allocates nothing.
//
// An [AuthStat] is to be answered with [AuthError] and [ErrVersion] with
// [RPCMismatch]; with any other error there is nothing to answer: the peer does
// not speak RPC. XID is set in both of the first cases.
func (c *Call) Decode(r *xdr.Reader) error {
	c.XID = r.Uint32()
	kind := r.Uint32()
	version := r.Uint32()
	if err := r.Err(); err != nil {
		return err
	}
	if kind != msgCall {
		return ErrNotCall
	}
	if version != Version {
		return ErrVersion
	}
	c.Program = r.Uint32()
	c.Version = r.Uint32()
	c.Procedure = r.Uint32()
	if err := c.Cred.decode(r); err != nil {
		return err
	}
	r.Uint32() // The verifier says nothing with AUTH_NONE and AUTH_SYS.
	r.Opaque(maxAuth)
	if r.Err() == xdr.ErrLength {
		return AuthBadVerf
	}
	return r.Err()
}

// Encode writes a header with an AUTH_NONE verifier.
func (c *Call) Encode(w *xdr.Writer) {
	w.Uint32(c.XID)
	w.Uint32(msgCall)
	w.Uint32(Version)
	w.Uint32(c.Program)
	w.Uint32(c.Version)
	w.Uint32(c.Procedure)
	c.Cred.encode(w)
	w.Uint32(AuthNone)
	w.Uint32(0)
}

// ReplySize is the length of the header that [Accepted] writes.
const ReplySize = 24

// Accepted begins the reply to a call that was let in: with [Success] the
// results follow; the other statuses stand alone. ProgMismatch has a function
// of its own.
func Accepted(w *xdr.Writer, xid uint32, stat AcceptStat) {
	var h [ReplySize]byte // MSG_ACCEPTED and an empty AUTH_NONE verifier are zeroes
	binary.BigEndian.PutUint32(h[0:], xid)
	binary.BigEndian.PutUint32(h[4:], msgReply)
	binary.BigEndian.PutUint32(h[20:], uint32(stat))
	w.B = append(w.B, h[:]...)
}

// RefuseVersion answers a call to a version of a program that is not served:
// PROG_MISMATCH with the lowest and highest version that are.
func RefuseVersion(w *xdr.Writer, xid, low, high uint32) {
	Accepted(w, xid, ProgMismatch)
	w.Uint32(low)
	w.Uint32(high)
}

// RPCMismatch denies a call of another RPC version than 2.
func RPCMismatch(w *xdr.Writer, xid uint32) {
	w.Uint32(xid)
	w.Uint32(msgReply)
	w.Uint32(msgDenied)
	w.Uint32(rejectMismatch)
	w.Uint32(Version)
	w.Uint32(Version)
}

// AuthError denies a call for its credential or verifier.
func AuthError(w *xdr.Writer, xid uint32, stat AuthStat) {
	w.Uint32(xid)
	w.Uint32(msgReply)
	w.Uint32(msgDenied)
	w.Uint32(rejectAuth)
	w.Uint32(uint32(stat))
}

// DecodeReply reads the header of a reply and leaves r at the results. The error
// of a call that did not succeed is an [AcceptStat], an [AuthStat] or a
// [*MismatchError].
func DecodeReply(r *xdr.Reader) (xid uint32, err error) {
	xid = r.Uint32()
	kind := r.Uint32()
	if r.Err() == nil && kind != msgReply {
		return xid, ErrNotReply
	}
	switch r.Enum(msgDenied) {
	case msgAccepted:
		r.Uint32()
		r.Opaque(maxAuth)
		stat := AcceptStat(r.Enum(uint32(SystemErr)))
		switch stat {
		case Success:
		case ProgMismatch:
			err = &MismatchError{Low: r.Uint32(), High: r.Uint32()}
		default:
			err = stat
		}
	case msgDenied:
		if r.Enum(rejectAuth) == rejectMismatch {
			err = &MismatchError{RPC: true, Low: r.Uint32(), High: r.Uint32()}
		} else {
			err = AuthStat(r.Uint32())
		}
	}
	if r.Err() != nil {
		return xid, r.Err()
	}
	return xid, err
}
