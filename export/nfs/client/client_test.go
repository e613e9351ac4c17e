package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// serve runs a server of one connection on loopback and returns a client of it.
// answer is given the body of each record in turn and returns bytes to send,
// record marks included.
func serve(t *testing.T, o Options, answer func(call rpc.Call, args *xdr.Reader) []byte) *Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			rec, err := ReadRecord(conn)
			if err != nil {
				return
			}
			r := xdr.NewReader(rec)
			var call rpc.Call
			if err := call.Decode(&r); err != nil {
				t.Errorf("header of a call: %v", err)
				return
			}
			if _, err := conn.Write(answer(call, &r)); err != nil {
				return
			}
		}
	}()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	c, err := Dial(context.Background(), l.Addr().String(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		l.Close()
		<-ended
	})
	return c
}

// record is a successful reply with the given results.
func record(xid uint32, res interface{ Encode(*xdr.Writer) }) []byte {
	var w xdr.Writer
	at := rpc.BeginRecord(&w)
	rpc.Accepted(&w, xid, rpc.Success)
	if res != nil {
		res.Encode(&w)
	}
	rpc.EndRecord(&w, at, 0)
	return w.B
}

// Every procedure: the number and the arguments that reach the server, and the
// results that come back.
func TestProcedures(t *testing.T) {
	fh, dir := []byte{1}, []byte{2}
	attr := nfs3.Fattr{Type: nfs3.TypeReg, Size: 9}
	mode := nfs3.Sattr{SetMode: true, Mode: 0o640}
	name := nfs3.DirOp{Dir: dir, Name: "n"}
	made := &nfs3.CreateRes{FH: nfs3.PostOpFH{Follows: true, FH: fh}}
	type encoder = interface{ Encode(*xdr.Writer) }
	const nfs, mnt = rpc.ProgramNFS, rpc.ProgramMount
	for _, c := range []struct {
		name          string
		program, proc uint32
		args, res     encoder
		call          func(c *Client) (any, error)
	}{
		{"NULL", nfs, 0, nil, nil, func(c *Client) (any, error) { return nil, c.Null() }},
		{"GETATTR", nfs, 1, &nfs3.FHArgs{FH: fh}, &nfs3.GetAttrRes{Attr: attr}, func(c *Client) (any, error) { return c.GetAttr(fh) }},
		{"SETATTR", nfs, 2, &nfs3.SetAttrArgs{FH: fh, Attr: mode}, &nfs3.WccRes{}, func(c *Client) (any, error) { return c.SetAttr(nfs3.SetAttrArgs{FH: fh, Attr: mode}) }},
		{"LOOKUP", nfs, 3, &name, &nfs3.LookupRes{FH: fh}, func(c *Client) (any, error) { return c.Lookup(dir, "n") }},
		{"ACCESS", nfs, 4, &nfs3.AccessArgs{FH: fh, Access: 63}, &nfs3.AccessRes{Access: 5}, func(c *Client) (any, error) { return c.Access(fh, 63) }},
		{"READLINK", nfs, 5, &nfs3.FHArgs{FH: fh}, &nfs3.ReadLinkRes{Target: "x"}, func(c *Client) (any, error) { return c.ReadLink(fh) }},
		{"READ", nfs, 6, &nfs3.ReadArgs{FH: fh, Offset: 7, Count: 8}, &nfs3.ReadRes{Count: 1, EOF: true, Data: []byte("d")}, func(c *Client) (any, error) { return c.Read(fh, 7, 8) }},
		{"WRITE", nfs, 7, &nfs3.WriteArgs{FH: fh, Offset: 7, Count: 1, Stable: nfs3.FileSync, Data: []byte("d")}, &nfs3.WriteRes{Count: 1}, func(c *Client) (any, error) { return c.Write(fh, 7, []byte("d"), nfs3.FileSync) }},
		{"CREATE", nfs, 8, &nfs3.CreateArgs{Where: name, Attr: mode}, made, func(c *Client) (any, error) { return c.Create(nfs3.CreateArgs{Where: name, Attr: mode}) }},
		{"MKDIR", nfs, 9, &nfs3.MkdirArgs{Where: name, Attr: mode}, made, func(c *Client) (any, error) { return c.Mkdir(dir, "n", mode) }},
		{"SYMLINK", nfs, 10, &nfs3.SymlinkArgs{Where: name, Attr: mode, Target: "x"}, made, func(c *Client) (any, error) { return c.Symlink(dir, "n", "x", mode) }},
		{"MKNOD", nfs, 11, &nfs3.MknodArgs{Where: name, Type: nfs3.TypeFIFO}, made, func(c *Client) (any, error) { return c.Mknod(nfs3.MknodArgs{Where: name, Type: nfs3.TypeFIFO}) }},
		{"REMOVE", nfs, 12, &name, &nfs3.WccRes{}, func(c *Client) (any, error) { return c.Remove(dir, "n") }},
		{"RMDIR", nfs, 13, &name, &nfs3.WccRes{}, func(c *Client) (any, error) { return c.Rmdir(dir, "n") }},
		{"RENAME", nfs, 14, &nfs3.RenameArgs{From: name, To: nfs3.DirOp{Dir: fh, Name: "m"}}, &nfs3.RenameRes{}, func(c *Client) (any, error) { return c.Rename(dir, "n", fh, "m") }},
		{"LINK", nfs, 15, &nfs3.LinkArgs{FH: fh, Link: name}, &nfs3.LinkRes{}, func(c *Client) (any, error) { return c.Link(fh, dir, "n") }},
		{"READDIR", nfs, 16, &nfs3.ReadDirArgs{FH: dir, Count: 9}, &nfs3.ReadDirRes{Entries: []nfs3.Entry{{FileID: 1, Name: "n", Cookie: 2}}}, func(c *Client) (any, error) { return c.ReadDir(nfs3.ReadDirArgs{FH: dir, Count: 9}) }},
		{"READDIRPLUS", nfs, 17, &nfs3.ReadDirPlusArgs{FH: dir, MaxCount: 9}, &nfs3.ReadDirPlusRes{EOF: true}, func(c *Client) (any, error) { return c.ReadDirPlus(nfs3.ReadDirPlusArgs{FH: dir, MaxCount: 9}) }},
		{"FSSTAT", nfs, 18, &nfs3.FHArgs{FH: fh}, &nfs3.FSStatRes{TotalBytes: 1}, func(c *Client) (any, error) { return c.FSStat(fh) }},
		{"FSINFO", nfs, 19, &nfs3.FHArgs{FH: fh}, &nfs3.FSInfoRes{ReadMax: 1}, func(c *Client) (any, error) { return c.FSInfo(fh) }},
		{"PATHCONF", nfs, 20, &nfs3.FHArgs{FH: fh}, &nfs3.PathConfRes{NameMax: 255}, func(c *Client) (any, error) { return c.PathConf(fh) }},
		{"COMMIT", nfs, 21, &nfs3.CommitArgs{FH: fh, Offset: 1, Count: 2}, &nfs3.CommitRes{Verf: 3}, func(c *Client) (any, error) { return c.Commit(fh, 1, 2) }},
		{"MNT", mnt, 1, &nfs3.MountPath{Path: "/"}, &nfs3.MountRes{FH: fh, Flavors: []uint32{1}}, func(c *Client) (any, error) { return c.Mount("/") }},
		{"DUMP", mnt, 2, nil, nfs3.MountList{{Host: "h", Path: "/"}}, func(c *Client) (any, error) { return c.Mounts() }},
		{"UMNT", mnt, 3, &nfs3.MountPath{Path: "/"}, nil, func(c *Client) (any, error) { return nil, c.Unmount("/") }},
		{"UMNTALL", mnt, 4, nil, nil, func(c *Client) (any, error) { return nil, c.UnmountAll() }},
		{"EXPORT", mnt, 5, nil, nfs3.ExportList{{Path: "/"}}, func(c *Client) (any, error) { return c.Exports() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got rpc.Call
			var args []byte
			cl := serve(t, Options{UID: 1000, GID: 100, Groups: []uint32{4}}, func(call rpc.Call, r *xdr.Reader) []byte {
				got, args = call, r.Rest()
				return record(call.XID, c.res)
			})
			res, err := c.call(cl)
			if err != nil {
				t.Fatal(err)
			}
			if got.Program != c.program || got.Version != 3 || got.Procedure != c.proc {
				t.Errorf("called program %d version %d procedure %d", got.Program, got.Version, got.Procedure)
			}
			if got.Cred.Flavor != rpc.AuthSys || got.Cred.UID != 1000 || got.Cred.GID != 100 || !slices.Equal(got.Cred.Groups(), []uint32{4}) {
				t.Errorf("credential %+v", got.Cred)
			}
			var want, back xdr.Writer
			if c.args != nil {
				c.args.Encode(&want)
			}
			if !bytes.Equal(args, want.B) {
				t.Errorf("arguments %x, want %x", args, want.B)
			}
			if res == nil {
				return
			}
			if attr, is := res.(nfs3.Fattr); is {
				res = nfs3.GetAttrRes{Attr: attr}
			}
			p := reflect.New(reflect.TypeOf(res)) // Encode is a method of the pointer
			p.Elem().Set(reflect.ValueOf(res))
			p.Interface().(encoder).Encode(&back)
			if want := record(0, c.res)[rpc.MarkSize+rpc.ReplySize:]; !bytes.Equal(back.B, want) {
				t.Errorf("results %x, want %x", back.B, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(xid uint32) []byte
		want   error
	}{
		{"status", func(xid uint32) []byte { return record(xid, &nfs3.GetAttrRes{Status: nfs3.ErrStale}) }, nfs3.ErrStale},
		{"accept status", func(xid uint32) []byte {
			b := record(xid, nil)
			b[len(b)-1] = byte(rpc.GarbageArgs)
			return b
		}, rpc.GarbageArgs},
		{"denied", func(xid uint32) []byte {
			var w xdr.Writer
			at := rpc.BeginRecord(&w)
			rpc.AuthError(&w, xid, rpc.AuthTooWeak)
			rpc.EndRecord(&w, at, 0)
			return w.B
		}, rpc.AuthTooWeak},
		{"another XID", func(xid uint32) []byte { return record(xid+1, nil) }, errXID},
		{"short", func(xid uint32) []byte { return record(xid, nil) }, xdr.ErrShort},
		{"nothing", func(uint32) []byte { return []byte{0x80, 0, 0, 0} }, errXID},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := serve(t, Options{}, func(call rpc.Call, _ *xdr.Reader) []byte { return c.answer(call.XID) })
			if _, err := cl.GetAttr([]byte{1}); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
	t.Run("bytes behind the results", func(t *testing.T) {
		cl := serve(t, Options{}, func(call rpc.Call, _ *xdr.Reader) []byte { return record(call.XID, &nfs3.GetAttrRes{}) })
		if err := cl.Null(); err == nil || !strings.Contains(err.Error(), "88 bytes behind") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a server that is silent", func(t *testing.T) {
		cl := serve(t, Options{Timeout: 20 * time.Millisecond}, func(rpc.Call, *xdr.Reader) []byte { return nil })
		var timeout net.Error
		if err := cl.Null(); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("error %v, want a time out", err)
		}
	})
	t.Run("17 groups", func(t *testing.T) {
		if _, err := New(nil, Options{Groups: make([]uint32, 17)}); err == nil {
			t.Error("no error")
		}
	})
}

func TestReadRecord(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		fails          bool
	}{
		{"one fragment", "\x80\x00\x00\x02ab", "ab", false},
		{"three fragments", "\x00\x00\x00\x01a\x00\x00\x00\x00\x80\x00\x00\x01b", "ab", false},
		{"cut short", "\x80\x00\x00\x02a", "", true},
		{"too large", "\x00\x00\x00\x01a\x81\x00\x00\x00", "", true},
		{"nothing", "", "", true},
	} {
		got, err := ReadRecord(strings.NewReader(c.in))
		if string(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestListAndWalk(t *testing.T) {
	cl := serve(t, Options{Anonymous: true}, func(call rpc.Call, r *xdr.Reader) []byte {
		if call.Cred.Flavor != rpc.AuthNone {
			t.Errorf("flavor %d", call.Cred.Flavor)
		}
		if call.Procedure == nfs3.ProcLookup {
			var a nfs3.DirOp
			a.Decode(r)
			return record(call.XID, &nfs3.LookupRes{FH: append(slices.Clone(a.Dir), a.Name...)})
		}
		var a nfs3.ReadDirPlusArgs
		a.Decode(r)
		res := nfs3.ReadDirPlusRes{EOF: a.Cookie == 2}
		if a.Cookie < 2 {
			res.Entries = []nfs3.EntryPlus{{Entry: nfs3.Entry{FileID: 1, Name: string(rune('a' + a.Cookie)), Cookie: a.Cookie + 1}}}
		}
		return record(call.XID, &res)
	})
	all, err := cl.List([]byte{1})
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("listed %+v, %v", all, err)
	}
	if fh, err := cl.Walk([]byte("/"), "//b/c/"); err != nil || string(fh) != "/bc" {
		t.Errorf("walked to %q, %v", fh, err)
	}
}

// echo answers every call with its argument, the number of the call, in front of
// n bytes, a batch at a time and each batch backwards.
func echo(conn net.Conn, depth, total, n int) error {
	r := io.Reader(conn)
	for done := 0; done < total; {
		var batch []byte
		k := min(depth, total-done)
		for range k {
			rec, err := ReadRecord(r)
			if err != nil {
				return err
			}
			var w xdr.Writer
			at := rpc.BeginRecord(&w)
			rpc.Accepted(&w, binary.BigEndian.Uint32(rec), rpc.Success)
			w.Fixed(rec[len(rec)-8:])
			w.Fixed(make([]byte, n))
			rpc.EndRecord(&w, at, 0)
			batch = append(w.B, batch...)
		}
		if _, err := conn.Write(batch); err != nil {
			return err
		}
		done += k
	}
	return nil
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name                string
		depth, total, reply int
		payload             int
	}{
		{"one", 1, 1, 0, 0},
		{"depth 1", 1, 100, 0, 0},
		{"depth 32", 32, 1000, 0, 0},
		{"fewer calls than depth", 32, 5, 0, 0},
		{"4 KiB replies", 32, 200, 4096, 0},
		{"replies of just 64 KiB", 4, 40, 64<<10 - rpc.ReplySize - 8, 0},
		{"replies past 64 KiB", 4, 40, 64 << 10, 0},
		{"replies past the input buffer", 4, 12, 300 << 10, 0},
		{"payloads", 4, 12, 0, 300 << 10},
		{"none", 8, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			served := make(chan error, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					served <- err
					return
				}
				defer conn.Close()
				served <- echo(conn, c.depth, c.total, c.reply)
			}()
			cl, err := Dial(context.Background(), l.Addr().String(), Options{Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()

			payload := make([]byte, c.payload)
			seen := make([]bool, c.total)
			err = cl.Run(c.depth, c.total, func(i int, w *xdr.Writer) []byte {
				cl.AppendCall(w, rpc.ProgramNFS, nfs3.Version, nfs3.ProcNull)
				if c.payload > 0 {
					binary.BigEndian.PutUint64(payload[len(payload)-8:], 7)
					return payload
				}
				w.Uint64(uint64(i))
				return nil
			}, func(i int, reply []byte) error {
				if want := min(rpc.ReplySize+8+c.reply, headSize); len(reply) < want {
					return fmt.Errorf("%d bytes of the reply, want %d at least", len(reply), want)
				}
				r := xdr.NewReader(reply)
				if _, err := rpc.DecodeReply(&r); err != nil {
					return err
				}
				want := uint64(i)
				if c.payload > 0 {
					want = 7
				}
				if got := r.Uint64(); got != want || seen[i] {
					return fmt.Errorf("answer %d, want %d; seen before: %v", got, want, seen[i])
				}
				seen[i] = true
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.Index(seen, false); i >= 0 {
				t.Errorf("no answer to call %d", i)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	run := func(cl *Client) error {
		return cl.Run(2, 4, func(_ int, w *xdr.Writer) []byte {
			cl.AppendCall(w, rpc.ProgramNFS, nfs3.Version, nfs3.ProcNull)
			return nil
		}, func(_ int, reply []byte) error {
			r := xdr.NewReader(reply)
			_, err := rpc.DecodeReply(&r)
			return err
		})
	}
	for name, answer := range map[string]func(xid uint32) []byte{
		"another XID":    func(xid uint32) []byte { return record(xid+100, nil) },
		"the same twice": func(xid uint32) []byte { return append(record(xid, nil), record(xid, nil)...) },
		"empty record":   func(uint32) []byte { return []byte{0x80, 0, 0, 0} },
		"several fragments": func(xid uint32) []byte {
			b := record(xid, nil)
			b[0] = 0
			return b
		},
		"too large": func(uint32) []byte { return []byte{0xff, 0, 0, 0} },
		"check fails": func(xid uint32) []byte {
			b := record(xid, nil)
			b[len(b)-1] = byte(rpc.SystemErr)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, Options{}, func(call rpc.Call, _ *xdr.Reader) []byte { return answer(call.XID) })
			if err := run(cl); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	const depth, calls = 32, 32 * 100
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.Copy(conn, conn)
	}()
	cl, err := Dial(context.Background(), l.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var w xdr.Writer
	rpc.Accepted(&w, 0, rpc.Success) // comes back as it is: a reply
	run := func() {
		if err := cl.Run(depth, calls, func(_ int, out *xdr.Writer) []byte {
			out.B = append(out.B, w.B...)
			return nil
		}, func(int, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n > 20 {
		t.Errorf("%v allocations for %d calls, want those of the run alone", n, calls)
	}
}
