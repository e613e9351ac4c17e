//go:build linux

// Command bench measures the NFS engine beside others on loopback. It prints
// every round in Go benchmark format, for benchstat, and then what is asked of
// the engine and whether it is met.
//
// The servers run in processes of their own and take turns, round by round, so
// that a noisy machine is noisy for all of them. They are:
//
//	canned         answers without looking: the ceiling
//	native         package export/nfs, by version 3
//	native-4.1     the same, by version 4.1: what each operation is there
//	go-nfs-memfs   github.com/willscott/go-nfs over its memfs: the baseline
//	go-nfs         the same over the store, package export/nfs/gonfs: if asked for
//	tmpfs          pwrite to a file in /dev/shm, for fresh1m alone
//
// With one connection the load runs on the first processor and the servers on the
// second: wherever the scheduler puts both on one, a call costs half as much, and
// it changes its mind from round to round. -pin=false leaves it to the scheduler.
//
// A ratio is the median of the ratios of single rounds. With -all the memory
// that the engine takes and how it scales are measured too, which needs a quiet
// machine with 16 GiB free and takes minutes.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// options are the flags.
type options struct {
	rounds, depth, conns int
	pin                  bool
	match                *regexp.Regexp
	servers              []string
}

func main() {
	if name := os.Getenv(childEnv); name != "" {
		exit(child(name))
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 7, "`number` of measured rounds")
	flag.IntVar(&o.depth, "depth", 0, "`calls` in flight on a connection; 0: what each operation's bar is for")
	flag.IntVar(&o.conns, "conns", 1, "connections that work at once")
	match := flag.String("ops", ".", "`regexp` of operations and scale measurements to run")
	names := flag.String("servers", "canned,native,native-4.1,go-nfs-memfs", "comma-separated `names` of servers")
	profiles := flag.String("profile", "", "`folder` for CPU, block and mutex profiles of the servers, which they slow down")
	flag.BoolVar(&o.pin, "pin", true, "with one connection, a processor for the load and another for the servers")
	all := flag.Bool("all", false, "measure memory and scale too")
	flag.Parse()
	var err error
	if o.match, err = regexp.Compile(*match); err != nil {
		exit(err)
	}
	if o.rounds < 1 || o.conns < 1 || o.depth < 0 || flag.NArg() > 0 {
		exit(errors.New("want rounds and conns of at least 1, and no arguments"))
	}
	if *profiles != "" {
		os.Setenv(profileEnv, *profiles)
	}
	o.servers = strings.Split(*names, ",")
	fmt.Printf("goos: %s\ngoarch: %s\npkg: ramserver/export/nfs/bench\n", runtime.GOOS, runtime.GOARCH)
	var bars []bar
	r, err := compare(o)
	if err == nil {
		bars = r.bars()
		if *all {
			var more []bar
			more, err = scale(o.match)
			bars = append(bars, more...)
		}
		r.print()
	}
	printBars(bars)
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sample is one round of one operation against one server.
type sample struct {
	wall, cpu time.Duration // a call
	allocs    float64       // a call
}

// results holds the rounds in order, by operation and server.
type results map[string]map[string][]sample

// compare runs every operation against every server in turn.
func compare(o options) (results, error) {
	var chosen []op
	for _, op := range ops {
		if o.match.MatchString(op.name) || op.name == "create" && o.match.MatchString("remove") {
			chosen = append(chosen, op)
		}
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	type party struct {
		*server
		targets []*target
	}
	var parties []party
	defer func() {
		for _, p := range parties {
			p.stop()
		}
	}()
	all, first, second, err := processors()
	if err != nil {
		return nil, err
	}
	if o.pin && o.conns == 1 {
		if err := pin(&second); err != nil {
			return nil, err
		}
		defer pin(&all)
	}
	for _, name := range o.servers {
		s, err := start(name)
		if err != nil {
			return nil, err
		}
		p := party{server: s}
		parties = append(parties, p)
		for i := range o.conns {
			t, err := prepare(s, i)
			if err != nil {
				return nil, err
			}
			defer t.c.Close()
			p.targets = append(p.targets, t)
		}
		parties[len(parties)-1] = p
	}
	if o.pin && o.conns == 1 {
		if err := pin(&first); err != nil {
			return nil, err
		}
	}
	r := results{}
	for round := range o.rounds + 1 {
		for _, op := range chosen {
			if o.depth > 0 {
				op.depth = o.depth
			}
			if round == 0 {
				r[op.name] = map[string][]sample{}
			}
			if op.name == "fresh1m" {
				s, f, err := tmpfs(&op, round)
				if err != nil {
					return nil, err
				}
				defer f.Close() // the engine's files stay too
				r.add(round, &op, "tmpfs", 1, s)
			}
			for _, p := range parties {
				op := op
				switch {
				case op.name == "fresh1m" && p.name != "native", p.name == native4 && op.run4 == nil:
					continue
				case p.name == native4:
					op.run, op.warm = op.run4, op.warm4
				case p.name == "go-nfs-memfs":
					op.calls /= 10 // slower by more than that
				}
				s, err := measure(p.server, p.targets, &op)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", op.name, p.name, err)
				}
				r.add(round, &op, p.name, o.conns, s)
			}
		}
	}
	return r, nil
}

// processors are those that this process may use, and if there are several the
// first and the second alone.
func processors() (all, first, second unix.CPUSet, err error) {
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		return all, all, all, err
	}
	for i := 0; second.Count() == 0; i++ {
		switch {
		case !all.IsSet(i):
		case first.Count() == 0:
			first.Set(i)
		default:
			second.Set(i)
		}
	}
	return all, first, second, nil
}

// pin keeps this process, and those that it starts from now on, on the given
// processors.
func pin(to *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, to); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}

// measure runs op on all targets at once. A third of it comes first,
// unmeasured: the other servers have had the processors and their caches since
// this one's last round.
func measure(s *server, targets []*target, op *op) (sample, error) {
	for _, t := range targets {
		if err := t.refresh(); err != nil {
			return sample{}, err
		}
		if op.warm != nil {
			third := *op
			third.calls /= 3
			if err := op.warm(t, &third); err != nil {
				return sample{}, err
			}
		}
	}
	before, err := s.usage()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	failed := make(chan error)
	for _, t := range targets {
		go func() { failed <- op.run(t, op) }()
	}
	for range targets {
		err = errors.Join(err, <-failed)
	}
	wall := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	after, err := s.usage()
	n := len(targets) * op.calls
	return sample{
		wall:   wall / time.Duration(n),
		cpu:    (after.CPU - before.CPU) / time.Duration(n),
		allocs: float64(after.Allocs-before.Allocs) / float64(n),
	}, err
}

// add keeps and prints a sample, but for round 0, which warms up.
func (r results) add(round int, op *op, server string, conns int, s sample) {
	if round == 0 {
		return
	}
	r[op.name][server] = append(r[op.name][server], s)
	fmt.Printf("BenchmarkNFS/op=%s/depth=%d/conns=%d/server=%s-%d\t%d\t%d ns/op", op.name, op.depth, conns, server, runtime.GOMAXPROCS(0), conns*op.calls, s.wall.Nanoseconds())
	if op.bytes > 0 {
		fmt.Printf("\t%.1f MB/s", float64(op.bytes)/1e6/s.wall.Seconds())
	}
	if server != "tmpfs" {
		fmt.Printf("\t%d server-cpu-ns/op\t%.3f server-allocs/op", s.cpu.Nanoseconds(), s.allocs)
	}
	fmt.Println()
}

// tmpfs writes a new file as fresh does, by system calls of this process. The
// file has no name and goes when it is closed.
func tmpfs(op *op, round int) (sample, *os.File, error) {
	f, err := os.CreateTemp("/dev/shm", "nfsbench")
	if err != nil {
		return sample{}, nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return sample{}, nil, err
	}
	data := bytes.Repeat([]byte{byte(round)}, op.bytes)
	began := time.Now()
	for i := range op.calls {
		if _, err := f.WriteAt(data, int64(i*op.bytes)); err != nil {
			f.Close()
			return sample{}, nil, err
		}
	}
	return sample{wall: time.Since(began) / time.Duration(op.calls)}, f, nil
}

// bar is something asked of the engine.
type bar struct {
	what    string
	got     float64
	atLeast bool // got must be at least, else at most, bound
	bound   float64
	unit    string
}

func (b bar) met() bool {
	if b.atLeast {
		return b.got >= b.bound
	}
	return b.got <= b.bound
}

// bars holds the results against what is asked of the engine, as far as the
// servers that it takes were there.
func (r results) bars() []bar {
	rate := func(s sample) float64 { return 1 / s.wall.Seconds() }
	cpu := func(s sample) float64 { return s.cpu.Seconds() }
	var all []bar
	ratio := func(op, a, b string, of func(sample) float64, atLeast bool, bound float64, what string) {
		if x, y := r[op][a], r[op][b]; bound != 0 && len(x) > 0 && len(y) > 0 {
			var q []float64
			for i := range x {
				q = append(q, of(x[i])/of(y[i]))
			}
			all = append(all, bar{fmt.Sprintf("%s: %s, %s / %s", op, what, a, b), median(q), atLeast, bound, "x"})
		}
	}
	ratio("getattr", "canned", "go-nfs-memfs", rate, true, 7, "calls/s")
	for _, op := range ops {
		ratio(op.name, "native", "canned", rate, true, op.rate, "calls/s")
		ratio(op.name, "native", "canned", cpu, false, op.cpu, "server CPU")
		ratio(op.name, "native", "go-nfs-memfs", rate, true, op.baseline, "calls/s")
		ratio(op.name, native4, "native", rate, true, op.rate4, "calls/s")
		for _, server := range []string{"native", native4} {
			if op.noAlloc && len(r[op.name][server]) > 0 {
				var n []float64
				for _, s := range r[op.name][server] {
					n = append(n, s.allocs)
				}
				all = append(all, bar{op.name + ": " + server + ", allocations a call", median(n), false, 0.01, ""})
			}
		}
	}
	ratio("fresh1m", "native", "tmpfs", rate, true, 0.8, "bytes/s")
	return all
}

// print shows the medians.
func (r results) print() {
	if len(r) > 0 {
		fmt.Println()
	}
	for _, op := range ops {
		for _, server := range []string{"canned", "native", native4, "go-nfs", "go-nfs-memfs", "tmpfs"} {
			s := r[op.name][server]
			if len(s) == 0 {
				continue
			}
			var wall, cpu []float64
			for _, s := range s {
				wall = append(wall, s.wall.Seconds())
				cpu = append(cpu, s.cpu.Seconds())
			}
			w := median(wall)
			fmt.Printf("%-8s %-13s %9.0f calls/s %8.1f MB/s %9.2f us CPU\n", op.name, server, 1/w, float64(op.bytes)/w/1e6, median(cpu)*1e6)
		}
	}
}

func printBars(bars []bar) {
	if len(bars) == 0 {
		return
	}
	fmt.Println()
	missed := 0
	for _, b := range bars {
		sign, verdict := "<=", "met"
		if b.atLeast {
			sign = ">="
		}
		if !b.met() {
			verdict = "MISSED"
			missed++
		}
		fmt.Printf("%-52s %10.3f %-6s %s %8.2f  %s\n", b.what, b.got, b.unit, sign, b.bound, verdict)
	}
	fmt.Printf("%d of %d bars met\n", len(bars)-missed, len(bars))
}

func median(v []float64) float64 {
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
