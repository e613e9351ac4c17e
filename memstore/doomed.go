package memstore

import "errors"

// doomed is the name that an inode loses with its last open. Until then it stands
// in its directory, and nobody opens it any more.
type doomed struct {
	dir  *Inode
	name string
}

// Doom has the inode lose a name when the last of its opens closes, as SMB removes
// files (MS-FSA section 2.1.5.15.3); nobody opens it meanwhile. If another inode has
// the name by then, the one that the inode got last goes. Whether the caller may
// remove it is for the caller to find out. ErrNotEmpty for a directory that has
// entries; one that has some in the end stays. Watches on it end. A stream goes
// likewise, whatever dir and name are.
func (o *Open) Doom(dir *Inode, name string) error {
	i := o.inode
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case o.closed:
		return ErrStale
	case i == i.s.root:
		return ErrAccess
	case i.typ == TypeDir && i.dir.live > 0:
		return ErrNotEmpty
	}
	i.x.doomed = &doomed{dir, name}
	i.endWatches()
	return nil
}

// Spare undoes Doom.
func (o *Open) Spare() {
	i := o.inode
	i.mu.Lock()
	defer i.mu.Unlock()
	if !o.closed {
		i.x.doomed = nil
	}
}

// Doomed tells whether the inode goes with its last open.
func (i *Inode) Doomed() bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.x != nil && i.x.doomed != nil
}

// MayRemove tells whether a caller may remove a name of i from the directory, as
// far as the modes of both say.
func (d *Inode) MayRemove(c *Caller, i *Inode) error {
	unlock := lockDirs(d, i.asDir())
	defer unlock()
	if i.typ != TypeDir {
		i.mu.RLock()
		defer i.mu.RUnlock()
	}
	if d.dead || i.dead {
		return ErrStale
	}
	return d.mayRemove(c, i)
}

// fulfil removes the name after the last open has been closed. Who closes does not
// wait for the holder of a lease that is in the way; the name goes when that has
// given way, and nobody opens the inode meanwhile.
func (i *Inode) fulfil(end *doomed) {
	if i.stream {
		i.home.removeStream(i)
		return
	}
	if w := i.unname(end); w != nil {
		i.s.late.Add(1)
		go i.unnameLater(end, w)
	}
}

func (i *Inode) unnameLater(end *doomed, w *Wait) {
	defer i.s.late.Done()
	for ; w != nil; w = i.unname(end) {
		select {
		case <-w.Done():
		case <-i.s.closing:
			return
		}
	}
}

// unname is one try of fulfil; it returns what there is to wait for.
func (i *Inode) unname(end *doomed) *Wait {
	c := Root()
	_, err := end.dir.removeIf(c, end.name, RemoveAny, i)
	if err == ErrNotExist || err == ErrStale {
		if d, name := i.lastName(); d != nil {
			_, err = d.removeIf(c, name, RemoveAny, i)
		}
	}
	if err != nil {
		var w *Wait
		if errors.As(err, &w) {
			return w
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.x != nil && i.x.doomed == end {
		i.x.doomed = nil // it has other names, or could not be removed
	}
	return nil
}
