package rpc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	xdr2 "github.com/rasky/go-xdr/xdr2"
	oracle "github.com/willscott/go-nfs-client/nfs/rpc"

	"ramserver/export/nfs/xdr"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	callHead = "0000002a 00000000 00000002 000186a3 00000003 00000001" // xid 42, NFS version 3, procedure 1
	noVerf   = "00000000 00000000"
)

func TestCallDecode(t *testing.T) {
	base := Call{XID: 42, Program: ProgramNFS, Version: 3, Procedure: 1}
	with := func(c Cred) Call {
		call := base
		call.Cred = c
		return call
	}
	sys := Cred{Flavor: AuthSys, Stamp: 7, Machine: "abc", UID: 1000, GID: 100, NGroups: 2, Group: [16]uint32{4, 24}}
	sixteen := Cred{Flavor: AuthSys, NGroups: 16}
	sixteen.Group[15] = 9
	for _, c := range []struct {
		name string
		in   string
		want Call
		err  error
		left int
	}{
		{"AUTH_NONE", callHead + "00000000 00000000" + noVerf + "cafe", base, nil, 2},
		{"AUTH_SYS", callHead + "00000001 00000020 00000007 00000003 61626300 000003e8 00000064 00000002 00000004 00000018" + noVerf, with(sys), nil, 0},
		{"AUTH_SYS, 16 groups", callHead + "00000001 00000054 00000000 00000000 00000000 00000000 00000010" + strings.Repeat("00000000", 15) + "00000009" + noVerf, with(sixteen), nil, 0},
		{"AUTH_SYS, 17 groups", callHead + "00000001 00000058 00000000 00000000 00000000 00000000 00000011" + strings.Repeat("00000000", 17) + noVerf, with(Cred{Flavor: AuthSys}), AuthBadCred, -1},
		{"AUTH_SYS, name of 256 bytes", callHead + "00000001 00000114 00000000 00000100" + strings.Repeat("61", 256) + "00000000 00000000 00000000" + noVerf, with(Cred{Flavor: AuthSys}), AuthBadCred, -1},
		{"AUTH_SYS, too short", callHead + "00000001 00000004 00000000" + noVerf, with(Cred{Flavor: AuthSys}), AuthBadCred, -1},
		{"AUTH_SYS, too long", callHead + "00000001 00000018 00000000 00000000 00000000 00000000 00000000 00000000" + noVerf, with(Cred{Flavor: AuthSys}), AuthBadCred, -1},
		{"AUTH_SHORT", callHead + "00000002 00000004 00000000" + noVerf, with(Cred{Flavor: 2}), AuthRejectedCred, -1},
		{"RPCSEC_GSS", callHead + "00000006 00000004 00000000" + noVerf, with(Cred{Flavor: 6}), AuthRejectedCred, -1},
		{"credential of 400 bytes", callHead + "00000000 00000190" + strings.Repeat("00", 400) + noVerf, base, nil, 0},
		{"credential of 401 bytes", callHead + "00000000 00000191" + strings.Repeat("00", 404) + noVerf, base, AuthBadCred, -1},
		{"verifier of 401 bytes", callHead + "00000000 00000000 00000000 00000191" + strings.Repeat("00", 404), base, AuthBadVerf, -1},
		{"no verifier", callHead + "00000000 00000000", base, xdr.ErrShort, -1},
		{"RPC version 1", "0000002a 00000000 00000001", Call{XID: 42}, ErrVersion, -1},
		{"a reply", "0000002a 00000001 00000000", Call{XID: 42}, ErrNotCall, -1},
		{"nothing", "", Call{}, xdr.ErrShort, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := xdr.NewReader(unhex(c.in))
			var got Call
			if err := got.Decode(&r); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
			if c.left >= 0 && r.Len() != c.left {
				t.Errorf("%d bytes left, want %d", r.Len(), c.left)
			}
		})
	}
}

// A credential of another implementation's encoder, and one of ours read by its
// decoder.
func TestAuthSysOracle(t *testing.T) {
	theirs := oracle.NewAuthUnix("host", 1000, 100)
	auth := theirs.Auth()
	var buf bytes.Buffer
	if _, err := xdr2.Marshal(&buf, &auth); err != nil {
		t.Fatal(err)
	}
	r := xdr.NewReader(buf.Bytes())
	var got Cred
	if err := got.decode(&r); err != nil || got.Machine != "host" || got.UID != 1000 || got.GID != 100 {
		t.Fatalf("decoded %+v, %v", got, err)
	}
	var w xdr.Writer
	got.encode(&w)
	if !bytes.Equal(w.B, buf.Bytes()) {
		t.Errorf("wrote %x, want %x", w.B, buf.Bytes())
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(w *xdr.Writer)
		want  string
		err   error
	}{
		{"success", func(w *xdr.Writer) { Accepted(w, 42, Success) }, "0000002a 00000001 00000000 00000000 00000000 00000000", nil},
		{"program unknown", func(w *xdr.Writer) { Accepted(w, 42, ProgUnavail) }, "0000002a 00000001 00000000 00000000 00000000 00000001", ProgUnavail},
		{"program version", func(w *xdr.Writer) { RefuseVersion(w, 42, 3, 4) }, "0000002a 00000001 00000000 00000000 00000000 00000002 00000003 00000004", &MismatchError{Low: 3, High: 4}},
		{"procedure unknown", func(w *xdr.Writer) { Accepted(w, 42, ProcUnavail) }, "0000002a 00000001 00000000 00000000 00000000 00000003", ProcUnavail},
		{"garbage", func(w *xdr.Writer) { Accepted(w, 42, GarbageArgs) }, "0000002a 00000001 00000000 00000000 00000000 00000004", GarbageArgs},
		{"system error", func(w *xdr.Writer) { Accepted(w, 42, SystemErr) }, "0000002a 00000001 00000000 00000000 00000000 00000005", SystemErr},
		{"RPC version", func(w *xdr.Writer) { RPCMismatch(w, 42) }, "0000002a 00000001 00000001 00000000 00000002 00000002", &MismatchError{RPC: true, Low: 2, High: 2}},
		{"too weak", func(w *xdr.Writer) { AuthError(w, 42, AuthTooWeak) }, "0000002a 00000001 00000001 00000001 00000005", AuthTooWeak},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w xdr.Writer
			c.write(&w)
			if !bytes.Equal(w.B, unhex(c.want)) {
				t.Fatalf("wrote %x, want %s", w.B, c.want)
			}
			r := xdr.NewReader(w.B)
			xid, err := DecodeReply(&r)
			if xid != 42 || r.Len() != 0 || !reflect.DeepEqual(err, c.err) {
				t.Errorf("decoded xid %d, error %v, %d bytes left", xid, err, r.Len())
			}
		})
	}
}

func TestDecodeReplyRefuses(t *testing.T) {
	for in, want := range map[string]error{
		"0000002a 00000000 00000002":                                     ErrNotReply,
		"0000002a 00000001 00000002":                                     xdr.ErrEnum,
		"0000002a 00000001 00000000 00000000 00000191":                   xdr.ErrLength,
		"0000002a 00000001 00000000 00000000 00000000 00000006":          xdr.ErrEnum,
		"0000002a 00000001 00000000 00000000 00000000 00000002 00000003": xdr.ErrShort,
		"0000002a 00000001 00000001 00000002":                            xdr.ErrEnum,
		"":                                                               xdr.ErrShort,
	} {
		r := xdr.NewReader(unhex(in))
		if _, err := DecodeReply(&r); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", in, err, want)
		}
	}
}

func TestRecord(t *testing.T) {
	var w xdr.Writer
	at := BeginRecord(&w)
	w.Uint64(1)
	EndRecord(&w, at, 4096)
	if n, last := MarkOf(w.B); n != 8+4096 || !last {
		t.Errorf("mark says %d, %v", n, last)
	}
	if n, last := Mark(0x7fffffff); n != 1<<31-1 || last {
		t.Errorf("mark says %d, %v", n, last)
	}
}

// types are the wire types of the package by name.
func types() map[string]interface {
	Decode(*xdr.Reader)
	Encode(*xdr.Writer)
} {
	return map[string]interface {
		Decode(*xdr.Reader)
		Encode(*xdr.Writer)
	}{
		"Mapping": new(Mapping), "Mappings": new(Mappings), "RemoteCall": new(RemoteCall), "Binding": new(Binding),
		"Bindings": new(Bindings), "NetBuf": new(NetBuf), "BindingAddr": new(BindingAddr),
		"BindingAddrs": new(BindingAddrs), "BindStat": new(BindStat),
	}
}

// Linked lists and records of rpcbind as another library encodes them from the
// structures of RFC 1833.
func TestBindOracle(t *testing.T) {
	type rpcb struct {
		Prog, Vers         uint32
		NetID, Addr, Owner string
	}
	type rpcbList struct {
		Map  rpcb
		Next *rpcbList `xdr:"optional"`
	}
	type pmapList struct {
		Map  oracle.Mapping
		Next *pmapList `xdr:"optional"`
	}
	type entry struct {
		Addr, NetID   string
		Semantics     uint32
		Family, Proto string
	}
	type entryList struct {
		Entry entry
		Next  *entryList `xdr:"optional"`
	}
	type addrs struct {
		Prog, Vers, Success, Failure uint32
		NetID                        string
		Next                         *addrs `xdr:"optional"`
	}
	type remotes struct {
		Prog, Vers, Proc, Success, Failure, Indirect uint32
		NetID                                        string
		Next                                         *remotes `xdr:"optional"`
	}
	type stat struct {
		Info       [13]uint32
		Set, Unset uint32
		Addrs      *addrs   `xdr:"optional"`
		Remotes    *remotes `xdr:"optional"`
	}
	for _, c := range []struct{ theirs, ours any }{
		{oracle.Mapping{Prog: 100003, Vers: 3, Prot: 6, Port: 2049}, &Mapping{100003, 3, 6, 2049}},
		{struct {
			L *pmapList `xdr:"optional"`
		}{&pmapList{oracle.Mapping{Prog: 1, Vers: 2, Prot: 3, Port: 4}, &pmapList{oracle.Mapping{Prog: 5}, nil}}}, &Mappings{{1, 2, 3, 4}, {5, 0, 0, 0}}},
		{struct {
			L *rpcbList `xdr:"optional"`
		}{&rpcbList{rpcb{1, 2, "tcp", "0.0.0.0.8.1", "root"}, nil}}, &Bindings{{1, 2, "tcp", "0.0.0.0.8.1", "root"}}},
		{rpcb{1, 2, "udp6", "::.0.111", ""}, &Binding{1, 2, "udp6", "::.0.111", ""}},
		{struct {
			P, V, Proc uint32
			Args       []byte
		}{1, 2, 3, []byte("abc")}, &RemoteCall{1, 2, 3, []byte("abc")}},
		{struct {
			Max uint32
			Buf []byte
		}{16, []byte("abcde")}, &NetBuf{16, []byte("abcde")}},
		{entry{"127.0.0.1.8.1", "tcp", 3, "inet", "tcp"}, &BindingAddr{"127.0.0.1.8.1", "tcp", SemanticsStream, "inet", "tcp"}},
		{struct {
			L *entryList `xdr:"optional"`
		}{&entryList{entry{"a", "b", 1, "c", "d"}, nil}}, &BindingAddrs{{"a", "b", SemanticsDatagram, "c", "d"}}},
		{[3]stat{0: {Set: 1, Unset: 2}, 1: {Info: [13]uint32{12: 9}, Addrs: &addrs{1, 2, 3, 4, "tcp", nil}}, 2: {Remotes: &remotes{1, 2, 3, 4, 5, 6, "udp", nil}}},
			&BindStat{0: {Set: 1, Unset: 2}, 1: {Calls: [13]uint32{12: 9}, Addrs: []AddrStat{{1, 2, 3, 4, "tcp"}}}, 2: {Remote: []RemoteStat{{1, 2, 3, 4, 5, 6, "udp"}}}}},
	} {
		t.Run(fmt.Sprintf("%T", c.ours), func(t *testing.T) {
			var buf bytes.Buffer
			if _, err := xdr2.Marshal(&buf, c.theirs); err != nil {
				t.Fatal(err)
			}
			var w xdr.Writer
			c.ours.(interface{ Encode(*xdr.Writer) }).Encode(&w)
			if !bytes.Equal(w.B, buf.Bytes()) {
				t.Errorf("wrote %x\n want %x", w.B, buf.Bytes())
			}
			got := types()[strings.TrimPrefix(fmt.Sprintf("%T", c.ours), "*rpc.")]
			r := xdr.NewReader(buf.Bytes())
			got.Decode(&r)
			if r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(got, c.ours) {
				t.Errorf("read %+v, %v, %d bytes left, want %+v", got, r.Err(), r.Len(), c.ours)
			}
		})
	}
}

func TestUaddr(t *testing.T) {
	for text, addr := range map[string]string{
		"127.0.0.1.8.1":   "127.0.0.1:2049",
		"0.0.0.0.0.111":   "0.0.0.0:111",
		"::1.255.255":     "[::1]:65535",
		"fe80::1%lo.8.1":  "[fe80::1%lo]:2049",
		"2001:db8::1.0.0": "[2001:db8::1]:0",
	} {
		want := netip.MustParseAddrPort(addr)
		if got, err := ParseUaddr(text); err != nil || got != want {
			t.Errorf("ParseUaddr(%q) = %v, %v; want %v", text, got, err, want)
		}
		if got := FormatUaddr(want); got != text {
			t.Errorf("FormatUaddr(%v) = %q, want %q", want, got, text)
		}
	}
	for _, bad := range []string{"", ".", "..", "1.2.3.4", "127.0.0.1.8", "127.0.0.1.8.256", "127.0.0.1.-1.1", "/run/rpcbind.sock", "localhost.8.1"} {
		if got, err := ParseUaddr(bad); err == nil {
			t.Errorf("ParseUaddr(%q) = %v, want an error", bad, got)
		}
	}
}

func TestStrings(t *testing.T) {
	for got, want := range map[string]string{
		GarbageArgs.String():                        "GARBAGE_ARGS",
		AcceptStat(6).String():                      "accept_stat 6",
		AuthTooWeak.String():                        "AUTH_TOOWEAK",
		AuthStat(8).String():                        "auth_stat 8",
		(&MismatchError{Low: 3, High: 3}).Error():   "rpc: PROG_MISMATCH: server speaks program versions 3 to 3",
		(&MismatchError{RPC: true, Low: 2}).Error(): "rpc: RPC_MISMATCH: server speaks RPC versions 2 to 0",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	in := unhex(callHead + "00000001 00000020 00000007 00000003 61626300 000003e8 00000064 00000002 00000004 00000018" + noVerf)
	w := xdr.Writer{B: make([]byte, 0, 256)}
	if n := testing.AllocsPerRun(100, func() {
		var c Call
		r := xdr.NewReader(in)
		if err := c.Decode(&r); err != nil {
			t.Fatal(err)
		}
		w.B = w.B[:0]
		at := BeginRecord(&w)
		Accepted(&w, c.XID, Success)
		EndRecord(&w, at, 0)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzCall(f *testing.F) {
	f.Add(unhex(callHead + "00000000 00000000" + noVerf))
	f.Add(unhex(callHead + "00000001 00000020 00000007 00000003 61626300 000003e8 00000064 00000002 00000004 00000018" + noVerf))
	f.Add(unhex("0000002a 00000000 00000001"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b Call
		r := xdr.NewReader(in)
		if a.Decode(&r) != nil {
			return
		}
		var w xdr.Writer
		a.Encode(&w)
		r = xdr.NewReader(w.B)
		if err := b.Decode(&r); err != nil || a != b || r.Len() != 0 {
			t.Fatalf("%+v is written and read as %+v, %v", a, b, err)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"0000002a 00000001 00000000 00000000 00000000 00000000",
		"0000002a 00000001 00000000 00000000 00000000 00000002 00000003 00000004",
		"0000002a 00000001 00000001 00000000 00000002 00000002",
		"0000002a 00000001 00000001 00000001 00000005",
	} {
		f.Add(unhex(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := xdr.NewReader(in)
		if _, err := DecodeReply(&r); err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
	})
}

func FuzzBind(f *testing.F) {
	f.Add("Mappings", unhex("00000001 000186a0 00000002 00000006 0000006f 00000000"))
	f.Add("Binding", unhex("000186a3 00000003 00000003 74637000 00000000 00000000"))
	f.Add("BindingAddrs", unhex("00000001 00000001 61000000 00000001 61000000 00000003 00000001 61000000 00000001 61000000 00000000"))
	for name := range types() {
		f.Add(name, make([]byte, 3*(13+2+2)*4))
	}
	f.Fuzz(func(t *testing.T, name string, in []byte) {
		a, b := types()[name], types()[name]
		if a == nil {
			return
		}
		r := xdr.NewReader(in)
		a.Decode(&r)
		if r.Err() != nil {
			return
		}
		var w xdr.Writer
		a.Encode(&w)
		r = xdr.NewReader(w.B)
		b.Decode(&r)
		if r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v is written and read as %+v, %v", a, b, r.Err())
		}
	})
}
