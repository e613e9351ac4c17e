package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prng is bcryptprimitives.dll with the one function that Go's runtime calls in
// it, which Debian 12's Wine lacks.
const prng = `	.intel_syntax noprefix
	.globl ProcessPrng, DllMain
ProcessPrng:
	test rdx, rdx
	je 2f
1:	rdrand rax
	jnc 1b
	mov [rcx], al
	inc rcx
	dec rdx
	jne 1b
2:
DllMain:
	mov eax, 1
	ret
	.section .drectve
	.ascii "-export:ProcessPrng"
`

// TestWine runs the program that Windows gets, as far as Wine is Windows.
func TestWine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: does not start Wine")
	}
	if _, err := exec.LookPath("wine"); err != nil {
		t.Skip("Wine is not installed here: the Windows program is built, but not tried: ", err)
	}
	dir := t.TempDir()
	run := func(env []string, args ...string) (string, error) {
		cmd := exec.Command("timeout", append([]string{"120"}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		cmd.WaitDelay = time.Second // Wine's server keeps the output open
		out, err := cmd.CombinedOutput()
		return strings.ReplaceAll(string(out), "\r", ""), err
	}
	exe := filepath.Join(dir, "ramserver.exe")
	if out, err := run([]string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}, "go", "build", "-o", exe, "."); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	prefix := filepath.Join(dir, "prefix")
	wineEnv := []string{"WINEPREFIX=" + prefix, "WINEDEBUG=-all", "HOME=" + dir}
	wine := func(args ...string) (string, error) { return run(wineEnv, append([]string{"wine", exe}, args...)...) }
	t.Cleanup(func() { run(wineEnv, "wineserver", "-k", "-w") })

	out, err := wine("version")
	if strings.Contains(out, "bcryptprimitives.dll not found") {
		source, object := filepath.Join(dir, "prng.s"), filepath.Join(dir, "prng.o")
		if err := os.WriteFile(source, []byte(prng), 0o600); err != nil {
			t.Fatal(err)
		}
		dll := filepath.Join(prefix, "drive_c/windows/system32/bcryptprimitives.dll")
		for _, args := range [][]string{
			{"x86_64-w64-mingw32-as", "-o", object, source},
			{"x86_64-w64-mingw32-ld", "--shared", "-e", "DllMain", "-o", dll, object},
		} {
			if out, err := run(nil, args...); err != nil {
				t.Skipf("this Wine cannot run Go programs, and binutils-mingw-w64-x86-64 is not installed: %s: %v\n%s", args[0], err, out)
			}
		}
		out, err = wine("version")
	}
	if err != nil || !strings.Contains(out, "windows/amd64") {
		t.Fatalf("version: %v\n%s", err, out)
	}

	for _, c := range []struct{ args, want string }{
		{"mount R: --size 64M --via nfs --print", `mount -o anon,nolock,mtype=hard \\127.0.0.1\ramdisk R:`},
		{"mount R: --size 64M --via smb --print", `net use R: \\127.0.0.1\ramdisk`},
		{"mount folder --size 64M --via nfs --print", `"FOLDER": want a drive`},
		{"status", "no server is running"},
	} {
		if out, _ := wine(strings.Fields(c.args)...); !strings.Contains(out, c.want) {
			t.Errorf("%s: no %q in\n%s", c.args, c.want, out)
		}
	}

	const state = `C:\state`
	served := make(chan string, 1)
	go func() {
		out, _ := wine("serve", "--size", "64M", "--nfs-port", "0", "--portmap", "off", "--state-dir", state)
		served <- out
	}()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		select {
		case out := <-served:
			if strings.Contains(out, "listen unix") && strings.Contains(out, "#10047") {
				t.Log("serve is not tried: this Wine has no local sockets, as Windows has since 10 1803, for the server to be controlled by")
				return
			}
			t.Fatalf("serve ended:\n%s", out)
		default:
		}
		if out, err := wine("status", "--state-dir", state, "--interval", "0"); err == nil {
			if !strings.Contains(out, "ramdisk") {
				t.Errorf("status:\n%s", out)
			}
			break
		}
	}
	if out, err := wine("stop", "--state-dir", state); err != nil {
		t.Errorf("stop: %v\n%s", err, out)
	}
	if out := <-served; !strings.Contains(out, readyLine) {
		t.Errorf("serve said\n%s", out)
	}
}
