package smb

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"ramserver/memstore"
)

// What is made from a mode becomes the mode again, whatever it is.
func TestSDOfMode(t *testing.T) {
	for _, typ := range []memstore.Type{memstore.TypeFile, memstore.TypeDir} {
		for mode := range uint16(0o10000) {
			a := memstore.Attr{Type: typ, Mode: mode, UID: 1000, GID: 100}
			b := appendSD([]byte("before"), &a, secOwner|secGroup|secDACL)[6:]
			set, err := parseSD(b, secOwner|secGroup|secDACL, &a)
			if err != nil || set.Mode != mode || set.UID != 1000 || set.GID != 100 ||
				set.Mask != memstore.SetMode|memstore.SetUID|memstore.SetGID {
				t.Fatalf("type %v, mode %04o: %04o %+v %v", typ, mode, set.Mode, set, err)
			}
		}
	}
}

// A file with mode 0640 of user 1000 and group 100, written down by MS-DTYP.
func TestSDGolden(t *testing.T) {
	const want = "0100" + "0490" + "14000000" + "24000000" + "00000000" + "34000000" +
		"0102000000000016" + "01000000" + "e8030000" + // S-1-22-1-1000
		"0102000000000016" + "02000000" + "64000000" + // S-1-22-2-100
		"0200" + "6800" + "0400" + "0000" +
		"01001c00" + "00000000" + "0103000000000005" + "58000000" + "03000000" + "a0010000" + // S-1-5-88-3-0640
		"00001800" + "9f011f00" + "0102000000000016" + "01000000" + "e8030000" + // owner: read, write
		"00001800" + "89001200" + "0102000000000016" + "02000000" + "64000000" + // group: read
		"00001400" + "88001200" + "010100000000000100000000" // everyone: attributes
	a := memstore.Attr{Type: memstore.TypeFile, Mode: 0o640, UID: 1000, GID: 100}
	if got := hex.EncodeToString(appendSD(nil, &a, secOwner|secGroup|secDACL)); got != want {
		t.Errorf("descriptor\n%s, want\n%s", got, want)
	}
	if got := hex.EncodeToString(appendSD(nil, &a, secGroup)); got != "01000080"+"00000000"+"14000000"+"0000000000000000"+"0102000000000016"+"02000000"+"64000000" {
		t.Errorf("the group alone: %s", got)
	}
}

func TestParseSD(t *testing.T) {
	ace := func(kind, flags uint8, rights uint32, who sid) string {
		b := []byte{kind, flags}
		b = binary.LittleEndian.AppendUint16(b, uint16(8+len(who)))
		b = binary.LittleEndian.AppendUint32(b, rights)
		return string(b) + string(who)
	}
	sd := func(owner sid, aces ...string) []byte {
		b := []byte{1, 0, 4, 0x80}
		b = binary.LittleEndian.AppendUint32(b, sdHeader)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(sdHeader+len(owner)))
		b = append(b, owner...)
		list := ""
		for _, a := range aces {
			list += a
		}
		b = append(b, 2, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(8+len(list)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(aces)))
		return append(b, list...)
	}
	stranger := makeSID(5, 21, 1, 2, 3, 500)
	owner := userSID(7)
	noList := sd(owner)
	binary.LittleEndian.PutUint32(noList[16:], 0)
	long := sd(owner, ace(aceAllow, 0, rightsFull, owner))
	long[len(long)-22]++ // the length of its only entry

	for _, c := range []struct {
		name  string
		b     []byte
		parts uint32
		mode  uint16
		uid   uint32
		err   error
	}{
		{name: "everyone may do all", b: sd(owner, ace(aceAllow, 0, rightsFull, sidEveryone)), parts: secDACL, mode: 0o4777, uid: 1},
		{name: "generic rights", b: sd(owner, ace(aceAllow, 0, rightAll, userSID(1)), ace(aceAllow, 0, rightGenRead|rightGenExecute, groupSID(2))), parts: secDACL, mode: 0o4750, uid: 1},
		{name: "the first entry decides", b: sd(owner, ace(aceDeny, 0, rightWriteData, sidEveryone), ace(aceAllow, 0, rightsFull, userSID(1))), parts: secDACL, mode: 0o4500, uid: 1},
		{name: "users who have logged on are others", b: sd(owner, ace(aceAllow, 0, rightReadData, sidAuthUsers)), parts: secDACL, mode: 0o4444, uid: 1},
		{name: "entries for what is made later", b: sd(owner, ace(aceAllow, aceInheritOnly, rightsFull, sidEveryone)), parts: secDACL, mode: 0o4000, uid: 1},
		{name: "a stranger's entry", b: sd(owner, ace(aceAllow, 0, rightsFull, stranger)), parts: secDACL, mode: 0o4000, uid: 1},
		{name: "an audit", b: sd(owner, ace(2, 0, rightsFull, sidEveryone)), parts: secDACL, mode: 0o4000, uid: 1},
		{name: "Linux's mode", b: sd(owner, ace(aceDeny, 0, 0, makeSID(5, 88, 3, 0o2751)), ace(aceAllow, 0, rightsFull, sidEveryone)), parts: secDACL, mode: 0o2751, uid: 1},
		{name: "Linux's mode as it is", b: sd(owner, ace(aceDeny, 0, 0, makeSID(5, 88, 3, 0o4321)), ace(aceAllow, 0, rightsFull, sidEveryone)), parts: secDACL, mode: 0o4777, uid: 1},
		{name: "the new owner's entry", b: sd(owner, ace(aceAllow, 0, rightsFull, owner)), parts: secOwner | secDACL, mode: 0o4700, uid: 7},
		{name: "an owner as Windows' NFS writes it", b: sd(makeSID(5, 88, 1, 9)), parts: secOwner, uid: 9},
		{name: "no list", b: noList, parts: secDACL, mode: 0o4777, uid: 1},
		{name: "an empty list", b: sd(owner), parts: secDACL, mode: 0o4000, uid: 1},
		{name: "nothing asked for", b: sd(owner), parts: secSACL, uid: 1},
		{name: "an owner whom nobody knows", b: sd(stranger), parts: secOwner, err: errUnknownSID},
		{name: "a group for an owner", b: sd(groupSID(3)), parts: secOwner, err: errUnknownSID},
		{name: "no owner", b: sd(owner), parts: secGroup, err: errBadSD},
		{name: "too short", b: sd(owner)[:19], parts: secDACL, err: errBadSD},
		{name: "an entry longer than the list", b: long, parts: secDACL, err: errBadSD},
		{name: "a list cut short", b: sd(owner, ace(aceAllow, 0, 1, owner))[:sdHeader+16+9], parts: secDACL, err: errBadSD},
	} {
		a := memstore.Attr{Mode: 0o4321, UID: 1, GID: 2}
		set, err := parseSD(c.b, c.parts, &a)
		if !errors.Is(err, c.err) || err == nil && (set.UID != c.uid || set.Mode != c.mode) {
			t.Errorf("%s: mode %04o, uid %d, %v; want %04o, %d, %v", c.name, set.Mode, set.UID, err, c.mode, c.uid, c.err)
		}
	}
}

func FuzzParseSD(f *testing.F) {
	a := memstore.Attr{Type: memstore.TypeDir, Mode: 0o2751, UID: 1, GID: 2}
	f.Add(appendSD(nil, &a, secOwner|secGroup|secDACL))
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := parseSD(b, secOwner|secGroup|secDACL, &a)
		if err == nil && set.Mode > 0o7777 {
			t.Errorf("mode %o", set.Mode)
		}
	})
}
