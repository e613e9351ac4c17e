package smb

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var testHost = rpcHost{name: "RAM", shares: func() []rpcShare {
	return []rpcShare{{name: "ramdisk"}, {name: "IPC$", remark: "IPC", ipc: true}}
}}

// part builds a part of DCE/RPC.
func part(kind, flags uint8, call uint32, body []byte) []byte {
	b := []byte{5, 0, kind, flags, 0x10, 0, 0, 0}
	b = binary.LittleEndian.AppendUint16(b, uint16(rpcHeader+len(body)))
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, call)
	return append(b, body...)
}

// unhex reads hexadecimal with white space.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

const srvsvcBind = `b810 b810 00000000 01 000000
	0000 01 00 c84f324b7016d30112785a47bf6ee188 0300 0000 045d888aeb1cc9119fe808002b104860 02000000`

func bound(t *testing.T) *pipe {
	t.Helper()
	p := openPipe("SrvSvc", testHost)
	if p == nil {
		t.Fatal("no srvsvc")
	}
	if err := p.write(part(rpcBind, 3, 1, unhex(srvsvcBind))); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPipeBind(t *testing.T) {
	p := bound(t)
	got, more := p.read(4096)
	want := part(rpcBindAck, 3, 1, unhex(`b810 b810 f0530000 0800 5c504950455c7800 0000 01 000000 0000 0000 045d888aeb1cc9119fe808002b104860 02000000`))
	if !bytes.Equal(got, want) || more {
		t.Errorf("bind\n%x %v, want\n%x", got, more, want)
	}
	if openPipe("winreg", testHost) != nil {
		t.Error("a pipe that is not there opens")
	}

	// Another interface, another syntax and the features of MS-RPCE.
	p = openPipe("srvsvc", testHost)
	err := p.write(part(rpcBind, 3, 2, unhex(`b810 b810 00000000 03 000000
		0000 01 00 98d0ff6b12a110369833 46c3f87e345a 0100 0000 045d888aeb1cc9119fe808002b104860 02000000
		0100 01 00 c84f324b7016d30112785a47bf6ee188 0300 0000 33057171babe37498319b5dbef9ccc36 01000000
		0200 01 00 c84f324b7016d30112785a47bf6ee188 0300 0000 2c1cb76c12984045 0300000000000000 01000000`)))
	if err != nil {
		t.Fatal(err)
	}
	got, _ = p.read(4096)
	zero := strings.Repeat("00", 20)
	if want := unhex(`03 000000 0200 0100` + zero + `0200 0200` + zero + `0300 0000` + zero); !bytes.HasSuffix(got, want) {
		t.Errorf("bind %x, want %x at its end", got, want)
	}
}

func TestShareEnum(t *testing.T) {
	p := bound(t)
	p.read(4096)
	// Level 1 of server \\r, everything.
	request := unhex(`00000000 0000 0f00
		00000200 04000000 00000000 04000000 5c005c0072000000
		01000000 01000000 04000200 00000000 00000000 ffffffff 08000200 00000000`)
	if err := p.write(part(rpcRequest, 3, 7, request)); err != nil {
		t.Fatal(err)
	}
	stub := unhex(`01000000 01000000 04000200 02000000 08000200 02000000
		0c000200 00000000 10000200  14000200 03000080 18000200
		08000000 00000000 08000000 720061006d006400690073006b000000
		01000000 00000000 01000000 0000 0000
		05000000 00000000 05000000 4900500043002400 0000 0000
		04000000 00000000 04000000 4900500043000000
		02000000 1c000200 00000000 00000000`)
	want := part(rpcResponse, 3, 7, append(unhex(fmt.Sprintf("%02x000000 0000 0000", len(stub))), stub...))
	all, first := p.waiting()
	if all != len(want) || first != len(want) {
		t.Errorf("waiting %d, %d, want %d", all, first, len(want))
	}
	got, more := p.read(20)
	if !more {
		t.Error("the first 20 bytes are all of it")
	}
	rest, more := p.read(4096)
	if got = append(bytes.Clone(got), rest...); !bytes.Equal(got, want) || more {
		t.Errorf("shares\n%x, want\n%x", got, want)
	}
}

// What does not fit into a part goes in several, and so may a request.
func TestPipeParts(t *testing.T) {
	host := testHost
	host.shares = func() (s []rpcShare) {
		for i := range 100 {
			s = append(s, rpcShare{name: fmt.Sprintf("share%03d", i)})
		}
		return s
	}
	p := openPipe("srvsvc", host)
	bind := unhex(srvsvcBind)
	binary.LittleEndian.PutUint16(bind[2:], 1) // takes less than a client must
	p.write(part(rpcBind, 3, 1, bind))
	p.read(4096)
	args := unhex(`00000000 00000000 00000000 00000000 ffffffff 00000000`)
	head := unhex(`00000000 0000 0f00`)
	if err := p.write(part(rpcRequest, rpcFirst, 2, append(bytes.Clone(head), args[:10]...))); err != nil {
		t.Fatal(err)
	}
	if all, _ := p.waiting(); all != 0 {
		t.Error("half a request is answered")
	}
	if err := p.write(part(rpcRequest, rpcLast, 2, append(bytes.Clone(head), args[10:]...))); err != nil {
		t.Fatal(err)
	}
	var parts, bytes int
	for len(p.answers) > 0 {
		b, more := p.read(4096)
		flags := uint8(0)
		if parts == 0 {
			flags |= rpcFirst
		}
		if len(p.answers) == 0 {
			flags |= rpcLast
		}
		if more || len(b) > rpcMinFrag || b[3] != flags {
			t.Errorf("part %d: %d bytes, flags %d, want %d", parts, len(b), b[3], flags)
		}
		parts++
		bytes += len(b) - rpcHeader - 8
	}
	// Level, tag, container; each a pointer, sizes, nine characters and a zero.
	if want := 6*4 + 100*(4+12+20) + 3*4; bytes != want || parts != 3 {
		t.Errorf("%d bytes in %d parts, want %d in 3", bytes, parts, want)
	}
}

func TestPipeOperations(t *testing.T) {
	const name = `03000000 00000000 03000000 6100 6200 0000 0000`
	for _, c := range []struct{ pipe, op, args, want string }{
		{"srvsvc", "1000", `00000000` + name + `01000000`, `01000000 00000000 06090000`},
		{"srvsvc", "1000", `00000000` + `08000000 00000000 08000000 520041006d006400690073006b000000 00000000`,
			`00000000 04000200 08000200 08000000 00000000 08000000 720061006d006400690073006b000000 00000000`},
		{"srvsvc", "1000", `00000000` + name + `63000000`, `63000000 00000000 7c000000`},
		{"srvsvc", "1500", `00000000 64000000`, `64000000 04000200 f4010000 08000200 04000000 00000000 04000000 520041004d000000 00000000`},
		{"srvsvc", "1500", `00000000 67000000`, `67000000 00000000 7c000000`},
		{"srvsvc", "0f00", `00000000 63000000 63000000 00000000 ffffffff 00000000`, `63000000 63000000 00000000 00000000 00000000 7c000000`},
		{"srvsvc", "0f00", `00000000 01000000 02000000 00000000 ffffffff 00000000`, "fault f7060000"},
		{"srvsvc", "0f00", `00000000 01000000`, "fault f7060000"},
		{"srvsvc", "1000", `00000000 ffffffff 00000000 ffffff7f`, "fault f7060000"},
		{"srvsvc", "6300", ``, "fault 0200011c"},
		{"wkssvc", "0000", `00000000 64000000`, `64000000 04000200 f4010000 08000200 0c000200 0a000000 00000000
			04000000 00000000 04000000 520041004d000000 0a000000 00000000 0a000000 57004f0052004b00470052004f00550050000000 00000000`},
	} {
		p := openPipe(c.pipe, testHost)
		bind := unhex(srvsvcBind)
		copy(bind[16:], p.service.uuid)
		bind[32] = byte(p.service.major)
		p.write(part(rpcBind, 3, 1, bind))
		p.read(4096)
		if err := p.write(part(rpcRequest, 3, 2, unhex("00000000 0000"+c.op+c.args))); err != nil {
			t.Errorf("%s %s: %v", c.pipe, c.op, err)
			continue
		}
		got, _ := p.read(4096)
		want, isFault := strings.CutPrefix(c.want, "fault")
		if isFault != (got[2] == rpcFault) || !bytes.HasPrefix(got[rpcHeader+8:], unhex(want)) || !isFault && len(got) != rpcHeader+8+len(unhex(want)) {
			t.Errorf("%s %s: type %d, %x, want %s", c.pipe, c.op, got[2], got[rpcHeader+8:], c.want)
		}
	}
}

func TestPipeErrors(t *testing.T) {
	request := part(rpcRequest, 3, 2, unhex("00000000 0000 1500 00000000 64000000"))
	for name, b := range map[string][]byte{
		"too short":         request[:15],
		"longer than it is": request[:len(request)-1],
		"version 4":         append([]byte{4}, request[1:]...),
		"big-endian":        append(append(bytes.Clone(request[:4]), 0), request[5:]...),
		"bound twice":       part(rpcBind, 3, 1, unhex(srvsvcBind)),
		"no such type":      part(99, 3, 1, nil),
		"without an end":    bytes.Repeat(part(rpcRequest, 0, 1, make([]byte, 4000)), 17),
		"nothing read":      bytes.Repeat(request, rpcMaxAnswers),
	} {
		p := bound(t)
		if err := p.write(b); !errors.Is(err, errPipe) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := openPipe("srvsvc", testHost)
	p.write(request)
	if got, _ := p.read(4096); got[2] != rpcFault {
		t.Errorf("a request before a bind: type %d", got[2])
	}
}

func FuzzPipe(f *testing.F) {
	f.Add(part(rpcBind, 3, 1, unhex(srvsvcBind)))
	f.Add(part(rpcRequest, 3, 2, unhex("00000000 0000 1500 00000000 64000000")))
	f.Add(part(rpcRequest, 3, 7, unhex(`00000000 0000 0f00 00000000 01000000 01000000 04000200 00000000 00000000 ffffffff 00000000`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := openPipe("srvsvc", testHost)
		p.write(part(rpcBind, 3, 1, unhex(srvsvcBind)))
		p.write(b)
		for len(p.answers) > 0 {
			p.read(100)
		}
	})
}
