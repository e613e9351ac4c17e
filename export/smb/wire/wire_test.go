package wire

import (
	"bytes"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		sec, nsec int64
		time      uint64
	}{
		{0, 0, epoch}, {1, 0, epoch + 1e7}, {-1, 1e9 - 100, epoch - 1}, {0, 100, epoch + 1},
		{-11644473600, 0, 0}, {15032385535, 0, 266768591350000000}, {1e12, 5e8, epoch + 1e19 + 5e6},
	} {
		if got := FileTime(time.Unix(tt.sec, tt.nsec)); got != tt.time {
			t.Errorf("%d s, %d ns are %d, want %d", tt.sec, tt.nsec, got, tt.time)
		}
		if sec, nsec := UnixTime(tt.time); sec != tt.sec || nsec != tt.nsec {
			t.Errorf("%d is %d s, %d ns, want %d, %d", tt.time, sec, nsec, tt.sec, tt.nsec)
		}
	}
	if got := FileTime(time.Unix(-1, 1e9-1)); got != epoch-1 {
		t.Errorf("not rounded down: %d", got)
	}
}

// What is read back is what was written.
func TestReparse(t *testing.T) {
	for _, p := range []Reparse{
		{Tag: TagSymlink, Target: AppendUTF16(nil, `a\b`), Flags: SymlinkRelative},
		{Tag: TagNFS, Special: SpecialFIFO},
		{Tag: TagNFS, Special: SpecialBlock, Major: 8, Minor: 1},
	} {
		var got Reparse
		b := p.Append(nil)
		if !got.Decode(b) || got.Tag != p.Tag || !bytes.Equal(got.Target, p.Target) || got.Flags != p.Flags ||
			got.Special != p.Special || got.Major != p.Major || got.Minor != p.Minor {
			t.Errorf("%+v becomes %+v", p, got)
		}
		for n := range b {
			if got.Decode(b[:n]) {
				t.Errorf("%+v: %d of %d bytes are enough", p, n, len(b))
			}
		}
	}
}

// No message of a client makes a decoder panic, or read what is not there.
func FuzzDecode(f *testing.F) {
	for n := range 40 {
		b := make([]byte, HeaderSize+8*n)
		for k := HeaderSize; k < len(b); k++ {
			b[k] = byte(n * k)
		}
		(&Header{Command: Command(n % 19)}).Encode(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		new(Header).Decode(b)
		new(RenameInfo).Decode(b)
		new(BasicInfo).Decode(b)
		new(Reparse).Decode(b)
		new(AppleQuery).Decode(b)
		if len(b) < HeaderSize {
			return
		}
		var create CreateRequest
		if create.Decode(b) {
			create.Contexts(func(CreateContext) {})
		}
		var lock LockRequest
		if lock.Decode(b) {
			for i := range lock.Len() {
				lock.Element(i)
			}
		}
		new(NegotiateRequest).Decode(b)
		new(SessionSetupRequest).Decode(b)
		new(TreeConnectRequest).Decode(b)
		new(CloseRequest).Decode(b)
		new(FlushRequest).Decode(b)
		new(ReadRequest).Decode(b)
		new(WriteRequest).Decode(b)
		new(IoctlRequest).Decode(b)
		new(DirRequest).Decode(b)
		new(NotifyRequest).Decode(b)
		new(QueryInfoRequest).Decode(b)
		new(SetInfoRequest).Decode(b)
	})
}

// Every name of a store comes back from the wire as it was.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"plain", "é\U0001F600", "\xff\x80", "\xed\xa0\x80\xed\xb0\x80", "\xed\xb2\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendUTF16(nil, s)
		if len(b) != UTF16Len(s) {
			t.Errorf("%q: %d bytes, %d announced", s, len(b), UTF16Len(s))
		}
		if got := String(b); !bytes.Equal(AppendUTF16(nil, got), b) {
			t.Errorf("%q becomes %q, which is another name", s, got)
		}
	})
}
