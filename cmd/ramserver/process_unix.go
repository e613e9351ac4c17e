//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func defaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		if runtime.GOOS == "linux" {
			return "/run/ramserver", nil
		}
		return "/var/run/ramserver", nil
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return "", errors.New("no place for the control socket: set XDG_RUNTIME_DIR, or --state-dir to a folder of your own")
	}
	return filepath.Join(dir, "ramserver"), nil
}

func checkOwner(fi fs.FileInfo) error {
	if uid := fi.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, not to you (%d)", uid, os.Geteuid())
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can use it (mode %04o): chmod 700 it", fi.Mode().Perm())
	}
	return nil
}

// lockFolder keeps other processes from changing the folder's state.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
