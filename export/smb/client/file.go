package client

import (
	"encoding/binary"

	"ramserver/export/smb/wire"
)

// connect is TREE_CONNECT.
func (c *Client) connect(share string) error {
	name := wire.AppendUTF16(nil, `\\server\`+share)
	w := c.Begin(wire.CommandTreeConnect, 0)
	w.Uint16(9)
	w.Uint16(0)
	w.Uint16(wire.HeaderSize + 8)
	w.Uint16(uint16(len(name)))
	w.Bytes(name)
	r, err := c.One()
	if err == nil {
		c.tree = r.TreeID
	}
	return err
}

// Rights of an access mask that suffice for most, MS-SMB2 section 2.2.13.1.1.
const (
	ReadData       = 1 << 0
	WriteData      = 1 << 1
	ReadAttributes = 1 << 7
	SetAttributes  = 1 << 8
	Delete         = 1 << 16
	Synchronize    = 1 << 20
)

// shareAll lets others read, write and delete.
const shareAll = wire.ShareRead | wire.ShareWrite | wire.ShareDelete

// Open is what CREATE is asked for.
type Open struct {
	Name        string // from the share's root, with backslashes
	Access      uint32
	Attributes  uint32
	Deny        uint32 // of ShareRead, ShareWrite and ShareDelete what others may not do
	Disposition uint32
	Options     uint32
}

func (o *Open) append(w *wire.Writer) {
	w.Uint16(57)
	w.Uint16(0) // no oplock
	w.Uint32(2) // impersonation
	w.Uint64(0)
	w.Uint64(0)
	w.Uint32(o.Access)
	w.Uint32(o.Attributes)
	w.Uint32(shareAll &^ o.Deny)
	w.Uint32(o.Disposition)
	w.Uint32(o.Options)
	w.Uint16(wire.HeaderSize + 56)
	n := len(w.B)
	w.Uint16(0)
	w.Uint64(0) // no contexts
	at := len(w.B)
	w.B = wire.AppendUTF16(w.B, o.Name)
	binary.LittleEndian.PutUint16(w.B[n:], uint16(len(w.B)-at))
	if len(w.B) == at {
		w.B = append(w.B, 0) // there is one byte at least
	}
}

// Attributes is what CREATE tells about a file, and Stat.
type Attributes struct {
	Times      wire.FileTimes
	Allocation uint64
	Size       uint64
	Attributes uint32
}

// Create is CREATE: it opens a file, or makes it.
func (c *Client) Create(o Open) (id wire.FileID, action uint32, a Attributes, err error) {
	o.append(c.Begin(wire.CommandCreate, 0))
	r, err := c.One()
	if err != nil {
		return id, 0, a, err
	}
	b := r.Body()
	if len(b) < 88 {
		return id, 0, a, errReply
	}
	le := binary.LittleEndian
	a.decode(b[8:])
	id = wire.FileID{Persistent: le.Uint64(b[64:]), Volatile: le.Uint64(b[72:])}
	return id, le.Uint32(b[4:]), a, nil
}

// decode reads 52 bytes, as CREATE and CLOSE and FileNetworkOpen have them.
func (a *Attributes) decode(b []byte) {
	le := binary.LittleEndian
	a.Times = wire.FileTimes{Creation: le.Uint64(b), Access: le.Uint64(b[8:]), Write: le.Uint64(b[16:]), Change: le.Uint64(b[24:])}
	a.Allocation, a.Size, a.Attributes = le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint32(b[48:])
}

// CloseFile is CLOSE.
func (c *Client) CloseFile(id wire.FileID) error {
	appendClose(c.Begin(wire.CommandClose, 0), id)
	_, err := c.One()
	return err
}

func appendClose(w *wire.Writer, id wire.FileID) {
	w.Uint16(24)
	w.Uint16(0)
	w.Uint32(0)
	w.B = id.Append(w.B)
}

// BeginRead begins a frame with a READ of n bytes.
func (c *Client) BeginRead(id wire.FileID, off int64, n int) {
	w := c.Begin(wire.CommandRead, n)
	w.Uint16(49)
	w.Uint16(wire.ReadDataOffset)
	w.Uint32(uint32(n))
	w.Uint64(uint64(off))
	w.B = id.Append(w.B)
	w.Uint64(0)
	w.Uint64(0)
	w.Uint8(0)
}

// Data is the data of a READ's reply; it is valid as long as the reply.
func (r *Reply) Data() ([]byte, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	b := r.Body()
	if len(b) < wire.ReadReplySize {
		return nil, errReply
	}
	at, n := int(b[2]), int(binary.LittleEndian.Uint32(b[4:]))
	if at > len(r.Msg) || n > len(r.Msg)-at {
		return nil, errReply
	}
	return r.Msg[at:][:n], nil
}

// ReadAt is READ.
func (c *Client) ReadAt(id wire.FileID, b []byte, off int64) (int, error) {
	c.BeginRead(id, off, len(b))
	r, err := c.One()
	if err != nil {
		return 0, err
	}
	data, err := r.Data()
	return copy(b, data), err
}

// BeginWrite begins a frame with a WRITE.
func (c *Client) BeginWrite(id wire.FileID, b []byte, off int64) {
	w := c.Begin(wire.CommandWrite, len(b))
	w.Uint16(49)
	w.Uint16(wire.HeaderSize + 48)
	w.Uint32(uint32(len(b)))
	w.Uint64(uint64(off))
	w.B = id.Append(w.B)
	w.Uint64(0)
	w.Uint64(0)
	w.Bytes(b)
}

// Written is how many bytes a WRITE's reply says were written.
func (r *Reply) Written() (int, error) {
	if err := check(r); err != nil {
		return 0, err
	}
	if len(r.Body()) < 16 {
		return 0, errReply
	}
	return int(binary.LittleEndian.Uint32(r.Body()[4:])), nil
}

// WriteAt is WRITE.
func (c *Client) WriteAt(id wire.FileID, b []byte, off int64) (int, error) {
	c.BeginWrite(id, b, off)
	r, err := c.One()
	if err != nil {
		return 0, err
	}
	return r.Written()
}

// Stat asks for the attributes of a name by one frame of CREATE, QUERY_INFO and
// CLOSE, as Linux and macOS do.
func (c *Client) Stat(name string) (a Attributes, err error) {
	o := Open{Name: name, Access: ReadAttributes, Disposition: wire.FileOpen}
	o.append(c.Begin(wire.CommandCreate, 0))
	appendQuery(c.Add(wire.CommandQueryInfo, 0), wire.AnyFile, wire.FileNetworkOpen, 56)
	appendClose(c.Add(wire.CommandClose, 0), wire.AnyFile)
	replies, err := c.all()
	if err != nil {
		return a, err
	}
	b, err := replies[1].info()
	if err != nil {
		return a, err
	}
	if len(b) < 56 {
		return a, errReply
	}
	a.decode(b)
	return a, nil
}

// all is Do, and the first error of the replies.
func (c *Client) all() ([]Reply, error) {
	replies, err := c.Do()
	for i := range replies {
		if err == nil {
			err = check(&replies[i])
		}
	}
	return replies, err
}

func appendQuery(w *wire.Writer, id wire.FileID, class uint8, room int) {
	w.Uint16(41)
	w.Uint8(wire.InfoFile)
	w.Uint8(class)
	w.Uint32(uint32(room))
	w.Uint64(0) // no input
	w.Uint32(0)
	w.Uint32(0)
	w.B = id.Append(w.B)
}

// info is what QUERY_INFO or QUERY_DIRECTORY has answered.
func (r *Reply) info() ([]byte, error) {
	b := r.Body()
	if len(b) < 8 {
		return nil, errReply
	}
	at, n := int(binary.LittleEndian.Uint16(b[2:])), int(binary.LittleEndian.Uint32(b[4:]))
	if at > len(r.Msg) || n > len(r.Msg)-at {
		return nil, errReply
	}
	return r.Msg[at:][:n], nil
}

// Query is QUERY_INFO of a class of information about an open file, of at most room
// bytes. The result is valid until the next call.
func (c *Client) Query(id wire.FileID, class uint8, room int) ([]byte, error) {
	appendQuery(c.Begin(wire.CommandQueryInfo, room), id, class, room)
	r, err := c.One()
	if err != nil {
		return nil, err
	}
	return r.info()
}

// Set is SET_INFO of a class of information about an open file.
func (c *Client) Set(id wire.FileID, class uint8, info []byte) error {
	w := c.Begin(wire.CommandSetInfo, len(info))
	w.Uint16(33)
	w.Uint8(wire.InfoFile)
	w.Uint8(class)
	w.Uint32(uint32(len(info)))
	w.Uint16(wire.HeaderSize + 32)
	w.Uint16(0)
	w.Uint32(0)
	w.B = id.Append(w.B)
	w.Bytes(info)
	_, err := c.One()
	return err
}

// Remove removes a name by one frame of CREATE, which says that the file goes with
// its last open, and CLOSE, as Linux does.
func (c *Client) Remove(name string) error {
	o := Open{Name: name, Access: Delete, Disposition: wire.FileOpen, Options: wire.OptDeleteOnClose | wire.OptOpenReparse}
	o.append(c.Begin(wire.CommandCreate, 0))
	appendClose(c.Add(wire.CommandClose, 0), wire.AnyFile)
	_, err := c.all()
	return err
}

// Mkdir makes a directory by one frame of CREATE and CLOSE.
func (c *Client) Mkdir(name string) error {
	o := Open{Name: name, Access: ReadAttributes, Disposition: wire.FileCreate, Options: wire.OptDirectory}
	o.append(c.Begin(wire.CommandCreate, 0))
	appendClose(c.Add(wire.CommandClose, 0), wire.AnyFile)
	_, err := c.all()
	return err
}

// listSize is how many bytes of names List asks for at once.
const listSize = 64 << 10

// List calls each for every entry of a directory, "." and ".." among them, with its
// name in UTF-16, which is valid until it returns.
func (c *Client) List(name string, each func(name []byte, a *Attributes)) error {
	id, _, _, err := c.Create(Open{Name: name, Access: ReadData | ReadAttributes | Synchronize, Disposition: wire.FileOpen, Options: wire.OptDirectory})
	if err != nil {
		return err
	}
	for {
		w := c.Begin(wire.CommandQueryDirectory, listSize)
		w.Uint16(33)
		w.Uint8(wire.DirIDBoth)
		w.Uint8(0)
		w.Uint32(0)
		w.B = id.Append(w.B)
		w.Uint16(wire.HeaderSize + 32)
		w.Uint16(2)
		w.Uint32(listSize)
		w.Bytes([]byte{'*', 0})
		r, err := c.One()
		if err != nil {
			return err
		}
		if r.Status == wire.StatusNoMoreFiles {
			return c.CloseFile(id)
		}
		b, err := r.info()
		if err != nil {
			return err
		}
		if err := eachEntry(b, each); err != nil {
			return err
		}
	}
}

// eachEntry walks entries of class FileIdBothDirectoryInformation, MS-FSCC section
// 2.4.22.
func eachEntry(b []byte, each func(name []byte, a *Attributes)) error {
	le := binary.LittleEndian
	for b != nil {
		const fixed = 104
		if len(b) < fixed {
			return errReply
		}
		var a Attributes
		a.Times = wire.FileTimes{Creation: le.Uint64(b[8:]), Access: le.Uint64(b[16:]), Write: le.Uint64(b[24:]), Change: le.Uint64(b[32:])}
		a.Size, a.Allocation, a.Attributes = le.Uint64(b[40:]), le.Uint64(b[48:]), le.Uint32(b[56:])
		n := le.Uint32(b[60:])
		if uint64(n) > uint64(len(b)-fixed) {
			return errReply
		}
		each(b[fixed:][:n], &a)
		switch next := le.Uint32(b); {
		case next == 0:
			b = nil
		case uint64(next) >= uint64(len(b)):
			return errReply
		default:
			b = b[next:]
		}
	}
	return nil
}
