package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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

// disk is a folder for "ramserver mount" and the state folder of its server.
type disk struct {
	t          *testing.T
	state, dir string
}

// newDisk skips where FUSE does not work.
func newDisk(t *testing.T) *disk {
	t.Helper()
	p, err := loopback.New(loopback.Want{System: "linux", Via: loopback.FUSE, Dir: "/x", Root: os.Geteuid() == 0})
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		t.Skipf("FUSE does not work here: %v", err)
	}
	d := &disk{t, stateDir(t), filepath.Join(stateDir(t), "ramdisk")}
	t.Cleanup(func() {
		if d.found() != nil {
			d.run("umount", d.dir, "--force")
		}
	})
	return d
}

func (d *disk) run(command string, args ...string) result {
	d.t.Helper()
	return ramserver(d.t, append([]string{command, "--state-dir", d.state}, args...)...)
}

func (d *disk) mount(args ...string) {
	d.t.Helper()
	if r := d.run("mount", append(args, "--size", "64M", "--via", "fuse", "--", d.dir)...); r.code != 0 {
		d.t.Fatalf("mount: %d, %s", r.code, r.err)
	}
}

func (d *disk) found() *loopback.Mounted {
	m, err := loopback.Find(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	return m
}

// report is the one server's.
func (d *disk) report() *report {
	d.t.Helper()
	r := d.run("status", "--json", "--interval", "0")
	var out report
	if r.code != 0 || json.Unmarshal([]byte(r.out), &out) != nil {
		d.t.Fatalf("status: %d, %s%s", r.code, r.out, r.err)
	}
	return &out
}

// nothing checks that nothing is left: no mount, no folder, no state.
func (d *disk) nothing(after string) {
	d.t.Helper()
	var left []os.DirEntry
	for range 500 {
		if left, _ = os.ReadDir(d.state); len(left) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, err := os.Lstat(d.dir)
	if m := d.found(); m != nil || err == nil || len(left) > 0 {
		d.t.Errorf("after %s: mounted %+v, folder %v, state %v", after, m, err, left)
	}
}

// The life of a mount, as its user sees it.
func TestMount(t *testing.T) {
	d := newDisk(t)
	d.mount()
	file := filepath.Join(d.dir, "a")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	rep := d.report()
	if len(rep.Mounts) != 1 || rep.Mounts[0].Dir != d.dir || rep.Mounts[0].Via != "fuse" || rep.Mounts[0].Type != "fuse.ramserver" || len(rep.Listen) != 0 {
		t.Errorf("status: %+v", rep)
	}
	if table := d.run("status", "--interval", "0").out; !strings.Contains(table, d.dir+" by fuse") {
		t.Errorf("status:\n%s", table)
	}
	if r := d.run("mount", d.dir, "--size", "1M"); r.code != 1 || !strings.Contains(r.err, "is mounted there already") {
		t.Errorf("a second mount: %d, %s", r.code, r.err)
	}

	// While it is in use, it stays.
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"umount", d.dir}, {"stop", "--name", rep.Name}} {
		r := d.run(args[0], args[1:]...)
		if r.code != 1 || !strings.Contains(r.err, "is in use by") || !strings.Contains(r.err, "open "+file) {
			t.Errorf("%s while a file is open: %d, %s", args[0], r.code, r.err)
		}
	}
	f.Close()
	if r := d.run("umount", d.dir); r.code != 0 || !strings.Contains(r.out, "unmounted") || r.err != "" {
		t.Errorf("umount: %d, %s%s", r.code, r.out, r.err)
	}
	d.nothing("umount")
	if r := d.run("umount", d.dir); r.code != 1 || !strings.Contains(r.err, "no server has mounted a store there") {
		t.Errorf("a second umount: %d, %s", r.code, r.err)
	}

	// The system's own umount ends the server too.
	d.mount("-o", "ro,noexec")
	if err := os.WriteFile(file, nil, 0o600); err == nil {
		t.Error("writing to a read-only mount")
	}
	if err := unix.Unmount(d.dir, 0); err != nil {
		t.Fatal(err)
	}
	d.nothing("umount(2)")

	// By force, files stay open, and what is done with them fails.
	d.mount()
	if f, err = os.Create(file); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r := d.run("umount", d.dir, "--force"); r.code != 0 {
		t.Errorf("umount --force: %d, %s", r.code, r.err)
	}
	d.nothing("umount --force")
	if _, err := f.Write([]byte("a")); err == nil {
		// By passthrough the kernel writes to a page that nobody sees. There are no
		// more of them.
		if n, err := f.Write(make([]byte, 1<<20)); err == nil || n > 4096 {
			t.Errorf("writing to a file of a mount that is gone: %d, %v", n, err)
		}
	}
}

// What a killed server leaves is cleaned up by the next command, which says so.
func TestMountKilled(t *testing.T) {
	d := newDisk(t)
	for _, next := range []string{"umount", "mount", "status"} {
		d.mount()
		proc, err := os.FindProcess(d.report().PID)
		if err != nil {
			t.Fatal(err)
		}
		// Under load.
		ended := make(chan error, 2)
		for _, name := range []string{"a", "b"} {
			go func() {
				for {
					if err := os.WriteFile(filepath.Join(d.dir, name), make([]byte, 1<<20), 0o600); err != nil {
						ended <- err
						return
					}
				}
			}()
		}
		f, err := os.Create(filepath.Join(d.dir, "open"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		proc.Kill()
		start := time.Now()
		<-ended
		<-ended
		r := d.run(next, map[string][]string{"umount": {d.dir}, "mount": {d.dir, "--size", "1M", "--via", "fuse"}, "status": nil}[next]...)
		if want := map[string]int{"umount": 0, "mount": 0, "status": 1}[next]; r.code != want || !strings.Contains(r.err, "removed the state it left and its mount at "+d.dir) {
			t.Errorf("%s after a kill: %d, %s", next, r.code, r.err)
		}
		f.Close()
		if next == "mount" {
			if r := d.run("umount", d.dir); r.code != 0 {
				t.Errorf("umount: %d, %s", r.code, r.err)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s after a kill took %s", next, took)
		}
		d.nothing("a kill and " + next)
	}
}

// Also when the state folder is gone.
func TestMountLost(t *testing.T) {
	d := newDisk(t)
	for _, next := range [][]string{{"umount"}, {"mount", "--size", "1M"}} {
		d.mount()
		if proc, err := os.FindProcess(d.report().PID); err == nil {
			proc.Kill()
		}
		for range 500 { // until it is dead
			if unix.Statfs(d.dir, new(unix.Statfs_t)) != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		os.RemoveAll(d.state)
		r := d.run(next[0], append(next[1:], d.dir)...)
		if r.code != 0 || !strings.Contains(r.err, "a server died; removed its mount at "+d.dir) {
			t.Errorf("%s: %d, %s", next[0], r.code, r.err)
		}
	}
	if r := d.run("umount", d.dir); r.code != 0 {
		t.Errorf("umount: %d, %s", r.code, r.err)
	}
	if m := d.found(); m != nil {
		t.Errorf("left %+v", m)
	}
}

// A server that does not answer can be ended by force.
func TestMountStopped(t *testing.T) {
	d := newDisk(t)
	d.mount()
	proc, err := os.FindProcess(d.report().PID)
	if err != nil {
		t.Fatal(err)
	}
	proc.Signal(unix.SIGSTOP)
	defer proc.Signal(unix.SIGCONT)
	if r := d.run("umount", d.dir, "--timeout", "200ms"); r.code != 1 {
		t.Errorf("umount: %d, %s", r.code, r.err)
	}
	if r := d.run("umount", d.dir, "--timeout", "200ms", "--force"); r.code != 0 || !strings.Contains(r.err, "killing process") {
		t.Errorf("umount --force: %d, %s", r.code, r.err)
	}
	d.nothing("umount --force")
}

// Mistakes are told by the command that was given, and change nothing.
func TestMountMistakes(t *testing.T) {
	d := newDisk(t)
	file := filepath.Join(filepath.Dir(d.dir), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(filepath.Dir(d.dir), "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{d.dir + " --size big", 2, `--size: "big"`},
		{d.dir + " --via afs", 2, `--via "afs": want auto, fuse, nfs or smb`},
		{d.dir + " --via fuse --passthrough some", 2, `--passthrough "some": want auto, never or always`},
		{d.dir + " --size 1M -o sync", 2, `mount option "sync": want ro`},
		{d.dir + " --size 1M --metrics 127.0.0.1:1 --name a/b", 2, `--name "a/b": want`},
		{d.dir + " --size 1M --listen 192.0.2.1 --allow 10.0.0.0/8 --nfs-port 0", 2, "192.0.2.1"}, // found by the server
		{file + " --size 1M", 2, "is not a folder"},
		{file + "/below --size 1M", 2, file + "/below: not a directory"},
		{dangling + " --size 1M", 2, "is a symlink to what is not there"},
		{"/does/not/exist --size 1M", 2, "/does/not/exist: there is no folder /does/not"},
		{"", 2, "want one folder, as ramserver mount /ramdisk"},
	} {
		r := d.run("mount", strings.Fields(tc.args)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("mount %s: %d, %q; want %d and %q", tc.args, r.code, r.err, tc.code, tc.want)
		}
		d.nothing("mount " + tc.args)
	}

	// --print changes nothing.
	for via, want := range map[string]string{"fuse": "type fuse.ramserver", "nfs": "mount -i -t nfs", "auto": "type fuse.ramserver"} {
		r := d.run("mount", d.dir, "--size", "1M", "--via", via, "--print")
		if r.code != 0 || !strings.Contains(r.out, want) || !strings.Contains(r.out, "umount "+d.dir) {
			t.Errorf("--via %s --print: %d, %s%s", via, r.code, r.out, r.err)
		}
		d.nothing("--print")
	}
}

// What is in the folder already is hidden, of which there is a warning. The file of
// settings may name the server.
func TestMountOverFiles(t *testing.T) {
	d := newDisk(t)
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, config := filepath.Join(d.dir, "a"), filepath.Join(d.state, "a.yaml")
	for path, content := range map[string]string{file: "", config: "name: other\nsize: 1M\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := d.run("mount", d.dir, "--via", "fuse", "--config", config)
	if r.code != 0 || strings.Count(r.err, d.dir+": is not empty") != 1 {
		t.Errorf("mount: %d, %s", r.code, r.err)
	}
	if rep := d.report(); rep.Name != "other" {
		t.Errorf("the server's name is %q", rep.Name)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is there still")
	}
	if r := d.run("umount", d.dir); r.code != 0 {
		t.Errorf("umount: %d, %s", r.code, r.err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// The same files over the network and in the foreground, until a signal.
func TestMountAndServe(t *testing.T) {
	d := newDisk(t)
	cmd := exec.Command(program, "mount", d.dir, "--state-dir", d.state, "--size", "64M", "--via", "fuse", "--foreground", "--nfs-port", "0", "--portmap", "off")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != readyLine {
	}
	if rep := d.report(); len(rep.Listen) == 0 || len(rep.Mounts) != 1 {
		t.Errorf("status: %+v", rep)
	}
	f, err := os.Create(filepath.Join(d.dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Process.Signal(unix.SIGTERM)
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	d.nothing("SIGTERM")
}

// mount(8) calls the program by another name.
func TestMountHelper(t *testing.T) {
	d := newDisk(t)
	helper := filepath.Join(t.TempDir(), helperName)
	if err := os.Symlink(program, helper); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		options string
		code    int
	}{
		{"size=64X", mountUsage},
		{"rw,nodev,noatime,size=64M,state-dir=" + d.state, 0},
		{"size=64M,state-dir=" + d.state, mountFailed}, // there is one
	} {
		out, err := exec.Command(helper, "ramdisk", d.dir, "-o", tc.options).CombinedOutput()
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != tc.code {
			t.Errorf("%s: exit status %d, want %d: %s", tc.options, code, tc.code, out)
		}
	}
	if m := d.found(); m == nil || m.Type != "fuse.ramserver" {
		t.Errorf("mounted: %+v", m)
	}
	if r := d.run("umount", d.dir); r.code != 0 {
		t.Errorf("umount: %d, %s", r.code, r.err)
	}
	d.nothing("umount")
}

func TestDoctor(t *testing.T) {
	newDisk(t)
	r := ramserver(t, "doctor", "--json")
	var found []finding
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 0 {
		t.Fatalf("%d, %v: %s%s", r.code, err, r.out, r.err)
	}
	states := make(map[string]string)
	for _, f := range found {
		states[f.Name] = f.State
	}
	for _, name := range []string{"memory", "open files", "port 111", "port 2049", "port 445", "port 1445", "SMB users", "SMB logon", "mount by fuse", "mount by nfs", "mount by smb"} {
		if states[name] == "" {
			t.Errorf("nothing about %s", name)
		}
	}
	if states["SMB logon"] != stateOK || states["mount by fuse"] != stateOK || states["mount by smb"] != stateNo {
		t.Errorf("found %+v", found)
	}
}

// TestMountAsUser mounts as somebody who is not root, by fusermount3. Others, root
// among them, cannot look in.
func TestMountAsUser(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: opens /dev/fuse to everybody for a moment")
	}
	newDisk(t)
	if os.Geteuid() != 0 {
		t.Skip("not root: the other tests mount as a user already")
	}
	if _, err := exec.LookPath("fusermount3"); err != nil {
		t.Skip("fuse3 is not installed: ", err)
	}
	const nobody = 65534
	// Some machines, on which nobody else has used it yet, keep it for root.
	device, err := os.Stat("/dev/fuse")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("/dev/fuse", 0o666); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod("/dev/fuse", device.Mode().Perm())
	home := stateDir(t)
	exe := filepath.Join(home, "ramserver")
	for _, args := range [][]string{{"cp", program, exe}, {"chown", "-R", fmt.Sprint(nobody), home}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	dir := filepath.Join(home, "disk")
	as := func(script string) (string, error) {
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { as("fusermount3 -u -z disk 2>/dev/null") })
	for _, c := range []struct{ script, want string }{
		{"./ramserver mount disk --size 64M --state-dir state", "by fuse"},
		{"echo data >disk/f && cat disk/f && stat -c %u disk/f", "data\n65534\n"},
		{"./ramserver status --state-dir state --interval 0", dir + " by fuse"},
		{"(sleep 60 & echo $! >pid) >disk/g; ./ramserver umount disk --state-dir state; kill $(cat pid)", "is in use by sleep"},
		{"sleep 0.2; ./ramserver umount disk --state-dir state", "unmounted"},
		{"./ramserver mount disk --size 64M --state-dir state && kill -9 $(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' state/*.json) && sleep 0.2 && ./ramserver umount disk --state-dir state", "and its mount at " + dir},
	} {
		if out, err := as(c.script); !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, no %q in\n%s", c.script, err, c.want, out)
		}
		if _, err := os.ReadDir(dir); err == nil && strings.Contains(c.script, "echo data") {
			t.Error("root looks into a user's mount")
		}
	}
	if m, err := loopback.Find(dir); err != nil || m != nil {
		t.Errorf("left: %+v, %v", m, err)
	}
}

// What a shell has open is not kept open in the background.
func TestMountInherits(t *testing.T) {
	d := newDisk(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(program, "mount", d.dir, "--state-dir", d.state, "--size", "64M", "--via", "fuse")
	cmd.ExtraFiles = []*os.File{w}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.Close()
	r.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("reading from what the command had open: %v", err)
	}
}
