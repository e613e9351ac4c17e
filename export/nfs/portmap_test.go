package nfs

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ramserver/export"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

var discard = slog.New(slog.DiscardHandler)

// portmapTable admits loopback and 10.0.0.0/8.
func portmapTable(t testing.TB) *export.Table {
	t.Helper()
	s, err := memstore.New(memstore.Config{Name: "main", Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	table, err := export.New(&export.Export{
		Name: "ramdisk", Store: s, Root: s.Root(), Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// testPortmap serves at any port until the test ends.
func testPortmap(t testing.TB) *Portmap {
	t.Helper()
	p := newPortmap(t)
	t.Cleanup(func() { p.Close() })
	return p
}

func newPortmap(t testing.TB) *Portmap {
	t.Helper()
	p, err := startPortmap(PortmapConfig{
		Mode: "on", Exports: portmapTable(t), Log: discard,
		NFS: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:2049")},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bindCall encodes a call of the binding program.
func bindCall(version, proc uint32, args func(w *xdr.Writer)) []byte {
	var w xdr.Writer
	h := rpc.Call{XID: 7, Program: rpc.ProgramPortmap, Version: version, Procedure: proc}
	h.Encode(&w)
	if args != nil {
		args(&w)
	}
	return w.B
}

func mapping(program, version, proto, port uint32) func(*xdr.Writer) {
	m := rpc.Mapping{Program: program, Version: version, Proto: proto, Port: port}
	return m.Encode
}

func bound(program, version uint32, netid, addr string) func(*xdr.Writer) {
	b := rpc.Binding{Program: program, Version: version, NetID: netid, Addr: addr, Owner: "somebody"}
	return b.Encode
}

// A script of calls: what one leaves, the next one meets.
func TestPortmapAnswers(t *testing.T) {
	p := testPortmap(t)
	root, user, far := "127.0.0.1:700", "127.0.0.1:7000", "10.0.0.9:700"
	const (
		set, unset, port, addr, dump = rpc.BindSet, rpc.BindUnset, rpc.BindGetPort, rpc.BindGetAddr, rpc.BindDump
		callit, clock, uaddr, taddr  = rpc.BindCallIt, rpc.BindGetTime, rpc.BindUaddr2Taddr, rpc.BindTaddr2Uaddr
		vers, indirect, list, stat   = rpc.BindGetVersAddr, rpc.BindIndirect, rpc.BindGetAddrList, rpc.BindGetStat
		tcp, udp                     = rpc.ProtoTCP, rpc.ProtoUDP
	)
	yes, no := "true", "false"
	for i, tc := range []struct {
		from    string
		version uint32
		proc    uint32
		args    func(*xdr.Writer)
		want    string
	}{
		{far, 2, 0, nil, ""},
		{far, 3, 0, nil, ""},
		{far, 4, 0, nil, ""},
		{far, 1, 0, nil, "PROG_MISMATCH 2 4"},
		{far, 5, 0, nil, "PROG_MISMATCH 2 4"},
		{far, 2, 6, nil, "PROC_UNAVAIL"},
		{far, 3, 9, nil, "PROC_UNAVAIL"},
		{far, 4, 13, nil, "PROC_UNAVAIL"},

		// Ours are there.
		{far, 2, port, mapping(100003, 3, tcp, 0), "2049"},
		{far, 2, port, mapping(100005, 1, tcp, 0), "2049"},
		{far, 2, port, mapping(100005, 3, tcp, 0), "2049"},
		{far, 2, port, mapping(100003, 3, udp, 0), "0"},
		{far, 2, port, mapping(100003, 4, tcp, 0), "2049"}, // it says there what it speaks
		{far, 2, port, mapping(100021, 4, tcp, 0), "0"},
		{far, 2, port, mapping(100003, 3, 99, 0), "0"},
		{far, 3, addr, bound(100003, 3, "tcp", ""), "127.0.0.1.8.1"},
		{far, 4, addr, bound(100003, 3, "tcp6", ""), ""},
		{far, 4, addr, bound(100003, 2, "tcp", ""), "127.0.0.1.8.1"},
		{far, 4, vers, bound(100003, 2, "tcp", ""), ""},
		{far, 4, vers, bound(100003, 3, "tcp", ""), "127.0.0.1.8.1"},
		{far, 4, list, bound(100003, 3, "", ""), "127.0.0.1.8.1 tcp 3 inet tcp"},
		{far, 4, list, bound(100003, 2, "", ""), ""},

		// Nobody changes them.
		{root, 2, set, mapping(100003, 2, tcp, 5000), no},
		{root, 2, unset, mapping(100003, 3, tcp, 2049), no},
		{root, 4, set, bound(100003, 3, "tcp", "127.0.0.1.8.2"), no},
		{root, 4, unset, bound(100005, 3, "", ""), no},
		{root, 4, set, bound(100000, 4, "tcp", "127.0.0.1.8.2"), no},
		{root, 4, unset, bound(100000, 4, "tcp", ""), no},
		{far, 2, port, mapping(100003, 3, tcp, 0), "2049"},

		// Local programs come and go; only root of this machine says so.
		{far, 2, set, mapping(100024, 1, tcp, 5000), no},
		{user, 2, set, mapping(100024, 1, tcp, 5000), no},
		{user, 4, set, bound(100024, 1, "tcp", "0.0.0.0.19.136"), no},
		{root, 2, set, mapping(100024, 1, tcp, 5000), yes},
		{root, 2, set, mapping(100024, 1, tcp, 5000), yes},
		{root, 2, set, mapping(100024, 1, tcp, 5001), no},
		{root, 2, set, mapping(100024, 1, udp, 5001), yes},
		{root, 3, set, bound(100024, 1, "tcp6", "::.19.136"), yes},
		{root, 4, set, bound(100024, 1, "udp6", "::1.19.137"), yes},
		{root, 2, set, mapping(100024, 1, 99, 5001), no},
		{root, 2, set, mapping(100024, 1, tcp, 0), no},
		{root, 2, set, mapping(100024, 1, tcp, 70000), no},
		{root, 4, set, bound(100024, 2, "tcp", "::.19.136"), no},
		{root, 4, set, bound(100024, 2, "tcp6", "0.0.0.0.19.136"), no},
		{root, 4, set, bound(100024, 2, "local", "/run/x"), no},
		{root, 4, set, bound(100024, 2, "tcp", "localhost"), no},
		{far, 2, port, mapping(100024, 1, tcp, 0), "5000"},
		{far, 2, port, mapping(100024, 1, udp, 0), "5001"},
		{far, 4, addr, bound(100024, 1, "tcp", ""), "10.0.0.1.19.136"}, // where it was asked
		{far, 4, addr, bound(100024, 1, "tcp6", ""), "::.19.136"},
		{far, 4, list, bound(100024, 1, "", ""), "10.0.0.1.19.136 tcp 3 inet tcp, 10.0.0.1.19.137 udp 1 inet udp, ::.19.136 tcp6 3 inet6 tcp, ::1.19.137 udp6 1 inet6 udp"},
		{user, 2, unset, mapping(100024, 1, tcp, 5000), no},
		{far, 4, unset, bound(100024, 1, "", ""), no},
		{root, 2, unset, mapping(100024, 1, 0, 0), yes}, // both of IPv4
		{far, 2, port, mapping(100024, 1, tcp, 0), "0"},
		{far, 2, port, mapping(100024, 1, udp, 0), "0"},
		{root, 4, unset, bound(100024, 1, "udp6", ""), yes},
		{root, 4, unset, bound(100024, 1, "", ""), yes},
		{root, 4, unset, bound(100024, 1, "", ""), no},

		{far, 2, callit, nil, "PROC_UNAVAIL"},
		{far, 4, callit, nil, "PROC_UNAVAIL"},
		{far, 4, indirect, nil, "PROC_UNAVAIL"},
		{far, 3, uaddr, nil, "PROC_UNAVAIL"},
		{far, 3, taddr, nil, "PROC_UNAVAIL"},
		{far, 4, dump, nil, "100000 2 3 4 tcp udp, 100003 3 tcp, 100005 1 3 tcp"},
		{far, 2, dump, nil, "100000 2 3 4 tcp udp, 100003 3 tcp, 100005 1 3 tcp"},
		{far, 3, clock, nil, "now"},
		{far, 4, stat, nil, "sets 2 1 1, unsets 1 0 2"},

		{far, 2, port, func(w *xdr.Writer) { w.Uint32(1) }, "GARBAGE_ARGS"},
		{far, 4, addr, func(w *xdr.Writer) { w.Uint32(1); w.Uint32(2); w.Uint32(1 << 31) }, "GARBAGE_ARGS"},
	} {
		var w xdr.Writer
		from := netip.MustParseAddrPort(tc.from)
		if !p.answer(&w, bindCall(tc.version, tc.proc, tc.args), from, netip.MustParseAddr("10.0.0.1"), true) {
			t.Fatalf("call %d: no answer", i)
		}
		if got := readAnswer(t, tc.version, tc.proc, w.B); got != tc.want {
			t.Errorf("call %d: %s version %d procedure %d: got %q, want %q", i, tc.from, tc.version, tc.proc, got, tc.want)
		}
	}
}

// readAnswer writes a reply as the table above has it.
func readAnswer(t *testing.T, version, proc uint32, reply []byte) string {
	t.Helper()
	r := xdr.NewReader(reply)
	_, err := rpc.DecodeReply(&r)
	switch err := err.(type) {
	case nil:
	case rpc.AcceptStat:
		return err.String()
	case *rpc.MismatchError:
		return fmt.Sprintf("PROG_MISMATCH %d %d", err.Low, err.High)
	default:
		t.Fatal(err)
	}
	defer func() {
		if r.Err() != nil || r.Len() != 0 {
			t.Errorf("version %d procedure %d: %v, %d bytes are left", version, proc, r.Err(), r.Len())
		}
	}()
	switch proc {
	case rpc.ProcNull:
		return ""
	case rpc.BindSet, rpc.BindUnset:
		return fmt.Sprint(r.Bool())
	case rpc.BindGetAddr, rpc.BindGetVersAddr:
		if version == 2 {
			return fmt.Sprint(r.Uint32())
		}
		return r.String(100)
	case rpc.BindDump:
		type row struct{ program, version, netid string }
		var rows []row
		if version == 2 {
			var l rpc.Mappings
			l.Decode(&r)
			for _, m := range l {
				rows = append(rows, row{fmt.Sprint(m.Program), fmt.Sprint(m.Version), netidOf(m.Proto)})
			}
		} else {
			var l rpc.Bindings
			l.Decode(&r)
			for _, b := range l {
				rows = append(rows, row{fmt.Sprint(b.Program), fmt.Sprint(b.Version), b.NetID})
			}
		}
		var out []string
		for _, program := range []string{"100000", "100003", "100005", "100024"} {
			seen := map[string]bool{}
			words := []string{program}
			for _, pick := range []func(row) string{func(r row) string { return r.version }, func(r row) string { return r.netid }} {
				for _, r := range rows {
					if r.program == program && !seen[pick(r)] {
						seen[pick(r)] = true
						words = append(words, pick(r))
					}
				}
			}
			if len(words) > 1 {
				out = append(out, strings.Join(words, " "))
			}
		}
		return strings.Join(out, ", ")
	case rpc.BindGetTime:
		if d := time.Since(time.Unix(int64(r.Uint32()), 0)); d < -time.Minute || d > time.Minute {
			return d.String()
		}
		return "now"
	case rpc.BindGetAddrList:
		var l rpc.BindingAddrs
		l.Decode(&r)
		var out []string
		for _, a := range l {
			out = append(out, fmt.Sprintf("%s %s %d %s %s", a.Addr, a.NetID, a.Semantics, a.Family, a.Proto))
		}
		return strings.Join(out, ", ")
	case rpc.BindGetStat:
		var s rpc.BindStat
		s.Decode(&r)
		if s[2].Calls[rpc.BindGetStat] != 1 || s[0].Calls[rpc.BindGetPort] == 0 {
			t.Errorf("calls are not counted: %v", s)
		}
		return fmt.Sprintf("sets %d %d %d, unsets %d %d %d", s[0].Set, s[1].Set, s[2].Set, s[0].Unset, s[1].Unset, s[2].Unset)
	}
	return "?"
}

func TestPortmapBounds(t *testing.T) {
	p := testPortmap(t)
	root := netip.MustParseAddrPort("127.0.0.1:700")
	for i := range uint32(maxBindings + 10) {
		ok := p.set(0, binding{200000 + i, 1, netTCP, netip.MustParseAddrPort("0.0.0.0:5000")}, root)
		if ok != (i < maxBindings) {
			t.Fatalf("registration %d: %v", i, ok)
		}
	}
	if p.answer(new(xdr.Writer), []byte("no call"), root, root.Addr(), true) {
		t.Error("what is no call is answered")
	}
	// Over UDP, CALLIT is not even refused.
	var w xdr.Writer
	p.answer(&w, bindCall(2, rpc.BindCallIt, nil), root, root.Addr(), false)
	if w.Len() != 0 {
		t.Error("CALLIT over UDP is answered")
	}
	// A full table still fits a packet.
	w.B = nil
	p.answer(&w, bindCall(4, rpc.BindDump, nil), root, root.Addr(), false)
	if w.Len() > 60000 {
		t.Errorf("a full DUMP has %d bytes", w.Len())
	}
}

func TestPortmapOverTheWire(t *testing.T) {
	p := testPortmap(t)
	call := bindCall(2, rpc.BindGetPort, mapping(100003, 3, rpc.ProtoTCP, 0))
	addr := p.listeners[0].Addr().String()

	for _, fragments := range [][]int{{len(call)}, {4, len(call) - 4}, {0, 0, 10, 0, len(call) - 10}} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		for range 3 { // on one connection
			var w xdr.Writer
			rest := call
			for i, n := range fragments {
				mark := uint32(n)
				if i == len(fragments)-1 {
					mark |= rpc.LastFragment
				}
				w.Uint32(mark)
				w.B = append(w.B, rest[:n]...)
				rest = rest[n:]
			}
			c.Write(w.B)
			rec, err := readRecord(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := readAnswer(t, 2, rpc.BindGetPort, rec); got != "2049" {
				t.Errorf("fragments %v: got %s", fragments, got)
			}
		}
		c.Close()
	}

	for name, bad := range map[string][]byte{
		"too long":         {0x80, 0x00, 0xff, 0xff},
		"without end":      bytes.Repeat([]byte{0, 0, 0, 0}, 20),
		"no call":          {0x80, 0, 0, 4, 1, 2, 3, 4},
		"too long in sum":  append([]byte{0, 0, 0x1f, 0xff}, make([]byte, 0x1fff+4)...),
		"longest possible": {0xff, 0xff, 0xff, 0xff},
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if name == "too long in sum" {
			bad[0x1fff+4] = 0x80
			bad[0x1fff+4+3] = 2
		}
		c.Write(bad)
		if n, err := io.Copy(io.Discard, c); n != 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %d bytes, %v; want the connection closed", name, n, err)
		}
		c.Close()
	}

	c, err := net.Dial("udp", p.packets[0].LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	c.Write([]byte("no call"))
	c.Write(nil)
	c.Write(call)
	buf := make([]byte, 1000)
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAnswer(t, 2, rpc.BindGetPort, buf[:n]); got != "2049" {
		t.Errorf("over UDP: got %s", got)
	}
}

func TestPortmapCloses(t *testing.T) {
	p := newPortmap(t)
	var conns []net.Conn
	for range maxBindConns + 5 {
		c, err := net.Dial("tcp", p.listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	last := conns[len(conns)-1]
	last.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := last.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("a connection over the limit: %v", err)
	}
	p.Close() // returns only when all its goroutines have
	conns[0].SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conns[0].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("an idle connection after Close: %v", err)
	}
}

func TestPortmapOff(t *testing.T) {
	p, err := StartPortmap(PortmapConfig{Mode: "off", Log: discard})
	if err != nil || p.Serves() || p.String() != "off" {
		t.Errorf("got %v, %v", p, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzPortmap(f *testing.F) {
	f.Add(bindCall(2, rpc.BindGetPort, mapping(100003, 3, rpc.ProtoTCP, 0)), true)
	f.Add(bindCall(2, rpc.BindSet, mapping(100024, 1, rpc.ProtoUDP, 5000)), false)
	f.Add(bindCall(4, rpc.BindSet, bound(100024, 1, "tcp6", "::.19.136")), true)
	f.Add(bindCall(4, rpc.BindUnset, bound(100024, 1, "", "")), true)
	f.Add(bindCall(4, rpc.BindGetAddrList, bound(100003, 3, "", "")), false)
	f.Add(bindCall(2, rpc.BindCallIt, nil), false)
	f.Add(bindCall(4, rpc.BindGetStat, nil), true)
	p := testPortmap(f)
	from := netip.MustParseAddrPort("127.0.0.1:700")
	f.Fuzz(func(t *testing.T, call []byte, stream bool) {
		var w xdr.Writer
		if p.answer(&w, call, from, from.Addr(), stream) && w.Len() > 0 {
			r := xdr.NewReader(w.B)
			if _, err := rpc.DecodeReply(&r); err == rpc.ErrNotReply || err == xdr.ErrShort {
				t.Errorf("the answer is no reply: %v", err)
			}
		}
		for _, b := range p.all(netip.Addr{}) {
			if len(b.netid) > 4 || b.addr.Port() == 0 {
				t.Errorf("registered: %v", b)
			}
		}
	})
}

// NLM and NSM are the local kernel's and rpc.statd's once these have registered,
// except for hosts that are clients of this server.
func TestPortmapLocks(t *testing.T) {
	s, _, _ := newServer(t)
	p, err := startPortmap(PortmapConfig{
		Mode: "on", Exports: portmapTable(t), Log: discard, Server: s,
		NFS:     []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:2049")},
		Packets: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:2049")},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s.mounts.add(Mount{Host: "10.0.0.1", Path: "/"})
	root := netip.MustParseAddrPort("127.0.0.1:700")
	far, customer := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.1")
	check := func(when string, asks netip.Addr, program, version uint32, netid string, want uint16) {
		t.Helper()
		if b, _ := p.find(asks, program, version, netid, false); b.addr.Port() != want {
			t.Errorf("%s: %s finds program %d by %s at %d, want %d", when, asks, program, netid, b.addr.Port(), want)
		}
	}
	for _, asks := range []netip.Addr{root.Addr(), far, customer} {
		check("nobody else", asks, rpc.ProgramNLM, 4, netTCP, 2049)
		check("nobody else", asks, rpc.ProgramNLM, 4, netUDP, 0)
		check("nobody else", asks, rpc.ProgramStatus, 1, netUDP, 2049)
		check("nobody else", asks, rpc.ProgramStatus, 1, netTCP, 2049)
	}
	any := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }
	for _, b := range []binding{{rpc.ProgramNLM, 4, netTCP, any(4045)}, {rpc.ProgramNLM, 4, netUDP, any(4046)}, {rpc.ProgramStatus, 1, netUDP, any(4047)}} {
		if !p.set(0, b, root) {
			t.Fatalf("%+v cannot be registered", b)
		}
	}
	for _, asks := range []netip.Addr{root.Addr(), far} {
		check("lockd", asks, rpc.ProgramNLM, 4, netTCP, 4045)
		check("lockd", asks, rpc.ProgramNLM, 4, netUDP, 4046)
		check("statd", asks, rpc.ProgramStatus, 1, netUDP, 4047)
	}
	check("lockd", customer, rpc.ProgramNLM, 4, netTCP, 2049)
	check("lockd", customer, rpc.ProgramNLM, 4, netUDP, 0)
	check("statd", customer, rpc.ProgramStatus, 1, netUDP, 2049)
	if !p.unset(0, rpc.ProgramNLM, 4, root, netTCP, netUDP) {
		t.Error("lockd cannot go")
	}
	check("lockd is gone", far, rpc.ProgramNLM, 4, netTCP, 2049)
}
