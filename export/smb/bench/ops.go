//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/hirochachacha/go-smb2"
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

// A round of each takes some tenths of a second at smbd's speed, so that CPU time,
// which is counted in hundredths, means something.
const (
	logons  = 60
	creates = 1000
	blocks  = 4000
	block   = 4 << 10
	random  = 64 << 20 // bytes of the file that is read and written at random
	listed  = 2000     // names in the directory that is listed
	lists   = 25
)

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
	session *smb2.Session
	fs      *smb2.Share
	file    *smb2.File
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

func (s *server) dial() (*smb2.Session, error) {
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		return nil, err
	}
	d := smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: user, Password: s.password}}
	session, err := d.Dial(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return session, nil
}

// prepare connects, and makes the file and the directory of the operations.
func (s *server) prepare() error {
	session, err := s.dial()
	if err != nil {
		return err
	}
	st := &state{session: session}
	if st.fs, err = session.Mount(share); err != nil {
		return err
	}
	for _, dir := range []string{"made", "listed"} {
		if err := st.fs.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for i := range listed {
		f, err := st.fs.Create(fmt.Sprintf(`listed\a name of usual length %05d.txt`, i))
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if st.file, err = st.fs.Create("random"); err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	rand.Read(b)
	for off := int64(0); off < random; off += int64(len(b)) {
		if _, err := st.file.WriteAt(b, off); err != nil {
			return err
		}
	}
	s.state = st
	return nil
}

func logon(s *server) (int, error) {
	for range logons {
		session, err := s.dial()
		if err != nil {
			return 0, err
		}
		if err := session.Logoff(); err != nil {
			return 0, err
		}
	}
	return logons, nil
}

func create(s *server) (int, error) {
	for i := range creates {
		f, err := s.state.fs.Create(fmt.Sprintf(`made\file%05d`, i))
		if err != nil {
			return 0, err
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func stat(s *server) (int, error) {
	for i := range creates {
		if _, err := s.state.fs.Stat(fmt.Sprintf(`listed\a name of usual length %05d.txt`, i)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func remove(s *server) (int, error) {
	for i := range creates {
		if err := s.state.fs.Remove(fmt.Sprintf(`made\file%05d`, i)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func list(s *server) (int, error) {
	for range lists {
		names, err := s.state.fs.ReadDir("listed")
		if err != nil {
			return 0, err
		}
		if len(names) != listed {
			return 0, fmt.Errorf("%d names, want %d", len(names), listed)
		}
	}
	return lists * listed, nil
}

// randomIO reads or writes blocks by several threads on one connection.
func randomIO(s *server, threads int, write bool) (int, error) {
	errs := make([]error, threads)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			b := make([]byte, block)
			for range blocks / threads {
				off := mrand.Int64N(random/block) * block
				if write {
					_, errs[t] = s.state.file.WriteAt(b, off)
				} else {
					_, errs[t] = s.state.file.ReadAt(b, off)
				}
				if errs[t] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return blocks, nil
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
