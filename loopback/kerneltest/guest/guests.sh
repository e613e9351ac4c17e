# guests.sh one FOLDER, guests.sh two FOLDER: two guests on one server. "one" locks and
# writes, "two" is in its way and sees what becomes of it; they tell each other by
# files in FOLDER how far they are.
# guests.sh doomed FOLDER: has files open and locked until it is killed.
# guests.sh heir FOLDER: gets what a guest had that is no more.
# guests.sh clone FOLDER: copies a large file by its pages.
. "$HOSTDIR/lib.sh"
version=4.2
role=$1 at=$2
disk=/mnt/disk

tell() { touch "$at/$1"; }
await() {
	local n
	for n in $(seq 1200); do
		[ -e "$at/$1" ] && return
		sleep 0.05
	done
	echo "$1 did not come"
	return 1
}
# lock FILE CALL...: opens FILE and makes calls of fcntl(2), such as
# "setlk write 0 10", one after the other; "tell X" and "await X" are as above,
# and "refused setlk ..." is one that must fail.
lock() {
	perl -e '
		use Fcntl;
		my ($at, $file, @calls) = @ARGV;
		my %type = (read => F_RDLCK, write => F_WRLCK, un => F_UNLCK);
		open(my $f, "+<", $file) or die "$file: $!";
		for (@calls) {
			my ($what, @arg) = split;
			if ($what eq "tell") { open(my $t, ">", "$at/$arg[0]") or die; next }
			if ($what eq "await") {
				for (my $n = 0; !-e "$at/$arg[0]"; $n++) { die "$arg[0] did not come" if $n > 1200; select(undef, undef, undef, 0.05) }
				next;
			}
			my $refused = $what eq "refused" && ($what = shift @arg);
			my $l = pack("s s x4 q q l x4", $type{$arg[0]}, 0, $arg[1], $arg[2], 0);
			my $ok = fcntl($f, $what eq "setlkw" ? F_SETLKW : F_SETLK, $l);
			die "$_: " . ($ok ? "had" : $!) if !!$ok == !!$refused;
		}' "$at" "$@"
}

flocks_one() {
	exec 8<>$disk/flock
	flock -x 8
	tell flock.held
	await flock.refused
	flock -s 8 # a downgrade
	tell flock.shared
	await flock.waits
	sleep 0.5
	echo "${EPOCHREALTIME/./}" >"$at/flock.when"
	exec 8>&-
}
flocks_two() {
	await flock.held
	exec 8<>$disk/flock
	(! flock -n -x 8)
	(! flock -n -s 8)
	tell flock.refused
	await flock.shared
	flock -n -s 8
	(! flock -n -x 8)
	flock -u 8
	tell flock.waits
	flock -x 8
	soon flock.when
}
# soon FILE: it is less than a second after the time in FILE.
soon() {
	local took=$((${EPOCHREALTIME/./} - $(cat "$at/$1")))
	echo "after $took us"
	[ $took -lt 1000000 ]
}
fcntl_one() {
	lock $disk/fcntl 'setlk write 0 100' 'setlk read 20 10' 'tell fcntl.held' 'await fcntl.refused' \
		'setlk un 0 100' 'setlk read 0 50' 'tell fcntl.read' 'await fcntl.both' \
		'refused setlk write 0 50' 'tell fcntl.stays' 'await fcntl.free' 'setlk write 0 50' 'tell fcntl.upgraded' 'await fcntl.waits'
	echo "${EPOCHREALTIME/./}" >"$at/fcntl.when"
}
fcntl_two() {
	await fcntl.held
	lock $disk/fcntl 'refused setlk read 0 1' 'setlk read 20 10' 'refused setlk write 20 1' 'setlk write 100 1' 'setlk un 0 0' 'tell fcntl.refused' \
		'await fcntl.read' 'setlk read 0 50' 'tell fcntl.both' 'await fcntl.stays' 'setlk un 0 0' 'tell fcntl.free' \
		'await fcntl.upgraded' 'refused setlk read 49 1' 'setlk read 50 1' 'tell fcntl.waits' 'setlkw write 0 0'
	soon fcntl.when
}
# What one has closed the other sees with its next open.
close_one() {
	local n
	for n in $(seq 20); do
		seq "$((n * 100))" >$disk/shared
		tell "close.$n"
		await "seen.$n"
	done
}
close_two() {
	local n
	for n in $(seq 20); do
		await "close.$n"
		want "$((n * 100))" "$(tail -n 1 $disk/shared)" 'the last line'
		want "$((n * 100))" "$(wc -l <$disk/shared)" 'lines'
		tell "seen.$n"
	done
}
hold() {
	local n
	for n in $(seq 100); do
		eval "exec $((n + 100))<>$disk/open.$n"
		flock -x $((n + 100))
	done
	rm $disk/open.100
	echo old >$disk/delegated
	cat $disk/delegated >/dev/null
	exec 99<$disk/delegated
	lock $disk/fcntl 'setlk write 0 0' 'tell doomed' 'await never'
}
# Until the server gives up the other, it has what it had; not much longer.
inherit() {
	local n start=${EPOCHREALTIME/./}
	for n in $(seq 99); do
		exec 8<>$disk/open.$n
		flock -x 8
	done
	lock $disk/fcntl 'setlkw write 0 0'
	echo new >$disk/delegated
	echo "all of it after $((${EPOCHREALTIME/./} - start)) us"
	[ $((${EPOCHREALTIME/./} - start)) -lt 30000000 ]
}
# us COMMAND...: how long it takes.
us() {
	local start=${EPOCHREALTIME/./}
	"$@" >/dev/null
	echo $((${EPOCHREALTIME/./} - start))
}
# What cp asks for is one call of ioctl(2), FICLONE; the rest of its time it takes to
# start, which is slow in a guest.
clone() {
	dd if=/dev/urandom of=$disk/big bs=1M count=1024 status=none
	sync
	local used after n took=()
	used=$(stat -f -c %f $disk)
	for n in 1 2 3 4 5; do
		took+=("$(perl -MTime::HiRes=time -e '
			open(my $from, "<", $ARGV[0]) && open(my $to, ">", $ARGV[1]) or die $!;
			my $start = time;
			ioctl($to, 0x40049409, fileno $from) or die $!;
			my $took = time - $start;
			close $to or die $!;
			printf "%d", 1e6 * $took' $disk/big $disk/clone.$n)")
	done
	after=$(stat -f -c %f $disk)
	cmp $disk/big $disk/clone.1
	{
		echo "five clones took ${took[*]} us and $((used - after)) blocks of $(stat -f -c %S $disk) bytes;"
		cp --version >/dev/null
		echo "cp --reflink=always $(us cp --reflink=always $disk/big $disk/a) and $(us cp --reflink=always $disk/big $disk/b) us," \
			"of a small file to tmpfs $(us cp /etc/hostname /tmp/a) and $(us cp /etc/hostname /tmp/b) us, cp --version $(us cp --version) us"
	} | tee "$at/clone"
	[ $((used - after)) -le 1 ]
	[ "$(printf '%s\n' "${took[@]}" | sort -n | head -n 1)" -lt 20000 ] # a machine may do other things meanwhile
}

case $role in
one | two)
	step 'mount' nfs / $disk
	step "flock, guest $role" flocks_$role
	[ $role = one ] && touch $disk/fcntl
	step "fcntl, guest $role" fcntl_$role
	step "close-to-open, guest $role" close_$role
	;;
doomed)
	step 'mount' nfs / $disk
	touch $disk/fcntl
	hold
	;;
heir)
	step 'mount' nfs / $disk
	step 'get what the other had' inherit
	;;
clone)
	step 'mount' nfs / $disk
	step 'cp --reflink=always of 1 GiB' clone
	;;
esac
finish
