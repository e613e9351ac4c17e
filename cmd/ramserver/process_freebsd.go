package main

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// processStart is when a process started, in microseconds since 1970.
func processStart(pid int) (uint64, bool) {
	// struct kinfo_proc of <sys/user.h>, where int64 and pointers have 8 bytes.
	const (
		size  = 1088
		atPid = 72
		start = 336 // a timeval
	)
	k, err := unix.SysctlRaw("kern.proc.pid", pid)
	if err != nil || len(k) < size || binary.NativeEndian.Uint32(k) != size ||
		int(binary.NativeEndian.Uint32(k[atPid:])) != pid {
		return 0, false
	}
	return binary.NativeEndian.Uint64(k[start:])*1e6 + binary.NativeEndian.Uint64(k[start+8:]), true
}
