# mount.sh: "ramserver mount --via nfs" with server and client on one machine, the
# guest. vers=3 takes version 4 away from the kernel first.
. "$HOSTDIR/lib.sh"
disk=/mnt/disk
ramserver() { "$HOSTDIR/ramserver" "$@"; }
case $version in
3) type=nfs want=vers=3 ;;
*) type=nfs4 want=vers=$version ;;
esac

prepare() {
	[ $type = nfs4 ] || modprobe -d /run -r nfsv4
}
doctor() {
	ramserver doctor
	ramserver doctor | grep -E '^ok +mount by nfs +works'
}
mounted() {
	ramserver mount "$disk" --via nfs --size 256M "$@"
	grep -E "^127.0.0.1:/[a-z]* $disk $type .*,$want,.*,hard," /proc/mounts
	ramserver status --interval 0 | grep -F "$disk by nfs"
}
# ended: nothing is left of the last mount, nor a process that cannot end.
ended() {
	local n
	for n in $(seq 50); do
		if ! pgrep -f 'ramserver (mount|serve)' >/dev/null && ! [ -e "$disk" ] && ! ps -eo state,pid,wchan:32,args | grep -q '^D'; then
			[ -z "$(ls /run/ramserver 2>/dev/null)" ]
			return
		fi
		sleep 0.1
	done
	ps -eo state,pid,wchan:32,args | grep '[r]amserver'
	return 1
}
used() {
	cd "$disk"
	mkdir folder
	dd if=/dev/urandom of=a bs=64k count=300
	cp a folder/b
	cmp a folder/b
	mv a folder/c
	ln -s c folder/link
	cmp folder/link folder/b
	flock folder/b true
	(cd folder && ls) | tr '\n' ' ' | grep -x 'b c link '
	rm -r folder
	[ -z "$(ls -A)" ]
}
# Locks of version 4 are the server's; those of version 3 stay in the kernel.
locked() {
	cd "$disk"
	flock -x lock sleep 10 &
	sleep 0.5
	(! flock -n -x lock true)
	pkill -P $! sleep || kill $!
	wait || true
	flock -w 2 -x lock true
	rm lock
}
refused() {
	sleep 100 8>"$disk/open" &
	ramserver umount "$disk" >/tmp/said 2>&1 && return 1
	grep "in use by sleep .*, open $disk/open" /tmp/said
	ls "$disk/open"
	kill $!
	wait || true
	ramserver umount "$disk"
	ended
}
# The system's own umount ends the server too.
systems_own() {
	ramserver mount "$disk" --via nfs --size 64M
	umount "$disk"
	ended
}
# Several connections, which a guest with one processor does not get by itself.
connections() {
	local options source n
	options=$(ramserver mount "$disk" --via nfs --size 64M --print | grep -o "$want,[^ ]*")
	source=$(ramserver mount "$disk" --via nfs --size 64M --print | sed -n "s/.*$want,[^ ]* \([^ ]*\) .*/\1/p")
	ramserver serve --size 256M --portmap off >/tmp/serve.log 2>&1 &
	for n in $(seq 50); do
		grep -q ready /tmp/serve.log && break
		sleep 0.1
	done
	mkdir -p /mnt/four
	mount -i -t $type -o "$options,nconnect=4" "$source" /mnt/four
	cp -r "$HOSTDIR/cproject" /mnt/four/
	diff -r "$HOSTDIR/cproject" /mnt/four/cproject
	local writers=()
	for n in $(seq 8); do
		dd if=/dev/zero of=/mnt/four/$n bs=1M count=10 conv=fsync &
		writers+=($!)
	done
	wait "${writers[@]}"
	ss -tnH state established '( dport = :2049 )'
	[ "$(ss -tnH state established '( dport = :2049 )' | wc -l)" -eq 4 ]
	umount /mnt/four
	rmdir /mnt/four
	ramserver stop
	wait
	ended
}
# killed NEXT [SECONDS]: the server dies while files are written, read and listed.
# Some time later the next command is given. Soon it has cleaned up, a new mount
# works, and no process waits for the old one: in 5 s, or longer where the guest
# has only a part of a processor.
killed() {
	local rest=${2-1} before
	before=$(pace)
	ramserver mount "$disk" --via nfs --size 256M
	local n pids=()
	dd if=/dev/urandom of="$disk/read" bs=1M count=8
	for n in 1 2; do
		(while dd if=/dev/zero of="$disk/$n" bs=64k count=100 conv=fsync; do :; done) &
		pids+=($!)
	done
	(while echo 3 >/proc/sys/vm/drop_caches; cat "$disk/read" >/dev/null; do :; done) &
	pids+=($!)
	(while ls -lR "$disk" >/dev/null && touch "$disk/t" && rm "$disk/t"; do :; done) &
	pids+=($!)
	exec 8>"$disk/open"
	echo data >&8
	sleep 1
	pkill -9 -x ramserver
	sleep "$rest"
	clock=${EPOCHREALTIME/./}
	if [ "$1" = umount ]; then
		ramserver umount "$disk" 2>&1 | tee /dev/stderr | grep -F "removed the state it left and its mount at $disk"
		took 'cleaned up'
	fi
	ramserver mount "$disk" --via nfs --size 64M
	echo works >"$disk/again"
	[ "$(cat "$disk/again")" = works ]
	(! ls "$disk/open")
	took 'mounted again'
	exec 8>&- || true
	for n in "${pids[@]}"; do wait "$n" || true; done
	took 'everybody ended'
	local took=$((${EPOCHREALTIME/./} - clock)) after
	after=$(pace)
	[ $took -lt $((5000000 * (before > after ? before : after))) ]
	(! ps -eo state,pid,wchan:32,args | grep '^D')
	ramserver umount "$disk"
	ended
}
# pace: how many times as long as on a processor of its own a guest takes for what
# it does: five starts of the program are half a second there.
pace() {
	local n start=${EPOCHREALTIME/./}
	for n in 1 2 3 4 5; do ramserver version >/dev/null; done
	n=$(((${EPOCHREALTIME/./} - start + 250000) / 500000))
	echo $((n > 1 ? n : 1))
}
took() { echo "figure: $1 after $(((${EPOCHREALTIME/./} - clock) / 1000)) ms"; }
# several: two servers, one of them mounted a second time by mount(8), die together.
# One command cleans up after both; the second mount does not hang, but says that
# everything is gone, until it is unmounted; then nothing is left.
several() {
	local n options
	ramserver mount "$disk" --via nfs --size 64M
	options=$(grep -F " $disk " /proc/mounts | cut -d' ' -f4)
	ramserver mount /mnt/other --via nfs --size 64M
	mkdir -p /mnt/second
	mount -i -t $type -o "$options" "$(grep -F " $disk " /proc/mounts | cut -d' ' -f1)" /mnt/second
	echo data >"$disk/open"
	exec 7<"$disk/open" 8>/mnt/other/open 9>/mnt/second/more
	cd /mnt/second
	pkill -9 -x ramserver
	clock=${EPOCHREALTIME/./}
	ramserver umount "$disk" 2>/tmp/said
	grep -F "removed the state it left and its mount at $disk" /tmp/said
	grep -F "removed the state it left and its mount at /mnt/other" /tmp/said
	took 'cleaned up'
	(! cat /mnt/second/open)
	(! dd if=/dev/zero bs=4k count=1 conv=fsync >&8)
	(! dd if=/dev/zero bs=4k count=1 conv=fsync >&9)
	took 'everybody was answered'
	cd /
	exec 7<&- || true
	exec 8>&- || true
	exec 9>&- || true
	umount /mnt/second
	took 'unmounted'
	rm -f /run/ramserver/*.log # of version 3: that there is no other
	ended
	rmdir /mnt/second
	for n in $(seq 100); do
		pgrep -f 'ramserver stand-in' || return 0
		sleep 0.1
	done
	return 1
}
forced() {
	ramserver mount "$disk" --via nfs --size 64M
	sleep 100 8>"$disk/open" &
	local start=${EPOCHREALTIME/./}
	ramserver umount "$disk" --force
	echo "took $((${EPOCHREALTIME/./} - start)) us"
	kill $!
	wait || true
	ended
}

step 'the version that is wanted' prepare
step 'doctor' doctor
step 'mount' mounted
step 'files' used
step 'locks' locked
step 'umount refuses, then works' refused
step "the system's own umount" systems_own
step 'several exports' mounted --export ramdisk --export b
step 'umount' ramserver umount "$disk"
step 'four connections' connections
step 'umount --force' forced
step 'killed, umount, mount' killed umount
step 'killed, mount' killed mount
step 'killed a while ago, umount, mount' killed umount 15
step 'several killed, one umount' several
finish
