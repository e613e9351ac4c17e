package arena

import (
	"math/bits"
	"time"
)

const trimEvery = 500 * time.Millisecond

// wake starts the trimmer, which runs as long as there is memory to give back.
func (a *Arena) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.awake.CompareAndSwap(false, true) {
		return
	}
	a.done.Go(a.trimLoop)
}

func (a *Arena) trimLoop() {
	t := time.NewTicker(trimEvery)
	defer t.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-t.C:
		}
		if a.trim(false) {
			continue
		}
		// Who frees a page marks its span first and looks at awake then.
		a.awake.Store(false)
		if !a.pending() || !a.awake.CompareAndSwap(false, true) {
			return
		}
	}
}

// Trim gives all free memory back to the OS, also what has just been freed.
func (a *Arena) Trim() { a.trim(true) }

// trim gives back memory that has been free for some trims, or all, and tells
// whether there is more.
func (a *Arena) trim(all bool) (more bool) {
	a.trimMu.Lock()
	defer a.trimMu.Unlock()
	a.eachSpan(func(sp *span) {
		if sp.pending.Load() && a.trimSpan(sp, all) {
			more = true
		}
	})
	if a.trimFree(all) {
		more = true
	}
	a.unmap()
	return more
}

// pending tells whether there may be memory to give back.
func (a *Arena) pending() (more bool) {
	a.eachSpan(func(sp *span) { more = more || sp.pending.Load() })
	a.mu.Lock()
	defer a.mu.Unlock()
	return more || a.dirty != nil
}

// trimSpan gives back memory of free pages beside used ones. The pages are
// taken meanwhile, so that the heap stays unlocked while the kernel works.
func (a *Arena) trimSpan(sp *span, all bool) (more bool) {
	h := sp.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if sp.dead {
		return false
	}
	cold := bitmap(sp.r.cold[sp.index][:])
	var give units
	for u := 0; u < spanSize/a.unit; u++ {
		if cold.has(u) || !a.unitFree(sp, u) {
			continue
		}
		w, bit := u/64, uint64(1)<<(u%64)
		if !all && (sp.young[0][w]|sp.young[1][w]|sp.young[2][w])&bit != 0 {
			more = true
			continue
		}
		give[w] |= bit
	}
	sp.young = [ages]units{1: sp.young[0], 2: sp.young[1]}
	sp.pending.Store(more)

	if g := bitmap(give[:]); g.count() > 0 {
		taken := bitmap(a.scratch[:len(sp.free)])
		clear(taken)
		a.runs(g, func(u, end int) {
			first := u * a.unit / sp.size
			taken.set(first, min((end*a.unit-1)/sp.size+1, sp.pages)-first)
		})
		for i := range taken {
			sp.free[i] &^= taken[i]
		}
		n := taken.count()
		if sp.nfree -= n; sp.nfree == 0 && sp.listed {
			h.unlist(sp)
		}
		h.mu.Unlock()

		a.runs(g, func(u, end int) {
			base := sp.index * spanSize
			if a.release(sp.r, base+u*a.unit, base+end*a.unit) != nil {
				g.clear(u, end-u) // locked memory, for instance: leave it be
			}
		})

		h.mu.Lock()
		for i := range taken {
			sp.free[i] |= taken[i]
		}
		for i := range g {
			cold[i] |= g[i]
		}
		h.resident -= g.count()
		if sp.nfree += n; sp.nfree > 0 && !sp.listed && sp != h.current {
			h.list(sp, nil) // behind those whose memory is resident
		}
	}
	if sp.nfree == sp.pages && (sp != h.current || cold.count() == spanSize/a.unit) {
		a.giveSpan(sp)
	}
	return more
}

// unitFree tells whether all pages that have bytes in a unit are free.
func (a *Arena) unitFree(sp *span, u int) bool {
	first := u * a.unit / sp.size
	end := min(((u+1)*a.unit-1)/sp.size+1, sp.pages)
	return sp.free.run(first, end) == end
}

// runs calls fn for every [u, end) of members of b.
func (a *Arena) runs(b bitmap, fn func(u, end int)) {
	n := spanSize / a.unit
	for u := b.next(0, n); u < n; u = b.next(u, n) {
		end := b.run(u, n)
		fn(u, end)
		u = end
	}
}

// trimFree gives back the memory of free spans.
func (a *Arena) trimFree(all bool) (more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := 1; i < len(*a.regions.Load()); i++ {
		r := (*a.regions.Load())[i]
		if r == nil || r.dirty == 0 {
			continue
		}
		give := r.dirty
		if !all {
			give &^= r.young[0] | r.young[1] | r.young[2]
		}
		r.young = [ages]uint64{1: r.young[0], 2: r.young[1]}
		if give != 0 {
			r.free &^= give
			a.clean(r, give)
			a.mu.Unlock()
			given := a.releaseSpans(r, give)
			a.mu.Lock()
			for ; given != 0; given &= given - 1 {
				s := bits.TrailingZeros64(given)
				a.resident -= a.warmUnits(r, s)
				bitmap(r.cold[s][:]).set(0, spanSize/a.unit)
			}
			r.free |= give
			a.fresh = min(a.fresh, i)
		}
		more = more || r.dirty != 0
	}
	return more
}

// release gives the free memory [from, to) of a region to the OS.
func (a *Arena) release(r *region, from, to int) error {
	if err := r.release(from, to); err != nil {
		return err
	}
	r.wasRead.clear(from/a.unit, (to-from)/a.unit)
	r.wasWritten.clear(from/a.unit, (to-from)/a.unit)
	return nil
}

// releaseSpans gives back spans that nobody else has, and returns those that
// the OS took.
func (a *Arena) releaseSpans(r *region, spans uint64) uint64 {
	s := bitmap{spans}
	for i := s.next(0, regionSpans); i < regionSpans; {
		end := s.run(i, regionSpans)
		if a.release(r, i*spanSize, end*spanSize) != nil {
			s.clear(i, end-i)
		}
		i = s.next(end, regionSpans)
	}
	return s[0]
}

// unmap gives back the address space of regions without a used page, but one.
func (a *Arena) unmap() {
	var unused []*region
	a.mu.Lock()
	kept := false
	for i, r := range *a.regions.Load() {
		if r == nil || r.free != ^uint64(0) || r.dirty != 0 {
			continue
		}
		if !kept {
			kept = true
			continue
		}
		for s := range r.cold {
			a.resident -= a.warmUnits(r, s)
		}
		(*a.regions.Load())[i] = nil
		unused = append(unused, r)
	}
	a.mu.Unlock()
	for _, r := range unused {
		r.unmap() // fails only if the kernel is out of memory for its own tables
	}
}
