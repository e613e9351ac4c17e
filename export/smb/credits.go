package smb

// maxCredits is how many requests, or units of 64 KiB of their data, a client may
// have under way.
const maxCredits = 8192

// window is which message ids a client may use (MS-SMB2 section 3.3.1.1): those
// of [low, low+size) whose bit is not set. It grows as credits are granted, up
// to maxCredits, and its beginning moves up as ids are used.
type window struct {
	low  uint64
	size int
	free int // ids in it that are not used
	used [maxCredits / 64]uint64
}

func newWindow() window { return window{size: 1, free: 1} }

// take uses n ids from id on. It reports false, having used none, if one of
// them is not granted, or used already.
func (w *window) take(id uint64, n int) bool {
	if id < w.low || id-w.low > uint64(w.size) || uint64(w.size)-(id-w.low) < uint64(n) {
		return false
	}
	for i := range uint64(n) {
		if w.used[(id+i)/64%uint64(len(w.used))]&(1<<((id+i)%64)) != 0 {
			return false
		}
	}
	for i := range uint64(n) {
		w.used[(id+i)/64%uint64(len(w.used))] |= 1 << ((id + i) % 64)
	}
	w.free -= n
	for w.size > 0 {
		word := &w.used[w.low/64%uint64(len(w.used))]
		bit := uint64(1) << (w.low % 64)
		if *word&bit == 0 {
			break
		}
		*word &^= bit
		w.low++
		w.size--
	}
	return true
}

// grant makes up to n more ids usable, and one at least if there is none left
// to the client. It returns how many.
func (w *window) grant(n int) uint16 {
	if w.free == 0 {
		n = max(n, 1)
	}
	n = min(n, maxCredits-w.size)
	w.size += n
	w.free += n
	return uint16(n)
}

// take uses message ids of the connection's window.
func (c *conn) take(id uint64, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.window.take(id, n)
}

// grant grants credits to the client.
func (c *conn) grant(n int) uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.window.grant(n)
}
