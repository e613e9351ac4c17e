package xdr

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestRead(t *testing.T) {
	u32 := func(r *Reader) any { return r.Uint32() }
	opaque4 := func(r *Reader) any { return fmt.Sprintf("%q", r.Opaque(4)) }
	str4 := func(r *Reader) any { return r.String(4) }
	for _, c := range []struct {
		name string
		in   string
		read func(r *Reader) any
		want any
		err  error
		left int
	}{
		{"unsigned", "80000001 ff", u32, uint32(0x80000001), nil, 1},
		{"unsigned, short", "000000", u32, uint32(0), ErrShort, 0},
		{"int", "ffffffff", func(r *Reader) any { return r.Int32() }, int32(-1), nil, 0},
		{"unsigned hyper", "0102030405060708", func(r *Reader) any { return r.Uint64() }, uint64(0x0102030405060708), nil, 0},
		{"unsigned hyper, short", "01020304050607", func(r *Reader) any { return r.Uint64() }, uint64(0), ErrShort, 0},
		{"hyper", "fffffffffffffffe", func(r *Reader) any { return r.Int64() }, int64(-2), nil, 0},
		{"bool false", "00000000", func(r *Reader) any { return r.Bool() }, false, nil, 0},
		{"bool true", "00000001", func(r *Reader) any { return r.Bool() }, true, nil, 0},
		{"bool 2", "00000002", func(r *Reader) any { return r.Bool() }, false, ErrBool, 0},
		{"bool 256", "00000100", func(r *Reader) any { return r.Bool() }, false, ErrBool, 0},
		{"enum, last", "00000002", func(r *Reader) any { return r.Enum(2) }, uint32(2), nil, 0},
		{"enum, past", "00000003 00", func(r *Reader) any { return r.Enum(2) }, uint32(0), ErrEnum, 0},
		{"opaque, none", "00000000 aa", opaque4, `""`, nil, 1},
		{"opaque, padded", "00000001 61 000000 aa", opaque4, `"a"`, nil, 1},
		{"opaque, padding is not looked at", "00000002 6162 ffff", opaque4, `"ab"`, nil, 0},
		{"opaque, full", "00000004 61626364", opaque4, `"abcd"`, nil, 0},
		{"opaque, too long", "00000005 6162636465 000000", opaque4, `""`, ErrLength, 0},
		{"opaque, huge", "ffffffff", func(r *Reader) any { return len(r.Opaque(1<<31 - 1)) }, 0, ErrLength, 0},
		{"opaque, no data", "00000004 6162", opaque4, `""`, ErrShort, 0},
		{"opaque, no padding", "00000003 616263", opaque4, `""`, ErrShort, 0},
		{"string", "00000003 616263 00", str4, "abc", nil, 0},
		{"string, too long", "00000005 6162636465 000000", str4, "", ErrLength, 0},
		{"fixed", "616263 00 61", func(r *Reader) any { return string(r.Fixed(3)) }, "abc", nil, 1},
		{"fixed, negative", "61626364", func(r *Reader) any { return len(r.Fixed(-1)) }, 0, ErrShort, 0},
		{"skip", "616263 00 00000007", func(r *Reader) any { r.Skip(3); return r.Uint32() }, uint32(7), nil, 0},
		{"rest", "6162", func(r *Reader) any { return string(r.Rest()) }, "ab", nil, 0},
		{"count", "00000002 0000000000000000", func(r *Reader) any { return r.Count(2, 4) }, 2, nil, 8},
		{"count, past its limit", "00000003 000000000000000000000000", func(r *Reader) any { return r.Count(2, 4) }, 0, ErrLength, 0},
		{"count, past the input", "00000002 00000000000000", func(r *Reader) any { return r.Count(2, 4) }, 0, ErrShort, 0},
		{"the first error stays", "00000002 00000001", func(r *Reader) any { r.Bool(); return r.Uint32() }, uint32(0), ErrBool, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(unhex(c.in))
			if got := c.read(&r); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if !errors.Is(r.Err(), c.err) {
				t.Errorf("error %v, want %v", r.Err(), c.err)
			}
			if r.Len() != c.left {
				t.Errorf("%d bytes left, want %d", r.Len(), c.left)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(w *Writer)
		want  string
	}{
		{"unsigned", func(w *Writer) { w.Uint32(0x80000001) }, "80000001"},
		{"int", func(w *Writer) { w.Int32(-1) }, "ffffffff"},
		{"unsigned hyper", func(w *Writer) { w.Uint64(0x0102030405060708) }, "0102030405060708"},
		{"hyper", func(w *Writer) { w.Int64(-2) }, "fffffffffffffffe"},
		{"bool", func(w *Writer) { w.Bool(true); w.Bool(false) }, "0000000100000000"},
		{"opaque 0", func(w *Writer) { w.Opaque(nil) }, "00000000"},
		{"opaque 1", func(w *Writer) { w.Opaque([]byte("a")) }, "0000000161000000"},
		{"opaque 2", func(w *Writer) { w.Opaque([]byte("ab")) }, "0000000261620000"},
		{"opaque 3", func(w *Writer) { w.Opaque([]byte("abc")) }, "0000000361626300"},
		{"opaque 4", func(w *Writer) { w.Opaque([]byte("abcd")) }, "0000000461626364"},
		{"string", func(w *Writer) { w.String("abcde") }, "000000056162636465000000"},
		{"fixed", func(w *Writer) { w.Fixed([]byte("abc")) }, "61626300"},
		{"patch", func(w *Writer) { at := w.Len(); w.Uint32(0); w.Uint32(2); w.PatchUint32(at, 1) }, "0000000100000002"},
	} {
		var w Writer
		c.write(&w)
		if got := hex.EncodeToString(w.B); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	w := Writer{B: make([]byte, 0, 64)}
	if n := testing.AllocsPerRun(100, func() {
		w.B = w.B[:0]
		w.Uint32(1)
		w.Opaque([]byte("abc"))
		w.String("defg")
		r := NewReader(w.B)
		r.Uint32()
		r.Opaque(3)
		if r.String(4) != "defg" || r.Err() != nil {
			t.Fatal(r.Err())
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzReader lets the input choose what is read next. What was read is written
// again and must be the input, up to the padding.
func FuzzReader(f *testing.F) {
	f.Add([]byte("u"), unhex("00000001"))
	f.Add([]byte("hbe"), unhex("0000000000000001 00000001 00000002"))
	f.Add([]byte("oosf"), unhex("00000001 61000000 00000000 00000003 61626300 61626300"))
	f.Add([]byte("o"), unhex("fffffffe 61000000"))
	f.Fuzz(func(t *testing.T, ops, in []byte) {
		r := NewReader(in)
		var w Writer
		for _, op := range ops {
			before, mark, data := in[len(in)-r.Len():], w.Len(), 0 // data counts the bytes that are not padding
			switch op {
			case 'u':
				w.Uint32(r.Uint32())
				data = 4
			case 'h':
				w.Uint64(r.Uint64())
				data = 8
			case 'b':
				w.Bool(r.Bool())
				data = 4
			case 'e':
				w.Uint32(r.Enum(2))
				data = 4
			case 'o':
				b := r.Opaque(1 << 20)
				w.Opaque(b)
				data = 4 + len(b)
			case 's':
				s := r.String(9)
				w.String(s)
				data = 4 + len(s)
			case 'f':
				w.Fixed(r.Fixed(3))
				data = 3
			default:
				continue
			}
			if r.Err() != nil {
				if r.Len() != 0 || r.Uint32() != 0 || r.Rest() != nil {
					t.Fatal("input is read after an error")
				}
				return
			}
			used, wrote := len(before)-r.Len(), w.B[mark:]
			if used != len(wrote) || used%4 != 0 || !bytes.Equal(wrote[:data], before[:data]) {
				t.Fatalf("op %c: read %x, wrote %x", op, before[:used], wrote)
			}
		}
	})
}
