//go:build !windows

package main

import "log/slog"

// underManager is for Windows: other service managers use signals.
func underManager(*slog.Logger, string, func()) (done func(failed bool)) { return func(bool) {} }
