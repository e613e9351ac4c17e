package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A server in the background is this program again, in a session of its own.
// It logs to NAME.log in the state folder, and what it prints until the line
// "ramserver: ready" goes to the command that started it, which waits for that.

// backgroundEnv says to a process that it is such a server.
const backgroundEnv = "RAMSERVER_IN_BACKGROUND"

func inBackground() bool { return os.Getenv(backgroundEnv) != "" }

// startTime bounds the start of a server in the background.
const startTime = 60 * time.Second

const readyLine = "ramserver: ready"

// childError is what a server that did not start said, and its exit status.
type childError struct {
	code int
	said string
}

func (e *childError) Error() string { return strings.TrimSpace(e.said) }

// startInBackground starts a server with this command line and returns when it
// is ready, or with what it failed with.
func startInBackground(ctx context.Context, in *instance, out, errs io.Writer) error {
	dir, err := in.free()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(in.log(dir), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return failure{fmt.Errorf("log file: %w", err)}
	}
	defer log.Close()

	// In front, and in one word each, they are flags whatever follows.
	cmd, err := again(context.Background(), append([]string{"--foreground=true", "--name=" + in.name}, in.args...)...)
	if err != nil {
		return failure{err}
	}
	cmd.Env = append(os.Environ(), backgroundEnv+"=1")
	cmd.Stderr = log
	cmd.SysProcAttr = detached()
	said, err := cmd.StdoutPipe()
	if err != nil {
		return failure{err}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := cmd.Start(); err != nil {
		return failure{err}
	}
	kill := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	ready := false
	var greeting bytes.Buffer
	for lines := bufio.NewScanner(said); !ready && lines.Scan(); {
		if ready = lines.Text() == readyLine; !ready {
			fmt.Fprintln(&greeting, lines.Text())
		}
	}
	log.Seek(0, io.SeekStart) // of reading
	if ready && kill() {
		io.Copy(errs, log) // warnings
		_, err := greeting.WriteTo(out)
		return err
	}
	cmd.Wait()
	why, _ := io.ReadAll(log)
	os.Remove(log.Name())
	if ctx.Err() != nil {
		in.sweep(errs)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return failure{fmt.Errorf("the server did not start within %s: %s", startTime, bytes.TrimSpace(why))}
		}
		return failure{errors.New("interrupted; the server was ended")}
	}
	return &childError{max(1, cmd.ProcessState.ExitCode()), string(why)}
}

// again is a command of this program, by whatever name it was called.
func again(ctx context.Context, args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	keepFiles()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Args[0] = "ramserver" // it may be a copy that is named as mount(8) wants it
	return cmd, nil
}

// serveInBackground is serve as such a server.
func serveInBackground(in *instance, p *plan, out io.Writer) error {
	hardenProcess()
	os.Unsetenv(backgroundEnv)
	os.Chdir("/") // so that the file system it was started in can be unmounted
	err := serve(in, p, out, &boundedLog{file: os.Stderr})
	if dir, e := in.folder(false); e == nil && err == nil {
		os.Remove(in.log(dir))
	}
	return err
}

// maxLog bounds a log file, in bytes: it starts over when it is full.
const maxLog = 4 << 20

type boundedLog struct {
	mu   sync.Mutex
	file *os.File // opened for appending
	size int64    // (mu)
}

func (l *boundedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(b)) > maxLog && l.file.Truncate(0) == nil {
		l.size = 0
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	return n, err
}
