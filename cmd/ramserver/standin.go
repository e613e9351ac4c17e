package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"ramserver/export"
	"ramserver/export/nfs"
	"ramserver/loopback"
	"ramserver/memstore"

	"github.com/spf13/cobra"
)

// A stand-in answers in the place of a server that has mounted by NFS and is
// gone while the kernel's client is not: that nothing of what was there exists.
// Without an answer what waits for the server could only be killed, and a client
// of version 4, which gives its session up when the last file is closed, would
// hold up for minutes who closes it. It is a process of its own, which ends when
// the client is gone, and after an hour at the latest.

func newStandIn() *cobra.Command {
	return &cobra.Command{
		Use:    "stand-in ADDRESS:PORT",
		Short:  "Answer the kernel's NFS client for a server that is gone",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := netip.ParseAddrPort(args[0])
			if err != nil {
				return err
			}
			return standIn(at, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// standIn answers until in has ended, and then until the client is gone.
func standIn(at netip.AddrPort, in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return failure{err}
	}
	store, err := memstore.New(memstore.Config{Name: "gone", Size: 1 << 20})
	if err != nil {
		return failure{err}
	}
	defer store.Close()
	exports, err := export.New(&export.Export{Name: "gone", Store: store, Root: store.Root(), ReadOnly: true})
	if err != nil {
		return failure{err}
	}
	s, err := nfs.NewServer(nfs.Config{Exports: exports})
	if err != nil {
		return failure{err}
	}
	os.Chdir("/")
	go s.Serve(l)
	fmt.Fprintln(out, readyLine)
	io.Copy(io.Discard, in)
	farewell(s, at, standInTime)
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return s.Shutdown(ctx)
}

// standInTime bounds the life of a stand-in.
const standInTime = time.Hour

// farewellTime is how long a client that has unmounted may take to say so.
const farewellTime = time.Second

// farewell waits until the kernel has no client of the server any more, which
// answers at an address, and tells whether that is so in time. A client goes after
// its last mount has gone from the tree, and then takes leave by the connection.
func farewell(s *nfs.Server, at netip.AddrPort, limit time.Duration) bool {
	for end, pause := time.Now().Add(limit), 5*time.Millisecond; time.Now().Before(end); time.Sleep(pause) {
		pause = min(pause*5/4, time.Second/2)
		if loopback.HasClient(at) {
			continue
		}
		if !slices.ContainsFunc(s.Stats().Conns, func(c nfs.ConnStats) bool { return c.Peer.Addr().Unmap().IsLoopback() }) {
			return true
		}
	}
	return false
}

// releaseTime is how long to wait for a stand-in that may not be needed any more.
const releaseTime = 300 * time.Millisecond

// startStandIn has a stand-in answer at an address, unless somebody else does,
// until release is called and the client is gone.
func startStandIn(at netip.AddrPort) (release func(), err error) {
	if l, err := net.Listen("tcp", at.String()); errors.Is(err, syscall.EADDRINUSE) {
		return func() {}, nil
	} else if err == nil {
		l.Close()
	}
	cmd, err := again(context.Background(), "stand-in", at.String())
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = detached()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if said := bufio.NewScanner(out); !said.Scan() || said.Text() != readyLine {
		in.Close()
		return nil, fmt.Errorf("the stand-in at %s did not start: %w", at, cmd.Wait())
	}
	return func() {
		in.Close()
		ended := make(chan struct{})
		go func() {
			cmd.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(releaseTime):
		}
	}, nil
}
