package smb

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"ramserver/export/smb/smbtest"
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

// FuzzInfo asks for and sets what there may be or not: every class, control and
// create context gets an answer, and the connection goes on.
func FuzzInfo(f *testing.F) {
	const (
		query = iota
		set
		control
		list
		create
		lock
		kinds
	)
	for class := range uint32(70) {
		f.Add(uint8(query), uint32(wire.InfoFile)<<8|class, []byte(nil), uint16(4096))
		f.Add(uint8(set), uint32(wire.InfoFile)<<8|class, make([]byte, 40), uint16(0))
		f.Add(uint8(list), class, []byte("*\x00"), uint16(4096))
	}
	for class := range uint32(12) {
		f.Add(uint8(query), uint32(wire.InfoFS)<<8|class, []byte(nil), uint16(4096))
	}
	f.Add(uint8(query), uint32(wire.InfoSecurity)<<8, []byte(nil), uint16(4096))
	f.Add(uint8(query), uint32(wire.InfoFile)<<8|wire.FileFullEA, askEAs("a", "b"), uint16(4096))
	f.Add(uint8(set), uint32(wire.InfoSecurity)<<8, smbtest.Descriptor(7, 0o644, 1000, 1000), uint16(0))
	f.Add(uint8(set), uint32(wire.InfoFile)<<8|wire.FileFullEA, eaList("a", "b", "c", "d"), uint16(0))
	f.Add(uint8(set), uint32(wire.InfoFile)<<8|wire.FileRename, smbtest.Rename("other", true), uint16(0))
	f.Add(uint8(set), uint32(wire.InfoFile)<<8|wire.FileRename, smbtest.Rename(":stream", true), uint16(0))
	for code := range fsctls {
		f.Add(uint8(control), code, numbers(0, 4096, 0, 4096, 4096), uint16(64))
	}
	f.Add(uint8(control), uint32(wire.FsctlSetReparsePoint), (&wire.Reparse{Tag: wire.TagSymlink, Target: text("x")}).Append(nil), uint16(0))
	f.Add(uint8(create), uint32(0), append([]byte("MxAc"), eaList("a", "b")...), uint16(0))
	f.Add(uint8(create), uint32(wire.OptDirectory), append([]byte("ExtA"), eaList("a", "b")...), uint16(0))
	f.Add(uint8(create), uint32(0), append([]byte("SecD"), smbtest.Descriptor(4, 0o600, 0, 0)...), uint16(0))
	f.Add(uint8(create), uint32(0), append([]byte("DH2Q"), make([]byte, 32)...), uint16(0))
	f.Add(uint8(create), uint32(0), append([]byte("RqLs"), make([]byte, 52)...), uint16(0))
	f.Add(uint8(create), uint32(0), append([]byte("AAPL"), make([]byte, 24)...), uint16(0))
	f.Add(uint8(lock), uint32(2), numbers(0, 1, 18), uint16(0))

	_, addr := newServer(f, nil)
	c := enter(f, addr)
	f.Fuzz(func(t *testing.T, kind uint8, what uint32, data []byte, room uint16) {
		if len(data) > 1<<16 {
			return
		}
		name := "file"
		if what>>31 != 0 {
			name = "file:stream"
		}
		args := smbtest.OpenArgs{Path: name, Access: rightMaximum, Share: smbtest.ShareAll, Disposition: wire.FileOpenIf, Options: wire.OptOpenReparse}
		if kind%kinds == list {
			args.Path, args.Options = "", wire.OptDirectory
		}
		if kind%kinds == create && len(data) >= 4 {
			args.Options |= what
			args.Contexts = []wire.CreateContext{{Name: string(data[:4]), Data: data[4:]}}
		}
		answered := func(err error) {
			if _, is := err.(wire.Status); err != nil && !is {
				t.Fatal(err)
			}
		}
		file, err := c.Open(args)
		if answered(err); err != nil {
			return
		}
		switch kind % kinds {
		case query:
			_, err = file.Query(wire.QueryInfoRequest{Type: uint8(what >> 8), Class: uint8(what), Input: data, MaxOut: uint32(room), Additional: what >> 16, Flags: what >> 24})
		case set:
			err = file.Set(wire.SetInfoRequest{Type: uint8(what >> 8), Class: uint8(what), Data: data, Additional: uint32(room)})
		case control:
			_, err = file.Ioctl(what, data, int(room))
		case list:
			_, err = file.List(uint8(what), uint8(what>>8), wire.String(data[:len(data)&^1]), int(room))
		case lock:
			var all []wire.LockElement
			for ; len(data) >= 24 && len(all) < 64; data = data[24:] {
				all = append(all, wire.LockElement{Offset: le.Uint64(data), Length: le.Uint64(data[8:]), Flags: uint32(le.Uint64(data[16:])) | wire.LockNoWait})
			}
			err = file.Lock(all...)
		}
		answered(err)
		answered(file.Remove())
		answered(file.Close())
		if _, err := c.Do(wire.CommandEcho, 0, echoBody); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSealed sends what is encrypted right and means anything.
func FuzzSealed(f *testing.F) {
	seedFrames(f)
	_, addr := newServer(f, nil)
	f.Fuzz(func(t *testing.T, frame []byte) {
		c := user(t, addr, nil)
		defer c.nc.Close()
		b := append(make([]byte, sealedSize), c.fuzzed(frame)...)
		c.nc.SetDeadline(time.Now().Add(5 * time.Second))
		c.raw(c.sealer.seal(b, 0, c.sessionID))
		c.nc.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, c.nc); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatal("no answer and no end")
			}
		}
	})
}

// FuzzLists reads lists of extended attributes, and looks for names by patterns.
func FuzzLists(f *testing.F) {
	f.Add(eaList("a", "b", "cd", ""), "*.txt")
	f.Add(askEAs("a", "bcd"), `<">>?`)
	f.Fuzz(func(t *testing.T, b []byte, pattern string) {
		list, status := parseEAs(b)
		var again []string
		for _, x := range list {
			again = append(again, x.name, string(x.value))
		}
		if got, ok := parseEAs(eaList(again...)); status == wire.StatusOK && (ok != wire.StatusOK || len(got) != len(list)) {
			t.Errorf("%q becomes %q, %v", list, got, ok)
		}
		eaNames(b)
		name := text(string(b))
		if l, ok := newListing(text(pattern)); ok {
			matches(l.pattern, name)
		}
		if l, ok := newListing(text(string(b))); ok && l.exact != "" && !matches(l.pattern, name) {
			t.Errorf("%q does not fit itself", b)
		}
		if short := dosName(string(b)); len(short) > 12 {
			t.Errorf("%q is %q", b, short)
		}
	})
}
