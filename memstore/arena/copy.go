package arena

import "sync/atomic"

// used is a set of the OS pages of a region. It has no lock.
type used [regionSize / 4096 / 64]atomic.Uint64

// has tells whether all of [i, i+n) are members.
func (s *used) has(i, n int) bool {
	for n > 0 {
		mask, k := wordMask(i, n)
		if s[i/64].Load()&mask != mask {
			return false
		}
		i, n = i+k, n-k
	}
	return true
}

func (s *used) set(i, n int) {
	for n > 0 {
		mask, k := wordMask(i, n)
		s[i/64].Or(mask)
		i, n = i+k, n-k
	}
}

func (s *used) clear(i, n int) {
	for n > 0 {
		mask, k := wordMask(i, n)
		s[i/64].And(^mask)
		i, n = i+k, n-k
	}
}

// at returns the region of addr, and the offset in it.
func (a *Arena) at(addr Addr) (*region, int) {
	return (*a.regions.Load())[addr>>regionShift], int(addr & (1<<regionShift - 1))
}

// Bytes returns n bytes of memory from addr on, which must be of used or
// pinned pages that are consecutive. To touch them for the first time is slow;
// Read, Write and Zero know a faster way.
func (a *Arena) Bytes(addr Addr, n int) []byte {
	r, off := a.at(addr)
	return r.mem[off : off+n : off+n]
}

// Warm tells whether n bytes from addr on can be read, or written, through
// Bytes without page faults, as far as is known: whether Get and Read, or Put
// and Write, have been used on them before, since the memory came from the OS.
func (a *Arena) Warm(addr Addr, n int, write bool) bool {
	if !osFile || n == 0 {
		return true
	}
	r, off := a.at(addr)
	first := off >> a.unitShift
	return r.usedBy(write).has(first, (off+n-1)>>a.unitShift+1-first)
}

func (r *region) usedBy(write bool) *used {
	if write {
		return &r.wasWritten
	}
	return &r.wasRead
}

// Get copies from addr to p by the OS, which is the fast way for memory that
// is not warm, and makes it warm.
func (a *Arena) Get(p []byte, addr Addr) {
	if len(p) == 0 {
		return
	}
	r, off := a.at(addr)
	r.readAt(p, off)
	first := off >> a.unitShift
	r.wasRead.set(first, (off+len(p)-1)>>a.unitShift+1-first)
}

// Put copies p to addr by the OS, as Get does. An OS page becomes warm when
// its last byte is written, since small pages are written one after the other.
func (a *Arena) Put(addr Addr, p []byte) {
	r, off := a.at(addr)
	r.writeAt(off, p)
	first := off >> a.unitShift
	r.wasWritten.set(first, (off+len(p))>>a.unitShift-first)
}

// Read copies from addr to p: by the OS the first time, then through the
// mapping, since memory that is used twice is worth the page faults.
func (a *Arena) Read(p []byte, addr Addr) {
	if a.Warm(addr, len(p), false) {
		copy(p, a.Bytes(addr, len(p)))
	} else {
		a.Get(p, addr)
	}
}

// Write copies p to addr, as Read does.
func (a *Arena) Write(addr Addr, p []byte) {
	if a.Warm(addr, len(p), true) {
		copy(a.Bytes(addr, len(p)), p)
	} else {
		a.Put(addr, p)
	}
}

var zeros [MaxPage]byte

// Zero clears n bytes from addr on. That does not count as a use: what is
// cleared is mostly written for the first time next.
func (a *Arena) Zero(addr Addr, n int) {
	if a.Warm(addr, n, true) {
		clear(a.Bytes(addr, n))
		return
	}
	r, off := a.at(addr)
	for n > 0 {
		k := min(n, len(zeros))
		r.writeAt(off, zeros[:k])
		off += k
		n -= k
	}
}
