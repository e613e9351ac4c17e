# programs.sh PART: real programs on the mount. $HOSTDIR has a git repository
# (repo), a C project (cproject) and a source tree (tree).
. "$HOSTDIR/lib.sh"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_CONFIG_KEY_1=gc.auto GIT_CONFIG_VALUE_1=0

git_clone() {
	git clone -q --no-local "$HOSTDIR/repo" git
	cd git
	want "$(git -C "$HOSTDIR/repo" rev-parse HEAD)" "$(git rev-parse HEAD)" 'HEAD'
	want '' "$(git status --porcelain)" 'git status'
}
git_commit() {
	cd git
	git checkout -q -b topic HEAD~3
	for f in dir1/*; do echo changed >>"$f"; done
	echo new >added
	git add -A
	git commit -q -m topic
	git mv dir2 moved
	git commit -q -m moved
	git merge -q -m merge -s ours main
	git stash list
	git checkout -q main
	git checkout -q topic
	want '' "$(git status --porcelain)" 'git status'
}
git_gc() {
	cd git
	git gc -q --prune=now
	git fsck --strict --full
	git clone -q . ../git2 # by hard links
	want "$(git rev-parse HEAD)" "$(git -C ../git2 rev-parse HEAD)" 'HEAD of the clone'
	git log --stat >/dev/null
}

sqlite_writers() {
	local journal=$1 db=$PWD/$1.db n=40 i pids=()
	sqlite3 "$db" "PRAGMA journal_mode=$journal; CREATE TABLE t(who, n, pad, UNIQUE(who, n));"
	for who in 1 2 3; do
		for ((i = 0; i < n; i++)); do
			echo "BEGIN IMMEDIATE; INSERT INTO t VALUES($who, $i, hex(randomblob(700))); COMMIT;"
		done | sqlite3 -cmd '.timeout 60000' -bail "$db" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	want $((3 * n)) "$(sqlite3 "$db" 'SELECT count(*) FROM t')" 'rows'
	want ok "$(sqlite3 "$db" 'PRAGMA integrity_check')" 'integrity_check'
	sqlite3 "$db" 'DELETE FROM t WHERE n % 2; VACUUM;'
	want ok "$(sqlite3 "$db" 'PRAGMA integrity_check')" 'integrity_check after VACUUM'
}

c_build() {
	cp -r "$HOSTDIR/cproject" c
	cd c
	make -s -j3 prog
	want "$(cat expected)" "$(./prog)" 'the program says'
	make -s prog | { ! grep .; } # nothing to do
	sleep 1.1
	touch unit3.c
	want 'cc unit3.c' "$(make -n prog | grep -o 'cc unit[0-9]*.c')" 'compiled again'
	make -s prog
	./prog >/dev/null
}

# By SMB there is a copy of the tree without what Linux's client cannot have: a
# backslash, and what is not UTF-8.
tree=$HOSTDIR/tree
case $version in cifs:*)
	tree=/tmp/tree
	cp -a "$HOSTDIR/tree" $tree
	find $tree -name '*\\*' -delete
	rm $tree/odd/$'\377\376'
	;;
esac
tar_tree() {
	mkdir tar
	tar -C "$tree" -cf - . | tar -C tar -xpf -
	diff -r --no-dereference "$tree" tar
	tar -C tar -cf tar.tar .
	tar -C "$tree" -df tar.tar
	rm tar.tar
}
rsync_twice() {
	rsync -aH "$tree/" rsync/
	want '' "$(rsync -aHi --delete "$tree/" rsync/)" 'second run'
	want '' "$(rsync -aHic "$tree/" rsync/)" 'run with checksums'
	echo x >>rsync/links/file
	rm -r rsync/odd
	rsync -aH --delete "$tree/" rsync/
	diff -r --no-dereference "$tree" rsync
}

many_files() {
	local d i
	for ((d = 0; d < 100; d++)); do
		mkdir -p "many/$d"
		for ((i = 0; i < 100; i++)); do : >"many/$d/$i"; done
	done
	want 10000 "$(find many -type f | wc -l)" 'files found'
	want 10101 "$(find many | sort -u | wc -l)" 'names found'
}
many_removed() {
	rm -rf many
	want no "$([ -e many ] || echo no)" 'many is there'
}
changed_while_listed() {
	local i round
	mkdir list
	for ((i = 0; i < 500; i++)); do : >"list/stay$i"; done
	(for ((i = 0; ; i++)); do
		: >"list/flux$((i % 100))"
		[ $((i % 3)) -ne 0 ] || mv "list/flux$((i % 100))" "list/moved$((i % 40))"
		[ ! -e stop ] || exit 0
	done) &
	for ((round = 0; round < 10; round++)); do
		want 500 "$(ls -f list | grep -c '^stay')" 'ls: names that stay'
		want 500 "$(find list -name 'stay*' | sort -u | wc -l)" 'find: names that stay'
	done
	touch stop
	wait $!
	rm -r list stop
}
fio_verify() {
	fio --name=v --directory=. --size=24m --bs=4k-128k --rw=randrw --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--ioengine="$1" --direct="$2" --numjobs=2 --thread --group_reporting --fallocate=none --output-format=terse
	rm v.*
}
big_file() {
	# 64 MiB of content that repeats nowhere, through the page cache and anew.
	openssl enc -aes-128-ctr -K 00 -iv 00 -in /dev/zero 2>/dev/null | head -c 64M | tee big | sha256sum >big.sum || true
	sha256sum <big | cmp - big.sum
	sync big
	echo 3 >/proc/sys/vm/drop_caches
	sha256sum <big | cmp - big.sum
	want 67108864 "$(stat -c %s big)" 'size'
	rm big big.sum
}

step 'mount' nfs / /mnt/disk
[ $failed = 0 ] || finish
cd /mnt/disk || exit 1
case $1 in
build)
	step 'git clone' git_clone
	step 'git commit, merge, checkout' git_commit
	step 'git gc, fsck, local clone' git_gc
	step 'C build with make -j, run, build again' c_build
	step 'sqlite, three writers, rollback journal' sqlite_writers DELETE
	step 'sqlite, three writers, write-ahead log' sqlite_writers WAL
	;;
files)
	step 'tar out and in, compared' tar_tree
	step 'rsync twice' rsync_twice
	step '10,000 files, find' many_files
	step 'rm -rf of 10,000 files' many_removed
	step 'a folder changed while it is listed' changed_while_listed
	step 'fio with verification, mapped' fio_verify mmap 0
	step 'fio with verification, O_DIRECT' fio_verify psync 1
	step '64 MiB file, read anew' big_file
	;;
esac
finish
