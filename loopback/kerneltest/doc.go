// Package kerneltest mounts ramserver with a real Linux kernel's NFS client and
// works on the mount as people do: POSIX calls, git, sqlite, make, tar, rsync,
// a full disk.
//
// The kernel runs as User Mode Linux, an ordinary process of root, so that no
// machine needs an NFS client of its own, and a hang hangs only the guest. Each
// test has a network namespace, a server in it and a guest; guest/*.sh is what
// runs inside, one line for each step. uml-run starts a guest, setup installs
// the Debian packages.
//
//	make kernel        about a quarter of an hour on two cores, with programs on FUSE
//	make kernel-all    with the long runs
package kerneltest
