package budget

import "golang.org/x/sys/unix"

// MachineMemory is the machine's memory in bytes.
func MachineMemory() int64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 2 << 30
	}
	return int64(i.Totalram) * int64(i.Unit)
}
