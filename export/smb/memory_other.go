//go:build !linux

package smb

// machineMemory is the least that a machine of today is taken to have, in
// bytes: it is not known here without much ado.
func machineMemory() int64 { return 4 << 30 }
