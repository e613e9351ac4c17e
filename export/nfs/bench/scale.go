//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

const gib = 1 << 30

// scale measures what takes the engine long or much: each in a process of its
// own that starts empty.
func scale(match *regexp.Regexp) ([]bar, error) {
	var all []bar
	for _, m := range []struct {
		name string
		run  func(t *target) ([]bar, error)
	}{
		{"onefile", oneFile},
		{"sourcetree", sourceTree},
		{"bigfolder", bigFolder},
		{"neighbour", neighbour},
	} {
		if !match.MatchString(m.name) {
			continue
		}
		s, err := start("native")
		if err != nil {
			return all, err
		}
		var bars []bar
		t, err := connect(s, m.name)
		if err == nil {
			bars, err = m.run(t)
		}
		s.stop()
		if err != nil {
			return all, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, bars...)
		dashes := strings.NewReplacer(", ", "-", " / ", "-to-", " ", "-", ",", "")
		for _, b := range bars {
			fmt.Printf("BenchmarkNFSScale/%s\t1\t%.3f %s\n", dashes.Replace(b.what), b.got, b.unit)
		}
	}
	return all, nil
}

// memoryInUse is the machine's AnonPages and Shmem, in bytes: what processes and
// in-memory file systems hold.
func memoryInUse() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var sum int64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); name == "AnonPages" || name == "Shmem" {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("/proc/meminfo: %w", err)
			}
			sum += kb << 10
		}
	}
	return sum, nil
}

// oneFile writes a file of 1 GiB.
func oneFile(t *target) ([]bar, error) {
	before, err := memoryInUse()
	if err != nil {
		return nil, err
	}
	fh, err := t.makeFile("one")
	if err != nil {
		return nil, err
	}
	if err := t.writeTo(fh, gib, &op{depth: 8, calls: gib / maxData, bytes: maxData}); err != nil {
		return nil, err
	}
	after, err := memoryInUse()
	return []bar{{"memory for one file of 1 GiB", float64(after-before) / gib, false, 1.03, "GiB"}}, err
}

const (
	treeFiles   = 649_000
	treeFolders = 60_000
	treeStep    = 4096 // files made, then written, together
)

// sourceTree fills the store as checked-out sources would: sizes are log-normal
// with a median of 4 KiB and a mean of 16 KiB, files are spread evenly over
// folders of which each but the leaves holds eight others. Then it deletes all.
func sourceTree(t *target) ([]bar, error) {
	// What this process needs is touched before the first measurement.
	folders := make([]byte, treeFolders*nfs3.MaxFH)
	lens := make([]uint8, treeFolders)
	handles := make([]byte, treeStep*nfs3.MaxFH)
	sizes := make([]int, treeStep)
	for _, b := range [][]byte{folders, handles} {
		for i := range b {
			b[i] = 1
		}
	}
	folder := func(i int) []byte { return folders[i*nfs3.MaxFH:][:lens[i]] }
	folderOf := func(file int) int { return file * treeFolders / treeFiles }
	lens[0] = uint8(copy(folders, t.root))

	before, err := memoryInUse()
	if err != nil {
		return nil, err
	}
	for at := 1; at < treeFolders; {
		// A folder's parent is made before it is named: a call may not use the
		// handle in a reply that is still under way.
		n := min(treeFolders, at*8+1) - at
		msg := t.template(nfs3.ProcMkdir, func(*xdr.Writer) {})
		attr := nfs3.Sattr{SetMode: true, Mode: 0o755}
		err := t.c.Run(32, n, func(i int, w *xdr.Writer) []byte {
			w.B = append(w.B, msg...)
			w.Opaque(folder((at + i - 1) / 8))
			appendName(w, "dir-", at+i)
			attr.Encode(w)
			return nil
		}, func(i int, reply []byte) error {
			n, err := keepHandle(folders[(at+i)*nfs3.MaxFH:], reply)
			lens[at+i] = n
			return err
		})
		if err != nil {
			return nil, err
		}
		at += n
	}

	rng := rand.New(rand.NewPCG(1, 2))
	sigma := math.Sqrt(2 * math.Log(4)) // of the logarithm: mean / median is exp(sigma^2 / 2)
	var bytes int64
	var fhLen uint8
	for at := 0; at < treeFiles; at += treeStep {
		n := min(treeStep, treeFiles-at)
		create := t.template(nfs3.ProcCreate, func(*xdr.Writer) {})
		attr := nfs3.Sattr{SetMode: true, Mode: 0o644}
		err := t.c.Run(32, n, func(i int, w *xdr.Writer) []byte {
			w.B = append(w.B, create...)
			w.Opaque(folder(folderOf(at + i)))
			appendName(w, "file-", at+i)
			w.Uint32(uint32(nfs3.Guarded))
			attr.Encode(w)
			return nil
		}, func(i int, reply []byte) (err error) {
			fhLen, err = keepHandle(handles[i*nfs3.MaxFH:], reply)
			return err
		})
		if err != nil {
			return nil, err
		}
		calls := 0
		for i := range n {
			sizes[i] = max(1, int(4096*math.Exp(sigma*rng.NormFloat64())))
			bytes += int64(sizes[i])
			calls += (sizes[i] + maxData - 1) / maxData
		}
		write := t.template(nfs3.ProcWrite, func(*xdr.Writer) {})
		file, offset := 0, 0
		err = t.c.Run(8, calls, func(_ int, w *xdr.Writer) []byte {
			k := min(maxData, sizes[file]-offset)
			a := nfs3.WriteArgs{FH: handles[file*nfs3.MaxFH:][:fhLen], Offset: uint64(offset), Count: uint32(k), Stable: nfs3.FileSync}
			w.B = append(w.B, write...)
			a.EncodeHead(w, a.Count)
			if offset += k; offset == sizes[file] {
				file, offset = file+1, 0
			}
			if k >= largeSize {
				return t.data[:(k+3)&^3]
			}
			w.Fixed(t.data[:k])
			return nil
		}, ok)
		if err != nil {
			return nil, err
		}
	}
	loaded, err := memoryInUse()
	if err != nil {
		return nil, err
	}

	remove := t.template(nfs3.ProcRemove, func(*xdr.Writer) {})
	err = t.c.Run(32, treeFiles, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, remove...)
		w.Opaque(folder(folderOf(i)))
		appendName(w, "file-", i)
		return nil
	}, ok)
	if err != nil {
		return nil, err
	}
	rmdir := t.template(nfs3.ProcRmdir, func(*xdr.Writer) {})
	err = t.c.Run(1, treeFolders-1, func(i int, w *xdr.Writer) []byte {
		i = treeFolders - 1 - i
		w.B = append(w.B, rmdir...)
		w.Opaque(folder((i - 1) / 8))
		appendName(w, "dir-", i)
		return nil
	}, ok)
	if err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Second) // the time that the memory may take to come back
	deleted, err := memoryInUse()
	return []bar{
		{"memory for a source tree", float64(loaded-before) / gib, false, (1.10*float64(bytes) + 400*treeFiles) / gib, "GiB"},
		{"memory left 5 s after its deletion", float64(deleted-before) / gib, false, (0.03*float64(loaded-before) + 32<<20) / gib, "GiB"},
	}, err
}

// keepHandle copies the handle of what was made to dst, and returns its length.
func keepHandle(dst, reply []byte) (uint8, error) {
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		return 0, err
	}
	var res nfs3.CreateRes
	res.Decode(&r)
	switch {
	case r.Err() != nil:
		return 0, r.Err()
	case res.Status != nfs3.OK:
		return 0, res.Status
	case !res.FH.Follows:
		return 0, fmt.Errorf("no handle in the reply to a call that makes something")
	}
	return uint8(copy(dst[:nfs3.MaxFH], res.FH.FH)), nil
}

const (
	few  = 1_000     // names in a small folder
	some = 10_000    // in one that is listed
	many = 1_000_000 // in the big one
)

// bigFolder compares a folder of a million names with small ones.
func bigFolder(t *target) ([]bar, error) {
	mkdir := func(name string) ([]byte, error) {
		res, err := t.c.Mkdir(t.root, name, nfs3.Sattr{SetMode: true, Mode: 0o755})
		return res.FH.FH, err
	}
	rate := func(n int, run func() error) (float64, error) {
		began := time.Now()
		err := run()
		return float64(n) / time.Since(began).Seconds(), err
	}
	var small struct{ create, lookup, remove []float64 }
	load := &op{depth: 32, calls: few}
	for i := range 30 {
		dir, err := mkdir(fmt.Sprintf("small-%d", i))
		if err != nil {
			return nil, err
		}
		for _, step := range []struct {
			rates *[]float64
			run   func() error
		}{
			{&small.create, func() error { return t.createIn(dir, load) }},
			{&small.lookup, func() error { return t.names(dir, nfs3.ProcLookup, load) }},
			{&small.remove, func() error { return t.names(dir, nfs3.ProcRemove, load) }},
		} {
			r, err := rate(few, step.run)
			if err != nil {
				return nil, err
			}
			*step.rates = append(*step.rates, r)
		}
	}
	middle, err := mkdir("middle")
	if err != nil {
		return nil, err
	}
	if err := t.createIn(middle, &op{depth: 32, calls: some}); err != nil {
		return nil, err
	}
	big, err := mkdir("big")
	if err != nil {
		return nil, err
	}
	load.calls = many
	create, err := rate(many, func() error { return t.createIn(big, load) })
	if err != nil {
		return nil, err
	}
	lookup, err := rate(many, func() error { return t.names(big, nfs3.ProcLookup, load) })
	if err != nil {
		return nil, err
	}
	var perName [2][]float64
	for i, dir := range [][]byte{middle, big} {
		want, passes := some, 20
		if i == 1 {
			want, passes = many, 1
		}
		for range passes {
			began := time.Now()
			n, err := t.list(dir)
			if err != nil {
				return nil, err
			}
			if n != want+2 {
				return nil, fmt.Errorf("READDIRPLUS listed %d names, want %d", n, want+2)
			}
			perName[i] = append(perName[i], time.Since(began).Seconds()/float64(n))
		}
	}
	remove, err := rate(many, func() error { return t.names(big, nfs3.ProcRemove, load) })
	return []bar{
		{"create in a folder of 1,000,000, of the rate at 1,000", create / median(small.create), true, 0.5, "x"},
		{"lookup in a folder of 1,000,000, of the rate at 1,000", lookup / median(small.lookup), true, 0.5, "x"},
		{"remove in a folder of 1,000,000, of the rate at 1,000", remove / median(small.remove), true, 0.5, "x"},
		{"READDIRPLUS time a name, 1,000,000 / 10,000", median(perName[1]) / median(perName[0]), false, 2, "x"},
	}, err
}

// list reads a whole folder page by page and counts its names.
func (t *target) list(dir []byte) (names int, err error) {
	a := nfs3.ReadDirPlusArgs{FH: dir, DirCount: 64 << 10, MaxCount: 64 << 10}
	for {
		res, err := t.c.ReadDirPlus(a)
		if err != nil {
			return names, err
		}
		names += len(res.Entries)
		if res.EOF {
			return names, nil
		}
		if len(res.Entries) == 0 {
			return names, fmt.Errorf("READDIRPLUS answered no names before the end")
		}
		a.Cookie, a.CookieVerf = res.Entries[len(res.Entries)-1].Cookie, res.CookieVerf
	}
}

// neighbour measures how long one client's GETATTR takes while another truncates
// 4 GiB and lists a million names.
func neighbour(t *target) ([]bar, error) {
	fh, err := t.makeFile("large")
	if err != nil {
		return nil, err
	}
	if err := t.writeTo(fh, 4*gib, &op{depth: 8, calls: 4 * gib / maxData, bytes: maxData}); err != nil {
		return nil, err
	}
	res, err := t.c.Mkdir(t.root, "big", nfs3.Sattr{SetMode: true, Mode: 0o755})
	if err != nil {
		return nil, err
	}
	if err := t.createIn(res.FH.FH, &op{depth: 32, calls: many}); err != nil {
		return nil, err
	}
	quiet, err := t.s.dial()
	if err != nil {
		return nil, err
	}
	defer quiet.Close()

	var busy atomic.Bool
	busy.Store(true)
	failed := make(chan error, 1)
	go func() {
		defer busy.Store(false)
		_, err := t.c.SetAttr(nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetSize: true}})
		if err == nil {
			_, err = t.list(res.FH.FH)
		}
		failed <- err
	}()
	var took []float64
	for busy.Load() {
		began := time.Now()
		if _, err := quiet.GetAttr(t.root); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began).Seconds()*1e3)
	}
	if err := <-failed; err != nil {
		return nil, err
	}
	if len(took) < 100 {
		return nil, fmt.Errorf("%d calls while the other client worked are too few to judge by", len(took))
	}
	slices.Sort(took)
	return []bar{{"GETATTR beside a slow client, 99th percentile", took[len(took)*99/100], false, 5, "ms"}}, nil
}
