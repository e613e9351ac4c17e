//go:build unix

package main

import (
	"os"
	"strconv"
	"syscall"
)

// detached makes a process leave this one's session and terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// keepFiles has no process that this one starts inherit what it has inherited
// itself: a file of a mount that a shell had open would stay open in the
// background, and if that is the mount of a dead server, its stand-in would wait
// for itself.
func keepFiles() {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		files, _ = os.ReadDir("/dev/fd") // where there is no Linux
	}
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
