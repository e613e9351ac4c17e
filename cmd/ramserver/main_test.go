package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is the program under test.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ramserver")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "ramserver.exe")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		os.Exit(1)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "RAMSERVER_") {
			os.Unsetenv(name)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// stateDir is a folder with a path short enough for a socket.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

type result struct {
	code     int
	out, err string
}

// ramserver runs a command that ends by itself.
func ramserver(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	cmd.Wait()
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// server is a running "ramserver serve".
type server struct {
	t     *testing.T
	cmd   *exec.Cmd
	state string
	name  string
	head  string        // what it printed until it was ready
	errs  *bytes.Buffer // to be read after wait
	ended chan struct{}
}

func start(t *testing.T, state, name string, args ...string) *server {
	t.Helper()
	s := &server{t: t, state: state, name: name, errs: new(bytes.Buffer), ended: make(chan struct{})}
	s.cmd = exec.Command(program, append([]string{"serve", "--state-dir", state, "--name", name, "--size", "64M", "--nfs-port", "0", "--portmap", "off"}, args...)...)
	s.cmd.Stderr = s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(30*time.Second, func() { s.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ramserver: ready" {
		s.head += lines.Text() + "\n"
	}
	timer.Stop()
	ready := lines.Err() == nil && lines.Text() == "ramserver: ready"
	go func() {
		io.Copy(io.Discard, out)
		s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		<-s.ended
	})
	if !ready {
		<-s.ended
		t.Fatalf("the server is not ready: %s", s.errs)
	}
	return s
}

// wait returns how the server ended.
func (s *server) wait() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		s.t.Fatal("the server does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) run(command string, args ...string) result {
	s.t.Helper()
	return ramserver(s.t, append([]string{command, "--state-dir", s.state, "--name", s.name}, args...)...)
}

func (s *server) status() *report {
	s.t.Helper()
	r := s.run("status", "--json", "--interval", "0")
	if r.code != 0 {
		s.t.Fatalf("status: %d, %s", r.code, r.err)
	}
	var out report
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		s.t.Fatal(err)
	}
	return &out
}

// A mistake is one line, exit status 2, and nothing is left running or lying
// about.
func TestMistakes(t *testing.T) {
	state := stateDir(t)
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := strconv.Itoa(busy.Addr().(*net.TCPAddr).Port)
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct{ args, want string }{
		{"--nfs-port " + port, "NFS port " + port + " of 127.0.0.1 is in use"},
		{"--nfs-port 0 --metrics 127.0.0.1:" + port, "--metrics: listen tcp 127.0.0.1:" + port},
		{"--listen 192.0.2.1 --nfs-port 0 --allow 10.0.0.0/8", "NFS port 0 of 192.0.2.1: cannot assign requested address; give an address of this machine"},
		{"--nfs-port 70000", `--nfs-port "70000": want a number from 0 to 65535`},
		{"--client-expiry 90", `--client-expiry "90": want a time, as 90s or 2m`},
		{"--inodes many", `--inodes "many": want a whole number`},
		{"--insecure-ports=maybe", `--insecure-ports "maybe": want true or false`},
		{"--size big", `--size: "big": want a whole number above 0 with K, M, G or T`},
		{"--size 9999T", "more than 90 %"},
		{"--size 95%", "more than 90 %"},
		{"--size 1K", "at least 64.0 KiB are needed"},
		{"--allow 10.0.0.0/99", `--allow: network "10.0.0.0/99": want a CIDR`},
		{"--listen 0.0.0.0", "--listen 0.0.0.0: is open to other machines; say which with --allow"},
		{"--listen lan", `--listen "lan": want an address`},
		{"--bogus", "unknown flag: --bogus; see ramserver serve --help"},
		{"more", "unknown command"},
		{"--export a,b=c", "--export a,b=c: b: unknown"},
		{"--config " + file("a.yaml", "bogus: 1"), `unknown key "bogus"`},
		{"--config " + file("a.toml", "bogus = 1"), `unknown key "bogus"`},
		{"--config " + file("a.ini", ""), "want a name that ends in .yaml, .yml or .toml"},
		{"--config " + file("b.yaml", "a: [1"), "b.yaml: yaml:"},
		{"--config " + file("c.yaml", "size: [1M, 2M]"), "size: want one value, not a list"},
		{"--config " + file("d.yaml", "size: big"), `--size: "big": want a whole number`},
		{"--config " + file("h.yaml", "size: 1.5"), "size: want a string, a whole number"},
		{"--config " + file("i.yaml", "size:"), "size: has no value"},
		{"--config " + file("j.yaml", "- a"), "want lines such as size: 4G"},
		{"--config " + file("k.yaml", "size: 1G\nsize: 2G"), "yaml: line 2: mapping key"},
		{"--config " + file("b.toml", "mode = \"1777\"\nsize = 4G"), "line 2, column 9"},
		{"--config " + file("l.yaml", "nfs-port: many"), `nfs-port: "many": want a number from 0 to 65535`},
		{"--smb-users " + filepath.Join(state, "none"), "has no user who could log on"},
		{"--config " + file("e.yaml", "mode: 0755"), `mode: want it in quotes`},
		{"--config " + file("f.yaml", "export: [{size: 1G}]"), "export: want a name"},
		{"--config " + file("g.yaml", strings.Repeat("#", maxConfig+1)), "larger than 1 MiB"},
		{"--config /does/not/exist.yaml", "no such file"},
		{"--name a/b", `--name "a/b": want`},
		{"--state-dir " + filepath.Join(state, strings.Repeat("x", 100)), "too long for a socket"},
		{"--state-dir /does/not/exist", "state folder: mkdir /does/not/exist"},
		{"--portmap maybe", `--portmap "maybe": want auto, on or off`},
	} {
		args := append([]string{"serve", "--state-dir", state, "--portmap", "off"}, strings.Fields(tc.args)...)
		r := ramserver(t, args...)
		if r.code != 2 || !strings.Contains(r.err, tc.want) || strings.Count(r.err, "\n") != 1 || r.out != "" {
			t.Errorf("serve %s: exit status %d, %q; want 2 and %q", tc.args, r.code, r.err, tc.want)
		}
		if left, _ := os.ReadDir(state); len(left) != 0 {
			t.Errorf("serve %s: left %v", tc.args, left)
		}
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"bogus"}, 2, `unknown command "bogus"`},
		{[]string{"service", "bogus"}, 2, `unknown command "bogus"`},
		{[]string{"completion", "bogus"}, 2, `unknown command "bogus"`},
		{[]string{"mount"}, 2, "want one folder"},
		{[]string{"mount", ""}, 2, "want one folder"},
		{[]string{"umount", "/a", "/b"}, 2, "want one folder"},
		{[]string{"stop", "--timeout", "0"}, 2, "want more than 0"},
		{[]string{"user", "remove", "--smb-users", filepath.Join(state, "none", "users"), "x"}, 1, "is not in"},
		{[]string{"status", "--bogus"}, 2, "unknown flag"},
		{[]string{"status", "--state-dir", state, "--interval", "-1s"}, 2, "want 0 or more"},
		{[]string{"status", "--state-dir", state}, 1, "no server is running (state folder " + state},
		{[]string{"status", "--state-dir", state, "--name", "default"}, 1, `server "default" is not running`},
		{[]string{"stop", "--state-dir", state, "--name", "x"}, 1, `server "x" is not running`},
		{[]string{"status", "--state-dir", filepath.Join(state, "none")}, 1, "no server is running"},
	} {
		r := ramserver(t, tc.args...)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: exit status %d, %q; want %d and %q", tc.args, r.code, r.err, tc.code, tc.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []string{"mount", "umount", "serve", "status", "stop", "service", "doctor", "user", "user add", "user remove", "user list", "version"} {
		r := ramserver(t, append(strings.Fields(c), "--help")...)
		if r.code != 0 || !strings.Contains(r.out, "Examples:") {
			t.Errorf("%s --help: %d\n%s", c, r.code, r.out)
		}
	}
	if r := ramserver(t, "completion", "bash"); r.code != 0 || !strings.Contains(r.out, "ramserver") {
		t.Errorf("completion: %d", r.code)
	}
	var v struct{ Version, Go string }
	if r := ramserver(t, "version", "--json"); json.Unmarshal([]byte(r.out), &v) != nil || v.Version == "" || v.Go != runtime.Version() {
		t.Errorf("version --json: %s", r.out)
	}
	if r := ramserver(t, "version"); !strings.HasPrefix(r.out, "ramserver "+v.Version) {
		t.Errorf("version: %s", r.out)
	}
}

// nullCall is a record with a call of NFS version 3's NULL, without credential.
var nullCall = []byte{
	0x80, 0, 0, 40, // mark
	0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, // xid, call, RPC version
	0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 0, // program, version, procedure
	0, 0, 0, 0, 0, 0, 0, 0, // credential
	0, 0, 0, 0, 0, 0, 0, 0, // verifier
}

// The life of a server, as its user sees it.
func TestServe(t *testing.T) {
	state := stateDir(t)
	s := start(t, state, "default", "--export", "ramdisk", "--export", "docs,path=/a/b,ro,owner=7:8,mode=750",
		"--export", "scratch,size=1M,inodes=100,squash=all,allow=10.0.0.0/8", "--metrics", "127.0.0.1:0")

	st := s.status()
	if st.PID != s.cmd.Process.Pid || st.Engine != "native" || st.Portmap != "off" || len(st.Listen) == 0 {
		t.Errorf("status: %+v", st)
	}
	want := []exportReport{
		{Name: "ramdisk", Store: "main", Path: "/", Allow: []string{}, Squash: "default", Anon: "65534:65534"},
		{Name: "docs", Store: "main", Path: "/a/b", ReadOnly: true, Allow: []string{}, Squash: "default", Anon: "65534:65534"},
		{Name: "scratch", Store: "/scratch", Path: "/", Allow: []string{"10.0.0.0/8"}, Squash: "all", Anon: "65534:65534"},
	}
	if fmt.Sprint(st.Exports) != fmt.Sprint(want) {
		t.Errorf("exports: %+v\nwant     %+v", st.Exports, want)
	}
	if len(st.Stores) != 2 || st.Stores[0].Size != 64<<20 || st.Stores[1].Size != 1<<20 || st.Stores[1].Inodes != 100 {
		t.Errorf("stores: %+v", st.Stores)
	}
	if st.Stores[0].UsedInodes != 3 {
		t.Errorf("the main store has %d inodes, not /, /a and /a/b", st.Stores[0].UsedInodes)
	}

	if runtime.GOOS != "windows" {
		for path, mode := range map[string]os.FileMode{
			state: 0o700, filepath.Join(state, "default.sock"): 0o600, filepath.Join(state, "default.json"): 0o600,
		} {
			if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v; want %v", path, fi.Mode(), err, mode)
			}
		}
	}

	port := netip.MustParseAddrPort(st.Listen[0]).Port()
	for _, want := range []string{
		fmt.Sprintf("port=%d,mountport=%d", port, port), ":/ramdisk", "or /docs", "or /scratch",
		"Windows:  not with these settings", "will be empty again after a restart",
	} {
		if !strings.Contains(s.head, want) {
			t.Errorf("no %q in the greeting:\n%s", want, s.head)
		}
	}

	conn, err := net.Dial("tcp", st.Listen[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		conn.Write(nullCall)
		if _, err := io.ReadFull(conn, make([]byte, 28)); err != nil {
			t.Fatal(err)
		}
	}
	st = s.status()
	if st.Calls != 3 || st.BytesIn != 3*44 || st.BytesOut != 3*28 || len(st.Procedures) != 1 || st.Procedures[0].Name != "nfs3.NULL" || st.Procedures[0].Calls != 3 {
		t.Errorf("after three calls: %+v", st)
	}
	if len(st.Clients) != 1 || st.Clients[0].Addr.String() != "127.0.0.1" || st.Clients[0].Connections != 1 {
		t.Errorf("clients: %+v", st.Clients)
	}
	table := s.run("status", "--interval", "10ms").out
	for _, want := range []string{"default (process", "/scratch", "64.0 MiB", "read-only", "127.0.0.1", "nfs3.NULL", "calls/s"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in the table:\n%s", want, table)
		}
	}

	url := regexp.MustCompile(`http://\S+`).FindString(s.head)
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("metrics: %v, %v", resp.Status, err)
	}
	for _, want := range []string{
		`ramserver_store_size_bytes{store="main"} 6.7108864e+07`, `ramserver_nfs_calls_total{procedure="nfs3.NULL"} 3`,
		`ramserver_nfs_bytes_total{direction="in"} 132`, "ramserver_nfs_connections 1", "go_goroutines",
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no %q in the metrics", want)
		}
	}

	if r := s.run("stop"); r.code != 0 || !strings.Contains(r.out, "stopped") {
		t.Errorf("stop: %d, %s%s", r.code, r.out, r.err)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit status %d: %s", code, s.errs)
	}
	if left, _ := os.ReadDir(state); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestServeGoNFS(t *testing.T) {
	s := start(t, stateDir(t), "go", "--nfs-engine", "go-nfs", "--log-format", "json")
	if st := s.status(); st.Engine != "go-nfs" || st.Name != "go" {
		t.Errorf("status: %+v", st)
	}
	if r := s.run("stop", "--json"); r.code != 0 {
		t.Errorf("stop: %d, %s", r.code, r.err)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for line := range strings.Lines(s.errs.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line is not JSON: %s", line)
		}
	}
}

func TestTwoServers(t *testing.T) {
	state := stateDir(t)
	a := start(t, state, "a")
	b := start(t, state, "b")
	if a.status().PID == b.status().PID {
		t.Error("two names, one server")
	}
	r := a.run("serve", "--nfs-port", "0", "--portmap", "off")
	if r.code != 2 || !strings.Contains(r.err, `server "a" is running already`) {
		t.Errorf("a second server a: %d, %s", r.code, r.err)
	}
	r = ramserver(t, "status", "--state-dir", state, "--name", "c")
	if r.code != 1 || !strings.Contains(r.err, "running: a, b") {
		t.Errorf("status of none: %d, %s", r.code, r.err)
	}
	r = ramserver(t, "status", "--state-dir", state, "--json", "--interval", "0")
	if r.code != 0 || strings.Count(r.out, "\n") != 2 || !strings.Contains(r.out, `"name":"b"`) {
		t.Errorf("status of both: %d, %s%s", r.code, r.out, r.err)
	}
	a.run("stop")
	if b.status().Name != "b" {
		t.Error("stopping a stopped b")
	}
}

func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	state := stateDir(t)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := start(t, state, "default")
		s.cmd.Process.Signal(sig)
		if code := s.wait(); code != 0 {
			t.Errorf("%v: exit status %d: %s", sig, code, s.errs)
		}
		if left, _ := os.ReadDir(state); len(left) != 0 {
			t.Errorf("%v: left %v", sig, left)
		}
	}

	// One who signals a process and its group too means one signal.
	s := start(t, state, "default")
	for range 3 {
		s.cmd.Process.Signal(syscall.SIGINT)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("three signals at once: exit status %d: %s", code, s.errs)
	}
	if left, _ := os.ReadDir(state); len(left) != 0 {
		t.Errorf("three signals at once: left %v", left)
	}

	// What a killed one leaves is removed by the next command, which says so.
	for _, command := range []string{"status", "stop"} {
		s := start(t, state, "default")
		s.cmd.Process.Kill()
		s.wait()
		r := s.run(command)
		if r.code != 1 || !strings.Contains(r.err, "died; removed the state it left") {
			t.Errorf("%s after kill: %d, %s", command, r.code, r.err)
		}
		if left, _ := os.ReadDir(state); len(left) != 0 {
			t.Errorf("%s after kill: left %v", command, left)
		}
	}
	s = start(t, state, "default")
	s.cmd.Process.Kill()
	s.wait()
	s = start(t, state, "default")
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.wait()
	if !strings.Contains(s.errs.String(), "removed the state it left") {
		t.Errorf("after a killed one: %s", s.errs)
	}
}

// A process that has the number of a dead server is not taken for it.
func TestReusedPID(t *testing.T) {
	state := stateDir(t)
	self, ok := processStart(os.Getpid())
	if !ok {
		t.Fatal("no start time")
	}
	b, _ := json.Marshal(process{Name: "default", PID: os.Getpid(), Start: self + 1})
	if err := os.WriteFile(filepath.Join(state, "default.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	r := ramserver(t, "stop", "--state-dir", state)
	if r.code != 1 || !strings.Contains(r.err, "removed the state") {
		t.Errorf("stop: %d, %s", r.code, r.err)
	}
}

// Nobody acts on another's state, root neither.
func TestForeignState(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows guards the folder by its access list")
	}
	open := stateDir(t)
	os.Chmod(open, 0o755)
	for _, command := range []string{"serve", "status", "stop"} {
		if r := ramserver(t, command, "--state-dir", open); r.code != 2 || !strings.Contains(r.err, "chmod 700 it") {
			t.Errorf("%s with a folder that others can use: %d, %s", command, r.code, r.err)
		}
	}
	link := filepath.Join(stateDir(t), "link")
	if err := os.Symlink(stateDir(t), link); err != nil {
		t.Fatal(err)
	}
	if r := ramserver(t, "serve", "--state-dir", link); r.code != 2 || !strings.Contains(r.err, "is not a folder") {
		t.Errorf("serve with a symlink: %d, %s", r.code, r.err)
	}
	if os.Getuid() != 0 {
		t.Skip("the rest needs root, to make a folder of another user")
	}
	theirs := stateDir(t)
	if err := os.Chown(theirs, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve", "status", "stop"} {
		if r := ramserver(t, command, "--state-dir", theirs); r.code != 2 || !strings.Contains(r.err, "belongs to user 65534") {
			t.Errorf("%s with another's folder: %d, %s", command, r.code, r.err)
		}
	}
}

func TestSystemdNotify(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("systemd is Linux's")
	}
	path := filepath.Join(stateDir(t), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	s := start(t, stateDir(t), "default")
	s.run("stop")
	s.wait()
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if got := string(b[:n]); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

// Flags win over the environment, that over the file, that over defaults.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	yaml := filepath.Join(dir, "a.yaml")
	toml := filepath.Join(dir, "a.toml")
	os.WriteFile(yaml, []byte(`
size: 10M
inodes: 5000
mode: "0755"
insecure-ports: true
listen: [127.0.0.1, 127.0.0.2]
allow: 10.0.0.0/8
export:
  - ramdisk
  - docs,path=/docs,ro
  - name: scratch
    size: 5M
    insecure-ports: false
    allow: [10.1.0.0/16, 10.2.0.0/16]
`), 0o600)
	os.WriteFile(toml, []byte(`
size = "10M"
inodes = 5000
mode = "0755"
insecure-ports = true
listen = ["127.0.0.1", "127.0.0.2"]
allow = "10.0.0.0/8"
export = ["ramdisk", "docs,path=/docs,ro", {name = "scratch", size = "5M", insecure-ports = false, allow = ["10.1.0.0/16", "10.2.0.0/16"]}]
`), 0o600)
	for _, file := range []string{yaml, toml} {
		t.Run(filepath.Ext(file), func(t *testing.T) {
			for _, tc := range []struct {
				what string
				env  map[string]string
				args []string
				want settings
			}{
				{"file", nil, nil, settings{size: "10M", inodes: 5000, mode: "0755", listen: []string{"127.0.0.1", "127.0.0.2"}}},
				{"environment", map[string]string{"SIZE": "20M", "LISTEN": "127.0.0.3,::1", "INODES": ""}, nil,
					settings{size: "20M", inodes: 5000, mode: "0755", listen: []string{"127.0.0.3", "::1"}}},
				{"flags", map[string]string{"SIZE": "20M", "INODES": "6000"}, []string{"--size", "30M", "--listen", "127.0.0.4"},
					settings{size: "30M", inodes: 6000, mode: "0755", listen: []string{"127.0.0.4"}}},
			} {
				for k, v := range tc.env {
					t.Setenv("RAMSERVER_"+k, v)
				}
				got := load(t, append(tc.args, "--config", file)...)
				if got.size != tc.want.size || got.inodes != tc.want.inodes || got.mode != tc.want.mode || !slices.Equal(got.listen, tc.want.listen) {
					t.Errorf("%s: got %+v, want %+v", tc.what, got, tc.want)
				}
				if !got.insecurePorts || got.squash != "default" || !slices.Equal(got.allow, []string{"10.0.0.0/8"}) {
					t.Errorf("%s: got %+v", tc.what, got)
				}
				if want := []string{"ramdisk", "docs,path=/docs,ro", "scratch,allow=10.1.0.0/16,allow=10.2.0.0/16,insecure-ports=false,size=5M"}; !slices.Equal(got.exports, want) {
					t.Errorf("%s: exports %q, want %q", tc.what, got.exports, want)
				}
				if _, err := makePlan(&got, physical{1 << 30, "memory"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Setenv("RAMSERVER_NFS_PORT", "x")
	if r := ramserver(t, "serve"); r.code != 2 || !strings.Contains(r.err, `RAMSERVER_NFS_PORT: "x":`) {
		t.Errorf("a bad variable: %d, %s", r.code, r.err)
	}
}

// load returns the settings that serve would have, with their defaults.
func load(t *testing.T, args ...string) settings {
	t.Helper()
	cmd := newServe(new(instance))
	var s settings
	cmd.ResetFlags()
	s.register(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := applyEnv(cmd); err != nil {
		t.Fatal(err)
	}
	if s.config != "" {
		if err := applyFile(cmd.Flags(), s.config); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
