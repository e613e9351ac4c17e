package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// openFiles: Windows has no such limit.
func openFiles() (uint64, bool) { return 0, false }

// tryLock locks a file, and again by another open, which has to be refused.
func tryLock(path string) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
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
	if err := windows.LockFileEx(windows.Handle(first.Fd()), flags, 0, 1, 0, new(windows.Overlapped)); err != nil {
		return err
	}
	if err := windows.LockFileEx(windows.Handle(second.Fd()), flags, 0, 1, 0, new(windows.Overlapped)); !errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return fmt.Errorf("a second lock is not refused: %v", err)
	}
	return windows.UnlockFileEx(windows.Handle(first.Fd()), 0, 1, 0, new(windows.Overlapped))
}
