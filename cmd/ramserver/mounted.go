package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"ramserver/loopback"
)

// mounted is the mount of a running server on its own machine.
type mounted struct {
	mount
	log  *slog.Logger
	gone chan struct{} // closed when it is, whoever unmounted it

	mu   sync.Mutex
	at   *loopback.Mounted // (mu) nil: not mounted
	wait func()            // for the end of FUSE; nil: none. Constant once it is mounted
}

// mountTime and unmountTime bound a mount and its end.
const (
	mountTime   = 30 * time.Second
	unmountTime = 20 * time.Second
)

// mountHere mounts the first export's store as planned. Before it changes
// anything it writes down what it is about to do, for whoever finds this
// process dead.
func (r *running) mountHere(in *instance, stateDir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), mountTime)
	defer cancel()
	m := r.mounted
	if runtime.GOOS != "windows" {
		_, err := os.Stat(m.Plan.Dir)
		m.Made = errors.Is(err, fs.ErrNotExist)
	}
	r.self.Mount = &m.mount
	if err := in.write(stateDir, r.self); err != nil {
		return err
	}
	if m.Made {
		if err := os.Mkdir(m.Plan.Dir, 0o755); err != nil {
			return failure{err}
		}
		r.onClose(func() { os.Remove(m.Plan.Dir) })
	}
	err := r.mountStore(ctx)
	if errors.Is(err, loopback.ErrNoSuch) && m.Plan.Else != nil {
		r.log.Info("mounting in another way", "err", err)
		m.Plan = m.Plan.Else
		if err := in.write(stateDir, r.self); err != nil {
			return err
		}
		err = r.mountStore(ctx)
	}
	if err != nil {
		return failure{fmt.Errorf("mounting: %w", err)}
	}
	r.onClose(func() {
		if err := r.unmount(true); err != nil {
			r.log.Error("unmounting", "err", err)
		}
	})
	if err := m.Plan.Restrict(); err != nil {
		return failure{err}
	}
	return nil
}

// mountStore mounts, and watches for the mount's end.
func (r *running) mountStore(ctx context.Context) (err error) {
	m := r.mounted
	if m.Plan.Via == loopback.FUSE {
		m.wait, err = mountFUSE(r.stores[r.plan.exports[0].store], m.Plan.Dir, r.plan, r.log)
	} else {
		err = m.Plan.Mount(ctx)
	}
	if err != nil {
		return err
	}
	at, err := loopback.Find(m.Plan.Dir)
	if err == nil && at == nil {
		err = fmt.Errorf("%s: has gone again", m.Plan.Dir)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.at = at
	m.mu.Unlock()
	go func() {
		defer close(m.gone)
		if m.wait != nil {
			m.wait()
		} else if err := loopback.Watch(context.Background(), at); err != nil {
			m.log.Warn("the mount is not watched", "err", err)
			select {}
		}
		m.mu.Lock()
		m.at = nil
		m.mu.Unlock()
	}()
	return nil
}

// unmounted is closed when what this server has mounted is gone.
func (r *running) unmounted() <-chan struct{} {
	if r.mounted == nil {
		return nil
	}
	return r.mounted.gone
}

// unmount unmounts what this server has mounted, if anything. Unless forced, it
// leaves what is in use, and the error says who uses it.
func (r *running) unmount(force bool) error {
	m := r.mounted
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), unmountTime)
	defer cancel()
	err := m.Plan.Unmount(ctx)
	if errors.Is(err, loopback.ErrBusy) {
		err = busy(m, err)
		if force {
			m.log.Warn("unmounting all the same", "err", err)
			err = m.Plan.Abandon(ctx, m.at)
		}
	}
	if err == nil {
		m.at = nil
	}
	return err
}

// maxNamed is how many users of a mount are named.
const maxNamed = 8

func busy(m *mounted, err error) error {
	users := loopback.Users(m.at)
	if len(users) == 0 {
		return fmt.Errorf("%w, by something that cannot be seen from here", err)
	}
	var names []string
	for _, u := range users[:min(len(users), maxNamed)] {
		names = append(names, u.String())
	}
	if len(users) > maxNamed {
		names = append(names, fmt.Sprintf("%d more", len(users)-maxNamed))
	}
	return fmt.Errorf("%w by %s", err, strings.Join(names, "; "))
}
