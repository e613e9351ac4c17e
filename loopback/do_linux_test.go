package loopback

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const exampleTable = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
43 22 0:38 / /ramdisk rw,nosuid,nodev,relatime shared:7 - fuse.ramserver ramserver rw,user_id=0
44 22 0:39 / /with\040space\134 rw,noexec - nfs 127.0.0.1:/ramdisk rw,vers=3
45 43 0:40 / /ramdisk ro - tmpfs tmpfs rw
`

func TestFind(t *testing.T) {
	for _, tc := range []struct{ dir, kind, source, flags string }{
		{"/", "ext4", "/dev/vda", "rw,relatime"},
		{"/ramdisk", "tmpfs", "tmpfs", "ro"}, // hides the other
		{`/with space\`, "nfs", "127.0.0.1:/ramdisk", "rw,noexec"},
		{"/ram", "", "", ""},
	} {
		m, err := find(exampleTable, tc.dir)
		if err != nil || (m == nil) != (tc.kind == "") {
			t.Errorf("%s: %+v, %v", tc.dir, m, err)
		} else if m != nil && (m.Type != tc.kind || m.Source != tc.source || strings.Join(m.flags, ",") != tc.flags) {
			t.Errorf("%s: %+v", tc.dir, m)
		}
	}
	for _, bad := range []string{"x", "1 2 3", "a b c:d / / rw - ext4 x rw", "1 2 3:4 / / rw -"} {
		if m, err := find(bad+"\n", "/"); err == nil {
			t.Errorf("%q: %+v", bad, m)
		}
	}
	if m, err := Find("/proc"); err != nil || m == nil || m.Type != "proc" {
		t.Errorf("/proc: %+v, %v", m, err)
	}
}

func FuzzFind(f *testing.F) {
	f.Add(exampleTable, "/ramdisk")
	f.Add("1 2 3:4 / / rw - ext4 x rw", "/")
	f.Fuzz(func(t *testing.T, table, dir string) {
		if m, err := find(table, dir); err == nil && m != nil && m.Dir != dir {
			t.Errorf("found %+v", m)
		}
	})
}

// A mount in use is told from one that is not, and by whom; the end is seen.
func TestMountedTmpfs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	dir := t.TempDir()
	p := &Plan{System: "linux", Via: NFS, Dir: dir, Type: "tmpfs", Source: "test", Options: []string{"size=1M"}, Flags: []string{"noexec"}}
	ctx := context.Background()
	if err := p.Mount(ctx); err != nil {
		t.Skipf("mounting is not possible here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := p.Restrict(); err != nil {
		t.Fatal(err)
	}
	m, err := Find(dir)
	if err != nil || m == nil || !m.Is(p) || !strings.Contains(strings.Join(m.flags, " "), "noexec") {
		t.Fatalf("found %+v, %v", m, err)
	}
	if m.Is(&Plan{System: "linux", Type: "tmpfs", Source: "another"}) {
		t.Error("is taken for another")
	}

	for _, tc := range []struct{ script, how string }{
		{"cd $1; exec sleep 60", "current folder " + dir},
		{"exec sleep 60 >$1/out", "open " + dir + "/out"},
	} {
		cmd := exec.Command("sh", "-c", tc.script, "sh", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var users []User
		for range 500 {
			if users = Users(m); len(users) == 1 && users[0].Name == "sleep" {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if len(users) != 1 || users[0].PID != cmd.Process.Pid || users[0].How != tc.how {
			t.Errorf("%s: used by %v", tc.script, users)
		}
		if err := p.Unmount(ctx); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: unmount: %v", tc.script, err)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}

	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, m) }()
	if err := p.Unmount(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("watch: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := Watch(cancelled, m); !errors.Is(err, context.Canceled) {
		t.Errorf("watch with a context that is done: %v", err)
	}
}

// What a folder of /proc tells.
func TestUse(t *testing.T) {
	m := &Mounted{ID: 43, Major: 0, Minor: 0x26, Dir: "/ramdisk"}
	for _, tc := range []struct{ name, cwd, info, maps, want string }{
		{"nothing", "/", "mnt_id:\t22\n", "7f00-7f01 r-xp 00000000 fe:00 99 /bin/sh\n", ""},
		{"folder", "/ramdisk/a", "", "", "current folder /ramdisk/a"},
		{"another of that prefix", "/ramdisk2", "", "", ""},
		{"open", "/", "pos:\t0\nmnt_id:\t43\n", "", "open /ramdisk/f"},
		{"mapped", "/", "", "7f00-7f01 rw-s 00000000 00:26 5 /ramdisk/a b (deleted)\n", "mapped /ramdisk/a b (deleted)"},
		{"nonsense", "/", "mnt_id", "x\n\n", ""},
	} {
		dir := t.TempDir()
		os.MkdirAll(filepath.Join(dir, "fdinfo"), 0o755)
		os.MkdirAll(filepath.Join(dir, "fd"), 0o755)
		os.Symlink(tc.cwd, filepath.Join(dir, "cwd"))
		os.Symlink("/ramdisk/f", filepath.Join(dir, "fd", "3"))
		os.WriteFile(filepath.Join(dir, "fdinfo", "3"), []byte(tc.info), 0o600)
		os.WriteFile(filepath.Join(dir, "maps"), []byte(tc.maps), 0o600)
		if got := use(dir, m); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestHasClient(t *testing.T) {
	const table = `NV SERVER   PORT USE HOSTNAME
v3 7f000001  801   1 127.0.0.1
v4 00000000000000000000000000000001 4e20   2 ::1
`
	for _, tc := range []struct {
		at   string
		want bool
	}{
		{"127.0.0.1:2049", true}, {"127.0.0.1:2050", false}, {"127.0.0.2:2049", false},
		{"[::1]:20000", true}, {"[::1]:2049", false},
	} {
		if got := hasClient(table, netip.MustParseAddrPort(tc.at)); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.at, got, tc.want)
		}
	}
}
