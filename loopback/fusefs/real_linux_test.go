//go:build kernel

package fusefs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ramserver/loopback/posixtest"
)

// long says that there is time for the runs of minutes.
var long = os.Getenv("KERNEL_ALL") == "1"

// realPrograms are larger programs that work on a file system hard, each in a
// folder of the mount of its own. $REPO is this project, $LONG is 1 if there is
// time.
var realPrograms = []struct {
	needs  string
	long   bool // runs only if there is time
	script string
}{
	// Go's compiler and linker, with everything that they write on the mount.
	{"go", true, `
		export GOCACHE=$PWD/cache GOTMPDIR=$PWD/tmp TMPDIR=$PWD/tmp CGO_ENABLED=0 GOFLAGS=-buildvcs=false
		mkdir tmp
		go build -C "$REPO" -o "$PWD/first" ./cmd/ramserver
		./first version
		go build -C "$REPO" -o "$PWD/second" ./cmd/ramserver
		cmp first second
		test -z "$(ls -A tmp)"
		go vet -C "$REPO" ./memstore
		go clean -cache
		rm -r cache first second tmp`},
	{"initdb", false, `
		export PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
		chown postgres .
		as() { runuser -u postgres -- "$@"; }
		as initdb -D data -A trust --data-checksums >log
		start() { as pg_ctl -D data -w -t 60 -l data/server.log -o "-k $PWD/data -c listen_addresses= -c shared_buffers=16MB -c max_wal_size=64MB" start; }
		start
		as createdb -h "$PWD/data" bench
		as pgbench -h "$PWD/data" -i -q -s $((1 + 4 * LONG)) bench
		as pgbench -h "$PWD/data" -c 4 -j 2 -T $((5 + 25 * LONG)) bench
		sum() { as psql -h "$PWD/data" -At -c 'select sum(abalance), (select sum(tbalance) from pgbench_tellers), (select sum(delta) from pgbench_history) from pgbench_accounts' bench; }
		before=$(sum)
		echo "$before" | awk -F'|' '{ exit !($1 == $2 && $2 == $3) }'
		# The end of a crash: it recovers from what it has written ahead.
		as pg_ctl -D data -m immediate -w stop
		start
		test "$before" = "$(sum)"
		as psql -h "$PWD/data" -c 'vacuum full' bench
		as pg_ctl -D data -m fast -w stop
		as "$(PATH=$PATH command -v pg_checksums)" -D data --check`},
	{"fio", false, `
		run() {
			fio --size=$((16 + 240 * LONG))M --bsrange=512-128k --numjobs=2 --group_reporting \
				--do_verify=1 --verify=crc32c --verify_fatal=1 --randseed=7 "$@" >log 2>&1 || { cat log; exit 1; }
			rm -f ./*.0
		}
		run --name=psync --rw=randwrite --ioengine=psync
		run --name=sequential --rw=write --ioengine=psync --fsync=16
		run --name=mixed --rw=randrw --ioengine=psync
		run --name=mmap --rw=randwrite --ioengine=mmap
		run --name=direct --rw=randwrite --ioengine=libaio --iodepth=16 --direct=1 --bsrange=4k-128k --blockalign=4k
		run --name=falloc --rw=randwrite --ioengine=psync --fallocate=posix
		run --name=trim --rw=randwrite --ioengine=psync --fallocate=none --fdatasync=8`},
	// Packages that a cache on the mount has, and scripts in them.
	{"npm", false, `
		export HOME=$PWD npm_config_cache=$PWD/cache npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
		mkdir packages app
		for n in $(seq 12); do
			mkdir -p packages/p$n/bin packages/p$n/lib/a/b
			echo '{"name":"p'$n'","version":"1.'$n'.0","bin":{"p'$n'":"bin/run.js"},"main":"lib/index.js"}' >packages/p$n/package.json
			printf '#!/usr/bin/env node\nconsole.log(require("..").n)\n' >packages/p$n/bin/run.js
			echo "exports.n = $n" >packages/p$n/lib/index.js
			for f in $(seq 25); do seq $((n * f)) >packages/p$n/lib/a/b/$f.txt; done
			(cd packages && npm pack --silent ./p$n >/dev/null)
		done
		cd app
		npm init -y >/dev/null
		npm install --offline --no-progress ../packages/*.tgz
		test "$(ls node_modules/.bin | wc -l)" = 12
		for n in 1 7 12; do test "$(npx --no-install p$n)" = $n; done
		for n in $(seq 12); do diff -r ../packages/p$n node_modules/p$n; done
		rm -rf node_modules
		npm ci --offline --no-progress
		diff -r ../packages/p11 node_modules/p11
		npm uninstall --offline p11
		test ! -e node_modules/p11 -a ! -e node_modules/.bin/p11`},
	{"stress-ng", false, `
		# All of its class in turn; what it finds wrong by itself fails.
		stress-ng --class filesystem --sequential 1 --timeout $((1 + LONG))s --temp-path "$PWD" --verify --iomix-bytes 64m --hdd-bytes 64m --exclude "$NOT" --skip-silent
		test -z "$(ls -A)"`},
	{"stress-ng", true, `
		stress-ng --class filesystem --all 1 --timeout 60s --temp-path "$PWD" --verify --iomix-bytes 64m --hdd-bytes 64m --exclude "$NOT" --skip-silent
		test -z "$(ls -A)"`},
}

// notStress are the stressors that fail on tmpfs too, or work elsewhere than in
// the folder that they are given.
const notStress = "fiemap,binderfs,chattr,verity"

// TestReal leaves an intact store, which newMount checks.
func TestReal(t *testing.T) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range realPrograms {
		if c.long && !long {
			continue
		}
		t.Run(c.needs, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil && c.needs != "initdb" {
				t.Skip(err)
			}
			dir, _, m := newMount(t)
			if where := os.Getenv("REAL_DIR"); where != "" {
				dir = where // for a comparison
			}
			folder, err := os.MkdirTemp(dir, "")
			if err == nil {
				err = os.Chmod(folder, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			script := exec.Command("timeout", "-k", "10", "900", "bash", "-eo", "pipefail", "-c", c.script)
			script.Dir = folder
			script.Env = append(os.Environ(), "REPO="+repo, "LONG="+map[bool]string{true: "1", false: "0"}[long], "NOT="+notStress)
			start := time.Now()
			if out, err := script.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out[max(0, len(out)-6000):])
			}
			t.Logf("%s: %+v", time.Since(start).Round(time.Second/10), m.Stats())
		})
	}
}

// TestFsxLong is TestFsx for a minute, or for long.
func TestFsxLong(t *testing.T) {
	o := posixtest.FsxOptions{Seed: uint64(time.Now().UnixNano()), Time: time.Minute}
	if long {
		o.Time = 15 * time.Minute
	}
	if dir := inChild(t); dir != "" {
		posixtest.Fsx(t, dir, o)
	}
}
