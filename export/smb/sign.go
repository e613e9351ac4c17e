package smb

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"sync"

	"ramserver/export/smb/wire"
)

// signer makes and checks the signatures of a session, MS-SMB2 section 3.1.4.1.
type signer struct {
	mu    sync.Mutex
	hmac  hash.Hash         // (mu) of dialects before 3.0, and where it was agreed
	cmac  *cmac             // (mu) of 3.0 and above
	gmac  cipher.AEAD       // (mu) where it was agreed, in 3.1.1
	nonce [12]byte          // (mu) of gmac
	buf   [sha256.Size]byte // (mu)
}

// newSigner makes a signer of a key of 16 bytes.
func newSigner(algorithm wire.SigningAlgorithm, key []byte) (*signer, error) {
	s := new(signer)
	switch algorithm {
	case wire.SigningHMACSHA256:
		s.hmac = hmac.New(sha256.New, key)
		return s, nil
	case wire.SigningAESCMAC:
		var err error
		s.cmac, err = newCMAC(key)
		return s, err
	}
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s.gmac, err = cipher.NewGCM(b)
	return s, err
}

// Where the signature is in a header.
const (
	signatureAt   = 48
	signatureSize = 16
)

// What is told in the nonce of AES-GMAC besides the message's id.
const (
	nonceReply  = 1 << 0
	nonceCancel = 1 << 1
)

// sign signs a message: its header has the flag that says so already.
func (s *signer) sign(msg []byte) {
	sum := s.sum(msg, nonceReply)
	copy(msg[signatureAt:], sum[:])
}

// verify checks the signature of a request, which it clears.
func (s *signer) verify(msg []byte, command wire.Command) bool {
	var got [signatureSize]byte
	copy(got[:], msg[signatureAt:])
	clear(msg[signatureAt:][:signatureSize])
	kind := uint32(0)
	if command == wire.CommandCancel {
		kind = nonceCancel
	}
	want := s.sum(msg, kind)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// sum is the signature of a message whose signature is zero.
func (s *signer) sum(msg []byte, kind uint32) [signatureSize]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gmac != nil:
		copy(s.nonce[:], msg[24:32]) // MessageId
		binary.LittleEndian.PutUint32(s.nonce[8:], kind)
		s.gmac.Seal(s.buf[:0], s.nonce[:], nil, msg)
	case s.cmac != nil:
		return s.cmac.sum(msg)
	default:
		s.hmac.Reset()
		s.hmac.Write(msg)
		s.hmac.Sum(s.buf[:0])
	}
	return [signatureSize]byte(s.buf[:])
}
