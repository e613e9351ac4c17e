package smb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"ramserver/export/smb/wire"
)

// derive is the key derivation of MS-SMB2 section 3.1.4.2: SP800-108 in counter
// mode with HMAC-SHA256. The result has n bytes, at most 32. The label and the
// context have their final zero byte.
func derive(key []byte, label string, context []byte, n int) []byte {
	h := hmac.New(sha256.New, key)
	var word [4]byte
	binary.BigEndian.PutUint32(word[:], 1)
	h.Write(word[:])
	h.Write([]byte(label))
	h.Write([]byte{0})
	h.Write(context)
	binary.BigEndian.PutUint32(word[:], uint32(n*8))
	h.Write(word[:])
	return h.Sum(nil)[:n]
}

// keys are a session's keys, MS-SMB2 section 3.3.5.5.3.
type keys struct {
	signing, application []byte
	toServer, toClient   []byte // of encryption, as they are used by the server
}

// deriveKeys makes the keys of a session from its session key, of 16 bytes,
// with which the full key of 32-byte ciphers is the same here: NTLM has no
// longer one. hash is the session's preauthentication hash, of 3.1.1.
func deriveKeys(dialect wire.Dialect, cipher wire.Cipher, session []byte, hash []byte) keys {
	if dialect < wire.Dialect300 {
		return keys{signing: session, application: session}
	}
	n := 16
	if cipher == wire.CipherAES256CCM || cipher == wire.CipherAES256GCM {
		n = 32
	}
	if dialect < wire.Dialect311 {
		return keys{
			signing:     derive(session, "SMB2AESCMAC\x00", []byte("SmbSign\x00"), 16),
			application: derive(session, "SMB2APP\x00", []byte("SmbRpc\x00"), 16),
			toServer:    derive(session, "SMB2AESCCM\x00", []byte("ServerIn \x00"), 16),
			toClient:    derive(session, "SMB2AESCCM\x00", []byte("ServerOut\x00"), 16),
		}
	}
	return keys{
		signing:     derive(session, "SMBSigningKey\x00", hash, 16),
		application: derive(session, "SMBAppKey\x00", hash, 16),
		toServer:    derive(session, "SMBC2SCipherKey\x00", hash, n),
		toClient:    derive(session, "SMBS2CCipherKey\x00", hash, n),
	}
}
