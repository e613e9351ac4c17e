//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// suites are those of smbtorture that are run between the two measurements.
var suites = []string{
	"connect", "session-id", "session-require-signing", "session.two_logoff", "session.ntlmssp_bug14932", "credits",
	"compound", "compound_async", "compound_find", "tcon", "scan", "maxfid", "rw", "create", "mkdir", "dir", "getinfo",
	"setinfo", "fileid", "lock", "sharemode", "check-sharemode", "deny", "rename", "streams", "notify", "timestamps",
	"openattr", "winattr", "sdread", "secleak", "maximum_allowed", "ioctl", "ioctl-on-stream", "set-sparse-ioctl",
	"zero-data-ioctl", "bench",
}

// suiteTime is after which a suite is given up.
const suiteTime = 3 * time.Minute

// torture compares a server before and after a run of smbtorture with one that is
// left alone.
func torture(o options, dir string) error {
	var servers []*server
	for _, name := range []string{"untouched", "tortured"} {
		own := filepath.Join(dir, name)
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		s, err := startOurs(own)
		if err != nil {
			return fmt.Errorf("ramserver: %w", err)
		}
		defer s.stop()
		s.name = name
		servers = append(servers, s)
	}
	twin, ours := servers[0], servers[1]
	all := o.ops(dir)
	before, err := measure(all, servers, o.rounds)
	if err != nil {
		return err
	}
	was, err := ours.memory()
	if err != nil {
		return err
	}
	for _, suite := range suites {
		ctx, cancel := context.WithTimeout(context.Background(), suiteTime)
		cmd := exec.CommandContext(ctx, "smbtorture", fmt.Sprintf("//127.0.0.1/%s", share), "-p", fmt.Sprint(ours.port), "-U", user,
			"--format=subunit",
			"--option=torture:progress=no", "--option=torture:timelimit=1", "smb2."+suite)
		cmd.Env = append(os.Environ(), "PASSWD="+ours.password)
		start := time.Now()
		out, _ := cmd.CombinedOutput() // some of the tests are allowed to fail
		cancel()
		if !bytes.Contains(out, []byte("test: ")) {
			return fmt.Errorf("smbtorture: %s", bytes.TrimSpace(out))
		}
		fmt.Printf("torture %s: %v\n", suite, time.Since(start).Round(time.Second/10))
	}
	after, err := measure(all, servers, o.rounds)
	if err != nil {
		return err
	}
	is, err := ours.memory()
	if err != nil {
		return err
	}
	fmt.Println()
	for _, op := range all {
		speed := func(r map[*server][]sample) float64 {
			return best(r[twin]) / best(r[ours])
		}
		was, is := speed(before[op.name]), speed(after[op.name])
		verdict := "MISSED"
		if is >= 0.9*was {
			verdict = "met"
		}
		fmt.Printf("%-14s speed, of the other's, before %6.3f, after %6.3f: %6.3f >= 0.90  %s\n", op.name, was, is, is/was, verdict)
	}
	fmt.Printf("resident memory before %d KiB, after %d KiB\n", was, is)
	return nil
}

// best is the wall time of the best round, in ns.
func best(samples []sample) float64 {
	return float64(slices.MinFunc(samples, func(a, b sample) int { return int(a.wall - b.wall) }).wall)
}

// memory is the server's resident memory in KiB.
func (s *server) memory() (kib int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(b, []byte("VmRSS:"))
	_, err = fmt.Sscan(string(rest), &kib)
	return kib, err
}
