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
	open *memstore.Open // nil for a pipe
}

// allFiles as an id is that of the command before, in a chain of related ones.
const allFiles = ^uint64(0)

// addFile gives f an id in the session; false if there are too many.
func (r *request) addFile(f *file) bool {
	s := r.s
	if len(s.files) >= maxOpen {
		return false
	}
	f.t = r.t
	f.id = s.c.s.ids.Add(1)
	s.files[f.id] = f
	r.f = f
	return true
}

// file finds what an id names, and keeps it for the related command behind this
// one. MS-SMB2 section 3.3.5.2.7.2: where the command before has failed that would
// have named it, this one fails likewise.
func (r *request) file(persistent, volatile uint64) (*file, wire.Status) {
	if r.h.Flags&wire.FlagRelated != 0 && (persistent == allFiles && volatile == allFiles || r.f == nil) {
		switch {
		case r.f == nil && r.failed != wire.StatusOK:
			return nil, r.failed
		case r.f == nil:
			return nil, wire.StatusFileClosed
		}
		volatile, persistent = r.f.id, r.f.id
	}
	f := r.s.files[volatile]
	if f == nil || f.id != persistent || f.t != r.t {
		return nil, wire.StatusFileClosed
	}
	r.f = f
	return f, wire.StatusOK
}

// close closes the file, and ends what waits for something by it.
func (f *file) close() {
	s := f.t.s
	delete(s.files, f.id)
	if f.open != nil {
		f.open.Close()
	}
	s.c.endFile(s, f)
}
