package nfs

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

const (
	// smallSize is what an idle connection reads into. Most calls without
	// data fit.
	smallSize = 512
	// inSize holds some thirty calls with 4 KiB of data.
	inSize = 160 << 10
	// flushSize is how much of a batch is sent without looking for more calls.
	flushSize = 128 << 10
	// copyMax is up to how much READ copies into the batch; more is sent from
	// the store's pages.
	copyMax = 64 << 10
	// dirMax bounds the results of READDIR and READDIRPLUS. With it, outSize
	// has room for a batch and one reply of any kind but MOUNT's lists.
	dirMax  = 64 << 10
	outSize = flushSize + max(copyMax, dirMax) + 4<<10
	// freshMin is the size from which a WRITE's payload is received into the
	// store's pages, and what they are multiples of.
	freshMin = 64 << 10
	// maxHead is more than what stands before the data of a WRITE, and maxTail
	// the most that may follow it: what else a COMPOUND asks for.
	maxHead = 4 << 10
	maxTail = 1 << 10
	// overhead is the most that surrounds the data of a WRITE in its record:
	// header, credential, verifier and handle at their limits, and the marks
	// of fragments of 2 KiB, of which some clients make every record.
	overhead = 16 << 10
	// firstRecord bounds records until a connection has sent a call that
	// could be understood.
	firstRecord = 64 << 10
	// readDirBatch is how many names are taken from the store at once.
	readDirBatch = 64
)

// work is what a connection needs while it has something to do. An idle one
// gives it back.
type work struct {
	in      []byte         // inSize
	out     []byte         // outSize
	w       xdr.Writer     // the batch of replies; begins in out
	call    call           // the request that is being answered
	view    memstore.View  // pages that follow the batch on the wire
	fresh   memstore.Fresh // pages that a WRITE is received into
	iov     [][]byte       // the batch and the pages
	bufs    net.Buffers    // what of iov is not yet sent
	entries [readDirBatch]memstore.DirEntry
}

// workSize is what a work counts for in the budget.
const workSize = inSize + outSize + 8<<10

var workPool = sync.Pool{New: func() any {
	return &work{in: make([]byte, inSize), out: make([]byte, outSize)}
}}

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
