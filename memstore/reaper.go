package memstore

import (
	"sync"
	"sync/atomic"

	"ramserver/memstore/arena"
	"ramserver/memstore/internal/extent"
)

// Freeing at most this much is cheaper than handing it to the reaper.
const reapInline = 8 << 20

// reaper frees what truncates and removals detach in bulk, so that neither
// holds a lock for long. Its goroutine exists only while there is work.
type reaper struct {
	s *Store

	mu      sync.Mutex
	queue   []extent.Map // (mu)
	files   []tmpFile    // (mu)
	running bool         // (mu) a goroutine is at work
	taken   int          // (mu) maps that somebody is freeing
	idle    sync.Cond    // (mu) taken fell to 0

	heap atomic.Int64 // bytes of inodes and names freed since the heap was last given back
	back atomic.Bool  // a goroutine is about to give the heap back
}

// add takes over pages that were detached.
func (r *reaper) add(m extent.Map) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, m)
	r.start()
}

// addFile takes over a file of the backing.
func (r *reaper) addFile(f tmpFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = append(r.files, f)
	r.start()
}

func (r *reaper) start() {
	if !r.running {
		r.running = true
		go r.run()
	}
}

func (r *reaper) run() {
	for {
		for r.step() {
		}
		r.mu.Lock()
		if len(r.queue)+len(r.files) == 0 {
			r.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// step frees what one truncate or removal detached and reports whether there
// was any.
func (r *reaper) step() bool {
	r.mu.Lock()
	var m extent.Map
	f := tmpFile(-1)
	switch last := len(r.queue) - 1; {
	case last >= 0:
		m = r.queue[last]
		r.queue[last] = extent.Map{}
		r.queue = r.queue[:last]
	case len(r.files) > 0:
		last := len(r.files) - 1
		f = r.files[last]
		r.files = r.files[:last]
	default:
		r.mu.Unlock()
		return false
	}
	r.taken++
	r.mu.Unlock()
	m.Clear(r.s.freeExtent)
	if f >= 0 {
		r.s.backing.Load().drop(f)
	}
	r.mu.Lock()
	r.taken--
	if r.taken == 0 && r.idle.L != nil {
		r.idle.Broadcast()
	}
	r.mu.Unlock()
	return true
}

// help frees what waits, or waits for those that others are freeing. It reports
// whether anything was freed meanwhile.
func (r *reaper) help() bool {
	if r.step() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == 0 {
		return len(r.queue)+len(r.files) > 0
	}
	if r.idle.L == nil {
		r.idle.L = &r.mu
	}
	for r.taken > 0 {
		r.idle.Wait()
	}
	return true
}

// drain frees everything that waits.
func (r *reaper) drain() {
	for r.help() {
	}
}

// release frees all pages of m, now or by the reaper.
func (s *Store) release(m extent.Map) {
	if m.Bytes() <= reapInline {
		m.Clear(s.freeExtent)
		return
	}
	s.reaper.add(m)
}

// pages allocates up to count consecutive pages of the class of size and
// charges them. Their memory has refcount 1.
func (s *Store) pages(size, count int, shard uint64, zero bool) (extent.Extent, bool) {
	page := int64(arena.ClassSize(size))
	for n := int64(count); n > 0; n /= 2 {
		if !s.charge(n * page) {
			continue
		}
		addr, got, err := s.arena.Alloc(size, int(n), shard, zero)
		if err != nil {
			s.uncharge(n * page)
			return extent.Extent{}, false
		}
		s.uncharge((n - int64(got)) * page)
		return extent.Extent{Addr: uint64(addr), Len: int64(got) * page, Page: uint32(page)}, true
	}
	return extent.Extent{}, false
}
