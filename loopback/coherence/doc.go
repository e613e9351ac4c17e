// Package coherence checks that a folder of files is the same from several sides,
// such as local processes and clients of the network, while each of them changes
// it.
//
// Run is the property: after each of many random changes, by any side, every side
// sees the bytes, sizes, modes, names and absent names that a model has. A Process
// is a side that works on a mounted folder, and keeps what it looked at open and
// mapped.
//
// The test binary is also such a process on another machine, which speaks through
// its standard input and output:
//
//	CGO_ENABLED=0 go test -c -o coherence.test ./loopback/coherence
//	COHERENCE_DIR=/mnt/x ./coherence.test
package coherence
