package nfs

import (
	"bytes"
	"context"
	"encoding/binary"
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
		{nfs4.OpTestStateid, testStateids{sid}, nil},
		{nfs4.OpDelegReturn, &nfs4.StateidArgs{Stateid: sid}, nil},
		{nfs4.OpOpen, &nfs4.OpenArgs{Access: nfs4.ShareRead | nfs4.WantAnyDeleg, Claim: nfs4.ClaimDelegCurFH, Stateid: sid}, nil},
		{nfs4.OpBackchannelCtl, &nfs4.BackchannelCtlArgs{Program: 1, Sec: []nfs4.CBSec{{Flavor: nfs4.AuthSys, Machine: "m"}}}, nil},
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
		if s.works.Free() != s.half || s.large.Free() != s.half {
			t.Fatal("memory is missing")
		}
		c = open4(t, s, "fuzz", 2) // starts anew, and holds nothing
		c.must(nfs4.OK, op{nfs4.OpDestroySession, &c.sess, nil})
	})
}

// What stands in the fuzzed operations of minor version 0 for names that the
// server has given: of the client, and of what it has open and locked.
var (
	namedClient = nfs4.Owner{Client: 0xc1c1c1c1c1c1c1c1}
	namedOpen   = nfs4.Stateid{Seq: 2, Other: [12]byte(bytes.Repeat([]byte{0xc2}, 12))}
	namedLock   = nfs4.Stateid{Seq: 1, Other: [12]byte(bytes.Repeat([]byte{0xc3}, 12))}
)

// The same for minor version 0, whose operations name the client and what they
// are about by themselves.
func FuzzCompound40(f *testing.F) {
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
	owner := func(name string) nfs4.Owner { return nfs4.Owner{Client: namedClient.Client, Owner: []byte(name)} }
	for _, o := range []op{
		{nfs4.OpSetClientID, &nfs4.SetClientIDArgs{Verf: 1, ID: []byte("fuzz"), CBAddr: nfs4.ClientAddr{NetID: "tcp", Addr: "::1.1.1"}}, nil},
		confirmClientID(nfs4.ClientConfirm{ID: namedClient.Client, Verf: 1}),
		renew(namedClient.Client),
		{nfs4.OpOpen, &nfs4.OpenArgs{Seq: 4, Access: 3, Owner: owner("o"), Name: "f"}, nil},
		{nfs4.OpOpen, &nfs4.OpenArgs{Seq: 1, Access: 1, Deny: 2, Owner: owner("p"), Create: true, Mode: nfs4.Exclusive, Name: "g"}, nil},
		confirming(namedOpen, 4, nil),
		{nfs4.OpOpenDowngrade, &nfs4.OpenDowngradeArgs{Stateid: namedOpen, Seq: 4, Access: 1}, nil},
		closing40(namedOpen, 4),
		{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockWriteW, Length: 10, NewOwner: true, OpenSeq: 4, Stateid: namedOpen, LockSeq: 1, Owner: owner("q")}, nil},
		{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockRead, Length: 10, Stateid: namedLock, LockSeq: 2}, nil},
		{nfs4.OpLockT, &nfs4.LockTArgs{Type: nfs4.LockRead, Length: 10, Owner: owner("q")}, nil},
		{nfs4.OpLockU, &nfs4.LockUArgs{Type: nfs4.LockWrite, Seq: 2, Stateid: namedLock, Length: 1 << 20}, nil},
		{nfs4.OpReleaseLockOwner, &nfs4.Owner{Client: namedClient.Client, Owner: []byte("l")}, nil},
		read4(namedOpen, nil), write4(namedLock, "data"),
		{nfs4.OpSetAttr, &nfs4.SetAttrArgs{Stateid: namedOpen, Attr: nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: make([]byte, 8)}}, nil},
		{nfs4.OpSecInfo, &nfs4.Name{Name: "f"}, nil},
		{nfs4.OpDelegReturn, &nfs4.StateidArgs{Stateid: namedOpen}, nil},
	} {
		all := []op{putRootFH(), lookup("f"), o, o}
		if o.op == nfs4.OpOpen || o.op == nfs4.OpSecInfo {
			all[1] = putRootFH()
		}
		f.Add(uint8(len(all)), call4(0, 0, all...)[len(call4(0, 0)):])
	}
	xid := uint32(0)
	f.Fuzz(func(t *testing.T, count uint8, input []byte) {
		if _, err := st.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile, Exist: memstore.ExistOpen}); err != nil && err != memstore.ErrExist {
			t.Fatal(err)
		}
		xid += 100 // what was sent before is not meant
		c := &client40Test{t: t, s: s, xid: xid}
		c.begin("fuzz", uint64(xid))
		var res nfs4.OpenRes
		var sid, locked nfs4.StateidArgs
		// A file may be a directory by now, or in the fuzzer's hands.
		c.run(putRootFH(), c.opening("o", 1, "f", nfs4.ShareBoth, 0, &res))
		c.run(putRootFH(), lookup("f"), confirming(res.Stateid, 2, &sid))
		c.run(putRootFH(), lookup("f"), op{nfs4.OpLock, &nfs4.LockArgs{Type: nfs4.LockWrite, Length: 5, NewOwner: true, OpenSeq: 3,
			Stateid: sid.Stateid, Owner: nfs4.Owner{Client: c.id, Owner: []byte("l")}}, &locked})
		input = bytes.ReplaceAll(input, binary.BigEndian.AppendUint64(nil, namedClient.Client), binary.BigEndian.AppendUint64(nil, c.id))
		input = bytes.ReplaceAll(input, namedOpen.Other[:], sid.Stateid.Other[:])
		input = bytes.ReplaceAll(input, namedLock.Other[:], locked.Stateid.Other[:])
		call := call4(c.xid+1, nfs4.Minor0)
		binary.BigEndian.PutUint32(call[len(call)-4:], uint32(count))
		call = append(call, input...)
		if _, err := converse(t, s, bytes.NewReader(calls(call, call))); err != nil && err != io.EOF {
			t.Log(err)
		}
		if err := st.Check(); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats().Panics; n != 0 {
			t.Fatalf("%d calls failed", n)
		}
		if s.works.Free() != s.half || s.large.Free() != s.half {
			t.Fatal("memory is missing")
		}
		c.xid += 10
		c.begin("fuzz", uint64(xid)+1) // starts anew, and holds nothing
		if n := s.clients.count.Load(); n != 0 {
			t.Fatalf("%d states and owners are left", n)
		}
	})
}
