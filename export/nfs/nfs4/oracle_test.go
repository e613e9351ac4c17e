package nfs4

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"ramserver/export/nfs/xdr"
)

// codec is what a type of this package can do.
type codec interface {
	Encode(*xdr.Writer)
	Decode(*xdr.Reader)
}

// Values that the tables use, in our form and in the oracle's. No two fields of
// one message have the same value, so that none can be taken for another.
var (
	sid, theirSid       = Stateid{11, [12]byte{1, 2, 3}}, nfsv4.Stateid4{Seqid: 11, Other: [12]byte{1, 2, 3}}
	sid2, theirSid2     = Stateid{12, [12]byte{4, 5, 6}}, nfsv4.Stateid4{Seqid: 12, Other: [12]byte{4, 5, 6}}
	owner, theirOwner   = Owner{13, []byte("owner")}, nfsv4.StateOwner4{Clientid: 13, Owner: []byte("owner")}
	attr, theirAttr     = Fattr{Mask: Bits(AttrSize, AttrMode), Vals: []byte("0123456789ab")}, nfsv4.Fattr4{Attrmask: []uint32{1 << 4, 1 << 1}, AttrVals: []byte("0123456789ab")}
	change, theirChange = ChangeInfo{true, 14, 15}, nfsv4.ChangeInfo4{Atomic: true, Before: 14, After: 15}
	verf, theirVerf     = uint64(0x0102030405060708), nfsv4.Verifier4{1, 2, 3, 4, 5, 6, 7, 8}
	sess, theirSess     = SessionID{7, 8, 9}, nfsv4.Sessionid4{7, 8, 9}
	mask, theirMask     = Bits(AttrType, AttrTimeModify, AttrXattrSupport), nfsv4.Bitmap4{1 << 1, 1 << 21, 1 << 18}
	ops, theirOps       = Bits(uint(OpExchangeID)), nfsv4.Bitmap4{0, 1 << 10}
	fore                = ChannelAttrs{21, 22, 23, 24, 25, 26, false, 0}
	theirFore           = nfsv4.ChannelAttrs4{CaHeaderpadsize: 21, CaMaxrequestsize: 22, CaMaxresponsesize: 23, CaMaxresponsesizeCached: 24, CaMaxoperations: 25, CaMaxrequests: 26}
	back                = ChannelAttrs{31, 32, 33, 34, 35, 36, true, 37}
	theirBack           = nfsv4.ChannelAttrs4{CaHeaderpadsize: 31, CaMaxrequestsize: 32, CaMaxresponsesize: 33, CaMaxresponsesizeCached: 34, CaMaxoperations: 35, CaMaxrequests: 36, CaRdmaIrd: []uint32{37}}
	impl                = ImplID{true, "domain", "name", Time{-41, 42}}
	theirImpl           = []nfsv4.NfsImplId4{{NiiDomain: "domain", NiiName: "name", NiiDate: nfsv4.Nfstime4{Seconds: -41, Nseconds: 42}}}
	sys                 = CBSec{Flavor: AuthSys, Stamp: 51, Machine: "m", UID: 52, GID: 53, Groups: []uint32{54, 55}}
	theirSys            = &nfsv4.CallbackSecParms4_AUTH_SYS{CbspSysCred: rpcv2.AuthsysParms{Stamp: 51, Machinename: "m", Uid: 52, Gid: 53, Gids: []uint32{54, 55}}}
	gss                 = CBSec{Flavor: AuthRPCSecGSS, Service: 2, FromServer: []byte("s"), FromClient: []byte("cl")}
	theirGSS            = &nfsv4.CallbackSecParms4_RPCSEC_GSS{CbspGssHandles: nfsv4.GssCbHandles4{GcbpService: 2, GcbpHandleFromServer: []byte("s"), GcbpHandleFromClient: []byte("cl")}}
	ace, theirACE       = ACE{61, 62, 63, "w"}, nfsv4.Nfsace4{Type: 61, Flag: 62, AccessMask: 63, Who: "w"}
	clone               = CloneArgs{sid, sid2, 71, 72, 73}
	denied              = LockDenied{81, 82, LockWrite, owner}
	theirDenied         = nfsv4.Lock4denied{Offset: 81, Length: 82, Locktype: nfsv4.WRITE_LT, Owner: theirOwner}
)

// opening is an OPEN with a way to create and a claim, in our form.
func opening(change func(*OpenArgs)) *OpenArgs {
	a := &OpenArgs{Seq: 91, Access: 92, Deny: 93, Owner: owner}
	change(a)
	return a
}

// theirOpening is the same in the oracle's form.
func theirOpening(how nfsv4.Openflag4, claim nfsv4.OpenClaim4) *nfsv4.NfsArgop4_OP_OPEN {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{Seqid: 91, ShareAccess: 92, ShareDeny: 93, Owner: theirOwner, Openhow: how, Claim: claim}}
}

func theirCreation(how nfsv4.Createhow4) nfsv4.Openflag4 {
	return &nfsv4.Openflag4_OPEN4_CREATE{How: how}
}

var (
	noCreation = &nfsv4.Openflag4_default{Opentype: nfsv4.OPEN4_NOCREATE}
	byName     = &nfsv4.OpenClaim4_CLAIM_NULL{File: "f"}
)

// opened is the results of an OPEN with a delegation.
func opened(d Delegation) *OpenRes {
	return &OpenRes{sid, change, 94, mask, d}
}

func theirOpened(d nfsv4.OpenDelegation4) *nfsv4.NfsResop4_OP_OPEN {
	return &nfsv4.NfsResop4_OP_OPEN{Opopen: &nfsv4.Open4res_NFS4_OK{Resok4: nfsv4.Open4resok{Stateid: theirSid, Cinfo: theirChange, Rflags: 94, Attrset: theirMask, Delegation: d}}}
}

// arguments is every operation of the oracle that this package has arguments for.
var arguments = []struct {
	ours   codec
	theirs nfsv4.NfsArgop4
}{
	{&AccessArgs{1}, &nfsv4.NfsArgop4_OP_ACCESS{Opaccess: nfsv4.Access4args{Access: 1}}},
	{&CloseArgs{2, sid}, &nfsv4.NfsArgop4_OP_CLOSE{Opclose: nfsv4.Close4args{Seqid: 2, OpenStateid: theirSid}}},
	{&CommitArgs{3, 4}, &nfsv4.NfsArgop4_OP_COMMIT{Opcommit: nfsv4.Commit4args{Offset: 3, Count: 4}}},
	{&CreateArgs{Type: TypeDir, Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: "n", Createattrs: theirAttr}}},
	{&CreateArgs{Type: TypeLnk, Target: "to", Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4LNK{Linkdata: []byte("to")}, Objname: "n", Createattrs: theirAttr}}},
	{&CreateArgs{Type: TypeBlk, Major: 5, Minor: 6, Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4BLK{Devdata: nfsv4.Specdata4{Specdata1: 5, Specdata2: 6}}, Objname: "n", Createattrs: theirAttr}}},
	{&CreateArgs{Type: TypeChr, Major: 5, Minor: 6, Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4CHR{Devdata: nfsv4.Specdata4{Specdata1: 5, Specdata2: 6}}, Objname: "n", Createattrs: theirAttr}}},
	{&CreateArgs{Type: TypeSock, Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4SOCK{}, Objname: "n", Createattrs: theirAttr}}},
	{&CreateArgs{Type: TypeFIFO, Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4FIFO{}, Objname: "n", Createattrs: theirAttr}}},
	{&CreateArgs{Type: TypeReg, Name: "n", Attr: attr}, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_default{Type: nfsv4.NF4REG}, Objname: "n", Createattrs: theirAttr}}},
	{&ClientID{7}, &nfsv4.NfsArgop4_OP_DELEGPURGE{Opdelegpurge: nfsv4.Delegpurge4args{Clientid: 7}}},
	{&StateidArgs{sid}, &nfsv4.NfsArgop4_OP_DELEGRETURN{Opdelegreturn: nfsv4.Delegreturn4args{DelegStateid: theirSid}}},
	{&GetAttrArgs{mask}, &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: theirMask}}},
	{&Void{}, &nfsv4.NfsArgop4_OP_GETFH{}},
	{&Name{"n"}, &nfsv4.NfsArgop4_OP_LINK{Oplink: nfsv4.Link4args{Newname: "n"}}},
	{&LockArgs{Type: LockRead, Reclaim: true, Offset: 8, Length: 9, NewOwner: true, OpenSeq: 10, Stateid: sid, LockSeq: 16, Owner: owner}, &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{Locktype: nfsv4.READ_LT, Reclaim: true, Offset: 8, Length: 9, Locker: &nfsv4.Locker4_TRUE{OpenOwner: nfsv4.OpenToLockOwner4{OpenSeqid: 10, OpenStateid: theirSid, LockSeqid: 16, LockOwner: theirOwner}}}}},
	{&LockArgs{Type: LockWriteW, Offset: 8, Length: 9, Stateid: sid, LockSeq: 16}, &nfsv4.NfsArgop4_OP_LOCK{Oplock: nfsv4.Lock4args{Locktype: nfsv4.WRITEW_LT, Offset: 8, Length: 9, Locker: &nfsv4.Locker4_FALSE{LockOwner: nfsv4.ExistLockOwner4{LockStateid: theirSid, LockSeqid: 16}}}}},
	{&LockTArgs{LockWrite, 8, 9, owner}, &nfsv4.NfsArgop4_OP_LOCKT{Oplockt: nfsv4.Lockt4args{Locktype: nfsv4.WRITE_LT, Offset: 8, Length: 9, Owner: theirOwner}}},
	{&LockUArgs{LockWrite, 7, sid, 8, 9}, &nfsv4.NfsArgop4_OP_LOCKU{Oplocku: nfsv4.Locku4args{Locktype: nfsv4.WRITE_LT, Seqid: 7, LockStateid: theirSid, Offset: 8, Length: 9}}},
	{&Name{"n"}, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: "n"}}},
	{&Void{}, &nfsv4.NfsArgop4_OP_LOOKUPP{}},
	{&attr, &nfsv4.NfsArgop4_OP_NVERIFY{Opnverify: nfsv4.Nverify4args{ObjAttributes: theirAttr}}},
	{opening(func(a *OpenArgs) { a.Name = "f" }), theirOpening(noCreation, byName)},
	{opening(func(a *OpenArgs) { a.Create, a.Attr, a.Name = true, attr, "f" }), theirOpening(theirCreation(&nfsv4.Createhow4_UNCHECKED4{Createattrs: theirAttr}), byName)},
	{opening(func(a *OpenArgs) { a.Create, a.Mode, a.Attr, a.Name = true, Guarded, attr, "f" }), theirOpening(theirCreation(&nfsv4.Createhow4_GUARDED4{Createattrs: theirAttr}), byName)},
	{opening(func(a *OpenArgs) { a.Create, a.Mode, a.Verf, a.Name = true, Exclusive, verf, "f" }), theirOpening(theirCreation(&nfsv4.Createhow4_EXCLUSIVE4{Createverf: theirVerf}), byName)},
	{opening(func(a *OpenArgs) { a.Create, a.Mode, a.Verf, a.Attr, a.Name = true, Exclusive41, verf, attr, "f" }), theirOpening(theirCreation(&nfsv4.Createhow4_EXCLUSIVE4_1{ChCreateboth: nfsv4.Creatverfattr{CvaVerf: theirVerf, CvaAttrs: theirAttr}}), byName)},
	{opening(func(a *OpenArgs) { a.Claim, a.DelegType = ClaimPrevious, DelegateWrite }), theirOpening(noCreation, &nfsv4.OpenClaim4_CLAIM_PREVIOUS{DelegateType: nfsv4.OPEN_DELEGATE_WRITE})},
	{opening(func(a *OpenArgs) { a.Claim, a.Stateid, a.Name = ClaimDelegCur, sid, "f" }), theirOpening(noCreation, &nfsv4.OpenClaim4_CLAIM_DELEGATE_CUR{DelegateCurInfo: nfsv4.OpenClaimDelegateCur4{DelegateStateid: theirSid, File: "f"}})},
	{opening(func(a *OpenArgs) { a.Claim, a.Name = ClaimDelegPrev, "f" }), theirOpening(noCreation, &nfsv4.OpenClaim4_CLAIM_DELEGATE_PREV{FileDelegatePrev: "f"})},
	{opening(func(a *OpenArgs) { a.Claim = ClaimFH }), theirOpening(noCreation, &nfsv4.OpenClaim4_CLAIM_FH{})},
	{opening(func(a *OpenArgs) { a.Claim, a.Stateid = ClaimDelegCurFH, sid }), theirOpening(noCreation, &nfsv4.OpenClaim4_CLAIM_DELEG_CUR_FH{OcDelegateStateid: theirSid})},
	{opening(func(a *OpenArgs) { a.Claim = ClaimDelegPrevFH }), theirOpening(noCreation, &nfsv4.OpenClaim4_CLAIM_DELEG_PREV_FH{})},
	{&OpenConfirmArgs{sid, 7}, &nfsv4.NfsArgop4_OP_OPEN_CONFIRM{OpopenConfirm: nfsv4.OpenConfirm4args{OpenStateid: theirSid, Seqid: 7}}},
	{&OpenDowngradeArgs{sid, 7, 8, 9}, &nfsv4.NfsArgop4_OP_OPEN_DOWNGRADE{OpopenDowngrade: nfsv4.OpenDowngrade4args{OpenStateid: theirSid, Seqid: 7, ShareAccess: 8, ShareDeny: 9}}},
	{&FH{[]byte("fh")}, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: []byte("fh")}}},
	{&Void{}, &nfsv4.NfsArgop4_OP_PUTPUBFH{}},
	{&Void{}, &nfsv4.NfsArgop4_OP_PUTROOTFH{}},
	{&ReadArgs{sid, 7, 8}, &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: theirSid, Offset: 7, Count: 8}}},
	{&ReadDirArgs{7, verf, 8, 9, mask}, &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{Cookie: 7, Cookieverf: theirVerf, Dircount: 8, Maxcount: 9, AttrRequest: theirMask}}},
	{&Void{}, &nfsv4.NfsArgop4_OP_READLINK{}},
	{&Name{"n"}, &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: "n"}}},
	{&RenameArgs{"from", "to"}, &nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "from", Newname: "to"}}},
	{&ClientID{7}, &nfsv4.NfsArgop4_OP_RENEW{Oprenew: nfsv4.Renew4args{Clientid: 7}}},
	{&Void{}, &nfsv4.NfsArgop4_OP_RESTOREFH{}},
	{&Void{}, &nfsv4.NfsArgop4_OP_SAVEFH{}},
	{&Name{"n"}, &nfsv4.NfsArgop4_OP_SECINFO{Opsecinfo: nfsv4.Secinfo4args{Name: "n"}}},
	{&SetAttrArgs{sid, attr}, &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{Stateid: theirSid, ObjAttributes: theirAttr}}},
	{&SetClientIDArgs{verf, []byte("me"), 7, ClientAddr{"tcp", "addr"}, 8}, &nfsv4.NfsArgop4_OP_SETCLIENTID{Opsetclientid: nfsv4.Setclientid4args{Client: nfsv4.NfsClientId4{Verifier: theirVerf, Id: []byte("me")}, Callback: nfsv4.CbClient4{CbProgram: 7, CbLocation: nfsv4.Netaddr4{NaRNetid: "tcp", NaRAddr: "addr"}}, CallbackIdent: 8}}},
	{&ClientConfirm{7, verf}, &nfsv4.NfsArgop4_OP_SETCLIENTID_CONFIRM{OpsetclientidConfirm: nfsv4.SetclientidConfirm4args{Clientid: 7, SetclientidConfirm: theirVerf}}},
	{&owner, &nfsv4.NfsArgop4_OP_RELEASE_LOCKOWNER{OpreleaseLockowner: nfsv4.ReleaseLockowner4args{LockOwner: theirOwner}}},
	{&attr, &nfsv4.NfsArgop4_OP_VERIFY{Opverify: nfsv4.Verify4args{ObjAttributes: theirAttr}}},
	{&WriteArgs{sid, 7, FileSync, []byte("data!")}, &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: theirSid, Offset: 7, Stable: nfsv4.FILE_SYNC4, Data: []byte("data!")}}},
	{&BackchannelCtlArgs{7, []CBSec{{}, sys, gss}}, &nfsv4.NfsArgop4_OP_BACKCHANNEL_CTL{OpbackchannelCtl: nfsv4.BackchannelCtl4args{BcaCbProgram: 7, BcaSecParms: []nfsv4.CallbackSecParms4{&nfsv4.CallbackSecParms4_AUTH_NONE{}, theirSys, theirGSS}}}},
	{&BindConnToSessionArgs{sess, DirBackOrBoth, true}, &nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: nfsv4.BindConnToSession4args{BctsaSessid: theirSess, BctsaDir: nfsv4.CDFC4_BACK_OR_BOTH, BctsaUseConnInRdmaMode: true}}},
	{&ExchangeIDArgs{Verf: verf, Owner: []byte("me"), Flags: 7, Impl: impl}, &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{EiaClientowner: nfsv4.ClientOwner4{CoVerifier: theirVerf, CoOwnerid: []byte("me")}, EiaFlags: 7, EiaStateProtect: &nfsv4.StateProtect4A_SP4_NONE{}, EiaClientImplId: theirImpl}}},
	{&ExchangeIDArgs{Verf: verf, Owner: []byte("me"), Flags: 7, Protect: Protect{How: ProtectMachCred, MustEnforce: ops, MustAllow: mask}}, &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{EiaClientowner: nfsv4.ClientOwner4{CoVerifier: theirVerf, CoOwnerid: []byte("me")}, EiaFlags: 7, EiaStateProtect: &nfsv4.StateProtect4A_SP4_MACH_CRED{SpaMachOps: nfsv4.StateProtectOps4{SpoMustEnforce: theirOps, SpoMustAllow: theirMask}}}}},
	{&SetSSVArgs{[]byte("ssv"), []byte("digest")}, &nfsv4.NfsArgop4_OP_SET_SSV{OpsetSsv: nfsv4.SetSsv4args{SsaSsv: []byte("ssv"), SsaDigest: []byte("digest")}}},
	{&ExchangeIDArgs{Verf: verf, Owner: []byte("me"), Flags: 7, Protect: Protect{How: ProtectSSV, MustEnforce: ops, MustAllow: mask, HashAlgs: [][]byte{[]byte("h"), []byte("i")}, EncrAlgs: [][]byte{[]byte("e")}, Window: 8, NumHandles: 9}}, &nfsv4.NfsArgop4_OP_EXCHANGE_ID{OpexchangeId: nfsv4.ExchangeId4args{EiaClientowner: nfsv4.ClientOwner4{CoVerifier: theirVerf, CoOwnerid: []byte("me")}, EiaFlags: 7, EiaStateProtect: &nfsv4.StateProtect4A_SP4_SSV{SpaSsvParms: nfsv4.SsvSpParms4{SspOps: nfsv4.StateProtectOps4{SpoMustEnforce: theirOps, SpoMustAllow: theirMask}, SspHashAlgs: [][]byte{[]byte("h"), []byte("i")}, SspEncrAlgs: [][]byte{[]byte("e")}, SspWindow: 8, SspNumGssHandles: 9}}}}},
	{&CreateSessionArgs{7, 8, 9, fore, back, 10, []CBSec{sys, {}}}, &nfsv4.NfsArgop4_OP_CREATE_SESSION{OpcreateSession: nfsv4.CreateSession4args{CsaClientid: 7, CsaSequence: 8, CsaFlags: 9, CsaForeChanAttrs: theirFore, CsaBackChanAttrs: theirBack, CsaCbProgram: 10, CsaSecParms: []nfsv4.CallbackSecParms4{theirSys, &nfsv4.CallbackSecParms4_AUTH_NONE{}}}}},
	{&sess, &nfsv4.NfsArgop4_OP_DESTROY_SESSION{OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: theirSess}}},
	{&StateidArgs{sid}, &nfsv4.NfsArgop4_OP_FREE_STATEID{OpfreeStateid: nfsv4.FreeStateid4args{FsaStateid: theirSid}}},
	{&SequenceArgs{sess, 7, 8, 9, true}, &nfsv4.NfsArgop4_OP_SEQUENCE{Opsequence: nfsv4.Sequence4args{SaSessionid: theirSess, SaSequenceid: 7, SaSlotid: 8, SaHighestSlotid: 9, SaCachethis: true}}},
	{&ClientID{7}, &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: 7}}},
	{&ReclaimCompleteArgs{true}, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{OpreclaimComplete: nfsv4.ReclaimComplete4args{RcaOneFs: true}}},
	{&RangeArgs{sid, 7, 8}, &nfsv4.NfsArgop4_OP_ALLOCATE{Opallocate: nfsv4.Allocate4args{AaStateid: theirSid, AaOffset: 7, AaLength: 8}}},
	{&CopyArgs{clone, true, false, 0}, &nfsv4.NfsArgop4_OP_COPY{Opcopy: nfsv4.Copy4args{CaSrcStateid: theirSid, CaDstStateid: theirSid2, CaSrcOffset: 71, CaDstOffset: 72, CaCount: 73, CaConsecutive: true}}},
	{&CopyArgs{clone, false, true, 0}, &nfsv4.NfsArgop4_OP_COPY{Opcopy: nfsv4.Copy4args{CaSrcStateid: theirSid, CaDstStateid: theirSid2, CaSrcOffset: 71, CaDstOffset: 72, CaCount: 73, CaSynchronous: true}}},
	{&RangeArgs{sid, 7, 8}, &nfsv4.NfsArgop4_OP_DEALLOCATE{Opdeallocate: nfsv4.Deallocate4args{DaStateid: theirSid, DaOffset: 7, DaLength: 8}}},
	{&IOAdviseArgs{RangeArgs{sid, 7, 8}, mask}, &nfsv4.NfsArgop4_OP_IO_ADVISE{OpioAdvise: nfsv4.IoAdvise4args{IaaStateid: theirSid, IaaOffset: 7, IaaCount: 8, IaaHints: theirMask}}},
	{&StateidArgs{sid}, &nfsv4.NfsArgop4_OP_OFFLOAD_CANCEL{OpoffloadCancel: nfsv4.OffloadCancel4args{OcaStateid: theirSid}}},
	{&StateidArgs{sid}, &nfsv4.NfsArgop4_OP_OFFLOAD_STATUS{OpoffloadStatus: nfsv4.OffloadStatus4args{OsaStateid: theirSid}}},
	{&ReadArgs{sid, 7, 8}, &nfsv4.NfsArgop4_OP_READ_PLUS{OpreadPlus: nfsv4.ReadPlus4args{RpaStateid: theirSid, RpaOffset: 7, RpaCount: 8}}},
	{&SeekArgs{sid, 7, SeekHole}, &nfsv4.NfsArgop4_OP_SEEK{Opseek: nfsv4.Seek4args{SaStateid: theirSid, SaOffset: 7, SaWhat: nfsv4.NFS4_CONTENT_HOLE}}},
	{&clone, &nfsv4.NfsArgop4_OP_CLONE{Opclone: nfsv4.Clone4args{ClSrcStateid: theirSid, ClDstStateid: theirSid2, ClSrcOffset: 71, ClDstOffset: 72, ClCount: 73}}},
}

// results is the same of results, OK where nothing else is said.
var results = []struct {
	status Status
	ours   codec
	theirs nfsv4.NfsResop4
}{
	{OK, &AccessRes{1, 2}, &nfsv4.NfsResop4_OP_ACCESS{Opaccess: &nfsv4.Access4res_NFS4_OK{Resok4: nfsv4.Access4resok{Supported: 1, Access: 2}}}},
	{ErrAccess, &Void{}, &nfsv4.NfsResop4_OP_ACCESS{Opaccess: &nfsv4.Access4res_default{Status: nfsv4.NFS4ERR_ACCESS}}},
	{OK, &StateidArgs{sid}, &nfsv4.NfsResop4_OP_CLOSE{Opclose: &nfsv4.Close4res_NFS4_OK{OpenStateid: theirSid}}},
	{OK, &CommitRes{verf}, &nfsv4.NfsResop4_OP_COMMIT{Opcommit: &nfsv4.Commit4res_NFS4_OK{Resok4: nfsv4.Commit4resok{Writeverf: theirVerf}}}},
	{OK, &CreateRes{change, mask}, &nfsv4.NfsResop4_OP_CREATE{Opcreate: &nfsv4.Create4res_NFS4_OK{Resok4: nfsv4.Create4resok{Cinfo: theirChange, Attrset: theirMask}}}},
	{ErrBadStateid, &Void{}, &nfsv4.NfsResop4_OP_DELEGRETURN{Opdelegreturn: nfsv4.Delegreturn4res{Status: nfsv4.NFS4ERR_BAD_STATEID}}},
	{OK, &attr, &nfsv4.NfsResop4_OP_GETATTR{Opgetattr: &nfsv4.Getattr4res_NFS4_OK{Resok4: nfsv4.Getattr4resok{ObjAttributes: theirAttr}}}},
	{OK, &FH{[]byte("fh")}, &nfsv4.NfsResop4_OP_GETFH{Opgetfh: &nfsv4.Getfh4res_NFS4_OK{Resok4: nfsv4.Getfh4resok{Object: []byte("fh")}}}},
	{OK, &DirRes{change}, &nfsv4.NfsResop4_OP_LINK{Oplink: &nfsv4.Link4res_NFS4_OK{Resok4: nfsv4.Link4resok{Cinfo: theirChange}}}},
	{OK, &StateidArgs{sid}, &nfsv4.NfsResop4_OP_LOCK{Oplock: &nfsv4.Lock4res_NFS4_OK{Resok4: nfsv4.Lock4resok{LockStateid: theirSid}}}},
	{ErrDenied, &denied, &nfsv4.NfsResop4_OP_LOCK{Oplock: &nfsv4.Lock4res_NFS4ERR_DENIED{Denied: theirDenied}}},
	{OK, &Void{}, &nfsv4.NfsResop4_OP_LOCKT{Oplockt: &nfsv4.Lockt4res_NFS4_OK{}}},
	{ErrDenied, &denied, &nfsv4.NfsResop4_OP_LOCKT{Oplockt: &nfsv4.Lockt4res_NFS4ERR_DENIED{Denied: theirDenied}}},
	{OK, &StateidArgs{sid}, &nfsv4.NfsResop4_OP_LOCKU{Oplocku: &nfsv4.Locku4res_NFS4_OK{LockStateid: theirSid}}},
	{ErrNotSame, &Void{}, &nfsv4.NfsResop4_OP_VERIFY{Opverify: nfsv4.Verify4res{Status: nfsv4.NFS4ERR_NOT_SAME}}},
	{OK, opened(Delegation{}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_NONE{})},
	{OK, opened(Delegation{Type: DelegateRead, Stateid: sid2, Recall: true, Perm: ace}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_READ{Read: nfsv4.OpenReadDelegation4{Stateid: theirSid2, Recall: true, Permissions: theirACE}})},
	{OK, opened(Delegation{Type: DelegateWrite, Stateid: sid2, Limit: 7, Perm: ace}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_WRITE{Write: nfsv4.OpenWriteDelegation4{Stateid: theirSid2, SpaceLimit: &nfsv4.NfsSpaceLimit4_NFS_LIMIT_SIZE{Filesize: 7}, Permissions: theirACE}})},
	{OK, opened(Delegation{Type: DelegateWrite, Stateid: sid2, ByBlocks: true, Blocks: 7, BytesPerBlock: 8, Perm: ace}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_WRITE{Write: nfsv4.OpenWriteDelegation4{Stateid: theirSid2, SpaceLimit: &nfsv4.NfsSpaceLimit4_NFS_LIMIT_BLOCKS{ModBlocks: nfsv4.NfsModifiedLimit4{NumBlocks: 7, BytesPerBlock: 8}}, Permissions: theirACE}})},
	{OK, opened(Delegation{Type: DelegateNoneExt, Why: WhyIsDir}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_NONE_EXT{OdWhynone: &nfsv4.OpenNoneDelegation4_default{OndWhy: nfsv4.WND4_IS_DIR}})},
	{OK, opened(Delegation{Type: DelegateNoneExt, Why: WhyContention, Will: true}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_NONE_EXT{OdWhynone: &nfsv4.OpenNoneDelegation4_WND4_CONTENTION{OndServerWillPushDeleg: true}})},
	{OK, opened(Delegation{Type: DelegateNoneExt, Why: WhyResource}), theirOpened(&nfsv4.OpenDelegation4_OPEN_DELEGATE_NONE_EXT{OdWhynone: &nfsv4.OpenNoneDelegation4_WND4_RESOURCE{}})},
	{OK, &StateidArgs{sid}, &nfsv4.NfsResop4_OP_OPEN_CONFIRM{OpopenConfirm: &nfsv4.OpenConfirm4res_NFS4_OK{Resok4: nfsv4.OpenConfirm4resok{OpenStateid: theirSid}}}},
	{OK, &StateidArgs{sid}, &nfsv4.NfsResop4_OP_OPEN_DOWNGRADE{OpopenDowngrade: &nfsv4.OpenDowngrade4res_NFS4_OK{Resok4: nfsv4.OpenDowngrade4resok{OpenStateid: theirSid}}}},
	{OK, &ReadRes{true, []byte("data!")}, &nfsv4.NfsResop4_OP_READ{Opread: &nfsv4.Read4res_NFS4_OK{Resok4: nfsv4.Read4resok{Eof: true, Data: []byte("data!")}}}},
	{OK, &ReadDirRes{CookieVerf: verf, EOF: true}, &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_NFS4_OK{Resok4: nfsv4.Readdir4resok{Cookieverf: theirVerf, Reply: nfsv4.Dirlist4{Eof: true}}}}},
	{OK, &ReadDirRes{verf, []Entry{{7, "a", attr}, {8, "bc", Fattr{}}}, false}, &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_NFS4_OK{Resok4: nfsv4.Readdir4resok{Cookieverf: theirVerf, Reply: nfsv4.Dirlist4{
		Entries: &nfsv4.Entry4{Cookie: 7, Name: "a", Attrs: theirAttr, Nextentry: &nfsv4.Entry4{Cookie: 8, Name: "bc"}}}}}}},
	{OK, &Name{"to"}, &nfsv4.NfsResop4_OP_READLINK{Opreadlink: &nfsv4.Readlink4res_NFS4_OK{Resok4: nfsv4.Readlink4resok{Link: []byte("to")}}}},
	{OK, &DirRes{change}, &nfsv4.NfsResop4_OP_REMOVE{Opremove: &nfsv4.Remove4res_NFS4_OK{Resok4: nfsv4.Remove4resok{Cinfo: theirChange}}}},
	{OK, &RenameRes{change, ChangeInfo{false, 7, 8}}, &nfsv4.NfsResop4_OP_RENAME{Oprename: &nfsv4.Rename4res_NFS4_OK{Resok4: nfsv4.Rename4resok{SourceCinfo: theirChange, TargetCinfo: nfsv4.ChangeInfo4{Before: 7, After: 8}}}}},
	{OK, &SetAttrRes{mask}, &nfsv4.NfsResop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4res{Attrsset: theirMask}}},
	{ErrPerm, &SetAttrRes{}, &nfsv4.NfsResop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4res{Status: nfsv4.NFS4ERR_PERM}}},
	{OK, &ClientConfirm{7, verf}, &nfsv4.NfsResop4_OP_SETCLIENTID{Opsetclientid: &nfsv4.Setclientid4res_NFS4_OK{Resok4: nfsv4.Setclientid4resok{Clientid: 7, SetclientidConfirm: theirVerf}}}},
	{ErrClidInUse, &ClientAddr{"tcp", "addr"}, &nfsv4.NfsResop4_OP_SETCLIENTID{Opsetclientid: &nfsv4.Setclientid4res_NFS4ERR_CLID_INUSE{ClientUsing: nfsv4.Netaddr4{NaRNetid: "tcp", NaRAddr: "addr"}}}},
	{OK, &WriteRes{7, FileSync, verf}, &nfsv4.NfsResop4_OP_WRITE{Opwrite: &nfsv4.Write4res_NFS4_OK{Resok4: nfsv4.Write4resok{Count: 7, Committed: nfsv4.FILE_SYNC4, Writeverf: theirVerf}}}},
	{OK, &BindConnToSessionRes{sess, DirBoth, true}, &nfsv4.NfsResop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: &nfsv4.BindConnToSession4res_NFS4_OK{BctsrResok4: nfsv4.BindConnToSession4resok{BctsrSessid: theirSess, BctsrDir: nfsv4.CDFS4_BOTH, BctsrUseConnInRdmaMode: true}}}},
	{OK, &ExchangeIDRes{ClientID: 7, Seq: 8, Flags: 9, ServerMinor: 10, ServerMajor: []byte("major"), Scope: []byte("scope"), Impl: impl}, &nfsv4.NfsResop4_OP_EXCHANGE_ID{OpexchangeId: &nfsv4.ExchangeId4res_NFS4_OK{EirResok4: nfsv4.ExchangeId4resok{EirClientid: 7, EirSequenceid: 8, EirFlags: 9, EirStateProtect: &nfsv4.StateProtect4R_SP4_NONE{}, EirServerOwner: nfsv4.ServerOwner4{SoMinorId: 10, SoMajorId: []byte("major")}, EirServerScope: []byte("scope"), EirServerImplId: theirImpl}}}},
	{OK, &ExchangeIDRes{ClientID: 7, Protect: Protect{How: ProtectMachCred, MustEnforce: ops, MustAllow: mask}}, &nfsv4.NfsResop4_OP_EXCHANGE_ID{OpexchangeId: &nfsv4.ExchangeId4res_NFS4_OK{EirResok4: nfsv4.ExchangeId4resok{EirClientid: 7, EirStateProtect: &nfsv4.StateProtect4R_SP4_MACH_CRED{SprMachOps: nfsv4.StateProtectOps4{SpoMustEnforce: theirOps, SpoMustAllow: theirMask}}}}}},
	{OK, &ExchangeIDRes{ClientID: 7, Protect: Protect{How: ProtectSSV, MustEnforce: ops, MustAllow: mask, HashAlg: 8, EncrAlg: 9, SSVLen: 10, Window: 16, Handles: [][]byte{[]byte("h")}}}, &nfsv4.NfsResop4_OP_EXCHANGE_ID{OpexchangeId: &nfsv4.ExchangeId4res_NFS4_OK{EirResok4: nfsv4.ExchangeId4resok{EirClientid: 7, EirStateProtect: &nfsv4.StateProtect4R_SP4_SSV{SprSsvInfo: nfsv4.SsvProtInfo4{SpiOps: nfsv4.StateProtectOps4{SpoMustEnforce: theirOps, SpoMustAllow: theirMask}, SpiHashAlg: 8, SpiEncrAlg: 9, SpiSsvLen: 10, SpiWindow: 16, SpiHandles: [][]byte{[]byte("h")}}}}}}},
	{OK, &CreateSessionRes{sess, 7, 8, fore, back}, &nfsv4.NfsResop4_OP_CREATE_SESSION{OpcreateSession: &nfsv4.CreateSession4res_NFS4_OK{CsrResok4: nfsv4.CreateSession4resok{CsrSessionid: theirSess, CsrSequence: 7, CsrFlags: 8, CsrForeChanAttrs: theirFore, CsrBackChanAttrs: theirBack}}}},
	{OK, &SequenceRes{sess, 7, 8, 9, 10, 16}, &nfsv4.NfsResop4_OP_SEQUENCE{Opsequence: &nfsv4.Sequence4res_NFS4_OK{SrResok4: nfsv4.Sequence4resok{SrSessionid: theirSess, SrSequenceid: 7, SrSlotid: 8, SrHighestSlotid: 9, SrTargetHighestSlotid: 10, SrStatusFlags: 16}}}},
	{ErrBadSession, &Void{}, &nfsv4.NfsResop4_OP_SEQUENCE{Opsequence: &nfsv4.Sequence4res_default{SrStatus: nfsv4.NFS4ERR_BADSESSION}}},
	{OK, &CopyRes{WriteRes64{7, FileSync, verf}, true, false}, &nfsv4.NfsResop4_OP_COPY{Opcopy: &nfsv4.Copy4res_NFS4_OK{CrResok4: nfsv4.Copy4resok{CrResponse: nfsv4.WriteResponse4{WrCount: 7, WrCommitted: nfsv4.FILE_SYNC4, WrWriteverf: theirVerf}, CrRequirements: nfsv4.CopyRequirements4{CrConsecutive: true}}}}},
	{OK, &CopyRes{WriteRes64{7, Unstable, verf}, false, true}, &nfsv4.NfsResop4_OP_COPY{Opcopy: &nfsv4.Copy4res_NFS4_OK{CrResok4: nfsv4.Copy4resok{CrResponse: nfsv4.WriteResponse4{WrCount: 7, WrWriteverf: theirVerf}, CrRequirements: nfsv4.CopyRequirements4{CrSynchronous: true}}}}},
	{OK, &GetAttrArgs{mask}, &nfsv4.NfsResop4_OP_IO_ADVISE{OpioAdvise: &nfsv4.IoAdvise4res_NFS4_OK{Resok4: nfsv4.IoAdvise4resok{IorHints: theirMask}}}},
	{OK, &SeekRes{true, 7}, &nfsv4.NfsResop4_OP_SEEK{Opseek: &nfsv4.Seek4res_NFS4_OK{Resok4: nfsv4.SeekRes4{SrEof: true, SrOffset: 7}}}},
	{ErrXDev, &Void{}, &nfsv4.NfsResop4_OP_CLONE{Opclone: nfsv4.Clone4res{ClStatus: nfsv4.NFS4ERR_XDEV}}},
	{ErrOpIllegal, &Void{}, &nfsv4.NfsResop4_OP_ILLEGAL{Opillegal: nfsv4.Illegal4res{Status: nfsv4.NFS4ERR_OP_ILLEGAL}}},
}

// callbacks is the same of the operations of CB_COMPOUND.
var callbacks = []struct {
	ours   codec
	theirs nfsv4.NfsCbArgop4
}{
	{&CBSequenceArgs{sess, 7, 8, 9, true, nil}, &nfsv4.NfsCbArgop4_OP_CB_SEQUENCE{Opcbsequence: nfsv4.CbSequence4args{CsaSessionid: theirSess, CsaSequenceid: 7, CsaSlotid: 8, CsaHighestSlotid: 9, CsaCachethis: true}}},
	{&CBSequenceArgs{sess, 7, 8, 9, false, []ReferringCall{{SessionID{3}, 10, 16}}}, &nfsv4.NfsCbArgop4_OP_CB_SEQUENCE{Opcbsequence: nfsv4.CbSequence4args{CsaSessionid: theirSess, CsaSequenceid: 7, CsaSlotid: 8, CsaHighestSlotid: 9,
		CsaReferringCallLists: []nfsv4.ReferringCallList4{{RclSessionid: nfsv4.Sessionid4{3}, RclReferringCalls: []nfsv4.ReferringCall4{{RcSequenceid: 10, RcSlotid: 16}}}}}}},
	{&CBRecallArgs{sid, true, []byte("fh")}, &nfsv4.NfsCbArgop4_OP_CB_RECALL{Opcbrecall: nfsv4.CbRecall4args{Stateid: theirSid, Truncate: true, Fh: []byte("fh")}}},
	{&CBNotifyLockArgs{[]byte("fh"), owner}, &nfsv4.NfsCbArgop4_OP_CB_NOTIFY_LOCK{OpcbnotifyLock: nfsv4.CbNotifyLock4args{CnlaFh: []byte("fh"), CnlaLockOwner: theirOwner}}},
}

// What an independent implementation encodes decodes to the same by ours, and ours
// encodes to its bytes.
func TestOracle(t *testing.T) {
	for _, c := range arguments {
		compare(t, uint32(c.theirs.GetArgop()), nil, c.ours, c.theirs)
	}
	for _, c := range results {
		compare(t, uint32(c.theirs.GetResop()), &c.status, c.ours, c.theirs)
	}
	for _, c := range callbacks {
		compare(t, uint32(c.theirs.GetArgop()), nil, c.ours, c.theirs)
	}
	compare(t, uint32(nfsv4.OP_CB_SEQUENCE), new(Status), &CBSequenceRes{sess, 7, 8, 9, 10}, &nfsv4.NfsCbResop4_OP_CB_SEQUENCE{
		Opcbsequence: &nfsv4.CbSequence4res_NFS4_OK{CsrResok4: nfsv4.CbSequence4resok{CsrSessionid: theirSess, CsrSequenceid: 7, CsrSlotid: 8, CsrHighestSlotid: 9, CsrTargetHighestSlotid: 10}}})
}

// compare holds one operation against the oracle's. status is that of results.
func compare(t *testing.T, op uint32, status *Status, ours codec, theirs io.WriterTo) {
	t.Helper()
	name := fmt.Sprintf("%v %T", Op(op), ours)
	var want bytes.Buffer
	if _, err := theirs.WriteTo(&want); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var w xdr.Writer
	w.Uint32(op)
	if status != nil {
		w.Uint32(uint32(*status))
	}
	ours.Encode(&w)
	if !bytes.Equal(w.B, want.Bytes()) {
		t.Errorf("%s is encoded as\n%x, by the oracle as\n%x", name, w.B, want.Bytes())
		return
	}
	got := reflect.New(reflect.TypeOf(ours).Elem()).Interface().(codec)
	r := xdr.NewReader(want.Bytes()[4:])
	if status != nil {
		r.Uint32()
	}
	if got.Decode(&r); r.Err() != nil || r.Len() != 0 || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", ours) {
		t.Errorf("%s is decoded as %+v, want %+v; %v, %d bytes left", name, got, ours, r.Err(), r.Len())
	}
	// Cut short anywhere, it is an error.
	for n := range want.Len() - 4 {
		got := reflect.New(reflect.TypeOf(ours).Elem()).Interface().(codec)
		r := xdr.NewReader(want.Bytes()[4 : 4+n])
		if status != nil {
			r.Uint32()
		}
		if got.Decode(&r); r.Err() == nil {
			t.Errorf("%s of %d bytes is decoded after %d", name, want.Len()-4, n)
		}
	}
}

// The oracle knows no extended attributes: RFC 8276 section 8.4.
func TestXattrs(t *testing.T) {
	for _, c := range []struct {
		ours codec
		wire string
	}{
		{&SetXattrArgs{SetXattrCreate, "name", []byte("v")}, "\x00\x00\x00\x01" + "\x00\x00\x00\x04name" + "\x00\x00\x00\x01v\x00\x00\x00"},
		{&ListXattrsArgs{0x0102030405060708, 9}, "\x01\x02\x03\x04\x05\x06\x07\x08" + "\x00\x00\x00\x09"},
		{&Name{"n"}, "\x00\x00\x00\x01n\x00\x00\x00"}, // GETXATTR, REMOVEXATTR
		{&DirRes{ChangeInfo{true, 1, 2}}, "\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x02"},
	} {
		var w xdr.Writer
		if c.ours.Encode(&w); string(w.B) != c.wire {
			t.Errorf("%T is encoded as %x, want %x", c.ours, w.B, c.wire)
		}
		got := reflect.New(reflect.TypeOf(c.ours).Elem()).Interface().(codec)
		r := xdr.NewReader([]byte(c.wire))
		if got.Decode(&r); r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(got, c.ours) {
			t.Errorf("%x is decoded as %+v, want %+v", c.wire, got, c.ours)
		}
	}
	r := xdr.NewReader([]byte{0, 0, 0, 3})
	if new(SetXattrArgs).Decode(&r); r.Err() == nil {
		t.Error("an option of SETXATTR that there is not is decoded")
	}
}

// Every status and operation of the oracle has the same number and name here.
func TestNumbers(t *testing.T) {
	for n, theirs := range nfsv4.Nfsstat4_name {
		if got := Status(n); "NFS4ERR_"+got.String() != theirs && theirs != "NFS4_OK" {
			t.Errorf("status %d is %v, to the oracle %s", n, got, theirs)
		}
	}
	for n, theirs := range nfsv4.NfsOpnum4_name {
		if got := Op(n); "OP_"+got.String() != theirs {
			t.Errorf("operation %d is %v, to the oracle %s", n, got, theirs)
		}
	}
	for n, theirs := range nfsv4.NfsCbOpnum4_name {
		if got := CBOp(n); "OP_"+got.String() != theirs {
			t.Errorf("callback operation %d is %v, to the oracle %s", n, got, theirs)
		}
	}
}

// Whatever is decoded is encoded to what decodes to the same, and takes as many
// bytes as the oracle takes.
func FuzzDecode(f *testing.F) {
	for n, c := range arguments {
		var b bytes.Buffer
		c.theirs.WriteTo(&b)
		f.Add(uint8(n), b.Bytes()[4:])
	}
	for n, c := range results {
		var b bytes.Buffer
		c.theirs.WriteTo(&b)
		f.Add(uint8(len(arguments)+n), b.Bytes()[8:])
	}
	f.Fuzz(func(t *testing.T, which uint8, in []byte) {
		var like codec
		var w xdr.Writer // what the oracle needs before it
		n := int(which)
		switch {
		case n < len(arguments):
			like = arguments[n].ours
			w.Uint32(uint32(arguments[n].theirs.GetArgop()))
		case n-len(arguments) < len(results):
			c := &results[n-len(arguments)]
			like = c.ours
			w.Uint32(uint32(c.theirs.GetResop()))
			w.Uint32(uint32(c.status))
		default:
			return
		}
		typ := reflect.TypeOf(like).Elem()
		a, b := reflect.New(typ).Interface().(codec), reflect.New(typ).Interface().(codec)
		r := xdr.NewReader(in)
		if a.Decode(&r); r.Err() != nil {
			return
		}
		took := len(in) - r.Len()
		head := w.Len()
		msg := bytes.NewReader(append(w.B, in...))
		var theirs int64
		var err error
		if n < len(arguments) {
			_, theirs, err = nfsv4.ReadNfsArgop4(msg)
		} else {
			_, theirs, err = nfsv4.ReadNfsResop4(msg)
		}
		if c, is := a.(*CopyArgs); is && c.Servers > 0 {
			return // nothing behind their number is decoded
		}
		if err == nil && int(theirs) != head+took {
			t.Fatalf("%T takes %d bytes, for the oracle %d", a, took, int(theirs)-head)
		}
		w.B = nil
		a.Encode(&w)
		r = xdr.NewReader(w.B)
		if b.Decode(&r); r.Err() != nil || r.Len() != 0 {
			t.Fatalf("%+v is not read as it is written: %v, %d bytes left", a, r.Err(), r.Len())
		}
		// A number of an attribute that nobody knows is not written.
		var again xdr.Writer
		if b.Encode(&again); !bytes.Equal(again.B, w.B) {
			t.Fatalf("%+v is written as\n%x, then as\n%x", a, w.B, again.B)
		}
	})
}
