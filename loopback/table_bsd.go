//go:build darwin || freebsd

package loopback

import (
	"context"

	"golang.org/x/sys/unix"
)

// Find returns what is mounted at a folder, nil if nothing is.
func Find(dir string) (*Mounted, error) {
	// What the kernel has in its table; no server is asked.
	n, err := unix.Getfsstat(nil, unix.MNT_NOWAIT)
	if err != nil {
		return nil, err
	}
	table := make([]unix.Statfs_t, n+16)
	if n, err = unix.Getfsstat(table, unix.MNT_NOWAIT); err != nil {
		return nil, err
	}
	var found *Mounted
	for _, m := range table[:n] {
		if unix.ByteSliceToString(m.Mntonname[:]) == dir {
			found = &Mounted{Dir: dir, Type: unix.ByteSliceToString(m.Fstypename[:]), Source: unix.ByteSliceToString(m.Mntfromname[:])}
		}
	}
	return found, nil
}

// Watch waits for the context's end: nothing tells when a mount goes.
func Watch(ctx context.Context, _ *Mounted) error {
	<-ctx.Done()
	return ctx.Err()
}
