package wire

import "encoding/binary"

// Reader decodes a message. Its first error sticks, and everything read after it
// is zero. Offsets are relative to the beginning of the message.
type Reader struct {
	msg  []byte
	at   int
	fail bool
}

// NewReader reads the body of a message, which begins with its header.
func NewReader(msg []byte) Reader { return Reader{msg: msg, at: HeaderSize} }

// OK tells whether everything could be read.
func (r *Reader) OK() bool { return !r.fail }

func (r *Reader) take(n int) []byte {
	if r.fail || n > len(r.msg)-r.at {
		r.fail = true
		return nil
	}
	r.at += n
	return r.msg[r.at-n : r.at]
}

// Skip skips n bytes.
func (r *Reader) Skip(n int) { r.take(n) }

// Uint8 reads one byte.
func (r *Reader) Uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 reads 2 bytes.
func (r *Reader) Uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// Uint32 reads 4 bytes.
func (r *Reader) Uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uint64 reads 8 bytes.
func (r *Reader) Uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Bytes reads n bytes.
func (r *Reader) Bytes(n int) []byte { return r.take(n) }

// Buffer is n bytes from offset off.
func (r *Reader) Buffer(off, n int) []byte {
	if n == 0 {
		return nil
	}
	if r.fail || off < HeaderSize || off > len(r.msg) || n > len(r.msg)-off {
		r.fail = true
		return nil
	}
	return r.msg[off:][:n]
}

// Writer encodes messages, one behind the other.
type Writer struct {
	B     []byte
	start int
}

// Begin begins a message: offsets are relative to here.
func (w *Writer) Begin() { w.start = len(w.B) }

// Move says that what was written has moved by n bytes in B.
func (w *Writer) Move(n int) { w.start += n }

// Offset is where the next byte will be in its message.
func (w *Writer) Offset() int { return len(w.B) - w.start }

// Uint8 appends one byte.
func (w *Writer) Uint8(v uint8) { w.B = append(w.B, v) }

// Uint16 appends 2 bytes.
func (w *Writer) Uint16(v uint16) { w.B = binary.LittleEndian.AppendUint16(w.B, v) }

// Uint32 appends 4 bytes.
func (w *Writer) Uint32(v uint32) { w.B = binary.LittleEndian.AppendUint32(w.B, v) }

// Uint64 appends 8 bytes.
func (w *Writer) Uint64(v uint64) { w.B = binary.LittleEndian.AppendUint64(w.B, v) }

// Bytes appends b.
func (w *Writer) Bytes(b []byte) { w.B = append(w.B, b...) }

// Align appends zeroes until the next byte's offset is a multiple of n.
func (w *Writer) Align(n int) {
	for w.Offset()%n != 0 {
		w.B = append(w.B, 0)
	}
}
