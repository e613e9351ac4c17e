//go:build !linux

package loopback

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
)

// holds tells whether a check's need is met.
func (c Check) holds() error {
	switch c.Kind {
	case NeedProgram:
		_, err := exec.LookPath(c.Name)
		return err
	case NeedBuild:
		return hasBuild(c.Name)
	default:
		return fmt.Errorf("cannot be checked on this system: %s", c)
	}
}

func (p *Plan) mount(ctx context.Context) error {
	if p.Via == SMB && p.secret != "" {
		program, script := p.script()
		return feed(ctx, program, script)
	}
	return run(ctx, p.Run)
}

// Restrict sets the plan's flags; New has refused them here.
func (p *Plan) Restrict() error { return nil }

// Unmount undoes the mount.
func (p *Plan) Unmount(ctx context.Context) error { return run(ctx, p.Undo) }

// Abandon undoes the mount m whoever uses it and whether or not the server
// lives.
func (p *Plan) Abandon(ctx context.Context, _ *Mounted) error { return run(ctx, p.Force) }

// CleanLost is for Linux: elsewhere there is no FUSE.
func CleanLost(context.Context, string) (bool, error) { return false, nil }

// HasClient is for Linux: elsewhere nobody asks.
func HasClient(netip.AddrPort) bool { return false }
