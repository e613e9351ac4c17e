package gonfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

const (
	maxIO     = 4 << 20          // bytes of a READ or WRITE
	maxRecord = maxIO + 8<<10    // bytes of a record, its header and names among them
	chunk     = 64 << 10         // bytes by which a record's buffer grows as they arrive
	keep      = 8 << 10          // bytes of buffer that an idle connection may keep
	stall     = 60 * time.Second // without progress in the middle of a record or a reply
)

var (
	errTooLong  = errors.New("nfs: record too long")
	errFragment = errors.New("nfs: empty fragment")
	errDraining = errors.New("nfs: server is shutting down")
)

// conn stands between a client and go-nfs. Read gives out whole records that
// have been checked, never parts of two at once, and tells the handler as whom
// the next one runs. Write counts the replies.
//
// go-nfs reads in one goroutine and writes in another; fields belong to the
// reader unless they say otherwise.
type conn struct {
	net.Conn
	server  *Server
	handler *handler // set before go-nfs gets the connection
	cancel  context.CancelFunc

	in   *bufio.Reader
	buf  []byte // a record behind its mark
	rest []byte // of buf, what the next Read gives out
	tail []byte // of buf, what follows it

	// The replies written so far, taken apart: writer's.
	mark   []byte // begun
	within int    // bytes of the reply that are to come

	closing sync.Once

	mu     sync.Mutex
	change sync.Cond // of the following, by mu
	calls  int       // given to go-nfs and not answered yet
	closed bool
}

func newConn(s *Server, nc net.Conn, cancel context.CancelFunc) *conn {
	c := &conn{Conn: nc, server: s, cancel: cancel, in: bufio.NewReader(nc)}
	c.change.L = &c.mu
	return c
}

// Read gives out the record that was read last, or reads and checks the next.
func (c *conn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if len(c.tail) > 0 {
			c.rest, c.tail = c.tail, nil
			continue
		}
		if err := c.next(); err != nil {
			c.answered()
			c.Close()
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !c.server.draining.Load() {
				c.server.log.Debug("connection ended", "peer", c.RemoteAddr(), "error", err)
			}
			return 0, io.EOF
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next reads a record and either gives it to go-nfs or answers it itself.
func (c *conn) next() error {
	if cap(c.buf) > keep {
		c.buf = nil
	}
	c.buf = append(c.buf[:0], make([]byte, rpc.MarkSize)...)
	c.SetReadDeadline(time.Time{})
	if c.server.draining.Load() { // asked after the deadline was taken away
		return errDraining
	}
	for last := false; !last; {
		var mark [rpc.MarkSize]byte
		if _, err := io.ReadFull(c.in, mark[:]); err != nil {
			return err
		}
		var n int
		n, last = rpc.MarkOf(mark[:])
		switch {
		case n > maxRecord-len(c.buf):
			return errTooLong
		case n == 0 && !last:
			return errFragment
		}
		if err := c.receive(n); err != nil {
			return err
		}
	}
	binary.BigEndian.PutUint32(c.buf, rpc.LastFragment|uint32(len(c.buf)-rpc.MarkSize))

	var w xdr.Writer
	at := rpc.BeginRecord(&w)
	if cut, err := c.check(&w); err != nil {
		return err
	} else if cut > 0 {
		c.rest, c.tail = c.buf[:cut], c.buf[cut:]
		c.mu.Lock()
		c.calls++
		c.mu.Unlock()
		return nil
	}
	rpc.EndRecord(&w, at, 0)
	c.answered() // go-nfs may be writing
	c.SetWriteDeadline(time.Now().Add(stall))
	_, err := c.Conn.Write(w.B)
	return err
}

// receive appends n bytes to the record, taking memory as they arrive.
func (c *conn) receive(n int) error {
	for n > 0 {
		step := min(n, chunk)
		c.buf = slices.Grow(c.buf, step)
		part := c.buf[len(c.buf) : len(c.buf)+step]
		if step > c.in.Buffered() {
			c.SetReadDeadline(time.Now().Add(stall))
			if c.server.draining.Load() {
				return errDraining
			}
		}
		if _, err := io.ReadFull(c.in, part); err != nil {
			return err
		}
		c.buf = c.buf[:len(c.buf)+step]
		n -= step
	}
	return nil
}

// check looks at the call in buf. If go-nfs is to have it, it tells the
// handler as whom the call runs, and returns the bytes of buf for its first
// Read; otherwise it returns 0 and writes the reply, or an error for what is
// not a call.
func (c *conn) check(w *xdr.Writer) (cut int, err error) {
	r := xdr.NewReader(c.buf[rpc.MarkSize:])
	var call rpc.Call
	var denied rpc.AuthStat
	switch err := call.Decode(&r); {
	case errors.As(err, &denied):
		rpc.AuthError(w, call.XID, denied)
		return 0, nil
	case errors.Is(err, rpc.ErrVersion):
		rpc.RPCMismatch(w, call.XID)
		return 0, nil
	case err != nil:
		return 0, err
	}
	cut = len(c.buf)
	switch {
	case call.Program != rpc.ProgramNFS && call.Program != rpc.ProgramMount:
		rpc.Accepted(w, call.XID, rpc.ProgUnavail)
		return 0, nil
	case call.Version != nfs3.Version: // MOUNT's, too
		rpc.RefuseVersion(w, call.XID, nfs3.Version, nfs3.Version)
		return 0, nil
	case call.Procedure == rpc.ProcNull:
	case call.Program == rpc.ProgramMount:
		if call.Procedure != nfs3.MountProcMnt && call.Procedure != nfs3.MountProcUmnt {
			rpc.Accepted(w, call.XID, rpc.ProcUnavail) // go-nfs has no others
			return 0, nil
		}
		new(nfs3.MountPath).Decode(&r)
	case call.Procedure > nfs3.ProcCommit:
		rpc.Accepted(w, call.XID, rpc.ProcUnavail)
		return 0, nil
	case call.Procedure == nfs3.ProcLink:
		rpc.Accepted(w, call.XID, rpc.Success)
		(&nfs3.LinkRes{Status: nfs3.ErrNotSupp}).Encode(w)
		return 0, nil
	default:
		cut -= arguments(call.Procedure, &r)
	}
	if r.Err() != nil {
		rpc.Accepted(w, call.XID, rpc.GarbageArgs)
		return 0, nil
	}
	if call.Program == rpc.ProgramNFS && call.Procedure == nfs3.ProcRead {
		count := c.buf[len(c.buf)-r.Len()-4:]
		binary.BigEndian.PutUint32(count, min(binary.BigEndian.Uint32(count), maxIO))
	}
	c.handler.begin(&call.Cred)
	return cut, nil
}

// arguments decodes those of an NFS procedure. go-nfs takes what one Read has
// for a SYMLINK's target, which must therefore begin a Read: tail is the length
// of what has to.
func arguments(procedure uint32, r *xdr.Reader) (tail int) {
	switch procedure {
	case nfs3.ProcSetAttr:
		new(nfs3.SetAttrArgs).Decode(r)
	case nfs3.ProcAccess:
		new(nfs3.AccessArgs).Decode(r)
	case nfs3.ProcRead:
		new(nfs3.ReadArgs).Decode(r)
	case nfs3.ProcWrite:
		new(nfs3.WriteArgs).Decode(r)
	case nfs3.ProcCreate:
		new(nfs3.CreateArgs).Decode(r)
	case nfs3.ProcMkdir:
		new(nfs3.MkdirArgs).Decode(r)
	case nfs3.ProcSymlink:
		var a nfs3.SymlinkArgs
		a.Decode(r)
		return r.Len() + (len(a.Target)+3)&^3
	case nfs3.ProcMknod:
		new(nfs3.MknodArgs).Decode(r)
	case nfs3.ProcLookup, nfs3.ProcRemove, nfs3.ProcRmdir:
		new(nfs3.DirOp).Decode(r)
	case nfs3.ProcRename:
		new(nfs3.RenameArgs).Decode(r)
	case nfs3.ProcReadDir:
		new(nfs3.ReadDirArgs).Decode(r)
	case nfs3.ProcReadDirPlus:
		new(nfs3.ReadDirPlusArgs).Decode(r)
	case nfs3.ProcCommit:
		new(nfs3.CommitArgs).Decode(r)
	case nfs3.ProcGetAttr, nfs3.ProcReadLink, nfs3.ProcFSStat, nfs3.ProcFSInfo, nfs3.ProcPathConf:
		new(nfs3.FHArgs).Decode(r)
	}
	return 0
}

// Write sends part of a reply. When it fails the connection is over: go-nfs
// would wait for ever.
func (c *conn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(stall))
	n, err := c.Conn.Write(p)
	if err != nil {
		c.end()
		return n, err
	}
	for len(p) > 0 {
		if c.within == 0 {
			take := min(rpc.MarkSize-len(c.mark), len(p))
			c.mark = append(c.mark, p[:take]...)
			p = p[take:]
			if len(c.mark) == rpc.MarkSize {
				c.within, _ = rpc.MarkOf(c.mark)
				c.mark = c.mark[:0]
			}
			continue
		}
		take := min(c.within, len(p))
		p = p[take:]
		if c.within -= take; c.within == 0 {
			c.mu.Lock()
			c.calls--
			c.change.Broadcast()
			c.mu.Unlock()
		}
	}
	return n, nil
}

// answered waits until go-nfs has written a reply to each call, or the
// connection is over.
func (c *conn) answered() {
	c.mu.Lock()
	for c.calls > 0 && !c.closed {
		c.change.Wait()
	}
	c.mu.Unlock()
}

// end breaks the connection off. go-nfs notices when it reads or writes next.
func (c *conn) end() error {
	c.cancel()
	err := c.Conn.Close()
	c.mu.Lock()
	c.closed = true
	c.change.Broadcast()
	c.mu.Unlock()
	return err
}

// Close is the reader's last call, after which nothing serves the connection.
func (c *conn) Close() error {
	err := c.end()
	c.closing.Do(func() { c.server.remove(c) })
	return err
}
