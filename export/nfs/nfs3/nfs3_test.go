package nfs3

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	xdr2 "github.com/rasky/go-xdr/xdr2"
	oracle "github.com/willscott/go-nfs-client/nfs"

	"ramserver/export/nfs/xdr"
)

type codec interface {
	Decode(*xdr.Reader)
	Encode(*xdr.Writer)
}

// types are all arguments and results; a new one of each name.
func types() map[string]codec {
	m := map[string]codec{}
	for _, c := range []codec{
		new(FHArgs), new(DirOp), new(SetAttrArgs), new(AccessArgs), new(ReadArgs), new(WriteArgs), new(CreateArgs),
		new(MkdirArgs), new(SymlinkArgs), new(MknodArgs), new(RenameArgs), new(LinkArgs), new(ReadDirArgs),
		new(ReadDirPlusArgs), new(CommitArgs),
		new(GetAttrRes), new(WccRes), new(LookupRes), new(AccessRes), new(ReadLinkRes), new(ReadRes), new(WriteRes),
		new(CreateRes), new(RenameRes), new(LinkRes), new(ReadDirRes), new(ReadDirPlusRes), new(FSStatRes),
		new(FSInfoRes), new(PathConfRes), new(CommitRes),
		new(MountPath), new(MountRes), new(MountRes1), new(MountList), new(ExportList),
		new(NLMLockArgs), new(NLMCancelArgs), new(NLMTestArgs), new(NLMUnlockArgs), new(NLMRes), new(NLMTestRes),
		new(NLMShareArgs), new(NLMShareRes), new(NLMNotify), new(NSMName), new(NSMStatRes), new(NSMState), new(NSMNotify),
	} {
		m[typeName(c)] = c
	}
	return m
}

func typeName(c codec) string { return strings.TrimPrefix(fmt.Sprintf("%T", c), "*nfs3.") }

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func encode(c codec) []byte {
	var w xdr.Writer
	c.Encode(&w)
	return w.B
}

// check holds c against its wire form in both directions.
func check(t *testing.T, c codec, wire []byte) {
	t.Helper()
	if got := encode(c); !bytes.Equal(got, wire) {
		t.Errorf("%+v\nwrote %x\n want %x", c, got, wire)
	}
	got := types()[typeName(c)]
	r := xdr.NewReader(wire)
	got.Decode(&r)
	if r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(got, c) {
		t.Errorf("read  %+v\n want %+v\nerror %v, %d bytes left", got, c, r.Err(), r.Len())
	}
}

// Wire forms put together by hand from the definitions in RFC 1813.
func TestVectors(t *testing.T) {
	const (
		fh    = "00000003 aabbcc 00 "
		attr  = "00000001 000001a4 00000002 000003e8 00000064 0000000000000005 0000000000001000 00000008 00000009 0000000000000077 0000000000000063 00000001 00000002 00000003 00000004 00000005 00000006 "
		wcc   = "0000000000000004 0000000a 0000000b 0000000c 0000000d "
		yes   = "00000001 "
		no    = "00000000 "
		noWcc = no + no
	)
	h := []byte{0xaa, 0xbb, 0xcc}
	a := Fattr{TypeReg, 0o644, 2, 1000, 100, 5, 4096, 8, 9, 0x77, 0x63, Time{1, 2}, Time{3, 4}, Time{5, 6}}
	post := PostOpAttr{true, a}
	full := WccData{true, WccAttr{4, Time{10, 11}, Time{12, 13}}, post}
	name := DirOp{h, "ab"}
	const where = fh + "00000002 6162 0000 "
	all := Sattr{true, 0o600, true, 1, true, 2, true, 3, SetToClientTime, Time{4, 5}, SetToServerTime, Time{}}
	const allWire = yes + "00000180 " + yes + "00000001 " + yes + "00000002 " + yes + "0000000000000003 " + "00000002 00000004 00000005 " + "00000001 "
	const none = no + no + no + no + no + no

	lock := NLMLock{"host", h, []byte("ow"), -7, 1, 1 << 40}
	const (
		cookie   = "00000002 c00c 0000 "
		lockWire = "00000004 686f7374 " + fh + "00000002 6f77 0000 fffffff9 0000000000000001 0000010000000000 "
	)
	c := []byte{0xc0, 0x0c}

	for _, c := range []struct {
		name string
		c    codec
		wire string
	}{
		{"handle", &FHArgs{h}, fh},
		{"name", &name, where},
		{"SETATTR", &SetAttrArgs{FH: h, Attr: all}, fh + allWire + no},
		{"SETATTR, guarded", &SetAttrArgs{h, Sattr{}, true, Time{7, 8}}, fh + none + yes + "00000007 00000008"},
		{"ACCESS", &AccessArgs{h, AccessRead | AccessExecute}, fh + "00000021"},
		{"READ", &ReadArgs{h, 1 << 32, 512}, fh + "0000000100000000 00000200"},
		{"WRITE", &WriteArgs{h, 1, 5, FileSync, []byte("hello")}, fh + "0000000000000001 00000005 00000002 00000005 68656c6c6f 000000"},
		{"CREATE UNCHECKED", &CreateArgs{Where: name, Attr: all}, where + "00000000" + allWire},
		{"CREATE GUARDED", &CreateArgs{Where: name, Mode: Guarded}, where + "00000001" + none},
		{"CREATE EXCLUSIVE", &CreateArgs{Where: name, Mode: Exclusive, Verf: 0x0102030405060708}, where + "00000002 0102030405060708"},
		{"MKDIR", &MkdirArgs{name, all}, where + allWire},
		{"SYMLINK", &SymlinkArgs{name, Sattr{}, "x/y"}, where + none + "00000003 782f79 00"},
		{"MKNOD, character device", &MknodArgs{name, TypeChr, all, 1, 3}, where + "00000004" + allWire + "00000001 00000003"},
		{"MKNOD, block device", &MknodArgs{name, TypeBlk, Sattr{}, 8, 0}, where + "00000003" + none + "00000008 00000000"},
		{"MKNOD, socket", &MknodArgs{Where: name, Type: TypeSock}, where + "00000006" + none},
		{"MKNOD, FIFO", &MknodArgs{Where: name, Type: TypeFIFO}, where + "00000007" + none},
		{"MKNOD, regular file", &MknodArgs{Where: name, Type: TypeReg}, where + "00000001"},
		{"MKNOD, unknown type", &MknodArgs{Where: name, Type: 99}, where + "00000063"},
		{"RENAME", &RenameArgs{name, DirOp{h, ""}}, where + fh + "00000000"},
		{"LINK", &LinkArgs{h, name}, fh + where},
		{"READDIR", &ReadDirArgs{h, 3, 4, 8192}, fh + "0000000000000003 0000000000000004 00002000"},
		{"READDIRPLUS", &ReadDirPlusArgs{h, 3, 4, 512, 8192}, fh + "0000000000000003 0000000000000004 00000200 00002000"},
		{"COMMIT", &CommitArgs{h, 1, 2}, fh + "0000000000000001 00000002"},

		{"GETATTR ok", &GetAttrRes{OK, a}, no + attr},
		{"GETATTR fails", &GetAttrRes{Status: ErrStale}, "00000046"},
		{"SETATTR ok", &WccRes{OK, full}, no + yes + wcc + yes + attr},
		{"SETATTR fails", &WccRes{Status: ErrNotSync}, "00002712" + noWcc},
		{"LOOKUP ok", &LookupRes{OK, h, post, post}, no + fh + yes + attr + yes + attr},
		{"LOOKUP fails", &LookupRes{Status: ErrNoEnt, Dir: post}, "00000002" + yes + attr},
		{"ACCESS ok", &AccessRes{OK, post, 3}, no + yes + attr + "00000003"},
		{"ACCESS fails", &AccessRes{Status: ErrAcces}, "0000000d" + no},
		{"READLINK ok", &ReadLinkRes{OK, PostOpAttr{}, "xy"}, no + no + "00000002 7879 0000"},
		{"READLINK fails", &ReadLinkRes{Status: ErrInval}, "00000016" + no},
		{"READ ok", &ReadRes{OK, post, 2, true, []byte("xy")}, no + yes + attr + "00000002 00000001 00000002 7879 0000"},
		{"READ fails", &ReadRes{Status: ErrIO}, "00000005" + no},
		{"WRITE ok", &WriteRes{OK, full, 9, FileSync, 0x0102030405060708}, no + yes + wcc + yes + attr + "00000009 00000002 0102030405060708"},
		{"WRITE fails", &WriteRes{Status: ErrNoSpc, Wcc: full}, "0000001c" + yes + wcc + yes + attr},
		{"CREATE ok", &CreateRes{OK, PostOpFH{true, h}, post, full}, no + yes + fh + yes + attr + yes + wcc + yes + attr},
		{"CREATE ok, short", &CreateRes{Status: OK}, no + no + no + noWcc},
		{"CREATE fails", &CreateRes{Status: ErrExist, Dir: full}, "00000011" + yes + wcc + yes + attr},
		{"RENAME ok", &RenameRes{OK, full, WccData{}}, no + yes + wcc + yes + attr + noWcc},
		{"LINK fails", &LinkRes{ErrMLink, post, WccData{}}, "0000001f" + yes + attr + noWcc},
		{"READDIR ok", &ReadDirRes{ReadDirHead{OK, PostOpAttr{}, 6}, []Entry{{7, "a", 8}, {9, "bcde", 10}}, true},
			no + no + "0000000000000006" + yes + "0000000000000007 00000001 61000000 0000000000000008" + yes + "0000000000000009 00000004 62636465 000000000000000a" + no + yes},
		{"READDIR ok, nothing", &ReadDirRes{ReadDirHead: ReadDirHead{CookieVerf: 6}}, no + no + "0000000000000006" + no + no},
		{"READDIR fails", &ReadDirRes{ReadDirHead: ReadDirHead{Status: ErrNotDir}}, "00000014" + no},
		{"READDIRPLUS ok", &ReadDirPlusRes{ReadDirHead{OK, post, 6}, []EntryPlus{{Entry{7, "a", 8}, post, PostOpFH{true, h}}, {Entry: Entry{9, "b", 10}}}, false},
			no + yes + attr + "0000000000000006" + yes + "0000000000000007 00000001 61000000 0000000000000008" + yes + attr + yes + fh + yes + "0000000000000009 00000001 62000000 000000000000000a" + no + no + no + no},
		{"READDIRPLUS fails", &ReadDirPlusRes{ReadDirHead: ReadDirHead{Status: ErrTooSmall}}, "00002715" + no},
		{"FSSTAT ok", &FSStatRes{OK, PostOpAttr{}, 1, 2, 3, 4, 5, 6, 7}, no + no + "0000000000000001 0000000000000002 0000000000000003 0000000000000004 0000000000000005 0000000000000006 00000007"},
		{"FSSTAT fails", &FSStatRes{Status: ErrBadHandle}, "00002711" + no},
		{"FSINFO ok", &FSInfoRes{OK, PostOpAttr{}, 1, 2, 3, 4, 5, 6, 7, 8, Time{0, 1}, FSFLink | FSFSymlink | FSFHomogeneous | FSFCanSetTime},
			no + no + "00000001 00000002 00000003 00000004 00000005 00000006 00000007 0000000000000008 00000000 00000001 0000001b"},
		{"FSINFO fails", &FSInfoRes{Status: ErrServerFault}, "00002716" + no},
		{"PATHCONF ok", &PathConfRes{OK, PostOpAttr{}, 32000, 255, true, true, false, true}, no + no + "00007d00 000000ff" + yes + yes + no + yes},
		{"PATHCONF fails", &PathConfRes{Status: ErrStale}, "00000046" + no},
		{"COMMIT ok", &CommitRes{OK, full, 5}, no + yes + wcc + yes + attr + "0000000000000005"},
		{"COMMIT fails", &CommitRes{Status: ErrIO}, "00000005" + noWcc},

		{"MNT", &MountPath{"/a"}, "00000002 2f61 0000"},
		{"MNT ok", &MountRes{MountOK, h, []uint32{1, 0}}, no + fh + "00000002 00000001 00000000"},
		{"MNT fails", &MountRes{Status: MountErrAcces}, "0000000d"},
		{"MNT 1 ok", &MountRes1{MountOK, [32]byte{0: 1, 31: 2}}, no + "01" + strings.Repeat("00", 30) + "02"},
		{"MNT 1 fails", &MountRes1{Status: MountErrNoEnt}, "00000002"},
		{"DUMP", &MountList{{"h", "/a"}, {"i", "/"}}, yes + "00000001 68000000 00000002 2f610000" + yes + "00000001 69000000 00000001 2f000000" + no},
		{"EXPORT", &ExportList{{"/", []string{"10.0.0.0/8", "h"}}, {"/b", nil}}, yes + "00000001 2f000000" + yes + "0000000a 31302e302e302e302f38 0000" + yes + "00000001 68000000" + no + yes + "00000002 2f620000" + no + no},

		{"NLM LOCK", &NLMLockArgs{c, true, false, lock, true, 5}, cookie + yes + no + lockWire + yes + "00000005"},
		{"NLM CANCEL", &NLMCancelArgs{c, false, true, lock}, cookie + no + yes + lockWire},
		{"NLM TEST", &NLMTestArgs{c, true, lock}, cookie + yes + lockWire},
		{"NLM UNLOCK", &NLMUnlockArgs{c, lock}, cookie + lockWire},
		{"NLM result", &NLMRes{c, NLMBlocked}, cookie + "00000003"},
		{"NLM TEST free", &NLMTestRes{Cookie: c}, cookie + "00000000"},
		{"NLM TEST locked", &NLMTestRes{c, NLMDenied, NLMHolder{true, 2, h, 3, 4}}, cookie + "00000001" + yes + "00000002" + fh + "0000000000000003 0000000000000004"},
		{"NLM SHARE", &NLMShareArgs{c, "host", h, h, NLMShareWrite, NLMShareRead, false}, cookie + "00000004 686f7374" + fh + fh + "00000002 00000001" + no},
		{"NLM SHARE result", &NLMShareRes{c, NLMDenied, 9}, cookie + "00000001 00000009"},
		{"NLM FREE_ALL", &NLMNotify{"host", 3}, "00000004 686f7374 00000003"},
		{"NSM STAT", &NSMName{"host"}, "00000004 686f7374"},
		{"NSM STAT result", &NSMStatRes{true, 3}, yes + "00000003"},
		{"NSM UNMON result", &NSMState{3}, "00000003"},
		{"NSM NOTIFY", &NSMNotify{"host", 3}, "00000004 686f7374 00000003"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.c, unhex(c.wire)) })
	}
}

// The composite types as another library encodes them, by reflection over types
// that were written by others.
func TestOracle(t *testing.T) {
	theirAttr := oracle.Fattr{Type: 2, FileMode: 0o755, Nlink: 3, UID: 4, GID: 5, Filesize: 6, Used: 7, SpecData: [2]uint32{8, 9}, FSID: 10, Fileid: 11,
		Atime: oracle.NFS3Time{Seconds: 12, Nseconds: 13}, Mtime: oracle.NFS3Time{Seconds: 14, Nseconds: 15}, Ctime: oracle.NFS3Time{Seconds: 16, Nseconds: 17}}
	attr := Fattr{TypeDir, 0o755, 3, 4, 5, 6, 7, 8, 9, 10, 11, Time{12, 13}, Time{14, 15}, Time{16, 17}}
	theirPost := oracle.PostOpAttr{IsSet: true, Attr: theirAttr}
	post := PostOpAttr{true, attr}
	for _, c := range []struct {
		theirs any
		ours   codec
	}{
		{oracle.Diropargs3{FH: []byte("handle"), Filename: "name"}, &DirOp{[]byte("handle"), "name"}},
		{struct {
			Where oracle.Diropargs3
			Attr  oracle.Sattr3
		}{oracle.Diropargs3{FH: []byte{1}, Filename: "n"}, oracle.Sattr3{Mode: oracle.SetMode{SetIt: true, Mode: 0o700}, GID: oracle.SetUID{SetIt: true, UID: 9},
			Size: oracle.SetSize{SetIt: true, Size: 1 << 40}, Mtime: oracle.SetTime{SetIt: oracle.SetToClientTime, Time: oracle.NFS3Time{Seconds: 1, Nseconds: 2}}, Atime: oracle.SetTime{SetIt: oracle.SetToServerTime}}},
			&MkdirArgs{DirOp{[]byte{1}, "n"}, Sattr{SetMode: true, Mode: 0o700, SetGID: true, GID: 9, SetSize: true, Size: 1 << 40,
				AtimeHow: SetToServerTime, MtimeHow: SetToClientTime, Mtime: Time{1, 2}}}},
		{struct {
			Status uint32
			Attr   oracle.Fattr
		}{0, theirAttr}, &GetAttrRes{OK, attr}},
		{struct {
			Status uint32
			FH     []byte
			Attr   oracle.PostOpAttr
			Dir    oracle.PostOpAttr
		}{0, []byte("handle"), theirPost, oracle.PostOpAttr{}}, &LookupRes{OK, []byte("handle"), post, PostOpAttr{}}},
		{struct {
			Status    uint32
			Before    oracle.WccData
			Count     uint32
			Committed uint32
			Verf      uint64
		}{0, oracle.WccData{Before: struct {
			IsSet bool            `xdr:"union"`
			Size  uint64          `xdr:"unioncase=1"`
			MTime oracle.NFS3Time `xdr:"unioncase=1"`
			CTime oracle.NFS3Time `xdr:"unioncase=1"`
		}{true, 1, oracle.NFS3Time{Seconds: 2, Nseconds: 3}, oracle.NFS3Time{Seconds: 4, Nseconds: 5}}, After: theirPost}, 6, 2, 7},
			&WriteRes{OK, WccData{true, WccAttr{1, Time{2, 3}, Time{4, 5}}, post}, 6, FileSync, 7}},
		{struct {
			Status uint32
			Info   oracle.FSInfo
		}{0, oracle.FSInfo{Attr: theirPost, RTMax: 1, RTPref: 2, RTMult: 3, WTMax: 4, WTPref: 5, WTMult: 6, DTPref: 7, Size: 8, TimeDelta: oracle.NFS3Time{Seconds: 9, Nseconds: 10}, Properties: 11}},
			&FSInfoRes{OK, post, 1, 2, 3, 4, 5, 6, 7, 8, Time{9, 10}, 11}},
	} {
		var buf bytes.Buffer
		if _, err := xdr2.Marshal(&buf, c.theirs); err != nil {
			t.Fatal(err)
		}
		t.Run(typeName(c.ours), func(t *testing.T) { check(t, c.ours, buf.Bytes()) })
	}

	// Their EntryPlus is for reading only.
	e := EntryPlus{Entry{7, "name", 8}, post, PostOpFH{true, []byte("handle")}}
	var theirs oracle.EntryPlus
	wire := encode(&e)
	if _, err := xdr2.Unmarshal(bytes.NewReader(wire[4:]), &theirs); err != nil {
		t.Fatal(err)
	}
	if theirs.FileId != 7 || theirs.FileName != "name" || theirs.Cookie != 8 || theirs.Attr != theirPost || string(theirs.Handle.FH) != "handle" {
		t.Errorf("%+v was read as %+v", e, theirs)
	}
}

func TestRefused(t *testing.T) {
	long := "00000041" + strings.Repeat("00", 68)
	for _, c := range []struct {
		name string
		c    codec
		in   string
		want error
	}{
		{"handle of 65 bytes", new(FHArgs), long, xdr.ErrLength},
		{"handle of 65 bytes in a reply", new(LookupRes), "00000000" + long, xdr.ErrLength},
		{"time_how 3", new(MkdirArgs), "00000000 00000000" + strings.Repeat("00000000", 4) + "00000003 00000000", xdr.ErrEnum},
		{"bool 2", new(SetAttrArgs), "00000000 00000002", xdr.ErrBool},
		{"createmode 3", new(CreateArgs), "00000000 00000000 00000003", xdr.ErrEnum},
		{"stable_how 3", new(WriteArgs), "00000000 0000000000000000 00000000 00000003 00000000", xdr.ErrEnum},
		{"WRITE longer than its message", new(WriteArgs), "00000000 0000000000000000 00000000 00000000 ffffffff", xdr.ErrShort},
		{"name longer than its message", new(DirOp), "00000000 7fffffff 61616161", xdr.ErrShort},
		{"path of 1025 bytes", new(MountPath), "00000401" + strings.Repeat("61", 1028), xdr.ErrLength},
		{"more flavors than there are", new(MountRes), "00000000 00000000 000000ff 00000001", xdr.ErrShort},
		{"list without an end", new(MountList), "00000001 00000000 00000000", xdr.ErrShort},
		{"NLM cookie of 1025 bytes", new(NLMRes), "00000401" + strings.Repeat("00", 1032), xdr.ErrLength},
		{"NLM name of 1025 bytes", new(NLMNotify), "00000401" + strings.Repeat("61", 1032), xdr.ErrLength},
		{"fsh4_mode 4", new(NLMShareArgs), strings.Repeat("00000000", 4) + "00000004 00000000 00000000", xdr.ErrEnum},
		{"entries without an end", new(ReadDirRes), "00000000 00000000 0000000000000000 00000001 0000000000000000 00000000 0000000000000000", xdr.ErrShort},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := xdr.NewReader(unhex(c.in))
			if c.c.Decode(&r); r.Err() != c.want {
				t.Errorf("error %v, want %v", r.Err(), c.want)
			}
		})
	}
}

// What a server that sends or receives data apart from the head relies on.
func TestHeads(t *testing.T) {
	res := ReadRes{Status: OK, Count: 5, Data: []byte("hello")}
	var w xdr.Writer
	res.EncodeHead(&w)
	w.Fixed(res.Data)
	if !bytes.Equal(w.B, encode(&res)) {
		t.Errorf("READ: head and data are %x, whole is %x", w.B, encode(&res))
	}
	args := WriteArgs{FH: []byte{1}, Count: 5, Data: []byte("hello")}
	w.B = nil
	args.EncodeHead(&w, 5)
	head := w.Len()
	w.Fixed(args.Data)
	if !bytes.Equal(w.B, encode(&args)) {
		t.Errorf("WRITE: head and data are %x, whole is %x", w.B, encode(&args))
	}
	r := xdr.NewReader(w.B[:head])
	if n := new(WriteArgs).DecodeHead(&r); n != 5 || r.Err() != nil || r.Len() != 0 {
		t.Errorf("WRITE: head says %d bytes, %v", n, r.Err())
	}
}

func TestSizes(t *testing.T) {
	for _, name := range []string{"", "a", "abcd", "abcde"} {
		for _, fh := range [][]byte{make([]byte, 28), make([]byte, 5)} {
			e := EntryPlus{Entry{1, name, 2}, PostOpAttr{Follows: true}, PostOpFH{true, fh}}
			if got, want := EntrySize(len(name)), len(encode(&e.Entry)); got != want {
				t.Errorf("EntrySize(%d) = %d, want %d", len(name), got, want)
			}
			if got, want := EntryPlusSize(len(name), len(fh)), len(encode(&e)); got != want {
				t.Errorf("EntryPlusSize(%d, %d) = %d, want %d", len(name), len(fh), got, want)
			}
		}
	}
	var w xdr.Writer
	if EncodeDirEnd(&w, true); w.Len() != DirEndSize {
		t.Errorf("the end of a list takes %d bytes, want %d", w.Len(), DirEndSize)
	}
}

func TestStatus(t *testing.T) {
	for s, want := range map[error]string{
		ErrNoEnt:            "NFS3ERR_NOENT",
		ErrJukebox:          "NFS3ERR_JUKEBOX",
		Status(3):           "NFS3ERR_nfsstat3 3",
		MountErrAcces:       "MNT3ERR_ACCES",
		MountErrNameTooLong: "MNT3ERR_NAMETOOLONG",
		MountStatus(17):     "MNT3ERR_mountstat3 17",
		NLMDeniedNoLocks:    "NLM4_DENIED_NOLOCKS",
		NLMStatus(10):       "NLM4_nlm4_stats 10",
	} {
		if s.Error() != want {
			t.Errorf("%q, want %q", s.Error(), want)
		}
	}
	if len(ProcNames) != ProcCommit+1 {
		t.Errorf("%d procedure names, want %d", len(ProcNames), ProcCommit+1)
	}
}

func TestNoAllocation(t *testing.T) {
	args := encode(&WriteArgs{FH: make([]byte, 28), Count: 4096, Data: make([]byte, 4096)})
	w := xdr.Writer{B: make([]byte, 0, 512)}
	if n := testing.AllocsPerRun(100, func() {
		var a WriteArgs
		r := xdr.NewReader(args)
		a.Decode(&r)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		w.B = w.B[:0]
		res := WriteRes{Count: a.Count, Wcc: WccData{HasBefore: true, After: PostOpAttr{Follows: true}}}
		res.Encode(&w)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkFattrEncode(b *testing.B) {
	w := xdr.Writer{B: make([]byte, 0, FattrSize)}
	var a Fattr
	for b.Loop() {
		w.B = w.B[:0]
		a.Encode(&w)
	}
}

// FuzzDecode reads any type from any bytes: what is accepted is written and read
// again as the same.
func FuzzDecode(f *testing.F) {
	for name := range types() {
		f.Add(name, make([]byte, 256))
		f.Add(name, bytes.Repeat([]byte{0, 0, 0, 1}, 64))
	}
	f.Fuzz(func(t *testing.T, name string, in []byte) {
		a, b := types()[name], types()[name]
		if a == nil {
			return
		}
		r := xdr.NewReader(in)
		a.Decode(&r)
		if r.Err() != nil {
			return
		}
		r = xdr.NewReader(encode(a))
		b.Decode(&r)
		if r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: %+v is written and read as %+v, %v", name, a, b, r.Err())
		}
	})
}
