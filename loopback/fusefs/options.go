package fusefs

import "log/slog"

// Options are the choices of a mount.
type Options struct {
	// AllowOther lets other users use a mount that is not root's, if
	// /etc/fuse.conf has user_allow_other. A mount of root's is for everybody.
	AllowOther bool
	// ReadOnly refuses changes by local processes.
	ReadOnly bool
	// Source is what the system lists as mounted there; "" means ramserver.
	Source string
	// Passthrough says for which files the kernel reads, writes and maps memory of
	// the store by itself.
	Passthrough Passthrough
	// Alone says that nobody but this machine's processes uses the store while it
	// is mounted. Then the kernel keeps their locks by itself.
	Alone bool
	// Trace logs every request and answer as a debug message.
	Trace bool
	// Log takes what goes wrong; nil means slog.Default.
	Log *slog.Logger
}

// Passthrough is a choice of files.
type Passthrough string

// The choices. Passthrough needs Linux 6.9 and root.
const (
	PassthroughAuto   Passthrough = "auto" // or "": those that gain by it, where it works
	PassthroughNever  Passthrough = "never"
	PassthroughAlways Passthrough = "always" // all; else there is no mount
)

// Stats counts what a mount has done since it was made.
type Stats struct {
	Reads, ReadBytes   uint64 // READ requests and the bytes that they got
	Writes, WriteBytes uint64
	Invalidations      uint64 // changes by others that the kernel was told of
	Passed             uint64 // opens of which reads and writes do not come here
	Panics             uint64 // requests that were answered with EIO after a panic
}
