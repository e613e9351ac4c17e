package client

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"strings"
	"time"

	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/wire"
)

// negotiate agrees on dialect 3.1.1, AES-GMAC and AES-128-GCM.
func (c *Client) negotiate() error {
	w := c.Begin(wire.CommandNegotiate, 0)
	w.Uint16(36)
	w.Uint16(1) // one dialect
	w.Uint16(wire.SigningEnabled)
	w.Uint16(0)
	w.Uint32(wire.CapLargeMTU | wire.CapEncryption)
	var guid [16]byte
	rand.Read(guid[:])
	w.Bytes(guid[:])
	at := len(w.B)
	w.Uint32(0)
	w.Uint16(3) // contexts
	w.Uint16(0)
	w.Uint16(uint16(wire.Dialect311))
	wire.AppendContexts(w, at, []wire.NegotiateContext{
		{Type: wire.ContextPreauth, Data: append([]byte{1, 0, 16, 0, byte(wire.HashSHA512), 0}, guid[:]...)},
		{Type: wire.ContextEncryption, Data: []byte{1, 0, byte(wire.CipherAES128GCM), 0}},
		{Type: wire.ContextSigning, Data: []byte{1, 0, byte(wire.SigningAESGMAC), 0}},
	})
	c.hash(w.B[frameSize:])
	r, err := c.One()
	if err != nil {
		return err
	}
	if b := r.Body(); len(b) < 64 || wire.Dialect(binary.LittleEndian.Uint16(b[4:])) != wire.Dialect311 {
		return errReply
	}
	c.hash(r.Msg)
	return nil
}

// hash adds a message to the preauthentication hash, MS-SMB2 section 3.1.4.4.
func (c *Client) hash(msg []byte) {
	h := sha512.New()
	h.Write(c.preauth[:])
	h.Write(msg)
	h.Sum(c.preauth[:0])
}

// Flags of NTLM messages, MS-NLMP section 2.2.2.5: Unicode, request target, sign,
// NTLM, always sign, extended session security, target information, 128.
const ntlmFlags = 1 | 1<<2 | 1<<4 | 1<<9 | 1<<15 | 1<<19 | 1<<23 | 1<<29

// logon logs on by bare NTLMSSP with NTLMv2 (MS-NLMP section 3.3.2), and makes the
// session's keys.
func (c *Client) logon(user, password string) error {
	le := binary.LittleEndian
	hello := make([]byte, 32)
	copy(hello, "NTLMSSP\x00\x01")
	le.PutUint32(hello[12:], ntlmFlags)
	r, err := c.setup(hello)
	if err != nil {
		return err
	}
	c.session = r.SessionID
	c.hash(r.Msg)
	challenge, ok := buffer(r.Msg, 4, 6)
	if !ok || len(challenge) < 48 {
		return errReply
	}
	at, n := int(le.Uint32(challenge[44:])), int(le.Uint16(challenge[40:]))
	if at > len(challenge) || n > len(challenge)-at {
		return errReply
	}

	blob := []byte{1, 1, 0, 0, 0, 0, 0, 0}
	blob = le.AppendUint64(blob, wire.FileTime(time.Now()))
	var nonce [8]byte
	rand.Read(nonce[:])
	blob = append(append(blob, nonce[:]...), 0, 0, 0, 0)
	blob = append(append(blob, challenge[at:][:n]...), 0, 0, 0, 0)
	hash := ntlm.HashPassword(password)
	key := mac(hash[:], wire.AppendUTF16(nil, strings.ToUpper(user)))
	proof := mac(key, challenge[24:32], blob)

	auth := make([]byte, 64)
	copy(auth, "NTLMSSP\x00\x03")
	put := func(at int, v []byte) {
		le.PutUint16(auth[at:], uint16(len(v)))
		le.PutUint16(auth[at+2:], uint16(len(v)))
		le.PutUint32(auth[at+4:], uint32(len(auth)))
		auth = append(auth, v...)
	}
	put(12, make([]byte, 24)) // no LM response
	put(20, append(proof, blob...))
	put(28, nil)
	put(36, wire.AppendUTF16(nil, user))
	put(44, wire.AppendUTF16(nil, "CLIENT"))
	put(52, nil)
	le.PutUint32(auth[60:], ntlmFlags)
	if _, err = c.setup(auth); err != nil {
		return err
	}

	session := mac(key, proof)
	if c.signer, err = newGCM(derive(session, "SMBSigningKey\x00", c.preauth[:])); err != nil {
		return err
	}
	if c.in, err = newGCM(derive(session, "SMBC2SCipherKey\x00", c.preauth[:])); err != nil {
		return err
	}
	if c.out, err = newGCM(derive(session, "SMBS2CCipherKey\x00", c.preauth[:])); err != nil {
		return err
	}
	if last := &c.replies[0]; !c.verify(last) {
		return errSignature
	}
	return nil
}

// setup is SESSION_SETUP with one token; its request is added to the hash.
func (c *Client) setup(token []byte) (*Reply, error) {
	w := c.Begin(wire.CommandSessionSetup, 0)
	w.Uint16(25)
	w.Uint8(0)
	w.Uint8(wire.SigningEnabled)
	w.Uint64(0)
	w.Uint16(wire.HeaderSize + 24)
	w.Uint16(uint16(len(token)))
	w.Uint64(0)
	w.Bytes(token)
	c.hash(w.B[frameSize:])
	return c.One()
}

// buffer is the bytes of a message whose offset and length stand in its body, as 16
// bits each.
func buffer(msg []byte, offAt, lenAt int) ([]byte, bool) {
	body := msg[wire.HeaderSize:]
	if len(body) < max(offAt, lenAt)+2 {
		return nil, false
	}
	off, n := int(binary.LittleEndian.Uint16(body[offAt:])), int(binary.LittleEndian.Uint16(body[lenAt:]))
	if off > len(msg) || n > len(msg)-off {
		return nil, false
	}
	return msg[off:][:n], true
}

// mac is HMAC-MD5 over the parts.
func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(md5.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// derive makes a key of 16 bytes, MS-SMB2 section 3.1.4.2.
func derive(key []byte, label string, context []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte{0, 0, 0, 1})
	h.Write([]byte(label))
	h.Write([]byte{0})
	h.Write(context)
	h.Write([]byte{0, 0, 0, 128})
	return h.Sum(nil)[:16]
}

func newGCM(key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

// Where the signature is in a header.
const (
	signatureAt   = 48
	signatureSize = 16
)

// sum is the signature of a message whose signature is zero, MS-SMB2 section
// 3.1.4.1. kind is 1 for what the server sends.
func (c *Client) sum(msg []byte, kind byte) (sum [signatureSize]byte) {
	c.nonce = [12]byte{8: kind}
	copy(c.nonce[:], msg[24:32])
	c.tag = c.signer.Seal(c.tag[:0], c.nonce[:], nil, msg)
	return [signatureSize]byte(c.tag)
}

// verify checks the signature of a reply.
func (c *Client) verify(r *Reply) bool {
	got := [signatureSize]byte(r.Msg[signatureAt:])
	clear(r.Msg[signatureAt:][:signatureSize])
	return r.Flags&wire.FlagSigned != 0 && c.sum(r.Msg, 1) == got
}

// seal encrypts a frame with room for its header, MS-SMB2 section 2.2.41.
func (c *Client) seal(b []byte) []byte {
	head := b[frameSize:][:sealedSize]
	clear(head)
	copy(head, "\xfdSMB")
	c.sealed++
	binary.LittleEndian.PutUint64(head[20:], c.sealed)
	binary.LittleEndian.PutUint32(head[36:], uint32(len(b)-frameSize-sealedSize))
	head[42] = 1
	binary.LittleEndian.PutUint64(head[44:], c.session)
	b = c.in.Seal(b[:frameSize+sealedSize], head[20:32], b[frameSize+sealedSize:], head[20:])
	n := len(b) - tagSize
	copy(b[frameSize+4:], b[n:])
	return b[:n]
}

// open decrypts a frame in place. Its tag is put behind it for that, where there is
// room, and what stands there is put back.
func (c *Client) open(b []byte) ([]byte, error) {
	if len(b) <= sealedSize || c.out == nil {
		return nil, errReply
	}
	all := b[:len(b)+tagSize]
	behind := all[len(b):]
	kept := [tagSize]byte(behind)
	copy(behind, b[4:])
	text, err := c.out.Open(all[sealedSize:sealedSize], b[20:32], all[sealedSize:], b[20:sealedSize])
	copy(behind, kept[:])
	return text, err
}
