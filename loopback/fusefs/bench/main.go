//go:build linux

// Command bench measures what a mount by FUSE costs, as root: on the mount of
// "ramserver mount", beside a FUSE server that does nothing but answer, tmpfs and
// the file system of a disk.
//
// Calls are made by one process, each of which a program waits for. With -tree it
// works on a source tree as people do: tar, cp -a and rm -rf, by one process and by
// one for each of eight parts of the tree. The places take turns, round by round,
// so that a noisy machine is noisy for all, and a ratio is the median of the ratios
// of single rounds. Every round is printed in Go benchmark format, for benchstat.
// With -at it works in folders that are there instead.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// options are the flags.
type options struct {
	rounds int
	files  int    // of a round of calls
	tree   int    // files of the tree; 0: calls instead
	disk   string // folder on a disk
	at     string // folders to compare instead, NAME=FOLDER,...
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "`number` of measured rounds")
	flag.IntVar(&o.files, "files", 20_000, "`number` of files of 1 KiB that are made, looked at and removed in a round")
	flag.IntVar(&o.tree, "tree", 0, "work on a source tree of so many `files` instead")
	flag.StringVar(&o.disk, "disk", os.TempDir(), "`folder` on a disk to compare with")
	flag.StringVar(&o.at, "at", "", "work in these `folders`, NAME=FOLDER,..., instead of mounting some")
	empty := flag.String("empty", "", "serve the empty file system at a `folder`; the command starts itself so")
	flag.Parse()
	if *empty != "" {
		exit(serveEmpty(*empty))
	}
	if o.rounds < 1 || o.files < 1 || o.tree < 0 || flag.NArg() > 0 {
		exit(errors.New("want at least one round and one file, and no arguments"))
	}
	exit(run(o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// step is a part of a round.
type step struct {
	name string
	run  func(p *place) error
	per  int // it has so many operations; 0: it is not measured
}

func run(o options) error {
	dir, err := os.MkdirTemp(o.disk, "fusebench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	steps := callSteps(o.files)
	if o.tree > 0 {
		if steps, err = treeSteps(dir, o.tree); err != nil {
			return err
		}
	}
	var places []*place
	if o.at != "" {
		places, err = parsePlaces(o.at)
	} else {
		places, err = openPlaces(dir, o.tree == 0)
	}
	defer func() {
		for _, p := range places {
			p.close()
		}
	}()
	if err != nil {
		return err
	}

	fmt.Printf("goos: %s\ngoarch: %s\npkg: ramserver/loopback/fusefs/bench\n", runtime.GOOS, runtime.GOARCH)
	took := map[string][]float64{} // ns of an operation, by step and place
	for range o.rounds {
		for _, p := range places {
			for _, s := range steps {
				began := time.Now()
				if err := s.run(p); err != nil {
					return fmt.Errorf("%s: %s: %w", p.name, s.name, err)
				}
				if s.per == 0 {
					continue
				}
				ns := float64(time.Since(began)) / float64(s.per)
				fmt.Printf("BenchmarkFUSE/%s/%s\t%d\t%.0f ns/op\n", s.name, p.name, s.per, ns)
				took[s.name+p.name] = append(took[s.name+p.name], ns)
			}
		}
	}
	report(places, steps, took)
	return nil
}

// report prints the medians, and those of the ratios of the first place to others.
func report(places []*place, steps []step, took map[string][]float64) {
	fmt.Printf("\n%-24s", "")
	for _, p := range places {
		fmt.Printf(" %12s", p.name)
	}
	for _, p := range places[1:] {
		fmt.Printf(" %14s", "speed/"+p.name)
	}
	fmt.Println()
	for _, s := range steps {
		if s.per == 0 {
			continue
		}
		fmt.Printf("%-24s", s.name)
		unit, div := "us", 1e3
		if s.per == 1 {
			unit, div = "s", 1e9
		}
		ours := took[s.name+places[0].name]
		for _, p := range places {
			fmt.Printf(" %9.2f %-2s", median(took[s.name+p.name])/div, unit)
		}
		for _, p := range places[1:] {
			ratios := slices.Clone(took[s.name+p.name])
			for i := range ratios {
				ratios[i] /= ours[i]
			}
			fmt.Printf(" %14.2f", median(ratios))
		}
		fmt.Println()
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
