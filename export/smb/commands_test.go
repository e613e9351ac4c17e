package smb

import (
	"bytes"
	"encoding/binary"
	"testing"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// enter is a client that says what is right, of the user "user" in the share
// "share".
func enter(t testing.TB, addr string) *smbtest.Client {
	t.Helper()
	c, err := smbtest.Dial(t.Context(), addr, smbtest.Options{User: "user", Password: "pass", Share: "share"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// rig is a server, its store's root and a client.
func rig(t testing.TB) (s *Server, root *memstore.Inode, c *smbtest.Client) {
	t.Helper()
	s, addr := newServer(t, nil)
	return s, s.cfg.Exports.All()[0].Root, enter(t, addr)
}

// open opens a file for everything, or makes it.
func open(t testing.TB, c *smbtest.Client, path string, change ...func(*smbtest.OpenArgs)) *smbtest.File {
	t.Helper()
	a := smbtest.OpenArgs{Path: path, Access: rightMaximum, Share: smbtest.ShareAll, Disposition: wire.FileOpenIf}
	for _, f := range change {
		f(&a)
	}
	f, err := c.Open(a)
	if err != nil {
		t.Fatalf("open %q: %v", path, err)
	}
	return f
}

// access has a file opened for these rights.
func access(rights uint32) func(*smbtest.OpenArgs) {
	return func(a *smbtest.OpenArgs) { a.Access = rights }
}

func option(bits uint32) func(*smbtest.OpenArgs) {
	return func(a *smbtest.OpenArgs) { a.Options |= bits }
}

// folder has a directory opened or made.
func folder(a *smbtest.OpenArgs) { a.Options |= wire.OptDirectory }

func write(t testing.TB, f *smbtest.File, off int64, data string) {
	t.Helper()
	if n, err := f.Write(off, []byte(data)); err != nil || n != len(data) {
		t.Fatalf("write: %d bytes, %v", n, err)
	}
}

func read(t testing.TB, f *smbtest.File, off int64, n int) string {
	t.Helper()
	b, err := f.Read(off, n)
	if err != nil && err != wire.StatusEndOfFile {
		t.Fatalf("read: %v", err)
	}
	return string(b)
}

// is tells whether an error is a status; StatusOK is none.
func is(err error, status wire.Status) bool {
	if status == wire.StatusOK {
		return err == nil
	}
	return err == status
}

var le = binary.LittleEndian

// numbers are 64-bit values.
func numbers(v ...uint64) (b []byte) {
	for _, n := range v {
		b = le.AppendUint64(b, n)
	}
	return b
}

// text is UTF-16.
func text(s string) []byte { return wire.AppendUTF16(nil, s) }

func cut(b []byte, n int) []byte { return bytes.Clone(b[:min(n, len(b))]) }
