package wire

// Controls of IOCTL, MS-SMB2 section 2.2.31 and MS-FSCC section 2.3.
const (
	FsctlDFSReferrals      = 0x00060194
	FsctlDFSReferralsEx    = 0x000601B0
	FsctlIsPathnameValid   = 0x0009002C
	FsctlGetCompression    = 0x0009003C
	FsctlGetObjectID       = 0x0009009C
	FsctlSetReparsePoint   = 0x000900A4
	FsctlGetReparsePoint   = 0x000900A8
	FsctlGetIntegrity      = 0x0009027C
	FsctlMakeObjectID      = 0x000900C0 // FSCTL_CREATE_OR_GET_OBJECT_ID
	FsctlSetSparse         = 0x000900C4
	FsctlAllocatedRanges   = 0x000940CF
	FsctlDuplicateExtents  = 0x00098344
	FsctlSetZeroData       = 0x000980C8
	FsctlSetCompression    = 0x0009C040
	FsctlSetIntegrity      = 0x0009C280
	FsctlPipeTransceive    = 0x0011C017
	FsctlResumeKey         = 0x00140078
	FsctlSnapshots         = 0x00144064
	FsctlCopyChunk         = 0x001440F2
	FsctlCopyChunkWrite    = 0x001480F2
	FsctlNetworkInterfaces = 0x001401FC
	FsctlValidateNegotiate = 0x00140204
)

// Types of special files in a reparse point with TagNFS, MS-FSCC section 2.1.2.6.
const (
	SpecialLink   = 0x00000000014B4E4C
	SpecialChar   = 0x0000000000524843
	SpecialBlock  = 0x00000000004B4C42
	SpecialFIFO   = 0x000000004F464946
	SpecialSocket = 0x000000004B434F53
)

// SymlinkRelative is the flag of a symlink that begins where it lies.
const SymlinkRelative = 1

// Reparse is what a reparse point says that is a symlink or a special file, MS-FSCC
// sections 2.1.2.4 and 2.1.2.6.
type Reparse struct {
	Tag          uint32
	Target       []byte // UTF-16, of a symlink
	Flags        uint32 // of a symlink
	Special      uint64
	Major, Minor uint32 // of a device
}

// Decode reads a reparse point's data; false if it is malformed, or of another kind.
func (p *Reparse) Decode(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	p.Tag = le.Uint32(b)
	n := int(le.Uint16(b[4:]))
	b = b[8:]
	if n != len(b) {
		return false
	}
	switch p.Tag {
	case TagSymlink:
		if n < 12 {
			return false
		}
		at, size := int(le.Uint16(b)), int(le.Uint16(b[2:]))
		p.Flags = le.Uint32(b[8:])
		if b = b[12:]; at+size > len(b) || size%2 != 0 {
			return false
		}
		p.Target = b[at : at+size]
		return true
	case TagNFS:
		if n < 8 {
			return false
		}
		p.Special = le.Uint64(b)
		switch b = b[8:]; p.Special {
		case SpecialLink:
			p.Target = b
			return len(b)%2 == 0
		case SpecialChar, SpecialBlock:
			if len(b) != 8 {
				return false
			}
			p.Major, p.Minor = le.Uint32(b), le.Uint32(b[4:])
			return true
		case SpecialFIFO, SpecialSocket:
			return true
		}
	}
	return false
}

// Append appends the reparse point's data.
func (p *Reparse) Append(b []byte) []byte {
	begin := len(b)
	b = le.AppendUint32(b, p.Tag)
	b = append(b, 0, 0, 0, 0)
	switch p.Tag {
	case TagSymlink:
		n := uint16(len(p.Target))
		// The same name to follow and to show.
		for _, v := range []uint16{0, n, n, n} {
			b = le.AppendUint16(b, v)
		}
		b = le.AppendUint32(b, p.Flags)
		b = append(append(b, p.Target...), p.Target...)
	case TagNFS:
		b = le.AppendUint64(b, p.Special)
		if p.Special == SpecialChar || p.Special == SpecialBlock {
			b = le.AppendUint32(b, p.Major)
			b = le.AppendUint32(b, p.Minor)
		}
	}
	le.PutUint16(b[begin+4:], uint16(len(b)-begin-8))
	return b
}
