// Package interval keeps the byte-range locks of a file, of two kinds that
// exclude each other.
//
// Posix locks are those of fcntl, NLM and NFSv4: an owner holds each byte at
// most once, a new lock replaces what the owner held of its range, and an
// unlock may cut a hole (RFC 8881 section 18.10). They are advisory.
//
// Exact locks are those of SMB: an owner may lock a range several times, and
// an unlock names a range exactly as it was locked (MS-FSA 2.1.5.8, 2.1.5.9).
// They are mandatory: ConflictIO tells what reads and writes they stop.
//
// Owners may be of classes that do not see each other: one machine's fcntl and
// flock locks are both Posix, do not stop each other, and conflict with
// everybody else's.
//
// A Set has no lock. Every method takes time in proportion to the number of
// locks in the set, which its user has to bound.
package interval

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// EOF as the end of a range is behind the largest offset: the range has all
// bytes from its start on, 2^64-1 included.
const EOF = math.MaxUint64

// Kind tells the two kinds of locks apart.
type Kind uint8

const (
	Posix Kind = iota // advisory, merged per owner
	Exact             // mandatory, stacked
)

// Class is what kind of lock an owner's are to the other owners.
type Class uint8

const (
	Any   Class = iota // conflicts with every class
	Fcntl              // does not conflict with Flock
	Flock              // does not conflict with Fcntl
)

func (c Class) apart(d Class) bool { return c != d && c != Any && d != Any }

// Lock is a lock on the bytes [Start, End).
//
// An Exact range may be empty (Start == End). It lies between two bytes, and
// overlaps with ranges that have both of them (MS-FSA 2.1.4.10). The range
// from EOF to EOF is not empty: it is the last byte.
type Lock[O comparable] struct {
	Owner      O
	Start, End uint64
	Exclusive  bool
	Kind       Kind
	Class      Class  // the same in all locks of an owner
	PID        uint32 // is kept, and means nothing here
}

func (l *Lock[O]) overlaps(start, end uint64) bool {
	return before(l.Start, end) && before(start, l.End)
}

// before tells whether the byte at off is before the end of a range.
func before(off, end uint64) bool { return off < end || end == EOF }

// Set is the locks of one file. The zero value is empty.
type Set[O comparable] struct {
	locks []Lock[O] // by Start; those with the same in the order they were added
	exact int       // how many of them are Exact
}

// Conflict returns the first lock that forbids to add l.
//
// Locks of different owners or kinds conflict if they overlap, one is
// exclusive, and their classes see each other. A Posix lock never conflicts with one of its own owner. An Exact
// one does if it is exclusive itself; a shared one may be added to any of its
// owner's.
func (s *Set[O]) Conflict(l Lock[O]) (Lock[O], bool) {
	l.check()
	for i := range s.locks {
		k := &s.locks[i]
		if !before(k.Start, l.End) {
			break
		}
		if k.Forbids(&l) {
			return *k, true
		}
	}
	return Lock[O]{}, false
}

// Forbids tells whether l cannot be added to a set that has k.
func (k *Lock[O]) Forbids(l *Lock[O]) bool {
	if !l.Exclusive && !k.Exclusive || !k.overlaps(l.Start, l.End) || k.Class.apart(l.Class) {
		return false
	}
	return k.Owner != l.Owner || k.Kind != l.Kind || l.Kind == Exact && l.Exclusive
}

// ConflictIO returns the first Exact lock that forbids owner to read, or to
// write, n bytes at off. An exclusive lock forbids both to all but its owner;
// a shared one forbids writing to all, its owner included (MS-FSA 2.1.4.10).
func (s *Set[O]) ConflictIO(owner O, off, n uint64, write bool) (Lock[O], bool) {
	if s.exact == 0 || n == 0 {
		return Lock[O]{}, false
	}
	end := off + n
	if end < off {
		end = EOF
	}
	for i := range s.locks {
		k := &s.locks[i]
		if !before(k.Start, end) {
			break
		}
		if k.Kind != Exact || !k.overlaps(off, end) {
			continue
		}
		if k.Exclusive && k.Owner != owner || !k.Exclusive && write {
			return *k, true
		}
	}
	return Lock[O]{}, false
}

// Add adds l, with which nothing may conflict. A Posix lock replaces what its
// owner holds of the range, and joins what it touches and is alike.
func (s *Set[O]) Add(l Lock[O]) {
	l.check()
	if l.Kind == Exact {
		s.exact++
		s.insert(l)
		return
	}
	start, end := l.Start, l.End
	for i := range s.locks {
		k := &s.locks[i]
		alike := k.Kind == Posix && k.Owner == l.Owner && k.Exclusive == l.Exclusive
		if alike && (k.overlaps(start, end) || k.End == start || k.Start == end) {
			l.Start, l.End = min(l.Start, k.Start), max(l.End, k.End)
		}
	}
	s.subtract(l.Owner, l.Start, l.End)
	s.insert(l)
}

func (s *Set[O]) insert(l Lock[O]) {
	i, _ := slices.BinarySearchFunc(s.locks, l.Start, func(k Lock[O], start uint64) int {
		if k.Start <= start {
			return -1
		}
		return 1
	})
	s.locks = slices.Insert(s.locks, i, l)
}

// Remove unlocks [start, end) of owner: all that its Posix locks hold of the
// range, or one Exact lock with exactly this range, an exclusive one first. It
// returns false if there was nothing to unlock.
func (s *Set[O]) Remove(owner O, start, end uint64, kind Kind) bool {
	(&Lock[O]{Start: start, End: end, Kind: kind}).check()
	if kind == Posix {
		return s.subtract(owner, start, end)
	}
	found := -1
	for i := range s.locks {
		k := &s.locks[i]
		if k.Kind == Exact && k.Owner == owner && k.Start == start && k.End == end {
			if found = i; k.Exclusive {
				break
			}
		}
	}
	if found < 0 {
		return false
	}
	s.locks = slices.Delete(s.locks, found, found+1)
	s.exact--
	return true
}

// subtract cuts [start, end) out of the Posix locks of owner.
func (s *Set[O]) subtract(owner O, start, end uint64) (found bool) {
	var right []Lock[O] // at most one, since an owner's locks do not overlap
	kept := s.locks[:0]
	for _, k := range s.locks {
		if k.Kind != Posix || k.Owner != owner || !k.overlaps(start, end) {
			kept = append(kept, k)
			continue
		}
		found = true
		if end != EOF && end < k.End {
			r := k
			r.Start = end
			right = append(right, r)
		}
		if k.Start < start {
			k.End = start
			kept = append(kept, k)
		}
	}
	clear(s.locks[len(kept):])
	s.locks = kept
	for _, r := range right {
		s.insert(r)
	}
	return found
}

// RemoveOwner removes all locks of owner and returns how many there were.
func (s *Set[O]) RemoveOwner(owner O) int {
	n := len(s.locks)
	s.locks = slices.DeleteFunc(s.locks, func(k Lock[O]) bool {
		if k.Owner == owner && k.Kind == Exact {
			s.exact--
		}
		return k.Owner == owner
	})
	return n - len(s.locks)
}

// Has tells whether owner has any lock.
func (s *Set[O]) Has(owner O) bool {
	return slices.ContainsFunc(s.locks, func(k Lock[O]) bool { return k.Owner == owner })
}

// Len returns the number of locks.
func (s *Set[O]) Len() int { return len(s.locks) }

// All iterates over the locks in the order of their starts. The set must not
// change meanwhile.
func (s *Set[O]) All() iter.Seq[Lock[O]] { return slices.Values(s.locks) }

// check panics if the range is not one that its kind can have.
func (l *Lock[O]) check() {
	if l.Start > l.End || l.Start == l.End && l.End != EOF && l.Kind == Posix {
		panic(fmt.Sprintf("interval: invalid range [%d, %d)", l.Start, l.End))
	}
}
