//go:build !linux

package budget

// MachineMemory is the least that a machine of today is taken to have, in
// bytes: it is not known here without much ado.
func MachineMemory() int64 { return 4 << 30 }
