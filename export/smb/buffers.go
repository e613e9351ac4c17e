package smb

import (
	"net"
	"sync"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

const (
	// MaxIO is the largest READ, WRITE and other transfer, in bytes.
	MaxIO = 8 << 20
	// smallIO is the same for dialect 2.0.2, and for what a credit pays.
	smallIO = 64 << 10

	// smallSize is what an idle connection reads into. Most requests without
	// data fit.
	smallSize = 512
	// inSize holds some thirty requests with 4 KiB of data.
	inSize = 160 << 10
	// flushSize is how much of a batch is sent without looking for more requests.
	flushSize = 128 << 10
	// outSize has room for a batch and one more reply that needs no large buffer.
	outSize = flushSize + smallIO + 8<<10
	// smallReply is more than any reply takes that asks for no room of its own.
	smallReply = 512
	// overhead is the most that surrounds the data of the largest transfer in its
	// frame, the rest of a compound included.
	overhead = 64 << 10
	// maxFrame bounds frames; firstFrame does until somebody has logged on.
	maxFrame   = MaxIO + overhead
	firstFrame = 64 << 10
	// frameSize is the size of what precedes a frame: its length.
	frameSize = 4
	// slack is room behind a buffer, for the tag of what is decrypted in it.
	slack = tagSize
)

// work is what a connection needs while it has something to do. An idle one
// gives it back.
type work struct {
	in    []byte         // inSize, and slack
	out   []byte         // outSize
	w     wire.Writer    // the batch of replies; begins in out, or in a large buffer
	large []byte         // the latter, or nil
	req   request        // the command that is executed
	view  memstore.View  // pages that follow the batch on the wire
	fresh memstore.Fresh // pages that a WRITE is received into
	iov   [][]byte       // the batch and the pages
	bufs  net.Buffers    // what of iov is not yet sent
}

// workSize is what a work counts for in the budget.
const workSize = inSize + outSize + 8<<10

var workPool = sync.Pool{New: func() any {
	return &work{in: make([]byte, inSize, inSize+slack), out: make([]byte, outSize)}
}}

// largeSizes are the sizes of large buffers, for frames and for replies.
var largeSizes = [...]int{1<<20 + overhead, maxFrame + frameSize}

var largePools [len(largeSizes)]sync.Pool // *[]byte, with slack

// takeLarge takes a buffer of at least n bytes, at most maxFrame, and waits for
// it if it has to. urgent as in budget.take. It returns nil if the server ends.
func (s *Server) takeLarge(n int, urgent bool) []byte {
	class := 0
	for largeSizes[class] < n {
		class++
	}
	size := largeSizes[class]
	if !s.large.Take(int64(size), urgent, s.done) {
		return nil
	}
	if b, ok := largePools[class].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, size, size+slack)
}

// giveLarge returns a large buffer.
func (s *Server) giveLarge(b []byte) {
	b = b[:cap(b)-slack]
	for class, size := range largeSizes {
		if size == len(b) {
			largePools[class].Put(&b)
		}
	}
	s.large.Give(int64(len(b)))
}
