package wire

// Apple's extensions for its clients, which ask for them by the create context "AAPL"
// (smb_2.h of Apple's SMBClient; "Time Machine over SMB Specification").

// Parts of the answer to a query of a server.
const (
	AppleServerCaps = 1 << 0
	AppleVolumeCaps = 1 << 1
	AppleModel      = 1 << 2
)

// Capabilities of a client or server.
const (
	AppleDirAttrs  = 1 << 0 // entries of directories have an AppleEntry
	AppleUnix      = 1 << 2 // with a mode
	AppleModeACE   = 1 << 3 // a security descriptor may have a mode
	AppleDirAttrs2 = 1 << 4 // as AppleDirAttrs, and says whether there are streams
)

// AppleFullSync is a capability of a volume: FLUSH may be asked for a full sync.
const AppleFullSync = 1 << 2

const appleQuery = 1 // the command

// AppleQuery is a query of a server.
type AppleQuery struct {
	Parts uint64 // of the answer
	Caps  uint64 // of the client
}

// Decode reads the context's data.
func (q *AppleQuery) Decode(b []byte) bool {
	if len(b) != 24 || le.Uint32(b) != appleQuery {
		return false
	}
	q.Parts, q.Caps = le.Uint64(b[8:]), le.Uint64(b[16:])
	return true
}

// AppleAnswer is the answer.
type AppleAnswer struct {
	Parts          uint64
	Server, Volume uint64 // capabilities
	Model          string
}

// Append appends the context's data.
func (a *AppleAnswer) Append(b []byte) []byte {
	b = le.AppendUint64(b, appleQuery)
	b = le.AppendUint64(b, a.Parts)
	if a.Parts&AppleServerCaps != 0 {
		b = le.AppendUint64(b, a.Server)
	}
	if a.Parts&AppleVolumeCaps != 0 {
		b = le.AppendUint64(b, a.Volume)
	}
	if a.Parts&AppleModel != 0 {
		b = append(b, 0, 0, 0, 0)
		b = le.AppendUint32(b, uint32(UTF16Len(a.Model)))
		b = AppendUTF16(b, a.Model)
	}
	return b
}

// AppleEntry stands in an entry of DirIDBoth for the size of extended attributes and
// the short name.
type AppleEntry struct {
	Access   uint32 // rights
	Flags    uint16
	Resource uint64 // size of the resource fork, in bytes
	Finder   [16]byte
	Mode     uint16 // as stat tells it
}

// AppleNoStreams is the flag of a file without named streams.
const AppleNoStreams = 1

// Put writes it over what AppendDirEntry has appended. A reparse point keeps its tag.
func (e *AppleEntry) Put(entry []byte, reparse bool) {
	if !reparse {
		le.PutUint32(entry[64:], e.Access)
	}
	le.PutUint16(entry[68:], e.Flags)
	le.PutUint64(entry[70:], e.Resource)
	copy(entry[78:94], e.Finder[:])
	le.PutUint16(entry[94:], e.Mode)
}
