package nfs4

import "ramserver/export/nfs/xdr"

// SetClientIDArgs is SETCLIENTID4args, RFC 7530 section 16.33. Verf and ID are
// its nfs_client_id4.
type SetClientIDArgs struct {
	Verf      uint64 // verifier4: changes when the client starts anew
	ID        []byte
	CBProgram uint32
	CBAddr    ClientAddr
	CBIdent   uint32
}

// Decode reads the arguments.
func (a *SetClientIDArgs) Decode(r *xdr.Reader) {
	a.Verf = r.Uint64()
	a.ID = r.Opaque(MaxOpaque)
	a.CBProgram = r.Uint32()
	a.CBAddr.Decode(r)
	a.CBIdent = r.Uint32()
}

// Encode writes the arguments.
func (a *SetClientIDArgs) Encode(w *xdr.Writer) {
	w.Uint64(a.Verf)
	w.Opaque(a.ID)
	w.Uint32(a.CBProgram)
	a.CBAddr.Encode(w)
	w.Uint32(a.CBIdent)
}

// ClientAddr is clientaddr4, RFC 7530 section 2.2.10: where a client is called
// back, and in an answer of SETCLIENTID with CLID_INUSE the client that uses the
// name.
type ClientAddr struct{ NetID, Addr string }

// Decode reads a clientaddr4.
func (a *ClientAddr) Decode(r *xdr.Reader) {
	a.NetID = r.String(unbounded)
	a.Addr = r.String(unbounded)
}

// Encode writes a clientaddr4.
func (a *ClientAddr) Encode(w *xdr.Writer) {
	w.String(a.NetID)
	w.String(a.Addr)
}

// ClientConfirm is SETCLIENTID4resok and SETCLIENTID_CONFIRM4args, RFC 7530
// sections 16.33 and 16.34.
type ClientConfirm struct{ ID, Verf uint64 }

// Decode reads a client id and its verifier.
func (a *ClientConfirm) Decode(r *xdr.Reader) {
	a.ID = r.Uint64()
	a.Verf = r.Uint64()
}

// Encode writes a client id and its verifier.
func (a *ClientConfirm) Encode(w *xdr.Writer) {
	w.Uint64(a.ID)
	w.Uint64(a.Verf)
}
