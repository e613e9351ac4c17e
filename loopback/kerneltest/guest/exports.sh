# exports.sh: mounts by every name and version, with and without the port mapper, and what
# an export allows. The exports are ramdisk, ro (read-only, /ro of the same
# store) and anon (all squashed, a store of its own).
. "$HOSTDIR/lib.sh"

names() {
	nfs / /mnt/root
	nfs /ramdisk /mnt/named
	mkdir -p /mnt/root/sub/deep
	nfs /sub/deep /mnt/deep
	nfs /ramdisk/sub /mnt/sub 'port=2049,mountport=2049'
	echo one >/mnt/deep/file
	want one "$(cat /mnt/sub/deep/file)" 'file'
	want one "$(cat /mnt/named/sub/deep/file)" 'file'
	want "$(stat -c %i /mnt/root/sub/deep/file)" "$(stat -c %i /mnt/deep/file)" 'inode'
	ls -la /mnt/deep/.. >/dev/null
}
portmap() {
	rpcinfo -p "$server"
	rpcinfo -T tcp "$server" nfs 3
	rpcinfo -T tcp "$server" mountd 3
	showmount -e "$server" | grep ramdisk
}
refused() {
	(! nfs /nothere /mnt/none) 2>&1 | grep -i 'no such file\|access denied'
}
readonly_export() {
	mkdir -p /mnt/root/ro
	echo text >/mnt/root/ro/file
	nfs /ro /mnt/ro
	want text "$(cat /mnt/ro/file)" 'file'
	(! touch /mnt/ro/new) 2>&1 | grep 'Read-only'
	(! rm /mnt/ro/file) 2>&1 | grep 'Read-only'
	(! chmod 600 /mnt/ro/file) 2>&1 | grep 'Read-only'
}
anonymous() {
	nfs /anon /mnt/anon
	echo mine >/mnt/anon/file
	want 65534:65534 "$(stat -c %u:%g /mnt/anon/file)" 'owner'
	(! chown 0 /mnt/anon/file) 2>&1 | grep 'not permitted'
}

# Version 4 has all exports below one root, each a file system of its own.
version4() {
	local version=4.2
	nfs / /mnt/all
	want 'anon ramdisk ro' "$(ls /mnt/all | xargs)" 'exports'
	want "$(stat -c %i /mnt/root/sub/deep/file)" "$(stat -c %i /mnt/all/ramdisk/sub/deep/file)" 'inode'
	(! touch /mnt/all/new) 2>&1 | grep 'Read-only'
	(! touch /mnt/all/ro/new) 2>&1 | grep 'Read-only'
	nfs /ramdisk/sub /mnt/sub4
	want one "$(cat /mnt/sub4/deep/file)" 'file'
}

step 'mount by every name' names
step 'port mapper' portmap
step 'refusals' refused
step 'a read-only export' readonly_export
step 'an export for anyone' anonymous
step 'version 4' version4
finish
