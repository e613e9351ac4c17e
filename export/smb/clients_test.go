package smb

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cloudsoda "github.com/cloudsoda/go-smb2"
	hirochachacha "github.com/hirochachacha/go-smb2"
)

// share is what the clients written in Go have in common.
type share interface {
	WriteFile(name string, b []byte, mode os.FileMode) error
	ReadFile(name string) ([]byte, error)
	Mkdir(name string, mode os.FileMode) error
	Remove(name string) error
	Rename(from, to string) error
	Truncate(name string, size int64) error
	Stat(name string) (os.FileInfo, error)
	ReadDir(name string) ([]os.FileInfo, error)
	Umount() error
}

// TestGoClients works with two clients of others.
func TestGoClients(t *testing.T) {
	type client struct {
		name  string
		mount func(t *testing.T, nc net.Conn, password string) (share, error)
	}
	clients := []client{
		{"hirochachacha", func(t *testing.T, nc net.Conn, password string) (share, error) {
			d := hirochachacha.Dialer{Initiator: &hirochachacha.NTLMInitiator{User: "user", Password: password}}
			s, err := d.Dial(nc)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { s.Logoff() })
			return s.Mount("share")
		}},
		{"cloudsoda", func(t *testing.T, nc net.Conn, password string) (share, error) {
			d := cloudsoda.Dialer{Initiator: &cloudsoda.NTLMInitiator{User: "user", Password: password}}
			s, err := d.DialConn(context.Background(), nc, nc.RemoteAddr().String())
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { s.Logoff() })
			return s.Mount("share")
		}},
	}
	for _, c := range clients {
		for _, protection := range []Protection{Enabled, Required} {
			t.Run(fmt.Sprintf("%s, encryption %d", c.name, protection), func(t *testing.T) {
				_, addr := newServer(t, func(c *Config) { c.Encryption, c.logonDelay = protection, 1 })
				connect := func() net.Conn {
					nc, err := net.Dial("tcp", addr)
					if err != nil {
						t.Fatal(err)
					}
					nc.SetDeadline(time.Now().Add(time.Minute))
					t.Cleanup(func() { nc.Close() })
					return nc
				}
				if _, err := c.mount(t, connect(), "wrong"); err == nil {
					t.Error("a wrong password is good")
				}
				s, err := c.mount(t, connect(), "pass")
				if err != nil {
					t.Fatal(err)
				}
				defer s.Umount()
				useShare(t, s)
			})
		}
	}
}

func useShare(t *testing.T, s share) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	must(s.Mkdir("dir", 0o755))
	for _, n := range []int{0, 1, 4096, 65536, 1 << 20, len(data)} {
		must(s.WriteFile(`dir\f`, data[:n], 0o644))
		got, err := s.ReadFile(`dir\f`)
		if err != nil || !bytes.Equal(got, data[:n]) {
			t.Fatalf("%d bytes came back as %d: %v", n, len(got), err)
		}
	}
	must(s.Truncate(`dir\f`, 5))
	must(s.Rename(`dir\f`, `dir\Größe`))
	fi, err := s.Stat(`dir\größe`)
	if err != nil || fi.Size() != 5 || fi.Name() != "größe" && fi.Name() != "Größe" {
		t.Fatalf("%v, %v", fi, err)
	}
	for i := range 300 {
		must(s.WriteFile(fmt.Sprintf(`dir\%d`, i), nil, 0o644))
	}
	list, err := s.ReadDir("dir")
	if err != nil || len(list) != 301 {
		t.Fatalf("%d names, %v", len(list), err)
	}
	if err := s.Remove("dir"); err == nil {
		t.Error("a directory that is not empty is gone")
	}
	for _, fi := range list {
		must(s.Remove(`dir\` + fi.Name()))
	}
	must(s.Remove("dir"))
	if _, err := s.Stat("dir"); !os.IsNotExist(err) {
		t.Errorf("a directory that was removed: %v", err)
	}
}

// TestSmbclient works with Samba's client.
func TestSmbclient(t *testing.T) {
	program, err := exec.LookPath("smbclient")
	if err != nil {
		if os.Getenv("STRICT") != "" {
			t.Fatal(err)
		}
		t.Skip("smbclient is not installed")
	}
	dir := t.TempDir()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1_000_000)
	if err := os.WriteFile(filepath.Join(dir, "in"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	type how struct {
		name    string
		options []string
		config  func(*Config)
	}
	plain := func(c *Config) { c.Signing = Enabled }
	hows := []how{{"encryption required", nil, func(c *Config) { c.Encryption = Required }}}
	for _, dialect := range []string{"SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"} {
		hows = append(hows, how{dialect + " plain", []string{"-m", dialect, "--client-protection=off"}, plain},
			how{dialect + " signed", []string{"-m", dialect, "--client-protection=sign"}, nil})
		if dialect >= "SMB3" {
			hows = append(hows, how{dialect + " encrypted", []string{"-m", dialect, "--client-protection=encrypt"}, nil})
		}
	}
	for _, x := range []string{"HMAC-SHA256", "AES-128-CMAC", "AES-128-GMAC"} {
		hows = append(hows, how{x, []string{"--client-protection=sign", "--option=client smb3 signing algorithms=" + x}, nil})
	}
	for _, x := range []string{"AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"} {
		hows = append(hows, how{x, []string{"--client-protection=encrypt", "--option=client smb3 encryption algorithms=" + x}, nil})
	}
	for _, tt := range hows {
		t.Run(tt.name, func(t *testing.T) {
			_, addr := newServer(t, tt.config)
			_, port, _ := net.SplitHostPort(addr)
			run := func(args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, program, append(append(args, "-p", port, "-U", "user%pass"), tt.options...)...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			out := run("//127.0.0.1/share", "-c", "mkdir d; cd d; put in; rename in out; get out; ls; allinfo out; rm out; cd ..; rmdir d")
			got, err := os.ReadFile(filepath.Join(dir, "out"))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back as %d: %v\n%s", len(data), len(got), err, out)
			}
			if out := run("-L", "127.0.0.1"); !slices.ContainsFunc(strings.Split(out, "\n"), func(s string) bool {
				return strings.HasPrefix(strings.TrimSpace(s), "share ")
			}) {
				t.Errorf("list of shares: %s", out)
			}
		})
	}
}

// TestRpcclient asks what owners and groups are called, as Samba's clients do.
func TestRpcclient(t *testing.T) {
	program, err := exec.LookPath("rpcclient")
	if err != nil {
		if os.Getenv("STRICT") != "" {
			t.Fatal(err)
		}
		t.Skip("rpcclient is not installed (Debian's smbclient)")
	}
	_, addr := newServer(t, nil)
	_, port, _ := net.SplitHostPort(addr)
	for _, tt := range []struct{ ask, want string }{
		{"lookupsids S-1-22-1-1000", `S-1-22-1-1000 Unix User\user (1)`},
		{"lookupsids S-1-22-1-7", `S-1-22-1-7 Unix User\7 (1)`},
		{"lookupsids S-1-22-2-7 S-1-1-0 S-1-5-32-544", `S-1-22-2-7 Unix Group\7 (2) S-1-1-0 \Everyone (5) S-1-5-32-544 *unknown*\*unknown* (8)`},
		{"lookupnames OTHER", "OTHER S-1-22-1-1001 (User: 1)"},
		{"lookupnames nobody", "result was NT_STATUS_NONE_MAPPED"},
		{"lsaenumsid", "result was NT_STATUS_RPC_PROCNUM_OUT_OF_RANGE"},
		{"samlookupnames domain user", "do_cmd: Could not initialise samr. Error was NT_STATUS_OBJECT_NAME_NOT_FOUND"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, _ := exec.CommandContext(ctx, program, "127.0.0.1", "-p", port, "-U", "user%pass", "-c", tt.ask).CombinedOutput()
		cancel()
		if got := strings.Join(strings.Fields(string(out)), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.ask, got, tt.want)
		}
	}
}
