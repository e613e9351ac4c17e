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

// setEAs sets a list of extended attributes, FILE_FULL_EA_INFORMATION, MS-FSCC
// section 2.4.15. An empty value removes one. Whether the client may is known.
func (r *request) setEAs(i *memstore.Inode, b []byte) wire.Status {
	c := r.server()
	le := binary.LittleEndian
	for len(b) > 0 {
		if len(b) < 9 {
			return wire.StatusInvalidParameter
		}
		next, nameLen, valueLen := int64(le.Uint32(b)), int(b[5]), int(le.Uint16(b[6:]))
		if 9+nameLen+valueLen > len(b) || nameLen == 0 || next != 0 && (next < int64(9+nameLen+valueLen) || next >= int64(len(b))) {
			return wire.StatusInvalidParameter
		}
		name, value := string(b[8:8+nameLen]), b[9+nameLen:9+nameLen+valueLen]
		b = b[next:]
		xattr, err := r.findEA(i, name)
		switch {
		case err != nil:
			return r.status(err)
		case !isEA(xattr):
			return wire.StatusAccessDenied
		case valueLen > 0:
			_, err = i.SetXattr(c, xattr, value, memstore.XattrEither)
		default:
			if _, err = i.RemoveXattr(c, xattr); err == memstore.ErrNoXattr {
				err = nil
			}
		}
		if err != nil {
			return r.status(err)
		}
		if next == 0 {
			break
		}
	}
	return wire.StatusOK
}

// Flags of a query for extended attributes, MS-SMB2 section 2.2.37.
const (
	eaRestart = 1 << 0
	eaSingle  = 1 << 1
)

// queryEAs lists extended attributes, those that are asked for or, in several
// queries, all: MS-SMB2 section 3.3.5.20.1 and MS-FSCC section 2.4.15.
func (r *request) queryEAs(f *file, q *wire.QueryInfoRequest) wire.Status {
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
	at, last, room := wire.BeginBuffer(r.w), -1, min(int(q.MaxOut), smallIO)
	status := wire.StatusOK
	for _, name := range list {
		xattr, err := r.findEA(f.inode, name)
		var value []byte
		if err == nil {
			value, err = f.inode.GetXattr(&r.who, xattr)
		}
		switch {
		case err == memstore.ErrNoXattr && len(asked) == 0:
			continue // removed a moment ago
		case err != nil && err != memstore.ErrNoXattr:
			return r.status(err)
		}
		begin := len(r.w.B)
		r.w.B = wire.AppendEA(r.w.B, last, strings.ToUpper(name), value)
		if len(r.w.B)-at > room {
			r.w.B = r.w.B[:begin]
			if last < 0 {
				return wire.StatusBufferTooSmall
			}
			binary.LittleEndian.PutUint32(r.w.B[last:], 0)
			if len(asked) > 0 || q.Flags&eaSingle == 0 {
				status = wire.StatusBufferOverflow
			}
			break
		}
		if last < 0 {
			last = at
		} else {
			last += int(binary.LittleEndian.Uint32(r.w.B[last:]))
		}
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
	var b []byte
	last := -1
	for _, x := range all {
		if !isEA(x) {
			continue
		}
		value, _ := i.GetXattr(&r.who, x)
		begin := len(b)
		b = wire.AppendEA(b, last, x[len(eaPrefix):], value)
		last = (begin + 3) &^ 3
	}
	return uint32(len(b))
}
