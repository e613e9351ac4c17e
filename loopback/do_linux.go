package loopback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// holds tells whether a check's need is met.
func (c Check) holds() error {
	switch c.Kind {
	case NeedRoot:
		if os.Geteuid() != 0 {
			return errors.New("only root can do this")
		}
	case NeedDevice:
		fd, err := unix.Open(c.Name, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: c.Name, Err: err}
		}
		unix.Close(fd)
	case NeedFilesystem:
		return hasFilesystem(c.Name)
	case NeedProgram:
		_, err := exec.LookPath(c.Name)
		return err
	default:
		return fmt.Errorf("cannot be checked on Linux: %s", c)
	}
	return nil
}

// hasFilesystem tells whether the kernel has a type of file system, or a
// module that it loads by itself when one is mounted.
func hasFilesystem(name string) error {
	list, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 0 && f[len(f)-1] == name {
			return nil
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		modules, _ := os.ReadFile("/lib/modules/" + unix.ByteSliceToString(u.Release[:]) + "/modules.dep")
		if bytes.Contains(modules, []byte("/"+name+".ko")) {
			return nil
		}
	}
	return fmt.Errorf("this kernel has no file system %s, and no module for it", name)
}

// flagBits are those of mount(2).
var flagBits = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC, "noatime": unix.MS_NOATIME,
}

func (p *Plan) mount(context.Context) error {
	options := strings.Join(p.Options, ",")
	data := options
	if p.secret != "" {
		data += ",password=" + strings.ReplaceAll(p.secret, ",", ",,")
	}
	err := unix.Mount(p.Source, p.Dir, p.Type, 0, data)
	if err == unix.ENODEV || err == unix.EPROTONOSUPPORT {
		err = fmt.Errorf("%w: %w", ErrNoSuch, err)
	}
	if err != nil {
		return fmt.Errorf("mount(2) of %s at %s, type %s, options %s: %w", p.Source, p.Dir, p.Type, options, err)
	}
	return nil
}

// Restrict sets the plan's flags on what is mounted there.
func (p *Plan) Restrict() error {
	if len(p.Flags) == 0 {
		return nil
	}
	m, err := Find(p.Dir)
	if err != nil {
		return err
	}
	var bits uintptr
	for _, f := range append(m.flags, p.Flags...) { // a remount clears what it does not name
		bits |= flagBits[f]
	}
	if err := unix.Mount("", p.Dir, "", unix.MS_REMOUNT|unix.MS_BIND|bits, ""); err != nil {
		return fmt.Errorf("options %s of %s: %w", strings.Join(p.Flags, ","), p.Dir, err)
	}
	return nil
}

// Unmount undoes the mount; an error that is ErrBusy says that it is in use.
func (p *Plan) Unmount(ctx context.Context) error {
	var err error
	if os.Geteuid() != 0 && p.Via == FUSE {
		err = run(ctx, p.Undo)
	} else {
		err = unix.Unmount(p.Dir, unix.UMOUNT_NOFOLLOW)
		// Of a process that has ended, the kernel lets go of files that were passed
		// through a moment later.
		for pause := 5 * time.Millisecond; err == unix.EBUSY && pause < 100*time.Millisecond; pause *= 2 {
			time.Sleep(pause)
			err = unix.Unmount(p.Dir, unix.UMOUNT_NOFOLLOW)
		}
	}
	if err == unix.EBUSY || errors.Is(err, ErrBusy) {
		return fmt.Errorf("%s: %w", p.Dir, ErrBusy)
	}
	if err != nil {
		return fmt.Errorf("umount %s: %w", p.Dir, err)
	}
	return nil
}

// forceTime is how long calls of a dead NFS server are failed over and over
// before the mount is taken out of the tree.
const forceTime = 300 * time.Millisecond

// Abandon takes the mount m out of the tree whoever uses it and whether or not
// the server lives. Calls that wait for the server fail with EIO or ENOTCONN.
func (p *Plan) Abandon(ctx context.Context, m *Mounted) error {
	switch p.Via {
	case FUSE:
		if os.Geteuid() != 0 {
			return run(ctx, p.Force)
		}
		// This ends the connection, also that of a server which is stuck, and
		// unmounts if nobody uses the mount.
		if unix.Unmount(p.Dir, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW) == nil {
			return nil
		}
	case NFS:
		// Each call that waits is failed; its program may make others, until
		// it gives up. This needs the path, so it comes before detaching.
		for end := time.Now().Add(forceTime); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if err := unix.Unmount(p.Dir, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW); err == nil {
				return nil
			}
		}
		// What has been open since then fails too, from Linux 6.5 on.
		os.WriteFile(fmt.Sprintf("/sys/fs/nfs/%d:%d/shutdown", m.Major, m.Minor), []byte("1"), 0)
	}
	err := unix.Unmount(p.Dir, unix.MNT_DETACH|unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW)
	// A server that lives takes its mount out of the tree too when the connection
	// has ended, and may be first.
	if err != nil && err != unix.EINVAL {
		return fmt.Errorf("umount -l %s: %w", p.Dir, err)
	}
	return nil
}

// answerTime is how long a mount may take to say that it lives.
const answerTime = time.Second

// CleanLost unmounts what a server that has died left at a folder by FUSE, for
// when nothing else tells of it, and tells whether there was something.
func CleanLost(ctx context.Context, dir string) (bool, error) {
	m, err := Find(dir)
	if err != nil || m == nil || m.Type != fuseType {
		return false, err
	}
	// Attributes may be in the kernel's cache for ever; this always asks, and a
	// server that lives but is stuck does not answer. What one that is just dying
	// had begun fails otherwise.
	answer := make(chan error, 1)
	go func() {
		for end := time.Now().Add(answerTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
			err := unix.Statfs(dir, new(unix.Statfs_t))
			if err == nil || err == unix.ENOTCONN {
				answer <- err
				return
			}
		}
	}()
	select {
	case err = <-answer:
	case <-time.After(answerTime):
	}
	if err != unix.ENOTCONN {
		return false, nil // there is a server
	}
	p, err := New(Want{System: "linux", Via: FUSE, Dir: dir, Root: os.Geteuid() == 0})
	if err == nil {
		err = p.Abandon(ctx, m)
	}
	return err == nil, err
}
