// Package budget shares out the memory of a server among its connections, and
// says how much the machine has to share.
package budget

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Budget is an amount of memory that connections share.
type Budget struct {
	kick func() // called when somebody starts to wait

	mu      sync.Mutex
	free    int64        // (mu) bytes
	queue   []*waiter    // (mu) who waits: the urgent first, then in order
	urgent  int          // (mu) how many of queue are
	waiting atomic.Int32 // length of queue
}

// New returns a budget of n bytes. kick is called when somebody starts to wait.
func New(n int64, kick func()) *Budget { return &Budget{free: n, kick: kick} }

// Waiting tells whether somebody waits.
func (b *Budget) Waiting() bool { return b.waiting.Load() > 0 }

// Free is how many bytes nobody has.
func (b *Budget) Free() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

type waiter struct {
	n     int64
	ready chan struct{}
}

// TryTake takes n bytes if they are free and nobody waits.
func (b *Budget) TryTake(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 || b.free < n {
		return false
	}
	b.free -= n
	return true
}

// Take takes n bytes and waits for its turn if it has to. It reports false if
// quit was closed first. Those come first who are urgent: who will not wait
// for their client before they give back what they took.
func (b *Budget) Take(n int64, urgent bool, quit <-chan struct{}) bool {
	b.mu.Lock()
	if len(b.queue) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return true
	}
	w := &waiter{n, make(chan struct{})}
	if urgent {
		b.queue = slices.Insert(b.queue, b.urgent, w)
		b.urgent++
	} else {
		b.queue = append(b.queue, w)
	}
	b.waiting.Add(1)
	b.mu.Unlock()
	b.kick()
	select {
	case <-w.ready:
		return true
	case <-quit:
	}
	b.mu.Lock()
	i := slices.Index(b.queue, w)
	if i >= 0 {
		b.dequeue(i)
	}
	b.mu.Unlock()
	if i < 0 {
		b.Give(n) // it came at the same moment
	}
	return false
}

// dequeue is called with b.mu held.
func (b *Budget) dequeue(i int) {
	b.queue = slices.Delete(b.queue, i, i+1)
	if i < b.urgent {
		b.urgent--
	}
	b.waiting.Add(-1)
}

// Give returns n bytes.
func (b *Budget) Give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	for len(b.queue) > 0 && b.free >= b.queue[0].n {
		w := b.queue[0]
		b.free -= w.n
		b.dequeue(0)
		close(w.ready)
	}
}
