package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// memory is the machine's memory.
func memory() (physical, error) {
	n, err := unix.SysctlUint64("hw.physmem")
	if err != nil {
		return physical{}, fmt.Errorf("asking for the machine's memory: %w", err)
	}
	return physical{int64(n), "this machine's memory"}, nil
}
