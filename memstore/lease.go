package memstore

import (
	"slices"
	"sync/atomic"
	"time"

	"ramserver/memstore/internal/extent"
)

// Rights are what a lease lets its holder cache.
type Rights uint8

// Rights of a lease.
const (
	CacheRead   Rights = 1 << iota // what was read, until it is broken
	CacheWrite                     // what it writes, and the file's locks
	CacheHandle                    // the open itself, after its user has closed it
)

// Lease is a caching grant on one file. NFS calls it a delegation, SMB an
// oplock or lease. Like an open, it keeps the file when the last name goes.
//
// Fields are (c) constant, or (m) protected by inode.mu.
type Lease struct {
	inode  *Inode            // (c)
	holder *Holder           // (c) never nil
	recall func(keep Rights) // (c)
	rights Rights            // (m) 0: there is no lease any more
	open   *Open             // (c)

	// The break that is under way, or nil. It begins with inode.mu held in any
	// way, and ends with it held for writing.
	breaking atomic.Pointer[leaseBreak]
}

// leaseBreak is one break of a lease. Who is stopped by it waits.
type leaseBreak struct {
	Wait
	keep Rights // what the holder may keep
}

// leasePause is for how long a file on which a lease was broken gets no new
// one: it is used by several, who would lose more by a break each time than
// they gain.
const leasePause = 30 * time.Second

// Lease asks for rights on behalf of the caller, who is the open's holder, or
// for more if it has some already. It returns nil where they are not granted: to
// no holder, on anything but a file, where another's open or lease is in
// conflict, a local process may write without the store, or a lease was broken a
// moment ago.
//
// recall is called, on a goroutine of its own and without a lock, when somebody
// is stopped by the lease. The holder then gives up all but keep, by Yield: until
// it has, that one waits. It is called again only after that. Where a lease is
// extended, its first recall stays.
func (o *Open) Lease(c *Caller, want Rights, recall func(keep Rights)) *Lease {
	i := o.inode
	i.lock()
	if o.closed || o.holder == nil || o.holder != c.Holder || want == 0 || i.typ != TypeFile || !i.x.grants(o.holder, want) {
		i.mu.Unlock()
		return nil
	}
	var l *Lease
	for _, l = range i.x.leases {
		if l.holder == o.holder {
			break
		}
	}
	if l == nil || l.holder != o.holder {
		l = &Lease{inode: i, holder: o.holder, recall: recall, open: &Open{inode: i, holder: o.holder}}
		i.x.leases = append(i.x.leases, l)
	}
	l.set(l.rights | want)
	i.mu.Unlock()
	if want&CacheWrite != 0 {
		// From here on the mount on this machine has to ask for attributes.
		i.s.settle(c, Stale{Inode: i, Data: true})
	}
	return l
}

// grants tells whether h may have a lease. Called with the inode's mu held for
// writing.
func (x *extra) grants(h *Holder, want Rights) bool {
	if x.justBroken() {
		return false
	}
	if x.backed != nil && x.backed.loose {
		return false // it may be mapped for writing, though it is closed
	}
	for _, o := range x.opens {
		if o.holder != h && want&o.against() != 0 {
			return false
		}
	}
	for _, l := range x.leases {
		if l.breaking.Load() != nil || l.holder != h && want&l.against() != 0 {
			return false
		}
	}
	return true
}

// justBroken tells whether a break of a lease was over less than leasePause ago.
func (x *extra) justBroken() bool { return x.broken != 0 && now()-x.broken < int64(leasePause) }

// against is what no other holder can have a lease for beside the open.
func (o *Open) against() Rights {
	if o.access&AccessWrite != 0 || o.deny&AccessRead != 0 {
		return CacheRead | CacheWrite
	}
	return CacheWrite
}

// against is what no other holder can have a lease for beside this one.
func (l *Lease) against() Rights {
	switch {
	case l.rights&CacheWrite != 0:
		return CacheRead | CacheWrite
	case l.rights&CacheRead != 0:
		return CacheWrite
	}
	return 0
}

// set changes the rights. Called with the inode's mu held for writing.
func (l *Lease) set(r Rights) {
	l.rights, l.open.access = r, 0
	if r&CacheRead != 0 {
		l.open.access |= AccessRead
	}
	if r&CacheWrite != 0 {
		l.open.access |= AccessWrite
	}
}

// Open is what the holder reads and writes by if it has the file open without
// telling: an open with the access that the lease's rights allow, as long as
// they last. It keeps nobody from anything, and needs no Close.
func (l *Lease) Open() *Open { return l.open }

// Rights are what the holder may cache now.
func (l *Lease) Rights() Rights {
	l.inode.mu.RLock()
	defer l.inode.mu.RUnlock()
	return l.rights
}

// Inode is the file that the lease is on.
func (l *Lease) Inode() *Inode { return l.inode }

// Yield gives up all rights but keep. The break that asked for it is over if
// those are gone that it wanted. Yield(0) ends the lease and lets everybody go
// who waits for it: a holder that does not answer a break has its lease revoked
// so.
func (l *Lease) Yield(keep Rights) {
	i := l.inode
	var cut extent.Map
	i.mu.Lock()
	had := l.rights
	l.set(l.rights & keep)
	if b := l.breaking.Load(); b != nil && l.rights&^b.keep == 0 {
		l.breaking.Store(nil)
		close(b.done)
		i.x.broken = now()
	}
	if had != 0 && l.rights == 0 {
		i.x.leases = slices.DeleteFunc(i.x.leases, func(k *Lease) bool { return k == l })
		cut = i.unheld()
		i.slim()
	}
	i.mu.Unlock()
	i.s.release(cut)
}

// operation is what a call means to others' leases.
type operation uint8

const (
	opRead     operation = iota // open for reading, READ
	opWrite                     // open for writing, WRITE, truncate
	opGetAttr                   // attributes asked for
	opTestLock                  // locks asked for
	opLock                      // a mandatory lock taken
	opSetAttr                   // attributes changed
	opLink                      // a name added
	opUnname                    // remove, rename, replaced by a rename
	opShare                     // refused by a share mode
)

// leaseBreaks is the table of package doc's "Leases": of leases that cover data
// only, and of those that cover attributes too.
var leaseBreaks = [...][2]Rights{
	opRead:     {CacheWrite, CacheWrite},
	opWrite:    {CacheRead | CacheWrite, CacheRead | CacheWrite},
	opGetAttr:  {0, CacheWrite},
	opTestLock: {CacheWrite, CacheWrite},
	opLock:     {CacheRead | CacheWrite, CacheRead | CacheWrite},
	opSetAttr:  {CacheWrite, CacheRead | CacheWrite},
	opLink:     {CacheWrite, CacheRead | CacheWrite},
	opUnname:   {CacheHandle, CacheRead | CacheWrite | CacheHandle},
	opShare:    {CacheHandle, CacheHandle},
}

// breaks is what an operation by another breaks of the holder's leases.
func (h *Holder) breaks(op operation) Rights {
	if h.CachesAttrs {
		return leaseBreaks[op][1]
	}
	return leaseBreaks[op][0]
}

// breakLeases begins to break what is in the way of an operation of c, and
// returns what to wait for before it may be done, or nil if nothing is. Called
// with i.mu held; shared is enough.
func (i *Inode) breakLeases(c *Caller, op operation) *Wait {
	if i.x == nil || len(i.x.leases) == 0 {
		return nil
	}
	return i.breakAll(c.Holder, op)
}

func (i *Inode) breakAll(by *Holder, op operation) (w *Wait) {
	for _, l := range i.x.leases {
		if lost := l.rights & l.holder.breaks(op); lost != 0 && l.holder != by {
			w = l.giveUp(lost)
		}
	}
	return w
}

// giveUp asks the holder to give up rights, unless it has been asked for
// something already, and returns what to wait for. Called with the inode's mu
// held.
func (l *Lease) giveUp(lost Rights) *Wait {
	b := l.breaking.Load()
	if b == nil {
		b = &leaseBreak{Wait{done: make(chan struct{})}, l.rights &^ lost}
		if l.breaking.CompareAndSwap(nil, b) {
			go l.recall(b.keep)
		} else {
			b = l.breaking.Load() // no break ends while mu is held
		}
	}
	return &b.Wait
}
