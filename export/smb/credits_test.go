package smb

import (
	"math/rand/v2"
	"testing"
)

func TestWindow(t *testing.T) {
	w := newWindow()
	for _, s := range []struct {
		grant int    // first
		want  uint16 // of the grant
		id    uint64
		n     int
		ok    bool
	}{
		{0, 0, 0, 1, true},             // NEGOTIATE
		{0, 1, 1, 1, true},             // one at least
		{0, 1, 2, 2, false},            // more than was granted
		{0, 0, 3, 1, false},            // not granted
		{0, 0, 2, 1, true},             //
		{0, 1, 2, 1, false},            // used
		{9, 9, 3, 4, true},             // at once
		{0, 0, 5, 1, false},            // in the middle of them
		{0, 0, 8, 1, true},             // out of order
		{0, 0, 7, 2, false},            // over a used one
		{0, 0, 7, 1, true},             // the gap
		{0, 0, ^uint64(0), 1, false},   //
		{0, 0, 9, 1 << 16, false},      //
		{maxCredits, 8188, 9, 1, true}, // 4 were left
		{2, 1, 10, maxCredits, true},   // all of the window
		{0, 1, 8202, 1, true},          //
		{8192, 8192, 8203, 1, true},
	} {
		if got := w.grant(s.grant); got != s.want && s.grant+int(s.want) > 0 {
			t.Fatalf("%+v: granted %d", s, got)
		}
		if got := w.take(s.id, s.n); got != s.ok {
			t.Fatalf("%+v: %v; window %d+%d", s, got, w.low, w.size)
		}
	}
}

// A window is a set of ids.
func TestWindowModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	w := newWindow()
	usable := map[uint64]bool{0: true}
	next := uint64(1)
	for range 200000 {
		if rnd.IntN(2) == 0 {
			for range w.grant(rnd.IntN(40)) {
				usable[next] = true
				next++
			}
			continue
		}
		id, n := w.low+uint64(rnd.IntN(int(next-w.low)+8)), 1+rnd.IntN(4)
		want := true
		for i := range uint64(n) {
			want = want && usable[id+i]
		}
		if got := w.take(id, n); got != want {
			t.Fatalf("take(%d, %d) is %v", id, n, got)
		}
		if want {
			for i := range uint64(n) {
				delete(usable, id+i)
			}
		}
		if w.free != len(usable) || w.low+uint64(w.size) != next {
			t.Fatalf("%d free, want %d", w.free, len(usable))
		}
	}
}
