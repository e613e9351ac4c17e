package nfs

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"testing"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// Whatever follows SEQUENCE, no operation panics, the store stays whole, and the
// session goes on. The fuzzed operations begin behind the number of the first.
func FuzzCompound(f *testing.F) {
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
	sid := nfs4.CurrentStateid
	file := []op{putRootFH(), creating("f", nfs4.Unchecked, 0, nil)}
	for _, o := range []op{
		getFH(nil), saveFH(), lookup("f"), lookupP(), closing(sid), write4(sid, "data"), read4(sid, nil),
		getAttr(nil, nfs4.AttrSize, nfs4.AttrFileHandle, nfs4.AttrOwner),
		{nfs4.OpAccess, &nfs4.AccessArgs{Access: 63}, nil},
		{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockWrite, Length: 10, NewOwner: true, Stateid: sid, Owner: nfs4.Owner{Owner: []byte("l")}}, nil},
		{nfs4.OpLockT, &nfs4.LockTArgs{Type: nfs4.LockRead, Length: 10, Owner: nfs4.Owner{Owner: []byte("l")}}, nil},
		{nfs4.OpLockU, &nfs4.LockUArgs{Type: nfs4.LockRead, Length: 10, Stateid: sid}, nil},
		{nfs4.OpOpenDowngrade, &nfs4.OpenDowngradeArgs{Stateid: sid, Access: nfs4.ShareRead}, nil},
		{nfs4.OpReadDir, &nfs4.ReadDirArgs{DirCount: 100, MaxCount: 1000, Mask: nfs4.Bits(nfs4.AttrType, nfs4.AttrRdAttrError)}, nil},
		{nfs4.OpCreate, &nfs4.CreateArgs{Type: nfs4.TypeLnk, Target: "t", Name: "l"}, nil},
		{nfs4.OpRemove, &nfs4.Name{Name: "f"}, nil},
		{nfs4.OpRename, &nfs4.RenameArgs{From: "f", To: "g"}, nil},
		{nfs4.OpSetAttr, &nfs4.SetAttrArgs{Stateid: sid, Attr: nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: make([]byte, 8)}}, nil},
		{nfs4.OpAllocate, &nfs4.RangeArgs{Stateid: sid, Length: 100}, nil},
		{nfs4.OpDeallocate, &nfs4.RangeArgs{Stateid: sid, Length: 100}, nil},
		{nfs4.OpSeek, &nfs4.SeekArgs{Stateid: sid}, nil},
		{nfs4.OpSetXattr, &nfs4.SetXattrArgs{Name: "x", Value: []byte("v")}, nil},
		{nfs4.OpGetXattr, &nfs4.Name{Name: "x"}, nil},
		{nfs4.OpListXattrs, &nfs4.ListXattrsArgs{MaxCount: 100}, nil},
		{nfs4.OpSecInfo, &nfs4.Name{Name: "f"}, nil},
		{nfs4.OpFreeStateid, &nfs4.StateidArgs{Stateid: sid}, nil},
		{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: 1}, nil},
	} {
		all := append(file, o)
		f.Add(uint8(nfs4.Minor2), uint8(len(all)), call4(0, 0, all...)[len(call4(0, 0)):])
	}
	copies := []op{putRootFH(), creating("f", nfs4.Unchecked, 0, nil), saveFH(), {nfs4.OpClone, &nfs4.CloneArgs{From: sid, To: sid, ToOffset: 100}, nil},
		{nfs4.OpCopy, &nfs4.CopyArgs{CloneArgs: nfs4.CloneArgs{From: sid, To: sid, ToOffset: 1000, Count: 10}}, nil}}
	f.Add(uint8(nfs4.Minor2), uint8(len(copies)), call4(0, 0, copies...)[len(call4(0, 0)):])

	f.Fuzz(func(t *testing.T, minor, count uint8, input []byte) {
		c := open4(t, s, "fuzz", 1)
		c.seq++
		call := call4(1, uint32(minor), c.sequence(true))
		// The number of operations stands before the first of them.
		at := len(call4(1, 0)) - 1
		call[at] = 1 + count
		_, err := converse(t, s, bytes.NewReader(calls(append(call, input...))))
		if err != nil && err != io.EOF {
			t.Log(err)
		}
		if err := st.Check(); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats().Panics; n != 0 {
			t.Fatalf("%d calls failed", n)
		}
		if s.works.unused() != s.half || s.large.unused() != s.half {
			t.Fatal("memory is missing")
		}
		c = open4(t, s, "fuzz", 2) // starts anew, and holds nothing
		c.must(nfs4.OK, op{nfs4.OpDestroySession, &c.sess, nil})
	})
}
