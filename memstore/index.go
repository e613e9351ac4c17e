package memstore

import "hash/maphash"

// index finds the names of a large directory: a hash table with linear
// probing of positions in the directory. It has eight bytes a slot and nothing
// that the collector has to follow, and it grows without a look at the names.
type index struct {
	slots []slot // a power of two
	n     int
}

// slot is a name's hash and position. The position is one more, so that 0 is
// an empty slot.
type slot struct{ hash, pos uint32 }

var hashSeed = maphash.MakeSeed()

func hashName(name string) uint32 { return uint32(maphash.String(hashSeed, name)) }

// newIndex makes an index with room for n names.
func newIndex(n int) index {
	size := 16
	for size*3 < n*4 {
		size *= 2
	}
	return index{slots: make([]slot, size)}
}

// find returns the position of a name in d, or -1.
func (x *index) find(d *directory, name string) int {
	hash := hashName(name)
	mask := uint32(len(x.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := x.slots[at]
		if s.pos == 0 {
			return -1
		}
		if s.hash == hash && d.name(int(s.pos-1)) == name {
			return int(s.pos - 1)
		}
	}
}

// add adds a name, which must not be there.
func (x *index) add(name string, pos int) {
	if (x.n+1)*4 > len(x.slots)*3 {
		old := x.slots
		x.slots = make([]slot, 2*len(old))
		for _, s := range old {
			if s.pos != 0 {
				x.put(s)
			}
		}
	}
	x.put(slot{hashName(name), uint32(pos + 1)})
	x.n++
}

func (x *index) put(s slot) {
	mask := uint32(len(x.slots) - 1)
	at := s.hash & mask
	for x.slots[at].pos != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = s
}

// remove empties the slot of a name, which must be there, and moves those behind
// it up, so that nobody's search ends at the gap.
func (x *index) remove(name string, pos int) {
	mask := uint32(len(x.slots) - 1)
	gap := hashName(name) & mask
	for x.slots[gap].pos != uint32(pos+1) {
		gap = (gap + 1) & mask
	}
	for next := (gap + 1) & mask; x.slots[next].pos != 0; next = (next + 1) & mask {
		// What may stand in the gap is no nearer to where its search begins.
		if home := x.slots[next].hash & mask; (next-home)&mask >= (next-gap)&mask {
			x.slots[gap] = x.slots[next]
			gap = next
		}
	}
	x.slots[gap] = slot{}
	x.n--
}
