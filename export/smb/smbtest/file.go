package smbtest

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"ramserver/export/smb/wire"
)

var le = binary.LittleEndian

// OpenArgs is CREATE, MS-SMB2 section 2.2.13.
type OpenArgs struct {
	Path        string // from the share's root, with backslashes
	Access      uint32
	Attributes  uint32
	Share       uint32
	Disposition uint32
	Options     uint32
	Contexts    []wire.CreateContext
}

// ShareAll denies nothing to others.
const ShareAll = wire.ShareRead | wire.ShareWrite | wire.ShareDelete

// File is something open.
type File struct {
	c  *Client
	ID wire.FileID
	// Action is what CREATE did.
	Action uint32
	// Contexts are what it tells besides, by their names.
	Contexts map[string][]byte
}

// Open opens or makes a file or directory.
func (c *Client) Open(a OpenArgs) (*File, error) { return c.StartOpen(a).Opened() }

// StartOpen begins to open a file.
func (c *Client) StartOpen(a OpenArgs) *Call {
	name := wire.AppendUTF16(nil, a.Path)
	var w wire.Writer
	w.B = make([]byte, wire.HeaderSize)
	w.Uint16(57)
	w.Uint16(0)
	w.Uint32(2) // impersonation
	w.Uint64(0)
	w.Uint64(0)
	w.Uint32(a.Access)
	w.Uint32(a.Attributes)
	w.Uint32(a.Share)
	w.Uint32(a.Disposition)
	w.Uint32(a.Options)
	w.Uint16(wire.HeaderSize + 56)
	w.Uint16(uint16(len(name)))
	at := len(w.B)
	w.Uint64(0)
	w.Bytes(name)
	if len(a.Contexts) > 0 {
		w.Align(8)
		le.PutUint32(w.B[at:], uint32(len(w.B)))
		begin := len(w.B)
		for k, x := range a.Contexts {
			one := len(w.B)
			w.Uint32(0)
			w.Uint16(16)
			w.Uint16(uint16(len(x.Name)))
			w.Uint16(0)
			w.Uint16(uint16(16+len(x.Name)+7) &^ 7)
			w.Uint32(uint32(len(x.Data)))
			w.Bytes([]byte(x.Name))
			w.Align(8)
			w.Bytes(x.Data)
			if k < len(a.Contexts)-1 {
				w.Align(8)
				le.PutUint32(w.B[one:], uint32(len(w.B)-one))
			}
		}
		le.PutUint32(w.B[at+4:], uint32(len(w.B)-begin))
	} else if len(name) == 0 {
		w.Uint8(0) // a body has one byte more than it has fixed ones
	}
	return c.Start(wire.CommandCreate, 0, w.B[wire.HeaderSize:])
}

// Opened waits for what StartOpen began, MS-SMB2 section 2.2.14.
func (r *Call) Opened() (*File, error) {
	reply, err := r.Wait()
	switch {
	case err != nil:
		return nil, err
	case len(reply) < 88:
		return nil, errReply
	}
	f := &File{c: r.c, Action: le.Uint32(reply[4:]), ID: wire.FileID{Persistent: le.Uint64(reply[64:]), Volatile: le.Uint64(reply[72:])},
		Contexts: make(map[string][]byte)}
	b, ok := buffer(reply, le.Uint32(reply[80:]), le.Uint32(reply[84:]))
	for ok && len(b) > 0 {
		if ok = len(b) >= 16; !ok {
			break
		}
		next := uint64(le.Uint32(b))
		name, ok1 := part(b, uint32(le.Uint16(b[4:])), uint32(le.Uint16(b[6:])))
		data, ok2 := part(b, uint32(le.Uint16(b[10:])), le.Uint32(b[12:]))
		f.Contexts[string(name)] = data
		if next == 0 {
			next = uint64(len(b))
		}
		if ok = ok1 && ok2 && next <= uint64(len(b)); ok {
			b = b[next:]
		}
	}
	if !ok {
		return nil, errReply
	}
	return f, nil
}

// buffer is n bytes at an offset from the header of a message with this body.
func buffer(body []byte, off, n uint32) ([]byte, bool) {
	if n == 0 {
		return nil, true
	}
	return part(body, off-wire.HeaderSize, n)
}

func part(b []byte, off, n uint32) ([]byte, bool) {
	if uint64(off)+uint64(n) > uint64(len(b)) {
		return nil, false
	}
	return b[off:][:n], true
}

// Close closes the file.
func (f *File) Close() error {
	var w wire.Writer
	w.Uint16(24)
	w.Uint16(0)
	w.Uint32(0)
	w.B = f.ID.Append(w.B)
	_, err := f.c.Do(wire.CommandClose, 0, w.B)
	return err
}

// Read reads up to n bytes, MS-SMB2 section 2.2.19.
func (f *File) Read(off int64, n int) ([]byte, error) {
	var w wire.Writer
	w.Uint16(49)
	w.Uint16(wire.ReadDataOffset)
	w.Uint32(uint32(n))
	w.Uint64(uint64(off))
	w.B = f.ID.Append(w.B)
	w.Uint64(0)
	w.Uint64(0)
	w.Uint8(0)
	reply, err := f.c.Do(wire.CommandRead, n, w.B)
	if err != nil {
		return nil, err
	}
	if len(reply) < wire.ReadReplySize {
		return nil, errReply
	}
	data, ok := buffer(reply, uint32(reply[2]), le.Uint32(reply[4:]))
	if !ok {
		return nil, errReply
	}
	return data, nil
}

// Write writes, and returns how many bytes were.
func (f *File) Write(off int64, data []byte) (int, error) {
	reply, err := f.StartWrite(off, data).Wait()
	if err != nil {
		return 0, err
	}
	if len(reply) < 16 {
		return 0, errReply
	}
	return int(le.Uint32(reply[4:])), nil
}

// StartWrite begins to write, MS-SMB2 section 2.2.21.
func (f *File) StartWrite(off int64, data []byte) *Call {
	var w wire.Writer
	w.Uint16(49)
	w.Uint16(wire.HeaderSize + 48)
	w.Uint32(uint32(len(data)))
	w.Uint64(uint64(off))
	w.B = f.ID.Append(w.B)
	w.Uint64(0)
	w.Uint64(0)
	w.Bytes(data)
	if len(data) == 0 {
		w.Uint8(0)
	}
	return f.c.Start(wire.CommandWrite, len(data), w.B)
}

// Lock locks or unlocks ranges, MS-SMB2 section 2.2.26.
func (f *File) Lock(elements ...wire.LockElement) error {
	_, err := f.StartLock(elements...).Wait()
	return err
}

// StartLock begins to lock.
func (f *File) StartLock(elements ...wire.LockElement) *Call {
	var w wire.Writer
	w.Uint16(48)
	w.Uint16(uint16(len(elements)))
	w.Uint32(0)
	w.B = f.ID.Append(w.B)
	for _, e := range elements {
		w.Uint64(e.Offset)
		w.Uint64(e.Length)
		w.Uint32(e.Flags)
		w.Uint32(0)
	}
	return f.c.Start(wire.CommandLock, 0, w.B)
}

// Ioctl has a control done, MS-SMB2 section 2.2.31. The output comes with an error
// too, if the server sends any.
func (f *File) Ioctl(code uint32, in []byte, max int) ([]byte, error) {
	reply, err := f.StartIoctl(code, in, max).Wait()
	if len(reply) < 48 || le.Uint16(reply) != 49 {
		if err == nil {
			err = errReply
		}
		return nil, err
	}
	out, ok := buffer(reply, le.Uint32(reply[32:]), le.Uint32(reply[36:]))
	if !ok {
		return nil, errReply
	}
	return out, err
}

// StartIoctl begins a control.
func (f *File) StartIoctl(code uint32, in []byte, max int) *Call {
	var w wire.Writer
	w.Uint16(57)
	w.Uint16(0)
	w.Uint32(code)
	w.B = f.ID.Append(w.B)
	w.Uint32(wire.HeaderSize + 56)
	w.Uint32(uint32(len(in)))
	w.Uint32(0)
	w.Uint64(0)
	w.Uint32(uint32(max))
	w.Uint32(wire.IoctlFSCTL)
	w.Uint32(0)
	w.Bytes(in)
	if len(in) == 0 {
		w.Uint8(0)
	}
	return f.c.Start(wire.CommandIoctl, max, w.B)
}

// Query asks for information, MS-SMB2 section 2.2.37, of which max bytes have room.
// What there is comes with an error too.
func (f *File) Query(a wire.QueryInfoRequest) ([]byte, error) {
	var w wire.Writer
	w.Uint16(41)
	w.Uint8(a.Type)
	w.Uint8(a.Class)
	w.Uint32(a.MaxOut)
	w.Uint16(wire.HeaderSize + 40)
	w.Uint16(0)
	w.Uint32(uint32(len(a.Input)))
	w.Uint32(a.Additional)
	w.Uint32(a.Flags)
	w.B = f.ID.Append(w.B)
	w.Bytes(a.Input)
	if len(a.Input) == 0 {
		w.Uint8(0)
	}
	reply, err := f.c.Do(wire.CommandQueryInfo, int(a.MaxOut), w.B)
	return output(reply, err)
}

// output is the buffer of a reply to QUERY_INFO, QUERY_DIRECTORY or CHANGE_NOTIFY.
func output(reply []byte, err error) ([]byte, error) {
	if err != nil && err != wire.StatusBufferOverflow {
		return nil, err
	}
	if len(reply) < 8 {
		return nil, errReply
	}
	b, ok := buffer(reply, uint32(le.Uint16(reply[2:])), le.Uint32(reply[4:]))
	if !ok {
		return nil, errReply
	}
	return b, err
}

// Info asks for a class of information about the file.
func (f *File) Info(class uint8) ([]byte, error) {
	return f.Query(wire.QueryInfoRequest{Type: wire.InfoFile, Class: class, MaxOut: 64 << 10})
}

// Set sets information, MS-SMB2 section 2.2.39.
func (f *File) Set(a wire.SetInfoRequest) error {
	_, err := f.StartSet(a).Wait()
	return err
}

// StartSet begins to set information.
func (f *File) StartSet(a wire.SetInfoRequest) *Call {
	var w wire.Writer
	w.Uint16(33)
	w.Uint8(a.Type)
	w.Uint8(a.Class)
	w.Uint32(uint32(len(a.Data)))
	w.Uint16(wire.HeaderSize + 32)
	w.Uint16(0)
	w.Uint32(a.Additional)
	w.B = f.ID.Append(w.B)
	w.Bytes(a.Data)
	if len(a.Data) == 0 {
		w.Uint8(0)
	}
	return f.c.Start(wire.CommandSetInfo, len(a.Data), w.B)
}

// SetInfo sets a class of information about the file.
func (f *File) SetInfo(class uint8, data []byte) error {
	return f.Set(wire.SetInfoRequest{Type: wire.InfoFile, Class: class, Data: data})
}

// Rename is the data of FileRename and FileLink, MS-FSCC section 2.4.42.
func Rename(path string, replace bool) []byte {
	name := wire.AppendUTF16(nil, path)
	b := make([]byte, 20, 24+len(name))
	if replace {
		b[0] = 1
	}
	le.PutUint32(b[16:], uint32(len(name)))
	b = append(b, name...)
	for len(b) < 24 {
		b = append(b, 0)
	}
	return b
}

// Remove has the file removed when it is closed by all.
func (f *File) Remove() error { return f.SetInfo(wire.FileDisposition, []byte{1}) }

// List lists a directory from its beginning, by a class whose entries have n bytes
// before their name, the length of which is at 60; in each reply as much as fits
// into max bytes.
func (f *File) List(class, flags uint8, pattern string, max int) ([]byte, error) {
	name := wire.AppendUTF16(nil, pattern)
	var w wire.Writer
	w.Uint16(33)
	w.Uint8(class)
	w.Uint8(flags)
	w.Uint32(0)
	w.B = f.ID.Append(w.B)
	w.Uint16(wire.HeaderSize + 32)
	w.Uint16(uint16(len(name)))
	w.Uint32(uint32(max))
	w.Bytes(name)
	return output(f.c.Do(wire.CommandQueryDirectory, max, w.B))
}

// Names are the names in the directory, as they are in the store.
func (f *File) Names() (names []string, err error) {
	const fixed = 80 // of an entry of DirIDFull
	for {
		b, err := f.List(wire.DirIDFull, 0, "*", 64<<10)
		if err == wire.StatusNoMoreFiles {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		for len(b) >= fixed {
			next := uint64(le.Uint32(b))
			name, ok := part(b, fixed, le.Uint32(b[60:]))
			if !ok || next > uint64(len(b)) {
				return nil, errReply
			}
			names = append(names, Name(wire.String(name)))
			if next == 0 {
				break
			}
			b = b[next:]
		}
	}
}

// Notify begins to wait for changes below a directory, MS-SMB2 section 2.2.35.
func (f *File) Notify(filter uint32, tree bool, max int) *Call {
	var w wire.Writer
	w.Uint16(32)
	if tree {
		w.Uint16(wire.NotifyTree)
	} else {
		w.Uint16(0)
	}
	w.Uint32(uint32(max))
	w.B = f.ID.Append(w.B)
	w.Uint32(filter)
	w.Uint32(0)
	return f.c.Start(wire.CommandChangeNotify, max, w.B)
}

// Change is one that CHANGE_NOTIFY tells of, MS-FSCC section 2.7.1.
type Change struct {
	Action uint32
	Path   string
}

// Changes waits for what Notify began.
func (r *Call) Changes() (all []Change, err error) {
	b, err := output(r.Wait())
	for err == nil && len(b) >= 12 {
		next := uint64(le.Uint32(b))
		name, ok := part(b, 12, le.Uint32(b[8:]))
		if !ok || next > uint64(len(b)) {
			return nil, errReply
		}
		all = append(all, Change{le.Uint32(b[4:]), Name(wire.String(name))})
		if next == 0 {
			break
		}
		b = b[next:]
	}
	return all, err
}

// Parts of a security descriptor, MS-DTYP section 2.4.7.
const (
	Owner = 1
	Group = 2
	DACL  = 4
)

// Security is the file's security descriptor, and by that its mode, owner and group.
func (f *File) Security() (mode uint16, uid, gid uint32, err error) {
	b, err := f.Query(wire.QueryInfoRequest{Type: wire.InfoSecurity, Additional: Owner | Group | DACL, MaxOut: 64 << 10})
	if err != nil {
		return 0, 0, 0, err
	}
	// number is the last of the SID that b begins with.
	number := func(b []byte) uint32 {
		if len(b) < 8 || len(b) < 8+4*int(b[1]) || b[1] == 0 {
			err = errReply
			return 0
		}
		return le.Uint32(b[4+4*int(b[1]):])
	}
	at := func(field int) []byte {
		if len(b) < 20 || uint64(le.Uint32(b[field:])) > uint64(len(b)) {
			err = errReply
			return nil
		}
		return b[le.Uint32(b[field:]):]
	}
	uid, gid = number(at(4)), number(at(8))
	// The first entry of the list is the mode's.
	if list := at(16); len(list) >= 16 {
		mode = uint16(number(list[16:]))
	}
	return mode, uid, gid, err
}

// SetSecurity sets what the parts say: those of a mode, an owner and a group.
func (f *File) SetSecurity(parts uint32, mode uint16, uid, gid uint32) error {
	return f.Set(wire.SetInfoRequest{Type: wire.InfoSecurity, Additional: parts, Data: Descriptor(parts, mode, uid, gid)})
}

// Descriptor is a security descriptor with a mode as Linux's client says it, and
// owner and group as Samba numbers them.
func Descriptor(parts uint32, mode uint16, uid, gid uint32) []byte {
	sid := func(authority byte, numbers ...uint32) []byte {
		b := []byte{1, byte(len(numbers)), 0, 0, 0, 0, 0, authority}
		for _, n := range numbers {
			b = le.AppendUint32(b, n)
		}
		return b
	}
	b := make([]byte, 20)
	b[0] = 1
	le.PutUint16(b[2:], 0x8004) // self-relative, with a list
	add := func(field int, value []byte) {
		le.PutUint32(b[field:], uint32(len(b)))
		b = append(b, value...)
	}
	if parts&Owner != 0 {
		add(4, sid(22, 1, uid))
	}
	if parts&Group != 0 {
		add(8, sid(22, 2, gid))
	}
	if parts&DACL != 0 {
		who := sid(5, 88, 3, uint32(mode))
		list := []byte{2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}
		le.PutUint16(list[2:], uint16(16+len(who)))
		le.PutUint16(list[10:], uint16(8+len(who)))
		add(16, append(list, who...))
	}
	return b
}

// Path is a path of POSIX as the protocol has it: with backslashes, and with what
// is reserved replaced by characters of the private range, as other clients do.
func Path(p string) string {
	var b strings.Builder
	names := strings.Split(p, "/")
	for k, name := range names {
		if k > 0 {
			b.WriteByte('\\')
		}
		for n := 0; n < len(name); n++ {
			switch c := name[n]; {
			case c < 0x20:
				b.WriteRune(rune(0xF000) + rune(c))
			case strings.IndexByte(reserved, c) >= 0:
				b.WriteRune(rune(0xF020 + strings.IndexByte(reserved, c)))
			case (c == ' ' || c == '.') && n == len(name)-1 && name != "." && name != "..":
				b.WriteRune(map[byte]rune{' ': 0xF028, '.': 0xF029}[c])
			default:
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

const reserved = `"*:<>?\|`

// Name is what a name from the server stands for.
func Name(s string) string {
	var b []byte
	for len(s) > 0 {
		c, n := utf8.DecodeRuneInString(s)
		switch {
		case c >= 0xF001 && c < 0xF020:
			b = append(b, byte(c))
		case c >= 0xF020 && int(c-0xF020) < len(reserved):
			b = append(b, reserved[c-0xF020])
		case c == 0xF028:
			b = append(b, ' ')
		case c == 0xF029:
			b = append(b, '.')
		default:
			b = append(b, s[:n]...)
		}
		s = s[n:]
	}
	return string(b)
}
