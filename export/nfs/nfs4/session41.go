package nfs4

import "ramserver/export/nfs/xdr"

// Directions of a connection, channel_dir_from_client4 and
// channel_dir_from_server4, RFC 8881 section 18.34. The third is an answer, the
// last two are requests for one channel and if possible the other.
const (
	DirFore       = 1
	DirBack       = 2
	DirBoth       = 3
	DirForeOrBoth = 3
	DirBackOrBoth = 7
)

// BindConnToSessionArgs is BIND_CONN_TO_SESSION4args, RFC 8881 section 18.34.
type BindConnToSessionArgs struct {
	Session SessionID
	Dir     uint32
	RDMA    bool
}

// Decode reads the arguments.
func (a *BindConnToSessionArgs) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	switch a.Dir = r.Uint32(); a.Dir {
	case DirFore, DirBack, DirForeOrBoth, DirBackOrBoth:
	default:
		r.Fail(xdr.ErrEnum)
	}
	a.RDMA = r.Bool()
}

// Encode writes the arguments.
func (a *BindConnToSessionArgs) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Dir)
	w.Bool(a.RDMA)
}

// BindConnToSessionRes is BIND_CONN_TO_SESSION4resok, RFC 8881 section 18.34.
type BindConnToSessionRes struct {
	Session SessionID
	Dir     uint32
	RDMA    bool
}

// Decode reads the results.
func (a *BindConnToSessionRes) Decode(r *xdr.Reader) {
	a.Session.Decode(r)
	a.Dir = enum(r, DirFore, DirBoth)
	a.RDMA = r.Bool()
}

// Encode writes the results.
func (a *BindConnToSessionRes) Encode(w *xdr.Writer) {
	a.Session.Encode(w)
	w.Uint32(a.Dir)
	w.Bool(a.RDMA)
}

// BackchannelCtlArgs is BACKCHANNEL_CTL4args, RFC 8881 section 18.33.
type BackchannelCtlArgs struct {
	Program uint32
	Sec     []CBSec
}

// Decode reads the arguments.
func (a *BackchannelCtlArgs) Decode(r *xdr.Reader) {
	a.Program = r.Uint32()
	a.Sec = decodeCBSecs(r)
}

// Encode writes the arguments.
func (a *BackchannelCtlArgs) Encode(w *xdr.Writer) {
	w.Uint32(a.Program)
	encodeCBSecs(w, a.Sec)
}

// ReclaimCompleteArgs is RECLAIM_COMPLETE4args, RFC 8881 section 18.51.
type ReclaimCompleteArgs struct{ OneFS bool }

// Decode reads the arguments.
func (a *ReclaimCompleteArgs) Decode(r *xdr.Reader) { a.OneFS = r.Bool() }

// Encode writes the arguments.
func (a *ReclaimCompleteArgs) Encode(w *xdr.Writer) { w.Bool(a.OneFS) }

// SetSSVArgs is SET_SSV4args, RFC 8881 section 18.47.
type SetSSVArgs struct{ SSV, Digest []byte }

// Decode reads the arguments.
func (a *SetSSVArgs) Decode(r *xdr.Reader) {
	a.SSV = r.Opaque(maxSSV)
	a.Digest = r.Opaque(maxSSV)
}

// Encode writes the arguments.
func (a *SetSSVArgs) Encode(w *xdr.Writer) {
	w.Opaque(a.SSV)
	w.Opaque(a.Digest)
}

// maxSSV is more than any hash algorithm makes, in bytes.
const maxSSV = 1024
