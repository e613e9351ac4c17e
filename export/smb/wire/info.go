package wire

// Classes of information about a file, MS-FSCC section 2.4.
const (
	FileBasic          = 4
	FileStandard       = 5
	FileInternal       = 6
	FileEA             = 7
	FileAccess         = 8
	FileRename         = 10
	FileLink           = 11
	FileDisposition    = 13
	FilePosition       = 14
	FileFullEA         = 15
	FileMode           = 16
	FileAlignment      = 17
	FileAll            = 18
	FileAllocation     = 19
	FileEndOfFile      = 20
	FileAlternateName  = 21
	FileStream         = 22
	FilePipe           = 23
	FileCompression    = 28
	FileNetworkOpen    = 34
	FileAttributeTag   = 35
	FileValidLength    = 39
	FileShortName      = 40
	FileNormalizedName = 48
	FileIDInfo         = 59
	FileDispositionEx  = 64
	FileRenameEx       = 65
)

// Attributes of a file, MS-FSCC section 2.6.
const (
	AttrReadOnly   = 1 << 0
	AttrHidden     = 1 << 1
	AttrSystem     = 1 << 2
	AttrDirectory  = 1 << 4
	AttrArchive    = 1 << 5
	AttrNormal     = 1 << 7
	AttrTemporary  = 1 << 8
	AttrSparse     = 1 << 9
	AttrReparse    = 1 << 10
	AttrCompressed = 1 << 11
	AttrOffline    = 1 << 12
	AttrNotIndexed = 1 << 13
	AttrEncrypted  = 1 << 14
)

// Tags of reparse points, MS-FSCC section 2.1.2.1.
const (
	TagSymlink = 0xA000000C
	TagNFS     = 0x80000014 // special files
)

// FileInfo is what the classes of information tell about an open file.
type FileInfo struct {
	Times         FileTimes
	Allocation    uint64
	Size          uint64
	Attributes    uint32
	Links         uint32
	DeletePending bool
	Directory     bool
	Index         uint64 // 64 bits that no other file of the volume has
	Volume        uint64
	EASize        uint32
	Access        uint32
	Position      uint64
	Mode          uint32
	Tag           uint32 // of a reparse point
	ShortName     string // of an entry of a directory, in ASCII, 12 characters at most
	Name          []byte // UTF-16, from the share's root, with a backslash first
}

// fileSizes is the size of each class that has a fixed one, or of what there is at
// least with the name.
var fileSizes = map[uint8]int{
	FileBasic: 40, FileStandard: 24, FileInternal: 8, FileEA: 4, FileAccess: 4, FilePosition: 8, FileMode: 4, FileAlignment: 4,
	FileAll: 104, FileCompression: 16, FileNetworkOpen: 56, FileAttributeTag: 8, FileNormalizedName: 8, FileIDInfo: 24,
}

// FileInfoSize is the least that a client must have room for; ok is false if there
// is no such class.
func FileInfoSize(class uint8) (n int, ok bool) {
	n, ok = fileSizes[class]
	return n, ok
}

// Append appends a class of information, for which there is a size.
func (f *FileInfo) Append(b []byte, class uint8) []byte {
	switch class {
	case FileBasic:
		b = f.Times.append(b)
		b = le.AppendUint32(b, f.Attributes)
		return le.AppendUint32(b, 0)
	case FileStandard:
		b = le.AppendUint64(b, f.Allocation)
		b = le.AppendUint64(b, f.Size)
		b = le.AppendUint32(b, f.Links)
		return append(b, flag(f.DeletePending), flag(f.Directory), 0, 0)
	case FileInternal:
		return le.AppendUint64(b, f.Index)
	case FileEA:
		return le.AppendUint32(b, f.EASize)
	case FileAccess:
		return le.AppendUint32(b, f.Access)
	case FilePosition:
		return le.AppendUint64(b, f.Position)
	case FileMode:
		return le.AppendUint32(b, f.Mode)
	case FileAlignment:
		return le.AppendUint32(b, 0) // bytes
	case FileAll:
		for _, c := range []uint8{FileBasic, FileStandard, FileInternal, FileEA, FileAccess, FilePosition, FileMode, FileAlignment, FileNormalizedName} {
			b = f.Append(b, c)
		}
		return b
	case FileCompression:
		b = le.AppendUint64(b, f.Size)
		return append(b, 0, 0, 0, 0, 0, 0, 0, 0) // none
	case FileNetworkOpen:
		b = f.Times.append(b)
		b = le.AppendUint64(b, f.Allocation)
		b = le.AppendUint64(b, f.Size)
		b = le.AppendUint32(b, f.Attributes)
		return le.AppendUint32(b, 0)
	case FileAttributeTag:
		b = le.AppendUint32(b, f.Attributes)
		return le.AppendUint32(b, f.Tag)
	case FileNormalizedName:
		b = le.AppendUint32(b, uint32(len(f.Name)))
		return append(b, f.Name...)
	case FileIDInfo:
		b = le.AppendUint64(b, f.Volume)
		b = le.AppendUint64(b, f.Index)
		return le.AppendUint64(b, 0)
	}
	return b
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// AppendStream appends an entry of FileStream, MS-FSCC section 2.4.49. last is
// where the entry before begins in b, -1 if this is the first.
func AppendStream(b []byte, last int, name []byte, size, allocation uint64) (all []byte, at int) {
	if last >= 0 {
		b = pad8(b, last)
		le.PutUint32(b[last:], uint32(len(b)-last))
	}
	at = len(b)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, uint32(len(name)))
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, allocation)
	return append(b, name...), at
}

// EASize is the size of an entry of FileFullEA.
func EASize(name string, value []byte) int { return 9 + len(name) + len(value) }

// AppendEA appends an entry of FileFullEA, MS-FSCC section 2.4.15. last is where the
// entry before begins in b, -1 if this is the first.
func AppendEA(b []byte, last int, name string, value []byte) (all []byte, at int) {
	if last >= 0 {
		for (len(b)-last)%4 != 0 {
			b = append(b, 0)
		}
		le.PutUint32(b[last:], uint32(len(b)-last))
	}
	at = len(b)
	b = append(b, 0, 0, 0, 0, 0, byte(len(name)))
	b = le.AppendUint16(b, uint16(len(value)))
	b = append(append(b, name...), 0)
	return append(b, value...), at
}

// Classes of entries of a directory, MS-FSCC section 2.4.
const (
	DirInfo       = 1
	DirFull       = 2
	DirBoth       = 3
	DirNames      = 12
	DirIDBoth     = 37
	DirIDFull     = 38
	DirIDExtd     = 60
	shortNameSize = 24
)

// DirEntrySize is the size of an entry of a class without its name; ok is false if
// there is no such class.
func DirEntrySize(class uint8) (n int, ok bool) {
	n, ok = dirSizes[class]
	return n, ok
}

var dirSizes = map[uint8]int{DirInfo: 64, DirFull: 68, DirBoth: 94, DirNames: 12, DirIDBoth: 104, DirIDFull: 80, DirIDExtd: 88}

// AppendDirEntry appends an entry of a directory without its name, which follows,
// and whose length in bytes is n. Its first field, the distance to the next entry,
// stays 0.
func (f *FileInfo) AppendDirEntry(b []byte, class uint8, n int) []byte {
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // next, index
	if class == DirNames {
		return le.AppendUint32(b, uint32(n))
	}
	b = f.Times.append(b)
	b = le.AppendUint64(b, f.Size)
	b = le.AppendUint64(b, f.Allocation)
	b = le.AppendUint32(b, f.Attributes)
	b = le.AppendUint32(b, uint32(n))
	if class == DirInfo {
		return b
	}
	// The size of extended attributes has the tag of a reparse point, if it is one.
	ea := f.EASize
	if f.Attributes&AttrReparse != 0 && class != DirIDExtd {
		ea = f.Tag
	}
	b = le.AppendUint32(b, ea)
	switch class {
	case DirBoth, DirIDBoth:
		at := len(b)
		b = append(b, make([]byte, 2+shortNameSize)...)
		b[at] = byte(2 * len(f.ShortName))
		for i := range min(len(f.ShortName), shortNameSize/2) {
			b[at+2+2*i] = f.ShortName[i]
		}
		if class == DirBoth {
			return b
		}
		b = append(b, 0, 0)
	case DirIDFull:
		b = append(b, 0, 0, 0, 0)
	case DirIDExtd:
		b = le.AppendUint32(b, f.Tag)
		b = le.AppendUint64(b, f.Index)
		return le.AppendUint64(b, 0)
	case DirFull:
		return b
	}
	return le.AppendUint64(b, f.Index)
}

// Classes of information about a file system, MS-FSCC section 2.5.
const (
	FSVolume    = 1
	FSSize      = 3
	FSDevice    = 4
	FSAttribute = 5
	FSControl   = 6
	FSFullSize  = 7
	FSObjectID  = 8
	FSSector    = 11
)

// Attributes of a file system, MS-FSCC section 2.5.1.
const (
	FSCaseSensitive = 1 << 0
	FSCasePreserved = 1 << 1
	FSUnicode       = 1 << 2
	FSACLs          = 1 << 3
	FSSparse        = 1 << 6
	FSReparse       = 1 << 7
	FSObjectIDs     = 1 << 16
	FSNamedStreams  = 1 << 18
	FSReadOnly      = 1 << 19
	FSHardLinks     = 1 << 22
	FSEAs           = 1 << 23
	FSRefCounts     = 1 << 27 // blocks can be shared: FSCTL_DUPLICATE_EXTENTS_TO_FILE
)

// FSInfo is what the classes of information tell about a file system.
type FSInfo struct {
	Created     uint64 // FILETIME
	Serial      uint32
	Label       []byte // UTF-16
	Total, Free uint64 // in units of SectorSize bytes
	Attributes  uint32
	ID          [16]byte
}

// SectorSize is the unit of a file system's size, in bytes.
const SectorSize = 4096

var ntfs = AppendUTF16(nil, "NTFS")

// Append appends a class of information; ok is false if there is no such class.
// fixed is the least that a client must have room for, which begins there.
func (f *FSInfo) Append(b []byte, class uint8) (all []byte, fixed int, ok bool) {
	switch class {
	case FSVolume:
		b = le.AppendUint64(b, f.Created)
		b = le.AppendUint32(b, f.Serial)
		b = le.AppendUint32(b, uint32(len(f.Label)))
		b = append(b, 0, 0)
		return append(b, f.Label...), 24, true
	case FSSize:
		b = le.AppendUint64(b, f.Total)
		b = le.AppendUint64(b, f.Free)
		b = le.AppendUint32(b, 1)
		return le.AppendUint32(b, SectorSize), 24, true
	case FSDevice:
		b = le.AppendUint32(b, 7)                // a disk
		return le.AppendUint32(b, 0x20), 8, true // mounted
	case FSAttribute:
		b = le.AppendUint32(b, f.Attributes)
		b = le.AppendUint32(b, 255)
		b = le.AppendUint32(b, uint32(len(ntfs)))
		return append(b, ntfs...), 16, true
	case FSControl:
		b = append(b, make([]byte, 24)...)
		b = le.AppendUint64(b, 1<<64-1) // no quotas
		b = le.AppendUint64(b, 1<<64-1)
		return append(b, make([]byte, 8)...), 48, true
	case FSFullSize:
		b = le.AppendUint64(b, f.Total)
		b = le.AppendUint64(b, f.Free)
		b = le.AppendUint64(b, f.Free)
		b = le.AppendUint32(b, 1)
		return le.AppendUint32(b, SectorSize), 32, true
	case FSObjectID:
		b = append(b, f.ID[:]...)
		return append(b, make([]byte, 48)...), 64, true
	case FSSector:
		for range 4 {
			b = le.AppendUint32(b, SectorSize)
		}
		b = le.AppendUint32(b, 3) // aligned device, partition
		return append(b, make([]byte, 8)...), 28, true
	}
	return b, 0, false
}

// RenameInfo is FileRename and FileLink, MS-FSCC sections 2.4.42 and 2.4.27.
type RenameInfo struct {
	Replace bool
	Flags   uint32 // of FileRenameEx
	Root    uint64 // has to be 0
	Name    []byte // UTF-16
}

// Decode reads the information's data.
func (i *RenameInfo) Decode(b []byte) bool {
	if len(b) < 20 {
		return false
	}
	i.Replace = b[0] != 0
	i.Flags = le.Uint32(b)
	i.Root = le.Uint64(b[8:])
	n := le.Uint32(b[16:])
	if uint64(n) > uint64(len(b)-20) || n%2 != 0 {
		return false
	}
	i.Name = b[20 : 20+n]
	return true
}

// BasicInfo is FileBasic as it is set: 0 leaves a time as it is.
type BasicInfo struct {
	Times      FileTimes
	Attributes uint32
}

// Decode reads the information's data.
func (i *BasicInfo) Decode(b []byte) bool {
	if len(b) < 36 {
		return false
	}
	i.Times = FileTimes{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])}
	i.Attributes = le.Uint32(b[32:])
	return true
}
