package wire

import "encoding/binary"

var le = binary.LittleEndian

// FileID names an open on the wire.
type FileID struct{ Persistent, Volatile uint64 }

// AnyFile is the file of the command before, in a related request.
var AnyFile = FileID{1<<64 - 1, 1<<64 - 1}

// FileIDSize is the size of a FileID, in bytes.
const FileIDSize = 16

func (r *Reader) fileID() FileID { return FileID{r.Uint64(), r.Uint64()} }

// Append appends the id.
func (f FileID) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, f.Persistent), f.Volatile)
}

// Dispositions of CREATE: what happens if there is a file, and if there is none.
const (
	FileSupersede   = iota // replaced, created
	FileOpen               // opened, error
	FileCreate             // error, created
	FileOpenIf             // opened, created
	FileOverwrite          // emptied, error
	FileOverwriteIf        // emptied, created
)

// Options of CREATE.
const (
	OptDirectory     = 1 << 0
	OptWriteThrough  = 1 << 1
	OptNonDirectory  = 1 << 6
	OptDeleteOnClose = 1 << 12
	OptOpenByID      = 1 << 13
	OptOpenReparse   = 1 << 21
)

// Share accesses of CREATE.
const (
	ShareRead   = 1 << 0
	ShareWrite  = 1 << 1
	ShareDelete = 1 << 2
)

// Actions that CREATE reports.
const (
	ActionSuperseded = iota
	ActionOpened
	ActionCreated
	ActionOverwritten
)

// CreateRequest is MS-SMB2 section 2.2.13.
type CreateRequest struct {
	Oplock        uint8
	Impersonation uint32
	Access        uint32
	Attributes    uint32
	Share         uint32
	Disposition   uint32
	Options       uint32
	Name          []byte // UTF-16
	contexts      []byte
}

// Decode reads the request's message.
func (q *CreateRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(3) // structure size, security flags
	q.Oplock = r.Uint8()
	q.Impersonation = r.Uint32()
	r.Skip(16)
	q.Access = r.Uint32()
	q.Attributes = r.Uint32()
	q.Share = r.Uint32()
	q.Disposition = r.Uint32()
	q.Options = r.Uint32()
	at, n := r.Uint16(), r.Uint16()
	q.Name = r.Buffer(int(at), int(n))
	q.contexts = r.Buffer(int(r.Uint32()), int(r.Uint32()))
	return r.OK() && n%2 == 0
}

// CreateContext is one of MS-SMB2 section 2.2.13.2.
type CreateContext struct {
	Name string
	Data []byte
}

// Contexts reads the create contexts; false if they are malformed.
func (q *CreateRequest) Contexts(each func(CreateContext)) bool {
	b := q.contexts
	for len(b) > 0 {
		if len(b) < 16 {
			return false
		}
		next := le.Uint32(b)
		c := b
		if next != 0 {
			if next%8 != 0 || next < 16 || uint64(next) >= uint64(len(b)) {
				return false
			}
			c, b = b[:next], b[next:]
		} else {
			b = nil
		}
		nameAt, nameLen := int(le.Uint16(c[4:])), int(le.Uint16(c[6:]))
		dataAt, dataLen := int(le.Uint16(c[10:])), int64(le.Uint32(c[12:]))
		if nameLen < 4 || nameAt < 16 || nameAt+nameLen > len(c) || dataLen > 0 && (dataAt < nameAt+nameLen || int64(dataAt)+dataLen > int64(len(c))) {
			return false
		}
		x := CreateContext{Name: string(c[nameAt : nameAt+nameLen])}
		if dataLen > 0 {
			x.Data = c[dataAt : int64(dataAt)+dataLen]
		}
		each(x)
	}
	return true
}

// FileTimes are a file's times as FILETIMEs: units of 100 ns since 1601.
type FileTimes struct{ Creation, Access, Write, Change uint64 }

func (t *FileTimes) append(b []byte) []byte {
	b = le.AppendUint64(b, t.Creation)
	b = le.AppendUint64(b, t.Access)
	b = le.AppendUint64(b, t.Write)
	return le.AppendUint64(b, t.Change)
}

// CreateReply is MS-SMB2 section 2.2.14.
type CreateReply struct {
	Action     uint32
	Times      FileTimes
	Allocation uint64
	Size       uint64
	Attributes uint32
	ID         FileID
	Contexts   []CreateContext
}

// Encode appends the reply's body.
func (p *CreateReply) Encode(w *Writer) {
	w.B = append(w.B, 89, 0, 0, 0) // no oplock
	w.B = le.AppendUint32(w.B, p.Action)
	w.B = p.Times.append(w.B)
	w.B = le.AppendUint64(w.B, p.Allocation)
	w.B = le.AppendUint64(w.B, p.Size)
	w.B = le.AppendUint32(w.B, p.Attributes)
	w.B = le.AppendUint32(w.B, 0)
	w.B = p.ID.Append(w.B)
	at := len(w.B)
	w.B = append(w.B, 0, 0, 0, 0, 0, 0, 0, 0)
	if len(p.Contexts) == 0 {
		return
	}
	begin := len(w.B)
	le.PutUint32(w.B[at:], uint32(w.Offset()))
	for i, c := range p.Contexts {
		one := len(w.B)
		w.B = le.AppendUint32(w.B, 0)
		w.B = le.AppendUint16(w.B, 16)
		w.B = le.AppendUint16(w.B, uint16(len(c.Name)))
		w.B = le.AppendUint16(w.B, 0)
		dataAt := (16 + len(c.Name) + 7) &^ 7
		if len(c.Data) == 0 {
			dataAt = 0
		}
		w.B = le.AppendUint16(w.B, uint16(dataAt))
		w.B = le.AppendUint32(w.B, uint32(len(c.Data)))
		w.B = append(w.B, c.Name...)
		w.B = pad8(w.B, one)
		w.B = append(w.B, c.Data...)
		if i < len(p.Contexts)-1 {
			w.B = pad8(w.B, one)
			le.PutUint32(w.B[one:], uint32(len(w.B)-one))
		}
	}
	le.PutUint32(w.B[at+4:], uint32(len(w.B)-begin))
}

// pad8 appends zeros up to a multiple of 8 bytes from an index on.
func pad8(b []byte, from int) []byte {
	for (len(b)-from)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// CloseRequest is MS-SMB2 section 2.2.15.
type CloseRequest struct {
	Flags uint16
	ID    FileID
}

// CloseAttributes asks CLOSE for the attributes.
const CloseAttributes = 1

// Decode reads the request's message.
func (q *CloseRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	q.Flags = r.Uint16()
	r.Skip(4)
	q.ID = r.fileID()
	return r.OK()
}

// CloseReply is MS-SMB2 section 2.2.16. Without Flags the rest is zero.
type CloseReply struct {
	Flags      uint16
	Times      FileTimes
	Allocation uint64
	Size       uint64
	Attributes uint32
}

// Encode appends the reply's body.
func (p *CloseReply) Encode(w *Writer) {
	w.B = append(w.B, 60, 0)
	w.B = le.AppendUint16(w.B, p.Flags)
	w.B = le.AppendUint32(w.B, 0)
	w.B = p.Times.append(w.B)
	w.B = le.AppendUint64(w.B, p.Allocation)
	w.B = le.AppendUint64(w.B, p.Size)
	w.B = le.AppendUint32(w.B, p.Attributes)
}

// FlushRequest is MS-SMB2 section 2.2.17.
type FlushRequest struct{ ID FileID }

// Decode reads the request's message.
func (q *FlushRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(8)
	q.ID = r.fileID()
	return r.OK()
}

// ReadRequest is MS-SMB2 section 2.2.19.
type ReadRequest struct {
	Length  uint32
	Offset  uint64
	ID      FileID
	Minimum uint32
	Channel uint32
}

// Decode reads the request's message.
func (q *ReadRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(4)
	q.Length = r.Uint32()
	q.Offset = r.Uint64()
	q.ID = r.fileID()
	q.Minimum = r.Uint32()
	q.Channel = r.Uint32()
	return r.OK()
}

// ReadReplySize is what precedes the data of READ's reply, which begins at
// ReadDataOffset of the message.
const (
	ReadReplySize  = 16
	ReadDataOffset = HeaderSize + ReadReplySize
)

// AppendReadReply appends what precedes n bytes of data in READ's reply,
// MS-SMB2 section 2.2.20.
func AppendReadReply(w *Writer, n int) {
	w.B = append(w.B, 17, 0, ReadDataOffset, 0)
	w.B = le.AppendUint32(w.B, uint32(n))
	w.B = append(w.B, 0, 0, 0, 0, 0, 0, 0, 0)
}

// WriteRequest is MS-SMB2 section 2.2.21.
type WriteRequest struct {
	Offset  uint64
	ID      FileID
	Channel uint32
	Flags   uint32
	Data    []byte
}

// Decode reads the request's message.
func (q *WriteRequest) Decode(msg []byte) bool {
	at, n, ok := q.DecodeHead(msg)
	if !ok || n > 0 && (at < HeaderSize || at > len(msg) || n > len(msg)-at) {
		return false
	}
	q.Data = nil
	if n > 0 {
		q.Data = msg[at:][:n]
	}
	return true
}

// DecodeHead is Decode without the data: those are n bytes at offset at of the
// message, if it is as long as that.
func (q *WriteRequest) DecodeHead(msg []byte) (at, n int, ok bool) {
	r := NewReader(msg)
	r.Skip(2)
	at, n = int(r.Uint16()), int(r.Uint32())
	q.Offset = r.Uint64()
	q.ID = r.fileID()
	q.Channel = r.Uint32()
	r.Skip(8)
	q.Flags = r.Uint32()
	return at, n, r.OK()
}

// AppendWriteReply appends the body of WRITE's reply, MS-SMB2 section 2.2.22.
func AppendWriteReply(w *Writer, n int) {
	w.B = append(w.B, 17, 0, 0, 0)
	w.B = le.AppendUint32(w.B, uint32(n))
	w.B = append(w.B, 0, 0, 0, 0, 0, 0, 0, 0)
}

// Lock flags, MS-SMB2 section 2.2.26.1.
const (
	LockShared    = 1 << 0
	LockExclusive = 1 << 1
	LockUnlock    = 1 << 2
	LockNoWait    = 1 << 4
)

// LockElement is a range of LOCK.
type LockElement struct {
	Offset, Length uint64
	Flags          uint32
}

// LockRequest is MS-SMB2 section 2.2.26.
type LockRequest struct {
	Sequence uint32
	ID       FileID
	elements []byte
}

const lockElementSize = 24

// Decode reads the request's message.
func (q *LockRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	n := r.Uint16()
	q.Sequence = r.Uint32()
	q.ID = r.fileID()
	q.elements = r.Bytes(int(n) * lockElementSize)
	return r.OK() && n > 0
}

// Len is how many elements there are.
func (q *LockRequest) Len() int { return len(q.elements) / lockElementSize }

// Element is the element of an index.
func (q *LockRequest) Element(i int) LockElement {
	b := q.elements[i*lockElementSize:]
	return LockElement{le.Uint64(b), le.Uint64(b[8:]), le.Uint32(b[16:])}
}

// IoctlRequest is MS-SMB2 section 2.2.31.
type IoctlRequest struct {
	Code   uint32
	ID     FileID
	Input  []byte
	MaxIn  uint32
	MaxOut uint32
	Flags  uint32
}

// IoctlFSCTL says that an IOCTL is an FSCTL.
const IoctlFSCTL = 1

// Decode reads the request's message.
func (q *IoctlRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(4)
	q.Code = r.Uint32()
	q.ID = r.fileID()
	at, n := r.Uint32(), r.Uint32()
	q.MaxIn = r.Uint32()
	r.Skip(8)
	q.MaxOut = r.Uint32()
	q.Flags = r.Uint32()
	q.Input = r.Buffer(int(at), int(n))
	return r.OK()
}

// IoctlReplySize is what precedes the output in IOCTL's reply.
const IoctlReplySize = 48

// AppendIoctlReply appends the body of IOCTL's reply, MS-SMB2 section 2.2.32.
func AppendIoctlReply(w *Writer, code uint32, id FileID, out []byte) {
	w.B = append(w.B, 49, 0, 0, 0)
	w.B = le.AppendUint32(w.B, code)
	w.B = id.Append(w.B)
	at := uint32(HeaderSize + IoctlReplySize)
	w.B = le.AppendUint32(w.B, at)
	w.B = le.AppendUint32(w.B, 0)
	w.B = le.AppendUint32(w.B, at)
	w.B = le.AppendUint32(w.B, uint32(len(out)))
	w.B = append(w.B, 0, 0, 0, 0, 0, 0, 0, 0)
	w.B = append(w.B, out...)
}

// Flags of QUERY_DIRECTORY.
const (
	DirRestart = 1 << 0
	DirSingle  = 1 << 1
	DirReopen  = 1 << 4
)

// DirRequest is QUERY_DIRECTORY, MS-SMB2 section 2.2.33.
type DirRequest struct {
	Class   uint8
	Flags   uint8
	ID      FileID
	Pattern []byte // UTF-16
	MaxOut  uint32
}

// Decode reads the request's message.
func (q *DirRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	q.Class = r.Uint8()
	q.Flags = r.Uint8()
	r.Skip(4)
	q.ID = r.fileID()
	at, n := r.Uint16(), r.Uint16()
	q.MaxOut = r.Uint32()
	q.Pattern = r.Buffer(int(at), int(n))
	return r.OK() && n%2 == 0
}

// NotifyRequest is CHANGE_NOTIFY, MS-SMB2 section 2.2.35.
type NotifyRequest struct {
	Flags  uint16
	MaxOut uint32
	ID     FileID
	Filter uint32
}

// NotifyTree asks for changes of the whole tree.
const NotifyTree = 1

// Filters of CHANGE_NOTIFY.
const (
	FilterFileName   = 1 << 0
	FilterDirName    = 1 << 1
	FilterAttributes = 1 << 2
	FilterSize       = 1 << 3
	FilterWrite      = 1 << 4
	FilterAccess     = 1 << 5
	FilterCreation   = 1 << 6
	FilterEA         = 1 << 7
	FilterSecurity   = 1 << 8
	FilterStreamName = 1 << 9
	FilterStreamSize = 1 << 10
	FilterStreamData = 1 << 11
)

// Decode reads the request's message.
func (q *NotifyRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	q.Flags = r.Uint16()
	q.MaxOut = r.Uint32()
	q.ID = r.fileID()
	q.Filter = r.Uint32()
	return r.OK()
}

// QueryInfoRequest is MS-SMB2 section 2.2.37.
type QueryInfoRequest struct {
	Type       uint8
	Class      uint8
	MaxOut     uint32
	Additional uint32
	Flags      uint32
	ID         FileID
	Input      []byte
}

// Types of information.
const (
	InfoFile     = 1
	InfoFS       = 2
	InfoSecurity = 3
	InfoQuota    = 4
)

// Decode reads the request's message.
func (q *QueryInfoRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	q.Type = r.Uint8()
	q.Class = r.Uint8()
	q.MaxOut = r.Uint32()
	at := r.Uint16()
	r.Skip(2)
	n := r.Uint32()
	q.Additional = r.Uint32()
	q.Flags = r.Uint32()
	q.ID = r.fileID()
	q.Input = r.Buffer(int(at), int(n))
	return r.OK()
}

// SetInfoRequest is MS-SMB2 section 2.2.39.
type SetInfoRequest struct {
	Type       uint8
	Class      uint8
	Additional uint32
	ID         FileID
	Data       []byte
}

// Decode reads the request's message.
func (q *SetInfoRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	q.Type = r.Uint8()
	q.Class = r.Uint8()
	n, at := r.Uint32(), r.Uint16()
	r.Skip(2)
	q.Additional = r.Uint32()
	q.ID = r.fileID()
	q.Data = r.Buffer(int(at), int(n))
	return r.OK()
}

// BufferSize is the size of what precedes such a buffer, in bytes.
const BufferSize = 8

// BeginBuffer appends the beginning of the reply of QUERY_INFO, QUERY_DIRECTORY or
// CHANGE_NOTIFY, which are alike (MS-SMB2 sections 2.2.34, 2.2.36, 2.2.38). What is
// appended until EndBuffer is its buffer.
func BeginBuffer(w *Writer) (at int) {
	w.B = append(w.B, 9, 0, HeaderSize+8, 0, 0, 0, 0, 0)
	return len(w.B)
}

// EndBuffer completes what BeginBuffer has begun.
func EndBuffer(w *Writer, at int) {
	le.PutUint32(w.B[at-4:], uint32(len(w.B)-at))
	if len(w.B) == at {
		w.B[at-6] = 0 // no buffer, no offset
	}
}

// AppendSetInfoReply appends the body of SET_INFO's reply, MS-SMB2 section 2.2.40.
func AppendSetInfoReply(w *Writer) { w.B = append(w.B, 2, 0) }
