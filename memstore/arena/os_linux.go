package arena

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// osZeroes: memory that release has given back is zero.
	osZeroes = true
	// osFile: memory can also be read and written as a file.
	osFile = true
)

// A mapping is memory, and the file that it is a view of.
//
// A file is used because the first touch of a page through a mapping is slow:
// a fault, and clearing what is overwritten next. In virtual machines with
// shadow page tables it takes 10 us, ten times as long as pwrite.
type mapping struct {
	mem  []byte
	file int
}

// osMap returns zeroed memory that costs nothing before it is touched. Huge
// pages are off: a page of a few KiB would make 2 MiB resident.
func osMap(n int) (mapping, error) {
	file, err := unix.MemfdCreate("arena", unix.MFD_CLOEXEC)
	if err != nil {
		return mapping{}, fmt.Errorf("memfd_create: %w", err)
	}
	if err := unix.Ftruncate(file, int64(n)); err != nil {
		unix.Close(file)
		return mapping{}, fmt.Errorf("ftruncate: %w", err)
	}
	mem, err := unix.Mmap(file, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		unix.Close(file)
		return mapping{}, fmt.Errorf("mmap: %w", err)
	}
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE) // EINVAL: the kernel has none
	return mapping{mem, file}, nil
}

func (m mapping) unmap() error {
	err := unix.Munmap(m.mem)
	if closeErr := unix.Close(m.file); err == nil {
		err = closeErr
	}
	return err
}

// release gives whole OS pages back; they stay mapped.
func (m mapping) release(from, to int) error {
	return unix.Madvise(m.mem[from:to], unix.MADV_REMOVE)
}

// writeAt copies p to off by a system call. What the kernel does not take is
// copied through the mapping.
func (m mapping) writeAt(off int, p []byte) {
	for len(p) > 0 {
		n, err := unix.Pwrite(m.file, p, int64(off))
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			copy(m.mem[off:], p)
			return
		}
		off += n
		p = p[n:]
	}
}

// readAt copies from off to p by a system call.
func (m mapping) readAt(p []byte, off int) {
	for len(p) > 0 {
		n, err := unix.Pread(m.file, p, int64(off))
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			copy(p, m.mem[off:])
			return
		}
		off += n
		p = p[n:]
	}
}
