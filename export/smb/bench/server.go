//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ramserver/export/smb/internal/samba"
)

const (
	user  = "root"
	share = "bench"
)

// server is a server under test.
type server struct {
	name     string
	port     int
	password string
	cmd      *exec.Cmd
	state    *state // of operations; nil: not connected
}

// startSamba runs smbd with a share of its own below dir.
func startSamba(dir string) (*server, error) {
	port, err := samba.FreePort()
	if err != nil {
		return nil, err
	}
	s := &server{name: "smbd", port: port, password: "bench-password"}
	c := samba.Config{Dir: filepath.Join(dir, "smbd"), Files: filepath.Join(dir, "smbd-files"), Share: share, User: user, Password: s.password, Port: port}
	for _, d := range []string{c.Dir, c.Files} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	if s.cmd, err = samba.Start(c); err != nil {
		return nil, err
	}
	return s, nil
}

// startOurs builds ramserver and runs it.
func startOurs(dir string) (*server, error) {
	program := filepath.Join(dir, "ramserver")
	if out, err := exec.Command("go", "build", "-o", program, "ramserver/cmd/ramserver").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	s := &server{name: "ramserver", password: "bench-password"}
	users := filepath.Join(dir, "users")
	add := exec.Command(program, "user", "add", user, "--smb-users", users)
	add.Stdin = strings.NewReader(s.password)
	if out, err := add.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("user add: %w: %s", err, out)
	}
	var err error
	if s.port, err = samba.FreePort(); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(program, "serve", "--state-dir", filepath.Join(dir, "state"), "--size", "4G", "--listen", "127.0.0.1", "--nfs-port", "0", "--portmap", "off",
		"--smb", "on", "--smb-port", strconv.Itoa(s.port), "--smb-users", users, "--smb-signing", "enabled", "--export", share)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ramserver: ready" {
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("is not ready")
}

func (s *server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) stop() {
	if s.cmd.Process == nil {
		return
	}
	s.cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(5*time.Second, func() { s.cmd.Process.Kill() })
	s.cmd.Wait()
	timer.Stop()
}

// tick is the unit of times in /proc/PID/stat, USER_HZ.
const tick = time.Second / 100

// cpu is the time that the server's processes have used, those that have ended too.
// For those its resolution is a tick.
func (s *server) cpu() (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	type process struct{ parent, ended int }
	all := map[int]process{}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name may have anything in it, but it ends with the last parenthesis.
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 15 {
			continue
		}
		n := func(i int) int { v, _ := strconv.Atoi(f[i]); return v }
		pid, _ := strconv.Atoi(strings.TrimPrefix(filepath.Dir(path), "/proc/"))
		all[pid] = process{n(1), n(13) + n(14)}
	}
	var sum time.Duration
	for pid, p := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at != s.cmd.Process.Pid {
				continue
			}
			sum += time.Duration(p.ended) * tick
			// The clock of another process, clock_getcpuclockid(3).
			var t unix.Timespec
			if unix.ClockGettime(int32(^pid<<3|2), &t) == nil {
				sum += time.Duration(t.Nano())
			}
			break
		}
	}
	return sum, nil
}
