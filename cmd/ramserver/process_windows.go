package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

func defaultStateDir() (string, error) {
	dir := os.Getenv("LOCALAPPDATA")
	if dir == "" {
		return "", errors.New("no place for the control socket: set LOCALAPPDATA, or --state-dir to a folder of your own")
	}
	return filepath.Join(dir, "ramserver"), nil
}

// checkOwner leaves it to the access list that the folder inherits from the
// user's profile.
func checkOwner(fs.FileInfo) error { return nil }

// lockFolder keeps other processes from changing the folder's state.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// processStart is when a process started, in 100 ns since 1601.
func processStart(pid int) (uint64, bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return 0, false
	}
	defer windows.CloseHandle(h)
	if e, err := windows.WaitForSingleObject(h, 0); err != nil || e == windows.WAIT_OBJECT_0 {
		return 0, false // it ended, and somebody else keeps its handle
	}
	var start, exit, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &start, &exit, &kernel, &user); err != nil {
		return 0, false
	}
	return uint64(start.HighDateTime)<<32 | uint64(start.LowDateTime), true
}

// peerUID cannot be asked; the folder's access list guards the socket. On
// Windows there is one user number, as for os.Geteuid.
func peerUID(*net.UnixConn) (int, error) { return os.Geteuid(), nil }

// hardenProcess does nothing: only Linux knows disks among processes.
func hardenProcess() {}
