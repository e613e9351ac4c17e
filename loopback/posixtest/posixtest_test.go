//go:build linux

package posixtest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"ramserver/loopback/posixtest"
)

var (
	fsxOps  = flag.Int("fsx.ops", 600, "operations for each file of TestFsx, 0 for no bound")
	fsxTime = flag.Duration("fsx.time", 0, "time of TestFsx, which lifts -fsx.ops")
	fsxSeed = flag.Uint64("fsx.seed", 0, "first seed of TestFsx, 0 for a random one")
	fsxJobs = flag.Int("fsx.jobs", 3, "files that TestFsx works on at once")
)

// mount is the folder to test and what it lacks: POSIXTEST_DIR and
// POSIXTEST_LACKS, or a folder on /dev/shm.
func mount(t *testing.T) (string, posixtest.Feature) {
	lacks, err := posixtest.ParseFeatures(os.Getenv("POSIXTEST_LACKS"))
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("POSIXTEST_DIR"); dir != "" {
		return dir, lacks
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil || st.Type != unix.TMPFS_MAGIC || st.Bavail*uint64(st.Bsize) < 64<<20 {
		why := "/dev/shm is not a tmpfs with 64 MiB free, and POSIXTEST_DIR is not set"
		if os.Getenv("STRICT") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	dir, err := os.MkdirTemp("/dev/shm", "posixtest-")
	if err == nil {
		err = os.Chmod(dir, 0755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir, lacks | tmpfsLacks(t, dir)
}

// tmpfsLacks finds what this kernel's tmpfs cannot do: user attributes came
// with Linux 6.6, as did O_DIRECT.
func tmpfsLacks(t *testing.T, dir string) (lacks posixtest.Feature) {
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if unix.Fsetxattr(int(f.Fd()), "user.probe", nil, 0) != nil {
		lacks |= posixtest.Xattr
	}
	if fd, err := unix.Open(f.Name(), unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0); err != nil {
		lacks |= posixtest.DirectIO
	} else {
		unix.Close(fd)
	}
	return lacks
}

func TestMount(t *testing.T) {
	dir, lacks := mount(t)
	posixtest.Run(t, dir, lacks)
}

// TestMountAsUser runs TestMount in a child that is not root.
func TestMountAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("TestMount is not run by root already")
	}
	dir, lacks := mount(t)
	const nobody = 65534
	dir, err := os.MkdirTemp(dir, "user-")
	if err == nil {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// The folder that go test builds in is closed to others, but /proc leads to
	// the program itself.
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestMount$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), "POSIXTEST_DIR="+dir, "POSIXTEST_LACKS="+(lacks|posixtest.Root).String())
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as uid %d: %v\n%s", nobody, err, out)
	}
}

func TestFsx(t *testing.T) {
	dir, lacks := mount(t)
	o := posixtest.FsxOptions{Seed: *fsxSeed, Ops: *fsxOps, Time: *fsxTime, Lacks: lacks}
	if o.Time != 0 {
		o.Ops = 0
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	for i := range *fsxJobs {
		o := o
		o.Seed += uint64(i)
		o.Size = 256 << (10 + i%3) // 256 KiB, 512 KiB, 1 MiB
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			posixtest.Fsx(t, dir, o)
		})
	}
}

func TestParseFeatures(t *testing.T) {
	for _, c := range []struct {
		list string
		want posixtest.Feature
		err  string
	}{
		{"", 0, ""},
		{"root", posixtest.Root, ""},
		{"nfs3,locks", posixtest.NFS3 | posixtest.Locks, ""},
		{"root,warp", 0, `"warp"`},
	} {
		got, err := posixtest.ParseFeatures(c.list)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %v, %v", c.list, got, err)
		}
		if again, err := posixtest.ParseFeatures(got.String()); err != nil || again != got {
			t.Errorf("%v does not read back: %v, %v", got, again, err)
		}
	}
}
