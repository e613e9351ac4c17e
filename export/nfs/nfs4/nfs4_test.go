package nfs4

import (
	"testing"

	"ramserver/export/nfs/xdr"
)

func TestStatus(t *testing.T) {
	for s, want := range map[Status]string{
		OK:                 "NFS4ERR_OK",
		ErrNoEnt:           "NFS4ERR_NOENT",
		ErrStale:           "NFS4ERR_STALE",
		ErrBadHandle:       "NFS4ERR_BADHANDLE",
		ErrSeqMisordered:   "NFS4ERR_SEQ_MISORDERED",
		ErrXattr2Big:       "NFS4ERR_XATTR2BIG",
		3:                  "NFS4ERR_nfsstat4 3",
		9999:               "NFS4ERR_nfsstat4 9999",
		10002:              "NFS4ERR_nfsstat4 10002",
		ErrXattr2Big + 1:   "NFS4ERR_nfsstat4 10097",
		Status(0xffffffff): "NFS4ERR_nfsstat4 4294967295",
	} {
		if s.Error() != want {
			t.Errorf("%q, want %q", s.Error(), want)
		}
	}
	for o, want := range map[Op]string{OpAccess: "ACCESS", OpRemoveXattr: "REMOVEXATTR", OpIllegal: "ILLEGAL", 2: "nfs_opnum4 2", 76: "nfs_opnum4 76"} {
		if o.String() != want {
			t.Errorf("%q, want %q", o, want)
		}
	}
	for o, want := range map[CBOp]string{OpCBGetAttr: "CB_GETATTR", OpCBOffload: "CB_OFFLOAD", OpCBIllegal: "CB_ILLEGAL", 2: "nfs_cb_opnum4 2"} {
		if o.String() != want {
			t.Errorf("%q, want %q", o, want)
		}
	}
}

func TestBitmap(t *testing.T) {
	b := Bits(AttrSize, AttrMode, AttrXattrSupport)
	if !b.Has(AttrSize) || !b.Has(AttrXattrSupport) || b.Has(AttrType) || b.Len() != 3 || b.Empty() {
		t.Errorf("%x", b)
	}
	if b.Clear(AttrSize); b != Bits(AttrMode, AttrXattrSupport) {
		t.Errorf("%x", b)
	}
	if got := b.And(Bits(AttrMode, AttrSize)); got != Bits(AttrMode) {
		t.Errorf("and %x", got)
	}
	if got := b.AndNot(Bits(AttrMode)); got != Bits(AttrXattrSupport) {
		t.Errorf("and not %x", got)
	}
	if got := b.Or(Bits(AttrSize)); got.Len() != 3 {
		t.Errorf("or %x", got)
	}
	for words, n := range map[int]uint{0: 0, 1: AttrSize, 2: AttrMode, 3: AttrModeUmask} {
		var w xdr.Writer
		b := Bits(n)
		if words == 0 {
			b = Bitmap{}
		}
		if b.Encode(&w); w.Len() != 4+4*words {
			t.Errorf("%x takes %d bytes, want %d words", b, w.Len(), words)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	w := xdr.Writer{B: make([]byte, 0, 8192)}
	(&SequenceArgs{Seq: 1, CacheThis: true}).Encode(&w)
	(&FH{make([]byte, 28)}).Encode(&w)
	(&GetAttrArgs{Bits(AttrSize, AttrMode)}).Encode(&w)
	(&ReadArgs{Count: 1}).Encode(&w)
	(&WriteArgs{Data: make([]byte, 4096)}).Encode(&w)
	(&OpenArgs{Owner: Owner{1, make([]byte, 20)}, Create: true, Mode: Exclusive41, Name: "name"}).Encode(&w)
	(&CloseArgs{}).Encode(&w)
	(&Name{"name"}).Encode(&w)
	(&AccessArgs{1}).Encode(&w)
	in := w.B
	out := xdr.Writer{B: make([]byte, 0, 512)}
	if n := testing.AllocsPerRun(100, func() {
		r := xdr.NewReader(in)
		var sequence SequenceArgs
		var fh FH
		var getAttr GetAttrArgs
		var read ReadArgs
		var write WriteArgs
		var open OpenArgs
		var close CloseArgs
		var name Name
		var access AccessArgs
		sequence.Decode(&r)
		fh.Decode(&r)
		getAttr.Decode(&r)
		read.Decode(&r)
		write.Decode(&r)
		open.Decode(&r)
		close.Decode(&r)
		name.Decode(&r)
		access.Decode(&r)
		if r.Err() != nil || r.Len() != 0 || open.Name != "name" {
			t.Fatal(r.Err(), r.Len())
		}
		out.B = out.B[:0]
		(&SequenceRes{}).Encode(&out)
		(&OpenRes{Set: Bits(AttrMode)}).Encode(&out)
		(&WriteRes{}).Encode(&out)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
