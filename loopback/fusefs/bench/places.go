//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// place is a folder on a file system.
type place struct {
	name, dir string
	server    *exec.Cmd // or nil
	mounted   bool
}

// parsePlaces are the places of the flag -at.
func parsePlaces(list string) (places []*place, err error) {
	for item := range strings.SplitSeq(list, ",") {
		name, dir, ok := strings.Cut(item, "=")
		if !ok {
			return nil, fmt.Errorf("-at %q: want NAME=FOLDER", item)
		}
		places = append(places, &place{name: name, dir: dir})
	}
	return places, nil
}

// openPlaces mounts all that is compared below dir, which is on a disk, the
// mount of ramserver first. It returns what it has mounted with an error, too.
func openPlaces(dir string, empty bool) (places []*place, err error) {
	add := func(name string) (*place, error) {
		p := &place{name: name, dir: filepath.Join(dir, name)}
		return p, os.Mkdir(p.dir, 0o755)
	}
	serve := func(name, ready string, command func(at string) *exec.Cmd) error {
		p, err := add(name)
		if err != nil {
			return err
		}
		p.server = command(p.dir)
		places = append(places, p)
		return p.start(ready)
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, "ramserver/cmd/ramserver").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	err = serve("ramserver", "ramserver: ready", func(at string) *exec.Cmd {
		return exec.Command(program, "mount", at, "--via", "fuse", "--foreground", "--state-dir", filepath.Join(dir, "state"))
	})
	if err != nil {
		return places, err
	}
	if empty {
		self, err := os.Executable()
		if err == nil {
			err = serve("empty", "ready", func(at string) *exec.Cmd { return exec.Command(self, "-empty", at) })
		}
		if err != nil {
			return places, err
		}
	}
	p, err := add("tmpfs")
	if err == nil {
		err = unix.Mount("tmpfs", p.dir, "tmpfs", 0, "")
	}
	if err != nil {
		return places, err
	}
	p.mounted = true
	places = append(places, p)

	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return places, err
	}
	name := fmt.Sprintf("disk-%#x", fs.Type)
	for _, known := range []struct {
		name string
		id   int64
	}{{"ext4", unix.EXT4_SUPER_MAGIC}, {"xfs", unix.XFS_SUPER_MAGIC}, {"btrfs", unix.BTRFS_SUPER_MAGIC}, {"overlay", unix.OVERLAYFS_SUPER_MAGIC}} {
		if known.id == int64(fs.Type) {
			name = known.name
		}
	}
	if p, err = add(name); err != nil {
		return places, err
	}
	return append(places, p), nil
}

// start starts the place's server and waits for the line that says it is ready.
func (p *place) start(ready string) error {
	p.server.Stderr = os.Stderr
	out, err := p.server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.server.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ready) {
			p.mounted = true
			return nil
		}
	}
	return fmt.Errorf("%s: %w", p.name, errors.Join(errors.New("is not ready"), p.server.Wait()))
}

func (p *place) close() {
	if p.mounted {
		if err := unix.Unmount(p.dir, 0); err != nil {
			fmt.Fprintf(os.Stderr, "bench: unmount %s: %v\n", p.dir, err)
			unix.Unmount(p.dir, unix.MNT_DETACH)
		}
		if p.server != nil {
			p.server.Wait()
		}
	}
}
