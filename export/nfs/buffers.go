package nfs

import (
	"net"
	"sync"

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
