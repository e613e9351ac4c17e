package smb

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"ramserver/export/smb/wire"
)

// script is a connection whose input is known from the start.
type script struct {
	io.Reader
	out bytes.Buffer
}

func (s *script) Write(b []byte) (int, error)    { return s.out.Write(b) }
func (*script) Close() error                     { return nil }
func (*script) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 445} }
func (*script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 700} }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// What a client does all the time makes no work for the collector.
func TestAllocations(t *testing.T) {
	s, _ := newServer(t, func(c *Config) { c.Signing = Enabled })
	sc := new(script)
	c := &conn{s: s, nc: sc, gone: make(chan struct{}), window: newWindow(), sessions: make(map[uint64]*session), pending: make(map[uint64]*pending)}
	c.buf = c.small[:smallSize]
	if err := c.takeWork(false); err != nil {
		t.Fatal(err)
	}
	defer c.giveWork()
	c.terms = terms{dialect: wire.Dialect311, caps: wire.CapLargeMTU, cipher: wire.CipherAES128GCM, signing: wire.SigningAESGMAC}
	ss := c.newSession()
	defer ss.end()
	if err := ss.setKeys(make([]byte, 16), 0); err != nil {
		t.Fatal(err)
	}
	ss.trees[1] = &tree{s: ss, id: 1, exp: s.cfg.Exports.All()[0]}

	// The client's other half: it makes messages, and checks no replies.
	k := deriveKeys(c.dialect, c.cipher, make([]byte, 16), ss.preauth[:])
	cl := &client{t: t, sessionID: ss.id, treeID: 1, signer: ss.signer}
	k.toServer, k.toClient = k.toClient, k.toServer
	var err error
	if cl.sealer, err = newSealer(c.cipher, &k); err != nil {
		t.Fatal(err)
	}
	// frame is messages as one frame, with room behind it.
	frame := func(how string, msgs ...[]byte) []byte {
		b := make([]byte, sealedSize)
		for i, m := range msgs {
			if i < len(msgs)-1 {
				m = append(m, make([]byte, -len(m)&7)...)
				binary.LittleEndian.PutUint32(m[20:], uint32(len(m)))
			}
			if how == "signed" {
				m[16] |= wire.FlagSigned
				sum := cl.signer.sum(m, 0)
				copy(m[signatureAt:], sum[:])
			}
			b = append(b, m...)
		}
		if how == "encrypted" {
			b = cl.sealer.seal(b, 0, ss.id)
		} else {
			b = b[sealedSize:]
		}
		return append(b, make([]byte, slack)...)[:len(b)]
	}
	c.window.grant(100)
	if err := c.answer(frame("plain", cl.message(wire.CommandCreate, createBody("f")))); err != nil {
		t.Fatal(err)
	}
	var id [16]byte
	copy(id[:], c.work.w.B[frameSize+wire.HeaderSize+64:])
	c.sent()

	data := bytes.Repeat([]byte("x"), 4096)
	for _, tt := range []struct {
		name string
		msgs func() [][]byte
		max  float64
	}{
		{"echo", func() [][]byte { return [][]byte{cl.message(wire.CommandEcho, echoBody)} }, 0},
		{"write 4 KiB", func() [][]byte { return [][]byte{cl.writeMessage(id, 0, data)} }, 0},
		{"read 4 KiB", func() [][]byte { return [][]byte{cl.readMessage(id, 0, 4096)} }, 0},
		{"create, close", func() [][]byte {
			closing := append([]byte{24, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 16)...)
			return [][]byte{cl.message(wire.CommandCreate, createBody("f")), cl.message(wire.CommandClose, closing, related)}
		}, 6},
	} {
		for _, how := range []string{"plain", "signed", "encrypted"} {
			const runs = 50
			var frames [][]byte
			for range runs + 1 {
				frames = append(frames, frame(how, tt.msgs()...))
				c.window.grant(4)
			}
			n := testing.AllocsPerRun(runs, func() {
				if err := c.answer(frames[0]); err != nil {
					t.Fatal(err)
				}
				frames = frames[1:]
				var h wire.Header
				if how != "encrypted" && (!h.Decode(c.work.w.B[frameSize:]) || h.Status != wire.StatusOK) {
					t.Fatalf("%s, %s: %v", tt.name, how, h.Status)
				}
				c.sent()
			})
			t.Logf("%s, %s: %v", tt.name, how, n)
			if n > tt.max {
				t.Errorf("%s, %s: %v allocations, want %v", tt.name, how, n, tt.max)
			}
		}
	}
}
