package memstore

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"ramserver/memstore/internal/extent"
	"ramserver/memstore/internal/interval"
)

// Inode is a file, a directory, a symlink or a special file.
//
// A pointer to it stays valid memory for ever; once its last name and its last
// open are gone every call answers ErrStale.
//
// Fields are (c) constant after creation, (a) atomic, or (m) protected by mu.
type Inode struct {
	s   *Store // (c)
	gen uint64 // (c)
	ino uint32 // (c)

	nlink    uint32 // (m)
	uid, gid uint32 // (m)
	mode     uint16 // (m)
	dos      uint16 // (m)
	typ      Type   // (c)
	dead     bool   // (m) nothing holds it: no name, no open, no kernel
	cow      bool   // (m) pages may be shared with a clone
	stream   bool   // (c) a stream of home

	atime atomic.Int64 // (a) reads move it under the shared lock

	// How often the local mount's kernel was told of the inode and did not yet
	// forget it, which grows only with mu held; and told.
	known atomic.Uint64 // (a)

	mu                  sync.RWMutex
	size                int64      // (m) bytes; unused by directories
	mtime, ctime, btime int64      // (m) ns
	change              uint64     // (m)
	data                extent.Map // (m) pages of a file
	dir                 *directory // (c) pointer; of directories only
	x                   *extra     // (m) what few inodes have

	// Where the inode was named last. home of a directory is its parent, the
	// root's itself; it changes only with renameMu held too; of a stream it is
	// what has it. link is the name's
	// cookie there, 0 when that name is gone, and for the root.
	home *Inode // (m)
	link uint64 // (m)
}

// extra is what few inodes have. Fields are protected by Inode.mu.
type extra struct {
	target       string // of a symlink, constant
	major, minor uint32 // of a device, constant

	xattrs     map[string][]byte
	xattrBytes int

	opens   []*Open
	deny    [3]int // opens that deny reading, writing, deleting
	locks   interval.Set[lockKey]
	waiters []*lockWait // in the order in which they came
	turns   int         // waiters whose turn it is
	leases  []*Lease
	watches []*Watch
	streams []stream
	doomed  *doomed // the name goes with the last open; nil: it stays

	broken int64 // when a break of a lease was over last, ns

	backed   *backed // where the bytes are, if not in pages
	loosened int64   // when a local process may have changed the file last without the store, ns
	cached   int     // opens by which the mount's kernel caches data
}

// newInode makes an inode that no directory names yet; nlink is 0.
func (s *Store) newInode(t Type, mode uint16, uid, gid uint32, now int64) (*Inode, error) {
	if s.inodes.Add(1) > s.maxInodes {
		s.inodes.Add(-1)
		return nil, ErrNoSpace
	}
	if !s.charge(inodeCost) {
		s.inodes.Add(-1)
		return nil, ErrNoSpace
	}
	i := &Inode{
		s: s, ino: s.table.number(), gen: rand.Uint64(), typ: t,
		mode: mode, uid: uid, gid: gid,
		mtime: now, ctime: now, btime: now,
		change: 1,
	}
	i.atime.Store(now)
	if t == TypeDir {
		i.dir = &directory{next: firstCookie}
	}
	return i, nil
}

// discard undoes newInode for an inode that got no name.
func (i *Inode) discard() {
	i.s.table.forget(i.ino)
	i.s.inodes.Add(-1)
	i.s.uncharge(inodeCost)
}

// extra makes i.x. Called with i.mu held for writing.
func (i *Inode) extra() *extra {
	if i.x == nil {
		i.x = extras.Get().(*extra)
	}
	return i.x
}

// extras are zero but for the place of their opens.
var extras = sync.Pool{New: func() any { return new(extra) }}

// slim gives up i.x if nothing is left in it that anybody needs: most files have one
// only while they are open. Called with i.mu held for writing.
func (i *Inode) slim() {
	x := i.x
	switch {
	case x == nil, i.typ != TypeFile && i.typ != TypeDir,
		len(x.opens)+len(x.leases)+len(x.waiters)+len(x.watches)+len(x.streams)+len(x.xattrs)+x.locks.Len() > 0,
		x.doomed != nil, x.backed != nil, x.loosened != 0, x.justBroken():
		return
	}
	i.dropExtra()
}

// dropExtra gives up i.x, which has no opens. Called with i.mu held for writing.
func (i *Inode) dropExtra() {
	x := i.x
	i.x = nil
	*x = extra{opens: x.opens}
	extras.Put(x)
}

// begin begins every change of an inode's data, attributes or names. It is the
// one place where an older version could be kept. Called with i.mu held for
// writing.
func (i *Inode) begin(now int64) {
	i.change++
	i.ctime = now
}

// unheld is called when something other than a name ceased to hold the inode,
// and buries it if that was the last. Called with i.mu held for writing.
func (i *Inode) unheld() extent.Map {
	if i.dead || i.nlink > 0 {
		return extent.Map{}
	}
	cut := i.bury()
	if i.dead {
		i.s.orphan.Add(-1)
	}
	return cut
}

// bury ends an inode that nothing holds any more, and returns the pages to
// free after the unlock. Called with i.mu held for writing.
func (i *Inode) bury() extent.Map {
	if i.dead || i.nlink > 0 || i.Known() || i.x != nil && len(i.x.opens)+len(i.x.leases) > 0 {
		return extent.Map{}
	}
	i.dead = true
	cost := int64(inodeCost)
	if i.x != nil {
		cost += int64(i.x.xattrBytes + len(i.x.target))
		for _, s := range i.x.streams {
			cost += int64(dentryCost + len(s.name))
			s.inode.orphaned()
		}
		if i.x.backed != nil {
			i.s.forsake(i.x.backed)
		}
		i.dropExtra()
	}
	i.s.table.remove(i.ino)
	i.s.inodes.Add(-1)
	i.s.uncharge(cost)
	i.s.reaper.dropped(cost)
	m := i.data
	i.data = extent.Map{}
	return m
}

// Store is the store that the inode belongs to.
func (i *Inode) Store() *Store { return i.s }

// Handle names the inode persistently.
func (i *Inode) Handle() Handle { return Handle{i.s.id, uint64(i.ino), i.gen} }

// Ino is the inode's number, never 0.
func (i *Inode) Ino() uint64 { return uint64(i.ino) }

// Type is the kind of the inode.
func (i *Inode) Type() Type { return i.typ }

// attr is called with i.mu held.
func (i *Inode) attr() Attr {
	a := Attr{
		Ino: uint64(i.ino), Gen: i.gen, Change: i.change,
		Size: i.size, Used: i.data.Bytes(),
		Atime: i.atime.Load(), Mtime: i.mtime, Ctime: i.ctime, Shown: i.shown(), Btime: i.btime,
		Nlink: i.nlink, UID: i.uid, GID: i.gid,
		Mode: i.mode, DOS: i.dos, Type: i.typ,
	}
	switch i.typ {
	case TypeDir:
		a.Size = i.dir.bytes()
		a.Used = a.Size
	case TypeBlock, TypeChar:
		a.Major, a.Minor = i.x.major, i.x.minor
	case TypeFile:
		if b := i.backed(); b != nil {
			a.Used, a.Loose = b.st.used, b.loose
		}
	}
	return a
}

func (i *Inode) before() Before {
	b := Before{Size: i.size, Mtime: i.mtime, Ctime: i.shown(), Change: i.change}
	if i.dir != nil {
		b.Size = i.dir.bytes()
	}
	return b
}

// GetAttr returns the attributes; no permission is needed.
func (i *Inode) GetAttr(c *Caller) (Attr, error) {
	i.rlock()
	defer i.mu.RUnlock()
	if i.dead {
		return Attr{}, ErrStale
	}
	if w := i.breakLeases(c, opGetAttr); w != nil {
		return Attr{}, w
	}
	return i.attr(), nil
}

// Access returns the part of want that the caller is permitted by the mode.
func (i *Inode) Access(c *Caller, want Access) Access {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var got Access
	for a := AccessRead; a <= AccessExecute; a <<= 1 {
		if want&a != 0 && i.permits(c, a) {
			got |= a
		}
	}
	return got
}

// permits tells whether the mode gives the caller all of want. Called with
// i.mu held.
func (i *Inode) permits(c *Caller, want Access) bool {
	if c.UID == 0 {
		return want&AccessExecute == 0 || i.typ == TypeDir || i.mode&0o111 != 0
	}
	bits := i.mode
	switch {
	case c.UID == i.uid:
		bits >>= 6
	case c.Member(i.gid):
		bits >>= 3
	}
	var need uint16
	if want&AccessRead != 0 {
		need |= 4
	}
	if want&AccessWrite != 0 {
		need |= 2
	}
	if want&AccessExecute != 0 {
		need |= 1
	}
	return bits&need == need
}

func (i *Inode) owns(c *Caller) bool { return c.UID == 0 || c.UID == i.uid }

// SetAttr changes attributes: all of them or none. ErrPerm if the caller is
// not the owner, ErrAccess if it may not write, ErrNotSync if the guard does
// not hold. o is the open through which a size is set, or nil. Where the inode
// lives, the attributes are returned with an error too.
func (i *Inode) SetAttr(c *Caller, o *Open, a *SetAttr) (Changed, error) {
	i.lock()
	if i.dead {
		i.mu.Unlock()
		return Changed{}, ErrStale
	}
	ch := Changed{Before: i.before()}
	cut, err := i.setAttr(c, o, a, now())
	ch.After = i.attr()
	i.mu.Unlock()
	i.s.release(cut)
	if err == nil {
		i.changed(a.watched())
		i.s.settle(c, Stale{Inode: i, Data: a.Mask&SetSize != 0})
	}
	return ch, err
}

// setAttr makes the change at time t. Called with i.mu held for writing. The
// pages that it returns are released after the unlock.
func (i *Inode) setAttr(c *Caller, o *Open, a *SetAttr, t int64) (cut extent.Map, err error) {
	if a.Mask&SetGuard != 0 && (a.GuardCtime < i.ctime || a.GuardCtime > i.shown()) {
		return cut, ErrNotSync
	}
	if a.Mask&^(SetGuard|SetLocked) == 0 {
		return cut, nil
	}
	if err := i.maySet(c, o, a); err != nil {
		return cut, err
	}
	op := opSetAttr
	if a.Mask&SetSize != 0 {
		op = opWrite
	}
	if w := i.breakLeases(c, op); w != nil {
		return cut, w
	}
	if a.Mask&SetSize != 0 {
		if err := i.inPlace(c); err != nil {
			return cut, err
		}
		i.grows(c, a.Size)
		if cut, err = i.truncate(a.Size); err != nil {
			return cut, err
		}
		if i.dead {
			return cut, ErrStale // it has left its lock meanwhile
		}
	}

	i.begin(t)
	if a.Mask&SetSize != 0 {
		i.mtime = t
		i.dropPrivilege(c)
	}
	if a.Mask&SetMode != 0 {
		i.mode = a.Mode & ModeMask
		if c.UID != 0 && !c.Member(i.gid) {
			i.mode &^= ModeSetGID
		}
	}
	if a.Mask&(SetUID|SetGID) != 0 {
		if a.Mask&SetUID != 0 {
			i.uid = a.UID
		}
		if a.Mask&SetGID != 0 {
			i.gid = a.GID
		}
		if i.typ != TypeDir && a.Mask&SetMode == 0 {
			i.clearSetID()
		}
		if i.x != nil && i.x.xattrs != nil {
			i.dropCapabilities()
		}
	}
	switch {
	case a.Mask&SetAtime != 0:
		i.atime.Store(a.Atime)
	case a.Mask&SetAtimeNow != 0:
		i.atime.Store(t)
	}
	switch {
	case a.Mask&SetMtime != 0:
		i.mtime = a.Mtime
	case a.Mask&SetMtimeNow != 0:
		i.mtime = t
	}
	if a.Mask&SetBtime != 0 {
		i.btime = a.Btime
	}
	if a.Mask&SetDOS != 0 {
		i.dos = a.DOS
	}
	if a.Mask&SetCtime != 0 {
		i.ctime = a.Ctime
	}
	return cut, nil
}

// maySet checks everything about a that can be refused. Called with i.mu held.
func (i *Inode) maySet(c *Caller, o *Open, a *SetAttr) error {
	if a.Mask&SetMode != 0 && !i.owns(c) {
		return ErrPerm
	}
	if a.Mask&SetUID != 0 && c.UID != 0 && (a.UID != i.uid || c.UID != i.uid) {
		return ErrPerm
	}
	if a.Mask&SetGID != 0 && c.UID != 0 && (c.UID != i.uid || a.GID != i.gid && !c.Member(a.GID)) {
		return ErrPerm
	}
	if a.Mask&(SetAtime|SetMtime|SetCtime|SetBtime) != 0 && !i.owns(c) {
		return ErrPerm
	}
	if a.Mask&(SetAtimeNow|SetMtimeNow|SetDOS) != 0 && !i.owns(c) && !i.permits(c, AccessWrite) {
		return ErrAccess
	}
	if a.Mask&SetSize != 0 {
		switch {
		case i.typ == TypeDir:
			return ErrIsDir
		case i.typ != TypeFile || a.Size < 0:
			return ErrInvalid
		case a.Size > MaxFileSize:
			return ErrFileTooLarge
		}
		if a.Mask&SetLocked != 0 {
			return i.mayAccess(c, o, AccessWrite, 0, 0)
		}
		// A range lock stops a truncation of what it covers.
		return i.mayAccess(c, o, AccessWrite, min(a.Size, i.size), max(a.Size, i.size))
	}
	return nil
}

// dropPrivilege clears what a change of data must not leave: a file's
// capabilities, and the set-id bits unless root makes the change. Called with
// i.mu held for writing.
func (i *Inode) dropPrivilege(c *Caller) {
	if c.UID != 0 && i.mode&(ModeSetUID|ModeSetGID) != 0 {
		i.clearSetID()
	}
	if i.x != nil && i.x.xattrs != nil {
		i.dropCapabilities()
	}
}

// capability is what gives a program capabilities on Linux.
const capability = "security.capability"

// dropCapabilities removes it.
func (i *Inode) dropCapabilities() {
	if v, ok := i.x.xattrs[capability]; ok {
		delete(i.x.xattrs, capability)
		cost := xattrCost + len(capability) + len(v)
		i.x.xattrBytes -= cost
		i.s.uncharge(int64(cost))
	}
}

// clearSetID leaves the set-gid bit where it means mandatory locking: without
// group execute permission.
func (i *Inode) clearSetID() {
	i.mode &^= ModeSetUID
	if i.mode&0o010 != 0 {
		i.mode &^= ModeSetGID
	}
}

// Readlink returns a symlink's target, or ErrNotSymlink.
func (i *Inode) Readlink(c *Caller) (string, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.dead {
		return "", ErrStale
	}
	if i.typ != TypeSymlink {
		return "", ErrNotSymlink
	}
	return i.x.target, nil
}

// touch moves the access time if it is not behind the last change, as relatime
// does, but without a daily update. Called with i.mu held, shared is enough.
func (i *Inode) touch() {
	if at := sinceFirst(i.atime.Load()); at <= sinceFirst(i.mtime) || at <= sinceFirst(i.ctime) {
		i.atime.Store(now())
	}
}
