package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX of sysinfoapi.h.
type memoryStatus struct {
	length     uint32
	load       uint32
	totalPhys  uint64
	availPhys  uint64
	totalPage  uint64
	availPage  uint64
	totalVirt  uint64
	availVirt  uint64
	availExtra uint64
}

// memory is the machine's memory.
func memory() (physical, error) {
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	m := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	if ok, _, err := proc.Call(uintptr(unsafe.Pointer(&m))); ok == 0 {
		return physical{}, fmt.Errorf("asking for the machine's memory: %w", err)
	}
	return physical{int64(m.totalPhys), "this machine's memory"}, nil
}
