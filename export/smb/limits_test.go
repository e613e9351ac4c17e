package smb

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"ramserver/export/link"
	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// sweepAt is the janitor at a later time.
func (s *Server) sweepAt(later time.Duration) { s.sweep(time.Now().Add(later)) }

// doing counts the connections in a state.
func (s *Server) doing(state link.State) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.State() == state {
			n++
		}
	}
	return n
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// rich has so many credits that its requests need not wait for replies.
func (c *client) rich(n int) *client {
	c.t.Helper()
	for c.credits-int(c.id) < n {
		c.do(wire.CommandEcho, echoBody, func(h *wire.Header) { h.Credits = 2000 })
	}
	return c
}

// framed is messages as frames of their own, signed or encrypted if the client does
// that.
func (c *client) framed(msgs ...[]byte) (all []byte) {
	sink := &recorder{}
	was := c.nc
	c.nc = sink
	for _, m := range msgs {
		c.send(m)
	}
	c.nc = was
	return sink.b
}

type recorder struct {
	net.Conn
	b []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.b = append(r.b, b...)
	return len(b), nil
}

// A client that does not take its replies stops being read from, keeps nobody else
// waiting, and is closed after a minute without progress.
func TestNeverReads(t *testing.T) {
	for _, how := range []string{"plain", "signed", "encrypted"} {
		t.Run(how, func(t *testing.T) {
			s, addr := newServer(t, func(c *Config) { c.Signing = Enabled })
			other := enter(t, addr)
			f := open(t, other, "f")
			write(t, f, 0, string(make([]byte, 1<<16)))
			deaf := user(t, addr, nil).rich(2000)
			id := deaf.create("f")
			deaf.sign, deaf.seal = how == "signed", how == "encrypted"
			var msgs [][]byte
			for range 1500 {
				msgs = append(msgs, deaf.readMessage(id, 0, 1<<16))
			}
			frames := deaf.framed(msgs...)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				deaf.nc.Write(frames)
			}()
			eventually(t, "the server cannot write", func() bool {
				if s.doing(link.Writing) == 0 {
					return false
				}
				time.Sleep(20 * time.Millisecond)
				return s.doing(link.Writing) == 1
			})
			if got := read(t, f, 0, 10); len(got) != 10 {
				t.Errorf("meanwhile another reads %q", got)
			}
			eventually(t, "the connection is closed", func() bool {
				s.sweepAt(0)
				s.sweepAt(link.StallTime)
				return s.count() == 1
			})
			<-sent
		})
	}
}

// A slow reader that makes progress is not closed.
func TestSlowReader(t *testing.T) {
	s, addr := newServer(t, nil)
	slow := user(t, addr, nil).rich(2000)
	id := slow.create("f")
	slow.send(slow.writeMessage(id, 0, make([]byte, 1<<20)))
	slow.one()
	const n = 20
	var msgs [][]byte
	for range n {
		msgs = append(msgs, slow.readMessage(id, 0, 1<<20))
	}
	slow.nc.Write(slow.framed(msgs...))
	for range n {
		s.sweepAt(0)
		var rest [1000]byte
		if _, err := io.ReadFull(slow.nc, rest[:]); err != nil {
			t.Fatal(err)
		}
		// The janitor looks when the write has been going on for a minute, in which
		// some of it was sent.
		length := int64(binary.BigEndian.Uint32(rest[:])) + frameSize
		if _, err := io.CopyN(io.Discard, slow.nc, length-int64(len(rest))); err != nil {
			t.Fatal(err)
		}
		s.sweepAt(link.StallTime)
	}
	slow.nc.SetDeadline(time.Now().Add(20 * time.Second))
	if r := slow.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
		t.Error(r.Status)
	}
}

// More connections than there is memory for take turns.
func TestMemoryPressure(t *testing.T) {
	s, addr := newServer(t, func(c *Config) { c.Buffers = 1 })
	open(t, enter(t, addr), "f")
	var wg sync.WaitGroup
	for range 2 * int(s.half/workSize) {
		c := enter(t, addr)
		wg.Go(func() {
			f := open(t, c, "f")
			data := make([]byte, 1<<20)
			for range 2 {
				if n, err := f.Write(1, data); err != nil || n != len(data) {
					t.Error(n, err)
				}
				if b, err := f.Read(0, 1<<20); err != nil || len(b) != 1<<20 {
					t.Error(len(b), err)
				}
			}
		})
	}
	wg.Wait()
}

// Thousands who connect and say nothing, or go on for ever to say little, hold next
// to nothing, keep no user out, and are gone after a minute.
func TestStrangers(t *testing.T) {
	const n = 4000 // a connection of the race detector's 8,000 goroutines is two
	s, addr := newServer(t, func(c *Config) { c.MaxConns = n + 10 })
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := heap()
	ends := make([]net.Conn, n)
	for k := range ends {
		var theirs net.Conn
		ends[k], theirs = net.Pipe()
		s.add(theirs)
	}
	eventually(t, "they are all there", func() bool { return s.doing(link.Idle) == n })
	if each := int64(heap()-before) / n; each > 16<<10 {
		t.Errorf("each takes %d bytes", each)
	}
	if free := s.works.Free(); free != s.half {
		t.Errorf("they hold %d bytes of the budget", s.half-free)
	}
	c := enter(t, addr)
	open(t, c, "f")

	// One that is in the middle of a large frame, and never ends it.
	slow := dial(t, addr)
	slow.nc.Write(binary.BigEndian.AppendUint32(nil, firstFrame))
	drip := func() {
		was := s.bytesIn()
		if _, err := slow.nc.Write([]byte("x")); err != nil {
			return
		}
		eventually(t, "a byte arrives", func() bool { return s.bytesIn() > was || s.count() == 1 })
	}
	for at := time.Duration(0); at < link.StallTime; at += link.StallTime / 4 {
		drip()
		s.sweepAt(at)
	}
	if s.count() != n+2 {
		t.Errorf("%d connections of %d within a minute", s.count(), n+2)
	}
	eventually(t, "all but the user's are closed", func() bool {
		drip()
		s.sweepAt(link.StallTime + time.Second)
		return s.count() == 1
	})
	open(t, c, "f")
	for _, end := range ends {
		end.Close()
	}
}

func (s *Server) bytesIn() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		n += c.count.in.Load()
	}
	return n
}

// A slow logon is not one that has failed, but has a minute.
func TestSlowLogon(t *testing.T) {
	s, addr := newServer(t, nil)
	c := dial(t, addr)
	c.negotiate()
	s.sweepAt(0)
	s.sweepAt(link.StallTime - 10*time.Second)
	if r := c.logon("user", "pass", 0); r.Status != wire.StatusOK {
		t.Fatal(r.Status)
	}
	s.sweepAt(2 * link.StallTime)
	s.sweepAt(4 * link.StallTime)
	if r := c.connect("share"); r.Status != wire.StatusOK {
		t.Errorf("long after: %v", r.Status)
	}
}

// Requests that wait: a connection has so many, and all together leave memory to
// others.
func TestManyWait(t *testing.T) {
	s, addr := newServer(t, nil)
	c := enter(t, addr)
	dir := open(t, c, "", access(rightReadData))
	var calls []*smbtest.Call
	waiting := 0
	for range maxPending + 10 {
		call := dir.Notify(wire.FilterFileName, false, 1000)
		calls = append(calls, call)
		if call.Waits() {
			waiting++
		} else if _, err := call.Wait(); err != wire.StatusInsufficientResources {
			t.Fatal(err)
		}
	}
	if waiting == 0 || waiting > maxPending {
		t.Errorf("%d wait", waiting)
	}
	if free := s.large.Free(); free < s.half/2 {
		t.Errorf("%d bytes of %d are free", free, s.half)
	}
	// Many connections together.
	for k := 0; k < 40 && s.waiting.Load() <= s.half/2-pendingCost-1000; k++ {
		other := enter(t, addr)
		d := open(t, other, "", access(rightReadData))
		for range 200 {
			if !d.Notify(wire.FilterFileName, false, 1000).Waits() {
				break
			}
		}
	}
	if free := s.large.Free(); free < s.half/2 {
		t.Errorf("%d bytes of %d are free", free, s.half)
	}
	f := open(t, enter(t, addr), "f") // wakes one of each
	data := make([]byte, 1<<20)
	if n, err := f.Write(0, data); n != len(data) || err != nil {
		t.Errorf("another's write: %d bytes, %v", n, err)
	}
	if _, err := calls[0].Changes(); err != nil {
		t.Error(err)
	}
}

// What one frame can ask for is bounded, however often it asks.
func TestMuchInOneFrame(t *testing.T) {
	s, addr := newServer(t, nil)
	root := s.cfg.Exports.All()[0].Root
	for n := range 1000 {
		if _, err := root.Create(memstore.Root(), fmt.Sprintf("a file with a long name, the number of which is %4d", n), &memstore.Create{Type: memstore.TypeFile}); err != nil {
			t.Fatal(err)
		}
	}
	for _, seal := range []bool{false, true} {
		c := user(t, addr, nil).rich(500)
		c.seal = seal
		body := createBody("")
		le.PutUint32(body[24:], 0x00120089) // to read
		le.PutUint32(body[36:], wire.FileOpen)
		le.PutUint32(body[40:], wire.OptDirectory)
		msgs := [][]byte{c.message(wire.CommandCreate, body)}
		pattern := text("*")
		for range 300 {
			var w wire.Writer
			w.Uint16(33)
			w.Uint8(wire.DirIDBoth)
			w.Uint8(wire.DirRestart)
			w.Uint32(0)
			w.B = wire.AnyFile.Append(w.B)
			w.Uint16(wire.HeaderSize + 32)
			w.Uint16(uint16(len(pattern)))
			w.Uint32(1 << 16)
			w.Bytes(pattern)
			msgs = append(msgs, c.message(wire.CommandQueryDirectory, w.B, related))
		}
		c.send(msgs...)
		replies, err := c.frame()
		if err != nil || len(replies) != len(msgs) {
			t.Fatalf("%d replies, %v", len(replies), err)
		}
		total := 0
		for k, r := range replies {
			total += len(r.msg)
			if k == 0 && r.Status != wire.StatusOK || k > 0 && r.Status != wire.StatusOK && r.Status != wire.StatusInsufficientResources {
				t.Fatalf("reply %d: %v", k, r.Status)
			}
		}
		if last := replies[len(replies)-1].Status; last != wire.StatusInsufficientResources || total > maxFrame || total < maxFrame/2 {
			t.Errorf("%d bytes, the last %v", total, last)
		}
		if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
			t.Errorf("afterwards: %v", r.Status)
		}
	}
}

// A connection has so many files open; what it has closed counts no more.
func TestManyOpen(t *testing.T) {
	s, addr := newServer(t, nil)
	c := enter(t, addr)
	f := open(t, c, "f")
	s.mu.Lock()
	var its *conn
	for its = range s.conns {
	}
	s.mu.Unlock()
	its.opens.Add(maxOpen - 1)
	_, err := c.Open(smbtest.OpenArgs{Path: "g", Access: rightMaximum, Share: smbtest.ShareAll, Disposition: wire.FileCreate})
	if err != wire.StatusInsufficientResources {
		t.Errorf("one too many: %v", err)
	}
	other := enter(t, addr)
	open(t, other, "f")
	f.Close()
	open(t, c, "f").Close()
	its.opens.Add(1 - maxOpen)
	c.Close()
	eventually(t, "the connection has ended", func() bool { return s.count() == 1 })
	if mine, all := its.opens.Load(), s.opens.Load(); mine != 0 || all != 1 {
		t.Errorf("%d are open by it, %d by all", mine, all)
	}
}

// Pipes hold so much, and lose it when they are closed.
func TestManyPipes(t *testing.T) {
	s, addr := newServer(t, nil)
	c, err := smbtest.Dial(t.Context(), addr, smbtest.Options{User: "user", Password: "pass", Share: "IPC$"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The first parts of requests that never end.
	part := make([]byte, rpcHeader+8+1024)
	copy(part, []byte{5, 0, rpcRequest, rpcFirst, 0x10, 0, 0, 0})
	le.PutUint16(part[8:], uint16(len(part)))
	var pipes []*smbtest.File
	var full error
	for len(pipes) < 100 && full == nil {
		p := open(t, c, "srvsvc")
		pipes = append(pipes, p)
		part[3] = rpcFirst
		for n := 0; n < 60 && full == nil; n++ {
			_, full = p.Write(0, part)
			part[3] = 0
		}
	}
	if full != wire.StatusPipeDisconnected || s.pipes.Load() > maxPipes {
		t.Errorf("%v, %d pipes hold %d bytes", full, len(pipes), s.pipes.Load())
	}
	for _, p := range pipes {
		p.Close()
	}
	if n := s.pipes.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
