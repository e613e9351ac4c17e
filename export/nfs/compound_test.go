package nfs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"ramserver/export"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// op is one operation of a COMPOUND and what a test expects of it.
type op struct {
	op   nfs4.Op
	args encoder
	// res decodes the results of an operation that is to succeed.
	res interface{ Decode(*xdr.Reader) }
}

// call4 is a COMPOUND of a minor version, as root, without a record mark.
func call4(xid, minor uint32, ops ...op) []byte { return call4As(0, xid, minor, ops...) }

// call4As is call4 as a user, who is alone in a group.
func call4As(uid, xid, minor uint32, ops ...op) []byte {
	var w xdr.Writer
	h := rpc.Call{XID: xid, Program: rpc.ProgramNFS, Version: nfs4.Version, Procedure: nfs4.ProcCompound,
		Cred: rpc.Cred{Flavor: rpc.AuthSys, Machine: "test", UID: uid, GID: uid}}
	h.Encode(&w)
	head := nfs4.CompoundArgs{Tag: []byte("tag"), Minor: minor, Count: uint32(len(ops))}
	head.Encode(&w)
	for _, o := range ops {
		w.Uint32(uint32(o.op))
		if o.args != nil {
			o.args.Encode(&w)
		}
	}
	return w.B
}

// results4 decodes the reply to a COMPOUND of ops and returns its status and
// how many operations were answered.
func results4(t testing.TB, reply []byte, ops ...op) (status nfs4.Status, n int) {
	t.Helper()
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		t.Fatal(err)
	}
	var head nfs4.CompoundRes
	head.Decode(&r)
	if string(head.Tag) != "tag" {
		t.Fatalf("the tag is %q", head.Tag)
	}
	for i := range head.Count {
		var oh nfs4.OpHead
		oh.Decode(&r)
		want := nfs4.OK
		if i+1 == head.Count {
			want = head.Status
		}
		if oh.Status != want || oh.Op != ops[i].op && oh.Op != nfs4.OpIllegal {
			t.Fatalf("result %d is %v %v, want %v %v", i, oh.Op, oh.Status, ops[i].op, want)
		}
		switch {
		case oh.Status == nfs4.OK && ops[i].res != nil:
			ops[i].res.Decode(&r)
		case oh.Status == nfs4.ErrDenied:
			new(nfs4.LockDenied).Decode(&r)
		case oh.Status == nfs4.ErrClidInUse && oh.Op == nfs4.OpSetClientID:
			new(nfs4.ClientAddr).Decode(&r)
		case oh.Status != nfs4.OK && operationOf(oh.Op).flags&bitmapOnErr != 0:
			var none nfs4.Bitmap
			if none.Decode(&r); !none.Empty() {
				t.Fatalf("%v set %v in spite of %v", oh.Op, none, oh.Status)
			}
		}
	}
	if r.Err() != nil || r.Len() != 0 {
		t.Fatalf("results: %v, %d bytes left", r.Err(), r.Len())
	}
	return head.Status, int(head.Count)
}

func operationOf(o nfs4.Op) *operation {
	if o >= nfs4.OpEnd {
		return new(operation)
	}
	return &operations[o]
}

// run4 executes one COMPOUND, in a session if it is of the last minor version.
func run4(t testing.TB, s *Server, minor uint32, ops ...op) (nfs4.Status, int) {
	t.Helper()
	if minor != nfs4.MaxMinor {
		return send4(t, s, minor, ops...)
	}
	return open4(t, s, "compounds", rand.Uint64()).run(ops...)
}

// send4 executes one COMPOUND on a connection of its own.
func send4(t testing.TB, s *Server, minor uint32, ops ...op) (nfs4.Status, int) {
	t.Helper()
	return send4As(t, s, 0, minor, ops...)
}

// send4As is send4 as a user.
func send4As(t testing.TB, s *Server, uid, minor uint32, ops ...op) (nfs4.Status, int) {
	t.Helper()
	replies, err := converse(t, s, bytes.NewReader(calls(call4As(uid, 1, minor, ops...))))
	if len(replies) != 1 {
		t.Fatalf("%d replies (%v)", len(replies), err)
	}
	return results4(t, replies[0], ops...)
}

func putFH(fh []byte) op    { return op{nfs4.OpPutFH, &nfs4.FH{FH: fh}, nil} }
func putRootFH() op         { return op{nfs4.OpPutRootFH, nil, nil} }
func getFH(fh *nfs4.FH) op  { return op{nfs4.OpGetFH, nil, fh} }
func lookup(name string) op { return op{nfs4.OpLookup, &nfs4.Name{Name: name}, nil} }
func lookupP() op           { return op{nfs4.OpLookupP, nil, nil} }
func saveFH() op            { return op{nfs4.OpSaveFH, nil, nil} }
func restoreFH() op         { return op{nfs4.OpRestoreFH, nil, nil} }
func bare(o nfs4.Op) op     { return op{o, nil, nil} }

func access(want uint32, res *nfs4.AccessRes) op {
	return op{nfs4.OpAccess, &nfs4.AccessArgs{Access: want}, res}
}

func getAttr(res *nfs4.Fattr, attrs ...uint) op {
	return op{nfs4.OpGetAttr, &nfs4.GetAttrArgs{Mask: nfs4.Bits(attrs...)}, res}
}

// uint64s encodes attribute values.
type uint64s []uint64

func (v uint64s) bytes() []byte {
	var w xdr.Writer
	for _, n := range v {
		w.Uint64(n)
	}
	return w.B
}

func TestCompound(t *testing.T) {
	s, root, file := newServer(t)
	var fh nfs4.FH
	var attr nfs4.Fattr
	many := make([]op, maxOps+1)
	for i := range many {
		many[i] = putRootFH()
	}
	bad := bytes.Clone(file)
	bad[31]++
	for _, tt := range []struct {
		what  string
		minor uint32
		ops   []op
		want  nfs4.Status
		n     int
	}{
		{"nothing", 2, nil, nfs4.OK, 0},
		{"a minor version that is not served", 3, []op{putRootFH()}, nfs4.ErrMinorVersMismatch, 0},
		{"as many operations as may be", 2, many[1:maxOps], nfs4.OK, maxOps - 1},
		{"too many operations", 2, many, nfs4.ErrTooManyOps, 0},
		{"no current filehandle", 2, []op{getFH(&fh)}, nfs4.ErrNoFileHandle, 1},
		{"no saved filehandle", 2, []op{putRootFH(), restoreFH()}, nfs4.ErrNoFileHandle, 2},
		{"a handle that cannot be one", 2, []op{putFH([]byte("short"))}, nfs4.ErrBadHandle, 1},
		{"a handle of a file that is gone", 2, []op{putFH(bad)}, nfs4.ErrStale, 1},
		{"a handle that is too long", 2, []op{putFH(make([]byte, nfs4.MaxFH+1))}, nfs4.ErrBadXDR, 1},
		{"root", 2, []op{putRootFH(), getFH(&fh)}, nfs4.OK, 2},
		{"file", 2, []op{putRootFH(), lookup("f"), getFH(&fh)}, nfs4.OK, 3},
		{"no file", 2, []op{putRootFH(), lookup("g"), getFH(&fh)}, nfs4.ErrNoEnt, 2},
		{"name without a character", 2, []op{putRootFH(), lookup("")}, nfs4.ErrInval, 2},
		{"name of the directory", 2, []op{putRootFH(), lookup(".")}, nfs4.ErrBadName, 2},
		{"name of the directory above", 2, []op{putRootFH(), lookup("..")}, nfs4.ErrBadName, 2},
		{"long name", 2, []op{putRootFH(), lookup(strings.Repeat("n", 256))}, nfs4.ErrNameTooLong, 2},
		{"name with a slash", 2, []op{putRootFH(), lookup("f/g")}, nfs4.ErrBadChar, 2},
		{"name with a zero", 2, []op{putRootFH(), lookup("f\x00")}, nfs4.ErrBadChar, 2},
		{"name in a file", 2, []op{putFH(file), lookup("f")}, nfs4.ErrNotDir, 2},
		{"up from the root", 2, []op{putRootFH(), lookupP()}, nfs4.ErrNoEnt, 2},
		{"up from a file", 2, []op{putFH(file), lookupP()}, nfs4.ErrNotDir, 2},
		{"saved filehandle", 2, []op{putRootFH(), saveFH(), lookup("f"), restoreFH(), lookup("f")}, nfs4.OK, 5},
		{"attributes", 2, []op{putFH(file), getAttr(&attr, nfs4.AttrSize, nfs4.AttrMode)}, nfs4.OK, 2},
		{"attributes that can only be set", 2, []op{putFH(file), getAttr(&attr, nfs4.AttrTimeModifySet)}, nfs4.ErrInval, 2},
		{"access", 2, []op{putFH(root), access(nfs4.AccessRead, new(nfs4.AccessRes))}, nfs4.OK, 2},
		{"access that there is not", 2, []op{putFH(root), access(0x200, nil)}, nfs4.ErrInval, 2},
		{"operation 0", 2, []op{putRootFH(), bare(0)}, nfs4.ErrOpIllegal, 2},
		{"a second SEQUENCE", 2, []op{putRootFH(), bare(nfs4.OpSequence)}, nfs4.ErrSequencePos, 2},
		{"an operation of a later minor version", 1, []op{bare(nfs4.OpSeek)}, nfs4.ErrOpIllegal, 1},
		{"an operation of no version", 2, []op{bare(76)}, nfs4.ErrOpIllegal, 1},
		{"an operation that is not served", 2, []op{putRootFH(), bare(nfs4.OpOpenAttr)}, nfs4.ErrNotSupp, 2},
		{"no session", 1, []op{putRootFH()}, nfs4.ErrOpNotInSession, 1},
		{"same", 2, []op{putFH(file), {nfs4.OpVerify, &nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: uint64s{0}.bytes()}, nil}}, nfs4.OK, 2},
		{"not same", 2, []op{putFH(file), {nfs4.OpVerify, &nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: uint64s{1}.bytes()}, nil}}, nfs4.ErrNotSame, 2},
		{"not different", 2, []op{putFH(file), {nfs4.OpNVerify, &nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: uint64s{0}.bytes()}, nil}}, nfs4.ErrSame, 2},
		{"different", 2, []op{putFH(file), {nfs4.OpNVerify, &nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: uint64s{1}.bytes()}, nil}}, nfs4.OK, 2},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if status, n := run4(t, s, tt.minor, tt.ops...); status != tt.want || n != tt.n {
				t.Errorf("%v after %d operations, want %v after %d", status, n, tt.want, tt.n)
			}
		})
	}
}

// Every number of an operation has its answer in every minor version, whatever its
// arguments: RFC 7530 section 16, RFC 8881 section 17, RFC 7862 section 13 and
// RFC 8276 section 8.4 say which must be served.
func TestOperations(t *testing.T) {
	const (
		last0, last1, last2 = nfs4.OpReleaseLockOwner, nfs4.OpReclaimComplete, nfs4.OpRemoveXattr
		unknown             = nfs4.OpRemoveXattr + 1
	)
	last := [...]nfs4.Op{last0, last1, last2}
	// Of no use without layouts, directory delegations, named attributes, or
	// copies between servers or in the background; none is required.
	unserved := []nfs4.Op{
		nfs4.OpDelegPurge, nfs4.OpOpenAttr,
		nfs4.OpGetDirDelegation, nfs4.OpGetDeviceInfo, nfs4.OpGetDeviceList, nfs4.OpLayoutCommit, nfs4.OpLayoutGet,
		nfs4.OpLayoutReturn, nfs4.OpWantDelegation,
		nfs4.OpCopyNotify, nfs4.OpLayoutError, nfs4.OpLayoutStats, nfs4.OpOffloadCancel, nfs4.OpOffloadStatus,
		nfs4.OpReadPlus, nfs4.OpWriteSame,
	}
	// What sessions have made unnecessary (RFC 8881 section 17).
	only0 := []nfs4.Op{nfs4.OpOpenConfirm, nfs4.OpRenew, nfs4.OpSetClientID, nfs4.OpSetClientIDConfirm, nfs4.OpReleaseLockOwner}
	s, _, _ := newServer(t)
	for minor := range uint32(3) {
		for number := nfs4.Op(0); number <= unknown+1; number++ {
			// The number alone, behind what makes it one that may be executed.
			ops := []op{putRootFH(), bare(number)}
			if minor > nfs4.Minor0 {
				c := open4(t, s, "operations", uint64(number))
				c.seq++
				ops = append([]op{c.sequence(false)}, ops...)
			}
			if operationOf(number).flags&(alone|sessionless) != 0 && minor > nfs4.Minor0 {
				ops = ops[len(ops)-1:]
			}
			replies, _ := converse(t, s, bytes.NewReader(calls(call4(1, minor, ops...))))
			r := xdr.NewReader(replies[0])
			if _, err := rpc.DecodeReply(&r); err != nil {
				t.Fatal(err)
			}
			var head nfs4.CompoundRes
			head.Decode(&r)
			var want string
			switch {
			case number < nfs4.OpAccess || number > last[minor]:
				want = "OP_ILLEGAL"
			case slices.Contains(unserved, number) || minor > nfs4.Minor0 && slices.Contains(only0, number):
				want = "NOTSUPP"
			default:
				want = "served"
			}
			got := "served"
			switch head.Status {
			case nfs4.ErrOpIllegal:
				got = "OP_ILLEGAL"
			case nfs4.ErrNotSupp:
				got = "NOTSUPP"
			}
			if got != want {
				t.Errorf("minor version %d, %v: %v, want it %s", minor, number, head.Status, want)
			}
		}
	}
}

// A COMPOUND that ends too early is answered as far as it goes.
func TestCompoundCutShort(t *testing.T) {
	s, _, file := newServer(t)
	args := len(call4(1, nfs4.Minor2)) - 4
	for n, end := args, args+8; n < end; n += 4 {
		c := open4(t, s, "short", uint64(n))
		c.seq++
		ops := []op{c.sequence(false), putFH(file), getAttr(new(nfs4.Fattr), nfs4.AttrSize)}
		whole := call4(1, nfs4.Minor2, ops...)
		end = len(whole)
		replies, _ := converse(t, s, bytes.NewReader(calls(whole[:n])))
		if n < args+4 {
			r := xdr.NewReader(replies[0])
			if _, err := rpc.DecodeReply(&r); err != rpc.GarbageArgs {
				t.Fatalf("%d bytes: %v", n, err)
			}
			continue
		}
		if status, _ := results4(t, replies[0], ops...); status != nfs4.ErrBadXDR {
			t.Errorf("%d of %d bytes: %v", n, len(whole), status)
		}
	}
}

// With several exports their names are in a directory above them, which shows
// each client what it may use.
func TestPseudoRoot(t *testing.T) {
	st := newStore(t, t.Name())
	sub := exportOf(st, "sub")
	sub.Allow = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")} // and this machine
	s, err := NewServer(Config{Exports: newTable(t, exportOf(st, "ramdisk"), sub)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(t.Context()) })
	var root, fh, again nfs4.FH
	var attr nfs4.Fattr
	for _, tt := range []struct {
		what string
		ops  []op
		want nfs4.Status
	}{
		{"root", []op{putRootFH(), getFH(&root), getAttr(&attr, nfs4.AttrType, nfs4.AttrFileID)}, nfs4.OK},
		{"an export", []op{putRootFH(), lookup("sub"), getFH(&fh)}, nfs4.OK},
		{"no export", []op{putRootFH(), lookup("none")}, nfs4.ErrNoEnt},
		{"up from an export", []op{putRootFH(), lookup("sub"), lookupP(), getFH(&again)}, nfs4.OK},
		{"up from the root", []op{putRootFH(), lookupP()}, nfs4.ErrNoEnt},
		{"what only directories of a store have", []op{putRootFH(), bare(nfs4.OpOpenAttr)}, nfs4.ErrNotSupp},
		{"access", []op{putRootFH(), access(0x3f, new(nfs4.AccessRes))}, nfs4.OK},
	} {
		if status, _ := run4(t, s, 2, tt.ops...); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}
	if !bytes.Equal(root.FH, again.FH) || bytes.Equal(root.FH, fh.FH) {
		t.Errorf("handles: root %x, sub %x, above sub %x", root.FH, fh.FH, again.FH)
	}
	if status, _ := run4(t, s, 2, putFH(root.FH), lookup("ramdisk")); status != nfs4.OK {
		t.Errorf("the root by its handle: %v", status)
	}
	var on, id nfs4.Fattr
	if status, _ := run4(t, s, 2, putRootFH(), lookup("sub"), getAttr(&on, nfs4.AttrMountedOnFileID), getAttr(&id, nfs4.AttrFileID)); status != nfs4.OK {
		t.Fatal(status)
	}
	if bytes.Equal(on.Vals, id.Vals) {
		t.Errorf("the root of an export has number %x there and below", id.Vals)
	}
	for from, want := range map[string]nfs4.Status{"10.1.0.1": nfs4.ErrIsDir, "10.2.0.1": nfs4.ErrNoEnt} {
		k := &call{c: &conn{s: s, peer: export.PacketPeer(netip.AddrPortFrom(netip.MustParseAddr(from), 700))}}
		k.m.k, k.m.cur.root = k, true
		if status := k.m.claim(&nfs4.OpenArgs{Name: "sub"}); status != want {
			t.Errorf("OPEN of it by %s: %v, want %v", from, status, want)
		}
	}
}

// An attribute that is asked for is answered if it is supported, and every
// minor version has its own.
func TestAttributes(t *testing.T) {
	s, _, file := newServer(t)
	for n := uint(0); n < 96; n++ {
		var attr nfs4.Fattr
		status, _ := run4(t, s, 2, putFH(file), getAttr(&attr, n))
		want := supported[2].And(nfs4.Bits(n))
		switch {
		case writeOnly.Has(n):
			if status != nfs4.ErrInval {
				t.Errorf("attribute %d: %v", n, status)
			}
		case status != nfs4.OK || attr.Mask != want || (len(attr.Vals) > 0) != !want.Empty():
			t.Errorf("attribute %d: %v, %v with %d bytes", n, status, attr.Mask, len(attr.Vals))
		}
	}
	var all nfs4.Fattr
	mask := supported[2].AndNot(writeOnly)
	if status, _ := run4(t, s, 2, putFH(file), op{nfs4.OpGetAttr, &nfs4.GetAttrArgs{Mask: mask}, &all}); status != nfs4.OK {
		t.Fatal(status)
	}
	if all.Mask != mask || len(all.Vals) > attrsMax-60 {
		t.Errorf("all of them: %v, %d bytes", all.Mask, len(all.Vals))
	}
	if fmt.Sprint(supported[1]) == fmt.Sprint(supported[2]) {
		t.Error("minor version 1 has the same attributes")
	}
}
