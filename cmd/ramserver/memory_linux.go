package main

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is the machine's memory or the limit of the control group that this
// process is in, the smaller.
func memory() (physical, error) {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return physical{}, fmt.Errorf("asking for the machine's memory: %w", err)
	}
	m := physical{int64(uint64(si.Totalram) * uint64(si.Unit)), "this machine's memory"}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return m, nil
	}
	if limit, ok := groupLimit(string(groups), "/sys/fs/cgroup"); ok && limit < m.bytes {
		m = physical{limit, "the control group's memory limit"}
	}
	return m, nil
}

// groupLimit finds the smallest memory limit on the way from the process's
// control group to the root, given /proc/self/cgroup (cgroups(7)). Inside a
// container the path can be one that only the host has; then what is mounted
// at root is the group itself.
func groupLimit(groups, root string) (limit int64, ok bool) {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		dir, file := root, "memory.max" // version 2
		if f[0] != "0" || f[1] != "" {
			if !strings.Contains(","+f[1]+",", ",memory,") {
				continue
			}
			dir, file = root+"/memory", "memory.limit_in_bytes"
		}
		for p := path.Clean("/" + f[2]); ; p = path.Dir(p) {
			b, err := os.ReadFile(dir + p + "/" + file)
			if err == nil {
				n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // or "max"
				if err == nil && (!ok || n < limit) {
					limit, ok = n, true
				}
			}
			if p == "/" {
				break
			}
		}
	}
	return limit, ok
}
