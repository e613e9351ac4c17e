//go:build !unix

package budget

// MaxFiles is how many descriptors the process may have: there is no limit
// worth asking for.
func MaxFiles() int { return 1 << 30 }
