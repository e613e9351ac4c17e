# posix.sh TESTS [ARG...]: runs posixtest on the mount, and first on the guest's
# own tmpfs, so that a difference is known to be the server's.
. "$HOSTDIR/lib.sh"
tests=$1
shift
posixtest() {
	local dir=$1 lacks=$2
	shift 2
	STRICT=1 POSIXTEST_DIR=$dir POSIXTEST_LACKS=$lacks "$HOSTDIR/posixtest.test" "$@"
}

# cifs_cannot lists what Linux's SMB client does not do without the extensions for
# POSIX; it fails with Samba too.
cifs_cannot() {
	local tests=(
		Umask Fifo Socket Readdir            # special files, which it does not make
		Append                               # at the end as it knows it, with two at once
		Unlinked ReplacedWhileOpen           # an open file has no other name
		Names DeepPath                       # bytes that are not UTF-8, long paths
		Symlinks Rename                      # long targets; they look like files in a listing
		RenameFolders FolderLinks            # counts of links
		ReaddirWhileChanging LargeFolder     # begins anew after a change, at an index
		SetTimes TimesMove Statfs            # units of 100 ns, kept for a second; no inodes
		Mmap                                 # coherence without a lease
		RangeLocks RangeLocksWait RangeLocksEnd OpenLocks Flock # mandatory, exact locks
	)
	local IFS='|'
	echo "${tests[*]}"
}
TAIL=200
mkdir -p /tmp/local
chmod 1777 /tmp/local
step 'mount' nfs / /mnt/disk
[ $failed = 0 ] || finish
if [ "$tests" = TestMount ]; then
	step "posixtest on tmpfs" posixtest /tmp/local xattr,direct -test.run "^$tests\$" "$@"
fi
lacks=nfs$version
case $version in cifs:*)
	lacks=cifs
	[ "$tests" != TestMount ] || set -- -test.skip "/($(cifs_cannot))\$" "$@"
	;;
esac
step "posixtest $tests" posixtest /mnt/disk "$lacks" -test.v -test.run "^$tests\$" "$@"
grep -o '[0-9]* operations, seed [0-9]*' /tmp/step.log
finish
