package memstore

import (
	"slices"
	"sync"
)

// OpenArgs is what an open asks for: its own access, and what it denies to
// other opens meanwhile. POSIX openers deny nothing.
type OpenArgs struct {
	Access Access
	Deny   Access // of AccessRead, AccessWrite and AccessDelete
	// Owner is who of the holder's opens. An open of the same inode that it has
	// already is extended by Access and Deny and returned, as OPEN of NFSv4
	// does (RFC 8881 section 18.16.3), unless it denies that, or is denied it,
	// to everybody (section 9.7). nil: every open is a new one.
	Owner any
	// Again says that the holder had the file open until now, without telling
	// the store: its owner needs no permission, whatever the mode has become.
	Again bool
	// ByExecute lets who may execute a file open it for reading too, to page it
	// in, where a protocol has no other open for that.
	ByExecute bool
	// Pin keeps what is open from being replaced, and what is above it from being
	// renamed, by RenamePinned.
	Pin bool
}

// Open is one open file. It keeps the file's data when the last name goes, and
// it has the access that was checked when it was made, whatever the mode
// becomes.
type Open struct {
	inode  *Inode  // (c)
	holder *Holder // (c)
	owner  any     // (c) OpenArgs.Owner
	pin    bool    // (c) OpenArgs.Pin

	// Protected by inode.mu.
	access Access
	deny   Access
	closed bool
	owners []lockKey // who locked ranges through this open
	use    Use       // by the local mount's kernel
	since  int64     // when the file was changed last before that, by its tmpfs
}

// Open opens a file or directory. ErrAccess if the mode forbids it,
// ErrShareViolation if the open of another does, ErrDeletePending if it is to be
// removed.
func (i *Inode) Open(c *Caller, a OpenArgs) (*Open, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.dead {
		return nil, ErrStale
	}
	if !i.opens(c, &a) && !(a.Again && i.owns(c)) {
		return nil, ErrAccess
	}
	if i.typ == TypeDir && a.Access&AccessWrite != 0 {
		return nil, ErrIsDir
	}
	return i.open(c, a)
}

// opens tells whether the mode gives the caller what an open asks for. Called
// with i.mu held.
func (i *Inode) opens(c *Caller, a *OpenArgs) bool {
	want := a.Access &^ AccessDelete
	if i.permits(c, want) {
		return true
	}
	return a.ByExecute && i.typ == TypeFile && want&AccessRead != 0 && i.permits(c, want&^AccessRead|AccessExecute)
}

// open is Open after the check of permissions. Called with i.mu held for
// writing.
func (i *Inode) open(c *Caller, a OpenArgs) (*Open, error) {
	if i.x != nil && i.x.doomed != nil {
		return nil, ErrDeletePending
	}
	if err := i.shares(c, nil, a); err != nil {
		return nil, err
	}
	o := i.openOf(a.Owner)
	if o != nil {
		a.Access |= o.access
		a.Deny |= o.deny
	}
	if w := i.breakLeases(c, a.operation()); w != nil {
		return nil, w
	}
	x := i.extra()
	if o == nil {
		o = &Open{inode: i, holder: c.Holder, owner: a.Owner, pin: a.Pin}
		i.s.pins.add(o)
		x.opens = append(x.opens, o)
	}
	x.change(o, a)
	return o, nil
}

// openOf returns the owner's open, or nil. Called with i.mu held.
func (i *Inode) openOf(owner any) *Open {
	if i.x == nil || owner == nil {
		return nil
	}
	for _, o := range i.x.opens {
		if o.owner == owner {
			return o
		}
	}
	return nil
}

// change gives an open the access and deny of a.
func (x *extra) change(o *Open, a OpenArgs) {
	x.count(o.deny, -1)
	x.count(a.Deny, 1)
	o.access, o.deny = a.Access, a.Deny
}

// operation is what an open is to others' leases.
func (a OpenArgs) operation() operation {
	if a.Access&AccessWrite != 0 || a.Deny&AccessRead != 0 {
		return opWrite
	}
	return opRead
}

// shares checks a against the other opens. Called with i.mu held.
func (i *Inode) shares(c *Caller, self *Open, a OpenArgs) error {
	if i.x == nil {
		return nil
	}
	for _, o := range i.x.opens {
		if o != self && (o.deny&a.Access != 0 || o.access&a.Deny != 0) {
			return i.violation(c, o)
		}
	}
	return nil
}

// violation is the answer to what the share mode of o forbids. That open may be
// one that its holder only caches, and closes when it is asked for that (MS-FSA
// 2.1.5.1.2). Called with i.mu held.
func (i *Inode) violation(c *Caller, o *Open) error {
	if o.holder.expired() {
		return o.holder.drop()
	}
	if w := i.breakLeases(c, opShare); w != nil {
		return w
	}
	return ErrShareViolation
}

func (x *extra) count(deny Access, n int) {
	for k, a := range [...]Access{AccessRead, AccessWrite, AccessDelete} {
		if deny&a != 0 {
			x.deny[k] += n
		}
	}
}

// denies returns an open that denies one of want to others, or nil.
func (x *extra) denies(want Access) *Open {
	if want&AccessRead != 0 && x.deny[0] > 0 ||
		want&AccessWrite != 0 && x.deny[1] > 0 ||
		want&AccessDelete != 0 && x.deny[2] > 0 {
		for _, o := range x.opens {
			if o.deny&want != 0 {
				return o
			}
		}
	}
	return nil
}

// Inode is the file that is open.
func (o *Open) Inode() *Inode { return o.inode }

// Access is what the open allows.
func (o *Open) Access() Access {
	o.inode.mu.RLock()
	defer o.inode.mu.RUnlock()
	return o.access
}

// Change replaces access and deny, for an upgrade or a downgrade.
// ErrShareViolation, and no change, if another open forbids it.
func (o *Open) Change(c *Caller, a OpenArgs) error {
	i := o.inode
	i.mu.Lock()
	defer i.mu.Unlock()
	if o.closed {
		return ErrStale
	}
	if !i.permits(c, a.Access&^o.access&^AccessDelete) {
		return ErrAccess
	}
	if err := i.shares(c, o, a); err != nil {
		return err
	}
	more := OpenArgs{Access: a.Access &^ o.access, Deny: a.Deny &^ o.deny}
	if w := i.breakLeases(c, more.operation()); w != nil {
		return w
	}
	i.x.change(o, a)
	return nil
}

// Close ends the open and drops the locks that were taken through it. Closing
// again does nothing.
func (o *Open) Close() {
	i := o.inode
	i.lock()
	if o.closed {
		i.mu.Unlock()
		return
	}
	x := i.x
	o.closed = true
	i.s.pins.remove(o)
	wrote := i.unuse(o)
	x.opens = slices.DeleteFunc(x.opens, func(p *Open) bool { return p == o })
	x.count(o.deny, -1)
	i.unlockAll(o)
	var end *doomed
	if len(x.opens) == 0 {
		end = x.doomed
	}
	cut := i.unheld()
	i.slim()
	i.mu.Unlock()
	i.s.release(cut)
	if wrote {
		i.changed(WatchWrite | WatchSize)
	}
	if end != nil {
		i.fulfil(end)
	}
}

// pins are the opens of a store with Pin.
type pins struct {
	mu    sync.Mutex
	opens map[*Open]struct{} // (mu)
}

func (p *pins) add(o *Open) {
	if !o.pin {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opens == nil {
		p.opens = make(map[*Open]struct{})
	}
	p.opens[o] = struct{}{}
}

func (p *pins) remove(o *Open) {
	if !o.pin {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.opens, o)
}
