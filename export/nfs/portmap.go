package nfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ramserver/export"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// PortmapConfig says how clients learn at which port NFS is.
type PortmapConfig struct {
	// Mode is "off" for nothing, "auto" to serve port 111 where it is free,
	// else to register with the rpcbind that has it, else to go without, or
	// "on" to fail in the last case.
	Mode string
	// Exports says who may ask: whoever some export admits.
	Exports *export.Table
	// NFS is where NFS and MOUNT are served.
	NFS []netip.AddrPort
	// Server, if it is not nil, serves NLM and NSM there too, by TCP.
	Server *Server
	// Packets is where NSM is served by UDP.
	Packets []netip.AddrPort
	Log     *slog.Logger
}

// Portmap makes NFS known at port 111: by serving portmap version 2 and
// rpcbind versions 3 and 4 (RFC 1833) there over TCP and UDP, or by being
// registered with another program that does.
//
// Local programs can register with it, as a Linux client's rpc.statd has to
// before it mounts. NFS and MOUNT cannot be changed. NLM and NSM are those of
// this machine's kernel and rpc.statd as soon as these register, which need them
// to lock files of other servers; but hosts that are clients of this server are
// told of its own. An rpcbind that has the port knows one of each only, and
// keeps the kernel's if it is there. The portmapper calls no
// program on behalf of others (CALLIT, BCAST, INDIRECT): that makes a caller
// look local and a server an amplifier.
type Portmap struct {
	cfg      PortmapConfig
	port     uint16
	how      string // for people
	serves   bool
	programs []binding // ours; constant once it serves
	locks    []binding // ours, unless the kernel has them: NLM and NSM; constant

	registered []binding // with another rpcbind

	listeners []net.Listener
	packets   []*net.UDPConn
	wg        sync.WaitGroup
	closed    chan struct{}
	calls     [3][13]atomic.Uint32 // by version less 2 and procedure
	sets      [3]atomic.Uint32     // that succeeded
	unsets    [3]atomic.Uint32

	mu    sync.Mutex
	local []binding             // (mu) of local programs
	conns map[net.Conn]struct{} // (mu)
}

// binding is where a version of a program is found.
type binding struct {
	program, version uint32
	netid            string
	addr             netip.AddrPort // may be unspecified: any address of this machine
}

const (
	maxBindings      = 256
	maxBindConns     = 256
	maxBindRecord    = 8 << 10          // bytes of a call
	bindIdle         = 15 * time.Second // after which a TCP connection is closed
	bindOwner        = "superuser"      // who may register
	netTCP, netUDP   = "tcp", "udp"
	netTCP6, netUDP6 = "tcp6", "udp6"
)

// StartPortmap makes NFS known as cfg.Mode says.
func StartPortmap(cfg PortmapConfig) (*Portmap, error) {
	return startPortmap(cfg, rpc.PortmapPort)
}

func startPortmap(cfg PortmapConfig, port uint16) (*Portmap, error) {
	p := &Portmap{cfg: cfg, port: port, closed: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	if cfg.Mode == "off" {
		p.how = "off"
		return p, nil
	}
	for _, a := range cfg.NFS {
		netid := netTCP6
		if a.Addr().Is4() {
			netid = netTCP
		}
		for _, pv := range [][2]uint32{{rpc.ProgramNFS, 3}, {rpc.ProgramMount, 1}, {rpc.ProgramMount, 3}} {
			p.programs = append(p.programs, binding{pv[0], pv[1], netid, a})
		}
		if cfg.Server != nil {
			p.locks = append(p.locks, binding{rpc.ProgramNLM, nfs3.NLMVersion4, netid, a}, binding{rpc.ProgramStatus, nfs3.NSMVersion1, netid, a})
		}
	}
	for _, a := range cfg.Packets {
		netid := netUDP6
		if a.Addr().Is4() {
			netid = netUDP
		}
		p.locks = append(p.locks, binding{rpc.ProgramStatus, nfs3.NSMVersion1, netid, a})
	}
	err := p.listen()
	if err == nil {
		p.how, p.serves = "served here", true
		p.start()
		return p, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		if rerr := p.register(); rerr == nil {
			p.how, p.serves = "registered with the rpcbind of this machine", true
			return p, nil
		} else {
			err = fmt.Errorf("%w; registering with the rpcbind there: %w", err, rerr)
		}
	}
	if cfg.Mode == "on" {
		return nil, fmt.Errorf("portmap: %w", err)
	}
	cfg.Log.Info("clients cannot ask port 111 for NFS", "err", err)
	p.how = "not available, mount needs port numbers"
	return p, nil
}

// Serves tells whether port 111 knows of NFS.
func (p *Portmap) Serves() bool { return p.serves }

func (p *Portmap) String() string { return p.how }

// Close takes back what was registered, and stops serving. It is called once.
func (p *Portmap) Close() error {
	close(p.closed)
	err := p.unregister()
	for _, l := range p.listeners {
		l.Close()
	}
	for _, c := range p.packets {
		c.Close()
	}
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

// listen opens the port over TCP and UDP on every address of NFS, and on
// 127.0.0.1, where local programs register; on all of them or none.
func (p *Portmap) listen() error {
	here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var addrs []netip.Addr
	for _, a := range p.cfg.NFS {
		addrs = append(addrs, a.Addr())
	}
	if !slices.Contains(addrs, here) && !slices.Contains(addrs, netip.IPv4Unspecified()) {
		addrs = append(addrs, here)
	}
	for _, a := range addrs {
		tcp, udp := netTCP6, netUDP6
		if a.Is4() {
			// The Go names for IPv4 alone.
			tcp, udp = "tcp4", "udp4"
		}
		l, err := net.Listen(tcp, netip.AddrPortFrom(a, p.port).String())
		if err == nil {
			p.listeners = append(p.listeners, l)
			at := l.Addr().(*net.TCPAddr).AddrPort()
			var c *net.UDPConn
			if c, err = net.ListenUDP(udp, net.UDPAddrFromAddrPort(at)); err == nil {
				p.packets = append(p.packets, c)
				err = wantDestination(c, a.Is4())
			}
		}
		if err != nil {
			for _, l := range p.listeners {
				l.Close()
			}
			for _, c := range p.packets {
				c.Close()
			}
			p.listeners, p.packets = nil, nil
			return err
		}
	}
	return nil
}

// start serves what listen opened.
func (p *Portmap) start() {
	for _, l := range p.listeners {
		at := l.Addr().(*net.TCPAddr).AddrPort()
		tcp, udp := netTCP6, netUDP6
		if at.Addr().Is4() {
			tcp, udp = netTCP, netUDP
		}
		for v := uint32(rpc.PortmapVersion); v <= rpc.RPCBindVersion4; v++ {
			if v == rpc.PortmapVersion && at.Addr().Is6() {
				continue // it knows no addresses
			}
			p.programs = append(p.programs,
				binding{rpc.ProgramPortmap, v, tcp, at}, binding{rpc.ProgramPortmap, v, udp, at})
		}
	}
	for _, l := range p.listeners {
		p.wg.Go(func() { p.accept(l) })
	}
	for _, c := range p.packets {
		p.wg.Go(func() {
			servePackets(c, p.cfg.Exports.Admits, func(w *xdr.Writer, rec []byte, from netip.AddrPort, to netip.Addr) {
				p.answer(w, rec, from, to, false)
			})
		})
	}
}

func (p *Portmap) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // out of descriptors, for example
			case <-p.closed:
				return
			case <-time.After(100 * time.Millisecond):
				continue
			}
		}
		p.mu.Lock()
		ok := len(p.conns) < maxBindConns
		if ok {
			p.conns[c] = struct{}{}
		}
		p.mu.Unlock()
		select {
		case <-p.closed: // after Close has closed the others
			ok = false
		default:
		}
		if !ok {
			p.drop(c)
			continue
		}
		p.wg.Go(func() {
			defer p.drop(c)
			p.serveConn(c)
		})
	}
}

func (p *Portmap) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *Portmap) serveConn(c net.Conn) {
	from := unmapPort(c.RemoteAddr().(*net.TCPAddr).AddrPort())
	to := unmapPort(c.LocalAddr().(*net.TCPAddr).AddrPort())
	if !p.cfg.Exports.Admits(from.Addr()) {
		return
	}
	var w xdr.Writer
	for {
		c.SetDeadline(time.Now().Add(bindIdle))
		rec, err := readRecord(c)
		if err != nil {
			return
		}
		w.B = w.B[:0]
		at := rpc.BeginRecord(&w)
		if !p.answer(&w, rec, from, to.Addr(), true) {
			return
		}
		if w.Len() == at+rpc.MarkSize {
			continue // nothing to say
		}
		rpc.EndRecord(&w, at, 0)
		if _, err := c.Write(w.B); err != nil {
			return
		}
	}
}

// readRecord reads a record of at most maxBindRecord bytes (RFC 5531 section
// 11). Fragments without content count, so that they end too.
func readRecord(r io.Reader) ([]byte, error) {
	var rec []byte
	for range 16 {
		var mark [rpc.MarkSize]byte
		if _, err := io.ReadFull(r, mark[:]); err != nil {
			return nil, err
		}
		n, last := rpc.MarkOf(mark[:])
		if n > maxBindRecord-len(rec) {
			return nil, errRecord
		}
		have := len(rec)
		rec = slices.Grow(rec, n)[:have+n]
		if _, err := io.ReadFull(r, rec[have:]); err != nil {
			return nil, err
		}
		if last {
			return rec, nil
		}
	}
	return nil, errRecord
}

// servePackets answers the packets that c receives from those who are admitted,
// until it is closed. answer appends the reply to one from from to our address
// to, or nothing.
func servePackets(c *net.UDPConn, admits func(netip.Addr) bool, answer func(w *xdr.Writer, rec []byte, from netip.AddrPort, to netip.Addr)) {
	buf := make([]byte, maxBindRecord)
	var control [128]byte
	bound := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	for {
		n, cn, flags, from, err := c.ReadMsgUDPAddrPort(buf, control[:])
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // an ICMP error of an earlier reply, for example
		}
		from = unmapPort(from)
		if flags&truncated != 0 || !admits(from.Addr()) {
			continue
		}
		to := bound
		if a, ok := destination(control[:cn]); ok {
			to = a
		}
		var w xdr.Writer
		if answer(&w, buf[:n], from, to); w.Len() == 0 {
			continue
		}
		// With the control message that it came with, the reply leaves from
		// the address that was asked.
		c.WriteMsgUDPAddrPort(w.B, control[:cn], from)
	}
}

func unmapPort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// answer writes the reply to one call, or nothing if none is due. It reports
// false for what is no call at all. The call came from from, and to our
// address to.
func (p *Portmap) answer(w *xdr.Writer, rec []byte, from netip.AddrPort, to netip.Addr, stream bool) bool {
	r := xdr.NewReader(rec)
	var call rpc.Call
	var auth rpc.AuthStat
	switch err := call.Decode(&r); {
	case err == nil:
	case err == rpc.ErrVersion:
		rpc.RPCMismatch(w, call.XID)
		return true
	case errors.As(err, &auth):
		rpc.AuthError(w, call.XID, auth)
		return true
	default:
		return false
	}
	if call.Program != rpc.ProgramPortmap {
		rpc.Accepted(w, call.XID, rpc.ProgUnavail)
		return true
	}
	if call.Version < rpc.PortmapVersion || call.Version > rpc.RPCBindVersion4 {
		rpc.RefuseVersion(w, call.XID, rpc.PortmapVersion, rpc.RPCBindVersion4)
		return true
	}
	v := call.Version - rpc.PortmapVersion
	if call.Procedure < uint32(len(p.calls[v])) {
		p.calls[v][call.Procedure].Add(1)
	}
	// Written first, and taken back if the arguments turn out to be wrong.
	at := w.Len()
	rpc.Accepted(w, call.XID, rpc.Success)
	stat := rpc.Success
	if call.Version == rpc.PortmapVersion {
		stat = p.portmap2(w, &r, call.Procedure, from)
	} else {
		stat = p.rpcbind(w, &r, call.Version, call.Procedure, from, to)
	}
	if r.Err() != nil {
		stat = rpc.GarbageArgs
	}
	if stat != rpc.Success {
		w.B = w.B[:at]
		// CALLIT answers only what succeeded (RFC 1833 section 3.2), lest
		// broadcasts draw errors from everybody.
		if call.Procedure != rpc.BindCallIt || stream {
			rpc.Accepted(w, call.XID, stat)
		}
	}
	return true
}

// portmap2 is version 2, RFC 1833 section 3.
func (p *Portmap) portmap2(w *xdr.Writer, r *xdr.Reader, proc uint32, from netip.AddrPort) rpc.AcceptStat {
	switch proc {
	case rpc.ProcNull:
	case rpc.BindSet:
		var m rpc.Mapping
		m.Decode(r)
		b, ok := bindingOf(&m)
		w.Bool(r.Err() == nil && ok && p.set(0, b, from))
	case rpc.BindUnset:
		// Protocol and port are ignored.
		var m rpc.Mapping
		m.Decode(r)
		w.Bool(r.Err() == nil && p.unset(0, m.Program, m.Version, from, netTCP, netUDP))
	case rpc.BindGetPort:
		var m rpc.Mapping
		m.Decode(r)
		port := uint16(0)
		if netid := netidOf(m.Proto); netid != "" {
			b, _ := p.find(from.Addr(), m.Program, m.Version, netid, false)
			port = b.addr.Port()
		}
		w.Uint32(uint32(port))
	case rpc.BindDump:
		var list rpc.Mappings
		for _, b := range p.all(from.Addr()) {
			switch b.netid {
			case netTCP:
				list = append(list, rpc.Mapping{Program: b.program, Version: b.version, Proto: rpc.ProtoTCP, Port: uint32(b.addr.Port())})
			case netUDP:
				list = append(list, rpc.Mapping{Program: b.program, Version: b.version, Proto: rpc.ProtoUDP, Port: uint32(b.addr.Port())})
			}
		}
		slices.SortFunc(list, func(a, b rpc.Mapping) int {
			return slices.Compare([]uint32{a.Program, a.Version, a.Proto, a.Port}, []uint32{b.Program, b.Version, b.Proto, b.Port})
		})
		slices.Compact(list).Encode(w)
	default:
		return rpc.ProcUnavail
	}
	return rpc.Success
}

func netidOf(proto uint32) string {
	switch proto {
	case rpc.ProtoTCP:
		return netTCP
	case rpc.ProtoUDP:
		return netUDP
	}
	return ""
}

func bindingOf(m *rpc.Mapping) (binding, bool) {
	netid := netidOf(m.Proto)
	ok := netid != "" && m.Port > 0 && m.Port < 1<<16
	return binding{m.Program, m.Version, netid, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(m.Port))}, ok
}

// rpcbind is versions 3 and 4, RFC 1833 section 2. Translating between the
// two forms of an address is not served: one of them is a socket address of
// the client's own system, which its library translates better.
func (p *Portmap) rpcbind(w *xdr.Writer, r *xdr.Reader, version, proc uint32, from netip.AddrPort, to netip.Addr) rpc.AcceptStat {
	v := int(version) - rpc.PortmapVersion
	if proc > rpc.BindTaddr2Uaddr && version == rpc.RPCBindVersion3 {
		return rpc.ProcUnavail
	}
	switch proc {
	case rpc.ProcNull:
	case rpc.BindSet:
		var b rpc.Binding
		b.Decode(r)
		addr, err := rpc.ParseUaddr(b.Addr)
		w.Bool(r.Err() == nil && err == nil && p.set(v, binding{b.Program, b.Version, b.NetID, addr}, from))
	case rpc.BindUnset:
		// Without a transport it means all of them.
		var b rpc.Binding
		b.Decode(r)
		netids := []string{netTCP, netUDP, netTCP6, netUDP6}
		if b.NetID != "" {
			netids = []string{b.NetID}
		}
		w.Bool(r.Err() == nil && p.unset(v, b.Program, b.Version, from, netids...))
	case rpc.BindGetAddr, rpc.BindGetVersAddr:
		var b rpc.Binding
		b.Decode(r)
		found, _ := p.find(from.Addr(), b.Program, b.Version, b.NetID, proc == rpc.BindGetVersAddr)
		w.String(found.uaddr(to))
	case rpc.BindDump:
		var list rpc.Bindings
		for _, b := range p.all(from.Addr()) {
			list = append(list, rpc.Binding{Program: b.program, Version: b.version, NetID: b.netid, Addr: rpc.FormatUaddr(b.addr), Owner: bindOwner})
		}
		list.Encode(w)
	case rpc.BindGetTime:
		w.Uint32(uint32(time.Now().Unix()))
	case rpc.BindGetAddrList:
		var arg rpc.Binding
		arg.Decode(r)
		var list rpc.BindingAddrs
		for _, b := range p.all(from.Addr()) {
			if b.program == arg.Program && b.version == arg.Version {
				list = append(list, b.entry(to))
			}
		}
		list.Encode(w)
	case rpc.BindGetStat:
		var s rpc.BindStat
		for i := range s {
			for j := range s[i].Calls {
				s[i].Calls[j] = p.calls[i][j].Load()
			}
			s[i].Set, s[i].Unset = p.sets[i].Load(), p.unsets[i].Load()
		}
		s.Encode(w)
	default:
		return rpc.ProcUnavail
	}
	return rpc.Success
}

// uaddr is the universal address of a binding for a client that reached us at
// to, "" for no binding.
func (b *binding) uaddr(to netip.Addr) string {
	if !b.addr.IsValid() {
		return ""
	}
	addr := b.addr
	if addr.Addr().IsUnspecified() && to.Is4() == addr.Addr().Is4() {
		addr = netip.AddrPortFrom(to, addr.Port())
	}
	return rpc.FormatUaddr(addr)
}

func (b *binding) entry(to netip.Addr) rpc.BindingAddr {
	e := rpc.BindingAddr{Addr: b.uaddr(to), NetID: b.netid, Semantics: rpc.SemanticsStream, Family: "inet", Proto: "tcp"}
	if strings.HasPrefix(b.netid, netUDP) {
		e.Semantics, e.Proto = rpc.SemanticsDatagram, "udp"
	}
	if strings.HasSuffix(b.netid, "6") {
		e.Family = "inet6"
	}
	return e
}

// all is every binding as a host sees it, ours first.
func (p *Portmap) all(asks netip.Addr) []binding {
	client := !asks.IsLoopback() && len(p.locks) > 0 && p.cfg.Server.clientOf(asks)
	p.mu.Lock()
	defer p.mu.Unlock()
	// Of NLM and NSM either ours or those of this machine.
	all := slices.Clone(p.programs)
	for _, b := range p.locks {
		if client || !slices.ContainsFunc(p.local, func(l binding) bool { return l.program == b.program }) {
			all = append(all, b)
		}
	}
	for _, b := range p.local {
		if !client || !slices.ContainsFunc(p.locks, func(l binding) bool { return l.program == b.program }) {
			all = append(all, b)
		}
	}
	return all
}

// find looks a program up. Unless exact, another version of it will do: its
// server then tells the client which it speaks.
func (p *Portmap) find(asks netip.Addr, program, version uint32, netid string, exact bool) (b binding, ok bool) {
	for _, c := range p.all(asks) {
		if c.program != program || c.netid != netid {
			continue
		}
		if c.version == version {
			return c, true
		}
		if !exact && !ok {
			b, ok = c, true
		}
	}
	return b, ok
}

// mayRegister tells whether a caller is root of this machine, as far as a
// port shows.
func mayRegister(from netip.AddrPort) bool {
	return from.Addr().IsLoopback() && from.Port() < 1024
}

// ours are programs that nobody registers or takes away.
func ours(program uint32) bool {
	return program == rpc.ProgramPortmap || program == rpc.ProgramNFS || program == rpc.ProgramMount
}

// set registers a local program. It answers false, as the RFC has it, for
// what may not be, or is there with another address.
func (p *Portmap) set(v int, b binding, from netip.AddrPort) bool {
	v6 := b.netid == netTCP6 || b.netid == netUDP6
	known := v6 || b.netid == netTCP || b.netid == netUDP
	if !mayRegister(from) || ours(b.program) || !known || v6 != b.addr.Addr().Is6() || b.addr.Port() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.local {
		if c.program == b.program && c.version == b.version && c.netid == b.netid {
			return c.addr == b.addr
		}
	}
	if len(p.local) == maxBindings {
		return false
	}
	b.netid = strings.Clone(b.netid) // it was part of the call
	p.local = append(p.local, b)
	p.sets[v].Add(1)
	return true
}

// unset takes a local program away; false if there is none.
func (p *Portmap) unset(v int, program, version uint32, from netip.AddrPort, netids ...string) bool {
	if !mayRegister(from) || ours(program) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.local)
	p.local = slices.DeleteFunc(p.local, func(b binding) bool {
		return b.program == program && b.version == version && slices.Contains(netids, b.netid)
	})
	if len(p.local) == before {
		return false
	}
	p.unsets[v].Add(1)
	return true
}

// register makes our programs known to the rpcbind that has the port.
func (p *Portmap) register() error {
	c, err := dialBind(p.port)
	if err != nil {
		return err
	}
	defer c.Close()
	done := make(map[binding]bool) // several addresses are one transport
	for n, b := range slices.Concat(p.programs, p.locks) {
		any := netip.IPv4Unspecified()
		if b.netid == netTCP6 || b.netid == netUDP6 {
			any = netip.IPv6Unspecified()
		}
		b.addr = netip.AddrPortFrom(any, b.addr.Port())
		if done[b] {
			continue
		}
		done[b] = true
		if err := c.set(b); err != nil {
			if n >= len(p.programs) {
				p.cfg.Log.Info("clients of NFS version 3 cannot lock files, or not tell of restarts: this machine's own has the place", "err", err)
				continue
			}
			p.unregister()
			return err
		}
		p.registered = append(p.registered, b)
	}
	return nil
}

// unregister takes back what register did.
func (p *Portmap) unregister() error {
	if len(p.registered) == 0 {
		return nil
	}
	c, err := dialBind(p.port)
	if err != nil {
		return fmt.Errorf("unregistering: %w", err)
	}
	defer c.Close()
	var errs []error
	for _, b := range p.registered {
		// The kernel may have taken the place of our NLM. The answer is about TCP
		// whatever is asked for (RFC 1833 section 2.2.1), so it is nowhere when
		// only that has been taken back.
		if port, err := c.port(b); err == nil && port != 0 && port != b.addr.Port() {
			continue
		}
		if _, err := c.call(rpc.BindUnset, b); err != nil {
			errs = append(errs, fmt.Errorf("unregistering: %w", err))
		}
	}
	p.registered = nil
	return errors.Join(errs...)
}

// bindClient talks to the rpcbind of this machine, in version 4, or in 2 to
// one that does not speak that.
type bindClient struct{ *remote }

// dialBind connects from a reserved port, which shows that we may register.
func dialBind(port uint16) (*bindClient, error) {
	here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	r, err := dialRemote(context.Background(), netTCP, here, netip.AddrPortFrom(here, port), rpc.ProgramPortmap, rpc.RPCBindVersion4)
	if err != nil {
		return nil, err
	}
	return &bindClient{r}, nil
}

// set registers a program.
func (c *bindClient) set(b binding) error {
	r, err := c.call(rpc.BindSet, b)
	if err != nil {
		return err
	}
	if r.Bool() {
		return nil
	}
	// It is there already: by a server of before that could not unregister,
	// with the same port, or by another.
	port, err := c.port(b)
	if err != nil {
		return err
	}
	if port == b.addr.Port() {
		return nil
	}
	return fmt.Errorf("program %d version %d (%s) is refused; it is registered at port %d", b.program, b.version, b.netid, port)
}

// port is where the program of a binding is registered, 0 for nowhere.
func (c *bindClient) port(b binding) (uint16, error) {
	r, err := c.call(rpc.BindGetAddr, b)
	if err != nil {
		return 0, err
	}
	if c.version == rpc.PortmapVersion {
		return uint16(r.Uint32()), nil
	}
	a, _ := rpc.ParseUaddr(r.String(maxBindRecord)) // "" is nowhere
	return a.Port(), nil
}

// call makes one call about b and returns its results.
func (c *bindClient) call(proc uint32, b binding) (xdr.Reader, error) {
	r, err := c.callOnce(proc, b)
	var mismatch *rpc.MismatchError
	if errors.As(err, &mismatch) && mismatch.Low <= rpc.PortmapVersion && c.version > rpc.PortmapVersion {
		c.version = rpc.PortmapVersion
		return c.callOnce(proc, b)
	}
	return r, err
}

func (c *bindClient) callOnce(proc uint32, b binding) (xdr.Reader, error) {
	if c.version > rpc.PortmapVersion {
		return c.remote.call(proc, &rpc.Binding{Program: b.program, Version: b.version, NetID: b.netid, Addr: rpc.FormatUaddr(b.addr), Owner: bindOwner})
	}
	m := rpc.Mapping{Program: b.program, Version: b.version, Proto: rpc.ProtoTCP, Port: uint32(b.addr.Port())}
	if b.netid == netUDP {
		m.Proto = rpc.ProtoUDP
	}
	return c.remote.call(proc, &m)
}
