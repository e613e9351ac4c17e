//go:build kernel && linux

package kerneltest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var treeFiles = flag.String("tree", "60000", "files of TestTree's tree")

// TestTree prints how long tar, cp -a and rm -rf take on a large source tree. The
// same on other mounts is in loopback/fusefs/bench.
func TestTree(t *testing.T) {
	if !long {
		t.Skip("it takes some minutes")
	}
	build := exec.Command("go", "build", "-o", filepath.Join(stage, "treebench"), "ramserver/loopback/fusefs/bench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Setenv("UML_MEM", "4G") // of which the tmpfs gets most
	for _, version := range []string{"4.2", "3"} {
		t.Run(version, func(t *testing.T) {
			n := newNetwork(t)
			n.serve("--size", "6G")
			n.guest(30*time.Minute, "tree.sh", "vers="+version, *treeFiles)
		})
	}
}
