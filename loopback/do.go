package loopback

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Check tells why the plan cannot work on this machine, and what to do.
func (p *Plan) Check() error {
	for _, c := range p.Checks {
		if err := c.holds(); err != nil {
			return fmt.Errorf("%s: %w: %s", p.Via, err, c.Help)
		}
	}
	return nil
}

// Mount carries the plan out; the server answers already. FUSE is for the
// server itself: package fusefs mounts with the plan's options.
func (p *Plan) Mount(ctx context.Context) error {
	if p.Via == FUSE {
		panic("loopback: the server mounts FUSE")
	}
	return p.mount(ctx)
}

// run runs a command; its error has what the command printed.
func run(ctx context.Context, args []string) error { return feed(ctx, args, "") }

// feed is run with standard input.
func feed(ctx context.Context, args []string, in string) error {
	if len(args) == 0 {
		return errors.New("there is no command for this")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	if in != "" {
		cmd.Stdin = strings.NewReader(in)
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said := strings.Join(strings.Fields(string(out)), " ")
	if strings.Contains(strings.ToLower(said), "busy") {
		err = ErrBusy
	}
	return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said)
}
