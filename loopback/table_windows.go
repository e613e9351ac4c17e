package loopback

import (
	"context"
	"strings"

	"golang.org/x/sys/windows"
)

// Find returns what a drive is, nil if there is none.
func Find(dir string) (*Mounted, error) {
	drives, err := windows.GetLogicalDrives()
	if err != nil {
		return nil, err
	}
	letter := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZ", strings.ToUpper(dir + " ")[0])
	if letter < 0 || drives&(1<<letter) == 0 {
		return nil, nil
	}
	return &Mounted{Dir: dir}, nil
}

// Watch waits for the context's end: nothing tells when a drive goes.
func Watch(ctx context.Context, _ *Mounted) error {
	<-ctx.Done()
	return ctx.Err()
}
