package memstore

import (
	"time"

	"ramserver/memstore/internal/extent"
)

// backed is where the bytes of a backed file are, and what local processes may
// be doing to it. Fields are (c) constant or protected by Inode.mu.
type backed struct {
	file tmpFile // (c)
	st   tmpStat // as the file was when the store looked last

	id    int32 // by which the mount's kernel knows the file, if opens > 0
	opens int   // of the mount, by which processes reach the file by themselves
	away  int   // calls that work on the file with Inode.mu unlocked; see leave

	// A process may read, or change, the file without the store: one had it open
	// like that, and has it still, or mapped, as far as is known.
	held, loose bool
}

// tmpStat is what a tmpfs says of a file.
type tmpStat struct{ size, used, mtime, atime int64 }

// smallFile is up to which size a file is better kept in pages of the arena.
const smallFile = 64 << 10

// backed is nil for a paged file. Called with i.mu held.
func (i *Inode) backed() *backed {
	if i.x == nil {
		return nil
	}
	return i.x.backed
}

// loose tells whether a local process may be changing the file without the
// store. Called with i.mu held.
func (i *Inode) loose() bool {
	b := i.backed()
	return b != nil && b.loose
}

// shown is the change time to those who tell by it whether data has changed: not
// before a local process may have changed it last. Called with i.mu held.
func (i *Inode) shown() int64 {
	if i.x == nil {
		return i.ctime
	}
	return max(i.ctime, i.x.loosened)
}

// Loose tells whether a local process may be changing the file without the store.
func (i *Inode) Loose() bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.loose()
}

// reached tells whether a local process may reach the file without the store.
// Called with i.mu held.
func (i *Inode) reached() bool {
	b := i.backed()
	return b != nil && b.held
}

// lock locks i for writing, and knows of what local processes have done to it.
func (i *Inode) lock() {
	i.mu.Lock()
	if i.reached() {
		i.sync()
	}
}

// rlock is lock for reading.
func (i *Inode) rlock() {
	i.mu.RLock()
	if i.reached() {
		i.mu.RUnlock()
		i.lock()
		i.mu.Unlock()
		i.mu.RLock()
	}
}

// anyone is who may have written to a file.
var anyone = &Caller{Cred: Cred{UID: 1<<32 - 2, GID: 1<<32 - 2}}

// sync takes in what local processes may have done without the store. Called
// with i.mu held for writing.
func (i *Inode) sync() {
	b := i.x.backed
	if b.loose {
		// Stores to a page that is mapped already move no time.
		i.change++
		i.x.loosened = max(now(), i.x.loosened+1)
	}
	if b.opens == 0 && b.away == 0 && b.file.alone() {
		b.held, b.loose = false, false
	}
	was := b.st
	b.st = b.file.stat()
	if b.st.size != i.size || b.st.mtime != was.mtime {
		// The tmpfs's clock is behind ours by up to a tick.
		i.begin(max(b.st.mtime, i.ctime))
		i.mtime = i.ctime
		i.size = b.st.size
		i.dropPrivilege(anyone)
	}
	if b.st.atime != was.atime {
		i.atime.Store(max(i.atime.Load(), b.st.atime))
	}
}

// toBacked moves a file's bytes to the tmpfs, and reports whether they are
// there. Called with i.mu held for writing.
func (i *Inode) toBacked() bool {
	if i.backed() != nil {
		return true
	}
	b := i.s.backing.Load()
	if b == nil || i.typ != TypeFile {
		return false
	}
	f, err := b.create()
	if err != nil {
		return false
	}
	if !i.copyTo(f) {
		b.drop(f)
		return false
	}
	i.extra().backed = &backed{file: f, st: f.stat()}
	i.s.release(i.data)
	i.data, i.cow = extent.Map{}, false
	return true
}

// copyTo gives a new file of the tmpfs the inode's bytes, and memory where that
// has some.
func (i *Inode) copyTo(f tmpFile) bool {
	buf := slotPool.Get().(*[slotSize]byte)
	defer slotPool.Put(buf)
	for e := range i.data.All() {
		end := min(e.Off+e.Len, i.size)
		for off := e.Off; off < end; {
			n := min(end-off, slotSize-off%slotSize)
			p := buf[:n]
			if i.s.arena.Warm(at(e, off), int(n), false) {
				p = i.s.arena.Bytes(at(e, off), int(n))
			} else {
				i.s.arena.Get(p, at(e, off))
			}
			if f.write(p, off) < len(p) {
				return false
			}
			off += n
		}
		// What may have been allocated behind the end.
		if from := max(e.Off, roundUp(i.size, pageSize)); from < e.Off+e.Len && !f.allocate(from, e.Off+e.Len-from, true) {
			return false
		}
	}
	return f.truncate(i.size)
}

// toPaged moves the bytes of a small file, which no local process may reach, to
// pages. It stays as it is if there is no memory for that. Called with i.mu held
// for writing.
func (i *Inode) toPaged() {
	b, size := i.x.backed, i.size
	if size > 0 && b.st.used > roundUp(size, tmpfsPage) {
		return // memory was allocated behind its end
	}
	buf := slotPool.Get().(*[slotSize]byte)
	defer slotPool.Put(buf)
	i.x.backed, i.size = nil, 0
	for off := int64(0); off < size; {
		from, ok := b.file.seek(off, false)
		if !ok {
			break
		}
		end, ok := b.file.seek(from, true)
		if !ok {
			end = size
		}
		end = min(end, size, from+slotSize)
		b.file.read(buf[:end-from], from)
		if i.copyIn(buf[:end-from], from) < int(end-from) {
			i.data.Clear(i.s.freeExtent)
			i.x.backed, i.size = b, size
			return
		}
		i.size, off = end, end
	}
	// Nothing is shared yet, so this needs no memory.
	i.clearBehindEOF(size)
	i.size = size
	i.s.dropBacked(b)
}

// dropBacked frees the bytes of a file that is backed no more. Called with the
// inode's mu held.
func (s *Store) dropBacked(b *backed) {
	if b.st.used <= reapInline {
		s.backing.Load().drop(b.file)
		return
	}
	s.reaper.addFile(b.file)
}

// leave is called before the tmpfs is asked for what has to wait while a local
// process writes to the file: that process may wait for its write's source, which
// can be a mapping of anything. If there may be one i.mu is unlocked, until join;
// the file stays backed and loose meanwhile, but the inode may be dead then. Called
// with i.mu held for writing.
func (i *Inode) leave() (b *backed, left bool) {
	b = i.x.backed
	if left = b.loose; left {
		b.away++
		i.mu.Unlock()
	}
	return b, left
}

// elsewhere is the Wait of calls that are not to be made in place.
var elsewhere = func() *Wait {
	w := &Wait{done: make(chan struct{})}
	close(w.done)
	return w
}()

// inPlace refuses a caller what may leave the lock, if it is not to. Called with
// i.mu held.
func (i *Inode) inPlace(c *Caller) error {
	if c.InPlace && i.loose() {
		return elsewhere
	}
	return nil
}

// join locks i.mu again if leave has unlocked it.
func (i *Inode) join(b *backed, left bool) {
	if !left {
		return
	}
	i.mu.Lock()
	if b.away--; b.away == 0 && i.backed() != b {
		i.s.dropBacked(b) // see forsake
	}
}

// joinChanged is join after a change, and takes in what it has made of the file.
func (i *Inode) joinChanged(b *backed, left bool) {
	i.join(b, left)
	if i.backed() == b {
		b.st = b.file.stat()
		i.size = b.st.size
	}
}

// forsake frees the bytes of an inode that is dead, as soon as nobody works on
// them. Called with the inode's mu held for writing.
func (s *Store) forsake(b *backed) {
	if b.away == 0 {
		s.dropBacked(b)
	}
}

// writeBacked is copyIn for a backed file, and sets the size.
func (i *Inode) writeBacked(p []byte, off int64) int {
	b, left := i.leave()
	done := b.file.write(p, off)
	for more := true; done < len(p) && more; {
		// The tmpfs is full. It gets what is free elsewhere.
		more = i.s.reaper.help()
		i.s.give(0)
		n := b.file.write(p[done:], off+int64(done))
		done, more = done+n, more || n > 0
	}
	i.joinChanged(b, left)
	return done
}

// appendBacked writes p where the file ends when it is written: local processes
// may append too.
func (i *Inode) appendBacked(p []byte) int {
	b, left := i.leave()
	i.s.give(0)
	n := b.file.append(p)
	i.joinChanged(b, left)
	return n
}

func (i *Inode) truncateBacked(size int64) error {
	b, left := i.leave()
	ok := b.file.truncate(size)
	i.joinChanged(b, left)
	if !ok {
		return ErrNoSpace
	}
	return nil
}

func (i *Inode) punchBacked(off, end int64) error {
	if end == i.size {
		end = roundUp(end, tmpfsPage) // the rest of the last page need not be kept
	}
	b, left := i.leave()
	ok := b.file.punch(off, end-off)
	i.joinChanged(b, left)
	if !ok {
		return ErrNoSpace
	}
	return nil
}

func (i *Inode) allocateBacked(off, n int64, keepSize bool) error {
	b, left := i.leave()
	i.s.reaper.drain()
	i.s.give(0)
	ok := b.file.allocate(off, n, keepSize)
	i.joinChanged(b, left)
	if !ok {
		return ErrNoSpace
	}
	return nil
}

// seekBacked finds data, or a hole, from off on; ok is false if there is none.
func (i *Inode) seekBacked(off int64, hole bool) (pos int64, ok bool) {
	b, left := i.leave()
	pos, ok = b.file.seek(off, hole)
	i.join(b, left)
	return pos, ok
}

// grows is called before a file gets longer, to end. What local processes make
// large is backed from then on, so that it need not be moved when one opens it.
func (i *Inode) grows(c *Caller, end int64) {
	if i.size > smallFile || end <= smallFile || c.Holder == nil || i.backed() != nil {
		return
	}
	if l := i.s.local.Load(); l != nil && l.holder == c.Holder && l.kernel != nil {
		i.toBacked()
	}
}

// tidyLater has a small file made paged again, if it stays closed for a while.
// Called with the inode's mu held.
func (b *backing) tidyLater(i *Inode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = append(b.closed, i)
	if !b.awake {
		b.awake = true
		time.AfterFunc(time.Second, b.tidyUp)
	}
}

// tidyUp makes small files paged that local processes have closed.
func (b *backing) tidyUp() {
	b.tidy.Lock()
	defer b.tidy.Unlock()
	b.mu.Lock()
	closed := b.closed
	b.closed, b.awake = nil, false
	b.mu.Unlock()
	for _, i := range closed {
		i.lock()
		if i.backed() != nil && !i.reached() && i.size <= smallFile {
			i.toPaged()
		}
		i.mu.Unlock()
	}
}
