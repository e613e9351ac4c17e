// Package client is a small client of SMB 3.1.1 that works on the wire: one
// connection, one user, one share, no cache, no oplock and no reconnection. Suites
// call its methods one by one, or put a frame of any commands together (Begin, Add,
// Do); benchmarks keep several requests under way by [Client.Run]. It signs with
// AES-GMAC, or encrypts with AES-GCM, which is what servers like best.
//
// It is made to be cheaper than any server: one goroutine, one system call to send
// and mostly one to receive, and nothing allocated for a request.
package client

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"ramserver/export/smb/wire"
)

// Protection is what keeps others from changing or reading messages.
type Protection uint8

// Protections.
const (
	Signed Protection = iota
	Encrypted
	Plain
)

// Options says who a client is.
type Options struct {
	User, Password string
	Share          string
	Protection     Protection
	// Timeout is how long the server may take for a reply. 0 is a minute.
	Timeout time.Duration
}

// Sizes in bytes.
const (
	frameSize  = 4  // what precedes a frame: its length
	sealedSize = 52 // header of an encrypted frame, MS-SMB2 section 2.2.41
	tagSize    = 16
	inSize     = 256 << 10
	maxReply   = 16 << 20
)

// wantCredits is how many credits the client tries to have.
const wantCredits = 512

// Client is a connection to a server. It is for one goroutine at a time.
type Client struct {
	conn    net.Conn
	timeout time.Duration
	until   time.Time // deadline of conn

	session uint64
	tree    uint32
	id      uint64 // the next message's
	credits int
	preauth [64]byte

	protection Protection
	signer     cipher.AEAD
	in, out    cipher.AEAD // of encryption, as the server has them
	sealed     uint64      // frames that were encrypted
	nonce      [12]byte    // of signer
	tag        []byte      // what it has made

	w       wire.Writer // the frame that is sent next
	last    int         // where its last message begins, 0: there is none
	first   uint64      // id of its first message
	count   int         // messages in it
	buf     []byte      // what was received: buf[start:end] is not looked at yet
	start   int
	end     int
	replies []Reply
}

// Reply is the reply to one request. It is valid until the next call.
type Reply struct {
	wire.Header
	Msg []byte // with the header, to which its offsets are relative
}

// Body is the reply without its header.
func (r *Reply) Body() []byte { return r.Msg[wire.HeaderSize:] }

// Error is a request that was refused.
type Error struct {
	Command wire.Command
	Status  wire.Status
}

func (e *Error) Error() string { return fmt.Sprintf("client: command %d: %v", e.Command, e.Status) }

// StatusOf is with which status a request was refused; ok is false for other errors.
func StatusOf(err error) (s wire.Status, ok bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Status, true
	}
	return 0, err == nil
}

var (
	errReply     = errors.New("client: reply is malformed")
	errSignature = errors.New("client: reply has no right signature")
	errCredits   = errors.New("client: no credits are left")
)

// Dial connects, logs on and connects the share.
func Dial(addr string, o Options) (*Client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c, err := New(conn, o)
	if err != nil {
		conn.Close()
	}
	return c, err
}

// New logs on by a connection that stands, and connects the share, if there is one
// in o.
func New(conn net.Conn, o Options) (*Client, error) {
	c := &Client{conn: conn, timeout: o.Timeout, credits: 1, protection: Plain, buf: make([]byte, inSize)}
	if c.timeout == 0 {
		c.timeout = time.Minute
	}
	if err := c.negotiate(); err != nil {
		return nil, fmt.Errorf("negotiate: %w", err)
	}
	if err := c.logon(o.User, o.Password); err != nil {
		return nil, fmt.Errorf("log on: %w", err)
	}
	if c.protection = o.Protection; c.protection == Plain {
		c.protection = Signed // at first: nobody else must take the client to a share
	}
	if o.Share != "" {
		if err := c.connect(o.Share); err != nil {
			return nil, fmt.Errorf("connect the share: %w", err)
		}
	}
	c.protection = o.Protection
	return c, nil
}

// Close ends the connection, without logging off.
func (c *Client) Close() error { return c.conn.Close() }

// Logoff ends the session.
func (c *Client) Logoff() error {
	w := c.Begin(wire.CommandLogoff, 0)
	wire.EncodeEmpty(w)
	_, err := c.One()
	return err
}

// Begin begins a frame of one request. Its body is to be appended to what is
// returned. size is how many bytes of data the request or its reply has: what it
// costs in credits.
func (c *Client) Begin(command wire.Command, size int) *wire.Writer {
	c.w.B = append(c.w.B[:0], make([]byte, frameSize)...)
	if c.protection == Encrypted {
		c.w.B = append(c.w.B, make([]byte, sealedSize)...)
	}
	c.last, c.first, c.count = 0, c.id, 0
	return c.add(command, size, 0)
}

// Add adds a request to the frame that Begin has begun, which depends on the one
// before it: it has its session, share and, where it says wire.AnyFile, its file.
func (c *Client) Add(command wire.Command, size int) *wire.Writer {
	for c.w.Offset()%8 != 0 {
		c.w.B = append(c.w.B, 0)
	}
	binary.LittleEndian.PutUint32(c.w.B[c.last+20:], uint32(c.w.Offset()))
	return c.add(command, size, wire.FlagRelated)
}

func (c *Client) add(command wire.Command, size int, flags uint32) *wire.Writer {
	charge := max(1, (size+64<<10-1)/(64<<10))
	h := wire.Header{
		CreditCharge: uint16(charge),
		Command:      command,
		Credits:      uint16(max(charge, min(wantCredits-c.credits, wantCredits))),
		Flags:        flags,
		MessageID:    c.id,
		TreeID:       c.tree,
		SessionID:    c.session,
	}
	if c.protection == Signed {
		h.Flags |= wire.FlagSigned
	}
	c.id += uint64(charge)
	c.credits -= charge
	c.count++
	c.last = len(c.w.B)
	c.w.Begin()
	c.w.B = append(c.w.B, make([]byte, wire.HeaderSize)...)
	h.Encode(c.w.B[c.last:])
	return &c.w
}

// Do sends the frame and receives the replies to its requests, in their order.
// Messages that say that a request waits are not among them.
func (c *Client) Do() ([]Reply, error) {
	if err := c.send(); err != nil {
		return nil, err
	}
	c.rewind()
	c.replies = c.replies[:0]
	for got := 0; got < c.count; {
		msgs, err := c.frame()
		if err != nil {
			return nil, err
		}
		for msgs != nil {
			var r Reply
			if r, msgs, err = c.next(msgs); err != nil {
				return nil, err
			}
			if r.Status == wire.StatusPending {
				continue
			}
			got++
			c.replies = append(c.replies, r)
		}
	}
	for i := 1; i < len(c.replies); i++ {
		for k := i; k > 0 && c.replies[k].MessageID < c.replies[k-1].MessageID; k-- {
			c.replies[k], c.replies[k-1] = c.replies[k-1], c.replies[k]
		}
	}
	return c.replies, nil
}

// One is Do for a frame of one request; the reply's error is its own.
func (c *Client) One() (*Reply, error) {
	replies, err := c.Do()
	if err != nil {
		return nil, err
	}
	return &replies[0], check(&replies[0])
}

// check is the error of a reply.
func check(r *Reply) error {
	if r.Status.IsError() {
		return &Error{r.Command, r.Status}
	}
	return nil
}

// Run makes total requests with depth of them under way, each in a frame of its
// own. gen makes the i-th by Begin, and what check says to its reply ends the run if
// it is an error.
func (c *Client) Run(depth, total int, gen func(i int), check func(i int, r *Reply) error) error {
	begun, done := 0, 0
	base := c.id
	request := func() error {
		gen(begun)
		begun++
		return c.send()
	}
	for begun < min(depth, total) {
		if err := request(); err != nil {
			return err
		}
	}
	for done < total {
		c.rewind()
		msgs, err := c.frame()
		if err != nil {
			return err
		}
		r, more, err := c.next(msgs)
		switch {
		case err != nil:
			return err
		case more != nil, r.MessageID < base:
			return errReply
		case r.Status == wire.StatusPending:
			continue
		}
		done++
		if err := check(int(r.MessageID-base), &r); err != nil {
			return err
		}
		if begun < total {
			if err := request(); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends the frame.
func (c *Client) send() error {
	if c.credits < 0 {
		return errCredits
	}
	if now := time.Now(); c.until.Sub(now) < c.timeout {
		c.until = now.Add(2 * c.timeout)
		if err := c.conn.SetDeadline(c.until); err != nil {
			return err
		}
	}
	b := c.w.B
	switch c.protection {
	case Signed:
		for msg := b[frameSize:]; msg != nil; {
			one := msg
			if msg = nil; binary.LittleEndian.Uint32(one[20:]) != 0 {
				n := binary.LittleEndian.Uint32(one[20:])
				one, msg = one[:n], one[n:]
			}
			sum := c.sum(one, 0)
			copy(one[signatureAt:], sum[:])
		}
	case Encrypted:
		b = c.seal(b)
		c.w.B = b
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-frameSize))
	_, err := c.conn.Write(b)
	return err
}

// rewind forgets what was looked at.
func (c *Client) rewind() {
	if c.start == c.end {
		c.start, c.end = 0, 0
	} else if c.start > len(c.buf)/2 {
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
	}
}

// frame receives a frame, and decrypts it.
func (c *Client) frame() ([]byte, error) {
	want := frameSize
	for {
		if c.end-c.start >= frameSize {
			n := int(binary.BigEndian.Uint32(c.buf[c.start:]))
			if n > maxReply {
				return nil, errReply
			}
			want = frameSize + n
		}
		if c.end-c.start >= want && want > frameSize {
			break
		}
		if c.start+want+tagSize > len(c.buf) {
			// Replies that were received before stay where they are.
			b := make([]byte, max(2*len(c.buf), want+tagSize))
			c.end = copy(b, c.buf[c.start:c.end])
			c.buf, c.start = b, 0
		}
		n, err := c.conn.Read(c.buf[c.end : len(c.buf)-tagSize])
		if err != nil {
			return nil, err
		}
		c.end += n
	}
	b := c.buf[c.start+frameSize : c.start+want : c.start+want+tagSize]
	c.start += want
	if string(b[:min(4, len(b))]) == "\xfdSMB" {
		return c.open(b)
	}
	if c.protection == Encrypted {
		return nil, errSignature
	}
	return b, nil
}

// next takes the next reply from the messages of a frame; more is nil if it is the
// last.
func (c *Client) next(msgs []byte) (r Reply, more []byte, err error) {
	r.Msg = msgs
	if !r.Decode(msgs) || r.Flags&wire.FlagReply == 0 {
		return r, nil, errReply
	}
	if n := int(r.Next); n > 0 {
		if n < wire.HeaderSize || n > len(msgs)-wire.HeaderSize {
			return r, nil, errReply
		}
		r.Msg, more = msgs[:n:n], msgs[n:]
	}
	if len(r.Msg) < wire.HeaderSize+8 && r.Status.IsError() {
		return r, nil, errReply
	}
	c.credits += int(r.Credits)
	// What says that a request waits has no signature, nor has an error that was
	// found before the key.
	if c.protection == Signed && r.Status != wire.StatusPending && !c.verify(&r) {
		return r, nil, errSignature
	}
	return r, more, nil
}
