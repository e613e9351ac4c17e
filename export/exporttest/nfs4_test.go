package exporttest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// nfs4Session is NFS version 4, from minor version 1 on in a session.
type nfs4Session struct {
	s     *client.Session
	h     []byte
	minor uint32
}

// clientNames numbers the clients of version 4, each of which needs a name.
var clientNames atomic.Uint64

func enterNFS4(t *testing.T, addr string, minor uint32, cred memstore.Cred) nfs4Session {
	c, err := client.Dial(t.Context(), addr, client.Options{UID: cred.UID, GID: cred.GID, Groups: cred.Groups})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	name := fmt.Sprint("client ", clientNames.Add(1))
	var s *client.Session
	if minor == nfs4.Minor0 {
		s, err = c.Minor0(name, 1)
	} else {
		s, err = c.Session(client.SessionOptions{Owner: name, Minor: minor})
	}
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	return nfs4Session{s, root, minor}
}

func (s nfs4Session) root() handle { return s.h }

// lookup finds "." and ".." as a client's system does.
func (s nfs4Session) lookup(dir handle, name string) (handle, error) {
	d := dir.([]byte)
	switch name {
	case ".":
		return d, nil
	case "..":
		if bytes.Equal(d, s.h) {
			return d, nil
		}
		return s.s.Parent(d)
	}
	return s.s.Lookup(d, name)
}

var types4 = map[nfs4.Type]memstore.Type{nfs4.TypeReg: memstore.TypeFile, nfs4.TypeDir: memstore.TypeDir, nfs4.TypeLnk: memstore.TypeSymlink,
	nfs4.TypeFIFO: memstore.TypeFIFO, nfs4.TypeSock: memstore.TypeSocket, nfs4.TypeBlk: memstore.TypeBlock, nfs4.TypeChr: memstore.TypeChar}

func (s nfs4Session) getattr(h handle) (memstore.Attr, error) {
	a, err := s.s.GetAttr(h.([]byte))
	if err != nil {
		return memstore.Attr{}, err
	}
	ns := func(t nfs4.Time) int64 { return t.Sec*1e9 + int64(t.Nsec) }
	uid, err := strconv.ParseUint(a.Owner, 10, 32)
	if err != nil {
		return memstore.Attr{}, err
	}
	gid, err := strconv.ParseUint(a.Group, 10, 32)
	return memstore.Attr{
		Ino: a.FileID, Change: a.Change, Type: types4[a.Type], Mode: uint16(a.Mode), Nlink: a.Nlink, UID: uint32(uid), GID: uint32(gid),
		Size: int64(a.Size), Used: int64(a.Used), Major: a.Major, Minor: a.Minor, Atime: ns(a.Atime), Mtime: ns(a.Mtime), Ctime: ns(a.Ctime),
	}, err
}

func wireTime4(ns int64) *nfs4.Time { return &nfs4.Time{Sec: ns / 1e9, Nsec: uint32(ns % 1e9)} }

func wireAttr4(a memstore.SetAttr) (w client.SetAttr) {
	if a.Mask&memstore.SetMode != 0 {
		w.Mode = new(uint32)
		*w.Mode = uint32(a.Mode)
	}
	if a.Mask&memstore.SetUID != 0 {
		w.UID = &a.UID
	}
	if a.Mask&memstore.SetGID != 0 {
		w.GID = &a.GID
	}
	if a.Mask&memstore.SetSize != 0 {
		w.Size = new(uint64)
		*w.Size = uint64(a.Size)
	}
	if a.Mask&memstore.SetAtime != 0 {
		w.Atime = wireTime4(a.Atime)
	}
	if a.Mask&memstore.SetMtime != 0 {
		w.Mtime = wireTime4(a.Mtime)
	}
	if a.Mask&memstore.SetAtimeNow != 0 {
		w.Atime = &nfs4.Time{Nsec: client.ServerTime}
	}
	if a.Mask&memstore.SetMtimeNow != 0 {
		w.Mtime = &nfs4.Time{Nsec: client.ServerTime}
	}
	return w
}

// setattr does what a guard is for by VERIFY.
func (s nfs4Session) setattr(h handle, a memstore.SetAttr) error {
	w := wireAttr4(a)
	if a.Mask&memstore.SetGuard == 0 {
		return s.s.SetAttr(h.([]byte), nfs4.AnonymousStateid, w)
	}
	var v xdr.Writer
	wireTime4(a.GuardCtime).Encode(&v)
	return s.s.Do(
		client.Op{Op: nfs4.OpPutFH, Args: &nfs4.FH{FH: h.([]byte)}},
		client.Op{Op: nfs4.OpVerify, Args: &nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrTimeMetadata), Vals: v.B}},
		client.Op{Op: nfs4.OpSetAttr, Args: &nfs4.SetAttrArgs{Attr: w.Fattr()}, Res: new(nfs4.SetAttrRes)})
}

func (s nfs4Session) access(h handle) (got memstore.Access, err error) {
	res, err := s.s.Access(h.([]byte), 0x3f)
	if res.Access&nfs4.AccessRead != 0 {
		got |= memstore.AccessRead
	}
	if res.Access&(nfs4.AccessModify|nfs4.AccessExtend) != 0 {
		got |= memstore.AccessWrite
	}
	if res.Access&(nfs4.AccessLookup|nfs4.AccessExecute) != 0 {
		got |= memstore.AccessExecute
	}
	return got, err
}

func (s nfs4Session) read(h handle, off int64, n int) ([]byte, bool, error) {
	res, err := s.s.Read(h.([]byte), nfs4.AnonymousStateid, uint64(off), uint32(n))
	return res.Data, res.EOF, err
}

func (s nfs4Session) write(h handle, off int64, data []byte) (int, error) {
	res, err := s.s.Write(h.([]byte), nfs4.AnonymousStateid, uint64(off), data, nfs4.Unstable)
	return int(res.Count), err
}

func (s nfs4Session) create(dir handle, name string, c memstore.Create) error {
	d := dir.([]byte)
	w := wireAttr4(c.Set)
	if c.Type != memstore.TypeFile {
		for wire, typ := range types4 {
			if typ == c.Type {
				_, err := s.s.Create(d, nfs4.CreateArgs{Type: wire, Target: c.Target, Major: c.Major, Minor: c.Minor, Name: name, Attr: w.Fattr()})
				return err
			}
		}
	}
	a := nfs4.OpenArgs{Access: nfs4.ShareRead, Owner: nfs4.Owner{Owner: []byte("owner")}, Create: true, Verf: c.Verifier, Attr: w.Fattr(), Name: name}
	switch c.Exist {
	case memstore.ExistFail:
		a.Mode = nfs4.Guarded
	case memstore.ExistVerifier:
		a.Mode = nfs4.Exclusive41
		if s.minor == nfs4.Minor0 {
			a.Mode = nfs4.Exclusive
		}
	}
	res, fh, err := s.s.Open(d, a)
	if err != nil {
		return err
	}
	return s.s.CloseFile(fh, res.Stateid)
}

func (s nfs4Session) remove(dir handle, name string) error { return s.s.Remove(dir.([]byte), name) }
func (s nfs4Session) rmdir(dir handle, name string) error  { return s.s.Remove(dir.([]byte), name) }

func (s nfs4Session) rename(from handle, fromName string, to handle, toName string) error {
	return s.s.Rename(from.([]byte), fromName, to.([]byte), toName)
}

func (s nfs4Session) link(h, dir handle, name string) error {
	return s.s.Link(h.([]byte), dir.([]byte), name)
}

func (s nfs4Session) readlink(h handle) (string, error) { return s.s.ReadLink(h.([]byte)) }

func (s nfs4Session) list(dir handle) ([]string, error) {
	names := []string{".", ".."} // which there are none of on the wire
	a := nfs4.ReadDirArgs{DirCount: 4096, MaxCount: 4096}
	for {
		res, err := s.s.ReadDir(dir.([]byte), a)
		if err != nil {
			return nil, err
		}
		for _, e := range res.Entries {
			names = append(names, strings.Clone(e.Name))
			a.Cookie = e.Cookie
		}
		if res.EOF {
			return names, nil
		}
		a.CookieVerf = res.CookieVerf
	}
}
