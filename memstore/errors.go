package memstore

import "errors"

// What a call can answer. Each protocol maps every one of these to its own
// status; ErrStale and the errors of a wait may come from any call.
var (
	ErrAccess         = errors.New("permission denied")
	ErrBadType        = errors.New("file type is not supported")
	ErrClosed         = errors.New("store is closed")
	ErrDeletePending  = errors.New("file is to be removed when its last open closes")
	ErrExist          = errors.New("file exists")
	ErrFileTooLarge   = errors.New("file too large")
	ErrInvalid        = errors.New("invalid argument")
	ErrIsDir          = errors.New("is a directory")
	ErrLocked         = errors.New("byte range is locked")
	ErrNameTooLong    = errors.New("name too long")
	ErrNoData         = errors.New("no data or hole at or after the offset")
	ErrNoSpace        = errors.New("no space left in the store")
	ErrNotDir         = errors.New("not a directory")
	ErrNotEmpty       = errors.New("directory not empty")
	ErrNotExist       = errors.New("no such file or directory")
	ErrNotSupported   = errors.New("operation not supported")
	ErrNotSymlink     = errors.New("not a symbolic link")
	ErrNotSync        = errors.New("change time is not the guard's")
	ErrNoXattr        = errors.New("no such extended attribute")
	ErrPerm           = errors.New("operation not permitted")
	ErrRange          = errors.New("result does not fit")
	ErrShareViolation = errors.New("share mode of another open forbids it")
	ErrStale          = errors.New("file is gone")
	ErrTooManyLinks   = errors.New("too many links")
	ErrXDev           = errors.New("not in the same store")
	ErrXattrTooBig    = errors.New("extended attributes too large")
)

// Wait is the answer of a call that changed nothing and has to be tried again
// once Done is closed: a lease is being broken, or a lock waited for.
// It is found with errors.As.
type Wait struct {
	done    chan struct{}
	waiting *Inode // whose locks are waited for, or nil
}

func (w *Wait) Error() string { return "must wait for another holder" }

// Done is closed when trying again makes sense; it may then answer Wait again.
func (w *Wait) Done() <-chan struct{} { return w.done }
