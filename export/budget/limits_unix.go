//go:build unix

package budget

import "golang.org/x/sys/unix"

// MaxFiles is how many descriptors the process may have.
func MaxFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<30))
}
