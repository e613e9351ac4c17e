// Command ramserver holds files in memory, mounts them on this machine and
// serves them over NFS and SMB.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func main() {
	if base := filepath.Base(os.Args[0]); base == helperName {
		os.Exit(mountHelper(os.Args[1:]))
	}
	os.Exit(run(os.Args[1:]))
}

// run runs a command and returns its exit status.
func run(args []string) int {
	cmd := newRoot(args)
	cmd.SetArgs(args)
	err := cmd.Execute()
	var child *childError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &child):
		fmt.Fprint(os.Stderr, child.said)
		return child.code
	}
	fmt.Fprintln(os.Stderr, "ramserver:", err)
	if errors.As(err, new(failure)) {
		return 1
	}
	return 2
}

// failure is an error that is not the user's: exit status 1. Every other one
// is about what was asked for: exit status 2.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// instance says which server a command is about.
type instance struct {
	name     string
	stateDir string
	named    bool     // the name was given
	args     []string // the command line
}

func newRoot(args []string) *cobra.Command {
	in := instance{args: args}
	cmd := &cobra.Command{
		Use:   "ramserver",
		Short: "A file store in memory, mounted here and served over NFS and SMB",
		Long: `ramserver holds files in memory, mounts them on this machine and serves
them over NFS and SMB.

What it holds is lost when it ends: after a restart the store is empty.`,
		Example: `  sudo ramserver mount /ramdisk --size 4G
  sudo ramserver umount /ramdisk
  ramserver serve --size 4G
  ramserver status
  ramserver stop`,
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := applyEnv(cmd); err != nil {
				return err
			}
			in.named = cmd.Flags().Changed("name")
			if in.stateDir == "" {
				return nil
			}
			// A server in the background leaves the current folder.
			var err error
			in.stateDir, err = filepath.Abs(in.stateDir)
			return err
		},
	}
	cmd.PersistentFlags().StringVar(&in.name, "name", "default", "`name` of the server, if several run; that of a mount is made from its folder")
	cmd.PersistentFlags().StringVar(&in.stateDir, "state-dir", "", "`folder` of control sockets (default /run/ramserver for root, $XDG_RUNTIME_DIR/ramserver for others)")
	cmd.AddCommand(newMount(&in), newUmount(&in), newServe(&in), newStatus(&in), newStop(&in), newService(&in), newDoctor(), newUser(), newVersion(), newStandIn())
	return cmd
}
