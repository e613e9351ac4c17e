package smb

import (
	"encoding/binary"
	"strings"

	"ramserver/export/smb/wire"
)

// queryInfo is QUERY_INFO, MS-SMB2 section 3.3.5.20.
func (r *request) queryInfo() wire.Status {
	var q wire.QueryInfoRequest
	if !q.Decode(r.msg) || int(q.MaxOut) > r.c.maxIO() || !r.paid(max(len(q.Input), int(q.MaxOut))) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case f == nil:
		return status
	case f.pipe != nil:
		return r.queryPipe(&q)
	}
	switch q.Type {
	case wire.InfoFile:
		return r.queryFile(f, &q)
	case wire.InfoFS:
		return r.queryFS(f, &q)
	case wire.InfoSecurity:
		return r.querySecurity(f, &q)
	case wire.InfoQuota:
		return wire.StatusNotSupported
	}
	return wire.StatusInvalidParameter
}

// queryPipe tells what clients ask about a pipe before they use it.
func (r *request) queryPipe(q *wire.QueryInfoRequest) wire.Status {
	if q.Type != wire.InfoFile || q.Class != wire.FileStandard {
		return wire.StatusInvalidParameter
	}
	info := wire.FileInfo{Allocation: 4096, Links: 1, DeletePending: true}
	b := info.Append(nil, q.Class)
	return r.inform(q, b, len(b))
}

// inform makes the reply to a query of what is told, of which fixed bytes at least
// must fit what the client has room for. MS-SMB2 section 3.3.5.20.1.
func (r *request) inform(q *wire.QueryInfoRequest, b []byte, fixed int) wire.Status {
	n, status := min(len(b), int(q.MaxOut)), wire.StatusOK
	switch {
	case int(q.MaxOut) < fixed:
		return wire.StatusInfoLengthMismatch
	case n < len(b):
		status = wire.StatusBufferOverflow
	}
	if !r.grow(wire.BufferSize + n) {
		return wire.StatusInsufficientResources
	}
	at := wire.BeginBuffer(r.w)
	r.w.Bytes(b[:n])
	wire.EndBuffer(r.w, at)
	return status
}

// infoRoom has room for most of what is told.
type infoRoom [512]byte

// queryRights are what a file must be open for to be asked for a class. MS-SMB2
// section 3.3.5.20.1.
var queryRights = map[uint8]uint32{
	wire.FileBasic:        rightReadAttrs,
	wire.FileAll:          rightReadAttrs,
	wire.FileNetworkOpen:  rightReadAttrs,
	wire.FileAttributeTag: rightReadAttrs,
	wire.FileFullEA:       rightReadEA,
}

func (r *request) queryFile(f *file, q *wire.QueryInfoRequest) wire.Status {
	if need := queryRights[q.Class]; f.access&need != need {
		return wire.StatusAccessDenied
	}
	var room infoRoom
	if q.Class == wire.FileAlternateName {
		if f.dir == nil {
			return wire.StatusNameNotFound
		}
		info := wire.FileInfo{Name: wire.AppendUTF16(nil, dosName(f.name))}
		return r.inform(q, info.Append(room[:0], wire.FileNormalizedName), 8)
	}
	if q.Class == wire.FileNormalizedName && r.c.dialect < wire.Dialect311 {
		return wire.StatusNotSupported
	}
	fixed, ok := wire.FileInfoSize(q.Class)
	if !ok && q.Class != wire.FileStream && q.Class != wire.FileFullEA {
		return wire.StatusInvalidInfoClass
	}
	if q.Class == wire.FileFullEA {
		return r.queryEAs(f, q)
	}
	if q.Class == wire.FileStream {
		a, err := f.inode.GetAttr(&r.who)
		if err != nil {
			return r.status(err)
		}
		return r.inform(q, appendStreams(room[:0], f, &a), 32)
	}
	a, err := r.attrs(f)
	if err != nil {
		return r.status(err)
	}
	info := r.fileInfo(f, &a)
	if q.Class == wire.FileAll || q.Class == wire.FileEA {
		info.EASize = r.eaSize(f.inode)
	}
	if q.Class == wire.FileAll || q.Class == wire.FileNormalizedName {
		info.Name = f.path()
	}
	if q.Class == wire.FileNormalizedName && len(info.Name) > 0 {
		info.Name = info.Name[2:] // without the first backslash
	}
	return r.inform(q, info.Append(room[:0], q.Class), fixed)
}

// path is where a file is in its share, with a backslash first, in UTF-16.
func (f *file) path() []byte {
	p, ok := f.inode.Path()
	if !ok {
		p = f.name // its name is gone
	}
	if root, _ := f.t.exp.Root.Path(); root != "" && len(p) >= len(root) {
		p = p[len(root):]
	}
	b := appendTarget([]byte{'\\', 0}, strings.TrimPrefix(p, "/"))
	if f.stream != "" {
		b = wire.AppendUTF16(b, ":"+f.open.StreamName())
	}
	return b
}

// volume is the serial number of a share's volume.
func (t *tree) volume() uint64 { return t.exp.Store.ID() ^ uint64(t.exp.ID) }

func (r *request) queryFS(f *file, q *wire.QueryInfoRequest) wire.Status {
	exp := f.t.exp
	root, err := exp.Root.GetAttr(&r.who)
	if err != nil {
		return r.status(err)
	}
	fs := exp.Store.Statfs()
	info := wire.FSInfo{
		Created: fileTime(root.Btime),
		Serial:  uint32(f.t.volume()),
		Label:   wire.AppendUTF16(nil, exp.Name),
		Total:   uint64(fs.TotalBytes) / wire.SectorSize,
		Free:    uint64(fs.TotalBytes-fs.UsedBytes) / wire.SectorSize,
		Attributes: wire.FSCaseSensitive | wire.FSCasePreserved | wire.FSUnicode | wire.FSACLs | wire.FSSparse | wire.FSReparse |
			wire.FSObjectIDs | wire.FSHardLinks | wire.FSEAs | wire.FSRefCounts | wire.FSNamedStreams,
	}
	if exp.ReadOnly {
		info.Attributes |= wire.FSReadOnly
	}
	binary.LittleEndian.PutUint64(info.ID[:], exp.Store.ID())
	binary.LittleEndian.PutUint32(info.ID[8:], exp.ID)
	var room infoRoom
	b, fixed, ok := info.Append(room[:0], q.Class)
	if !ok {
		return wire.StatusInvalidInfoClass
	}
	return r.inform(q, b, fixed)
}

// querySecurity answers with the security descriptor that the mode is. MS-SMB2
// section 3.3.5.20.3.
func (r *request) querySecurity(f *file, q *wire.QueryInfoRequest) wire.Status {
	need := uint32(0)
	if q.Additional&(secOwner|secGroup|secDACL) != 0 {
		need = rightReadControl
	}
	if q.Additional&secSACL != 0 {
		need |= rightSystem
	}
	if f.access&need != need {
		return wire.StatusAccessDenied
	}
	a, err := f.inode.GetAttr(&r.who)
	if err != nil {
		return r.status(err)
	}
	var room infoRoom
	b := appendSD(room[:0], &a, q.Additional)
	if len(b) > int(q.MaxOut) {
		r.errorData = binary.LittleEndian.AppendUint32(nil, uint32(len(b)))
		return wire.StatusBufferTooSmall
	}
	return r.inform(q, b, 0)
}
