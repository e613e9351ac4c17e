# full.sh: a disk of 32 MiB and 600 inodes is filled up, and goes on.
. "$HOSTDIR/lib.sh"

fill() {
	local out
	echo precious >keep
	mkdir full
	# The error comes at write, fsync or close, whichever finds it.
	out=$(! dd if=/dev/zero of=full/zero bs=1M count=100 conv=fsync 2>&1)
	grep 'No space left' <<<"$out"
	# What large writes leave over, small ones fill.
	out=$(! dd if=/dev/zero of=full/small bs=4k count=2000 conv=fsync 2>&1)
	grep 'No space left' <<<"$out"
	want precious "$(cat keep)" 'content of another file'
	df -k .
	[ "$(df -k --output=avail . | tail -n 1)" -le 64 ]
}
goes_on_when_full() {
	cat keep
	ls -l full
	(! dd if=/dev/zero of=full/more bs=1M count=2 conv=fsync) 2>&1 | grep 'No space left'
	mv keep kept
	truncate -s 1M full/zero
	rm -f full/more
	dd if=/dev/zero of=again bs=1M count=8 conv=fsync
	want 8388608 "$(stat -c %s again)" 'size'
	cmp -n 8388608 again /dev/zero
}
empties() {
	rm -r full again kept
	local i
	for ((i = 0; i < 50; i++)); do # the space comes back within a moment
		[ "$(df -k --output=used . | tail -n 1)" -gt 1024 ] || return 0
		sleep 0.1
	done
	df -k .
	return 1
}
no_inodes() {
	local i
	mkdir inodes
	for ((i = 0; i < 700; i++)); do
		: >"inodes/$i" || break
	done
	echo "stopped at $i"
	[ "$i" -gt 500 ] && [ "$i" -lt 600 ]
	(! mkdir inodes/dir) 2>&1 | grep 'No space left'
	echo data >inodes/0
	rm inodes/1
	mkdir inodes/dir
	rm -r inodes
}
short_database() {
	sqlite3 db 'CREATE TABLE t(b); INSERT INTO t VALUES(1);'
	# A full disk that fsync finds is an I/O error to sqlite, not SQLITE_FULL.
	(! sqlite3 -bail db 'INSERT INTO t VALUES(zeroblob(100000000));') 2>&1 | grep -iE 'full|I/O error'
	want ok "$(sqlite3 db 'PRAGMA integrity_check')" 'integrity_check'
	want 1 "$(sqlite3 db 'SELECT count(*) FROM t')" 'rows'
	rm db
}

# By itself the client tells of space in units of its largest write.
step 'mount' nfs / /mnt/disk bsize=4096
[ $failed = 0 ] || finish
cd /mnt/disk || exit 1
for round in 1 2; do
	step "fill the disk ($round)" fill
	step "read, shrink, write again ($round)" goes_on_when_full
	step "remove, space is back ($round)" empties
done
step 'no inodes left' no_inodes
step 'a database on a full disk' short_database
finish
