package smb

import (
	"math"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// read is READ, MS-SMB2 section 3.3.5.12.
func (r *request) read() wire.Status {
	var q wire.ReadRequest
	switch {
	case !q.Decode(r.msg), int64(q.Length) > int64(r.c.maxIO()), !r.paid(int(q.Length)), r.channel(q.Channel):
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case status != wire.StatusOK:
		return status
	case f.pipe != nil:
		return r.readPipe(f, &q)
	case f.access&(rightReadData|rightExecute) == 0:
		return wire.StatusAccessDenied
	case f.data().Type() != memstore.TypeFile:
		return wire.StatusInvalidDeviceRequest
	case q.Offset > math.MaxInt64-uint64(q.Length):
		return wire.StatusInvalidParameter
	}
	w, n := r.w, int(q.Length)
	pages := r.plain() && n > smallIO && r.c.s.large.TryTake(int64(n))
	if !pages && !r.grow(wire.ReadReplySize+n) {
		return wire.StatusInsufficientResources
	}
	at := len(w.B)
	wire.AppendReadReply(w, 0)
	from := len(w.B)
	if pages {
		got, _, _, err := f.data().ReadView(&r.who, f.open, int64(q.Offset), n, &r.c.work.view)
		if err != nil || got < n {
			r.c.s.large.Give(int64(n - max(got, 0)))
		}
		if err != nil {
			return r.status(err)
		}
		r.pages = got
		n = got
	} else {
		got, _, _, err := f.data().ReadAt(&r.who, f.open, w.B[from:from+n], int64(q.Offset))
		if err != nil {
			return r.status(err)
		}
		w.B = w.B[:from+got]
		n = got
	}
	if n == 0 && q.Length > 0 || n < int(q.Minimum) {
		r.dropPages()
		return wire.StatusEndOfFile
	}
	f.position = q.Offset + uint64(n)
	w.B[at+4], w.B[at+5], w.B[at+6], w.B[at+7] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return wire.StatusOK
}

// channel tells whether a request is for another way to transfer data, such as RDMA,
// which there is not.
func (r *request) channel(c uint32) bool { return c != 0 && r.c.dialect >= wire.Dialect300 }

// plain tells whether the reply may continue in pages of the store: it is the only
// one of its frame, and neither signed nor encrypted.
func (r *request) plain() bool {
	return r.own && r.count == 1 && r.rest == nil && !r.signed && r.sealed == nil
}

// write is WRITE, MS-SMB2 section 3.3.5.13.
func (r *request) write() wire.Status {
	var q wire.WriteRequest
	if r.fresh != nil {
		q.DecodeHead(r.msg)
	} else if !q.Decode(r.msg) || len(q.Data) > r.c.maxIO() || !r.paid(len(q.Data)) || r.channel(q.Channel) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case status != wire.StatusOK:
		return status
	case f.pipe != nil:
		if f.pipe.write(q.Data) != nil || !f.pipe.count(r.c) {
			return wire.StatusPipeDisconnected
		}
		wire.AppendWriteReply(r.w, len(q.Data))
		return wire.StatusOK
	case f.access&(rightWriteData|rightAppend) == 0:
		return wire.StatusAccessDenied
	case f.data().Type() != memstore.TypeFile:
		return wire.StatusInvalidDeviceRequest
	}
	var n int
	var ch memstore.Changed
	var err error
	switch {
	case q.Offset > math.MaxInt64, len(q.Data) > 0 && q.Offset > maxFileSize-uint64(len(q.Data)):
		return wire.StatusInvalidParameter
	case len(q.Data) == 0 && r.fresh == nil:
		wire.AppendWriteReply(r.w, 0) // nothing, wherever
		return wire.StatusOK
	case q.Offset >= maxFileSize/2 && !r.sparse(f):
		return wire.StatusDiskFull
	case f.access&rightWriteData == 0 && !r.behindEnd(f, int64(q.Offset)):
		return wire.StatusAccessDenied
	case r.fresh != nil:
		n, ch, err = f.data().WriteFresh(&r.who, f.open, r.fresh)
	default:
		n, ch, err = f.data().WriteAt(&r.who, f.open, q.Data, int64(q.Offset))
	}
	if err != nil && n == 0 {
		return r.status(err)
	}
	r.restore(f, &ch)
	wire.AppendWriteReply(r.w, n)
	return wire.StatusOK
}

// maxFileSize is the size of the largest file of NTFS.
const maxFileSize = 1<<44 - 1<<16

// freshMin is the size from which a WRITE's data is received into pages of the
// store, and what they are multiples of.
const freshMin = 64 << 10

// freshWrite tells whether the frame of size bytes that begins with head is a
// WRITE whose n bytes from at on can replace whole pages of i from off on. If not,
// n is 0. Nobody sees to it yet that this is so when they have arrived.
func (r *request) freshWrite(head []byte, size int) (i *memstore.Inode, off int64, at, n int) {
	var h wire.Header
	var q wire.WriteRequest
	const no = wire.FlagSigned | wire.FlagRelated | wire.FlagAsync
	if !h.Decode(head) || h.Command != wire.CommandWrite || h.Flags&no != 0 || h.Next != 0 {
		return nil, 0, 0, 0
	}
	at, n, ok := q.DecodeHead(head)
	s := r.c.session(h.SessionID)
	r.h.CreditCharge = h.CreditCharge
	if !ok || n < freshMin || n%freshMin != 0 || q.Offset%freshMin != 0 || q.Offset > maxFileSize-uint64(n) ||
		at > len(head) || at+n != size || n > r.c.maxIO() || !r.paid(n) || s == nil || s.signer == nil || s.mustSign || s.mustSeal {
		return nil, 0, 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[q.ID.Volatile]
	if f == nil || f.open == nil || f.t.mustSeal || f.access&rightWriteData == 0 || f.inode.Type() != memstore.TypeFile {
		return nil, 0, 0, 0
	}
	return f.data(), int64(q.Offset), at, n
}

// sparse tells whether a client has said that a file has holes. Without it Windows
// would want memory for all bytes before those that are written. Here no file does,
// but one so large is taken for a mistake.
func (r *request) sparse(f *file) bool {
	a, err := f.inode.GetAttr(&r.who)
	return err != nil || a.DOS&wire.AttrSparse != 0
}

// behindEnd tells whether an offset is not in the file's data: who may only append
// writes there.
func (r *request) behindEnd(f *file, off int64) bool {
	a, err := f.data().GetAttr(&r.who)
	return err == nil && off >= a.Size
}

// readPipe reads a part of an answer.
func (r *request) readPipe(f *file, q *wire.ReadRequest) wire.Status {
	b, more := f.pipe.read(int(q.Length))
	f.pipe.count(r.c)
	if len(b) == 0 {
		return wire.StatusPipeEmpty
	}
	if !r.grow(wire.ReadReplySize + len(b)) {
		return wire.StatusInsufficientResources
	}
	wire.AppendReadReply(r.w, len(b))
	r.w.Bytes(b)
	if more {
		return wire.StatusBufferOverflow
	}
	return wire.StatusOK
}
