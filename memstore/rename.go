package memstore

import (
	"maps"
	"slices"

	"ramserver/memstore/internal/extent"
)

// RenameFlags change what Rename does about the target.
type RenameFlags uint8

// Flags of Rename; not both of the first.
const (
	RenameNoReplace RenameFlags = 1 << iota // ErrExist if the target exists
	RenameExchange                          // both names exist and change places
	// RenamePinned is SMB's way (MS-FSA section 2.1.5.15.11): ErrAccess if an open
	// with Pin has the target, or something below a source that is a directory;
	// ErrShareViolation if an open of to may remove that, or denies writing.
	RenamePinned
)

// renaming is one rename: what the two names stand for.
type renaming struct {
	c              *Caller
	from, to       *Inode
	fromName       string
	toName         string
	flags          RenameFlags
	source, target *Inode // target is nil if there is none
}

// Rename gives what fromName stands for in from the name toName in to. What
// had that name loses it in the same step. Where the directories live, their
// attributes are returned with an error too.
func (s *Store) Rename(c *Caller, from *Inode, fromName string, to *Inode, toName string, flags RenameFlags) (fromDir, toDir Changed, err error) {
	if from.s != s || to.s != s {
		return fromDir, toDir, ErrXDev
	}
	if flags&RenamePinned != 0 {
		if i := from.peek(fromName).asDir(); i != nil && s.pinnedBelow(i) {
			return fromDir, toDir, ErrAccess
		}
	}
	r := renaming{c: c, from: from, to: to, fromName: fromName, toName: toName, flags: flags}
	for {
		r.source, r.target = from.peek(fromName), to.peek(toName)
		// Only moves of directories change who is above whom, and only they
		// need to know.
		tree := from != to && (r.source.asDir() != nil || flags&RenameExchange != 0 && r.target.asDir() != nil)
		if tree {
			s.renameMu.Lock()
		}
		unlock := lockDirs(from, to, r.source.asDir(), r.target.asDir())
		if from.is(fromName) != r.source || to.is(toName) != r.target {
			unlock()
			if tree {
				s.renameMu.Unlock()
			}
			continue
		}
		var cut extent.Map
		moved := false
		if from.typ == TypeDir && !from.dead {
			fromDir = Changed{from.before(), from.attr()}
		}
		if to.typ == TypeDir && !to.dead {
			toDir = Changed{to.before(), to.attr()}
		}
		if err = r.check(); err == nil && r.source != r.target {
			if cut, err = r.do(); err == nil {
				moved = true
				fromDir.After, toDir.After = from.attr(), to.attr()
			}
		}
		unlock()
		if tree {
			s.renameMu.Unlock()
		}
		s.release(cut)
		if moved {
			r.notify()
			r.settle()
		}
		return fromDir, toDir, err
	}
}

func (r *renaming) notify() {
	kind := r.source.named()
	event := func(a WatchAction, name string) WatchEvent { return WatchEvent{Action: a, Path: name} }
	switch {
	case r.flags&RenameExchange != 0:
		r.from.notify(kind, event(WatchModified, r.fromName))
		r.to.notify(kind, event(WatchModified, r.toName))
		return
	case r.from == r.to && r.target != nil: // which had the name, and has lost it
		r.to.notify(kind, event(WatchRemoved, r.toName), event(WatchRenamedFrom, r.fromName), event(WatchRenamedTo, r.toName))
	case r.from == r.to:
		r.from.notify(kind, event(WatchRenamedFrom, r.fromName), event(WatchRenamedTo, r.toName))
	default:
		r.from.notify(kind, event(WatchRemoved, r.fromName))
		if r.target != nil {
			r.to.notify(kind, event(WatchRemoved, r.toName), event(WatchAdded, r.toName))
			break
		}
		r.to.notify(kind, event(WatchAdded, r.toName))
	}
	if kind == WatchName {
		// As Windows has it, of files alone: who does not watch names hears of the
		// rename too.
		r.to.notifyUnless(WatchName, WatchAttr|WatchBtime, event(WatchModified, r.toName))
	}
}

func (r *renaming) settle() {
	changes := []Stale{
		{Inode: r.from, Name: r.fromName}, {Inode: r.to, Name: r.toName},
		{Inode: r.source}, {Inode: r.source},
	}
	if r.target != nil {
		changes[3].Inode = r.target
	}
	r.from.s.settle(r.c, changes...)
}

// check is everything that can be refused before files are locked. Called with
// the directories concerned locked.
func (r *renaming) check() error {
	if err := r.from.searchable(r.c, AccessExecute); err != nil {
		return err
	}
	if err := r.to.searchable(r.c, AccessExecute); err != nil {
		return err
	}
	if r.to.nlink == 0 {
		return ErrNotExist
	}
	if err := checkName(r.fromName); err != nil {
		return err
	}
	if err := checkName(r.toName); err != nil {
		return err
	}
	switch {
	case r.flags&(RenameNoReplace|RenameExchange) == RenameNoReplace|RenameExchange:
		return ErrInvalid
	case r.source == nil:
		return ErrNotExist
	case r.target == nil && r.flags&RenameExchange != 0:
		return ErrNotExist
	case r.target != nil && r.flags&RenameNoReplace != 0:
		return ErrExist
	case r.source == r.target:
		return nil
	}
	if err := r.inside(r.source, r.to); err != nil {
		return err
	}
	if r.flags&RenamePinned != 0 && r.to.x != nil {
		for _, o := range r.to.x.opens {
			if o.access&AccessDelete != 0 || o.deny&AccessWrite != 0 {
				return r.to.violation(r.c, o)
			}
		}
	}
	if r.flags&RenameExchange != 0 {
		return r.inside(r.target, r.from)
	}
	if r.target == nil {
		return nil
	}
	// A directory that holds the source is not empty.
	switch isDir := r.source.typ == TypeDir; {
	case isDir && r.target.typ != TypeDir:
		return ErrNotDir
	case !isDir && r.target.typ == TypeDir:
		return ErrIsDir
	case isDir && r.target.dir.live > 0:
		return ErrNotEmpty
	}
	return nil
}

// inside refuses to move a directory below itself. Moves that could do so hold
// renameMu, which keeps everybody's parent as it is.
func (r *renaming) inside(i, dir *Inode) error {
	if i.typ != TypeDir || r.from == r.to {
		return nil
	}
	for ; ; dir = dir.home {
		if dir == i {
			return ErrInvalid
		}
		if dir == dir.home {
			return nil
		}
	}
}

// do makes the change. Called with the directories concerned locked.
func (r *renaming) do() (cut extent.Map, err error) {
	var files []*Inode
	for _, i := range []*Inode{r.source, r.target} {
		if i != nil && i.typ != TypeDir {
			files = append(files, i)
		}
	}
	if len(files) > 0 {
		defer lockFiles(files[0], files[len(files)-1])()
	}
	if err := r.permitted(); err != nil {
		return cut, err
	}
	s, t := r.from.s, now()
	fromPos, toPos := r.from.dir.find(r.fromName), r.to.dir.find(r.toName)
	r.from.begin(t)
	r.from.mtime = t
	if r.to != r.from {
		r.to.begin(t)
		r.to.mtime = t
	}
	if r.flags&RenameExchange != 0 {
		a, b := r.from.dir.at(fromPos), r.to.dir.at(toPos)
		a.ino, b.ino = b.ino, a.ino
		r.source.begin(t)
		r.target.begin(t)
		r.source.moved(r.from, r.to, b.cookie)
		r.target.moved(r.to, r.from, a.cookie)
		return cut, nil
	}
	var cookie uint64
	if toPos < 0 {
		// The old name's cost is given back in a moment, so that a rename works
		// in a full store too.
		s.used.Add(int64(dentryCost + len(r.toName)))
		cookie = r.to.dir.add(r.toName, r.source.ino)
	} else {
		// The name keeps its place in the order, so that a listing that is
		// under way finds it once.
		e := r.to.dir.at(toPos)
		e.ino, cookie = r.source.ino, e.cookie
		cut = r.target.unnamed(r.to, cookie, t)
	}
	r.from.unlink(fromPos)
	r.source.begin(t)
	r.source.moved(r.from, r.to, cookie)
	return cut, nil
}

// moved notes where a renamed inode's name is now. Called with all three
// locked for writing.
func (i *Inode) moved(from, to *Inode, cookie uint64) {
	i.link = cookie
	if i.typ != TypeDir {
		i.home = to
	} else if from != to {
		i.home = to
		from.nlink--
		to.nlink++
	}
}

// permitted is called with everything locked.
func (r *renaming) permitted() error {
	if err := r.from.mayRemove(r.c, r.source); err != nil {
		return err
	}
	if !r.to.permits(r.c, AccessWrite|AccessExecute) {
		return ErrAccess
	}
	if r.target != nil {
		if err := r.to.mayRemove(r.c, r.target); err != nil {
			return err
		}
	}
	// Moving a directory changes its "..".
	if r.from != r.to {
		for _, i := range []*Inode{r.source, r.target} {
			if i == nil || i.typ != TypeDir || i == r.target && r.flags&RenameExchange == 0 {
				continue
			}
			if !i.permits(r.c, AccessWrite) {
				return ErrAccess
			}
		}
	}
	if err := r.source.mayUnname(r.c); err != nil {
		return err
	}
	if r.flags&RenamePinned != 0 && r.target != nil && r.target.x != nil {
		for _, o := range r.target.x.opens {
			if o.pin {
				return ErrAccess
			}
		}
	}
	if r.target != nil {
		return r.target.mayUnname(r.c)
	}
	return nil
}

// pinnedBelow tells whether an open with Pin has something below a directory.
// Called without a lock; the tree may change meanwhile.
func (s *Store) pinnedBelow(dir *Inode) bool {
	s.pins.mu.Lock()
	opens := slices.Collect(maps.Keys(s.pins.opens))
	s.pins.mu.Unlock()
	for _, o := range opens {
		for i := o.inode; i != nil && i != s.root; i, _ = i.lastName() {
			if i == dir && o.inode != dir {
				return true
			}
		}
	}
	return false
}
