package smb

import (
	"slices"
	"strings"
	"testing"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// streams lists a file's streams by their names.
func streams(t *testing.T, f *smbtest.File) (names []string) {
	t.Helper()
	b, err := f.Info(wire.FileStream)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		n := le.Uint32(b[4:])
		names = append(names, wire.String(b[24:24+n]))
		next := le.Uint32(b)
		if next == 0 {
			break
		}
		b = b[next:]
	}
	return names
}

// What Windows and macOS keep beside a file's data.
func TestStreams(t *testing.T) {
	_, root, c := rig(t)
	f := open(t, c, "f")
	write(t, f, 0, "data")
	if got := streams(t, f); !slices.Equal(got, []string{"::$DATA"}) {
		t.Errorf("without any: %q", got)
	}
	zone := open(t, c, "f:Zone.Identifier")
	write(t, zone, 0, "[ZoneTransfer]\r\nZoneId=3\r\n")
	info := open(t, c, "f:AFP_AfpInfo")
	write(t, info, 0, strings.Repeat("a", 60))
	fork := open(t, c, "f:AFP_Resource:$DATA")
	write(t, fork, 1<<20-1, "x")
	want := []string{"::$DATA", ":Zone.Identifier:$DATA", ":AFP_AfpInfo:$DATA", ":AFP_Resource:$DATA"}
	if got := streams(t, f); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	other := open(t, c, "F:ZONE.IDENTIFIER")
	if got := read(t, other, 0, 100); !strings.HasPrefix(got, "[ZoneTransfer]") {
		t.Errorf("by another case: %q", got)
	}
	other.Close()
	if got := read(t, f, 0, 100); got != "data" {
		t.Errorf("the file itself: %q", got)
	}
	if got := read(t, open(t, c, "f::$DATA"), 0, 100); got != "data" {
		t.Errorf("the file itself, by the long name: %q", got)
	}
	if b, err := fork.Info(wire.FileStandard); err != nil || le.Uint64(b[8:]) != 1<<20 {
		t.Errorf("size of a fork: %x, %v", b, err)
	}

	// They go with the file under its other name, and other protocols do not list them.
	if err := f.SetInfo(wire.FileRename, smbtest.Rename("g", false)); err != nil && err != wire.StatusAccessDenied {
		t.Error(err)
	}
	var entries [10]memstore.DirEntry
	if n, _, err := root.ReadDir(memstore.Root(), 0, entries[:]); err != nil || n != 1 {
		t.Errorf("%d names in the store, %v", n, err)
	}

	// Renamed, and removed.
	zone.Close()
	zone = open(t, c, entries[0].Name+":zone.identifier")
	if err := zone.SetInfo(wire.FileRename, smbtest.Rename(":AFP_AfpInfo", false)); err != wire.StatusNameCollision {
		t.Errorf("to what is there: %v", err)
	}
	if err := zone.SetInfo(wire.FileRename, smbtest.Rename(":other:$DATA", false)); err != nil {
		t.Error(err)
	}
	if err := zone.SetInfo(wire.FileRename, smbtest.Rename(":bad/name", false)); err != wire.StatusNameInvalid {
		t.Errorf("to a bad name: %v", err)
	}
	if got := streams(t, f); !slices.Equal(got, []string{"::$DATA", ":other:$DATA", ":AFP_AfpInfo:$DATA", ":AFP_Resource:$DATA"}) {
		t.Errorf("renamed: %q", got)
	}
	if err := zone.Remove(); err != nil {
		t.Error(err)
	}
	zone.Close()
	if got := streams(t, f); !slices.Equal(got, []string{"::$DATA", ":AFP_AfpInfo:$DATA", ":AFP_Resource:$DATA"}) {
		t.Errorf("removed: %q", got)
	}
	info.Close()
	info = open(t, c, entries[0].Name+":AFP_AfpInfo", option(wire.OptDeleteOnClose), access(rightDelete|rightReadData))
	info.Close()
	if got := streams(t, f); !slices.Equal(got, []string{"::$DATA", ":AFP_Resource:$DATA"}) {
		t.Errorf("removed by closing: %q", got)
	}

	// A directory has some too, but no data.
	d := open(t, c, "d", folder)
	write(t, open(t, c, "d:AFP_AfpInfo"), 0, "x")
	if got := streams(t, d); !slices.Equal(got, []string{":AFP_AfpInfo:$DATA"}) {
		t.Errorf("of a directory: %q", got)
	}
	for path, want := range map[string]wire.Status{
		"f2:":                   wire.StatusNameInvalid,
		"f2::":                  wire.StatusNameInvalid,
		"f2:s:$INDEX":           wire.StatusNameInvalid,
		"f2:a/b":                wire.StatusNameInvalid,
		"none:s":                wire.StatusNameNotFound,
		"d::$DATA":              wire.StatusFileIsADirectory,
		`none\f:s`:              wire.StatusPathNotFound,
		"g:none":                wire.StatusNameNotFound,
		"d:none":                wire.StatusNameNotFound,
		`d:AFP_AfpInfo\x`:       wire.StatusNameInvalid,
		"d:AFP_AfpInfo:$DATA:x": wire.StatusNameInvalid,
	} {
		if _, err := c.Open(smbtest.OpenArgs{Path: path, Access: rightReadData, Share: smbtest.ShareAll, Disposition: wire.FileOpen}); !is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
}

// A stream has share modes and locks of its own; but a file that is not to be
// removed keeps its streams.
func TestStreamShares(t *testing.T) {
	_, addr := newServer(t, nil)
	a, b := enter(t, addr), enter(t, addr)
	alone := func(o *smbtest.OpenArgs) { o.Share = 0 }
	open(t, a, "f").Close()
	s := open(t, a, "f:s", alone, access(rightReadData|rightWriteData))
	args := smbtest.OpenArgs{Path: "f:s", Access: rightReadData, Share: smbtest.ShareAll, Disposition: wire.FileOpen}
	if _, err := b.Open(args); err != wire.StatusSharingViolation {
		t.Errorf("a stream that is open alone: %v", err)
	}
	args.Path = "f"
	f, err := b.Open(args)
	if err != nil {
		t.Fatal(err)
	}
	args.Path, args.Disposition = "f:t", wire.FileOpenIf
	if _, err := b.Open(args); err != nil {
		t.Errorf("another stream: %v", err)
	}
	if err := s.Lock(wire.LockElement{Offset: 0, Length: 10, Flags: wire.LockExclusive | wire.LockNoWait}); err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(wire.LockElement{Offset: 0, Length: 10, Flags: wire.LockExclusive | wire.LockNoWait}); err != nil {
		t.Errorf("the file, where its stream is locked: %v", err)
	}
	args = smbtest.OpenArgs{Path: "f", Access: rightDelete, Share: smbtest.ShareAll, Disposition: wire.FileOpen}
	if _, err := b.Open(args); err != wire.StatusSharingViolation {
		t.Errorf("removal of a file whose stream is open alone: %v", err)
	}
}
