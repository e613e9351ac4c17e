package fusefs

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"ramserver/memstore"
)

// invalidator has a goroutine of its own that tells the kernel what to forget.
// The kernel takes locks for that which it holds while it waits for answers, so
// neither one who answers requests nor one who holds a lock of the store may do
// it.
type invalidator struct {
	wake  chan struct{} // has a value when orders may wait
	busy  atomic.Int64  // orders that are not carried out; counted before an Untell
	over  chan struct{} // closed when no kernel is there any more
	count atomic.Uint64

	mu    sync.Mutex
	queue []order // (mu)
	last  order   // (mu) queued last
	ended bool    // (mu)
}

func newInvalidator() *invalidator {
	return &invalidator{wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// order is what to forget. done is closed when it is forgotten.
type order struct {
	stale []memstore.Stale
	done  chan struct{}
}

// now returns when the kernel has forgotten.
//
// An inode of which the kernel was told nothing since it forgot attributes and
// data has nothing stale, once the order for that is carried out: what the
// kernel had asked for before, it drops when that is done (see tell). Names it
// forgets one by one, so these it always has to be told.
func (v *invalidator) now(stale []memstore.Stale) {
	needed := false
	for _, t := range stale {
		needed = needed || t.Name != "" || t.Inode.Told()
	}
	if !needed && v.busy.Load() == 0 {
		return
	}
	<-v.add(stale, needed)
}

// later is for what the kernel itself asked for: it does not wait.
func (v *invalidator) later(t memstore.Stale) { v.add([]memstore.Stale{t}, true) }

// add queues an order if it is needed, and returns what is closed when all
// orders up to now have been carried out.
func (v *invalidator) add(stale []memstore.Stale, needed bool) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return v.over
	}
	if needed {
		v.busy.Add(1)
		for _, t := range stale {
			if t.Data || t.Inode.Type() == memstore.TypeDir {
				t.Inode.Untell()
			}
		}
		v.last = order{stale, make(chan struct{})}
		v.queue = append(v.queue, v.last)
		select {
		case v.wake <- struct{}{}:
		default:
		}
	}
	return v.last.done
}

// take waits for orders. more is false when the mount has ended.
func (v *invalidator) take() (orders []order, more bool) {
	select {
	case <-v.wake:
	case <-v.over:
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	q := v.queue
	v.queue = nil
	return q, !v.ended
}

// end lets everybody go who waits, now and later.
func (v *invalidator) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	close(v.over)
}

func (s *server) invalidate() {
	for more := true; more; {
		var orders []order
		orders, more = s.forget.take()
		for _, o := range orders {
			for _, t := range o.stale {
				if more {
					s.tell(t)
				}
			}
			close(o.done)
			s.forget.busy.Add(-1)
		}
	}
}

// tell has the kernel forget one thing.
//
// An answer may be on its way to the kernel with what was true before the
// change. The kernel drops the attributes and data in it when it was told to
// forget meanwhile, with two exceptions that are waited for: answers to calls
// that change an entry or set attributes, which hold the lock of the directory
// or inode that the kernel takes to forget an entry, for which reason an entry
// is named that no file has; and answers that tell of an inode for the first
// time, until which the kernel does not know it.
//
// The lock of a file is also held by a process while it writes without the server,
// for as long as its write's source takes. So of a file to which one may be writing
// none of that is waited for: the kernel keeps no attributes of it.
func (s *server) tell(t memstore.Stale) {
	s.forget.count.Add(1)
	ino := t.Inode.Ino()
	st := fuse.ENOENT
	if t.Child != nil && !t.Child.Loose() {
		st = s.kernel.DeleteNotify(ino, t.Child.Ino(), t.Name)
	}
	if st != fuse.OK && (t.Name != "" || !t.Inode.Loose()) {
		s.kernel.EntryNotify(ino, t.Name)
	}
	off := int64(-1) // attributes only
	if t.Data || t.Inode.Type() == memstore.TypeDir {
		off = 0
	}
	for pause := 10 * time.Microsecond; s.kernel.InodeNotify(ino, off, 0) == fuse.ENOENT && t.Inode.Known(); pause = min(2*pause, time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-s.forget.over:
			return
		}
	}
}
