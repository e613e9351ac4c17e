package billyfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-billy/v5"

	"ramserver/memstore"
)

const (
	maxLinks   = 40    // symbolic links followed in a path, as Linux
	parentMode = 0o755 // of parents that are made
)

// split cleans a path as text and takes it apart.
func split(name string) ([]string, error) {
	var parts []string
	for p := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		switch p {
		case "", ".":
		case "..":
			if len(parts) == 0 {
				return nil, billy.ErrCrossedBoundary
			}
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// look says how to look a path up.
type look struct {
	follow  bool        // a link at the end too
	parents bool        // make missing parents
	last    bool        // and what the path names: a directory as well
	perm    os.FileMode // of what is made, if last
}

// place is where a path leads: a name in a directory, and the inode that has
// it, nil if it is free. dir is nil where the path has no name of its own: the
// root, or the end of a link such as "..".
type place struct {
	dir   *memstore.Inode
	name  string
	inode *memstore.Inode
}

// walker follows paths. dirs is the way from the store's root to where it is.
// ".." goes back on it, and not by the store's own parents, so that nobody is
// led out of a root by a directory that is moved meanwhile.
type walker struct {
	caller *memstore.Caller
	dirs   []*memstore.Inode
	floor  int // dirs up to the root
	links  int // followed yet
}

// lookup finds what exists.
func (f *FS) lookup(name string, follow bool) (*memstore.Inode, error) {
	p, err := f.find(name, look{follow: follow})
	if err != nil {
		return nil, err
	}
	if p.inode == nil {
		return nil, memstore.ErrNotExist
	}
	return p.inode, nil
}

func (f *FS) find(name string, how look) (place, error) {
	parts, err := split(name)
	if err != nil {
		return place{}, err
	}
	w, err := f.walker(how.parents)
	if err != nil {
		return place{}, err
	}
	return w.walk(parts, how)
}

// walker returns a walker that stands at the root.
func (f *FS) walker(parents bool) (*walker, error) {
	if f.parent == nil {
		return &walker{caller: f.caller, dirs: append(make([]*memstore.Inode, 0, 8), f.top), floor: 1}, nil
	}
	w, err := f.parent.walker(parents)
	if err != nil {
		return nil, err
	}
	p, err := w.walk(f.base, look{follow: true, parents: parents, last: parents, perm: parentMode})
	switch {
	case err != nil:
		return nil, err
	case p.inode == nil:
		return nil, memstore.ErrNotExist
	case p.inode.Type() != memstore.TypeDir:
		return nil, memstore.ErrNotDir
	case p.dir != nil:
		w.dirs = append(w.dirs, p.inode)
	}
	w.floor = len(w.dirs)
	return w, nil
}

func (w *walker) walk(parts []string, how look) (place, error) {
	// The last own of parts are the path's, those before them a link's. Only
	// what the path itself names is made.
	own := len(parts)
	for len(parts) > 0 {
		name, mine := parts[0], len(parts) == own
		parts = parts[1:]
		if mine {
			own--
		}
		last := len(parts) == 0
		dir := w.dirs[len(w.dirs)-1]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(w.dirs) == w.floor {
				return place{}, billy.ErrCrossedBoundary
			}
			w.dirs = w.dirs[:len(w.dirs)-1]
			continue
		}
		i, err := dir.Lookup(w.caller, name)
		if errors.Is(err, memstore.ErrNotExist) {
			if last && !how.last {
				return place{dir: dir, name: name}, nil
			}
			if how.parents && mine {
				i, err = w.mkdir(dir, name, how)
			}
		}
		if err != nil {
			return place{}, err
		}
		if i.Type() == memstore.TypeSymlink && (how.follow || !last) {
			if w.links++; w.links > maxLinks {
				return place{}, syscall.ELOOP
			}
			target, err := i.Readlink(w.caller)
			if err != nil {
				return place{}, err
			}
			target = filepath.ToSlash(target)
			if strings.HasPrefix(target, "/") {
				w.dirs = w.dirs[:w.floor]
			}
			parts = append(strings.Split(target, "/"), parts...)
			continue
		}
		if last {
			return place{dir, name, i}, nil
		}
		w.dirs = append(w.dirs, i)
	}
	return place{inode: w.dirs[len(w.dirs)-1]}, nil
}

// mkdir makes a directory, or finds the one that another made meanwhile.
func (w *walker) mkdir(dir *memstore.Inode, name string, how look) (*memstore.Inode, error) {
	perm := os.FileMode(parentMode)
	if how.last {
		perm = how.perm
	}
	set := memstore.SetAttr{Mask: memstore.SetMode, Mode: unixMode(perm)}
	var made memstore.Created
	err := Await(func() (err error) {
		made, err = dir.Create(w.caller, name, &memstore.Create{Type: memstore.TypeDir, Set: set})
		return err
	})
	if errors.Is(err, memstore.ErrExist) {
		return dir.Lookup(w.caller, name)
	}
	return made.Inode, err
}
