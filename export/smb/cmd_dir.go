package smb

import (
	"encoding/binary"
	"unicode"
	"unicode/utf16"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// listing is where in a directory an open file's QUERY_DIRECTORY is. The zero
// listing has not begun.
type listing struct {
	pattern []uint16 // in capitals
	exact   string   // the pattern, if it is one name
	next    uint64   // what was listed last: 0 nothing, 1 ".", 2 "..", else a cookie
	found   bool     // something was listed, by this pattern or one before it
}

// queryDirectory is QUERY_DIRECTORY, MS-SMB2 section 3.3.5.18.
func (r *request) queryDirectory() wire.Status {
	var q wire.DirRequest
	if !q.Decode(r.msg) || int(q.MaxOut) > r.c.maxIO() || !r.paid(max(len(q.Pattern), int(q.MaxOut))) {
		return wire.StatusInvalidParameter
	}
	f, status := r.openFile(q.ID)
	if f == nil {
		return status
	}
	if f.inode.Type() != memstore.TypeDir {
		return wire.StatusInvalidParameter
	}
	if f.access&rightReadData == 0 {
		return wire.StatusAccessDenied
	}
	fixed, ok := wire.DirEntrySize(q.Class)
	switch {
	case !ok:
		return wire.StatusInvalidInfoClass
	case int(q.MaxOut) < fixed:
		return wire.StatusInfoLengthMismatch
	}
	l := f.listing
	if l.pattern == nil || q.Flags&(wire.DirRestart|wire.DirReopen) != 0 {
		again := l.pattern != nil && q.Flags&wire.DirReopen == 0
		if l, ok = newListing(q.Pattern); !ok {
			return wire.StatusNameInvalid
		}
		l.found = again // MS-FSA section 2.1.5.6.3: the first query alone finds no such file
	}
	room := min(int(q.MaxOut), smallIO)
	if !r.grow(wire.BufferSize + room) {
		return wire.StatusInsufficientResources
	}
	out := dirReply{r: r, q: &q, dir: f.inode, at: wire.BeginBuffer(r.w), last: -1, max: room}
	if status := out.list(f, &l); status != wire.StatusOK {
		if status != wire.StatusPending {
			f.listing = l
		}
		return status
	}
	f.listing = l
	wire.EndBuffer(r.w, out.at)
	return wire.StatusOK
}

// newListing begins a listing. A pattern may be twice as long as a name, and no
// longer, so that it costs little to keep and to compare.
func newListing(pattern []byte) (l listing, ok bool) {
	if len(pattern) > 4*memstore.MaxName {
		return l, false
	}
	name := wire.String(pattern)
	wild := false
	for _, c := range name {
		switch c {
		case '\\', '/':
			return l, false
		case '*', '?', '<', '>', '"':
			wild = true
		}
	}
	if name == "" {
		return l, false
	}
	if !wild && name != "." && name != ".." {
		l.exact = fromWire(name)
	}
	l.pattern = make([]uint16, len(pattern)/2)
	for i := range l.pattern {
		l.pattern[i] = upper(binary.LittleEndian.Uint16(pattern[2*i:]))
	}
	return l, true
}

// upper is a unit of UTF-16 as it counts where case does not, nor what stands for a
// space or a dot at the end.
func upper(c uint16) uint16 {
	if c < 0x80 {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		return c
	}
	switch c {
	case privateSpace:
		return ' '
	case privateDot:
		return '.'
	}
	if u := unicode.ToUpper(rune(c)); !utf16.IsSurrogate(rune(c)) && u <= 0xFFFF {
		return uint16(u)
	}
	return c
}

// dirReply is a reply to QUERY_DIRECTORY that is being made.
type dirReply struct {
	r    *request
	q    *wire.DirRequest
	dir  *memstore.Inode
	at   int // where its buffer begins
	last int // where the last entry begins, -1 if there is none
	max  int // bytes
}

// list appends what follows in a listing, as much as fits.
func (d *dirReply) list(f *file, l *listing) wire.Status {
	c, dir := &d.r.who, f.inode
	if l.exact != "" {
		if l.next > 0 {
			return wire.StatusNoMoreFiles
		}
		i, stored, err := d.r.lookup(dir, l.exact)
		switch {
		case err == memstore.ErrNotExist || err == memstore.ErrNameTooLong:
			return d.end(l)
		case err != nil:
			return d.r.status(err)
		}
		if _, status := d.add(stored, i); status != wire.StatusOK {
			return status
		}
		l.next, l.found = 1, true
		return d.end(l)
	}
	for ; l.next < 2; l.next++ {
		name, i := ".", dir
		if l.next == 1 {
			name = ".."
			if dir != f.t.exp.Root {
				i = dir.Parent()
			}
		}
		if more, status := d.match(l, name, i); !more {
			return d.stop(l, status)
		}
	}
	var entries [64]memstore.DirEntry
	for {
		n, eof, err := dir.ReadDir(c, l.next, entries[:])
		if err != nil {
			return d.stop(l, d.r.status(err))
		}
		for _, e := range entries[:n] {
			if more, status := d.match(l, e.Name, e.Inode); !more {
				return d.stop(l, status)
			}
			l.next = e.Cookie
		}
		if eof {
			return d.end(l)
		}
	}
}

// match appends an entry if its name matches. more is false if it has to come
// later.
func (d *dirReply) match(l *listing, name string, i *memstore.Inode) (more bool, status wire.Status) {
	var room [2 * memstore.MaxName]byte
	if !matches(l.pattern, appendName(room[:0], name)) {
		return true, wire.StatusOK
	}
	if d.last >= 0 && d.q.Flags&wire.DirSingle != 0 {
		return false, wire.StatusOK
	}
	more, status = d.add(name, i)
	l.found = l.found || d.last >= 0
	return more, status
}

// stop ends a reply before an entry that is left for the next one.
func (d *dirReply) stop(l *listing, status wire.Status) wire.Status {
	if d.last >= 0 {
		d.r.giveUp()
		return wire.StatusOK
	}
	return status
}

// end ends the reply when nothing follows.
func (d *dirReply) end(l *listing) wire.Status {
	switch {
	case d.last >= 0:
		return wire.StatusOK
	case l.found:
		return wire.StatusNoMoreFiles
	}
	l.found = true
	return wire.StatusNoSuchFile
}

// add appends an entry. more is false if it does not fit, or must wait.
func (d *dirReply) add(name string, i *memstore.Inode) (more bool, status wire.Status) {
	w := d.r.w
	begin := len(w.B)
	if d.last >= 0 {
		begin = (begin-d.at+7)&^7 + d.at
	}
	fixed, _ := wire.DirEntrySize(d.q.Class)
	n := wire.UTF16Len(name)
	if begin-d.at+fixed+n > d.max {
		return false, wire.StatusInfoLengthMismatch
	}
	var info wire.FileInfo
	var apple wire.AppleEntry
	forMac := d.q.Class == wire.DirIDBoth && d.r.s.apple&(wire.AppleDirAttrs|wire.AppleDirAttrs2) != 0
	if d.q.Class != wire.DirNames {
		a, err := i.GetAttr(&d.r.who)
		if err == memstore.ErrStale {
			return true, wire.StatusOK // removed a moment ago
		}
		if err != nil {
			return false, d.r.status(err)
		}
		info = infoOf(&a)
		self := name == "." || name == ".."
		switch {
		case forMac && self:
			apple = d.r.appleEntry(nil, i, &a)
		case forMac:
			apple = d.r.appleEntry(d.dir, i, &a)
		case d.q.Class != wire.DirInfo:
			info.EASize = d.r.eaSize(i)
		}
		if !forMac && !self && !short83(name) {
			info.ShortName = dosName(name)
		}
	}
	for len(w.B) < begin {
		w.B = append(w.B, 0)
	}
	if d.last >= 0 {
		binary.LittleEndian.PutUint32(w.B[d.last:], uint32(begin-d.last))
	}
	d.last = begin
	w.B = info.AppendDirEntry(w.B, d.q.Class, n)
	if forMac {
		apple.Put(w.B[begin:], info.Tag != 0)
	}
	w.B = appendName(w.B, name)
	return true, wire.StatusOK
}

// matches tells whether a name in UTF-16 fits a pattern in capitals, MS-FSA section
// 2.1.4.4. It follows all ways through the pattern at once.
func matches(pattern []uint16, name []byte) bool {
	if len(pattern) == 1 && pattern[0] == '*' {
		return true
	}
	var room [2][128]bool
	now, next := room[0][:0], room[1][:0]
	for range len(pattern) + 1 {
		now, next = append(now, false), append(next, false)
	}
	lastDot := -1
	for k := 0; k+1 < len(name); k += 2 {
		if upper(binary.LittleEndian.Uint16(name[k:])) == '.' {
			lastDot = k
		}
	}
	now[0] = true
	for k := 0; k+1 < len(name); k += 2 {
		c := upper(binary.LittleEndian.Uint16(name[k:]))
		clear(next)
		alive := false
		for p, here := range now {
			if !here || p == len(pattern) {
				continue
			}
			stay, step, skip := false, false, false
			switch pattern[p] {
			case '*':
				stay, skip = true, true
			case '<': // anything up to the last dot
				stay, skip = c != '.' || k < lastDot, true
			case '?':
				step = true
			case '>': // any character of this part, or none at its end
				step, skip = c != '.', c == '.'
			case '"':
				step = c == '.'
			default:
				step = pattern[p] == c
			}
			if stay {
				next[p] = true
			}
			if step {
				next[p+1] = true
			}
			if skip {
				now[p+1] = true
			}
			alive = alive || stay || step || skip
		}
		if !alive {
			return false
		}
		now, next = next, now
	}
	for p, here := range now {
		switch {
		case !here:
		case p == len(pattern):
			return true
		case pattern[p] == '*' || pattern[p] == '<' || pattern[p] == '>' || pattern[p] == '"':
			now[p+1] = true
		}
	}
	return false
}
