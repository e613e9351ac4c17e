package nfs

import (
	"bytes"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// oracle4 speaks version 4 by an independent implementation of its encoding.
type oracle4 struct {
	t    *testing.T
	s    *Server
	sess nfsv4.Sessionid4
	seq  uint32
}

// run executes a compound, all of which must succeed, and returns the results.
func (o *oracle4) run(ops ...nfsv4.NfsArgop4) []nfsv4.NfsResop4 {
	o.t.Helper()
	var w xdr.Writer
	h := rpc.Call{XID: 1, Program: rpc.ProgramNFS, Version: nfs4.Version, Procedure: nfs4.ProcCompound, Cred: rpc.Cred{Flavor: rpc.AuthSys}}
	h.Encode(&w)
	msg := bytes.NewBuffer(w.B)
	args := nfsv4.Compound4args{Tag: "oracle", Minorversion: nfs4.Minor2, Argarray: ops}
	if _, err := args.WriteTo(msg); err != nil {
		o.t.Fatal(err)
	}
	replies, err := converse(o.t, o.s, bytes.NewReader(calls(msg.Bytes())))
	if len(replies) != 1 {
		o.t.Fatal(err)
	}
	body := replies[0][rpc.ReplySize:]
	var res nfsv4.Compound4res
	n, err := res.ReadFrom(bytes.NewReader(body))
	if err != nil || int(n) != len(body) || res.Tag != "oracle" || len(res.Resarray) > len(ops) {
		o.t.Fatalf("%d of %d bytes are %d results: %v", n, len(body), len(res.Resarray), err)
	}
	var again bytes.Buffer
	if _, err := res.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), body) {
		o.t.Fatalf("the oracle encodes the results as\n%x, the server as\n%x; %v", again.Bytes(), body, err)
	}
	if res.Status != nfsv4.NFS4_OK {
		o.t.Fatalf("operation %v: %v", nfs4.Op(res.Resarray[len(res.Resarray)-1].GetResop()), nfs4.Status(res.Status))
	}
	for i, r := range res.Resarray {
		if r.GetResop() != ops[i].GetArgop() {
			o.t.Fatalf("result %d is of operation %d, not %d", i, r.GetResop(), ops[i].GetArgop())
		}
	}
	return res.Resarray
}

// in executes operations in the session.
func (o *oracle4) in(ops ...nfsv4.NfsArgop4) []nfsv4.NfsResop4 {
	o.t.Helper()
	o.seq++
	seq := &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{SaSessionid: o.sess, SaSequenceid: o.seq, SaCachethis: true}}
	return o.run(append([]nfsv4.NfsArgop4{seq}, ops...)...)[1:]
}

// An independent implementation can talk to the server with every operation that
// both know.
func TestOracle(t *testing.T) {
	s, _, _ := newServer(t)
	o := &oracle4{t: t, s: s}
	ex := o.run(&nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{EiaClientowner: nfsv4.ClientOwner4{CoOwnerid: []byte("oracle")},
		EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{}}})[0].(*nfsv4.NfsResop4_OP_EXCHANGE_ID).OpexchangeId.(*nfsv4.ExchangeId4res_NFS4_OK).EirResok4
	channel := nfsv4.ChannelAttrs4{CaMaxrequestsize: 1 << 20, CaMaxresponsesize: 1 << 20, CaMaxresponsesizeCached: 4096, CaMaxoperations: 32, CaMaxrequests: 1}
	made := o.run(&nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{CsaClientid: ex.EirClientid, CsaSequence: ex.EirSequenceid,
		CsaForeChanAttrs: channel, CsaBackChanAttrs: channel, CsaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}}}})
	o.sess = made[0].(*nfsv4.NfsResop4_OP_CREATE_SESSION).OpcreateSession.(*nfsv4.CreateSession4res_NFS4_OK).CsrResok4.CsrSessionid
	o.run(&nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{BctsaSessid: o.sess, BctsaDir: nfsv4.CDFC4_FORE_OR_BOTH}})
	o.in(&nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	o.in(&nfsv4.NfsArgop4_OP_BACKCHANNEL_CTL{OpbackchannelCtl: nfsv4.BackchannelCtl4args{BcaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}}}})

	current := nfsv4.Stateid4{Seqid: 1}
	owner := nfsv4.StateOwner4{Owner: []byte("owner")}
	root := &nfsv4.NfsArgop4_OP_PUTROOTFH{}
	res := o.in(root,
		&nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{ShareAccess: 3, Owner: owner, Claim: &nfsv4.OpenClaim4_CLAIM_NULL{File: "file"},
			Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_GUARDED4{Createattrs: nfsv4.Fattr4{Attrmask: []uint32{0, 1 << 1}, AttrVals: []byte{0, 0, 1, 0o244}}}}}},
		&nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: current, Data: []byte("hello")}},
		&nfsv4.NfsArgop4_OP_GETFH{})
	st := res[1].(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid
	fh := res[3].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	file := &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: fh}}

	res = o.in(file, &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: st, Count: 100}})
	if got := res[1].(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4; string(got.Data) != "hello" || !got.Eof {
		t.Errorf("read %q, %v", got.Data, got.Eof)
	}
	res = o.in(file, &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1<<1 | 1<<4, 1<<1 | 1<<3}}})
	want := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 1, 0o244, 0, 0, 0, 1}
	if got := res[1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes; !bytes.Equal(got.AttrVals, want) {
		t.Errorf("type, size, mode, links are %x, want %x", got.AttrVals, want)
	}
	all := nfsv4.Bitmap4{0xffffffff, 0xffffffff &^ (1<<16 | 1<<22), 0xffffffff}
	o.in(file,
		&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: all}},
		&nfsv4.NfsArgop4_OP_ACCESS{Opaccess: nfsv4.Access4args{Access: 0x3f}},
		&nfsv4.NfsArgop4_OP_COMMIT{},
		&nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{Stateid: st, ObjAttributes: nfsv4.Fattr4{Attrmask: []uint32{1 << 4}, AttrVals: []byte{0, 0, 0, 0, 0, 1, 0, 0}}}},
		&nfsv4.NfsArgop4_OP_ALLOCATE{Opallocate: nfsv4.Allocate4args{AaStateid: st, AaLength: 4096}},
		&nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: st, DaLength: 4096}},
		&nfsv4.NfsArgop4_OP_SEEK{Opseek: nfsv4.Seek4args{SaStateid: st, SaWhat: nfsv4.NFS4_CONTENT_HOLE}},
		&nfsv4.NfsArgop4_OP_IO_ADVISE{OpioAdvise: nfsv4.IoAdvise4args{IaaStateid: st, IaaHints: []uint32{1}}})
	o.in(file,
		&nfsv4.NfsArgop4_OP_SAVEFH{},
		root,
		&nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{ShareAccess: 3, Owner: owner, Claim: &nfsv4.OpenClaim4_CLAIM_NULL{File: "copy"},
			Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_GUARDED4{}}}},
		&nfsv4.NfsArgop4_OP_COPY{Opcopy: nfsv4.Copy4args{CaSrcStateid: st, CaDstStateid: current, CaDstOffset: 65536, CaCount: 65536, CaSynchronous: true}},
		&nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: current}})
	o.in(file,
		&nfsv4.NfsArgop4_OP_SAVEFH{},
		&nfsv4.NfsArgop4_OP_CLONE{Opclone: nfsv4.Clone4args{ClSrcStateid: st, ClDstStateid: st, ClDstOffset: 131072, ClCount: 65536}})
	res = o.in(file,
		&nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{Locktype: nfsv4.WRITE_LT, Length: 10, Locker: &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{OpenStateid: st, LockOwner: owner}}}},
		&nfsv4.NfsArgop4_OP_LOCKT{Oplockt: nfsv4.Lockt4args{Locktype: nfsv4.READ_LT, Offset: 5, Length: 10, Owner: owner}},
		&nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{Locktype: nfsv4.WRITE_LT, LockStateid: current, Length: 10}})
	locked := res[3].(*nfsv4.NfsResop4_OP_LOCKU).Oplocku.(*nfsv4.Locku4res_NFS4_OK).LockStateid
	o.in(&nfsv4.NfsArgop4_OP_TEST_STATEID{OptestStateid: nfsv4.TestStateid4args{TsStateids: []nfsv4.Stateid4{st, locked, {}}}},
		&nfsv4.NfsArgop4_OP_FREE_STATEID{OpfreeStateid: nfsv4.FreeStateid4args{FsaStateid: locked}})
	o.in(file,
		&nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{ShareAccess: 1, Owner: owner, Openhow: &nfsv4.Openflag4_default{}, Claim: &nfsv4.OpenClaim4_CLAIM_FH{}}},
		&nfsv4.NfsArgop4_OP_OPEN_DOWNGRADE{OpopenDowngrade: nfsv4.OpenDowngrade4args{OpenStateid: current, ShareAccess: 1}},
		&nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{OpenStateid: current}})
	o.in(root,
		&nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4LNK{Linkdata: []byte("to")}, Objname: "link"}},
		&nfsv4.NfsArgop4_OP_READLINK{})
}

// The rest is about names.
func TestOracleNames(t *testing.T) {
	s, _, _ := newServer(t)
	c := open4(t, s, "oracle", 1)
	o := &oracle4{t: t, s: s, sess: nfsv4.Sessionid4(c.sess), seq: c.seq}
	root := &nfsv4.NfsArgop4_OP_PUTROOTFH{}
	create := func(name string, what nfsv4.Createtype4) nfsv4.NfsArgop4 {
		return &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: what, Objname: name}}
	}
	o.in(root, create("d", &nfsv4.Createtype4_NF4DIR{}), create("e", &nfsv4.Createtype4_NF4DIR{}),
		&nfsv4.NfsArgop4_OP_LOOKUPP{}, &nfsv4.NfsArgop4_OP_LOOKUPP{},
		&nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: "f"}},
		&nfsv4.NfsArgop4_OP_SAVEFH{},
		&nfsv4.NfsArgop4_OP_PUTPUBFH{},
		&nfsv4.NfsArgop4_OP_LINK{Oplink: nfsv4.Link4args{Newname: "g"}},
		&nfsv4.NfsArgop4_OP_SAVEFH{},
		&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "g", Newname: "h"}},
		&nfsv4.NfsArgop4_OP_RESTOREFH{},
		&nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: "f"}})
	o.in(root, create("s", &nfsv4.Createtype4_NF4SOCK{}))
	o.in(root, create("p", &nfsv4.Createtype4_NF4FIFO{}))
	o.in(root, create("b", &nfsv4.Createtype4_NF4BLK{Devdata: nfsv4.Specdata4{Specdata1: 1, Specdata2: 2}}))
	o.in(root, create("c", &nfsv4.Createtype4_NF4CHR{Devdata: nfsv4.Specdata4{Specdata1: 1, Specdata2: 2}}))
	res := o.in(root, &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{Dircount: 4096, Maxcount: 4096, AttrRequest: []uint32{1<<1 | 1<<19, 1 << 15}}})
	names := ""
	for e := res[1].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply.Entries; e != nil; e = e.Nextentry {
		names += e.Name + " "
	}
	if names != "d h s p b c " {
		t.Errorf("the directory has %s", names)
	}
	secinfo := o.in(root, &nfsv4.NfsArgop4_OP_SECINFO{Opsecinfo: nfsv4.Secinfo4args{Name: "h"}})[1]
	if n := len(secinfo.(*nfsv4.NfsResop4_OP_SECINFO).Opsecinfo.(*nfsv4.Secinfo4res_NFS4_OK).Resok4); n == 0 {
		t.Error("SECINFO answers no flavor")
	}
	o.in(root, &nfsv4.NfsArgop4_OP_SECINFO_NO_NAME{})
	o.run(&nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: o.sess}})
	o.run(&nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: c.id}})
}
