//go:build darwin || freebsd

package main

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user at the other end of a Unix socket.
func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	var e error
	if err := raw.Control(func(fd uintptr) {
		cred, e = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if e != nil {
		return 0, e
	}
	return int(cred.Uid), nil
}

// hardenProcess does nothing: only Linux knows disks among processes.
func hardenProcess() {}
