package gonfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	gonfs "github.com/willscott/go-nfs"

	"ramserver/export"
)

// maxConns bounds the connections; further ones are closed at once.
const maxConns = 4096

// Config describes a server.
type Config struct {
	// Exports is what is offered. It is constant while the server runs.
	Exports *export.Table
	// Log gets what an operator should know. nil logs nothing.
	Log *slog.Logger
}

// Server answers NFS version 3 and MOUNT version 3 on the listeners that it is
// given.
type Server struct {
	exports  *export.Table
	log      *slog.Logger
	verifier [8]byte // of WRITE and COMMIT: another one at every start
	mask     handleMask
	listings listings
	draining atomic.Bool // no more calls are read
	running  sync.WaitGroup

	mu        sync.Mutex
	listeners map[net.Listener]struct{} // protected by mu
	conns     map[*conn]struct{}        // protected by mu
	stopped   bool                      // protected by mu: Shutdown was called
}

// go-nfs logs through one logger of the process. What it says, the client is
// told too.
var quiet = sync.OnceFunc(func() { gonfs.Log.SetLevel(gonfs.PanicLevel) })

// NewServer makes a server that does not listen yet.
func NewServer(cfg Config) (*Server, error) {
	if cfg.Exports == nil {
		return nil, errors.New("nfs: no exports")
	}
	quiet()
	s := &Server{
		exports:   cfg.Exports,
		log:       cfg.Log,
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	rand.Read(s.verifier[:])
	rand.Read(s.mask[:])
	return s, nil
}

// Serve answers the calls of the connections that l accepts, until Shutdown:
// then it returns nil. It may be called for several listeners at once, and
// closes l.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.add(nc)
		case s.draining.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("nfs: accept: %w", err)
		default:
			// Out of descriptors or memory, or the peer is gone already.
			s.log.Warn("cannot accept a connection", "error", err)
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// add serves a new connection.
func (s *Server) add(nc net.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	c := newConn(s, nc, cancel)
	s.mu.Lock()
	if s.stopped || len(s.conns) >= maxConns {
		s.mu.Unlock()
		cancel()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	go func() {
		// This may ask the system's user database, and takes its time.
		peer := export.NewPeer(nc)
		if !s.admits(peer) {
			c.Close()
			return
		}
		c.handler = newHandler(s, peer)
		srv := &gonfs.Server{Handler: c.handler, ID: s.verifier, Context: ctx}
		srv.Serve(&once{conn: c}) // starts a goroutine for c and returns
	}()
}

func (s *Server) admits(p *export.Peer) bool {
	for _, e := range s.exports.All() {
		if e.Admit(p) {
			return true
		}
	}
	return false
}

// remove forgets a connection that has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.running.Done()
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Shutdown stops accepting, lets every connection answer the call that it has
// received, and closes them. When ctx is done first, it closes them as they are
// and returns ctx's error; then a call may still be running that waits for
// another holder of the store.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.mu.Lock()
	s.stopped = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.Conn.SetReadDeadline(past)
	}
	s.mu.Unlock()

	drained := make(chan struct{})
	go func() {
		s.running.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.end()
	}
	return ctx.Err()
}

// once is a listener that accepts one connection.
type once struct {
	conn *conn
}

func (o *once) Accept() (net.Conn, error) {
	if o.conn == nil {
		return nil, net.ErrClosed
	}
	c := o.conn
	o.conn = nil
	return c, nil
}

func (o *once) Close() error   { return nil }
func (o *once) Addr() net.Addr { return nil }
