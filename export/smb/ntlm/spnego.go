package ntlm

import (
	"bytes"
	"crypto/hmac"
	encasn1 "encoding/asn1"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Mechanisms.
var (
	oidSPNEGO = encasn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 2}
	oidNTLM   = encasn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 2, 10}
)

// States of a negotiation, RFC 4178 section 4.2.2.
const (
	acceptCompleted  = 0
	acceptIncomplete = 1
	requestMIC       = 3
)

// Tags of RFC 4178 section 4.2.
var (
	application = asn1.Tag(0).Constructed() | 0x40
	tag0        = asn1.Tag(0).ContextSpecific().Constructed()
	tag1        = asn1.Tag(1).ContextSpecific().Constructed()
	tag2        = asn1.Tag(2).ContextSpecific().Constructed()
	tag3        = asn1.Tag(3).ContextSpecific().Constructed()
)

// Hint is what the server offers before the client has said anything, in its
// reply to NEGOTIATE: NTLMSSP (negTokenInit2, MS-SPNG section 2.2.1).
func Hint() []byte {
	var b cryptobyte.Builder
	b.AddASN1(application, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oidSPNEGO)
		b.AddASN1(tag0, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(tag0, func(b *cryptobyte.Builder) {
					b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oidNTLM) })
				})
			})
		})
	})
	return b.BytesOrPanic()
}

// Negotiation is one logon of a client, from its first token to the end.
type Negotiation struct {
	auth    auth
	wrapped bool
	begun   bool
	mechs   []byte // the client's list of mechanisms, over which a code goes
	second  bool   // NTLMSSP was not the client's first choice
}

// Begin begins a logon.
func (s *Server) Begin() *Negotiation { return &Negotiation{auth: auth{s: s}} }

// Step takes the client's next token, of at most MaxToken bytes, and returns
// what to answer. When who is not nil the client has logged on. With an error
// the negotiation is over.
func (n *Negotiation) Step(token []byte) (reply []byte, who *Identity, err error) {
	if len(token) > MaxToken {
		return nil, nil, ErrMessage
	}
	if !n.begun {
		n.begun = true
		if !bytes.HasPrefix(token, []byte(signature)) {
			n.wrapped = true
			return n.first(token)
		}
	}
	if !n.wrapped {
		return n.auth.step(token)
	}
	return n.next(token)
}

// first takes negTokenInit.
func (n *Negotiation) first(token []byte) ([]byte, *Identity, error) {
	in := cryptobyte.String(token)
	var outer, init, body, list, mechToken cryptobyte.String
	var oid encasn1.ObjectIdentifier
	if !in.ReadASN1(&outer, application) || !outer.ReadASN1ObjectIdentifier(&oid) || !oid.Equal(oidSPNEGO) ||
		!outer.ReadASN1(&init, tag0) || !init.ReadASN1(&body, asn1.SEQUENCE) ||
		!body.ReadASN1(&list, tag0) || !body.SkipOptionalASN1(tag1) {
		return nil, nil, ErrMessage
	}
	n.mechs = bytes.Clone(list)
	var has bool
	if !body.ReadOptionalASN1(&mechToken, &has, tag2) {
		return nil, nil, ErrMessage
	}
	at, err := position(list)
	if err != nil {
		return nil, nil, err
	}
	if at > 0 || !has {
		n.second = at > 0
		state := int64(acceptIncomplete)
		if n.second {
			state = requestMIC
		}
		return response(state, true, nil, nil), nil, nil
	}
	var msg cryptobyte.String
	if !mechToken.ReadASN1(&msg, asn1.OCTET_STRING) {
		return nil, nil, ErrMessage
	}
	reply, who, err := n.auth.step(msg)
	if err != nil || who != nil {
		return nil, nil, err
	}
	return response(acceptIncomplete, true, reply, nil), nil, nil
}

// position finds NTLMSSP in a list of mechanisms.
func position(list cryptobyte.String) (int, error) {
	var mechs cryptobyte.String
	if !list.ReadASN1(&mechs, asn1.SEQUENCE) {
		return 0, ErrMessage
	}
	for i := 0; !mechs.Empty(); i++ {
		var oid encasn1.ObjectIdentifier
		if !mechs.ReadASN1ObjectIdentifier(&oid) {
			return 0, ErrMessage
		}
		if oid.Equal(oidNTLM) {
			return i, nil
		}
	}
	return 0, ErrNoMech
}

// next takes negTokenResp.
func (n *Negotiation) next(token []byte) ([]byte, *Identity, error) {
	in := cryptobyte.String(token)
	var outer, body, wrapped, msg, code cryptobyte.String
	var has, hasCode bool
	if !in.ReadASN1(&outer, tag1) || !outer.ReadASN1(&body, asn1.SEQUENCE) ||
		!body.SkipOptionalASN1(tag0) || !body.SkipOptionalASN1(tag1) ||
		!body.ReadOptionalASN1(&wrapped, &has, tag2) || !has || !wrapped.ReadASN1(&msg, asn1.OCTET_STRING) ||
		!body.ReadOptionalASN1(&wrapped, &hasCode, tag3) || hasCode && !wrapped.ReadASN1(&code, asn1.OCTET_STRING) {
		return nil, nil, ErrMessage
	}
	reply, who, err := n.auth.step(msg)
	if err != nil {
		return nil, nil, err
	}
	if who == nil {
		return response(acceptIncomplete, true, reply, nil), nil, nil
	}
	// Without a code for the list somebody else could have removed the first
	// choice from it, RFC 4178 section 5.
	if !hasCode {
		if n.second {
			return nil, nil, ErrTampered
		}
		return response(acceptCompleted, false, nil, nil), who, nil
	}
	if !hmac.Equal(code, n.auth.sign(who, "client-to-server", n.mechs)) {
		return nil, nil, ErrTampered
	}
	return response(acceptCompleted, false, nil, n.auth.sign(who, "server-to-client", n.mechs)), who, nil
}

// response is negTokenResp, RFC 4178 section 4.2.2.
func response(state int64, mech bool, token, code []byte) []byte {
	var b cryptobyte.Builder
	octets := func(tag asn1.Tag, v []byte) func(*cryptobyte.Builder) {
		return func(b *cryptobyte.Builder) {
			b.AddASN1(tag, func(b *cryptobyte.Builder) { b.AddASN1OctetString(v) })
		}
	}
	b.AddASN1(tag1, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(tag0, func(b *cryptobyte.Builder) { b.AddASN1Enum(state) })
			if mech {
				b.AddASN1(tag1, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oidNTLM) })
			}
			if token != nil {
				octets(tag2, token)(b)
			}
			if code != nil {
				octets(tag3, code)(b)
			}
		})
	})
	return b.BytesOrPanic()
}
