//go:build linux

package posixtest

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// user is whom a task acts as.
type user struct {
	uid, gid int
	groups   []uint32 // supplementary
}

// task is a thread with credentials, umask and descriptor table of its own: to
// a file system it is another process. Only raw descriptors may be used in it,
// since an os.File could be closed by another thread, in the wrong table.
type task struct {
	calls chan func() error
	errs  chan error
}

// startTask starts a task, as u unless u is nil.
func startTask(u *user) (*task, error) {
	t := &task{make(chan func() error), make(chan error)}
	go t.run(u)
	return t, <-t.errs
}

func (t *task) run(u *user) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread would not end: hold it until the task is over.
		over := make(chan struct{})
		go func() {
			defer close(over)
			t.run(u)
		}()
		<-over
		runtime.UnlockOSThread()
		return
	}
	// Never unlocked: the thread ends with the goroutine, and closes its files.
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_FILES)
	if err == nil && u != nil {
		err = u.become()
	}
	t.errs <- err
	for f := range t.calls {
		t.errs <- f()
	}
	close(t.errs)
}

// become gives the calling thread, and it alone, the credentials of u. The
// functions of package unix would change all threads.
func (u *user) become() error {
	var groups unsafe.Pointer
	if len(u.groups) > 0 {
		groups = unsafe.Pointer(&u.groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(u.groups)), uintptr(groups), 0); e != 0 {
		return fmt.Errorf("setgroups: %w", e)
	}
	gid, uid := uintptr(u.gid), uintptr(u.uid)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	return nil
}

// do runs f in the task.
func (t *task) do(f func() error) error {
	t.calls <- f
	return <-t.errs
}

// start runs f in the task and returns at once; wait waits for it.
func (t *task) start(f func() error) { t.calls <- f }

func (t *task) wait() error { return <-t.errs }

// end ends the task. The kernel closes its files, and with them its locks, a
// moment later.
func (t *task) end() {
	close(t.calls)
	<-t.errs
}

// task starts a task that ends with the test.
func (e *env) task(u *user) *task {
	e.Helper()
	t, err := startTask(u)
	e.ok(err)
	e.Cleanup(t.end)
	return t
}

// do runs f as the user.
func (u user) do(f func() error) error {
	t, err := startTask(&u)
	if err != nil {
		return err
	}
	defer t.end()
	return t.do(f)
}
