package fusefs

import "log/slog"

// Options are the choices of a mount.
type Options struct {
	// AllowOther lets other users use a mount that is not root's, if
	// /etc/fuse.conf has user_allow_other. A mount of root's is for everybody.
	AllowOther bool
	// ReadOnly refuses changes by local processes.
	ReadOnly bool
	// Log takes what goes wrong; nil means slog.Default.
	Log *slog.Logger
}

// Stats counts what a mount has done since it was made.
type Stats struct {
	Reads, ReadBytes   uint64 // READ requests and the bytes that they got
	Writes, WriteBytes uint64
	Invalidations      uint64 // changes by others that the kernel was told of
	Panics             uint64 // requests that were answered with EIO after a panic
}
