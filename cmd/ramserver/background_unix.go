//go:build unix

package main

import "syscall"

// detached makes a process leave this one's session and terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
