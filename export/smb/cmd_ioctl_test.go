package smb

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ramserver/export/smb/smbtest"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Every control: what it answers to good input, to input that is too short, with
// too little room for its output, and by an open that may not.
func TestControls(t *testing.T) {
	_, root, c := rig(t)
	if _, err := root.Create(memstore.Root(), "fifo", &memstore.Create{Type: memstore.TypeFIFO}); err != nil {
		t.Fatal(err)
	}
	file, dir := open(t, c, "f"), open(t, c, "d", folder)
	write(t, file, 0, strings.Repeat("x", 12288))
	reader := open(t, c, "f", access(rightReadData|rightReadAttrs))
	looker := open(t, c, "f", access(rightReadAttrs))
	fifo := open(t, c, "fifo", access(rightReadAttrs), option(wire.OptOpenReparse))
	none := *file
	none.ID = wire.AnyFile
	key, err := file.Ioctl(wire.FsctlResumeKey, nil, 32)
	if err != nil || len(key) != 32 {
		t.Fatalf("resume key: %v, %x", err, key)
	}
	chunks := append(slices.Concat(key[:24], []byte{1, 0, 0, 0, 0, 0, 0, 0}, numbers(0, 4096)), 0, 16, 0, 0, 0, 0, 0, 0)
	id := func(f *smbtest.File) []byte { return numbers(f.ID.Persistent, f.ID.Volatile) }
	same := append(id(file), numbers(0, 4096, 4096)...)
	for _, tt := range []struct {
		name   string
		f      *smbtest.File
		code   uint32
		in     []byte
		max    int
		want   wire.Status
		output int // bytes
	}{
		{"unknown", file, 0x00098FFC, nil, 100, wire.StatusInvalidDeviceRequest, 0},
		{"unknown, of a directory", dir, 0x00090000, nil, 100, wire.StatusInvalidDeviceRequest, 0},
		{"of a file that is not open", &none, wire.FsctlSetSparse, nil, 0, wire.StatusFileClosed, 0},
		{"DFS", &none, wire.FsctlDFSReferrals, []byte{4, 0, 0, 0}, 100, wire.StatusFSDriverRequired, 0},
		{"DFS, of a file", file, wire.FsctlDFSReferrals, nil, 100, wire.StatusInvalidParameter, 0},
		{"pipe, of a file", file, wire.FsctlPipeTransceive, nil, 100, wire.StatusInvalidDeviceRequest, 0},
		{"interfaces", &none, wire.FsctlNetworkInterfaces, nil, 4096, wire.StatusOK, 152},
		{"interfaces, too little room", &none, wire.FsctlNetworkInterfaces, nil, 151, wire.StatusBufferTooSmall, 0},

		{"snapshots", file, wire.FsctlSnapshots, nil, 16, wire.StatusOK, 16},
		{"snapshots, too little room", file, wire.FsctlSnapshots, nil, 15, wire.StatusInvalidParameter, 0},
		{"resume key, too little room", file, wire.FsctlResumeKey, nil, 31, wire.StatusInvalidParameter, 0},

		{"copy", file, wire.FsctlCopyChunk, chunks, 12, wire.StatusOK, 12},
		{"copy, too little room", file, wire.FsctlCopyChunk, chunks, 11, wire.StatusInvalidParameter, 0},
		{"copy, a chunk is missing", file, wire.FsctlCopyChunk, chunks[:55], 12, wire.StatusInvalidParameter, 0},
		{"copy, no header", file, wire.FsctlCopyChunk, chunks[:31], 12, wire.StatusInvalidParameter, 0},
		{"copy, of what is not open", file, wire.FsctlCopyChunk, append(numbers(99, 0, 0), chunks[24:]...), 12, wire.StatusNameNotFound, 0},
		{"copy, to a reader", reader, wire.FsctlCopyChunk, chunks, 12, wire.StatusAccessDenied, 0},
		{"copy, to a directory", dir, wire.FsctlCopyChunk, chunks, 12, wire.StatusInvalidDeviceRequest, 0},

		{"duplicate", file, wire.FsctlDuplicateExtents, same, 0, wire.StatusOK, 0},
		{"duplicate, too short", file, wire.FsctlDuplicateExtents, same[:39], 0, wire.StatusInvalidParameter, 0},
		{"duplicate, of what is not open", file, wire.FsctlDuplicateExtents, numbers(0, 0, 0, 0, 0), 0, wire.StatusInvalidHandle, 0},
		{"duplicate, not whole clusters", file, wire.FsctlDuplicateExtents, append(id(file), numbers(0, 100, 4096)...), 0, wire.StatusInvalidParameter, 0},
		{"duplicate, behind the end", file, wire.FsctlDuplicateExtents, append(id(file), numbers(8192, 0, 8192)...), 0, wire.StatusNotSupported, 0},
		{"duplicate, over itself", file, wire.FsctlDuplicateExtents, append(id(file), numbers(0, 4096, 8192)...), 0, wire.StatusNotSupported, 0},
		{"duplicate, numbers that overflow", file, wire.FsctlDuplicateExtents, append(id(file), numbers(0, 1<<63-4096, 1<<63-4096)...), 0, wire.StatusInvalidParameter, 0},
		{"duplicate, to a reader", reader, wire.FsctlDuplicateExtents, same, 0, wire.StatusAccessDenied, 0},
		{"duplicate, to a directory", dir, wire.FsctlDuplicateExtents, same, 0, wire.StatusInvalidParameter, 0},

		{"sparse", file, wire.FsctlSetSparse, nil, 0, wire.StatusOK, 0},
		{"sparse no more", file, wire.FsctlSetSparse, []byte{0}, 0, wire.StatusOK, 0},
		{"sparse, by a reader", reader, wire.FsctlSetSparse, nil, 0, wire.StatusAccessDenied, 0},
		{"sparse directory", dir, wire.FsctlSetSparse, nil, 0, wire.StatusInvalidParameter, 0},

		{"zero", file, wire.FsctlSetZeroData, numbers(4096, 8192), 0, wire.StatusOK, 0},
		{"zero nothing", file, wire.FsctlSetZeroData, numbers(7, 7), 0, wire.StatusOK, 0},
		{"zero, too short", file, wire.FsctlSetZeroData, numbers(0), 0, wire.StatusInvalidParameter, 0},
		{"zero backwards", file, wire.FsctlSetZeroData, numbers(8, 7), 0, wire.StatusInvalidParameter, 0},
		{"zero before the beginning", file, wire.FsctlSetZeroData, numbers(1<<63, 1<<63+1), 0, wire.StatusInvalidParameter, 0},
		{"zero, by a reader", reader, wire.FsctlSetZeroData, numbers(0, 1), 0, wire.StatusAccessDenied, 0},
		{"zero a directory", dir, wire.FsctlSetZeroData, numbers(0, 1), 0, wire.StatusInvalidParameter, 0},

		{"ranges", file, wire.FsctlAllocatedRanges, numbers(0, 8192), 16, wire.StatusOK, 16},
		{"ranges behind the end", file, wire.FsctlAllocatedRanges, numbers(12288, 8192), 16, wire.StatusOK, 0},
		{"ranges, too short", file, wire.FsctlAllocatedRanges, numbers(0), 16, wire.StatusInvalidParameter, 0},
		{"ranges that overflow", file, wire.FsctlAllocatedRanges, numbers(2, 1<<63-1), 16, wire.StatusInvalidParameter, 0},
		{"ranges, too little room", file, wire.FsctlAllocatedRanges, numbers(0, 8192), 15, wire.StatusBufferTooSmall, 0},
		{"ranges, by who may not read", looker, wire.FsctlAllocatedRanges, numbers(0, 8192), 16, wire.StatusAccessDenied, 0},
		{"ranges of a directory", dir, wire.FsctlAllocatedRanges, numbers(0, 8192), 16, wire.StatusInvalidParameter, 0},

		{"compression", file, wire.FsctlGetCompression, nil, 2, wire.StatusOK, 2},
		{"compression, too little room", file, wire.FsctlGetCompression, nil, 1, wire.StatusInvalidParameter, 0},
		{"compress not", file, wire.FsctlSetCompression, []byte{0, 0}, 0, wire.StatusOK, 0},
		{"compress", file, wire.FsctlSetCompression, []byte{1, 0}, 0, wire.StatusNotSupported, 0},
		{"compress, too short", file, wire.FsctlSetCompression, []byte{1}, 0, wire.StatusInvalidParameter, 0},
		{"compress, by a reader", reader, wire.FsctlSetCompression, []byte{0, 0}, 0, wire.StatusAccessDenied, 0},

		{"object id", file, wire.FsctlMakeObjectID, nil, 64, wire.StatusOK, 64},
		{"object id that is there", file, wire.FsctlGetObjectID, nil, 64, wire.StatusOK, 64},
		{"object id, too little room", file, wire.FsctlMakeObjectID, nil, 63, wire.StatusInvalidParameter, 0},

		{"reparse point of a file", file, wire.FsctlGetReparsePoint, nil, 100, wire.StatusNotAReparsePoint, 0},
		{"reparse point of a pipe", fifo, wire.FsctlGetReparsePoint, nil, 16, wire.StatusOK, 16},
		{"reparse point, too little room", fifo, wire.FsctlGetReparsePoint, nil, 15, wire.StatusBufferOverflow, 15},
		{"reparse point, hardly any room", fifo, wire.FsctlGetReparsePoint, nil, 7, wire.StatusBufferTooSmall, 0},
		{"path name", file, wire.FsctlIsPathnameValid, nil, 0, wire.StatusOK, 0},
	} {
		out, err := tt.f.Ioctl(tt.code, tt.in, tt.max)
		if !is(err, tt.want) || len(out) != tt.output {
			t.Errorf("%s: %v with %d bytes, want %v with %d", tt.name, err, len(out), tt.want, tt.output)
		}
	}
}

// What is copied, and how much at once: MS-SMB2 sections 3.3.5.15.6 and 3.3.3.
func TestCopyChunk(t *testing.T) {
	_, _, c := rig(t)
	src, dst := open(t, c, "src"), open(t, c, "dst")
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	for off := 0; off < len(data); off += 1 << 16 {
		write(t, src, int64(off), string(data[off:off+1<<16]))
	}
	key, err := src.Ioctl(wire.FsctlResumeKey, nil, 32)
	if err != nil {
		t.Fatal(err)
	}
	type chunk struct {
		from, to uint64
		n        uint32
	}
	request := func(chunks ...chunk) []byte {
		b := append(bytes.Clone(key[:24]), 0, 0, 0, 0, 0, 0, 0, 0)
		le.PutUint32(b[24:], uint32(len(chunks)))
		for _, x := range chunks {
			b = append(b, numbers(x.from, x.to)...)
			b = le.AppendUint32(b, x.n)
			b = le.AppendUint32(b, 0)
		}
		return b
	}
	many := func(count int, n uint32) []byte {
		return request(slices.Repeat([]chunk{{0, 0, n}}, count)...)
	}
	type reply [3]uint32
	limits := reply{256, 1 << 20, 16 << 20}
	for _, tt := range []struct {
		name string
		in   []byte
		want wire.Status
		told reply
	}{
		{"two, the second first", request(chunk{1 << 20, 0, 1 << 20}, chunk{0, 1 << 20, 1 << 20}), wire.StatusOK, reply{2, 0, 2 << 20}},
		{"odd offsets", request(chunk{3, 5, 70001}), wire.StatusOK, reply{1, 0, 70001}},
		{"256", many(256, 1), wire.StatusOK, reply{256, 0, 256}},
		{"257", many(257, 1), wire.StatusInvalidParameter, limits},
		{"16 MiB", many(16, 1<<20), wire.StatusOK, reply{16, 0, 16 << 20}},
		{"more", many(17, 1<<20), wire.StatusInvalidParameter, limits},
		{"a chunk of more than 1 MiB", request(chunk{0, 0, 1<<20 + 1}), wire.StatusInvalidParameter, limits},
		{"a chunk of nothing", request(chunk{0, 0, 1}, chunk{0, 0, 0}), wire.StatusInvalidParameter, limits},
		{"none", request(), wire.StatusOK, reply{}},
		{"behind the end of the source", request(chunk{0, 0, 10}, chunk{3<<20 - 5, 10, 10}), wire.StatusInvalidViewSize, reply{1, 0, 10}},
		{"of numbers that overflow", request(chunk{1<<64 - 5, 0, 10}), wire.StatusInvalidParameter, reply{}},
	} {
		out, err := dst.Ioctl(wire.FsctlCopyChunk, tt.in, 12)
		var got reply
		if len(out) == 12 {
			got = reply{le.Uint32(out), le.Uint32(out[4:]), le.Uint32(out[8:])}
		}
		if !is(err, tt.want) || got != tt.told {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, err, got, tt.want, tt.told)
		}
	}
	if _, err := dst.Ioctl(wire.FsctlCopyChunk, request(chunk{100, 0, 1 << 20}, chunk{0, 1 << 20, 5}), 12); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dst, 1<<20-100, 105); got != string(data[1<<20:][:100])+string(data[:5]) {
		t.Error("the copy is not what was copied")
	}
	// Over itself it is as if copied by a buffer.
	if _, err := src.Ioctl(wire.FsctlCopyChunk, request(chunk{0, 1000, 5000}), 12); err != nil {
		t.Fatal(err)
	}
	if got := read(t, src, 1000, 5000); got != string(data[:5000]) {
		t.Error("the copy over itself is not what was copied")
	}
	// Somebody who only writes may be copied to, by the other control.
	writer := open(t, c, "dst", access(rightWriteData|rightReadAttrs))
	if _, err := writer.Ioctl(wire.FsctlCopyChunk, request(chunk{0, 0, 1}), 12); err != wire.StatusAccessDenied {
		t.Errorf("COPYCHUNK by a writer: %v", err)
	}
	if _, err := writer.Ioctl(wire.FsctlCopyChunkWrite, request(chunk{0, 0, 1}), 12); err != nil {
		t.Errorf("COPYCHUNK_WRITE by a writer: %v", err)
	}
}

// Holes are those of the store, and only a sparse file tells of them.
func TestSparse(t *testing.T) {
	_, _, c := rig(t)
	f := open(t, c, "f")
	write(t, f, 0, strings.Repeat("x", 1<<18))
	zero := func(from, to uint64) {
		t.Helper()
		if _, err := f.Ioctl(wire.FsctlSetZeroData, numbers(from, to), 0); err != nil {
			t.Fatal(err)
		}
	}
	ranges := func(max int) ([]byte, error) { return f.Ioctl(wire.FsctlAllocatedRanges, numbers(0, 1<<20), max) }
	zero(65536, 131072)
	if got, err := ranges(4096); err != nil || !bytes.Equal(got, numbers(0, 1<<18)) {
		t.Errorf("not sparse: %x, %v", got, err)
	}
	if got := read(t, f, 65530, 12); got != "xxxxxx\x00\x00\x00\x00\x00\x00" {
		t.Errorf("zeroes: %q", got)
	}
	if _, err := f.Ioctl(wire.FsctlSetSparse, nil, 0); err != nil {
		t.Fatal(err)
	}
	want := numbers(0, 65536, 131072, 131072)
	if got, err := ranges(4096); err != nil || !bytes.Equal(got, want) {
		t.Errorf("sparse: %x, %v", got, err)
	}
	if got, err := ranges(31); err != wire.StatusBufferOverflow || !bytes.Equal(got, want[:16]) {
		t.Errorf("room for one: %x, %v", got, err)
	}
	if b, err := f.Info(wire.FileBasic); err != nil || le.Uint32(b[32:])&wire.AttrSparse == 0 {
		t.Errorf("the attribute is missing: %x, %v", b, err)
	}
}

// A clone shares pages, and does not make the file longer.
func TestDuplicateExtents(t *testing.T) {
	_, root, c := rig(t)
	src, dst := open(t, c, "src"), open(t, c, "dst")
	write(t, src, 0, strings.Repeat("s", 1<<18))
	write(t, dst, 0, strings.Repeat("d", 1<<17))
	used := func() int64 { return root.Store().Statfs().UsedBytes }
	before := used()
	in := append(numbers(src.ID.Persistent, src.ID.Volatile), numbers(0, 65536, 1<<18)...)
	if _, err := dst.Ioctl(wire.FsctlDuplicateExtents, in, 0); err != nil {
		t.Fatal(err)
	}
	if after := used(); after > before {
		t.Errorf("%d bytes more", after-before)
	}
	if got := read(t, dst, 65535, 2); got != "ds" {
		t.Errorf("%q", got)
	}
	if b, err := dst.Info(wire.FileStandard); err != nil || le.Uint64(b[8:]) != 1<<17 {
		t.Errorf("size: %x, %v", b, err)
	}
	write(t, src, 65536, "S")
	if got := read(t, dst, 131071, 1); got != "s" {
		t.Errorf("after a change of the source: %q", got)
	}
	// What is sparse becomes so only where that is allowed.
	if _, err := src.Ioctl(wire.FsctlSetSparse, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := dst.Ioctl(wire.FsctlDuplicateExtents, in, 0); err != wire.StatusNotSupported {
		t.Errorf("sparse into not sparse: %v", err)
	}
}

// An object id is a file's under all its names.
func TestObjectID(t *testing.T) {
	_, _, c := rig(t)
	f, g := open(t, c, "f"), open(t, c, "g")
	id := func(f *smbtest.File) string {
		b, err := f.Ioctl(wire.FsctlMakeObjectID, nil, 64)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:16])
	}
	was := id(f)
	if was == id(g) {
		t.Error("two files have one id")
	}
	if err := f.SetInfo(wire.FileRename, smbtest.Rename("h", false)); err != nil {
		t.Fatal(err)
	}
	if got := id(open(t, c, "h")); got != was {
		t.Errorf("%x was %x", got, was)
	}
}

// Symlinks and special files: what a client sets others see, and the other way.
func TestReparsePoints(t *testing.T) {
	_, root, c := rig(t)
	link := func(target string, flags uint32) []byte {
		return (&wire.Reparse{Tag: wire.TagSymlink, Target: text(target), Flags: flags}).Append(nil)
	}
	good := link(`d\x`, wire.SymlinkRelative)
	full := open(t, c, "full")
	write(t, full, 0, "data")
	for _, tt := range []struct {
		name string
		in   []byte
		want wire.Status
	}{
		{"nothing", nil, wire.StatusReparseDataInvalid},
		{"half a header", good[:7], wire.StatusReparseDataInvalid},
		{"cut short", good[:len(good)-1], wire.StatusReparseDataInvalid},
		{"longer than it says", append(bytes.Clone(good), 0), wire.StatusReparseDataInvalid},
		{"too long", make([]byte, 16<<10+1), wire.StatusReparseDataInvalid},
		{"of a kind that there is not", []byte{3, 0, 0, 0xA0, 0, 0, 0, 0}, wire.StatusReparseNotHandled},
		{"a target of nothing", link("", 1), wire.StatusInvalidParameter},
		{"a device, which root alone makes", (&wire.Reparse{Tag: wire.TagNFS, Special: wire.SpecialChar, Major: 1, Minor: 3}).Append(nil), wire.StatusAccessDenied},
	} {
		f := open(t, c, "l")
		if _, err := f.Ioctl(wire.FsctlSetReparsePoint, tt.in, 0); !is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if b, err := f.Info(wire.FileBasic); err != nil || le.Uint32(b[32:])&wire.AttrReparse != 0 {
			t.Errorf("%s: it has become one: %x, %v", tt.name, b, err)
		}
		f.Close()
	}
	if _, err := full.Ioctl(wire.FsctlSetReparsePoint, good, 0); err != wire.StatusReparseTagMismatch {
		t.Errorf("a file with data: %v", err)
	}
	if _, err := open(t, c, "").Ioctl(wire.FsctlSetReparsePoint, good, 0); err != wire.StatusAccessDenied {
		t.Errorf("the root: %v", err)
	}

	// The name is there all the time.
	f := open(t, c, "l")
	if _, err := f.Ioctl(wire.FsctlSetReparsePoint, good, 0); err != nil {
		t.Fatal(err)
	}
	i, err := root.Lookup(memstore.Root(), "l")
	if err != nil {
		t.Fatal(err)
	}
	if target, err := i.Readlink(memstore.Root()); target != "d/x" || err != nil {
		t.Errorf("%q, %v", target, err)
	}
	if got, err := f.Ioctl(wire.FsctlGetReparsePoint, nil, 1000); err != nil || !bytes.Equal(got, good) {
		t.Errorf("%x, %v", got, err)
	}
	if _, err := c.Open(smbtest.OpenArgs{Path: "l", Access: rightReadAttrs, Disposition: wire.FileOpen}); err != wire.StatusStoppedOnSymlink {
		t.Errorf("open by the link: %v", err)
	}
	if err := f.SetInfo(wire.FileFullEA, eaList("name", "value")); err != wire.StatusEANotSupported {
		t.Errorf("an extended attribute of a link: %v", err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	f.Close()
	if _, err := root.Lookup(memstore.Root(), "l"); err != memstore.ErrNotExist {
		t.Errorf("removed: %v", err)
	}

	// A directory becomes one too, if it is empty.
	d := open(t, c, "dir", folder)
	below := open(t, c, `dir\f`)
	if _, err := d.Ioctl(wire.FsctlSetReparsePoint, good, 0); err != wire.StatusDirectoryNotEmpty {
		t.Errorf("a directory with a file: %v", err)
	}
	below.Remove()
	below.Close()
	if _, err := d.Ioctl(wire.FsctlSetReparsePoint, good, 0); err != nil {
		t.Fatal(err)
	}
	if b, err := d.Info(wire.FileBasic); err != nil || le.Uint32(b[32:]) != wire.AttrReparse|wire.AttrDirectory {
		t.Errorf("a link to a directory: %x, %v", b, err)
	}
	for special, typ := range map[uint64]memstore.Type{wire.SpecialFIFO: memstore.TypeFIFO, wire.SpecialSocket: memstore.TypeSocket} {
		f := open(t, c, "special")
		if _, err := f.Ioctl(wire.FsctlSetReparsePoint, (&wire.Reparse{Tag: wire.TagNFS, Special: special}).Append(nil), 0); err != nil {
			t.Fatal(err)
		}
		if i, err := root.Lookup(memstore.Root(), "special"); err != nil || i.Type() != typ {
			t.Errorf("%#x: %v", special, err)
		}
		f.Remove()
		f.Close()
	}
}
