package wire

import "fmt"

// Status is an NTSTATUS, MS-ERREF section 2.3.1.
type Status uint32

// IsError tells whether s says that something went wrong.
func (s Status) IsError() bool { return s>>30 == 3 && s != StatusMoreProcessingRequired }

func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("%#08x", uint32(s))
}

// Error makes a status an error, as clients need it.
func (s Status) Error() string { return s.String() }

// Statuses that the server answers.
const (
	StatusOK                        Status = 0x00000000
	StatusPending                   Status = 0x00000103
	StatusNotifyCleanup             Status = 0x0000010B
	StatusNotifyEnumDir             Status = 0x0000010C
	StatusBufferOverflow            Status = 0x80000005
	StatusNoMoreFiles               Status = 0x80000006
	StatusNoMoreEAs                 Status = 0x80000012
	StatusEAListInconsistent        Status = 0x80000014
	StatusInvalidEAName             Status = 0x80000013
	StatusStoppedOnSymlink          Status = 0x8000002D
	StatusUnsuccessful              Status = 0xC0000001
	StatusNotImplemented            Status = 0xC0000002
	StatusInvalidInfoClass          Status = 0xC0000003
	StatusInfoLengthMismatch        Status = 0xC0000004
	StatusInvalidHandle             Status = 0xC0000008
	StatusInvalidParameter          Status = 0xC000000D
	StatusNoSuchDevice              Status = 0xC000000E
	StatusInvalidViewSize           Status = 0xC000001F
	StatusNoSuchFile                Status = 0xC000000F
	StatusInvalidDeviceRequest      Status = 0xC0000010
	StatusEndOfFile                 Status = 0xC0000011
	StatusMoreProcessingRequired    Status = 0xC0000016
	StatusNoMemory                  Status = 0xC0000017
	StatusAccessDenied              Status = 0xC0000022
	StatusBufferTooSmall            Status = 0xC0000023
	StatusObjectTypeMismatch        Status = 0xC0000024
	StatusNameInvalid               Status = 0xC0000033
	StatusNameNotFound              Status = 0xC0000034
	StatusNameCollision             Status = 0xC0000035
	StatusObjectPathInvalid         Status = 0xC0000039
	StatusPathNotFound              Status = 0xC000003A
	StatusPathSyntaxBad             Status = 0xC000003B
	StatusSharingViolation          Status = 0xC0000043
	StatusEANotSupported            Status = 0xC000004F
	StatusInvalidImpersonation      Status = 0xC00000A5
	StatusFileCorrupt               Status = 0xC0000102
	StatusReparseNotHandled         Status = 0xC0000279
	StatusEATooLarge                Status = 0xC0000050
	StatusNonexistentEAEntry        Status = 0xC0000051
	StatusNoEAs                     Status = 0xC0000052
	StatusEACorruptError            Status = 0xC0000053
	StatusFileLockConflict          Status = 0xC0000054
	StatusLockNotGranted            Status = 0xC0000055
	StatusDeletePending             Status = 0xC0000056
	StatusInvalidOwner              Status = 0xC000005A
	StatusPrivilegeNotHeld          Status = 0xC0000061
	StatusNoSuchUser                Status = 0xC0000064
	StatusWrongPassword             Status = 0xC000006A
	StatusLogonFailure              Status = 0xC000006D
	StatusAccountDisabled           Status = 0xC0000072
	StatusInvalidACL                Status = 0xC0000077
	StatusInvalidSID                Status = 0xC0000078
	StatusInvalidSecurityDescriptor Status = 0xC0000079
	StatusRangeNotLocked            Status = 0xC000007E
	StatusDiskFull                  Status = 0xC000007F
	StatusInsufficientResources     Status = 0xC000009A
	StatusFileInvalid               Status = 0xC0000098
	StatusMediaWriteProtected       Status = 0xC00000A2
	StatusInstanceNotAvailable      Status = 0xC00000AB
	StatusPipeNotAvailable          Status = 0xC00000AC
	StatusInvalidPipeState          Status = 0xC00000AD
	StatusPipeBusy                  Status = 0xC00000AE
	StatusPipeDisconnected          Status = 0xC00000B0
	StatusPipeClosing               Status = 0xC00000B1
	StatusIOTimeout                 Status = 0xC00000B5
	StatusFileIsADirectory          Status = 0xC00000BA
	StatusNotSupported              Status = 0xC00000BB
	StatusNetworkNameDeleted        Status = 0xC00000C9
	StatusNetworkAccessDenied       Status = 0xC00000CA
	StatusBadNetworkName            Status = 0xC00000CC
	StatusRequestNotAccepted        Status = 0xC00000D0
	StatusNotSameDevice             Status = 0xC00000D4
	StatusFileRenamed               Status = 0xC00000D5
	StatusPipeEmpty                 Status = 0xC00000D9
	StatusInternalError             Status = 0xC00000E5
	StatusInvalidUserBuffer         Status = 0xC00000E8
	StatusUnexpectedIOError         Status = 0xC00000E9
	StatusDirectoryNotEmpty         Status = 0xC0000101
	StatusNotADirectory             Status = 0xC0000103
	StatusNameTooLong               Status = 0xC0000106
	StatusTooManyOpenFiles          Status = 0xC000011F
	StatusCancelled                 Status = 0xC0000120
	StatusCannotDelete              Status = 0xC0000121
	StatusFileDeleted               Status = 0xC0000123
	StatusFileClosed                Status = 0xC0000128
	StatusInvalidDeviceState        Status = 0xC0000184
	StatusFSDriverRequired          Status = 0xC000019C
	StatusInvalidLockRange          Status = 0xC00001A1
	StatusUserSessionDeleted        Status = 0xC0000203
	StatusNotFound                  Status = 0xC0000225
	StatusPathNotCovered            Status = 0xC0000257
	StatusTooManyLinks              Status = 0xC0000265
	StatusNotAReparsePoint          Status = 0xC0000275
	StatusReparseTagInvalid         Status = 0xC0000276
	StatusReparseTagMismatch        Status = 0xC0000277
	StatusReparseDataInvalid        Status = 0xC0000278
	StatusDecryptionFailed          Status = 0xC000028B
	StatusObjectIDNotFound          Status = 0xC00002F0
	StatusNetworkSessionExpired     Status = 0xC000035C
	StatusFileSystemLimitation      Status = 0xC0000427
	StatusFileNotAvailable          Status = 0xC0000467
	StatusHashNotSupported          Status = 0xC000A100
	StatusNoPreauthOverlap          Status = 0xC05D0000
)

var statusNames = map[Status]string{
	StatusOK:                        "SUCCESS",
	StatusPending:                   "PENDING",
	StatusNotifyCleanup:             "NOTIFY_CLEANUP",
	StatusNotifyEnumDir:             "NOTIFY_ENUM_DIR",
	StatusBufferOverflow:            "BUFFER_OVERFLOW",
	StatusNoMoreFiles:               "NO_MORE_FILES",
	StatusNoMoreEAs:                 "NO_MORE_EAS",
	StatusEAListInconsistent:        "EA_LIST_INCONSISTENT",
	StatusInvalidEAName:             "INVALID_EA_NAME",
	StatusStoppedOnSymlink:          "STOPPED_ON_SYMLINK",
	StatusUnsuccessful:              "UNSUCCESSFUL",
	StatusNotImplemented:            "NOT_IMPLEMENTED",
	StatusInvalidInfoClass:          "INVALID_INFO_CLASS",
	StatusInfoLengthMismatch:        "INFO_LENGTH_MISMATCH",
	StatusInvalidHandle:             "INVALID_HANDLE",
	StatusInvalidParameter:          "INVALID_PARAMETER",
	StatusNoSuchDevice:              "NO_SUCH_DEVICE",
	StatusInvalidViewSize:           "INVALID_VIEW_SIZE",
	StatusNoSuchFile:                "NO_SUCH_FILE",
	StatusInvalidDeviceRequest:      "INVALID_DEVICE_REQUEST",
	StatusEndOfFile:                 "END_OF_FILE",
	StatusMoreProcessingRequired:    "MORE_PROCESSING_REQUIRED",
	StatusNoMemory:                  "NO_MEMORY",
	StatusAccessDenied:              "ACCESS_DENIED",
	StatusBufferTooSmall:            "BUFFER_TOO_SMALL",
	StatusObjectTypeMismatch:        "OBJECT_TYPE_MISMATCH",
	StatusNameInvalid:               "OBJECT_NAME_INVALID",
	StatusNameNotFound:              "OBJECT_NAME_NOT_FOUND",
	StatusNameCollision:             "OBJECT_NAME_COLLISION",
	StatusObjectPathInvalid:         "OBJECT_PATH_INVALID",
	StatusPathNotFound:              "OBJECT_PATH_NOT_FOUND",
	StatusPathSyntaxBad:             "OBJECT_PATH_SYNTAX_BAD",
	StatusSharingViolation:          "SHARING_VIOLATION",
	StatusEANotSupported:            "EAS_NOT_SUPPORTED",
	StatusInvalidImpersonation:      "BAD_IMPERSONATION_LEVEL",
	StatusFileCorrupt:               "FILE_CORRUPT_ERROR",
	StatusReparseNotHandled:         "IO_REPARSE_TAG_NOT_HANDLED",
	StatusEATooLarge:                "EA_TOO_LARGE",
	StatusNonexistentEAEntry:        "NONEXISTENT_EA_ENTRY",
	StatusNoEAs:                     "NO_EAS_ON_FILE",
	StatusEACorruptError:            "EA_CORRUPT_ERROR",
	StatusFileLockConflict:          "FILE_LOCK_CONFLICT",
	StatusLockNotGranted:            "LOCK_NOT_GRANTED",
	StatusDeletePending:             "DELETE_PENDING",
	StatusInvalidOwner:              "INVALID_OWNER",
	StatusPrivilegeNotHeld:          "PRIVILEGE_NOT_HELD",
	StatusNoSuchUser:                "NO_SUCH_USER",
	StatusWrongPassword:             "WRONG_PASSWORD",
	StatusLogonFailure:              "LOGON_FAILURE",
	StatusAccountDisabled:           "ACCOUNT_DISABLED",
	StatusInvalidACL:                "INVALID_ACL",
	StatusInvalidSID:                "INVALID_SID",
	StatusInvalidSecurityDescriptor: "INVALID_SECURITY_DESCR",
	StatusRangeNotLocked:            "RANGE_NOT_LOCKED",
	StatusDiskFull:                  "DISK_FULL",
	StatusInsufficientResources:     "INSUFFICIENT_RESOURCES",
	StatusFileInvalid:               "FILE_INVALID",
	StatusMediaWriteProtected:       "MEDIA_WRITE_PROTECTED",
	StatusInstanceNotAvailable:      "INSTANCE_NOT_AVAILABLE",
	StatusPipeNotAvailable:          "PIPE_NOT_AVAILABLE",
	StatusInvalidPipeState:          "INVALID_PIPE_STATE",
	StatusPipeBusy:                  "PIPE_BUSY",
	StatusPipeDisconnected:          "PIPE_DISCONNECTED",
	StatusPipeClosing:               "PIPE_CLOSING",
	StatusIOTimeout:                 "IO_TIMEOUT",
	StatusFileIsADirectory:          "FILE_IS_A_DIRECTORY",
	StatusNotSupported:              "NOT_SUPPORTED",
	StatusNetworkNameDeleted:        "NETWORK_NAME_DELETED",
	StatusNetworkAccessDenied:       "NETWORK_ACCESS_DENIED",
	StatusBadNetworkName:            "BAD_NETWORK_NAME",
	StatusRequestNotAccepted:        "REQUEST_NOT_ACCEPTED",
	StatusNotSameDevice:             "NOT_SAME_DEVICE",
	StatusFileRenamed:               "FILE_RENAMED",
	StatusPipeEmpty:                 "PIPE_EMPTY",
	StatusInternalError:             "INTERNAL_ERROR",
	StatusInvalidUserBuffer:         "INVALID_USER_BUFFER",
	StatusUnexpectedIOError:         "UNEXPECTED_IO_ERROR",
	StatusDirectoryNotEmpty:         "DIRECTORY_NOT_EMPTY",
	StatusNotADirectory:             "NOT_A_DIRECTORY",
	StatusNameTooLong:               "NAME_TOO_LONG",
	StatusTooManyOpenFiles:          "TOO_MANY_OPENED_FILES",
	StatusCancelled:                 "CANCELLED",
	StatusCannotDelete:              "CANNOT_DELETE",
	StatusFileDeleted:               "FILE_DELETED",
	StatusFileClosed:                "FILE_CLOSED",
	StatusInvalidDeviceState:        "INVALID_DEVICE_STATE",
	StatusFSDriverRequired:          "FS_DRIVER_REQUIRED",
	StatusInvalidLockRange:          "INVALID_LOCK_RANGE",
	StatusUserSessionDeleted:        "USER_SESSION_DELETED",
	StatusNotFound:                  "NOT_FOUND",
	StatusPathNotCovered:            "PATH_NOT_COVERED",
	StatusTooManyLinks:              "TOO_MANY_LINKS",
	StatusNotAReparsePoint:          "NOT_A_REPARSE_POINT",
	StatusReparseTagInvalid:         "IO_REPARSE_TAG_INVALID",
	StatusReparseTagMismatch:        "IO_REPARSE_TAG_MISMATCH",
	StatusReparseDataInvalid:        "IO_REPARSE_DATA_INVALID",
	StatusDecryptionFailed:          "DECRYPTION_FAILED",
	StatusObjectIDNotFound:          "OBJECTID_NOT_FOUND",
	StatusNetworkSessionExpired:     "NETWORK_SESSION_EXPIRED",
	StatusFileSystemLimitation:      "FILE_SYSTEM_LIMITATION",
	StatusFileNotAvailable:          "FILE_NOT_AVAILABLE",
	StatusHashNotSupported:          "HASH_NOT_SUPPORTED",
	StatusNoPreauthOverlap:          "SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP",
}
