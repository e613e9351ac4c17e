package interval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// classes are those of the owners that have one.
var classes = map[string]Class{"p": Fcntl, "q": Fcntl, "f": Flock, "g": Flock}

// format writes a lock as owner, mode (r or w; R or W if Exact) and range.
func format(l Lock[string]) string {
	mode := [2][2]string{{"r", "w"}, {"R", "W"}}[l.Kind][map[bool]int{true: 1}[l.Exclusive]]
	end := fmt.Sprint(l.End)
	if l.End == EOF {
		end = "eof"
	}
	return fmt.Sprintf("%s%s%d-%s", l.Owner, mode, l.Start, end)
}

func parse(s string) (l Lock[string]) {
	var end string
	l.Owner, l.Class = s[:1], classes[s[:1]]
	l.Kind = map[bool]Kind{true: Exact}[strings.ToUpper(s[1:2]) == s[1:2]]
	l.Exclusive = strings.ToLower(s[1:2]) == "w"
	fmt.Sscanf(s[2:], "%d-%s", &l.Start, &end)
	if l.End = EOF; end != "eof" {
		fmt.Sscan(end, &l.End)
	}
	return l
}

// Each case is a script. "+" locks, "-" unlocks; what follows "!" is the lock
// that is in the way. The last line is what is held in the end.
func TestScripts(t *testing.T) {
	for _, tt := range []struct {
		name, script, held string
	}{
		{"shared with shared", "+ar0-10 +br5-15", "ar0-10 br5-15"},
		{"exclusive with shared", "+ar0-10 +bw5-15!ar0-10", "ar0-10"},
		{"shared with exclusive", "+aw0-10 +br9-15!aw0-10", "aw0-10"},
		{"ranges that touch", "+aw0-10 +bw10-15", "aw0-10 bw10-15"},
		{"to the end of the file", "+aw5-eof +bw0-5 +bw1000-1001!aw5-eof", "bw0-5 aw5-eof"},
		{"the last byte", "+aW18446744073709551614-eof +bW18446744073709551615-eof!aW18446744073709551614-eof", "aW18446744073709551614-eof"},
		{"only the last byte", "+aW18446744073709551615-eof +bW0-eof!aW18446744073709551615-eof", "aW18446744073709551615-eof"},

		{"posix: same again", "+aw0-10 +aw0-10", "aw0-10"},
		{"posix: join overlapping", "+aw0-10 +aw5-15", "aw0-15"},
		{"posix: join touching", "+aw0-10 +aw20-30 +aw10-20", "aw0-30"},
		{"posix: join to the end", "+aw10-eof +aw0-10", "aw0-eof"},
		{"posix: upgrade all", "+ar0-10 +aw0-10", "aw0-10"},
		{"posix: upgrade the middle", "+ar0-10 +aw3-6", "ar0-3 aw3-6 ar6-10"},
		{"posix: downgrade the end", "+aw0-10 +ar5-20", "aw0-5 ar5-20"},
		{"posix: downgrade lets others in", "+aw0-10 +ar5-10 +br5-10 +br4-5!aw0-5", "aw0-5 ar5-10 br5-10"},
		{"posix: upgrade over several", "+ar0-5 +ar10-15 +aw20-25 +aw3-22", "ar0-3 aw3-25"},
		{"posix: upgrade against others", "+ar0-10 +br0-10 +aw5-6!br0-10", "ar0-10 br0-10"},
		{"posix: unlock the middle", "+aw0-10 -aw3-6", "aw0-3 aw6-10"},
		{"posix: unlock several", "+aw0-5 +aw10-15 +ar20-25 -aw3-22", "aw0-3 ar22-25"},
		{"posix: unlock to the end", "+aw0-eof -aw5-eof", "aw0-5"},
		{"posix: unlock what another holds", "+aw0-10 -bw0-10?", "aw0-10"},
		{"posix: other owners stay apart", "+ar0-10 +br5-15 +aw20-30 -ar0-30", "br5-15"},

		{"exact: shared stacks", "+aR0-10 +aR0-10 -aR0-10", "aR0-10"},
		{"exact: exclusive does not stack", "+aW0-10 +aW0-10!aW0-10", "aW0-10"},
		{"exact: exclusive over own shared", "+aR0-10 +aW5-6!aR0-10", "aR0-10"},
		{"exact: shared over own exclusive", "+aW0-10 +aR5-6", "aW0-10 aR5-6"},
		{"exact: not joined", "+aW0-10 +aW10-20", "aW0-10 aW10-20"},
		{"exact: unlock another range", "+aW0-10 -aW0-5? -aW0-11?", "aW0-10"},
		{"exact: unlock the exclusive one first", "+aW0-10 +aR0-10 -aR0-10", "aR0-10"},
		{"exact: unlock what another holds", "+aW0-10 -bW0-10?", "aW0-10"},
		{"exact: empty inside", "+aW0-10 +bW5-5!aW0-10", "aW0-10"},
		{"exact: empty at the edges", "+aW5-10 +bW5-5 +bW10-10", "aW5-10 bW5-5 bW10-10"},
		{"exact: empty at 0", "+aW0-0 +bW0-10 +cW0-0", "aW0-0 bW0-10 cW0-0"},
		{"exact: around empty", "+aW5-5 +bR0-10!aW5-5", "aW5-5"},
		{"exact: empty twice", "+aW5-5 +bW5-5 -aW5-5", "bW5-5"},

		{"kinds exclude each other", "+aw0-10 +bW5-6!aw0-10 +bR20-30 +aw25-26!bR20-30 +ar20-30", "aw0-10 bR20-30 ar20-30"},
		{"kinds exclude each other, one owner", "+aw0-10 +aW5-6!aw0-10 +aW20-30 +ar20-30!aW20-30", "aw0-10 aW20-30"},

		{"classes: flock beside fcntl", "+pw0-10 +fw0-eof +qw5-6!pw0-10 +gr0-eof!fw0-eof +pw20-30", "pw0-10 fw0-eof pw20-30"},
		{"classes: another against both", "+pw0-10 +ar0-5!pw0-10 -pw0-10 +fw0-eof +ar0-5!fw0-eof", "fw0-eof"},
		{"classes: both against another", "+aw0-10 +pr5-6!aw0-10 +fr0-eof!aw0-10", "aw0-10"},
		{"classes: both against exact", "+aW0-10 +pr5-6!aW0-10 +fr0-eof!aW0-10", "aW0-10"},

		{"unlock of one kind leaves the other", "+ar0-10 +aR0-10 -ar0-20 +ar0-10 -aR0-10", "ar0-10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Set[string]
			for _, step := range strings.Fields(tt.script) {
				text, want, _ := strings.Cut(step[1:], "!")
				text, missing := strings.CutSuffix(text, "?")
				l := parse(text)
				if step[0] == '-' {
					if s.Remove(l.Owner, l.Start, l.End, l.Kind) == missing {
						t.Errorf("%s: found %v", step, missing)
					}
					continue
				}
				k, hit := s.Conflict(l)
				if !hit {
					s.Add(l)
				}
				if hit != (want != "") || hit && format(k) != want {
					t.Errorf("%s: conflict %v with %s", step, hit, format(k))
				}
			}
			var held []string
			for l := range s.All() {
				held = append(held, format(l))
			}
			if got := strings.Join(held, " "); got != tt.held || s.Len() != len(held) {
				t.Errorf("held %s, want %s", got, tt.held)
			}
		})
	}
}

func TestConflictIO(t *testing.T) {
	for _, tt := range []struct {
		lock        string
		owner       string
		off, n      uint64
		read, write bool // is stopped
	}{
		{"aW10-20", "a", 10, 10, false, false},
		{"aW10-20", "b", 0, 10, false, false},
		{"aW10-20", "b", 0, 11, true, true},
		{"aW10-20", "b", 19, 5, true, true},
		{"aW10-20", "b", 20, 5, false, false},
		{"aW10-20", "b", 15, 0, false, false},
		{"aW10-eof", "b", 1 << 63, 1, true, true},
		{"aW10-20", "b", 5, 1<<64 - 1, true, true},
		{"aR10-20", "a", 10, 10, false, true},
		{"aR10-20", "b", 10, 10, false, true},
		{"aW15-15", "b", 10, 10, true, true},
		{"aW15-15", "b", 15, 10, false, false},
		{"aw10-20", "b", 10, 10, false, false},
	} {
		var s Set[string]
		s.Add(parse(tt.lock))
		_, read := s.ConflictIO(tt.owner, tt.off, tt.n, false)
		_, write := s.ConflictIO(tt.owner, tt.off, tt.n, true)
		if read != tt.read || write != tt.write {
			t.Errorf("%s against %s at %d, %d: read %v, write %v", tt.lock, tt.owner, tt.off, tt.n, read, write)
		}
	}
}

func TestRemoveOwner(t *testing.T) {
	var s Set[string]
	for _, l := range []string{"ar0-10", "aR0-10", "bR5-6", "ar20-30"} {
		s.Add(parse(l))
	}
	if n := s.RemoveOwner("a"); n != 3 || s.Len() != 1 {
		t.Errorf("removed %d, left %d", n, s.Len())
	}
	if _, hit := s.ConflictIO("a", 5, 1, true); !hit {
		t.Error("the lock of the other owner went too")
	}
	s.RemoveOwner("b")
	if _, hit := s.ConflictIO("a", 5, 1, true); hit || s.Len() != 0 {
		t.Error("not empty")
	}
}

func TestInvalidRangePanics(t *testing.T) {
	for _, l := range []string{"aw10-5", "aw5-5", "aW10-5"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", l)
				}
			}()
			var s Set[string]
			s.Add(parse(l))
		}()
	}
}

// FuzzSet compares a set with one where a posix lock is a mode per byte, and
// an exact one an entry of a list.
func FuzzSet(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		seed := make([]byte, 900)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	const size = 24 // bytes; the last stands for all from there on
	f.Fuzz(func(t *testing.T, ops []byte) {
		var s Set[byte]
		var posix [3][size]byte // 0, 1 shared or 2 exclusive
		var stack []Lock[byte]
		in := func(l *Lock[byte], i int) bool { return l.Start <= uint64(i) && (uint64(i) < l.End) }
		overlap := func(a, b *Lock[byte]) bool {
			if a.Start == a.End {
				a, b = b, a
			}
			if b.Start == b.End {
				return a.Start < b.Start && b.Start < a.End
			}
			for i := range size {
				if in(a, i) && in(b, i) {
					return true
				}
			}
			return false
		}
		for ; len(ops) >= 3; ops = ops[3:] {
			l := Lock[byte]{
				Owner: ops[0] & 3 % 3, Kind: Kind(ops[0] >> 2 & 1), Exclusive: ops[0]>>3&1 != 0,
				Start: uint64(ops[1] % size), End: uint64(ops[2] % (size + 1)),
			}
			if l.Kind == Posix {
				l.Class = Class(l.Owner)
			}
			if l.Start > l.End {
				l.Start, l.End = l.End, l.Start
			}
			if l.End == size {
				l.End = EOF
			}
			if l.Kind == Posix && l.Start == l.End {
				l.End++
			}
			switch ops[0] >> 4 % 4 {
			case 0:
				found := s.Remove(l.Owner, l.Start, l.End, l.Kind)
				want := false
				if l.Kind == Posix {
					for i := range size {
						if in(&l, i) {
							want = want || posix[l.Owner][i] != 0
							posix[l.Owner][i] = 0
						}
					}
				} else {
					at := -1
					for i, k := range stack {
						if k.Owner == l.Owner && k.Start == l.Start && k.End == l.End && (at < 0 || k.Exclusive) {
							at = i
						}
					}
					if want = at >= 0; want {
						stack = slices.Delete(stack, at, at+1)
					}
				}
				if found != want {
					t.Fatalf("Remove %+v: %v", l, found)
				}
			case 1, 2:
				want := false
				for o := range posix {
					for i := range size {
						held := Lock[byte]{Start: uint64(i), End: uint64(i + 1)}
						// An empty range is inside if both its neighbours are one lock's.
						if l.Start == l.End {
							if i == 0 || uint64(i) != l.Start || posix[o][i-1] != posix[o][i] {
								continue
							}
						} else if !overlap(&l, &held) {
							continue
						}
						mine := l.Kind == Posix && byte(o) == l.Owner
						apart := l.Kind == Posix && l.Owner+byte(o) == 3 // Fcntl and Flock
						want = want || !mine && !apart && (posix[o][i] == 2 || posix[o][i] == 1 && l.Exclusive)
					}
				}
				for _, k := range stack {
					own := l.Kind == Exact && k.Owner == l.Owner && !l.Exclusive
					want = want || overlap(&l, &k) && (k.Exclusive || l.Exclusive) && !own
				}
				k, hit := s.Conflict(l)
				if hit != want {
					t.Fatalf("Conflict %+v: %v with %+v", l, hit, k)
				}
				if hit {
					continue
				}
				s.Add(l)
				if l.Kind == Exact {
					stack = append(stack, l)
					continue
				}
				for i := range size {
					if in(&l, i) {
						posix[l.Owner][i] = map[bool]byte{false: 1, true: 2}[l.Exclusive]
					}
				}
			case 3:
				if ops[2]&1 != 0 {
					s.RemoveOwner(l.Owner)
					posix[l.Owner] = [size]byte{}
					stack = slices.DeleteFunc(stack, func(k Lock[byte]) bool { return k.Owner == l.Owner })
					continue
				}
				write := ops[2]&2 != 0
				io := Lock[byte]{Start: l.Start, End: min(l.End, size)}
				want := false
				for _, k := range stack {
					stops := k.Exclusive && k.Owner != l.Owner || !k.Exclusive && write
					want = want || io.Start < io.End && overlap(&io, &k) && stops
				}
				if k, hit := s.ConflictIO(l.Owner, io.Start, io.End-io.Start, write); hit != want {
					t.Fatalf("ConflictIO %+v, write %v: %v with %+v", io, write, hit, k)
				}
			}
		}
		compare(t, &s, posix[:], stack)
	})
}

func compare(t *testing.T, s *Set[byte], posix [][24]byte, stack []Lock[byte]) {
	var got [3][24]byte
	last := map[byte]Lock[byte]{}
	start, exacts := uint64(0), 0
	for l := range s.All() {
		if l.Start < start {
			t.Fatalf("%+v is out of order", l)
		}
		start = l.Start
		if l.Kind == Exact {
			exacts++
			if !slices.Contains(stack, l) {
				t.Fatalf("%+v is not in the model", l)
			}
			continue
		}
		if k, ok := last[l.Owner]; ok && (k.End > l.Start || k.End == l.Start && k.Exclusive == l.Exclusive) {
			t.Fatalf("%+v before %+v", k, l)
		}
		last[l.Owner] = l
		for i := l.Start; i < min(l.End, 24); i++ {
			got[l.Owner][i] = map[bool]byte{false: 1, true: 2}[l.Exclusive]
		}
	}
	if !slices.Equal(got[:], posix) || exacts != len(stack) || s.exact != exacts {
		t.Fatalf("posix locks %v, want %v; %d exact, counted %d, want %d", got, posix, exacts, s.exact, len(stack))
	}
}

func BenchmarkConflictIO(b *testing.B) {
	for _, n := range []int{0, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var s Set[int]
			for i := range n {
				s.Add(Lock[int]{Owner: i, Start: uint64(i) * 10, End: uint64(i)*10 + 5, Exclusive: true, Kind: Exact})
			}
			for b.Loop() {
				s.ConflictIO(-1, uint64(n)*10, 10, true)
			}
		})
	}
}
