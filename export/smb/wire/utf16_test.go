package wire

import (
	"bytes"
	"testing"
)

func TestUTF16(t *testing.T) {
	for _, tt := range []struct{ store, wire string }{
		{"", ""},
		{"a", "a\x00"},
		{"é€", "\xe9\x00\xac\x20"},
		{"\U0001F600", "\x3d\xd8\x00\xde"},
		{"\xED\xA0\xBD.", "\x3d\xd8.\x00"},           // half a pair
		{"\xED\xB8\x80", "\x00\xde"},                 // the other half
		{"\xff\x80", "\xff\xdc\x80\xdc"},             // no UTF-8
		{"\xED\xB2\x80", "\xed\xdc\xb2\xdc\x80\xdc"}, // what stands for a byte, by itself
		{"\xEF\xBF\xBD", "\xfd\xff"},
	} {
		if got := AppendUTF16(nil, tt.store); string(got) != tt.wire {
			t.Errorf("AppendUTF16(%q) = %q, want %q", tt.store, got, tt.wire)
		}
		if got := String([]byte(tt.wire)); got != tt.store {
			t.Errorf("String(%q) = %q, want %q", tt.wire, got, tt.store)
		}
		if got := UTF16Len(tt.store); got != len(tt.wire) {
			t.Errorf("UTF16Len(%q) = %d, want %d", tt.store, got, len(tt.wire))
		}
	}
}

// Every name of a store comes back from the wire as it was.
func FuzzUTF16(f *testing.F) {
	f.Add([]byte("a\xff\xed\xa0\xbd\xed\xb8\x80€"))
	f.Fuzz(func(t *testing.T, name []byte) {
		if got := String(AppendUTF16(nil, string(name))); got != string(name) && bytes.IndexByte(name, 0xED) < 0 {
			t.Errorf("%q came back as %q", name, got)
		}
	})
}
