// Package link is a server's end of a connection as NFS and SMB have it: reading and
// sending, and telling clients that have stopped from those that are slow.
//
// The connection's goroutine says what it is doing (Set). The server's janitor looks
// at every link now and then (Watch), wakes those that hold memory and have nothing
// to do, and closes those whose clients have stopped in the middle of something.
package link

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// StallTime is how long a connection may make no progress inside a request or a
// reply before it is closed; pressedTime is the same while others wait for the memory
// that it holds.
const (
	StallTime   = 60 * time.Second
	pressedTime = 2 * time.Second
)

// ErrStalled says that a client has not taken its replies for StallTime.
var ErrStalled = errors.New("no progress")

// State is what a connection is doing.
type State uint64

// States.
const (
	Idle      State = iota // waits for a request, or the rest of a small one, without memory
	Running                // executes, or waits for memory
	Reading                // as Idle, with memory that it could give back
	Midway                 // waits for the rest of a large request
	Writing                // sends replies
	stateBits = 3
)

// Link is one connection. Its goroutine owns every field that is not marked
// otherwise: (c) is constant, (a) atomic, (s) protected by the lock of the server that
// Watch, Waits and Still are called with.
type Link struct {
	Conn  net.Conn      // (c)
	Since time.Time     // (c) when it was accepted
	mark  atomic.Uint64 // (a) state, and above it a number that changes with every step
	step  uint64        // that number
	stuck atomic.Uint64 // (a) mark of the reply for which Watch has set a deadline

	seen  uint64    // (s) mark when Watch came by last
	still time.Time // (s) when mark became seen

	sock    socket
	sending sync.Mutex // held while replies are sent, with sock's half for them
}

// Init makes a link of a connection that was accepted just now.
func (l *Link) Init(nc net.Conn) {
	l.Conn, l.Since = nc, time.Now()
	l.sock.init(nc)
	l.still = l.Since
}

// Set notes what the connection is doing. Each call is progress.
func (l *Link) Set(s State) {
	l.step++
	l.mark.Store(l.step<<stateBits | uint64(s))
}

// State is what the connection is doing.
func (l *Link) State() State { return State(l.mark.Load() & (1<<stateBits - 1)) }

// Read is one read. woken says that somebody has set a deadline to wake the
// connection, which is cleared.
func (l *Link) Read(b []byte) (n int, woken bool, err error) {
	n, err = l.sock.read(l.Conn, b)
	l.Set(Running)
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, false, err
	}
	// First clear, then look for what it was: a shutdown says so before it sets a
	// deadline.
	l.Conn.SetReadDeadline(time.Time{})
	return n, true, nil
}

// Send sends b, or pages if there are any, and returns how many bytes were sent.
// Watch sets a deadline when there was no progress for long; if there was some then
// after all, it goes on.
func (l *Link) Send(b []byte, pages *net.Buffers) (sent int64, err error) {
	l.Set(Writing)
	defer l.Set(Running)
	l.sending.Lock()
	defer l.sending.Unlock()
	for {
		var n int64
		n, err = l.sock.send(l.Conn, b, pages)
		if pages == nil {
			b = b[n:]
		}
		sent += n
		switch {
		case err == nil || !errors.Is(err, os.ErrDeadlineExceeded):
			return sent, err
		case n == 0 && l.stuck.Load() == l.mark.Load():
			return sent, ErrStalled
		}
		l.Conn.SetWriteDeadline(time.Time{})
		l.Set(Writing)
	}
}

// SendLate sends replies to a request that has left the connection's goroutine. If it
// cannot, it closes the connection.
func (l *Link) SendLate(b []byte) (sent int) {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.Conn.SetWriteDeadline(time.Now().Add(StallTime))
	n, err := l.sock.send(l.Conn, b, nil)
	l.Conn.SetWriteDeadline(time.Time{})
	if err != nil {
		l.Conn.Close()
	}
	return int(n)
}

// HangUp ends a connection so that replies that are on their way arrive: a close with
// unread requests in the socket would reset it.
func (l *Link) HangUp() {
	tcp, ok := l.Conn.(*net.TCPConn)
	if !ok || tcp.CloseWrite() != nil {
		return
	}
	l.Conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	io.Copy(io.Discard, tcp)
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Wake ends a Read.
func (l *Link) Wake() { l.Conn.SetReadDeadline(past) }

// Watch looks at the link at a time: it wakes it if it holds memory and has nothing to
// do, and closes it if its client has stopped in the middle of something: after a
// minute, or soon if it is pressed, since others wait for memory.
func (l *Link) Watch(now time.Time, pressed bool) {
	mark := l.mark.Load()
	if mark != l.seen {
		l.seen, l.still = mark, now
		if !pressed {
			return
		}
	}
	still := now.Sub(l.still)
	switch State(mark & (1<<stateBits - 1)) {
	case Reading:
		if pressed || still >= time.Second {
			l.Wake()
		}
	case Midway:
		if still >= StallTime || pressed && still >= pressedTime {
			l.Conn.Close()
		}
	case Writing:
		if pressed && still >= pressedTime {
			l.Conn.Close()
		} else if still >= StallTime {
			l.stuck.Store(mark)
			l.Conn.SetWriteDeadline(past)
		}
	}
}

// Still is since when Watch has seen no progress.
func (l *Link) Still() time.Time { return l.still }

// Waits tells whether the connection waits for a request.
func (l *Link) Waits() bool {
	s := l.State()
	return s == Idle || s == Reading
}
