package nfs

import (
	"errors"

	"ramserver/export/nfs/nfs3"
	"ramserver/memstore"
)

// storeStatus is what the errors of the store are in NFS version 3, RFC 1813
// section 2.6.
//
// A file that another client has opened with a share mode, or locked, answers
// ACCES: JUKEBOX would be retried for ever, and there is no other.
var storeStatus = map[error]nfs3.Status{
	memstore.ErrAccess:         nfs3.ErrAcces,
	memstore.ErrBadType:        nfs3.ErrBadType,
	memstore.ErrClosed:         nfs3.ErrStale,
	memstore.ErrExist:          nfs3.ErrExist,
	memstore.ErrFileTooLarge:   nfs3.ErrFBig,
	memstore.ErrInvalid:        nfs3.ErrInval,
	memstore.ErrIsDir:          nfs3.ErrIsDir,
	memstore.ErrLocked:         nfs3.ErrAcces,
	memstore.ErrNameTooLong:    nfs3.ErrNameTooLong,
	memstore.ErrNoData:         nfs3.ErrNXIO,
	memstore.ErrNoSpace:        nfs3.ErrNoSpc,
	memstore.ErrNotDir:         nfs3.ErrNotDir,
	memstore.ErrNotEmpty:       nfs3.ErrNotEmpty,
	memstore.ErrNotExist:       nfs3.ErrNoEnt,
	memstore.ErrNotSupported:   nfs3.ErrNotSupp,
	memstore.ErrNotSymlink:     nfs3.ErrInval,
	memstore.ErrNotSync:        nfs3.ErrNotSync,
	memstore.ErrNoXattr:        nfs3.ErrNoEnt,
	memstore.ErrPerm:           nfs3.ErrPerm,
	memstore.ErrRange:          nfs3.ErrInval,
	memstore.ErrShareViolation: nfs3.ErrAcces,
	memstore.ErrStale:          nfs3.ErrStale,
	memstore.ErrTooManyLinks:   nfs3.ErrMLink,
	memstore.ErrXDev:           nfs3.ErrXDev,
	memstore.ErrXattrTooBig:    nfs3.ErrNoSpc,
}

// statusOf maps an error of the store, or a Status, to the Status of a reply.
func statusOf(err error) nfs3.Status {
	if err == nil {
		return nfs3.OK
	}
	if s, ok := err.(nfs3.Status); ok {
		return s
	}
	if s, ok := storeStatus[err]; ok {
		return s
	}
	var w *memstore.Wait
	if errors.As(err, &w) {
		return nfs3.ErrJukebox
	}
	for known, s := range storeStatus {
		if errors.Is(err, known) {
			return s
		}
	}
	return nfs3.ErrServerFault
}
