package smb

import (
	"encoding/binary"
	"testing"
	"time"

	"ramserver/export/link"
	"ramserver/export/smb/wire"
)

func TestFrames(t *testing.T) {
	_, addr := newServer(t, nil)
	t.Run("byte by byte", func(t *testing.T) {
		c := dial(t, addr)
		m := c.message(wire.CommandNegotiate, c.negotiateBody())
		for _, b := range append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...) {
			if _, err := c.nc.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if r := c.one(); r.Status != wire.StatusOK {
			t.Error(r.Status)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		c := user(t, addr, nil)
		const n = 60
		var all []byte
		for range n {
			m := c.message(wire.CommandEcho, echoBody)
			all = append(binary.BigEndian.AppendUint32(all, uint32(len(m))), m...)
			all = append(all, typeKeepAlive, 0, 0, 0)
		}
		if _, err := c.nc.Write(all); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if r := c.one(); r.Status != wire.StatusOK {
				t.Fatalf("%d: %v", i, r.Status)
			}
		}
	})
	for _, tt := range []struct {
		name string
		head uint32
	}{
		{"a session request of NetBIOS", 0x81000044},
		{"too large, before logon", firstFrame + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, addr)
			c.nc.Write(binary.BigEndian.AppendUint32(nil, tt.head))
			c.closed()
		})
	}
	t.Run("too large", func(t *testing.T) {
		c := user(t, addr, nil)
		c.nc.Write(binary.BigEndian.AppendUint32(nil, maxFrame+1))
		c.closed()
	})
	t.Run("large", func(t *testing.T) {
		// As large as may be, of each class of buffers, encrypted and not.
		for _, n := range []int{inSize, 1 << 20, maxFrame - 1000} {
			for _, seal := range []bool{false, true} {
				c := user(t, addr, nil)
				c.seal = seal
				m := c.message(wire.CommandEcho, append(echoBody[:4:4], make([]byte, n)...))
				if c.send(m, c.message(wire.CommandEcho, echoBody)); seal {
					c.send(c.message(wire.CommandEcho, echoBody))
				}
				replies, err := c.frame()
				if err != nil || len(replies) != 2 || replies[1].Status != wire.StatusOK {
					t.Fatalf("%d bytes, encrypted %v: %+v, %v", n, seal, replies, err)
				}
			}
		}
	})
}

// state waits until the only connection is in a state.
func state(t *testing.T, s *Server, want link.State) {
	t.Helper()
	for range 5000 {
		s.mu.Lock()
		for c := range s.conns {
			if c.State() == want {
				s.mu.Unlock()
				return
			}
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("no connection in state %d", want)
}

// Who stops in the middle of a frame, or takes no replies, or does not log on, is
// cut off after a minute; who has nothing to do is not.
func TestStalls(t *testing.T) {
	later := func(s *Server) {
		s.sweep(time.Now())
		s.sweep(time.Now().Add(link.StallTime + time.Second))
	}
	t.Run("frame", func(t *testing.T) {
		s, addr := newServer(t, nil)
		c := user(t, addr, nil)
		c.nc.Write(binary.BigEndian.AppendUint32(nil, 1<<20))
		state(t, s, link.Midway)
		later(s)
		c.closed()
	})
	t.Run("nobody", func(t *testing.T) {
		s, addr := newServer(t, nil)
		c := dial(t, addr)
		c.negotiate()
		later(s)
		c.closed()
	})
	t.Run("idle", func(t *testing.T) {
		s, addr := newServer(t, nil)
		c := user(t, addr, nil)
		later(s)
		state(t, s, link.Idle)
		if !s.works.TryTake(s.half) {
			t.Error("an idle connection holds work")
		}
		s.works.Give(s.half)
		if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
			t.Error(r.Status)
		}
	})
}

// The one that has been idle for longest makes room, one where nobody has logged
// on before others.
func TestEvict(t *testing.T) {
	s, addr := newServer(t, func(c *Config) { c.MaxConns = 2 })
	a := user(t, addr, nil)
	b := dial(t, addr)
	b.negotiate()
	state(t, s, link.Reading)
	c := user(t, addr, nil)
	b.closed()
	for _, c := range []*client{a, c} {
		if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
			t.Error(r.Status)
		}
	}
	if n := s.Stats().Evicted; n != 1 {
		t.Errorf("%d evicted", n)
	}
}
