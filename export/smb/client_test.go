package smb

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"ramserver/export"
	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// newServer serves a store of 64 MiB as "share" to "user" with "pass".
func newServer(t testing.TB, change func(*Config)) (s *Server, addr string) {
	t.Helper()
	store, err := memstore.New(memstore.Config{Name: "test", Size: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	table, err := export.New(&export.Export{Name: "share", Store: store, Root: store.Root()})
	if err != nil {
		t.Fatal(err)
	}
	users, err := NewUsers("", User{Name: "user", Hash: ntlm.HashPassword("pass"), Cred: memstore.Cred{UID: 1000, GID: 1000}},
		User{Name: "other", Hash: ntlm.HashPassword("word"), Cred: memstore.Cred{UID: 1001, GID: 1001}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Exports: table, Users: users, Signing: Required}
	if change != nil {
		change(&cfg)
	}
	if s, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		if len(s.sessions) > 0 || s.works.Free() != s.half || s.large.Free() != s.half {
			t.Errorf("left: %d sessions, %d and %d bytes of the budget", len(s.sessions), s.half-s.works.Free(), s.half-s.large.Free())
		}
		s.mu.Unlock()
		if n := s.Stats().Panics; n > 0 {
			t.Errorf("%d panics", n)
		}
		if err := store.Check(); err != nil {
			t.Error(err)
		}
		store.Close()
	})
	return s, l.Addr().String()
}

// client is a client that can be made to break every rule.
type client struct {
	t  testing.TB
	nc net.Conn

	dialects []wire.Dialect
	cipher   wire.Cipher           // offered, of dialect 3.1.1
	signing  wire.SigningAlgorithm // offered
	caps     uint32
	mode     uint16

	dialect   wire.Dialect
	hash      terms // its preauth counts
	sessionID uint64
	treeID    uint32
	signer    *signer
	sealer    *sealer
	sign      bool // what is sent
	seal      bool
	id        uint64 // next message's
	credits   int
}

// reply is one message of the server.
type reply struct {
	wire.Header
	msg  []byte // with the header
	body []byte
	seal bool // it was encrypted
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{t: t, nc: nc, dialects: []wire.Dialect{wire.Dialect311}, cipher: wire.CipherAES128GCM,
		signing: wire.SigningAESGMAC, mode: wire.SigningEnabled, caps: wire.CapLargeMTU | wire.CapEncryption, credits: 1}
}

// message is a request with the next id.
func (c *client) message(command wire.Command, body []byte, change ...func(*wire.Header)) []byte {
	h := wire.Header{Command: command, CreditCharge: 1, Credits: 64, MessageID: c.id, SessionID: c.sessionID, TreeID: c.treeID}
	for _, f := range change {
		f(&h)
	}
	if h.MessageID == c.id && command != wire.CommandCancel {
		c.id++
	}
	b := make([]byte, wire.HeaderSize)
	h.Encode(b)
	return append(b, body...)
}

func related(h *wire.Header) { h.Flags |= wire.FlagRelated }

// send sends messages in one frame, signed or encrypted if the client does that.
func (c *client) send(msgs ...[]byte) {
	c.t.Helper()
	b := make([]byte, frameSize)
	if c.seal {
		b = append(b, make([]byte, sealedSize)...)
	}
	for i, m := range msgs {
		if i < len(msgs)-1 {
			for len(m)%8 != 0 {
				m = append(m, 0)
			}
			binary.LittleEndian.PutUint32(m[20:], uint32(len(m)))
		}
		if c.sign && !c.seal {
			m[16] |= wire.FlagSigned
			kind := uint32(0)
			if m[12] == byte(wire.CommandCancel) {
				kind = nonceCancel
			}
			sum := c.signer.sum(m, kind)
			copy(m[signatureAt:], sum[:])
		}
		b = append(b, m...)
	}
	if c.seal {
		b = c.sealer.seal(b, frameSize, c.sessionID)
	}
	c.raw(b[frameSize:])
}

// raw sends a frame as it is.
func (c *client) raw(frame []byte) {
	c.t.Helper()
	if _, err := c.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		c.t.Fatal(err)
	}
}

// frame receives the replies of one frame; err is io.EOF if there are no more.
func (c *client) frame() (replies []reply, err error) {
	c.t.Helper()
	var head [frameSize]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	b := make([]byte, n, n+slack)
	if _, err := io.ReadFull(c.nc, b); err != nil {
		return nil, err
	}
	sealed := isSealed(b)
	if sealed {
		if b, err = c.sealer.open(b); err != nil {
			c.t.Fatal(err)
		}
	}
	for b != nil {
		r := reply{msg: b, seal: sealed}
		if !r.Decode(b) || r.Flags&wire.FlagReply == 0 {
			c.t.Fatalf("not a reply: %x", b)
		}
		b = nil
		if r.Next > 0 {
			r.msg, b = r.msg[:r.Next], r.msg[r.Next:]
		}
		r.body = r.msg[wire.HeaderSize:]
		if r.Flags&wire.FlagSigned != 0 && c.signer != nil {
			var got, want [signatureSize]byte
			copy(got[:], r.msg[signatureAt:])
			m := bytes.Clone(r.msg)
			clear(m[signatureAt:][:signatureSize])
			want = c.signer.sum(m, nonceReply)
			if r.Status.IsError() && got == [signatureSize]byte{} {
				r.Flags &^= wire.FlagSigned // found before the key
			} else if got != want {
				c.t.Fatalf("signature of %+v is wrong", r.Header)
			}
		}
		c.credits += int(r.Credits)
		replies = append(replies, r)
	}
	return replies, nil
}

// one receives a frame of one reply.
func (c *client) one() reply {
	c.t.Helper()
	replies, err := c.frame()
	if err != nil || len(replies) != 1 {
		c.t.Fatalf("%d replies, %v", len(replies), err)
	}
	return replies[0]
}

// do sends a request and receives the reply.
func (c *client) do(command wire.Command, body []byte, change ...func(*wire.Header)) reply {
	c.t.Helper()
	c.send(c.message(command, body, change...))
	return c.one()
}

// closed tells that the server has ended the connection.
func (c *client) closed() {
	c.t.Helper()
	if r, err := c.frame(); err == nil {
		c.t.Errorf("the connection goes on: %+v", r[0].Header)
	}
}

// negotiateBody is the body of NEGOTIATE.
func (c *client) negotiateBody() []byte {
	var w wire.Writer
	w.Uint16(36)
	w.Uint16(uint16(len(c.dialects)))
	w.Uint16(c.mode)
	w.Uint16(0)
	w.Uint32(c.caps)
	w.Bytes([]byte("sixteen byte guid"[:16]))
	contexts := len(w.B)
	w.Uint64(0)
	for _, d := range c.dialects {
		w.Uint16(uint16(d))
	}
	if c.dialects[len(c.dialects)-1] != wire.Dialect311 {
		return w.B
	}
	w.Align(8)
	binary.LittleEndian.PutUint32(w.B[contexts:], uint32(wire.HeaderSize+len(w.B)))
	list := []wire.NegotiateContext{
		{Type: wire.ContextPreauth, Data: []byte{1, 0, 4, 0, 1, 0, 's', 'a', 'l', 't'}},
		{Type: wire.ContextSigning, Data: []byte{1, 0, byte(c.signing), 0}},
	}
	if c.cipher != 0 {
		list = append(list, wire.NegotiateContext{Type: wire.ContextEncryption, Data: []byte{1, 0, byte(c.cipher), 0}})
	}
	binary.LittleEndian.PutUint16(w.B[contexts+4:], uint16(len(list)))
	for _, x := range list {
		w.Align(8)
		w.Uint16(x.Type)
		w.Uint16(uint16(len(x.Data)))
		w.Uint32(0)
		w.Bytes(x.Data)
	}
	return w.B
}

// negotiate agrees on a dialect.
func (c *client) negotiate() reply {
	c.t.Helper()
	m := c.message(wire.CommandNegotiate, c.negotiateBody())
	c.send(m)
	r := c.one()
	if r.Status == wire.StatusOK {
		c.dialect = wire.Dialect(binary.LittleEndian.Uint16(r.body[4:]))
		addHash(&c.hash.preauth, m)
		addHash(&c.hash.preauth, r.msg)
	}
	return r
}

func setupBody(token []byte, flags, mode byte, previous uint64) []byte {
	var w wire.Writer
	w.Uint16(25)
	w.Uint8(flags)
	w.Uint8(mode)
	w.Uint64(0)
	w.Uint16(wire.HeaderSize + 24)
	w.Uint16(uint16(len(token)))
	w.Uint64(previous)
	w.Bytes(token)
	return w.B
}

// logon logs on by bare NTLMSSP; previous is a session that it replaces.
func (c *client) logon(user, password string, previous uint64) reply {
	c.t.Helper()
	hash := c.hash.preauth
	step := func(token []byte) reply {
		m := c.message(wire.CommandSessionSetup, setupBody(token, 0, byte(c.mode), previous))
		if c.sealer == nil || !c.seal {
			addHash(&hash, m)
		}
		c.send(m)
		r := c.one()
		if r.Status == wire.StatusMoreProcessingRequired {
			addHash(&hash, r.msg)
		}
		return r
	}
	r := step(smbtest.Hello())
	if r.Status != wire.StatusMoreProcessingRequired {
		return r
	}
	c.sessionID = r.SessionID
	token, key, err := smbtest.Answer(r.body[8:], user, password)
	if err != nil {
		c.t.Fatal(err)
	}
	r = step(token)
	if r.Status == wire.StatusOK && c.signer == nil {
		k := deriveKeys(c.dialect, c.cipher, key, hash[:])
		alg := c.signing
		switch {
		case c.dialect < wire.Dialect300:
			alg = wire.SigningHMACSHA256
		case c.dialect < wire.Dialect311:
			alg = wire.SigningAESCMAC
		}
		c.signer, _ = newSigner(alg, k.signing)
		k.toServer, k.toClient = k.toClient, k.toServer
		if c.dialect >= wire.Dialect300 && c.cipher != 0 {
			var err error
			if c.sealer, err = newSealer(c.cipher, &k); err != nil {
				c.t.Fatal(err)
			}
		}
		c.sign = true
	}
	return r
}

func treeBody(path string) []byte {
	b := wire.AppendUTF16(nil, path)
	var w wire.Writer
	w.Uint16(9)
	w.Uint16(0)
	w.Uint16(wire.HeaderSize + 8)
	w.Uint16(uint16(len(b)))
	w.Bytes(b)
	return w.B
}

// connect connects a share.
func (c *client) connect(name string) reply {
	c.t.Helper()
	r := c.do(wire.CommandTreeConnect, treeBody(`\\server\`+name))
	if r.Status == wire.StatusOK {
		c.treeID = r.TreeID
	}
	return r
}

// user is a client that has logged on and connected the share.
func user(t testing.TB, addr string, change func(*client)) *client {
	t.Helper()
	c := dial(t, addr)
	if change != nil {
		change(c)
	}
	if r := c.negotiate(); r.Status != wire.StatusOK {
		t.Fatalf("negotiate: %v", r.Status)
	}
	if r := c.logon("user", "pass", 0); r.Status != wire.StatusOK {
		t.Fatalf("logon: %v", r.Status)
	}
	if r := c.connect("share"); r.Status != wire.StatusOK {
		t.Fatalf("connect: %v", r.Status)
	}
	return c
}

var echoBody = []byte{4, 0, 0, 0}
