//go:build linux && !race

package link

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A socket that does not block is read and written in about a microsecond. The net
// package announces such a call to Go's scheduler, which then starts its monitor
// thread, in case that the call takes long: a sixth of the server's processor time.
// So calls of at most quickSize bytes, in at most quickPieces, are made without a word,
// as the runtime makes its own; larger ones, whose copy is long enough to be of
// interest to the scheduler, are the net package's.
const (
	quickSize   = 256 << 10
	quickPieces = 20
)

// socket is the way to a connection's bytes. A zero one is the net package's.
type socket struct {
	raw     syscall.RawConn // nil if it is not a socket of the system's
	in, out transfer
}

// transfer is a read or write under way. Its fields are what try, which is made once,
// works on.
type transfer struct {
	b     []byte
	pages *net.Buffers // instead of b, if there are any
	n     int64
	err   error
	try   func(fd uintptr) (done bool)
}

func (s *socket) init(nc net.Conn) {
	c, ok := nc.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	s.raw = raw
	s.in.try, s.out.try = s.in.read, s.out.write
}

func (s *socket) read(nc net.Conn, b []byte) (int, error) {
	if s.raw == nil || len(b) == 0 || len(b) > quickSize {
		return nc.Read(b)
	}
	t := &s.in
	t.b, t.n, t.err = b, 0, nil
	err := s.raw.Read(t.try)
	t.b = nil
	if err == nil {
		err = t.err
	}
	return int(t.n), err
}

func (s *socket) send(nc net.Conn, b []byte, pages *net.Buffers) (int64, error) {
	size := len(b)
	if pages != nil {
		size = 0
		for _, p := range *pages {
			size += len(p)
		}
	}
	if s.raw == nil || size > quickSize || pages != nil && len(*pages) > quickPieces {
		return sendAll(nc, b, pages)
	}
	t := &s.out
	t.b, t.pages, t.n, t.err = b, pages, 0, nil
	err := s.raw.Write(t.try)
	t.b, t.pages = nil, nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}

func (t *transfer) read(fd uintptr) bool {
	n, e := quick(syscall.SYS_READ, fd, unsafe.Pointer(&t.b[0]), len(t.b))
	switch {
	case e == syscall.EAGAIN:
		return false
	case e != 0:
		t.err = os.NewSyscallError("read", e)
	case n == 0:
		t.err = io.EOF
	}
	t.n = int64(n)
	return true
}

func (t *transfer) write(fd uintptr) bool {
	for {
		var n int
		var e syscall.Errno
		switch {
		case t.pages != nil:
			var iov [quickPieces]syscall.Iovec
			pieces := t.pieces(&iov)
			if pieces == 0 {
				return true
			}
			n, e = quick(syscall.SYS_WRITEV, fd, unsafe.Pointer(&iov[0]), pieces)
		case len(t.b) == 0:
			return true
		default:
			n, e = quick(syscall.SYS_WRITE, fd, unsafe.Pointer(&t.b[0]), len(t.b))
		}
		if e == syscall.EAGAIN {
			return false
		}
		if e != 0 {
			t.err = os.NewSyscallError("write", e)
			return true
		}
		t.n += int64(n)
		t.sent(n)
	}
}

// pieces puts what is left of the pages into iov, and returns how many pieces it is.
func (t *transfer) pieces(iov *[quickPieces]syscall.Iovec) (n int) {
	for _, p := range *t.pages {
		if len(p) > 0 {
			iov[n].Base = &p[0]
			iov[n].SetLen(len(p))
			n++
		}
	}
	return n
}

// sent drops the first n bytes.
func (t *transfer) sent(n int) {
	if t.pages == nil {
		t.b = t.b[n:]
		return
	}
	v := *t.pages
	for len(v) > 0 && n >= len(v[0]) {
		n -= len(v[0])
		v[0] = nil
		v = v[1:]
	}
	if len(v) > 0 {
		v[0] = v[0][n:]
	}
	*t.pages = v
}

// quick makes a system call that does not block. n is not negative.
func quick(trap, fd uintptr, p unsafe.Pointer, size int) (n int, e syscall.Errno) {
	for {
		r, _, e := syscall.RawSyscall(trap, fd, uintptr(p), uintptr(size))
		if e != syscall.EINTR {
			return max(int(r), 0), e
		}
	}
}
