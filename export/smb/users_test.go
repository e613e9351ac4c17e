package smb

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ramserver/export/smb/ntlm"
	"ramserver/memstore"
)

// passwordHash is that of "Password", MS-NLMP section 4.2.2.1.2.
const passwordHash = "a4f49c406510bdcab6824ee7c30fd852"

func TestUserFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	u, err := NewUsers(path, User{Name: "quick"})
	if err != nil {
		t.Fatalf("without the file: %v", err)
	}
	if _, ok, err := u.Find("alice"); ok || err != nil {
		t.Errorf("alice: found %v, %v before there is a file", ok, err)
	}
	want := []User{
		{Name: "Alice", Hash: ntlm.HashPassword("Password"), Cred: memstore.Cred{UID: 1000, GID: 100, Groups: []uint32{4, 27}}},
		{Name: "bob", Hash: ntlm.HashPassword(""), Cred: memstore.Cred{UID: 0, GID: 0}},
	}
	if err := WriteUsers(path, want); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("file: mode %v, %v; want 0600", fi.Mode(), err)
	}
	b, _ := os.ReadFile(path)
	if line := "Alice:" + passwordHash + ":1000:100:4,27\n"; !strings.Contains(string(b), line) {
		t.Errorf("file: %q lacks %q", b, line)
	}
	for name, want := range map[string]User{"aLICE": want[0], "bob": want[1], "QUICK": {Name: "quick"}} {
		if got, ok, err := u.Find(name); !ok || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v %v, want %+v", name, got, ok, err, want)
		}
	}

	// A change is seen without a restart; so is a file that has become bad.
	if err := WriteUsers(path, want[:1]); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := u.Find("bob"); ok || err != nil {
		t.Errorf("bob, removed: found %v, %v", ok, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := u.Find("alice"); ok || err == nil || !strings.Contains(err.Error(), "others can use it (mode 0640)") {
		t.Errorf("a file that others can read: found %v, %v", ok, err)
	}
	if _, ok, _ := u.Find("quick"); !ok {
		t.Error("a bad file hides who is not in it")
	}
}

func TestParseUsers(t *testing.T) {
	for _, c := range []struct{ line, err string }{
		{"alice:" + passwordHash + ":1:2:", ""},
		{"alice:" + passwordHash + ":1:2:3", ""},
		{"# alice", ""},
		{"  ", ""},
		{"alice", "want name:hash:uid:gid:groups, not 1 fields"},
		{"a b:" + passwordHash + ":1:2:", `user name "a b"`},
		{":" + passwordHash + ":1:2:", `user name ""`},
		{strings.Repeat("x", 21) + ":" + passwordHash + ":1:2:", "want 1 to 20 characters"},
		{"alice:" + passwordHash[1:] + ":1:2:", "its hash is not 32 hexadecimal digits"},
		{"alice:" + passwordHash + "00:1:2:", "its hash is not 32 hexadecimal digits"},
		{"alice:x" + passwordHash[1:] + ":1:2:", "its hash is not 32 hexadecimal digits"},
		{"alice::1:2:", "its hash is not 32 hexadecimal digits"},
		{"alice:" + passwordHash + ":-1:2:", `"-1": want a user or group number`},
		{"alice:" + passwordHash + ":1:4294967295:", `"4294967295": want a user or group number`},
		{"alice:" + passwordHash + ":1:2:3,", `"": want a user or group number`},
		{"alice:" + passwordHash + ":1:2:\nALICE:" + passwordHash + ":1:2:", `line 2: there are two users of the name "ALICE"`},
	} {
		_, err := parseUsers([]byte(c.line))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, want %q", c.line, err, c.err)
		}
		if err != nil && strings.Contains(err.Error(), passwordHash[1:]) {
			t.Errorf("%q: the error %q tells the hash", c.line, err)
		}
	}
}
