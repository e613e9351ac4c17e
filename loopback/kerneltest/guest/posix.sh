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
TAIL=200
mkdir -p /tmp/local
chmod 1777 /tmp/local
step 'mount' nfs / /mnt/disk
[ $failed = 0 ] || finish
if [ "$tests" = TestMount ]; then
	step "posixtest on tmpfs" posixtest /tmp/local xattr,direct -test.run "^$tests\$" "$@"
fi
step "posixtest $tests" posixtest /mnt/disk "nfs$version" -test.v -test.run "^$tests\$" "$@"
grep -o '[0-9]* operations, seed [0-9]*' /tmp/step.log
finish
