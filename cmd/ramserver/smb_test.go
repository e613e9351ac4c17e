package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hirochachacha/go-smb2"
)

// A new user's password is in a file that only the server's user can read, and is
// good for a logon; a user of the file can log on as well.
func TestServeSMB(t *testing.T) {
	state := stateDir(t)
	users := filepath.Join(t.TempDir(), "users")
	if r := ramserverIn(t, "secret", "user", "add", "root", "--smb-users", users); r.code != 0 {
		t.Fatalf("user add: %+v", r)
	}
	s := start(t, state, "default", "--smb-port", "0", "--smb-user", "quick", "--smb-users", users)
	_, after, _ := strings.Cut(s.head, `SMB user "quick" has the password in `)
	path, _, _ := strings.Cut(after, "\n")
	password, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; the server said\n%s", err, s.head)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v, want mode 0600", path, fi.Mode(), err)
	}
	for _, want := range []string{"mount -t cifs", "mount_smbfs //quick@", `net use R: \\`, "smbclient //127.0.0.1/ramdisk -p"} {
		if !strings.Contains(s.head, want) {
			t.Errorf("the server does not say %q:\n%s", want, s.head)
		}
	}
	addr := s.status().SMB.Listen[0]
	for user, secret := range map[string]string{"quick": strings.TrimSpace(string(password)), "root": "secret"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		d := smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: user, Password: secret}}
		session, err := d.Dial(c)
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		defer session.Logoff()
		share, err := session.Mount("ramdisk")
		if err != nil {
			t.Fatal(err)
		}
		if err := share.WriteFile(user, []byte("hello"), 0o644); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if b, err := share.ReadFile(user); err != nil || string(b) != "hello" {
			t.Errorf("%s: reads %q, %v", user, b, err)
		}
	}
	r := s.status().SMB
	if len(r.Sessions) != 2 || r.Calls == 0 || r.Signing != "required" || r.Encryption != "enabled" {
		t.Errorf("status: %+v", r)
	}
	if r := s.run("status", "--interval", "0"); !strings.Contains(r.out, "smb.SESSION_SETUP") || !strings.Contains(r.out, "OPEN FILES") {
		t.Errorf("status:\n%s", r.out)
	}
	if r := s.run("stop"); r.code != 0 {
		t.Errorf("stop: %+v", r)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the password's file is left")
	}
}

func TestSMBMistakes(t *testing.T) {
	state := stateDir(t)
	none := filepath.Join(t.TempDir(), "users")
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--smb on --smb-users " + none, "has no user who could log on; add one (ramserver user add NAME)"},
		{"--smb maybe", `--smb "maybe": want auto, on or off`},
		{"--smb off --smb-user x", "--smb off: leave --smb-user and --smb-port out"},
		{"--smb-user a/b", `--smb-user: user name "a/b"`},
		{"--smb-port 70000 --smb-user x", `--smb-port "70000"`},
		{"--smb-signing off", `--smb-signing "off": want required or enabled`},
		{"--smb-encryption no", `--smb-encryption "no": want required, enabled or off`},
		{"--smb-users " + open, "others can use it (mode 0644)"},
	} {
		r := ramserver(t, append([]string{"serve", "--state-dir", state, "--size", "1M", "--nfs-port", "0", "--portmap", "off"}, strings.Fields(c.args)...)...)
		if r.code == 0 || !strings.Contains(r.err, c.want) {
			t.Errorf("serve %s: exit status %d, %q; want %q", c.args, r.code, r.err, c.want)
		}
	}
}
