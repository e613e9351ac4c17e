package wire

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Names in a store are bytes; on the wire they are UTF-16, little-endian. Both
// directions lose nothing:
//
//   - UTF-8 is what it says.
//   - A surrogate without its other half, which Windows allows in names, is kept
//     as the three bytes that UTF-8 would have for it.
//   - A byte that is no UTF-8 is a surrogate without its other half too, 0xDC00
//     and the byte: 0xDC80 to 0xDCFF mean bytes and nothing else.
const (
	surrogateLow  = 0xD800
	surrogateHigh = 0xDFFF
	byteFirst     = 0xDC80
	byteLast      = 0xDCFF
)

// AppendUTF16 appends a string of the store to b.
func AppendUTF16(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r != utf8.RuneError || n > 1:
		case i+3 <= len(s) && s[i] == 0xED && s[i+1] >= 0xA0 && s[i+1] < 0xC0 && s[i+2] >= 0x80 && s[i+2] < 0xC0:
			r = rune(s[i]&0x0F)<<12 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F)
			n = 3
			if r >= byteFirst && r <= byteLast {
				r, n = 0xDC00|rune(s[i]), 1
			}
		default:
			r = 0xDC00 | rune(s[i])
		}
		i += n
		if r > 0xFFFF {
			hi, lo := utf16.EncodeRune(r)
			b = binary.LittleEndian.AppendUint16(b, uint16(hi))
			r = lo
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(r))
	}
	return b
}

// UTF16Len is the number of bytes that AppendUTF16 appends.
func UTF16Len(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return len(AppendUTF16(nil, s))
		}
		n += 2
	}
	return n
}

// String decodes UTF-16 into a string of the store; an odd last byte is not
// looked at.
func String(b []byte) string {
	buf := make([]byte, 0, len(b)/2+len(b)/4)
	for i := 0; i+1 < len(b); i += 2 {
		r := rune(binary.LittleEndian.Uint16(b[i:]))
		switch {
		case r < surrogateLow || r > surrogateHigh:
			buf = utf8.AppendRune(buf, r)
			continue
		case i+3 < len(b):
			if both := utf16.DecodeRune(r, rune(binary.LittleEndian.Uint16(b[i+2:]))); both != utf8.RuneError {
				buf = utf8.AppendRune(buf, both)
				i += 2
				continue
			}
		}
		if r >= byteFirst && r <= byteLast {
			buf = append(buf, byte(r))
		} else {
			buf = append(buf, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
		}
	}
	return string(buf)
}
