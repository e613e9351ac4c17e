package smb

import (
	"testing"
	"time"

	"ramserver/export/smb/wire"
)

// waits makes FLUSH a command that waits for a value from the channel, which is
// its status.
func waits(t *testing.T) chan<- wire.Status {
	wake := make(chan struct{})
	status := make(chan wire.Status, 1)
	was := commands[wire.CommandFlush]
	t.Cleanup(func() { commands[wire.CommandFlush] = was })
	commands[wire.CommandFlush].size = 4
	commands[wire.CommandFlush].run = func(r *request) wire.Status {
		if r.again {
			select {
			case s := <-status:
				wire.EncodeEmpty(r.w)
				return s
			default:
			}
		}
		r.ready = wake
		return wire.StatusPending
	}
	done := make(chan wire.Status)
	go func() {
		for s := range done {
			status <- s
			wake <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(done) })
	return done
}

func TestPending(t *testing.T) {
	done := waits(t)
	srv, addr := newServer(t, nil)
	for _, seal := range []bool{false, true} {
		c := user(t, addr, nil)
		c.seal = seal
		begin := func() (id, async uint64) {
			t.Helper()
			id = c.id
			r := c.do(wire.CommandFlush, echoBody)
			if r.Status != wire.StatusPending || r.Flags&wire.FlagAsync == 0 || r.AsyncID == 0 || r.MessageID != id || r.Credits == 0 || r.Flags&wire.FlagSigned != 0 || r.seal != seal {
				t.Fatalf("interim: %+v", r.Header)
			}
			if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK {
				t.Fatalf("meanwhile: %v", r.Status)
			}
			return id, r.AsyncID
		}
		end := func(what string, id, async uint64, want wire.Status) {
			t.Helper()
			r := c.one()
			if r.Status != want || r.Flags&wire.FlagAsync == 0 || r.AsyncID != async || r.MessageID != id || r.Credits != 0 || (r.Flags&wire.FlagSigned != 0) == seal || r.seal != seal {
				t.Errorf("%s: %+v, want %v", what, r.Header, want)
			}
		}
		id, async := begin()
		done <- wire.StatusOK
		end("done", id, async, wire.StatusOK)
		id, async = begin()
		done <- wire.StatusAccessDenied
		end("refused", id, async, wire.StatusAccessDenied)
		id, async = begin()
		c.send(c.message(wire.CommandCancel, echoBody, func(h *wire.Header) { h.Flags |= wire.FlagAsync; h.AsyncID = async }))
		end("cancelled", id, async, wire.StatusCancelled)
		id, async = begin()
		c.send(c.message(wire.CommandCancel, echoBody, func(h *wire.Header) { h.MessageID = id }))
		end("cancelled by its message id", id, async, wire.StatusCancelled)
		c.send(c.message(wire.CommandCancel, echoBody, func(h *wire.Header) { h.MessageID = id }))

		id, async = begin()
		other, _ := id, async
		c.send(c.message(wire.CommandTreeDisconnect, echoBody))
		for range 2 {
			switch r := c.one(); r.Command {
			case wire.CommandTreeDisconnect:
				if r.Status != wire.StatusOK {
					t.Errorf("disconnect: %v", r.Status)
				}
			default:
				if r.MessageID != other || r.Status != wire.StatusCancelled {
					t.Errorf("of a tree that is gone: %+v", r.Header)
				}
			}
		}
		c.connect("share")
		begin()
		c.nc.Close()
		for len(srv.Stats().Sessions) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// One that waits in the middle of a compound: what is related waits for it.
func TestPendingInCompound(t *testing.T) {
	done := waits(t)
	_, addr := newServer(t, nil)
	for _, seal := range []bool{false, true} {
		c := user(t, addr, nil)
		c.seal = seal
		id := c.id
		c.send(c.message(wire.CommandEcho, echoBody), c.message(wire.CommandFlush, echoBody),
			c.message(wire.CommandTreeConnect, treeBody(`\\server\share`), related), c.message(wire.CommandEcho, echoBody))
		// The id and status of each reply, by frames.
		type got struct {
			id     uint64
			status wire.Status
		}
		frame := func(want ...got) {
			t.Helper()
			replies, err := c.frame()
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range replies {
				if i >= len(want) || r.MessageID != want[i].id || r.Status != want[i].status {
					t.Errorf("encrypted %v: reply %d of %d: %+v", seal, i, len(replies), r.Header)
				}
			}
			if len(replies) != len(want) {
				t.Fatalf("encrypted %v: %d replies, want %d", seal, len(replies), len(want))
			}
		}
		frame(got{id, 0})
		frame(got{id + 1, wire.StatusPending})
		c.nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if r, err := c.frame(); err == nil {
			t.Fatalf("related, and did not wait: %+v", r[0].Header)
		}
		c.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		done <- wire.StatusOK
		frame(got{id + 1, 0}, got{id + 2, 0}, got{id + 3, 0})

		// What is not goes on.
		id = c.id
		c.send(c.message(wire.CommandFlush, echoBody), c.message(wire.CommandEcho, echoBody))
		frame(got{id, wire.StatusPending})
		frame(got{id + 1, 0})
		done <- wire.StatusOK
		frame(got{id, 0})
	}
}
