// Command ramserver holds files in memory, mounts them on this machine and
// serves them over NFS and SMB.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
			return in.settle(cmd)
		},
	}
	cmd.PersistentFlags().StringVar(&in.name, "name", "default", "`name` of the server, if several run; that of a mount is made from its folder")
	cmd.PersistentFlags().StringVar(&in.stateDir, "state-dir", "", "`folder` of control sockets (default /run/ramserver for root, $XDG_RUNTIME_DIR/ramserver for others)")
	cmd.AddCommand(newMount(&in), newUmount(&in), newServe(&in), newStatus(&in), newStop(&in), newService(&in), newDoctor(), newUser(), newVersion(), newStandIn())
	cmd.InitDefaultCompletionCmd()
	cmd.SetFlagErrorFunc(flagError)
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // so that Args are checked
		}
	}
	return cmd
}

// settle takes note of which server the command line, the environment and the file
// of settings name.
func (in *instance) settle(cmd *cobra.Command) (err error) {
	in.named = cmd.Flags().Changed("name")
	if in.stateDir != "" {
		// A server in the background leaves the current folder.
		in.stateDir, err = filepath.Abs(in.stateDir)
	}
	return err
}

// flagError is a mistake in the flags of a command, with what to do.
func flagError(cmd *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		return fmt.Errorf("--%s %w", bad.GetFlag().Name, valueError(bad.GetFlag(), bad.GetValue(), bad.Unwrap()))
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// oneFolder is the arguments of a command that wants one.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s: want one folder, as %s /ramdisk", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}
