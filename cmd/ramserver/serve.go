package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"ramserver/export"
	"ramserver/export/nfs"
	"ramserver/export/nfs/gonfs"
	"ramserver/export/smb"
	"ramserver/memstore"
	"ramserver/memstore/arena"

	"github.com/spf13/cobra"
)

// drainTime is how long requests that are being worked on may take to end.
const drainTime = 10 * time.Second

// sameSignal is how long after a signal another one is taken for the same.
const sameSignal = time.Second

func newServe(in *instance) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server in the foreground",
		Long: `Run a server in the foreground until SIGTERM, SIGINT or "ramserver stop".

The store is empty at start, and lost at the end. Settings come from flags,
else from RAMSERVER_* variables (--nfs-port is RAMSERVER_NFS_PORT; a list is
separated by white space, and an empty one is none), else from the
file of --config, else from defaults.`,
		Example: `  ramserver serve --size 4G
  ramserver serve --size 50% --listen 0.0.0.0 --allow 192.168.1.0/24
  ramserver serve --export ramdisk --export scratch,size=2G,squash=all
  ramserver serve --config ramserver.yaml --nfs-port 12049 --portmap off`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := in.plan(cmd, &s)
			if err != nil {
				return err
			}
			hardenProcess()
			return serve(in, p, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// plan reads the file of settings, if there is one, and checks all of them.
func (in *instance) plan(cmd *cobra.Command, s *settings) (*plan, error) {
	if s.config != "" {
		if err := applyFile(cmd.Flags(), s.config); err != nil {
			return nil, err
		}
		if err := in.settle(cmd); err != nil {
			return nil, err
		}
	}
	mem, err := memory()
	if err != nil {
		return nil, failure{err}
	}
	p, err := makePlan(s, mem)
	if err != nil {
		return nil, err
	}
	p.optional6 = !cmd.Flags().Changed("listen")
	return p, nil
}

// engine is an NFS server: the native one or go-nfs.
type engine interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// running is a server that is being started, runs, or is being shut down.
type running struct {
	plan    *plan
	log     *slog.Logger
	self    *process
	started time.Time
	arena   *arena.Arena
	stores  []*memstore.Store
	table   *export.Table
	listen  []net.Listener
	packets []*net.UDPConn // for the notices of clients that have restarted
	engine  engine
	native  *nfs.Server // engine, if it is that one
	portmap *nfs.Portmap

	smb       *smb.Server // nil: SMB is not served
	smbListen []net.Listener
	smbWhy    string // why it is not at the first port of the plan
	password  string // what to say of a new user's

	metrics net.Addr // nil: none
	mounted *mounted // nil: nothing is to be mounted
	closers []func() // what was opened, in order
}

// onClose has close called when the server ends, or fails to start.
func (r *running) onClose(close func()) { r.closers = append(r.closers, close) }

func (r *running) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
	r.closers = nil
}

func serve(in *instance, p *plan, out, logs io.Writer) error {
	// From here on, so that a signal during the start is not lost.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	memstore.KeepHeap()

	r := &running{plan: p, log: newLog(p, logs), started: time.Now()}
	defer r.close()
	if p.mount != nil {
		r.mounted = &mounted{mount: mount{Plan: p.mount}, log: r.log, gone: make(chan struct{})}
	}
	stop := make(chan struct{}, 1)
	failed := make(chan error, 1)
	if err := r.start(in, stop, failed); err != nil {
		return err
	}
	r.greet(out)
	notify("READY=1")
	ended := underManager(r.log, in.serviceName(), func() { askStop(stop) })

	var err error
	select {
	case sig := <-signals:
		r.log.Info("stopping", "signal", sig.String())
	case <-stop:
		r.log.Info("stopping", "by", "command")
	case <-r.unmounted():
		r.log.Info("stopping", "by", "umount")
	case err = <-failed:
		r.log.Error("stopping", "err", err)
		err = failure{err}
	}
	notify("STOPPING=1")
	go func() {
		// What sends a signal to a process may send it to its group too.
		for asked := time.Now(); time.Since(asked) < sameSignal; {
			<-signals
		}
		os.Exit(1) // the second one: at once
	}()
	if e := r.unmount(true); e != nil {
		r.log.Error("unmounting", "err", e)
	}
	left := false
	if r.mounted != nil && r.mounted.Plan.Server.IsValid() && r.native != nil {
		left = !farewell(r.native, r.mounted.Plan.Server, farewellTime)
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if r.smb != nil {
		r.smb.Close()
	}
	if e := r.engine.Shutdown(ctx); e != nil {
		r.log.Warn("requests were cut off", "after", drainTime, "err", e)
	}
	if left {
		// Its files are still in use; the port is free now.
		if release, e := startStandIn(r.mounted.Plan.Server); e != nil {
			r.log.Error("programs that still use the mount will wait in vain", "err", e)
		} else {
			release()
		}
	}
	r.close()
	ended(err != nil)
	return err
}

// start opens everything. What it cannot open ends the start; what was opened
// is closed by close.
func (r *running) start(in *instance, stop chan<- struct{}, failed chan<- error) error {
	p := r.plan
	for _, w := range p.warnings {
		r.log.Warn(w)
	}
	dir, self, stale, err := in.claim()
	if err != nil {
		return err
	}
	r.onClose(func() { in.remove(dir) })
	r.self = self
	if stale != "" {
		r.log.Warn("an earlier server of this name: " + stale)
	}
	if err := r.listenNFS(); err != nil {
		return err
	}
	if err := r.makeStores(); err != nil {
		return err
	}
	if err := r.makeEngine(in.lockHosts(dir)); err != nil {
		return err
	}
	r.portmap, err = nfs.StartPortmap(nfs.PortmapConfig{Mode: p.portmap, Exports: r.table, NFS: r.addrs(), Server: r.lockServer(), Packets: r.packetAddrs(), Log: r.log})
	if err != nil {
		return err
	}
	r.onClose(func() {
		if err := r.portmap.Close(); err != nil {
			r.log.Warn("portmap", "err", err)
		}
	})
	if err := r.startSMB(in, dir, failed); err != nil {
		return err
	}
	if p.metrics.IsValid() {
		if err := r.serveMetrics(failed); err != nil {
			return err
		}
	}
	for _, l := range r.listen {
		background(failed, func() error { return r.engine.Serve(l) })
	}
	for _, c := range r.packets {
		background(failed, func() error { return r.native.ServePackets(c) })
	}
	if r.mounted != nil {
		if err := r.mountHere(in, dir); err != nil {
			return err
		}
	}
	control, err := listenControl(in.socket(dir), r.log)
	if err != nil {
		return err
	}
	srv := controlServer(r.report, self, r.unmount, func() { askStop(stop) })
	r.onClose(func() {
		// Who asked for the end gets his answer first.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
	})
	background(failed, func() error { return srv.Serve(control) })
	return nil
}

// askStop asks for the end, unless somebody has.
func askStop(stop chan<- struct{}) {
	select {
	case stop <- struct{}{}:
	default:
	}
}

// background runs f, and reports what it ends with if nobody ended it.
func background(failed chan<- error, f func() error) {
	go func() {
		err := f()
		if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
			return
		}
		select {
		case failed <- err:
		default: // something else has failed already
		}
	}()
}

// listenNFS opens the NFS port on every address: the same port, also when any
// will do.
func (r *running) listenNFS() (err error) {
	if r.plan.noNFS {
		return nil
	}
	r.listen, err = r.listenAt(r.plan.nfsPort)
	var busy *busyError
	switch {
	case errors.As(err, &busy), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("NFS %w; give another --nfs-port", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("NFS %w; give an address of this machine as --listen", err)
	case err != nil:
		return fmt.Errorf("NFS %w", err)
	}
	return nil
}

// busyError says that somebody else has a port.
type busyError struct {
	port uint16
	addr netip.Addr
}

func (e *busyError) Error() string {
	return fmt.Sprintf("port %d of %s is in use (%v)", e.port, e.addr, syscall.EADDRINUSE)
}

func (e *busyError) Is(target error) bool { return target == syscall.EADDRINUSE }

// listenAt opens a port on every address: the same port, also when any will do.
func (r *running) listenAt(port uint16) ([]net.Listener, error) {
	tries := 1
	if port == 0 {
		tries = 10 // what is free on one address need not be on the next
	}
	for try := 1; ; try++ {
		all, err := r.listenOnce(port)
		if err == nil {
			for _, l := range all {
				r.onClose(func() { l.Close() })
			}
			return all, nil
		}
		for _, l := range all {
			l.Close()
		}
		if try >= tries || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
	}
}

func (r *running) listenOnce(port uint16) (all []net.Listener, err error) {
	for _, a := range r.plan.listen {
		network := "tcp6"
		if a.Is4() {
			network = "tcp4"
		}
		l, err := net.Listen(network, netip.AddrPortFrom(a, port).String())
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return all, &busyError{port, a}
			}
			if r.plan.optional6 && a.Is6() && len(all) > 0 {
				r.log.Info("not listening on ::1", "err", err) // no IPv6 here
				continue
			}
			var why syscall.Errno
			if errors.As(err, &why) {
				err = why // the rest says the same in other words
			}
			return all, fmt.Errorf("port %d of %s: %w", port, a, err)
		}
		all = append(all, l)
		port = l.Addr().(*net.TCPAddr).AddrPort().Port()
	}
	return all, nil
}

// addrs is where NFS is served.
func (r *running) addrs() []netip.AddrPort {
	var out []netip.AddrPort
	for _, l := range r.listen {
		out = append(out, l.Addr().(*net.TCPAddr).AddrPort())
	}
	return out
}

// makeStores makes the stores, their folders and the table of exports.
func (r *running) makeStores() error {
	p := r.plan
	r.arena = arena.New(arena.Config{})
	r.onClose(func() { r.arena.Close() })
	for _, st := range p.stores {
		s, err := memstore.New(memstore.Config{
			Name: st.name, Size: st.size, Inodes: st.inodes, Arena: r.arena,
			RootUID: st.owner.UID, RootGID: st.owner.GID, RootMode: st.mode,
		})
		if err != nil {
			return fmt.Errorf("store %s: %w", st.name, err)
		}
		r.onClose(func() { s.Close() })
		r.stores = append(r.stores, s)
	}
	var exports []*export.Export
	for _, e := range p.exports {
		store := r.stores[e.store]
		root, err := makeFolder(store, &e)
		if err != nil {
			return fmt.Errorf("export %s: folder /%s: %w", e.name, e.path, err)
		}
		exports = append(exports, &export.Export{
			Name: e.name, Store: store, Root: root, ReadOnly: e.readOnly, Allow: e.allow,
			Squash: e.squash, Anon: e.anon, InsecurePorts: e.insecure,
		})
	}
	var err error
	r.table, err = export.New(exports...)
	return err
}

// makeFolder finds or makes the folder of an export; those above it belong to
// root and have mode 0755.
func makeFolder(s *memstore.Store, e *exportPlan) (*memstore.Inode, error) {
	c := memstore.Root()
	dir := s.Root()
	if e.path == "" {
		return dir, nil
	}
	for part := range strings.SplitSeq(e.path, "/") {
		next, err := dir.Lookup(c, part)
		if errors.Is(err, memstore.ErrNotExist) {
			var made memstore.Created
			made, err = dir.Create(c, part, &memstore.Create{
				Type: memstore.TypeDir,
				Set:  memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o755},
			})
			next = made.Inode
		}
		if err != nil {
			return nil, err
		}
		dir = next
	}
	_, err := dir.SetAttr(c, nil, &memstore.SetAttr{
		Mask: memstore.SetMode | memstore.SetUID | memstore.SetGID,
		Mode: e.mode, UID: e.owner.UID, GID: e.owner.GID,
	})
	return dir, err
}

func (r *running) makeEngine(lockHosts string) (err error) {
	p := r.plan
	if p.engine == "go-nfs" {
		r.engine, err = gonfs.NewServer(gonfs.Config{Exports: r.table, Log: r.log})
		return err
	}
	r.native, err = nfs.NewServer(nfs.Config{Exports: r.table, MaxIO: p.maxIO, ClientExpiry: p.clientExpiry, NoDelegations: !p.delegations, LockHosts: lockHosts, Log: r.log, Trace: p.trace})
	if err != nil {
		return err
	}
	r.engine = r.native
	if p.network {
		r.listenPackets()
	}
	return nil
}

// listenPackets opens the NFS ports for packets. Without them clients that have
// restarted lose their locks only when they lock something again.
func (r *running) listenPackets() {
	for _, a := range r.addrs() {
		network := "udp6"
		if a.Addr().Is4() {
			network = "udp4"
		}
		c, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(a))
		if err != nil {
			r.log.Info("not receiving packets at the NFS port", "err", err)
			continue
		}
		r.onClose(func() { c.Close() })
		r.packets = append(r.packets, c)
	}
}

func (r *running) packetAddrs() (addrs []netip.AddrPort) {
	for _, c := range r.packets {
		addrs = append(addrs, c.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	return addrs
}

// lockServer is who serves NLM, for other machines: on this one the kernel does.
func (r *running) lockServer() *nfs.Server {
	for _, a := range r.addrs() {
		if !a.Addr().IsLoopback() {
			return r.native
		}
	}
	return nil
}

func newLog(p *plan, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: p.logLevel}
	if p.logJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// greet says what is served and how to mount it. The last line is what a
// script can wait for.
func (r *running) greet(out io.Writer) {
	if r.mounted != nil {
		p := r.mounted.Plan
		fmt.Fprintf(out, "ramserver %s: %s of memory at %s, by %s: %s\n", version(), r.plan.sizes(), p.Dir, p.Via, strings.Join(append(p.Options, p.Flags...), ","))
	}
	if len(r.listen) > 0 {
		var addrs []string
		for _, a := range r.addrs() {
			addrs = append(addrs, a.String())
		}
		fmt.Fprintf(out, "ramserver %s: serving %s of memory over NFS on %s\n", version(), r.plan.sizes(), strings.Join(addrs, " and "))
		fmt.Fprintf(out, "Port 111: %s\n", r.portmap)
	}
	if r.smb != nil {
		var addrs []string
		for _, a := range r.smbAddrs() {
			addrs = append(addrs, a.String())
		}
		fmt.Fprintf(out, "SMB:      on %s\n", strings.Join(addrs, " and "))
		if r.smbWhy != "" {
			fmt.Fprintf(out, "          not at port %d: %s\n", r.plan.smb.ports[0], r.smbWhy)
		}
		if r.password != "" {
			fmt.Fprintf(out, "          %s\n", r.password)
		}
	}
	if r.metrics != nil {
		fmt.Fprintf(out, "Metrics:  http://%s/metrics\n", r.metrics)
	}
	fmt.Fprintf(out, "The store is empty, and will be empty again after a restart.\n")
	if r.plan.network {
		fmt.Fprint(out, "\n"+r.plan.mountCommands(r.addrs(), r.portmap.Serves()))
		for _, e := range r.plan.exports[1:] {
			fmt.Fprintf(out, "          or /%s\n", e.name)
		}
		if r.smb != nil {
			fmt.Fprint(out, "\n"+smbCommands(r.smbAddrs(), r.plan.exports[0].name, r.plan.smb.quick))
		}
	}
	fmt.Fprintf(out, "\n%s\n", readyLine)
}

// notify tells the service manager, if there is one (sd_notify(3)).
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte(state))
}
