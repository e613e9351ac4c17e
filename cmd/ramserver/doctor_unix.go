//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openFiles is the hard limit, which the server gives itself.
func openFiles() (uint64, bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Max), true
}

// tryLock locks a file, and again by another open, which has to be refused.
func tryLock(path string) error {
	// For writing, since the lock of a file on NFS is one of a range.
	first, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer second.Close()
	if err := unix.Flock(int(first.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := unix.Flock(int(second.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("a second lock is not refused: %v", err)
	}
	return unix.Flock(int(first.Fd()), unix.LOCK_UN)
}
