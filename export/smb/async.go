package smb

import (
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// pending is a request that waits for something.
type pending struct {
	r     *request
	fresh *memstore.Fresh  // data of a WRITE, or nil
	stop  chan wire.Status // gets the status that ends the wait
}

// maxPending is how many requests of one connection may wait.
const maxPending = 1024

// pendingCost is what one takes besides its message, in bytes.
const pendingCost = 8 << 10

// park takes a command that ended with StatusPending out of the connection's way,
// with what follows it in its frame if that depends on it: moved is true then. The
// client is told so, and gets the reply whenever there is one (MS-SMB2 section
// 3.3.4.2). Replies to what came before it go out first.
func (r *request) park() (moved bool, err error) {
	c := r.c
	related := r.rest != nil && isRelated(r.rest)
	if related && r.h.Command == wire.CommandChangeNotify {
		// What follows would wait for who knows how long. Windows does so too.
		r.giveUp()
		r.endReply(wire.StatusInternalError)
		return false, nil
	}
	size := int64(len(r.msg) + pendingCost)
	if related {
		size += int64(len(r.rest))
	}
	if r.fresh != nil {
		for _, s := range r.fresh.Slices {
			size += int64(len(s))
		}
	}
	if !c.waits(size) {
		r.giveUp()
		r.endReply(wire.StatusInsufficientResources)
		return false, nil
	}
	id := c.s.ids.Add(1)
	q := &request{c: c, w: new(wire.Writer), chain: r.chain, h: r.h, cmd: r.cmd, s: r.s, t: r.t,
		ready: r.ready, wait: r.wait, watch: r.watch, again: true, async: id, signed: r.signed, begun: r.begun}
	q.begin, q.signer = -1, nil
	q.msg = append([]byte(nil), r.msg...)
	q.rest = nil
	if related {
		q.rest = append([]byte(nil), r.rest...)
		r.rest = nil
	}
	if r.fresh != nil {
		q.fresh = new(memstore.Fresh)
		*q.fresh, *r.fresh = *r.fresh, memstore.Fresh{}
	}
	p := &pending{r: q, fresh: q.fresh, stop: make(chan wire.Status, 1)}

	r.cutReply()
	r.interim(id)
	if err := c.flush(); err != nil {
		c.waited(size)
		return false, err
	}
	c.mu.Lock()
	c.pending[id] = p
	c.mu.Unlock()
	c.s.busy.Add(1)
	go func() {
		defer c.s.busy.Done()
		defer func() {
			c.waited(size)
			c.s.large.Give(q.taken)
		}()
		p.run()
		if p.fresh != nil {
			p.fresh.Release()
		}
	}()
	return related, nil
}

// waits takes memory for a request that waits. It reports false if the connection
// has too many: no connection may keep others from waiting, and all that wait leave
// half of the memory to those that do not.
func (c *conn) waits(size int64) bool {
	s := c.s
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) >= maxPending || c.waiting+size > max(s.half/16, maxFrame+pendingCost) {
		return false
	}
	if s.waiting.Add(size) > s.half/2 || !s.large.TryTake(size) {
		s.waiting.Add(-size)
		return false
	}
	c.waiting += size
	return true
}

// waited gives it back.
func (c *conn) waited(size int64) {
	c.mu.Lock()
	c.waiting -= size
	c.mu.Unlock()
	c.s.waiting.Add(-size)
	c.s.large.Give(size)
}

// giveUp says that the request does not wait any more.
func (r *request) giveUp() {
	if r.wait != nil {
		r.wait.Cancel()
	}
	if r.watch != nil {
		r.watch.Leave(r.ready)
	}
	r.ready, r.wait, r.watch = nil, nil, nil
}

// cutReply takes back what beginReply has begun.
func (r *request) cutReply() {
	w, b := r.w, r.before
	w.B = w.B[:r.last]
	if b.end == 0 {
		w.B = w.B[:r.begin]
		r.begin = -1
		return
	}
	// The reply before it is the last of its frame after all.
	w.B = w.B[:b.end]
	r.last, r.signer = b.at, b.signer
	clear(w.B[b.at+20:][:4])
	if b.signer != nil {
		clear(w.B[b.at+signatureAt:][:signatureSize])
	}
}

// interim tells the client that a request waits. It is not signed: the reply to
// come has the same message id, and so the same nonce.
func (r *request) interim(id uint64) {
	r.endFrame()
	r.beginReply()
	h := wire.Header{
		CreditCharge: r.h.CreditCharge,
		Status:       wire.StatusPending,
		Command:      r.h.Command,
		Flags:        wire.FlagReply | wire.FlagAsync,
		MessageID:    r.h.MessageID,
		AsyncID:      id,
		SessionID:    r.h.SessionID,
		Credits:      r.c.grant(r.asked),
	}
	r.asked = 0
	r.errorBody()
	h.Encode(r.w.B[r.last:])
	r.endFrame()
}

// run waits, executes the request again when that makes sense, and sends the
// replies to it and to what follows it.
func (p *pending) run() {
	r := p.r
	c := r.c
	status := wire.StatusPending
	for status == wire.StatusPending {
		select {
		case <-r.ready:
			r.woken, r.ready, r.wait, r.watch = r.ready, nil, nil, nil
			r.beginReply()
			if status = r.execute(); status == wire.StatusPending {
				r.cutReply()
			}
			if status.IsError() {
				// What it waits by may have been closed, which wakes it too.
				select {
				case status = <-p.stop:
					r.stopped(status)
				default:
				}
			}
		case status = <-p.stop:
			r.giveUp()
			r.beginReply()
			r.stopped(status)
		case <-c.gone:
			r.giveUp()
			return
		}
	}
	c.mu.Lock()
	delete(c.pending, r.async)
	c.mu.Unlock()
	r.endReply(status)
	r.async, r.again = 0, false
	if r.run() != nil {
		c.Conn.Close()
		return
	}
	c.sendLate(r.w.B)
}

// stopped appends the body of the reply to a request whose wait was ended with a
// status; only a lock's may be OK.
func (r *request) stopped(status wire.Status) {
	if status == wire.StatusOK {
		wire.EncodeEmpty(r.w)
	}
}

// cancel is CANCEL, MS-SMB2 section 3.3.5.16.
func (c *conn) cancel(h *wire.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, p := range c.pending {
		if h.Flags&wire.FlagAsync != 0 && id == h.AsyncID || h.Flags&wire.FlagAsync == 0 && p.r.h.MessageID == h.MessageID {
			p.end(wire.StatusCancelled)
		}
	}
}

// endPending ends what waits and fits.
func (c *conn) endPending(fits func(*request) bool, status wire.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if fits(p.r) {
			p.end(status)
		}
	}
}

// endFile ends what waits by a file that is closed, locks with a status.
func (c *conn) endFile(s *session, f *file, locks wire.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if p.r.s != s || p.r.f != f {
			continue
		}
		switch p.r.h.Command {
		case wire.CommandChangeNotify:
			p.end(wire.StatusNotifyCleanup)
		case wire.CommandLock:
			p.end(locks)
		default:
			p.end(wire.StatusCancelled)
		}
	}
}

// end ends the wait with a status, unless it has been ended already.
func (p *pending) end(status wire.Status) {
	select {
	case p.stop <- status:
	default:
	}
}
