package smb

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ramserver/export/smb/internal/samba"
	"ramserver/memstore"
)

type tortureSuite struct {
	name    string
	timeout time.Duration
}

// tortureSuites are the suites of smbtorture that have to pass, as
// testdata/torture.txt says, and how long each may take.
var tortureSuites = []tortureSuite{
	{"connect", time.Minute},
	{"session-id", time.Minute},
	{"session-require-signing", time.Minute},
	{"session.signing-hmac-sha-256", time.Minute},
	{"session.signing-aes-128-cmac", time.Minute},
	{"session.signing-aes-128-gmac", time.Minute},
	{"session.encryption-aes-128-ccm", time.Minute},
	{"session.encryption-aes-128-gcm", time.Minute},
	{"session.encryption-aes-256-ccm", time.Minute},
	{"session.encryption-aes-256-gcm", time.Minute},
	{"session.two_logoff", time.Minute},
	{"session.ntlmssp_bug14932", time.Minute},
	{"credits", time.Minute},
	{"compound", 2 * time.Minute},
	{"compound_async", time.Minute},
	{"compound_find", time.Minute},
	{"tcon", time.Minute},
	{"scan", time.Minute},
	{"maxfid", 5 * time.Minute},
	{"rw", time.Minute},
	{"read", time.Minute},
	{"create", time.Minute},
	{"mkdir", time.Minute},
	{"dir", 2 * time.Minute},
	{"getinfo", time.Minute},
	{"setinfo", time.Minute},
	{"fileid", time.Minute},
	{"lock", 2 * time.Minute},
	{"sharemode", time.Minute},
	{"check-sharemode", time.Minute},
	{"deny", 2 * time.Minute},
	{"rename", time.Minute},
	{"streams", time.Minute},
	{"create_no_streams", time.Minute},
	{"notify.valid-req", 30 * time.Second},
	{"notify.tcon", 30 * time.Second},
	{"notify.dir", 30 * time.Second},
	{"notify.tdis", 30 * time.Second},
	{"notify.tdis1", 30 * time.Second},
	{"notify.mask-change", 10 * time.Second},
	{"notify.close", 30 * time.Second},
	{"notify.logoff", 30 * time.Second},
	{"notify.session-reconnect", 30 * time.Second},
	{"notify.invalid-reauth", 30 * time.Second},
	{"notify.tree", 30 * time.Second},
	{"notify.basedir", 30 * time.Second},
	{"notify.double", 30 * time.Second},
	{"notify.file", 30 * time.Second},
	{"notify.tcp", 30 * time.Second},
	{"notify.rec", 30 * time.Second},
	{"notify.overflow", 30 * time.Second},
	{"notify.rmdir1", 30 * time.Second},
	{"notify.rmdir2", 30 * time.Second},
	{"notify.rmdir3", 30 * time.Second},
	{"notify.rmdir4", 30 * time.Second},
	{"notify.handle-permissions", 30 * time.Second},
	{"change_notify_disabled", 5 * time.Second},
	{"openattr", time.Minute},
	{"winattr", time.Minute},
	{"sdread", time.Minute},
	{"secleak", time.Minute},
	{"maximum_allowed", time.Minute},
	{"ioctl", 2 * time.Minute},
	{"ioctl-on-stream", time.Minute},
	{"set-sparse-ioctl", time.Minute},
	{"zero-data-ioctl", time.Minute},
	{"bench", 2 * time.Minute},
}

// sleepySuites are more of them, which sleep most of the time.
var sleepySuites = []tortureSuite{
	{"notify.mask", 3 * time.Minute},
	{"timestamps", 2 * time.Minute},
}

// TestTorture runs Samba's tests of a server.
func TestTorture(t *testing.T) {
	t.Parallel()
	testTorture(t, tortureSuites)
}

func TestTortureSleepy(t *testing.T) {
	t.Parallel()
	testTorture(t, sleepySuites)
}

func testTorture(t *testing.T, suites []tortureSuite) {
	program := smbtorture(t)
	allowed, err := allowedFailures("testdata/torture.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, required := newServer(t, nil)
	// The suite scan cannot sign what it makes up.
	_, enabled := newServer(t, func(c *Config) { c.Signing = Enabled })
	before := holdings(t, s)
	prepareTorture(t, required)
	ran := 0
	maps.DeleteFunc(allowed, func(name string, _ allowance) bool {
		return !slices.ContainsFunc(suites, func(s tortureSuite) bool { return strings.HasPrefix(name+".", s.name+".") })
	})
	for _, suite := range suites {
		t.Run(suite.name, func(t *testing.T) {
			ran++
			addr := required
			if suite.name == "scan" {
				addr = enabled
			}
			for name, r := range torture(t, program, suite.name, suite.timeout, addr, "user%pass") {
				a, known := allowed[name]
				delete(allowed, name)
				switch {
				case r.skipped() && !known:
					t.Logf("%s: %s", name, r.text) // the test has found out what the server does not have
				case r.passed && known:
					t.Errorf("%s passes: take it out of the list of allowed failures", name)
				case !r.passed && !known:
					t.Errorf("%s: %s", name, r.text)
				case !r.passed:
					t.Logf("%s fails, as allowed: %s: %s", name, a.reason, r.text)
				}
			}
		})
	}
	if !t.Failed() && len(allowed) > 0 && ran == len(suites) {
		t.Errorf("allowed to fail, and not run: %v", allowed)
	}
	const noise = 8 << 20 // of the other tests
	after := holdings(t, s)
	if after.heap > before.heap+noise {
		t.Errorf("%d bytes of heap, before %d", after.heap, before.heap)
	}
	if after.heap = before.heap; after != before {
		t.Errorf("the clients are gone and have left something: %+v, before %+v", after, before)
	}
}

// holding is what a server has for its clients.
type holding struct {
	conns, sessions int
	store           memstore.Statfs
	heap            uint64
}

// holdings waits until the clients are gone, removes all files and counts the rest:
// what is open, locked or watched of a file keeps it.
func holdings(t *testing.T, s *Server) (h holding) {
	t.Helper()
	share := s.cfg.Exports.ByName("share")
	for range 1000 {
		s.mu.Lock()
		h.conns, h.sessions = len(s.conns), len(s.sessions)
		s.mu.Unlock()
		if h.conns+h.sessions == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	empty(t, share.Root)
	if err := share.Store.Check(); err != nil {
		t.Error(err)
	}
	h.store = share.Store.Statfs()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.heap = m.HeapAlloc
	return h
}

// empty removes all that is in a directory.
func empty(t *testing.T, d *memstore.Inode) {
	t.Helper()
	buf := make([]memstore.DirEntry, 100)
	for {
		n, _, err := d.ReadDir(memstore.Root(), 0, buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		for _, e := range buf[:n] {
			if e.Inode.Type() == memstore.TypeDir {
				empty(t, e.Inode)
			}
			if _, err := d.Remove(memstore.Root(), e.Name, memstore.RemoveAny); err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
		}
	}
}

// TestTortureBesideSamba compares with Samba's own server, which grants no oplocks
// and leases either: what that passes, ours does, but for what the list of allowed
// failures says so of.
func TestTortureBesideSamba(t *testing.T) {
	if os.Getenv("KERNEL_ALL") == "" {
		t.Skip("takes twice as long as TestTorture: set KERNEL_ALL")
	}
	program := smbtorture(t)
	allowed, err := allowedFailures("testdata/torture.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "torture")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	port, err := samba.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	c := samba.Config{Dir: filepath.Join(dir, "smbd"), Files: filepath.Join(dir, "files"), Share: "share", User: "root", Password: "pass", Port: port,
		Options: []string{"vfs objects = streams_xattr"}}
	for _, d := range []string{c.Dir, c.Files} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	smbd, err := samba.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { samba.Stop(smbd) })
	_, required := newServer(t, nil)
	_, enabled := newServer(t, func(c *Config) { c.Signing = Enabled })
	prepareTorture(t, required)
	if err := os.WriteFile(filepath.Join(c.Files, "testfile"), make([]byte, 20000), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, suite := range slices.Concat(tortureSuites, sleepySuites) {
		t.Run(suite.name, func(t *testing.T) {
			addr := required
			if suite.name == "scan" {
				addr = enabled
			}
			theirs := torture(t, program, suite.name, suite.timeout, fmt.Sprintf("127.0.0.1:%d", port), "root%pass")
			ours := torture(t, program, suite.name, suite.timeout, addr, "user%pass")
			var passed, theyPassed int
			for _, name := range slices.Sorted(maps.Keys(ours)) {
				o, s := ours[name], theirs[name]
				if o.passed {
					passed++
				}
				if s.passed {
					theyPassed++
				}
				below := s.passed && !o.passed
				switch {
				case below && !allowed[name].below:
					t.Errorf("%s: smbd passes, ours: %s", name, o.text)
				case !below && allowed[name].below:
					t.Errorf("%s: not below smbd: %t, %s", name, o.passed, s.text)
				case o.passed != s.passed || !o.passed:
					t.Logf("%s: ours %t, smbd %t %.120s", name, o.passed, s.passed, s.text)
				}
			}
			t.Logf("ours %d, smbd %d, of %d", passed, theyPassed, len(ours))
		})
	}
}

func smbtorture(t *testing.T) (program string) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	program, err := exec.LookPath("smbtorture")
	if err != nil {
		if os.Getenv("STRICT") != "" {
			t.Fatal(err)
		}
		t.Skip("smbtorture is not installed (Debian's samba-testsuite)")
	}
	return program
}

// prepareTorture makes a file that some tests want to be there.
func prepareTorture(t *testing.T, addr string) {
	c := user(t, addr, nil)
	id := c.create("testfile")
	c.send(c.writeMessage(id, 0, make([]byte, 20000)))
	c.one()
	c.nc.Close()
}

// torture runs a suite and returns what became of its tests.
func torture(t *testing.T, program, suite string, timeout time.Duration, addr, user string) map[string]tortureResult {
	host, port, _ := strings.Cut(addr, ":")
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "//"+host+"/share", "-p", port, "-U", user, "--format=subunit",
		"--option=torture:progress=no", "--option=torture:timelimit=1", "--option=torture:win7=yes", "--option=torture:filename=testfile",
		"--option=torture:offset=0", "--option=torture:beyond_final_zero=4096", "smb2."+suite).CombinedOutput()
	results := make(map[string]tortureResult)
	for _, r := range parseSubunit(out) {
		results[strings.TrimSuffix(suite, "."+r.name)+"."+r.name] = r
	}
	if len(results) == 0 {
		t.Errorf("%v\n%s", err, out)
	}
	return results
}

// allowance says why a test may fail.
type allowance struct {
	reason string
	below  bool // smbd passes it
}

// allowedFailures reads lines of a test's name and the reason why it may fail, which
// begins with "smbd passes: " if that does.
func allowedFailures(path string) (map[string]allowance, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	allowed := make(map[string]allowance)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s: %s without a reason", path, name)
		}
		reason, below := strings.CutPrefix(reason, "smbd passes: ")
		allowed[name] = allowance{reason, below}
	}
	return allowed, nil
}

// tortureResult is what became of one test.
type tortureResult struct {
	name   string
	passed bool
	text   string
}

func (r *tortureResult) skipped() bool { return strings.HasPrefix(r.text, "skip") }

func parseSubunit(out []byte) (results []tortureResult) {
	s := bufio.NewScanner(bytes.NewReader(out))
	var last *tortureResult
	for s.Scan() {
		line := s.Text()
		what, name, _ := strings.Cut(line, ": ")
		name = strings.TrimSuffix(name, " [")
		switch {
		case what == "test":
			// One that never ends has failed.
			results = append(results, tortureResult{name: name, text: "it did not end"})
			last = &results[len(results)-1]
		case last == nil:
		case name == last.name && (what == "success" || what == "failure" || what == "error" || what == "skip"):
			last.passed, last.text = what == "success", what
		case line == "]":
			last = nil
		case last.text != "it did not end" && !strings.HasPrefix(line, "time:"):
			last.text += " " + line
		}
	}
	return results
}
