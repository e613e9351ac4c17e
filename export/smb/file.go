package smb

import (
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// file is an open file, directory or pipe of a session. It is protected by the
// session's mu.
type file struct {
	t    *tree
	id   uint64         // volatile part of its id; the persistent part is the same
	pipe *pipe          // nil for what is in a store, which has the rest
	open *memstore.Open // of inode, or of one of its streams
	base *memstore.Open // of inode, where open is that of a stream

	inode   *memstore.Inode
	dir     *memstore.Inode // where it was opened; nil for a share's root
	name    string          // in dir, as it is stored
	stream  string          // "" is the file itself
	access  uint32          // rights that were granted
	options uint32          // of CREATE

	deleteOnClose bool
	watch         *memstore.Watch  // of CHANGE_NOTIFY, once it was asked for
	watchMax      uint32           // bytes that are told at once
	position      uint64           // kept for the client, who asks for it
	frozen        memstore.SetMask // times that changes by this file leave as they are
	nextEA        int              // how many extended attributes were listed
	listing       listing
}

// data is the inode whose data the file is.
func (f *file) data() *memstore.Inode { return f.open.Inode() }

// addFile gives f an id in the session; false if its connection, or the server, has
// too many.
func (r *request) addFile(f *file) bool {
	s := r.s
	if n, all := s.c.opens.Add(1), s.c.s.opens.Add(1); n > maxOpen || all > maxOpenAll {
		uncount(s.c)
		return false
	}
	f.t = r.t
	f.id = s.c.s.ids.Add(1)
	s.files[f.id] = f
	r.f = f
	return true
}

// uncount takes a file off the counts of its connection and the server.
func uncount(c *conn) {
	c.opens.Add(-1)
	c.s.opens.Add(-1)
}

// file finds what an id names, and keeps it for the related command behind this
// one. MS-SMB2 section 3.3.5.2.7.2: where the command before has failed that would
// have named it, this one fails likewise.
func (r *request) file(id wire.FileID) (*file, wire.Status) {
	if r.h.Flags&wire.FlagRelated != 0 && (id == wire.AnyFile || r.f == nil) {
		switch {
		case r.f == nil && r.failed != wire.StatusOK:
			return nil, r.failed
		case r.f == nil || r.s.files[r.f.id] != r.f:
			return nil, wire.StatusFileClosed
		}
		return r.f, wire.StatusOK
	}
	f := r.s.files[id.Volatile]
	if f == nil || f.id != id.Persistent || f.t != r.t {
		return nil, wire.StatusFileClosed
	}
	r.f = f
	return f, wire.StatusOK
}

// openFile is file for commands that a pipe has no answer to.
func (r *request) openFile(id wire.FileID) (*file, wire.Status) {
	f, status := r.file(id)
	if f != nil && f.pipe != nil {
		return nil, wire.StatusInvalidDeviceRequest
	}
	return f, status
}

// close closes the file, and ends what waits for something by it.
func (f *file) close() {
	f.end(wire.StatusRangeNotLocked)
}

// end is close; a lock that waits gets a status.
func (f *file) end(locks wire.Status) {
	s := f.t.s
	delete(s.files, f.id)
	uncount(s.c)
	if f.pipe != nil {
		f.pipe.empty(s.c)
	}
	s.c.endFile(s, f, locks)
	if f.watch != nil {
		f.watch.Close()
	}
	if f.open != nil {
		if f.deleteOnClose {
			f.open.Doom(f.dir, f.name) // a directory that is not empty stays
		}
		f.open.Close()
		if f.base != nil {
			f.base.Close()
		}
	}
}

// fileInfo is what is told about an open file, from the attributes of its data.
func (r *request) fileInfo(f *file, a *memstore.Attr) wire.FileInfo {
	info := infoOf(a)
	info.Volume = f.t.volume()
	info.Access = f.access
	info.Position = f.position
	const modes = 0x107E // those of CREATE's options that are told
	info.Mode = f.options & modes
	if f.data().Doomed() {
		info.DeletePending = true
		info.Links = max(info.Links, 1) - 1
	}
	return info
}
