package memstore

import (
	"strings"

	"ramserver/memstore/internal/extent"
)

// ExistRule is what Create does about a name that is there already.
type ExistRule uint8

// Rules for Create. The last two are for files.
const (
	ExistFail     ExistRule = iota // ErrExist
	ExistOpen                      // take the file; Set.Size is applied if it is 0, the rest of Set is not
	ExistVerifier                  // take the file if the same Verifier made it
)

// Create is what to create and how.
type Create struct {
	Type         Type
	Set          SetAttr // of the new inode; Mode 0 if not set
	Exist        ExistRule
	Verifier     uint64    // kept in the time stamps until they are set
	Target       string    // of a symlink
	Major, Minor uint32    // of a device
	Open         *OpenArgs // open it in the same step
}

// truncates tells whether a file that is there already becomes empty.
func (a *Create) truncates() bool {
	return a.Exist == ExistOpen && a.Set.Mask&SetSize != 0 && a.Set.Size == 0
}

// Created is what Create made or took.
type Created struct {
	Inode *Inode
	New   bool
	Attr  Attr
	Dir   Changed
	Open  *Open

	full bool // a file that Create was to empty has yet to be
}

// Create makes an inode of any type under a name. A new file is opened as
// asked whatever its mode. Where the directory lives, Dir is returned with an
// error too.
func (d *Inode) Create(c *Caller, name string, a *Create) (Created, error) {
	d.mu.Lock()
	r, cut, err := d.create(c, name, a)
	if !d.dead && d.typ == TypeDir {
		r.Dir.After = d.attr()
	}
	d.mu.Unlock()
	d.s.release(cut)
	switch {
	case err != nil:
	case r.New:
		d.notify(r.Inode.named(), WatchEvent{Action: WatchAdded, Path: name})
		d.s.settle(c, Stale{Inode: d, Name: name})
	case r.full:
		err = r.empty(c)
	case a.truncates():
		r.Inode.changed(WatchWrite | WatchSize)
		d.s.settle(c, Stale{Inode: r.Inode, Data: true})
	}
	return r, err
}

// empty is what is left of Create for a file to which a local process may be
// writing: that is waited for without the directory's lock.
func (r *Created) empty(c *Caller) error {
	o := r.Open
	if o != nil && o.Access()&AccessWrite == 0 {
		o = nil
	}
	ch, err := r.Inode.SetAttr(c, o, &SetAttr{Mask: SetSize})
	if err != nil {
		if r.Open != nil {
			r.Open.Close()
		}
		r.Inode, r.Open = nil, nil
		return err
	}
	r.Attr = ch.After
	return nil
}

// create is called with d.mu held for writing.
func (d *Inode) create(c *Caller, name string, a *Create) (r Created, cut extent.Map, err error) {
	if err := d.searchable(c, AccessExecute); err != nil {
		return r, cut, err
	}
	r.Dir.Before = d.before()
	if name == "." || name == ".." {
		return r, cut, ErrExist
	}
	if err := checkName(name); err != nil {
		return r, cut, err
	}
	if r.Inode = d.is(name); r.Inode != nil {
		cut, err = r.Inode.take(c, a, &r)
		if err != nil {
			r.Inode = nil
		}
		return r, cut, err
	}
	if d.nlink == 0 {
		return r, cut, ErrNotExist
	}
	if !d.permits(c, AccessWrite) {
		return r, cut, ErrAccess
	}
	if a.Type == TypeDir && d.nlink >= MaxLinks {
		return r, cut, ErrTooManyLinks
	}
	cost := int64(dentryCost + len(name))
	if !d.s.charge(cost) {
		return r, cut, ErrNoSpace
	}
	t := now()
	if err := d.make(c, a, t, 1, &r); err != nil {
		d.s.uncharge(cost)
		return r, cut, err
	}
	r.Inode.link = d.dir.add(name, r.Inode.ino)
	d.s.table.put(r.Inode)
	if a.Type == TypeDir {
		d.nlink++
	}
	d.begin(t)
	d.mtime = t
	return r, cut, nil
}

// CreateTemp makes anything but a directory that has no name until Link or Replace
// gives it one, and opens it as a.Open says. The directory is left as it is: the
// inode only belongs to its group if that is set-gid.
func (d *Inode) CreateTemp(c *Caller, a *Create) (r Created, err error) {
	if a.Type == TypeDir || a.Open == nil {
		return r, ErrInvalid
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.searchable(c, AccessWrite|AccessExecute); err != nil {
		return r, err
	}
	if d.nlink == 0 {
		return r, ErrNotExist
	}
	if err := d.make(c, a, now(), 0, &r); err != nil {
		return r, err
	}
	d.s.orphan.Add(1)
	d.s.table.put(r.Inode)
	return r, nil
}

// make makes and opens the inode that a asks for, with nlink links, or 2 if it
// is a directory. Called with d.mu held.
func (d *Inode) make(c *Caller, a *Create, t int64, nlink uint32, r *Created) error {
	switch a.Type {
	case TypeFile, TypeDir, TypeFIFO, TypeSocket:
	case TypeSymlink:
		if a.Target == "" || strings.IndexByte(a.Target, 0) >= 0 {
			return ErrInvalid
		}
		if len(a.Target) > MaxSymlink {
			return ErrNameTooLong
		}
	case TypeBlock, TypeChar:
		if c.UID != 0 {
			return ErrPerm
		}
	default:
		return ErrBadType
	}
	gid := c.GID
	var inherited uint16
	if d.mode&ModeSetGID != 0 {
		gid = d.gid
		if a.Type == TypeDir {
			inherited = ModeSetGID
		}
	}
	cost := int64(0)
	if a.Type == TypeSymlink {
		cost = int64(len(a.Target))
	}
	if !d.s.charge(cost) {
		return ErrNoSpace
	}
	i, err := d.s.newInode(a.Type, 0, c.UID, gid, t)
	if err != nil {
		d.s.uncharge(cost)
		return err
	}
	// Nobody else sees the inode yet, so the functions that want its lock held
	// may be called without it.
	i.nlink, i.home = nlink, d
	switch a.Type {
	case TypeDir:
		i.nlink = 2
	case TypeSymlink:
		i.mode = 0o777
		i.size = int64(len(a.Target))
		i.extra().target = strings.Clone(a.Target)
	case TypeBlock, TypeChar:
		i.extra().major, i.x.minor = a.Major, a.Minor
	}
	set := a.Set
	set.Mask &^= SetGuard
	if a.Type == TypeSymlink {
		set.Mask &^= SetMode
	}
	if set.Mask&SetSize != 0 && a.Type != TypeFile {
		set.Mask &^= SetSize
	}
	if set.Mask != 0 {
		if _, err := i.setAttr(c, nil, &set, t); err != nil {
			i.discard()
			d.s.uncharge(cost)
			return err
		}
	}
	i.mode |= inherited
	if a.Exist == ExistVerifier {
		i.atime.Store(int64(a.Verifier >> 32))
		i.mtime = int64(a.Verifier & (1<<32 - 1))
	}
	if a.Open != nil {
		// A new inode has no other open to conflict with.
		r.Open, _ = i.open(c, *a.Open)
	}
	r.Inode, r.New, r.Attr = i, true, i.attr()
	return nil
}

// take is create for a name that is there. Called with the directory's mu held
// for writing.
func (i *Inode) take(c *Caller, a *Create, r *Created) (cut extent.Map, err error) {
	if a.Exist == ExistFail || a.Type != TypeFile {
		return cut, ErrExist
	}
	i.lock()
	defer i.mu.Unlock()
	if i.typ == TypeDir {
		return cut, ErrExist
	}
	if a.Exist == ExistVerifier {
		if i.typ != TypeFile || i.atime.Load() != int64(a.Verifier>>32) || i.mtime != int64(a.Verifier&(1<<32-1)) {
			return cut, ErrExist
		}
	} else {
		if i.typ != TypeFile {
			return cut, ErrExist
		}
		if a.Open != nil && !i.opens(c, a.Open) {
			return cut, ErrAccess
		}
		if a.Open != nil {
			if err := i.shares(c, i.openOf(a.Open.Owner), *a.Open); err != nil {
				return cut, err
			}
		}
		if r.full = a.truncates() && i.loose(); r.full {
			err = i.inPlace(c)
		} else if a.truncates() {
			cut, err = i.setAttr(c, nil, &SetAttr{Mask: SetSize}, now())
		}
		if err != nil {
			return cut, err
		}
	}
	if a.Open != nil {
		if r.Open, err = i.open(c, *a.Open); err != nil {
			return cut, err
		}
	} else if w := i.breakLeases(c, opGetAttr); w != nil {
		return cut, w
	}
	r.Attr = i.attr()
	return cut, nil
}

// Link gives an inode that is not a directory another name in d.
func (d *Inode) Link(c *Caller, name string, i *Inode) (dir Changed, attr Attr, err error) {
	if i.s != d.s {
		return dir, attr, ErrXDev
	}
	if i.typ == TypeDir {
		if attr, err = i.GetAttr(c); err == nil {
			err = ErrPerm
		}
		return dir, attr, err
	}
	if d.typ != TypeDir {
		return dir, attr, ErrNotDir
	}
	d.mu.Lock()
	i.mu.Lock()
	err = d.addLink(c, name, i, &dir)
	if !d.dead {
		dir.After = d.attr()
	}
	if !i.dead {
		attr = i.attr()
	}
	i.mu.Unlock()
	d.mu.Unlock()
	if err == nil {
		d.notify(WatchName, WatchEvent{Action: WatchAdded, Path: name})
		d.s.settle(c, Stale{Inode: d, Name: name}, Stale{Inode: i})
	}
	return dir, attr, err
}

// addLink is called with both locked for writing.
func (d *Inode) addLink(c *Caller, name string, i *Inode, dir *Changed) error {
	if err := d.searchable(c, AccessExecute); err != nil {
		return err
	}
	dir.Before = d.before()
	if name == "." || name == ".." {
		return ErrExist
	}
	if err := checkName(name); err != nil {
		return err
	}
	switch {
	case i.dead:
		return ErrStale
	case d.dir.find(name) >= 0:
		return ErrExist
	case d.nlink == 0:
		return ErrNotExist
	case !d.permits(c, AccessWrite):
		return ErrAccess
	case i.nlink >= MaxLinks:
		return ErrTooManyLinks
	}
	if w := i.breakLeases(c, opLink); w != nil {
		return w
	}
	if !d.s.charge(int64(dentryCost + len(name))) {
		return ErrNoSpace
	}
	if i.nlink == 0 {
		// An open without a name gets one, as linkat of a temporary file does.
		d.s.orphan.Add(-1)
	}
	t := now()
	i.begin(t)
	i.nlink++
	i.home, i.link = d, d.dir.add(name, i.ino)
	d.begin(t)
	d.mtime = t
	return nil
}

// Replace gives a name that stands for old to i, which is no directory, in one step:
// old loses it as by Remove. ErrNotExist if the name stands for something else.
func (d *Inode) Replace(c *Caller, name string, old, i *Inode) error {
	switch {
	case i.s != d.s:
		return ErrXDev
	case i.typ == TypeDir:
		return ErrPerm
	case d.typ != TypeDir:
		return ErrNotDir
	case old == i:
		return ErrExist
	}
	unlock := lockDirs(d, old.asDir())
	cut, err := d.replace(c, name, old, i)
	unlock()
	d.s.release(cut)
	if err != nil {
		return err
	}
	if old.named() == i.named() {
		d.notify(i.named(), WatchEvent{Action: WatchModified, Path: name})
	} else {
		d.notify(old.named(), WatchEvent{Action: WatchRemoved, Path: name})
		d.notify(i.named(), WatchEvent{Action: WatchAdded, Path: name})
	}
	d.s.settle(c, Stale{Inode: d, Name: name, Child: old}, Stale{Inode: old}, Stale{Inode: i})
	return nil
}

// replace is called with d and, if it is a directory, old locked for writing.
func (d *Inode) replace(c *Caller, name string, old, i *Inode) (cut extent.Map, err error) {
	if err := d.searchable(c, AccessExecute); err != nil {
		return cut, err
	}
	pos, named := d.entry(name)
	if named != old {
		return cut, ErrNotExist
	}
	other := old
	if old.typ == TypeDir {
		other = i
	}
	defer lockFiles(i, other)()
	switch {
	case i.dead:
		return cut, ErrStale
	case i.nlink >= MaxLinks:
		return cut, ErrTooManyLinks
	case old.typ == TypeDir && old.dir.live > 0:
		return cut, ErrNotEmpty
	}
	if err := d.mayRemove(c, old); err != nil {
		return cut, err
	}
	if err := old.mayUnname(c); err != nil {
		return cut, err
	}
	if w := i.breakLeases(c, opLink); w != nil {
		return cut, w
	}
	if i.nlink == 0 {
		d.s.orphan.Add(-1)
	}
	t := now()
	e := d.dir.at(pos)
	cut = old.unnamed(d, e.cookie, t)
	e.ino = i.ino
	i.begin(t)
	i.nlink++
	i.home, i.link = d, e.cookie
	d.begin(t)
	d.mtime = t
	return cut, nil
}

// RemoveKind is what Remove may take away.
type RemoveKind uint8

// Kinds of removals.
const (
	RemoveAny  RemoveKind = iota // anything; a directory must be empty
	RemoveFile                   // ErrIsDir for a directory
	RemoveDir                    // ErrNotDir for anything else
)

// peek returns what a name stands for, without a check of permission, to know
// what has to be locked; nil if there is nothing.
func (d *Inode) peek(name string) *Inode {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.is(name)
}

// is returns what a name stands for, or nil. Called with d.mu held.
func (d *Inode) is(name string) *Inode {
	_, i := d.entry(name)
	return i
}

// entry is is with the name's position. Called with d.mu held.
func (d *Inode) entry(name string) (int, *Inode) {
	if d.typ != TypeDir {
		return -1, nil
	}
	pos := d.dir.find(name)
	if pos < 0 {
		return -1, nil
	}
	return pos, d.s.table.get(uint64(d.dir.at(pos).ino))
}

// asDir returns i if it is a directory, else nil.
func (i *Inode) asDir() *Inode {
	if i == nil || i.typ != TypeDir {
		return nil
	}
	return i
}

// Remove takes a name away, and the inode with its last name, unless an open
// keeps it. Where the directory lives, the result is returned with an error
// too.
func (d *Inode) Remove(c *Caller, name string, kind RemoveKind) (ch Changed, err error) {
	return d.removeIf(c, name, kind, nil)
}

// removeIf is Remove, but of nothing else than only, unless that is nil.
func (d *Inode) removeIf(c *Caller, name string, kind RemoveKind, only *Inode) (ch Changed, err error) {
	d.mu.Lock()
	unlock := d.mu.Unlock
	pos, i := d.entry(name)
	for i.asDir() != nil {
		// A directory is locked too, and may have to be locked first.
		unlock()
		unlock = lockDirs(d, i)
		locked := i
		if pos, i = d.entry(name); i == locked {
			break
		}
	}
	if only != nil && i != only {
		unlock()
		return ch, ErrNotExist
	}
	cut, err := d.remove(c, name, kind, pos, i, &ch)
	unlock()
	d.s.release(cut)
	if err == nil {
		d.notify(i.named(), WatchEvent{Action: WatchRemoved, Path: name})
		d.s.settle(c, Stale{Inode: d, Name: name, Child: i}, Stale{Inode: i})
	}
	return ch, err
}

// mayRemove checks a removal or replacement of i from d. Called with d.mu and,
// if i is a directory, i.mu held.
func (d *Inode) mayRemove(c *Caller, i *Inode) error {
	if !d.permits(c, AccessWrite|AccessExecute) {
		return ErrAccess
	}
	if d.mode&ModeSticky != 0 && !d.owns(c) && !i.owns(c) {
		return ErrPerm
	}
	return nil
}

// remove is called with d and, if it is a directory, i locked for writing; i
// is what the name stands for, or nil.
func (d *Inode) remove(c *Caller, name string, kind RemoveKind, pos int, i *Inode, ch *Changed) (cut extent.Map, err error) {
	if d.dead || d.typ != TypeDir {
		return cut, d.searchable(c, 0)
	}
	ch.Before, ch.After = d.before(), d.attr()
	if err := d.searchable(c, AccessExecute); err != nil {
		return cut, err
	}
	switch {
	case name == ".":
		return cut, ErrInvalid
	case name == ".." && kind == RemoveFile:
		return cut, ErrIsDir
	case name == "..":
		return cut, ErrNotEmpty
	}
	if err := checkName(name); err != nil {
		return cut, err
	}
	if i == nil {
		return cut, ErrNotExist
	}
	if i.typ != TypeDir {
		i.mu.Lock()
		defer i.mu.Unlock()
	}
	if err := d.mayRemove(c, i); err != nil {
		return cut, err
	}
	switch {
	case i.typ == TypeDir && kind == RemoveFile:
		return cut, ErrIsDir
	case i.typ != TypeDir && kind == RemoveDir:
		return cut, ErrNotDir
	case i.typ == TypeDir && i.dir.live > 0:
		return cut, ErrNotEmpty
	}
	if err := i.mayUnname(c); err != nil {
		return cut, err
	}
	t := now()
	cut = i.unnamed(d, d.dir.at(pos).cookie, t)
	d.unlink(pos)
	d.begin(t)
	d.mtime = t
	ch.After = d.attr()
	return cut, nil
}

// mayUnname asks the inode's opens and leases whether a name of it may go.
// Called with i.mu held.
func (i *Inode) mayUnname(c *Caller) error {
	if i.x == nil {
		return nil
	}
	if i.x.deny[2] > 0 {
		for _, o := range i.x.opens {
			if o != c.Open && o.deny&AccessDelete != 0 {
				return i.violation(c, o)
			}
		}
	}
	if w := i.breakLeases(c, opUnname); w != nil {
		return w
	}
	return nil
}

// unlink removes a name and what it cost. Called with d.mu held for writing.
func (d *Inode) unlink(pos int) {
	cost := int64(dentryCost + len(d.dir.name(pos)))
	d.dir.remove(pos)
	d.s.uncharge(cost)
	d.s.reaper.dropped(cost)
}

// unnamed counts a name of i less, which stands in d at a cookie, and returns
// pages to free. Called with both locked for writing; the caller takes the name
// away and changes d's times.
func (i *Inode) unnamed(d *Inode, cookie uint64, t int64) extent.Map {
	i.begin(t)
	if i.home == d && i.link == cookie {
		i.link = 0
	}
	if i.typ == TypeDir {
		i.nlink = 0
		d.nlink--
		i.endWatches()
	} else {
		i.nlink--
	}
	cut := i.bury()
	if i.nlink == 0 && !i.dead {
		i.s.orphan.Add(1)
	}
	return cut
}
