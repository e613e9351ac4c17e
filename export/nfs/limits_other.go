//go:build !unix

package nfs

// maxFiles is how many descriptors the process may have: there is no limit
// worth asking for.
func maxFiles() int { return 1 << 30 }
