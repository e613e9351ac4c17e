package nfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ramserver/export"
	"ramserver/export/link"
	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// newStore makes a store whose root everybody may write to.
func newStore(t testing.TB, name string) *memstore.Store {
	t.Helper()
	st, err := memstore.New(memstore.Config{Name: name, Size: 1 << 30, RootMode: 0o1777})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Check(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// newTable exports a store as "ramdisk", and what else is given.
func newTable(t testing.TB, exports ...*export.Export) *export.Table {
	t.Helper()
	table, err := export.New(exports...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func exportOf(st *memstore.Store, name string) *export.Export {
	return &export.Export{
		Name: name, Store: st, Root: st.Root(), Anon: export.DefaultAnon,
		Squash: export.SquashNone, InsecurePorts: true,
	}
}

// rig is a server on a loopback port.
type rig struct {
	t     testing.TB
	store *memstore.Store
	s     *Server
	addr  string
	pipes *pipes // instead of addr
	root  []byte // handle of the default export's root
	one   *client.Client
}

// start runs a server until the end of the test, which fails if anything of
// it goes on running.
func start(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	t.Cleanup(func() {
		buf := make([]byte, 1<<20)
		for end := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
			stacks := buf[:runtime.Stack(buf, true)]
			if !bytes.Contains(stacks, []byte("nfs.(*Server).")) && !bytes.Contains(stacks, []byte("nfs.(*conn).")) && !bytes.Contains(stacks, []byte("nfs.(*call).")) {
				return
			}
			if time.Now().After(end) {
				t.Errorf("goroutines of the server go on:\n%s", stacks)
				return
			}
		}
	})
	r := &rig{t: t, store: newStore(t, t.Name())}
	cfg := Config{Exports: newTable(t, exportOf(r.store, "ramdisk"))}
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.s, err = NewServer(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	if os.Getuid() != 0 {
		l = believing{l}
	}
	served := make(chan error, 1)
	go func() { served <- r.s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	r.one = r.dial(client.Options{})
	m, err := r.one.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	r.root = bytes.Clone(m.FH)
	return r
}

// believing hides whose socket the other end is, so that a test that root does
// not run can claim to be anybody too.
type believing struct{ net.Listener }

type believed struct{ net.Conn }

func (l believing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return believed{c}, nil
}

func (believed) RemoteAddr() net.Addr { return (*script)(nil).RemoteAddr() }

func (r *rig) dial(o client.Options) *client.Client {
	r.t.Helper()
	o.Timeout = 20 * time.Second
	c, err := client.Dial(context.Background(), r.addr, o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// create makes a file in the root and returns its handle.
func (r *rig) create(name string) []byte {
	r.t.Helper()
	res, err := r.one.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: r.root, Name: name}, Mode: nfs3.Guarded})
	if err != nil {
		r.t.Fatal(err)
	}
	return bytes.Clone(res.FH.FH)
}

func want(t testing.TB, err error, status nfs3.Status) {
	t.Helper()
	if status == nfs3.OK && err != nil || status != nfs3.OK && err != error(status) {
		t.Fatalf("got %v, want %v", err, status)
	}
}

// wait waits until a condition holds.
func wait(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// states counts the connections by what they are doing.
func (r *rig) states() map[link.State]int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	n := make(map[link.State]int)
	for c := range r.s.conns {
		n[c.State()]++
	}
	return n
}

// sweepAt is the janitor at a later time.
func (r *rig) sweepAt(later time.Duration) { r.s.sweep(time.Now().Add(later)) }

func TestConfig(t *testing.T) {
	table := newTable(t, exportOf(newStore(t, "s"), "ramdisk"))
	for _, tt := range []struct {
		cfg Config
		ok  bool
	}{
		{Config{}, false},
		{Config{Exports: table}, true},
		{Config{Exports: table, MaxIO: 64 << 10}, true},
		{Config{Exports: table, MaxIO: 4 << 20}, true},
		{Config{Exports: table, MaxIO: 4096}, false},
		{Config{Exports: table, MaxIO: 100_000}, false},
		{Config{Exports: table, MaxIO: 8 << 20}, false},
	} {
		s, err := NewServer(tt.cfg)
		if (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.cfg, err)
		}
		if err == nil {
			s.Shutdown(t.Context())
		}
	}
}

// A client that stops in the middle of a WRITE holds nothing that others need,
// and is closed after a minute.
func TestStallInWrite(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	for _, off := range []uint64{0, 100} {
		stuck := r.dial(client.Options{})
		if err := stuck.Null(); err != nil {
			t.Fatal(err)
		}
		call := call3(rpc.ProgramNFS, nfs3.ProcWrite, &nfs3.WriteArgs{FH: fh, Offset: off, Count: 1 << 20, Data: make([]byte, 1<<20)})
		if _, err := stuck.Conn().Write(calls(call)[:500_000]); err != nil {
			t.Fatal(err)
		}
		wait(t, "the write stalls", func() bool { return r.states()[link.Midway] == 1 })
		_, err := r.one.Write(fh, 0, []byte("meanwhile"), nfs3.FileSync)
		want(t, err, nfs3.OK)
		r.sweepAt(0)
		r.sweepAt(link.StallTime)
		wait(t, "the connection is closed", func() bool { return r.states()[link.Midway] == 0 })
		if _, err := stuck.Conn().Read(make([]byte, 1)); err == nil {
			t.Fatal("an answer to half a call")
		}
	}
	got, err := r.one.Read(fh, 0, 100)
	want(t, err, nfs3.OK)
	if string(got.Data) != "meanwhile" {
		t.Fatalf("the file has %q", got.Data)
	}
}

// A client that does not read its replies stops being read from, and is closed
// after a minute without progress.
func TestNeverReads(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	_, err := r.one.Write(fh, 0, make([]byte, 1<<20), nfs3.FileSync)
	want(t, err, nfs3.OK)
	for _, count := range []uint32{100, 64 << 10, 1 << 20} {
		deaf := r.dial(client.Options{})
		sent := make(chan error, 1)
		go func() {
			batch := bytes.Repeat(calls(call3(rpc.ProgramNFS, nfs3.ProcRead, &nfs3.ReadArgs{FH: fh, Count: count})), 1000)
			deaf.Conn().SetDeadline(time.Now().Add(20 * time.Second))
			for {
				if _, err := deaf.Conn().Write(batch); err != nil {
					sent <- err
					return
				}
			}
		}()
		wait(t, "the server cannot write", func() bool {
			for c := range r.conns() {
				if c.State() == link.Writing {
					time.Sleep(20 * time.Millisecond)
					return c.State() == link.Writing
				}
			}
			return false
		})
		if err := r.one.Null(); err != nil {
			t.Fatal(err)
		}
		wait(t, "the connection is closed", func() bool {
			r.sweepAt(0)
			r.sweepAt(link.StallTime)
			return len(r.conns()) == 1
		})
		if err := <-sent; err == nil {
			t.Fatal("the connection stands")
		}
	}
	wait(t, "all memory is back", func() bool { return r.s.large.Free() == r.s.half })
}

func (r *rig) conns() map[*conn]struct{} {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return maps.Clone(r.s.conns)
}

// A slow reader that makes progress is not closed.
func TestSlowReader(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	_, err := r.one.Write(fh, 0, make([]byte, 1<<20), nfs3.FileSync)
	want(t, err, nfs3.OK)
	slow := r.dial(client.Options{})
	const n = 20
	batch := bytes.Repeat(calls(call3(rpc.ProgramNFS, nfs3.ProcRead, &nfs3.ReadArgs{FH: fh, Count: 1 << 20})), n)
	if _, err := slow.Conn().Write(batch); err != nil {
		t.Fatal(err)
	}
	for range n {
		wait(t, "the server writes or has written", func() bool { return r.states()[link.Running] == 0 })
		r.sweepAt(0)
		var rest [1000]byte
		if _, err := io.ReadFull(slow.Conn(), rest[:]); err != nil {
			t.Fatal(err)
		}
		// The janitor looks when the write has been going on for a minute,
		// in which some of it was sent.
		if _, err := io.CopyN(io.Discard, slow.Conn(), 1<<20+rpc.MarkSize+rpc.ReplySize+readHead-1000); err != nil {
			t.Fatal(err)
		}
		r.sweepAt(link.StallTime)
	}
	if err := slow.Null(); err != nil {
		t.Fatal(err)
	}
}

// Idle connections give their memory back.
func TestIdle(t *testing.T) {
	r := start(t, nil)
	var all []*client.Client
	for range 20 {
		c := r.dial(client.Options{})
		if err := c.Null(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	wait(t, "they wait for calls", func() bool { return r.states()[link.Reading] >= 20 })
	r.sweepAt(0)
	r.sweepAt(time.Second)
	wait(t, "they hold nothing", func() bool { return r.s.works.Free() == r.s.half })
	for _, c := range all {
		if err := c.Null(); err != nil {
			t.Fatal(err)
		}
	}
}

// More connections than there is memory for take turns.
func TestMemoryPressure(t *testing.T) {
	r := start(t, func(c *Config) { c.Buffers = 1 })
	fh := r.create("f")
	_, err := r.one.Write(fh, 0, make([]byte, 1<<20), nfs3.FileSync)
	want(t, err, nfs3.OK)
	var wg sync.WaitGroup
	for range 2 * int(r.s.half/workSize) {
		c := r.dial(client.Options{})
		wg.Go(func() {
			for range 2 {
				if _, err := c.GetAttr(fh); err != nil {
					t.Error(err)
				}
				if res, err := c.Read(fh, 0, 1<<20); err != nil || len(res.Data) < copyMax {
					t.Error(len(res.Data), err)
				}
				if _, err := c.Write(fh, 1, make([]byte, 1<<20), nfs3.FileSync); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// At the limit, the connection that has been idle for longest makes room, one
// that never sent a call first.
func TestConnectionLimit(t *testing.T) {
	r := start(t, func(c *Config) { c.MaxConns = 3 })
	good := r.dial(client.Options{})
	if err := good.Null(); err != nil {
		t.Fatal(err)
	}
	silent := r.dial(client.Options{})
	wait(t, "there are three", func() bool { return r.states()[link.Idle]+r.states()[link.Reading] == 3 })
	another := r.dial(client.Options{})
	if err := another.Null(); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Conn().Read(make([]byte, 1)); err == nil {
		t.Fatal("the silent one stands")
	}
	if err := good.Null(); err != nil {
		t.Fatal(err)
	}
	if st := r.s.Stats(); st.Evicted != 1 || len(st.Conns) != 3 || st.Accepted != 4 {
		t.Errorf("evicted %d, accepted %d, open %d", st.Evicted, st.Accepted, len(st.Conns))
	}
}

// Shutdown answers what was received.
func TestShutdown(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	c := r.dial(client.Options{})
	const n = 3000
	batch := bytes.Repeat(calls(call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: fh})), n)
	if _, err := c.Conn().Write(batch); err != nil {
		t.Fatal(err)
	}
	replies := make(chan int)
	go func() {
		got := 0
		for {
			if _, err := client.ReadRecord(c.Conn()); err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				replies <- got
				return
			}
			got++
		}
	}()
	wait(t, "some are answered", func() bool { return r.s.Stats().BytesOut > 10_000 })
	if err := r.s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-replies; uint64(got) != calls3(r.s.Stats(), "GETATTR") {
		t.Errorf("%d replies arrived, %d calls were executed", got, calls3(r.s.Stats(), "GETATTR"))
	}
}

// calls3 is how often a procedure was called.
func calls3(st Stats, name string) uint64 {
	for _, p := range st.Procedures {
		if p.Program == "nfs" && p.Name == name {
			return p.Calls
		}
	}
	return 0
}

// A client that does not take its replies does not stop a shutdown for ever.
func TestShutdownInTime(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	_, err := r.one.Write(fh, 0, make([]byte, 1<<20), nfs3.FileSync)
	want(t, err, nfs3.OK)
	deaf := r.dial(client.Options{})
	batch := bytes.Repeat(calls(call3(rpc.ProgramNFS, nfs3.ProcRead, &nfs3.ReadArgs{FH: fh, Count: 1 << 20})), 100)
	if _, err := deaf.Conn().Write(batch); err != nil {
		t.Fatal(err)
	}
	wait(t, "the server writes", func() bool { return r.states()[link.Writing] == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.s.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Fatal(err)
	}
}

// A request that meets another holder leaves the connection's goroutine, which
// goes on, and is answered when the holder has given way.
func TestParked(t *testing.T) {
	r := start(t, nil)
	locked, err := r.store.Root().Create(memstore.Root(), "locked", &memstore.Create{
		Type: memstore.TypeFile, Open: &memstore.OpenArgs{Access: memstore.AccessRead | memstore.AccessWrite}})
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Open.Close()
	lock := memstore.LockArgs{Owner: memstore.LockOwner{ID: "holder"}, N: 1, Exclusive: true, Wait: true}
	if _, err := locked.Open.Lock(lock); err != nil {
		t.Fatal(err)
	}
	// A procedure that waits stands in for one that meets a lease.
	remove := nfs3Procedures[nfs3.ProcRemove].run
	defer func() { nfs3Procedures[nfs3.ProcRemove].run = remove }()
	theirs := lock
	theirs.Owner.ID = "client"
	nfs3Procedures[nfs3.ProcRemove].run = func(k *call) bool {
		_, err := locked.Open.Lock(theirs)
		if err == nil {
			err = locked.Open.Unlock(theirs)
		}
		res := nfs3.WccRes{Status: k.status(err)}
		res.Encode(k.w)
		return true
	}
	c := r.dial(client.Options{})
	removal := call3(rpc.ProgramNFS, nfs3.ProcRemove, &nfs3.DirOp{Dir: r.root, Name: "x"})
	null := call3(rpc.ProgramNFS, nfs3.ProcNull, nil)
	expect := func(proc uint32, status nfs3.Status) {
		t.Helper()
		reply, err := client.ReadRecord(c.Conn())
		if err != nil {
			t.Fatal(err)
		}
		if xid := binary.BigEndian.Uint32(reply); xid != proc+100 {
			t.Fatalf("reply to procedure %d, want one to %d", xid-100, proc)
		}
		if proc != nfs3.ProcNull {
			var res nfs3.WccRes
			if result(t, reply, &res); res.Status != status {
				t.Fatalf("got %v, want %v", res.Status, status)
			}
		}
	}
	// The retransmission in the middle is dropped: the first is in progress.
	if _, err := c.Conn().Write(calls(removal, removal, null)); err != nil {
		t.Fatal(err)
	}
	expect(nfs3.ProcNull, nfs3.OK)
	if err := locked.Open.Unlock(lock); err != nil {
		t.Fatal(err)
	}
	expect(nfs3.ProcRemove, nfs3.OK)

	// Nobody gives way: JUKEBOX after a while, and not for ever.
	if _, err := locked.Open.Lock(lock); err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(removal[len(removal)-4:], 'y'<<24)
	began := time.Now()
	if _, err := c.Conn().Write(calls(removal)); err != nil {
		t.Fatal(err)
	}
	expect(nfs3.ProcRemove, nfs3.ErrJukebox)
	if took := time.Since(began); took < parkTime {
		t.Errorf("gave up after %v", took)
	}
	// Too many wait: the rest is sent away at once.
	wait(t, "nobody waits any more", func() bool {
		for c := range r.conns() {
			if c.parked.Load() > 0 {
				return false
			}
		}
		return true
	})
	for n := range maxParked + 1 {
		binary.BigEndian.PutUint32(removal[len(removal)-4:], uint32('A'+n)<<24)
		if _, err := c.Conn().Write(calls(removal)); err != nil {
			t.Fatal(err)
		}
	}
	expect(nfs3.ProcRemove, nfs3.ErrJukebox)
	if err := locked.Open.Unlock(lock); err != nil {
		t.Fatal(err)
	}
	for range maxParked {
		expect(nfs3.ProcRemove, nfs3.OK)
	}
}

// A procedure that panics fails its request and nothing else.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	r := start(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	commit := nfs3Procedures[nfs3.ProcCommit].run
	defer func() { nfs3Procedures[nfs3.ProcCommit].run = commit }()
	nfs3Procedures[nfs3.ProcCommit].run = func(*call) bool { panic("broken invariant") }
	if _, err := r.one.Commit(r.root, 0, 0); err != rpc.SystemErr {
		t.Fatalf("got %v", err)
	}
	if err := r.one.Null(); err != nil {
		t.Fatal(err)
	}
	if n := r.s.Stats().Panics; n != 1 {
		t.Errorf("%d panics counted", n)
	}
	if !strings.Contains(log.String(), "broken invariant") || !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("log: %s", &log)
	}
}

// A retransmission gets the reply of the first time, on another connection too.
func TestRetransmission(t *testing.T) {
	r := start(t, nil)
	send := func(c *client.Client, msg []byte) []byte {
		t.Helper()
		if _, err := c.Conn().Write(calls(msg)); err != nil {
			t.Fatal(err)
		}
		reply, err := client.ReadRecord(c.Conn())
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	dir := func(name string) *nfs3.DirOp { return &nfs3.DirOp{Dir: r.root, Name: name} }
	fh := r.create("file")
	for _, tt := range []struct {
		name string
		proc uint32
		args encoder
	}{
		{"CREATE", nfs3.ProcCreate, &nfs3.CreateArgs{Where: *dir("f"), Mode: nfs3.Guarded}},
		{"MKDIR", nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: *dir("d")}},
		{"SYMLINK", nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: *dir("s"), Target: "f"}},
		{"MKNOD", nfs3.ProcMknod, &nfs3.MknodArgs{Where: *dir("p"), Type: nfs3.TypeFIFO}},
		{"LINK", nfs3.ProcLink, &nfs3.LinkArgs{FH: fh, Link: *dir("l")}},
		{"RENAME", nfs3.ProcRename, &nfs3.RenameArgs{From: *dir("f"), To: *dir("g")}},
		{"REMOVE", nfs3.ProcRemove, dir("g")},
		{"RMDIR", nfs3.ProcRmdir, dir("d")},
		{"SETATTR", nfs3.ProcSetAttr, &nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetSize: true, Size: 9}}},
	} {
		msg := call3(rpc.ProgramNFS, tt.proc, tt.args)
		first := send(r.dial(client.Options{}), msg)
		if status := binary.BigEndian.Uint32(first[rpc.ReplySize:]); status != 0 {
			t.Errorf("%s: %v", tt.name, nfs3.Status(status))
		}
		if again := send(r.dial(client.Options{}), msg); !bytes.Equal(first, again) {
			t.Errorf("%s again: %x, want %x", tt.name, again, first)
		}
		msg[3]++ // another xid is another request
		if tt.proc != nfs3.ProcSetAttr {
			if other := send(r.dial(client.Options{}), msg); bytes.Equal(first[4:], other[4:]) {
				t.Errorf("%s with another xid was not executed", tt.name)
			}
		}
	}
	if n := r.s.Stats().Replayed; n != 9 {
		t.Errorf("%d replayed, want 9", n)
	}
}

// Every request and its reply is one line.
func TestTrace(t *testing.T) {
	var log bytes.Buffer
	r := start(t, func(c *Config) {
		c.Trace = true
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	fh := r.create("f")
	r.one.Lookup(r.root, "missing")
	r.one.Write(fh, 10, []byte("data"), nfs3.Unstable)
	r.one.Rename(r.root, "f", r.root, "g")
	sess, err := r.one.Session(client.SessionOptions{Owner: "tracer"})
	if err != nil {
		t.Fatal(err)
	}
	sess.Lookup(r.root, "gone")
	r.s.Shutdown(t.Context())
	lines := strings.Split(log.String(), "\n")
	for _, want := range []string{
		`MNT args="\"/\"" answer=OK`, `/\"f\" guarded" answer=OK`, `/\"missing\"" answer=NOENT`,
		`10+4" answer=OK`, `/\"f\" to `,
		`msg=COMPOUND args="4.2 EXCHANGE_ID" answer=OK`, `RECLAIM_COMPLETE" answer=OK`, ` LOOKUP \"gone\" GETFH" answer=NOENT`,
	} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%d lines with %s in\n%s", n, want, strings.Join(lines, "\n"))
		}
	}
}
