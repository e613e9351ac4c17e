package client

import (
	"encoding/binary"
	"fmt"
	"time"

	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

const (
	inSize    = 256 << 10 // bytes of Run's input buffer: what one system call reads
	wholeSize = 64 << 10  // a reply up to this size is checked as a whole
	headSize  = 4 << 10   // of a larger one at least this much is
	outSize   = 64 << 10  // bytes of calls that are worth a system call
)

// Run makes total calls with depth of them outstanding. It is made to be cheaper
// than any server: one goroutine, calls written in batches, replies read many at
// a time, nothing allocated for a call.
//
// gen writes the i-th call behind the record mark: a copy of a header made
// before by [Client.AppendCall], whose XID is filled in here, and the arguments.
// It may return a payload, a multiple of four bytes, which is sent behind them
// without a copy and must keep its content until Run returns.
//
// check is given the reply to the i-th call, from its XID on, in the order of
// arrival. Of a reply larger than 64 KiB it gets the first bytes, at least 4096,
// and the rest is dropped. The slice is valid until it returns. An error ends
// the run.
//
// While Run writes it does not read: at full depth either the calls or their
// replies must fit the buffers of the sockets, as they do unless large reads and
// large writes are mixed. After an error the connection is good for nothing.
func (c *Client) Run(depth, total int, gen func(i int, w *xdr.Writer) (payload []byte), check func(i int, reply []byte) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in == nil {
		c.in = make([]byte, inSize)
	}
	c.out.B = c.out.B[:0]
	base := c.xid + 1
	c.xid += uint32(total)

	sent, done := 0, 0
	seen := make([]uint64, (total+63)/64)
	call := func() error {
		at := rpc.BeginRecord(&c.out)
		payload := gen(sent, &c.out)
		c.out.PatchUint32(at+rpc.MarkSize, base+uint32(sent))
		rpc.EndRecord(&c.out, at, len(payload))
		sent++
		if len(payload) > 0 || len(c.out.B) >= outSize {
			return c.flush(payload)
		}
		return nil
	}
	reply := func(msg []byte) error {
		if len(msg) < 4 {
			return xdr.ErrShort
		}
		i := binary.BigEndian.Uint32(msg) - base
		if uint64(i) >= uint64(sent) || seen[i/64]&(1<<(i%64)) != 0 {
			return errXID
		}
		seen[i/64] |= 1 << (i % 64)
		done++
		if err := check(int(i), msg); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if done%1024 == 0 {
			if err := c.extend(); err != nil {
				return err
			}
		}
		if sent < total {
			return call()
		}
		return nil
	}

	if err := c.extend(); err != nil {
		return err
	}
	for sent < min(depth, total) {
		if err := call(); err != nil {
			return err
		}
	}
	start, end, skip := 0, 0, 0 // c.in[start:end] is not yet looked at; skip bytes of the stream are to be dropped
	for {
		for {
			n := min(skip, end-start)
			start, skip = start+n, skip-n
			buf := c.in[start:end]
			if len(buf) < rpc.MarkSize {
				break
			}
			size, last := rpc.MarkOf(buf)
			if !last || size > maxReply {
				return fmt.Errorf("client: reply with mark %x: want one fragment of at most %d bytes", buf[:rpc.MarkSize], maxReply)
			}
			buf = buf[rpc.MarkSize:]
			if len(buf) < size && (size <= wholeSize || len(buf) < headSize) {
				break
			}
			skip = size + rpc.MarkSize
			if err := reply(buf[:min(size, len(buf))]); err != nil {
				return err
			}
		}
		if len(c.out.B) > 0 {
			if err := c.flush(nil); err != nil {
				return err
			}
		}
		if done == total && skip == 0 {
			return nil
		}
		if start > 0 {
			end = copy(c.in, c.in[start:end])
			start = 0
		}
		n, err := c.conn.Read(c.in[end:])
		if n == 0 && err != nil {
			return err
		}
		end += n
	}
}

// extend gives the server the time out from now on.
func (c *Client) extend() error { return c.conn.SetDeadline(time.Now().Add(c.timeout)) }

// flush writes the queued calls, and the payload of the last of them.
func (c *Client) flush(payload []byte) (err error) {
	if len(payload) == 0 {
		_, err = c.conn.Write(c.out.B)
	} else {
		c.vecs = append(c.vecs[:0], c.out.B, payload)
		vecs := c.vecs // WriteTo consumes the slice it is called on
		_, err = c.vecs.WriteTo(c.conn)
		c.vecs = vecs
	}
	c.out.B = c.out.B[:0]
	return err
}
