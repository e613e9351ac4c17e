//go:build kernel && linux

package kerneltest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	// A guest that keeps files hears of it at once when another one changes them, or
	// the server's machine does, by FUSE and by SMB.
	t.Run("holders", func(t *testing.T) {
		n := newNetwork(t)
		disk := filepath.Join(t.TempDir(), "disk")
		n.mount(disk, n.smb()...)
		in := n.folder("holders")
		var both sync.WaitGroup
		both.Go(func() { n.guestNumber(1, 5*time.Minute, "delegations.sh", "hold", in) })
		both.Go(func() { n.guestNumber(2, 5*time.Minute, "delegations.sh", "change", in) })
		defer both.Wait()
		within := func(what string, limit time.Duration, do func() error) time.Duration {
			began := time.Now()
			if err := do(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			took := time.Since(began)
			if took > limit {
				t.Errorf("%s: took %v", what, took)
			}
			return took
		}

		if !n.await(in, "guest.seen") {
			return
		}
		at := func(name string) string { return filepath.Join(disk, name) }
		within("written by FUSE", 2*time.Second, func() error { return os.WriteFile(at("fuse-write"), []byte("two\n"), 0644) })
		within("removed by FUSE", 2*time.Second, func() error { return os.Remove(at("fuse-remove")) })
		within("renamed by FUSE", 2*time.Second, func() error { return os.Rename(at("fuse-new"), at("fuse-rename")) })
		n.tell(in, "fuse")

		if !n.await(in, "fuse.seen") {
			return
		}
		two := filepath.Join(t.TempDir(), "two")
		if err := os.WriteFile(two, []byte("two\n"), 0644); err != nil {
			t.Fatal(err)
		}
		smb := func(command string) func() error {
			return func() error {
				out := n.exec("smbclient", "//"+address+"/ramdisk", "-p", "1445", "-U", "root%secret", "-c", command)
				if strings.Contains(out, "NT_STATUS") {
					return errors.New(out)
				}
				return nil
			}
		}
		// Of the program's own time as much as it takes where nobody keeps the file.
		limit := 2*time.Second + within("written by SMB, unheld", time.Minute, smb("put "+two+" unheld"))
		within("written by SMB", limit, smb("put "+two+" smb-write"))
		within("removed by SMB", limit, smb("del smb-remove"))
		within("renamed by SMB", limit, smb("rename smb-new smb-rename -f"))
		n.tell(in, "smb")
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
