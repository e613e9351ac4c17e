package smb

import (
	"encoding/binary"
	"testing"

	"ramserver/export/smb/wire"
)

// What names a file, in a chain of commands: MS-SMB2 section 3.3.5.2.7.2.
func TestFileOfRequest(t *testing.T) {
	s := &session{files: make(map[uint64]*file), c: &conn{s: new(Server)}}
	here, there := &tree{s: s, id: 1}, &tree{s: s, id: 2}
	r := &request{c: s.c, s: s, t: here}
	one, other := new(file), new(file)
	if !r.addFile(one) {
		t.Fatal("no room")
	}
	r.t = there
	if !r.addFile(other) {
		t.Fatal("no room")
	}
	r.t = here
	const all = ^uint64(0)
	for _, tt := range []struct {
		name                 string
		related              bool
		before               *file
		failed               wire.Status
		persistent, volatile uint64
		want                 *file
		status               wire.Status
	}{
		{"by id", false, nil, 0, one.id, one.id, one, wire.StatusOK},
		{"by half an id", false, nil, 0, all, one.id, nil, wire.StatusFileClosed},
		{"nothing", false, nil, 0, 0, 0, nil, wire.StatusFileClosed},
		{"of another tree", false, nil, 0, other.id, other.id, nil, wire.StatusFileClosed},
		{"the one before, unrelated", false, one, 0, all, all, nil, wire.StatusFileClosed},
		{"the one before", true, one, 0, all, all, one, wire.StatusOK},
		{"the one before, which was not opened", true, nil, wire.StatusAccessDenied, all, all, nil, wire.StatusAccessDenied},
		{"the one before, which was none", true, nil, 0, all, all, nil, wire.StatusFileClosed},
		{"another than before", true, other, 0, one.id, one.id, one, wire.StatusOK},
	} {
		r.h.Flags = 0
		if tt.related {
			r.h.Flags = wire.FlagRelated
		}
		r.f, r.failed = tt.before, tt.failed
		f, status := r.file(wire.FileID{Persistent: tt.persistent, Volatile: tt.volatile})
		if f != tt.want || status != tt.status {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, f, status, tt.want, tt.status)
		}
	}
	if r.who.Holder != nil {
		t.Error("a request without a session has a holder")
	}
}

// A credit pays for 64 KiB, where the dialect has more than one for a request.
func TestPaid(t *testing.T) {
	for _, tt := range []struct {
		dialect wire.Dialect
		charge  uint16
		size    int
		want    bool
	}{
		{wire.Dialect202, 0, 1 << 20, true},
		{wire.Dialect210, 0, 64 << 10, true},
		{wire.Dialect210, 1, 64<<10 + 1, false},
		{wire.Dialect311, 2, 128 << 10, true},
		{wire.Dialect311, 2, 128<<10 + 1, false},
	} {
		c := new(conn)
		if c.dialect = tt.dialect; tt.dialect > wire.Dialect202 {
			c.caps = wire.CapLargeMTU
		}
		r := &request{c: c, h: wire.Header{CreditCharge: tt.charge}}
		if got := r.paid(tt.size); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// A reply that does not fit gets a buffer of its own, behind those of before.
func TestGrow(t *testing.T) {
	was := commands[wire.CommandFlush]
	defer func() { commands[wire.CommandFlush] = was }()
	commands[wire.CommandFlush].size = 8
	commands[wire.CommandFlush].run = func(r *request) wire.Status {
		n := int(binary.LittleEndian.Uint32(r.msg[wire.HeaderSize+4:]))
		if !r.grow(n) {
			return wire.StatusInsufficientResources
		}
		r.w.Bytes(make([]byte, n))
		return wire.StatusOK
	}
	_, addr := newServer(t, nil)
	for _, seal := range []bool{false, true} {
		c := user(t, addr, nil)
		c.seal = seal
		for _, sizes := range [][]int{{100}, {60000, 60000, 60000, 60000, 60000}, {1 << 20}, {100, 1 << 20, 100}, {MaxIO, 100}, {5 << 20, 5 << 20}, {MaxIO, MaxIO}} {
			// As frames of their own, and as one.
			var msgs [][]byte
			for _, n := range sizes {
				body := binary.LittleEndian.AppendUint32([]byte{8, 0, 0, 0}, uint32(n))
				msgs = append(msgs, c.message(wire.CommandFlush, body))
				c.send(c.message(wire.CommandFlush, body))
			}
			c.send(msgs...)
			for _, n := range sizes {
				if r := c.one(); r.Status != wire.StatusOK || len(r.body) != n {
					t.Fatalf("%d: %v, %d bytes", n, r.Status, len(r.body))
				}
			}
			replies, err := c.frame()
			if err != nil || len(replies) != len(sizes) {
				t.Fatalf("%v: %d replies, %v", sizes, len(replies), err)
			}
			all := 0
			for i, n := range sizes {
				want := wire.StatusOK
				if all += n; all > MaxIO+overhead {
					want = wire.StatusInsufficientResources
					all -= n
				}
				if r := replies[i]; r.Status != want || want == 0 && len(r.body) < n {
					t.Errorf("%v: %d: %v, %d bytes", sizes, n, r.Status, len(r.body))
				}
			}
		}
	}
}
