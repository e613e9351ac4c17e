package nfs4

import "fmt"

// Status is nfsstat4, RFC 8881 section 15.1. It is an error to a client when it
// is not [OK].
type Status uint32

// Status values of all minor versions: RFC 7530 section 13.1, RFC 8881 section
// 15.1, RFC 7862 section 11.1 and RFC 8276 section 8.5. A server of minor
// version 1 or 2 never answers ErrResource, ErrBadSeqid or ErrLeaseMoved.
const (
	OK                       Status = 0
	ErrPerm                  Status = 1
	ErrNoEnt                 Status = 2
	ErrIO                    Status = 5
	ErrNXIO                  Status = 6
	ErrAccess                Status = 13
	ErrExist                 Status = 17
	ErrXDev                  Status = 18
	ErrNotDir                Status = 20
	ErrIsDir                 Status = 21
	ErrInval                 Status = 22
	ErrFBig                  Status = 27
	ErrNoSpc                 Status = 28
	ErrROFS                  Status = 30
	ErrMLink                 Status = 31
	ErrNameTooLong           Status = 63
	ErrNotEmpty              Status = 66
	ErrDQuot                 Status = 69
	ErrStale                 Status = 70
	ErrBadHandle             Status = 10001
	ErrBadCookie             Status = 10003
	ErrNotSupp               Status = 10004
	ErrTooSmall              Status = 10005
	ErrServerFault           Status = 10006
	ErrBadType               Status = 10007
	ErrDelay                 Status = 10008
	ErrSame                  Status = 10009
	ErrDenied                Status = 10010
	ErrExpired               Status = 10011
	ErrLocked                Status = 10012
	ErrGrace                 Status = 10013
	ErrFHExpired             Status = 10014
	ErrShareDenied           Status = 10015
	ErrWrongSec              Status = 10016
	ErrClidInUse             Status = 10017
	ErrResource              Status = 10018
	ErrMoved                 Status = 10019
	ErrNoFileHandle          Status = 10020
	ErrMinorVersMismatch     Status = 10021
	ErrStaleClientID         Status = 10022
	ErrStaleStateid          Status = 10023
	ErrOldStateid            Status = 10024
	ErrBadStateid            Status = 10025
	ErrBadSeqid              Status = 10026
	ErrNotSame               Status = 10027
	ErrLockRange             Status = 10028
	ErrSymlink               Status = 10029
	ErrRestoreFH             Status = 10030
	ErrLeaseMoved            Status = 10031
	ErrAttrNotSupp           Status = 10032
	ErrNoGrace               Status = 10033
	ErrReclaimBad            Status = 10034
	ErrReclaimConflict       Status = 10035
	ErrBadXDR                Status = 10036
	ErrLocksHeld             Status = 10037
	ErrOpenMode              Status = 10038
	ErrBadOwner              Status = 10039
	ErrBadChar               Status = 10040
	ErrBadName               Status = 10041
	ErrBadRange              Status = 10042
	ErrLockNotSupp           Status = 10043
	ErrOpIllegal             Status = 10044
	ErrDeadlock              Status = 10045
	ErrFileOpen              Status = 10046
	ErrAdminRevoked          Status = 10047
	ErrCBPathDown            Status = 10048
	ErrBadIOMode             Status = 10049
	ErrBadLayout             Status = 10050
	ErrBadSessionDigest      Status = 10051
	ErrBadSession            Status = 10052
	ErrBadSlot               Status = 10053
	ErrCompleteAlready       Status = 10054
	ErrConnNotBoundToSession Status = 10055
	ErrDelegAlreadyWanted    Status = 10056
	ErrBackChanBusy          Status = 10057
	ErrLayoutTryLater        Status = 10058
	ErrLayoutUnavailable     Status = 10059
	ErrNoMatchingLayout      Status = 10060
	ErrRecallConflict        Status = 10061
	ErrUnknownLayoutType     Status = 10062
	ErrSeqMisordered         Status = 10063
	ErrSequencePos           Status = 10064
	ErrReqTooBig             Status = 10065
	ErrRepTooBig             Status = 10066
	ErrRepTooBigToCache      Status = 10067
	ErrRetryUncachedRep      Status = 10068
	ErrUnsafeCompound        Status = 10069
	ErrTooManyOps            Status = 10070
	ErrOpNotInSession        Status = 10071
	ErrHashAlgUnsupp         Status = 10072
	ErrClientIDBusy          Status = 10074
	ErrPNFSIOHole            Status = 10075
	ErrSeqFalseRetry         Status = 10076
	ErrBadHighSlot           Status = 10077
	ErrDeadSession           Status = 10078
	ErrEncrAlgUnsupp         Status = 10079
	ErrPNFSNoLayout          Status = 10080
	ErrNotOnlyOp             Status = 10081
	ErrWrongCred             Status = 10082
	ErrWrongType             Status = 10083
	ErrDirDelegUnavail       Status = 10084
	ErrRejectDeleg           Status = 10085
	ErrReturnConflict        Status = 10086
	ErrDelegRevoked          Status = 10087
	ErrPartnerNotSupp        Status = 10088
	ErrPartnerNoAuth         Status = 10089
	ErrUnionNotSupp          Status = 10090
	ErrOffloadDenied         Status = 10091
	ErrWrongLFS              Status = 10092
	ErrBadLabel              Status = 10093
	ErrOffloadNoReqs         Status = 10094
	ErrNoXattr               Status = 10095
	ErrXattr2Big             Status = 10096
)

// Names of the values below 10000, and of those from there on.
var (
	statusNames  = [...]string{OK: "OK", ErrPerm: "PERM", ErrNoEnt: "NOENT", ErrIO: "IO", ErrNXIO: "NXIO", ErrAccess: "ACCESS", ErrExist: "EXIST", ErrXDev: "XDEV", ErrNotDir: "NOTDIR", ErrIsDir: "ISDIR", ErrInval: "INVAL", ErrFBig: "FBIG", ErrNoSpc: "NOSPC", ErrROFS: "ROFS", ErrMLink: "MLINK", ErrNameTooLong: "NAMETOOLONG", ErrNotEmpty: "NOTEMPTY", ErrDQuot: "DQUOT", ErrStale: "STALE"}
	statusNames4 = [...]string{
		ErrBadHandle - 10000:             "BADHANDLE",
		ErrBadCookie - 10000:             "BAD_COOKIE",
		ErrNotSupp - 10000:               "NOTSUPP",
		ErrTooSmall - 10000:              "TOOSMALL",
		ErrServerFault - 10000:           "SERVERFAULT",
		ErrBadType - 10000:               "BADTYPE",
		ErrDelay - 10000:                 "DELAY",
		ErrSame - 10000:                  "SAME",
		ErrDenied - 10000:                "DENIED",
		ErrExpired - 10000:               "EXPIRED",
		ErrLocked - 10000:                "LOCKED",
		ErrGrace - 10000:                 "GRACE",
		ErrFHExpired - 10000:             "FHEXPIRED",
		ErrShareDenied - 10000:           "SHARE_DENIED",
		ErrWrongSec - 10000:              "WRONGSEC",
		ErrClidInUse - 10000:             "CLID_INUSE",
		ErrResource - 10000:              "RESOURCE",
		ErrMoved - 10000:                 "MOVED",
		ErrNoFileHandle - 10000:          "NOFILEHANDLE",
		ErrMinorVersMismatch - 10000:     "MINOR_VERS_MISMATCH",
		ErrStaleClientID - 10000:         "STALE_CLIENTID",
		ErrStaleStateid - 10000:          "STALE_STATEID",
		ErrOldStateid - 10000:            "OLD_STATEID",
		ErrBadStateid - 10000:            "BAD_STATEID",
		ErrBadSeqid - 10000:              "BAD_SEQID",
		ErrNotSame - 10000:               "NOT_SAME",
		ErrLockRange - 10000:             "LOCK_RANGE",
		ErrSymlink - 10000:               "SYMLINK",
		ErrRestoreFH - 10000:             "RESTOREFH",
		ErrLeaseMoved - 10000:            "LEASE_MOVED",
		ErrAttrNotSupp - 10000:           "ATTRNOTSUPP",
		ErrNoGrace - 10000:               "NO_GRACE",
		ErrReclaimBad - 10000:            "RECLAIM_BAD",
		ErrReclaimConflict - 10000:       "RECLAIM_CONFLICT",
		ErrBadXDR - 10000:                "BADXDR",
		ErrLocksHeld - 10000:             "LOCKS_HELD",
		ErrOpenMode - 10000:              "OPENMODE",
		ErrBadOwner - 10000:              "BADOWNER",
		ErrBadChar - 10000:               "BADCHAR",
		ErrBadName - 10000:               "BADNAME",
		ErrBadRange - 10000:              "BAD_RANGE",
		ErrLockNotSupp - 10000:           "LOCK_NOTSUPP",
		ErrOpIllegal - 10000:             "OP_ILLEGAL",
		ErrDeadlock - 10000:              "DEADLOCK",
		ErrFileOpen - 10000:              "FILE_OPEN",
		ErrAdminRevoked - 10000:          "ADMIN_REVOKED",
		ErrCBPathDown - 10000:            "CB_PATH_DOWN",
		ErrBadIOMode - 10000:             "BADIOMODE",
		ErrBadLayout - 10000:             "BADLAYOUT",
		ErrBadSessionDigest - 10000:      "BAD_SESSION_DIGEST",
		ErrBadSession - 10000:            "BADSESSION",
		ErrBadSlot - 10000:               "BADSLOT",
		ErrCompleteAlready - 10000:       "COMPLETE_ALREADY",
		ErrConnNotBoundToSession - 10000: "CONN_NOT_BOUND_TO_SESSION",
		ErrDelegAlreadyWanted - 10000:    "DELEG_ALREADY_WANTED",
		ErrBackChanBusy - 10000:          "BACK_CHAN_BUSY",
		ErrLayoutTryLater - 10000:        "LAYOUTTRYLATER",
		ErrLayoutUnavailable - 10000:     "LAYOUTUNAVAILABLE",
		ErrNoMatchingLayout - 10000:      "NOMATCHING_LAYOUT",
		ErrRecallConflict - 10000:        "RECALLCONFLICT",
		ErrUnknownLayoutType - 10000:     "UNKNOWN_LAYOUTTYPE",
		ErrSeqMisordered - 10000:         "SEQ_MISORDERED",
		ErrSequencePos - 10000:           "SEQUENCE_POS",
		ErrReqTooBig - 10000:             "REQ_TOO_BIG",
		ErrRepTooBig - 10000:             "REP_TOO_BIG",
		ErrRepTooBigToCache - 10000:      "REP_TOO_BIG_TO_CACHE",
		ErrRetryUncachedRep - 10000:      "RETRY_UNCACHED_REP",
		ErrUnsafeCompound - 10000:        "UNSAFE_COMPOUND",
		ErrTooManyOps - 10000:            "TOO_MANY_OPS",
		ErrOpNotInSession - 10000:        "OP_NOT_IN_SESSION",
		ErrHashAlgUnsupp - 10000:         "HASH_ALG_UNSUPP",
		ErrClientIDBusy - 10000:          "CLIENTID_BUSY",
		ErrPNFSIOHole - 10000:            "PNFS_IO_HOLE",
		ErrSeqFalseRetry - 10000:         "SEQ_FALSE_RETRY",
		ErrBadHighSlot - 10000:           "BAD_HIGH_SLOT",
		ErrDeadSession - 10000:           "DEADSESSION",
		ErrEncrAlgUnsupp - 10000:         "ENCR_ALG_UNSUPP",
		ErrPNFSNoLayout - 10000:          "PNFS_NO_LAYOUT",
		ErrNotOnlyOp - 10000:             "NOT_ONLY_OP",
		ErrWrongCred - 10000:             "WRONG_CRED",
		ErrWrongType - 10000:             "WRONG_TYPE",
		ErrDirDelegUnavail - 10000:       "DIRDELEG_UNAVAIL",
		ErrRejectDeleg - 10000:           "REJECT_DELEG",
		ErrReturnConflict - 10000:        "RETURNCONFLICT",
		ErrDelegRevoked - 10000:          "DELEG_REVOKED",
		ErrPartnerNotSupp - 10000:        "PARTNER_NOTSUPP",
		ErrPartnerNoAuth - 10000:         "PARTNER_NO_AUTH",
		ErrUnionNotSupp - 10000:          "UNION_NOTSUPP",
		ErrOffloadDenied - 10000:         "OFFLOAD_DENIED",
		ErrWrongLFS - 10000:              "WRONG_LFS",
		ErrBadLabel - 10000:              "BADLABEL",
		ErrOffloadNoReqs - 10000:         "OFFLOAD_NO_REQS",
		ErrNoXattr - 10000:               "NOXATTR",
		ErrXattr2Big - 10000:             "XATTR2BIG",
	}
)

// String returns the name in the RFC without its prefix: "NOENT".
func (s Status) String() string {
	if s < Status(len(statusNames)) && statusNames[s] != "" {
		return statusNames[s]
	}
	if i := s - 10000; i < Status(len(statusNames4)) && statusNames4[i] != "" {
		return statusNames4[i]
	}
	return fmt.Sprintf("nfsstat4 %d", uint32(s))
}

func (s Status) Error() string { return "NFS4ERR_" + s.String() }
