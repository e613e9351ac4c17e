package memstore

// Type is the kind of an inode.
type Type uint8

// The kinds of inodes.
const (
	TypeFile Type = iota + 1
	TypeDir
	TypeSymlink
	TypeFIFO
	TypeSocket
	TypeBlock
	TypeChar
)

// Mode bits of POSIX; Attr.Mode and SetAttr.Mode have only these, never the type.
const (
	ModeSetUID = 0o4000
	ModeSetGID = 0o2000
	ModeSticky = 0o1000
	ModeMask   = 0o7777
)

// Limits of names, links and files.
const (
	MaxName      = 255               // bytes of a name
	MaxSymlink   = 4095              // bytes of a symlink's target
	MaxLinks     = 1 << 31           // links of a file
	MaxFileSize  = 1<<63 - 1<<16 - 1 // bytes; what the extent arithmetic allows
	MaxXattrName = 255               // bytes
	MaxXattr     = 64 << 10          // bytes of one value
	MaxXattrs    = 1 << 20           // bytes of all names and values of an inode
)

// Attr is an inode's attributes at one instant. Times are as Time makes them.
type Attr struct {
	Ino          uint64
	Gen          uint64
	Change       uint64 // grows with every change of data or attributes
	Size         int64  // bytes; of a directory 0 or more, growing with its entries
	Used         int64  // bytes of memory that the data takes
	Atime, Mtime int64
	Ctime, Btime int64
	Shown        int64 // Ctime, or when local processes may have changed data later than that without the store
	Nlink        uint32
	UID, GID     uint32
	Major, Minor uint32 // of TypeBlock and TypeChar
	Mode         uint16
	DOS          uint16 // attributes that only SMB knows, as the client set them
	Type         Type
	Loose        bool // local processes may change size and times without the store
}

// Before is the part of the attributes that weak cache consistency wants from
// before a change (wcc_attr, RFC 1813 section 2.6; change_info4).
type Before struct {
	Size         int64
	Mtime, Ctime int64 // Ctime is Attr.Shown
	Change       uint64
}

// Changed is an inode's attributes around a change, both taken under the lock
// under which it was made.
type Changed struct {
	Before Before
	After  Attr
}

// SetMask says which fields of a SetAttr are set.
type SetMask uint16

// Fields of a SetAttr. The "Now" bits take the store's clock.
const (
	SetMode SetMask = 1 << iota
	SetUID
	SetGID
	SetSize
	SetAtime
	SetAtimeNow
	SetMtime
	SetMtimeNow
	SetCtime // only SMB sets it
	SetBtime
	SetDOS
	SetGuard  // refuse with ErrNotSync unless the change time is GuardCtime
	SetLocked // SetSize whatever ranges others have locked: SMB replaces files so
)

// SetAttr is a change of attributes; fields outside Mask are ignored.
type SetAttr struct {
	Mask         SetMask
	Mode         uint16
	DOS          uint16
	UID, GID     uint32
	Size         int64
	Atime, Mtime int64
	Ctime, Btime int64
	GuardCtime   int64
}

// Access is a set of permissions, as asked for by Inode.Access and kept by an Open.
type Access uint8

// Permissions.
const (
	AccessRead    Access = 1 << iota // read data, list a directory
	AccessWrite                      // write data, change a directory's entries
	AccessExecute                    // execute a file, look up in a directory
	AccessDelete                     // SMB's DELETE; used in share modes
)

// Statfs is a store's usage. Bytes count data and metadata.
type Statfs struct {
	TotalBytes, UsedBytes   int64
	TotalInodes, UsedInodes int64
}
