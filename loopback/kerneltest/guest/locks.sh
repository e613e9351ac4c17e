# locks.sh: NFS version 3 with locks on the server (NLM): the guest has a
# portmapper and rpc.statd of its own, as any client has.
. "$HOSTDIR/lib.sh"

services() {
	rpcbind
	mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak
	rpc.statd --no-notify
	rpcinfo -p 127.0.0.1 | grep status
}
# Two mounts that know nothing of each other: what they lock meets on the server.
mounts() {
	local n
	for n in 1 2; do
		mkdir -p "/mnt/$n"
		mount -t nfs -o vers=3,proto=tcp,nosharecache "$server:/ramdisk" "/mnt/$n"
	done
	grep -c 'local_lock=none' /proc/mounts
}
flocks() {
	cd /mnt
	touch 1/f
	exec 8<>1/f 9<>2/f
	flock -n -x 8
	(! flock -n -x 9)
	(! flock -n -s 9)
	flock -u 8
	flock -n -s 9
	flock -n -s 8
	(! flock -n -x 8)
	flock -u 9
	flock -n -x 8
}
# A wait ends within a second of the unlock, by the server's call.
waits() {
	cd /mnt
	touch 1/w
	exec 8<>1/w 9<>2/w
	flock -x 8
	(sleep 1; flock -u 8) &
	local start=${EPOCHREALTIME/./}
	flock -x 9
	local took=$((${EPOCHREALTIME/./} - start))
	wait
	echo "waited $took us"
	[ $took -gt 500000 ] && [ $took -lt 4000000 ] # the client asks again after 30 s
}
cancelled() {
	cd /mnt
	touch 1/c
	exec 8<>1/c 9<>2/c
	flock -x 8
	(! flock -w 1 -x 9)
	flock -u 8
	flock -n -x 8
	flock -u 8
	flock -n -x 9
}
# The locks of a process end with it.
killed() {
	cd /mnt
	touch 1/k
	flock -x 1/k sleep 100 &
	sleep 0.5
	(! flock -n -x 2/k true)
	pkill -P $! sleep
	kill $! || true
	wait || true
	flock -w 2 -x 2/k true
}
posixtest() {
	STRICT=1 POSIXTEST_DIR=/mnt/1 POSIXTEST_LACKS=nfs3 "$HOSTDIR/posixtest.test" -test.v -test.run '^TestMount$/Lock|Flock'
}

step 'rpcbind and rpc.statd' services
step 'mount twice, with locks' mounts
step 'flock against the other mount' flocks
step 'a wait' waits
step 'a wait is given up' cancelled
step 'a process is killed' killed
step 'posixtest, locks' posixtest
finish
