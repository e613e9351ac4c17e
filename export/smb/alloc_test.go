package smb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"ramserver/export/link"
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

// wired is a connection that somebody has logged on to, without a network: its client
// makes frames, and checks no replies.
type wired struct {
	*client
	c *conn
}

func newWired(t testing.TB) *wired {
	t.Helper()
	s, _ := newServer(t, func(c *Config) { c.Signing = Enabled })
	c := &conn{s: s, Link: link.Link{Conn: new(script)}, gone: make(chan struct{}), window: newWindow(), sessions: make(map[uint64]*session), pending: make(map[uint64]*pending)}
	c.buf = c.small[:smallSize]
	if err := c.takeWork(false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.giveWork)
	c.terms = terms{dialect: wire.Dialect311, caps: wire.CapLargeMTU, cipher: wire.CipherAES128GCM, signing: wire.SigningAESGMAC}
	ss := c.newSession()
	t.Cleanup(ss.end)
	if err := ss.setKeys(make([]byte, 16), 0); err != nil {
		t.Fatal(err)
	}
	ss.trees[1] = &tree{s: ss, id: 1, exp: s.cfg.Exports.All()[0]}

	k := deriveKeys(c.dialect, c.cipher, make([]byte, 16), ss.preauth[:])
	cl := &client{t: t, sessionID: ss.id, treeID: 1, signer: ss.signer}
	k.toServer, k.toClient = k.toClient, k.toServer
	var err error
	if cl.sealer, err = newSealer(c.cipher, &k); err != nil {
		t.Fatal(err)
	}
	return &wired{cl, c}
}

// frame is messages as one frame, with room behind it.
func (w *wired) frame(how string, msgs ...[]byte) []byte {
	b := make([]byte, sealedSize)
	for i, m := range msgs {
		if i < len(msgs)-1 {
			m = append(m, make([]byte, -len(m)&7)...)
			binary.LittleEndian.PutUint32(m[20:], uint32(len(m)))
		}
		if how == "signed" {
			m[16] |= wire.FlagSigned
			sum := w.signer.sum(m, 0)
			copy(m[signatureAt:], sum[:])
		}
		b = append(b, m...)
	}
	if how == "encrypted" {
		b = w.sealer.seal(b, 0, w.sessionID)
	} else {
		b = b[sealedSize:]
	}
	return append(b, make([]byte, slack)...)[:len(b)]
}

// answer has the server answer a frame, and all its replies be of status OK.
func (w *wired) answer(frame []byte) {
	w.t.Helper()
	sealed := isSealed(frame)
	w.c.window.grant(8)
	if err := w.c.answer(frame); err != nil {
		w.t.Fatal(err)
	}
	var h wire.Header
	for at := frameSize; !sealed; at += int(h.Next) {
		if !h.Decode(w.c.work.w.B[at:]) || h.Status != wire.StatusOK {
			w.t.Fatalf("command %d: %v", h.Command, h.Status)
		}
		if h.Next == 0 {
			break
		}
	}
}

// open opens or makes a file.
func (w *wired) open(name string) (id [16]byte) {
	w.answer(w.frame("plain", w.message(wire.CommandCreate, createBody(name))))
	copy(id[:], w.c.work.w.B[frameSize+wire.HeaderSize+64:])
	w.c.sent()
	return id
}

var relatedClose = append([]byte{24, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 16)...)

// hotFrame is a frame that clients send all the time.
type hotFrame struct {
	name           string
	msgs           func(w *wired, id [16]byte, i int) [][]byte
	max            float64   // allocations that it may take
	before, behind *hotFrame // what has to be done for it, and undone
}

var hot = []hotFrame{
	{name: "echo", msgs: func(w *wired, _ [16]byte, _ int) [][]byte {
		return [][]byte{w.message(wire.CommandEcho, echoBody)}
	}},
	{name: "write 4 KiB", msgs: func(w *wired, id [16]byte, _ int) [][]byte {
		return [][]byte{w.writeMessage(id, 0, make([]byte, 4096))}
	}},
	{name: "read 4 KiB", msgs: func(w *wired, id [16]byte, _ int) [][]byte {
		return [][]byte{w.readMessage(id, 0, 4096)}
	}},
	{name: "open, query, close", max: 5, msgs: func(w *wired, _ [16]byte, _ int) [][]byte {
		query := append([]byte{41, 0, wire.InfoFile, wire.FileNetworkOpen, 56, 0, 0, 0}, make([]byte, 16)...)
		query = append(query, bytes.Repeat([]byte{0xff}, 16)...)
		return [][]byte{w.message(wire.CommandCreate, createBody("d\\f")), w.message(wire.CommandQueryInfo, query, related), w.message(wire.CommandClose, relatedClose, related)}
	}},
	{name: "create, close", max: 15, msgs: hotCreate, behind: &hotFrame{msgs: hotRemove}},
	{name: "remove", max: 8, msgs: hotRemove, before: &hotFrame{msgs: hotCreate}},
}

func hotCreate(w *wired, _ [16]byte, i int) [][]byte {
	return [][]byte{w.message(wire.CommandCreate, createBody(fmt.Sprintf("d\\New file %d.txt", i))), w.message(wire.CommandClose, relatedClose, related)}
}

func hotRemove(w *wired, _ [16]byte, i int) [][]byte {
	body := createBody(fmt.Sprintf("d\\New file %d.txt", i))
	binary.LittleEndian.PutUint32(body[24:], rightDelete)
	binary.LittleEndian.PutUint32(body[40:], wire.OptDeleteOnClose)
	return [][]byte{w.message(wire.CommandCreate, body), w.message(wire.CommandClose, relatedClose, related)}
}

// prepare makes what the frames of hot are about.
func (w *wired) prepare() (id [16]byte) {
	body := createBody("d")
	binary.LittleEndian.PutUint32(body[40:], wire.OptDirectory)
	w.answer(w.frame("plain", w.message(wire.CommandCreate, body), w.message(wire.CommandClose, relatedClose, related)))
	w.c.sent()
	id = w.open("f")
	w.open("d\\f")
	w.answer(w.frame("plain", w.writeMessage(id, 0, make([]byte, 4096))))
	w.c.sent()
	return id
}

// What a client does all the time makes little work for the collector.
func TestAllocations(t *testing.T) {
	for _, how := range []string{"plain", "signed", "encrypted"} {
		w := newWired(t)
		id := w.prepare()
		for _, tt := range hot {
			const runs = 50
			var frames [][]byte
			for i := range runs + 1 {
				frames = append(frames, w.frame(how, tt.msgs(w, id, i)...))
			}
			n := testing.AllocsPerRun(runs, func() {
				w.answer(frames[0])
				frames = frames[1:]
				w.c.sent()
			})
			t.Logf("%s, %s: %v", tt.name, how, n)
			if n > tt.max {
				t.Errorf("%s, %s: %v allocations, want %v", tt.name, how, n, tt.max)
			}
		}
	}
}

// BenchmarkAnswer is what a signed frame costs without the network.
func BenchmarkAnswer(b *testing.B) {
	w := newWired(b)
	id := w.prepare()
	const batch = 256
	frames := make([][]byte, 0, batch)
	run := func(tt *hotFrame, n int) {
		frames = frames[:0]
		for i := range n {
			frames = append(frames, w.frame("signed", tt.msgs(w, id, i)...))
		}
	}
	answer := func() {
		for _, f := range frames {
			w.answer(f)
			w.c.sent()
		}
	}
	for i := range hot {
		tt := &hot[i]
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for done := 0; done < b.N; done += batch {
				b.StopTimer()
				n := min(batch, b.N-done)
				if tt.before != nil {
					run(tt.before, n)
					answer()
				}
				run(tt, n)
				b.StartTimer()
				answer()
				b.StopTimer()
				if tt.behind != nil {
					run(tt.behind, n)
					answer()
				}
			}
		})
	}
}
