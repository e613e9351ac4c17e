package smb

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/md4" //lint:ignore SA1019 what MS-NLMP section 3.3.1 hashes passwords with
)

// TestGolden holds the conversations in testdata/golden with the server, as clients
// of others hold them by the specifications: the real ones are not at hand. Every
// request is signed once somebody has logged on, and so has every reply to be.
//
// GOLDEN_ADDR=host:port holds them with another server, which has a share "share" and
// a user "user" with the password "pass".
func TestGolden(t *testing.T) {
	for _, name := range []string{"windows11.txt", "macos.txt"} {
		t.Run(name, func(t *testing.T) {
			addr := os.Getenv("GOLDEN_ADDR")
			if addr == "" {
				_, addr = newServer(t, func(c *Config) { c.logonDelay = 1 })
			}
			d := &dialogue{golden: golden{layouts: make(map[string]*layout), vars: make(map[string]value)}, t: t, addr: addr}
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("%v", p)
				}
			}()
			d.hold(append(readBlocks("messages.txt"), readBlocks(name)...))
		})
	}
}

// dialogue is one connection of a golden client.
type dialogue struct {
	golden
	t    *testing.T
	addr string
	nc   net.Conn

	id      uint64      // of the next message
	credits int         // that the client has
	sent    []exchange  // without a reply so far
	frame   []*exchange // of which the next frame is made
	came    []message   // and were not asked for yet

	preauth [sha512.Size]byte
	signing []byte // key
}

// exchange is a request.
type exchange struct {
	where   string
	name    string
	id      uint64
	command uint64
	charge  uint64
	related bool
	signed  bool
	tree    []byte
	msg     []byte
}

// message is one that the server has sent.
type message struct {
	b      []byte
	follow bool // in the frame of the one before
}

func (d *dialogue) hold(blocks []block) {
	for k := range blocks {
		b := &blocks[k]
		if d.define(b) {
			continue
		}
		word, rest, _ := strings.Cut(b.text(), " ")
		name, text, _ := strings.Cut(rest, " ")
		if word != ">" && word != "+" {
			d.flush()
		}
		switch word {
		case "connect":
			d.connect()
		case ">", "+":
			if word == ">" {
				d.flush()
			}
			d.request(name, text, word == "+")
		case "<", "<+":
			d.reply(name, text, word == "<+")
		default:
			d.golden.fail("%q?", b.head)
		}
	}
	d.flush()
	if len(d.came) > 0 || len(d.sent) > 0 {
		d.t.Errorf("%d replies came that nobody has asked for, %d did not come", len(d.came), len(d.sent))
	}
	d.nc.Close()
}

func (d *dialogue) connect() {
	if d.nc != nil {
		d.nc.Close()
	}
	nc, err := net.Dial("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	d.nc, d.id, d.credits, d.sent, d.came = nc, 0, 1, nil, nil
	d.preauth, d.signing = [sha512.Size]byte{}, nil
	for _, name := range []string{"session", "tree"} {
		delete(d.vars, name)
	}
}

// header splits the arguments of SMB2_HEADER off.
func (d *dialogue) header(args map[string]value, head string) map[string]value {
	h := make(map[string]value)
	for _, p := range d.layouts[head].params {
		if v, ok := args[p]; ok {
			h[p] = v
			delete(args, p)
		}
	}
	return h
}

// request adds a request to the next frame.
func (d *dialogue) request(name, text string, related bool) {
	args := d.parse(text, nil, nil).arguments("")
	if name == "SMB1_NEGOTIATE" {
		x := &exchange{where: d.where, name: name, tree: make([]byte, 4), msg: d.build(name, args, 0).b}
		d.id++
		d.credits--
		d.frame = append(d.frame, x)
		return
	}
	head := "SMB2_HEADER"
	if _, ok := args["async"]; ok {
		head = "SMB2_HEADER_ASYNC"
	}
	h := d.header(args, head)
	x := &exchange{where: d.where, name: name, related: related, command: d.vars[name].n, charge: 1}
	flags := h["headerflags"].n
	if related {
		flags |= d.vars["SMB2_FLAGS_RELATED_OPERATIONS"].n
		for _, k := range []string{"session", "tree"} {
			if _, ok := h[k]; !ok {
				h[k] = value{n: map[string]uint64{"session": ^uint64(0), "tree": 0xFFFFFFFF}[k]}
			}
		}
	}
	for _, k := range []string{"session", "tree"} {
		if v, ok := d.vars[k]; ok && (k == "session" || head == "SMB2_HEADER") {
			if _, set := h[k]; !set {
				h[k] = v
			}
		}
	}
	if v, ok := h["charge"]; ok {
		x.charge = v.n
	}
	if x.id = d.id; name == "CANCEL" {
		x.id = d.sent[len(d.sent)-1].id // of what is cancelled
	} else {
		d.id += max(x.charge, 1)
		d.credits -= int(max(x.charge, 1))
	}
	if x.signed = d.signing != nil; x.signed {
		flags |= d.vars["SMB2_FLAGS_SIGNED"].n
	}
	h["headerflags"], h["id"], h["command"] = value{n: flags}, value{n: x.id}, value{n: x.command}
	p := d.build(head, h, 0)
	p.splice(d.build(name, args, len(p.b)))
	x.msg, x.tree = p.b, p.b[36:40]
	if related {
		x.tree = d.frame[len(d.frame)-1].tree // the reply has what counted
	}
	d.frame = append(d.frame, x)
}

// flush sends the frame.
func (d *dialogue) flush() {
	if len(d.frame) == 0 {
		return
	}
	var frame []byte
	for k, x := range d.frame {
		if k < len(d.frame)-1 {
			for len(x.msg)%8 != 0 {
				x.msg = append(x.msg, 0)
			}
			binary.LittleEndian.PutUint32(x.msg[20:], uint32(len(x.msg)))
		}
		if x.signed {
			copy(x.msg[48:], d.signature(x.msg))
		}
		if x.name == "NEGOTIATE" || x.name == "SESSION_SETUP" {
			d.mix(x.msg)
		}
		frame = append(frame, x.msg...)
		if x.name != "CANCEL" {
			d.sent = append(d.sent, *x)
		}
	}
	d.frame = nil
	if _, err := d.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		d.golden.fail("%v", err)
	}
}

// receive reads a frame.
func (d *dialogue) receive() {
	var head [4]byte
	if _, err := io.ReadFull(d.nc, head[:]); err != nil {
		d.golden.fail("the connection: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(d.nc, b); err != nil || len(b) < 64 || string(b[:4]) != "\xfeSMB" {
		d.golden.fail("a frame of %d bytes: %v", len(b), err)
	}
	for follow := false; ; follow = true {
		n := binary.LittleEndian.Uint32(b[20:])
		if n == 0 {
			d.came = append(d.came, message{b, follow})
			return
		}
		if n < 64 || n%8 != 0 || int(n) > len(b)-64 {
			d.golden.fail("the next reply is %d bytes away", n)
		}
		d.came = append(d.came, message{b[:n], follow})
		b = b[n:]
	}
}

// take waits for the reply to a request.
func (d *dialogue) take(id uint64) message {
	for {
		for k, m := range d.came {
			if binary.LittleEndian.Uint64(m.b[24:]) == id {
				d.came = append(d.came[:k:k], d.came[k+1:]...)
				return m
			}
		}
		d.receive()
	}
}

// reply compares the next reply to a request of that name with what is expected.
func (d *dialogue) reply(name, text string, follow bool) {
	args := d.parse(text, nil, nil).arguments("")
	head := "SMB2_HEADER"
	if _, ok := args["async"]; ok {
		head = "SMB2_HEADER_ASYNC"
	}
	h := d.header(args, head)
	at := -1
	for k := range d.sent {
		if d.sent[k].name == name && at < 0 {
			at = k
		}
	}
	if at < 0 {
		d.golden.fail("no request %s is without a reply", name)
	}
	x := d.sent[at]
	m := d.take(x.id)
	status := h["status"].n
	pending := status == d.vars["STATUS_PENDING"].n
	if !pending {
		d.sent = append(d.sent[:at:at], d.sent[at+1:]...)
	}
	errors := func(format string, a ...any) { d.t.Errorf("%s: %s: %s", d.where, name, fmt.Sprintf(format, a...)) }
	if m.follow != follow {
		errors("in the frame of the reply before: %v", m.follow)
	}
	got := binary.LittleEndian.Uint32(m.b[8:])
	d.credits += int(binary.LittleEndian.Uint16(m.b[14:]))
	if d.credits <= 0 && len(d.came) == 0 {
		errors("the client has no credit left")
	}

	logon := name == "SESSION_SETUP"
	if name == "NEGOTIATE" || logon && status != 0 {
		d.mix(m.b)
	}
	if logon && status == 0 && got == 0 && d.signing == nil {
		d.signing = derive16(d.vars["exported"].p.b, "SMBSigningKey\x00", d.preauth[:])
		x.signed = true // the last reply of 3.1.1 is
	}
	flags := d.vars["SMB2_FLAGS_SERVER_TO_REDIR"].n
	switch {
	case x.related:
		flags |= d.vars["SMB2_FLAGS_RELATED_OPERATIONS"].n
	case pending, head == "SMB2_HEADER_ASYNC":
		flags |= d.vars["SMB2_FLAGS_ASYNC_COMMAND"].n
	}
	if x.signed && !pending {
		flags |= d.vars["SMB2_FLAGS_SIGNED"].n
		sum := bytes.Clone(m.b[48:64])
		clear(m.b[48:64])
		if !bytes.Equal(sum, d.signature(m.b)) {
			errors("the signature is wrong")
		}
		copy(m.b[48:], sum)
	}
	set := func(k string, v value) {
		if _, ok := h[k]; !ok {
			h[k] = v
		}
	}
	set("headerflags", value{n: flags})
	set("command", value{n: x.command})
	set("id", value{n: x.id})
	set("status", value{n: 0})
	set("charge", value{n: x.charge})
	set("credits", value{any: true})
	set("next", value{any: true})
	set("pid", value{any: true})
	set("signature", value{any: true})
	if head == "SMB2_HEADER" {
		set("tree", value{p: literal(x.tree)})
	}
	if s, ok := d.vars["session"]; ok {
		set("session", s)
	}
	want := d.build(head, h, 0)
	body := name + ".reply"
	if _, own := args["output"]; pending || d.failed(status) && !own {
		body = "ERROR.reply"
	}
	if uint64(got) != status {
		errors("status %s, want %s", d.status(uint64(got)), d.status(status))
	} else {
		want.splice(d.build(body, args, len(want.b)))
		b := m.b
		if want.rest = want.rest || binary.LittleEndian.Uint32(b[20:]) != 0 || follow; want.rest && len(b)-len(want.b) < 8 && len(b) > len(want.b) {
			b = b[:len(want.b)] // without the padding
		}
		for _, w := range d.diff(want, b) {
			errors("%s", w)
		}
	}
}

// failed tells whether a reply with that status has the body of an error (MS-SMB2
// section 3.3.4.4), but for IOCTL's that tells how much it would do.
func (d *dialogue) failed(status uint64) bool {
	return status>>30 >= 2 && status != d.vars["STATUS_MORE_PROCESSING_REQUIRED"].n && status != d.vars["STATUS_BUFFER_OVERFLOW"].n
}

// status is the name of a status.
func (d *dialogue) status(n uint64) string {
	for name, v := range d.vars {
		if strings.HasPrefix(name, "STATUS_") && v.n == n {
			return name
		}
	}
	return fmt.Sprintf("%#08x", n)
}

// mix adds a message to the hash of preauthentication, MS-SMB2 section 3.2.5.2.
func (d *dialogue) mix(msg []byte) {
	d.preauth = sha512.Sum512(append(d.preauth[:], msg...))
}

// derive16 is the key derivation of MS-SMB2 section 3.1.4.2, of 128 bits.
func derive16(key []byte, label string, context []byte) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "\x00\x00\x00\x01%s\x00%s\x00\x00\x00\x80", label, context)
	return h.Sum(nil)[:16]
}

// signature is AES-GMAC, MS-SMB2 section 3.1.4.1, of a message whose signature is zero.
func (d *dialogue) signature(msg []byte) []byte {
	var nonce [12]byte
	copy(nonce[:], msg[24:32])
	if msg[16]&1 != 0 {
		nonce[8] |= 1 // from the server
	}
	if msg[12] == 12 {
		nonce[8] |= 2 // CANCEL
	}
	b, err := aes.NewCipher(d.signing)
	if err != nil {
		d.golden.fail("%v", err)
	}
	gcm, err := cipher.NewGCM(b)
	if err != nil {
		d.golden.fail("%v", err)
	}
	return gcm.Seal(nil, nonce[:], nil, msg)
}

func hmacMD5(key []byte, parts ...[]byte) []byte {
	h := hmac.New(md5.New, key)
	h.Write(bytes.Join(parts, nil))
	return h.Sum(nil)
}

func rc4Of(key, b []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(b))
	c.XORKeyStream(out, b)
	return out
}

// secret are the functions of NTLM, MS-NLMP sections 3.3.2 and 3.4. The names are of
// what the files have saved before.
func (g *golden) secret(name string, args []value) value {
	saved := func(name string) []byte {
		v, ok := g.vars[name]
		if !ok || v.p == nil {
			g.fail("%s is not known", name)
		}
		return v.p.b
	}
	switch name {
	case "ntlmv2": // ntlmv2(user domain password time info): NTLMv2_RESPONSE
		h := md4.New()
		h.Write(encode16(*args[2].text))
		key := hmacMD5(h.Sum(nil), encode16(strings.ToUpper(*args[0].text)+*args[1].text))
		blob := append([]byte{1, 1, 0, 0, 0, 0, 0, 0}, g.bytes(args[3]).b...)
		blob = append(blob, "clientch\x00\x00\x00\x00"...)
		blob = append(append(blob, g.bytes(args[4]).b...), 0, 0, 0, 0)
		proof := hmacMD5(key, saved("challenge"), blob)
		g.vars["base"] = value{p: literal(hmacMD5(key, proof))}
		g.vars["exported"] = value{p: literal([]byte("exportedkey 16 b"))}
		return value{p: literal(append(proof, blob...))}
	case "exchanged": // exchanged(): EncryptedRandomSessionKey
		return value{p: literal(rc4Of(saved("base"), saved("exported")))}
	case "mic": // mic(AUTHENTICATE_MESSAGE with 16 zeros): with the code
		b := bytes.Clone(g.bytes(args[0]).b)
		copy(b[72:88], hmacMD5(saved("exported"), saved("negotiate"), saved("asked"), b))
		return value{p: literal(b)}
	case "listmic": // listmic("client-to-server" mechTypes): mechListMIC
		seal := func(what string) []byte {
			k := md5.Sum([]byte(fmt.Sprintf("%ssession key to %s %s key magic constant\x00", saved("exported"), *args[0].text, what)))
			return k[:]
		}
		sum := hmacMD5(seal("signing"), make([]byte, 4), g.bytes(args[1]).b)[:8]
		return value{p: literal(append(append([]byte{1, 0, 0, 0}, rc4Of(seal("sealing"), sum)...), 0, 0, 0, 0))}
	}
	g.fail("there is no function %s", name)
	return value{}
}
