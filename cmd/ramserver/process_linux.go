package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dyingTime is how long a process that was killed may take to end. It has much
// memory to give back.
const dyingTime = 2 * time.Second

// processStart is when a process started, in clock ticks after the machine
// did: field 22 of proc_pid_stat(5). A zombie does not count, and what was killed
// is waited for, since it keeps mounts and ports until it has ended.
func processStart(pid int) (start uint64, ok bool) {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		f, ok := statOf(pid)
		if !ok || string(f[0]) == "Z" || string(f[0]) == "X" {
			return 0, false
		}
		flags, err1 := strconv.ParseUint(string(f[6]), 10, 64)
		start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
		pending, err3 := strconv.ParseUint(string(f[28]), 10, 64)
		if err1 != nil || err2 != nil || err3 != nil {
			return 0, false
		}
		const exiting = 4 // the kernel's PF_EXITING
		dying := flags&exiting != 0 || pending&(1<<(unix.SIGKILL-1)) != 0
		if !dying || time.Since(began) > dyingTime {
			return start, true
		}
	}
}

// statOf is what proc_pid_stat(5) tells of a process, from its third field on.
func statOf(pid int) (fields [][]byte, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, false
	}
	// The second field is the program's name in brackets, with anything in it.
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return f, len(f) > 28
}

// peerUID is the user at the other end of a Unix socket.
func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var e error
	if err := raw.Control(func(fd uintptr) {
		cred, e = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if e != nil {
		return 0, e
	}
	return int(cred.Uid), nil
}

// hardenProcess makes the machine treat this process as the disk that it is,
// as far as it may (prctl(2), PR_SET_IO_FLUSHER: memory it asks for must not
// wait for a write to itself; proc_pid_oom_score_adj(5)).
//
// The flag belongs to a thread, and threads have started already; but a new
// program and its threads inherit it, so the program starts itself again, once.
func hardenProcess() {
	const again = "RAMSERVER_STARTED_AGAIN"
	if os.Geteuid() == 0 {
		os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0) // best effort
	}
	if os.Getenv(again) != "" {
		os.Unsetenv(again)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_IO_FLUSHER, 1, 0, 0, 0) != nil {
		return // not permitted
	}
	// Should this fail, one thread has the flag, which does no harm.
	syscall.Exec(exe, os.Args, append(os.Environ(), again+"=1"))
}
