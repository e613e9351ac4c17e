//go:build kernel && linux

package kerneltest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDelegations has what a client may keep to itself recalled by others.
func TestDelegations(t *testing.T) {
	t.Parallel()
	t.Run("recall", func(t *testing.T) {
		n := newNetwork(t)
		n.serve("--size", "64M")
		n.guest(5*time.Minute, "delegations.sh", "recall")
	})
	// A compiler opens the same headers again and again.
	t.Run("headers", func(t *testing.T) {
		calls := make(map[string]int)
		for _, delegations := range []string{"on", "off"} {
			t.Run(delegations, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("--size", "64M", "--delegations", delegations)
				name := "headers-" + delegations
				n.guest(10*time.Minute, "delegations.sh", "headers", "/run/host/"+name)
				text, err := os.ReadFile(filepath.Join(stage, name))
				if err != nil {
					t.Fatal(err)
				}
				if calls[delegations], err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
					t.Fatal(err)
				}
			})
		}
		t.Logf("%d calls, without delegations %d", calls["on"], calls["off"])
		if calls["off"] < 10*calls["on"] {
			t.Errorf("%d calls, without delegations %d: not a tenth", calls["on"], calls["off"])
		}
	})
}
