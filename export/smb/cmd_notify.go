package smb

import (
	"encoding/binary"
	"strings"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// maxWatched bounds what is kept of changes that a connection's clients watch, and
// have not asked for yet, in bytes.
const maxWatched = 1 << 20

// notify is CHANGE_NOTIFY, MS-SMB2 section 3.3.5.19 and MS-FSA section 2.1.5.11. The
// first request of an open says what is watched, and how much is told at once (as
// MS-CIFS section 3.3.5.59.4 has it); what changes from then on is kept until it is
// asked for. Requests that wait are answered in their order.
func (r *request) notify() wire.Status {
	var q wire.NotifyRequest
	if !q.Decode(r.msg) || int64(q.MaxOut) > int64(r.c.maxIO()) || !r.paid(int(q.MaxOut)) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case status != wire.StatusOK:
		return status
	case f.pipe != nil, f.inode.Type() != memstore.TypeDir, f.stream != "":
		return wire.StatusInvalidParameter
	case f.access&rightReadData == 0:
		return wire.StatusAccessDenied
	}
	if f.watch == nil {
		w, err := f.inode.Watch(watchMask(q.Filter), q.Flags&wire.NotifyTree != 0, &r.c.watched)
		switch err {
		case nil:
		case memstore.ErrStale: // it is removed
			return wire.StatusDeletePending
		default:
			return r.status(err)
		}
		f.watch, f.watchMax = w, q.MaxOut
	}
	events, overflow, ended := f.watch.Take(r.woken)
	switch {
	case overflow:
		return r.noChanges(wire.StatusNotifyEnumDir)
	case len(events) > 0:
		b, ok := appendEvents(nil, events, int(min(q.MaxOut, f.watchMax)))
		if !ok {
			// The client lists the directory instead.
			return r.noChanges(wire.StatusNotifyEnumDir)
		}
		if !r.grow(wire.BufferSize + len(b)) {
			return wire.StatusInsufficientResources
		}
		at := wire.BeginBuffer(r.w)
		r.w.Bytes(b)
		wire.EndBuffer(r.w, at)
		return wire.StatusOK
	case ended && !r.again && !f.inode.Doomed(): // it was to be removed, and is not any more
		f.watch.Close()
		f.watch = nil
		return r.notify()
	case ended, f.inode.Doomed(): // before it was watched
		return wire.StatusDeletePending
	}
	r.ready, r.watch = f.watch.Wait(), f.watch
	return wire.StatusPending
}

// noChanges appends the body of a reply without changes.
func (r *request) noChanges(status wire.Status) wire.Status {
	wire.EndBuffer(r.w, wire.BeginBuffer(r.w))
	return status
}

// appendEvents appends changes, FILE_NOTIFY_INFORMATION of MS-FSCC section 2.7.1. It
// reports false if they are more than max bytes.
func appendEvents(b []byte, events []memstore.WatchEvent, max int) (all []byte, ok bool) {
	last := -1
	for _, e := range events {
		if last >= 0 {
			for len(b)%4 != last%4 {
				b = append(b, 0)
			}
			binary.LittleEndian.PutUint32(b[last:], uint32(len(b)-last))
		}
		last = len(b)
		b = append(b, 0, 0, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(e.Action))
		b = append(b, 0, 0, 0, 0)
		for n, part := range strings.Split(e.Path, "/") {
			if n > 0 {
				b = append(b, '\\', 0)
			}
			b = appendName(b, part)
		}
		if e.Stream != "" {
			b = wire.AppendUTF16(b, ":"+e.Stream)
		}
		if len(b) > max {
			return nil, false
		}
		binary.LittleEndian.PutUint32(b[last+8:], uint32(len(b)-last-12))
	}
	return b, true
}

// watchMask is a filter as the store has it.
func watchMask(filter uint32) (m memstore.WatchMask) {
	for _, f := range []struct {
		bits uint32
		mask memstore.WatchMask
	}{
		{wire.FilterFileName, memstore.WatchName},
		{wire.FilterDirName, memstore.WatchDir},
		{wire.FilterAttributes, memstore.WatchAttr},
		{wire.FilterSize, memstore.WatchSize},
		{wire.FilterWrite, memstore.WatchWrite | memstore.WatchMtime},
		{wire.FilterAccess, memstore.WatchAtime},
		{wire.FilterCreation, memstore.WatchBtime},
		{wire.FilterEA, memstore.WatchXattr},
		{wire.FilterSecurity, memstore.WatchOwner},
		{wire.FilterStreamName, memstore.WatchStreamName},
		{wire.FilterStreamSize, memstore.WatchStreamSize},
		{wire.FilterStreamData, memstore.WatchStreamWrite},
	} {
		if filter&f.bits != 0 {
			m |= f.mask
		}
	}
	return m
}
