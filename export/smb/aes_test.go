package smb

import (
	"bytes"
	"crypto/aes"
	"encoding/hex"
	"testing"
)

// RFC 4493 section 4.
func TestCMAC(t *testing.T) {
	c, err := newCMAC(unhex("2b7e151628aed2a6abf7158809cf4f3c"))
	if err != nil {
		t.Fatal(err)
	}
	msg := unhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
	for _, tt := range []struct {
		n    int
		want string
	}{
		{0, "bb1d6929e95937287fa37d129b756746"},
		{16, "070a16b46b4d4144f79bdd9dd04a287c"},
		{40, "dfa66747de9ae63030ca32611497c827"},
		{64, "51f0bebf7e3b9d92fc49741779363cfe"},
	} {
		want := unhex(tt.want)
		// However the message is divided.
		for i := 0; i <= tt.n; i++ {
			if got := c.sum(msg[:i], msg[i:tt.n]); !bytes.Equal(got[:], want) {
				t.Errorf("%d bytes in two parts at %d: %x, want %x", tt.n, i, got, want)
			}
		}
	}
}

// RFC 3610's construction with L 4, M 16, which no published vectors have, as
// openssl's AES-128-CCM does it.
func TestCCM(t *testing.T) {
	b, err := aes.NewCipher(unhex("404142434445464748494a4b4c4d4e4f"))
	if err != nil {
		t.Fatal(err)
	}
	c := newCCM(b)
	nonce := unhex("101112131415161718191a")
	data := unhex("000102030405060708090a0b0c0d0e0f10111213")
	vectors := map[int]string{
		0:  "fdcea0969542faad942449da4f16a85d",
		24: "f1f4ae3f079a7a6fd4ceb4a422f09f060274bf08f9738cf836118ce7d310f59559bea56ca32c930a",
	}
	for n := range 70 {
		plain := bytes.Repeat([]byte{7}, n)
		sealed := c.Seal(nil, nonce, plain, data)
		if want, ok := vectors[n]; ok && hex.EncodeToString(sealed) != want {
			t.Errorf("%d bytes: %x, want %s", n, sealed, want)
		}
		got, err := c.Open(nil, nonce, sealed, data)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d bytes: %x, %v", n, got, err)
		}
		for i := range sealed {
			sealed[i] ^= 1
			if _, err := c.Open(nil, nonce, sealed, data); err == nil {
				t.Fatalf("%d bytes: byte %d was changed, and nobody saw it", n, i)
			}
			sealed[i] ^= 1
		}
	}
}
