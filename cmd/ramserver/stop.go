package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newStop(in *instance) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop a server and wait until it is gone",
		Long: `Stop a server and wait until it is gone. It finishes the requests it is
working on, for at most ten seconds. What it held in memory is lost. One whose
store is mounted here, with files open, goes on: see "ramserver umount".`,
		Example: `  ramserver stop
  ramserver stop --name scratch --timeout 30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return fmt.Errorf("--timeout %s: want more than 0", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			dir, p, err := in.find()
			if err != nil {
				return err
			}
			if err := in.end(ctx, dir, p, false); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "server %q (process %d) stopped\n", p.Name, p.PID)
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
