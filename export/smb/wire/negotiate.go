package wire

import (
	"encoding/binary"
	"time"
)

// Dialect is a version of the protocol.
type Dialect uint16

// Dialects.
const (
	Dialect202  Dialect = 0x0202
	Dialect210  Dialect = 0x0210
	DialectWild Dialect = 0x02FF // in the answer to an SMB1 client: one of the above 2.0.2
	Dialect300  Dialect = 0x0300
	Dialect302  Dialect = 0x0302
	Dialect311  Dialect = 0x0311
)

// Capabilities, MS-SMB2 section 2.2.3.
const (
	CapLargeMTU   = 0x04
	CapEncryption = 0x40
)

// Security modes.
const (
	SigningEnabled  = 1
	SigningRequired = 2
)

// Types of negotiate contexts, MS-SMB2 section 2.2.3.1.
const (
	ContextPreauth    = 1
	ContextEncryption = 2
	ContextSigning    = 8
)

// HashSHA512 is the preauthentication hash.
const HashSHA512 uint16 = 1

// Cipher is an encryption algorithm.
type Cipher uint16

// Ciphers.
const (
	CipherAES128CCM Cipher = 1
	CipherAES128GCM Cipher = 2
	CipherAES256CCM Cipher = 3
	CipherAES256GCM Cipher = 4
)

// SigningAlgorithm is how messages are signed.
type SigningAlgorithm uint16

// Signing algorithms.
const (
	SigningHMACSHA256 SigningAlgorithm = 0
	SigningAESCMAC    SigningAlgorithm = 1
	SigningAESGMAC    SigningAlgorithm = 2
)

// NegotiateContext is one of the contexts of dialect 3.1.1.
type NegotiateContext struct {
	Type uint16
	Data []byte
}

// IDs are the ids that a context of algorithms lists; false if it is malformed, or
// lists none.
func (x *NegotiateContext) IDs() ([]uint16, bool) {
	head := 2
	if x.Type == ContextPreauth {
		head = 4
	}
	if len(x.Data) < head {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint16(x.Data))
	if n == 0 || len(x.Data)-head < 2*n {
		return nil, false
	}
	ids := make([]uint16, n)
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint16(x.Data[head+2*i:])
	}
	return ids, true
}

// NegotiateRequest is MS-SMB2 section 2.2.3.
type NegotiateRequest struct {
	SecurityMode uint16
	Capabilities uint32
	ClientGUID   [16]byte
	Dialects     []Dialect
	Contexts     []NegotiateContext
}

const maxNegotiate = 64 // dialects, and contexts

// Decode decodes the request in msg.
func (q *NegotiateRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	count := int(r.Uint16())
	q.SecurityMode = r.Uint16()
	r.Skip(2)
	q.Capabilities = r.Uint32()
	copy(q.ClientGUID[:], r.Bytes(16))
	off, contexts := int(r.Uint32()), int(r.Uint16())
	r.Skip(2)
	if count > maxNegotiate || contexts > maxNegotiate {
		return false
	}
	has311 := false
	for range count {
		d := Dialect(r.Uint16())
		q.Dialects = append(q.Dialects, d)
		has311 = has311 || d == Dialect311
	}
	if !has311 || !r.OK() {
		return r.OK()
	}
	for i := range contexts {
		if off < r.at || off > len(msg) || i > 0 && off%8 != 0 {
			return false
		}
		r.at = off
		x := NegotiateContext{Type: r.Uint16()}
		n := int(r.Uint16())
		r.Skip(4)
		x.Data = r.Bytes(n)
		q.Contexts = append(q.Contexts, x)
		off = (r.at + 7) &^ 7
	}
	return r.OK()
}

// NegotiateReply is MS-SMB2 section 2.2.4.
type NegotiateReply struct {
	SecurityMode uint16
	Dialect      Dialect
	ServerGUID   [16]byte
	Capabilities uint32
	MaxIO        uint32 // of transact, read and write
	SystemTime   time.Time
	Token        []byte
	Contexts     []NegotiateContext
}

// Encode appends the reply.
func (a *NegotiateReply) Encode(w *Writer) {
	w.Uint16(65)
	w.Uint16(a.SecurityMode)
	w.Uint16(uint16(a.Dialect))
	w.Uint16(uint16(len(a.Contexts)))
	w.Bytes(a.ServerGUID[:])
	w.Uint32(a.Capabilities)
	w.Uint32(a.MaxIO)
	w.Uint32(a.MaxIO)
	w.Uint32(a.MaxIO)
	w.Uint64(FileTime(a.SystemTime))
	w.Uint64(0)
	w.Uint16(uint16(HeaderSize + 64))
	w.Uint16(uint16(len(a.Token)))
	at := len(w.B)
	w.Uint32(0)
	w.Bytes(a.Token)
	AppendContexts(w, at, a.Contexts)
}

// AppendContexts appends contexts, and writes where they begin into the 4 bytes at
// the index at.
func AppendContexts(w *Writer, at int, contexts []NegotiateContext) {
	for i, x := range contexts {
		w.Align(8)
		if i == 0 {
			binary.LittleEndian.PutUint32(w.B[at:], uint32(w.Offset()))
		}
		w.Uint16(x.Type)
		w.Uint16(uint16(len(x.Data)))
		w.Uint32(0)
		w.Bytes(x.Data)
	}
}

// epoch is 1970 in units of 100 ns since 1601.
const epoch = 116444736000000000

// FileTime is a time as MS-DTYP section 2.3.3 has it: 100 ns since 1601.
func FileTime(t time.Time) uint64 {
	return uint64(t.Unix()*1e7 + int64(t.Nanosecond())/100 + epoch)
}

// UnixTime is the way back, in seconds since 1970 and nanoseconds.
func UnixTime(t uint64) (sec, nsec int64) {
	const from = epoch / 1e7
	return int64(t/1e7) - from, int64(t%1e7) * 100
}
