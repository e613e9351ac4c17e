package memstore

import (
	"ramserver/memstore/internal/extent"
)

// SeekData returns the first offset from off on where the file may have data.
// ErrNoData if there is none, or off is not before the end of the file.
func (i *Inode) SeekData(c *Caller, o *Open, off int64) (int64, error) {
	return i.seek(c, o, off, false, func() (int64, bool) {
		e, ok := i.data.Find(off)
		pos := max(off, e.Off)
		return pos, ok && pos < i.size
	})
}

// SeekHole returns the first offset from off on where the file has a hole; its
// end is one. ErrNoData if off is not before the end of the file.
func (i *Inode) SeekHole(c *Caller, o *Open, off int64) (int64, error) {
	return i.seek(c, o, off, true, func() (int64, bool) {
		pos := off
		for pos < i.size {
			e, ok := i.data.Find(pos)
			if !ok || e.Off > pos {
				return pos, true
			}
			pos = e.Off + e.Len
		}
		return i.size, true
	})
}

// seek finds data, or a hole: by find where the file is paged.
func (i *Inode) seek(c *Caller, o *Open, off int64, hole bool, find func() (int64, bool)) (int64, error) {
	i.rlock()
	if i.backed() != nil {
		i.mu.RUnlock()
		i.lock()
		defer i.mu.Unlock()
	} else {
		defer i.mu.RUnlock()
	}
	if err := i.readable(c, o, off, 0); err != nil {
		return 0, err
	}
	if off >= i.size {
		return 0, ErrNoData
	}
	if err := i.inPlace(c); err != nil {
		return 0, err
	}
	pos, ok := int64(0), false
	if i.backed() != nil {
		pos, ok = i.seekBacked(off, hole)
	} else {
		pos, ok = find()
	}
	if !ok {
		return 0, ErrNoData
	}
	return pos, nil
}

// Punch makes n bytes from off read as zero and gives their memory back; the
// size stays. A page that is shared with a clone needs another to clear a part
// of it: after ErrNoSpace only the front of the range may be zero.
func (i *Inode) Punch(c *Caller, o *Open, off, n int64) (ch Changed, err error) {
	var cut extent.Map
	ch, err = i.rewrite(c, o, off, n, func() error {
		end := min(off+n, i.size)
		if end <= off {
			return nil
		}
		if i.backed() != nil {
			return i.punchBacked(off, end)
		}
		// Bytes of a page behind the end of the file need not be kept.
		if e, ok := i.data.Find(end - 1); ok && e.Off < end && end == i.size {
			end = pageOf(e, end-1) + int64(e.Page)
		}
		return i.punch(off, end, func(e extent.Extent) { cut.Insert(e) })
	})
	i.s.release(cut)
	return ch, err
}

// rewrite checks and makes a change of the n bytes from off.
func (i *Inode) rewrite(c *Caller, o *Open, off, n int64, change func() error) (ch Changed, err error) {
	i.lock()
	if err = i.writable(c, o, off, n); err != nil {
		if !i.dead {
			ch = Changed{i.before(), i.attr()}
		}
		i.mu.Unlock()
		return ch, err
	}
	ch.Before = i.before()
	err = change()
	i.wrote(c) // a change that ran out of memory may be half done
	ch.After = i.attr()
	i.mu.Unlock()
	i.changed(ch.watched())
	i.s.settle(c, Stale{Inode: i, Data: true})
	return ch, err
}

// punch hands whole pages of [off, end) to free and clears the rest.
// Called with i.mu held for writing.
func (i *Inode) punch(off, end int64, free func(extent.Extent)) error {
	for pos := off; pos < end; {
		e, ok := i.data.Find(pos)
		if !ok || e.Off >= end {
			return nil
		}
		page := int64(e.Page)
		pos = max(pos, e.Off)
		first := pageOf(e, pos)
		if first == pos {
			if whole := roundDownBy(min(end, e.Off+e.Len)-pos, page); whole > 0 {
				i.data.Cut(pos, whole, free)
				pos += whole
				continue
			}
		}
		// A part of one page. What stays of a large one moves to pages of
		// 4 KiB, so that a hole has no memory behind it.
		stop := min(end, first+page)
		if err := i.shatter(e, first, pos, stop, free); err != nil {
			return err
		}
		pos = stop
	}
	return nil
}

// shatter clears [off, end) of the page at first, which is part of e.
func (i *Inode) shatter(e extent.Extent, first, off, end int64, free func(extent.Extent)) error {
	page := int64(e.Page)
	from, to := roundUp(off, pageSize), roundDown(end, pageSize)
	if end == first+page {
		to = roundUp(end, pageSize)
	}
	if page > pageSize && from < to {
		head, tail := from-first, roundUp(first+page, pageSize)-to
		kept := make([]extent.Extent, 0, 2)
		for _, part := range [...]struct{ off, n int64 }{{first, head}, {to, tail}} {
			for done := int64(0); done < part.n; {
				p, ok := i.s.pages(pageSize, int((part.n-done)/pageSize), uint64(i.ino), false)
				if !ok {
					for _, p := range kept {
						i.s.freeExtent(p)
					}
					return i.clearOwn(e, off, end)
				}
				p.Off = part.off + done
				// The last 4 KiB may go behind the page's end, and what is
				// behind the file's end must be zero in another page.
				live := max(0, min(p.Len, first+page-p.Off, i.size-p.Off))
				i.s.copyPage(p, e, p.Off, live)
				i.s.zero(p, p.Off+live, p.Off+p.Len)
				kept = append(kept, p)
				done += p.Len
			}
		}
		i.data.Cut(first, page, free)
		for _, p := range kept {
			i.data.Insert(p)
			i.s.zero(p, max(off, p.Off), min(end, p.Off+p.Len))
		}
		return nil
	}
	return i.clearOwn(e, off, end)
}

// clearOwn clears [off, end), which one page of e has.
func (i *Inode) clearOwn(e extent.Extent, off, end int64) error {
	e, ok := i.own(e, off, end)
	if !ok {
		return ErrNoSpace
	}
	i.s.zero(e, off, end)
	return nil
}

// Allocate makes sure that writes to the n bytes from off find memory. Without
// keepSize the file grows to that range's end. All or nothing: ErrNoSpace.
func (i *Inode) Allocate(c *Caller, o *Open, off, n int64, keepSize bool) (Changed, error) {
	if n <= 0 {
		return Changed{}, ErrInvalid
	}
	return i.rewrite(c, o, off, n, func() error {
		end := off + n
		i.grows(c, end)
		if i.backed() != nil {
			return i.allocateBacked(off, n, keepSize)
		}
		if !i.clearBehindEOF(end) {
			return ErrNoSpace
		}
		var added []extent.Extent
		for pos := off; pos < end; {
			e, ok := i.data.Find(pos)
			switch {
			case ok && e.Off <= pos:
				// Shared pages become own ones, so that a write needs none.
				e, ok = i.own(e, pos, end)
			default:
				var fresh bool
				if e, fresh, ok = i.reserve(pos, end, e, ok); fresh {
					added = append(added, e)
				}
			}
			if !ok {
				i.undo(added)
				return ErrNoSpace
			}
			pos = e.Off + e.Len
		}
		if !keepSize {
			i.size = max(i.size, end)
		}
		return nil
	})
}

// reserve maps zeroed pages from off on, where a hole is, up to end at most;
// next is the extent behind the hole, if there is one. fresh tells that they
// are new, and not a page that grew.
func (i *Inode) reserve(off, end int64, next extent.Extent, more bool) (e extent.Extent, fresh, ok bool) {
	slot := roundDown(off, slotSize)
	limit := slot + slotSize
	if more {
		end, limit = min(end, next.Off), min(limit, next.Off)
	}
	size, first, count := int(slotSize), off, (end-off)/slotSize
	if off != slot || count == 0 {
		end = min(roundUp(end, pageSize), limit)
		head, inSlot := i.lastBefore(slot, off)
		if inSlot && head.Off == slot && head.Len == int64(head.Page) && off-head.Off-head.Len < pageSize {
			if e, ok = i.grow(head, off, end, limit); ok {
				i.s.zero(e, off, end)
			}
			return e, false, ok
		}
		size, first = pageSize, roundDown(off, pageSize)
		count = (end - first) / pageSize
	}
	if e, ok = i.s.pages(size, int(count), uint64(i.ino), true); ok {
		e.Off = first
		i.data.Insert(e)
	}
	return e, ok, ok
}

// undo takes pages out again that Allocate added.
func (i *Inode) undo(added []extent.Extent) {
	for _, e := range added {
		i.data.Cut(e.Off, e.Len, i.s.freeExtent)
	}
}

// Clone makes n bytes of the file from off the same as src's from srcOff, by
// sharing pages where both offsets lie alike in their pages, else by copying;
// n 0 means to the end of src. It returns how many bytes were cloned: fewer
// than asked at the end of src, and with an error those before it.
func (i *Inode) Clone(c *Caller, o *Open, off int64, src *Inode, so *Open, srcOff, n int64) (done int64, ch Changed, err error) {
	if src.s != i.s {
		return 0, ch, ErrXDev
	}
	if i.typ == TypeDir || src.typ == TypeDir {
		return 0, ch, ErrIsDir // before they are locked in the order of files
	}
	if n < 0 || srcOff < 0 || off < 0 {
		return 0, ch, ErrInvalid
	}
	unlock := lockFiles(i, src)
	for _, f := range [...]*Inode{i, src} {
		if f.reached() {
			f.sync()
		}
	}
	err = src.readable(c, so, srcOff, n)
	if err == nil {
		if n == 0 || n > src.size-srcOff {
			n = max(0, src.size-srcOff)
		}
		if err = i.writable(c, o, off, n); err == nil && i == src && off < srcOff+n && srcOff < off+n {
			err = ErrInvalid
		}
	}
	if i.dead {
		unlock()
		return 0, ch, ErrStale
	}
	ch.Before = i.before()
	if err == nil && src.backed() != nil {
		i.grows(c, off+n)
	}
	if err == nil && (i.backed() != nil || src.backed() != nil) {
		unlock()
		done, ch.After, err = i.copyFrom(c, o, off, src, so, srcOff, n)
		return done, ch, err
	}
	if err == nil && n > 0 {
		if !i.clearBehindEOF(off) {
			err = ErrNoSpace
		} else {
			done = i.share(off, src, srcOff, n)
			if done < n {
				err = ErrNoSpace
			}
		}
		if done > 0 {
			i.size = max(i.size, off+done)
			i.wrote(c)
			src.touch()
		}
	}
	ch.After = i.attr()
	unlock()
	if done > 0 {
		i.changed(ch.watched())
		i.s.settle(c, Stale{Inode: i, Data: true})
	}
	return done, ch, err
}

// lockFiles locks two files for writing; they may be the same. It does not wait
// for one while it holds the other, so that it does not matter which comes first.
func lockFiles(a, b *Inode) (unlock func()) {
	for a.mu.Lock(); a != b && !b.mu.TryLock(); a.mu.Lock() {
		a.mu.Unlock()
		a, b = b, a
	}
	if a == b {
		return a.mu.Unlock
	}
	return func() {
		b.mu.Unlock()
		a.mu.Unlock()
	}
}

// copyFrom is Clone where a file is backed. Work on that leaves its lock, so a part
// is copied at a time, and each as a change of its own.
func (i *Inode) copyFrom(c *Caller, o *Open, off int64, src *Inode, so *Open, srcOff, n int64) (done int64, after Attr, err error) {
	buf := slotPool.Get().(*[slotSize]byte)
	defer slotPool.Put(buf)
	for done < n {
		to, from := off+done, srcOff+done
		data, err := src.SeekData(c, so, from)
		if err == ErrNoData {
			data = srcOff + n
		} else if err != nil {
			return done, after, err
		}
		if hole := min(data-from, n-done); hole > 0 {
			if _, err := i.Punch(c, o, to, hole); err != nil {
				return done, after, err
			}
			ch, err := i.extend(c, o, to+hole)
			if err != nil {
				return done, after, err
			}
			after = ch.After
			done += hole
			continue
		}
		m, _, _, err := src.ReadAt(c, so, buf[:min(n-done, slotSize-from%slotSize)], from)
		if err != nil || m == 0 {
			return done, after, err
		}
		w, ch, err := i.WriteAt(c, o, buf[:m], to)
		done, after = done+int64(w), ch.After
		if err == nil && w < m {
			err = ErrNoSpace
		}
		if err != nil {
			return done, after, err
		}
	}
	if done == 0 {
		after, err = i.GetAttr(c)
	}
	return done, after, err
}

// extend makes the file at least as long as end.
func (i *Inode) extend(c *Caller, o *Open, end int64) (Changed, error) {
	var cut extent.Map
	ch, err := i.rewrite(c, o, end, 0, func() (err error) {
		if end > i.size {
			cut, err = i.truncate(end)
		}
		return err
	})
	i.s.release(cut)
	return ch, err
}

// share is Clone with both locked for writing, and returns how far it came.
func (i *Inode) share(off int64, src *Inode, srcOff, n int64) (done int64) {
	for done < n {
		to, from := off+done, srcOff+done
		if done > 0 {
			i.size = max(i.size, to)
		}
		e, ok := src.data.Find(from)
		if !ok || e.Off > from {
			hole := n - done
			if ok {
				hole = min(hole, e.Off-from)
			}
			if i.punch(to, to+hole, i.s.freeExtent) != nil {
				return done
			}
			done += hole
			continue
		}
		page := int64(e.Page)
		if run := i.shareRun(e, to, from, n-done, src.size); run > 0 {
			src.cow, i.cow = true, true
			done += run
			continue
		}
		// Up to the next page of the source that may be shared.
		part := min(n-done, page-(from-e.Off)%page)
		// By a buffer, since writing may replace the page that is read.
		c := slotPool.Get().(*[slotSize]byte)
		src.s.arena.Read(c[:part], at(e, from))
		m := i.copyIn(c[:part], to)
		slotPool.Put(c)
		done += int64(m)
		if int64(m) < part {
			return done
		}
	}
	return done
}

// shareRun maps whole pages of e from source offset from at offset to, and
// returns how many of the n bytes that covers: 0 if they have to be copied.
func (i *Inode) shareRun(e extent.Extent, to, from, n, srcSize int64) int64 {
	page := int64(e.Page)
	if (from-e.Off)%page != 0 || page < pageSize || page%pageSize != 0 || to%pageSize != 0 || to%slotSize%page != 0 || page > pageSize && to%slotSize != 0 {
		return 0
	}
	run := roundDownBy(min(n, e.Off+e.Len-from), page)
	// The last page of the source may go behind its end, if the target ends
	// there too.
	if rest := min(n, e.Off+e.Len-from) - run; rest > 0 && from+run+rest == srcSize && to+run+rest >= i.size {
		run += page
	}
	if run == 0 {
		return 0
	}
	shared := int64(0)
	for ; shared < run; shared += page {
		if !i.s.arena.Ref(at(e, from+shared)) {
			break
		}
	}
	if shared == 0 {
		return 0
	}
	// What the target has there goes: whole pages, and parts of larger ones.
	if i.punch(to, to+shared, i.s.freeExtent) != nil || i.occupied(to, to+shared) {
		i.s.freeExtent(extent.Extent{Addr: e.Addr + uint64(from-e.Off), Len: shared, Page: e.Page})
		return 0
	}
	i.data.Insert(extent.Extent{Off: to, Addr: e.Addr + uint64(from-e.Off), Len: shared, Page: e.Page})
	return min(shared, n)
}

// occupied tells whether any page lies in [off, end).
func (i *Inode) occupied(off, end int64) bool {
	e, ok := i.data.Find(off)
	return ok && e.Off < end
}
