package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramserver/loopback"

	"golang.org/x/sys/unix"
)

// killTime is how long it may take after a server was killed until a command has
// cleaned up, a new mount works, and no process waits for the old one.
const killTime = 5 * time.Second

// killLoad works on the mount $DISK in every way until that fails.
var killLoad = []string{
	`while cp -a "$SRC" "$DISK/tree" && rm -rf "$DISK/tree"; do :; done`,
	`fio --directory="$DISK" --name=psync --ioengine=psync --rw=randwrite --bs=4k --size=16m --time_based --runtime=60`,
	`fio --directory="$DISK" --name=mapped --ioengine=mmap --rw=randwrite --bs=4k --size=16m --time_based --runtime=60`,
	// Open to read and write, so that the kernel writes to it without the server
	// where it can; it goes on when the server is dead.
	`exec 3<>"$DISK/both"; while dd if=/dev/zero bs=64k count=100 conv=notrunc >&3; do :; done`,
	`cd "$DISK"; while ls -lR >/dev/null && flock lock true && mv lock x && mv x lock; do :; done`,
}

// TestKilledUnderLoad kills servers while all that goes on. KERNEL_ALL=1 has it do
// so again and again.
func TestKilledUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: takes some seconds, and needs fio")
	}
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip(err)
	}
	rounds := 1
	if os.Getenv("KERNEL_ALL") == "1" {
		rounds = 10
	}
	var longest time.Duration
	for _, passthrough := range []string{"auto", "never"} {
		for _, next := range []string{"umount", "mount"} {
			t.Run(passthrough+"/"+next, func(t *testing.T) {
				for range rounds {
					longest = max(longest, newDisk(t).killUnderLoad(passthrough, next))
				}
			})
		}
	}
	t.Logf("%v at most from the kill to a new mount that works", longest.Round(time.Millisecond))
}

// killUnderLoad returns how long it took from the kill until a new mount worked.
func (d *disk) killUnderLoad(passthrough, next string) time.Duration {
	d.t.Helper()
	d.mount("--passthrough", passthrough)
	found := d.found()
	var load []*exec.Cmd
	for _, script := range killLoad {
		cmd := exec.Command("bash", "-c", script)
		cmd.Env = append(os.Environ(), "DISK="+d.dir, "SRC=../../memstore")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			d.t.Fatal(err)
		}
		load = append(load, cmd)
		defer cmd.Wait()
		defer unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
	for range 500 { // until all of it has begun
		if files, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(files) >= len(killLoad) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(rand.N(500 * time.Millisecond))
	pid := d.report().PID
	unix.Kill(pid, unix.SIGKILL)
	start := time.Now()

	commands := [][]string{{"umount", d.dir}, {"mount", d.dir, "--size", "64M", "--via", "fuse"}}
	if next == "mount" {
		commands = commands[1:]
	}
	for i, args := range commands {
		r := d.run(args[0], args[1:]...)
		if says := strings.Contains(r.err, fmt.Sprintf("process %d died; removed the state it left and its mount at %s", pid, d.dir)); r.code != 0 || says != (i == 0) {
			d.t.Errorf("%s after a kill: %d, %s", args[0], r.code, r.err)
		}
	}
	file := filepath.Join(d.dir, "file")
	if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
		d.t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "new" {
		d.t.Errorf("on the new mount: %q, %v", b, err)
	}
	took := time.Since(start)

	// What does not end by itself can be ended, and nobody waits for the old mount.
	for _, cmd := range load {
		unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
	var waiting []string
	for time.Since(start) < killTime {
		if waiting = uninterruptible(load, found); len(waiting) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took > killTime || len(waiting) > 0 {
		d.t.Errorf("took %s; still waiting: %s", took, waiting)
	}
	if r := d.run("umount", d.dir); r.code != 0 {
		d.t.Errorf("umount: %d, %s", r.code, r.err)
	}
	d.nothing("a kill and " + next)
	return took
}

// uninterruptible lists what waits and cannot be killed, of the processes of some
// commands and the threads of the kernel that write back a mount's files.
func uninterruptible(groups []*exec.Cmd, m *loopback.Mounted) (all []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		end := bytes.LastIndexByte(b, ')')
		name := string(b[:end+1])
		var state string
		var parent, group int
		if _, err := fmt.Sscan(string(b[end+1:]), &state, &parent, &group); err != nil || state != "D" {
			continue
		}
		ours := strings.Contains(name, fmt.Sprintf("flush-%d:%d", m.Major, m.Minor))
		for _, cmd := range groups {
			ours = ours || cmd.Process.Pid == group
		}
		if ours {
			all = append(all, name)
		}
	}
	return all
}
