package memstore

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// WatchMask is a set of kinds of changes.
type WatchMask uint16

// Kinds of changes, as MS-SMB2 section 2.2.35 divides them.
const (
	WatchName  WatchMask = 1 << iota // a name of anything but a directory
	WatchDir                         // a directory's name
	WatchAttr                        // mode, attributes that only SMB knows
	WatchAtime                       // set, not moved by a read
	WatchMtime                       // likewise
	WatchBtime
	WatchWrite // data
	WatchSize
	WatchOwner // owner, group and mode: who may do what
	WatchXattr
	WatchStreamName
	WatchStreamWrite
	WatchStreamSize
)

// WatchAction is what happened to a name.
type WatchAction uint8

// Actions.
const (
	WatchAdded WatchAction = iota + 1
	WatchRemoved
	WatchModified
	WatchRenamedFrom
	WatchRenamedTo
	WatchStreamAdded
	WatchStreamRemoved
	WatchStreamModified
)

// WatchEvent is one change below a watched directory.
type WatchEvent struct {
	Action WatchAction
	Path   string // from the watched directory, '/' between names
	Stream string // of that file, or ""
}

// A watch keeps so many bytes of events that nobody took, of which each counts for
// its names and eventCost.
const (
	watchBytes = 192 << 10
	eventCost  = 64
)

func (e *WatchEvent) cost() int64 { return int64(eventCost + len(e.Path) + len(e.Stream)) }

// WatchRoom bounds what several watches keep together.
type WatchRoom struct {
	Max int64      // bytes
	All *WatchRoom // which this one is a part of, or nil

	used atomic.Int64
}

// take reports false, having taken nothing, if n bytes more are too much.
func (r *WatchRoom) take(n int64) bool {
	switch {
	case r == nil:
		return true
	case r.used.Add(n) > r.Max || !r.All.take(n):
		r.used.Add(-n)
		return false
	}
	return true
}

func (r *WatchRoom) give(n int64) {
	for ; r != nil; r = r.All {
		r.used.Add(-n)
	}
}

// Watch collects changes below one directory until it is closed.
type Watch struct {
	dir       *Inode
	mask      WatchMask
	recursive bool
	room      *WatchRoom

	mu       sync.Mutex
	events   []WatchEvent    // (mu)
	bytes    int64           // (mu) that they cost
	overflow bool            // (mu) events were lost
	ended    bool            // (mu) closed, or the directory is gone
	waiting  []chan struct{} // (mu) of those who wait, the oldest first
	woken    []woken         // (mu) who do not wait any more, and have not come yet
}

// woken is what there was when somebody was woken.
type woken struct {
	who      <-chan struct{}
	events   []WatchEvent
	bytes    int64
	overflow bool
}

// Watch begins to collect changes of the directory's entries, or of the whole
// tree below it. What it keeps counts against the room, if there is one; where that
// is full, events are lost.
func (d *Inode) Watch(mask WatchMask, recursive bool, room *WatchRoom) (*Watch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.dead:
		return nil, ErrStale
	case d.typ != TypeDir:
		return nil, ErrNotDir
	case d.nlink == 0: // removed, and open still
		return nil, ErrStale
	}
	w := &Watch{dir: d, mask: mask, recursive: recursive, room: room}
	x := d.extra()
	x.watches = append(x.watches, w)
	d.s.watches.Add(1)
	if recursive {
		d.s.recursive.Add(1)
	}
	return w, nil
}

// Wait returns a channel that is closed when there is something to take, or the
// watch has ended. Who waits longest gets what there is first, and no more than
// that; who does not wait any more says so by Leave.
func (w *Watch) Wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan struct{})
	w.waiting = append(w.waiting, c)
	w.wake()
	return c
}

// Leave gives up a wait. What would have ended it is for the next.
func (w *Watch) Leave(c <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(v chan struct{}) bool { return v == c })
	if t, ok := w.turn(c); ok {
		w.events, w.bytes, w.overflow = append(t.events, w.events...), w.bytes+t.bytes, w.overflow || t.overflow
		w.wake()
	}
}

// turn is what there was when c was closed. Called with w.mu held.
func (w *Watch) turn(c <-chan struct{}) (t woken, ok bool) {
	n := slices.IndexFunc(w.woken, func(t woken) bool { return t.who == c })
	if n < 0 {
		return t, false
	}
	t = w.woken[n]
	w.woken = slices.Delete(w.woken, n, n+1)
	return t, true
}

// wake wakes who has waited longest if there is something, and all when there will be
// no more. Called with w.mu held.
func (w *Watch) wake() {
	for len(w.waiting) > 0 && (w.ended || w.overflow || len(w.events) > 0) {
		w.woken = append(w.woken, woken{w.waiting[0], w.events, w.bytes, w.overflow})
		w.events, w.bytes, w.overflow = nil, 0, false
		close(w.waiting[0])
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
}

// Take returns the events since the last call, or those that ended the caller's wait;
// c is nil for who has not waited. overflow says that more came than a watch keeps,
// and all are lost: the directory has to be listed again. ended says that there will
// be no more.
func (w *Watch) Take(c <-chan struct{}) (events []WatchEvent, overflow, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.turn(c)
	if !ok {
		t = woken{events: w.events, bytes: w.bytes, overflow: w.overflow}
		w.events, w.bytes, w.overflow = nil, 0, false
	}
	w.room.give(t.bytes)
	return t.events, t.overflow, w.ended
}

// Close ends the watch, and forgets what it has kept.
func (w *Watch) Close() {
	d := w.dir
	d.mu.Lock()
	if d.x != nil {
		d.x.watches = slices.DeleteFunc(d.x.watches, func(v *Watch) bool { return v == w })
	}
	w.end()
	d.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.woken {
		w.room.give(t.bytes)
	}
	w.room.give(w.bytes)
	w.events, w.bytes, w.woken = nil, 0, nil
}

// endWatches tells who watches the directory that it goes. Called with i.mu held for
// writing.
func (i *Inode) endWatches() {
	if i.x != nil {
		for _, w := range i.x.watches {
			w.end()
		}
	}
}

// end is called with the directory's mu held for writing.
func (w *Watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.dir.s.watches.Add(-1)
	if w.recursive {
		w.dir.s.recursive.Add(-1)
	}
	w.wake()
}

// add keeps events of what is called name, and wakes who waits when all are there.
func (w *Watch) add(name string, events []WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		e.Path = name + e.Path
		n := e.cost()
		switch {
		case w.ended || w.overflow:
			return
		case len(w.events) > 0 && w.events[len(w.events)-1] == e:
			continue // a file that is written to, over and over
		case w.bytes+n > watchBytes || !w.room.take(n):
			w.room.give(w.bytes)
			w.events, w.bytes, w.overflow = nil, 0, true
		default:
			// They may be parts of the caller's buffer.
			e.Path, e.Stream = strings.Clone(e.Path), strings.Clone(e.Stream)
			w.events = append(w.events, e)
			w.bytes += n
		}
	}
	w.wake()
}

// watched is the kinds of changes that a is.
func (a *SetAttr) watched() (m WatchMask) {
	for _, k := range [...]struct {
		set  SetMask
		mask WatchMask
	}{
		{SetSize, WatchWrite | WatchSize},
		{SetUID | SetGID, WatchOwner},
		{SetMode, WatchAttr | WatchOwner},
		{SetDOS, WatchAttr},
		{SetAtime | SetAtimeNow, WatchAtime},
		{SetMtime | SetMtimeNow, WatchMtime},
		{SetBtime, WatchBtime},
	} {
		if a.Mask&k.set != 0 {
			m |= k.mask
		}
	}
	return m
}

// watched is the kinds of changes that a change of data is.
func (ch *Changed) watched() WatchMask {
	if ch.Before.Size == ch.After.Size {
		return WatchWrite
	}
	return WatchWrite | WatchSize
}

// changed tells the watches of the directory that has the inode. Called
// without a lock.
func (i *Inode) changed(mask WatchMask) {
	switch {
	case i.s.watches.Load() == 0:
	case !i.stream:
		if d, name := i.lastName(); d != nil {
			d.notify(mask, WatchEvent{Action: WatchModified, Path: name})
		}
	default:
		m := WatchMask(0)
		if mask&WatchWrite != 0 {
			m |= WatchStreamWrite
		}
		if mask&WatchSize != 0 {
			m |= WatchStreamSize
		}
		i.home.streamChanged(m, WatchEvent{Action: WatchStreamModified, Stream: i.streamName()})
	}
}

// streamChanged tells the watches of the directory that has the inode of what has
// happened to its streams; the events are without its name.
func (i *Inode) streamChanged(mask WatchMask, events ...WatchEvent) {
	if i.s.watches.Load() == 0 {
		return
	}
	if d, name := i.lastName(); d != nil {
		for k := range events {
			events[k].Path = name
		}
		d.notify(mask, events...)
	}
}

// named is the kind of change that adding or removing the inode's name is.
func (i *Inode) named() WatchMask {
	if i.typ == TypeDir {
		return WatchDir
	}
	return WatchName
}

// notify tells the watches on d and those on trees that hold it of events, which
// nobody sees one without the other. Called without a lock.
func (d *Inode) notify(mask WatchMask, events ...WatchEvent) {
	d.notifyUnless(0, mask, events...)
}

// notifyUnless is notify without those who watch for what else has happened.
func (d *Inode) notifyUnless(other, mask WatchMask, events ...WatchEvent) {
	if d.s.watches.Load() == 0 {
		return
	}
	dir := ""
	for direct := true; direct || d.s.recursive.Load() > 0; direct = false {
		d.mu.RLock()
		if d.x != nil {
			for _, w := range d.x.watches {
				if w.mask&mask != 0 && w.mask&other == 0 && (direct || w.recursive) {
					w.add(dir, events)
				}
			}
		}
		d.mu.RUnlock()
		up, called := d.lastName()
		if up == nil {
			return
		}
		d, dir = up, called+"/"+dir
	}
}
