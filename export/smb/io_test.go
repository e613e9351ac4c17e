package smb

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ramserver/export/smb/wire"
)

// create opens or makes a file, and returns its id.
func (c *client) create(name string) (id [16]byte) {
	c.t.Helper()
	r := c.do(wire.CommandCreate, createBody(name))
	if r.Status != wire.StatusOK {
		c.t.Fatalf("create %s: %v", name, r.Status)
	}
	copy(id[:], r.body[64:])
	return id
}

func createBody(name string) []byte {
	b := wire.AppendUTF16(nil, name)
	var w wire.Writer
	w.Uint16(57)
	w.Uint16(0)
	w.Uint32(2) // impersonation
	w.Uint64(0)
	w.Uint64(0)
	w.Uint32(0x0012019F) // read and write
	w.Uint32(0x80)
	w.Uint32(7) // shared by all
	w.Uint32(3) // open or make
	w.Uint32(0x40)
	w.Uint16(wire.HeaderSize + 56)
	w.Uint16(uint16(len(b)))
	w.Uint64(0)
	w.Bytes(b)
	return w.B
}

func charge(n int) func(*wire.Header) {
	return func(h *wire.Header) { h.CreditCharge = uint16(max(1, (n+65535)/65536)); h.Credits = 512 }
}

func (c *client) messageOf(command wire.Command, n int, body []byte) []byte {
	c.t.Helper()
	m := c.message(command, body, charge(n))
	c.id += uint64(max(1, (n+65535)/65536) - 1)
	return m
}

func (c *client) writeMessage(id [16]byte, off int64, b []byte) []byte {
	var w wire.Writer
	w.Uint16(49)
	w.Uint16(wire.HeaderSize + 48)
	w.Uint32(uint32(len(b)))
	w.Uint64(uint64(off))
	w.Bytes(id[:])
	w.Uint64(0)
	w.Uint64(0)
	w.Bytes(b)
	return c.messageOf(wire.CommandWrite, len(b), w.B)
}

func (c *client) readMessage(id [16]byte, off int64, n int) []byte {
	var w wire.Writer
	w.Uint16(49)
	w.Uint16(0x50)
	w.Uint32(uint32(n))
	w.Uint64(uint64(off))
	w.Bytes(id[:])
	w.Uint64(0)
	w.Uint64(0)
	w.Uint8(0)
	return c.messageOf(wire.CommandRead, n, w.B)
}

// Any size at any offset, plain, signed and encrypted, is what was written.
func TestTransfers(t *testing.T) {
	_, addr := newServer(t, func(c *Config) { c.Signing = Enabled })
	for _, how := range []string{"plain", "signed", "encrypted"} {
		t.Run(how, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			c := user(t, addr, nil)
			c.sign, c.seal = how == "signed", how == "encrypted"
			for c.credits-int(c.id) < 1000 {
				c.do(wire.CommandEcho, echoBody, func(h *wire.Header) { h.Credits = 512 })
			}
			id := c.create(how)
			var model []byte
			for _, tt := range []struct{ off, n int }{
				{0, 1}, {0, 65536}, {65536, 65536}, {0, 1 << 20}, {1 << 20, MaxIO}, {100, 1 << 20}, {65536, 3 * 65536}, {9 << 20, 70000}, {10 << 20, 1 << 20},
			} {
				data := make([]byte, tt.n)
				for i := 0; i+8 <= len(data); i += 8 {
					binary.LittleEndian.PutUint64(data[i:], rnd.Uint64())
				}
				if grown := tt.off + tt.n; grown > len(model) {
					model = append(model, make([]byte, grown-len(model))...)
				}
				copy(model[tt.off:], data)
				c.send(c.writeMessage(id, int64(tt.off), data))
				r := c.one()
				if r.Status != wire.StatusOK || binary.LittleEndian.Uint32(r.body[4:]) != uint32(tt.n) || r.seal != c.seal {
					t.Fatalf("write %+v: %v, %x", tt, r.Status, r.body)
				}
				c.send(c.readMessage(id, int64(tt.off), tt.n))
				if r = c.one(); r.Status != wire.StatusOK || !bytes.Equal(r.body[16:], data) || r.seal != c.seal {
					t.Fatalf("read %+v: %v, %d bytes", tt, r.Status, len(r.body))
				}
			}
			for off := 0; off < len(model); off += 3 << 20 {
				n := min(3<<20, len(model)-off)
				c.send(c.readMessage(id, int64(off), 3<<20))
				if r := c.one(); r.Status != wire.StatusOK || !bytes.Equal(r.body[16:], model[off:off+n]) {
					t.Fatalf("read %d: %v, %d bytes", off, r.Status, len(r.body))
				}
			}
			c.send(c.readMessage(id, int64(len(model)), 1<<20))
			if r := c.one(); r.Status != wire.StatusEndOfFile {
				t.Errorf("read at the end: %v", r.Status)
			}
			// Two in one frame.
			c.send(c.readMessage(id, 0, 1<<20), c.readMessage(id, 1<<20, 1<<20))
			replies, err := c.frame()
			if err != nil || len(replies) != 2 || !bytes.Equal(replies[0].body[16:][:1<<20], model[:1<<20]) || !bytes.Equal(replies[1].body[16:], model[1<<20:2<<20]) {
				t.Errorf("compound: %d replies, %v", len(replies), err)
			}
		})
	}
}

// A client that stops in the middle of a large WRITE, or whose file is closed then,
// changes nothing.
func TestBrokenWrite(t *testing.T) {
	_, addr := newServer(t, func(c *Config) { c.Signing = Enabled })
	a, b := user(t, addr, nil), user(t, addr, nil)
	a.sign = false
	for a.credits-int(a.id) < 100 {
		a.do(wire.CommandEcho, echoBody)
	}
	id := a.create("f")
	m := a.writeMessage(id, 0, bytes.Repeat([]byte("x"), 1<<20))
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
	a.nc.Write(frame[:len(frame)-1])
	other := b.create("f")
	b.send(b.readMessage(other, 0, 100))
	if r := b.one(); r.Status != wire.StatusEndOfFile {
		t.Errorf("half of it: %v", r.Status)
	}
	a.nc.Write(frame[len(frame)-1:])
	if r := a.one(); r.Status != wire.StatusOK {
		t.Errorf("all of it: %v", r.Status)
	}
	b.send(b.readMessage(other, 1<<20-100, 100))
	if r := b.one(); r.Status != wire.StatusOK || string(r.body[16:]) != string(bytes.Repeat([]byte("x"), 100)) {
		t.Errorf("then: %v", r.Status)
	}
	m = a.writeMessage(id, 0, bytes.Repeat([]byte("y"), 1<<20))
	frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
	a.nc.Write(frame[:1<<19])
	a.nc.Close()
	b.send(b.readMessage(other, 0, 100))
	if r := b.one(); r.Status != wire.StatusOK || r.body[16] != 'x' {
		t.Errorf("cut off: %v, %q", r.Status, r.body[16:])
	}
}
