package smb

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
)

// Every dialect, signed by every algorithm and encrypted by every cipher.
func TestDialects(t *testing.T) {
	_, addr := newServer(t, nil)
	type how struct {
		dialect wire.Dialect
		signing wire.SigningAlgorithm
		cipher  wire.Cipher
	}
	hows := []how{{wire.Dialect202, 0, 0}, {wire.Dialect210, 0, 0}, {wire.Dialect300, 0, 0}, {wire.Dialect302, 0, wire.CipherAES128CCM}, {wire.Dialect311, wire.SigningAESCMAC, 0}}
	for _, s := range signings {
		hows = append(hows, how{wire.Dialect311, s, 0})
	}
	for _, x := range ciphers {
		hows = append(hows, how{wire.Dialect311, wire.SigningAESGMAC, x})
	}
	for _, h := range hows {
		c := user(t, addr, func(c *client) {
			c.dialects, c.signing, c.cipher = []wire.Dialect{h.dialect}, h.signing, h.cipher
			if h.cipher == 0 {
				c.caps &^= wire.CapEncryption
			}
		})
		if c.dialect != h.dialect {
			t.Fatalf("%+v: dialect %#x", h, c.dialect)
		}
		c.seal = h.cipher != 0
		r := c.do(wire.CommandEcho, echoBody)
		if r.Status != wire.StatusOK || r.seal != c.seal || (r.Flags&wire.FlagSigned != 0) == c.seal {
			t.Errorf("%+v: %+v", h, r)
		}
		if r := c.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusOK {
			t.Errorf("%+v: disconnect: %v", h, r.Status)
		}
		if r := c.do(wire.CommandLogoff, echoBody); r.Status != wire.StatusOK {
			t.Errorf("%+v: logoff: %v", h, r.Status)
		}
		c.sign, c.seal = false, false
		if r := c.connect("share"); r.Status != wire.StatusUserSessionDeleted {
			t.Errorf("%+v: after logoff: %v", h, r.Status)
		}
	}
}

func TestNegotiate(t *testing.T) {
	_, addr := newServer(t, nil)
	for _, tt := range []struct {
		name   string
		with   func(*client)
		body   func([]byte) []byte
		status wire.Status
	}{
		{"all", func(c *client) {
			c.dialects = []wire.Dialect{wire.Dialect202, wire.Dialect210, wire.Dialect300, wire.Dialect302, wire.Dialect311}
		}, nil, wire.StatusOK},
		{"none", func(*client) {}, func(b []byte) []byte { b[2] = 0; return b }, wire.StatusInvalidParameter},
		{"one of tomorrow", func(c *client) { c.dialects = []wire.Dialect{0x0400} }, nil, wire.StatusNotSupported},
		{"no preauthentication", func(*client) {}, func(b []byte) []byte { b[bytes.Index(b, []byte("\x01\x00\x0a\x00"))] = 99; return b }, wire.StatusInvalidParameter},
		{"another hash", func(*client) {}, func(b []byte) []byte { b[bytes.Index(b, []byte("salt"))-2] = 9; return b }, wire.StatusNoPreauthOverlap},
		{"two of a kind", func(*client) {}, func(b []byte) []byte { b[bytes.Index(b, []byte("\x08\x00\x04\x00"))] = 1; return b }, wire.StatusInvalidParameter},
		{"contexts behind the end", func(*client) {}, func(b []byte) []byte { return b[:len(b)-1] }, wire.StatusInvalidParameter},
		{"a cipher of tomorrow", func(c *client) { c.cipher = 77 }, nil, wire.StatusOK},
	} {
		c := dial(t, addr)
		tt.with(c)
		body := c.negotiateBody()
		if tt.body != nil {
			body = tt.body(body)
		}
		if r := c.do(wire.CommandNegotiate, body); r.Status != tt.status {
			t.Errorf("%s: %v, want %v", tt.name, r.Status, tt.status)
		}
	}
	c := dial(t, addr)
	c.negotiate()
	c.send(c.message(wire.CommandNegotiate, c.negotiateBody()))
	c.closed()
	c = dial(t, addr) // nothing else comes first
	c.send(c.message(wire.CommandEcho, echoBody))
	c.closed()
}

// A client of SMB 1 that knows SMB 2 goes on with that.
func TestNegotiateUp(t *testing.T) {
	_, addr := newServer(t, nil)
	hello := func(dialects string) []byte {
		b := make([]byte, 32, 64)
		copy(b, "\xffSMB\x72")
		b = append(b, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dialects)))
		return append(b, dialects...)
	}
	c := dial(t, addr)
	c.raw(hello("\x02NT LM 0.12\x00\x02SMB 2.002\x00\x02SMB 2.???\x00"))
	if r := c.one(); r.Status != wire.StatusOK || binary.LittleEndian.Uint16(r.body[4:]) != uint16(wire.DialectWild) || r.Credits == 0 {
		t.Fatalf("%+v", r)
	}
	c.id = 1
	if r := c.negotiate(); r.Status != wire.StatusOK || c.dialect != wire.Dialect311 {
		t.Errorf("%v, dialect %#x", r.Status, c.dialect)
	}
	if r := c.logon("user", "pass", 0); r.Status != wire.StatusOK {
		t.Errorf("logon: %v", r.Status)
	}

	c = dial(t, addr)
	c.raw(hello("\x02NT LM 0.12\x00\x02SMB 2.002\x00"))
	if r := c.one(); r.Status != wire.StatusOK || binary.LittleEndian.Uint16(r.body[4:]) != uint16(wire.Dialect202) {
		t.Fatalf("%+v", r)
	}
	c.id, c.dialect, c.cipher = 1, wire.Dialect202, 0
	if r := c.logon("user", "pass", 0); r.Status != wire.StatusOK {
		t.Errorf("logon: %v", r.Status)
	}

	c = dial(t, addr)
	c.raw(hello("\x02NT LM 0.12\x00"))
	c.closed()
}

// Who may not log on.
func TestLogon(t *testing.T) {
	s, addr := newServer(t, nil)
	for _, tt := range []struct {
		user, password string
		status         wire.Status
	}{
		{"user", "pass", wire.StatusOK},
		{"USER", "pass", wire.StatusOK},
		{"user", "word", wire.StatusLogonFailure},
		{"guest", "", wire.StatusLogonFailure},
		{"", "", wire.StatusLogonFailure},
	} {
		c := dial(t, addr)
		c.negotiate()
		if r := c.logon(tt.user, tt.password, 0); r.Status != tt.status {
			t.Errorf("%q: %v, want %v", tt.user, r.Status, tt.status)
		}
		if tt.status == wire.StatusOK {
			continue
		}
		if r := c.connect("share"); r.Status != wire.StatusUserSessionDeleted {
			t.Errorf("%q: connects: %v", tt.user, r.Status)
		}
	}
	if n := s.Stats().FailedLogons; n != 3 {
		t.Errorf("%d logons failed", n)
	}
}

func TestProtection(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  func(*Config)
		client  func(*client)
		logon   wire.Status
		connect wire.Status // not signed
		signed  wire.Status // then
		sealed  wire.Status // then
	}{
		{"signing required", nil, func(c *client) { c.dialects[0] = wire.Dialect302; c.cipher = wire.CipherAES128CCM }, 0, wire.StatusAccessDenied, 0, 0},
		{"signing enabled", func(c *Config) { c.Signing = Enabled }, func(c *client) { c.dialects[0] = wire.Dialect302; c.cipher = wire.CipherAES128CCM }, 0, 0, 0, 0},
		{"signing required by the client", func(c *Config) { c.Signing = Enabled }, func(c *client) {
			c.dialects[0], c.mode = wire.Dialect302, wire.SigningRequired
			c.cipher = wire.CipherAES128CCM
		}, 0, wire.StatusAccessDenied, 0, 0},
		{"encryption required", func(c *Config) { c.Encryption = Required }, func(c *client) { c.dialects[0] = wire.Dialect302; c.cipher = wire.CipherAES128CCM }, 0, wire.StatusAccessDenied, wire.StatusAccessDenied, 0},
		{"encryption required, and not offered", func(c *Config) { c.Encryption = Required }, func(c *client) { c.cipher = 0 }, wire.StatusAccessDenied, 0, 0, 0},
		{"encryption required, of 2.1", func(c *Config) { c.Encryption = Required }, func(c *client) { c.dialects[0] = wire.Dialect210 }, wire.StatusAccessDenied, 0, 0, 0},
	} {
		_, addr := newServer(t, tt.config)
		c := dial(t, addr)
		tt.client(c)
		c.negotiate()
		r := c.logon("user", "pass", 0)
		if r.Status != tt.logon {
			t.Errorf("%s: logon: %v", tt.name, r.Status)
		}
		if tt.logon != wire.StatusOK {
			continue
		}
		c.sign = false
		if r := c.connect("share"); r.Status != tt.connect {
			t.Errorf("%s: not signed: %v, want %v", tt.name, r.Status, tt.connect)
		}
		c.sign = true
		if r := c.connect("share"); r.Status != tt.signed {
			t.Errorf("%s: signed: %v, want %v", tt.name, r.Status, tt.signed)
		}
		c.seal = true
		if r := c.connect("share"); r.Status != tt.sealed {
			t.Errorf("%s: encrypted: %v, want %v", tt.name, r.Status, tt.sealed)
		}
	}
}

// A client that has said in NEGOTIATE that it signs is held to that, MS-SMB2 section
// 3.3.5.5.3.
func TestShouldSign(t *testing.T) {
	_, addr := newServer(t, func(c *Config) { c.Signing = Enabled })
	c := dial(t, addr)
	c.dialects[0], c.cipher, c.mode = wire.Dialect302, 0, wire.SigningRequired
	c.negotiate()
	c.mode = wire.SigningEnabled
	c.logon("user", "pass", 0)
	c.sign = false
	if r := c.connect("share"); r.Status != wire.StatusAccessDenied {
		t.Errorf("not signed: %v", r.Status)
	}
}

// A share that has to be encrypted, on a server that does not.
func TestEncryptedShare(t *testing.T) {
	_, addr := newServer(t, func(c *Config) { c.Encrypted = []string{"share"} })
	c := user(t, addr, nil)
	if r := c.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusAccessDenied {
		t.Errorf("signed: %v", r.Status)
	}
	c.seal = true
	if r := c.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusOK || !r.seal {
		t.Errorf("encrypted: %v", r.Status)
	}
	c = dial(t, addr)
	c.cipher = 0
	c.negotiate()
	c.logon("user", "pass", 0)
	if r := c.connect("share"); r.Status != wire.StatusAccessDenied {
		t.Errorf("without a cipher: %v", r.Status)
	}
}

// What somebody on the way may do.
func TestTampered(t *testing.T) {
	_, addr := newServer(t, nil)
	t.Run("signed request", func(t *testing.T) {
		c := user(t, addr, nil)
		m := c.message(wire.CommandTreeDisconnect, echoBody, func(h *wire.Header) { h.Flags |= wire.FlagSigned })
		sum := c.signer.sum(m, 0)
		copy(m[signatureAt:], sum[:])
		m[wire.HeaderSize+2] ^= 1
		c.raw(m)
		if r := c.one(); r.Status != wire.StatusAccessDenied {
			t.Errorf("altered: %v", r.Status)
		}
		if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
			t.Errorf("afterwards: %v", r.Status)
		}
	})
	t.Run("replay", func(t *testing.T) {
		c := user(t, addr, nil)
		m := c.message(wire.CommandEcho, echoBody)
		c.send(m)
		c.one()
		c.raw(m)
		c.closed()
	})
	t.Run("encrypted frame", func(t *testing.T) {
		c := user(t, addr, nil)
		b := append(make([]byte, frameSize+sealedSize), c.message(wire.CommandEcho, echoBody)...)
		b = c.sealer.seal(b, frameSize, c.sessionID)[frameSize:]
		b[len(b)-1] ^= 1
		c.raw(b)
		c.closed()
	})
	t.Run("encrypted replay", func(t *testing.T) {
		c := user(t, addr, nil)
		b := append(make([]byte, frameSize+sealedSize), c.message(wire.CommandEcho, echoBody)...)
		b = c.sealer.seal(b, frameSize, c.sessionID)[frameSize:]
		again := bytes.Clone(b)
		c.raw(b)
		c.one()
		c.raw(again)
		c.closed()
	})
	t.Run("signed by another user of the connection", func(t *testing.T) {
		c := user(t, addr, nil)
		first, tree, key := c.sessionID, c.treeID, c.signer
		c.sessionID, c.signer, c.sign = 0, nil, false
		if r := c.logon("other", "word", 0); r.Status != wire.StatusOK {
			t.Fatal(r.Status)
		}
		c.sessionID, c.treeID = first, tree
		c.send(c.message(wire.CommandTreeDisconnect, echoBody))
		c.signer = key // of the session that the reply is of
		if r := c.one(); r.Status != wire.StatusAccessDenied {
			t.Errorf("%v", r.Status)
		}
		if r := c.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusOK {
			t.Errorf("by himself: %v", r.Status)
		}
	})
	t.Run("encrypted for another session", func(t *testing.T) {
		c := user(t, addr, nil)
		c.seal = true
		if r := c.do(wire.CommandTreeDisconnect, echoBody, func(h *wire.Header) { h.SessionID++ }); r.Status != wire.StatusAccessDenied {
			t.Errorf("%v", r.Status)
		}
	})
	t.Run("negotiate", func(t *testing.T) {
		// The client's hash is of what it sent; the server's, of what it got.
		c := dial(t, addr)
		c.negotiate()
		c.hash.preauth[0] ^= 1
		if r := c.logon("user", "pass", 0); r.Status != wire.StatusOK {
			t.Fatal(r.Status)
		}
		if r := c.connect("share"); r.Status != wire.StatusAccessDenied {
			t.Errorf("keys of another hash: %v", r.Status)
		}
	})
	t.Run("unsigned tree connect", func(t *testing.T) {
		_, addr := newServer(t, func(c *Config) { c.Signing = Enabled })
		c := dial(t, addr)
		c.negotiate()
		c.logon("user", "pass", 0)
		c.sign = false
		c.send(c.message(wire.CommandTreeConnect, treeBody(`\\server\share`)))
		c.closed()
	})
}

// The client says again what it said in NEGOTIATE.
func TestValidateNegotiate(t *testing.T) {
	_, addr := newServer(t, nil)
	for _, tt := range []struct {
		name   string
		change func(in []byte)
		ok     bool
	}{
		{"the same", func([]byte) {}, true},
		{"capabilities", func(in []byte) { in[0] ^= 1 }, false},
		{"client", func(in []byte) { in[4] ^= 1 }, false},
		{"mode", func(in []byte) { in[20] ^= 2 }, false},
		{"a better dialect", func(in []byte) { in[22] = 2 }, false},
	} {
		c := user(t, addr, func(c *client) { c.dialects[0], c.cipher = wire.Dialect300, wire.CipherAES128CCM })
		in := binary.LittleEndian.AppendUint32(nil, c.caps)
		in = append(in, "sixteen byte guid"[:16]...)
		in = binary.LittleEndian.AppendUint16(in, c.mode)
		in = append(in, 1, 0, 0x00, 0x03, 0x02, 0x03)
		tt.change(in)
		var w wire.Writer
		w.Uint16(57)
		w.Uint16(0)
		w.Uint32(wire.FsctlValidateNegotiate)
		w.Uint64(^uint64(0))
		w.Uint64(^uint64(0))
		w.Uint32(wire.HeaderSize + 56)
		w.Uint32(uint32(len(in)))
		w.Uint32(0)
		w.Uint64(0)
		w.Uint32(24)
		w.Uint32(1)
		w.Uint32(0)
		w.Bytes(in)
		c.send(c.message(wire.CommandIoctl, w.B))
		if !tt.ok {
			c.closed()
			continue
		}
		if r := c.one(); r.Status != wire.StatusOK || len(r.body) != 48+24 || r.body[len(r.body)-1] != 3 {
			t.Errorf("%s: %v, %x", tt.name, r.Status, r.body)
		}
	}
}

// A user who logs on again on the same session keeps what is open; one who was
// cut off takes the place of the session he had.
func TestAgain(t *testing.T) {
	s, addr := newServer(t, nil)
	c := user(t, addr, nil)
	if r := c.logon("user", "pass", 0); r.Status != wire.StatusOK {
		t.Fatalf("again: %v", r.Status)
	}
	if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
		t.Errorf("with the first keys: %v", r.Status)
	}
	d := dial(t, addr)
	d.negotiate()
	if r := d.logon("other", "word", c.sessionID); r.Status != wire.StatusOK {
		t.Fatal(r.Status)
	}
	if r := c.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusOK {
		t.Errorf("another user has ended it: %v", r.Status)
	}
	d = dial(t, addr)
	d.negotiate()
	if r := d.logon("user", "pass", c.sessionID); r.Status != wire.StatusOK {
		t.Fatal(r.Status)
	}
	if r := c.connect("share"); r.Status != wire.StatusUserSessionDeleted {
		t.Errorf("replaced: %v", r.Status)
	}
	if n := len(s.Stats().Sessions); n != 2 {
		t.Errorf("%d sessions", n)
	}
	// Another user, or a wrong password, ends it.
	if r := d.logon("other", "word", 0); r.Status != wire.StatusLogonFailure {
		t.Errorf("as another: %v", r.Status)
	}
	if r := d.connect("share"); r.Status != wire.StatusUserSessionDeleted {
		t.Errorf("as another, then: %v", r.Status)
	}
}

// Two who log on at once, each in place of the other, do not wait for each other.
func TestReplaceEachOther(t *testing.T) {
	s, addr := newServer(t, nil)
	for range 200 {
		var two [2]*client
		var tokens [2][]byte
		for i := range two {
			c := dial(t, addr)
			c.negotiate()
			r := c.do(wire.CommandSessionSetup, setupBody(smbtest.Hello(), 0, 1, 0))
			c.sessionID = r.SessionID
			token, _, err := smbtest.Answer(r.body[8:], "user", "pass")
			if err != nil {
				t.Fatal(err)
			}
			two[i], tokens[i] = c, token
		}
		for i, c := range two {
			c.nc.SetDeadline(time.Now().Add(20 * time.Second))
			c.send(c.message(wire.CommandSessionSetup, setupBody(tokens[i], 0, 1, two[1-i].sessionID)))
		}
		for _, c := range two {
			if r := c.one(); r.Status != wire.StatusOK && r.Status != wire.StatusUserSessionDeleted {
				t.Fatalf("%v", r.Status)
			}
			c.nc.Close()
		}
	}
	eventually(t, "all have ended", func() bool { return s.count() == 0 })
}

func TestTrees(t *testing.T) {
	_, addr := newServer(t, nil)
	c := user(t, addr, nil)
	for _, tt := range []struct {
		path   string
		kind   byte
		status wire.Status
	}{
		{`\\server\SHARE`, wire.ShareDisk, wire.StatusOK},
		{`\\server\ipc$`, wire.SharePipe, wire.StatusOK},
		{`\\server\other`, 0, wire.StatusBadNetworkName},
		{`\\server\`, 0, wire.StatusBadNetworkName},
		{`share`, 0, wire.StatusBadNetworkName},
		{``, 0, wire.StatusBadNetworkName},
	} {
		r := c.do(wire.CommandTreeConnect, treeBody(tt.path))
		if r.Status != tt.status || tt.kind != 0 && r.body[2] != tt.kind {
			t.Errorf("%s: %v", tt.path, r.Status)
		}
	}
	c.treeID = 999
	if r := c.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusNetworkNameDeleted {
		t.Errorf("a tree that is none: %v", r.Status)
	}
	n := 0
	status := wire.StatusOK
	for ; n <= maxTrees && status == wire.StatusOK; n++ {
		status = c.connect("share").Status
	}
	if status != wire.StatusInsufficientResources {
		t.Errorf("%d trees: %v", n, status)
	}
}

func TestCompound(t *testing.T) {
	_, addr := newServer(t, nil)
	for _, seal := range []bool{false, true} {
		c := user(t, addr, nil)
		c.seal = seal
		// Unrelated ones do not depend on each other; a related one has session
		// and tree from the one before.
		none := func(h *wire.Header) { related(h); h.SessionID, h.TreeID = ^uint64(0), ^uint32(0) }
		c.send(c.message(wire.CommandEcho, echoBody), c.message(wire.CommandTreeConnect, treeBody(`\\server\nothing`)),
			c.message(wire.CommandTreeConnect, treeBody(`\\server\share`)), c.message(wire.CommandTreeDisconnect, echoBody, none),
			c.message(wire.CommandTreeDisconnect, echoBody, none))
		replies, err := c.frame()
		if err != nil || len(replies) != 5 {
			t.Fatalf("%d replies, %v", len(replies), err)
		}
		for i, want := range []wire.Status{0, wire.StatusBadNetworkName, 0, 0, wire.StatusNetworkNameDeleted} {
			if r := replies[i]; r.Status != want || (r.Credits > 0) != (i == 4) || r.seal != seal {
				t.Errorf("reply %d: %+v, want %v", i, r.Header, want)
			}
		}
		if r := c.do(wire.CommandEcho, echoBody, related); r.Status != wire.StatusInvalidParameter {
			t.Errorf("the first is related: %v", r.Status)
		}
	}
	c := user(t, addr, nil)
	for _, tt := range []struct {
		name string
		next uint32
	}{{"not aligned", 68}, {"behind the end", 1 << 20}, {"no header behind it", 72}, {"inside the header", 8}} {
		d := user(t, addr, nil)
		m := append(d.message(wire.CommandEcho, echoBody), make([]byte, 12)...)
		binary.LittleEndian.PutUint32(m[20:], tt.next)
		d.send(m)
		d.closed()
	}
	c.send(c.message(wire.CommandEcho, echoBody))
	c.one()
}

// A client gets what it asks for, up to the limit.
func TestCredits(t *testing.T) {
	_, addr := newServer(t, nil)
	c := user(t, addr, nil)
	for c.credits-int(c.id) < maxCredits {
		if r := c.do(wire.CommandEcho, echoBody, func(h *wire.Header) { h.Credits = 2000 }); r.Credits == 0 {
			t.Fatalf("%d of %d", c.credits-int(c.id), maxCredits)
		}
	}
	if r := c.do(wire.CommandEcho, echoBody, func(h *wire.Header) { h.Credits = 2000 }); r.Credits != 1 || c.credits-int(c.id) != maxCredits {
		t.Errorf("%d more, %d in all", r.Credits, c.credits-int(c.id))
	}
	c.id += maxCredits
	c.send(c.message(wire.CommandEcho, echoBody))
	c.closed()
}
