package memstore

import (
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Freeing this much metadata makes it worth collecting the heap for; less is
// kept for the next inodes, since the first touch of memory is slow.
const heapWorthReturning = 32 << 20

// ballast counts as live heap and is never touched, so that the heap of a
// store with few files is not collected, and its memory given back and got
// again, after every few thousand creates.
var ballast atomic.Pointer[[heapWorthReturning]byte]

// KeepHeap sets the garbage collector for a process that does little but serve
// stores: the heap is their metadata, which should not be had twice, and
// requests make no other garbage. GOGC overrides it.
func KeepHeap() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(50)
	ballast.Store(new([heapWorthReturning]byte))
}

// dropped notes that n bytes of inodes or names became garbage. The Go runtime
// would keep that memory for minutes; once the removals pause it is given back.
func (r *reaper) dropped(n int64) {
	if r.heap.Add(n) < heapWorthReturning || !r.back.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for last := int64(-1); last != r.heap.Load(); {
			last = r.heap.Load()
			time.Sleep(time.Second)
		}
		r.heap.Store(0)
		r.back.Store(false)
		debug.FreeOSMemory()
	}()
}
