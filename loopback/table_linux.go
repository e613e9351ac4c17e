package loopback

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const mountTable = "/proc/self/mountinfo"

// Find returns what is mounted at a folder, nil if nothing is. The folder is
// not touched: its server may be gone. dir is absolute and without symlinks.
func Find(dir string) (*Mounted, error) {
	table, err := os.ReadFile(mountTable)
	if err != nil {
		return nil, err
	}
	return find(string(table), dir)
}

func find(table, dir string) (*Mounted, error) {
	var found *Mounted // the last one hides those before it
	for line := range strings.Lines(table) {
		m, err := parseMount(line)
		if err != nil {
			return nil, err
		}
		if m.Dir == dir {
			found = m
		}
	}
	return found, nil
}

// parseMount reads a line of proc_pid_mountinfo(5).
func parseMount(line string) (*Mounted, error) {
	var m Mounted
	before, after, ok := strings.Cut(line, " - ")
	f, g := strings.Fields(before), strings.Fields(after)
	if !ok || len(f) < 6 || len(g) < 2 {
		return nil, fmt.Errorf("%s: line %q", mountTable, line)
	}
	if _, err := fmt.Sscanf(f[0]+" "+f[2], "%d %d:%d", &m.ID, &m.Major, &m.Minor); err != nil {
		return nil, fmt.Errorf("%s: line %q: %w", mountTable, line, err)
	}
	m.Dir, m.Type, m.Source = unescape(f[4]), g[0], unescape(g[1])
	m.flags = strings.Split(f[5], ",")
	return &m, nil
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Watch returns when the mount m is gone, or with the context's error.
func Watch(ctx context.Context, m *Mounted) error {
	f, err := os.Open(mountTable)
	if err != nil {
		return err
	}
	defer f.Close()
	for ctx.Err() == nil {
		now, err := Find(m.Dir)
		if err != nil {
			return err
		}
		if now == nil || now.ID != m.ID {
			gone, err := isGone(m.ID)
			if gone || err != nil {
				return err // else something else is mounted over it
			}
		}
		// The kernel reports a change of the table as a condition of the file;
		// the timeout is for the context.
		poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(poll, int(200*time.Millisecond/time.Millisecond)); err != nil && err != unix.EINTR {
			return fmt.Errorf("%s: poll: %w", mountTable, err)
		}
	}
	return ctx.Err()
}

func isGone(id int) (bool, error) {
	table, err := os.ReadFile(mountTable)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(table)) {
		if m, err := parseMount(line); err != nil || m.ID == id {
			return false, err
		}
	}
	return true, nil
}

const clientTable = "/proc/fs/nfsfs/servers"

// HasClient tells whether the kernel has an NFS client of the server at an
// address, be it of a mount that is in the tree, of one that was taken out of it
// and is still used, or of none any more for a moment.
func HasClient(at netip.AddrPort) bool {
	table, err := os.ReadFile(clientTable)
	return err == nil && hasClient(string(table), at)
}

// hasClient reads lines of version, address, port, count and name, the numbers
// in hexadecimal digits.
func hasClient(table string, at netip.AddrPort) bool {
	addr, port := hex.EncodeToString(at.Addr().AsSlice()), strconv.FormatUint(uint64(at.Port()), 16)
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == addr && f[2] == port {
			return true
		}
	}
	return false
}
