# tree.sh FILES: a large source tree is unpacked, copied and removed, on the mount and on
# a tmpfs of the guest's, by treebench.
. "$HOSTDIR/lib.sh"

files=$1
measure() {
	mkdir /mnt/tmpfs
	mount -t tmpfs -o size=90% tmpfs /mnt/tmpfs
	"$HOSTDIR/treebench" -rounds 1 -tree "$files" -disk "$HOSTDIR" -at "nfs$version=/mnt/disk,tmpfs=/mnt/tmpfs"
}

step 'mount' nfs / /mnt/disk
[ $failed = 0 ] || finish
step 'source tree' measure
grep -v ^Benchmark /tmp/step.log
finish
