package smb

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
)

const blockSize = aes.BlockSize

// cmac is AES-CMAC, RFC 4493. One is for one goroutine at a time.
type cmac struct {
	b      cipher.Block
	k1, k2 [blockSize]byte
}

func newCMAC(key []byte) (*cmac, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	c := &cmac{b: b}
	b.Encrypt(c.k1[:], c.k1[:])
	double(&c.k1)
	c.k2 = c.k1
	double(&c.k2)
	return c, nil
}

// double multiplies by x in GF(2^128).
func double(k *[blockSize]byte) {
	hi, lo := binary.BigEndian.Uint64(k[:]), binary.BigEndian.Uint64(k[8:])
	carry := hi >> 63
	binary.BigEndian.PutUint64(k[:], hi<<1|lo>>63)
	binary.BigEndian.PutUint64(k[8:], lo<<1^carry*0x87)
}

// sum is the code of the parts, one behind the other.
func (c *cmac) sum(parts ...[]byte) (x [blockSize]byte) {
	var last [blockSize]byte
	n := 0 // bytes in last
	for _, p := range parts {
		for len(p) > 0 {
			if n == blockSize {
				// Not the last block, since there is more.
				subtle.XORBytes(x[:], x[:], last[:])
				c.b.Encrypt(x[:], x[:])
				n = 0
			}
			if n == 0 {
				for len(p) > blockSize {
					subtle.XORBytes(x[:], x[:], p[:blockSize])
					c.b.Encrypt(x[:], x[:])
					p = p[blockSize:]
				}
			}
			m := copy(last[n:], p)
			n, p = n+m, p[m:]
		}
	}
	k := &c.k1
	if n < blockSize {
		clear(last[n:])
		last[n] = 0x80
		k = &c.k2
	}
	subtle.XORBytes(x[:], x[:], last[:])
	subtle.XORBytes(x[:], x[:], k[:])
	c.b.Encrypt(x[:], x[:])
	return x
}

// ccm is AES-CCM with nonces of 11 bytes and tags of 16 (RFC 3610: L 4, M 16),
// as SMB uses it.
type ccm struct{ b cipher.Block }

const ccmNonce = 11

var errTampered = errors.New("message was changed on its way")

func newCCM(b cipher.Block) cipher.AEAD { return ccm{b} }

func (c ccm) NonceSize() int { return ccmNonce }
func (c ccm) Overhead() int  { return blockSize }

func (c ccm) Seal(dst, nonce, plain, data []byte) []byte {
	tag := c.tag(nonce, plain, data)
	at := len(dst)
	dst = append(dst, plain...)
	s0 := c.stream(nonce, dst[at:])
	subtle.XORBytes(tag[:], tag[:], s0[:])
	return append(dst, tag[:]...)
}

func (c ccm) Open(dst, nonce, sealed, data []byte) ([]byte, error) {
	if len(sealed) < blockSize {
		return nil, errTampered
	}
	body, got := sealed[:len(sealed)-blockSize], sealed[len(sealed)-blockSize:]
	var want [blockSize]byte
	copy(want[:], got)
	at := len(dst)
	dst = append(dst, body...)
	s0 := c.stream(nonce, dst[at:])
	tag := c.tag(nonce, dst[at:], data)
	subtle.XORBytes(tag[:], tag[:], s0[:])
	if subtle.ConstantTimeCompare(tag[:], want[:]) != 1 {
		clear(dst[at:])
		return nil, errTampered
	}
	return dst, nil
}

// tag authenticates the plain text, before it is masked.
func (c ccm) tag(nonce, plain, data []byte) (x [blockSize]byte) {
	var b [blockSize]byte
	b[0] = (blockSize-2)/2<<3 | 3
	if len(data) > 0 {
		b[0] |= 1 << 6
	}
	copy(b[1:], nonce[:ccmNonce])
	binary.BigEndian.PutUint32(b[12:], uint32(len(plain)))
	c.b.Encrypt(x[:], b[:])
	if len(data) > 0 {
		// The length of the associated data stands in its first two bytes; what
		// SMB has, the rest of a transform header, is short.
		clear(b[:])
		binary.BigEndian.PutUint16(b[:], uint16(len(data)))
		n := copy(b[2:], data)
		subtle.XORBytes(x[:], x[:], b[:])
		c.b.Encrypt(x[:], x[:])
		c.chain(&x, data[n:])
	}
	c.chain(&x, plain)
	return x
}

// chain continues the code over p, filled up with zeroes.
func (c ccm) chain(x *[blockSize]byte, p []byte) {
	for len(p) >= blockSize {
		subtle.XORBytes(x[:], x[:], p[:blockSize])
		c.b.Encrypt(x[:], x[:])
		p = p[blockSize:]
	}
	if len(p) > 0 {
		subtle.XORBytes(x[:], x[:], p)
		c.b.Encrypt(x[:], x[:])
	}
}

// stream encrypts or decrypts p in place, and returns what masks the tag.
func (c ccm) stream(nonce, p []byte) (s0 [blockSize]byte) {
	var ctr [blockSize]byte
	ctr[0] = 3
	copy(ctr[1:], nonce[:ccmNonce])
	s := cipher.NewCTR(c.b, ctr[:])
	s.XORKeyStream(s0[:], s0[:])
	s.XORKeyStream(p, p)
	return s0
}
