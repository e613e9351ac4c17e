package memstore

import (
	"slices"

	"ramserver/memstore/internal/interval"
)

// Bounds of the byte-range locks of one file, and of a store, with those who wait
// for one. A holder gets one only while as many would be left for others as it
// has.
const (
	MaxLocks        = 1 << 16
	maxLocksOfStore = 1 << 20
)

// LockOwner is who owns byte ranges: one of a holder's lock owners, such as a
// process of an NFS client.
type LockOwner struct {
	Holder *Holder
	ID     string
	Class  LockClass
}

// LockClass tells apart what does not see each other on one machine. What has
// none, as locks that come by a network, conflicts with both.
type LockClass = interval.Class

const (
	LockFcntl LockClass = interval.Fcntl // does not see LockFlock, as in Linux
	LockFlock LockClass = interval.Flock // does not see LockFcntl
)

// LockArgs is a byte range and how to lock it.
type LockArgs struct {
	Owner     LockOwner // of an advisory lock; a mandatory one belongs to the open
	Off, N    uint64    // N 0: to the largest offset, but of a mandatory lock no byte
	Exclusive bool
	PID       uint32 // of the local process that asks, or 0
	// Mandatory locks are SMB's: exact ranges that stack, and that stop the
	// reads and writes of others (MS-FSA 2.1.5.8). The rest are POSIX's:
	// advisory, merged per owner.
	Mandatory bool
	// Wait makes a conflict answer Wait instead of ErrLocked.
	Wait bool
	// Poll keeps a place among those who wait for one who is told ErrLocked and
	// asks again. It is called, on a goroutine of its own and without a lock,
	// when his turn has come: he then has LockTurn to take the lock.
	Poll func()
}

// LockInfo describes a lock that is in the way.
type LockInfo struct {
	Owner     LockOwner // zero for a mandatory lock
	Off, N    uint64    // N 0: to the largest offset
	Exclusive bool
	PID       uint32 // of the local process that has it, or 0
}

// lockKey owns ranges: an open its mandatory ones, a lock owner its advisory
// ones.
type lockKey struct {
	open  *Open
	owner LockOwner
}

// holder is whose the ranges are, or nil.
func (k lockKey) holder() *Holder {
	if k.open != nil {
		return k.open.holder
	}
	return k.owner.Holder
}

// lock is a as the set of ranges knows it, on behalf of o.
func (a LockArgs) lock(o *Open) interval.Lock[lockKey] {
	l := interval.Lock[lockKey]{
		Owner: lockKey{owner: a.Owner},
		Start: a.Off, End: a.Off + a.N,
		Exclusive: a.Exclusive,
		Class:     a.Owner.Class,
		PID:       a.PID,
	}
	if a.Mandatory {
		l.Owner, l.Kind, l.Class = lockKey{open: o}, interval.Exact, interval.Any
	}
	if l.End < l.Start || a.N == 0 && !a.Mandatory {
		l.End = interval.EOF
	}
	return l
}

func lockInfo(l interval.Lock[lockKey]) LockInfo {
	info := LockInfo{Owner: l.Owner.owner, Off: l.Start, N: l.End - l.Start, Exclusive: l.Exclusive, PID: l.PID}
	if l.End == interval.EOF {
		info.N = 0
	}
	return info
}

// Lock locks a range through the open. A conflict answers ErrLocked and which
// lock is in the way, or Wait if a asks for it. ErrNoSpace if there are too many
// locks.
func (o *Open) Lock(a LockArgs) (LockInfo, error) {
	i := o.inode
	i.mu.Lock()
	defer i.mu.Unlock()
	if o.closed {
		return LockInfo{}, ErrStale
	}
	x, l := i.x, a.lock(o)
	c, hit := x.locks.Conflict(l)
	if !hit {
		c, hit = x.reserved(&l)
	}
	if hit {
		if h := c.Owner.holder(); h.expired() {
			return lockInfo(c), h.drop()
		}
		if w := i.queue(o, l, a); w != nil {
			return lockInfo(c), w
		}
		return lockInfo(c), ErrLocked
	}
	if i.full(l.Owner.holder()) {
		return LockInfo{}, ErrNoSpace
	}
	if a.Mandatory {
		if w := i.breakLeases(&Caller{Holder: o.holder}, opLock); w != nil {
			return LockInfo{}, w
		}
	}
	if !slices.Contains(o.owners, l.Owner) {
		o.owners = append(o.owners, l.Owner)
	}
	before := x.locks.Len()
	x.locks.Add(l)
	i.countLocks(l.Owner, before)
	x.served(&l)
	// A lock may have been downgraded.
	i.wake()
	return LockInfo{}, nil
}

// full tells whether there is no place for one more lock of a holder, which may be
// nil. Called with i.mu held.
func (i *Inode) full(h *Holder) bool {
	own := int64(0)
	if h != nil {
		own = h.locks.Load()
	}
	return i.x.locks.Len() >= MaxLocks || own >= maxLocksOfStore-i.s.locks.Load()
}

// splits tells whether unlocking l leaves something on both sides. Called with i.mu
// held.
func (i *Inode) splits(l *interval.Lock[lockKey]) bool {
	for k := range i.x.locks.All() {
		if k.Owner == l.Owner && k.Start < l.Start && l.End < k.End {
			return true
		}
	}
	return false
}

// countLocks notes that the ranges of an owner have changed: there were so many of
// all owners before. Called with i.mu held for writing.
func (i *Inode) countLocks(k lockKey, before int) {
	n := int64(i.x.locks.Len() - before)
	i.s.locks.Add(n)
	if h := k.holder(); h != nil {
		h.locks.Add(n)
	}
}

// Unlock unlocks what the owner holds of a range; a mandatory lock must be
// named exactly, else ErrRange. ErrNoSpace if it leaves two parts of a range where
// there are too many locks.
func (o *Open) Unlock(a LockArgs) error {
	i := o.inode
	i.mu.Lock()
	defer i.mu.Unlock()
	if o.closed {
		return ErrStale
	}
	l := a.lock(o)
	if i.full(l.Owner.holder()) && i.splits(&l) {
		return ErrNoSpace
	}
	before := i.x.locks.Len()
	if !i.x.locks.Remove(l.Owner, l.Start, l.End, l.Kind) && a.Mandatory {
		return ErrRange
	}
	i.countLocks(l.Owner, before)
	if !i.x.locks.Has(l.Owner) {
		o.owners = slices.DeleteFunc(o.owners, func(k lockKey) bool { return k == l.Owner })
	}
	i.wake()
	return nil
}

// LocksOf is how many ranges of the file a holder's owners have locked.
func (i *Inode) LocksOf(h *Holder) int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.x == nil {
		return 0
	}
	n := 0
	for l := range i.x.locks.All() {
		if l.Owner.owner.Holder == h {
			n++
		}
	}
	return n
}

// Locked tells whether an owner has anything locked in the open file.
func (o *Open) Locked(owner LockOwner) bool {
	i := o.inode
	i.mu.RLock()
	defer i.mu.RUnlock()
	if o.closed {
		return false
	}
	for l := range i.x.locks.All() {
		if l.Owner == (lockKey{owner: owner}) {
			return true
		}
	}
	return false
}

// TestLock answers ErrLocked and which lock is in the way of a, if there is one.
// It may answer Wait, as long as another may have locks that the store does not
// know of.
func (i *Inode) TestLock(a LockArgs) (LockInfo, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.x == nil {
		return LockInfo{}, nil
	}
	if w := i.breakLeases(&Caller{Holder: a.Owner.Holder}, opTestLock); w != nil {
		return LockInfo{}, w
	}
	if l, hit := i.x.locks.Conflict(a.lock(nil)); hit {
		if h := l.Owner.holder(); h.expired() {
			return lockInfo(l), h.drop()
		}
		return lockInfo(l), ErrLocked
	}
	return LockInfo{}, nil
}

// unlockAll drops the locks that were taken through o, which is no longer
// among the opens; those of an owner that locked through another open too stay
// with that. Called with i.mu held for writing.
func (i *Inode) unlockAll(o *Open) {
	x := i.x
	for _, owner := range o.owners {
		other := slices.ContainsFunc(x.opens, func(p *Open) bool { return slices.Contains(p.owners, owner) })
		if !other {
			before := x.locks.Len()
			x.locks.RemoveOwner(owner)
			i.countLocks(owner, before)
		}
	}
	x.unqueue(func(w *lockWait) bool { return w.open == o })
	i.wake()
}
