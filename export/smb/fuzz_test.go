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

// fuzzed is a frame in which the ids of messages are the next ones, and those of
// sessions and trees the client's, where they are not zero.
func (c *client) fuzzed(frame []byte) []byte {
	for b := frame; len(b) >= wire.HeaderSize; {
		le := binary.LittleEndian
		le.PutUint64(b[24:], c.id)
		c.id++
		if le.Uint64(b[40:]) != 0 {
			le.PutUint64(b[40:], c.sessionID)
		}
		if le.Uint32(b[36:]) != 0 {
			le.PutUint32(b[36:], c.treeID)
		}
		// The credits of one request are enough for what follows.
		le.PutUint16(b[14:], 64)
		n := int(le.Uint32(b[20:]))
		if n == 0 || n > len(b) {
			break
		}
		b = b[n:]
	}
	return frame
}

// survives sends a frame to a live server, which must answer with frames, or end
// the connection, and go on for others.
func survives(t *testing.T, c *client, frame []byte) {
	c.nc.SetDeadline(time.Now().Add(5 * time.Second))
	c.raw(c.fuzzed(frame))
	c.nc.(*net.TCPConn).CloseWrite()
	for {
		var head [frameSize]byte
		if _, err := io.ReadFull(c.nc, head[:]); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatal("no answer and no end")
			}
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(head[:])+slack)
		b = b[:len(b)-slack]
		if _, err := io.ReadFull(c.nc, b); err != nil {
			t.Fatal(err)
		}
		if isSealed(b) {
			continue
		}
		for len(b) > 0 {
			var h wire.Header
			if !h.Decode(b) || h.Flags&wire.FlagReply == 0 || int(h.Next) > len(b) || h.Next%8 != 0 {
				t.Fatalf("not a reply: %x", b)
			}
			if h.Next == 0 {
				break
			}
			b = b[h.Next:]
		}
	}
}

// seedFrames are frames to begin with.
func seedFrames(f *testing.F) {
	c := &client{t: f, dialects: []wire.Dialect{wire.Dialect202, wire.Dialect311}, signing: 2, cipher: 2, sessionID: 1, treeID: 1}
	f.Add(c.message(wire.CommandNegotiate, c.negotiateBody()))
	f.Add(c.message(wire.CommandSessionSetup, setupBody([]byte("NTLMSSP\x00\x01\x00\x00\x00\x01\x00\x00\x00"), 0, 0, 0)))
	f.Add(c.message(wire.CommandTreeConnect, treeBody(`\\server\share`)))
	f.Add([]byte("\xffSMB\x72" + string(make([]byte, 27)) + "\x00\x0c\x00\x02SMB 2.???\x00"))
	f.Add(append([]byte("\xfdSMB"), make([]byte, 100)...))
	one := append(c.message(wire.CommandEcho, echoBody), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(one[20:], uint32(len(one)))
	f.Add(append(one, c.message(wire.CommandLogoff, echoBody, related)...))
	for command := wire.CommandClose; command <= wire.CommandOplockBreak; command++ {
		// Of a file that is made before, in one frame.
		body := make([]byte, 96)
		binary.LittleEndian.PutUint16(body, commands[command].size)
		at := 8
		switch command {
		case wire.CommandRead, wire.CommandWrite, wire.CommandSetInfo:
			at = 16
		case wire.CommandQueryInfo:
			at = 24
		}
		copy(body[at:], bytes.Repeat([]byte{0xff}, 16))
		m := c.message(wire.CommandCreate, createBody("file"))
		m = append(m, make([]byte, -len(m)&7)...)
		binary.LittleEndian.PutUint32(m[20:], uint32(len(m)))
		f.Add(append(m, c.message(command, body, related)...))
	}
}

func FuzzFirstFrame(f *testing.F) {
	seedFrames(f)
	_, addr := newServer(f, func(c *Config) { c.logonDelay = 1 })
	f.Fuzz(func(t *testing.T, frame []byte) {
		c := dial(t, addr)
		defer c.nc.Close()
		survives(t, c, frame)
	})
}

func FuzzFrame(f *testing.F) {
	seedFrames(f)
	_, addr := newServer(f, func(c *Config) { c.Signing, c.logonDelay = Enabled, 1 })
	f.Fuzz(func(t *testing.T, frame []byte) {
		c := user(t, addr, nil)
		defer c.nc.Close()
		survives(t, c, frame)
	})
}
