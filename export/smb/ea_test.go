package smb

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// eaList is FILE_FULL_EA_INFORMATION of names and values.
func eaList(namesAndValues ...string) (b []byte) {
	last := -1
	for k := 0; k < len(namesAndValues); k += 2 {
		b, last = wire.AppendEA(b, last, namesAndValues[k], []byte(namesAndValues[k+1]))
	}
	return b
}

// askEAs is FILE_GET_EA_INFORMATION of names.
func askEAs(names ...string) (b []byte) {
	for k, name := range names {
		at := len(b)
		b = append(b, 0, 0, 0, 0, byte(len(name)))
		b = append(append(b, name...), 0)
		for k < len(names)-1 && len(b)%4 != 0 {
			b = append(b, 0)
		}
		if k < len(names)-1 {
			le.PutUint32(b[at:], uint32(len(b)-at))
		}
	}
	return b
}

// Extended attributes are those of the store in "user.", and the same without regard
// to case.
func TestEAs(t *testing.T) {
	_, root, c := rig(t)
	f := open(t, c, "f")
	query := func(flags uint32, asked []byte, max int) ([]byte, error) {
		return f.Query(wire.QueryInfoRequest{Type: wire.InfoFile, Class: wire.FileFullEA, Flags: flags, Input: asked, MaxOut: uint32(max)})
	}
	set := func(b []byte) error { return f.SetInfo(wire.FileFullEA, b) }
	size := func() uint32 {
		b, err := f.Info(wire.FileEA)
		if err != nil || len(b) != 4 {
			t.Fatalf("size: %x, %v", b, err)
		}
		return le.Uint32(b)
	}
	if _, err := query(0, nil, 4096); err != wire.StatusNoEAs {
		t.Errorf("none: %v", err)
	}
	if n := size(); n != 0 {
		t.Errorf("none: %d bytes", n)
	}
	if err := set(eaList("One", "1", "two", "second")); err != nil {
		t.Fatal(err)
	}
	i, err := root.Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := i.GetXattr(memstore.Root(), "user.One"); string(v) != "1" || err != nil {
		t.Errorf("in the store: %q, %v", v, err)
	}
	// By another name, and by another protocol.
	if err := set(eaList("ONE", "first")); err != nil {
		t.Fatal(err)
	}
	if _, err := i.SetXattr(memstore.Root(), "user.three", []byte("3"), memstore.XattrCreate); err != nil {
		t.Fatal(err)
	}
	if _, err := i.SetXattr(memstore.Root(), "trusted.hidden", []byte("x"), memstore.XattrCreate); err != nil {
		t.Fatal(err)
	}
	all := eaList("ONE", "first", "THREE", "3", "TWO", "second")
	for _, tt := range []struct {
		name  string
		flags uint32
		asked []byte
		max   int
		want  []byte
		err   wire.Status
	}{
		{"all", eaRestart, nil, 4096, all, wire.StatusOK},
		{"and no more", 0, nil, 4096, nil, wire.StatusNoMoreEAs},
		{"one by one", eaRestart | eaSingle, nil, 4096, eaList("ONE", "first"), wire.StatusOK},
		{"the next", eaSingle, nil, 4096, eaList("THREE", "3"), wire.StatusOK},
		{"the rest", 0, nil, 4096, eaList("TWO", "second"), wire.StatusOK},
		{"as far as there is room", eaRestart, nil, 36, eaList("ONE", "first", "THREE", "3"), wire.StatusBufferOverflow},
		{"from there", 0, nil, 100, eaList("TWO", "second"), wire.StatusOK},
		{"too little room", eaRestart, nil, 10, nil, wire.StatusBufferTooSmall},
		{"two of them", 0, askEAs("two", "One"), 4096, eaList("TWO", "second", "ONE", "first"), wire.StatusOK},
		{"one that there is not", 0, askEAs("none"), 4096, eaList("NONE", ""), wire.StatusOK},
		{"a list that ends in a name", 0, askEAs("two")[:7], 4096, nil, wire.StatusInvalidParameter},
		{"a list that goes on behind its end", 0, append([]byte{200}, askEAs("two")[1:]...), 4096, nil, wire.StatusInvalidParameter},
	} {
		got, err := query(tt.flags, tt.asked, tt.max)
		if !is(err, tt.err) || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
	if n := size(); n != uint32(len(all)) {
		t.Errorf("%d bytes, want %d", n, len(all))
	}
	dir := open(t, c, "", folder)
	if b, err := dir.List(wire.DirFull, 0, "f", 4096); err != nil || le.Uint32(b[64:]) != uint32(len(all)) {
		t.Errorf("in a listing: %x, %v", b, err)
	}

	// What is malformed changes nothing.
	for name, b := range map[string][]byte{
		"cut short":        eaList("one", "xxxx")[:10],
		"half a header":    {0, 0, 0, 0, 0},
		"next is inside":   append([]byte{4}, eaList("one", "x")[1:]...),
		"next is behind":   append([]byte{64}, eaList("one", "x")[1:]...),
		"the second is so": append(append([]byte{16}, eaList("one", "xxxx")[1:]...), 1, 2, 3),
	} {
		if err := set(b); err != wire.StatusInvalidParameter {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"no name":               eaList("", "x"),
		"a slash":               eaList("a/b", "x"),
		"a control character":   eaList("a\x1f", "x"),
		"an unknown flag":       append([]byte{0, 0, 0, 0, 1}, eaList("one", "x")[5:]...),
		"no zero behind it":     append(append(bytes.Clone(eaList("one", "x")[:11]), 'x'), 'x'),
		"the second has a name": eaList("one", "x", "a:b", "x"),
	} {
		if err := set(b); err != wire.StatusInvalidEAName {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := query(eaRestart, nil, 4096); !bytes.Equal(got, all) {
		t.Errorf("afterwards: %q", got)
	}

	// An empty value removes.
	if err := set(eaList("three", "", "none", "")); err != nil {
		t.Error(err)
	}
	if got, _ := query(eaRestart, nil, 4096); !bytes.Equal(got, eaList("ONE", "first", "TWO", "second")) {
		t.Errorf("one removed: %q", got)
	}

	// Who may not.
	reader := open(t, c, "f", access(rightReadData|rightReadAttrs))
	if err := reader.SetInfo(wire.FileFullEA, eaList("x", "y")); err != wire.StatusAccessDenied {
		t.Errorf("set by a reader: %v", err)
	}
	if _, err := reader.Info(wire.FileFullEA); err != wire.StatusAccessDenied {
		t.Errorf("asked for by who did not ask for that: %v", err)
	}
}

// The largest values and names, and as many as the store has room for.
func TestEALimits(t *testing.T) {
	_, root, c := rig(t)
	f := open(t, c, "f")
	large := strings.Repeat("v", maxEA)
	long := strings.Repeat("N", memstore.MaxXattrName-len(eaPrefix))
	if err := f.SetInfo(wire.FileFullEA, eaList(long, large)); err != nil {
		t.Fatal(err)
	}
	get := func() ([]byte, error) {
		return f.Query(wire.QueryInfoRequest{Type: wire.InfoFile, Class: wire.FileFullEA, Flags: eaRestart, MaxOut: 1 << 17})
	}
	if got, err := get(); err != nil || !bytes.Equal(got, eaList(long, large)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := f.SetInfo(wire.FileFullEA, eaList(long+"N", "x")); err != wire.StatusEATooLarge {
		t.Errorf("a longer name: %v", err)
	}
	// One byte more than can be told is not in the list.
	i, err := root.Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.SetXattr(memstore.Root(), "user.a", make([]byte, memstore.MaxXattr), memstore.XattrCreate); err != nil {
		t.Fatal(err)
	}
	if got, err := get(); err != nil || !bytes.Equal(got, eaList(long, large)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := f.Query(wire.QueryInfoRequest{Type: wire.InfoFile, Class: wire.FileFullEA, Input: askEAs("a"), MaxOut: 1 << 17}); err != wire.StatusEATooLarge {
		t.Errorf("asked for: %v", err)
	}
	many := make([]string, 2*(maxEAList/12+1)) // each takes 12 bytes
	for n := range many {
		many[n] = "b"
	}
	if err := f.SetInfo(wire.FileFullEA, eaList(many...)); err != wire.StatusEATooLarge {
		t.Errorf("too long a list: %v", err)
	}
	if _, err := f.Query(wire.QueryInfoRequest{Type: wire.InfoFile, Class: wire.FileFullEA, Input: askEAs(append(many, many...)...), MaxOut: 1 << 17}); err != wire.StatusInvalidParameter {
		t.Errorf("too long a question: %v", err)
	}
	var full error
	for n := 0; n < 32 && full == nil; n++ {
		full = f.SetInfo(wire.FileFullEA, eaList(fmt.Sprint("n", n), large))
	}
	if full != wire.StatusEATooLarge {
		t.Errorf("too many: %v", full)
	}
}

// A new file gets those of its CREATE, or is not made.
func TestEAsOfCreate(t *testing.T) {
	_, root, c := rig(t)
	f := open(t, c, "f", func(a *smbtest.OpenArgs) {
		a.Contexts = []wire.CreateContext{{Name: "ExtA", Data: eaList("a", "b")}}
	})
	if b, err := f.Info(wire.FileFullEA); err != nil || !bytes.Equal(b, eaList("A", "b")) {
		t.Errorf("%q, %v", b, err)
	}
	_, err := c.Open(smbtest.OpenArgs{Path: "g", Access: rightMaximum, Disposition: wire.FileCreate,
		Contexts: []wire.CreateContext{{Name: "ExtA", Data: []byte{1, 2, 3}}}})
	if err != wire.StatusInvalidParameter {
		t.Errorf("malformed: %v", err)
	}
	if _, err := root.Lookup(memstore.Root(), "g"); err != memstore.ErrNotExist {
		t.Errorf("it is there: %v", err)
	}
}
