package billyfs

import (
	"errors"
	"os"
	"syscall"

	"github.com/go-git/go-billy/v5"

	"ramserver/memstore"
)

// errnos is what package os would give on Unix for each error of the store.
var errnos = map[error]syscall.Errno{
	memstore.ErrAccess:         syscall.EACCES,
	memstore.ErrBadType:        syscall.EINVAL,
	memstore.ErrClosed:         syscall.EIO,
	memstore.ErrExist:          syscall.EEXIST,
	memstore.ErrFileTooLarge:   syscall.EFBIG,
	memstore.ErrInvalid:        syscall.EINVAL,
	memstore.ErrIsDir:          syscall.EISDIR,
	memstore.ErrLocked:         syscall.EBUSY,
	memstore.ErrNameTooLong:    syscall.ENAMETOOLONG,
	memstore.ErrNoData:         syscall.ENXIO,
	memstore.ErrNoSpace:        syscall.ENOSPC,
	memstore.ErrNotDir:         syscall.ENOTDIR,
	memstore.ErrNotEmpty:       syscall.ENOTEMPTY,
	memstore.ErrNotExist:       syscall.ENOENT,
	memstore.ErrNotSupported:   syscall.ENOTSUP,
	memstore.ErrNotSymlink:     syscall.EINVAL,
	memstore.ErrNotSync:        syscall.EAGAIN,
	memstore.ErrNoXattr:        errNoXattr,
	memstore.ErrPerm:           syscall.EPERM,
	memstore.ErrRange:          syscall.ERANGE,
	memstore.ErrDeletePending:  syscall.EBUSY,
	memstore.ErrShareViolation: syscall.EBUSY,
	memstore.ErrStale:          syscall.ESTALE,
	memstore.ErrTooManyLinks:   syscall.EMLINK,
	memstore.ErrXDev:           syscall.EXDEV,
	memstore.ErrXattrTooBig:    syscall.E2BIG,
}

// Errno turns an error of the store into the syscall.Errno that package os
// would give on Unix. Other errors stay as they are.
func Errno(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if n, ok := errnos[e]; ok {
			return n
		}
	}
	return err
}

// pathError is the error of a call. billy's own error is compared by users
// with ==, and stands bare.
func pathError(op, name string, err error) error {
	if err == nil || err == billy.ErrCrossedBoundary {
		return err
	}
	return &os.PathError{Op: op, Path: name, Err: Errno(err)}
}

func linkError(op, from, to string, err error) error {
	if err == nil || err == billy.ErrCrossedBoundary {
		return err
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: Errno(err)}
}
