package smb

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"slices"
	"time"

	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/wire"
)

// terms is what a connection's NEGOTIATE has agreed.
type terms struct {
	dialect wire.Dialect // 0: nothing yet
	caps    uint32       // the server's capabilities, as it said
	cipher  wire.Cipher  // 0: no encryption
	signing wire.SigningAlgorithm
	preauth [sha512.Size]byte // hash of both messages, of dialect 3.1.1

	// What the client said, for FSCTL_VALIDATE_NEGOTIATE_INFO.
	clientGUID [16]byte
	clientCaps uint32
	clientMode uint16
}

// multiCredit tells whether one request may transfer more than 64 KiB.
func (t *terms) multiCredit() bool { return t.caps&wire.CapLargeMTU != 0 }

// maxIO is the most that one request may transfer, in bytes.
func (t *terms) maxIO() int {
	if t.multiCredit() {
		return MaxIO
	}
	return smallIO
}

// What the server speaks, the best first.
var (
	dialects = []wire.Dialect{wire.Dialect311, wire.Dialect302, wire.Dialect300, wire.Dialect210, wire.Dialect202}
	ciphers  = []wire.Cipher{wire.CipherAES128GCM, wire.CipherAES256GCM, wire.CipherAES128CCM, wire.CipherAES256CCM}
	signings = []wire.SigningAlgorithm{wire.SigningAESGMAC, wire.SigningAESCMAC, wire.SigningHMACSHA256}
)

// best is the first of ours that they have too; zero if there is none.
func best[T comparable](ours, theirs []T) (none T) {
	for _, t := range ours {
		if slices.Contains(theirs, t) {
			return t
		}
	}
	return none
}

// negotiate is NEGOTIATE, MS-SMB2 section 3.3.5.4.
func (r *request) negotiate() wire.Status {
	c := r.c
	if c.dialect != 0 {
		r.fatal = errFrame
		return wire.StatusInvalidParameter
	}
	var q wire.NegotiateRequest
	if !q.Decode(r.msg) || len(q.Dialects) == 0 {
		return wire.StatusInvalidParameter
	}
	t := terms{
		dialect:    best(dialects, q.Dialects),
		clientGUID: q.ClientGUID,
		clientCaps: q.Capabilities,
		clientMode: q.SecurityMode,
	}
	var contexts []wire.NegotiateContext
	encrypts := c.s.cfg.Encryption != Off
	switch {
	case t.dialect == 0:
		return wire.StatusNotSupported
	case t.dialect == wire.Dialect311:
		t.signing = wire.SigningAESCMAC // unless the client says what else it can
		var status wire.Status
		if contexts, status = t.contexts(&q, encrypts); status != wire.StatusOK {
			return status
		}
	case t.dialect >= wire.Dialect300:
		t.signing = wire.SigningAESCMAC
		if encrypts && q.Capabilities&wire.CapEncryption != 0 {
			t.cipher = wire.CipherAES128CCM
			t.caps |= wire.CapEncryption
		}
	default:
		t.signing = wire.SigningHMACSHA256
	}
	if t.dialect > wire.Dialect202 {
		t.caps |= wire.CapLargeMTU
	}
	c.terms = t
	if t.dialect == wire.Dialect311 {
		addHash(&c.preauth, r.msg)
		r.hash = &c.preauth
	}
	r.negotiated(t.dialect, contexts)
	return wire.StatusOK
}

// contexts agrees on what dialect 3.1.1 leaves open, MS-SMB2 section 2.2.3.1.
func (t *terms) contexts(q *wire.NegotiateRequest, encrypts bool) ([]wire.NegotiateContext, wire.Status) {
	var reply []wire.NegotiateContext
	var seen []uint16
	for _, x := range q.Contexts {
		if x.Type <= wire.ContextSigning && slices.Contains(seen, x.Type) {
			return nil, wire.StatusInvalidParameter
		}
		seen = append(seen, x.Type)
		ids, ok := x.IDs()
		switch x.Type {
		case wire.ContextPreauth:
			if !ok {
				return nil, wire.StatusInvalidParameter
			}
			if !slices.Contains(ids, wire.HashSHA512) {
				return nil, wire.StatusNoPreauthOverlap
			}
			// One algorithm, 32 bytes of salt.
			data := make([]byte, 6+32)
			data[0], data[2], data[4] = 1, 32, byte(wire.HashSHA512)
			rand.Read(data[6:])
			reply = append(reply, wire.NegotiateContext{Type: x.Type, Data: data})
		case wire.ContextEncryption:
			if !ok {
				return nil, wire.StatusInvalidParameter
			}
			if encrypts {
				t.cipher = best(ciphers, as[wire.Cipher](ids))
				reply = append(reply, wire.NegotiateContext{Type: x.Type, Data: []byte{1, 0, byte(t.cipher), 0}})
			}
		case wire.ContextSigning:
			if !ok {
				return nil, wire.StatusInvalidParameter
			}
			// HMAC-SHA256 is 0, and so is nothing in common.
			if a := best(signings, as[wire.SigningAlgorithm](ids)); a != 0 || slices.Contains(ids, uint16(a)) {
				t.signing = a
			}
			reply = append(reply, wire.NegotiateContext{Type: x.Type, Data: []byte{1, 0, byte(t.signing), 0}})
		}
	}
	if !slices.Contains(seen, wire.ContextPreauth) {
		return nil, wire.StatusInvalidParameter
	}
	return reply, wire.StatusOK
}

// as is ids as those of algorithms.
func as[T ~uint16](ids []uint16) []T {
	var t []T
	for _, id := range ids {
		t = append(t, T(id))
	}
	return t
}

// addHash adds a message to a hash of preauthentication, MS-SMB2 section 3.3.5.4.
func addHash(sum *[sha512.Size]byte, msg []byte) {
	h := sha512.New()
	h.Write(sum[:])
	h.Write(msg)
	h.Sum(sum[:0])
}

// negotiated appends the reply to NEGOTIATE.
func (r *request) negotiated(d wire.Dialect, contexts []wire.NegotiateContext) {
	s := r.c.s
	reply := wire.NegotiateReply{
		SecurityMode: s.mode(),
		Dialect:      d,
		ServerGUID:   s.guid,
		Capabilities: r.c.caps,
		MaxIO:        uint32(r.c.maxIO()),
		SystemTime:   time.Now(),
		Token:        ntlm.Hint(),
		Contexts:     contexts,
	}
	reply.Encode(r.w)
}

// mode is the server's security mode.
func (s *Server) mode() uint16 {
	if s.cfg.Signing == Required {
		return wire.SigningEnabled | wire.SigningRequired
	}
	return wire.SigningEnabled
}

// isSMB1 tells whether a frame is a message of SMB 1.
func isSMB1(frame []byte) bool { return bytes.HasPrefix(frame, []byte("\xffSMB")) }

// negotiateUp answers an SMB 1 NEGOTIATE that offers SMB 2, MS-SMB2 section
// 3.3.5.3. Nothing else of SMB 1 is answered.
func (r *request) negotiateUp(frame []byte) error {
	const header, negotiate = 32, 0x72
	c := r.c
	if c.dialect != 0 || len(frame) < header+3 || frame[4] != negotiate || frame[header] != 0 {
		return errFrame
	}
	n := int(binary.LittleEndian.Uint16(frame[header+1:]))
	offered := frame[header+3:]
	if n > len(offered) {
		return errFrame
	}
	var d wire.Dialect
	for _, name := range bytes.Split(offered[:n], []byte{0}) {
		switch {
		case string(name) == "\x02SMB 2.???":
			d = wire.DialectWild
		case string(name) == "\x02SMB 2.002" && d == 0:
			d = wire.Dialect202
		}
	}
	if d == 0 || !c.take(0, 1) {
		return errFrame
	}
	if d == wire.Dialect202 {
		c.terms = terms{dialect: d, signing: wire.SigningHMACSHA256}
	}
	r.h = wire.Header{Command: wire.CommandNegotiate}
	r.cmd = &commands[wire.CommandNegotiate]
	r.asked = 1
	r.beginReply()
	r.negotiated(d, nil)
	r.endReply(wire.StatusOK)
	r.endFrame()
	return nil
}
