# delegations.sh headers NAME: how many calls a compiler's reading of headers
# takes, left in the file NAME.
# delegations.sh recall: what is read by version 4.2 is changed by version 3.
# delegations.sh hold FOLDER, delegations.sh change FOLDER: a guest keeps files that
# another one changes, and then the server's machine, by FUSE and by SMB. They tell
# each other by files in FOLDER how far they are.
. "$HOSTDIR/lib.sh"
version=4.2
what=$1 arg=${2-}

# What the shell can do by itself it does: to start a program takes a guest long.
calls() {
	local word n rest
	while read -r word n rest; do
		[ "$word" != rpc ] || echo "$n"
	done </proc/net/rpc/nfs
}
# within US COMMAND...: the command takes at most so many microseconds.
within() {
	local limit=$1 start=${EPOCHREALTIME/./} took
	shift
	"$@"
	took=$((${EPOCHREALTIME/./} - start))
	[ $took -le $limit ] || { echo "$* took $took us"; return 1; }
}
# delegated FILE: it is read without a call, so the client has a delegation.
delegated() {
	local before n line
	read -r line <"$1"
	before=$(calls)
	for n in {1..10}; do read -r line <"$1"; done
	n=$(($(calls) - before))
	[ $n -le 2 ] || { echo "$1 was read 10 times with $n calls"; return 1; }
}
write() { echo "$2" >"$1"; }

make_headers() {
	mkdir /mnt/disk/headers
	local n
	for n in $(seq 2000); do echo "#define N$n $n" >"/mnt/disk/headers/$n.h"; done
	umount /mnt/disk
	nfs / /mnt/disk
}
read_headers() {
	local before n
	before=$(calls)
	for n in $(seq 20); do cat /mnt/disk/headers/*.h | wc -l | grep -x 2000; done
	n=$(($(calls) - before))
	echo "$n calls"
	echo $n >"$arg"
}

both() {
	nfs / /mnt/disk
	version=3 nfs /ramdisk /mnt/three
}
changed() {
	write /mnt/disk/f one
	delegated /mnt/disk/f
	within 1000000 write /mnt/three/f two
	want two "$(cat /mnt/disk/f)" 'what the other has written'
}
removed() {
	write /mnt/disk/g one
	exec 8</mnt/disk/g
	delegated /mnt/disk/g
	within 1000000 rm /mnt/three/g
	want one "$(cat <&8)" 'a file that is removed and open'
}
renamed() {
	write /mnt/disk/h one
	write /mnt/disk/i two
	delegated /mnt/disk/h
	delegated /mnt/disk/i
	within 1000000 mv /mnt/three/i /mnt/three/h
	want two "$(cat /mnt/disk/h)" 'what the name stands for now'
}
chmods() {
	write /mnt/disk/j one
	delegated /mnt/disk/j
	within 1000000 chmod 0600 /mnt/three/j
	cat /mnt/disk/j # asks for attributes
	want 600 "$(stat -c %a /mnt/disk/j)" 'the mode'
}
tell() { touch "$arg/$1"; }
await() {
	local n
	for n in $(seq 1200); do
		[ -e "$arg/$1" ] && return
		sleep 0.05
	done
	echo "$1 did not come"
	return 1
}
# keep: what the others write to, remove and rename is read without a call.
keep() {
	local who what
	for who in guest fuse smb; do
		for what in write remove rename; do write "/mnt/disk/$who-$what" one; done
		write "/mnt/disk/$who-new" two
	done
	for who in guest fuse smb; do
		for what in write remove rename; do delegated "/mnt/disk/$who-$what"; done
	done
	tell kept
}
# changed_by WHO: what WHO has done shows with the next open.
changed_by() {
	await "$1"
	want two "$(cat "/mnt/disk/$1-write")" "what $1 has written"
	(! cat "/mnt/disk/$1-remove") 2>&1 | grep 'No such file'
	want two "$(cat "/mnt/disk/$1-rename")" "what $1 has put in its place"
	tell "$1.seen"
}
# Some of these seconds a program takes to start; what waits in vain takes five.
change() {
	await kept
	within 2000000 write /mnt/disk/guest-write two
	within 2000000 rm /mnt/disk/guest-remove
	within 2000000 mv /mnt/disk/guest-new /mnt/disk/guest-rename
	tell guest
}
# What is locked without a call the server hears of with the recall. A wait for it
# ends when it is unlocked.
keep_lock() {
	write /mnt/disk/lock one
	delegated /mnt/disk/lock
	exec 9</mnt/disk/lock
	flock -s 9
	tell locked
	await waiting
	sleep 1
	echo "${EPOCHREALTIME/./}" >"$arg/when"
	flock -u 9
}
wait_for_lock() {
	await locked
	within 2000000 write /mnt/disk/lock two
	exec 8<>/mnt/disk/lock
	(! flock -n -x 8)
	tell waiting
	flock -x 8
	local took=$((${EPOCHREALTIME/./} - $(cat "$arg/when")))
	echo "after $took us"
	[ $took -lt 1000000 ]
}
case $what in
headers)
	step 'mount' nfs / /mnt/disk
	step 'make 2,000 headers' make_headers
	step 'read them 20 times' read_headers
	;;
recall)
	step 'mount by versions 4.2 and 3' both
	step 'written by the other' changed
	step 'removed by the other' removed
	step 'replaced by the other' renamed
	step 'chmod by the other' chmods
	;;
hold)
	step 'mount' nfs / /mnt/disk
	step 'keep files' keep
	for who in guest fuse smb; do step "changed by $who" changed_by $who; done
	step 'keep a lock' keep_lock
	;;
change)
	step 'mount' nfs / /mnt/disk
	step 'change what the other guest keeps' change
	step 'wait for what it has locked' wait_for_lock
	;;
esac
finish
