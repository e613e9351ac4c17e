//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
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

// afterTorture runs smbtorture against ours and compares what comes after it with
// what was before.
func afterTorture(all []op, smbd, ours *server, before map[string]map[*server][]sample, rounds int) error {
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
	after, err := measure(all, []*server{smbd, ours}, rounds)
	if err != nil {
		return err
	}
	is, err := ours.memory()
	if err != nil {
		return err
	}
	fmt.Println()
	for _, op := range all {
		speed := func(s *server) float64 { return best(before[op.name][s]) / best(after[op.name][s]) }
		verdict := "MISSED"
		if speed(ours) >= 0.9 {
			verdict = "met"
		}
		fmt.Printf("%-14s speed after torture, of that before %6.3f >= 0.90  %s (smbd without torture: %.3f)\n", op.name, speed(ours), verdict, speed(smbd))
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
