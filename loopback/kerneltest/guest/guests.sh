# guests.sh doomed FOLDER: has files open and locked until it is killed.
# guests.sh heir FOLDER: gets what a guest had that is no more.
# guests.sh clone FOLDER: copies a large file by its pages.
# FOLDER has files by which guests tell the test how far they are.
. "$HOSTDIR/lib.sh"
version=4.2
role=$1 at=$2
disk=/mnt/disk

# lock FILE CALL...: opens FILE and makes calls of fcntl(2), such as
# "setlk write 0 10", one after the other; "tell X" makes a file X in FOLDER,
# "await X" waits for one, and "refused setlk ..." is one that must fail.
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

hold() {
	local n
	for n in $(seq 100); do
		eval "exec $((n + 100))<>$disk/open.$n"
		flock -x $((n + 100))
	done
	rm $disk/open.100
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
	echo "all of it after $((${EPOCHREALTIME/./} - start)) us"
	[ $((${EPOCHREALTIME/./} - start)) -lt 30000000 ]
}
clone() {
	dd if=/dev/urandom of=$disk/big bs=1M count=1024 status=none
	sync
	local used start took after
	cp --reflink=always $disk/big $disk/clone # has cp in memory, too
	rm $disk/clone
	sleep 1
	used=$(stat -f -c %f $disk)
	start=${EPOCHREALTIME/./}
	cp --reflink=always $disk/big $disk/clone
	took=$((${EPOCHREALTIME/./} - start))
	after=$(stat -f -c %f $disk)
	cmp $disk/big $disk/clone
	echo "took $took us and $((used - after)) blocks of $(stat -f -c %S $disk) bytes" | tee "$at/clone"
	[ $((used - after)) -le 1 ]
}

case $role in
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
