# smb.sh: an SMB and an NFS mount of the same store see each other's files, locks and
# removals.
. "$HOSTDIR/lib.sh"
smb=$version

files() {
	cd /mnt
	echo one >smb/file
	want one "$(cat nfs/file)" 'by NFS'
	echo two >nfs/other
	want two "$(cat smb/other)" 'by SMB'
	mkdir smb/dir
	mv nfs/other nfs/dir/moved
	want two "$(cat smb/dir/moved)" 'moved by NFS'
	mv smb/dir/moved smb/dir/again
	want again "$(ls nfs/dir)" 'listed by NFS'
	rm smb/dir/again
	(! cat nfs/dir/again) 2>&1 | grep 'No such file'
	rmdir nfs/dir
	sleep 1.1
	want '' "$(ls -d smb/dir 2>/dev/null || true)" 'removed by NFS'
}
data() {
	cd /mnt
	head -c 3000000 /dev/urandom >/tmp/data
	cp /tmp/data smb/data
	cmp /tmp/data nfs/data
	cp /tmp/data nfs/more
	cmp /tmp/data smb/more
	truncate -s 5 smb/more
	want 5 "$(stat -c %s nfs/more)" 'size'
	rm smb/data nfs/more
}
names() {
	cd /mnt
	touch 'nfs/a:b*c?d' "nfs/ü€𝄞"
	want "$(ls nfs | sort)" "$(ls smb | sort)" 'names'
	rm "smb/a:b*c?d" "smb/ü€𝄞"
	want '' "$(ls nfs | grep '[:€]' || true)" 'names left'
}
# A lock of the one stops the other; SMB's also stops writing.
locks() {
	cd /mnt
	touch smb/lock
	exec 8<>smb/lock 9<>nfs/lock
	flock -n -x 9
	(! flock -n -x 8)
	flock -u 9
	flock -n -x 8
	(! flock -n -x 9)
	flock -u 8
	flock -n -x 9
	exec 8>&- 9>&-
	rm smb/lock
}

step 'mount by SMB' nfs /ramdisk /mnt/smb
version=4.2
step 'mount by NFS' nfs / /mnt/nfs actimeo=0
[ $failed = 0 ] || finish
step 'files of both' files
step 'data of both' data
step 'names' names
step 'locks' locks
finish
