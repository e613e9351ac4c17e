package ntlm

import (
	"bytes"
	"crypto/rc4"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// The common values of MS-NLMP section 4.2.1: User, Domain, Password, and a
// random session key of 0x55.
const (
	vectorHash      = "a4f49c406510bdcab6824ee7c30fd852"
	vectorChallenge = "0123456789abcdef"
	vectorKey       = "55555555555555555555555555555555"
	vectorProof     = "68cd0ab851e51c96aabc927bebef6a1c"

	// Section 4.2.4.3, AUTHENTICATE_MESSAGE.
	vectorAuthenticate = "4e544c4d5353500003000000180018006c00000054005400840000000c000c00" +
		"480000000800080054000000100010005c00000010001000d8000000358280e2" +
		"0501280a0000000f44006f006d00610069006e00550073006500720043004f00" +
		"4d005000550054004500520086c35097ac9cec102554764a57cccc19aaaaaaaa" +
		"aaaaaaaa68cd0ab851e51c96aabc927bebef6a1c010100000000000000000000" +
		"00000000aaaaaaaaaaaaaaaa0000000002000c0044006f006d00610069006e00" +
		"01000c005300650072007600650072000000000000000000c5dad2544fc97990" +
		"94ce1ce90bc9d03e"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func lookup(user string) (Hash, bool) {
	if strings.EqualFold(user, "user") {
		return HashPassword("Password"), true
	}
	return Hash{}, false
}

// Section 4.2.2.1.2.
func TestHash(t *testing.T) {
	if h := HashPassword("Password"); hex.EncodeToString(h[:]) != vectorHash {
		t.Errorf("%x, want %s", h, vectorHash)
	}
}

// asked is an exchange that has asked the question of the vectors.
func asked(t testing.TB) *auth {
	a := &auth{s: &Server{Name: "Server", Lookup: lookup}}
	if _, err := a.ask(negotiateMessage(^uint32(0))); err != nil {
		t.Fatal(err)
	}
	copy(a.challenge[:], unhex(t, vectorChallenge))
	return a
}

func negotiateMessage(flags uint32) []byte {
	b := make([]byte, 32)
	copy(b, signature)
	binary.LittleEndian.PutUint32(b[8:], typeNegotiate)
	binary.LittleEndian.PutUint32(b[12:], flags)
	return b
}

// Sections 4.2.4.1 and 4.2.4.2: the whole message is right only if the response
// key, the proof and the key are.
func TestVector(t *testing.T) {
	a := asked(t)
	who, err := a.verify(unhex(t, vectorAuthenticate))
	if err != nil {
		t.Fatal(err)
	}
	if who.User != "User" || who.Domain != "Domain" || who.Workstation != "COMPUTER" || hex.EncodeToString(who.Key[:]) != vectorKey {
		t.Errorf("%+v", who)
	}
}

// Section 4.2.4.4, GSS_WrapEx of "Plaintext": its signature is that of a message
// behind one of 18 bytes that was sealed with the same stream.
func TestSignature(t *testing.T) {
	a := asked(t)
	who, err := a.verify(unhex(t, vectorAuthenticate))
	if err != nil {
		t.Fatal(err)
	}
	c, err := rc4.NewCipher(unhex(t, "59f600973cc4960a25480a7c196e4c58"))
	if err != nil {
		t.Fatal(err)
	}
	text := utf16LE("Plaintext")
	sealed := bytes.Clone(text)
	c.XORKeyStream(sealed, sealed)
	if want := "54e50165bf1936dc996020c1811b0f06fb5f"; hex.EncodeToString(sealed) != want {
		t.Fatalf("sealed: %x, want %s", sealed, want)
	}
	// Take the stream off both.
	at := func(sig []byte, skip int) []byte {
		c, _ := rc4.NewCipher(unhex(t, "59f600973cc4960a25480a7c196e4c58"))
		c.XORKeyStream(make([]byte, skip), make([]byte, skip))
		sum := make([]byte, 8)
		c.XORKeyStream(sum, sig[4:12])
		return sum
	}
	got := a.sign(who, "client-to-server", text)
	want := unhex(t, "010000007fb38ec5c55d497600000000")
	if !bytes.Equal(at(got, 0), at(want, len(text))) || !bytes.Equal(got[:4], want[:4]) || !bytes.Equal(got[12:], want[12:]) {
		t.Errorf("%x is not %x", got, want)
	}
}

// client makes the messages of a client.
type client struct {
	user, domain, password string
	negotiate, question    []byte
	sums                   bool // send an integrity code
	announce               bool // say so
	spoil                  int  // change that byte of the message, if it is not 0
	flags                  uint32
	key                    [16]byte
}

func (c *client) authenticate(t testing.TB) []byte {
	t.Helper()
	q := c.question
	info, ok := field(q, 40)
	if !ok || string(q[:8]) != signature || q[8] != typeChallenge {
		t.Fatalf("not a challenge: %x", q)
	}
	info = bytes.Clone(info[:len(info)-4])
	if c.announce {
		info = append(info, avFlags, 0, 4, 0, 2, 0, 0, 0)
	}
	info = append(info, 0, 0, 0, 0)
	blob := append(append([]byte{1, 1, 0, 0, 0, 0, 0, 0}, make([]byte, 8)...), "abcdefgh\x00\x00\x00\x00"...)
	blob = append(append(blob, info...), 0, 0, 0, 0)
	hash := HashPassword(c.password)
	key := mac(hash[:], utf16LE(strings.ToUpper(c.user)+c.domain))
	proof := mac(key, q[24:32], blob)
	exchange, err := rc4.NewCipher(mac(key, proof))
	if err != nil {
		t.Fatal(err)
	}
	copy(c.key[:], "sixteen bytes key")
	sealed := make([]byte, 16)
	exchange.XORKeyStream(sealed, c.key[:])
	b := make([]byte, 88)
	copy(b, signature)
	b[8] = typeAuthenticate
	put := func(at int, v []byte) {
		putField(b[at:], len(v), len(b))
		b = append(b, v...)
	}
	put(12, nil)
	put(20, append(proof, blob...))
	put(28, utf16LE(c.domain))
	put(36, utf16LE(c.user))
	put(44, utf16LE("STATION"))
	put(52, sealed)
	binary.LittleEndian.PutUint32(b[60:], c.flags)
	if c.sums {
		copy(b[72:], mac(c.key[:], c.negotiate, q, b))
	}
	if c.spoil > 0 {
		b[c.spoil] ^= 1
	}
	return b
}

const clientFlags = flagUnicode | flagSign | flagSeal | flagNTLM | flagExtended | flagTargetInfo | flagVersion | flag128 | flagKeyExchange

func TestLogon(t *testing.T) {
	good := client{user: "user", domain: "ANY", password: "Password", sums: true, announce: true, flags: clientFlags}
	for _, tt := range []struct {
		name string
		with func(*client)
		want error
	}{
		{"right", func(*client) {}, nil},
		{"user in capitals", func(c *client) { c.user = "USER" }, nil},
		{"integrity code not announced", func(c *client) { c.announce, c.sums = false, false }, nil},
		{"integrity code missing", func(c *client) { c.sums = false }, ErrTampered},
		{"integrity code changed", func(c *client) { c.spoil = 72 }, ErrTampered},
		{"version changed", func(c *client) { c.spoil = 64 }, ErrTampered},
		{"signing removed from the flags", func(c *client) { c.spoil = 60 }, ErrWeak},
		{"wrong password", func(c *client) { c.password = "password" }, ErrLogon},
		{"no password", func(c *client) { c.password = "" }, ErrLogon},
		{"unknown user", func(c *client) { c.user = "other" }, ErrLogon},
		{"guest", func(c *client) { c.user, c.password = "guest", "" }, ErrLogon},
		{"no user", func(c *client) { c.user = "" }, ErrLogon},
		{"no Unicode", func(c *client) { c.flags &^= flagUnicode }, ErrWeak},
	} {
		for _, wrapped := range []bool{false, true} {
			c := good
			tt.with(&c)
			n := (&Server{Name: "SERVER", Lookup: lookup}).Begin()
			c.negotiate = negotiateMessage(clientFlags)
			var mechs []byte
			wrap := func(msg []byte) []byte { return msg }
			unwrap := wrap
			if wrapped {
				mechs = Hint()[len(Hint())-14:] // the list of one
				first := true
				wrap = func(msg []byte) []byte {
					if first {
						first = false
						return tokenInit(mechs, msg)
					}
					return response(acceptIncomplete, false, msg, (&auth{flags: clientFlags}).sign(&Identity{Key: c.key}, "client-to-server", mechs))
				}
				unwrap = func(b []byte) []byte { return b[bytes.Index(b, []byte(signature)):] }
			}
			reply, who, err := n.Step(wrap(c.negotiate))
			if err != nil || who != nil {
				t.Fatalf("%s: first step: %v, %v", tt.name, who, err)
			}
			c.question = unwrap(reply)
			msg := c.authenticate(t)
			reply, who, err = n.Step(wrap(msg))
			if !errors.Is(err, tt.want) || (who == nil) != (tt.want != nil) {
				t.Errorf("%s, wrapped %v: %v, want %v", tt.name, wrapped, err, tt.want)
				continue
			}
			if who != nil && (who.Key != c.key || !strings.EqualFold(who.User, "user") || wrapped && !bytes.Contains(reply, (&auth{flags: clientFlags}).sign(who, "server-to-client", mechs))) {
				t.Errorf("%s, wrapped %v: %+v, reply %x", tt.name, wrapped, who, reply)
			}
			if _, who, err := n.Step(wrap(msg)); who != nil || err == nil {
				t.Errorf("%s, wrapped %v: one more message was taken", tt.name, wrapped)
			}
		}
	}
}

// tokenInit is negTokenInit with a list of mechanisms and a token for the first.
func tokenInit(mechs, token []byte) []byte {
	short := func(tag byte, b []byte) []byte { return append([]byte{tag, byte(len(b))}, b...) }
	body := [][]byte{short(0xa0, mechs)}
	if token != nil {
		body = append(body, short(0xa2, short(0x04, token)))
	}
	init := short(0xa0, short(0x30, bytes.Join(body, nil)))
	return short(0x60, append(append([]byte(nil), Hint()[2:10]...), init...))
}

// Without a name and a response somebody wants to be nobody.
func TestAnonymous(t *testing.T) {
	n := (&Server{Name: "SERVER", Lookup: lookup}).Begin()
	if _, _, err := n.Step(negotiateMessage(clientFlags)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 88)
	copy(b, signature)
	b[8] = typeAuthenticate
	binary.LittleEndian.PutUint32(b[60:], clientFlags)
	if _, _, err := n.Step(b); err != ErrAnon {
		t.Errorf("%v, want %v", err, ErrAnon)
	}
}

// Messages in an order that is none.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		msgs [][]byte
		want error
	}{
		{"nothing", [][]byte{nil}, ErrMessage},
		{"authenticate first", [][]byte{unhex(t, vectorAuthenticate)}, ErrOrder},
		{"negotiate twice", [][]byte{negotiateMessage(clientFlags), negotiateMessage(clientFlags)}, ErrOrder},
		{"too large", [][]byte{append(negotiateMessage(clientFlags), make([]byte, MaxToken)...)}, ErrMessage},
		{"without Unicode", [][]byte{negotiateMessage(clientFlags &^ flagUnicode)}, ErrWeak},
		{"Kerberos alone", [][]byte{tokenInit(unhex(t, "300b06092a864886f712010202"), []byte("x"))}, ErrNoMech},
	} {
		n := (&Server{Name: "SERVER", Lookup: lookup}).Begin()
		var err error
		for _, m := range tt.msgs {
			_, _, err = n.Step(m)
		}
		if err != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// A client whose first choice is another mechanism has to prove that nobody
// changed its list.
func TestSecondChoice(t *testing.T) {
	mechs := unhex(t, "301706092a864886f712010202060a2b06010401823702020a")
	for _, tt := range []struct {
		name string
		code func(key [16]byte) []byte
		want error
	}{
		{"with a code", func(key [16]byte) []byte {
			return (&auth{flags: clientFlags}).sign(&Identity{Key: key}, "client-to-server", mechs)
		}, nil},
		{"without", func([16]byte) []byte { return nil }, ErrTampered},
		{"of another list", func(key [16]byte) []byte {
			return (&auth{flags: clientFlags}).sign(&Identity{Key: key}, "client-to-server", mechs[1:])
		}, ErrTampered},
	} {
		n := (&Server{Name: "SERVER", Lookup: lookup}).Begin()
		reply, who, err := n.Step(tokenInit(mechs, []byte("a Kerberos ticket")))
		if err != nil || who != nil || !bytes.Contains(reply, []byte{0x0a, 1, requestMIC}) {
			t.Fatalf("%x, %v", reply, err)
		}
		c := client{user: "user", password: "Password", sums: true, announce: true, flags: clientFlags, negotiate: negotiateMessage(clientFlags)}
		reply, _, err = n.Step(response(acceptIncomplete, false, c.negotiate, nil))
		if err != nil {
			t.Fatal(err)
		}
		c.question = reply[bytes.Index(reply, []byte(signature)):]
		msg := c.authenticate(t)
		_, who, err = n.Step(response(acceptIncomplete, false, msg, tt.code(c.key)))
		if err != tt.want || (who != nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// FuzzStep sends two tokens; nothing but the right response logs on.
func FuzzStep(f *testing.F) {
	f.Add(negotiateMessage(clientFlags), unhex(f, vectorAuthenticate))
	f.Add(tokenInit(Hint()[len(Hint())-14:], negotiateMessage(clientFlags)), response(acceptIncomplete, false, unhex(f, vectorAuthenticate), make([]byte, 16)))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		n := (&Server{Name: "SERVER", Lookup: lookup}).Begin()
		if _, _, err := n.Step(a); err != nil {
			return
		}
		if _, who, _ := n.Step(b); who != nil {
			t.Errorf("%x logged on as %+v", b, who)
		}
	})
}
