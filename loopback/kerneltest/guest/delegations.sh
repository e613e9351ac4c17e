# delegations.sh headers NAME: how many calls a compiler's reading of headers
# takes, left in the file NAME.
# delegations.sh recall: what is read by version 4.2 is changed by version 3.
. "$HOSTDIR/lib.sh"
version=4.2
what=$1 arg=${2-}

calls() { awk '$1 == "rpc" { print $2 }' /proc/net/rpc/nfs; }
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
	local before n
	cat "$1" >/dev/null
	before=$(calls)
	for n in $(seq 10); do cat "$1" >/dev/null; done
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
esac
finish
