package smb

import (
	"encoding/binary"
	"strings"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// macOS asks on the first root that it opens what a server can do beyond MS-SMB2, and
// then finds in listings what it would have to open each file for. The Finder's
// information and the resource fork of a file are streams of these names.
const (
	appleInfo     = "AFP_AfpInfo"
	appleResource = "AFP_Resource"
)

// appleModel is what the server says that it is, from which the Finder takes an icon.
const appleModel = "ramserver"

// askApple answers the create context "AAPL", and remembers what was agreed. nil: it is
// malformed, or asks for what there is not.
func (r *request) askApple(data []byte) []byte {
	var q wire.AppleQuery
	if !q.Decode(data) {
		return nil
	}
	a := wire.AppleAnswer{
		Parts:  q.Parts & (wire.AppleServerCaps | wire.AppleVolumeCaps | wire.AppleModel),
		Server: wire.AppleUnix | wire.AppleModeACE,
		Volume: wire.AppleFullSync,
		Model:  appleModel,
	}
	switch {
	case q.Caps&wire.AppleDirAttrs2 != 0:
		a.Server |= wire.AppleDirAttrs2
	case q.Caps&wire.AppleDirAttrs != 0:
		a.Server |= wire.AppleDirAttrs
	}
	if a.Parts&wire.AppleServerCaps != 0 {
		r.s.apple = a.Server
	}
	return a.Append(nil)
}

// Types of files in a mode, as macOS has them.
var modeTypes = map[memstore.Type]uint16{
	memstore.TypeFIFO: 0o010000, memstore.TypeChar: 0o020000, memstore.TypeDir: 0o040000, memstore.TypeBlock: 0o060000,
	memstore.TypeFile: 0o100000, memstore.TypeSymlink: 0o120000, memstore.TypeSocket: 0o140000,
}

// appleDate is when macOS counts seconds from, 2000, in seconds since 1970.
const appleDate = 946684800

// appleEntry is what a listing tells about an inode in dir; nil is one that cannot be
// removed.
func (r *request) appleEntry(dir, i *memstore.Inode, a *memstore.Attr) (e wire.AppleEntry) {
	e.Access = r.maxRights(dir, i, a)
	e.Mode = modeTypes[a.Type] | a.Mode
	e.Finder[12] = 0x80 // no date on which it was added
	streams := i.Streams()
	if len(streams) == 0 && r.s.apple&wire.AppleDirAttrs2 != 0 {
		e.Flags = wire.AppleNoStreams
	}
	for _, s := range streams {
		switch {
		case strings.EqualFold(s.Name, appleResource):
			e.Resource = uint64(s.Size)
		case strings.EqualFold(s.Name, appleInfo) && e.Access&rightReadData != 0:
			r.finderInfo(i, &e)
			binary.BigEndian.PutUint32(e.Finder[12:], uint32(a.Btime/1e9-appleDate))
		}
	}
	return e
}

// finderInfo copies what is in use of the Finder's information, 32 of the stream's 60
// bytes: type and creator of a file, flags and extended flags.
func (r *request) finderInfo(i *memstore.Inode, e *wire.AppleEntry) {
	const at = 16
	var info [60]byte
	o, _, err := i.OpenStream(&r.who, appleInfo, memstore.StreamArgs{})
	if err != nil {
		return
	}
	defer o.Close()
	if n, _, _, err := o.Inode().ReadAt(r.server(), nil, info[:], 0); err != nil || n < len(info) {
		return
	}
	if i.Type() == memstore.TypeFile {
		copy(e.Finder[:8], info[at:])
	}
	copy(e.Finder[8:10], info[at+8:])
	copy(e.Finder[10:12], info[at+24:])
}
