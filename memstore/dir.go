package memstore

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// firstCookie leaves 0 to 2 to the protocols, for the start, "." and "..".
const firstCookie = 3

// Up to this many entries are found by looking at each.
const indexFrom = 12

// dentry is a name in a directory.
type dentry struct {
	cookie uint64 // position in the directory's order
	ino    uint32 // 0: removed
	name   uint16 // where it begins in its leaf's names
	length uint8
}

// leafSize bounds the names in a leaf.
const leafSize = 64

// leaf is names that follow each other in a directory's order. What is written
// to its bytes stays, so that strings of them may be handed out.
type leaf struct {
	first   uint64   // cookie; stays when that name is removed
	entries []dentry // removed ones among them; nil when all are, but for the last leaf
	names   []byte
	live    int // entries not removed
}

func (l *leaf) name(e *dentry) string {
	return unsafe.String(&l.names[e.name], e.length)
}

// directory is the names of a directory, protected by its inode's mu. A name's
// position is the number of its leaf times leafSize, and its number there.
type directory struct {
	leaves []leaf              // by cookie
	live   int                 // names
	gaps   int                 // removed entries in leaves that have others
	index  index               // without slots: look at each
	fold   map[string][]uint64 // cookies by folded name; nil until it is asked for
	next   uint64              // next cookie
}

// bytes is the size that a directory shows: it grows and falls with its
// entries.
func (d *directory) bytes() int64 { return int64(d.live) * dentryCost }

func (d *directory) at(pos int) *dentry { return &d.leaves[pos/leafSize].entries[pos%leafSize] }

func (d *directory) name(pos int) string {
	l := &d.leaves[pos/leafSize]
	return l.name(&l.entries[pos%leafSize])
}

// find returns the position of a name, or -1.
func (d *directory) find(name string) int {
	if d.index.slots != nil {
		return d.index.find(d, name)
	}
	for n := range d.leaves {
		l := &d.leaves[n]
		for m := range l.entries {
			if e := &l.entries[m]; e.ino != 0 && l.name(e) == name {
				return n*leafSize + m
			}
		}
	}
	return -1
}

// all iterates over the names from a position on.
func (d *directory) all(pos int) iter.Seq2[int, *dentry] {
	return func(yield func(int, *dentry) bool) {
		from := pos % leafSize
		for n := pos / leafSize; n < len(d.leaves); n++ {
			entries := d.leaves[n].entries
			for m := from; m < len(entries); m++ {
				if e := &entries[m]; e.ino != 0 && !yield(n*leafSize+m, e) {
					return
				}
			}
			from = 0
		}
	}
}

// add puts a name behind all others, and returns its cookie. It must not be
// there.
func (d *directory) add(name string, ino uint32) uint64 {
	cookie := d.next
	d.next++
	pos := d.put(name, cookie, ino)
	d.live++
	switch {
	case d.index.slots != nil:
		d.index.add(name, pos)
	case d.live > indexFrom:
		d.reindex()
	}
	if d.fold != nil {
		d.addFold(name, cookie)
	}
	return cookie
}

// put is add without the index, and returns the position.
func (d *directory) put(name string, cookie uint64, ino uint32) int {
	n := len(d.leaves) - 1
	if n < 0 || len(d.leaves[n].entries) == leafSize {
		l := leaf{first: cookie}
		if n < 0 {
			l.entries = make([]dentry, 0, 4)
		} else {
			// Most likely it fills as the last one did.
			size := len(d.leaves[n].names)
			l.entries = make([]dentry, 0, leafSize)
			l.names = slices.Grow(l.names, size+size/8)
			d.drop(&d.leaves[n])
		}
		d.leaves = append(d.leaves, l)
		n++
	}
	l := &d.leaves[n]
	l.entries = append(l.entries, dentry{cookie, ino, uint16(len(l.names)), uint8(len(name))})
	l.names = append(l.names, name...)
	l.live++
	return n*leafSize + len(l.entries) - 1
}

func (d *directory) reindex() {
	d.index = newIndex(d.live)
	for pos := range d.all(0) {
		d.index.add(d.name(pos), pos)
	}
}

// remove takes a name away. Its place in the order stays until so many are
// empty that closing the gaps costs less than passing over them. A leaf that
// has nothing else, as when names are removed in order, is freed at once.
func (d *directory) remove(pos int) {
	l := &d.leaves[pos/leafSize]
	e := &l.entries[pos%leafSize]
	if d.index.slots != nil {
		d.index.remove(l.name(e), pos)
	}
	if d.fold != nil {
		d.removeFold(l.name(e), e.cookie)
	}
	e.ino = 0
	l.live--
	d.live--
	d.gaps++
	if l != &d.leaves[len(d.leaves)-1] {
		d.drop(l)
	}
	switch {
	case d.live == 0:
		*d = directory{next: d.next}
	case d.gaps >= 16 && d.gaps > d.live, len(d.leaves)*leafSize > 8*d.live+1024:
		d.compact()
	}
}

// drop frees a leaf behind which there are others, if all in it is removed.
func (d *directory) drop(l *leaf) {
	if l.live == 0 {
		d.gaps -= len(l.entries)
		l.entries, l.names = nil, nil
	}
}

func (d *directory) compact() {
	old := *d
	d.leaves = make([]leaf, 0, 1+d.live/leafSize)
	d.gaps = 0
	for pos, e := range old.all(0) {
		d.put(old.name(pos), e.cookie, e.ino)
	}
	if d.index = (index{}); d.live > indexFrom {
		d.reindex()
	}
}

// after returns a position that has every name behind cookie at or behind it,
// and no other.
func (d *directory) after(cookie uint64) int {
	n := sort.Search(len(d.leaves), func(n int) bool { return d.leaves[n].first > cookie }) - 1
	if n < 0 {
		return 0
	}
	entries := d.leaves[n].entries
	return n*leafSize + sort.Search(len(entries), func(m int) bool { return entries[m].cookie > cookie })
}

// seek returns the name that has a cookie, and what it stands for; "" if it was
// removed.
func (d *directory) seek(cookie uint64) (name string, ino uint32) {
	for pos, e := range d.all(d.after(cookie - 1)) {
		if e.cookie == cookie {
			return d.name(pos), e.ino
		}
		break
	}
	return "", 0
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

func (d *directory) addFold(name string, cookie uint64) {
	key := foldName(name)
	d.fold[key] = append(d.fold[key], cookie)
}

func (d *directory) removeFold(name string, cookie uint64) {
	key := foldName(name)
	rest := slices.DeleteFunc(d.fold[key], func(c uint64) bool { return c == cookie })
	if len(rest) == 0 {
		delete(d.fold, key)
	} else {
		d.fold[key] = rest
	}
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
	i := d.is(name)
	if i == nil {
		return nil, ErrNotExist
	}
	return i, nil
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
	if pos, i := d.entry(name); i != nil {
		return i, d.dir.name(pos), nil
	}
	if d.dir.fold == nil {
		d.dir.fold = make(map[string][]uint64, d.dir.live)
		for pos, e := range d.dir.all(0) {
			d.dir.addFold(d.dir.name(pos), e.cookie)
		}
	}
	same := d.dir.fold[foldName(name)]
	if len(same) == 0 {
		return nil, "", ErrNotExist
	}
	stored, ino := d.dir.seek(same[0])
	return d.s.table.get(uint64(ino)), stored, nil
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
		d, name := i.lastName()
		if d == nil {
			return "", false
		}
		names = append(names, name)
		i = d
	}
	slices.Reverse(names)
	return strings.Join(names, "/"), true
}

// LastName returns the name that the inode got last, and the directory that has
// it, or nil if that name is gone.
func (i *Inode) LastName() (d *Inode, name string) {
	if i == i.s.root {
		return nil, ""
	}
	return i.lastName()
}

// lastName returns the name that the inode got last, and where; d is nil when
// that name is gone. Called without a lock.
func (i *Inode) lastName() (d *Inode, name string) {
	for {
		i.mu.RLock()
		d, link := i.home, i.link
		i.mu.RUnlock()
		if link == 0 {
			return nil, ""
		}
		d.mu.RLock()
		name, ino := d.dir.seek(link)
		d.mu.RUnlock()
		if ino == i.ino {
			return d, name
		}
		// It was renamed or removed meanwhile.
	}
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
	for pos, e := range d.dir.all(d.dir.after(cookie)) {
		if n == len(buf) {
			return n, false, nil
		}
		buf[n] = DirEntry{d.dir.name(pos), e.cookie, d.s.table.get(uint64(e.ino))}
		n++
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
