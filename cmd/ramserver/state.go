package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"ramserver/loopback"
)

// Running servers are found in the state folder: NAME.json tells the process
// and what it has mounted, NAME.sock is its control socket, and NAME.log the log
// of one in the background. A folder belongs to one user and
// nobody else can look into it.

// process is a running server, as its file in the state folder has it. The
// start time tells it from a later process with the same number.
type process struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // in units of the system, see processStart
	Version string `json:"version"`
	Mount   *mount `json:"mount,omitempty"`
}

// mount is what a server mounts, or is about to, on this machine.
type mount struct {
	Plan *loopback.Plan `json:"plan"`
	Made bool           `json:"made"` // the folder, which goes with the mount
}

func (p *process) alive() bool {
	start, ok := processStart(p.PID)
	return ok && start == p.Start
}

// maxSocketPath is the shortest sun_path of the systems, in bytes, less its
// final zero.
const maxSocketPath = 103

var nameRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$`)

var errNone = errors.New("no server is running")

// folder finds the state folder and checks that it is this user's alone. With
// create it is made if there is none.
func (in *instance) folder(create bool) (string, error) {
	if !nameRE.MatchString(in.name) {
		return "", fmt.Errorf("--name %q: want up to 32 letters, digits, dots, dashes and underscores", in.name)
	}
	dir := in.stateDir
	if dir == "" {
		var err error
		if dir, err = defaultStateDir(); err != nil {
			return "", err
		}
	}
	if n := len(in.socket(dir)); n > maxSocketPath {
		return "", fmt.Errorf("state folder %s: its path is too long for a socket (%d bytes, at most %d); give a shorter --state-dir", dir, n, maxSocketPath)
	}
	if create {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("state folder: %w", err)
		}
	}
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", failure{fmt.Errorf("%w (there is no state folder %s)", errNone, dir)}
	}
	if err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("state folder %s: is not a folder", dir)
	}
	if err := checkOwner(fi); err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	return dir, nil
}

func (in *instance) file(dir string) string      { return filepath.Join(dir, in.name+".json") }
func (in *instance) socket(dir string) string    { return filepath.Join(dir, in.name+".sock") }
func (in *instance) lockHosts(dir string) string { return filepath.Join(dir, in.name+".locks") }
func (in *instance) log(dir string) string       { return filepath.Join(dir, in.name+".log") }

// find returns the running server. What a dead one left is removed, which the
// error says.
func (in *instance) find() (dir string, p *process, err error) {
	if dir, err = in.folder(false); err != nil {
		return "", nil, err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return "", nil, fmt.Errorf("state folder %s: %w", dir, err)
	}
	defer unlock()
	p, stale, err := in.read(dir)
	switch {
	case err != nil:
		return "", nil, err
	case stale != "":
		return "", nil, failure{fmt.Errorf("server %q is not running: %s", in.name, stale)}
	case p == nil:
		msg := fmt.Sprintf("server %q is not running", in.name)
		if others := in.others(dir); others != "" {
			msg += "; running: " + others
		} else {
			msg += fmt.Sprintf(" (state folder %s)", dir)
		}
		return "", nil, failure{errors.New(msg)}
	}
	return dir, p, nil
}

// read returns the running server, nil if there is none. It removes what a
// dead one left and says so in stale. The folder is locked.
func (in *instance) read(dir string) (p *process, stale string, err error) {
	b, err := os.ReadFile(in.file(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("state: %w", err)
	}
	p = new(process)
	err = json.Unmarshal(b, p)
	if err == nil && p.Mount != nil && p.Mount.Plan == nil {
		err = errors.New("a mount without a plan")
	}
	if err != nil {
		return nil, "", fmt.Errorf("state file %s: %w; remove it if no server runs", in.file(dir), err)
	}
	if p.alive() {
		return p, "", nil
	}
	stale = fmt.Sprintf("process %d died; removed the state it left", p.PID)
	if p.Mount != nil {
		gone, err := p.Mount.cleanUp()
		if err != nil {
			return nil, "", failure{fmt.Errorf("process %d died, and what it had mounted remains: %w", p.PID, err)}
		}
		if gone {
			stale += " and its mount at " + p.Mount.Plan.Dir
		}
	}
	// Its last words are worth keeping.
	if fi, err := os.Stat(in.log(dir)); err == nil && fi.Size() > 0 {
		stale += "; its log is " + in.log(dir)
	} else {
		os.Remove(in.log(dir))
	}
	in.remove(dir)
	return nil, stale, nil
}

// cleanUpTime bounds the end of one dead mount.
const cleanUpTime = 20 * time.Second

// cleanUp unmounts what a dead server has left, and tells whether there was
// something.
func (m *mount) cleanUp() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTime)
	defer cancel()
	found, err := loopback.Find(m.Plan.Dir)
	if err != nil {
		return false, err
	}
	there := found != nil && found.Is(m.Plan)
	if there {
		if m.Plan.Server.IsValid() {
			release, err := startStandIn(m.Plan.Server)
			if err != nil {
				return false, err
			}
			defer release()
		}
		if err := m.Plan.Abandon(ctx, found); err != nil {
			return false, err
		}
	}
	if m.Made {
		os.Remove(m.Plan.Dir)
	}
	return there, nil
}

// sweep cleans up after all dead servers, and says so.
func (in *instance) sweep(msgs io.Writer) error {
	dir, err := in.folder(false)
	if errors.Is(err, errNone) {
		return nil
	}
	if err != nil {
		return err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return fmt.Errorf("state folder %s: %w", dir, err)
	}
	defer unlock()
	// All at once: a dead mount takes most of a second.
	all := in.all(dir)
	said, errs := make([]string, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for n, other := range all {
		wg.Go(func() { _, said[n], errs[n] = other.read(dir) })
	}
	wg.Wait()
	for n, other := range all {
		if said[n] != "" {
			fmt.Fprintf(msgs, "ramserver: server %q: %s\n", other.name, said[n])
		}
	}
	return errors.Join(errs...)
}

// all is every server that the state folder tells of, by name.
func (in *instance) all(dir string) []*instance {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var all []*instance
	for _, f := range files {
		other := &instance{name: strings.TrimSuffix(filepath.Base(f), ".json"), stateDir: in.stateDir}
		if nameRE.MatchString(other.name) {
			all = append(all, other)
		}
	}
	return all
}

// peek returns the running server, nil if there is none, and cleans up nothing.
func (in *instance) peek(dir string) *process {
	b, err := os.ReadFile(in.file(dir))
	p := new(process)
	if err != nil || json.Unmarshal(b, p) != nil || !p.alive() {
		return nil
	}
	return p
}

func (in *instance) remove(dir string) {
	os.Remove(in.socket(dir))
	os.Remove(in.file(dir))
}

func (in *instance) others(dir string) string {
	var names []string
	for _, other := range in.all(dir) {
		if other.peek(dir) != nil {
			names = append(names, other.name)
		}
	}
	return strings.Join(names, ", ")
}

// claim makes this process, self, the server of the name, until remove. stale
// says what a dead one left.
func (in *instance) claim() (dir string, self *process, stale string, err error) {
	if dir, err = in.folder(true); err != nil {
		return "", nil, "", err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return "", nil, "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	defer unlock()
	if stale, err = in.notRunning(dir); err != nil {
		return "", nil, "", err
	}
	self = &process{Name: in.name, PID: os.Getpid(), Version: version()}
	var ok bool
	if self.Start, ok = processStart(self.PID); !ok {
		return "", nil, "", errors.New("cannot find this process's start time")
	}
	if err := in.write(dir, self); err != nil {
		return "", nil, "", err
	}
	os.Remove(in.socket(dir)) // of one whose file is lost
	return dir, self, stale, nil
}

// notRunning says that there is no server of the name, after cleaning up.
func (in *instance) notRunning(dir string) (stale string, err error) {
	other, stale, err := in.read(dir)
	if err == nil && other != nil {
		err = fmt.Errorf("server %q is running already (process %d); give this one another --name, or stop that one", in.name, other.PID)
	}
	return stale, err
}

// write puts the state of this process into its file.
func (in *instance) write(dir string, self *process) error {
	b, err := json.Marshal(self)
	if err != nil {
		return err
	}
	// Under another name first: a file that is there is whole.
	tmp := in.file(dir) + ".new"
	if err = os.WriteFile(tmp, append(b, '\n'), 0o600); err == nil {
		err = os.Rename(tmp, in.file(dir))
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// free makes the state folder if there is none and says that the name can be
// had.
func (in *instance) free() (dir string, err error) {
	if dir, err = in.folder(true); err != nil {
		return "", err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	defer unlock()
	_, err = in.notRunning(dir)
	return dir, err
}
