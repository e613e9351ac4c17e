package nfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"ramserver/export"
	"ramserver/export/link"
	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// script is a connection whose input is known from the start.
type script struct {
	io.Reader
	out bytes.Buffer
}

func (s *script) Write(b []byte) (int, error)    { return s.out.Write(b) }
func (*script) Close() error                     { return nil }
func (*script) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049} }
func (*script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 700} }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// converse runs a connection over input and returns the replies, which must be
// well-formed records, and the reason of the end.
func converse(t testing.TB, s *Server, input io.Reader) (replies [][]byte, err error) {
	t.Helper()
	sc := &script{Reader: input}
	c := &conn{s: s, Link: link.Link{Conn: sc}}
	err = c.run()
	c.giveWork()
	c.hungUp()
	if n := c.count.panics.Load(); n != 0 {
		t.Fatalf("%d calls failed", n)
	}
	for sc.out.Len() > 0 {
		rec, err := client.ReadRecord(&sc.out)
		if err != nil {
			t.Fatalf("reply %d: %v", len(replies), err)
		}
		replies = append(replies, rec)
	}
	return replies, err
}

// newServer makes a server that does not listen, and a file "f" in its root.
func newServer(t testing.TB) (s *Server, root, file []byte) {
	t.Helper()
	st := newStore(t, t.Name())
	s, err := NewServer(Config{Exports: newTable(t, exportOf(st, "ramdisk"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(t.Context()) })
	replies, _ := converse(t, s, bytes.NewReader(calls(
		call3(rpc.ProgramMount, nfs3.MountProcMnt, &nfs3.MountPath{Path: "/"}))))
	var mnt nfs3.MountRes
	result(t, replies[0], &mnt)
	replies, _ = converse(t, s, bytes.NewReader(calls(
		call3(rpc.ProgramNFS, nfs3.ProcCreate, &nfs3.CreateArgs{Where: nfs3.DirOp{Dir: mnt.FH, Name: "f"}}))))
	var made nfs3.CreateRes
	result(t, replies[0], &made)
	return s, mnt.FH, made.FH.FH
}

// call3 is a call of version 3 of a program, as root, without a record mark.
func call3(program, proc uint32, args encoder) []byte { return callOf(program, 3, proc, args) }

func callOf(program, version, proc uint32, args encoder) []byte {
	var w xdr.Writer
	h := rpc.Call{XID: proc + 100, Program: program, Version: version, Procedure: proc,
		Cred: rpc.Cred{Flavor: rpc.AuthSys, Machine: "test"}}
	h.Encode(&w)
	if args != nil {
		args.Encode(&w)
	}
	return w.B
}

// calls puts messages into records of one fragment.
func calls(messages ...[]byte) []byte {
	var b []byte
	for _, m := range messages {
		b = append(b, fragment(m, true)...)
	}
	return b
}

func fragment(b []byte, last bool) []byte {
	mark := uint32(len(b))
	if last {
		mark |= rpc.LastFragment
	}
	return append(binary.BigEndian.AppendUint32(nil, mark), b...)
}

// result decodes a reply that must be a success.
func result(t testing.TB, reply []byte, res interface{ Decode(*xdr.Reader) }) {
	t.Helper()
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		t.Fatal(err)
	}
	if res.Decode(&r); r.Err() != nil || r.Len() != 0 {
		t.Fatalf("results: %v, %d bytes left", r.Err(), r.Len())
	}
}

func TestRecords(t *testing.T) {
	s, _, file := newServer(t)
	getattr := call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: file})
	big := func(n int) []byte { return make([]byte, n) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, tt := range []struct {
		name    string
		input   []byte
		replies int
		err     error
	}{
		{"nothing", nil, 0, io.EOF},
		{"one call", calls(getattr), 1, io.EOF},
		{"many calls", bytes.Repeat(calls(getattr), 5000), 5000, io.EOF},
		{"end inside a mark", []byte{0x80, 0}, 0, io.EOF},
		{"end inside a call", calls(getattr)[:50], 0, io.EOF},
		{"two fragments", join(fragment(getattr[:33], false), fragment(getattr[33:], true)), 1, io.EOF},
		{"a fragment for every byte, one empty", join(func() (all []byte) {
			for n := range getattr {
				all = append(all, fragment(getattr[n:n+1], false)...)
			}
			return append(all, fragment(nil, true)...)
		}(), calls(getattr)), 2, io.EOF},
		{"empty fragments for ever", bytes.Repeat(fragment(nil, false), 1<<20), 0, errRecord},
		{"empty record", calls(nil, getattr), 0, xdr.ErrShort},
		{"first record of more than 64 KiB", fragment(big(firstRecord+1), true), 0, errRecord},
		{"the same in fragments", join(fragment(big(firstRecord), false), fragment(big(1), true)), 0, errRecord},
		{"later record of more than the limit", join(calls(getattr), fragment(big(DefaultMaxIO+overhead+1), true)), 1, errRecord},
		{"mark of 2 GiB", []byte{0xff, 0xff, 0xff, 0xff}, 0, errRecord},
		{"a reply", calls(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, 1)), 0, xdr.ErrShort},
		{"no RPC", []byte("GET / HTTP/1.1\r\n\r\n"), 0, errRecord},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, reader := range map[string]func(io.Reader) io.Reader{
				"at once":      func(r io.Reader) io.Reader { return r },
				"by halves":    iotest.HalfReader,
				"byte by byte": iotest.OneByteReader,
			} {
				if how == "byte by byte" && len(tt.input) > 100<<10 {
					continue
				}
				replies, err := converse(t, s, reader(bytes.NewReader(tt.input)))
				if len(replies) != tt.replies || !errors.Is(err, tt.err) {
					t.Errorf("%s: %d replies and %v, want %d and %v", how, len(replies), err, tt.replies, tt.err)
				}
				for _, rec := range replies {
					var res nfs3.GetAttrRes
					if result(t, rec, &res); res.Status != nfs3.OK {
						t.Errorf("%s: %v", how, res.Status)
					}
				}
			}
		})
	}
}

// Large writes arrive whole however they are cut into segments and fragments,
// aligned or not, alone or in a row, with small calls between.
func TestLargeWrites(t *testing.T) {
	s, _, file := newServer(t)
	getattr := call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: file})
	pattern := make([]byte, 1<<20)
	for n := range pattern {
		pattern[n] = byte(n*7 + n>>8)
	}
	for _, tt := range []struct {
		name      string
		off       uint64
		size      int
		fragments int
	}{
		{"64 KiB", 0, 64 << 10, 1},
		{"1 MiB", 1 << 20, 1 << 20, 1},
		{"256 KiB in fragments", 0, 256 << 10, 3},
		{"192 KiB", 64 << 10, 192 << 10, 1},
		{"256 KiB, not aligned", 4096, 256 << 10, 1},
		{"not a multiple of 64 KiB", 0, 256<<10 - 3, 1},
		{"65,537 bytes", 0, 64<<10 + 1, 1},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r },
			"in small pieces": func(r io.Reader) io.Reader {
				return readerFunc(func(b []byte) (int, error) { return r.Read(b[:min(len(b), 5000)]) })
			},
		} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				data := pattern[:tt.size]
				write := call3(rpc.ProgramNFS, nfs3.ProcWrite, &nfs3.WriteArgs{FH: file, Offset: tt.off, Count: uint32(tt.size), Data: data})
				input := calls(getattr)
				step := (len(write) + tt.fragments - 1) / tt.fragments
				for range 3 {
					for at := 0; at < len(write); at += step {
						end := min(at+step, len(write))
						input = append(input, fragment(write[at:end], end == len(write))...)
					}
					input = append(input, calls(getattr)...)
				}
				read := nfs3.ReadArgs{FH: file, Offset: tt.off, Count: uint32(tt.size)}
				input = append(input, calls(call3(rpc.ProgramNFS, nfs3.ProcRead, &read), getattr)...)
				replies, err := converse(t, s, reader(bytes.NewReader(input)))
				if len(replies) != 9 || err != io.EOF {
					t.Fatalf("%d replies, %v", len(replies), err)
				}
				for n := range 3 {
					var w nfs3.WriteRes
					if result(t, replies[1+2*n], &w); w.Status != nfs3.OK || int(w.Count) != tt.size {
						t.Fatalf("write: %v, %d bytes", w.Status, w.Count)
					}
				}
				var r nfs3.ReadRes
				if result(t, replies[7], &r); r.Status != nfs3.OK || !bytes.Equal(r.Data, data) {
					t.Fatalf("read: %v, %d bytes", r.Status, r.Count)
				}
			})
		}
	}
	if free := s.large.Free(); free != s.works.Free() {
		t.Errorf("memory is missing: %d and %d bytes free", free, s.works.Free())
	}
}

// The same by compounds, with what clients send behind a WRITE.
func TestLargeCompounds(t *testing.T) {
	s, root, _ := newServer(t)
	c := open4(t, s, "large", 1)
	var open nfs4.OpenRes
	var file nfs4.FH
	c.must(nfs4.OK, putFH(root), creating("large", nfs4.Unchecked, 0, &open), getFH(&file))
	file.FH = bytes.Clone(file.FH)
	write := func(off uint64, data []byte) op {
		return op{nfs4.OpWrite, &nfs4.WriteArgs{Stateid: open.Stateid, Offset: off, Data: data}, new(nfs4.WriteRes)}
	}
	data := make([]byte, 256<<10)
	for n := range data {
		data[n] = byte(n*5 + n>>8)
	}
	seek := op{nfs4.OpSeek, &nfs4.SeekArgs{What: nfs4.SeekHole}, new(nfs4.SeekRes)}
	var many []op
	for range 20 {
		many = append(many, seek)
	}
	for _, tt := range []struct {
		name  string
		ops   []op
		fresh int // bytes that are received into pages
	}{
		{"WRITE", []op{putFH(file.FH), write(0, data)}, len(data)},
		{"WRITE, GETATTR", []op{putFH(file.FH), write(0, data), getAttr(new(nfs4.Fattr), nfs4.AttrSize)}, len(data)},
		{"two", []op{putFH(file.FH), write(1<<20, data), write(2<<20, data[:100])}, len(data)},
		{"two large", []op{putFH(file.FH), write(1<<20, data), write(2<<20, data)}, 0},
		{"much behind it", append([]op{putFH(file.FH), write(0, data)}, many...), len(data)},
		{"too much behind it", append(append([]op{putFH(file.FH), write(0, data)}, many...), many...), 0},
		{"not the first on the file", []op{putFH(root), lookup("large"), write(0, data)}, 0},
		{"not aligned", []op{putFH(file.FH), write(4096, data)}, 0},
		{"not whole pages", []op{putFH(file.FH), write(0, data[:len(data)-3])}, 0},
		{"a folder", []op{putFH(root), write(0, data)}, 0},
	} {
		for how, size := range map[string]int{"at once": 1 << 30, "in small pieces": 5000, "cut in the middle": 128 << 10} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				c.seq++
				ops := append([]op{c.sequence(false)}, tt.ops...)
				rec := call4(1, nfs4.Minor2, ops...)
				k := &call{c: &conn{s: s, peer: export.NewPeer(&script{})}}
				if i, off, n, tail := k.freshWrite(rec[:1000], len(rec)); n != tt.fresh || n > 0 && (i == nil || off%(1<<20) != 0 || tail > maxTail) {
					t.Errorf("%d bytes at %d of %v go into pages, want %d; %d behind them", n, off, i, tt.fresh, tail)
				}
				want := nfs4.OK
				if tt.name == "a folder" {
					want = nfs4.ErrIsDir
				}
				small := call4(2, nfs4.Minor2, op{nfs4.OpExchangeID, &nfs4.ExchangeIDArgs{Owner: []byte("other")}, nil})
				input := slices.Concat(calls(small, rec, small))
				r := bytes.NewReader(input)
				replies, err := converse(t, s, readerFunc(func(b []byte) (int, error) { return r.Read(b[:min(len(b), size)]) }))
				if len(replies) != 3 {
					t.Fatalf("%d replies, %v", len(replies), err)
				}
				if status, _ := results4(t, replies[1], ops...); status != want {
					t.Fatal(status)
				}
				for _, o := range tt.ops {
					a, is := o.args.(*nfs4.WriteArgs)
					if !is || want != nfs4.OK {
						continue
					}
					i, err := s.cfg.Exports.All()[0].Root.Lookup(memstore.Root(), "large")
					if err != nil {
						t.Fatal(err)
					}
					got := make([]byte, len(a.Data))
					n, _, _, err := i.ReadAt(memstore.Root(), nil, got, int64(a.Offset))
					if err != nil || !bytes.Equal(got[:n], a.Data) {
						t.Errorf("%d bytes at %d are not what was written; %v", n, a.Offset, err)
					}
					if _, _, err := i.WriteAt(memstore.Root(), nil, make([]byte, len(got)), int64(a.Offset)); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
	if free := s.large.Free(); free != s.works.Free() {
		t.Errorf("memory is missing: %d and %d bytes free", free, s.works.Free())
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A WRITE that breaks off shows nothing.
func TestBrokenWrite(t *testing.T) {
	s, _, file := newServer(t)
	getattr := call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: file})
	for _, off := range []uint64{0, 100} { // into pages, and into a buffer
		write := call3(rpc.ProgramNFS, nfs3.ProcWrite, &nfs3.WriteArgs{FH: file, Offset: off, Count: 1 << 20, Data: make([]byte, 1<<20)})
		for _, cut := range []int{60, 200, 1000, 100_000, 1 << 20} {
			input := append(calls(getattr), fragment(write, true)[:cut]...)
			if replies, _ := converse(t, s, bytes.NewReader(input)); len(replies) != 1 {
				t.Fatalf("cut at %d: %d replies", cut, len(replies))
			}
		}
	}
	replies, _ := converse(t, s, bytes.NewReader(calls(getattr)))
	var res nfs3.GetAttrRes
	if result(t, replies[0], &res); res.Attr.Size != 0 || res.Attr.Used != 0 {
		t.Fatalf("the file has %d bytes and uses %d", res.Attr.Size, res.Attr.Used)
	}
}

// Answers of the message layer, RFC 5531 section 9.
func TestRPC(t *testing.T) {
	s, _, file := newServer(t)
	header := func(change func(*rpc.Call)) []byte {
		h := rpc.Call{XID: 7, Program: rpc.ProgramNFS, Version: 3, Cred: rpc.Cred{Flavor: rpc.AuthSys}}
		change(&h)
		var w xdr.Writer
		h.Encode(&w)
		return w.B
	}
	patch := func(at int, v uint32) []byte {
		b := header(func(*rpc.Call) {})
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	for _, tt := range []struct {
		name string
		call []byte
		want error
	}{
		{"NULL", header(func(*rpc.Call) {}), nil},
		{"NULL by AUTH_NONE", header(func(h *rpc.Call) { h.Cred = rpc.Cred{} }), nil},
		{"MOUNT 1 NULL", header(func(h *rpc.Call) { h.Program, h.Version = rpc.ProgramMount, 1 }), nil},
		{"MOUNT 3 NULL", header(func(h *rpc.Call) { h.Program = rpc.ProgramMount }), nil},
		{"another RPC version", patch(8, 3), &rpc.MismatchError{RPC: true, Low: 2, High: 2}},
		{"NFS 5", header(func(h *rpc.Call) { h.Version = 5; h.Procedure = 1 }), &rpc.MismatchError{Low: 3, High: 4}},
		{"NFS 2", header(func(h *rpc.Call) { h.Version = 2 }), &rpc.MismatchError{Low: 3, High: 4}},
		{"MOUNT 2", header(func(h *rpc.Call) { h.Program, h.Version = rpc.ProgramMount, 2 }), &rpc.MismatchError{Low: 1, High: 3}},
		{"MOUNT 4", header(func(h *rpc.Call) { h.Program, h.Version = rpc.ProgramMount, 4 }), &rpc.MismatchError{Low: 1, High: 3}},
		{"another program", header(func(h *rpc.Call) { h.Program = 100099 }), rpc.ProgUnavail},
		{"procedure 22", header(func(h *rpc.Call) { h.Procedure = 22 }), rpc.ProcUnavail},
		{"MOUNT 3 has no EXPORTALL", header(func(h *rpc.Call) { h.Program, h.Procedure = rpc.ProgramMount, 6 }), rpc.ProcUnavail},
		{"no arguments", header(func(h *rpc.Call) { h.Procedure = nfs3.ProcGetAttr }), rpc.GarbageArgs},
		{"handle of 65 bytes", call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: make([]byte, 65)}), rpc.GarbageArgs},
		{"more bytes to write than there are", call3(rpc.ProgramNFS, nfs3.ProcWrite, &nfs3.WriteArgs{FH: file, Count: 2, Data: []byte("x")}), rpc.GarbageArgs},
		{"RPCSEC_GSS", patch(24, 6), rpc.AuthRejectedCred},
		{"broken AUTH_SYS", call3(rpc.ProgramNFS, 0, nil)[:28:28], nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "broken AUTH_SYS" {
				// A body of four bytes where twenty are the least.
				tt.call = binary.BigEndian.AppendUint32(tt.call, 4)
				tt.call = append(tt.call, make([]byte, 12)...)
				tt.want = rpc.AuthBadCred
			}
			replies, _ := converse(t, s, bytes.NewReader(calls(tt.call)))
			if len(replies) != 1 {
				t.Fatalf("%d replies", len(replies))
			}
			r := xdr.NewReader(replies[0])
			xid, err := rpc.DecodeReply(&r)
			if xid != binary.BigEndian.Uint32(tt.call) {
				t.Errorf("xid %d", xid)
			}
			var got, want *rpc.MismatchError
			if errors.As(err, &got) && errors.As(tt.want, &want) {
				if *got != *want {
					t.Errorf("got %v, want %v", got, want)
				}
			} else if err != tt.want {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// hotCalls are calls that clients make all the time.
func hotCalls(root, file []byte) map[string][]byte {
	return map[string][]byte{
		"NULL":        call3(rpc.ProgramNFS, nfs3.ProcNull, nil),
		"GETATTR":     call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: file}),
		"LOOKUP":      call3(rpc.ProgramNFS, nfs3.ProcLookup, &nfs3.DirOp{Dir: root, Name: "f"}),
		"LOOKUP miss": call3(rpc.ProgramNFS, nfs3.ProcLookup, &nfs3.DirOp{Dir: root, Name: "g"}),
		"ACCESS":      call3(rpc.ProgramNFS, nfs3.ProcAccess, &nfs3.AccessArgs{FH: file, Access: 63}),
		"WRITE 4 KiB": call3(rpc.ProgramNFS, nfs3.ProcWrite, &nfs3.WriteArgs{FH: file, Count: 4096, Data: make([]byte, 4096)}),
		"READ 4 KiB":  call3(rpc.ProgramNFS, nfs3.ProcRead, &nfs3.ReadArgs{FH: file, Count: 4096}),
		"COMMIT":      call3(rpc.ProgramNFS, nfs3.ProcCommit, &nfs3.CommitArgs{FH: file}),
		"FSSTAT":      call3(rpc.ProgramNFS, nfs3.ProcFSStat, &nfs3.FHArgs{FH: file}),
		"READDIRPLUS": call3(rpc.ProgramNFS, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{FH: root, DirCount: 4096, MaxCount: 32768}),
	}
}

// hotCompounds are compounds in a session that clients make all the time.
func hotCompounds(c *client4Test, root, file []byte) map[string][]byte {
	compound := func(ops ...op) []byte { return call4(1, nfs4.Minor2, append([]op{c.sequence(false)}, ops...)...) }
	var open nfs4.OpenRes
	c.must(nfs4.OK, putFH(root), creating("open", nfs4.Unchecked, 0, &open), write4(nfs4.CurrentStateid, string(make([]byte, 4096))))
	stat := nfs4.Bits(nfs4.AttrType, nfs4.AttrChange, nfs4.AttrSize, nfs4.AttrFSID, nfs4.AttrFileID, nfs4.AttrMode, nfs4.AttrNumLinks,
		nfs4.AttrOwner, nfs4.AttrOwnerGroup, nfs4.AttrRawDev, nfs4.AttrSpaceUsed, nfs4.AttrTimeAccess, nfs4.AttrTimeMetadata,
		nfs4.AttrTimeModify, nfs4.AttrMountedOnFileID)
	attrs := op{nfs4.OpGetAttr, &nfs4.GetAttrArgs{Mask: stat}, nil}
	return map[string][]byte{
		"4 SEQUENCE":    compound(),
		"4 GETATTR":     compound(putFH(file), attrs),
		"4 LOOKUP":      compound(putFH(root), lookup("f"), getFH(nil), attrs),
		"4 ACCESS":      compound(putFH(file), access(0x1f, nil), attrs),
		"4 WRITE 4 KiB": compound(putRootFH(), lookup("open"), op{nfs4.OpWrite, &nfs4.WriteArgs{Stateid: open.Stateid, Data: make([]byte, 4096)}, nil}),
		"4 READ 4 KiB":  compound(putRootFH(), lookup("open"), op{nfs4.OpRead, &nfs4.ReadArgs{Stateid: open.Stateid, Count: 4096}, nil}),
		"4 READDIR":     compound(putFH(root), op{nfs4.OpReadDir, &nfs4.ReadDirArgs{DirCount: 4096, MaxCount: 32768, Mask: stat}, nil}),
	}
}

// hotCompounds40 are compounds of minor version 0.
func hotCompounds40(c *client40Test, file []byte) map[string][]byte {
	sid := c.open("o", "open")
	compound := func(ops ...op) []byte { return call4(1, nfs4.Minor0, ops...) }
	return map[string][]byte{
		"4.0 RENEW":       compound(renew(c.id)),
		"4.0 GETATTR":     compound(putFH(file), getAttr(nil, nfs4.AttrType, nfs4.AttrChange, nfs4.AttrSize, nfs4.AttrOwner)),
		"4.0 WRITE 4 KiB": compound(putRootFH(), lookup("open"), op{nfs4.OpWrite, &nfs4.WriteArgs{Stateid: sid, Data: make([]byte, 4096)}, nil}),
		"4.0 READ 4 KiB":  compound(putRootFH(), lookup("open"), op{nfs4.OpRead, &nfs4.ReadArgs{Stateid: sid, Count: 4096}, nil}),
	}
}

// eachHotCall runs a function that is given how to have a call answered.
func eachHotCall(t testing.TB, run func(name string, answer func())) {
	s, root, file := newServer(t)
	c := &conn{s: s, Link: link.Link{Conn: &script{}}}
	if err := c.takeWork(true); err != nil {
		t.Fatal(err)
	}
	defer c.giveWork()
	answer := func(rec []byte) {
		c.work.w.B = c.work.out[:0]
		if err := c.work.call.serve(rec); err != nil {
			t.Fatal(err)
		}
	}
	calls := hotCalls(root, file)
	answer(calls["WRITE 4 KiB"]) // what READ finds
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		rec := calls[name]
		run(name, func() { answer(rec) })
	}
	sess := open4(t, s, "hot", 1)
	calls = hotCompounds(sess, root, file)
	at := len(call4(1, nfs4.Minor2)) + 4 + len(sess.sess) // of the number in SEQUENCE
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		rec := calls[name]
		run(name, func() {
			sess.seq++
			binary.BigEndian.PutUint32(rec[at:], sess.seq)
			if answer(rec); c.work.call.failed {
				t.Fatalf("%s: %v", name, c.work.call.m.status)
			}
		})
	}
	calls = hotCompounds40(open40(t, s, "hot", 1), file)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		rec, xid := calls[name], uint32(0)
		run(name, func() {
			xid++
			binary.BigEndian.PutUint32(rec, xid)
			if answer(rec); c.work.call.failed {
				t.Fatalf("%s: %v", name, c.work.call.m.status)
			}
		})
	}
}

// The hot calls allocate nothing.
func TestAllocations(t *testing.T) {
	eachHotCall(t, func(name string, answer func()) {
		if n := testing.AllocsPerRun(100, answer); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	})
}

// BenchmarkServe is a call from its record to its reply, without the socket.
func BenchmarkServe(b *testing.B) {
	eachHotCall(b, func(name string, answer func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				answer()
			}
		})
	})
}
