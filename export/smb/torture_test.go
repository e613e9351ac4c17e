package smb

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// tortureSuites are the suites of smbtorture that have to pass, as
// testdata/torture.txt says, and how long each may take.
var tortureSuites = []struct {
	name    string
	timeout time.Duration
}{
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
	{"notify.mask", 3 * time.Minute},
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
	{"timestamps", 2 * time.Minute},
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

// TestTorture runs Samba's tests of a server.
func TestTorture(t *testing.T) {
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
	allowed, err := allowedFailures("testdata/torture.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, required := newServer(t, nil)
	// The suite scan cannot sign what it makes up.
	_, enabled := newServer(t, func(c *Config) { c.Signing = Enabled })
	// Some want a file that is there.
	c := user(t, required, nil)
	id := c.create("testfile")
	c.send(c.writeMessage(id, 0, make([]byte, 20000)))
	c.one()
	c.nc.Close()
	ran := 0
	for _, suite := range tortureSuites {
		t.Run(suite.name, func(t *testing.T) {
			ran++
			addr := required
			if suite.name == "scan" {
				addr = enabled
			}
			host, port, _ := strings.Cut(addr, ":")
			ctx, cancel := context.WithTimeout(t.Context(), suite.timeout)
			defer cancel()
			out, err := exec.CommandContext(ctx, program, "//"+host+"/share", "-p", port, "-U", "user%pass", "--format=subunit",
				"--option=torture:progress=no", "--option=torture:timelimit=1", "--option=torture:filename=testfile",
				"--option=torture:offset=0", "--option=torture:beyond_final_zero=4096", "smb2."+suite.name).CombinedOutput()
			results := parseSubunit(out)
			for _, r := range results {
				name := strings.TrimSuffix(suite.name, "."+r.name) + "." + r.name
				reason, known := allowed[name]
				delete(allowed, name)
				switch {
				case strings.HasPrefix(r.text, "skip") && !known:
					t.Logf("%s: %s", name, r.text) // the test has found out what the server does not have
				case r.passed && known:
					t.Errorf("%s passes: take it out of the list of allowed failures", name)
				case !r.passed && !known:
					t.Errorf("%s: %s", name, r.text)
				case !r.passed:
					t.Logf("%s fails, as allowed: %s", name, reason)
				}
			}
			if len(results) == 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if !t.Failed() && len(allowed) > 0 && ran == len(tortureSuites) {
		t.Errorf("allowed to fail, and not run: %v", allowed)
	}
}

// allowedFailures reads lines of a test's name and the reason why it may fail.
func allowedFailures(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	allowed := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s: %s without a reason", path, name)
		}
		allowed[name] = reason
	}
	return allowed, nil
}

// tortureResult is what became of one test.
type tortureResult struct {
	name   string
	passed bool
	text   string
}

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
