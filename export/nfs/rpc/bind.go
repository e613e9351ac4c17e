package rpc

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"ramserver/export/nfs/xdr"
)

// Versions of the binding program: portmap, rpcbind 3 and rpcbind 4, RFC 1833.
const (
	PortmapVersion  = 2
	RPCBindVersion3 = 3
	RPCBindVersion4 = 4
	PortmapPort     = 111
)

// Procedures of the binding program. The first six are common to the three
// versions, except that 3 has another meaning: GETPORT in version 2.
const (
	BindSet         = 1
	BindUnset       = 2
	BindGetPort     = 3 // version 2
	BindGetAddr     = 3 // versions 3 and 4
	BindDump        = 4
	BindCallIt      = 5 // BCAST in version 4
	BindGetTime     = 6
	BindUaddr2Taddr = 7
	BindTaddr2Uaddr = 8
	BindGetVersAddr = 9 // version 4, as the rest
	BindIndirect    = 10
	BindGetAddrList = 11
	BindGetStat     = 12
)

// Transport protocols of a [Mapping], RFC 1833 section 3.1.
const (
	ProtoTCP = 6
	ProtoUDP = 17
)

// unbounded is the limit of a string<> or opaque<>: the message itself.
const unbounded = math.MaxInt32

// Mapping is mapping, RFC 1833 section 3.1: where a program listens. It is the
// argument of portmap's SET, UNSET and GETPORT.
type Mapping struct {
	Program, Version uint32
	Proto            uint32 // ProtoTCP or ProtoUDP
	Port             uint32 // 0 to 65535
}

// Decode reads a mapping.
func (m *Mapping) Decode(r *xdr.Reader) {
	m.Program = r.Uint32()
	m.Version = r.Uint32()
	m.Proto = r.Uint32()
	m.Port = r.Uint32()
}

// Encode writes a mapping.
func (m *Mapping) Encode(w *xdr.Writer) {
	w.Uint32(m.Program)
	w.Uint32(m.Version)
	w.Uint32(m.Proto)
	w.Uint32(m.Port)
}

// Mappings is pmaplist, RFC 1833 section 3.1: the result of portmap's DUMP.
type Mappings []Mapping

// Decode reads a list.
func (l *Mappings) Decode(r *xdr.Reader) {
	*l = nil
	for r.Bool() {
		var m Mapping
		m.Decode(r)
		*l = append(*l, m)
	}
}

// Encode writes a list.
func (l Mappings) Encode(w *xdr.Writer) {
	for i := range l {
		w.Bool(true)
		l[i].Encode(w)
	}
	w.Bool(false)
}

// RemoteCall is call_args of portmap's CALLIT, RFC 1833 section 3.1, and
// rpcb_rmtcallargs of rpcbind's CALLIT, BCAST and INDIRECT, section 2.1.
type RemoteCall struct {
	Program, Version, Procedure uint32
	Args                        []byte // aliases the input
}

// Decode reads call_args.
func (c *RemoteCall) Decode(r *xdr.Reader) {
	c.Program = r.Uint32()
	c.Version = r.Uint32()
	c.Procedure = r.Uint32()
	c.Args = r.Opaque(unbounded)
}

// Encode writes call_args.
func (c *RemoteCall) Encode(w *xdr.Writer) {
	w.Uint32(c.Program)
	w.Uint32(c.Version)
	w.Uint32(c.Procedure)
	w.Opaque(c.Args)
}

// Binding is rpcb, RFC 1833 section 2.1: the argument of rpcbind's SET, UNSET,
// GETADDR, GETVERSADDR and GETADDRLIST. The strings alias the input.
type Binding struct {
	Program, Version uint32
	NetID            string // "tcp", "udp", "tcp6", "udp6", "local"
	Addr             string // universal address, see FormatUaddr
	Owner            string
}

// Decode reads an rpcb.
func (b *Binding) Decode(r *xdr.Reader) {
	b.Program = r.Uint32()
	b.Version = r.Uint32()
	b.NetID = r.String(unbounded)
	b.Addr = r.String(unbounded)
	b.Owner = r.String(unbounded)
}

// Encode writes an rpcb.
func (b *Binding) Encode(w *xdr.Writer) {
	w.Uint32(b.Program)
	w.Uint32(b.Version)
	w.String(b.NetID)
	w.String(b.Addr)
	w.String(b.Owner)
}

// Bindings is rpcblist, RFC 1833 section 2.1: the result of rpcbind's DUMP.
type Bindings []Binding

// Decode reads a list.
func (l *Bindings) Decode(r *xdr.Reader) {
	*l = nil
	for r.Bool() {
		var b Binding
		b.Decode(r)
		*l = append(*l, b)
	}
}

// Encode writes a list.
func (l Bindings) Encode(w *xdr.Writer) {
	for i := range l {
		w.Bool(true)
		l[i].Encode(w)
	}
	w.Bool(false)
}

// NetBuf is netbuf, RFC 1833 section 2.1: a transport's own form of an address,
// the result of UADDR2TADDR and the argument of TADDR2UADDR.
type NetBuf struct {
	MaxLen uint32
	Buf    []byte // aliases the input
}

// Decode reads a netbuf.
func (n *NetBuf) Decode(r *xdr.Reader) {
	n.MaxLen = r.Uint32()
	n.Buf = r.Opaque(unbounded)
}

// Encode writes a netbuf.
func (n *NetBuf) Encode(w *xdr.Writer) {
	w.Uint32(n.MaxLen)
	w.Opaque(n.Buf)
}

// Semantics of a transport in a [BindingAddr], RFC 1833 section 2.1.
const (
	SemanticsDatagram = 1 // NC_TPI_CLTS
	SemanticsStream   = 3 // NC_TPI_COTS_ORD
)

// BindingAddr is rpcb_entry, RFC 1833 section 2.1.
type BindingAddr struct {
	Addr      string // universal address
	NetID     string
	Semantics uint32
	Family    string // "inet", "inet6", "loopback"
	Proto     string // "tcp", "udp", "-"
}

// Decode reads an rpcb_entry.
func (a *BindingAddr) Decode(r *xdr.Reader) {
	a.Addr = r.String(unbounded)
	a.NetID = r.String(unbounded)
	a.Semantics = r.Uint32()
	a.Family = r.String(unbounded)
	a.Proto = r.String(unbounded)
}

// Encode writes an rpcb_entry.
func (a *BindingAddr) Encode(w *xdr.Writer) {
	w.String(a.Addr)
	w.String(a.NetID)
	w.Uint32(a.Semantics)
	w.String(a.Family)
	w.String(a.Proto)
}

// BindingAddrs is rpcb_entry_list, RFC 1833 section 2.1: the result of
// GETADDRLIST.
type BindingAddrs []BindingAddr

// Decode reads a list.
func (l *BindingAddrs) Decode(r *xdr.Reader) {
	*l = nil
	for r.Bool() {
		var a BindingAddr
		a.Decode(r)
		*l = append(*l, a)
	}
}

// Encode writes a list.
func (l BindingAddrs) Encode(w *xdr.Writer) {
	for i := range l {
		w.Bool(true)
		l[i].Encode(w)
	}
	w.Bool(false)
}

// BindStat is rpcb_stat_byvers, RFC 1833 section 2.1: the result of GETSTAT,
// for versions 2, 3 and 4 in this order.
type BindStat [3]VersionStat

// VersionStat is rpcb_stat: what one version of the program was asked.
type VersionStat struct {
	Calls  [13]uint32 // by procedure
	Set    uint32     // successful SETs
	Unset  uint32     // successful UNSETs
	Addrs  []AddrStat
	Remote []RemoteStat
}

// AddrStat is rpcbs_addrlist: GETADDR, GETPORT or GETVERSADDR for one program.
type AddrStat struct {
	Program, Version uint32
	Success, Failure uint32
	NetID            string
}

// RemoteStat is rpcbs_rmtcalllist: calls passed on to one procedure.
type RemoteStat struct {
	Program, Version, Procedure uint32
	Success, Failure, Indirect  uint32
	NetID                       string
}

// Decode reads an rpcb_stat_byvers.
func (s *BindStat) Decode(r *xdr.Reader) {
	for i := range s {
		v := &s[i]
		*v = VersionStat{}
		for p := range v.Calls {
			v.Calls[p] = r.Uint32()
		}
		v.Set = r.Uint32()
		v.Unset = r.Uint32()
		for r.Bool() {
			v.Addrs = append(v.Addrs, AddrStat{r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), r.String(unbounded)})
		}
		for r.Bool() {
			v.Remote = append(v.Remote, RemoteStat{r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), r.String(unbounded)})
		}
	}
}

// Encode writes an rpcb_stat_byvers.
func (s *BindStat) Encode(w *xdr.Writer) {
	for i := range s {
		v := &s[i]
		for _, n := range v.Calls {
			w.Uint32(n)
		}
		w.Uint32(v.Set)
		w.Uint32(v.Unset)
		for _, a := range v.Addrs {
			w.Bool(true)
			w.Uint32(a.Program)
			w.Uint32(a.Version)
			w.Uint32(a.Success)
			w.Uint32(a.Failure)
			w.String(a.NetID)
		}
		w.Bool(false)
		for _, c := range v.Remote {
			w.Bool(true)
			w.Uint32(c.Program)
			w.Uint32(c.Version)
			w.Uint32(c.Procedure)
			w.Uint32(c.Success)
			w.Uint32(c.Failure)
			w.Uint32(c.Indirect)
			w.String(c.NetID)
		}
		w.Bool(false)
	}
}

// FormatUaddr returns the universal address of an IP address and port: the
// address's text, then the port's high and low byte, separated by dots. RFC 5665
// sections 5.2.3.3 and 5.2.3.4.
func FormatUaddr(a netip.AddrPort) string {
	return fmt.Sprintf("%s.%d.%d", a.Addr(), a.Port()>>8, a.Port()&0xff)
}

// ParseUaddr is the inverse of [FormatUaddr].
func ParseUaddr(s string) (netip.AddrPort, error) {
	rest, low, ok1 := cutLast(s)
	host, high, ok2 := cutLast(rest)
	addr, err := netip.ParseAddr(host)
	hi, err1 := strconv.ParseUint(high, 10, 8)
	lo, err2 := strconv.ParseUint(low, 10, 8)
	if !ok1 || !ok2 || err != nil || err1 != nil || err2 != nil {
		return netip.AddrPort{}, fmt.Errorf("rpc: %q is not a universal address", s)
	}
	return netip.AddrPortFrom(addr, uint16(hi<<8|lo)), nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
