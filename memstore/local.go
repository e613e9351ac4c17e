package memstore

import (
	"slices"
	"strings"
)

// Local is the store's mount on this machine. Its kernel caches the attributes,
// data and names that it was told of until it is told to forget them.
//
// That cache is a lease which nobody waits for before a change: one who is not
// the mount makes the change, then has the kernel forget what became stale, and
// returns when it has, or has it forgotten before it tells anybody (Unsettled).
// So what was acknowledged to anybody is what every local process sees.
type Local struct {
	s          *Store
	holder     *Holder
	invalidate func([]Stale)
	kernel     *Passthrough // or nil; set before the mount's kernel asks for anything
}

// told is the bit of Inode.known that says that the mount's kernel was told of
// attributes or data since Untell.
const told = 1 << 63

// Stale is what a mount's kernel has to forget after somebody else's change:
// the attributes of an inode, a file's data, or an entry of a directory.
type Stale struct {
	Inode *Inode
	Data  bool
	Name  string // entry of Inode, or ""
	Child *Inode // what the entry stood for and does not any more, or nil
}

// AttachLocal makes a holder the store's local mount, of which a store has one:
// else it answers ErrExist. invalidate is called after changes by others,
// without a lock, and returns when the kernel has forgotten; it must not wait
// for a request that the mount's kernel has sent.
func (s *Store) AttachLocal(h *Holder, invalidate func([]Stale)) (*Local, error) {
	l := &Local{s: s, holder: h, invalidate: invalidate}
	if !s.local.CompareAndSwap(nil, l) {
		return nil, ErrExist
	}
	s.root.known.Store(1)
	return l, nil
}

// Detach ends the mount: its kernel knows nothing any more, and asks no more.
func (l *Local) Detach() {
	l.s.table.each(func(i *Inode) { l.Forget(i, i.known.Load()&^told) })
	l.s.local.Store(nil)
}

// Know counts that the mount's kernel is told of the inode once more, and
// returns the attributes for that, or Wait. Until it is forgotten as often the
// inode outlives its last name, and its number is not used again.
func (l *Local) Know(i *Inode) (Attr, error) {
	i.rlock()
	defer i.mu.RUnlock()
	if i.dead {
		return Attr{}, ErrStale
	}
	if w := i.breakLeases(&Caller{Holder: l.holder}, opGetAttr); w != nil {
		return Attr{}, w
	}
	i.known.Add(1)
	i.tell()
	return i.attr(), nil
}

// Forget undoes n calls of Know.
func (l *Local) Forget(i *Inode, n uint64) {
	if i.known.Add(-n)&^told > 0 {
		return
	}
	i.mu.Lock()
	cut := i.unheld()
	i.mu.Unlock()
	i.s.release(cut)
}

// Inode finds an inode that the mount's kernel knows, by its number, in order to
// tell the kernel something of it.
func (l *Local) Inode(ino uint64) (*Inode, error) {
	if i := l.s.table.get(ino); i != nil && i.Known() {
		i.tell()
		return i, nil
	}
	return nil, ErrStale
}

// Tell is called before the kernel is told attributes or data of an inode that
// was found by other means than Inode and Know.
func (l *Local) Tell(i *Inode) { i.tell() }

func (i *Inode) tell() {
	if i.known.Load()&told == 0 {
		i.known.Or(told)
	}
}

// Known tells whether the mount's kernel was told of the inode and did not
// forget it.
func (i *Inode) Known() bool { return i.known.Load()&^told > 0 }

// Told tells whether the kernel may have attributes or data of the inode.
func (i *Inode) Told() bool { return i.known.Load()&told != 0 }

// Untell is called before the kernel is made to forget an inode's attributes
// and data. Until it is told something again nothing of them becomes stale.
func (i *Inode) Untell() { i.known.And(^uint64(told)) }

// settle has the local mount's kernel forget what c's change made stale of what
// it knows. Called without a lock, at the end of every change.
func (s *Store) settle(c *Caller, changes ...Stale) {
	l := s.local.Load()
	if l == nil || l.holder == c.Holder {
		return
	}
	var stale []Stale
	for _, t := range changes {
		if t.Inode.Known() {
			stale = append(stale, t)
		}
	}
	switch {
	case len(stale) == 0:
	case c.Unsettled != nil:
		// The caller's names may be parts of a buffer, which is used again before
		// they are settled.
		for k := range stale {
			stale[k].Name = strings.Clone(stale[k].Name)
		}
		c.Unsettled.stale = append(c.Unsettled.stale, stale...)
	default:
		l.invalidate(stale)
	}
}

// Unsettled is what mounts' kernels have yet to forget. While one does so it may
// wait for a local process, and that for any holder; so one who must go on for a
// holder's sake, such as the reader of a client's connection, cannot wait for it.
// The zero Unsettled is empty. It belongs to one goroutine at a time.
type Unsettled struct{ stale []Stale }

// Any tells whether there is something to settle.
func (u *Unsettled) Any() bool { return len(u.stale) > 0 }

// Move adds to u all that from has.
func (u *Unsettled) Move(from *Unsettled) {
	u.stale = append(u.stale, from.stale...)
	from.stale = nil
}

// Settle returns when it is all forgotten.
func (u *Unsettled) Settle() {
	for len(u.stale) > 0 {
		s := u.stale[0].Inode.s
		n := slices.IndexFunc(u.stale, func(t Stale) bool { return t.Inode.s != s })
		if n < 0 {
			n = len(u.stale)
		}
		if l := s.local.Load(); l != nil {
			l.invalidate(u.stale[:n:n])
		}
		u.stale = u.stale[n:]
	}
	u.stale = nil
}
