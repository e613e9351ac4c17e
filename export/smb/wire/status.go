package wire

import "fmt"

// Status is an NTSTATUS, MS-ERREF section 2.3.1.
type Status uint32

// Statuses that the server answers.
const (
	StatusOK                     Status = 0
	StatusPending                Status = 0x00000103
	StatusNotifyCleanup          Status = 0x0000010B
	StatusNotifyEnumDir          Status = 0x0000010C
	StatusBufferOverflow         Status = 0x80000005
	StatusInvalidParameter       Status = 0xC000000D
	StatusMoreProcessingRequired Status = 0xC0000016
	StatusAccessDenied           Status = 0xC0000022
	StatusRangeNotLocked         Status = 0xC000007E
	StatusLogonFailure           Status = 0xC000006D
	StatusInsufficientResources  Status = 0xC000009A
	StatusNotSupported           Status = 0xC00000BB
	StatusNetworkNameDeleted     Status = 0xC00000C9
	StatusBadNetworkName         Status = 0xC00000CC
	StatusRequestNotAccepted     Status = 0xC00000D0
	StatusInternalError          Status = 0xC00000E5
	StatusCancelled              Status = 0xC0000120
	StatusFileClosed             Status = 0xC0000128
	StatusUserSessionDeleted     Status = 0xC0000203
	StatusNoPreauthOverlap       Status = 0xC05D0000
)

// IsError tells whether s says that something went wrong.
func (s Status) IsError() bool { return s>>30 == 3 && s != StatusMoreProcessingRequired }

func (s Status) String() string {
	return fmt.Sprintf("%#08x", uint32(s))
}
