package smb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export"
	"ramserver/export/budget"
	"ramserver/export/link"
	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Protection is how much a server insists on signing or encryption.
type Protection uint8

// Protections.
const (
	Enabled  Protection = iota // for clients that ask for it
	Required                   // from every client
	Off                        // not offered; of encryption only
)

// Config describes a server.
type Config struct {
	// Exports is what is offered: an export's name is a share's. It is constant
	// while the server runs.
	Exports *export.Table
	// Users is who may log on.
	Users *Users
	// Name is what the server calls itself, of which clients see the first 15
	// characters of the first label, in capitals. "" is RAMSERVER.
	Name string
	// Signing is Enabled or Required. Who signs is answered signed in any case.
	Signing Protection
	// Encryption is of all shares. Encrypted names shares that require it when
	// it is Enabled.
	Encryption Protection
	Encrypted  []string
	// MaxConns bounds the connections. When it is reached, the one that has
	// been idle for longest makes room for the next. 0 is 65,536, or what the
	// limit of open files allows.
	MaxConns int
	// Buffers bounds the memory of all connections for requests, replies and
	// pages that are being sent, in bytes. 0 is 1/16 of the machine's memory,
	// 256 MiB at most. Connections whose clients neither send nor read hold
	// some of it; while others wait for it, they are closed.
	Buffers int64
	// Log gets what an operator should know. nil logs nothing.
	Log *slog.Logger
	// Trace logs every request and its reply as one line, at level debug.
	Trace bool

	// Of tests: how long the answer to a failed logon takes.
	logonDelay time.Duration
}

// Server answers SMB 2.0.2 to 3.1.1 (MS-SMB2) on the listeners that it is given.
type Server struct {
	cfg      Config
	log      *slog.Logger
	trace    bool
	maxConns int
	guid     [16]byte
	logons   ntlm.Server

	half    int64              // bytes, of Config.Buffers
	works   *budget.Budget     // one half: for work
	large   *budget.Budget     // the other: for what does not fit, and pages
	waiting atomic.Int64       // bytes of it that requests take that wait
	opens   atomic.Int64       // files that are open
	pipes   atomic.Int64       // bytes in pipes
	watched memstore.WatchRoom // of changes that are kept

	kick     chan struct{}  // wakes the janitor
	draining atomic.Bool    // no more requests are read
	done     chan struct{}  // closed when everything must end
	busy     sync.WaitGroup // connections and pending requests
	running  sync.WaitGroup // the rest: janitor, accepting
	ids      atomic.Uint64  // last one given to a file or a request that waits

	mu        sync.Mutex
	started   time.Time                 // (c)
	listeners map[net.Listener]struct{} // (mu)
	conns     map[*conn]struct{}        // (mu)
	sessions  map[uint64]*session       // (mu) of all connections
	ended     counters                  // (mu) of connections that are no more
	accepted  uint64                    // (mu)
	evicted   uint64                    // (mu)
	stopped   bool                      // (mu) Close was called
}

// command is one entry of the table of commands.
type command struct {
	name string
	// size is the StructureSize of its request; MS-SMB2 section 2.2.
	size uint16
	// needs is what must be known before it is executed.
	needs need
	// run decodes r.msg, executes, and appends the reply's body to r.w. Where
	// it returns an error, what it appended is replaced by the error's body.
	run func(r *request) wire.Status
}

// need is what a command needs.
type need uint8

const (
	needSession need = 1 << iota
	needTree
)

// New makes a server that does not listen yet.
func New(cfg Config) (*Server, error) {
	if cfg.Exports == nil || cfg.Users == nil {
		return nil, errors.New("smb: no exports or no users")
	}
	if cfg.Signing > Required || cfg.Encryption > Off {
		return nil, errors.New("smb: signing is enabled or required; encryption is one of both or off")
	}
	for _, name := range cfg.Encrypted {
		if cfg.Exports.ByName(name) == nil {
			return nil, fmt.Errorf("smb: there is no share %q to encrypt", name)
		}
		if cfg.Encryption == Off {
			return nil, fmt.Errorf("smb: encryption is off, and required for the share %q", name)
		}
	}
	if cfg.logonDelay == 0 {
		cfg.logonDelay = time.Second
	}
	s := &Server{
		cfg:       cfg,
		log:       cfg.Log,
		trace:     cfg.Trace && cfg.Log != nil && cfg.Log.Enabled(context.Background(), slog.LevelDebug),
		maxConns:  cfg.MaxConns,
		kick:      make(chan struct{}, 1),
		done:      make(chan struct{}),
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
		sessions:  make(map[uint64]*session),
		started:   time.Now(),
	}
	s.logons = ntlm.Server{Name: shortName(cfg.Name), Lookup: s.hashOf}
	rand.Read(s.guid[:])
	if s.log == nil {
		s.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if s.maxConns == 0 {
		s.maxConns = min(65536, max(64, budget.MaxFiles()-256))
	}
	buffers := cfg.Buffers
	if buffers == 0 {
		buffers = min(budget.MachineMemory()/16, 256<<20)
	}
	s.half = max(buffers/2, 4*workSize, 4*(maxFrame+frameSize))
	wake := func() {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
	s.watched.Max = s.half / 4
	s.works = budget.New(s.half, wake)
	s.large = budget.New(s.half, wake)
	s.running.Add(1)
	go s.janitor()
	return s, nil
}

// shortName is a name as NetBIOS has it: 15 characters in capitals.
func shortName(s string) string {
	s, _, _ = strings.Cut(s, ".")
	s = strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`\/:*?"<>|`, r) {
			return r
		}
		return -1
	}, s)
	if s == "" {
		s = "ramserver"
	}
	return strings.ToUpper(s[:min(len(s), 15)])
}

// hashOf finds the hash of a user's password.
func (s *Server) hashOf(name string) (ntlm.Hash, bool) {
	u, ok, err := s.cfg.Users.Find(name)
	if err != nil {
		s.log.Warn("users of the file cannot log on", "error", err)
	}
	return u.Hash, ok
}

// Serve answers the requests of the connections that l accepts, until Close:
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
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	for {
		nc, err := l.Accept()
		if err == nil {
			s.add(nc)
			continue
		}
		if s.draining.Load() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("smb: accept: %w", err)
		}
		// Out of descriptors or memory, or the peer is gone already: make room
		// and go on.
		s.log.Warn("cannot accept a connection", "error", err)
		s.mu.Lock()
		s.evict()
		s.mu.Unlock()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.done:
		}
	}
}

// add serves a new connection, if need be in the place of an idle one.
func (s *Server) add(nc net.Conn) {
	c := &conn{
		s:        s,
		gone:     make(chan struct{}),
		window:   newWindow(),
		sessions: make(map[uint64]*session),
		pending:  make(map[uint64]*pending),
		watched:  memstore.WatchRoom{Max: maxWatched, All: &s.watched},
	}
	c.Init(nc)
	s.mu.Lock()
	if s.stopped || len(s.conns) >= s.maxConns && !s.evict() {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.accepted++
	s.busy.Add(1)
	s.mu.Unlock()
	go c.serve()
}

// evict closes the connection that has been idle for longest, one on which
// nobody has logged on before others. It reports false if none is idle. Called
// with s.mu held.
func (s *Server) evict() bool {
	var oldest *conn
	for c := range s.conns {
		if !c.Waits() {
			continue
		}
		if oldest == nil || !c.ready.Load() && oldest.ready.Load() ||
			c.ready.Load() == oldest.ready.Load() && c.Still().Before(oldest.Still()) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	oldest.Conn.Close()
	delete(s.conns, oldest)
	s.evicted++
	return true
}

// remove forgets a connection that has ended.
func (s *Server) remove(c *conn, err error) {
	s.mu.Lock()
	delete(s.conns, c)
	s.ended.add(&c.count)
	s.mu.Unlock()
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, errDraining) {
		s.log.Debug("connection ended", "peer", c.Conn.RemoteAddr(), "error", err)
	}
	s.busy.Done()
}

// janitor looks after connections that do nothing, once a second and when
// somebody waits for memory.
func (s *Server) janitor() {
	defer s.running.Done()
	const usual, pressed = time.Second, 50 * time.Millisecond
	next := time.NewTimer(usual)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-s.kick:
			// Not for everyone who starts to wait.
			select {
			case <-time.After(pressed / 10):
			case <-s.done:
			}
		case <-s.done:
			return
		}
		if s.sweep(time.Now()) {
			next.Reset(pressed)
		} else {
			next.Reset(usual)
		}
	}
}

// sweep wakes readers that hold memory and have nothing to do, and closes
// connections whose clients have stopped in the middle of something: after a
// minute, or soon while others wait for the memory. It reports whether they do.
func (s *Server) sweep(now time.Time) (pressed bool) {
	pressed = s.works.Waiting() || s.large.Waiting()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Watch(now, pressed)
		switch state, age := c.State(), now.Sub(c.Since); {
		case c.ready.Load() || state == link.Running || state == link.Writing:
		case age >= link.StallTime, pressed && state != link.Idle && age >= logonTime:
			// Nobody has logged on, however fast the bytes come.
			c.Conn.Close()
		}
	}
	return pressed
}

// closeTime is how long Close waits for connections to answer what they have
// received.
const closeTime = 2 * time.Second

// Close stops accepting, lets every connection answer the requests that it has
// received, for two seconds at most, and ends them. Nothing of the server runs
// when it returns.
func (s *Server) Close() error {
	s.draining.Store(true)
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.Wake()
	}
	s.mu.Unlock()

	drained := make(chan struct{})
	go func() {
		s.busy.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(closeTime):
	}
	s.mu.Lock()
	if first {
		close(s.done)
	}
	for c := range s.conns {
		c.Conn.Close()
	}
	s.mu.Unlock()
	<-drained
	s.running.Wait()
	return nil
}
