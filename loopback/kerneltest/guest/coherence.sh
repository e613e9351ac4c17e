# coherence.sh PORT: a process here changes and sees the mount, as the host tells it.
. "$HOSTDIR/lib.sh"

serve() {
	exec 3<>"/dev/tcp/$server/$1"
	COHERENCE_DIR=/mnt/disk COHERENCE_NFS=1 "$HOSTDIR/coherence.test" <&3 >&3
}
# Names are asked for again each time; what is in a file, with every open.
step 'mount' nfs / /mnt/disk acdirmin=0,acdirmax=0
[ $failed = 0 ] || finish
step 'changes from both sides' serve "$1"
finish
