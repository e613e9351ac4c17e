package nfs4

import "ramserver/export/nfs/xdr"

// SessionID is sessionid4, RFC 8881 section 3.2.
type SessionID [16]byte

// Decode reads a sessionid4: DESTROY_SESSION4args.
func (s *SessionID) Decode(r *xdr.Reader) { copy(s[:], r.Fixed(len(s))) }

// Encode writes a sessionid4.
func (s *SessionID) Encode(w *xdr.Writer) { w.B = append(w.B, s[:]...) }

// SequenceArgs is SEQUENCE4args, RFC 8881 section 18.46.
type SequenceArgs struct {
	Session     SessionID
	Seq         uint32
	Slot        uint32
	HighestSlot uint32
	CacheThis   bool
}

// Decode reads the arguments.
func (a *SequenceArgs) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	a.Seq = r.Uint32()
	a.Slot = r.Uint32()
	a.HighestSlot = r.Uint32()
	a.CacheThis = r.Bool()
}

// Encode writes the arguments.
func (a *SequenceArgs) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Seq)
	w.Uint32(a.Slot)
	w.Uint32(a.HighestSlot)
	w.Bool(a.CacheThis)
}

// Bits of SequenceRes.Flags, RFC 8881 section 18.46.3.
const (
	SeqCBPathDown              = 0x00000001
	SeqCBGSSContextsExpiring   = 0x00000002
	SeqCBGSSContextsExpired    = 0x00000004
	SeqExpiredAllStateRevoked  = 0x00000008
	SeqExpiredSomeStateRevoked = 0x00000010
	SeqAdminStateRevoked       = 0x00000020
	SeqRecallableStateRevoked  = 0x00000040
	SeqLeaseMoved              = 0x00000080
	SeqRestartReclaimNeeded    = 0x00000100
	SeqCBPathDownSession       = 0x00000200
	SeqBackchannelFault        = 0x00000400
	SeqDevIDChanged            = 0x00000800
	SeqDevIDDeleted            = 0x00001000
)

// SequenceRes is SEQUENCE4resok, RFC 8881 section 18.46.
type SequenceRes struct {
	Session           SessionID
	Seq               uint32
	Slot              uint32
	HighestSlot       uint32
	TargetHighestSlot uint32
	Flags             uint32
}

// Decode reads the results.
func (a *SequenceRes) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	a.Seq = r.Uint32()
	a.Slot = r.Uint32()
	a.HighestSlot = r.Uint32()
	a.TargetHighestSlot = r.Uint32()
	a.Flags = r.Uint32()
}

// Encode writes the results.
func (a *SequenceRes) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Seq)
	w.Uint32(a.Slot)
	w.Uint32(a.HighestSlot)
	w.Uint32(a.TargetHighestSlot)
	w.Uint32(a.Flags)
}

// Bits of the Flags of EXCHANGE_ID, RFC 8881 section 18.35.
const (
	ExchgIDSuppMovedRefer   = 0x00000001
	ExchgIDSuppMovedMigr    = 0x00000002
	ExchgIDSuppFenceOps     = 0x00000004 // RFC 7862 section 14.1
	ExchgIDBindPrincStateid = 0x00000100
	ExchgIDUseNonPNFS       = 0x00010000
	ExchgIDUsePNFSMDS       = 0x00020000
	ExchgIDUsePNFSDS        = 0x00040000
	ExchgIDMaskPNFS         = 0x00070000
	ExchgIDUpdConfirmedRecA = 0x40000000 // in the arguments only
	ExchgIDConfirmedR       = 0x80000000 // in the results only
)

// ProtectHow is state_protect_how4, RFC 8881 section 18.35.
type ProtectHow uint32

// Ways to protect a client's state.
const (
	ProtectNone     ProtectHow = 0
	ProtectMachCred ProtectHow = 1
	ProtectSSV      ProtectHow = 2
)

// Protect is state_protect4_a and state_protect4_r, RFC 8881 section 18.35. Both
// bitmaps, of operation numbers, count with MachCred and SSV, what follows with
// SSV only. A server that speaks no RPCSEC_GSS answers None to anything.
type Protect struct {
	How         ProtectHow
	MustEnforce Bitmap
	MustAllow   Bitmap
	HashAlgs    [][]byte // arguments: object ids
	EncrAlgs    [][]byte
	HashAlg     uint32 // results: index of what was chosen
	EncrAlg     uint32
	SSVLen      uint32
	Window      uint32
	NumHandles  uint32   // arguments
	Handles     [][]byte // results
}

func (p *Protect) decodeOps(r *xdr.Reader) {
	p.How = ProtectHow(r.Enum(uint32(ProtectSSV)))
	if p.How != ProtectNone {
		p.MustEnforce.Decode(r)
		p.MustAllow.Decode(r)
	}
}

func (p *Protect) encodeOps(w *xdr.Writer) {
	w.Uint32(uint32(p.How))
	if p.How != ProtectNone {
		p.MustEnforce.Encode(w)
		p.MustAllow.Encode(w)
	}
}

func decodeOpaques(r *xdr.Reader) [][]byte {
	n := r.Count(maxArray, 4)
	if n == 0 {
		return nil
	}
	v := make([][]byte, n)
	for i := range v {
		v[i] = r.Opaque(unbounded)
	}
	return v
}

func encodeOpaques(w *xdr.Writer, v [][]byte) {
	w.Uint32(uint32(len(v)))
	for _, b := range v {
		w.Opaque(b)
	}
}

// ImplID is nfs_impl_id4 in its array of at most one, RFC 8881 section 3.3.11:
// what program speaks, for people only.
type ImplID struct {
	Present bool
	Domain  string
	Name    string
	Date    Time
}

// Decode reads an nfs_impl_id4<1>.
func (i *ImplID) Decode(r *xdr.Reader) {
	if i.Present = r.Count(1, 20) == 1; i.Present {
		i.Domain = r.String(unbounded)
		i.Name = r.String(unbounded)
		i.Date.Decode(r)
	}
}

// Encode writes an nfs_impl_id4<1>.
func (i *ImplID) Encode(w *xdr.Writer) {
	w.Bool(i.Present)
	if i.Present {
		w.String(i.Domain)
		w.String(i.Name)
		i.Date.Encode(w)
	}
}

// ExchangeIDArgs is EXCHANGE_ID4args, RFC 8881 section 18.35. Verf and Owner are
// its client_owner4.
type ExchangeIDArgs struct {
	Verf    uint64 // verifier4: changes when the client starts anew
	Owner   []byte
	Flags   uint32
	Protect Protect
	Impl    ImplID
}

// Decode reads the arguments.
func (a *ExchangeIDArgs) Decode(r *xdr.Reader) {
	a.Verf = r.Uint64()
	a.Owner = r.Opaque(MaxOpaque)
	a.Flags = r.Uint32()
	a.Protect.decodeOps(r)
	if a.Protect.How == ProtectSSV {
		a.Protect.HashAlgs = decodeOpaques(r)
		a.Protect.EncrAlgs = decodeOpaques(r)
		a.Protect.Window = r.Uint32()
		a.Protect.NumHandles = r.Uint32()
	}
	a.Impl.Decode(r)
}

// Encode writes the arguments.
func (a *ExchangeIDArgs) Encode(w *xdr.Writer) {
	w.Uint64(a.Verf)
	w.Opaque(a.Owner)
	w.Uint32(a.Flags)
	a.Protect.encodeOps(w)
	if a.Protect.How == ProtectSSV {
		encodeOpaques(w, a.Protect.HashAlgs)
		encodeOpaques(w, a.Protect.EncrAlgs)
		w.Uint32(a.Protect.Window)
		w.Uint32(a.Protect.NumHandles)
	}
	a.Impl.Encode(w)
}

// ExchangeIDRes is EXCHANGE_ID4resok, RFC 8881 section 18.35. ServerMinor and
// ServerMajor are its server_owner4.
type ExchangeIDRes struct {
	ClientID    uint64
	Seq         uint32 // of the client's next CREATE_SESSION
	Flags       uint32
	Protect     Protect
	ServerMinor uint64
	ServerMajor []byte
	Scope       []byte
	Impl        ImplID
}

// Decode reads the results.
func (a *ExchangeIDRes) Decode(r *xdr.Reader) {
	a.ClientID = r.Uint64()
	a.Seq = r.Uint32()
	a.Flags = r.Uint32()
	a.Protect.decodeOps(r)
	if a.Protect.How == ProtectSSV {
		a.Protect.HashAlg = r.Uint32()
		a.Protect.EncrAlg = r.Uint32()
		a.Protect.SSVLen = r.Uint32()
		a.Protect.Window = r.Uint32()
		a.Protect.Handles = decodeOpaques(r)
	}
	a.ServerMinor = r.Uint64()
	a.ServerMajor = r.Opaque(MaxOpaque)
	a.Scope = r.Opaque(MaxOpaque)
	a.Impl.Decode(r)
}

// Encode writes the results.
func (a *ExchangeIDRes) Encode(w *xdr.Writer) {
	w.Uint64(a.ClientID)
	w.Uint32(a.Seq)
	w.Uint32(a.Flags)
	a.Protect.encodeOps(w)
	if a.Protect.How == ProtectSSV {
		w.Uint32(a.Protect.HashAlg)
		w.Uint32(a.Protect.EncrAlg)
		w.Uint32(a.Protect.SSVLen)
		w.Uint32(a.Protect.Window)
		encodeOpaques(w, a.Protect.Handles)
	}
	w.Uint64(a.ServerMinor)
	w.Opaque(a.ServerMajor)
	w.Opaque(a.Scope)
	a.Impl.Encode(w)
}

// ChannelAttrs is channel_attrs4, RFC 8881 section 18.36. Sizes are in bytes and
// include the RPC header.
type ChannelAttrs struct {
	HeaderPad         uint32
	MaxRequest        uint32
	MaxResponse       uint32
	MaxResponseCached uint32
	MaxOps            uint32 // in a compound
	MaxRequests       uint32 // slots
	HasIRD            bool
	IRD               uint32 // of RDMA
}

// Decode reads a channel_attrs4.
func (c *ChannelAttrs) Decode(r *xdr.Reader) {
	c.HeaderPad = r.Uint32()
	c.MaxRequest = r.Uint32()
	c.MaxResponse = r.Uint32()
	c.MaxResponseCached = r.Uint32()
	c.MaxOps = r.Uint32()
	c.MaxRequests = r.Uint32()
	if c.HasIRD = r.Count(1, 4) == 1; c.HasIRD {
		c.IRD = r.Uint32()
	}
}

// Encode writes a channel_attrs4.
func (c *ChannelAttrs) Encode(w *xdr.Writer) {
	w.Uint32(c.HeaderPad)
	w.Uint32(c.MaxRequest)
	w.Uint32(c.MaxResponse)
	w.Uint32(c.MaxResponseCached)
	w.Uint32(c.MaxOps)
	w.Uint32(c.MaxRequests)
	w.Bool(c.HasIRD)
	if c.HasIRD {
		w.Uint32(c.IRD)
	}
}

// Security flavors of a callback, RFC 5531 section 8.2.
const (
	AuthNone      = 0
	AuthSys       = 1
	AuthRPCSecGSS = 6
)

// CBSec is callback_sec_parms4, RFC 8881 section 18.33: a credential that the
// server may use for callbacks.
type CBSec struct {
	Flavor uint32

	Stamp    uint32 // AUTH_SYS: authsys_parms, RFC 5531 appendix A
	Machine  string
	UID, GID uint32
	Groups   []uint32

	Service                uint32 // RPCSEC_GSS: gss_cb_handles4
	FromServer, FromClient []byte
}

// Decode reads a callback_sec_parms4. A flavor other than the three is an error,
// since nobody knows where the next one begins.
func (c *CBSec) Decode(r *xdr.Reader) {
	switch c.Flavor = r.Uint32(); c.Flavor {
	case AuthNone:
	case AuthSys:
		c.Stamp = r.Uint32()
		c.Machine = r.String(255)
		c.UID = r.Uint32()
		c.GID = r.Uint32()
		for range r.Count(16, 4) {
			c.Groups = append(c.Groups, r.Uint32())
		}
	case AuthRPCSecGSS:
		c.Service = enum(r, 1, 3)
		c.FromServer = r.Opaque(unbounded)
		c.FromClient = r.Opaque(unbounded)
	default:
		r.Fail(xdr.ErrEnum)
	}
}

// Encode writes a callback_sec_parms4.
func (c *CBSec) Encode(w *xdr.Writer) {
	w.Uint32(c.Flavor)
	switch c.Flavor {
	case AuthSys:
		w.Uint32(c.Stamp)
		w.String(c.Machine)
		w.Uint32(c.UID)
		w.Uint32(c.GID)
		w.Uint32(uint32(len(c.Groups)))
		for _, g := range c.Groups {
			w.Uint32(g)
		}
	case AuthRPCSecGSS:
		w.Uint32(c.Service)
		w.Opaque(c.FromServer)
		w.Opaque(c.FromClient)
	}
}

// maxCBSec bounds the credentials for callbacks: there are three flavors.
const maxCBSec = 64

func decodeCBSecs(r *xdr.Reader) []CBSec {
	n := r.Count(maxCBSec, 4)
	if n == 0 {
		return nil
	}
	v := make([]CBSec, n)
	for i := range v {
		v[i].Decode(r)
	}
	return v
}

func encodeCBSecs(w *xdr.Writer, v []CBSec) {
	w.Uint32(uint32(len(v)))
	for i := range v {
		v[i].Encode(w)
	}
}

// Bits of the Flags of CREATE_SESSION, RFC 8881 section 18.36.
const (
	SessionPersist      = 0x00000001
	SessionConnBackChan = 0x00000002
	SessionConnRDMA     = 0x00000004
)

// CreateSessionArgs is CREATE_SESSION4args, RFC 8881 section 18.36.
type CreateSessionArgs struct {
	ClientID   uint64
	Seq        uint32
	Flags      uint32
	Fore, Back ChannelAttrs
	CBProgram  uint32
	Sec        []CBSec
}

// Decode reads the arguments.
func (a *CreateSessionArgs) Decode(r *xdr.Reader) {
	a.ClientID = r.Uint64()
	a.Seq = r.Uint32()
	a.Flags = r.Uint32()
	a.Fore.Decode(r)
	a.Back.Decode(r)
	a.CBProgram = r.Uint32()
	a.Sec = decodeCBSecs(r)
}

// Encode writes the arguments.
func (a *CreateSessionArgs) Encode(w *xdr.Writer) {
	w.Uint64(a.ClientID)
	w.Uint32(a.Seq)
	w.Uint32(a.Flags)
	a.Fore.Encode(w)
	a.Back.Encode(w)
	w.Uint32(a.CBProgram)
	encodeCBSecs(w, a.Sec)
}

// CreateSessionRes is CREATE_SESSION4resok, RFC 8881 section 18.36.
type CreateSessionRes struct {
	Session    SessionID
	Seq        uint32
	Flags      uint32
	Fore, Back ChannelAttrs
}

// Decode reads the results.
func (a *CreateSessionRes) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	a.Seq = r.Uint32()
	a.Flags = r.Uint32()
	a.Fore.Decode(r)
	a.Back.Decode(r)
}

// Encode writes the results.
func (a *CreateSessionRes) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Seq)
	w.Uint32(a.Flags)
	a.Fore.Encode(w)
	a.Back.Encode(w)
}
