package memstore

import (
	"slices"
	"strings"
	"sync"
)

// WatchMask is a set of kinds of changes.
type WatchMask uint16

// Kinds of changes, as MS-SMB2 section 2.2.35 divides them.
const (
	WatchName  WatchMask = 1 << iota // a name of anything but a directory
	WatchDir                         // a directory's name
	WatchAttr                        // mode, times
	WatchWrite                       // data and size
	WatchOwner                       // owner and group
	WatchXattr
	WatchStreamName // a stream's name
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
)

// WatchEvent is one change below a watched directory.
type WatchEvent struct {
	Action WatchAction
	Path   string // from the watched directory, '/' between names
}

// watchQueue is how many events a watch keeps that nobody took.
const watchQueue = 1024

// Watch collects changes below one directory until it is closed.
type Watch struct {
	dir       *Inode
	mask      WatchMask
	recursive bool
	ready     chan struct{}

	mu       sync.Mutex
	events   []WatchEvent // (mu)
	overflow bool         // (mu) events were lost
	ended    bool         // (mu) closed, or the directory is gone
}

// Watch begins to collect changes of the directory's entries, or of the whole
// tree below it.
func (d *Inode) Watch(mask WatchMask, recursive bool) (*Watch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, ErrStale
	}
	if d.typ != TypeDir {
		return nil, ErrNotDir
	}
	w := &Watch{dir: d, mask: mask, recursive: recursive, ready: make(chan struct{}, 1)}
	x := d.extra()
	x.watches = append(x.watches, w)
	d.s.watches.Add(1)
	if recursive {
		d.s.recursive.Add(1)
	}
	return w, nil
}

// Ready has a value when events may wait, or the watch ended.
func (w *Watch) Ready() <-chan struct{} { return w.ready }

// Take returns the events since the last call. overflow says that more came
// than a watch keeps, and all are lost: the directory has to be listed again.
// ended says that there will be no more.
func (w *Watch) Take() (events []WatchEvent, overflow, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, overflow = w.events, w.overflow
	w.events, w.overflow = nil, false
	return events, overflow, w.ended
}

// Close ends the watch.
func (w *Watch) Close() {
	d := w.dir
	d.mu.Lock()
	if d.x != nil {
		d.x.watches = slices.DeleteFunc(d.x.watches, func(v *Watch) bool { return v == w })
	}
	w.end()
	d.mu.Unlock()
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
	close(w.ready) // for all who wait
}

func (w *Watch) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *Watch) add(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended || w.overflow:
		return
	case len(w.events) == watchQueue:
		w.events, w.overflow = nil, true
	default:
		e.Path = strings.Clone(e.Path) // it may be a part of the caller's buffer
		w.events = append(w.events, e)
	}
	w.wake()
}

// watched is the kinds of changes that a is.
func (a *SetAttr) watched() WatchMask {
	var m WatchMask
	if a.Mask&SetSize != 0 {
		m |= WatchWrite
	}
	if a.Mask&(SetUID|SetGID) != 0 {
		m |= WatchOwner
	}
	if a.Mask&^(SetSize|SetUID|SetGID|SetGuard|SetLocked) != 0 {
		m |= WatchAttr
	}
	return m
}

// changed tells the watches of the directory that has the inode. Called
// without a lock.
func (i *Inode) changed(mask WatchMask) {
	if i.s.watches.Load() == 0 {
		return
	}
	if d, name := i.lastName(); d != nil {
		d.notify(name, mask, WatchModified)
	}
}

// named is the kind of change that adding or removing the inode's name is.
func (i *Inode) named() WatchMask {
	if i.typ == TypeDir {
		return WatchDir
	}
	return WatchName
}

// notify tells the watches on d and those on trees that hold it. Called
// without a lock.
func (d *Inode) notify(name string, mask WatchMask, action WatchAction) {
	if d.s.watches.Load() == 0 {
		return
	}
	for direct := true; direct || d.s.recursive.Load() > 0; direct = false {
		d.mu.RLock()
		if d.x != nil {
			for _, w := range d.x.watches {
				if w.mask&mask != 0 && (direct || w.recursive) {
					w.add(WatchEvent{action, name})
				}
			}
		}
		d.mu.RUnlock()
		up, called := d.lastName()
		if up == nil {
			return
		}
		d, name = up, called+"/"+name
	}
}
