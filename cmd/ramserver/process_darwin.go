package main

import (
	"net"

	"golang.org/x/sys/unix"
)

// processStart is when a process started, in microseconds since 1970.
func processStart(pid int) (uint64, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return 0, false
	}
	t := k.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec), true
}

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
