package smb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Names of the store, and what clients get and say for them.
func TestNames(t *testing.T) {
	_, root, c := rig(t)
	for _, tt := range []struct{ stored, wire string }{
		{"plain", "plain"},
		{"Größe\U0001F600", "Größe\U0001F600"},
		{`a"b*c:d<e>f?g\h|i`, "a\uF020b\uF021c\uF022d\uF023e\uF024f\uF025g\uF026h\uF027i"},
		{"tab\there", "tab\uF009here"},
		{"\x01\x1f", "\uF001\uF01F"},
		{"space ", "space\uF028"},
		{"dot.", "dot\uF029"},
		{"...", "..\uF029"},
		{"two  ", "two \uF028"},
		{". ", ".\uF028"},
		{" .x", " .x"},
		{":.", "\uF022\uF029"},
		{"latin1\xe9:", "latin1\xe9\uF022"}, // a byte that is no UTF-8 is half a surrogate
		{"half\xed\xa0\x80.", "half\xed\xa0\x80\uF029"},
		{"\uF022 of others", "\uF022 of others"},
		{strings.Repeat("n", 255), strings.Repeat("n", 255)},
		{strings.Repeat("é", 127), strings.Repeat("é", 127)},
	} {
		made, err := root.Create(memstore.Root(), tt.stored, &memstore.Create{Type: memstore.TypeFile, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o666}})
		if err != nil {
			t.Fatal(err)
		}
		dir := open(t, c, "", access(rightReadData|rightReadAttrs))
		b, err := dir.List(wire.DirNames, 0, "*", 4096)
		dir.Close()
		var names []string
		for err == nil {
			names = append(names, string(b[12:12+le.Uint32(b[8:])]))
			if le.Uint32(b) == 0 {
				break
			}
			b = b[le.Uint32(b):]
		}
		if want := []string{string(text(".")), string(text("..")), string(text(tt.wire))}; !slices.Equal(names, want) {
			t.Errorf("%q is listed as %q, %v", tt.stored, names, err)
		}
		// By what was listed, and in other letters, it is found.
		for _, name := range []string{tt.wire, strings.ToUpper(tt.wire)} {
			if !utf8.ValidString(tt.wire) {
				name = tt.wire
			}
			f, err := c.Open(smbtest.OpenArgs{Path: name, Access: rightReadAttrs, Share: smbtest.ShareAll, Disposition: wire.FileOpen})
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			if b, err := f.Info(wire.FileInternal); err != nil || le.Uint64(b) != made.Attr.Ino {
				t.Errorf("%q: %x, %v, want %d", name, b, err, made.Attr.Ino)
			}
			b, err := f.Info(wire.FileAll)
			if err != nil || string(b[100:]) != string(text(`\`+tt.wire)) {
				t.Errorf("%q has the path %q, %v", tt.stored, b[100:], err)
			}
			f.Close()
		}
		if _, err := root.Remove(memstore.Root(), tt.stored, memstore.RemoveFile); err != nil {
			t.Fatal(err)
		}
		// A client that makes it makes the same.
		f := open(t, c, tt.wire)
		f.Close()
		stored := tt.stored
		if strings.HasPrefix(stored, "\uF022") {
			stored = ":" + stored[3:]
		}
		if _, err := root.Remove(memstore.Root(), stored, memstore.RemoveFile); err != nil {
			t.Errorf("%q, made by a client: %v", tt.stored, err)
		}
	}
}

// Any name comes back from the wire as it was, if it had no private characters.
func TestNamesBothWays(t *testing.T) {
	back := func(name string) bool {
		name = strings.Map(func(c rune) rune {
			if c == 0 || c == '/' || c >= 0xF000 && c < 0xF100 {
				return 'x'
			}
			return c
		}, name)
		if strings.ContainsRune(name, '\xed') {
			return true // halves of surrogates have several spellings
		}
		return fromWire(wire.String(appendName(nil, name))) == name
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", ".", "..", "a:\xff", "\xff:.", "\x80 "} {
		if !back(name) {
			t.Errorf("%q becomes %q", name, fromWire(wire.String(appendName(nil, name))))
		}
	}
}

// Names that differ in case alone, as NFS makes them: what is written exactly is
// found; else the first that fits.
func TestCases(t *testing.T) {
	_, root, c := rig(t)
	owner := &memstore.Caller{Cred: memstore.Cred{UID: 1000, GID: 1000}}
	for _, name := range []string{"readme", "README", "ReadMe", "Straße"} {
		made, err := root.Create(owner, name, &memstore.Create{Type: memstore.TypeFile, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o666}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := made.Inode.WriteAt(memstore.Root(), nil, []byte(name), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ ask, got string }{
		{"README", "README"}, {"ReadMe", "ReadMe"}, {"readme", "readme"}, {"rEADmE", "readme"}, {"STRAßE", "Straße"},
	} {
		f := open(t, c, tt.ask, access(rightReadData|rightReadAttrs), func(a *smbtest.OpenArgs) { a.Disposition = wire.FileOpen })
		if got := read(t, f, 0, 100); got != tt.got {
			t.Errorf("%s is %s, want %s", tt.ask, got, tt.got)
		}
		f.Close()
	}
	if _, err := c.Open(smbtest.OpenArgs{Path: "rEADmE", Access: rightReadData, Disposition: wire.FileCreate}); err != wire.StatusNameCollision {
		t.Errorf("one more: %v", err)
	}
	// A rename to other letters is one; another's name is not taken by it.
	f := open(t, c, "Straße")
	if err := f.SetInfo(wire.FileRename, smbtest.Rename("STRAßE", false)); err != nil {
		t.Error(err)
	}
	if err := f.SetInfo(wire.FileRename, smbtest.Rename("rEADmE", false)); err != wire.StatusNameCollision {
		t.Errorf("to another's: %v", err)
	}
	var list []string
	for e := range all(t, root) {
		list = append(list, e)
	}
	slices.Sort(list)
	if !slices.Equal(list, []string{"README", "ReadMe", "STRAßE", "readme"}) {
		t.Errorf("%q", list)
	}
}

func all(t *testing.T, dir *memstore.Inode) func(func(string) bool) {
	return func(yield func(string) bool) {
		var entries [100]memstore.DirEntry
		n, _, err := dir.ReadDir(memstore.Root(), 0, entries[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries[:n] {
			if !yield(e.Name) {
				return
			}
		}
	}
}

// Paths that no file can have, and the longest that one can.
func TestPaths(t *testing.T) {
	_, _, c := rig(t)
	try := func(path string) error {
		f, err := c.Open(smbtest.OpenArgs{Path: path, Access: rightReadAttrs, Share: smbtest.ShareAll, Disposition: wire.FileOpenIf})
		if err == nil {
			err = f.Close()
		}
		return err
	}
	open(t, c, "f")
	open(t, c, "d", folder)
	for path, want := range map[string]wire.Status{
		`\f`:                     wire.StatusInvalidParameter,
		`d\`:                     wire.StatusNameInvalid,
		`f\`:                     wire.StatusPathNotFound,
		`d\\f`:                   wire.StatusNameInvalid,
		`.`:                      wire.StatusNameInvalid,
		`..`:                     wire.StatusPathSyntaxBad,
		`d\..\g`:                 wire.StatusOK, // taken together before anything is looked up
		`d\..\..\f`:              wire.StatusPathSyntaxBad,
		`a*`:                     wire.StatusNameInvalid,
		`a?`:                     wire.StatusNameInvalid,
		"a\x01":                  wire.StatusNameInvalid,
		`none\f`:                 wire.StatusPathNotFound,
		`f\x`:                    wire.StatusPathNotFound,
		strings.Repeat("n", 255): wire.StatusOK,
		strings.Repeat("n", 256): wire.StatusNameInvalid,
		strings.Repeat("é", 128): wire.StatusNameInvalid, // 256 bytes
	} {
		if err := try(path); !is(err, want) {
			t.Errorf("%.20q: %v, want %v", path, err, want)
		}
	}
	// As deep as a message can say.
	path := ""
	for n := 0; len(path)+300 < 32<<10; n++ {
		if path != "" {
			path += `\`
		}
		path += fmt.Sprintf("%04d%s", n, strings.Repeat("n", 251))
		open(t, c, path, folder).Close()
	}
	f := open(t, c, path+`\f`)
	b, err := f.Info(wire.FileAll)
	if err != nil && !errors.Is(err, wire.StatusBufferOverflow) || string(b[100:]) != string(cut(text(`\`+path+`\f`), len(b)-100)) {
		t.Errorf("%d bytes of its path, %v", len(b)-100, err)
	}
}
