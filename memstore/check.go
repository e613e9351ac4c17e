package memstore

import (
	"fmt"

	"ramserver/memstore/arena"
)

// Check verifies every invariant of the store and returns the first that does
// not hold: links and names, pages and their references, what counts against
// the limits, and that no open without a name is left. Nothing else may use
// the store meanwhile, nor any store that shares its arena.
func (s *Store) Check() error {
	if b := s.backing.Load(); b != nil {
		b.tidyUp()
	}
	s.reaper.drain()
	k := checker{s: s, links: map[*Inode]uint32{}, refs: map[uint64]int{}}
	k.tree(s.root, s.root)
	s.table.each(k.streams)
	s.table.each(k.inode)
	k.counters()
	return k.err
}

type checker struct {
	s       *Store
	links   map[*Inode]uint32 // names found
	refs    map[uint64]int    // by page address
	used    int64
	inodes  int64
	orphans int64
	locks   int64
	files   int64 // of the backing
	backed  int64 // bytes in it
	err     error
}

func (k *checker) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("store %q: "+format, append([]any{k.s.name}, args...)...)
	}
}

// tree walks the names below d.
func (k *checker) tree(d, parent *Inode) {
	k.links[d] += 2
	if d.home != parent {
		k.fail("directory %d: parent is %d, not %d", d.ino, d.home.ino, parent.ino)
	}
	k.order(d)
	live := 0
	for pos, e := range d.dir.all(0) {
		name := d.dir.name(pos)
		live++
		k.used += int64(dentryCost + len(name))
		i := k.s.table.get(uint64(e.ino))
		if i == nil {
			k.fail("directory %d: %q names inode %d, which does not exist", d.ino, name, e.ino)
			continue
		}
		if d.dir.find(name) != pos {
			k.fail("directory %d: %q is not found", d.ino, name)
		}
		if i.typ == TypeDir {
			if k.links[i] > 0 {
				k.fail("directory %d has two names", i.ino)
				continue
			}
			k.links[d]++
			k.tree(i, d)
		} else {
			k.links[i]++
		}
		if i.link != 0 {
			if name, ino := i.home.dir.seek(i.link); ino != i.ino {
				k.fail("inode %d: its last name %q is not its own", i.ino, name)
			}
		}
	}
	if live != d.dir.live || d.dir.index.slots != nil && d.dir.index.n != live {
		k.fail("directory %d: has %d names, %d counted, %d indexed", d.ino, live, d.dir.live, d.dir.index.n)
	}
}

// order checks the leaves of a directory.
func (k *checker) order(d *Inode) {
	last, gaps := uint64(0), 0
	for n := range d.dir.leaves {
		l := &d.dir.leaves[n]
		if l.first <= last || l.first >= d.dir.next {
			k.fail("directory %d: leaf %d with cookie %d is out of order", d.ino, n, l.first)
		}
		live := 0
		last = l.first - 1
		for _, e := range l.entries {
			if e.cookie <= last || e.cookie >= d.dir.next {
				k.fail("directory %d: cookie %d is out of order", d.ino, e.cookie)
			}
			last = e.cookie
			if e.ino != 0 {
				live++
			}
		}
		last = max(last, l.first)
		gaps += len(l.entries) - live
		if live != l.live || live == 0 && l.entries != nil && n < len(d.dir.leaves)-1 {
			k.fail("directory %d: leaf %d has %d names, %d counted", d.ino, n, live, l.live)
		}
	}
	if gaps != d.dir.gaps {
		k.fail("directory %d: has %d gaps, %d counted", d.ino, gaps, d.dir.gaps)
	}
}

// streams counts those of an inode as its names.
func (k *checker) streams(i *Inode) {
	if i.x == nil {
		return
	}
	for _, s := range i.x.streams {
		k.links[s.inode]++
		k.used += int64(dentryCost + len(s.name))
		if !s.inode.stream || s.inode.home != i || k.s.table.get(uint64(s.inode.ino)) != s.inode {
			k.fail("inode %d: its stream %q is not its own", i.ino, s.name)
		}
	}
}

func (k *checker) inode(i *Inode) {
	k.inodes++
	k.used += inodeCost
	if i.dead {
		k.fail("inode %d is dead but found", i.ino)
	}
	if i.nlink != k.links[i] {
		k.fail("inode %d: %d links, %d names", i.ino, i.nlink, k.links[i])
	}
	opens, leases := 0, 0
	if x := i.x; x != nil {
		opens, leases = len(x.opens), len(x.leases)
		k.leases(i)
		bytes := 0
		for name, v := range x.xattrs {
			bytes += xattrCost + len(name) + len(v)
		}
		if bytes != x.xattrBytes {
			k.fail("inode %d: extended attributes take %d bytes, %d counted", i.ino, bytes, x.xattrBytes)
		}
		k.used += int64(bytes + len(x.target))
		k.locks += int64(x.locks.Len() + len(x.waiters))
		if opens == 0 && x.locks.Len() > 0 {
			k.fail("inode %d: locked, but not open", i.ino)
		}
	}
	if i.nlink == 0 {
		k.orphans++
		if opens == 0 && leases == 0 && !i.Known() {
			k.fail("inode %d has neither a name nor an open", i.ino)
		}
	}
	k.backing(i)
	end := int64(0)
	for e := range i.data.All() {
		page := int64(e.Page)
		if e.Off < end || e.Len <= 0 || e.Len%page != 0 {
			k.fail("inode %d: extent at %d overlaps or has %d bytes in pages of %d", i.ino, e.Off, e.Len, page)
		}
		end = e.Off + e.Len
		for off := int64(0); off < e.Len; off += page {
			at := e.Off + off
			if at%slotSize != 0 && (page != pageSize || at%pageSize != 0) {
				k.fail("inode %d: page of %d bytes at offset %d", i.ino, page, at)
			}
			a := e.Addr + uint64(off)
			if got := k.s.arena.PageSize(arena.Addr(a)); int64(got) != page {
				k.fail("inode %d: page of %d bytes has %d in the arena", i.ino, page, got)
			}
			if k.refs[a]++; k.refs[a] == 1 {
				k.used += page
			}
			if k.refs[a] == 2 && !i.cow {
				k.fail("inode %d: does not know that the page at %d is shared", i.ino, at)
			}
		}
	}
}

// backing verifies that a file is either paged or backed, and used accordingly.
func (k *checker) backing(i *Inode) {
	b, opens, cached := i.backed(), 0, 0
	if i.x != nil {
		for _, o := range i.x.opens {
			switch o.use {
			case UseCached:
				cached++
			case UsePassthrough, UseMapped:
				opens++
			}
		}
		if cached != i.x.cached || cached > 0 && opens > 0 {
			k.fail("inode %d: %d cached opens, %d counted, %d passed through", i.ino, cached, i.x.cached, opens)
		}
	}
	if b == nil {
		if opens > 0 {
			k.fail("inode %d: passed through, but paged", i.ino)
		}
		return
	}
	st := b.file.stat()
	k.files++
	k.used += backedCost
	k.backed += st.used
	if opens != b.opens || b.away != 0 || i.data.Len() > 0 || st.size != i.size && !b.loose {
		k.fail("inode %d: %d opens passed through, %d counted; %d calls away; %d extents; size %d, of the backing %d", i.ino, opens, b.opens, b.away, i.data.Len(), i.size, st.size)
	}
}

// leases verifies what each lets its holder rely on.
func (k *checker) leases(i *Inode) {
	for _, l := range i.x.leases {
		if l.inode != i || l.holder == nil || l.rights == 0 {
			k.fail("inode %d: lease of %v with rights %b", i.ino, l.holder, l.rights)
			continue
		}
		for _, o := range i.x.opens {
			if o.holder != l.holder && l.rights&o.against() != 0 {
				k.fail("inode %d: %s has a lease with rights %b, and another has opened it for %b", i.ino, l.holder.Name, l.rights, o.access)
			}
		}
		for _, m := range i.x.leases {
			if l != m && (l.holder == m.holder || m.rights&l.against() != 0) {
				k.fail("inode %d: leases with rights %b and %b at the same time", i.ino, l.rights, m.rights)
			}
		}
	}
}

func (k *checker) counters() {
	s := k.s
	for a, n := range k.refs {
		if got := s.arena.Refs(arena.Addr(a)); got != n {
			k.fail("page %#x: %d references, %d counted", a, n, got)
		}
	}
	if s.ownArena {
		s.arena.Walk(func(a arena.Addr, size, refs, pins int) {
			if refs > 0 && k.refs[uint64(a)] == 0 {
				k.fail("page %#x of %d bytes belongs to no file", uint64(a), size)
			}
		})
	}
	if got := s.used.Load(); got != k.used {
		k.fail("%d bytes in use, %d counted", k.used, got)
	}
	if b := s.backing.Load(); b != nil {
		if b.size+s.room.Load() != s.size || s.used.Load() > s.room.Load() {
			k.fail("%d bytes for the backing, room for %d, of %d, %d used", b.size, s.room.Load(), s.size, s.used.Load())
		}
		if n, used := b.files.Load(), b.tmpfs.used(); n != k.files || used != k.backed {
			k.fail("%d backed files with %d bytes, the backing has %d with %d", k.files, k.backed, n, used)
		}
	}
	if got := s.locks.Load(); got != k.locks {
		k.fail("%d locks, %d counted", k.locks, got)
	}
	if got := s.inodes.Load(); got != k.inodes {
		k.fail("%d inodes, %d counted", k.inodes, got)
	}
	if got := s.orphan.Load(); got != k.orphans {
		k.fail("%d inodes without a name, %d counted", k.orphans, got)
	}
}
