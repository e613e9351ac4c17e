package nfs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export"
	"ramserver/export/budget"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// Limits of Config.MaxIO in bytes.
const (
	DefaultMaxIO = 1 << 20
	MinMaxIO     = 64 << 10
	MaxMaxIO     = 4 << 20
)

// DefaultClientExpiry is Config.ClientExpiry if that is not set.
const DefaultClientExpiry = 90 * time.Second

// Config describes a server.
type Config struct {
	// Exports is what is offered. It is constant while the server runs.
	Exports *export.Table
	// MaxIO is the largest READ and WRITE, in bytes: a multiple of 64 KiB, 64
	// KiB to 4 MiB. 0 is DefaultMaxIO.
	MaxIO int
	// MaxConns bounds the connections. When it is reached, the one that has
	// been idle for longest makes room for the next. 0 is 65,536, or what the
	// limit of open files allows.
	MaxConns int
	// Buffers bounds the memory of all connections for requests, replies and
	// pages that are being sent, in bytes. 0 is 1/16 of the machine's memory,
	// 256 MiB at most. Connections whose clients neither send nor read hold
	// some of it; while others wait for it, they are closed.
	Buffers int64
	// LockHosts is a file for the hosts that hold locks by NLM, so that the next
	// server tells them that these are lost. "" keeps no such list.
	LockHosts string
	// ClientExpiry is after what time without a sign of life the state of an
	// NFS version 4 client may be dropped, 1 s to 1 h. 0 is 90 s.
	ClientExpiry time.Duration
	// NoDelegations says that NFS version 4 clients get none.
	NoDelegations bool
	// Log gets what an operator should know. nil logs nothing.
	Log *slog.Logger
	// Trace logs every request and its reply as one line, at level debug.
	Trace bool

	// Of tests: the clients' portmapper, and nlm.expiry.
	bindPort uint16
	expiry   time.Duration
}

// Server answers NFS versions 3 and 4, MOUNT versions 1 and 3, NLM version 4 and NSM
// version 1 on the listeners that it is given.
type Server struct {
	cfg       Config
	log       *slog.Logger
	trace     bool
	maxRecord int // bytes of a record
	maxConns  int
	verifier  uint64            // of WRITE and COMMIT: another one at every start
	name      [sha256.Size]byte // see serverName
	mask      handleMask
	replays   *replayCache
	mounts    mountList
	clients   *clients // of version 4
	nlm       *nlm

	half      int64          // bytes, of Config.Buffers
	works     *budget.Budget // one half: for work
	large     *budget.Budget // the other: for records that do not fit, and pages
	largePool sync.Pool      // *[]byte of maxRecord and its marks

	now      atomic.Int64   // seconds since start, by the janitor
	kick     chan struct{}  // wakes the janitor
	draining atomic.Bool    // no more calls are read
	done     chan struct{}  // closed when everything must end
	busy     sync.WaitGroup // connections and parked requests
	running  sync.WaitGroup // the rest: janitor, accepting

	mu        sync.Mutex
	started   time.Time              // (c)
	listeners map[io.Closer]struct{} // (mu) and sockets for packets
	conns     map[*conn]struct{}     // (mu)
	ended     counters               // (mu) of connections that are no more
	accepted  uint64                 // (mu)
	evicted   uint64                 // (mu)
	stopped   bool                   // (mu) Shutdown was called
}

// procedure is one entry of a program's table.
type procedure struct {
	name string
	// args decodes the arguments for the trace; nil if there are none.
	args func(*xdr.Reader) any
	// run decodes k.args, executes, and appends the results to k.w. It
	// reports false, having done nothing, if the arguments cannot be decoded.
	run func(k *call) bool
	// once is for what must not be executed again when the client repeats the
	// request: the replay cache keeps its results.
	once bool
	// compound is for COMPOUND, which leaves that to its operations.
	compound bool
	// index numbers the procedures of all programs, for the counters.
	index int
}

// program is an RPC program and its procedures, by version from low on; a
// version that is not served is nil.
type program struct {
	number    uint32
	name      string
	low, high uint32
	versions  [][]procedure
}

// programs is everything that the server answers.
var programs = [...]program{
	{rpc.ProgramNFS, "nfs", nfs3.Version, nfs4.Version, [][]procedure{nfs3Procedures[:], nfs4Procedures[:]}},
	{rpc.ProgramMount, "mount", nfs3.MountVersion1, nfs3.MountVersion3, [][]procedure{mount1Procedures[:], nil, mount3Procedures[:]}},
	{rpc.ProgramNLM, "nlm", nfs3.NLMVersion4, nfs3.NLMVersion4, [][]procedure{nlm4Procedures[:]}},
	{rpc.ProgramStatus, "nsm", nfs3.NSMVersion1, nfs3.NSMVersion1, [][]procedure{nsm1Procedures[:]}},
}

// How many procedures there are.
const (
	nfs3Count     = nfs3.ProcCommit + 1
	nfs4Count     = nfs4.ProcCompound + 1
	mount1Count   = nfs3.MountProcExportAll + 1
	mount3Count   = nfs3.MountProcExport + 1
	nlm4Count     = nfs3.NLMProcFreeAll + 1
	nsm1Count     = nfs3.NSMProcNotify + 1
	maxProcedures = nfs3Count + nfs4Count + mount1Count + mount3Count + nlm4Count + nsm1Count
)

var nfs3Procedures = [nfs3Count]procedure{
	nfs3.ProcNull:        {name: "NULL", run: (*call).null},
	nfs3.ProcGetAttr:     {name: "GETATTR", args: decode[nfs3.FHArgs], run: (*call).getattr},
	nfs3.ProcSetAttr:     {name: "SETATTR", args: decode[nfs3.SetAttrArgs], run: (*call).setattr, once: true},
	nfs3.ProcLookup:      {name: "LOOKUP", args: decode[nfs3.DirOp], run: (*call).lookup},
	nfs3.ProcAccess:      {name: "ACCESS", args: decode[nfs3.AccessArgs], run: (*call).access},
	nfs3.ProcReadLink:    {name: "READLINK", args: decode[nfs3.FHArgs], run: (*call).readlink},
	nfs3.ProcRead:        {name: "READ", args: decode[nfs3.ReadArgs], run: (*call).read},
	nfs3.ProcWrite:       {name: "WRITE", args: decode[nfs3.WriteArgs], run: (*call).write},
	nfs3.ProcCreate:      {name: "CREATE", args: decode[nfs3.CreateArgs], run: (*call).create, once: true},
	nfs3.ProcMkdir:       {name: "MKDIR", args: decode[nfs3.MkdirArgs], run: (*call).mkdir, once: true},
	nfs3.ProcSymlink:     {name: "SYMLINK", args: decode[nfs3.SymlinkArgs], run: (*call).symlink, once: true},
	nfs3.ProcMknod:       {name: "MKNOD", args: decode[nfs3.MknodArgs], run: (*call).mknod, once: true},
	nfs3.ProcRemove:      {name: "REMOVE", args: decode[nfs3.DirOp], run: (*call).remove, once: true},
	nfs3.ProcRmdir:       {name: "RMDIR", args: decode[nfs3.DirOp], run: (*call).rmdir, once: true},
	nfs3.ProcRename:      {name: "RENAME", args: decode[nfs3.RenameArgs], run: (*call).rename, once: true},
	nfs3.ProcLink:        {name: "LINK", args: decode[nfs3.LinkArgs], run: (*call).link, once: true},
	nfs3.ProcReadDir:     {name: "READDIR", args: decode[nfs3.ReadDirArgs], run: (*call).readdir},
	nfs3.ProcReadDirPlus: {name: "READDIRPLUS", args: decode[nfs3.ReadDirPlusArgs], run: (*call).readdirplus},
	nfs3.ProcFSStat:      {name: "FSSTAT", args: decode[nfs3.FHArgs], run: (*call).fsstat},
	nfs3.ProcFSInfo:      {name: "FSINFO", args: decode[nfs3.FHArgs], run: (*call).fsinfo},
	nfs3.ProcPathConf:    {name: "PATHCONF", args: decode[nfs3.FHArgs], run: (*call).pathconf},
	nfs3.ProcCommit:      {name: "COMMIT", args: decode[nfs3.CommitArgs], run: (*call).commit},
}

var nfs4Procedures = [nfs4Count]procedure{
	nfs4.ProcNull:     {name: "NULL", run: (*call).null},
	nfs4.ProcCompound: {name: "COMPOUND", run: (*call).compound, compound: true},
}

var mount1Procedures = [mount1Count]procedure{
	nfs3.MountProcNull:      {name: "NULL", run: (*call).null},
	nfs3.MountProcMnt:       {name: "MNT", args: decode[nfs3.MountPath], run: (*call).mnt1},
	nfs3.MountProcDump:      {name: "DUMP", run: (*call).dump},
	nfs3.MountProcUmnt:      {name: "UMNT", args: decode[nfs3.MountPath], run: (*call).umnt},
	nfs3.MountProcUmntAll:   {name: "UMNTALL", run: (*call).umntall},
	nfs3.MountProcExport:    {name: "EXPORT", run: (*call).exportList},
	nfs3.MountProcExportAll: {name: "EXPORTALL", run: (*call).exportList},
}

var mount3Procedures = [mount3Count]procedure{
	nfs3.MountProcNull:    {name: "NULL", run: (*call).null},
	nfs3.MountProcMnt:     {name: "MNT", args: decode[nfs3.MountPath], run: (*call).mnt3},
	nfs3.MountProcDump:    {name: "DUMP", run: (*call).dump},
	nfs3.MountProcUmnt:    {name: "UMNT", args: decode[nfs3.MountPath], run: (*call).umnt},
	nfs3.MountProcUmntAll: {name: "UMNTALL", run: (*call).umntall},
	nfs3.MountProcExport:  {name: "EXPORT", run: (*call).exportList},
}

// The numbers from 16 to 19 belong to nobody.
var nlm4Procedures = [nlm4Count]procedure{
	nfs3.NLMProcNull:       {name: "NULL", run: (*call).null},
	nfs3.NLMProcTest:       {name: "TEST", args: decode[nfs3.NLMTestArgs], run: nlmCall((*call).nlmTest)},
	nfs3.NLMProcLock:       {name: "LOCK", args: decode[nfs3.NLMLockArgs], run: nlmCall((*call).nlmLock)},
	nfs3.NLMProcCancel:     {name: "CANCEL", args: decode[nfs3.NLMCancelArgs], run: nlmCall((*call).nlmCancel)},
	nfs3.NLMProcUnlock:     {name: "UNLOCK", args: decode[nfs3.NLMUnlockArgs], run: nlmCall((*call).nlmUnlock)},
	nfs3.NLMProcGranted:    {name: "GRANTED", args: decode[nfs3.NLMTestArgs], run: nlmCall((*call).nlmGranted)},
	nfs3.NLMProcTestMsg:    {name: "TEST_MSG", args: decode[nfs3.NLMTestArgs], run: nlmMessage((*call).nlmTest, nfs3.NLMProcTestRes)},
	nfs3.NLMProcLockMsg:    {name: "LOCK_MSG", args: decode[nfs3.NLMLockArgs], run: nlmMessage((*call).nlmLock, nfs3.NLMProcLockRes)},
	nfs3.NLMProcCancelMsg:  {name: "CANCEL_MSG", args: decode[nfs3.NLMCancelArgs], run: nlmMessage((*call).nlmCancel, nfs3.NLMProcCancelRes)},
	nfs3.NLMProcUnlockMsg:  {name: "UNLOCK_MSG", args: decode[nfs3.NLMUnlockArgs], run: nlmMessage((*call).nlmUnlock, nfs3.NLMProcUnlockRes)},
	nfs3.NLMProcGrantedMsg: {name: "GRANTED_MSG", args: decode[nfs3.NLMTestArgs], run: nlmMessage((*call).nlmGranted, nfs3.NLMProcGrantedRes)},
	nfs3.NLMProcTestRes:    {name: "TEST_RES", run: (*call).null},
	nfs3.NLMProcLockRes:    {name: "LOCK_RES", run: (*call).null},
	nfs3.NLMProcCancelRes:  {name: "CANCEL_RES", run: (*call).null},
	nfs3.NLMProcUnlockRes:  {name: "UNLOCK_RES", run: (*call).null},
	nfs3.NLMProcGrantedRes: {name: "GRANTED_RES", run: (*call).null},
	nfs3.NLMProcShare:      {name: "SHARE", args: decode[nfs3.NLMShareArgs], run: nlmCall((*call).nlmShare)},
	nfs3.NLMProcUnshare:    {name: "UNSHARE", args: decode[nfs3.NLMShareArgs], run: nlmCall((*call).nlmUnshare)},
	nfs3.NLMProcNMLock:     {name: "NM_LOCK", args: decode[nfs3.NLMLockArgs], run: nlmCall((*call).nlmLock)},
	nfs3.NLMProcFreeAll:    {name: "FREE_ALL", args: decode[nfs3.NLMNotify], run: (*call).nlmFreeAll},
}

var nsm1Procedures = [nsm1Count]procedure{
	nfs3.NSMProcNull:     {name: "NULL", run: (*call).null},
	nfs3.NSMProcStat:     {name: "STAT", args: decode[nfs3.NSMName], run: (*call).nsmStat},
	nfs3.NSMProcMon:      {name: "MON", run: (*call).nsmMon},
	nfs3.NSMProcUnmon:    {name: "UNMON", run: (*call).nsmUnmon},
	nfs3.NSMProcUnmonAll: {name: "UNMON_ALL", run: (*call).nsmUnmon},
	nfs3.NSMProcCrash:    {name: "SIMU_CRASH", run: (*call).null},
	nfs3.NSMProcNotify:   {name: "NOTIFY", args: decode[nfs3.NSMNotify], run: (*call).nsmNotify},
}

func init() {
	index := 0
	for _, p := range programs {
		for _, procs := range p.versions {
			for i := range procs {
				procs[i].index = index
				index++
			}
		}
	}
}

// NewServer makes a server that does not listen yet.
func NewServer(cfg Config) (*Server, error) {
	if cfg.Exports == nil {
		return nil, errors.New("nfs: no exports")
	}
	if cfg.MaxIO == 0 {
		cfg.MaxIO = DefaultMaxIO
	}
	if cfg.MaxIO < MinMaxIO || cfg.MaxIO > MaxMaxIO || cfg.MaxIO%freshMin != 0 {
		return nil, fmt.Errorf("nfs: largest read and write is %d bytes: want a multiple of 64 KiB, %d to %d", cfg.MaxIO, MinMaxIO, MaxMaxIO)
	}
	if cfg.ClientExpiry == 0 {
		cfg.ClientExpiry = DefaultClientExpiry
	}
	if cfg.ClientExpiry < time.Second || cfg.ClientExpiry > time.Hour {
		return nil, fmt.Errorf("nfs: client expiry is %v: want 1s to 1h", cfg.ClientExpiry)
	}
	s := &Server{
		cfg:       cfg,
		log:       cfg.Log,
		trace:     cfg.Trace && cfg.Log != nil && cfg.Log.Enabled(context.Background(), slog.LevelDebug),
		maxRecord: cfg.MaxIO + overhead,
		maxConns:  cfg.MaxConns,
		name:      serverName(cfg.Exports),
		mask:      newHandleMask(),
		replays:   newReplayCache(),
		kick:      make(chan struct{}, 1),
		done:      make(chan struct{}),
		listeners: make(map[io.Closer]struct{}),
		conns:     make(map[*conn]struct{}),
		started:   time.Now(),
	}
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
	s.clients = newClients(s, int64(cfg.ClientExpiry/time.Second), max(buffers/4, minReplies))
	s.half = max(buffers/2, 4*workSize, 4*int64(s.maxRecord))
	wake := func() {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
	s.works = budget.New(s.half, wake)
	s.large = budget.New(s.half, wake)
	s.largePool.New = func() any {
		b := make([]byte, s.maxRecord+rpc.MarkSize)
		return &b
	}
	hosts, err := openHostList(cfg.LockHosts)
	if err != nil {
		return nil, fmt.Errorf("nfs: the list of hosts with locks: %w", err)
	}
	s.nlm = newNLM(s, hosts)
	var b [8]byte
	rand.Read(b[:])
	s.verifier = binary.BigEndian.Uint64(b[:])
	s.running.Add(1)
	go s.janitor()
	s.running.Go(s.nlm.tellHosts)
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
			return fmt.Errorf("nfs: accept: %w", err)
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
	c := &conn{s: s}
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

// evict closes the connection that has been idle for longest, one that never
// sent a good call before others. It reports false if none is idle. Called
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

// heardFrom is when a host has last sent something, as far as the connections
// know that stand: to the second.
func (s *Server) heardFrom(host netip.Addr) (last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		a, ok := c.Conn.RemoteAddr().(*net.TCPAddr)
		if ok && a.AddrPort().Addr().Unmap().WithZone("") == host && c.Still().After(last) {
			last = c.Still()
		}
	}
	return last
}

// clientOf tells whether a host is a client: it has mounted an export, or has
// locked something.
func (s *Server) clientOf(host netip.Addr) bool {
	return s.mounts.has(host.String()) || len(s.nlm.of(host)) > 0
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
		s.nlm.sweep(time.Now())
		s.clients.sweep()
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
	s.now.Store(int64(now.Sub(s.started) / time.Second))
	pressed = s.works.Waiting() || s.large.Waiting()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Watch(now, pressed)
	}
	return pressed
}

// Shutdown stops accepting, lets every connection answer the calls that it has
// received, and closes them. When ctx is done first, it closes them as they
// are and returns ctx's error. Either way nothing of the server runs when it
// returns.
func (s *Server) Shutdown(ctx context.Context) error {
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
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
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
	if first {
		s.nlm.close()
		s.clients.close()
	}
	s.running.Wait()
	s.clients.dropAll()
	return err
}
