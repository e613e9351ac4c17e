package smb

import (
	"slices"
	"sync"
	"sync/atomic"
)

// budget is an amount of memory that connections share.
type budget struct {
	kick func() // called when somebody starts to wait

	mu      sync.Mutex
	free    int64        // (mu) bytes
	queue   []*waiter    // (mu) who waits: the urgent first, then in order
	urgent  int          // (mu) how many of queue are
	waiting atomic.Int32 // length of queue
}

type waiter struct {
	n     int64
	ready chan struct{}
}

// tryTake takes n bytes if they are free and nobody waits.
func (b *budget) tryTake(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 || b.free < n {
		return false
	}
	b.free -= n
	return true
}

// take takes n bytes and waits for its turn if it has to. It reports false if
// quit was closed first. Those come first who are urgent: who will not wait
// for their client before they give back what they took.
func (b *budget) take(n int64, urgent bool, quit <-chan struct{}) bool {
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
		b.give(n) // it came at the same moment
	}
	return false
}

// dequeue is called with b.mu held.
func (b *budget) dequeue(i int) {
	b.queue = slices.Delete(b.queue, i, i+1)
	if i < b.urgent {
		b.urgent--
	}
	b.waiting.Add(-1)
}

// give returns n bytes.
func (b *budget) give(n int64) {
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
