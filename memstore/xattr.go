package memstore

import (
	"bytes"
	"slices"
)

// Each extended attribute counts this much beside its name and value, in bytes.
const xattrCost = 64

// XattrRule is what SetXattr does about a name that is, or is not, there.
type XattrRule uint8

// Rules of SetXattr.
const (
	XattrEither  XattrRule = iota
	XattrCreate            // ErrExist if it is there
	XattrReplace           // ErrNoXattr if it is not
)

// GetXattr returns a copy of an extended attribute's value. ErrNoXattr if it
// is not there, ErrAccess without permission to read.
func (i *Inode) GetXattr(c *Caller, name string) ([]byte, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if err := i.xattrs(c, AccessRead); err != nil {
		return nil, err
	}
	if i.x != nil {
		if v, ok := i.x.xattrs[name]; ok {
			return bytes.Clone(v), nil
		}
	}
	return nil, ErrNoXattr
}

// xattrs is what every call for extended attributes checks first. Called with
// i.mu held.
func (i *Inode) xattrs(c *Caller, want Access) error {
	if i.dead {
		return ErrStale
	}
	if !i.owns(c) && !i.permits(c, want) {
		return ErrAccess
	}
	return nil
}

// ListXattr returns the names in alphabetical order.
func (i *Inode) ListXattr(c *Caller) ([]string, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.dead {
		return nil, ErrStale
	}
	if i.x == nil {
		return nil, nil
	}
	names := make([]string, 0, len(i.x.xattrs))
	for name := range i.x.xattrs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// SetXattr sets an extended attribute, of MaxXattr bytes at most. ErrXattrTooBig
// when it or all of the inode's together become too large.
func (i *Inode) SetXattr(c *Caller, name string, value []byte, rule XattrRule) (ch Changed, err error) {
	if name == "" {
		return ch, ErrInvalid
	}
	if len(name) > MaxXattrName {
		return ch, ErrNameTooLong
	}
	if len(value) > MaxXattr {
		return ch, ErrXattrTooBig
	}
	return i.changeXattr(c, func(x *extra) (int, error) {
		old, ok := x.xattrs[name]
		switch {
		case ok && rule == XattrCreate:
			return 0, ErrExist
		case !ok && rule == XattrReplace:
			return 0, ErrNoXattr
		}
		grow := len(value) - len(old)
		if !ok {
			grow += xattrCost + len(name)
		}
		if x.xattrBytes+grow > MaxXattrs {
			return 0, ErrXattrTooBig
		}
		if grow > 0 && !i.s.charge(int64(grow)) {
			return 0, ErrNoSpace
		}
		if x.xattrs == nil {
			x.xattrs = make(map[string][]byte)
		}
		// The name may alias a buffer.
		x.xattrs[string([]byte(name))] = bytes.Clone(value)
		return grow, nil
	})
}

// RemoveXattr removes an extended attribute, or answers ErrNoXattr.
func (i *Inode) RemoveXattr(c *Caller, name string) (Changed, error) {
	return i.changeXattr(c, func(x *extra) (int, error) {
		old, ok := x.xattrs[name]
		if !ok {
			return 0, ErrNoXattr
		}
		delete(x.xattrs, name)
		return -(xattrCost + len(name) + len(old)), nil
	})
}

// changeXattr makes a change that returns by how many bytes the attributes
// grew; growth is charged by then.
func (i *Inode) changeXattr(c *Caller, change func(*extra) (int, error)) (ch Changed, err error) {
	i.mu.Lock()
	if err = i.xattrs(c, AccessWrite); err != nil {
		i.mu.Unlock()
		return ch, err
	}
	ch.Before = i.before()
	if w := i.breakLeases(c, opSetAttr); w != nil {
		err = w
	} else {
		var grow int
		if grow, err = change(i.extra()); err == nil {
			i.x.xattrBytes += grow
			if grow < 0 {
				i.s.uncharge(int64(-grow))
			}
			i.begin(now())
		}
	}
	ch.After = i.attr()
	i.mu.Unlock()
	if err == nil {
		i.changed(WatchXattr)
		i.s.settle(c, Stale{Inode: i})
	}
	return ch, err
}
