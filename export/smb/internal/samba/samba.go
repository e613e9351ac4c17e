// Package samba runs Samba's smbd, beside which the server is tested and measured.
package samba

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Config is what smbd serves.
type Config struct {
	Dir      string // empty; what smbd keeps for itself
	Files    string // the directory that is shared
	Share    string // its name
	User     string // a user of this system
	Password string
	Port     int
	Options  []string // more lines for the share
}

// Start runs smbd, as root, without what grants caches to clients and with signing
// for those that ask for it. It answers when Start returns.
func Start(c Config) (*exec.Cmd, error) {
	conf := filepath.Join(c.Dir, "smb.conf")
	text := fmt.Sprintf(`[global]
	server role = standalone server
	smb ports = %d
	interfaces = 127.0.0.1
	bind interfaces only = yes
	private dir = %[2]s
	lock directory = %[2]s
	state directory = %[2]s
	cache directory = %[2]s
	pid directory = %[2]s
	ncalrpc dir = %[2]s/ncalrpc
	log file = %[2]s/log
	server signing = auto
	server multi channel support = no
	oplocks = no
	level2 oplocks = no
	smb2 leases = no
	load printers = no
	disable spoolss = yes
[%[3]s]
	path = %[4]s
	read only = no
	%[5]s
`, c.Port, c.Dir, c.Share, c.Files, strings.Join(c.Options, "\n\t"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	add := exec.Command("smbpasswd", "-c", conf, "-a", "-s", c.User)
	add.Stdin = strings.NewReader(c.Password + "\n" + c.Password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("smbpasswd: %w: %s", err, bytes.TrimSpace(out))
	}
	cmd := exec.Command("smbd", "--foreground", "--no-process-group", "--configfile="+conf)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port)); err == nil {
			nc.Close()
			return cmd, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	Stop(cmd)
	return nil, errors.New("smbd does not answer")
}

// Stop ends smbd and the processes that serve its clients.
func Stop(cmd *exec.Cmd) {
	cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
	cmd.Wait()
	timer.Stop()
}

// FreePort finds a port of loopback for a server that cannot choose one.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
