package nfs

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// everyCall is one call of each procedure.
func everyCall(root, file []byte) [][]byte {
	dir := func(name string) nfs3.DirOp { return nfs3.DirOp{Dir: root, Name: name} }
	d := dir("f")
	sattr := nfs3.Sattr{SetMode: true, Mode: 0o644, SetUID: true, UID: 1, SetGID: true, GID: 2, SetSize: true, Size: 3,
		AtimeHow: nfs3.SetToClientTime, MtimeHow: nfs3.SetToServerTime}
	list := [][]byte{
		call3(rpc.ProgramMount, nfs3.MountProcMnt, &nfs3.MountPath{Path: "/ramdisk"}),
		call3(rpc.ProgramMount, nfs3.MountProcDump, nil),
		call3(rpc.ProgramMount, nfs3.MountProcUmnt, &nfs3.MountPath{Path: "/ramdisk"}),
		call3(rpc.ProgramMount, nfs3.MountProcUmntAll, nil),
		call3(rpc.ProgramMount, nfs3.MountProcExport, nil),
	}
	for proc, args := range map[uint32]encoder{
		nfs3.ProcNull:        nil,
		nfs3.ProcGetAttr:     &nfs3.FHArgs{FH: file},
		nfs3.ProcSetAttr:     &nfs3.SetAttrArgs{FH: file, Attr: sattr, Check: true},
		nfs3.ProcLookup:      &d,
		nfs3.ProcAccess:      &nfs3.AccessArgs{FH: file, Access: 63},
		nfs3.ProcReadLink:    &nfs3.FHArgs{FH: file},
		nfs3.ProcRead:        &nfs3.ReadArgs{FH: file, Offset: 1, Count: 100},
		nfs3.ProcWrite:       &nfs3.WriteArgs{FH: file, Offset: 1, Count: 5, Data: []byte("hello")},
		nfs3.ProcCreate:      &nfs3.CreateArgs{Where: dir("g"), Mode: nfs3.Unchecked, Attr: sattr},
		nfs3.ProcMkdir:       &nfs3.MkdirArgs{Where: dir("d"), Attr: sattr},
		nfs3.ProcSymlink:     &nfs3.SymlinkArgs{Where: dir("s"), Target: "target"},
		nfs3.ProcMknod:       &nfs3.MknodArgs{Where: dir("m"), Type: nfs3.TypeBlk, Major: 1, Minor: 2},
		nfs3.ProcRemove:      &d,
		nfs3.ProcRmdir:       &d,
		nfs3.ProcRename:      &nfs3.RenameArgs{From: dir("f"), To: dir("h")},
		nfs3.ProcLink:        &nfs3.LinkArgs{FH: file, Link: dir("l")},
		nfs3.ProcReadDir:     &nfs3.ReadDirArgs{FH: root, Count: 1000},
		nfs3.ProcReadDirPlus: &nfs3.ReadDirPlusArgs{FH: root, DirCount: 100, MaxCount: 1000},
		nfs3.ProcFSStat:      &nfs3.FHArgs{FH: root},
		nfs3.ProcFSInfo:      &nfs3.FHArgs{FH: root},
		nfs3.ProcPathConf:    &nfs3.FHArgs{FH: root},
		nfs3.ProcCommit:      &nfs3.CommitArgs{FH: file, Count: 9},
	} {
		list = append(list, call3(rpc.ProgramNFS, proc, args))
	}
	lock := nfs3.NLMLock{Caller: "host", FH: file, Owner: []byte("owner"), SVID: 1, Off: 2, Len: 3}
	share := nfs3.NLMShareArgs{Caller: "host", FH: file, Owner: []byte("owner"), Access: 1, Deny: 2}
	for _, c := range []struct {
		program, version, proc uint32
		args                   encoder
	}{
		{rpc.ProgramNLM, 4, nfs3.NLMProcTest, &nfs3.NLMTestArgs{Lock: lock}},
		{rpc.ProgramNLM, 4, nfs3.NLMProcLock, &nfs3.NLMLockArgs{Lock: lock, Block: true, Exclusive: true, State: 1}},
		{rpc.ProgramNLM, 4, nfs3.NLMProcCancel, &nfs3.NLMCancelArgs{Lock: lock}},
		{rpc.ProgramNLM, 4, nfs3.NLMProcUnlock, &nfs3.NLMUnlockArgs{Lock: lock}},
		{rpc.ProgramNLM, 4, nfs3.NLMProcGranted, &nfs3.NLMTestArgs{Lock: lock}},
		{rpc.ProgramNLM, 4, nfs3.NLMProcShare, &share},
		{rpc.ProgramNLM, 4, nfs3.NLMProcUnshare, &share},
		{rpc.ProgramNLM, 4, nfs3.NLMProcFreeAll, &nfs3.NLMNotify{Name: "host"}},
		{rpc.ProgramStatus, 1, nfs3.NSMProcStat, &nfs3.NSMName{Name: "host"}},
		{rpc.ProgramStatus, 1, nfs3.NSMProcNotify, &nfs3.NSMNotify{Name: "host", State: 3}},
	} {
		list = append(list, callOf(c.program, c.version, c.proc, c.args))
	}
	return list
}

// Whatever a client sends, every reply is a record and no call panics.
func FuzzConversation(f *testing.F) {
	st, err := memstore.New(memstore.Config{Name: "fuzz", Size: 8 << 20, RootMode: 0o1777})
	if err != nil {
		f.Fatal(err)
	}
	s, err := NewServer(Config{Exports: newTable(f, exportOf(st, "ramdisk")), Trace: true,
		Log: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Shutdown(context.Background()) })
	e := s.cfg.Exports.All()[0]
	var root, file [handleSize]byte
	s.mask.put(&root, e, st.Root())
	// Generations are random: this stands for the file's handle in the input.
	name := bytes.Repeat([]byte("f"), handleSize)
	seeds := everyCall(root[:], name)
	for _, c := range seeds {
		f.Add(calls(c))
		f.Add(bytes.Join([][]byte{fragment(c[:20], false), fragment(nil, false), fragment(c[20:], true)}, nil))
	}
	f.Add(calls(seeds...))
	f.Add(calls(call3(rpc.ProgramNFS, nfs3.ProcWrite, &nfs3.WriteArgs{FH: name, Count: 128 << 10, Data: make([]byte, 128<<10)})))
	f.Fuzz(func(t *testing.T, input []byte) {
		made, err := st.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile, Exist: memstore.ExistOpen})
		if err != nil {
			t.Skip("the input before this one has left no room: ", err)
		}
		s.mask.put(&file, e, made.Inode)
		converse(t, s, bytes.NewReader(bytes.ReplaceAll(input, name, file[:])))
		if err := st.Check(); err != nil {
			t.Fatal(err)
		}
		if s.works.Free() != s.half || s.large.Free() != s.half {
			t.Fatal("memory is missing")
		}
	})
}

// A server that is sent anything goes on serving others.
func FuzzLive(f *testing.F) {
	r := start(f, nil)
	fh := r.create("f")
	for _, c := range everyCall(r.root, fh) {
		f.Add(calls(c))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		// A good call first lets large records in.
		if _, err := c.Write(append(calls(call3(rpc.ProgramNFS, nfs3.ProcNull, nil)), input...)); err != nil {
			t.Log(err)
		}
		c.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
			t.Fatal("the connection hangs")
		}
		if err := r.one.Null(); err != nil {
			t.Fatal(err)
		}
		if n := r.s.Stats().Panics; n != 0 {
			t.Fatalf("%d calls failed", n)
		}
	})
}
