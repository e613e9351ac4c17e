// Package smbtest is a small SMB client for tests: a connection by SMB 2.1
// (MS-SMB2), signed, on which one user uses one share. It says what it is told to,
// if that makes sense or not, and hands out what comes back.
package smbtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"ramserver/export/smb/wire"
)

// Options say who comes, and for what.
type Options struct {
	User, Password string
	Share          string
	// GUID tells clients apart.
	GUID [16]byte
	// Timeout is how long a reply may take; 0 is a minute.
	Timeout time.Duration
}

// Client is a connection. Its methods, and those of its files and calls, may be
// called by several goroutines.
type Client struct {
	nc      net.Conn
	timeout time.Duration

	mu      sync.Mutex
	id      uint64           // (mu) of the next message
	session uint64           // (mu)
	tree    uint32           // (mu)
	key     []byte           // (mu) nil: messages are not signed yet
	calls   map[uint64]*Call // (mu) that wait for replies, by their message id
	err     error            // (mu) why the connection has ended
}

// Call is a request and its reply.
type Call struct {
	c       *Client
	id      uint64        // of its message
	pending chan struct{} // closed when the server has said that the reply takes time
	done    chan struct{} // closed when the reply is there, or will not be

	// What is set before that.
	async  uint64
	header wire.Header
	body   []byte
	err    error
}

// Dial connects, logs on and enters the share.
func Dial(ctx context.Context, addr string, o Options) (*Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &Client{nc: nc, timeout: o.Timeout, calls: make(map[uint64]*Call)}
	if c.timeout == 0 {
		c.timeout = time.Minute
	}
	go c.receive()
	if err := c.begin(o); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) begin(o Options) error {
	var w wire.Writer
	w.Uint16(36)
	w.Uint16(1)
	w.Uint16(wire.SigningEnabled)
	w.Uint16(0)
	w.Uint32(wire.CapLargeMTU)
	w.Bytes(o.GUID[:])
	w.Uint64(0)
	w.Uint16(uint16(wire.Dialect210))
	if _, err := c.Do(wire.CommandNegotiate, 0, w.B); err != nil {
		return fmt.Errorf("smb: negotiate: %w", err)
	}
	if err := c.logon(o.User, o.Password); err != nil {
		return fmt.Errorf("smb: log on as %s: %w", o.User, err)
	}
	path := wire.AppendUTF16(nil, `\\server\`+o.Share)
	w = wire.Writer{}
	w.Uint16(9)
	w.Uint16(0)
	w.Uint16(wire.HeaderSize + 8)
	w.Uint16(uint16(len(path)))
	w.Bytes(path)
	r := c.Start(wire.CommandTreeConnect, 0, w.B)
	if _, err := r.Wait(); err != nil {
		return fmt.Errorf("smb: connect %s: %w", o.Share, err)
	}
	c.mu.Lock()
	c.tree = r.header.TreeID
	c.mu.Unlock()
	return nil
}

// logon is two SESSION_SETUPs with NTLMSSP.
func (c *Client) logon(user, password string) error {
	step := func(token []byte) *Call {
		var w wire.Writer
		w.Uint16(25)
		w.Uint8(0)
		w.Uint8(wire.SigningEnabled)
		w.Uint64(0)
		w.Uint16(wire.HeaderSize + 24)
		w.Uint16(uint16(len(token)))
		w.Uint64(0)
		w.Bytes(token)
		r := c.Start(wire.CommandSessionSetup, 0, w.B)
		<-r.done
		return r
	}
	r := step(Hello())
	if r.err != wire.StatusMoreProcessingRequired {
		return r.err
	}
	if len(r.body) < 8 {
		return errReply
	}
	token, key, err := Answer(r.body[8:], user, password)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.session = r.header.SessionID
	c.mu.Unlock()
	if r = step(token); r.err != nil {
		return r.err
	}
	c.mu.Lock()
	c.key = key
	c.mu.Unlock()
	return nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.nc.Close() }

var errReply = errors.New("smb: the reply is malformed")

// Do sends a request and waits for its reply. An error that is a wire.Status is
// the server's; what the reply has besides is returned with it.
func (c *Client) Do(command wire.Command, size int, body []byte) (reply []byte, err error) {
	return c.Start(command, size, body).Wait()
}

// Start sends a request, which is paid for size bytes of data, sent or received.
func (c *Client) Start(command wire.Command, size int, body []byte) *Call {
	charge := uint16(max(1, (size+1<<16-1)>>16))
	r := &Call{c: c, pending: make(chan struct{}), done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		r.err = c.err
		close(r.done)
		return r
	}
	r.id = c.id
	c.id += uint64(charge)
	c.calls[r.id] = r
	c.send(&wire.Header{CreditCharge: charge, Command: command, Credits: 512, MessageID: r.id, TreeID: c.tree, SessionID: c.session}, body)
	return r
}

// send is called with c.mu held.
func (c *Client) send(h *wire.Header, body []byte) {
	b := make([]byte, 4+wire.HeaderSize, 4+wire.HeaderSize+len(body))
	b = append(b, body...)
	if c.key != nil {
		h.Flags |= wire.FlagSigned
	}
	h.Encode(b[4:])
	if c.key != nil {
		copy(b[4+signatureAt:], sign(c.key, b[4:]))
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	if _, err := c.nc.Write(b); err != nil {
		c.end(err)
	}
}

const (
	signatureAt   = 48
	signatureSize = 16
)

// sign is the signature of a message that has none, MS-SMB2 section 3.1.4.1.
func sign(key, msg []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(msg)
	return m.Sum(nil)[:signatureSize]
}

// end answers all calls with an error. Called with c.mu held.
func (c *Client) end(err error) {
	if c.err == nil {
		c.err = err
	}
	for id, r := range c.calls {
		delete(c.calls, id)
		r.err = c.err
		close(r.done)
	}
	c.nc.Close()
}

// receive hands out replies until the connection ends.
func (c *Client) receive() {
	for {
		var head [4]byte
		_, err := io.ReadFull(c.nc, head[:])
		b := make([]byte, binary.BigEndian.Uint32(head[:])&(1<<24-1))
		if err == nil {
			_, err = io.ReadFull(c.nc, b)
		}
		c.mu.Lock()
		if err == nil {
			err = c.reply(b)
		}
		if err != nil {
			c.end(err)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// reply is called with c.mu held.
func (c *Client) reply(b []byte) error {
	var h wire.Header
	if !h.Decode(b) || h.Flags&wire.FlagReply == 0 || h.Next != 0 {
		return errReply
	}
	r := c.calls[h.MessageID]
	if r == nil {
		return fmt.Errorf("smb: a reply to message %d", h.MessageID)
	}
	if h.Status == wire.StatusPending && h.Flags&wire.FlagAsync != 0 {
		r.async = h.AsyncID
		close(r.pending)
		return nil
	}
	if c.key != nil && h.Flags&wire.FlagSigned != 0 {
		got := [signatureSize]byte(b[signatureAt:])
		clear(b[signatureAt:][:signatureSize])
		if !hmac.Equal(got[:], sign(c.key, b)) {
			return errors.New("smb: the signature of a reply is wrong")
		}
	}
	delete(c.calls, h.MessageID)
	r.header, r.body = h, b[wire.HeaderSize:]
	if h.Status != wire.StatusOK {
		r.err = h.Status
	}
	close(r.done)
	return nil
}

// Wait returns the body of the reply.
func (r *Call) Wait() ([]byte, error) {
	select {
	case <-r.done:
	case <-time.After(r.c.timeout):
		return nil, fmt.Errorf("smb: no reply within %v", r.c.timeout)
	}
	return r.body, r.err
}

// Waits tells whether the server says that the reply takes time, once it says
// anything.
func (r *Call) Waits() bool {
	select {
	case <-r.pending:
		return true
	case <-r.done:
		return false
	}
}

// Cancel takes back a call that waits. It is answered all the same.
func (r *Call) Cancel() {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	h := wire.Header{Command: wire.CommandCancel, MessageID: r.id, SessionID: c.session}
	select {
	case <-r.pending:
		h.Flags, h.AsyncID = wire.FlagAsync, r.async
	default:
	}
	c.send(&h, []byte{4, 0, 0, 0})
}
