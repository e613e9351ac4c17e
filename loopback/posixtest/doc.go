// Package posixtest checks that a mounted folder behaves as POSIX and Linux say.
//
// Run is the suite: tables of calls with the result that each must have. Fsx is
// a random tester: it reads, writes, truncates and maps one file and compares
// every byte with a model in memory.
//
// Both run on tmpfs first, so that the suite is known to be right before it
// judges anything else. What a mount cannot offer is named as a Feature that it
// lacks; a case that needs it says so and is skipped. With STRICT=1 in the
// environment any other skip is a failure.
//
// Other users, other umasks and other processes are played by threads: Linux
// keeps credentials for each thread, and unshare(2) gives a thread its own
// umask and descriptor table, which is what owns POSIX locks. To a file system
// such a thread is a process (see task), and nothing has to be forked.
//
// The test binary is also the program that judges a mount elsewhere:
//
//	CGO_ENABLED=0 go test -c -o posixtest.test ./loopback/posixtest
//	POSIXTEST_DIR=/mnt/x POSIXTEST_LACKS=nfs3 ./posixtest.test -test.run 'Mount|Fsx' -fsx.time 2m
package posixtest
