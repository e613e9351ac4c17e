//go:build unix

package smb

import "golang.org/x/sys/unix"

// maxFiles is how many descriptors the process may have.
func maxFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<30))
}
