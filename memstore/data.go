package memstore

import (
	"errors"
	"sync"

	"ramserver/memstore/arena"
	"ramserver/memstore/internal/extent"
)

const (
	slotSize = arena.MaxPage // no page crosses a multiple of this
	pageSize = 4 << 10       // pages inside a sparse slot
)

func roundDown(n, unit int64) int64 { return n &^ (unit - 1) }
func roundUp(n, unit int64) int64   { return (n + unit - 1) &^ (unit - 1) }

// roundDownBy is roundDown for a unit that is no power of two.
func roundDownBy(n, unit int64) int64 { return n - n%unit }

// pageOf returns where the page of e that covers off begins.
func pageOf(e extent.Extent, off int64) int64 {
	return e.Off + roundDownBy(off-e.Off, int64(e.Page))
}

// zeroes is what holes read as.
var zeroes [slotSize]byte

// at is the address of file offset off, which e covers.
func at(e extent.Extent, off int64) arena.Addr {
	return arena.Addr(e.Addr + uint64(off-e.Off))
}

// copyPage copies n bytes of the file from off, at most a slot, which both
// extents cover; through a buffer where the source is slow to map.
func (s *Store) copyPage(to, from extent.Extent, off, n int64) {
	if n <= 0 {
		return
	}
	src := at(from, off)
	if s.arena.Warm(src, int(n), false) {
		s.arena.Write(at(to, off), s.arena.Bytes(src, int(n)))
		return
	}
	c := slotPool.Get().(*[slotSize]byte)
	s.arena.Get(c[:n], src)
	s.arena.Write(at(to, off), c[:n])
	slotPool.Put(c)
}

// zero clears [off, end), which e covers.
func (s *Store) zero(e extent.Extent, off, end int64) {
	if end > off {
		s.arena.Zero(at(e, off), int(end-off))
	}
}

// mayAccess checks whether the caller may read or write [off, end): by its
// open, or without one by mode, owner and the share modes of other opens; and
// against mandatory locks. The owner needs no permission without an open,
// since an open file outlives a change of its mode, and one who may execute a
// file may read it, to page it in. Called with i.mu held.
func (i *Inode) mayAccess(c *Caller, o *Open, want Access, off, end int64) error {
	switch {
	case o != nil:
		if o.inode != i || o.access&want != want {
			return ErrAccess
		}
	case !i.owns(c) && !i.permits(c, want) && (want != AccessRead || !i.permits(c, AccessExecute)):
		return ErrAccess
	}
	if i.x == nil {
		return nil
	}
	if o == nil {
		if by := i.x.denies(want); by != nil {
			return i.violation(c, by)
		}
	}
	if _, hit := i.x.locks.ConflictIO(lockKey{open: o}, uint64(off), uint64(end-off), want&AccessWrite != 0); hit {
		return ErrLocked
	}
	return nil
}

// readable is what ReadAt, ReadView and the searches check first. Called with
// i.mu held; off must not be negative.
func (i *Inode) readable(c *Caller, o *Open, off, n int64) error {
	switch {
	case i.dead:
		return ErrStale
	case i.typ == TypeDir:
		return ErrIsDir
	case i.typ != TypeFile || off < 0:
		return ErrInvalid
	}
	if err := i.mayAccess(c, o, AccessRead, off, off+min(n, MaxFileSize-min(off, MaxFileSize))); err != nil {
		return err
	}
	if w := i.breakLeases(c, opRead); w != nil {
		return w
	}
	return nil
}

// ReadAt copies the file's bytes from off into p. eof tells that the read
// reached the end of the file; a read there returns 0 bytes and no error.
func (i *Inode) ReadAt(c *Caller, o *Open, p []byte, off int64) (n int, eof bool, attr Attr, err error) {
	i.rlock()
	defer i.mu.RUnlock()
	if err := i.readable(c, o, off, int64(len(p))); err != nil {
		return 0, false, Attr{}, err
	}
	end := min(off+int64(len(p)), i.size)
	if off < end {
		n = int(end - off)
		i.copyOut(p[:n], off)
	}
	if len(p) > 0 {
		i.touch()
	}
	return n, off+int64(n) >= i.size, i.attr(), nil
}

// copyOut fills p with the bytes from off; holes are zero.
func (i *Inode) copyOut(p []byte, off int64) {
	if b := i.backed(); b != nil {
		b.file.read(p, off)
		return
	}
	for len(p) > 0 {
		e, ok := i.data.Find(off)
		if !ok || e.Off >= off+int64(len(p)) {
			clear(p)
			return
		}
		if e.Off > off {
			hole := e.Off - off
			clear(p[:hole])
			p, off = p[hole:], e.Off
		}
		n := min(int64(len(p)), e.Off+e.Len-off)
		i.s.arena.Read(p[:n], at(e, off))
		p, off = p[n:], off+n
	}
}

// View is a range of a file whose memory is pinned, so that it can be sent
// without a copy. A pin stops another use of the memory, not writes to the
// file: bytes may be from before or after a concurrent write. Memory that is
// slow to map is copied instead (arena.Warm). The zero View is ready for use,
// and it may be used again after Release.
type View struct {
	Slices [][]byte
	arena  *arena.Arena
	pins   []arena.Addr
	copies []*[slotSize]byte
}

// Release unpins the memory.
func (v *View) Release() {
	for _, a := range v.pins {
		v.arena.Unpin(a)
	}
	for _, c := range v.copies {
		slotPool.Put(c)
	}
	clear(v.Slices)
	clear(v.copies)
	v.Slices, v.pins, v.copies = v.Slices[:0], v.pins[:0], v.copies[:0]
}

// slotPool has buffers for what passes through memory once.
var slotPool = sync.Pool{New: func() any { return new([slotSize]byte) }}

// pin adds n bytes of e from off on without a copy. It reports false if they
// are better copied, and for more pins of a page than it can count.
func (v *View) pin(e extent.Extent, off, n int64) bool {
	if !v.arena.Warm(at(e, off), int(n), false) {
		return false
	}
	had := len(v.pins)
	for p := pageOf(e, off); p < off+n; p += int64(e.Page) {
		if !v.arena.Pin(at(e, p)) {
			for _, a := range v.pins[had:] {
				v.arena.Unpin(a)
			}
			v.pins = v.pins[:had]
			return false
		}
		v.pins = append(v.pins, at(e, p))
	}
	v.Slices = append(v.Slices, v.arena.Bytes(at(e, off), int(n)))
	return true
}

// copy adds n bytes of e from off on, at most slotSize.
func (v *View) copy(e extent.Extent, off, n int64) {
	c := slotPool.Get().(*[slotSize]byte)
	v.arena.Get(c[:n], at(e, off))
	v.copies = append(v.copies, c)
	v.Slices = append(v.Slices, c[:n])
}

// ReadView is ReadAt without the copy: v's slices together have the n bytes.
func (i *Inode) ReadView(c *Caller, o *Open, off int64, count int, v *View) (n int, eof bool, attr Attr, err error) {
	i.rlock()
	defer i.mu.RUnlock()
	if err := i.readable(c, o, off, int64(count)); err != nil {
		return 0, false, Attr{}, err
	}
	v.arena = i.s.arena
	end := max(off, min(off+int64(count), i.size))
	b := i.backed()
	for pos := off; pos < end; {
		if b != nil {
			c := slotPool.Get().(*[slotSize]byte)
			n := min(end-pos, slotSize)
			b.file.read(c[:n], pos)
			v.copies = append(v.copies, c)
			v.Slices = append(v.Slices, c[:n])
			pos += n
			continue
		}
		e, ok := i.data.Find(pos)
		if !ok || e.Off > pos {
			hole := min(end-pos, slotSize)
			if ok {
				hole = min(hole, e.Off-pos)
			}
			v.Slices = append(v.Slices, zeroes[:hole])
			pos += hole
			continue
		}
		n := min(end, e.Off+e.Len) - pos
		if !v.pin(e, pos, n) {
			n = min(n, slotSize)
			v.copy(e, pos, n)
		}
		pos += n
	}
	if count > 0 {
		i.touch()
	}
	return int(end - off), end >= i.size, i.attr(), nil
}

// writable is what every change of data checks first. Called with i.mu held.
func (i *Inode) writable(c *Caller, o *Open, off, n int64) error {
	switch {
	case i.dead:
		return ErrStale
	case i.typ == TypeDir:
		return ErrIsDir
	case i.typ != TypeFile || off < 0 || n < 0:
		return ErrInvalid
	case off > MaxFileSize-n:
		return ErrFileTooLarge
	}
	if err := i.mayAccess(c, o, AccessWrite, off, off+n); err != nil {
		return err
	}
	if w := i.breakLeases(c, opWrite); w != nil {
		return w
	}
	return i.inPlace(c)
}

// wrote finishes a change of data. Called with i.mu held for writing.
func (i *Inode) wrote(c *Caller) {
	t := now()
	i.begin(t)
	i.mtime = t
	i.dropPrivilege(c)
}

// WriteAt copies p into the file at off. n < len(p) without an error is a
// short write because the store is full; ErrNoSpace says that nothing could be
// written.
func (i *Inode) WriteAt(c *Caller, o *Open, p []byte, off int64) (n int, ch Changed, err error) {
	i.lock()
	return i.write(c, o, p, off, false)
}

// Append is WriteAt at the end of the file, wherever that is when the bytes
// are written. It returns the offset where they were put.
func (i *Inode) Append(c *Caller, o *Open, p []byte) (off int64, n int, ch Changed, err error) {
	i.lock()
	off = i.size
	n, ch, err = i.write(c, o, p, off, true)
	if n > 0 {
		off = ch.After.Size - int64(n)
	}
	return off, n, ch, err
}

// write is called with i.mu held for writing, and unlocks it. off is the end of
// the file if it appends.
func (i *Inode) write(c *Caller, o *Open, p []byte, off int64, appends bool) (n int, ch Changed, err error) {
	if err := i.writable(c, o, off, int64(len(p))); err != nil {
		if !i.dead {
			ch = Changed{i.before(), i.attr()}
		}
		i.mu.Unlock()
		return 0, ch, err
	}
	ch.Before = i.before()
	i.grows(c, off+int64(len(p)))
	if appends && i.loose() {
		n = i.appendBacked(p)
	} else {
		n = i.copyIn(p, off)
	}
	if n > 0 {
		i.wrote(c)
	} else if len(p) > 0 {
		err = ErrNoSpace
	}
	ch.After = i.attr()
	i.mu.Unlock()
	if n > 0 {
		i.changed(ch.watched())
		i.s.settle(c, Stale{Inode: i, Data: true})
	}
	return n, ch, err
}

// copyIn puts p at off, makes the file as long as that needs, and returns how many
// bytes there was memory for. Called with i.mu held for writing.
func (i *Inode) copyIn(p []byte, off int64) int {
	if i.backed() != nil {
		return i.writeBacked(p, off)
	}
	if !i.clearBehindEOF(off) {
		return 0
	}
	done := 0
	for done < len(p) {
		pos := off + int64(done)
		e, ok := i.cover(pos, off+int64(len(p)))
		if !ok {
			break
		}
		n := min(int64(len(p)-done), e.Off+e.Len-pos)
		i.s.arena.Write(at(e, pos), p[done:done+int(n)])
		done += int(n)
	}
	if done > 0 {
		i.size = max(i.size, off+int64(done))
	}
	return done
}

// clearBehindEOF makes the bytes from the end of the file to end read as zero,
// before the file grows over them; an end inside the file needs nothing. It
// fails only when a shared page cannot be copied for lack of memory. A backed
// file has no such bytes.
func (i *Inode) clearBehindEOF(end int64) bool {
	e, ok := i.data.Find(i.size)
	if end <= i.size || !ok || e.Off > i.size {
		return true
	}
	end = min(end, pageOf(e, i.size)+int64(e.Page))
	if e, ok = i.own(e, i.size, end); !ok {
		return false
	}
	i.s.zero(e, i.size, end)
	return true
}

// cover makes sure that off is backed by memory that only this file uses, and
// returns an extent that covers off. New memory is made for as much of
// [off, end) as fits together; what is outside that range reads as zero.
// Called with i.mu held for writing.
func (i *Inode) cover(off, end int64) (extent.Extent, bool) {
	e, ok := i.data.Find(off)
	if ok && e.Off <= off {
		return i.own(e, off, end)
	}
	slot := roundDown(off, slotSize)
	limit := slot + slotSize // where a page that holds off must end
	if ok {
		end = min(end, e.Off)
		limit = min(limit, e.Off)
	}
	if slots := (end - off) / slotSize; off == slot && slots > 0 {
		return i.place(off, off, off+slots*slotSize, slotSize, int(slots))
	}
	end = min(end, limit)
	head, inSlot := i.lastBefore(slot, off)
	headEnd := head.Off + head.Len
	switch {
	case inSlot && head.Off == slot && head.Len == int64(head.Page) && off-headEnd < pageSize:
		return i.grow(head, off, end, limit)
	case !inSlot && off < slot+pageSize && end >= i.size && limit == slot+slotSize:
		// The tail of the file. A file that is written piece by piece gets
		// room to grow in proportion to its size.
		size := max(end-slot, min(slotSize, slot/16))
		return i.place(slot, off, end, int(size), 1)
	}
	first := roundDown(off, pageSize)
	return i.place(first, off, end, pageSize, int((roundUp(end, pageSize)-first)/pageSize))
}

// lastBefore finds the last run of pages in [slot, off).
func (i *Inode) lastBefore(slot, off int64) (extent.Extent, bool) {
	var last extent.Extent
	found := false
	for pos := slot; pos < off; {
		e, ok := i.data.Find(pos)
		if !ok || e.Off >= off {
			break
		}
		// A run may have begun in an earlier slot.
		if skip := slot - e.Off; skip > 0 {
			e.Off, e.Addr, e.Len = slot, e.Addr+uint64(skip), e.Len-skip
		}
		last, found = e, true
		pos = e.Off + e.Len
	}
	return last, found
}

// place maps count new pages of the class of size from file offset first, and
// clears what of them is outside [off, end).
func (i *Inode) place(first, off, end int64, size, count int) (extent.Extent, bool) {
	e, ok := i.s.pages(size, count, uint64(i.ino), false)
	if !ok {
		return e, false
	}
	e.Off = first
	i.s.zero(e, first, off)
	i.s.zero(e, end, first+e.Len)
	i.data.Insert(e)
	return e, true
}

// grow replaces the page at the start of a slot by a larger one that covers
// [off, end) too and ends at limit at most.
func (i *Inode) grow(head extent.Extent, off, end, limit int64) (extent.Extent, bool) {
	slot := head.Off
	want := max(end-slot, min(head.Len+head.Len/2, slotSize))
	want = min(want, limit-slot)
	e, ok := i.s.pages(int(want), 1, uint64(i.ino), false)
	if !ok {
		return e, false
	}
	e.Off = slot
	i.s.copyPage(e, head, slot, head.Len)
	i.s.zero(e, slot+head.Len, off)
	i.s.zero(e, end, slot+e.Len)
	i.data.Cut(slot, head.Len, i.s.freeExtent)
	i.data.Insert(e)
	return e, true
}

// own makes the pages of e that [off, end) touches this file's own, and
// returns an extent that covers off. Called with i.mu held for writing.
func (i *Inode) own(e extent.Extent, off, end int64) (extent.Extent, bool) {
	if !i.cow {
		return e, true
	}
	page := int64(e.Page)
	first := pageOf(e, off)
	stop := first
	for stop < min(end, e.Off+e.Len) && !i.s.arena.Shared(at(e, stop)) {
		stop += page
	}
	if stop > first {
		e.Addr, e.Off, e.Len = e.Addr+uint64(first-e.Off), first, stop-first
		return e, true
	}
	fresh, ok := i.s.pages(int(page), 1, uint64(i.ino), false)
	if !ok {
		return fresh, false
	}
	fresh.Off = first
	i.s.copyPage(fresh, e, first, page)
	i.data.Cut(first, page, i.s.freeExtent)
	i.data.Insert(fresh)
	return fresh, true
}

// truncate sets the size and returns the pages to free. Called with i.mu held
// for writing.
func (i *Inode) truncate(size int64) (cut extent.Map, err error) {
	if b := i.backed(); b != nil {
		if size == 0 && !b.held {
			i.x.backed, i.size = nil, 0
			i.s.dropBacked(b)
			return cut, nil
		}
		return cut, i.truncateBacked(size)
	}
	switch {
	case size > i.size:
		if !i.clearBehindEOF(size) {
			return cut, ErrNoSpace
		}
	case size == 0:
		cut, i.data = i.data, extent.Map{}
		i.cow = false
	case size < i.size:
		keep := size
		if e, ok := i.data.Find(size - 1); ok && e.Off < size {
			page := int64(e.Page)
			first := pageOf(e, size-1)
			keep = first + page
			// A page that is half empty now is replaced by one that fits,
			// if there is memory for that.
			if live := size - first; live <= page/2 && first == roundDown(first, slotSize) {
				if e, ok := i.s.pages(int(live), 1, uint64(i.ino), false); ok {
					e.Off = first
					old, _ := i.data.Find(first)
					i.s.copyPage(e, old, first, live)
					i.data.Cut(first, page, i.s.freeExtent)
					i.data.Insert(e)
					keep = first + e.Len
				}
			}
		}
		i.data.Cut(keep, MaxFileSize+slotSize-keep, func(e extent.Extent) { cut.Insert(e) })
	}
	i.size = size
	return cut, nil
}

// Fresh is memory that a large WRITE's payload is received into before it
// becomes the file's: pages of the arena, or buffers where these are slow to
// map. The zero Fresh is ready for use.
type Fresh struct {
	Slices [][]byte // to be filled in order
	i      *Inode
	off    int64
	n      int64
	pages  []extent.Extent
	copies []copied
}

// copied is a page of 64 KiB whose content is in a buffer.
type copied struct {
	page arena.Addr
	buf  *[slotSize]byte
}

// NewFresh gets memory for n bytes at off, both multiples of 64 KiB. It does
// not count against the store's limit until WriteFresh.
func (i *Inode) NewFresh(f *Fresh, off int64, n int) error {
	if off < 0 || off%slotSize != 0 || n <= 0 || n%slotSize != 0 {
		return ErrInvalid
	}
	f.i, f.off, f.n = i, off, int64(n)
	for got := int64(0); got < f.n; {
		addr, count, err := i.s.arena.Alloc(slotSize, int((f.n-got)/slotSize), uint64(i.ino), false)
		if err != nil {
			f.Release()
			return ErrNoSpace
		}
		e := extent.Extent{Off: off + got, Addr: uint64(addr), Len: int64(count) * slotSize, Page: slotSize}
		f.pages = append(f.pages, e)
		got += e.Len
		if i.s.arena.Warm(addr, int(e.Len), true) {
			f.Slices = append(f.Slices, i.s.arena.Bytes(addr, int(e.Len)))
			continue
		}
		for p := e.Off; p < e.Off+e.Len; p += slotSize {
			c := copied{at(e, p), slotPool.Get().(*[slotSize]byte)}
			f.copies = append(f.copies, c)
			f.Slices = append(f.Slices, c.buf[:])
		}
	}
	return nil
}

// fill copies what was received into buffers to the pages.
func (f *Fresh) fill() {
	for _, c := range f.copies {
		f.i.s.arena.Put(c.page, c.buf[:])
	}
}

// Release gives memory back that was not written.
func (f *Fresh) Release() {
	for _, e := range f.pages {
		for p := e.Off; p < e.Off+e.Len; p += slotSize {
			f.i.s.arena.Free(at(e, p))
		}
	}
	f.reset()
}

func (f *Fresh) reset() {
	for _, c := range f.copies {
		slotPool.Put(c.buf)
	}
	clear(f.copies)
	clear(f.Slices)
	f.Slices, f.pages, f.copies, f.i = f.Slices[:0], f.pages[:0], f.copies[:0], nil
}

// WriteFresh is WriteAt of all of f, without a copy: its pages replace the
// file's. f is used up, unless it answers Wait.
func (i *Inode) WriteFresh(c *Caller, o *Open, f *Fresh) (n int, ch Changed, err error) {
	f.fill()
	i.lock()
	off := f.off
	if err := i.writable(c, o, off, f.n); err != nil {
		if !i.dead {
			ch = Changed{i.before(), i.attr()}
		}
		i.mu.Unlock()
		if wait := (*Wait)(nil); !errors.As(err, &wait) {
			f.Release()
		}
		return 0, ch, err
	}
	ch.Before = i.before()
	switch {
	case !i.clearBehindEOF(off):
	case i.backed() == nil && i.s.charge(f.n):
		i.data.Cut(off, f.n, i.s.freeExtent)
		for _, e := range f.pages {
			i.data.Insert(e)
		}
		n = int(f.n)
		i.size = max(i.size, off+f.n)
		f.reset()
	default:
		// Backed, or full: what there are pages for can still be overwritten.
		for _, p := range f.Slices {
			done := i.copyIn(p, off+int64(n))
			if n += done; done < len(p) || i.dead {
				break
			}
		}
	}
	if n > 0 {
		i.wrote(c)
	} else {
		err = ErrNoSpace
	}
	ch.After = i.attr()
	i.mu.Unlock()
	f.Release()
	if n > 0 {
		i.changed(ch.watched())
		i.s.settle(c, Stale{Inode: i, Data: true})
	}
	return n, ch, err
}
