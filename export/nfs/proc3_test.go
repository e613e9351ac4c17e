package nfs

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

func TestHandles(t *testing.T) {
	r := start(t, nil)
	gone := r.create("gone")
	_, err := r.one.Remove(r.root, "gone")
	want(t, err, nfs3.OK)
	edit := func(at int, v byte) []byte {
		fh := bytes.Clone(r.root)
		fh[at] ^= v
		return fh
	}
	for _, tt := range []struct {
		name string
		fh   []byte
		want nfs3.Status
	}{
		{"the root's", r.root, nfs3.OK},
		{"empty", nil, nfs3.ErrBadHandle},
		{"short", r.root[:31], nfs3.ErrBadHandle},
		{"long", append(bytes.Clone(r.root), 0), nfs3.ErrBadHandle},
		{"another version", edit(3, 2), nfs3.ErrBadHandle},
		{"another export", edit(7, 1), nfs3.ErrStale},
		{"another store", edit(15, 1), nfs3.ErrStale},
		{"another inode", edit(23, 128), nfs3.ErrStale},
		{"an inode far away", edit(16, 255), nfs3.ErrStale},
		{"another generation", edit(31, 1), nfs3.ErrStale},
		{"of a removed file", gone, nfs3.ErrStale},
	} {
		_, err := r.one.GetAttr(tt.fh)
		if tt.want == nfs3.OK && err != nil || tt.want != nfs3.OK && err != error(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// READ's count and EOF, RFC 1813 section 3.3.6.
func TestRead(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	_, err := r.one.Write(fh, 0, bytes.Repeat([]byte("0123456789"), 30_000), nfs3.Unstable)
	want(t, err, nfs3.OK)
	for _, tt := range []struct {
		off   uint64
		count uint32
		want  int
		eof   bool
	}{
		{0, 0, 0, false},
		{0, 10, 10, false},
		{299_990, 9, 9, false},
		{299_990, 10, 10, true},
		{299_990, 11, 10, true},
		{300_000, 0, 0, true},
		{300_000, 10, 0, true},
		{1 << 40, 10, 0, true},
		{math.MaxUint64, math.MaxUint32, 0, true},
		{math.MaxInt64, 10, 0, true},
		{0, 300_000, 300_000, true},
		{1, math.MaxUint32, 299_999, true},
		{200_000, 100_000, 100_000, true},
		{400_000, 100_000, 0, true},
	} {
		got, err := r.one.Read(fh, tt.off, tt.count)
		if err != nil || len(got.Data) != tt.want || got.EOF != tt.eof || int(got.Count) != tt.want || !got.Attr.Follows {
			t.Errorf("read %d+%d: %d bytes, EOF %v, %v; want %d, %v", tt.off, tt.count, len(got.Data), got.EOF, err, tt.want, tt.eof)
		}
		if tt.want > 0 && got.Data[0] != byte('0'+tt.off%10) {
			t.Errorf("read %d+%d begins with %q", tt.off, tt.count, got.Data[0])
		}
	}
	_, err = r.one.Read(r.root, 0, 10)
	want(t, err, nfs3.ErrIsDir)
	_, err = r.one.Write(r.root, 0, []byte("x"), nfs3.Unstable)
	want(t, err, nfs3.ErrIsDir)
	_, err = r.one.Write(fh, math.MaxInt64, []byte("x"), nfs3.Unstable)
	want(t, err, nfs3.ErrFBig)
	_, err = r.one.Write(fh, math.MaxUint64, []byte("x"), nfs3.Unstable)
	want(t, err, nfs3.ErrFBig)
}

// WRITE and COMMIT answer with a verifier that another server does not have,
// and everything is FILE_SYNC.
func TestWriteVerifier(t *testing.T) {
	var seen []uint64
	for range 2 {
		t.Run("", func(t *testing.T) {
			r := start(t, nil)
			fh := r.create("f")
			for _, how := range []nfs3.Stable{nfs3.Unstable, nfs3.DataSync, nfs3.FileSync} {
				w, err := r.one.Write(fh, 0, []byte("x"), how)
				want(t, err, nfs3.OK)
				c, err := r.one.Commit(fh, 0, 0)
				want(t, err, nfs3.OK)
				if w.Committed != nfs3.FileSync || w.Verf != c.Verf {
					t.Errorf("committed %d, verifiers %x and %x", w.Committed, w.Verf, c.Verf)
				}
				seen = append(seen, w.Verf)
			}
		})
	}
	if seen[0] != seen[2] || seen[0] == seen[3] {
		t.Errorf("verifiers %x", seen)
	}
}

// A short write is an answer, not an error; then there is no space.
func TestFull(t *testing.T) {
	r := start(t, func(c *Config) {
		st, err := memstore.New(memstore.Config{Name: "small", Size: 2 << 20, RootMode: 0o777})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		c.Exports = newTable(t, exportOf(st, "small"))
	})
	fh := r.create("f")
	var written uint64
	for {
		w, err := r.one.Write(fh, written, make([]byte, 1<<20), nfs3.Unstable)
		if err != nil {
			want(t, err, nfs3.ErrNoSpc)
			break
		}
		if written += uint64(w.Count); w.Count == 0 || written > 2<<20 {
			t.Fatalf("wrote %d, in all %d", w.Count, written)
		}
	}
	a, err := r.one.GetAttr(fh)
	want(t, err, nfs3.OK)
	st, err := r.one.FSStat(r.root)
	want(t, err, nfs3.OK)
	if a.Size != written || st.FreeBytes >= 64<<10 || st.TotalBytes != 2<<20 {
		t.Errorf("size %d, wrote %d, free %d", a.Size, written, st.FreeBytes)
	}
	_, err = r.one.Remove(r.root, "f")
	want(t, err, nfs3.OK)
	r.create("g")
}

// wcc_data, RFC 1813 section 2.6: before and after every change, and after it
// where it failed.
func TestWcc(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	where := nfs3.DirOp{Dir: r.root, Name: "g"}
	check := func(what string, d nfs3.WccData, before, after nfs3.Fattr) {
		t.Helper()
		if !d.HasBefore || d.Before != (nfs3.WccAttr{Size: before.Size, Mtime: before.Mtime, Ctime: before.Ctime}) {
			t.Errorf("%s: before is %+v, want %+v", what, d.Before, before)
		}
		if !d.After.Follows || d.After.Attr != after {
			t.Errorf("%s: after is %+v, want %+v", what, d.After, after)
		}
	}
	for _, tt := range []struct {
		name string
		obj  []byte
		run  func() (nfs3.WccData, error)
		want nfs3.Status
	}{
		{"CREATE", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Create(nfs3.CreateArgs{Where: where, Mode: nfs3.Guarded})
			return res.Dir, err
		}, nfs3.OK},
		{"CREATE again", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Create(nfs3.CreateArgs{Where: where, Mode: nfs3.Guarded})
			return res.Dir, err
		}, nfs3.ErrExist},
		{"MKDIR", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Mkdir(r.root, "d", nfs3.Sattr{})
			return res.Dir, err
		}, nfs3.OK},
		{"SYMLINK", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Symlink(r.root, "s", "t", nfs3.Sattr{})
			return res.Dir, err
		}, nfs3.OK},
		{"MKNOD", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Mknod(nfs3.MknodArgs{Where: nfs3.DirOp{Dir: r.root, Name: "p"}, Type: nfs3.TypeFIFO})
			return res.Dir, err
		}, nfs3.OK},
		{"LINK", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Link(fh, r.root, "l")
			return res.Dir, err
		}, nfs3.OK},
		{"RENAME", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Rename(r.root, "l", r.root, "m")
			return res.To, err
		}, nfs3.OK},
		{"RENAME of nothing", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Rename(r.root, "l", r.root, "m")
			return res.From, err
		}, nfs3.ErrNoEnt},
		{"REMOVE", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Remove(r.root, "m")
			return res.Wcc, err
		}, nfs3.OK},
		{"REMOVE of a directory", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Remove(r.root, "d")
			return res.Wcc, err
		}, nfs3.ErrIsDir},
		{"RMDIR", r.root, func() (nfs3.WccData, error) {
			res, err := r.one.Rmdir(r.root, "d")
			return res.Wcc, err
		}, nfs3.OK},
		{"WRITE", fh, func() (nfs3.WccData, error) {
			res, err := r.one.Write(fh, 5, []byte("x"), nfs3.FileSync)
			return res.Wcc, err
		}, nfs3.OK},
		{"WRITE of pages", fh, func() (nfs3.WccData, error) {
			res, err := r.one.Write(fh, 0, make([]byte, 1<<20), nfs3.FileSync)
			return res.Wcc, err
		}, nfs3.OK},
		{"SETATTR", fh, func() (nfs3.WccData, error) {
			res, err := r.one.SetAttr(nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetMode: true, Mode: 0o600}})
			return res.Wcc, err
		}, nfs3.OK},
		{"SETATTR with another guard", fh, func() (nfs3.WccData, error) {
			res, err := r.one.SetAttr(nfs3.SetAttrArgs{FH: fh, Attr: nfs3.Sattr{SetMode: true}, Check: true})
			return res.Wcc, err
		}, nfs3.ErrNotSync},
	} {
		before, err := r.one.GetAttr(tt.obj)
		want(t, err, nfs3.OK)
		d, err := tt.run()
		if tt.want == nfs3.OK && err != nil || tt.want != nfs3.OK && err != error(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			continue
		}
		after, err := r.one.GetAttr(tt.obj)
		want(t, err, nfs3.OK)
		if changed := before.Ctime != after.Ctime; changed != (tt.want == nfs3.OK) {
			t.Errorf("%s: changed is %v", tt.name, changed)
		}
		check(tt.name, d, before, after)
	}
}

// EXCLUSIVE, RFC 1813 section 3.3.8: the same verifier finds its file, another
// does not, and a SETATTR ends it.
func TestExclusiveCreate(t *testing.T) {
	r := start(t, nil)
	make := func(verf uint64) ([]byte, error) {
		res, err := r.one.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: r.root, Name: "f"}, Mode: nfs3.Exclusive, Verf: verf})
		return bytes.Clone(res.FH.FH), err
	}
	const verf = 0xfedcba9876543210
	first, err := make(verf)
	want(t, err, nfs3.OK)
	again, err := make(verf)
	want(t, err, nfs3.OK)
	if !bytes.Equal(first, again) {
		t.Error("another file")
	}
	_, err = make(verf + 1)
	want(t, err, nfs3.ErrExist)
	_, err = r.one.SetAttr(nfs3.SetAttrArgs{FH: first, Attr: nfs3.Sattr{
		SetMode: true, Mode: 0o444, AtimeHow: nfs3.SetToServerTime, MtimeHow: nfs3.SetToServerTime}})
	want(t, err, nfs3.OK)
	// Its maker has it open, whatever the mode.
	_, err = r.one.Write(first, 0, []byte("x"), nfs3.FileSync)
	want(t, err, nfs3.OK)
	_, err = make(verf)
	want(t, err, nfs3.ErrExist)
}

// Times and the other attributes that CREATE may set are set; times before
// 1970 cannot be said, and a second has 10^9 nanoseconds.
func TestCreateAttributes(t *testing.T) {
	r := start(t, nil)
	set := nfs3.Sattr{
		SetMode: true, Mode: 0o100640, SetUID: true, UID: 7, SetGID: true, GID: 8, SetSize: true, Size: 9,
		AtimeHow: nfs3.SetToClientTime, Atime: nfs3.Time{Sec: 1, Nsec: 2},
		MtimeHow: nfs3.SetToClientTime, Mtime: nfs3.Time{Sec: math.MaxUint32, Nsec: 999_999_999},
	}
	where := nfs3.DirOp{Dir: r.root, Name: "f"}
	res, err := r.one.Create(nfs3.CreateArgs{Where: where, Attr: set})
	want(t, err, nfs3.OK)
	a := res.Attr.Attr
	if a.Type != nfs3.TypeReg || a.Mode != 0o640 || a.UID != 7 || a.GID != 8 || a.Size != 9 || a.Atime != set.Atime || a.Mtime != set.Mtime || a.Nlink != 1 {
		t.Errorf("%+v", a)
	}
	set.Mtime.Nsec = 1e9
	_, err = r.one.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: r.root, Name: "g"}, Attr: set})
	want(t, err, nfs3.ErrInval)
	_, err = r.one.Lookup(r.root, "g")
	want(t, err, nfs3.ErrNoEnt)
	// UNCHECKED of a file that exists sets its size and nothing else.
	_, err = r.one.Create(nfs3.CreateArgs{Where: where, Attr: nfs3.Sattr{SetMode: true, Mode: 0, SetSize: true}})
	want(t, err, nfs3.OK)
	got, err := r.one.GetAttr(res.FH.FH)
	want(t, err, nfs3.OK)
	if got.Size != 0 || got.Mode != 0o640 {
		t.Errorf("%+v", got)
	}
	_, err = r.one.SetAttr(nfs3.SetAttrArgs{FH: res.FH.FH, Check: true, Guard: got.Ctime, Attr: nfs3.Sattr{SetSize: true, Size: 1 << 63}})
	want(t, err, nfs3.ErrFBig)
	_, err = r.one.SetAttr(nfs3.SetAttrArgs{FH: res.FH.FH, Check: true, Guard: got.Ctime, Attr: nfs3.Sattr{SetSize: true, Size: 1 << 40}})
	want(t, err, nfs3.OK)
}

// Every type that MKNOD can make, and those that it cannot.
func TestMknod(t *testing.T) {
	r := start(t, nil)
	user := r.dial(client.Options{UID: 1000, GID: 1000})
	for _, tt := range []struct {
		typ  nfs3.Type
		c    *client.Client
		want nfs3.Status
	}{
		{nfs3.TypeFIFO, user, nfs3.OK},
		{nfs3.TypeSock, user, nfs3.OK},
		{nfs3.TypeChr, r.one, nfs3.OK},
		{nfs3.TypeBlk, r.one, nfs3.OK},
		{nfs3.TypeChr, user, nfs3.ErrPerm},
		{nfs3.TypeReg, r.one, nfs3.ErrBadType},
		{nfs3.TypeDir, r.one, nfs3.ErrBadType},
		{nfs3.TypeLnk, r.one, nfs3.ErrBadType},
		{99, r.one, nfs3.ErrBadType},
	} {
		name := fmt.Sprint("node", tt.typ, tt.want)
		res, err := tt.c.Mknod(nfs3.MknodArgs{Where: nfs3.DirOp{Dir: r.root, Name: name}, Type: tt.typ, Major: 8, Minor: 300,
			Attr: nfs3.Sattr{SetMode: true, Mode: 0o660}})
		if tt.want != nfs3.OK {
			want(t, err, tt.want)
			continue
		}
		want(t, err, nfs3.OK)
		a := res.Attr.Attr
		device := tt.typ == nfs3.TypeChr || tt.typ == nfs3.TypeBlk
		if a.Type != tt.typ || a.Mode != 0o660 || device != (a.Major == 8 && a.Minor == 300) {
			t.Errorf("type %d: %+v", tt.typ, a)
		}
	}
}

func TestAccess(t *testing.T) {
	const (
		rd, lk, md, ex, dl, xc = nfs3.AccessRead, nfs3.AccessLookup, nfs3.AccessModify, nfs3.AccessExtend, nfs3.AccessDelete, nfs3.AccessExecute
		all                    = rd | lk | md | ex | dl | xc
	)
	r := start(t, nil)
	owner := r.dial(client.Options{UID: 1000, GID: 1000})
	group := r.dial(client.Options{UID: 1001, GID: 5, Groups: []uint32{6, 1000}})
	other := r.dial(client.Options{UID: 1002, GID: 5})
	for _, tt := range []struct {
		dir                       bool
		mode                      uint32
		owner, group, other, root uint32
	}{
		{false, 0o640, rd | md | ex, rd, 0, rd | md | ex},
		{false, 0o751, rd | md | ex | xc, rd | xc, xc, rd | md | ex | xc},
		{false, 0o007, 0, 0, rd | md | ex | xc, rd | md | ex | xc},
		{true, 0o750, rd | lk | md | ex | dl, rd | lk, 0, rd | lk | md | ex | dl},
		{true, 0o311, lk | md | ex | dl, lk, lk, rd | lk | md | ex | dl},
	} {
		name := fmt.Sprint(tt.dir, tt.mode)
		attr := nfs3.Sattr{SetMode: true, Mode: tt.mode}
		var res nfs3.CreateRes
		var err error
		if tt.dir {
			res, err = owner.Mkdir(r.root, name, attr)
		} else {
			res, err = owner.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: r.root, Name: name}, Attr: attr})
		}
		want(t, err, nfs3.OK)
		for who, c := range map[*client.Client]uint32{owner: tt.owner, group: tt.group, other: tt.other, r.one: tt.root} {
			got, err := who.Access(res.FH.FH, all)
			if err != nil || got.Access != c {
				t.Errorf("%s: access %#x, %v; want %#x", name, got.Access, err, c)
			}
			if got, _ := who.Access(res.FH.FH, rd); got.Access != c&rd {
				t.Errorf("%s: more access than asked for: %#x", name, got.Access)
			}
		}
	}
}

// READDIR and READDIRPLUS keep to the client's limits, RFC 1813 sections 3.3.16
// and 3.3.17, and list everything once while the directory changes.
func TestReadDir(t *testing.T) {
	r := start(t, nil)
	res, err := r.one.Mkdir(r.root, "d", nfs3.Sattr{})
	want(t, err, nfs3.OK)
	dir := bytes.Clone(res.FH.FH)
	const n = 500
	make := func(name string) {
		_, err := r.one.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: dir, Name: name}})
		want(t, err, nfs3.OK)
	}
	for i := range n {
		make(fmt.Sprintf("%0*d", 1+i%60, i))
	}
	size := func(e encoder) int { return len(encode(e)) - 4 } // without the status
	for _, count := range []uint32{200, 512, 1000, 4096, 32768, 1 << 20} {
		var names []string
		args := nfs3.ReadDirArgs{FH: dir, Count: count}
		for round := 0; ; round++ {
			res, err := r.one.ReadDir(args)
			want(t, err, nfs3.OK)
			if got := size(&res); got > int(min(count, dirMax)) {
				t.Fatalf("READDIR of %d bytes answers %d", count, got)
			}
			for _, e := range res.Entries {
				names = append(names, e.Name)
				args.Cookie = e.Cookie
			}
			if res.EOF {
				break
			}
			if len(res.Entries) == 0 {
				t.Fatalf("READDIR of %d bytes does not advance", count)
			}
			args.CookieVerf = res.CookieVerf
			// What comes and goes meanwhile does not disturb the rest.
			if round < 20 {
				make("new")
				_, err = r.one.Remove(dir, "new")
				want(t, err, nfs3.OK)
			}
		}
		if len(names) != n+2 || names[0] != "." || names[1] != ".." {
			t.Errorf("READDIR of %d bytes lists %d names", count, len(names))
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != n+2 {
			t.Errorf("READDIR of %d bytes lists some twice", count)
		}
	}
	for _, tt := range []struct {
		dircount, maxcount uint32
		want               nfs3.Status
		entries            int // in the first reply; 0: whatever fits
	}{
		{512, 103, nfs3.ErrTooSmall, 0},
		{512, 200, nfs3.ErrTooSmall, 0},
		{512, 400, nfs3.OK, 1},
		{0, 32768, nfs3.OK, 1},
		{28 + 28 + 28, 32768, nfs3.OK, 3},
		{1 << 20, 1 << 20, nfs3.OK, 0},
		{8192, 32768, nfs3.OK, 0},
	} {
		args := nfs3.ReadDirPlusArgs{FH: dir, DirCount: tt.dircount, MaxCount: tt.maxcount}
		got, err := r.one.ReadDirPlus(args)
		if tt.want != nfs3.OK {
			want(t, err, tt.want)
			continue
		}
		want(t, err, nfs3.OK)
		if tt.entries != 0 && len(got.Entries) != tt.entries || size(&got) > int(min(tt.maxcount, dirMax)) {
			t.Errorf("READDIRPLUS of %d/%d bytes answers %d entries, %d bytes", tt.dircount, tt.maxcount, len(got.Entries), size(&got))
		}
		names := 0
		for i, e := range got.Entries {
			names += nfs3.EntrySize(len(e.Name))
			if i > 0 && names > int(tt.dircount) {
				t.Errorf("READDIRPLUS of %d/%d bytes has %d of names", tt.dircount, tt.maxcount, names)
			}
			a, err := r.one.GetAttr(e.FH.FH)
			if err != nil || !e.Attr.Follows || e.Attr.Attr != a || e.FileID != a.FileID {
				t.Errorf("%s: %+v, %+v, %v", e.Name, e, a, err)
			}
		}
	}
	_, err = r.one.ReadDir(nfs3.ReadDirArgs{FH: r.create("f"), Count: 4096})
	want(t, err, nfs3.ErrNotDir)
	// A cookie that was never given is no error, nor is another verifier.
	for _, cookie := range []uint64{1 << 20, math.MaxUint64} {
		end, err := r.one.ReadDir(nfs3.ReadDirArgs{FH: dir, Cookie: cookie, CookieVerf: 5, Count: 4096})
		want(t, err, nfs3.OK)
		if !end.EOF || len(end.Entries) != 0 {
			t.Errorf("cookie %d: %+v", cookie, end)
		}
	}
}

func TestFileSystem(t *testing.T) {
	for _, max := range []int{0, 64 << 10, 4 << 20} {
		t.Run(fmt.Sprint(max), func(t *testing.T) {
			r := start(t, func(c *Config) { c.MaxIO = max })
			if max == 0 {
				max = 1 << 20
			}
			i, err := r.one.FSInfo(r.root)
			want(t, err, nfs3.OK)
			if int(i.ReadMax) != max || int(i.WriteMax) != max || int(i.ReadPref) != max || int(i.WritePref) != max || i.DirPref != 64<<10 ||
				i.TimeDelta != (nfs3.Time{Nsec: 1}) || i.Properties != nfs3.FSFLink|nfs3.FSFSymlink|nfs3.FSFHomogeneous|nfs3.FSFCanSetTime {
				t.Errorf("%+v", i)
			}
			p, err := r.one.PathConf(r.root)
			want(t, err, nfs3.OK)
			if p.NameMax != 255 || p.LinkMax == 0 || !p.NoTrunc || !p.ChownRestricted || p.CaseInsensitive || !p.CasePreserving {
				t.Errorf("%+v", p)
			}
			fh := r.create("f")
			w, err := r.one.Write(fh, 0, make([]byte, max), nfs3.FileSync)
			want(t, err, nfs3.OK)
			got, err := r.one.Read(fh, 0, math.MaxUint32)
			want(t, err, nfs3.OK)
			if int(w.Count) != max || len(got.Data) != max {
				t.Errorf("wrote %d, read %d", w.Count, len(got.Data))
			}
		})
	}
}

// Everything that changes something answers ROFS.
func TestReadOnly(t *testing.T) {
	var st *memstore.Store
	r := start(t, func(c *Config) {
		st = c.Exports.All()[0].Store
		e := exportOf(st, "ro")
		e.ReadOnly = true
		c.Exports = newTable(t, e)
	})
	made, err := st.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.one.Lookup(r.root, "f")
	want(t, err, nfs3.OK)
	fh := bytes.Clone(res.FH)
	where := nfs3.DirOp{Dir: r.root, Name: "g"}
	for name, run := range map[string]func() (nfs3.WccData, error){
		"SETATTR": func() (nfs3.WccData, error) { r, err := r.one.SetAttr(nfs3.SetAttrArgs{FH: fh}); return r.Wcc, err },
		"WRITE":   func() (nfs3.WccData, error) { r, err := r.one.Write(fh, 0, []byte("x"), 0); return r.Wcc, err },
		"large WRITE": func() (nfs3.WccData, error) {
			r, err := r.one.Write(fh, 0, make([]byte, 1<<20), 0)
			return r.Wcc, err
		},
		"CREATE": func() (nfs3.WccData, error) { r, err := r.one.Create(nfs3.CreateArgs{Where: where}); return r.Dir, err },
		"MKDIR":  func() (nfs3.WccData, error) { r, err := r.one.Mkdir(r.root, "g", nfs3.Sattr{}); return r.Dir, err },
		"SYMLINK": func() (nfs3.WccData, error) {
			r, err := r.one.Symlink(r.root, "g", "t", nfs3.Sattr{})
			return r.Dir, err
		},
		"MKNOD": func() (nfs3.WccData, error) {
			r, err := r.one.Mknod(nfs3.MknodArgs{Where: where, Type: nfs3.TypeFIFO})
			return r.Dir, err
		},
		"REMOVE": func() (nfs3.WccData, error) { r, err := r.one.Remove(r.root, "f"); return r.Wcc, err },
		"RMDIR":  func() (nfs3.WccData, error) { r, err := r.one.Rmdir(r.root, "f"); return r.Wcc, err },
		"RENAME": func() (nfs3.WccData, error) { r, err := r.one.Rename(r.root, "f", r.root, "g"); return r.From, err },
		"LINK": func() (nfs3.WccData, error) {
			r, err := r.one.Link(fh, r.root, "g")
			return nfs3.WccData{After: r.Attr}, err
		},
		"COMMIT": func() (nfs3.WccData, error) { r, err := r.one.Commit(fh, 0, 0); return r.Wcc, err },
	} {
		d, err := run()
		if err != error(nfs3.ErrROFS) || !d.After.Follows {
			t.Errorf("%s: %v, attributes %v", name, err, d.After.Follows)
		}
	}
	a, err := r.one.Access(r.root, 63)
	want(t, err, nfs3.OK)
	if a.Access != nfs3.AccessRead|nfs3.AccessLookup {
		t.Errorf("access %#x", a.Access)
	}
	if attr, _ := made.Inode.GetAttr(memstore.Root()); attr.Size != 0 || attr.Nlink != 1 {
		t.Errorf("%+v", attr)
	}
}

// An export of a folder is a boundary: neither ".." nor a handle of another
// export of the store leads out of it.
func TestExportBoundary(t *testing.T) {
	r := start(t, func(c *Config) {
		all := c.Exports.All()[0]
		all.ReadOnly = true
		made, err := all.Root.Create(memstore.Root(), "sub", &memstore.Create{Type: memstore.TypeDir, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o777}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.Root.Create(memstore.Root(), "secret", &memstore.Create{Type: memstore.TypeFile}); err != nil {
			t.Fatal(err)
		}
		sub := exportOf(all.Store, "part")
		sub.Root = made.Inode
		c.Exports = newTable(t, all, sub)
	})
	m, err := r.one.Mount("/part")
	if err != nil {
		t.Fatal(err)
	}
	part := bytes.Clone(m.FH)
	up, err := r.one.Lookup(part, "..")
	want(t, err, nfs3.OK)
	if !bytes.Equal(up.FH, part) {
		t.Error(`".." of the export's root leads elsewhere`)
	}
	list, err := r.one.ReadDirPlus(nfs3.ReadDirPlusArgs{FH: part, DirCount: 4096, MaxCount: 4096})
	want(t, err, nfs3.OK)
	if len(list.Entries) != 2 || list.Entries[1].Name != ".." || !bytes.Equal(list.Entries[1].FH.FH, part) {
		t.Errorf("%+v", list.Entries)
	}

	secret, err := r.one.Lookup(r.root, "secret")
	want(t, err, nfs3.OK)
	forged := bytes.Clone(secret.FH)
	copy(forged[4:8], part[4:8])
	_, err = r.one.Write(forged, 0, []byte("x"), nfs3.FileSync)
	want(t, err, nfs3.ErrStale)

	made, err := r.one.Mkdir(part, "d", nfs3.Sattr{SetMode: true, Mode: 0o777})
	want(t, err, nfs3.OK)
	dir := bytes.Clone(made.FH.FH)
	up, err = r.one.Lookup(dir, "..")
	want(t, err, nfs3.OK)
	if !bytes.Equal(up.FH, part) {
		t.Error(`".." of a folder is not its parent`)
	}
	_, err = r.one.Rename(part, "d", r.root, "d")
	want(t, err, nfs3.ErrXDev)
	// Somebody moves the folder out of the export; from there no way leads up.
	root := r.store.Root()
	sub, err := root.Lookup(memstore.Root(), "sub")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.store.Rename(memstore.Root(), sub, "d", root, "d", 0); err != nil {
		t.Fatal(err)
	}
	_, err = r.one.Lookup(dir, "..")
	want(t, err, nfs3.ErrStale)
	list, err = r.one.ReadDirPlus(nfs3.ReadDirPlusArgs{FH: dir, DirCount: 4096, MaxCount: 4096})
	want(t, err, nfs3.OK)
	if !bytes.Equal(list.Entries[1].FH.FH, dir) {
		t.Error(`".." in a listing leads out of the export`)
	}
}

func TestMount(t *testing.T) {
	r := start(t, func(c *Config) {
		all := c.Exports.All()[0]
		other := exportOf(all.Store, "other")
		other.Allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		c.Exports = newTable(t, all, other)
	})
	user := r.dial(client.Options{UID: 1000, GID: 1000})
	for _, name := range []string{"sub", "other", "private"} {
		_, err := r.one.Mkdir(r.root, name, nfs3.Sattr{SetMode: true, Mode: 0o755})
		want(t, err, nfs3.OK)
	}
	private, err := r.one.Walk(r.root, "private")
	want(t, err, nfs3.OK)
	_, err = r.one.Mkdir(private, "open", nfs3.Sattr{SetMode: true, Mode: 0o777})
	want(t, err, nfs3.OK)
	_, err = r.one.SetAttr(nfs3.SetAttrArgs{FH: private, Attr: nfs3.Sattr{SetMode: true, Mode: 0o700}})
	want(t, err, nfs3.OK)
	r.create("file")
	_, err = r.one.Symlink(r.root, "link", "sub", nfs3.Sattr{})
	want(t, err, nfs3.OK)

	for _, tt := range []struct {
		c    *client.Client
		path string
		want nfs3.MountStatus
	}{
		{r.one, "/", nfs3.MountOK},
		{r.one, "", nfs3.MountOK},
		{r.one, "/ramdisk", nfs3.MountOK},
		{r.one, "/ramdisk/", nfs3.MountOK},
		{r.one, "/sub", nfs3.MountOK},
		{r.one, "/ramdisk/sub", nfs3.MountOK},
		{r.one, "/other", nfs3.MountOK},
		{r.one, "/private/open", nfs3.MountOK},
		{user, "/private/open", nfs3.MountErrAcces},
		{r.one, "/missing", nfs3.MountErrNoEnt},
		{r.one, "/sub/../private", nfs3.MountErrNoEnt},
		{r.one, "/file", nfs3.MountErrNotDir},
		{r.one, "/link", nfs3.MountErrNotDir},
		{r.one, "/link/x", nfs3.MountErrNotDir},
		{r.one, "/" + string(bytes.Repeat([]byte("n"), 300)), nfs3.MountErrNameTooLong},
	} {
		res, err := tt.c.Mount(tt.path)
		res1, err1 := tt.c.Mount1(tt.path)
		if tt.want != nfs3.MountOK {
			if err != error(tt.want) || err1 != error(tt.want) {
				t.Errorf("%q: %v and %v, want %v", tt.path, err, err1, tt.want)
			}
			continue
		}
		if err != nil || err1 != nil || !bytes.Equal(res.FH, res1.FH[:]) || !slices.Equal(res.Flavors, []uint32{1, 0}) {
			t.Errorf("%q: %+v, %v and %+v, %v", tt.path, res, err, res1, err1)
		}
	}

	list, err := r.one.Mounts()
	if err != nil || len(list) != 8 || list[0] != (nfs3.Mounted{Host: "127.0.0.1", Path: "/"}) {
		t.Errorf("mounts %v, %v", list, err)
	}
	if err := r.one.Unmount("/sub"); err != nil {
		t.Error(err)
	}
	if list, _ := r.one.Mounts(); len(list) != 7 || len(r.s.Stats().Mounts) != 7 {
		t.Errorf("mounts %v", list)
	}
	if err := r.one.UnmountAll(); err != nil {
		t.Error(err)
	}
	if list, _ := r.one.Mounts(); len(list) != 0 {
		t.Errorf("mounts %v", list)
	}
	exports, err := r.one.Exports()
	if err != nil || fmt.Sprint(exports) != "[{/ [localhost]} {/ramdisk [localhost]} {/other [localhost 10.0.0.0/8]}]" {
		t.Errorf("exports %v, %v", exports, err)
	}
	for n := range maxMounts + 10 {
		r.s.mounts.add(Mount{"host", fmt.Sprint(n)})
	}
	if all := r.s.mounts.all(); len(all) != maxMounts || all[0].Path != "10" {
		t.Errorf("%d mounts, the first %v", len(all), all[0])
	}
}

// Who the client is, and what that lets it do.
func TestIdentity(t *testing.T) {
	r := start(t, nil)
	made, err := r.one.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: r.root, Name: "f"}, Attr: nfs3.Sattr{SetMode: true, Mode: 0o640, SetGID: true, GID: 50}})
	want(t, err, nfs3.OK)
	fh := bytes.Clone(made.FH.FH)
	for _, tt := range []struct {
		o           client.Options
		read, write nfs3.Status
	}{
		{client.Options{}, nfs3.OK, nfs3.OK},
		{client.Options{UID: 1000, GID: 50}, nfs3.OK, nfs3.ErrAcces},
		{client.Options{UID: 1000, GID: 1, Groups: []uint32{2, 50}}, nfs3.OK, nfs3.ErrAcces},
		{client.Options{UID: 1000, GID: 1}, nfs3.ErrAcces, nfs3.ErrAcces},
		{client.Options{Anonymous: true}, nfs3.ErrAcces, nfs3.ErrAcces},
	} {
		c := r.dial(tt.o)
		_, err := c.Read(fh, 0, 1)
		want(t, err, tt.read)
		res, err := c.Write(fh, 0, []byte("x"), nfs3.FileSync)
		want(t, err, tt.write)
		if !res.Wcc.After.Follows {
			t.Error("no attributes")
		}
	}
}

func encode(e encoder) []byte {
	var w xdr.Writer
	e.Encode(&w)
	return w.B
}
