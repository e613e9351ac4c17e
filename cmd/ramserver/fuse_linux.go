package main

import (
	"context"
	"log/slog"

	"ramserver/loopback"
	"ramserver/loopback/fusefs"
	"ramserver/memstore"
)

// mountFUSE mounts a store as a file system of this process; wait waits for
// the mount's end.
func mountFUSE(store *memstore.Store, p *loopback.Plan, passthrough string, log *slog.Logger) (wait func(), err error) {
	m, err := fusefs.New(context.Background(), store, p.Dir, fusefs.Options{
		Passthrough: fusefs.Passthrough(passthrough), Log: log,
	})
	if err != nil {
		return nil, err
	}
	return m.Wait, nil
}
