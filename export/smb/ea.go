package smb

import (
	"encoding/binary"
	"strings"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Extended attributes are the store's, in the namespace "user." of Linux, as Samba
// has them. Their names are the same without regard to case.
const eaPrefix = "user."

// maxEA is how many bytes of a value can be told; the store has one more.
const maxEA = 1<<16 - 1

// maxEAList is how many bytes a list of attributes or of names has at most: one value
// has almost half of it.
const maxEAList = 2 * smallIO

// isEA tells whether an extended attribute of the store is one to clients.
func isEA(xattr string) bool { return strings.HasPrefix(xattr, eaPrefix) }

// findEA is how a name is stored already, or would be.
func (r *request) findEA(i *memstore.Inode, name string) (string, error) {
	all, err := i.ListXattr(&r.who)
	if err != nil {
		return "", err
	}
	for _, x := range all {
		if isEA(x) && strings.EqualFold(x[len(eaPrefix):], name) {
			return x, nil
		}
	}
	return eaPrefix + name, nil
}

// setEAs sets a list of extended attributes, MS-FSA section 2.1.5.15.5. An empty
// value removes one. Whether the client may is known.
func (r *request) setEAs(i *memstore.Inode, b []byte) wire.Status {
	if tagOf(i.Type()) != 0 {
		return wire.StatusEANotSupported
	}
	if len(b) > maxEAList {
		return wire.StatusEATooLarge
	}
	list, status := parseEAs(b)
	c := r.server()
	for _, ea := range list {
		xattr, err := r.findEA(i, ea.name)
		switch {
		case err != nil:
			return r.status(err)
		case len(ea.value) > 0:
			_, err = i.SetXattr(c, xattr, ea.value, memstore.XattrEither)
		default:
			if _, err = i.RemoveXattr(c, xattr); err == memstore.ErrNoXattr {
				err = nil
			}
		}
		switch err {
		case nil:
		case memstore.ErrXattrTooBig, memstore.ErrNameTooLong:
			return wire.StatusEATooLarge
		default:
			return r.status(err)
		}
	}
	return status
}

// ea is one extended attribute of a client.
type ea struct {
	name  string
	value []byte
}

// eaNeeded is the only flag of an extended attribute, FILE_NEED_EA.
const eaNeeded = 0x80

// parseEAs reads FILE_FULL_EA_INFORMATION, MS-FSCC section 2.4.15; all of it or
// nothing.
func parseEAs(b []byte) (list []ea, status wire.Status) {
	le := binary.LittleEndian
	for len(b) > 0 {
		if len(b) < 9 {
			return nil, wire.StatusInvalidParameter
		}
		next, flags, nameLen, valueLen := int64(le.Uint32(b)), b[4], int(b[5]), int(le.Uint16(b[6:]))
		if 9+nameLen+valueLen > len(b) || next != 0 && (next < int64(9+nameLen+valueLen) || next >= int64(len(b))) {
			return nil, wire.StatusInvalidParameter
		}
		name := string(b[8 : 8+nameLen])
		if nameLen == 0 || b[8+nameLen] != 0 || flags&^eaNeeded != 0 ||
			strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || strings.ContainsRune(`\/:*?"<>|,+=[];`, c) }) {
			return nil, wire.StatusInvalidEAName
		}
		list = append(list, ea{name, b[9+nameLen : 9+nameLen+valueLen]})
		if next == 0 {
			break
		}
		b = b[next:]
	}
	return list, wire.StatusOK
}

// Flags of a query for extended attributes, MS-SMB2 section 2.2.37.
const (
	eaRestart = 1 << 0
	eaSingle  = 1 << 1
)

// queryEAs lists extended attributes, those that are asked for or, in several
// queries, all: MS-SMB2 section 3.3.5.20.1 and MS-FSCC section 2.4.15.
func (r *request) queryEAs(f *file, q *wire.QueryInfoRequest) wire.Status {
	if len(q.Input) > maxEAList {
		return wire.StatusInvalidParameter
	}
	asked, ok := eaNames(q.Input)
	if !ok {
		return wire.StatusInvalidParameter
	}
	list := asked
	if len(asked) == 0 {
		all, err := f.inode.ListXattr(&r.who)
		if err != nil {
			return r.status(err)
		}
		for _, x := range all {
			if isEA(x) {
				list = append(list, x[len(eaPrefix):])
			}
		}
		if len(list) == 0 {
			return wire.StatusNoEAs
		}
		if q.Flags&eaRestart != 0 {
			f.nextEA = 0
		}
		if f.nextEA >= len(list) {
			return wire.StatusNoMoreEAs
		}
		list = list[f.nextEA:]
	}
	room := min(int(q.MaxOut), maxEAList)
	if !r.grow(wire.BufferSize + room) {
		return wire.StatusInsufficientResources
	}
	at, last := wire.BeginBuffer(r.w), -1
	status := wire.StatusOK
	for _, name := range list {
		xattr, err := r.findEA(f.inode, name)
		var value []byte
		if err == nil {
			value, err = f.inode.GetXattr(&r.who, xattr)
		}
		switch {
		case len(asked) == 0 && (err == memstore.ErrNoXattr || len(value) > maxEA):
			f.nextEA++ // removed a moment ago, or more than can be told
			continue
		case len(value) > maxEA:
			return wire.StatusEATooLarge
		case err != nil && err != memstore.ErrNoXattr:
			return r.status(err)
		}
		if (len(r.w.B)-at+3)&^3+wire.EASize(name, value) > room {
			if last < 0 {
				return wire.StatusBufferTooSmall
			}
			if len(asked) > 0 || q.Flags&eaSingle == 0 {
				status = wire.StatusBufferOverflow
			}
			break
		}
		r.w.B, last = wire.AppendEA(r.w.B, last, strings.ToUpper(name), value)
		if len(asked) == 0 {
			f.nextEA++
		}
		if q.Flags&eaSingle != 0 {
			break
		}
	}
	wire.EndBuffer(r.w, at)
	return status
}

// eaNames reads the names that a query asks for, MS-FSCC section 2.4.15.1.
func eaNames(b []byte) (names []string, ok bool) {
	for len(b) > 0 {
		if len(b) < 6 || len(b) < 6+int(b[4]) {
			return nil, false
		}
		next := int64(binary.LittleEndian.Uint32(b))
		names = append(names, string(b[5:5+int(b[4])]))
		if next == 0 {
			break
		}
		if next < 6+int64(b[4]) || next >= int64(len(b)) {
			return nil, false
		}
		b = b[next:]
	}
	return names, true
}

// eaSize is how long the list of all extended attributes is.
func (r *request) eaSize(i *memstore.Inode) uint32 {
	all, _ := i.ListXattr(&r.who)
	n := 0
	for _, x := range all {
		if isEA(x) {
			value, _ := i.GetXattr(&r.who, x)
			if len(value) <= maxEA {
				n = (n+3)&^3 + wire.EASize(x[len(eaPrefix):], value)
			}
		}
	}
	return uint32(n)
}
