//go:build linux

package main

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// callSteps make n small files, look at each, and remove them.
func callSteps(n int) []step {
	data := make([]byte, 1024)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("file-%d", i)
	}
	each := func(call func(path string) error) func(p *place) error {
		return func(p *place) error {
			for _, name := range names {
				if err := call(filepath.Join(p.dir, name)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return []step{
		{"create+write+close", each(func(path string) error {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			if _, err := unix.Write(fd, data); err != nil {
				return err
			}
			return unix.Close(fd)
		}), n},
		{"stat", each(func(path string) error {
			var st unix.Stat_t
			return unix.Stat(path, &st)
		}), n},
		{"unlink", each(unix.Unlink), n},
	}
}
