package smb

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"ramserver/export/smb/wire"
)

// A sealed frame has a header of its own, MS-SMB2 section 2.2.41, and behind it
// the encrypted messages:
//
//	protocol   4   0xFD 'S' 'M' 'B'
//	signature 16   the cipher's tag
//	nonce     16 ]
//	size       4 ] bytes of the messages        authenticated with them
//	reserved   2 ]
//	flags      2 ] 1: encrypted
//	session    8 ]
const (
	sealedSize  = 52
	sealedNonce = 20
	tagSize     = 16
)

// sealer encrypts and decrypts the frames of a session. Its key for what the
// server sends is used by no other, so a number that goes up is a good nonce.
type sealer struct {
	in, out cipher.AEAD
	nonce   atomic.Uint64 // last one used
}

func newSealer(c wire.Cipher, k *keys) (*sealer, error) {
	in, err := newAEAD(c, k.toServer)
	if err != nil {
		return nil, err
	}
	out, err := newAEAD(c, k.toClient)
	return &sealer{in: in, out: out}, err
}

func newAEAD(c wire.Cipher, key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	switch c {
	case wire.CipherAES128CCM, wire.CipherAES256CCM:
		return newCCM(b), nil
	case wire.CipherAES128GCM, wire.CipherAES256GCM:
		return cipher.NewGCM(b)
	}
	return nil, fmt.Errorf("unknown cipher %d", c)
}

// sealedSession is the session whose keys a sealed frame is encrypted with.
func sealedSession(frame []byte) uint64 { return binary.LittleEndian.Uint64(frame[44:]) }

// open decrypts a frame in place and returns its messages. The tag is put
// behind them for that, so the frame needs room for it, whose bytes are there
// again afterwards.
func (s *sealer) open(frame []byte) ([]byte, error) {
	n := len(frame) - sealedSize
	if n <= 0 || int64(binary.LittleEndian.Uint32(frame[36:])) != int64(n) || binary.LittleEndian.Uint16(frame[42:]) != 1 {
		return nil, errFrame
	}
	var kept [tagSize]byte
	behind := frame[len(frame):][:tagSize]
	copy(kept[:], behind)
	copy(behind, frame[4:])
	body := frame[sealedSize : len(frame)+tagSize]
	plain, err := s.in.Open(body[:0], frame[sealedNonce:][:s.in.NonceSize()], body, frame[sealedNonce:sealedSize])
	copy(behind, kept[:])
	return plain, err
}

// seal encrypts what is in b from at on: room for the header, and messages. It
// returns b, which may have moved.
func (s *sealer) seal(b []byte, at int, session uint64) []byte {
	frame := b[at:]
	n := len(frame) - sealedSize
	copy(frame, "\xfdSMB")
	clear(frame[4:sealedSize])
	binary.LittleEndian.PutUint64(frame[sealedNonce:], s.nonce.Add(1))
	binary.LittleEndian.PutUint32(frame[36:], uint32(n))
	binary.LittleEndian.PutUint16(frame[42:], 1)
	binary.LittleEndian.PutUint64(frame[44:], session)
	b = s.out.Seal(b[:at+sealedSize], frame[sealedNonce:][:s.out.NonceSize()], frame[sealedSize:], frame[sealedNonce:sealedSize])
	copy(b[at+4:], b[len(b)-tagSize:])
	return b[:len(b)-tagSize]
}

// isSealed tells whether a frame is encrypted.
func isSealed(frame []byte) bool {
	return len(frame) >= sealedSize && bytes.HasPrefix(frame, []byte("\xfdSMB"))
}
