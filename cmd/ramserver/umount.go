package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func newUmount(in *instance) *cobra.Command {
	var timeout time.Duration
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:     "umount DIR",
		Aliases: []string{"unmount"},
		Short:   "Unmount a store and end its server",
		Long: `Unmount what "ramserver mount" has mounted, and end its server. What it held
in memory is lost.

While files are open there, or somebody's current folder is in it, nothing
happens but a message that names who. With --force the mount goes all the same,
and what these programs do with it fails.`,
		Example: `  sudo ramserver umount /ramdisk
  sudo ramserver umount /ramdisk --force`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return fmt.Errorf("--timeout %s: want more than 0", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			p, err := in.umount(ctx, args[0], force, cmd.ErrOrStderr())
			if err != nil || p == nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s unmounted; server %q (process %d) stopped\n", p.Mount.Plan.Dir, p.Name, p.PID)
			return err
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also while files are open")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// umount ends the server that has mounted a store at a folder, and returns it:
// nil if it was dead, and what it left has been cleaned up.
func (in *instance) umount(ctx context.Context, arg string, force bool, msgs io.Writer) (*process, error) {
	given, err := absolute(arg)
	if err != nil {
		return nil, err
	}
	dir, err := in.folder(false)
	if err != nil {
		if was, e := cleanLost(given, msgs); was || e != nil {
			return nil, e
		}
		return nil, err
	}
	// Known before it is cleaned up, and not to be touched before.
	dead := in.mountedAt(dir, given, false)
	if err := in.sweep(msgs); err != nil || dead != nil {
		return nil, err
	}
	server := in.mountedAt(dir, given, true)
	if server == nil {
		if was, err := cleanLost(given, msgs); was || err != nil {
			return nil, err
		}
		if real, err := resolve(given); err == nil {
			server = in.mountedAt(dir, real, true)
		}
	}
	if server == nil {
		return nil, failure{fmt.Errorf("%s: no server has mounted a store there (state folder %s)", given, dir)}
	}
	p := server.peek(dir)
	if p == nil {
		return nil, in.sweep(msgs) // it has just died
	}
	err = server.end(ctx, dir, p, force)
	if err == nil {
		return p, in.sweep(msgs) // if it was killed meanwhile
	}
	if !force || !p.alive() {
		return p, err
	}
	// It does not even answer.
	fmt.Fprintf(msgs, "ramserver: %v; killing process %d\n", err, p.PID)
	if proc, err := os.FindProcess(p.PID); err == nil {
		proc.Kill()
	}
	for p.alive() {
		time.Sleep(10 * time.Millisecond)
	}
	return nil, in.sweep(msgs)
}

// mountedAt finds the server that has mounted a store at a folder, among those
// that live or those that are dead.
func (in *instance) mountedAt(dir, folder string, living bool) *instance {
	for _, other := range in.all(dir) {
		var p process
		b, err := os.ReadFile(other.file(dir))
		if err == nil && json.Unmarshal(b, &p) == nil && p.Mount != nil && p.Mount.Plan != nil && p.Mount.Plan.Dir == folder && p.alive() == living {
			return other
		}
	}
	return nil
}

// end asks a server to end and waits until it has.
func (in *instance) end(ctx context.Context, dir string, p *process, force bool) error {
	path := "/stop"
	if force {
		path += "?force=true"
	}
	var asked process
	if err := ask(ctx, in.socket(dir), "POST", path, &asked); err != nil && p.alive() {
		return err
	}
	for p.alive() {
		select {
		case <-ctx.Done():
			return failure{fmt.Errorf("server %q (process %d) did not end in time", p.Name, p.PID)}
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
