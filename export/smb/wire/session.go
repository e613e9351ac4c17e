package wire

// SessionSetupRequest is MS-SMB2 section 2.2.5.
type SessionSetupRequest struct {
	Flags             uint8
	SecurityMode      uint8
	Token             []byte
	PreviousSessionID uint64
}

// Decode decodes the request in msg.
func (q *SessionSetupRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(2)
	q.Flags = r.Uint8()
	q.SecurityMode = r.Uint8()
	r.Skip(8)
	off, n := int(r.Uint16()), int(r.Uint16())
	q.PreviousSessionID = r.Uint64()
	q.Token = r.Buffer(off, n)
	return r.OK()
}

// SessionSetupReply is MS-SMB2 section 2.2.6.
type SessionSetupReply struct {
	Flags uint16
	Token []byte
}

// Encode appends the reply.
func (a *SessionSetupReply) Encode(w *Writer) {
	w.Uint16(9)
	w.Uint16(a.Flags)
	w.Uint16(HeaderSize + 8)
	w.Uint16(uint16(len(a.Token)))
	w.Bytes(a.Token)
}

// Types and flags of shares, MS-SMB2 section 2.2.10.
const (
	ShareDisk        = 1
	SharePipe        = 2
	ShareEncryptData = 0x8000
)

// TreeConnectRequest is MS-SMB2 section 2.2.9.
type TreeConnectRequest struct {
	Path string // \\server\share
}

// Decode decodes the request in msg.
func (q *TreeConnectRequest) Decode(msg []byte) bool {
	r := NewReader(msg)
	r.Skip(4)
	off, n := int(r.Uint16()), int(r.Uint16())
	q.Path = String(r.Buffer(off, n))
	return r.OK() && n%2 == 0
}

// TreeConnectReply is MS-SMB2 section 2.2.10.
type TreeConnectReply struct {
	ShareType     uint8
	ShareFlags    uint32
	Capabilities  uint32
	MaximalAccess uint32
}

// Encode appends the reply.
func (a *TreeConnectReply) Encode(w *Writer) {
	w.Uint16(16)
	w.Uint8(a.ShareType)
	w.Uint8(0)
	w.Uint32(a.ShareFlags)
	w.Uint32(a.Capabilities)
	w.Uint32(a.MaximalAccess)
}

// EncodeEmpty appends the body of a reply that has nothing to say.
func EncodeEmpty(w *Writer) {
	w.Uint16(4)
	w.Uint16(0)
}
