package smb

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

var testHost = rpcHost{name: "RAM", shares: func() []rpcShare {
	return []rpcShare{{name: "ramdisk"}, {name: "IPC$", remark: "IPC", ipc: true}}
}, users: func() []User {
	return []User{{Name: "Ann", Cred: memstore.Cred{UID: 5, GID: 6}}, {Name: "bob", Cred: memstore.Cred{UID: 5}}}
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
	const (
		name   = `03000000 00000000 03000000 6100 6200 0000 0000`
		policy = `00000000 72616d73 65727665 7220706f 6c696379`
		null   = `00000000 00000000 00000000 00000000 00000000`
		// SIDs, as they are behind pointers: users 5 and 7, group 6, everyone, and one of
		// nobody here.
		user5  = `02000000 0102 000000000016 01000000 05000000`
		user7  = `02000000 0102 000000000016 01000000 07000000`
		group6 = `02000000 0102 000000000016 02000000 06000000`
		all    = `01000000 0101 000000000001 00000000`
		other  = `02000000 0102 000000000005 20000000 20020000`
		// Where the answer goes (nowhere), and where to look.
		rest = `00000000 00000000 0100 0000 00000000`
		// "Unix User" and its SID, as the only domain.
		unixUser = `04000200 01000000 08000200 20000000 01000000 1200 1200 0c000200 10000200
			09000000 00000000 09000000 55006e0069007800 20005500730065007200 0000 01000000 0101 000000000016 01000000`
		noDomain = `04000200 00000000 08000200 20000000 00000000`
		ann, s7  = `03000000 00000000 03000000 41006e006e00 0000`, `01000000 00000000 01000000 3700 0000`
	)
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

		{"lsarpc", "2c00", `00000000 18000000` + null + `00000000 00000002`, policy + `00000000`},
		{"lsarpc", "0600", `00000000 18000000` + null + `00000000 00000002`, policy + `00000000`},
		{"lsarpc", "0000", policy, null + `00000000`},
		{"lsarpc", "0000", null, null + `080000c0`},
		{"lsarpc", "0f00", policy + `02000000 01000000 02000000 01000000 01000000` + user5 + user7 + rest,
			unixUser + `02000000 14000200 02000000 0100 0000 0600 0600 18000200 00000000 0100 0000 0200 0200 1c000200 00000000` + ann + s7 +
				`02000000 00000000`},
		{"lsarpc", "3900", policy + `01000000 01000000 01000000 01000000` + user5 + rest + `00000000 02000000`,
			unixUser + `01000000 14000200 01000000 0100 0000 0600 0600 18000200 00000000 00000000` + ann + `01000000 00000000`},
		{"lsarpc", "0f00", policy + `01000000 01000000 01000000 01000000` + group6 + rest,
			`04000200 01000000 08000200 20000000 01000000 1400 1400 0c000200 10000200
			0a000000 00000000 0a000000 55006e0069007800 2000470072006f0075007000 01000000 0101 000000000016 02000000
			01000000 14000200 01000000 0200 0000 0200 0200 18000200 00000000 01000000 00000000 01000000 3600 0000 01000000 00000000`},
		{"lsarpc", "0f00", policy + `02000000 01000000 02000000 01000000 01000000` + all + other + rest,
			`04000200 01000000 08000200 20000000 01000000 0000 0000 0c000200 10000200 00000000 00000000 00000000 00000000 0100 000000000001
			02000000 14000200 02000000 0500 0000 1000 1000 18000200 00000000 0800 0000 1800 1800 1c000200 ffffffff
			08000000 00000000 08000000 45007600650072007900 6f006e006500
			0c000000 00000000 0c000000 53002d0031002d0035002d00330032002d00350034003400 01000000 07010000`},
		{"lsarpc", "0f00", policy + `01000000 01000000 01000000 01000000` + other + rest,
			noDomain + `01000000 0c000200 01000000 0800 0000 1800 1800 10000200 ffffffff
			0c000000 00000000 0c000000 53002d0031002d0035002d00330032002d00350034003400 00000000 730000c0`},
		{"lsarpc", "0f00", policy + `00000000 00000000` + rest, noDomain + `00000000 0c000200 00000000 00000000 00000000`},
		{"lsarpc", "0f00", null + `01000000 01000000 01000000 01000000` + user5 + rest, noDomain + `00000000 0c000200 00000000 00000000 080000c0`},
		{"lsarpc", "0f00", policy + `01000000 01000000 02000000 01000000` + user5 + rest, "fault f7060000"},
		{"lsarpc", "0f00", policy + `01000000 01000000 01000000 00000000` + rest, "fault f7060000"},
		{"lsarpc", "0f00", policy + `01000000 01000000 01000000 01000000 ffffff7f` + rest, "fault f7060000"},
		{"lsarpc", "0f00", policy + `ffffffff 01000000 ffffffff 01000000` + user5 + rest, "fault f7060000"},
		{"lsarpc", "0e00", policy + `02000000 02000000 0600 0600 01000000 1600 1600 01000000` +
			`03000000 00000000 03000000 61004e004e00 0000` + // aNN
			`0b000000 00000000 0b000000 55006e0069007800 20005500730065007200 5c00 3700 0000` + rest,
			unixUser + `02000000 14000200 02000000 0100 0000 05000000 00000000 0100 0000 07000000 00000000 02000000 00000000`},
		{"lsarpc", "3a00", policy + `02000000 02000000 0600 0600 01000000 0200 0200 00000000` + ann + rest + `00000000 02000000`,
			unixUser + `02000000 14000200 02000000 0100 0000 05000000 00000000 00000000 0800 0000 00000000 ffffffff 00000000 01000000 07010000`},
		{"lsarpc", "4400", policy + `01000000 01000000 0600 0600 01000000` + ann + rest + `00000000 02000000`,
			unixUser + `01000000 14000200 01000000 0100 0000 18000200 00000000 00000000` + user5 + `01000000 00000000`},
		{"lsarpc", "0e00", policy + `e9030000 e9030000` + strings.Repeat(`0600 0600 00000000`, 1001) + rest, "fault f7060000"},
		{"lsarpc", "2d00", ``, "fault 0200011c"},
		{"lsarpc", "8200", ``, "fault 0200011c"},
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

// A pipe goes on after its connection was idle, and others have got its memory.
func TestPipeIdle(t *testing.T) {
	s, addr := newServer(t, nil)
	dial := func(share string) *smbtest.Client {
		c, err := smbtest.Dial(t.Context(), addr, smbtest.Options{User: "user", Password: "pass", Share: share})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	p := open(t, dial(ipcShare), "srvsvc")
	other := dial("share")
	s.sweepAt(0)
	s.sweepAt(time.Minute)
	eventually(t, "all are idle", func() bool { return s.works.Free() == s.half })
	open(t, other, "f")
	call := func(b []byte) []byte {
		t.Helper()
		b, err := p.Ioctl(wire.FsctlPipeTransceive, b, 4096)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	call(part(rpcBind, 3, 1, unhex(srvsvcBind)))
	other.Close()
	eventually(t, "the other has ended", func() bool { return s.count() == 1 })
	if b := call(part(rpcRequest, 3, 7, unhex(`00000000 0000 0f00 00000000 01000000 01000000 04000200 00000000 00000000 ffffffff 00000000`))); !bytes.Contains(b, []byte("s\x00h\x00a\x00r\x00e\x00")) {
		t.Errorf("shares: %x", b)
	}
}

func FuzzPipe(f *testing.F) {
	f.Add(part(rpcBind, 3, 1, unhex(srvsvcBind)))
	f.Add(part(rpcRequest, 3, 2, unhex("00000000 0000 1500 00000000 64000000")))
	f.Add(part(rpcRequest, 3, 7, unhex(`00000000 0000 0f00 00000000 01000000 01000000 04000200 00000000 00000000 ffffffff 00000000`)))
	f.Add(part(rpcRequest, 3, 7, unhex(`00000000 0000 0f00 00000000 72616d73 65727665 7220706f 6c696379
		01000000 01000000 01000000 01000000 02000000 0102 000000000016 01000000 05000000`)))
	f.Add(part(rpcRequest, 3, 7, unhex(`00000000 0000 4400 00000000 72616d73 65727665 7220706f 6c696379
		01000000 01000000 0600 0600 01000000 03000000 00000000 03000000 41006e006e00 0000`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, service := range rpcServices {
			p := openPipe(name, testHost)
			bind := unhex(srvsvcBind)
			copy(bind[16:], service.uuid)
			bind[32] = byte(service.major)
			p.write(part(rpcBind, 3, 1, bind))
			p.write(b)
			for len(p.answers) > 0 {
				p.read(100)
			}
		}
	})
}
