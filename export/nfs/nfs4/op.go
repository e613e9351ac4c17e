package nfs4

import "fmt"

// Op is nfs_opnum4: the number of an operation of a COMPOUND.
type Op uint32

// Operations: up to OpReleaseLockOwner of minor version 0 (RFC 7530 section 16),
// up to OpReclaimComplete new in 1 (RFC 8881 section 18), up to OpClone new in 2
// (RFC 7862 section 15), the rest extends 2 (RFC 8276 section 8.4).
const (
	OpAccess             Op = 3
	OpClose              Op = 4
	OpCommit             Op = 5
	OpCreate             Op = 6
	OpDelegPurge         Op = 7
	OpDelegReturn        Op = 8
	OpGetAttr            Op = 9
	OpGetFH              Op = 10
	OpLink               Op = 11
	OpLock               Op = 12
	OpLockT              Op = 13
	OpLockU              Op = 14
	OpLookup             Op = 15
	OpLookupP            Op = 16
	OpNVerify            Op = 17
	OpOpen               Op = 18
	OpOpenAttr           Op = 19
	OpOpenConfirm        Op = 20
	OpOpenDowngrade      Op = 21
	OpPutFH              Op = 22
	OpPutPubFH           Op = 23
	OpPutRootFH          Op = 24
	OpRead               Op = 25
	OpReadDir            Op = 26
	OpReadLink           Op = 27
	OpRemove             Op = 28
	OpRename             Op = 29
	OpRenew              Op = 30
	OpRestoreFH          Op = 31
	OpSaveFH             Op = 32
	OpSecInfo            Op = 33
	OpSetAttr            Op = 34
	OpSetClientID        Op = 35
	OpSetClientIDConfirm Op = 36
	OpVerify             Op = 37
	OpWrite              Op = 38
	OpReleaseLockOwner   Op = 39
	OpBackchannelCtl     Op = 40
	OpBindConnToSession  Op = 41
	OpExchangeID         Op = 42
	OpCreateSession      Op = 43
	OpDestroySession     Op = 44
	OpFreeStateid        Op = 45
	OpGetDirDelegation   Op = 46
	OpGetDeviceInfo      Op = 47
	OpGetDeviceList      Op = 48
	OpLayoutCommit       Op = 49
	OpLayoutGet          Op = 50
	OpLayoutReturn       Op = 51
	OpSecInfoNoName      Op = 52
	OpSequence           Op = 53
	OpSetSSV             Op = 54
	OpTestStateid        Op = 55
	OpWantDelegation     Op = 56
	OpDestroyClientID    Op = 57
	OpReclaimComplete    Op = 58
	OpAllocate           Op = 59
	OpCopy               Op = 60
	OpCopyNotify         Op = 61
	OpDeallocate         Op = 62
	OpIOAdvise           Op = 63
	OpLayoutError        Op = 64
	OpLayoutStats        Op = 65
	OpOffloadCancel      Op = 66
	OpOffloadStatus      Op = 67
	OpReadPlus           Op = 68
	OpSeek               Op = 69
	OpWriteSame          Op = 70
	OpClone              Op = 71
	OpGetXattr           Op = 72
	OpSetXattr           Op = 73
	OpListXattrs         Op = 74
	OpRemoveXattr        Op = 75
	OpIllegal            Op = 10044
)

var opNames = [...]string{
	OpAccess:             "ACCESS",
	OpClose:              "CLOSE",
	OpCommit:             "COMMIT",
	OpCreate:             "CREATE",
	OpDelegPurge:         "DELEGPURGE",
	OpDelegReturn:        "DELEGRETURN",
	OpGetAttr:            "GETATTR",
	OpGetFH:              "GETFH",
	OpLink:               "LINK",
	OpLock:               "LOCK",
	OpLockT:              "LOCKT",
	OpLockU:              "LOCKU",
	OpLookup:             "LOOKUP",
	OpLookupP:            "LOOKUPP",
	OpNVerify:            "NVERIFY",
	OpOpen:               "OPEN",
	OpOpenAttr:           "OPENATTR",
	OpOpenConfirm:        "OPEN_CONFIRM",
	OpOpenDowngrade:      "OPEN_DOWNGRADE",
	OpPutFH:              "PUTFH",
	OpPutPubFH:           "PUTPUBFH",
	OpPutRootFH:          "PUTROOTFH",
	OpRead:               "READ",
	OpReadDir:            "READDIR",
	OpReadLink:           "READLINK",
	OpRemove:             "REMOVE",
	OpRename:             "RENAME",
	OpRenew:              "RENEW",
	OpRestoreFH:          "RESTOREFH",
	OpSaveFH:             "SAVEFH",
	OpSecInfo:            "SECINFO",
	OpSetAttr:            "SETATTR",
	OpSetClientID:        "SETCLIENTID",
	OpSetClientIDConfirm: "SETCLIENTID_CONFIRM",
	OpVerify:             "VERIFY",
	OpWrite:              "WRITE",
	OpReleaseLockOwner:   "RELEASE_LOCKOWNER",
	OpBackchannelCtl:     "BACKCHANNEL_CTL",
	OpBindConnToSession:  "BIND_CONN_TO_SESSION",
	OpExchangeID:         "EXCHANGE_ID",
	OpCreateSession:      "CREATE_SESSION",
	OpDestroySession:     "DESTROY_SESSION",
	OpFreeStateid:        "FREE_STATEID",
	OpGetDirDelegation:   "GET_DIR_DELEGATION",
	OpGetDeviceInfo:      "GETDEVICEINFO",
	OpGetDeviceList:      "GETDEVICELIST",
	OpLayoutCommit:       "LAYOUTCOMMIT",
	OpLayoutGet:          "LAYOUTGET",
	OpLayoutReturn:       "LAYOUTRETURN",
	OpSecInfoNoName:      "SECINFO_NO_NAME",
	OpSequence:           "SEQUENCE",
	OpSetSSV:             "SET_SSV",
	OpTestStateid:        "TEST_STATEID",
	OpWantDelegation:     "WANT_DELEGATION",
	OpDestroyClientID:    "DESTROY_CLIENTID",
	OpReclaimComplete:    "RECLAIM_COMPLETE",
	OpAllocate:           "ALLOCATE",
	OpCopy:               "COPY",
	OpCopyNotify:         "COPY_NOTIFY",
	OpDeallocate:         "DEALLOCATE",
	OpIOAdvise:           "IO_ADVISE",
	OpLayoutError:        "LAYOUTERROR",
	OpLayoutStats:        "LAYOUTSTATS",
	OpOffloadCancel:      "OFFLOAD_CANCEL",
	OpOffloadStatus:      "OFFLOAD_STATUS",
	OpReadPlus:           "READ_PLUS",
	OpSeek:               "SEEK",
	OpWriteSame:          "WRITE_SAME",
	OpClone:              "CLONE",
	OpGetXattr:           "GETXATTR",
	OpSetXattr:           "SETXATTR",
	OpListXattrs:         "LISTXATTRS",
	OpRemoveXattr:        "REMOVEXATTR",
}

// OpEnd is one more than the largest operation number but OpIllegal.
const OpEnd = OpRemoveXattr + 1

// String returns the name in the RFC without its prefix: "GETATTR".
func (o Op) String() string {
	if o < OpEnd && opNames[o] != "" {
		return opNames[o]
	}
	if o == OpIllegal {
		return "ILLEGAL"
	}
	return fmt.Sprintf("nfs_opnum4 %d", uint32(o))
}

// CBOp is nfs_cb_opnum4: the number of an operation of a CB_COMPOUND.
type CBOp uint32

// Callback operations: RFC 7530 section 18, RFC 8881 section 20, RFC 7862
// section 16.
const (
	OpCBGetAttr            CBOp = 3
	OpCBRecall             CBOp = 4
	OpCBLayoutRecall       CBOp = 5
	OpCBNotify             CBOp = 6
	OpCBPushDeleg          CBOp = 7
	OpCBRecallAny          CBOp = 8
	OpCBRecallableObjAvail CBOp = 9
	OpCBRecallSlot         CBOp = 10
	OpCBSequence           CBOp = 11
	OpCBWantsCancelled     CBOp = 12
	OpCBNotifyLock         CBOp = 13
	OpCBNotifyDeviceid     CBOp = 14
	OpCBOffload            CBOp = 15
	OpCBIllegal            CBOp = 10044
)

var cbOpNames = [...]string{OpCBGetAttr: "CB_GETATTR", OpCBRecall: "CB_RECALL", OpCBLayoutRecall: "CB_LAYOUTRECALL", OpCBNotify: "CB_NOTIFY", OpCBPushDeleg: "CB_PUSH_DELEG", OpCBRecallAny: "CB_RECALL_ANY", OpCBRecallableObjAvail: "CB_RECALLABLE_OBJ_AVAIL", OpCBRecallSlot: "CB_RECALL_SLOT", OpCBSequence: "CB_SEQUENCE", OpCBWantsCancelled: "CB_WANTS_CANCELLED", OpCBNotifyLock: "CB_NOTIFY_LOCK", OpCBNotifyDeviceid: "CB_NOTIFY_DEVICEID", OpCBOffload: "CB_OFFLOAD"}

// String returns the name in the RFC without its prefix: "CB_RECALL".
func (o CBOp) String() string {
	if o < CBOp(len(cbOpNames)) && cbOpNames[o] != "" {
		return cbOpNames[o]
	}
	if o == OpCBIllegal {
		return "CB_ILLEGAL"
	}
	return fmt.Sprintf("nfs_cb_opnum4 %d", uint32(o))
}
