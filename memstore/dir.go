package memstore

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// firstCookie leaves 0 to 2 to the protocols, for the start, "." and "..".
const firstCookie = 3

// Up to this many entries are found by looking at each.
const indexFrom = 12

// dentry is a name in a directory.
type dentry struct {
	name   string // (c)
	cookie uint64 // (c) position in the directory's order
	ino    uint64 // protected by the directory's mu; 0: removed
}

// directory is the names of a directory, protected by its inode's mu.
type directory struct {
	list  []*dentry            // by cookie, removed ones among them
	live  int                  // those not removed
	index index                // without slots: look at each
	fold  map[string][]*dentry // by folded name; nil until it is asked for
	next  uint64               // next cookie
}

// bytes is the size that a directory shows: it grows and falls with its
// entries.
func (d *directory) bytes() int64 { return int64(d.live) * dentryCost }

func (d *directory) find(name string) *dentry {
	if d.index.slots != nil {
		if at := d.index.find(d.list, name); at >= 0 {
			return d.list[d.index.slots[at].pos-1]
		}
		return nil
	}
	for _, e := range d.list {
		if e.ino != 0 && e.name == name {
			return e
		}
	}
	return nil
}

// add puts a name behind all others. It must not be there.
func (d *directory) add(name string, ino uint64) *dentry {
	e := &dentry{name: name, cookie: d.next, ino: ino}
	d.next++
	d.list = append(d.list, e)
	d.live++
	switch {
	case d.index.slots != nil:
		d.index.add(e.name, len(d.list)-1)
	case d.live > indexFrom:
		d.reindex()
	}
	if d.fold != nil {
		d.addFold(e)
	}
	return e
}

func (d *directory) reindex() {
	d.index = newIndex(d.live)
	for pos, e := range d.list {
		if e.ino != 0 {
			d.index.add(e.name, pos)
		}
	}
}

// remove takes a name away. Its place in the order stays until so many are
// empty that closing the gaps costs less than passing over them.
func (d *directory) remove(e *dentry) {
	if d.index.slots != nil {
		d.index.remove(d.index.find(d.list, e.name))
	}
	e.ino = 0
	d.live--
	if d.fold != nil {
		key := foldName(e.name)
		rest := slices.DeleteFunc(d.fold[key], func(f *dentry) bool { return f == e })
		if len(rest) == 0 {
			delete(d.fold, key)
		} else {
			d.fold[key] = rest
		}
	}
	if d.live == 0 {
		d.list, d.index, d.fold = nil, index{}, nil
		return
	}
	if gaps := len(d.list) - d.live; gaps < 16 || gaps <= d.live {
		return
	}
	list := make([]*dentry, 0, d.live+d.live/4)
	for _, e := range d.list {
		if e.ino != 0 {
			list = append(list, e)
		}
	}
	d.list = list
	if d.index = (index{}); d.live > indexFrom {
		d.reindex()
	}
}

// after returns the position of the first entry behind cookie.
func (d *directory) after(cookie uint64) int {
	n, _ := slices.BinarySearchFunc(d.list, cookie, func(e *dentry, c uint64) int {
		if e.cookie <= c {
			return -1
		}
		return 1
	})
	return n
}

// foldName maps names that differ in case only to one string. As Windows
// does, it maps rune by rune; bytes that are not UTF-8 stand for themselves.
func foldName(name string) string {
	for n := 0; n < len(name); n++ {
		if c := name[n]; c >= utf8.RuneSelf || 'a' <= c && c <= 'z' {
			return foldRunes(name)
		}
	}
	return name
}

func foldRunes(name string) string {
	var b strings.Builder
	for n := 0; n < len(name); {
		r, size := utf8.DecodeRuneInString(name[n:])
		if r == utf8.RuneError && size == 1 {
			b.WriteByte(name[n])
		} else {
			b.WriteRune(unicode.ToUpper(r))
		}
		n += size
	}
	return b.String()
}

func (d *directory) addFold(e *dentry) {
	key := foldName(e.name)
	d.fold[key] = append(d.fold[key], e)
}

// checkName tells whether a name can be given to an inode.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return ErrInvalid
	case len(name) > MaxName:
		return ErrNameTooLong
	}
	for n := 0; n < len(name); n++ {
		if name[n] == '/' || name[n] == 0 {
			return ErrInvalid
		}
	}
	return nil
}

// searchable is what every look at a directory's names checks first. Called
// with d.mu held.
func (d *Inode) searchable(c *Caller, want Access) error {
	switch {
	case d.dead:
		return ErrStale
	case d.typ != TypeDir:
		return ErrNotDir
	case !d.permits(c, want):
		return ErrAccess
	}
	return nil
}

// Lookup finds a name, "." and ".." too; ".." of a root is that root. The name
// may alias a buffer, here and wherever a name is an argument.
func (d *Inode) Lookup(c *Caller, name string) (*Inode, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.searchable(c, AccessExecute); err != nil {
		return nil, err
	}
	switch name {
	case ".":
		return d, nil
	case "..":
		return d.home, nil
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	e := d.dir.find(name)
	if e == nil {
		return nil, ErrNotExist
	}
	return d.s.table.get(e.ino), nil
}

// LookupFold is Lookup without regard to case, and returns the name as it is
// stored. An exact match comes before others, and of those the oldest. The
// first call in a directory makes an index of folded names.
func (d *Inode) LookupFold(c *Caller, name string) (i *Inode, stored string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.searchable(c, AccessExecute); err != nil {
		return nil, "", err
	}
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	e := d.dir.find(name)
	if e == nil {
		if d.dir.fold == nil {
			d.dir.fold = make(map[string][]*dentry, d.dir.live)
			for _, e := range d.dir.list {
				if e.ino != 0 {
					d.dir.addFold(e)
				}
			}
		}
		same := d.dir.fold[foldName(name)]
		if len(same) == 0 {
			return nil, "", ErrNotExist
		}
		e = same[0]
	}
	return d.s.table.get(e.ino), e.name, nil
}

// Parent returns the directory that holds a directory; a root's is itself.
func (d *Inode) Parent() *Inode {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.home
}

// Path returns a path of the inode from the store's root, without a leading
// slash: through the name that it got last. ok is false when that name is
// gone. The tree may change while the path is made.
func (i *Inode) Path() (path string, ok bool) {
	var names []string
	for i != i.s.root {
		i.mu.RLock()
		home, link, dead := i.home, i.link, i.dead
		i.mu.RUnlock()
		if link == nil || dead {
			return "", false
		}
		names = append(names, link.name)
		i = home
	}
	slices.Reverse(names)
	return strings.Join(names, "/"), true
}

// DirEntry is a name in a directory.
type DirEntry struct {
	Name   string
	Cookie uint64 // list behind this entry
	Inode  *Inode
}

// ReadDir fills buf with the entries behind cookie, in an order that stays the
// same: entries that are there during a whole listing are listed once, and
// every cookie ever returned stays good. Cookies 0 to 2 list from the start;
// "." and ".." are not listed. eof says that nothing follows.
func (d *Inode) ReadDir(c *Caller, cookie uint64, buf []DirEntry) (n int, eof bool, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.searchable(c, AccessRead); err != nil {
		return 0, false, err
	}
	list := d.dir.list[d.dir.after(cookie):]
	for len(list) > 0 && n < len(buf) {
		e := list[0]
		list = list[1:]
		if e.ino != 0 {
			buf[n] = DirEntry{e.name, e.cookie, d.s.table.get(e.ino)}
			n++
		}
	}
	for _, e := range list {
		if e.ino != 0 {
			return n, false, nil
		}
	}
	d.touch()
	return n, true, nil
}

// lockDirs locks directories for writing, in order; nil and repeated ones are
// passed over.
func lockDirs(dirs ...*Inode) (unlock func()) {
	set := slices.DeleteFunc(dirs, func(d *Inode) bool { return d == nil })
	slices.SortFunc(set, byNumber)
	set = slices.Compact(set)
	for _, d := range set {
		d.mu.Lock()
	}
	return func() {
		for _, d := range set {
			d.mu.Unlock()
		}
	}
}

func byNumber(a, b *Inode) int {
	switch {
	case a.ino < b.ino:
		return -1
	case a.ino > b.ino:
		return 1
	}
	return 0
}
