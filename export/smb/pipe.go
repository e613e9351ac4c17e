package smb

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"

	"ramserver/export/smb/wire"
)

// Named pipes of IPC$ carry DCE/RPC (C706, MS-RPCE). There are three services: srvsvc
// and wkssvc answer what clients ask before they list or use shares, lsarpc what users
// are called.

// pipe is an open named pipe. A request is answered when its last part has been
// written, and the answer kept until it is read. It belongs to the connection's
// goroutine.
type pipe struct {
	service  *rpcService
	host     rpcHost
	bound    bool
	contexts []uint16 // presentation contexts of the service
	frag     int      // largest part that the client receives
	request  []byte   // parts of a request that has more
	answers  [][]byte // what has not been read, by parts
	held     int64    // bytes of both that are counted
}

// maxPipes bounds what the pipes of a connection hold, in bytes.
const maxPipes = 1 << 20

// count counts what the pipe holds now. Where that is too much, of a connection or of
// all together, it reports false, and the pipe has lost it.
func (p *pipe) count(c *conn) bool {
	n := int64(cap(p.request))
	for _, b := range p.answers {
		n += int64(len(b))
	}
	more := n - p.held
	p.held = n
	if mine, all := c.pipes.Add(more), c.s.pipes.Add(more); more > 0 && (mine > maxPipes || all > c.s.half/4) {
		p.empty(c)
		return false
	}
	return true
}

// empty forgets what the pipe holds.
func (p *pipe) empty(c *conn) {
	p.request, p.answers = nil, nil
	p.count(c)
}

// rpcHost is what the services tell about the server.
type rpcHost struct {
	name   string // of the server
	shares func() []rpcShare
	users  func() []User
}

// rpcShare is a share as clients see it in a list.
type rpcShare struct {
	name, remark string
	ipc          bool
}

// rpcService is an interface with its operations, by number. An operation reads
// its arguments from in and appends its results to out.
type rpcService struct {
	uuid  string // in wire order
	major uint16
	ops   map[uint16]func(h *rpcHost, in *ndrReader, out *ndrWriter)
}

var rpcServices = map[string]*rpcService{"srvsvc": srvsvc, "wkssvc": wkssvc, "lsarpc": lsarpc}

// openPipe opens a pipe of IPC$ by its name, without regard to case; nil if there is
// none.
func openPipe(name string, host rpcHost) *pipe {
	service := rpcServices[strings.ToLower(name)]
	if service == nil {
		return nil
	}
	return &pipe{service: service, host: host, frag: rpcMinFrag}
}

// Bounds in bytes, of one part and of one request. A client has to accept parts of
// rpcMinFrag (C706 section 12.6.3.1).
const (
	rpcMinFrag    = 1432
	rpcMaxFrag    = 4280
	rpcMaxRequest = 64 << 10
	rpcMaxAnswers = 64 // parts that wait to be read
)

// Types of parts and their flags, C706 section 12.6.
const (
	rpcRequest  = 0
	rpcResponse = 2
	rpcFault    = 3
	rpcBind     = 11
	rpcBindAck  = 12
	rpcBindNak  = 13
	rpcAlter    = 14
	rpcAlterAck = 15

	rpcFirst  = 1
	rpcLast   = 2
	rpcObject = 0x80

	rpcHeader = 16
)

// Reasons of faults and refusals.
const (
	faultOpRange = 0x1c010002 // nca_s_op_rng_error
	faultUnknown = 0x1c010003 // nca_s_unk_if
	faultProto   = 0x1c01000b // nca_s_proto_error
	faultBadData = 0x000006f7 // RPC_X_BAD_STUB_DATA

	nakAuth = 8 // authentication type is not recognized
)

// ndr is the transfer syntax NDR, version 2, in wire order.
const ndr = "\x04\x5d\x88\x8a\xeb\x1c\xc9\x11\x9f\xe8\x08\x00\x2b\x10\x48\x60\x02\x00\x00\x00"

// bindFeatures begins the identifier that stands for features and not for a syntax
// (MS-RPCE section 2.2.2.14); none of them is there.
const bindFeatures = "\x2c\x1c\xb7\x6c\x12\x98\x40\x45"

var errPipe = errors.New("pipe: not a message of DCE/RPC, or too much of it")

// write takes what a client writes: one or more whole parts. After an error the
// pipe is of no use.
func (p *pipe) write(b []byte) error {
	for len(b) > 0 {
		if len(b) < rpcHeader || b[0] != 5 || b[1] > 1 || b[4]&0xf0 != 0x10 {
			return errPipe // not version 5, or not little-endian
		}
		n, auth := int(binary.LittleEndian.Uint16(b[8:])), int(binary.LittleEndian.Uint16(b[10:]))
		if n < rpcHeader || n > len(b) || len(p.answers) >= rpcMaxAnswers {
			return errPipe
		}
		if err := p.part(b[2], b[3], binary.LittleEndian.Uint32(b[12:]), auth, b[rpcHeader:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (p *pipe) part(kind, flags uint8, call uint32, auth int, body []byte) error {
	switch {
	case kind == rpcBind && auth != 0 || kind == rpcAlter && auth != 0:
		// The session has authenticated the client.
		p.answer(rpcBindNak, call, []byte{nakAuth, 0, 1, 5, 0})
		return nil
	case kind == rpcBind && p.bound, kind == rpcAlter && !p.bound:
		return errPipe
	case kind == rpcBind:
		return p.bind(rpcBindAck, call, body)
	case kind == rpcAlter:
		return p.bind(rpcAlterAck, call, body)
	case kind != rpcRequest || auth != 0 || len(body) < 8:
		return errPipe
	}
	context, op := binary.LittleEndian.Uint16(body[4:]), binary.LittleEndian.Uint16(body[6:])
	body = body[8:]
	if flags&rpcObject != 0 {
		if len(body) < 16 {
			return errPipe
		}
		body = body[16:]
	}
	if flags&rpcFirst != 0 {
		p.request = p.request[:0]
	}
	if len(p.request)+len(body) > rpcMaxRequest {
		return errPipe
	}
	p.request = append(p.request, body...)
	if flags&rpcLast == 0 {
		return nil
	}
	p.run(call, context, op)
	p.request = nil
	return nil
}

// bind agrees on presentation contexts: each is an interface and how its data are
// encoded.
func (p *pipe) bind(kind uint8, call uint32, body []byte) error {
	if len(body) < 12 {
		return errPipe
	}
	p.frag = min(max(int(binary.LittleEndian.Uint16(body[2:])), rpcMinFrag), rpcMaxFrag)
	group := binary.LittleEndian.Uint32(body[4:])
	if group == 0 {
		group = 0x53f0
	}
	n := int(body[8])
	body = body[12:]

	out := binary.LittleEndian.AppendUint16(nil, uint16(p.frag))
	out = binary.LittleEndian.AppendUint16(out, uint16(p.frag))
	out = binary.LittleEndian.AppendUint32(out, group)
	if kind == rpcBindAck {
		const address = `\PIPE\x` // as long as it is there, nobody reads it
		out = binary.LittleEndian.AppendUint16(out, uint16(len(address)+1))
		out = append(out, address+"\x00"...)
	} else {
		out = append(out, 0, 0)
	}
	for (len(out)+rpcHeader)%4 != 0 {
		out = append(out, 0)
	}
	out = append(out, uint8(n), 0, 0, 0)
	for range n {
		if len(body) < 24 {
			return errPipe
		}
		id, syntaxes := binary.LittleEndian.Uint16(body), int(body[2])
		uuid, major := string(body[4:20]), binary.LittleEndian.Uint16(body[20:])
		body = body[24:]
		if len(body) < 20*syntaxes {
			return errPipe
		}
		ours, features := false, false
		for s := range syntaxes {
			ours = ours || string(body[20*s:20*s+20]) == ndr
			features = features || string(body[20*s:20*s+8]) == bindFeatures
		}
		body = body[20*syntaxes:]
		result, reason, syntax := uint16(0), uint16(0), ndr
		switch {
		case uuid != p.service.uuid || major != p.service.major:
			result, reason, syntax = 2, 1, strings.Repeat("\x00", 20) // abstract syntax not supported
		case ours:
			p.contexts = append(p.contexts, id)
		case features:
			result, syntax = 3, strings.Repeat("\x00", 20)
		default:
			result, reason, syntax = 2, 2, strings.Repeat("\x00", 20) // transfer syntaxes not supported
		}
		out = binary.LittleEndian.AppendUint16(out, result)
		out = binary.LittleEndian.AppendUint16(out, reason)
		out = append(out, syntax...)
	}
	if len(p.contexts) > 256 {
		return errPipe
	}
	p.bound = true
	p.answer(kind, call, out)
	return nil
}

// run executes a request that is there as a whole.
func (p *pipe) run(call uint32, context, op uint16) {
	known := false
	for _, id := range p.contexts {
		known = known || id == context
	}
	run := p.service.ops[op]
	switch {
	case !p.bound:
		p.fault(call, context, faultProto)
		return
	case !known:
		p.fault(call, context, faultUnknown)
		return
	case run == nil:
		p.fault(call, context, faultOpRange)
		return
	}
	in := ndrReader{b: p.request}
	var out ndrWriter
	run(&p.host, &in, &out)
	if in.bad {
		p.fault(call, context, faultBadData)
		return
	}
	stub := out.b
	for first := uint8(rpcFirst); ; first = 0 {
		n := min(len(stub), (p.frag-rpcHeader-8)&^7)
		flags := first
		if n == len(stub) {
			flags |= rpcLast
		}
		b := make([]byte, rpcHeader, rpcHeader+8+n)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(stub)))
		b = binary.LittleEndian.AppendUint16(b, context)
		b = append(b, 0, 0)
		p.queue(rpcResponse, flags, call, append(b, stub[:n]...))
		if stub = stub[n:]; len(stub) == 0 {
			return
		}
	}
}

func (p *pipe) fault(call uint32, context uint16, status uint32) {
	b := binary.LittleEndian.AppendUint32(nil, 32)
	b = binary.LittleEndian.AppendUint16(b, context)
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, status)
	p.answer(rpcFault, call, append(b, 0, 0, 0, 0))
}

// answer queues an answer of one part.
func (p *pipe) answer(kind uint8, call uint32, body []byte) {
	p.queue(kind, rpcFirst|rpcLast, call, append(make([]byte, rpcHeader), body...))
}

// queue fills in the header of a part.
func (p *pipe) queue(kind, flags uint8, call uint32, b []byte) {
	copy(b, []byte{5, 0, kind, flags, 0x10, 0, 0, 0})
	binary.LittleEndian.PutUint16(b[8:], uint16(len(b)))
	binary.LittleEndian.PutUint32(b[12:], call)
	p.answers = append(p.answers, b)
}

// waiting is how many bytes of answers have not been read, and how many of the
// first part.
func (p *pipe) waiting() (all, first int) {
	for _, a := range p.answers {
		all += len(a)
	}
	if len(p.answers) > 0 {
		first = len(p.answers[0])
	}
	return all, first
}

// read takes up to n bytes of the next part; more says that it has more. Without
// an answer to read it returns nothing.
func (p *pipe) read(n int) (b []byte, more bool) {
	if len(p.answers) == 0 {
		return nil, false
	}
	b = p.answers[0]
	if len(b) > n {
		p.answers[0] = b[n:]
		return b[:n], true
	}
	p.answers = p.answers[1:]
	return b, false
}

// ndrReader reads arguments (C706 section 14.3). After the end it returns zeros and
// is bad.
type ndrReader struct {
	b   []byte
	off int
	bad bool
}

func (r *ndrReader) uint32() uint32 {
	r.off = (r.off + 3) &^ 3
	if len(r.b)-r.off < 4 {
		r.off, r.bad = len(r.b), true
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b[r.off:])
	r.off += 4
	return v
}

// bytes reads n bytes.
func (r *ndrReader) bytes(n int) []byte {
	r.off = (r.off + 3) &^ 3
	if len(r.b)-r.off < n {
		r.off, r.bad = len(r.b), true
		return nil
	}
	b := r.b[r.off : r.off+n]
	r.off += n
	return b
}

// maxRefs bounds the pointers of an array.
const maxRefs = 1000

// refs reads the fixed parts of n elements of an array: so many bytes each, and a
// pointer. It tells which are not nil.
func (r *ndrReader) refs(n uint32, skip int) (there []bool) {
	r.bad = r.bad || n > maxRefs
	for range n {
		r.bytes(skip)
		there = append(there, r.uint32() != 0)
		if r.bad {
			return nil
		}
	}
	return there
}

// sid reads a SID, MS-DTYP section 2.4.2.3.
func (r *ndrReader) sid() sid {
	n := r.uint32()
	if n > 15 {
		r.bad = true
		return ""
	}
	s, rest, ok := cutSID(r.bytes(8 + 4*int(n)))
	if !ok || len(rest) > 0 {
		r.bad = true
	}
	return s
}

// str reads a string of UTF-16 without its final zero.
func (r *ndrReader) str() string {
	size, offset, n := r.uint32(), r.uint32(), r.uint32()
	if r.bad || offset != 0 || n > size || int64(n)*2 > int64(len(r.b)-r.off) {
		r.bad = true
		return ""
	}
	u := make([]uint16, n)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(r.b[r.off+2*i:])
	}
	r.off += 2 * int(n)
	if n > 0 && u[n-1] == 0 {
		u = u[:n-1]
	}
	return string(utf16.Decode(u))
}

// uniqueStr reads a string that may be missing.
func (r *ndrReader) uniqueStr() string {
	if r.uint32() == 0 {
		return ""
	}
	return r.str()
}

// ndrWriter appends results.
type ndrWriter struct {
	b    []byte
	refs uint32
}

func (w *ndrWriter) uint32(v uint32) {
	for len(w.b)%4 != 0 {
		w.b = append(w.b, 0)
	}
	w.b = binary.LittleEndian.AppendUint32(w.b, v)
}

// ref writes a pointer that is not nil; what it points to comes later.
func (w *ndrWriter) ref() {
	w.refs++
	w.uint32(0x20000 + 4*w.refs)
}

// str writes a string with a final zero.
func (w *ndrWriter) str(s string) { w.chars(s + "\x00") }

// unicode writes the fixed part of RPC_UNICODE_STRING, MS-DTYP section 2.3.10; chars
// writes what it points to.
func (w *ndrWriter) unicode(s string) {
	n := uint32(wire.UTF16Len(s))
	w.uint32(n | n<<16) // how long it is, and may be
	w.ref()
}

func (w *ndrWriter) uint16(v uint16) { w.b = binary.LittleEndian.AppendUint16(w.b, v) }

func (w *ndrWriter) sid(s sid) {
	w.uint32(uint32(s[1]))
	w.b = append(w.b, s...)
}

// chars writes a string of UTF-16.
func (w *ndrWriter) chars(s string) {
	n := uint32(wire.UTF16Len(s) / 2)
	w.uint32(n)
	w.uint32(0)
	w.uint32(n)
	w.b = wire.AppendUTF16(w.b, s)
}
