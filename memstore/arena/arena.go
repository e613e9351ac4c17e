// Package arena is page memory outside the Go heap.
//
// Memory comes from the OS in regions of 64 MiB, which are cut into spans of
// 1 MiB. A span belongs to one heap, which is a (shard, page size), and is cut
// into pages. A page has a count of references, by which files share it, and a
// count of pins, which keep its memory from being used again while a reply
// is sent from it. It is free when both are zero.
//
// Free memory that was touched is used first, since the first touch of memory
// is slow. What has been free for two seconds goes back to the OS, in units of
// OS pages.
//
// Lock order:
//
//	Arena.trimMu
//	  heap.mu
//	    Arena.mu
//
// The kernel's work, clearing and returning memory, is done under none of
// heap.mu and Arena.mu; only a new region is mapped under both.
package arena

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	regionSize  = 64 << 20
	spanShift   = 20
	spanSize    = 1 << spanShift
	regionSpans = regionSize / spanSize // one bit each in a uint64

	// regionShift is the distance of regions in Addr. It is more than their
	// size, so that pages of two regions never look consecutive.
	regionShift = 27
)

// ErrLimit is returned by Alloc when Config.Limit is reached.
var ErrLimit = errors.New("arena: limit reached")

// Addr is the address of a byte in an arena; 0 is none. Consecutive bytes have
// consecutive addresses, but only pages that are consecutive in memory do.
type Addr uint64

// Config is how an arena is made. The zero value has no limit.
type Config struct {
	// Limit is the most memory in bytes that pages are made of, in steps of
	// 1 MiB; free pages beside used ones count. 0: none.
	Limit int64
}

// Stats counts memory in bytes.
type Stats struct {
	Mapped   int64 // address space
	Resident int64 // was touched and not given back to the OS
	Used     int64 // used pages
	Free     int64 // resident, but in no used page
	Meta     int64 // tables about spans, in the Go heap
	Pages    int64 // number of used pages
	Pins     int64 // number of pins
}

// Arena is a set of pages. All methods may be called concurrently, but Close.
type Arena struct {
	shards    uint64 // number, a power of two
	limit     int    // in spans; 0: none
	unit      int    // bytes of an OS page, but 4 KiB at least
	unitShift int    // unit is 1<<unitShift
	heaps     []heap // by shard, then class

	regions atomic.Pointer[[]*region] // by Addr>>regionShift; elements change under mu

	mu       sync.Mutex
	owned    int     // spans that heaps have
	meta     int64   // bytes about these
	resident int     // units of free spans that are not cold
	dirty    *region // list of the regions with dirty spans, last used first
	fresh    int     // no region before this one has free spans that are not dirty
	closed   bool

	trimMu  sync.Mutex
	scratch [spanSize / 64 / 64]uint64 // (trimMu)
	awake   atomic.Bool                // the trimmer runs
	stop    chan struct{}
	done    sync.WaitGroup
}

// units is a set of the OS pages of a span.
type units [spanSize / 4096 / 64]uint64

// ages is the number of trims that memory stays free before it is given back.
const ages = 3

// region is 64 MiB of memory.
//
// Fields are (c) constant, (m) protected by Arena.mu or (o) protected by the
// lock of who has the span: its heap, or Arena.mu if it is free.
type region struct {
	base    Addr // (c)
	mapping      // (c)

	// spans are those that heaps have. (m) to change and to look at any; who
	// has a page reads its span without a lock.
	spans [regionSpans]*span
	cold  [regionSpans]units // (o) not resident; zero if osZeroes

	// OS pages that were read and written since they came from the OS, by the
	// kernel or through the mapping.
	wasRead, wasWritten used

	free, dirty uint64       // (m) spans that are free, and not cold altogether
	young       [ages]uint64 // (m) spans freed since the last trim, the one before...
	prev, next  *region      // (m) Arena.dirty, if dirty is not 0
}

// span is 1 MiB that belongs to a heap.
type span struct {
	h      *heap   // (c)
	r      *region // (c)
	index  int     // (c) in r
	size   int     // (c) bytes of a page
	pages  int     // (c)
	counts []atomic.Uint32

	// Protected by h.mu.
	free   bitmap
	nfree  int
	cursor int         // where to look for a free page
	young  [ages]units // freed since the last trim, the one before...
	dead   bool        // given back
	listed bool        // in h.partial
	prev   *span
	next   *span

	pending atomic.Bool // may have free memory to give back; set under h.mu
}

// A page's count has its references in the lower and its pins in the upper
// half. Neither reaches maxCount+1, so that one less than zero is noticed.
const (
	oneRef   = 1
	onePin   = 1 << 16
	maxCount = 1<<16 - 2
)

func refsOf(count uint32) int { return int(count & 0xffff) }
func pinsOf(count uint32) int { return int(count >> 16) }

// heap is the spans of one shard and page size.
type heap struct {
	mu       sync.Mutex
	current  *span // where pages come from
	first    *span // list of the other spans with free pages, last used first
	last     *span
	after    Addr // behind the last span that was taken
	used     int  // pages
	resident int  // units of the spans that are not cold

	pins atomic.Int64

	_ [56]byte // keeps heaps in different cache lines
}

// New returns an arena without memory.
func New(c Config) *Arena {
	shards := 1
	for shards < min(runtime.GOMAXPROCS(0), 16) {
		shards *= 2
	}
	a := &Arena{
		shards: uint64(shards),
		limit:  int(c.Limit / spanSize),
		unit:   max(4096, os.Getpagesize()),
		heaps:  make([]heap, shards*len(classes)),
		fresh:  1,
		stop:   make(chan struct{}),
	}
	if c.Limit > 0 {
		a.limit = max(a.limit, 1)
	}
	a.unitShift = bits.TrailingZeros(uint(a.unit))
	a.regions.Store(&[]*region{nil}) // no page has Addr 0
	return a
}

// Alloc returns up to count consecutive pages of ClassSize(size) bytes, each
// with one reference: the address of the first and how many there are, as many
// as are free in one piece at the first place that has any. A following call
// with the same shard, which may be any number, continues directly behind if
// it can. With zero the pages are zero, else they hold anything.
//
// The error is ErrLimit or that of the OS; it leaves everything unchanged.
func (a *Arena) Alloc(size, count int, shard uint64, zero bool) (Addr, int, error) {
	class := classOf(size)
	if count < 1 {
		panic(fmt.Sprintf("arena: %d pages", count))
	}
	h := &a.heaps[int(shard&(a.shards-1))*len(classes)+class]
	h.mu.Lock()
	sp, err := a.spanFor(h, class)
	if err != nil {
		h.mu.Unlock()
		if h, sp, err = a.spanAnywhere(h, class, err); err != nil {
			return 0, 0, err
		}
	}
	first, n := sp.take(count)
	h.used += n
	from := first * sp.size
	to := from + n*sp.size
	cold := a.touch(sp, from, to)
	h.mu.Unlock()

	for i := range sp.counts[first : first+n] {
		sp.counts[first+i].Store(oneRef)
	}
	if zero {
		a.zero(sp, cold, from, to)
	}
	return sp.base() + Addr(from), n, nil
}

// spanFor makes h.current a span with free pages, and returns it. h is
// locked.
func (a *Arena) spanFor(h *heap, class int) (*span, error) {
	sp := h.current
	if sp != nil && sp.nfree > 0 {
		return sp, nil
	}
	h.current = nil
	if sp = h.first; sp != nil {
		h.unlist(sp)
		h.current = sp
		return sp, nil
	}
	sp, err := a.takeSpan(h, class)
	if err != nil {
		return nil, err
	}
	h.current = sp
	h.after = sp.base() + spanSize
	return sp, nil
}

// spanAnywhere looks for a free page when no span is left for h, first in
// the heaps of other shards, then in what no heap needs. It returns the heap
// locked.
func (a *Arena) spanAnywhere(h *heap, class int, err error) (*heap, *span, error) {
	for s := range int(a.shards) {
		o := &a.heaps[s*len(classes)+class]
		o.mu.Lock()
		if o.first != nil || o.current != nil && o.current.nfree > 0 {
			sp, err := a.spanFor(o, class)
			return o, sp, err // cannot fail
		}
		o.mu.Unlock()
	}
	// What is being trimmed just now is free too.
	a.trimMu.Lock()
	for i := range a.heaps {
		o := &a.heaps[i]
		o.mu.Lock()
		if sp := o.current; sp != nil && sp.nfree == sp.pages {
			a.giveSpan(sp)
		}
		o.mu.Unlock()
	}
	a.trimMu.Unlock()
	h.mu.Lock()
	sp, again := a.spanFor(h, class)
	if again != nil {
		h.mu.Unlock()
		return nil, nil, err
	}
	return h, sp, nil
}

// take removes up to count consecutive pages from the free ones.
func (sp *span) take(count int) (first, n int) {
	first = sp.free.next(sp.cursor, sp.pages)
	if first == sp.pages {
		first = sp.free.next(0, sp.cursor)
	}
	n = sp.free.run(first, min(first+count, sp.pages)) - first
	sp.free.clear(first, n)
	sp.nfree -= n
	sp.cursor = first + n
	return first, n
}

// touch notes that the bytes [from, to) of sp become resident, and returns
// which units of the span were cold before.
func (a *Arena) touch(sp *span, from, to int) (cold units) {
	u := from / a.unit
	end := (to-1)/a.unit + 1
	c := bitmap(sp.r.cold[sp.index][:])
	if c.next(u, end) == end {
		return cold
	}
	copy(cold[:], c)
	before := c.count()
	c.clear(u, end-u)
	sp.h.resident += before - c.count()
	return cold
}

// zero clears what of [from, to) is not zero already.
func (a *Arena) zero(sp *span, cold units, from, to int) {
	if !osZeroes {
		cold = units{}
	}
	c := bitmap(cold[:])
	for from < to {
		u := from / a.unit
		end := (to-1)/a.unit + 1
		stop := c.next(u, end)
		if stop > u {
			a.Zero(sp.base()+Addr(from), min(to, stop*a.unit)-from)
		}
		from = c.run(stop, end) * a.unit
	}
}

func (sp *span) base() Addr { return sp.r.base + Addr(sp.index*spanSize) }

// page returns the span of a used page, and its number in it.
func (a *Arena) page(addr Addr) (*span, int) {
	off := uint(addr & (1<<regionShift - 1))
	sp := (*a.regions.Load())[addr>>regionShift].spans[off>>spanShift]
	return sp, int(uint32(off&(spanSize-1)) / uint32(sp.size))
}

// PageSize returns the size in bytes of the page that addr is in.
func (a *Arena) PageSize(addr Addr) int {
	sp, _ := a.page(addr)
	return sp.size
}

// PageStart returns the address of the first byte of the page that addr is in.
func (a *Arena) PageStart(addr Addr) Addr {
	sp, i := a.page(addr)
	return sp.base() + Addr(i*sp.size)
}

// Ref adds a reference to the page. It returns false, and adds none, if there
// are 65534: the page must be copied then.
func (a *Arena) Ref(addr Addr) bool {
	sp, i := a.page(addr)
	for {
		count := sp.counts[i].Load()
		switch refsOf(count) {
		case 0:
			panic(fmt.Sprintf("arena: Ref of free page %#x", addr))
		case maxCount:
			return false
		}
		if sp.counts[i].CompareAndSwap(count, count+oneRef) {
			return true
		}
	}
}

// Refs returns the number of references to the page.
func (a *Arena) Refs(addr Addr) int {
	sp, i := a.page(addr)
	return refsOf(sp.counts[i].Load())
}

// Shared tells whether the page has more than one reference.
func (a *Arena) Shared(addr Addr) bool { return a.Refs(addr) > 1 }

// Pin keeps the memory of a used page from being used again after its last
// reference is dropped. It does not stop writes to the page. It returns false,
// and does nothing, if the page has 65534 pins.
func (a *Arena) Pin(addr Addr) bool {
	sp, i := a.page(addr)
	for {
		count := sp.counts[i].Load()
		if refsOf(count) == 0 {
			panic(fmt.Sprintf("arena: Pin of free page %#x", addr))
		}
		if pinsOf(count) == maxCount {
			return false
		}
		if sp.counts[i].CompareAndSwap(count, count+onePin) {
			sp.h.pins.Add(1)
			return true
		}
	}
}

// Unpin undoes one Pin.
func (a *Arena) Unpin(addr Addr) {
	sp, i := a.page(addr)
	count := sp.counts[i].Add(-onePin & (1<<32 - 1))
	if pinsOf(count) > maxCount {
		panic(fmt.Sprintf("arena: Unpin of page %#x without a pin", addr))
	}
	sp.h.pins.Add(-1)
	if count == 0 {
		a.reuse(sp, i)
	}
}

// Free drops one reference to the page and tells whether it was the last.
func (a *Arena) Free(addr Addr) bool {
	sp, i := a.page(addr)
	count := sp.counts[i].Add(-oneRef & (1<<32 - 1))
	if refsOf(count) > maxCount {
		panic(fmt.Sprintf("arena: Free of free page %#x", addr))
	}
	if count == 0 {
		a.reuse(sp, i)
	}
	return refsOf(count) == 0
}

// reuse makes a page free.
func (a *Arena) reuse(sp *span, i int) {
	h := sp.h
	h.mu.Lock()
	h.used--
	sp.nfree++
	sp.free.set(i, 1)
	u := i * sp.size / a.unit
	bitmap(sp.young[0][:]).set(u, ((i+1)*sp.size-1)/a.unit+1-u)
	if !sp.pending.Load() {
		sp.pending.Store(true)
	}
	switch {
	case sp == h.current:
		// It is kept even if it is empty now, so that a single page that
		// comes and goes does not take and give a span each time.
	case sp.nfree == sp.pages:
		a.giveSpan(sp)
	case !sp.listed:
		h.list(sp, h.first)
	}
	h.mu.Unlock()
	if !a.awake.Load() {
		a.wake()
	}
}

// list puts sp into the list of spans with free pages, before next; nil is
// the end.
func (h *heap) list(sp, next *span) {
	sp.listed = true
	sp.next = next
	if next != nil {
		sp.prev, next.prev = next.prev, sp
	} else {
		sp.prev, h.last = h.last, sp
	}
	if sp.prev != nil {
		sp.prev.next = sp
	} else {
		h.first = sp
	}
}

func (h *heap) unlist(sp *span) {
	if sp.prev != nil {
		sp.prev.next = sp.next
	} else {
		h.first = sp.next
	}
	if sp.next != nil {
		sp.next.prev = sp.prev
	} else {
		h.last = sp.prev
	}
	sp.prev, sp.next, sp.listed = nil, nil, false
}

// takeSpan makes a free span one of h, which is locked.
func (a *Arena) takeSpan(h *heap, class int) (*span, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limit > 0 && a.owned >= a.limit {
		return nil, ErrLimit
	}
	size := int(classes[class])
	r, i, err := a.pickSpan(h.after, size)
	if err != nil {
		return nil, err
	}
	r.free &^= 1 << i
	if r.dirty>>i&1 != 0 {
		a.clean(r, 1<<i)
	}
	sp := &span{h: h, r: r, index: i, size: size, pages: spanSize / size}
	sp.counts = make([]atomic.Uint32, sp.pages)
	sp.free = make(bitmap, (sp.pages+63)/64)
	sp.free.set(0, sp.pages)
	sp.nfree = sp.pages
	r.spans[i] = sp
	a.owned++
	a.meta += sp.meta()
	n := a.warmUnits(r, i)
	a.resident -= n
	h.resident += n
	return sp, nil
}

// meta is about the bytes of Go heap that sp takes.
func (sp *span) meta() int64 { return int64(320 + 4*sp.pages + sp.pages/8) }

// warmUnits returns how much of a span is resident, in units.
func (a *Arena) warmUnits(r *region, i int) int {
	return spanSize/a.unit - bitmap(r.cold[i][:]).count()
}

// pickSpan finds a free span: the one at after if it is dirty or no other is,
// else a dirty one, else a cold one. mu is held.
func (a *Arena) pickSpan(after Addr, size int) (*region, int, error) {
	regions := *a.regions.Load()
	if after != 0 && int(after>>regionShift) < len(regions) {
		r := regions[after>>regionShift]
		i := int(after & (1<<regionShift - 1) >> spanShift)
		if r != nil && i < regionSpans && r.free>>i&1 != 0 && (r.dirty>>i&1 != 0 || a.dirty == nil) {
			return r, i, nil
		}
	}
	if r := a.dirty; r != nil {
		return r, bits.TrailingZeros64(r.dirty), nil
	}
	for ; a.fresh < len(regions); a.fresh++ {
		r := regions[a.fresh]
		if r == nil || r.free == 0 {
			continue
		}
		if size >= MaxPage/4 {
			// Large files are written here: leave room for the next spans of
			// this shard, so that each has a piece of its own.
			eight := r.free & (r.free >> 1)
			eight &= eight >> 2
			eight &= eight >> 4
			if eight &= 0x0101010101010101; eight != 0 {
				return r, bits.TrailingZeros64(eight), nil
			}
		}
		return r, bits.TrailingZeros64(r.free), nil
	}
	r, err := a.addRegion()
	return r, 0, err
}

func (a *Arena) addRegion() (*region, error) {
	if a.closed {
		return nil, errors.New("arena: closed")
	}
	m, err := osMap(regionSize)
	if err != nil {
		return nil, fmt.Errorf("arena: %d bytes more: %w", regionSize, err)
	}
	regions := *a.regions.Load()
	i := 1
	for i < len(regions) && regions[i] != nil {
		i++
	}
	if i == len(regions) {
		// Readers may have the old table, which stays right for them.
		regions = append(regions[:i:i], make([]*region, i)...)
		a.regions.Store(&regions)
	}
	r := &region{base: Addr(i) << regionShift, mapping: m, free: ^uint64(0)}
	for s := range r.cold {
		bitmap(r.cold[s][:]).set(0, spanSize/a.unit)
	}
	regions[i] = r
	a.fresh = min(a.fresh, i)
	return r, nil
}

// giveSpan takes a span without used pages from its heap, which is locked.
func (a *Arena) giveSpan(sp *span) {
	h, r, i := sp.h, sp.r, sp.index
	if sp == h.current {
		h.current = nil
	}
	if sp.listed {
		h.unlist(sp)
	}
	sp.dead = true
	sp.pending.Store(false)
	a.mu.Lock()
	r.spans[i] = nil
	a.owned--
	a.meta -= sp.meta()
	n := a.warmUnits(r, i)
	h.resident -= n
	a.resident += n
	r.free |= 1 << i
	if n > 0 {
		if r.dirty != 0 {
			a.unlink(r)
		}
		r.dirty |= 1 << i
		r.young[0] |= 1 << i
		if r.next = a.dirty; r.next != nil {
			r.next.prev = r
		}
		a.dirty = r
	} else {
		a.fresh = min(a.fresh, int(r.base>>regionShift))
	}
	a.mu.Unlock()
}

// clean removes spans from the dirty ones.
func (a *Arena) clean(r *region, spans uint64) {
	r.dirty &^= spans
	for i := range r.young {
		r.young[i] &^= spans
	}
	if r.dirty == 0 {
		a.unlink(r)
	}
}

func (a *Arena) unlink(r *region) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		a.dirty = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// eachSpan calls fn for every span of a heap, with no lock held. The span may
// have been given back meanwhile.
func (a *Arena) eachSpan(fn func(*span)) {
	for i := 1; ; i++ {
		a.mu.Lock()
		regions := *a.regions.Load()
		if i >= len(regions) {
			a.mu.Unlock()
			return
		}
		var spans [regionSpans]*span
		if regions[i] != nil {
			spans = regions[i].spans
		}
		a.mu.Unlock()
		for _, sp := range spans {
			if sp != nil {
				fn(sp)
			}
		}
	}
}

// Walk calls fn for every page that has references or pins. What changes
// meanwhile is seen as it is before or after.
func (a *Arena) Walk(fn func(addr Addr, size, refs, pins int)) {
	a.eachSpan(func(sp *span) {
		for i := range sp.counts {
			if count := sp.counts[i].Load(); count != 0 {
				fn(sp.base()+Addr(i*sp.size), sp.size, refsOf(count), pinsOf(count))
			}
		}
	})
}

// Stats returns the current numbers.
func (a *Arena) Stats() Stats {
	var st Stats
	for i := range a.heaps {
		h := &a.heaps[i]
		h.mu.Lock()
		st.Pages += int64(h.used)
		st.Used += int64(h.used) * int64(classes[i%len(classes)])
		st.Resident += int64(h.resident) * int64(a.unit)
		h.mu.Unlock()
		st.Pins += h.pins.Load()
	}
	a.mu.Lock()
	st.Resident += int64(a.resident) * int64(a.unit)
	st.Meta = a.meta
	for _, r := range *a.regions.Load() {
		if r != nil {
			st.Mapped += regionSize
		}
	}
	a.mu.Unlock()
	st.Free = max(st.Resident-st.Used, 0)
	return st
}

// Close stops the trimmer and unmaps all memory. Nothing of the arena may be
// in use or be used afterwards.
func (a *Arena) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	a.mu.Unlock()
	close(a.stop)
	a.done.Wait()

	var errs []error
	for _, r := range *a.regions.Load() {
		if r != nil {
			errs = append(errs, r.unmap())
		}
	}
	a.regions.Store(&[]*region{nil})
	return errors.Join(errs...)
}
