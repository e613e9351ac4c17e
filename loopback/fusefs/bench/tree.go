//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

const parts = 8 // of the tree

// treeSteps make a source tree of so many files as archives in dir, which are
// unpacked, copied and removed by one process, and by one for each part at once.
func treeSteps(dir string, files int) ([]step, error) {
	if err := makeTree(dir, files); err != nil {
		return nil, err
	}
	var steps []step
	for _, c := range []struct {
		name string
		of   []string // archives
	}{{"1", archives[parts:]}, {"8", archives[:parts]}} {
		each := func(command func(at, copies, part string) *exec.Cmd) func(p *place) error {
			return func(p *place) error {
				at, copies := filepath.Join(p.dir, c.name), filepath.Join(p.dir, c.name+"-copy")
				var cmds []*exec.Cmd
				for _, part := range c.of {
					for _, d := range []string{at, copies} {
						if err := os.MkdirAll(d, 0o755); err != nil {
							return err
						}
					}
					cmds = append(cmds, command(at, copies, part))
				}
				return runAll(cmds)
			}
		}
		steps = append(steps,
			step{"tar-x/" + c.name, each(func(at, _, part string) *exec.Cmd {
				return exec.Command("tar", "-xf", filepath.Join(dir, part+".tar"), "-C", at)
			}), 1},
			step{"cp-a/" + c.name, each(func(at, copies, part string) *exec.Cmd {
				return exec.Command("cp", "-a", filepath.Join(at, part), copies)
			}), 1},
			step{"rm-rf/" + c.name, each(func(_, copies, part string) *exec.Cmd {
				return exec.Command("rm", "-rf", filepath.Join(copies, part))
			}), 1},
			step{"", func(p *place) error {
				return errors.Join(os.RemoveAll(filepath.Join(p.dir, c.name)), os.RemoveAll(filepath.Join(p.dir, c.name+"-copy")))
			}, 0},
		)
	}
	return steps, nil
}

// runAll runs commands at once.
func runAll(cmds []*exec.Cmd) (err error) {
	for _, cmd := range cmds {
		cmd.Stderr = os.Stderr
		err = errors.Join(err, cmd.Start())
	}
	for _, cmd := range cmds {
		if e := cmd.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", cmd.Args, e))
		}
	}
	return err
}

// archives are the parts of the tree, and all of it.
var archives = [parts + 1]string{"part0", "part1", "part2", "part3", "part4", "part5", "part6", "part7", "all"}

// makeTree writes the archives. Sizes are log-normal with a median of 4 KiB and a
// mean of 16 KiB; files are spread evenly over folders, 11 in each, of which each
// but the leaves holds eight others.
func makeTree(dir string, files int) error {
	var out [parts + 1]*tar.Writer
	for i, name := range archives {
		f, err := os.Create(filepath.Join(dir, name+".tar"))
		if err != nil {
			return err
		}
		defer f.Close()
		out[i] = tar.NewWriter(f)
	}
	content := make([]byte, 4<<20)
	for i := range content {
		content[i] = byte(i * 7)
	}
	// add writes an entry to an archive and to the one of all.
	add := func(part int, h tar.Header) error {
		for k, w := range []*tar.Writer{out[part], out[parts]} {
			e := h
			if k == 1 {
				e.Name = archives[parts] + "/" + h.Name
			}
			if err := w.WriteHeader(&e); err != nil {
				return err
			}
			if _, err := io.Copy(w, bytes.NewReader(content[:h.Size])); err != nil {
				return err
			}
		}
		return nil
	}
	if err := out[parts].WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: archives[parts] + "/", Mode: 0o755}); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	sigma := math.Sqrt(2 * math.Log(4)) // of the logarithm: mean / median is exp(sigma^2 / 2)
	for part := range parts {
		var folders []string
		for n := range (files/parts + 10) / 11 {
			name := archives[part] + "/"
			if n > 0 {
				name = fmt.Sprintf("%sdir-%d/", folders[(n-1)/8], n)
			}
			folders = append(folders, name)
			if err := add(part, tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}); err != nil {
				return err
			}
			for i := n * 11; i < min((n+1)*11, files/parts); i++ {
				size := min(int64(4096*math.Exp(sigma*rng.NormFloat64())), int64(len(content)))
				if err := add(part, tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("%sfile-%d.c", name, i), Mode: 0o644, Size: size}); err != nil {
					return err
				}
			}
		}
	}
	var err error
	for _, w := range out {
		err = errors.Join(err, w.Close())
	}
	return err
}
