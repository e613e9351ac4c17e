package nfs

import (
	"errors"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
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
	memstore.ErrDeletePending:  nfs3.ErrAcces,
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

// storeStatus4 is what the errors of the store are in NFS version 4, RFC 8881
// section 15.1 and RFC 8276 section 8.5. What ErrShareViolation is depends on
// the operation.
var storeStatus4 = map[error]nfs4.Status{
	memstore.ErrAccess:         nfs4.ErrAccess,
	memstore.ErrBadType:        nfs4.ErrBadType,
	memstore.ErrClosed:         nfs4.ErrStale,
	memstore.ErrExist:          nfs4.ErrExist,
	memstore.ErrFileTooLarge:   nfs4.ErrFBig,
	memstore.ErrInvalid:        nfs4.ErrInval,
	memstore.ErrIsDir:          nfs4.ErrIsDir,
	memstore.ErrLocked:         nfs4.ErrLocked,
	memstore.ErrNameTooLong:    nfs4.ErrNameTooLong,
	memstore.ErrNoData:         nfs4.ErrNXIO,
	memstore.ErrNoSpace:        nfs4.ErrNoSpc,
	memstore.ErrNotDir:         nfs4.ErrNotDir,
	memstore.ErrNotEmpty:       nfs4.ErrNotEmpty,
	memstore.ErrNotExist:       nfs4.ErrNoEnt,
	memstore.ErrNotSupported:   nfs4.ErrNotSupp,
	memstore.ErrNotSymlink:     nfs4.ErrInval,
	memstore.ErrNotSync:        nfs4.ErrInval,
	memstore.ErrNoXattr:        nfs4.ErrNoXattr,
	memstore.ErrPerm:           nfs4.ErrPerm,
	memstore.ErrRange:          nfs4.ErrLockRange,
	memstore.ErrDeletePending:  nfs4.ErrShareDenied,
	memstore.ErrShareViolation: nfs4.ErrLocked,
	memstore.ErrStale:          nfs4.ErrStale,
	memstore.ErrTooManyLinks:   nfs4.ErrMLink,
	memstore.ErrXDev:           nfs4.ErrXDev,
	memstore.ErrXattrTooBig:    nfs4.ErrXattr2Big,
}

// status4Of maps an error of the store, or a Status, to the Status of op.
func status4Of(err error, op nfs4.Op) nfs4.Status {
	switch s := err.(type) {
	case nil:
		return nfs4.OK
	case nfs4.Status:
		return s
	case nfs3.Status:
		return nfs4.Status(s) // what both have has one number
	case *memstore.Wait:
		return nfs4.ErrDelay
	}
	if errors.Is(err, memstore.ErrShareViolation) {
		switch op {
		case nfs4.OpOpen, nfs4.OpOpenDowngrade:
			return nfs4.ErrShareDenied
		case nfs4.OpRemove, nfs4.OpRename:
			return nfs4.ErrFileOpen
		}
	}
	if s, ok := storeStatus4[err]; ok {
		return s
	}
	var w *memstore.Wait
	if errors.As(err, &w) {
		return nfs4.ErrDelay
	}
	for known, s := range storeStatus4 {
		if errors.Is(err, known) {
			return s
		}
	}
	return nfs4.ErrServerFault
}
