package arena

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	// osZeroes is false: memory that release has given back holds anything.
	osZeroes = false
	// osFile: memory can also be read and written as a file.
	osFile = false
)

// A mapping is memory.
type mapping struct{ mem []byte }

// osMap returns zeroed memory. It counts as committed at once, and as in use
// when it is touched.
func osMap(n int) (mapping, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return mapping{}, fmt.Errorf("VirtualAlloc: %w", err)
	}
	return mapping{unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)}, nil
}

func (m mapping) unmap() error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(&m.mem[0])), 0, windows.MEM_RELEASE)
}

var discardVirtualMemory = windows.NewLazySystemDLL("kernel32.dll").NewProc("DiscardVirtualMemory")

// release gives whole OS pages back; they stay committed. Decommitting would
// zero them, but to commit them again may fail.
func (m mapping) release(from, to int) error {
	if err := discardVirtualMemory.Find(); err != nil { // before Windows 8.1
		return err
	}
	status, _, _ := discardVirtualMemory.Call(uintptr(unsafe.Pointer(&m.mem[from])), uintptr(to-from))
	if status != 0 {
		return windows.Errno(status)
	}
	return nil
}

func (m mapping) writeAt(off int, p []byte) { copy(m.mem[off:], p) }
func (m mapping) readAt(p []byte, off int)  { copy(p, m.mem[off:]) }
