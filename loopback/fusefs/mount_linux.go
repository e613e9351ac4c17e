package fusefs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"ramserver/memstore"
)

// maxWrite is the most that one request reads or writes, in bytes; the kernel
// may want less.
const maxWrite = 1 << 20

// Mount is a mount of a store on this machine.
type Mount struct {
	s     *server
	dir   string
	root  bool   // mounted by mount(2), not by fusermount3
	dev   uint64 // of the mount
	ended chan struct{}
}

// New mounts a store, of which it must be the only mount, on a directory. The
// mount can be used when it returns, and is aborted when ctx is done.
//
// Root mounts directly, for all users; others by fusermount3, for themselves.
// What a killed server left mounted on the directory is unmounted first.
func New(ctx context.Context, store *memstore.Store, dir string, o Options) (*Mount, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Source == "" {
		o.Source = "ramserver"
	}
	m := &Mount{dir: dir, root: os.Geteuid() == 0, ended: make(chan struct{})}
	if err := m.clean(); err != nil {
		return nil, err
	}
	if st, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	} else if !st.IsDir() {
		return nil, &os.PathError{Op: "mount", Path: dir, Err: unix.ENOTDIR}
	}
	s := &server{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		store:         store,
		holder:        &memstore.Holder{Name: "mount on " + dir},
		log:           o.Log,
		alone:         o.Alone,
		forget:        newInvalidator(),
	}
	s.root = &memstore.Caller{Holder: s.holder}
	m.s = s
	if s.local, err = store.AttachLocal(s.holder, s.forget.now); err != nil {
		return nil, fmt.Errorf("mount %s: the store is mounted already: %w", dir, err)
	}
	if err := m.mount(&o); err != nil {
		s.local.Detach()
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	if err := m.passthrough(o.Passthrough); err != nil {
		if o.Passthrough == PassthroughAlways {
			m.unmount(unix.MNT_FORCE | unix.MNT_DETACH)
			s.kernel.Serve()
			s.local.Detach()
			return nil, fmt.Errorf("mount %s: passthrough: %w", dir, err)
		}
		o.Log.Info("the kernel asks for every file's data", "dir", dir, "why", err)
	}
	var wg sync.WaitGroup
	wg.Go(s.invalidate)
	go func() {
		s.kernel.Serve()
		s.forget.end()
		wg.Wait()
		s.files.closeAll()
		s.local.Detach()
		if err := m.clean(); err != nil {
			o.Log.Warn("mount has ended", "dir", dir, "err", err)
		}
		close(m.ended)
	}()
	if err := m.probe(); err != nil {
		m.unmount(unix.MNT_FORCE | unix.MNT_DETACH)
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	go func() {
		select {
		case <-m.ended:
		case <-ctx.Done():
			if err := m.Abort(); err != nil {
				o.Log.Error("mount cannot be ended", "dir", dir, "err", err)
			}
		}
	}()
	return m, nil
}

// clean unmounts a mount without a server, of which the kernel may still know
// the attributes.
func (m *Mount) clean() error {
	var fs unix.Statfs_t
	for unix.Statfs(m.dir, &fs) == unix.ENOTCONN {
		if err := m.unmount(unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return nil
}

// mount makes the mount and answers the kernel's first request.
func (m *Mount) mount(o *Options) (err error) {
	opts := &fuse.MountOptions{
		FsName:                   o.Source,
		Name:                     "ramserver",
		MaxWrite:                 maxWrite,
		MaxBackground:            64,
		AllowOther:               m.root || o.AllowOther,
		Options:                  []string{"default_permissions"},
		EnableLocks:              !o.Alone,
		EnableSymlinkCaching:     true,
		ExplicitDataCacheControl: true,
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_HANDLE_KILLPRIV_V2 |
			fuse.CAP_ASYNC_DIO | fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_DIRECT_IO_ALLOW_MMAP |
			fuse.CAP_NO_OPENDIR_SUPPORT,
		Logger:       slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		PanicHandler: m.s.panicked,
	}
	if o.Trace {
		opts.Debug, opts.Logger = true, slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)
	}
	if o.ReadOnly {
		opts.Options = append(opts.Options, "ro")
	}
	at := m.dir
	if m.root {
		fd, err := mountDirect(m.dir, o)
		if err != nil {
			return err
		}
		at = "/dev/fd/" + strconv.Itoa(fd)
	}
	// It calls Init.
	if _, err = fuse.NewServer(m.s, at, opts); err != nil {
		if m.root {
			unix.Unmount(m.dir, unix.MNT_DETACH)
		}
		return err
	}
	return nil
}

// mountDirect is what root does instead of calling fusermount3: it returns the
// descriptor of the new connection, which a child process does not inherit, so
// that the connection ends with this process.
func mountDirect(dir string, o *Options) (fd int, err error) {
	fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/fuse", Err: err}
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if o.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	data := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,max_read=%d,default_permissions,allow_other",
		fd, unix.S_IFDIR, os.Geteuid(), os.Getegid(), maxWrite)
	if err := unix.Mount(o.Source, dir, "fuse.ramserver", flags, data); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// passthrough has the kernel reach files without the server, or says why it
// cannot. The kernel has not asked for anything yet.
func (m *Mount) passthrough(choice Passthrough) error {
	switch choice {
	case "", PassthroughAuto, PassthroughAlways:
	case PassthroughNever:
		return nil
	default:
		return fmt.Errorf("%q: want auto, never or always", choice)
	}
	k := m.s.kernel
	if k.KernelSettings().Flags64()&fuse.CAP_PASSTHROUGH == 0 {
		return errors.New("the kernel has none")
	}
	return m.s.local.Passthrough(memstore.Passthrough{
		Register: func(fd int) (int32, error) {
			id, errno := k.RegisterBackingFd(&fuse.BackingMap{Fd: int32(fd)})
			if errno != 0 {
				return 0, os.NewSyscallError("ioctl", errno)
			}
			return id, nil
		},
		Unregister: func(id int32) { k.UnregisterBackingFd(id) },
		Always:     choice == PassthroughAlways,
	})
}

// probe waits until the mount answers. It also has the kernel ask for POLL once,
// and hear that there is none: else a process of ours that opens a file of its
// own mount could wait for itself (go-fuse answers for the name used here).
func (m *Mount) probe() error {
	fd, err := unix.Open(filepath.Join(m.dir, ".go-fuse-epoll-hack"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	m.dev = st.Dev
	if m.root {
		setReadAhead(m.dev)
	}
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return nil
}

func (s *server) panicked(v any) fuse.Status {
	s.panics.Add(1)
	s.log.Error("panic in a FUSE request", "panic", v, "stack", string(debug.Stack()))
	return fuse.EIO
}

// Dir is the absolute path of the mount.
func (m *Mount) Dir() string { return m.dir }

// Wait waits until the mount has ended, by whatever means.
func (m *Mount) Wait() { <-m.ended }

// Unmount ends the mount, and answers EBUSY while it is in use. Copies of it in
// other mount namespaces, which do not make it busy, end with it.
func (m *Mount) Unmount() error {
	if !m.gone() {
		err := m.unmount(0)
		// Of a process that has ended, the kernel lets go of files that were passed
		// through a moment later.
		for pause := 5 * time.Millisecond; errors.Is(err, unix.EBUSY) && pause < 100*time.Millisecond; pause *= 2 {
			time.Sleep(pause)
			err = m.unmount(0)
		}
		if err != nil {
			return err
		}
	}
	select {
	case <-m.ended:
	case <-time.After(100 * time.Millisecond):
		return m.Abort()
	}
	return nil
}

// Abort ends the mount whoever uses it: what processes do with its files fails
// from now on, with ENOTCONN or ECONNABORTED. Of a mount that is not root's,
// files that are open go on working until they are closed, for which it does not
// wait.
func (m *Mount) Abort() error {
	if !m.root {
		if m.gone() {
			return nil
		}
		return m.unmount(unix.MNT_DETACH)
	}
	select {
	case <-m.ended:
		return nil
	default:
	}
	if err := abort(m.dev); err != nil {
		return fmt.Errorf("abort the mount on %s: %w", m.dir, err)
	}
	<-m.ended
	return nil
}

// abort ends the connection of a FUSE file system, by a file system of control
// files of its own, since the usual one need not be mounted.
func abort(dev uint64) error {
	fs, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	control, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(control)
	// Without the folder the connection is at its end.
	fd, err := unix.Openat(control, fmt.Sprintf("%d/abort", unix.Minor(dev)), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if err == unix.ENOENT {
			err = nil
		}
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("1"))
	return err
}

// setReadAhead lets the kernel read as much ahead as one request may have; by
// itself it reads 128 KiB. It is as well if that does not work.
func setReadAhead(dev uint64) {
	path := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", unix.Major(dev), unix.Minor(dev))
	os.WriteFile(path, []byte(strconv.Itoa(maxWrite>>10)), 0)
}

// gone tells whether the directory no longer is the mount.
func (m *Mount) gone() bool {
	select {
	case <-m.ended:
		return true
	default:
	}
	var st unix.Stat_t
	return unix.Stat(m.dir, &st) == nil && st.Dev != m.dev
}

func (m *Mount) unmount(flags int) error {
	var err error
	if m.root {
		err = unix.Unmount(m.dir, flags)
	} else {
		args := []string{"-u", "-q", m.dir}
		if flags&unix.MNT_DETACH != 0 {
			args = []string{"-u", "-q", "-z", m.dir}
		}
		err = exec.Command("fusermount3", args...).Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = unix.EBUSY
		}
	}
	if err != nil {
		return &os.PathError{Op: "unmount", Path: m.dir, Err: err}
	}
	return nil
}

// Stats counts what the mount has done.
func (m *Mount) Stats() Stats {
	s := m.s
	return Stats{
		Reads: s.reads.Load(), ReadBytes: s.readBytes.Load(),
		Writes: s.writes.Load(), WriteBytes: s.writeBytes.Load(),
		Invalidations: s.forget.count.Load(),
		Passed:        s.passed.Load(),
		Panics:        s.panics.Load(),
	}
}
