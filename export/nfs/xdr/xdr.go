// Package xdr reads and writes External Data Representation (RFC 4506) in
// place: a [Reader] walks a byte slice and a [Writer] appends to one. Neither
// allocates, reflects or holds a lock.
//
// A Reader's error sticks: after the first one every further read answers zero
// and consumes nothing, so that a decoder is a straight line in wire order and
// asks [Reader.Err] once, at its end.
package xdr

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"
)

// What a Reader can find wrong with its input.
var (
	ErrShort  = errors.New("xdr: input ends inside a value")
	ErrLength = errors.New("xdr: length exceeds the limit of its type")
	ErrBool   = errors.New("xdr: bool is neither 0 nor 1")           // RFC 4506 section 4.4
	ErrEnum   = errors.New("xdr: value is not a member of its enum") // RFC 4506 section 4.3
)

// Reader decodes the bytes it was made over. The zero Reader is empty.
type Reader struct {
	b   []byte // not yet read; nil after an error, which makes every later read short
	err error
}

// NewReader returns a Reader over b. What [Reader.Opaque], [Reader.Fixed],
// [Reader.String] and [Reader.Rest] return aliases b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Len returns the number of bytes not yet read, 0 after an error.
func (r *Reader) Len() int { return len(r.b) }

// Fail records err, unless an earlier error stands, and ends the input.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *Reader) short() uint64 {
	r.Fail(ErrShort)
	return 0
}

// Uint32 reads an unsigned integer, RFC 4506 section 4.2.
func (r *Reader) Uint32() uint32 {
	if len(r.b) < 4 {
		return uint32(r.short())
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// Int32 reads an integer, RFC 4506 section 4.1.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Uint64 reads an unsigned hyper integer, RFC 4506 section 4.5.
func (r *Reader) Uint64() uint64 {
	if len(r.b) < 8 {
		return r.short()
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// Int64 reads a hyper integer, RFC 4506 section 4.5.
func (r *Reader) Int64() int64 { return int64(r.Uint64()) }

// Bool reads a boolean, RFC 4506 section 4.4. Anything but 0 and 1 is [ErrBool].
func (r *Reader) Bool() bool {
	v := r.Uint32()
	if v > 1 {
		r.Fail(ErrBool)
	}
	return v == 1
}

// Enum reads an enum whose members are 0 to last, RFC 4506 section 4.3.
// Anything else is [ErrEnum] and answers 0.
func (r *Reader) Enum(last uint32) uint32 {
	v := r.Uint32()
	if v > last {
		r.Fail(ErrEnum)
		return 0
	}
	return v
}

// Fixed reads n bytes of fixed-length opaque data and its padding to a multiple
// of four, RFC 4506 section 4.9. The padding must be there; its content is not
// looked at. The result aliases the input and is nil after an error.
func (r *Reader) Fixed(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short()
		return nil
	}
	size := n + -n&3
	if size > len(r.b) {
		r.short()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[size:]
	return v
}

// Opaque reads variable-length opaque data of at most max bytes, RFC 4506
// section 4.10. A longer one is [ErrLength]. The result aliases the input.
func (r *Reader) Opaque(max int) []byte {
	n := r.Uint32()
	if uint64(n) > uint64(max) {
		r.Fail(ErrLength)
		return nil
	}
	return r.Fixed(int(n))
}

// String reads a string of at most max bytes, RFC 4506 section 4.11. The result
// aliases the input: it is valid as long as the buffer is, and what keeps it
// longer must strings.Clone it.
func (r *Reader) String(max int) string {
	b := r.Opaque(max)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Count reads the length of a variable-length array, RFC 4506 section 4.13,
// whose elements take at least size bytes each. More than max elements is
// [ErrLength], and more than the input can hold is [ErrShort]: the answer is
// safe to allocate by.
func (r *Reader) Count(max, size int) int {
	n := r.Uint32()
	if uint64(n) > uint64(max) {
		r.Fail(ErrLength)
		return 0
	}
	if int(n) > len(r.b)/size {
		r.short()
		return 0
	}
	return int(n)
}

// Skip passes over n bytes and their padding.
func (r *Reader) Skip(n int) { r.Fixed(n) }

// Rest reads everything that is left.
func (r *Reader) Rest() []byte {
	b := r.b
	r.b = r.b[len(r.b):]
	return b
}

// Writer appends encoded values to B, which the owner may also truncate, swap
// or write to a socket between calls. The zero Writer is ready for use.
type Writer struct {
	B []byte
}

// Len returns len(w.B): the position of what is written next.
func (w *Writer) Len() int { return len(w.B) }

// Extend appends n bytes that the caller fills in at once, whatever they held.
func (w *Writer) Extend(n int) []byte {
	at := len(w.B)
	w.B = slices.Grow(w.B, n)[:at+n]
	return w.B[at:]
}

// Uint32 appends an unsigned integer.
func (w *Writer) Uint32(v uint32) { w.B = binary.BigEndian.AppendUint32(w.B, v) }

// Int32 appends an integer.
func (w *Writer) Int32(v int32) { w.Uint32(uint32(v)) }

// Uint64 appends an unsigned hyper integer.
func (w *Writer) Uint64(v uint64) { w.B = binary.BigEndian.AppendUint64(w.B, v) }

// Int64 appends a hyper integer.
func (w *Writer) Int64(v int64) { w.Uint64(uint64(v)) }

// Bool appends a boolean.
func (w *Writer) Bool(v bool) {
	var n uint32
	if v {
		n = 1
	}
	w.Uint32(n)
}

// Pad appends the zeroes that follow n bytes of opaque data: none to three.
func (w *Writer) Pad(n int) { w.B = append(w.B, zero[:-n&3]...) }

var zero [3]byte

// Fixed appends fixed-length opaque data and its padding.
func (w *Writer) Fixed(b []byte) {
	w.B = append(w.B, b...)
	w.Pad(len(b))
}

// Opaque appends variable-length opaque data: length, bytes, padding.
func (w *Writer) Opaque(b []byte) {
	w.Uint32(uint32(len(b)))
	w.Fixed(b)
}

// String appends a string: length, bytes, padding.
func (w *Writer) String(s string) {
	w.Uint32(uint32(len(s)))
	w.B = append(w.B, s...)
	w.Pad(len(s))
}

// PatchUint32 overwrites the four bytes at position at, which have been written
// before as a placeholder.
func (w *Writer) PatchUint32(at int, v uint32) { binary.BigEndian.PutUint32(w.B[at:], v) }
