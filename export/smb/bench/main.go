//go:build linux

// Command bench measures the SMB server beside Samba's smbd on tmpfs, over
// loopback, as root. It prints every round in Go benchmark format, for benchstat,
// and then what is asked of the server and whether it is met.
//
// Both servers run in processes of their own, with signing for clients that ask
// for it and without oplocks and leases, and take turns, round by round, so that a
// noisy machine is noisy for both. The client is package export/smb/client for single
// operations, signing with AES-GMAC, and smbclient for bulk data, plain, signed and
// encrypted. What github.com/hirochachacha/go-smb2 gets is measured too. CPU time is
// the server's, with all its processes. A ratio is the median of the ratios of single
// rounds.
//
// With -torture it measures what a run of smbtorture leaves behind instead: the server
// beside another of ours, which is left alone, before and after.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	rounds  int
	match   *regexp.Regexp
	bulk    int64
	torture bool
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "`number` of measured rounds")
	flag.Int64Var(&o.bulk, "bulk", 512, "`MiB` of a put and get")
	flag.BoolVar(&o.torture, "torture", false, "compare the speed after a run of smbtorture with that before it")
	match := flag.String("ops", ".", "`regexp` of operations to run")
	flag.Parse()
	var err error
	if o.match, err = regexp.Compile(*match); err != nil {
		exit(err)
	}
	if o.rounds < 1 || o.bulk < 1 || flag.NArg() > 0 {
		exit(errors.New("want rounds and bulk of at least 1, and no arguments"))
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

// sample is one round of one operation against one server.
type sample struct {
	wall, cpu time.Duration // an operation, or a MiB
}

// run runs every operation against both servers in turn.
func run(o options) error {
	dir, err := os.MkdirTemp("/dev/shm", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.torture {
		return torture(o, dir)
	}
	smbd, err := startSamba(dir)
	if err != nil {
		return fmt.Errorf("smbd: %w", err)
	}
	defer smbd.stop()
	ours, err := startOurs(dir)
	if err != nil {
		return fmt.Errorf("ramserver: %w", err)
	}
	defer ours.stop()

	fmt.Printf("goos: %s\ngoarch: %s\npkg: ramserver/export/smb/bench\n", runtime.GOOS, runtime.GOARCH)
	all := o.ops(dir)
	results, err := measure(all, []*server{smbd, ours}, o.rounds)
	if err != nil {
		return err
	}
	fmt.Println()
	for _, op := range all {
		r := results[op.name]
		for _, s := range []*server{smbd, ours} {
			fmt.Printf("%-14s %-10s %12.1f %s/s %10.2f us CPU\n", op.name, s.name,
				1e9/median(r[s], func(i int) float64 { return float64(r[s][i].wall) }), op.unit,
				median(r[s], func(i int) float64 { return float64(r[s][i].cpu) })/1e3)
		}
	}
	fmt.Println()
	met, asked := 0, 0
	for _, op := range all {
		r := results[op.name]
		if op.speed == 0 {
			continue
		}
		speed := median(r[ours], func(i int) float64 { return float64(r[smbd][i].wall) / float64(r[ours][i].wall) })
		cpu := median(r[ours], func(i int) float64 { return float64(r[ours][i].cpu) / float64(max(r[smbd][i].cpu, 1)) })
		for _, b := range []struct {
			what    string
			got, of float64
			ok      bool
			sign    string
		}{
			{"speed, of smbd's", speed, op.speed, speed >= op.speed, ">="},
			{"server CPU, of smbd's", cpu, op.cpu, cpu <= op.cpu, "<="},
		} {
			verdict := "MISSED"
			asked++
			if b.ok {
				verdict = "met"
				met++
			}
			fmt.Printf("%-14s %-22s %8.3f x %s %5.2f  %s\n", op.name, b.what, b.got, b.sign, b.of, verdict)
		}
	}
	fmt.Printf("%d of %d bars met\n", met, asked)
	return nil
}

// ops are the operations to run.
func (o *options) ops(dir string) []op {
	return slices.DeleteFunc(slices.Concat(ops, goOps, bulkOps(dir, o.bulk)), func(op op) bool {
		// remove takes away what create has made.
		made, of, ok := strings.Cut(op.name, "create")
		return !o.match.MatchString(op.name) && !(ok && made == "" && o.match.MatchString("remove"+of))
	})
}

// measure runs every operation in every round, against the servers in turn.
func measure(all []op, servers []*server, rounds int) (map[string]map[*server][]sample, error) {
	results := map[string]map[*server][]sample{}
	for round := range rounds + 1 {
		for i, op := range all {
			for _, s := range servers {
				got, err := s.measure(&all[i])
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.name, op.name, err)
				}
				if round == 0 {
					continue // a warm-up
				}
				fmt.Printf("BenchmarkSMB/%s/%s 1 %d ns/op %d cpu-ns/op\n", op.name, s.name, got.wall, got.cpu)
				if results[op.name] == nil {
					results[op.name] = map[*server][]sample{}
				}
				results[op.name][s] = append(results[op.name][s], got)
			}
		}
	}
	return results, nil
}

func median(samples []sample, of func(int) float64) float64 {
	var v []float64
	for i := range samples {
		v = append(v, of(i))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
