//go:build linux

package main

import (
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"os"
	"sync"

	"github.com/hirochachacha/go-smb2"
)

// goOps are the same by go-smb2, whose stat and remove are three requests, one after
// the other. It takes most of the time itself, so it shows less of the servers;
// nothing is asked of these.
var goOps = []op{
	{name: "create/go-smb2", unit: "op", run: goCreate},
	{name: "stat/go-smb2", unit: "op", run: goStat},
	{name: "remove/go-smb2", unit: "op", run: goRemove},
	{name: "read4k/go-smb2", unit: "op", run: func(s *server) (int, error) { return goIO(s, 1, false) }},
	{name: "read4k-8/go-smb2", unit: "op", run: func(s *server) (int, error) { return goIO(s, 8, false) }},
	{name: "write4k/go-smb2", unit: "op", run: func(s *server) (int, error) { return goIO(s, 1, true) }},
}

// gosmb is what these operations keep of a server.
type gosmb struct {
	fs *smb2.Share
}

// goShare connects when it is needed first.
func (s *server) goShare() (*smb2.Share, error) {
	if s.state.fs != nil {
		return s.state.fs, nil
	}
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
	fs, err := session.Mount(share)
	if err != nil {
		return nil, err
	}
	s.state.fs = fs
	return fs, nil
}

func goCreate(s *server) (int, error) {
	fs, err := s.goShare()
	if err != nil {
		return 0, err
	}
	for i := range creates {
		f, err := fs.Create(fmt.Sprintf(`made\file%05d`, i))
		if err != nil {
			return 0, err
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func goStat(s *server) (int, error) {
	fs, err := s.goShare()
	if err != nil {
		return 0, err
	}
	for i := range creates {
		if _, err := fs.Stat(fmt.Sprintf(`listed\a name of usual length %05d.txt`, i%listed)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

func goRemove(s *server) (int, error) {
	fs, err := s.goShare()
	if err != nil {
		return 0, err
	}
	for i := range creates {
		if err := fs.Remove(fmt.Sprintf(`made\file%05d`, i)); err != nil {
			return 0, err
		}
	}
	return creates, nil
}

// goIO reads or writes blocks by several threads on one connection.
func goIO(s *server, threads int, write bool) (int, error) {
	fs, err := s.goShare()
	if err != nil {
		return 0, err
	}
	f, err := fs.OpenFile("random", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	errs := make([]error, threads)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			b := make([]byte, block)
			for range blocks / threads {
				off := mrand.Int64N(random/block) * block
				if write {
					_, errs[t] = f.WriteAt(b, off)
				} else {
					_, errs[t] = f.ReadAt(b, off)
				}
				if errs[t] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return blocks, errors.Join(errs...)
}
