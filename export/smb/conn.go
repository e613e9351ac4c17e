package smb

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export"
	"ramserver/export/link"
	"ramserver/memstore"
)

// logonTime is how long a connection may have memory that others wait for before
// somebody has logged on; link.StallTime is the same while nobody waits.
const logonTime = 10 * time.Second

// Reasons to end a connection, besides the network's.
var (
	errFrame     = errors.New("frame is malformed")
	errTooLarge  = errors.New("frame is too large")
	errDraining  = errors.New("server is shutting down")
	errUnsigned  = errors.New("tree connect is neither signed nor encrypted")
	errDowngrade = errors.New("somebody changed what was negotiated")
)

// conn is one client's connection. Its goroutine, which runs serve, owns every
// field that is not marked otherwise: (c) is constant, (a) atomic, (s)
// protected by Server.mu, (mu) by mu.
type conn struct {
	link.Link
	s     *Server       // (c)
	gone  chan struct{} // (c) closed when it has ended
	count counters      // (a)

	peer  *export.Peer // set with the first byte
	terms              // what NEGOTIATE has agreed

	sessions map[uint64]*session // that were made here
	last     *session            // that was used last, or nil

	work  *work       // nil while idle
	large bool        // buf is neither small nor work.in
	ready atomic.Bool // (a) somebody has logged on

	// buf[start:w] is what was received and is not yet answered. It begins with
	// a frame.
	buf      []byte
	start, w int
	small    [smallSize + slack]byte

	mu      sync.Mutex
	window  window              // (mu) which message ids the client may use
	pending map[uint64]*pending // (mu) requests that wait, by their AsyncId
	waiting int64               // (mu) bytes that they take

	opens atomic.Int64 // (a) files that are open
	pipes atomic.Int64 // (a) bytes in pipes

	watched memstore.WatchRoom // of changes that are kept
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	err := c.run()
	c.giveWork()
	if errors.Is(err, errDraining) {
		c.HangUp()
	}
	c.Conn.Close()
	close(c.gone)
	for _, ss := range c.sessions {
		ss.end()
	}
	c.s.remove(c, err)
}

func (c *conn) run() error {
	c.buf = c.small[:smallSize]
	for {
		for {
			frame, err := c.frame()
			if err != nil {
				return errors.Join(err, c.flush())
			}
			if frame == nil {
				break
			}
			if err := c.answer(frame); err != nil {
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

// Types of what comes on a connection, RFC 1002 section 4.3.1.
const (
	typeMessage   = 0x00
	typeKeepAlive = 0x85
)

// frame returns the next frame if all of it has been received, else nil. It is
// valid until fill.
func (c *conn) frame() ([]byte, error) {
	for c.w-c.start >= frameSize {
		n, err := c.length()
		if err != nil {
			return nil, err
		}
		begin := c.start + frameSize
		if c.w-begin < n {
			break
		}
		c.start = begin + n
		if n > 0 {
			return c.buf[begin : c.start : len(c.buf)+slack], nil
		}
	}
	return nil, nil
}

// length is the length of the frame that begins at start (MS-SMB2 section 2.1).
func (c *conn) length() (int, error) {
	head := binary.BigEndian.Uint32(c.buf[c.start:])
	n := int(head & (1<<24 - 1))
	limit := maxFrame
	if !c.ready.Load() {
		limit = firstFrame
	}
	switch kind := head >> 24; {
	case kind == typeKeepAlive && n == 0, kind == typeMessage && n <= limit:
		return n, nil
	case kind == typeMessage:
		return 0, errTooLarge
	}
	return 0, errFrame
}

// fill waits for more bytes of the current frame, or of the next.
func (c *conn) fill() error {
	if c.start == c.w {
		c.rewind()
	}
	target, err := c.target()
	if err != nil {
		return err
	}
	want := target - c.start
	if want <= smallSize && c.s.works.Waiting() {
		c.giveWork()
	}
	if want > smallSize && c.work == nil {
		if err := c.takeWork(false); err != nil {
			return err
		}
	}
	if want >= freshMin {
		if done, err := c.receive(want - frameSize); done || err != nil {
			return err
		}
	}
	if err := c.makeRoom(want); err != nil {
		return err
	}
	free := c.buf[c.w:]
	if c.large {
		// Nothing is read behind the frame, so that the buffer can be given
		// back with it.
		free = c.buf[c.w : c.start+want]
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

// target is where the bytes end that are surely needed next: the length of the
// frame at start, or if that is there the frame.
func (c *conn) target() (int, error) {
	if c.w-c.start < frameSize {
		return c.start + frameSize, nil
	}
	n, err := c.length()
	return c.start + frameSize + n, err
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
	case n == 0:
		if target, err := c.target(); err == nil && target-c.start <= smallSize {
			c.giveWork()
		}
	}
	return n, nil
}

// rewind starts over at the beginning of the buffer when all of it has been
// answered.
func (c *conn) rewind() {
	c.giveLarge()
	c.start, c.w = 0, 0
}

// makeRoom moves what was received to the beginning of the buffer, and if n
// bytes from start do not fit goes on in a large one.
func (c *conn) makeRoom(n int) error {
	if c.start > 0 {
		copy(c.buf, c.buf[c.start:c.w])
		c.w -= c.start
		c.start = 0
	}
	if n <= len(c.buf) {
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	b := c.s.takeLarge(n, false)
	if b == nil {
		return net.ErrClosed
	}
	copy(b, c.buf[:c.w])
	c.buf, c.large = b, true
	return nil
}

func (c *conn) giveLarge() {
	if c.large {
		c.s.giveLarge(c.buf)
		c.buf, c.large = c.work.in, false
	}
}

// takeWork gets the connection what it needs to answer requests, and moves what
// was received into it.
func (c *conn) takeWork(urgent bool) error {
	if !c.s.works.Take(workSize, urgent, c.s.done) {
		return net.ErrClosed
	}
	if c.peer == nil {
		c.peer = export.NewPeer(c.Conn)
	}
	c.work = workPool.Get().(*work)
	c.work.w.B = c.work.out[:0]
	c.work.req = request{c: c, own: true, w: &c.work.w}
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
	c.sent()
	rest := copy(c.small[:smallSize], c.buf[c.start:c.w])
	c.start, c.w = 0, rest
	c.giveLarge()
	c.buf = c.small[:smallSize]
	c.work.req = request{}
	workPool.Put(c.work)
	c.work = nil
	c.s.works.Give(workSize)
}

// answer executes the requests of one frame and appends the replies to the batch,
// which it sends when it is large or continues in the store's pages.
func (c *conn) answer(frame []byte) error {
	if c.work == nil {
		// The frame is in small, and stays there.
		buf, start, w := c.buf, c.start, c.w
		if err := c.takeWork(true); err != nil {
			return err
		}
		frame = c.work.in[start-len(frame) : start : len(buf)+slack]
		c.start, c.w = start, w
	}
	r := &c.work.req
	if err := r.frame(frame); err != nil {
		return err
	}
	if r.pages > 0 || len(c.work.w.B) >= flushSize || c.work.large != nil {
		return c.flush()
	}
	return nil
}

// receive is called when a frame of size bytes has begun that is too large to wait
// for in the buffer. If it is a WRITE that can replace whole pages, and neither
// signed nor encrypted, its data goes from the socket into new pages of the store,
// and done is true. A client that stalls meanwhile holds no lock and shows nothing.
func (c *conn) receive(size int) (done bool, err error) {
	head := c.buf[c.start+frameSize : c.w]
	r := &c.work.req
	i, off, at, n := r.freshWrite(head, size)
	if n == 0 || !c.s.large.TryTake(int64(n)) {
		return false, nil
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
	data := head[at:]
	for _, s := range f.Slices {
		done := copy(s, data)
		data = data[done:]
		for done < len(s) {
			c.Set(link.Midway)
			n, err := c.read(s[done:])
			if err != nil {
				return false, err
			}
			done += n
		}
	}
	r.fresh = f
	err = c.answer(head[:at:at])
	r.fresh = nil
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
	if c.work.req.pages > 0 {
		c.work.iov = append(append(c.work.iov[:0], c.work.w.B), c.work.view.Slices...)
		c.work.bufs = c.work.iov
		pages = &c.work.bufs
	}
	n, err := c.Send(c.work.w.B, pages)
	c.count.out.Add(uint64(n))
	c.sent()
	return err
}

// sent releases what a batch was made of.
func (c *conn) sent() {
	if c.work.req.pages > 0 {
		c.work.view.Release()
		c.s.large.Give(int64(c.work.req.pages))
		c.work.req.pages = 0
	}
	c.giveOut()
}

// giveOut begins the batch anew, in the work's own buffer.
func (c *conn) giveOut() {
	if c.work.large != nil {
		c.s.giveLarge(c.work.large)
		c.work.large = nil
	}
	c.work.w.B = c.work.out[:0]
}

// sendLate sends replies to a request that has left the connection's goroutine.
func (c *conn) sendLate(b []byte) { c.count.out.Add(uint64(c.SendLate(b))) }
