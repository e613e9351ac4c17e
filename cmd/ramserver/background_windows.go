package main

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached makes a process leave this one's console.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

// keepFiles has nothing to do: a process inherits what it is given only.
func keepFiles() {}
