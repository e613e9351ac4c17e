// Package extent maps offsets of a file to the pages that hold them.
//
// A page is mapped whole: one of p bytes at file offset o covers [o, o+p).
// Offsets that no page covers are holes. Pages are known by address only, so
// that the package needs no memory to test against.
//
// A Map has no lock: any number of readers, or one writer.
package extent

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Extent is a run of pages of one size that follow each other both in the
// file and in memory.
type Extent struct {
	Off  int64  // of the first page in the file, in bytes
	Addr uint64 // of the first page in memory
	Len  int64  // bytes, a multiple of Page
	Page uint32 // bytes of a page
}

// End is the offset behind the last page.
func (e Extent) End() int64 { return e.Off + e.Len }

// Map holds the extents of a file. The zero value is empty. It is 24 bytes as
// long as it has one extent at most, at the start of the file, as most files
// do; others are a sorted list of sorted leaves.
//
// A Map must not be copied, except to move it.
type Map struct {
	// The run at offset 0 if tree is nil; without pages: empty.
	addr  uint64
	pages uint32
	page  uint32

	tree *tree
}

// A run is an Extent in 24 bytes.
type run struct {
	off   int64
	addr  uint64
	pages uint32
	page  uint32
}

// maxLeaf bounds a leaf to 6 KiB. Larger ones make inserts slower, smaller
// ones make the list of leaves longer, which inserts move too.
const maxLeaf = 256

// tree holds at least two runs, or one that is not at offset 0. No leaf is
// empty.
type tree struct {
	runs   int
	bytes  int64
	first  []int64 // offset of each leaf's first run
	leaves [][]run
}

func (r run) len() int64 { return int64(r.pages) * int64(r.page) }
func (r run) end() int64 { return r.off + r.len() }

func (r run) extent() Extent {
	return Extent{Off: r.off, Addr: r.addr, Len: r.len(), Page: r.page}
}

// one is the only run of a map without a tree.
func (m *Map) one() run { return run{addr: m.addr, pages: m.pages, page: m.page} }

func (m *Map) setOne(r run) { m.addr, m.pages, m.page = r.addr, r.pages, r.page }

// Len returns the number of extents.
func (m *Map) Len() int {
	switch {
	case m.tree != nil:
		return m.tree.runs
	case m.pages != 0:
		return 1
	}
	return 0
}

// Bytes returns the bytes of all pages.
func (m *Map) Bytes() int64 {
	if m.tree != nil {
		return m.tree.bytes
	}
	return m.one().len()
}

// Find returns the extent that covers off, else the first one behind it.
// It returns false if there is neither.
func (m *Map) Find(off int64) (Extent, bool) {
	off = max(off, 0)
	t := m.tree
	if t == nil {
		one := m.one()
		if off >= one.end() {
			return Extent{}, false
		}
		return one.extent(), true
	}
	li, i := t.find(off)
	if li == len(t.leaves) {
		return Extent{}, false
	}
	return t.leaves[li][i].extent(), true
}

// find returns the place of the first run that ends behind off; its leaf is
// len(t.leaves) if there is none.
func (t *tree) find(off int64) (li, i int) {
	li = t.leafOf(off)
	leaf := t.leaves[li]
	i = lastAt(leaf, off)
	if leaf[i].end() <= off {
		if i++; i == len(leaf) {
			return li + 1, 0
		}
	}
	return li, i
}

// leafOf returns the last leaf that begins at or before off, else the first.
func (t *tree) leafOf(off int64) int {
	base := 0
	for n := len(t.first); n > 1; {
		half := n / 2
		base += half & upTo(t.first[base+half], off)
		n -= half
	}
	return base
}

// lastAt returns the last run that begins at or before off, else the first.
func lastAt(leaf []run, off int64) int {
	base := 0
	for n := len(leaf); n > 1; {
		half := n / 2
		base += half & upTo(leaf[base+half].off, off)
		n -= half
	}
	return base
}

// upTo returns all ones if x <= y, else 0; neither is negative. A branch
// would be mispredicted in every other step of a search.
func upTo(x, y int64) int { return int((x - y - 1) >> 63) }

// All iterates over the extents in the order of their offsets. The map must
// not change meanwhile.
func (m *Map) All() iter.Seq[Extent] { return m.From(0) }

// From iterates over the extents that end behind off.
func (m *Map) From(off int64) iter.Seq[Extent] {
	return func(yield func(Extent) bool) { m.walk(off, yield) }
}

func (m *Map) walk(off int64, yield func(Extent) bool) {
	off = max(off, 0)
	t := m.tree
	if t == nil {
		if e, ok := m.Find(off); ok {
			yield(e)
		}
		return
	}
	li, i := t.find(off)
	for ; li < len(t.leaves); li, i = li+1, 0 {
		for _, r := range t.leaves[li][i:] {
			if !yield(r.extent()) {
				return
			}
		}
	}
}

// Insert adds e, which must not overlap with an extent of the map, and joins
// it with those that it continues.
func (m *Map) Insert(e Extent) {
	if e.Off < 0 || e.Page == 0 || e.Len <= 0 || e.Len%int64(e.Page) != 0 || e.Len > math.MaxInt64-e.Off || e.Len/int64(e.Page) > math.MaxUint32 {
		panic(fmt.Sprintf("extent: invalid %+v", e))
	}
	m.insert(run{off: e.Off, addr: e.Addr, pages: uint32(e.Len / int64(e.Page)), page: e.Page})
}

func (m *Map) insert(r run) {
	if m.tree == nil {
		one := m.one()
		switch {
		case one.pages == 0 && r.off == 0:
			m.setOne(r)
			return
		case one.pages == 0:
			m.tree = newTree(r)
			return
		case one.continuedBy(r):
			m.pages += r.pages
			return
		}
		m.tree = newTree(one)
		m.setOne(run{})
	}
	m.tree.insert(r)
	m.shrink()
}

func newTree(r run) *tree {
	return &tree{
		runs:   1,
		bytes:  r.len(),
		first:  []int64{r.off},
		leaves: [][]run{append(make([]run, 0, 2), r)},
	}
}

// shrink goes back to the small form.
func (m *Map) shrink() {
	switch t := m.tree; {
	case t.runs == 0:
		m.tree = nil
	case t.runs == 1 && t.first[0] == 0:
		m.setOne(t.leaves[0][0])
		m.tree = nil
	}
}

// continuedBy tells whether next begins where r ends, in file and memory.
func (r run) continuedBy(next run) bool {
	return r.page == next.page && r.end() == next.off && r.addr+uint64(r.len()) == next.addr &&
		uint64(r.pages)+uint64(next.pages) <= math.MaxUint32
}

func (t *tree) insert(r run) {
	li := t.leafOf(r.off)
	leaf := t.leaves[li]
	i := lastAt(leaf, r.off)
	if leaf[i].off <= r.off {
		i++
	}
	// A predecessor is in the same leaf, since the leaf begins at or before r
	// unless r comes before everything.
	var prev, next *run
	if i > 0 {
		prev = &leaf[i-1]
	}
	nextLeaf, nextAt := li, i
	if i == len(leaf) {
		nextLeaf, nextAt = li+1, 0
	}
	if nextLeaf < len(t.leaves) {
		next = &t.leaves[nextLeaf][nextAt]
	}
	if prev != nil && prev.end() > r.off || next != nil && next.off < r.end() {
		panic(fmt.Sprintf("extent: %+v overlaps", r.extent()))
	}

	t.bytes += r.len()
	switch {
	case prev != nil && prev.continuedBy(r):
		prev.pages += r.pages
		if next != nil && prev.continuedBy(*next) {
			prev.pages += next.pages
			t.runs--
			t.remove(nextLeaf, nextAt, nextAt+1)
			t.dropLeaves(nextLeaf, nextLeaf+1)
		}
	case next != nil && r.continuedBy(*next):
		r.pages += next.pages
		*next = r
		t.first[nextLeaf] = t.leaves[nextLeaf][0].off
	default:
		t.runs++
		t.insertAt(li, i, r)
	}
}

func (t *tree) insertAt(li, i int, r run) {
	leaf := t.leaves[li]
	if len(leaf) == maxLeaf {
		if i == maxLeaf && li == len(t.leaves)-1 {
			// A file that is written in order fills its leaves.
			t.first = append(t.first, r.off)
			t.leaves = append(t.leaves, []run{r})
			return
		}
		const half = maxLeaf / 2
		right := append(make([]run, 0, maxLeaf), leaf[half:]...)
		t.first = slices.Insert(t.first, li+1, right[0].off)
		t.leaves = slices.Insert(t.leaves, li+1, right)
		leaf = leaf[:half]
		t.leaves[li] = leaf
		if i > half {
			li, i, leaf = li+1, i-half, right
		}
	}
	t.leaves[li] = slices.Insert(leaf, i, r)
	t.first[li] = t.leaves[li][0].off
}

// remove deletes runs [i, j) of a leaf, which may become empty.
func (t *tree) remove(li, i, j int) {
	leaf := slices.Delete(t.leaves[li], i, j)
	if cap(leaf) > 4*len(leaf)+8 {
		leaf = slices.Clone(leaf)
	}
	t.leaves[li] = leaf
	if len(leaf) > 0 {
		t.first[li] = leaf[0].off
	}
}

// dropLeaves deletes those of the leaves [from, to) that are empty, which
// are in one piece, and joins their neighbours if these are small.
func (t *tree) dropLeaves(from, to int) {
	start := from
	to = min(to, len(t.leaves))
	for from < to && len(t.leaves[from]) > 0 {
		from++
	}
	for to > from && len(t.leaves[to-1]) > 0 {
		to--
	}
	t.first = slices.Delete(t.first, from, to)
	t.leaves = slices.Delete(t.leaves, from, to)
	for li := min(from, len(t.leaves)-2); li >= max(start-1, 0); li-- {
		if left, right := t.leaves[li], t.leaves[li+1]; len(left)+len(right) <= maxLeaf/2 {
			t.leaves[li] = append(left, right...)
			t.first = slices.Delete(t.first, li+1, li+2)
			t.leaves = slices.Delete(t.leaves, li+1, li+2)
		}
	}
}

// Cut removes the pages that are wholly inside [off, off+n) and hands each
// removed run to fn, in the order of offsets. A page that is only partly
// inside stays. fn must not use the map.
func (m *Map) Cut(off, n int64, fn func(Extent)) {
	if off < 0 {
		panic(fmt.Sprintf("extent: Cut at %d", off))
	}
	if n <= 0 {
		return
	}
	end := off + n
	if end < off {
		end = math.MaxInt64
	}
	t := m.tree
	if t == nil {
		left, mid, right := m.one().cut(off, end)
		if mid.pages == 0 {
			return
		}
		m.setOne(left)
		if right.pages != 0 {
			m.insert(right)
		}
		fn(mid.extent())
		return
	}

	start, i := t.find(off)
	li := start
	for li < len(t.leaves) && t.leaves[li][i].off < end {
		leaf := t.leaves[li]
		left, mid, right := leaf[i].cut(off, end)
		t.bytes -= mid.len()
		switch {
		case mid.pages == 0:
			i++
		case left.pages != 0:
			leaf[i] = left
			if right.pages != 0 {
				t.bytes -= right.len() // insert adds it again
				t.insert(right)
				fn(mid.extent())
				return
			}
			fn(mid.extent())
			i++
		case right.pages != 0:
			leaf[i] = right
			t.first[li] = leaf[0].off
			fn(mid.extent())
			i++
		default:
			fn(mid.extent())
			j := i + 1
			for ; j < len(leaf) && leaf[j].end() <= end; j++ {
				t.bytes -= leaf[j].len()
				fn(leaf[j].extent())
			}
			t.runs -= j - i
			t.remove(li, i, j)
		}
		if i == len(t.leaves[li]) {
			li, i = li+1, 0
		}
	}
	t.dropLeaves(start, li+1)
	m.shrink()
}

// cut splits r into the pages before, wholly inside and behind [off, end).
// If none is inside, all are left.
func (r run) cut(off, end int64) (left, mid, right run) {
	if r.pages == 0 || off >= r.end() || end <= r.off {
		return r, run{}, run{}
	}
	page := int64(r.page)
	from := (max(off-r.off, 0) + page - 1) / page
	to := (min(end, r.end()) - r.off) / page
	if from >= to {
		return r, run{}, run{}
	}
	return r.slice(0, from), r.slice(from, to), r.slice(to, int64(r.pages))
}

// slice returns pages [from, to) of r.
func (r run) slice(from, to int64) run {
	if from == to {
		return run{}
	}
	skip := from * int64(r.page)
	return run{off: r.off + skip, addr: r.addr + uint64(skip), pages: uint32(to - from), page: r.page}
}

// Clear empties the map and hands every extent to fn.
func (m *Map) Clear(fn func(Extent)) {
	old := *m
	*m = Map{}
	for e := range old.All() {
		fn(e)
	}
}

// Check verifies the invariants: order, no overlap, nothing unjoined, counts.
func (m *Map) Check() error {
	t := m.tree
	one := m.one()
	if t == nil {
		if one == (run{}) {
			return nil
		}
		return one.check()
	}
	if one != (run{}) {
		return fmt.Errorf("extent: one beside a tree: %+v", one)
	}
	if len(t.first) != len(t.leaves) {
		return fmt.Errorf("extent: %d leaves, %d first offsets", len(t.leaves), len(t.first))
	}
	var prev run
	runs, bytes := 0, int64(0)
	for li, leaf := range t.leaves {
		if len(leaf) == 0 || len(leaf) > maxLeaf {
			return fmt.Errorf("extent: leaf %d has %d runs", li, len(leaf))
		}
		if t.first[li] != leaf[0].off {
			return fmt.Errorf("extent: leaf %d begins at %d, not at %d", li, leaf[0].off, t.first[li])
		}
		for _, r := range leaf {
			if err := r.check(); err != nil {
				return err
			}
			if runs > 0 && (prev.end() > r.off || prev.continuedBy(r)) {
				return fmt.Errorf("extent: %+v before %+v", prev.extent(), r.extent())
			}
			prev = r
			runs++
			bytes += r.len()
		}
	}
	if runs == 0 || runs == 1 && t.first[0] == 0 || runs != t.runs || bytes != t.bytes {
		return fmt.Errorf("extent: %d runs of %d bytes, counted as %d of %d", runs, bytes, t.runs, t.bytes)
	}
	return nil
}

func (r run) check() error {
	if r.off < 0 || r.page == 0 || r.pages == 0 || r.len() > math.MaxInt64-r.off {
		return fmt.Errorf("extent: invalid run %+v", r)
	}
	return nil
}
