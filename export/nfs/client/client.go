// Package client is a small client of NFS versions 3 and 4 that works on the
// wire: no cache, no retransmission, no reconnection. Suites call its procedures
// one by one; benchmarks drive thousands of calls through [Client.Run], or
// [Session.Run] of version 4.
package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// Options says who a client is. The zero value is root by AUTH_SYS.
type Options struct {
	UID, GID   uint32
	Groups     []uint32 // supplementary groups, at most 16
	Anonymous  bool     // AUTH_NONE: nobody in particular
	SourcePort int      // 0: any
	// Timeout is how long a call may take, and how long Run may go without a
	// reply. 0 is a minute.
	Timeout time.Duration
}

// maxReply bounds a reply record, in bytes.
const maxReply = 16 << 20

// Client is a connection to a server. Its methods may be called by several
// goroutines; they take turns. An RPC error is a type of package rpc, and a
// procedure that was refused is an nfs3.Status or nfs3.MountStatus.
type Client struct {
	conn    net.Conn
	timeout time.Duration
	header  rpc.Call // what every call begins with

	mu   sync.Mutex // held over a whole exchange
	xid  uint32
	out  xdr.Writer
	in   []byte      // input buffer of Run
	vecs net.Buffers // output vector of Run
}

// Dial connects to a server at a TCP address.
func Dial(ctx context.Context, addr string, o Options) (*Client, error) {
	d := net.Dialer{}
	if o.SourcePort != 0 {
		d.LocalAddr = &net.TCPAddr{Port: o.SourcePort}
	}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c, err := New(conn, o)
	if err != nil {
		conn.Close()
	}
	return c, err
}

// New returns a client on a connection that stands. The SourcePort of o is not
// looked at.
func New(conn net.Conn, o Options) (*Client, error) {
	// Two clients of one address must not look like one that sends a call again
	// (RFC 5531 section 9): a server keeps the replies to such calls.
	c := &Client{conn: conn, timeout: o.Timeout, xid: rand.Uint32()}
	if c.timeout == 0 {
		c.timeout = time.Minute
	}
	if o.Anonymous {
		return c, nil
	}
	cred := &c.header.Cred
	*cred = rpc.Cred{Flavor: rpc.AuthSys, Machine: "client", UID: o.UID, GID: o.GID, NGroups: len(o.Groups)}
	if len(o.Groups) > len(cred.Group) {
		return nil, fmt.Errorf("client: %d supplementary groups: AUTH_SYS carries at most %d", len(o.Groups), len(cred.Group))
	}
	copy(cred.Group[:], o.Groups)
	return c, nil
}

// Close closes the connection; a call in progress fails.
func (c *Client) Close() error { return c.conn.Close() }

// Conn is the connection, for tests that send what no client would.
func (c *Client) Conn() net.Conn { return c.conn }

// AppendCall writes the header of a call with the client's credential. The XID
// is left to [Client.Exchange] or [Client.Run].
func (c *Client) AppendCall(w *xdr.Writer, program, version, proc uint32) {
	h := c.header
	h.Program, h.Version, h.Procedure = program, version, proc
	h.Encode(w)
}

// Call makes one call and decodes its results. A nil args or res is void; what
// is left behind the results is an error.
func (c *Client) Call(program, version, proc uint32, args interface{ Encode(*xdr.Writer) }, res interface{ Decode(*xdr.Reader) }) error {
	var w xdr.Writer
	c.AppendCall(&w, program, version, proc)
	if args != nil {
		args.Encode(&w)
	}
	reply, err := c.Exchange(w.B)
	if err != nil {
		return err
	}
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		return err
	}
	if res != nil {
		res.Decode(&r)
	}
	if r.Err() == nil && r.Len() != 0 {
		return fmt.Errorf("client: reply to procedure %d has %d bytes behind its results", proc, r.Len())
	}
	return r.Err()
}

// Exchange sends a message with a new XID in one record, and returns the reply,
// which must have that XID.
func (c *Client) Exchange(msg []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return nil, err
	}
	c.xid++
	c.out.B = c.out.B[:0]
	at := rpc.BeginRecord(&c.out)
	c.out.B = append(c.out.B, msg...)
	c.out.PatchUint32(at+rpc.MarkSize, c.xid)
	rpc.EndRecord(&c.out, at, 0)
	if _, err := c.conn.Write(c.out.B); err != nil {
		return nil, err
	}
	reply, err := ReadRecord(c.conn)
	if err != nil {
		return nil, err
	}
	if len(reply) < 4 || binary.BigEndian.Uint32(reply) != c.xid {
		return nil, errXID
	}
	return reply, nil
}

var errXID = errors.New("client: reply to a call that is not outstanding")

// ReadRecord reads one record of any number of fragments, up to 16 MiB.
func ReadRecord(r io.Reader) ([]byte, error) {
	var rec []byte
	for {
		var mark [rpc.MarkSize]byte
		if _, err := io.ReadFull(r, mark[:]); err != nil {
			return nil, err
		}
		n, last := rpc.MarkOf(mark[:])
		if n > maxReply-len(rec) {
			return nil, fmt.Errorf("client: reply of more than %d bytes", maxReply)
		}
		at := len(rec)
		rec = append(rec, make([]byte, n)...)
		if _, err := io.ReadFull(r, rec[at:]); err != nil {
			return nil, err
		}
		if last {
			return rec, nil
		}
	}
}

// nfs makes a call of the NFS program; status points at the Status of res.
func (c *Client) nfs(proc uint32, args interface{ Encode(*xdr.Writer) }, res interface{ Decode(*xdr.Reader) }, status *nfs3.Status) error {
	if err := c.Call(rpc.ProgramNFS, nfs3.Version, proc, args, res); err != nil {
		return err
	}
	if *status != nfs3.OK {
		return *status
	}
	return nil
}

// Null is NULL: it does nothing.
func (c *Client) Null() error {
	return c.Call(rpc.ProgramNFS, nfs3.Version, nfs3.ProcNull, nil, nil)
}

// GetAttr is GETATTR.
func (c *Client) GetAttr(fh []byte) (nfs3.Fattr, error) {
	var res nfs3.GetAttrRes
	err := c.nfs(nfs3.ProcGetAttr, &nfs3.FHArgs{FH: fh}, &res, &res.Status)
	return res.Attr, err
}

// SetAttr is SETATTR.
func (c *Client) SetAttr(a nfs3.SetAttrArgs) (res nfs3.WccRes, err error) {
	err = c.nfs(nfs3.ProcSetAttr, &a, &res, &res.Status)
	return res, err
}

// Lookup is LOOKUP.
func (c *Client) Lookup(dir []byte, name string) (res nfs3.LookupRes, err error) {
	err = c.nfs(nfs3.ProcLookup, &nfs3.DirOp{Dir: dir, Name: name}, &res, &res.Status)
	return res, err
}

// Access is ACCESS.
func (c *Client) Access(fh []byte, want uint32) (res nfs3.AccessRes, err error) {
	err = c.nfs(nfs3.ProcAccess, &nfs3.AccessArgs{FH: fh, Access: want}, &res, &res.Status)
	return res, err
}

// ReadLink is READLINK.
func (c *Client) ReadLink(fh []byte) (res nfs3.ReadLinkRes, err error) {
	err = c.nfs(nfs3.ProcReadLink, &nfs3.FHArgs{FH: fh}, &res, &res.Status)
	return res, err
}

// Read is READ.
func (c *Client) Read(fh []byte, offset uint64, count uint32) (res nfs3.ReadRes, err error) {
	err = c.nfs(nfs3.ProcRead, &nfs3.ReadArgs{FH: fh, Offset: offset, Count: count}, &res, &res.Status)
	return res, err
}

// Write is WRITE of the whole of data.
func (c *Client) Write(fh []byte, offset uint64, data []byte, how nfs3.Stable) (res nfs3.WriteRes, err error) {
	a := nfs3.WriteArgs{FH: fh, Offset: offset, Count: uint32(len(data)), Stable: how, Data: data}
	err = c.nfs(nfs3.ProcWrite, &a, &res, &res.Status)
	return res, err
}

// Create is CREATE.
func (c *Client) Create(a nfs3.CreateArgs) (res nfs3.CreateRes, err error) {
	err = c.nfs(nfs3.ProcCreate, &a, &res, &res.Status)
	return res, err
}

// Mkdir is MKDIR.
func (c *Client) Mkdir(dir []byte, name string, attr nfs3.Sattr) (res nfs3.CreateRes, err error) {
	a := nfs3.MkdirArgs{Where: nfs3.DirOp{Dir: dir, Name: name}, Attr: attr}
	err = c.nfs(nfs3.ProcMkdir, &a, &res, &res.Status)
	return res, err
}

// Symlink is SYMLINK.
func (c *Client) Symlink(dir []byte, name, target string, attr nfs3.Sattr) (res nfs3.CreateRes, err error) {
	a := nfs3.SymlinkArgs{Where: nfs3.DirOp{Dir: dir, Name: name}, Attr: attr, Target: target}
	err = c.nfs(nfs3.ProcSymlink, &a, &res, &res.Status)
	return res, err
}

// Mknod is MKNOD.
func (c *Client) Mknod(a nfs3.MknodArgs) (res nfs3.CreateRes, err error) {
	err = c.nfs(nfs3.ProcMknod, &a, &res, &res.Status)
	return res, err
}

// Remove is REMOVE.
func (c *Client) Remove(dir []byte, name string) (res nfs3.WccRes, err error) {
	err = c.nfs(nfs3.ProcRemove, &nfs3.DirOp{Dir: dir, Name: name}, &res, &res.Status)
	return res, err
}

// Rmdir is RMDIR.
func (c *Client) Rmdir(dir []byte, name string) (res nfs3.WccRes, err error) {
	err = c.nfs(nfs3.ProcRmdir, &nfs3.DirOp{Dir: dir, Name: name}, &res, &res.Status)
	return res, err
}

// Rename is RENAME.
func (c *Client) Rename(fromDir []byte, from string, toDir []byte, to string) (res nfs3.RenameRes, err error) {
	a := nfs3.RenameArgs{From: nfs3.DirOp{Dir: fromDir, Name: from}, To: nfs3.DirOp{Dir: toDir, Name: to}}
	err = c.nfs(nfs3.ProcRename, &a, &res, &res.Status)
	return res, err
}

// Link is LINK: it gives fh the further name in dir.
func (c *Client) Link(fh, dir []byte, name string) (res nfs3.LinkRes, err error) {
	a := nfs3.LinkArgs{FH: fh, Link: nfs3.DirOp{Dir: dir, Name: name}}
	err = c.nfs(nfs3.ProcLink, &a, &res, &res.Status)
	return res, err
}

// ReadDir is READDIR: one page of names.
func (c *Client) ReadDir(a nfs3.ReadDirArgs) (res nfs3.ReadDirRes, err error) {
	err = c.nfs(nfs3.ProcReadDir, &a, &res, &res.Status)
	return res, err
}

// ReadDirPlus is READDIRPLUS: one page of names with attributes and handles.
func (c *Client) ReadDirPlus(a nfs3.ReadDirPlusArgs) (res nfs3.ReadDirPlusRes, err error) {
	err = c.nfs(nfs3.ProcReadDirPlus, &a, &res, &res.Status)
	return res, err
}

// List reads a whole directory by READDIRPLUS, "." and ".." included.
func (c *Client) List(dir []byte) ([]nfs3.EntryPlus, error) {
	a := nfs3.ReadDirPlusArgs{FH: dir, DirCount: 64 << 10, MaxCount: 64 << 10}
	var all []nfs3.EntryPlus
	for {
		res, err := c.ReadDirPlus(a)
		if err != nil {
			return all, err
		}
		all = append(all, res.Entries...)
		if res.EOF {
			return all, nil
		}
		if len(res.Entries) == 0 {
			return all, errors.New("client: READDIRPLUS answered no entries before the end")
		}
		a.Cookie, a.CookieVerf = res.Entries[len(res.Entries)-1].Cookie, res.CookieVerf
	}
}

// FSStat is FSSTAT.
func (c *Client) FSStat(fh []byte) (res nfs3.FSStatRes, err error) {
	err = c.nfs(nfs3.ProcFSStat, &nfs3.FHArgs{FH: fh}, &res, &res.Status)
	return res, err
}

// FSInfo is FSINFO.
func (c *Client) FSInfo(fh []byte) (res nfs3.FSInfoRes, err error) {
	err = c.nfs(nfs3.ProcFSInfo, &nfs3.FHArgs{FH: fh}, &res, &res.Status)
	return res, err
}

// PathConf is PATHCONF.
func (c *Client) PathConf(fh []byte) (res nfs3.PathConfRes, err error) {
	err = c.nfs(nfs3.ProcPathConf, &nfs3.FHArgs{FH: fh}, &res, &res.Status)
	return res, err
}

// Commit is COMMIT. A count of 0 is to the end of the file.
func (c *Client) Commit(fh []byte, offset uint64, count uint32) (res nfs3.CommitRes, err error) {
	err = c.nfs(nfs3.ProcCommit, &nfs3.CommitArgs{FH: fh, Offset: offset, Count: count}, &res, &res.Status)
	return res, err
}

// Walk looks up each part of a slash-separated path from dir on and returns the
// last one's handle.
func (c *Client) Walk(dir []byte, path string) ([]byte, error) {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' }) {
		res, err := c.Lookup(dir, name)
		if err != nil {
			return nil, fmt.Errorf("lookup of %q in %q: %w", name, path, err)
		}
		dir = res.FH
	}
	return dir, nil
}

// Mount is MNT of MOUNT version 3.
func (c *Client) Mount(path string) (res nfs3.MountRes, err error) {
	err = c.Call(rpc.ProgramMount, nfs3.MountVersion3, nfs3.MountProcMnt, &nfs3.MountPath{Path: path}, &res)
	if err == nil && res.Status != nfs3.MountOK {
		err = res.Status
	}
	return res, err
}

// Mount1 is MNT of MOUNT version 1.
func (c *Client) Mount1(path string) (res nfs3.MountRes1, err error) {
	err = c.Call(rpc.ProgramMount, nfs3.MountVersion1, nfs3.MountProcMnt, &nfs3.MountPath{Path: path}, &res)
	if err == nil && res.Status != nfs3.MountOK {
		err = res.Status
	}
	return res, err
}

// Mounts is DUMP: who mounted what, as far as the server knows.
func (c *Client) Mounts() (res nfs3.MountList, err error) {
	err = c.Call(rpc.ProgramMount, nfs3.MountVersion3, nfs3.MountProcDump, nil, &res)
	return res, err
}

// Unmount is UMNT.
func (c *Client) Unmount(path string) error {
	return c.Call(rpc.ProgramMount, nfs3.MountVersion3, nfs3.MountProcUmnt, &nfs3.MountPath{Path: path}, nil)
}

// UnmountAll is UMNTALL.
func (c *Client) UnmountAll() error {
	return c.Call(rpc.ProgramMount, nfs3.MountVersion3, nfs3.MountProcUmntAll, nil, nil)
}

// Exports is EXPORT.
func (c *Client) Exports() (res nfs3.ExportList, err error) {
	err = c.Call(rpc.ProgramMount, nfs3.MountVersion3, nfs3.MountProcExport, nil, &res)
	return res, err
}
