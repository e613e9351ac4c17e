package smb

import (
	"hash/fnv"
	"strings"

	"ramserver/memstore"
)

// Programs for DOS know only names of eight characters and three, in capitals. What
// has another name is found by a short one too, which follows from it.

// short83 tells whether a name is short as it is.
func short83(name string) bool {
	base, ext, dot := strings.Cut(name, ".")
	if len(base) == 0 || len(base) > 8 || len(ext) > 3 || dot && ext == "" {
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; !shortChar(c) && !('a' <= c && c <= 'z') && (c != '.' || i != len(base)) {
			return false
		}
	}
	return true
}

func shortChar(c byte) bool {
	return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c != 0 && strings.IndexByte("_-~!#$%&'()@^`{}", c) >= 0
}

// dosName is the short name of a file. Files of one directory may have the same,
// if seldom.
func dosName(name string) string {
	if short83(name) {
		return strings.ToUpper(name)
	}
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	h := fnv.New32a()
	h.Write([]byte(strings.ToUpper(name)))
	n := h.Sum32()
	b := make([]byte, 0, 12)
	clean := func(s string, limit int) {
		for i := 0; i < len(s) && limit > 0; i++ {
			if c := strings.ToUpper(s[i : i+1])[0]; shortChar(c) && c != '~' {
				b = append(b, c)
				limit--
			}
		}
	}
	base, ext, _ := cutLast(name, ".")
	if base == "" {
		base, ext = name, ""
	}
	clean(base, 2)
	for len(b) < 6 {
		b = append(b, digits[n%36])
		n /= 36
	}
	b = append(b, '~', digits[n%36])
	if ext != "" {
		b = append(b, '.')
		clean(ext, 3)
	}
	return strings.TrimSuffix(string(b), ".")
}

// lookupShort finds what has a short name. It looks at every name, so it is asked
// only for one that no long name would be.
func (r *request) lookupShort(dir *memstore.Inode, name string) (i *memstore.Inode, stored string, err error) {
	if len(name) < 8 || name[6] != '~' || !short83(name) {
		return nil, "", memstore.ErrNotExist
	}
	name = strings.ToUpper(name)
	var entries [64]memstore.DirEntry
	for cookie := uint64(0); ; {
		n, eof, err := dir.ReadDir(&r.who, cookie, entries[:])
		if err != nil {
			return nil, "", memstore.ErrNotExist
		}
		for _, e := range entries[:n] {
			if !short83(e.Name) && dosName(e.Name) == name {
				return e.Inode, e.Name, nil
			}
			cookie = e.Cookie
		}
		if eof {
			return nil, "", memstore.ErrNotExist
		}
	}
}
