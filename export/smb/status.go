package smb

import (
	"errors"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// storeStatus is what the store's errors are to clients; MS-FSA says most of it.
var storeStatus = map[error]wire.Status{
	memstore.ErrAccess:         wire.StatusAccessDenied,
	memstore.ErrBadType:        wire.StatusNotSupported,
	memstore.ErrClosed:         wire.StatusNetworkNameDeleted,
	memstore.ErrDeletePending:  wire.StatusDeletePending,
	memstore.ErrExist:          wire.StatusNameCollision,
	memstore.ErrFileTooLarge:   wire.StatusDiskFull,
	memstore.ErrInvalid:        wire.StatusInvalidParameter,
	memstore.ErrIsDir:          wire.StatusFileIsADirectory,
	memstore.ErrLocked:         wire.StatusFileLockConflict,
	memstore.ErrNameTooLong:    wire.StatusNameInvalid,
	memstore.ErrNoData:         wire.StatusEndOfFile,
	memstore.ErrNoSpace:        wire.StatusDiskFull,
	memstore.ErrNotDir:         wire.StatusNotADirectory,
	memstore.ErrNotEmpty:       wire.StatusDirectoryNotEmpty,
	memstore.ErrNotExist:       wire.StatusNameNotFound,
	memstore.ErrNotSupported:   wire.StatusNotSupported,
	memstore.ErrNotSymlink:     wire.StatusNotAReparsePoint,
	memstore.ErrNotSync:        wire.StatusInvalidParameter,
	memstore.ErrNoXattr:        wire.StatusNotFound,
	memstore.ErrPerm:           wire.StatusAccessDenied,
	memstore.ErrRange:          wire.StatusRangeNotLocked,
	memstore.ErrShareViolation: wire.StatusSharingViolation,
	memstore.ErrStale:          wire.StatusDeletePending,
	memstore.ErrTooManyLinks:   wire.StatusTooManyLinks,
	memstore.ErrXDev:           wire.StatusNotSameDevice,
	memstore.ErrXattrTooBig:    wire.StatusDiskFull,
}

// status is what a store's error is to the client. Where the store says that the
// call has to wait for somebody, the command waits too.
func (r *request) status(err error) wire.Status {
	if err == nil {
		return wire.StatusOK
	}
	if s, ok := storeStatus[err]; ok {
		return s
	}
	var w *memstore.Wait
	if errors.As(err, &w) {
		r.wait, r.ready = w, w.Done()
		return wire.StatusPending
	}
	for e, s := range storeStatus {
		if errors.Is(err, e) {
			return s
		}
	}
	r.c.s.log.Error("request failed", "command", r.cmd.name, "peer", r.c.peer, "error", err)
	return wire.StatusInternalError
}
