package smbtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"strings"

	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/wire"
)

// Flags of the messages: Unicode, NTLM, extended session security, target
// information, version, 128 bits; MS-NLMP section 2.2.2.5.
const ntlmFlags = 1 | 1<<9 | 1<<19 | 1<<23 | 1<<25 | 1<<29

// Hello is the first message of NTLMSSP, MS-NLMP section 2.2.1.1.
func Hello() []byte {
	b := make([]byte, 32)
	copy(b, "NTLMSSP\x00\x01")
	binary.LittleEndian.PutUint32(b[12:], ntlmFlags)
	return b
}

// Answer is the one that answers the server's challenge by NTLMv2, and the key that
// both have then; MS-NLMP sections 2.2.1.3 and 3.3.2. Without a name it is nobody's.
func Answer(challenge []byte, user, password string) (token, key []byte, err error) {
	le := binary.LittleEndian
	if len(challenge) < 48 || !bytes.HasPrefix(challenge, []byte("NTLMSSP\x00\x02")) {
		return nil, nil, errors.New("smb: not a challenge of NTLMSSP")
	}
	at, n := int64(le.Uint32(challenge[44:])), int64(le.Uint16(challenge[40:]))
	if at+n > int64(len(challenge)) {
		return nil, nil, errors.New("smb: the challenge is cut short")
	}
	utf := func(s string) []byte { return wire.AppendUTF16(nil, s) }
	sum := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(md5.New, key)
		h.Write(bytes.Join(parts, nil))
		return h.Sum(nil)
	}
	blob := append([]byte("\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00clientch\x00\x00\x00\x00"), challenge[at:at+n]...)
	hash := ntlm.HashPassword(password)
	response := sum(hash[:], utf(strings.ToUpper(user)))
	proof := sum(response, challenge[24:32], blob)
	token = make([]byte, 72)
	copy(token, "NTLMSSP\x00\x03")
	if user != "" {
		for _, field := range []struct {
			at    int
			value []byte
		}{{20, append(bytes.Clone(proof), blob...)}, {36, utf(user)}} {
			le.PutUint16(token[field.at:], uint16(len(field.value)))
			le.PutUint32(token[field.at+4:], uint32(len(token)))
			token = append(token, field.value...)
		}
	}
	le.PutUint32(token[60:], ntlmFlags)
	return token, sum(response, proof), nil
}
