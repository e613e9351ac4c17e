package smb

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Every class that can be set: what is too short, what an open must be for, and what
// is out of range.
func TestSetInfo(t *testing.T) {
	_, _, c := rig(t)
	f, dir := open(t, c, "f"), open(t, c, "d", folder)
	looker := open(t, c, "f", access(rightReadAttrs))
	open(t, c, "other")
	basic := func(v ...uint64) []byte { return append(numbers(v...), make([]byte, 8)...) }
	attrs := func(bits uint32) []byte { return le.AppendUint32(numbers(0, 0, 0, 0), bits) }
	long := smbtest.Rename("g", false)
	le.PutUint32(long[16:], 100)
	odd := smbtest.Rename("gh", false)
	le.PutUint32(odd[16:], 3)
	rooted := smbtest.Rename("g", false)
	rooted[8] = 1
	for _, tt := range []struct {
		name  string
		f     *smbtest.File
		class uint8
		data  []byte
		want  wire.Status
	}{
		{"basic", f, wire.FileBasic, basic(0, 0, 0, 0), wire.StatusOK},
		{"basic, too short", f, wire.FileBasic, make([]byte, 35), wire.StatusInfoLengthMismatch},
		{"basic, by who may not", looker, wire.FileBasic, basic(0, 0, 0, 0), wire.StatusAccessDenied},
		{"a time before 1601", f, wire.FileBasic, basic(1<<63, 0, 0, 0), wire.StatusInvalidParameter},
		{"a file that is a directory", f, wire.FileBasic, attrs(wire.AttrDirectory), wire.StatusInvalidParameter},
		{"a directory that is temporary", dir, wire.FileBasic, attrs(wire.AttrTemporary), wire.StatusInvalidParameter},

		{"rename", f, wire.FileRename, smbtest.Rename("f2", false), wire.StatusOK},
		{"rename back", f, wire.FileRenameEx, smbtest.Rename("f", false), wire.StatusOK},
		{"rename, too short", f, wire.FileRename, make([]byte, 19), wire.StatusInfoLengthMismatch},
		{"rename, a name longer than there is", f, wire.FileRename, long, wire.StatusInvalidParameter},
		{"rename, half a character", f, wire.FileRename, odd, wire.StatusInvalidParameter},
		{"rename, no name", f, wire.FileRename, smbtest.Rename("", false), wire.StatusInvalidParameter},
		{"rename, from another root", f, wire.FileRename, rooted, wire.StatusInvalidParameter},
		{"rename, to what is there", f, wire.FileRename, smbtest.Rename("other", false), wire.StatusNameCollision},
		{"rename, to a bad name", f, wire.FileRename, smbtest.Rename("a*b", false), wire.StatusNameInvalid},
		{"rename, to nowhere", f, wire.FileRename, smbtest.Rename(`none\g`, false), wire.StatusPathNotFound},
		{"rename, by who may not", looker, wire.FileRename, smbtest.Rename("g", false), wire.StatusAccessDenied},

		{"link", f, wire.FileLink, smbtest.Rename("link", false), wire.StatusOK},
		{"link again, to itself", f, wire.FileLink, smbtest.Rename("LINK", false), wire.StatusNameCollision},
		{"link in its own place", f, wire.FileLink, smbtest.Rename("link", true), wire.StatusOK},
		{"rename, to another name of it", f, wire.FileRename, smbtest.Rename("link", false), wire.StatusNameCollision},
		{"rename, in the place of another name of it", f, wire.FileRename, smbtest.Rename("link", true), wire.StatusOK},
		{"rename, from there", f, wire.FileRename, smbtest.Rename("f", false), wire.StatusOK},
		{"link, to what is there", f, wire.FileLink, smbtest.Rename("other", false), wire.StatusNameCollision},
		{"link, too short", f, wire.FileLink, make([]byte, 19), wire.StatusInfoLengthMismatch},
		{"link of a directory", dir, wire.FileLink, smbtest.Rename("dlink", false), wire.StatusFileIsADirectory},

		{"disposition, nothing", f, wire.FileDisposition, nil, wire.StatusInfoLengthMismatch},
		{"disposition", f, wire.FileDisposition, []byte{1}, wire.StatusOK},
		{"disposition undone", f, wire.FileDisposition, []byte{0}, wire.StatusOK},
		{"disposition with flags", f, wire.FileDispositionEx, []byte{disposeDelete, 0, 0, 0}, wire.StatusOK},
		{"disposition with flags, undone", f, wire.FileDispositionEx, make([]byte, 4), wire.StatusOK},
		{"disposition with flags, too short", f, wire.FileDispositionEx, make([]byte, 3), wire.StatusInfoLengthMismatch},
		{"disposition of closing, of who did not say so", f, wire.FileDispositionEx, []byte{disposeOnClose, 0, 0, 0}, wire.StatusNotSupported},
		{"disposition, by who may not", looker, wire.FileDisposition, []byte{1}, wire.StatusAccessDenied},

		{"position", f, wire.FilePosition, numbers(5), wire.StatusOK},
		{"position, too short", f, wire.FilePosition, make([]byte, 7), wire.StatusInfoLengthMismatch},
		{"position, negative", f, wire.FilePosition, numbers(1 << 63), wire.StatusInvalidParameter},

		{"mode", f, wire.FileMode, make([]byte, 4), wire.StatusOK},
		{"mode, too short", f, wire.FileMode, make([]byte, 3), wire.StatusInfoLengthMismatch},
		{"mode, what cannot change", f, wire.FileMode, []byte{0, 0x10, 0, 0}, wire.StatusInvalidParameter},

		{"allocation", f, wire.FileAllocation, numbers(4096), wire.StatusOK},
		{"allocation, too short", f, wire.FileAllocation, make([]byte, 7), wire.StatusInfoLengthMismatch},
		{"allocation, negative", f, wire.FileAllocation, numbers(1 << 63), wire.StatusInvalidParameter},
		{"allocation, of more than there is", f, wire.FileAllocation, numbers(1 << 40), wire.StatusDiskFull},
		{"allocation, of a directory", dir, wire.FileAllocation, numbers(4096), wire.StatusInvalidParameter},
		{"allocation, by who may not", looker, wire.FileAllocation, numbers(4096), wire.StatusAccessDenied},

		{"end", f, wire.FileEndOfFile, numbers(100), wire.StatusOK},
		{"end, too short", f, wire.FileEndOfFile, make([]byte, 7), wire.StatusInfoLengthMismatch},
		{"end, negative", f, wire.FileEndOfFile, numbers(1 << 63), wire.StatusInvalidParameter},
		{"end of a directory", dir, wire.FileEndOfFile, numbers(0), wire.StatusInvalidParameter},
		{"end, by who may not", looker, wire.FileEndOfFile, numbers(0), wire.StatusAccessDenied},

		{"what can only be asked for", f, wire.FileStandard, make([]byte, 100), wire.StatusInvalidInfoClass},
		{"class 0", f, 0, make([]byte, 100), wire.StatusInvalidInfoClass},
		{"a class of tomorrow", f, 250, make([]byte, 100), wire.StatusInvalidInfoClass},
	} {
		if err := tt.f.SetInfo(tt.class, tt.data); !is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		q    wire.SetInfoRequest
		want wire.Status
	}{
		{"a file system", wire.SetInfoRequest{Type: wire.InfoFS, Class: wire.FSControl, Data: make([]byte, 48)}, wire.StatusNotSupported},
		{"a quota", wire.SetInfoRequest{Type: wire.InfoQuota}, wire.StatusNotSupported},
		{"a type that there is not", wire.SetInfoRequest{Type: 9}, wire.StatusInvalidParameter},
		{"a descriptor of nothing", wire.SetInfoRequest{Type: wire.InfoSecurity, Additional: secDACL}, wire.StatusInvalidSecurityDescriptor},
		{"the audit list", wire.SetInfoRequest{Type: wire.InfoSecurity, Additional: secSACL, Data: make([]byte, 20)}, wire.StatusAccessDenied},
	} {
		if err := f.Set(tt.q); !is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// Every class that can be asked for: in full, with room for what is fixed, and with
// less.
func TestQueryInfo(t *testing.T) {
	_, _, c := rig(t)
	f := open(t, c, "file")
	write(t, f, 0, "data")
	sizes := map[uint8]int{ // in full
		wire.FileBasic: 40, wire.FileStandard: 24, wire.FileInternal: 8, wire.FileEA: 4, wire.FileAccess: 4, wire.FilePosition: 8,
		wire.FileMode: 4, wire.FileAlignment: 4, wire.FileAll: 100 + 10, wire.FileCompression: 16, wire.FileNetworkOpen: 56,
		wire.FileAttributeTag: 8, wire.FileIDInfo: 24, wire.FileAlternateName: 4 + 2*len("FILE"), wire.FileStream: 24 + 2*len("::$DATA"),
	}
	fs := map[uint8]int{wire.FSVolume: 18 + 10, wire.FSSize: 24, wire.FSDevice: 8, wire.FSAttribute: 12 + 8, wire.FSControl: 48,
		wire.FSFullSize: 32, wire.FSObjectID: 64, wire.FSSector: 28}
	// What does not fit: the classes whose end is a name.
	named := map[uint8]bool{wire.FileAll: true, wire.FileAlternateName: true, wire.FileStream: true}
	fsNamed := map[uint8]bool{wire.FSVolume: true, wire.FSAttribute: true}
	for _, what := range []struct {
		kind  uint8
		sizes map[uint8]int
		named map[uint8]bool
	}{{wire.InfoFile, sizes, named}, {wire.InfoFS, fs, fsNamed}} {
		for class := range uint8(255) {
			query := func(max int) ([]byte, error) {
				return f.Query(wire.QueryInfoRequest{Type: what.kind, Class: class, MaxOut: uint32(max)})
			}
			all, err := query(4096)
			n, known := what.sizes[class]
			switch {
			case !known:
				want := []wire.Status{wire.StatusInvalidInfoClass}
				switch {
				case what.kind == wire.InfoFile && class == wire.FileFullEA:
					want = []wire.Status{wire.StatusNoEAs}
				case what.kind == wire.InfoFile && class == wire.FileNormalizedName:
					want = []wire.Status{wire.StatusNotSupported} // of 3.1.1 only
				}
				if s, is := err.(wire.Status); !is || !slices.Contains(want, s) {
					t.Errorf("type %d class %d: %v, want %v", what.kind, class, err, want)
				}
				continue
			case err != nil || len(all) != n:
				t.Errorf("type %d class %d: %d bytes, %v, want %d", what.kind, class, len(all), err, n)
				continue
			}
			if got, err := query(n); err != nil || len(got) != n {
				t.Errorf("type %d class %d: %v, %d bytes in a buffer of %d", what.kind, class, err, len(got), n)
			}
			got, err := query(n - 1)
			if want := wire.StatusInfoLengthMismatch; !what.named[class] && err != want {
				t.Errorf("type %d class %d: %v for a byte less, want %v", what.kind, class, err, want)
			} else if what.named[class] && (err != wire.StatusBufferOverflow || !bytes.Equal(got, cut(all, n-1))) {
				t.Errorf("type %d class %d: %v for a byte less: %x", what.kind, class, err, got)
			}
			if _, err := query(3); err != wire.StatusInfoLengthMismatch {
				t.Errorf("type %d class %d: %v for 3 bytes", what.kind, class, err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		q    wire.QueryInfoRequest
		want wire.Status
	}{
		{"a quota", wire.QueryInfoRequest{Type: wire.InfoQuota, MaxOut: 100}, wire.StatusNotSupported},
		{"a type that there is not", wire.QueryInfoRequest{Type: 7, MaxOut: 100}, wire.StatusInvalidParameter},
		{"security, too little room", wire.QueryInfoRequest{Type: wire.InfoSecurity, Additional: secOwner, MaxOut: 10}, wire.StatusBufferTooSmall},
		{"the audit list", wire.QueryInfoRequest{Type: wire.InfoSecurity, Additional: secSACL, MaxOut: 100}, wire.StatusAccessDenied},
	} {
		if _, err := f.Query(tt.q); !is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	looker := open(t, c, "file", access(rightReadData))
	for _, class := range []uint8{wire.FileBasic, wire.FileAll, wire.FileNetworkOpen, wire.FileAttributeTag} {
		if _, err := looker.Info(class); err != wire.StatusAccessDenied {
			t.Errorf("class %d by who did not ask for attributes: %v", class, err)
		}
	}
}

// A link that takes the place of another file: others see either.
// A write shows in the times at once, and only then: MS-FSA section 2.1.4.17. Tests of
// Samba before 4.23 want it to show later, as Windows had it before 2019.
func TestWriteTimes(t *testing.T) {
	_, _, c := rig(t)
	f := open(t, c, "f")
	written := func() uint64 {
		t.Helper()
		b, err := f.Info(wire.FileBasic)
		if err != nil {
			t.Fatal(err)
		}
		return le.Uint64(b[16:])
	}
	write := func() error { _, err := f.Write(0, []byte("x")); return err }
	set := func(f *smbtest.File, class uint8, b []byte) func() error {
		return func() error { return f.SetInfo(class, b) }
	}
	basic := func(times ...uint64) []byte { return append(numbers(times...), make([]byte, 8)...) }
	const someTime = 130_000_000_000_000_000
	for _, tt := range []struct {
		name string
		do   func() error
		show bool
	}{
		{"written", write, true},
		{"written again", write, true},
		{"flushed", func() error {
			_, err := c.Do(wire.CommandFlush, 0, append([]byte{24, 0, 0, 0, 0, 0, 0, 0}, f.ID.Append(nil)...))
			return err
		}, false},
		{"no time is set", set(f, wire.FileBasic, basic(0, 0, 0, 0)), false},
		{"the time of creation is set", set(f, wire.FileBasic, basic(someTime, 0, 0, 0)), false},
		{"the time of access is set", set(f, wire.FileBasic, basic(0, someTime, 0, 0)), false},
		{"the time of change is set", set(f, wire.FileBasic, basic(0, 0, 0, someTime)), false},
		{"cut to the length that it has", set(f, wire.FileEndOfFile, numbers(1)), true},
		{"written, and the time set by another open", func() error {
			if err := write(); err != nil {
				return err
			}
			other := open(t, c, "f")
			if err := other.SetInfo(wire.FileBasic, basic(0, 0, someTime, 0)); err != nil {
				return err
			}
			return other.Close()
		}, true},
	} {
		before := written()
		time.Sleep(time.Millisecond)
		if err := tt.do(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if after := written(); (after != before) != tt.show {
			t.Errorf("%s: the time of the last write was %d and is %d", tt.name, before, after)
		}
	}
	f.Close()
	if f = open(t, c, "f"); written() != someTime {
		t.Errorf("closed: the time is not the one that was set last, %d", written())
	}
}

func TestLinkReplaces(t *testing.T) {
	_, root, c := rig(t)
	f, g := open(t, c, "f"), open(t, c, "g")
	write(t, f, 0, "f")
	write(t, g, 0, "g")
	g.Close()
	d := open(t, c, "d", folder)
	stop, looked := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				looked <- nil
				return
			default:
				if _, err := root.Lookup(memstore.Root(), "g"); err != nil {
					looked <- err
					return
				}
			}
		}
	}()
	other := open(t, c, "h")
	for range 200 {
		for _, from := range []*smbtest.File{f, other} {
			if err := from.SetInfo(wire.FileLink, smbtest.Rename("g", true)); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	if err := <-looked; err != nil {
		t.Errorf("in between: %v", err)
	}
	for _, x := range []struct {
		f     *smbtest.File
		links uint32
	}{{f, 1}, {other, 2}} {
		if b, err := x.f.Info(wire.FileStandard); err != nil || le.Uint32(b[16:]) != x.links {
			t.Errorf("%d links, %v, want %d", le.Uint32(b[16:]), err, x.links)
		}
	}
	if err := f.SetInfo(wire.FileLink, smbtest.Rename("d", true)); err != wire.StatusAccessDenied {
		t.Errorf("over a directory: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	// One that is open and denies its removal stays.
	other.Close()
	keep := open(t, c, "g", func(a *smbtest.OpenArgs) { a.Share = wire.ShareRead | wire.ShareWrite; a.Access = rightReadData })
	if err := f.SetInfo(wire.FileLink, smbtest.Rename("g", true)); err != wire.StatusSharingViolation {
		t.Errorf("over an open file that denies it: %v", err)
	}
	keep.Close()
}
