//go:build !unix

package smb

// maxFiles is how many descriptors the process may have: there is no limit
// worth asking for.
func maxFiles() int { return 1 << 30 }
