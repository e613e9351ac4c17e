// Package wire is what SMB 2 and 3 messages look like (MS-SMB2, MS-FSCC).
package wire

import "encoding/binary"

// HeaderSize is the size of a message's header, in bytes.
const HeaderSize = 64

// Header precedes every message, MS-SMB2 section 2.2.1. AsyncID counts where
// FlagAsync is set, TreeID elsewhere.
type Header struct {
	CreditCharge uint16
	Status       Status
	Command      Command
	Credits      uint16
	Flags        uint32
	Next         uint32
	MessageID    uint64
	AsyncID      uint64
	TreeID       uint32
	SessionID    uint64
}

// Flags of a header.
const (
	FlagReply   = 1 << 0
	FlagAsync   = 1 << 1
	FlagRelated = 1 << 2
	FlagSigned  = 1 << 3
)

// Decode reads a header from the beginning of b; false if there is none.
func (h *Header) Decode(b []byte) bool {
	if len(b) < HeaderSize || string(b[:4]) != "\xfeSMB" || b[4] != HeaderSize || b[5] != 0 {
		return false
	}
	le := binary.LittleEndian
	h.CreditCharge = le.Uint16(b[6:])
	h.Status = Status(le.Uint32(b[8:]))
	h.Command = Command(le.Uint16(b[12:]))
	h.Credits = le.Uint16(b[14:])
	h.Flags = le.Uint32(b[16:])
	h.Next = le.Uint32(b[20:])
	h.MessageID = le.Uint64(b[24:])
	h.AsyncID, h.TreeID = 0, 0
	if h.Flags&FlagAsync != 0 {
		h.AsyncID = le.Uint64(b[32:])
	} else {
		h.TreeID = le.Uint32(b[36:])
	}
	h.SessionID = le.Uint64(b[40:])
	return true
}

// Encode writes the header to the beginning of b, which has room for it. The
// signature becomes zero.
func (h *Header) Encode(b []byte) {
	le := binary.LittleEndian
	copy(b, "\xfeSMB")
	le.PutUint16(b[4:], HeaderSize)
	le.PutUint16(b[6:], h.CreditCharge)
	le.PutUint32(b[8:], uint32(h.Status))
	le.PutUint16(b[12:], uint16(h.Command))
	le.PutUint16(b[14:], h.Credits)
	le.PutUint32(b[16:], h.Flags)
	le.PutUint32(b[20:], h.Next)
	le.PutUint64(b[24:], h.MessageID)
	if h.Flags&FlagAsync != 0 {
		le.PutUint64(b[32:], h.AsyncID)
	} else {
		le.PutUint32(b[32:], 0)
		le.PutUint32(b[36:], h.TreeID)
	}
	le.PutUint64(b[40:], h.SessionID)
	clear(b[48:HeaderSize])
}

// Command is the number of a command.
type Command uint16

// Commands, MS-SMB2 section 2.2.1.2.
const (
	CommandNegotiate Command = iota
	CommandSessionSetup
	CommandLogoff
	CommandTreeConnect
	CommandTreeDisconnect
	CommandCreate
	CommandClose
	CommandFlush
	CommandRead
	CommandWrite
	CommandLock
	CommandIoctl
	CommandCancel
	CommandEcho
	CommandQueryDirectory
	CommandChangeNotify
	CommandQueryInfo
	CommandSetInfo
	CommandOplockBreak
)
