//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5"
	willscott "github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"
	"github.com/willscott/go-nfs/helpers/memfs"
	"golang.org/x/sys/unix"

	"ramserver/export"
	"ramserver/export/nfs"
	"ramserver/export/nfs/client"
	"ramserver/export/nfs/gonfs"
	"ramserver/memstore"
)

// storeSize bounds the stores under test, in bytes. It is more than the largest
// load and claims nothing.
const storeSize = 20 << 30

// servers are what can be measured, by name.
var servers = map[string]func(l net.Listener) error{
	"native": native,
	native4:  native,
	"go-nfs": func(l net.Listener) error {
		table, err := exports()
		if err != nil {
			return err
		}
		srv, err := gonfs.NewServer(gonfs.Config{Exports: table})
		if err != nil {
			return err
		}
		return srv.Serve(l)
	},
	"canned": func(l net.Listener) error { return newCanned().serve(l) },
	"go-nfs-memfs": func(l net.Listener) error {
		willscott.Log.SetLevel(willscott.PanicLevel)
		fs := memfs.New()
		f, err := fs.Create("/first") // memfs has no root folder before there is something in it
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return willscott.Serve(l, helpers.NewCachingHandler(helpers.NewNullAuthHandler(memFS{fs}), 1024))
	},
}

// native4 is the engine by compounds of version 4.1.
const native4 = "native-4.1"

func native(l net.Listener) error {
	memstore.KeepHeap()
	table, err := exports()
	if err != nil {
		return err
	}
	srv, err := nfs.NewServer(nfs.Config{Exports: table})
	if err != nil {
		return err
	}
	return srv.Serve(l)
}

// exports is an empty store that is offered to this machine.
func exports() (*export.Table, error) {
	store, err := memstore.New(memstore.Config{Name: "bench", Size: storeSize, Inodes: 4 << 20, RootMode: 0o1777})
	if err != nil {
		return nil, err
	}
	return export.New(&export.Export{Name: "bench", Store: store, Root: store.Root()})
}

// memFS accepts the mode that CREATE sets, which memfs does not know, and does
// nothing about it.
type memFS struct{ billy.Filesystem }

func (memFS) Chmod(string, os.FileMode) error            { return nil }
func (memFS) Lchown(string, int, int) error              { return nil }
func (memFS) Chown(string, int, int) error               { return nil }
func (memFS) Chtimes(string, time.Time, time.Time) error { return nil }

// childEnv names the server that a process started by start is to be.
const childEnv = "NFSBENCH_SERVER"

// profileEnv names the folder for the profiles of that process, if there are to
// be any.
const profileEnv = "NFSBENCH_PROFILE"

// usage is what a server has consumed since it started.
type usage struct {
	CPU    time.Duration // user and system
	Allocs uint64        // objects on the Go heap
}

// child is the process of a server under test: it prints its address, then
// answers every line of input with its usage, and ends with its input.
func child(name string) error {
	serve, ok := servers[name]
	if !ok {
		return fmt.Errorf("no server %q", name)
	}
	if dir := os.Getenv(profileEnv); dir != "" {
		stop, err := profile(dir, name)
		if err != nil {
			return err
		}
		defer stop()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		err := serve(l)
		slog.Error("server ended", "server", name, "err", err)
		os.Exit(1)
	}()
	fmt.Println(l.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var ru unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
			return err
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		u, err := json.Marshal(usage{time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), m.Mallocs})
		if err != nil {
			return err
		}
		fmt.Println(string(u))
	}
	return nil
}

// profile begins to record where CPU time goes and what waits for what. stop
// writes dir/name.cpu, .block and .mutex, for go tool pprof.
func profile(dir, name string) (stop func(), err error) {
	f, err := os.Create(filepath.Join(dir, name+".cpu"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	runtime.SetBlockProfileRate(1000)
	runtime.SetMutexProfileFraction(1)
	return func() {
		pprof.StopCPUProfile()
		err := f.Close()
		for _, kind := range []string{"block", "mutex"} {
			f, createErr := os.Create(filepath.Join(dir, name+"."+kind))
			if createErr != nil {
				err = errors.Join(err, createErr)
				continue
			}
			err = errors.Join(err, pprof.Lookup(kind).WriteTo(f, 0), f.Close())
		}
		if err != nil {
			slog.Error("profiles are not complete", "server", name, "err", err)
		}
	}, nil
}

// server is a server under test in a process of its own, so that its CPU time
// can be told from the load's.
type server struct {
	name string
	addr string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

func start(name string) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{name: name, cmd: exec.Command(exe)}
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, childEnv+"=") }), childEnv+"="+name)
	if os.Getenv("GOMAXPROCS") == "" {
		// As if it were not kept on one processor.
		s.cmd.Env = append(s.cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", runtime.NumCPU()))
	}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	if !s.out.Scan() {
		s.stop()
		return nil, fmt.Errorf("%s did not start", name)
	}
	s.addr = s.out.Text()
	return s, nil
}

func (s *server) stop() {
	s.in.Close()
	s.cmd.Wait()
}

func (s *server) usage() (usage, error) {
	var u usage
	if _, err := fmt.Fprintln(s.in); err != nil {
		return u, err
	}
	if !s.out.Scan() {
		return u, fmt.Errorf("%s has ended", s.name)
	}
	return u, json.Unmarshal(s.out.Bytes(), &u)
}

func (s *server) dial() (*client.Client, error) {
	return client.Dial(context.Background(), s.addr, client.Options{})
}
