# restart.sh: the server is stopped and started again under a mount. What is on
# the disk is gone; the mount is not.
. "$HOSTDIR/lib.sh"

open_files() {
	echo data >kept
	exec 3<>kept
	flock -n 3
	echo more >&3
}
restart() {
	local i
	: >"$HOSTDIR/stop-$version"
	for ((i = 0; i < 300; i++)); do
		[ ! -e "$HOSTDIR/stop-$version" ] && return
		sleep 0.1
	done
	return 1
}
goes_on() {
	want '' "$(ls)" 'files after the restart'
	echo new >new
	want new "$(cat new)" 'content'
	flock -n new true
	(! cat kept) 2>&1 | grep 'No such file'
}

step 'mount' nfs / /mnt/disk
[ $failed = 0 ] || finish
cd /mnt/disk || exit 1
open_files || exit 1
step 'restart' restart
step 'the mount goes on' timeout 60 bash -c "version=$version; $(declare -f want goes_on); set -e; goes_on"
exec 3>&- 2>/dev/null
finish
