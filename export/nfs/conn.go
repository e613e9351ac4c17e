package nfs

import (
	"errors"
	"net"
	"sync/atomic"

	"ramserver/export"
	"ramserver/export/link"
	"ramserver/export/nfs/rpc"
)

// Reasons to end a connection, besides the network's.
var (
	errRecord   = errors.New("record is too large")
	errDraining = errors.New("server is shutting down")
)

// conn is one client's connection. Its goroutine, which runs serve, owns every
// field that is not marked otherwise: (c) is constant, (a) atomic, (s)
// protected by Server.mu.
type conn struct {
	link.Link
	s     *Server  // (c)
	count counters // (a)

	peer   *export.Peer // set with the first byte
	client uint32       // its address, for the replay cache

	work  *work       // nil while idle
	large bool        // buf is neither small nor work.in
	ready atomic.Bool // (a) has sent a call that could be understood

	// buf[start:w] is what was received and is not yet answered. buf[start:end]
	// is what the fragments of the current record before pos have brought, put
	// together; the next mark is at pos.
	buf                []byte
	start, end, pos, w int
	small              [smallSize]byte

	parked atomic.Int32 // (a) requests that wait for another holder
	late   settling
	back   callbacks
}

// serve answers calls until the connection ends.
func (c *conn) serve() {
	err := c.run()
	c.hungUp()
	c.giveWork()
	if errors.Is(err, errDraining) {
		c.HangUp()
	}
	c.Conn.Close()
	c.s.remove(c, err)
}

func (c *conn) run() error {
	c.buf = c.small[:]
	for {
		for {
			rec, err := c.record()
			if err != nil {
				return errors.Join(err, c.flush())
			}
			if rec == nil {
				break
			}
			if err := c.answer(rec); err != nil {
				return errors.Join(err, c.flush())
			}
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

// record returns the next record if all of it has been received, else nil.
// It is valid until fill.
func (c *conn) record() ([]byte, error) {
	limit := c.s.maxRecord
	if !c.ready.Load() {
		limit = firstRecord
	}
	for c.w-c.pos >= rpc.MarkSize {
		n, last := rpc.MarkOf(c.buf[c.pos:])
		// Marks count too, so that a record of empty fragments ends (RFC 5531
		// section 11 bounds neither).
		if c.pos-c.start+n > limit {
			return nil, errRecord
		}
		next := c.pos + rpc.MarkSize + n
		if next > c.w {
			break
		}
		fragment := c.buf[c.pos+rpc.MarkSize : next]
		if c.pos == c.start && last {
			c.start, c.end, c.pos = next, next, next
			return fragment, nil
		}
		c.end += copy(c.buf[c.end:], fragment)
		c.pos = next
		if last {
			rec := c.buf[c.start:c.end]
			c.start, c.end = next, next
			return rec, nil
		}
	}
	return nil, nil
}

// fill waits for more bytes of the current record, or of the next.
func (c *conn) fill() error {
	if c.start == c.w {
		c.rewind()
	}
	want := c.target() - c.start
	if want <= smallSize && c.s.works.Waiting() {
		c.giveWork()
	}
	if want > smallSize && c.work == nil {
		if err := c.takeWork(false); err != nil {
			return err
		}
	}
	if want >= freshMin && c.pos == c.start {
		if done, err := c.receive(); done || err != nil {
			return err
		}
	}
	if err := c.makeRoom(want); err != nil {
		return err
	}
	free := c.buf[c.w:]
	if c.large {
		// Nothing is read behind the record, so that the buffer can be given
		// back with it.
		free = c.buf[c.w:c.target()]
	}
	switch {
	case c.work == nil:
		c.Set(link.Idle)
	case want <= smallSize:
		c.Set(link.Reading)
	default:
		c.Set(link.Midway)
	}
	n, err := c.read(free)
	c.w += n
	return err
}

// target is where the bytes end that are surely needed next: the mark at pos,
// or if that is there the fragment behind it.
func (c *conn) target() int {
	if c.w-c.pos < rpc.MarkSize {
		return c.pos + rpc.MarkSize
	}
	n, _ := rpc.MarkOf(c.buf[c.pos:])
	return c.pos + rpc.MarkSize + n
}

// read is one read from the socket. It returns 0 bytes without an error when
// the janitor woke it.
func (c *conn) read(b []byte) (int, error) {
	n, woken, err := c.Read(b)
	c.count.in.Add(uint64(n))
	switch {
	case !woken:
		return n, err
	case c.s.draining.Load():
		return n, errDraining
	case n == 0 && c.target()-c.start <= smallSize:
		c.giveWork()
	}
	return n, nil
}

// rewind starts over at the beginning of the buffer when all of it has been
// answered.
func (c *conn) rewind() {
	c.giveLarge()
	c.start, c.end, c.pos, c.w = 0, 0, 0, 0
}

// makeRoom moves what was received to the beginning of the buffer, and if n
// bytes from start do not fit goes on in a large one.
func (c *conn) makeRoom(n int) error {
	if c.start > 0 {
		copy(c.buf, c.buf[c.start:c.w])
		c.end -= c.start
		c.pos -= c.start
		c.w -= c.start
		c.start = 0
	}
	if n <= len(c.buf) {
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	if !c.s.large.Take(int64(c.s.maxRecord), false, c.s.done) {
		return net.ErrClosed
	}
	b := c.s.largePool.Get().(*[]byte)
	copy(*b, c.buf[:c.w])
	c.buf, c.large = *b, true
	return nil
}

func (c *conn) giveLarge() {
	if !c.large {
		return
	}
	b := c.buf
	c.s.largePool.Put(&b)
	c.s.large.Give(int64(c.s.maxRecord))
	c.buf, c.large = c.work.in, false
}

// takeWork gets the connection what it needs to answer calls, and moves what
// was received into it.
func (c *conn) takeWork(urgent bool) error {
	if !c.s.works.Take(workSize, urgent, c.s.done) {
		return net.ErrClosed
	}
	if c.peer == nil {
		c.peer = export.NewPeer(c.Conn)
		c.client = c.s.replays.clientHash(c.peer)
	}
	c.work = workPool.Get().(*work)
	c.work.w.B = c.work.out[:0]
	c.work.call = call{c: c, w: &c.work.w, work: c.work}
	c.work.call.who.Unsettled = &c.work.call.unsettled
	c.work.call.who.InPlace = c.peer.Local()
	c.buf = c.work.in
	copy(c.buf, c.small[:c.w])
	return nil
}

// giveWork returns it. What was received and not answered is kept if it fits
// the connection's own buffer, else lost.
func (c *conn) giveWork() {
	if c.work == nil {
		return
	}
	c.releaseView()
	rest := copy(c.small[:], c.buf[c.start:c.w])
	c.end, c.pos = c.end-c.start, c.pos-c.start
	c.start, c.w = 0, rest
	c.giveLarge()
	c.buf = c.small[:]
	c.work.call = call{}
	clear(c.work.entries[:])
	workPool.Put(c.work)
	c.work = nil
	c.s.works.Give(workSize)
}

// answer executes one call and appends its reply to the batch, which it sends
// when it is large or continues in the store's pages.
func (c *conn) answer(rec []byte) error {
	if c.work == nil {
		if err := c.takeWork(true); err != nil {
			return err
		}
	}
	k := &c.work.call
	switch err := k.serve(rec); {
	case err == rpc.ErrNotCall:
		return c.callbackReply(rec)
	case err != nil:
		return err
	}
	switch {
	case k.wait != nil:
		c.park(k, rec)
	case k.unsettled.Any():
		c.settle(k)
	}
	if k.pages > 0 || len(c.work.w.B) >= flushSize {
		return c.flush()
	}
	return nil
}

// receive is called when a record of one fragment has begun that is too large
// to wait for in the buffer. If it is a WRITE that can replace whole pages, its
// data goes from the socket into new pages of the store, and done is true. A
// client that stalls meanwhile holds no lock and shows nothing.
func (c *conn) receive() (done bool, err error) {
	if len(c.buf)-c.pos < maxHead+maxTail {
		if err := c.makeRoom(0); err != nil {
			return false, err
		}
	}
	size, last := rpc.MarkOf(c.buf[c.pos:c.w])
	if !last {
		return false, nil
	}
	head := c.buf[c.pos+rpc.MarkSize : c.w]
	k := &c.work.call
	i, off, n, tail := k.freshWrite(head, size)
	if n == 0 || i.Loose() || !c.s.large.TryTake(int64(n)) {
		return false, nil // a WRITE that is to be parked must be whole
	}
	defer c.s.large.Give(int64(n))
	f := &c.work.fresh
	if i.NewFresh(f, off, n) != nil {
		return false, nil // a write that is cut short, or what overwrites, may still fit
	}
	defer f.Release()
	if err := c.flush(); err != nil {
		return false, err
	}
	data := k.args.Rest()
	head = head[:len(head)-len(data)]
	receive := func(b []byte) error {
		done := copy(b, data)
		data = data[done:]
		for done < len(b) {
			c.Set(link.Midway)
			n, err := c.read(b[done:])
			if err != nil {
				return err
			}
			done += n
		}
		return nil
	}
	for _, s := range f.Slices {
		if err := receive(s); err != nil {
			return false, err
		}
	}
	// What follows the data takes its place in the buffer.
	rec := head[:len(head)+tail]
	if err := receive(rec[len(head):]); err != nil {
		return false, err
	}
	k.fresh, k.freshSize = f, n
	err = c.answer(rec)
	k.fresh, k.freshSize = nil, 0
	c.start = c.w
	c.rewind()
	return true, err
}

// flush sends the batch and the pages that follow it.
func (c *conn) flush() error {
	if c.work == nil || len(c.work.w.B) == 0 {
		return nil
	}
	var pages *net.Buffers
	if n := c.work.call.pages; n > 0 {
		iov := append(c.work.iov[:0], c.work.w.B)
		iov = append(iov, c.work.view.Slices...)
		c.work.iov = append(iov, padding[:-n&3])
		c.work.bufs = c.work.iov
		pages = &c.work.bufs
	}
	n, err := c.Send(c.work.w.B, pages)
	c.count.out.Add(uint64(n))
	c.releaseView()
	c.work.w.B = c.work.out[:0]
	return err
}

var padding [3]byte

func (c *conn) releaseView() {
	k := &c.work.call
	if k.pages > 0 {
		c.work.view.Release()
		c.s.large.Give(k.pinned)
		k.pages, k.pinned = 0, 0
	}
}

// sendParked sends the reply to a request that has left the connection's
// goroutine.
func (c *conn) sendParked(b []byte) { c.count.out.Add(uint64(c.SendLate(b))) }
