package nfs4

import "ramserver/export/nfs/xdr"

// Bits of OpenArgs.Access and Deny, RFC 8881 section 18.16. In minor versions 1
// and 2 Access says besides what delegation the client wants.
const (
	ShareRead  = 0x1
	ShareWrite = 0x2
	ShareBoth  = 0x3

	WantMask         = 0xff00
	WantNoPreference = 0x0000
	WantReadDeleg    = 0x0100
	WantWriteDeleg   = 0x0200
	WantAnyDeleg     = 0x0300
	WantNoDeleg      = 0x0400
	WantCancel       = 0x0500

	WantSignalWhenAvail     = 0x10000
	WantPushWhenUncontended = 0x20000
)

// CreateMode is createmode4, RFC 8881 section 18.16.
type CreateMode uint32

// What a creating OPEN does about a name that exists.
const (
	Unchecked   CreateMode = 0 // opens the file
	Guarded     CreateMode = 1 // answers EXIST
	Exclusive   CreateMode = 2 // answers EXIST unless it was made with the same verifier
	Exclusive41 CreateMode = 3 // the same, and sets attributes; not in minor version 0
)

// Claim is open_claim_type4, RFC 8881 section 18.16.
type Claim uint32

// What an OPEN names its file by, and why it may open it. The last three do not
// exist in minor version 0.
const (
	ClaimNull        Claim = 0 // a name in the current file handle
	ClaimPrevious    Claim = 1 // the current file handle, after a restart of the server
	ClaimDelegCur    Claim = 2 // a name, by a delegation that the client holds
	ClaimDelegPrev   Claim = 3 // a name, by a delegation from before the client's restart
	ClaimFH          Claim = 4 // the current file handle
	ClaimDelegCurFH  Claim = 5 // the same, by a delegation
	ClaimDelegPrevFH Claim = 6
)

// OpenArgs is OPEN4args, RFC 8881 section 18.16. Seq counts in minor version 0
// only. A server of that version refuses Exclusive41 and the claims that it does
// not know as BADXDR.
type OpenArgs struct {
	Seq    uint32
	Access uint32
	Deny   uint32
	Owner  Owner

	Create bool // opentype4; what follows counts with it
	Mode   CreateMode
	Verf   uint64 // verifier4: Exclusive and Exclusive41
	Attr   Fattr  // all but Exclusive

	Claim     Claim
	Name      string         // ClaimNull, ClaimDelegCur, ClaimDelegPrev
	Stateid   Stateid        // of the delegation: ClaimDelegCur, ClaimDelegCurFH
	DelegType DelegationType // ClaimPrevious: what the client had
}

// Named reports whether the file is named in the current file handle, a
// directory.
func (a *OpenArgs) Named() bool {
	return a.Claim == ClaimNull || a.Claim == ClaimDelegCur || a.Claim == ClaimDelegPrev
}

// Decode reads the arguments.
func (a *OpenArgs) Decode(r *xdr.Reader) {
	a.Seq = r.Uint32()
	a.Access = r.Uint32()
	a.Deny = r.Uint32()
	a.Owner.Decode(r)
	if a.Create = r.Enum(1) == 1; a.Create {
		a.Mode = CreateMode(r.Enum(uint32(Exclusive41)))
		if a.Mode == Exclusive || a.Mode == Exclusive41 {
			a.Verf = r.Uint64()
		}
		if a.Mode != Exclusive {
			a.Attr.Decode(r)
		}
	}
	switch a.Claim = Claim(r.Enum(uint32(ClaimDelegPrevFH))); a.Claim {
	case ClaimNull, ClaimDelegPrev:
		a.Name = r.String(unbounded)
	case ClaimPrevious:
		a.DelegType = DelegationType(r.Enum(uint32(DelegateNoneExt)))
	case ClaimDelegCur:
		a.Stateid.Decode(r)
		a.Name = r.String(unbounded)
	case ClaimDelegCurFH:
		a.Stateid.Decode(r)
	}
}

// Encode writes the arguments.
func (a *OpenArgs) Encode(w *xdr.Writer) {
	w.Uint32(a.Seq)
	w.Uint32(a.Access)
	w.Uint32(a.Deny)
	a.Owner.Encode(w)
	w.Bool(a.Create)
	if a.Create {
		w.Uint32(uint32(a.Mode))
		if a.Mode == Exclusive || a.Mode == Exclusive41 {
			w.Uint64(a.Verf)
		}
		if a.Mode != Exclusive {
			a.Attr.Encode(w)
		}
	}
	w.Uint32(uint32(a.Claim))
	switch a.Claim {
	case ClaimNull, ClaimDelegPrev:
		w.String(a.Name)
	case ClaimPrevious:
		w.Uint32(uint32(a.DelegType))
	case ClaimDelegCur:
		a.Stateid.Encode(w)
		w.String(a.Name)
	case ClaimDelegCurFH:
		a.Stateid.Encode(w)
	}
}

// Bits of OpenRes.Flags, RFC 8881 section 18.16 and, the first, RFC 7530 section
// 16.16.
const (
	OpenConfirm          = 0x02
	OpenLockTypePOSIX    = 0x04
	OpenPreserveUnlinked = 0x08
	OpenMayNotifyLock    = 0x20
)

// OpenRes is OPEN4resok, RFC 8881 section 18.16.
type OpenRes struct {
	Stateid    Stateid
	Dir        ChangeInfo
	Flags      uint32
	Set        Bitmap // attributes that were set
	Delegation Delegation
}

// Decode reads the results.
func (a *OpenRes) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Dir.Decode(r)
	a.Flags = r.Uint32()
	a.Set.Decode(r)
	a.Delegation.Decode(r)
}

// Encode writes the results.
func (a *OpenRes) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	a.Dir.Encode(w)
	w.Uint32(a.Flags)
	a.Set.Encode(w)
	a.Delegation.Encode(w)
}

// DelegationType is open_delegation_type4, RFC 8881 section 18.16.
type DelegationType uint32

// Types of delegations. The last does not exist in minor version 0.
const (
	DelegateNone    DelegationType = 0
	DelegateRead    DelegationType = 1
	DelegateWrite   DelegationType = 2
	DelegateNoneExt DelegationType = 3 // none, and why
)

// WhyNone is why_no_delegation4, RFC 8881 section 18.16.
type WhyNone uint32

// Why there is no delegation.
const (
	WhyNotWanted              WhyNone = 0
	WhyContention             WhyNone = 1
	WhyResource               WhyNone = 2
	WhyNotSuppFType           WhyNone = 3
	WhyWriteDelegNotSuppFType WhyNone = 4
	WhyNotSuppUpgrade         WhyNone = 5
	WhyNotSuppDowngrade       WhyNone = 6
	WhyCancelled              WhyNone = 7
	WhyIsDir                  WhyNone = 8
)

// Delegation is open_delegation4, RFC 8881 section 18.16.
type Delegation struct {
	Type DelegationType

	Stateid Stateid // DelegateRead and DelegateWrite
	Recall  bool    // it is being recalled already
	Perm    ACE     // who needs no ACCESS to open

	ByBlocks      bool   // DelegateWrite: nfs_space_limit4 counts blocks
	Limit         uint64 // bytes that the file may have without asking
	Blocks        uint32
	BytesPerBlock uint32

	Why  WhyNone // DelegateNoneExt
	Will bool    // the server will push (WhyContention) or signal (WhyResource) it later
}

// Decode reads an open_delegation4.
func (d *Delegation) Decode(r *xdr.Reader) {
	switch d.Type = DelegationType(r.Enum(uint32(DelegateNoneExt))); d.Type {
	case DelegateRead:
		d.Stateid.Decode(r)
		d.Recall = r.Bool()
		d.Perm.Decode(r)
	case DelegateWrite:
		d.Stateid.Decode(r)
		d.Recall = r.Bool()
		if d.ByBlocks = enum(r, 1, 2) == 2; d.ByBlocks {
			d.Blocks = r.Uint32()
			d.BytesPerBlock = r.Uint32()
		} else {
			d.Limit = r.Uint64()
		}
		d.Perm.Decode(r)
	case DelegateNoneExt:
		d.Why = WhyNone(r.Enum(uint32(WhyIsDir)))
		if d.Why == WhyContention || d.Why == WhyResource {
			d.Will = r.Bool()
		}
	}
}

// Encode writes an open_delegation4.
func (d *Delegation) Encode(w *xdr.Writer) {
	w.Uint32(uint32(d.Type))
	switch d.Type {
	case DelegateRead:
		d.Stateid.Encode(w)
		w.Bool(d.Recall)
		d.Perm.Encode(w)
	case DelegateWrite:
		d.Stateid.Encode(w)
		w.Bool(d.Recall)
		if d.ByBlocks {
			w.Uint32(2)
			w.Uint32(d.Blocks)
			w.Uint32(d.BytesPerBlock)
		} else {
			w.Uint32(1)
			w.Uint64(d.Limit)
		}
		d.Perm.Encode(w)
	case DelegateNoneExt:
		w.Uint32(uint32(d.Why))
		if d.Why == WhyContention || d.Why == WhyResource {
			w.Bool(d.Will)
		}
	}
}

// ACE is nfsace4, RFC 8881 section 6.2.1. The zero ACE allows nothing to nobody.
type ACE struct {
	Type, Flag, Mask uint32
	Who              string
}

// Decode reads an nfsace4.
func (a *ACE) Decode(r *xdr.Reader) {
	a.Type = r.Uint32()
	a.Flag = r.Uint32()
	a.Mask = r.Uint32()
	a.Who = r.String(unbounded)
}

// Encode writes an nfsace4.
func (a *ACE) Encode(w *xdr.Writer) {
	w.Uint32(a.Type)
	w.Uint32(a.Flag)
	w.Uint32(a.Mask)
	w.String(a.Who)
}

// CloseArgs is CLOSE4args, RFC 8881 section 18.2. The result is a [StateidArgs].
type CloseArgs struct {
	Seq     uint32 // minor version 0
	Stateid Stateid
}

// Decode reads the arguments.
func (a *CloseArgs) Decode(r *xdr.Reader) {
	a.Seq = r.Uint32()
	a.Stateid.Decode(r)
}

// Encode writes the arguments.
func (a *CloseArgs) Encode(w *xdr.Writer) {
	w.Uint32(a.Seq)
	a.Stateid.Encode(w)
}

// OpenConfirmArgs is OPEN_CONFIRM4args, RFC 7530 section 16.18. The result is a
// [StateidArgs].
type OpenConfirmArgs struct {
	Stateid Stateid
	Seq     uint32
}

// Decode reads the arguments.
func (a *OpenConfirmArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Seq = r.Uint32()
}

// Encode writes the arguments.
func (a *OpenConfirmArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	w.Uint32(a.Seq)
}

// OpenDowngradeArgs is OPEN_DOWNGRADE4args, RFC 8881 section 18.18. The result is
// a [StateidArgs].
type OpenDowngradeArgs struct {
	Stateid Stateid
	Seq     uint32 // minor version 0
	Access  uint32
	Deny    uint32
}

// Decode reads the arguments.
func (a *OpenDowngradeArgs) Decode(r *xdr.Reader) {
	a.Stateid.Decode(r)
	a.Seq = r.Uint32()
	a.Access = r.Uint32()
	a.Deny = r.Uint32()
}

// Encode writes the arguments.
func (a *OpenDowngradeArgs) Encode(w *xdr.Writer) {
	a.Stateid.Encode(w)
	w.Uint32(a.Seq)
	w.Uint32(a.Access)
	w.Uint32(a.Deny)
}
