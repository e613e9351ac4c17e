//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"ramserver/export/smb/client"
	"ramserver/export/smb/wire"
)

// op is an operation to measure.
type op struct {
	name       string
	unit       string
	speed, cpu float64 // what is asked, of smbd's
	// run does it n times and returns n.
	run func(s *server) (n int, err error)
	// own makes the connection of its own.
	own bool
}

// A round of each takes some tenths of a second at least.
const (
	logons  = 60
	creates = 3000
	blocks  = 10000
	block   = 4 << 10
	random  = 64 << 20 // bytes of the file that is read and written at random
	listed  = 2000     // names in the directory that is listed
	lists   = 50
)

// ops are what bars are asked for, by package export/smb/client. stat and remove are
// one frame each, as from Linux; create is two requests, one after the other.
var ops = []op{
	{name: "logon", unit: "op", speed: 4, cpu: 0.5, run: logon, own: true},
	{name: "create", unit: "op", speed: 3, cpu: 0.5, run: create},
	{name: "stat", unit: "op", speed: 3, cpu: 0.5, run: stat},
	{name: "remove", unit: "op", speed: 3, cpu: 0.5, run: remove},
	{name: "list", unit: "name", speed: 2, cpu: 0.5, run: list},
	{name: "read4k", unit: "op", speed: 1.5, cpu: 0.5, run: func(s *server) (int, error) { return randomIO(s, 1, false) }},
	{name: "read4k-8", unit: "op", speed: 1.5, cpu: 0.5, run: func(s *server) (int, error) { return randomIO(s, 8, false) }},
	{name: "write4k", unit: "op", speed: 1.5, cpu: 0.5, run: func(s *server) (int, error) { return randomIO(s, 1, true) }},
}

// state is what operations keep of a server.
type state struct {
	c    *client.Client
	file wire.FileID
	gosmb
}

// measure runs an operation once.
func (s *server) measure(o *op) (sample, error) {
	if !o.own && s.state == nil {
		if err := s.prepare(); err != nil {
			return sample{}, err
		}
	}
	before, err := s.cpu()
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	n, err := o.run(s)
	wall := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	after, err := s.cpu()
	if err != nil {
		return sample{}, err
	}
	return sample{wall / time.Duration(n), (after - before) / time.Duration(n)}, nil
}

// dial logs on. What the client reads waits in the system, not in Go's scheduler:
// that is cheaper.
func (s *server) dial(share string) (*client.Client, error) {
	conn, err := net.Dial("tcp", s.addr())
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = errors.Join(err, raw.Control(func(fd uintptr) { err = syscall.SetNonblock(int(fd), false) }))
	}
	var c *client.Client
	if err == nil {
		c, err = client.New(conn, client.Options{User: user, Password: s.password, Share: share})
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// prepare connects, and makes the file and the directory of the operations.
func (s *server) prepare() error {
	c, err := s.dial(share)
	if err != nil {
		return err
	}
	for _, dir := range []string{"made", "listed"} {
		if err := c.Mkdir(dir); err != nil {
			return err
		}
	}
	for i := range listed {
		if err := makeFile(c, fmt.Sprintf(`listed\a name of usual length %05d.txt`, i)); err != nil {
			return err
		}
	}
	st := &state{c: c}
	st.file, _, _, err = c.Create(client.Open{Name: "random", Access: client.ReadData | client.WriteData, Disposition: wire.FileCreate})
	if err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	rand.Read(b)
	for off := int64(0); off < random; off += int64(len(b)) {
		if n, err := c.WriteAt(st.file, b, off); err != nil || n != len(b) {
			return fmt.Errorf("%d bytes written: %w", n, err)
		}
	}
	s.state = st
	return nil
}

// makeFile makes a file, with the rights that a program asks for that writes it.
func makeFile(c *client.Client, name string) error {
	id, _, _, err := c.Create(client.Open{
		Name: name, Access: client.ReadData | client.WriteData | client.ReadAttributes | client.SetAttributes, Attributes: wire.AttrNormal,
		Disposition: wire.FileOverwriteIf, Options: wire.OptNonDirectory,
	})
	if err != nil {
		return err
	}
	return c.CloseFile(id)
}

func logon(s *server) (int, error) {
	for range logons {
		c, err := s.dial("")
		if err != nil {
			return 0, err
		}
		if err := errors.Join(c.Logoff(), c.Close()); err != nil {
			return 0, err
		}
	}
	return logons, nil
}

func create(s *server) (int, error) {
	for i := range creates {
		if err := makeFile(s.state.c, fmt.Sprintf(`made\file%05d`, i)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func stat(s *server) (int, error) {
	for i := range creates {
		if _, err := s.state.c.Stat(fmt.Sprintf(`listed\a name of usual length %05d.txt`, i%listed)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func remove(s *server) (int, error) {
	for i := range creates {
		if err := s.state.c.Remove(fmt.Sprintf(`made\file%05d`, i)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func list(s *server) (int, error) {
	for range lists {
		n := -2 // "." and ".."
		if err := s.state.c.List("listed", func([]byte, *client.Attributes) { n++ }); err != nil {
			return 0, err
		}
		if n != listed {
			return 0, fmt.Errorf("%d names, want %d", n, listed)
		}
	}
	return lists * listed, nil
}

// randomIO reads or writes blocks, with depth of them under way.
func randomIO(s *server, depth int, write bool) (int, error) {
	b := make([]byte, block)
	begin := func(int) {
		off := mrand.Int64N(random/block) * block
		if write {
			s.state.c.BeginWrite(s.state.file, b, off)
		} else {
			s.state.c.BeginRead(s.state.file, off, block)
		}
	}
	return blocks, s.state.c.Run(depth, blocks, begin, func(_ int, r *client.Reply) error {
		n, err := r.Written()
		if !write {
			var data []byte
			data, err = r.Data()
			n = len(data)
		}
		if err == nil && n != block {
			err = fmt.Errorf("%d bytes, want %d", n, block)
		}
		return err
	})
}

// bulkOps are smbclient's put and get of a file, by how it is protected. They count
// MiB, and what smbclient's start takes is in it.
func bulkOps(dir string, mib int64) []op {
	var all []op
	for _, p := range [][2]string{{"plain", "off"}, {"signed", "sign"}, {"encrypted", "encrypt"}} {
		name, protect := p[0], p[1]
		for _, command := range []string{"put", "get"} {
			all = append(all, op{
				name: command + "-" + name, unit: "MiB", speed: 1, cpu: 0.8, own: true,
				run: func(s *server) (int, error) { return bulk(s, dir, mib, protect, command) },
			})
		}
	}
	return all
}

func bulk(s *server, dir string, mib int64, protect, command string) (int, error) {
	local := filepath.Join(dir, "bulk")
	if _, err := os.Stat(local); err != nil {
		f, err := os.Create(local)
		if err != nil {
			return 0, err
		}
		b := make([]byte, 1<<20)
		rand.Read(b)
		for range mib {
			if _, err := f.Write(b); err != nil {
				return 0, err
			}
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	what := fmt.Sprintf("put %s bulk", local)
	if command == "get" {
		what = "get bulk /dev/null"
	}
	cmd := exec.Command("smbclient", fmt.Sprintf("//127.0.0.1/%s", share), "-p", fmt.Sprint(s.port), "-U", user,
		"--client-protection="+protect, "-c", what)
	cmd.Env = append(os.Environ(), "PASSWD="+s.password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("smbclient: %w: %s", err, bytes.TrimSpace(out))
	}
	return int(mib), nil
}
