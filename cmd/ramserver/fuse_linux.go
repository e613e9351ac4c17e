package main

import (
	"context"
	"log/slog"

	"ramserver/loopback/fusefs"
	"ramserver/memstore"
)

// mountFUSE mounts a store as a file system of this process; wait waits for
// the mount's end.
func mountFUSE(store *memstore.Store, dir string, p *plan, log *slog.Logger) (wait func(), err error) {
	m, err := fusefs.New(context.Background(), store, dir, fusefs.Options{
		Passthrough: fusefs.Passthrough(p.passthrough), Alone: !p.network, Source: p.mount.Source, Trace: p.trace, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return m.Wait, nil
}
