package smb

import (
	"bytes"
	"testing"

	"ramserver/export/smb/wire"
)

// bodies are a request of every command, of the right size.
func bodies() map[wire.Command][]byte {
	all := make(map[wire.Command][]byte)
	for command := range wire.Command(commandCount) {
		body := make([]byte, commands[command].size)
		le.PutUint16(body, commands[command].size)
		all[command] = body
	}
	all[wire.CommandTreeConnect] = treeBody(`\\server\share`)
	all[wire.CommandCreate] = createBody("f")
	return all
}

// Who is nobody gets nothing done: before a logon, after one that failed, with
// another's session, or without a signature; MS-SMB2 sections 3.3.5.2.4 and
// 3.3.5.2.9.
func TestNobody(t *testing.T) {
	_, addr := newServer(t, nil)
	owner := user(t, addr, nil)
	owner.create("f")
	for _, tt := range []struct {
		name string
		as   func(t *testing.T) *client
		want wire.Status
	}{
		{"before a logon", func(t *testing.T) *client {
			c := dial(t, addr)
			c.negotiate()
			return c
		}, wire.StatusUserSessionDeleted},
		{"in the middle of a logon", func(t *testing.T) *client {
			c := dial(t, addr)
			c.negotiate()
			hello := []byte("NTLMSSP\x00\x01\x00\x00\x00\x01\x02\x08\x20" + string(make([]byte, 16)))
			r := c.do(wire.CommandSessionSetup, setupBody(hello, 0, 1, 0))
			c.sessionID = r.SessionID
			return c
		}, wire.StatusUserSessionDeleted},
		{"with another's session", func(t *testing.T) *client {
			c := dial(t, addr)
			c.negotiate()
			c.sessionID, c.treeID = owner.sessionID, owner.treeID
			return c
		}, wire.StatusUserSessionDeleted},
		{"with another's session, signed", func(t *testing.T) *client {
			c := user(t, addr, nil)
			c.sessionID, c.treeID = owner.sessionID, owner.treeID
			return c
		}, wire.StatusUserSessionDeleted},
		{"without a signature", func(t *testing.T) *client {
			c := user(t, addr, func(c *client) { c.dialects[0] = wire.Dialect302; c.cipher = wire.CipherAES128CCM })
			c.sign = false
			return c
		}, wire.StatusAccessDenied},
		{"signed by another's key", func(t *testing.T) *client {
			c := user(t, addr, nil)
			c.signer = owner.signer
			return c
		}, wire.StatusAccessDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.as(t)
			for command, body := range bodies() {
				switch command {
				case wire.CommandNegotiate, wire.CommandSessionSetup, wire.CommandCancel, wire.CommandEcho:
					continue
				}
				if r := c.do(command, body); r.Status != tt.want || len(r.body) != 9 {
					t.Errorf("%s: %v with %d bytes, want %v", commands[command].name, r.Status, len(r.body), tt.want)
				}
			}
		})
	}
	if r := owner.do(wire.CommandTreeDisconnect, echoBody); r.Status != wire.StatusOK {
		t.Errorf("the owner, afterwards: %v", r.Status)
	}
}

// Whatever bit somebody on the way changes of a signed or encrypted request: it is
// not executed.
func TestAltered(t *testing.T) {
	_, addr := newServer(t, nil)
	owner := user(t, addr, nil)
	file := owner.create("f")
	owner.send(owner.writeMessage(file, 0, []byte("as it was")))
	owner.one()
	for _, seal := range []bool{false, true} {
		c := user(t, addr, nil)
		c.seal = seal
		id := c.create("f")
		frame := c.framed(c.writeMessage(id, 0, []byte("something")))[frameSize:]
		for at := range frame {
			b := bytes.Clone(frame)
			b[at] ^= 1 << (at % 8)
			c.raw(b)
			r, err := c.frame()
			if err == nil && r[0].Status == wire.StatusOK {
				t.Fatalf("encrypted %v: byte %d is changed: %+v", seal, at, r[0].Header)
			}
			// Another try needs another connection, or at least another message.
			if err != nil {
				c = user(t, addr, nil)
				c.seal = seal
				id = c.create("f")
			}
			frame = c.framed(c.writeMessage(id, 0, []byte("something")))[frameSize:]
		}
	}
	owner.send(owner.readMessage(file, 0, 100))
	if r := owner.one(); r.Status != wire.StatusOK || string(r.body[16:]) != "as it was" {
		t.Errorf("the file has %q, %v", r.body[16:], r.Status)
	}
}

// What was sent once is not executed again, encrypted neither.
func TestReplayedSealed(t *testing.T) {
	_, addr := newServer(t, nil)
	c := user(t, addr, nil)
	c.seal = true
	frame := c.framed(c.message(wire.CommandEcho, echoBody))[frameSize:]
	c.raw(frame)
	if r := c.one(); r.Status != wire.StatusOK {
		t.Fatal(r.Status)
	}
	c.raw(frame)
	c.closed()
}
