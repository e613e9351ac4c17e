package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ramserver/export/smb"
	"ramserver/export/smb/ntlm"
)

// ramserverIn runs a command with standard input.
func ramserverIn(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "users")
	for _, c := range []struct {
		args, in string
		code     int
		want     string // in what it prints
	}{
		{"list", "", 0, "no users in " + file},
		{"add alice --ids 1000:100 --groups 4,27", "secret\nmore\n", 0, `user "alice" added: acts as 1000:100`},
		{"add root", "a b\r\n", 0, `user "root" added: acts as 0:0`},
		{"add ALICE", "changed", 0, `user "alice" changed: acts as 1000:100`},
		{"add alice", "\n", 2, "password: has 0 bytes"},
		{"add alice", strings.Repeat("x", maxPassword+1), 2, "password: has 1025 bytes"},
		{"add no-such-user-here", "x\n", 2, "this system has no such user"},
		{"add a/b", "x\n", 2, `user name "a/b"`},
		{"add bob --ids x", "x\n", 2, "--ids"},
		{"add bob --groups 1", "x\n", 2, "--groups: needs --ids"},
		{"add bob --ids 1:1 --groups 1,", "x\n", 2, "--groups"},
		{"remove bob", "", 1, `user "bob": is not in`},
		{"list", "", 0, "alice  1000:100  4 27"},
	} {
		r := ramserverIn(t, c.in, append(append([]string{"user"}, strings.Fields(c.args)...), "--smb-users", file)...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.want) {
			t.Errorf("user %s: exit status %d, %q %q; want %d, %q", c.args, r.code, r.out, r.err, c.code, c.want)
		}
	}
	users, err := smb.ReadUsers(file)
	if err != nil || len(users) != 2 || users[0].Hash != ntlm.HashPassword("changed") || users[1].Hash != ntlm.HashPassword("a b") {
		t.Errorf("users: %+v %v", users, err)
	}
	var list []userReport
	r := ramserver(t, "user", "list", "--json", "--smb-users", file)
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list) != 2 || list[0].Name != "alice" || len(list[0].Groups) != 2 {
		t.Errorf("list --json: %q %v", r.out, err)
	}
	if r := ramserver(t, "user", "remove", "Alice", "--smb-users", file); r.code != 0 || r.out != "user \"Alice\" removed\n" {
		t.Errorf("remove: %+v", r)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := ramserver(t, "user", "list", "--smb-users", file); r.code != 1 || !strings.Contains(r.err, "others can use it (mode 0644)") {
		t.Errorf("a file that others can read: %+v", r)
	}
}
