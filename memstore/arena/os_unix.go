//go:build unix && !linux

package arena

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// osZeroes: memory that release has given back is zero.
	osZeroes = true
	// osFile: memory can also be read and written as a file.
	osFile = false
)

// A mapping is memory.
type mapping struct{ mem []byte }

// osMap returns zeroed memory that costs nothing before it is touched.
func osMap(n int) (mapping, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return mapping{}, fmt.Errorf("mmap: %w", err)
	}
	return mapping{mem}, nil
}

func (m mapping) unmap() error { return unix.Munmap(m.mem) }

// release gives whole OS pages back; they stay mapped. Fresh memory is mapped
// over them, since outside of Linux MADV_DONTNEED and MADV_FREE neither zero
// them nor lower what the process is said to use.
func (m mapping) release(from, to int) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&m.mem[from]), uintptr(to-from), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}

func (m mapping) writeAt(off int, p []byte) { copy(m.mem[off:], p) }
func (m mapping) readAt(p []byte, off int)  { copy(p, m.mem[off:]) }
