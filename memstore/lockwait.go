package memstore

import (
	"slices"
	"time"

	"ramserver/memstore/internal/interval"
)

// Who waits for a lock gets it in his turn: when the last lock in his way goes,
// the first in the queue for whom there is none any more is told, and for a while
// nobody who came later can take what he waits for. An owner that has locked
// something of the file already does not wait for those who wait: they may wait
// for it.

// LockTurn is for how long who has waited for a lock is let go first.
const LockTurn = time.Second

const (
	pollTime   = 45 * time.Second // after which who polls has given up
	maxWaiters = 1 << 12          // of a file; more are not told their turn
)

// lockWait is one who waits for a lock. Its fields are protected by the inode's
// mu.
type lockWait struct {
	lock  interval.Lock[lockKey]
	open  *Open
	wait  *Wait  // nil of one who polls
	poll  func() // nil of one who waits
	asked int64  // when it did last, ns
	turn  *time.Timer
}

// reserved is a lock that somebody waits for, whose turn it is, and who is in
// the way of l. Called with i.mu held for writing.
func (x *extra) reserved(l *interval.Lock[lockKey]) (c interval.Lock[lockKey], hit bool) {
	if x.turns == 0 {
		return c, false
	}
	for _, w := range x.waiters {
		if w.turn != nil && w.lock.Owner != l.Owner && w.lock.Forbids(l) {
			return w.lock, !x.locks.Has(l.Owner)
		}
	}
	return c, false
}

// same tells whether w is for l.
func (w *lockWait) same(l *interval.Lock[lockKey]) bool {
	return w.lock.Owner == l.Owner && w.lock.Start == l.Start && w.lock.End == l.End && w.lock.Exclusive == l.Exclusive
}

// queue gives one whose lock is in another's way a place, if he wants one, or
// leaves him the one that he has. It returns what to wait for if he waits.
// Called with i.mu held for writing.
func (i *Inode) queue(o *Open, l interval.Lock[lockKey], a LockArgs) *Wait {
	x := i.x
	if a.Poll == nil && !a.Wait {
		return nil
	}
	var w *lockWait
	for _, q := range x.waiters {
		// One who waits asks again only in his turn.
		if q.same(&l) && (a.Poll != nil && q.poll != nil || a.Wait && q.wait != nil && q.turn != nil) {
			w = q
			break
		}
	}
	switch {
	case w != nil:
		x.endTurn(w)
	case a.Poll != nil && (len(x.waiters) >= maxWaiters || i.full(l.Owner.holder())):
		return nil
	default:
		w = new(lockWait)
		x.waiters = append(x.waiters, w)
		i.s.locks.Add(1)
	}
	w.lock, w.open, w.asked = l, o, now()
	if a.Poll != nil {
		w.poll = a.Poll
		return nil
	}
	w.wait = &Wait{done: make(chan struct{}), waiting: i}
	return w.wait
}

// served forgets who has got what he waited for. Called with i.mu held for
// writing.
func (x *extra) served(l *interval.Lock[lockKey]) {
	for n, w := range x.waiters {
		if w.same(l) && (w.turn != nil || w.poll != nil) {
			x.endTurn(w)
			x.waiters = slices.Delete(x.waiters, n, n+1)
			w.open.inode.s.locks.Add(-1)
			return
		}
	}
}

// endTurn is called with i.mu held for writing.
func (x *extra) endTurn(w *lockWait) {
	if w.turn != nil {
		w.turn.Stop()
		w.turn = nil
		x.turns--
	}
}

// unqueue has those give up whom which names; who waits tries once more. Called
// with i.mu held for writing.
func (x *extra) unqueue(which func(*lockWait) bool) {
	x.waiters = slices.DeleteFunc(x.waiters, func(w *lockWait) bool {
		if !which(w) {
			return false
		}
		if w.wait != nil && w.turn == nil {
			close(w.wait.done)
		}
		x.endTurn(w)
		w.open.inode.s.locks.Add(-1)
		return true
	})
}

// wake tells those whose turn has come; who does not use it gives up. Called with i.mu held for writing.
func (i *Inode) wake() {
	x := i.x
	if len(x.waiters) == x.turns {
		return
	}
	late := now() - int64(pollTime)
	x.unqueue(func(w *lockWait) bool { return w.poll != nil && w.turn == nil && w.asked < late })
	for _, w := range x.waiters {
		if w.turn != nil {
			continue
		}
		if _, hit := x.locks.Conflict(w.lock); hit {
			continue
		}
		if _, hit := x.reserved(&w.lock); hit {
			continue
		}
		var turn *time.Timer
		turn = time.AfterFunc(LockTurn, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.x != nil && w.turn == turn {
				i.x.unqueue(func(v *lockWait) bool { return v == w })
				i.wake()
			}
		})
		w.turn = turn
		x.turns++
		if w.poll != nil {
			go w.poll()
		} else {
			close(w.wait.done)
		}
	}
}

// Cancel says that nobody waits any more. Done need not be closed.
func (w *Wait) Cancel() {
	i := w.waiting
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.x != nil {
		i.x.unqueue(func(v *lockWait) bool { return v.wait == w })
		i.wake()
	}
}
