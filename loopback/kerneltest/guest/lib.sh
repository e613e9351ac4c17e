# lib.sh: what the guest's scripts share.
# A first argument vers=N has nfs mount by that version of NFS, else it is 3;
# vers=cifs:OPTIONS has it mount by SMB with these options of mount.cifs.
server=10.77.0.1
version=3
case ${1-} in vers=*)
	version=${1#vers=}
	shift
	;;
esac
failed=0

# step NAME COMMAND...: runs the command, with errexit, and prints one line and
# the figures that it gave; if it fails, the end of what it said as well.
step() {
	local name=$1 start=${EPOCHREALTIME/./} rc took
	shift
	(set -euo pipefail; "$@") >/tmp/step.log 2>&1
	rc=$?
	took=$((${EPOCHREALTIME/./} - start))
	if [ $rc -eq 0 ]; then
		printf 'ok    %4d.%d s  %s%s\n' $((took / 1000000)) $((took % 1000000 / 100000)) "$name" "$(sed -n 's/^figure: /; /p' /tmp/step.log | tr -d '\n')"
	else
		printf 'FAIL  %4d.%d s  %s: exit status %d\n' $((took / 1000000)) $((took % 1000000 / 100000)) "$name" $rc
		tail -n "${TAIL:-40}" /tmp/step.log | sed 's/^/      | /'
		failed=1
	fi
}

# want EXPECTED GOT WHAT
want() {
	[ "$1" = "$2" ] || { echo "$3: got '$2', want '$1'"; return 1; }
}

# nfs PATH FOLDER [OPTIONS]: mounts the server's export; version 4.2 is what the
# client takes by itself.
nfs() {
	local options=vers=$version,proto=tcp
	case $version in cifs:*)
		cifs "$2" "${version#cifs:}"
		return
		;;
	esac
	case $version in 3) options+=,nolock ;; 4.2) options=proto=tcp ;; esac
	mkdir -p "$2"
	mount -t nfs -o "$options${3:+,$3}" "$server:$1" "$2"
	grep -F " $2 nfs" /proc/mounts | grep -F "vers=$version"
}

# cifs FOLDER OPTIONS: mounts the export ramdisk by SMB. What the client encrypts and
# signs with are modules, which it does not find by itself in the guest.
cifs() {
	modprobe -d /run -a cifs hmac cmac ccm gcm ctr ghash-generic sha512_generic ecb arc4 nls_utf8
	mkdir -p "$1"
	mount -i -t cifs -o "ip=$server,port=1445,iocharset=utf8,username=root,password=secret,$2" "//$server/ramdisk" "$1"
	grep -F " $1 cifs" /proc/mounts
}

# finish: unmounts everything, and fails if a step did.
finish() {
	cd /
	step 'unmount' umount -a -t nfs,nfs4,cifs
	exit $failed
}
