package fusefs_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestPrograms runs what people run, in a folder of the mount of its own.
func TestPrograms(t *testing.T) {
	dir, _, _ := newMount(t)
	for _, c := range []struct{ needs, script string }{
		{"git", `
			export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
			git init -q -b main one
			for d in 1 2; do mkdir one/$d; for f in $(seq 30); do echo "$d $f" >one/$d/$f; done; done; seq 30000 >one/large
			git -C one add .
			git -C one commit -q -m first
			git clone -q one two
			for f in $(seq 30); do echo more >>two/1/$f; done; seq 30010 >two/large
			git -C two commit -q -a -m second
			git -C two gc -q
			git -C two fsck --strict
			git clone -q --no-local two three
			test -z "$(git -C three status --porcelain)"
			cmp two/1/7 three/1/7
			rm -rf one two three`},
		{"sqlite3", `
			sqlite3 db 'create table t (who int, n int)'
			for mode in wal delete; do
				sqlite3 db "pragma journal_mode=$mode" >mode
				test "$(cat mode)" = $mode
				for who in 1 2; do
					for n in $(seq 10); do echo "insert into t values ($who, $n);"; done | sqlite3 -cmd '.timeout 20000' db & pids[$who]=$!
				done
				wait ${pids[1]}; wait ${pids[2]}
			done
			test "$(sqlite3 db 'select count(*) from t; pragma integrity_check' | tr '\n' ' ')" = "40 ok "`},
		{"tar", `
			mkdir -p src/a/b src/empty
			for f in $(seq 40); do head -c $((f * 1111)) /dev/urandom >src/a/b/$f; done
			ln -s b/1 src/a/link
			ln src/a/b/1 src/a/hard
			mkfifo src/pipe
			truncate -s 10M src/sparse
			chmod 4750 src/a/b/2
			touch -d '1999-01-01 12:34:56.789' src/a/b/3 src/a/b
			tar --sparse -cf t.tar -C src .
			mkdir dst
			tar --sparse -xpf t.tar -C dst
			tar --compare -f t.tar -C dst
			diff -r src dst 2>&1 | grep -v 'is a fifo' && exit 1
			cp -a src copy
			tar --compare -f t.tar -C copy
			rm -rf src dst copy t.tar
			test -z "$(ls -A)"`},
	} {
		t.Run(c.needs, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				if os.Getenv("STRICT") == "1" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			cmd := exec.Command("bash", "-e", "-c", c.script)
			var err error
			if cmd.Dir, err = os.MkdirTemp(dir, ""); err != nil {
				t.Fatal(err)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
