package fusefs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"ramserver/loopback/coherence"
	"ramserver/loopback/fusefs"
	"ramserver/memstore"
)

// within fails the test if f takes longer than d.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s takes more than %v", what, d)
	}
}

func mounted(t *testing.T, dir string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), " "+dir+" ")
}

// TestUnmount: a mount that is used is not unmounted, but can be aborted.
func TestUnmount(t *testing.T) {
	for _, how := range []string{"unmount", "abort", "context"} {
		t.Run(how, func(t *testing.T) {
			dir, store, _ := newMount(t)
			dir = filepath.Join(dir, "sub")
			if err := exec.Command("mkdir", dir).Run(); err != nil {
				t.Fatal(err)
			}
			other, err := memstore.New(memstore.Config{Name: "other", Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			// On a folder of another mount: both work as one expects.
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if _, err := fusefs.New(ctx, store, dir, fusefs.Options{}); !errors.Is(err, memstore.ErrExist) {
				t.Errorf("a store's second mount: %v", err)
			}
			m, err := fusefs.New(ctx, other, dir, fusefs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			user := exec.Command("bash", "-c", "exec 3>held; echo data >&3; echo; read; echo more >&3")
			user.Dir = dir
			in, _ := user.StdinPipe()
			out, _ := user.StdoutPipe()
			if err := user.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if err := m.Unmount(); !errors.Is(err, unix.EBUSY) {
				t.Errorf("unmount while in use: %v", err)
			}
			within(t, 5*time.Second, how, func() {
				switch how {
				case "abort":
					if err := m.Abort(); err != nil {
						t.Error(err)
					}
				case "context":
					cancel()
					m.Wait()
				}
				in.Close()
				if err := user.Wait(); (err == nil) != (how == "unmount") {
					t.Errorf("the process that used it: %v", err)
				}
				if how == "unmount" {
					if err := m.Unmount(); err != nil {
						t.Error(err)
					}
				}
			})
			if mounted(t, dir) {
				t.Error("still mounted")
			}
			if err := other.Check(); err != nil {
				t.Error(err)
			}
			if n := other.Statfs().UsedInodes; n != 2 {
				t.Errorf("%d inodes, want the root and a file", n)
			}
		})
	}
}

// TestUnmountWithCopies: a copy of the mount in another namespace does not keep
// it alive.
func TestUnmountWithCopies(t *testing.T) {
	dir, _, m := newMount(t)
	other := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-c", "cd "+dir+"; echo; read")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer in.Close()
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "unmount", func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
	if mounted(t, dir) {
		t.Error("still mounted")
	}
}

// TestUnmountUnderChange: changes by others that wait for the kernel go on when
// there is none any more.
func TestUnmountUnderChange(t *testing.T) {
	for range 5 {
		dir, store, m := newMount(t)
		if out, err := exec.Command("bash", "-c", "cd "+dir+" && seq 9 | xargs touch && cat *").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			c := client{store.Root(), memstore.Root()}
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					c.Do(coherence.Call{Op: "append", Name: fmt.Sprint(1 + n%9), Data: []byte("x")})
					c.Do(coherence.Call{Op: "create", Name: "new"})
					c.Do(coherence.Call{Op: "remove", Name: "new"})
				}
			}
		}()
		within(t, 5*time.Second, "abort", func() {
			if err := m.Abort(); err != nil {
				t.Error(err)
			}
			close(stop)
			<-done
		})
	}
}

// TestKill: a server that is killed hangs nobody, and the next mount cleans up.
func TestKill(t *testing.T) {
	if dir := os.Getenv("FUSEFS_TEST_KILL"); dir != "" {
		store, err := memstore.New(memstore.Config{Name: "killed", Size: 64 << 20})
		if err == nil {
			_, err = fusefs.New(context.Background(), store, dir, fusefs.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("\n")
		select {}
	}
	dir, _, m := newMount(t)
	if err := m.Unmount(); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Args[0], "-test.run=^TestKill$")
	server.Env = childEnv("FUSEFS_TEST_KILL=" + dir)
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	var users []*exec.Cmd
	for k := range 3 {
		user := exec.Command("bash", "-ec", fmt.Sprintf("while true; do echo data >%[1]d; cat %[1]d >/dev/null; flock %[1]d true; mv %[1]d x%[1]d; done", k))
		user.Dir = dir
		if err := user.Start(); err != nil {
			t.Fatal(err)
		}
		users = append(users, user)
	}
	time.Sleep(100 * time.Millisecond) // under load
	server.Process.Kill()
	server.Wait()
	within(t, 5*time.Second, "everything", func() {
		for _, user := range users {
			if user.Wait() == nil {
				t.Error("a process noticed nothing")
			}
		}
		store, err := memstore.New(memstore.Config{Name: t.Name(), Size: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		m, err := fusefs.New(context.Background(), store, dir, fusefs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bash", "-c", "echo data >"+dir+"/f").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
	if mounted(t, dir) {
		t.Error("still mounted")
	}
}

func TestMountErrors(t *testing.T) {
	dir, _, _ := newMount(t)
	store, err := memstore.New(memstore.Config{Name: "store", Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		want error
	}{
		{filepath.Join(dir, "absent"), unix.ENOENT},
		{file, unix.ENOTDIR},
		{file + "/x", unix.ENOTDIR},
	} {
		if _, err := fusefs.New(t.Context(), store, c.dir, fusefs.Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.dir, err, c.want)
		}
	}
	if err := store.Check(); err != nil {
		t.Error(err)
	}
}

// TestReadOnly: local processes change nothing, others do.
func TestReadOnly(t *testing.T) {
	dir, _, m := newMount(t)
	if err := m.Unmount(); err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{Name: t.Name(), Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	m, err = fusefs.New(context.Background(), store, dir, fusefs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
		store.Close()
	})
	c := client{store.Root(), memstore.Root()}
	c.Do(coherence.Call{Op: "create", Name: "f", Data: []byte("data")})
	l := newLocal(t, dir)
	if a := l.Do(coherence.Call{Op: "see", Name: "f"}); string(a.Data) != "data" {
		t.Errorf("%+v", a)
	}
	for _, op := range []string{"create", "append", "truncate", "chmod", "rename", "remove"} {
		if a := l.Do(coherence.Call{Op: op, Name: "f", To: "g"}); !strings.Contains(a.Err, "read-only") {
			t.Errorf("%s: %q", op, a.Err)
		}
	}
}
