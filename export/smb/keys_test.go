package smb

import (
	"bytes"
	"testing"

	"ramserver/export/smb/wire"
)

// The examples of Microsoft's "SMB 2 and SMB 3 security in Windows 10: the
// anatomy of signing and cryptographic keys", whose keys are the client's.
func TestKeys(t *testing.T) {
	hash := unhex("0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79" +
		"28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01")
	for _, tt := range []struct {
		name                             string
		dialect                          wire.Dialect
		session                          string
		signing, in, out, ofApplications string
	}{
		{"2.1", wire.Dialect210, "7CD451825D0450D235424E44BA6E78CC",
			"7CD451825D0450D235424E44BA6E78CC", "", "", "7CD451825D0450D235424E44BA6E78CC"},
		{"3.0", wire.Dialect300, "7CD451825D0450D235424E44BA6E78CC",
			"0B7E9C5CAC36C0F6EA9AB275298CEDCE", "FAD27796665B313EBB578F388632B4F7", "B0F0427F7CEB416D1D9DCC0CD4F99447", "BB23A4575AA26C721AF525AF15A87B4F"},
		{"3.1.1", wire.Dialect311, "270E1BA896585EEB7AF3472D3B4C75A7",
			"73FE7A9A77BEF0BDE49C650D8CCB5F76", "629BCBC54422A0F572B97F45989B6073", "E2AF0DCEFAC68DA71A0DFBD0D1350D74", "6D7AD7954E9EC61E907B4D473DC178FF"},
	} {
		k := deriveKeys(tt.dialect, wire.CipherAES128GCM, unhex(tt.session), hash)
		for _, key := range []struct {
			name string
			got  []byte
			want string
		}{{"signing", k.signing, tt.signing}, {"in", k.toServer, tt.in}, {"out", k.toClient, tt.out}, {"applications", k.application, tt.ofApplications}} {
			if !bytes.Equal(key.got, unhex(key.want)) {
				t.Errorf("%s, %s: %x, want %s", tt.name, key.name, key.got, key.want)
			}
		}
	}
	if k := deriveKeys(wire.Dialect311, wire.CipherAES256GCM, unhex("270E1BA896585EEB7AF3472D3B4C75A7"), hash); len(k.toServer) != 32 || len(k.toClient) != 32 || len(k.signing) != 16 {
		t.Errorf("of AES-256: %d, %d, %d bytes", len(k.toServer), len(k.toClient), len(k.signing))
	}
}

// The same example's last reply to SESSION_SETUP.
func TestSign(t *testing.T) {
	msg := unhex("FE534D4240000100000000000100800009000000000000000300000000000000FFFE000000000000" +
		"1900000000100000EBE146DA120BA25FC3376A49DFE31BC10900000048001D00A11B3019A0030A01" +
		"00A3120410010000003B453CDC3524164200000000")
	want := bytes.Clone(msg)
	s, err := newSigner(wire.SigningAESCMAC, unhex("73FE7A9A77BEF0BDE49C650D8CCB5F76"))
	if err != nil {
		t.Fatal(err)
	}
	clear(msg[signatureAt:][:signatureSize])
	s.sign(msg)
	if !bytes.Equal(msg, want) {
		t.Errorf("%x, want %x", msg, want)
	}
}

// A request's signature is not a reply's where the nonce tells them apart.
func TestVerify(t *testing.T) {
	for _, alg := range signings {
		s, err := newSigner(alg, unhex("73FE7A9A77BEF0BDE49C650D8CCB5F76"))
		if err != nil {
			t.Fatal(err)
		}
		msg := make([]byte, 100)
		(&wire.Header{Command: wire.CommandCancel, MessageID: 7}).Encode(msg)
		sign := func(kind uint32) []byte {
			m := bytes.Clone(msg)
			sum := s.sum(m, kind)
			copy(m[signatureAt:], sum[:])
			return m
		}
		if !s.verify(sign(nonceCancel), wire.CommandCancel) || !s.verify(sign(0), wire.CommandEcho) {
			t.Errorf("%v: a good signature is refused", alg)
		}
		if alg == wire.SigningAESGMAC && (s.verify(sign(nonceReply), wire.CommandEcho) || s.verify(sign(0), wire.CommandCancel)) {
			t.Errorf("%v: the nonce does not count", alg)
		}
		for i := range msg {
			m := sign(0)
			if m[i] ^= 1; s.verify(m, wire.CommandEcho) {
				t.Errorf("%v: byte %d was changed, and nobody saw it", alg, i)
			}
		}
	}
}

func TestSeal(t *testing.T) {
	for _, c := range ciphers {
		k := deriveKeys(wire.Dialect311, c, make([]byte, 16), make([]byte, 64))
		server, err := newSealer(c, &k)
		if err != nil {
			t.Fatal(err)
		}
		k.toServer, k.toClient = k.toClient, k.toServer
		client, err := newSealer(c, &k)
		if err != nil {
			t.Fatal(err)
		}
		const text, behind = "two messages", "sixteen bytes and more"
		b := client.seal(append(make([]byte, frameSize+sealedSize), text...), frameSize, 99)[frameSize:]
		open := func(change int) (string, error) {
			frame := append(bytes.Clone(b), behind...)
			frame = frame[:len(b)]
			if change >= 0 {
				frame[change] ^= 1
			}
			got, err := server.open(frame)
			if string(frame[:len(b)+len(behind)][len(b):]) != behind {
				t.Fatalf("%v: what is behind the frame is %q", c, frame[len(b):][:len(behind)])
			}
			return string(got), err
		}
		if !isSealed(b) || sealedSession(b) != 99 {
			t.Fatalf("%v: %x", c, b)
		}
		if got, err := open(-1); err != nil || got != text {
			t.Errorf("%v: %q, %v", c, got, err)
		}
		for i := 4; i < len(b); i++ {
			if _, err := open(i); err == nil {
				t.Errorf("%v: byte %d was changed, and nobody saw it", c, i)
			}
		}
	}
}
