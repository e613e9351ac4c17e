package smb

import (
	"strings"
	"unicode/utf8"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Names in a store may have any byte but zero and the slash. On the wire a few
// characters have a meaning, and clients send others in their place, from the
// private range of Unicode, as macOS and Linux do (Services for Macintosh).
const (
	privateFirst = 0xF001
	// reserved[i] stands for the character 0xF020 + i.
	reserved = `"*:<>?\|`
	// At the end of a name.
	privateSpace = 0xF028
	privateDot   = 0xF029
)

// appendName appends a stored name in UTF-16, with what is reserved replaced: also a
// space or dot at its end, where Windows takes them off.
func appendName(b []byte, name string) []byte {
	plain := !cutByWindows(name)
	for i := 0; plain && i < len(name); i++ {
		if c := name[i]; c < 0x20 || strings.IndexByte(reserved, c) >= 0 {
			plain = false
		}
	}
	if !plain {
		name = replaceReserved(name)
	}
	return wire.AppendUTF16(b, name)
}

func cutByWindows(name string) bool {
	return (strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ")) && name != "." && name != ".."
}

func replaceReserved(name string) string {
	var b []byte
	last := len(name)
	if cutByWindows(name) {
		last--
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch k := strings.IndexByte(reserved, c); {
		case i == last && c == ' ':
			b = utf8.AppendRune(b, privateSpace)
		case i == last:
			b = utf8.AppendRune(b, privateDot)
		case k >= 0:
			b = utf8.AppendRune(b, rune(0xF020+k))
		case c < 0x20:
			b = utf8.AppendRune(b, rune(0xF000)+rune(c))
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// fromWire puts back what was replaced in a name from a client.
func fromWire(name string) string {
	if !strings.Contains(name, "\xEF\x80") { // U+F000 to U+F03F begin so
		return name
	}
	b := make([]byte, 0, len(name))
	for rest := name; rest != ""; {
		c, n := utf8.DecodeRuneInString(rest)
		switch {
		case c < privateFirst || c > privateDot: // bytes that are no UTF-8 too
			b = append(b, rest[:n]...)
		case c < 0xF020:
			b = append(b, byte(c))
		case int(c-0xF020) < len(reserved):
			b = append(b, reserved[c-0xF020])
		case c == privateSpace:
			b = append(b, ' ')
		default:
			b = append(b, '.')
		}
		rest = rest[n:]
	}
	return string(b)
}

// path is what a client's path stands for.
type path struct {
	dir     *memstore.Inode // holds the name; nil for the share's root
	name    string          // as it is stored, or as the client wrote it if there is none
	written string          // name as the client wrote it
	inode   *memstore.Inode // nil: there is none of that name
	stream  string          // of the inode; "" is the file itself
	quota   bool            // it is called as the file of quotas
	data    bool            // that it is data is said, which a directory has none of
}

// quotaFile is where clients ask for the quotas of a share. There are none, which they
// hear when they ask: it is the root by another name.
const quotaFile = `$Extend\$Quota:$Q:$INDEX_ALLOCATION`

// find finds what a path stands for, from the share's root. A symlink on the way
// is for the client to follow: then errorData says where it leads.
func (r *request) find(raw []byte) (p path, status wire.Status) {
	text := wire.String(raw)
	root := r.t.exp.Root
	if text == "" || strings.EqualFold(text, quotaFile) {
		return path{inode: root, quota: text != ""}, wire.StatusOK
	}
	if text[0] == '\\' {
		return p, wire.StatusInvalidParameter
	}
	if !strings.Contains(text, ":") {
		text = strings.ReplaceAll(text, "/", `\`) // as Samba does
	}
	var room [16]string
	parts := room[:0]
	for part := range strings.SplitSeq(text, `\`) {
		parts = append(parts, part)
	}
	parts, status = foldDots(parts)
	if status != wire.StatusOK || len(parts) == 0 {
		return path{inode: root}, status
	}
	last := len(parts) - 1
	leaf, stream, data, status := cutStream(parts[last])
	if status != wire.StatusOK {
		return p, status
	}
	p.stream, p.data = stream, data
	if last == 0 && leaf == "" { // a stream of the root
		p.inode = root
		return p, wire.StatusOK
	}
	dir := root
	for k, part := range parts {
		if k == last {
			part = leaf
		}
		if status := checkPart(part); status != wire.StatusOK {
			return p, status
		}
		name := fromWire(part)
		i, stored, err := r.lookup(dir, name)
		if err == memstore.ErrNotExist && name != part {
			// It may be called so, by another protocol.
			if j, as, err2 := r.lookup(dir, part); err2 == nil {
				i, stored, err = j, as, nil
			}
		}
		if k == last {
			p.dir, p.name, p.written, p.inode = dir, stored, name, i
			switch err {
			case nil:
				return p, wire.StatusOK
			case memstore.ErrNotExist:
				p.name = name
				return p, wire.StatusOK
			case memstore.ErrNotDir:
				return p, wire.StatusPathNotFound
			}
			return p, r.status(err)
		}
		switch {
		case err == memstore.ErrNotExist, err == memstore.ErrNotDir:
			return p, wire.StatusPathNotFound
		case err != nil:
			return p, r.status(err)
		case i.Type() == memstore.TypeSymlink:
			return p, r.stopOnSymlink(i, strings.Join(parts[k+1:], `\`), true)
		case i.Type() != memstore.TypeDir:
			return p, wire.StatusPathNotFound
		}
		dir = i
	}
	panic("smb: a path without an end")
}

// lookup finds a name without regard to case, and that as written first.
func (r *request) lookup(dir *memstore.Inode, name string) (i *memstore.Inode, stored string, err error) {
	i, err = dir.Lookup(&r.who, name)
	if err != memstore.ErrNotExist {
		return i, name, err
	}
	i, stored, err = dir.LookupFold(&r.who, name)
	if err == memstore.ErrNotExist {
		if i, stored, err = r.lookupShort(dir, name); err == memstore.ErrNotExist {
			stored = ""
		}
	}
	return i, stored, err
}

// foldDots takes ".." and the part before it out of a path, whatever that is, as
// Windows and Samba do. There is nothing above a share's root.
func foldDots(parts []string) ([]string, wire.Status) {
	kept := parts[:0]
	for _, part := range parts {
		if part != ".." {
			kept = append(kept, part)
			continue
		}
		up := len(kept) - 1
		if up < 0 {
			return nil, wire.StatusPathSyntaxBad
		}
		if status := checkPart(kept[up]); status != wire.StatusOK {
			return nil, status
		}
		kept = kept[:up]
	}
	return kept, wire.StatusOK
}

// cutStream takes a stream's name, "name:stream:type", off the last part of a path.
// data says that there is one, if only that of the file's data: "name::$DATA".
func cutStream(part string) (leaf, stream string, data bool, status wire.Status) {
	leaf, rest, ok := strings.Cut(part, ":")
	if !ok {
		return part, "", false, wire.StatusOK
	}
	stream, kind, typed := strings.Cut(rest, ":")
	switch {
	case typed && !strings.EqualFold(kind, "$DATA"), strings.ContainsAny(stream, "\x00/"), !typed && stream == "":
		return "", "", false, wire.StatusNameInvalid
	}
	return leaf, stream, true, wire.StatusOK
}

// checkPart tells whether a part of a path can be a name.
func checkPart(part string) wire.Status {
	if part == "" || part == "." || part == ".." {
		return wire.StatusNameInvalid
	}
	for i := range len(part) {
		if c := part[i]; c < 0x20 || strings.IndexByte(`"*/:<>?|`, c) >= 0 {
			return wire.StatusNameInvalid
		}
	}
	return wire.StatusOK
}

// stopOnSymlink tells the client where a symlink leads, and what of the path was not
// looked at: MS-SMB2 section 2.2.2.2.1. A target that begins at the root cannot be
// followed by the client: what is there is the server's.
func (r *request) stopOnSymlink(i *memstore.Inode, unparsed string, more bool) wire.Status {
	target, err := i.Readlink(&r.who)
	if err != nil {
		return r.status(err)
	}
	if more {
		unparsed = `\` + unparsed
	}
	name := appendTarget(nil, target)
	le := func(b []byte, n int) []byte { return append(b, byte(n), byte(n>>8)) }
	b := make([]byte, 4, 28+2*len(name))
	b = append(b, "SYML"...) // the tag 0x4C4D5953
	b = append(b, 0x0C, 0, 0, 0xA0)
	b = le(b, 12+2*len(name))
	b = le(b, wire.UTF16Len(unparsed))
	b = le(b, len(name)) // substitute name
	b = le(b, len(name))
	b = le(b, 0) // print name
	b = le(b, len(name))
	flags := byte(1) // relative
	if strings.HasPrefix(target, "/") {
		flags = 0
	}
	b = append(b, flags, 0, 0, 0)
	b = append(append(b, name...), name...)
	n := len(b) - 4
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	r.errorData = b
	return wire.StatusStoppedOnSymlink
}

// appendTarget appends a symlink's target as clients want it, with backslashes.
func appendTarget(b []byte, target string) []byte {
	for i, part := range strings.Split(target, "/") {
		if i > 0 {
			b = append(b, '\\', 0)
		}
		b = appendName(b, part)
	}
	return b
}
