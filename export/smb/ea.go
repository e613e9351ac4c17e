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
