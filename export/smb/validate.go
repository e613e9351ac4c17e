package smb

import (
	"encoding/binary"

	"ramserver/export/smb/wire"
)

// validateNegotiate is FSCTL_VALIDATE_NEGOTIATE_INFO, MS-SMB2 section 3.3.5.15.12:
// the client says, signed, what it said in NEGOTIATE, which somebody may have
// changed on its way. Then the connection ends.
func (r *request) validateNegotiate(in []byte, max uint32) ([]byte, wire.Status) {
	const head = 4 + 16 + 2 + 2
	c := r.c
	le := binary.LittleEndian
	if c.dialect == wire.Dialect311 || len(in) < head || len(in) < head+2*int(le.Uint16(in[22:])) || max < head {
		r.fatal = errDowngrade
		return nil, wire.StatusInvalidParameter
	}
	var offered []wire.Dialect
	for i := range int(le.Uint16(in[22:])) {
		offered = append(offered, wire.Dialect(le.Uint16(in[head+2*i:])))
	}
	if le.Uint32(in) != c.clientCaps || [16]byte(in[4:]) != c.clientGUID || le.Uint16(in[20:]) != c.clientMode ||
		best(dialects, offered) != c.dialect {
		r.fatal = errDowngrade
		return nil, wire.StatusAccessDenied
	}
	out := le.AppendUint32(nil, c.caps)
	out = append(out, c.s.guid[:]...)
	out = le.AppendUint16(out, c.s.mode())
	return le.AppendUint16(out, uint16(c.dialect)), wire.StatusOK
}
