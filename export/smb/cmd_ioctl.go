package smb

import (
	"encoding/binary"
	"math"
	"net"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// fsctl is one control of IOCTL.
type fsctl struct {
	// min is how long its input is at least.
	min int
	// bare says that it is about no file.
	bare bool
	// pipe says that it is about a pipe; the others are about files.
	pipe bool
	// run returns the output, of max bytes at most; f is nil for a bare one.
	run func(r *request, f *file, in []byte, max int) ([]byte, wire.Status)
}

// fsctls are the controls that there are, MS-SMB2 section 2.2.31 and MS-FSCC section
// 2.3.
var fsctls map[uint32]fsctl

func init() {
	fsctls = map[uint32]fsctl{
		wire.FsctlValidateNegotiate: {bare: true, run: func(r *request, _ *file, in []byte, max int) ([]byte, wire.Status) {
			return r.validateNegotiate(in, uint32(max))
		}},
		wire.FsctlDFSReferrals:      {bare: true, run: noReferrals},
		wire.FsctlDFSReferralsEx:    {bare: true, run: noReferrals},
		wire.FsctlNetworkInterfaces: {bare: true, run: (*request).interfaces},
		wire.FsctlPipeTransceive:    {pipe: true, run: (*request).transceive},
		wire.FsctlSnapshots:         {run: (*request).snapshots},
		wire.FsctlResumeKey:         {run: (*request).resumeKey},
		wire.FsctlCopyChunk:         {min: copyHeader, run: (*request).copyChunk},
		wire.FsctlCopyChunkWrite:    {min: copyHeader, run: (*request).copyChunkWrite},
		wire.FsctlDuplicateExtents:  {min: 40, run: (*request).duplicateExtents},
		wire.FsctlSetSparse:         {run: (*request).setSparse},
		wire.FsctlSetZeroData:       {min: 16, run: (*request).setZeroData},
		wire.FsctlAllocatedRanges:   {min: 16, run: (*request).allocatedRanges},
		wire.FsctlGetCompression:    {run: (*request).getCompression},
		wire.FsctlSetCompression:    {min: 2, run: (*request).setCompression},
		wire.FsctlGetIntegrity:      {run: (*request).getIntegrity},
		wire.FsctlSetIntegrity:      {min: 8, run: (*request).setIntegrity},
		wire.FsctlGetObjectID:       {run: (*request).objectID},
		wire.FsctlMakeObjectID:      {run: (*request).objectID},
		wire.FsctlGetReparsePoint:   {run: (*request).getReparsePoint},
		wire.FsctlSetReparsePoint:   {run: (*request).setReparsePoint},
		wire.FsctlIsPathnameValid:   {run: func(*request, *file, []byte, int) ([]byte, wire.Status) { return nil, wire.StatusOK }},
	}
}

// ioctl is IOCTL, MS-SMB2 section 3.3.5.15.
func (r *request) ioctl() wire.Status {
	var q wire.IoctlRequest
	if !q.Decode(r.msg) {
		return wire.StatusInvalidParameter
	}
	if q.Flags != wire.IoctlFSCTL {
		return wire.StatusNotSupported
	}
	if big := max(len(q.Input), int(q.MaxIn), int(q.MaxOut)); big > r.c.maxIO() || !r.paid(max(len(q.Input), int(q.MaxOut))) {
		return wire.StatusInvalidParameter
	}
	x, known := fsctls[q.Code]
	var f *file
	if x.bare {
		if q.ID != wire.AnyFile {
			return wire.StatusInvalidParameter
		}
	} else {
		var status wire.Status
		if f, status = r.file(q.ID); f == nil {
			return status
		}
	}
	switch {
	case !known, !x.bare && x.pipe != (f.pipe != nil):
		return wire.StatusInvalidDeviceRequest
	case len(q.Input) < x.min:
		return wire.StatusInvalidParameter
	}
	out, status := x.run(r, f, q.Input, int(q.MaxOut))
	if status.IsError() && !r.body {
		return status
	}
	if !r.grow(wire.IoctlReplySize + len(out)) {
		r.body = false
		return wire.StatusInsufficientResources
	}
	wire.AppendIoctlReply(r.w, q.Code, q.ID, out)
	return status
}

// noReferrals says that there is no DFS, MS-SMB2 section 3.3.5.15.2.
func noReferrals(*request, *file, []byte, int) ([]byte, wire.Status) {
	return nil, wire.StatusFSDriverRequired
}

// interfaces tells by which address the client has come, MS-SMB2 section
// 3.3.5.15.11.
func (r *request) interfaces(_ *file, _ []byte, max int) ([]byte, wire.Status) {
	const (
		size          = 152
		unixV4        = 2
		windowsV6     = 23
		bitsPerSecond = 10e9
	)
	addr, ok := r.c.Conn.LocalAddr().(*net.TCPAddr)
	switch {
	case !ok:
		return nil, wire.StatusNotSupported
	case max < size:
		return nil, wire.StatusBufferTooSmall
	}
	b := make([]byte, size)
	binary.LittleEndian.PutUint32(b[4:], 1) // its index
	binary.LittleEndian.PutUint64(b[16:], bitsPerSecond)
	if ip := addr.IP.To4(); ip != nil {
		binary.LittleEndian.PutUint16(b[24:], unixV4)
		copy(b[28:], ip)
	} else {
		binary.LittleEndian.PutUint16(b[24:], windowsV6)
		copy(b[32:], addr.IP)
	}
	return b, wire.StatusOK
}

// transceive writes to a pipe and reads the answer, MS-SMB2 section 3.3.5.15.3.
func (r *request) transceive(f *file, in []byte, max int) ([]byte, wire.Status) {
	if f.pipe.write(in) != nil || !f.pipe.count(r.c) {
		return nil, wire.StatusPipeDisconnected
	}
	b, more := f.pipe.read(max)
	f.pipe.count(r.c)
	if more {
		return b, wire.StatusBufferOverflow
	}
	return b, wire.StatusOK
}

// snapshots says that there are none, MS-SMB2 section 3.3.5.15.1.
func (r *request) snapshots(_ *file, _ []byte, max int) ([]byte, wire.Status) {
	const size = 16
	if max < size {
		return nil, wire.StatusInvalidParameter
	}
	return make([]byte, size), wire.StatusOK
}

// resumeKey is a key by which COPYCHUNK finds the file that it reads, MS-SMB2 section
// 3.3.5.15.5.
func (r *request) resumeKey(f *file, _ []byte, max int) ([]byte, wire.Status) {
	const size = 32
	if max < size {
		return nil, wire.StatusInvalidParameter
	}
	b := make([]byte, size)
	binary.LittleEndian.PutUint64(b, f.id)
	return b, wire.StatusOK
}

// Bounds of COPYCHUNK, MS-SMB2 section 3.3.3, in chunks and bytes.
const (
	copyHeader = 32
	copyChunk  = 24
	copyReply  = 12

	maxChunks    = 256
	maxChunkSize = 1 << 20
	maxCopy      = 16 << 20
)

func (r *request) copyChunk(f *file, in []byte, max int) ([]byte, wire.Status) {
	if f.access&rightReadData == 0 {
		return nil, wire.StatusAccessDenied
	}
	return r.copyChunkWrite(f, in, max)
}

// copyChunkWrite copies ranges from another open file of the session into f, MS-SMB2
// section 3.3.5.15.6. Where they can, the two share pages.
func (r *request) copyChunkWrite(f *file, in []byte, max int) ([]byte, wire.Status) {
	le := binary.LittleEndian
	src := r.s.files[le.Uint64(in)]
	n, chunks := int64(le.Uint32(in[24:])), in[copyHeader:]
	reply := func(done, partial, total int) []byte {
		b := le.AppendUint32(nil, uint32(done))
		b = le.AppendUint32(b, uint32(partial))
		return le.AppendUint32(b, uint32(total))
	}
	switch {
	case max < copyReply:
		return nil, wire.StatusInvalidParameter
	case src == nil || le.Uint64(in[8:]) != 0 || src.pipe != nil:
		return nil, wire.StatusNameNotFound
	case src.data().Type() != memstore.TypeFile || f.data().Type() != memstore.TypeFile:
		return nil, wire.StatusInvalidDeviceRequest
	case f.access&(rightWriteData|rightAppend) == 0 || src.access&(rightReadData|rightExecute) == 0:
		return nil, wire.StatusAccessDenied
	case n <= maxChunks && int64(len(chunks)) < n*copyChunk:
		return nil, wire.StatusInvalidParameter
	}
	total := int64(0)
	within := n <= maxChunks
	for k := int64(0); k < n && within; k++ {
		size := int64(le.Uint32(chunks[k*copyChunk+16:]))
		total += size
		within = size > 0 && size <= maxChunkSize && total <= maxCopy
	}
	if !within {
		// What the server would have copied.
		r.body = true
		return reply(maxChunks, maxChunkSize, maxCopy), wire.StatusInvalidParameter
	}
	var done, bytes int
	for ; done < int(n); done++ {
		c := chunks[done*copyChunk:]
		from, to, size := le.Uint64(c), le.Uint64(c[8:]), int64(le.Uint32(c[16:]))
		if from > math.MaxInt64-maxChunkSize || to > math.MaxInt64-maxChunkSize {
			return nil, wire.StatusInvalidParameter
		}
		m, status := r.copyRange(f, int64(to), src, int64(from), size)
		bytes += int(m)
		switch {
		case status == wire.StatusOK:
		case status == wire.StatusPending:
			return nil, status
		default:
			r.body = true
			return reply(done, int(m), bytes), status
		}
	}
	return reply(done, 0, bytes), wire.StatusOK
}

// copyRange copies at most maxChunkSize bytes.
func (r *request) copyRange(f *file, to int64, src *file, from, n int64) (done int64, status wire.Status) {
	a, err := src.data().GetAttr(&r.who)
	switch {
	case err != nil:
		return 0, r.status(err)
	case from+n > a.Size:
		return 0, wire.StatusInvalidViewSize
	}
	done, _, err = f.data().Clone(&r.who, f.open, to, src.data(), src.open, from, n)
	if err != memstore.ErrInvalid && err != memstore.ErrXDev {
		return done, r.status(err)
	}
	// The ranges overlap, or the stores differ.
	b := make([]byte, n)
	m, _, _, err := src.data().ReadAt(&r.who, src.open, b, from)
	if err == nil {
		m, _, err = f.data().WriteAt(&r.who, f.open, b[:m], to)
		if err == nil && int64(m) < n {
			err = memstore.ErrNoSpace
		}
	}
	return int64(m), r.status(err)
}

// duplicateExtents makes a range of f the same as one of another file, MS-FSA section
// 2.1.5.10.5.
func (r *request) duplicateExtents(f *file, in []byte, _ int) ([]byte, wire.Status) {
	le := binary.LittleEndian
	src := r.s.files[le.Uint64(in[8:])]
	from, to, n := le.Uint64(in[16:]), le.Uint64(in[24:]), le.Uint64(in[32:])
	switch {
	case src == nil || src.id != le.Uint64(in) || src.pipe != nil:
		return nil, wire.StatusInvalidHandle
	case src.data().Type() != memstore.TypeFile || f.data().Type() != memstore.TypeFile:
		return nil, wire.StatusInvalidParameter
	case f.access&rightWriteData == 0 || src.access&rightReadData == 0:
		return nil, wire.StatusAccessDenied
	case from > math.MaxInt64 || to > math.MaxInt64 || n > math.MaxInt64-max(from, to), from%wire.SectorSize != 0, to%wire.SectorSize != 0:
		return nil, wire.StatusInvalidParameter
	case n == 0:
		return nil, wire.StatusOK
	}
	a, err := src.data().GetAttr(&r.who)
	if err != nil {
		return nil, r.status(err)
	}
	b, err := f.data().GetAttr(&r.who)
	switch {
	case err != nil:
		return nil, r.status(err)
	case int64(from+n) > (a.Size+wire.SectorSize-1)&^(wire.SectorSize-1), a.DOS&^b.DOS&wire.AttrSparse != 0:
		return nil, wire.StatusNotSupported
	}
	// The file does not grow.
	n = min(n, uint64(max(b.Size-int64(to), 0)))
	if n == 0 {
		return nil, wire.StatusOK
	}
	_, _, err = f.data().Clone(&r.who, f.open, int64(to), src.data(), src.open, int64(from), int64(n))
	switch err {
	case memstore.ErrXDev:
		return nil, wire.StatusInvalidParameter
	case memstore.ErrInvalid: // they overlap
		return nil, wire.StatusNotSupported
	}
	return nil, r.status(err)
}

// setSparse says whether ranges of zeros need memory: here they never do; MS-FSA
// section 2.1.5.10.35.
func (r *request) setSparse(f *file, in []byte, _ int) ([]byte, wire.Status) {
	switch {
	case f.access&(rightWriteData|rightWriteAttrs|rightAppend) == 0:
		return nil, wire.StatusAccessDenied
	case f.data().Type() != memstore.TypeFile:
		return nil, wire.StatusInvalidParameter
	}
	a, err := f.inode.GetAttr(&r.who)
	if err != nil {
		return nil, r.status(err)
	}
	dos := a.DOS | wire.AttrSparse
	if len(in) > 0 && in[0] == 0 {
		dos &^= wire.AttrSparse
	}
	if dos == a.DOS {
		return nil, wire.StatusOK
	}
	_, err = f.inode.SetAttr(r.server(), nil, &memstore.SetAttr{Mask: memstore.SetDOS, DOS: dos})
	return nil, r.status(err)
}

// setZeroData clears a range, MS-FSA section 2.1.5.10.36.
func (r *request) setZeroData(f *file, in []byte, _ int) ([]byte, wire.Status) {
	from, to := int64(binary.LittleEndian.Uint64(in)), int64(binary.LittleEndian.Uint64(in[8:]))
	switch {
	case from < 0 || to < from || f.data().Type() != memstore.TypeFile:
		return nil, wire.StatusInvalidParameter
	case f.access&rightWriteData == 0:
		return nil, wire.StatusAccessDenied
	case from == to:
		return nil, wire.StatusOK
	}
	_, err := f.data().Punch(&r.who, f.open, from, min(to, memstore.MaxFileSize)-min(from, memstore.MaxFileSize))
	return nil, r.status(err)
}

// allocatedRanges tells where a file has data, MS-FSA section 2.1.5.10.22. Only a
// file that is sparse has holes to tell of.
func (r *request) allocatedRanges(f *file, in []byte, max int) ([]byte, wire.Status) {
	const size = 16
	from, n := int64(binary.LittleEndian.Uint64(in)), int64(binary.LittleEndian.Uint64(in[8:]))
	switch {
	case from < 0 || n < 0 || n > math.MaxInt64-from || f.data().Type() != memstore.TypeFile:
		return nil, wire.StatusInvalidParameter
	case f.access&rightReadData == 0:
		return nil, wire.StatusAccessDenied
	}
	a, err := f.data().GetAttr(&r.who)
	if err != nil {
		return nil, r.status(err)
	}
	var out []byte
	for end := min(from+n, a.Size); from < end; {
		stop := end
		if a.DOS&wire.AttrSparse != 0 {
			if from, err = f.data().SeekData(&r.who, f.open, from); err == memstore.ErrNoData || from >= end {
				break
			}
			if err == nil {
				stop, err = f.data().SeekHole(&r.who, f.open, from)
			}
			if err != nil {
				return nil, r.status(err)
			}
			stop = min(stop, end)
		}
		if len(out)+size > max {
			if len(out) == 0 {
				return nil, wire.StatusBufferTooSmall
			}
			return out, wire.StatusBufferOverflow
		}
		if len(out) >= smallIO {
			return out, wire.StatusBufferOverflow
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(from))
		out = binary.LittleEndian.AppendUint64(out, uint64(stop-from))
		from = stop
	}
	return out, wire.StatusOK
}

// Nothing is compressed, MS-FSCC sections 2.3.19 and 2.3.67.
func (r *request) getCompression(_ *file, _ []byte, max int) ([]byte, wire.Status) {
	if max < 2 {
		return nil, wire.StatusInvalidParameter
	}
	return []byte{0, 0}, wire.StatusOK
}

func (r *request) setCompression(f *file, in []byte, _ int) ([]byte, wire.Status) {
	switch {
	case f.access&rightWriteData == 0:
		return nil, wire.StatusAccessDenied
	case in[0] != 0 || in[1] != 0:
		return nil, wire.StatusNotSupported
	}
	return nil, wire.StatusOK
}

// Nothing has checksums, MS-FSCC section 2.3.20. Windows asks before it clones.
func (r *request) getIntegrity(_ *file, _ []byte, max int) ([]byte, wire.Status) {
	const size = 16
	if max < size {
		return nil, wire.StatusInvalidParameter
	}
	return binary.LittleEndian.AppendUint32(make([]byte, 12), wire.SectorSize), wire.StatusOK
}

func (r *request) setIntegrity(f *file, in []byte, _ int) ([]byte, wire.Status) {
	const none, unchanged = 0, 0xFFFF
	algorithm := binary.LittleEndian.Uint16(in)
	switch {
	case f.access&(rightWriteData|rightWriteAttrs) == 0:
		return nil, wire.StatusAccessDenied
	case algorithm != none && algorithm != unchanged:
		return nil, wire.StatusNotSupported
	}
	return nil, wire.StatusOK
}

// objectID is an id that a file keeps under other names, MS-FSCC section 2.1.3.
func (r *request) objectID(f *file, _ []byte, max int) ([]byte, wire.Status) {
	const size = 64
	if max < size {
		return nil, wire.StatusInvalidParameter
	}
	h := f.inode.Handle()
	b := make([]byte, size)
	binary.LittleEndian.PutUint64(b, h.Gen)
	binary.LittleEndian.PutUint64(b[8:], h.Ino)
	return b, wire.StatusOK
}
