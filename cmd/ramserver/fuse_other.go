//go:build !linux

package main

import (
	"errors"
	"log/slog"

	"ramserver/memstore"
)

// mountFUSE is for Linux only, as package loopback says when it plans.
func mountFUSE(*memstore.Store, string, *plan, *slog.Logger) (wait func(), err error) {
	return nil, errors.ErrUnsupported
}
