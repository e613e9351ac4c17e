package smb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ramserver/memstore"
)

// A file's security descriptor is made from its owner, group and mode, and one
// that a client sets becomes these again: what a mode cannot say is lost.

// Rights of an access mask, MS-SMB2 section 2.2.13.1.
const (
	rightReadData    = 1 << 0 // of a directory: list it
	rightWriteData   = 1 << 1 // of a directory: add a file
	rightAppend      = 1 << 2 // of a directory: add a directory
	rightReadEA      = 1 << 3
	rightWriteEA     = 1 << 4
	rightExecute     = 1 << 5 // of a directory: traverse it
	rightDeleteChild = 1 << 6
	rightReadAttrs   = 1 << 7
	rightWriteAttrs  = 1 << 8
	rightDelete      = 1 << 16
	rightReadControl = 1 << 17
	rightWriteDAC    = 1 << 18
	rightWriteOwner  = 1 << 19
	rightSynchronize = 1 << 20
	rightSystem      = 1 << 24 // ACCESS_SYSTEM_SECURITY
	rightMaximum     = 1 << 25
	rightAll         = 1 << 28 // GENERIC_ALL and the next: generic ones
	rightGenExecute  = 1 << 29
	rightGenWrite    = 1 << 30
	rightGenRead     = 1 << 31

	// What everybody may do whatever the mode is, as on POSIX.
	rightsAlways = rightReadAttrs | rightReadControl | rightSynchronize | rightReadEA
	// What FILE_ALL_ACCESS has.
	rightsFull = 0x1f01ff
)

// modeRights are the rights that three bits of a mode give: read 4, write 2,
// execute 1.
func modeRights(bits uint16, dir bool) uint32 {
	r := uint32(rightsAlways)
	if bits&4 != 0 {
		r |= rightReadData
	}
	if bits&2 != 0 {
		r |= rightWriteData | rightAppend | rightWriteEA | rightWriteAttrs
		if dir {
			r |= rightDeleteChild
		}
	}
	if bits&1 != 0 {
		r |= rightExecute
	}
	return r
}

// rightsMode is the other way: the bits for which the rights suffice.
func rightsMode(r uint32) (bits uint16) {
	if r&(rightReadData|rightGenRead|rightAll) != 0 {
		bits |= 4
	}
	if r&(rightWriteData|rightGenWrite|rightAll) != 0 {
		bits |= 2
	}
	if r&(rightExecute|rightGenExecute|rightAll) != 0 {
		bits |= 1
	}
	return bits
}

// sid is a security identifier as it is on the wire (MS-DTYP section 2.4.2.2).
type sid string

// makeSID makes S-1-AUTHORITY-SUBS...
func makeSID(authority uint8, subs ...uint32) sid {
	b := []byte{1, uint8(len(subs)), 0, 0, 0, 0, 0, authority}
	for _, s := range subs {
		b = binary.LittleEndian.AppendUint32(b, s)
	}
	return sid(b)
}

// String is S-1-AUTHORITY-SUBS, MS-DTYP section 2.4.2.1.
func (s sid) String() string {
	b := []byte(s)
	text := fmt.Sprintf("S-1-%d", binary.BigEndian.Uint64(append([]byte{0, 0}, b[2:8]...)))
	for at := 8; at < len(b); at += 4 {
		text += fmt.Sprintf("-%d", binary.LittleEndian.Uint32(b[at:]))
	}
	return text
}

var (
	sidEveryone  = makeSID(1, 0)
	sidAuthUsers = makeSID(5, 11)
)

// Users and groups are in the domains that Samba gave to those of POSIX, which
// Linux's client and Samba's know.
func userSID(uid uint32) sid  { return makeSID(22, 1, uid) }
func groupSID(gid uint32) sid { return makeSID(22, 2, gid) }

// id is the number in a SID of POSIX: kind 1 is a user, 2 is a group, 3 a mode. It may
// be of Windows' NFS server, S-1-5-88, which clients set as well.
func (s sid) id(kind uint32) (id uint32, ok bool) {
	last := len(s) - 4
	if last < 8 {
		return 0, false
	}
	prefix := s[:last]
	// The count of what follows the authority is in the prefix too.
	want := func(authority uint8, subs ...uint32) bool {
		w := []byte(makeSID(authority, subs...))
		w[1]++
		return string(prefix) == string(w)
	}
	if !want(5, 88, kind) && (kind == 3 || !want(22, kind)) {
		return 0, false
	}
	return binary.LittleEndian.Uint32([]byte(s[last:])), true
}

// Parts of a security descriptor, MS-DTYP section 2.4.7.
const (
	secOwner = 1
	secGroup = 2
	secDACL  = 4
	secSACL  = 8
)

const (
	sdHeader = 20

	sdDACLPresent   = 0x0004
	sdDACLProtected = 0x1000
	sdSelfRelative  = 0x8000

	aceAllow       = 0
	aceDeny        = 1
	aceInheritOnly = 0x08

	maxACEs = 1024
)

// appendSD appends the parts that are asked for of a file's security descriptor,
// self-relative (MS-DTYP section 2.4.6).
func appendSD(b []byte, a *memstore.Attr, parts uint32) []byte {
	at := len(b)
	control := uint16(sdSelfRelative)
	if parts&secDACL != 0 {
		control |= sdDACLPresent | sdDACLProtected
	}
	b = append(b, 1, 0)
	b = binary.LittleEndian.AppendUint16(b, control)
	b = append(b, make([]byte, sdHeader-4)...)
	begins := func(field int) {
		binary.LittleEndian.PutUint32(b[at+field:], uint32(len(b)-at))
	}
	if parts&secOwner != 0 {
		begins(4)
		b = append(b, userSID(a.UID)...)
	}
	if parts&secGroup != 0 {
		begins(8)
		b = append(b, groupSID(a.GID)...)
	}
	if parts&secDACL != 0 {
		begins(16)
		b = appendDACL(b, a)
	}
	return b
}

// appendDACL says what the mode says. Each of owner, group and others is answered
// by its own entry and by none below: what a later one would add is denied first.
func appendDACL(b []byte, a *memstore.Attr) []byte {
	dir := a.Type == memstore.TypeDir
	owner, group, other := a.Mode>>6&7, a.Mode>>3&7, a.Mode&7
	at, n := len(b), uint16(0)
	b = append(b, 2, 0, 0, 0, 0, 0, 0, 0)
	ace := func(kind uint8, who sid, rights uint32) {
		b = append(b, kind, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(8+len(who)))
		b = binary.LittleEndian.AppendUint32(b, rights)
		b = append(b, who...)
		n++
	}
	// For Linux's client, which finds the whole mode in it ("modefromsid").
	ace(aceDeny, makeSID(5, 88, 3, uint32(a.Mode)), 0)
	if more := (group | other) &^ owner; more != 0 {
		ace(aceDeny, userSID(a.UID), modeRights(more, dir)&^modeRights(owner, dir))
	}
	// The owner may change the mode, and so give himself every right.
	ace(aceAllow, userSID(a.UID), modeRights(owner, dir)|rightWriteDAC|rightWriteOwner|rightDelete|rightWriteAttrs|rightWriteEA)
	if more := other &^ group; more != 0 {
		ace(aceDeny, groupSID(a.GID), modeRights(more, dir)&^modeRights(group, dir))
	}
	ace(aceAllow, groupSID(a.GID), modeRights(group, dir))
	ace(aceAllow, sidEveryone, modeRights(other, dir))
	binary.LittleEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	binary.LittleEndian.PutUint16(b[at+4:], n)
	return b
}

var errBadSD = errors.New("security descriptor is malformed")

// errUnknownSID says that an owner or group is nobody whom a store could have.
var errUnknownSID = errors.New("owner or group is unknown")

// parseSD reads the parts of a security descriptor that are to be set: into what
// of an inode's attributes, which are now a, they go.
func parseSD(b []byte, parts uint32, a *memstore.Attr) (set memstore.SetAttr, err error) {
	if len(b) < sdHeader || b[0] != 1 {
		return set, errBadSD
	}
	control := binary.LittleEndian.Uint16(b[2:])
	if control&sdSelfRelative == 0 {
		return set, errBadSD
	}
	set.UID, set.GID = a.UID, a.GID
	owner, group := userSID(a.UID), groupSID(a.GID)
	// part finds what a field of the header points to.
	part := func(field int) ([]byte, bool) {
		off := binary.LittleEndian.Uint32(b[field:])
		if off == 0 {
			return nil, true
		}
		if off < sdHeader || int64(off) >= int64(len(b)) {
			return nil, false
		}
		return b[off:], true
	}
	id := func(field int, kind uint32, now sid, to *uint32) (sid, error) {
		p, ok := part(field)
		s, _, ok2 := cutSID(p)
		if !ok || p == nil || !ok2 {
			return now, errBadSD
		}
		n, known := s.id(kind)
		if !known {
			return now, errUnknownSID
		}
		*to = n
		return s, nil
	}
	if parts&secOwner != 0 {
		if owner, err = id(4, 1, owner, &set.UID); err != nil {
			return set, err
		}
		set.Mask |= memstore.SetUID
	}
	if parts&secGroup != 0 {
		if group, err = id(8, 2, group, &set.GID); err != nil {
			return set, err
		}
		set.Mask |= memstore.SetGID
	}
	if parts&secDACL != 0 {
		p, ok := part(16)
		if !ok {
			return set, errBadSD
		}
		set.Mask |= memstore.SetMode
		if control&sdDACLPresent == 0 || p == nil {
			set.Mode = a.Mode | 0o777 // no list at all: everybody may do everything
			return set, nil
		}
		mode, err := parseDACL(p, owner, group, &set, a.Mode)
		if err != nil {
			return set, err
		}
		if mode&modeIsWhole == 0 {
			mode |= a.Mode & 0o7000
		}
		set.Mode = mode &^ modeIsWhole
	}
	return set, nil
}

// modeIsWhole marks a mode that has its bits for set-id and sticky from a client.
const modeIsWhole = 1 << 15

// parseDACL finds the mode: what the entries, in their order, give to owner,
// group and others first. Those for anybody else have no place in a mode. An entry
// that says the mode itself counts, unless that is what it is now and others say
// something too: then a client has changed them, and left that one as it was.
func parseDACL(b []byte, owner, group sid, set *memstore.SetAttr, now uint16) (mode uint16, err error) {
	if len(b) < 8 {
		return 0, errBadSD
	}
	size, n := int(binary.LittleEndian.Uint16(b[2:])), int(binary.LittleEndian.Uint16(b[4:]))
	if size < 8 || size > len(b) || n > maxACEs {
		return 0, errBadSD
	}
	b = b[8:size]
	var allowed, decided [3]uint16 // read, write, execute of owner, group, others
	same := false
	apply := func(class int, kind uint8, bits uint16) {
		fresh := bits &^ decided[class]
		decided[class] |= fresh
		if kind == aceAllow {
			allowed[class] |= fresh
		}
	}
	for range n {
		if len(b) < 8 {
			return 0, errBadSD
		}
		kind, flags := b[0], b[1]
		length := int(binary.LittleEndian.Uint16(b[2:]))
		if length < 8 || length > len(b) {
			return 0, errBadSD
		}
		rights := binary.LittleEndian.Uint32(b[4:])
		who, _, ok := cutSID(b[8:length])
		b = b[length:]
		if kind != aceAllow && kind != aceDeny || flags&aceInheritOnly != 0 {
			continue // audits, entries for objects, and for what is made later
		}
		if !ok {
			return 0, errBadSD
		}
		if m, is := who.id(3); is {
			// Clients may leave the type of the file in it.
			if mode := uint16(m) & memstore.ModeMask; mode != now {
				return mode | modeIsWhole, nil
			}
			same = true
			continue
		}
		bits := rightsMode(rights)
		u, isUser := who.id(1)
		g, isGroup := who.id(2)
		switch {
		case who == sidEveryone, who == sidAuthUsers:
			for class := range allowed {
				apply(class, kind, bits)
			}
		case who == owner, isUser && u == set.UID:
			apply(0, kind, bits)
		case who == group, isGroup && g == set.GID:
			apply(1, kind, bits)
		}
	}
	if same && decided == [3]uint16{} {
		return now | modeIsWhole, nil
	}
	return allowed[0]<<6 | allowed[1]<<3 | allowed[2], nil
}

// cutSID reads a SID at the start of b.
func cutSID(b []byte) (s sid, rest []byte, ok bool) {
	if len(b) < 8 || b[0] != 1 || b[1] > 15 || len(b) < 8+4*int(b[1]) {
		return "", nil, false
	}
	n := 8 + 4*int(b[1])
	return sid(b[:n]), b[n:], true
}
