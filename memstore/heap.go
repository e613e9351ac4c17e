package memstore

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// heapKept is how much of the heap is kept for the next inodes though
	// nothing needs it, since the first touch of memory is slow.
	heapKept = 28 << 20

	// Removing this much metadata makes it worth looking at the heap.
	heapWorthALook = 4 << 20

	ballastSize = 24 << 20
)

// ballast counts as live heap and is never touched, so that the heap of a
// store with few files is not collected, and its memory given back and got
// again, after every few thousand creates.
var ballast atomic.Pointer[[ballastSize]byte]

// KeepHeap sets the garbage collector for a process that does little but serve
// stores: the heap is their metadata, which should not be had twice, and
// requests make no other garbage. GOGC overrides it.
func KeepHeap() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(50)
	ballast.Store(new([ballastSize]byte))
}

// dropped notes that n bytes of inodes or names became garbage. The Go runtime
// would keep that memory for minutes; once the removals pause it is given
// back, unless it is little.
func (r *reaper) dropped(n int64) {
	if r.heap.Add(n) < heapWorthALook || !r.back.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for last := int64(-1); last != r.heap.Load(); {
			last = r.heap.Load()
			time.Sleep(time.Second)
		}
		r.heap.Store(0)
		r.back.Store(false)
		if heapHeld()-r.s.metadata() > heapKept {
			debug.FreeOSMemory()
		}
	}()
}

// heapHeld is how much of the process's memory the heap has, the ballast aside.
func heapHeld() int64 {
	held := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, // and garbage
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(held)
	sum := int64(0)
	for _, s := range held {
		sum += int64(s.Value.Uint64())
	}
	if ballast.Load() != nil {
		sum -= ballastSize
	}
	return sum
}

// metadata is about how much of the heap the store needs.
func (s *Store) metadata() int64 {
	return s.inodes.Load()*(inodeCost+dentryCost) + s.table.bytes()
}
