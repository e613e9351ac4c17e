// Package ntlm is the server's side of NTLM authentication: NTLMSSP messages
// with NTLMv2 responses (MS-NLMP), as they are or inside SPNEGO (RFC 4178,
// MS-SPNG). It holds no files, no connection and no user; it is told the hash
// of a user's password by the function that it is given.
//
// What is weaker than NTLMv2 is refused, as are anonymous users: LM and NTLMv1
// responses, and responses without a name. A message integrity code that the
// client announced must be there and right.
package ntlm

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/rc4"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"golang.org/x/crypto/md4" //lint:ignore SA1019 what MS-NLMP section 3.3.1 hashes passwords with
)

// Reasons to refuse an authentication.
var (
	ErrMessage  = errors.New("ntlm: message is malformed")
	ErrOrder    = errors.New("ntlm: message is out of order")
	ErrWeak     = errors.New("ntlm: client does not offer NTLMv2 and Unicode")
	ErrLogon    = errors.New("ntlm: unknown user or wrong password") // one error, so that names cannot be probed
	ErrAnon     = errors.New("ntlm: anonymous logons are not allowed")
	ErrTampered = errors.New("ntlm: integrity code is missing or wrong")
	ErrNoMech   = errors.New("ntlm: client does not offer NTLMSSP")
)

// MaxToken bounds what a client may send in one step, in bytes.
const MaxToken = 16 << 10

// Flags of MS-NLMP section 2.2.2.5.
const (
	flagUnicode       = 1 << 0
	flagRequestTarget = 1 << 2
	flagSign          = 1 << 4
	flagSeal          = 1 << 5
	flagNTLM          = 1 << 9
	flagAlwaysSign    = 1 << 15
	flagTargetServer  = 1 << 17
	flagExtended      = 1 << 19 // extended session security
	flagTargetInfo    = 1 << 23
	flagVersion       = 1 << 25
	flag128           = 1 << 29
	flagKeyExchange   = 1 << 30
	flag56            = 1 << 31
)

// Ids of target information, MS-NLMP section 2.2.2.1.
const (
	avEOL          = 0
	avComputerName = 1
	avDomainName   = 2
	avDNSComputer  = 3
	avDNSDomain    = 4
	avFlags        = 6
	avTimestamp    = 7
)

const (
	signature = "NTLMSSP\x00"

	typeNegotiate    = 1
	typeChallenge    = 2
	typeAuthenticate = 3
)

// Hash is an NT hash: MD4 of a password in UTF-16, little-endian (NTOWFv1,
// MS-NLMP section 3.3.1). Who has it can log on.
type Hash [16]byte

// HashPassword makes the hash of a password.
func HashPassword(password string) (h Hash) {
	m := md4.New()
	m.Write(utf16LE(password))
	m.Sum(h[:0])
	return h
}

// Lookup finds the hash of a user's password. Names are compared without
// regard to case by whoever implements it.
type Lookup func(user string) (Hash, bool)

// Identity is who has logged on.
type Identity struct {
	User, Domain, Workstation string // as the client wrote them
	// Key is the exported session key, from which the session's keys come.
	Key [16]byte
}

// Server makes negotiations. It is constant.
type Server struct {
	// Name is what this machine is called, up to 15 characters.
	Name   string
	Lookup Lookup
}

// auth is the exchange of NTLMSSP's three messages.
type auth struct {
	s         *Server
	flags     uint32 // agreed so far
	challenge [8]byte
	negotiate []byte // messages so far, over which the integrity code goes
	question  []byte
	done      bool
}

// step takes the client's next NTLMSSP message. The first is answered by a
// challenge; the second ends it: who is not nil, or there is an error.
func (a *auth) step(msg []byte) (reply []byte, who *Identity, err error) {
	if len(msg) < 12 || string(msg[:8]) != signature {
		return nil, nil, ErrMessage
	}
	switch t := binary.LittleEndian.Uint32(msg[8:]); {
	case t == typeNegotiate && a.question == nil:
		reply, err = a.ask(msg)
		return reply, nil, err
	case t == typeAuthenticate && a.question != nil && !a.done:
		a.done = true
		who, err = a.verify(msg)
		return nil, who, err
	}
	return nil, nil, ErrOrder
}

// ask answers NEGOTIATE_MESSAGE by CHALLENGE_MESSAGE, MS-NLMP sections 2.2.1.1
// and 2.2.1.2.
func (a *auth) ask(msg []byte) ([]byte, error) {
	if len(msg) < 16 {
		return nil, ErrMessage
	}
	asked := binary.LittleEndian.Uint32(msg[12:])
	if asked&flagUnicode == 0 {
		return nil, ErrWeak
	}
	const echoed = flagSign | flagSeal | flag128 | flag56 | flagKeyExchange | flagAlwaysSign | flagRequestTarget
	a.flags = asked&echoed | flagUnicode | flagNTLM | flagExtended | flagTargetInfo | flagTargetServer | flagVersion
	rand.Read(a.challenge[:])

	const head = 56
	target := utf16LE(a.s.Name)
	info := a.s.targetInfo(time.Now())
	b := make([]byte, head, head+len(target)+len(info))
	copy(b, signature)
	le := binary.LittleEndian
	le.PutUint32(b[8:], typeChallenge)
	putField(b[12:], len(target), head)
	le.PutUint32(b[20:], a.flags)
	copy(b[24:], a.challenge[:])
	putField(b[40:], len(info), head+len(target))
	copy(b[48:], []byte{10, 0, 0, 0, 0, 0, 0, 15}) // version: 10.0, NTLM revision 15
	b = append(append(b, target...), info...)

	a.negotiate = append([]byte(nil), msg...)
	a.question = b
	return b, nil
}

// targetInfo describes this machine to the client, MS-NLMP section 2.2.2.1.
func (s *Server) targetInfo(now time.Time) []byte {
	var b []byte
	put := func(id int, v []byte) {
		b = binary.LittleEndian.AppendUint16(b, uint16(id))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(v)))
		b = append(b, v...)
	}
	name := utf16LE(s.Name)
	put(avDomainName, name)
	put(avComputerName, name)
	put(avDNSDomain, nil)
	put(avDNSComputer, utf16LE(strings.ToLower(s.Name)))
	// 100 ns since 1601. With it clients send an integrity code.
	put(avTimestamp, binary.LittleEndian.AppendUint64(nil, uint64(now.UnixNano()/100+116444736000000000)))
	put(avEOL, nil)
	return b
}

// verify checks AUTHENTICATE_MESSAGE, MS-NLMP sections 2.2.1.3 and 3.3.2.
func (a *auth) verify(msg []byte) (*Identity, error) {
	if len(msg) < 64 {
		return nil, ErrMessage
	}
	nt, ok1 := field(msg, 20)
	domain, ok2 := name(msg, 28)
	user, ok3 := name(msg, 36)
	station, ok4 := name(msg, 44)
	sealed, ok5 := field(msg, 52)
	if !(ok1 && ok2 && ok3 && ok4 && ok5) {
		return nil, ErrMessage
	}
	flags := binary.LittleEndian.Uint32(msg[60:])
	switch {
	case user == "" && len(nt) == 0:
		return nil, ErrAnon
	case flags&flagUnicode == 0, len(nt) < 16+28:
		return nil, ErrWeak
	}
	flags &= a.flags // what was not offered is not agreed

	hash, known := a.s.Lookup(user)
	key := mac(hash[:], utf16LE(strings.Map(unicode.ToUpper, user)+domain))
	proof, blob := nt[:16], nt[16:]
	announced, ok := hasMIC(blob[28:])
	if !ok {
		return nil, ErrMessage
	}
	want := mac(key, a.challenge[:], blob)
	if subtle.ConstantTimeCompare(proof, want) != 1 || !known || blob[0] != 1 || blob[1] != 1 {
		return nil, ErrLogon
	}
	who := &Identity{User: user, Domain: domain, Workstation: station}
	copy(who.Key[:], mac(key, proof))
	if flags&flagKeyExchange != 0 {
		if len(sealed) != 16 {
			return nil, ErrMessage
		}
		c, err := rc4.NewCipher(who.Key[:])
		if err != nil {
			return nil, err
		}
		c.XORKeyStream(who.Key[:], sealed)
	}
	if announced && !a.intact(msg, who) {
		return nil, ErrTampered
	}
	a.flags = flags
	return who, nil
}

// hasMIC reads from the client's target information whether it sends an
// integrity code.
func hasMIC(b []byte) (announced, ok bool) {
	for len(b) >= 4 {
		id, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if b = b[4:]; n > len(b) {
			return false, false
		}
		switch id {
		case avEOL:
			return announced, true
		case avFlags:
			if n != 4 {
				return false, false
			}
			announced = b[0]&2 != 0
		}
		b = b[n:]
	}
	// Some clients leave the end mark out.
	return announced, len(b) == 0
}

// intact checks the integrity code over the three messages, MS-NLMP section
// 3.2.5.1.2.
func (a *auth) intact(msg []byte, who *Identity) bool {
	const at, size = 72, 16
	if len(msg) < at+size {
		return false
	}
	var zero [size]byte
	h := hmac.New(md5.New, who.Key[:])
	h.Write(a.negotiate)
	h.Write(a.question)
	h.Write(msg[:at])
	h.Write(zero[:])
	h.Write(msg[at+size:])
	return hmac.Equal(h.Sum(nil), msg[at:at+size])
}

// mac is HMAC-MD5 over the parts.
func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(md5.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// sign is the signature of the first message in one direction with the keys of
// a session, MS-NLMP section 3.4.4.2.
func (a *auth) sign(who *Identity, direction string, msg []byte) []byte {
	signing := md5.Sum(append(who.Key[:], "session key to "+direction+" signing key magic constant\x00"...))
	var seq [4]byte
	sum := mac(signing[:], seq[:], msg)[:8]
	if a.flags&flagKeyExchange != 0 {
		key := who.Key[:]
		switch {
		case a.flags&flag128 != 0:
		case a.flags&flag56 != 0:
			key = key[:7]
		default:
			key = key[:5]
		}
		sealing := md5.Sum(append(key[:len(key):len(key)], "session key to "+direction+" sealing key magic constant\x00"...))
		if c, err := rc4.NewCipher(sealing[:]); err == nil {
			c.XORKeyStream(sum, sum)
		}
	}
	return append(append([]byte{1, 0, 0, 0}, sum...), seq[:]...)
}

// field returns what the descriptor at offset at of a message points to.
func field(msg []byte, at int) ([]byte, bool) {
	n := int(binary.LittleEndian.Uint16(msg[at:]))
	off := int64(binary.LittleEndian.Uint32(msg[at+4:]))
	if n == 0 {
		return nil, true
	}
	if off+int64(n) > int64(len(msg)) {
		return nil, false
	}
	return msg[off:][:n], true
}

// putField writes such a descriptor.
func putField(b []byte, n, off int) {
	binary.LittleEndian.PutUint16(b, uint16(n))
	binary.LittleEndian.PutUint16(b[2:], uint16(n))
	binary.LittleEndian.PutUint32(b[4:], uint32(off))
}

// name is a field in UTF-16.
func name(msg []byte, at int) (string, bool) {
	b, ok := field(msg, at)
	if !ok || len(b)%2 != 0 {
		return "", false
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u)), true
}

func utf16LE(s string) []byte {
	u := utf16.Encode([]rune(s))
	b := make([]byte, 0, 2*len(u))
	for _, c := range u {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}
