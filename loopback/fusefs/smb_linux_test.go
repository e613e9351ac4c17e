package fusefs_test

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"ramserver/export"
	"ramserver/export/smb"
	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/loopback/coherence"
	"ramserver/memstore"
)

// serveSMB serves a store until the test ends, and returns where.
func serveSMB(t *testing.T, store *memstore.Store) string {
	t.Helper()
	table, err := export.New(&export.Export{Name: "ramdisk", Store: store, Root: store.Root()})
	if err != nil {
		t.Fatal(err)
	}
	users, err := smb.NewUsers("", smb.User{Name: "root", Hash: ntlm.HashPassword("pass")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := smb.New(smb.Config{Exports: table, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// smbClient is a client by SMB, which opens everything that it works on.
type smbClient struct{ *smbtest.Client }

func newSMBClient(t *testing.T, addr string) smbClient {
	t.Helper()
	c, err := smbtest.Dial(t.Context(), addr, smbtest.Options{User: "root", Password: "pass", Share: "ramdisk"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return smbClient{c}
}

// What a file is opened for, MS-SMB2 section 2.2.13.1.
const (
	readData, writeData, readAttrs, writeAttrs = 1 << 0, 1 << 1, 1 << 7, 1 << 8
	del, readRights, writeRights               = 1 << 16, 1 << 17, 1 << 18
)

// with opens a file, or makes it, for as long as do takes.
func (s smbClient) with(name string, access, disposition uint32, do func(*smbtest.File) error) error {
	f, err := s.Open(smbtest.OpenArgs{Path: name, Access: access | readAttrs, Share: smbtest.ShareAll, Disposition: disposition,
		Contexts: []wire.CreateContext{{Name: "SecD", Data: smbtest.Descriptor(smbtest.DACL, 0o644, 0, 0)}}})
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

func (s smbClient) Do(c coherence.Call) (a coherence.Answer) {
	le := binary.LittleEndian
	write := func(f *smbtest.File) error {
		_, err := f.Write(c.Off, c.Data)
		return err
	}
	var err error
	switch c.Op {
	case "create":
		c.Off = 0
		err = s.with(c.Name, writeData, wire.FileOverwriteIf, write)
	case "write":
		err = s.with(c.Name, writeData, wire.FileOpen, write)
	case "append":
		err = s.with(c.Name, writeData, wire.FileOpen, func(f *smbtest.File) error {
			b, err := f.Info(wire.FileStandard)
			if err != nil {
				return err
			}
			c.Off = int64(le.Uint64(b[8:]))
			return write(f)
		})
	case "truncate":
		err = s.with(c.Name, writeData, wire.FileOpen, func(f *smbtest.File) error {
			return f.SetInfo(wire.FileEndOfFile, le.AppendUint64(nil, uint64(c.Off)))
		})
	case "chmod":
		err = s.with(c.Name, writeRights, wire.FileOpen, func(f *smbtest.File) error {
			return f.SetSecurity(smbtest.DACL, uint16(c.Off), 0, 0)
		})
	case "rename":
		err = s.with(c.Name, del, wire.FileOpen, func(f *smbtest.File) error {
			return f.SetInfo(wire.FileRename, smbtest.Rename(c.To, true))
		})
	case "link":
		err = s.with(c.Name, writeAttrs, wire.FileOpen, func(f *smbtest.File) error {
			return f.SetInfo(wire.FileLink, smbtest.Rename(c.To, false))
		})
	case "remove":
		err = s.with(c.Name, del, wire.FileOpen, (*smbtest.File).Remove)
		// What a process has closed the kernel may not have told of yet.
		nothing := func(*smbtest.File) error { return nil }
		for range 1000 {
			if err != nil || s.with(c.Name, 0, wire.FileOpen, nothing) != wire.StatusDeletePending {
				break
			}
			time.Sleep(time.Millisecond)
		}
	case "list":
		err = s.with("", readData, wire.FileOpen, func(f *smbtest.File) (err error) {
			a.Names, err = f.Names()
			return err
		})
		a.Names = slices.DeleteFunc(a.Names, func(name string) bool { return name == "." || name == ".." })
		slices.Sort(a.Names)
	case "see":
		err = s.with(c.Name, readData|readRights, wire.FileOpen, func(f *smbtest.File) error {
			b, err := f.Info(wire.FileAll)
			if err != nil {
				return err
			}
			mode, _, _, err := f.Security()
			if err != nil {
				return err
			}
			a.Size, a.Nlink, a.Mode = int64(le.Uint64(b[48:])), uint64(le.Uint32(b[56:])), uint32(mode)
			a.Data, err = f.Read(0, int(a.Size)+1)
			if err == wire.StatusEndOfFile {
				err = nil
			}
			return err
		})
	}
	if err != nil {
		return refused(err)
	}
	return a
}

// TestSMBBeside: what a client of SMB has open, locked or removed means the same to
// local processes, and the other way.
func TestSMBBeside(t *testing.T) {
	dir, store, _ := newMount(t)
	c, sh := newSMBClient(t, serveSMB(t, store)), newShell(t, dir)
	const (
		noWrite  = smbtest.ShareAll &^ wire.ShareWrite
		noDelete = smbtest.ShareAll &^ wire.ShareDelete
	)
	open := func(path string, access, share uint32) func() (*smbtest.File, error) {
		return func() (*smbtest.File, error) {
			return c.Open(smbtest.OpenArgs{Path: path, Access: access | readAttrs, Share: share, Disposition: wire.FileOpen})
		}
	}
	busy := func(what string) string { return "bash: line 1: " + what + ": Device or resource busy" }
	local := func(line, want string) {
		t.Helper()
		if got := sh.run(line + " 2>&1 | sed 's/line [0-9]*/line 1/'"); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", line, got, want)
		}
	}
	must := func(f *smbtest.File, err error) *smbtest.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	refused := func(err error, want wire.Status) {
		t.Helper()
		if err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}

	// Share modes.
	local("echo data >f; cat f", "data")
	f := must(open("f", readData, noWrite)())
	local("(echo more >>f)", busy("f"))
	local("cat f", "data")
	f.Close()
	local("(echo more >>f); cat f", "data\nmore")
	sh.run("exec 3>>f")
	_, err := open("f", readData, noWrite)()
	refused(err, wire.StatusSharingViolation)
	sh.run("exec 3>&-")

	// Data.
	f = must(open("f", readData|writeData|del, smbtest.ShareAll)())
	if _, err := f.Write(0, []byte("DATA")); err != nil {
		t.Fatal(err)
	}
	local("cat f", "DATA\nmore")
	sh.run("echo end >>f")
	if b, err := f.Read(0, 100); string(b) != "DATA\nmore\nend\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}

	// Locks.
	lock := wire.LockElement{Offset: 0, Length: 4, Flags: wire.LockExclusive | wire.LockNoWait}
	if err := f.Lock(lock); err != nil {
		t.Fatal(err)
	}
	local("exec 4<f; flock -n 4 || echo locked", "locked")
	local("cat f", "cat: f: Device or resource busy")
	lock.Flags = wire.LockUnlock
	if err := f.Lock(lock); err != nil {
		t.Fatal(err)
	}
	sh.run("exec 4<>f; flock -n 4")
	lock.Flags = wire.LockExclusive | wire.LockNoWait
	refused(f.Lock(lock), wire.StatusLockNotGranted)
	sh.run("exec 4>&-")

	// Names.
	if err := f.SetInfo(wire.FileRename, smbtest.Rename("g", false)); err != nil {
		t.Fatal(err)
	}
	local("ls; cat f", "g\ncat: f: No such file or directory")
	sh.run("mv g h")
	must(open("h", readAttrs, smbtest.ShareAll)()).Close()

	// Removed by SMB, when it is closed; and by a process, at once.
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	local("ls; cat h", "h\ncat: h: Device or resource busy")
	f.Close()
	local("ls; cat h", "cat: h: No such file or directory")
	local("echo new >h; cat h", "new")
	f = must(open("h", readData, noDelete)())
	local("rm h", "rm: cannot remove 'h': Device or resource busy")
	f.Close()
	f = must(open("h", readData, smbtest.ShareAll)())
	local("rm h; ls", "")
	if b, err := f.Read(0, 100); string(b) != "new\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	f.Close()

	// Changes.
	root := must(c.Open(smbtest.OpenArgs{Access: readData, Share: smbtest.ShareAll, Disposition: wire.FileOpen}))
	for _, change := range []struct {
		line string
		want []smbtest.Change
	}{
		{"mkdir d", []smbtest.Change{{Action: 1, Path: "d"}}},
		{"touch d/x", []smbtest.Change{{Action: 1, Path: `d\x`}}},
		{"mv d/x d/y", []smbtest.Change{{Action: 4, Path: `d\x`}, {Action: 5, Path: `d\y`}}},
		{"rm d/y", []smbtest.Change{{Action: 2, Path: `d\y`}}},
	} {
		call := root.Notify(wire.FilterFileName|wire.FilterDirName, true, 4096)
		if !call.Waits() {
			t.Fatal("it does not wait")
		}
		sh.run(change.line)
		got, err := call.Changes()
		if err != nil || len(got) == 0 || got[0] != change.want[0] {
			t.Errorf("%s: %+v, %v; want %+v", change.line, got, err, change.want)
		}
		// Two changes may be told of one by one.
		for len(got) < len(change.want) && err == nil {
			var more []smbtest.Change
			more, err = root.Notify(wire.FilterFileName|wire.FilterDirName, true, 4096).Changes()
			got = append(got, more...)
		}
		if err != nil || len(got) != len(change.want) || got[len(got)-1] != change.want[len(got)-1] {
			t.Errorf("%s: %+v, %v; want %+v", change.line, got, err, change.want)
		}
	}
}
