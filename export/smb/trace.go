package smb

import (
	"time"

	"ramserver/export/smb/wire"
)

// trace logs a request and its reply as one line: who, what, on which file,
// what became of it and how long it took.
func (r *request) trace(status wire.Status) {
	name, user, share := "unknown command", "", ""
	if r.cmd != nil {
		name = r.cmd.name
	}
	if r.s != nil {
		r.s.mu.Lock()
		user = r.s.user
		r.s.mu.Unlock()
	}
	if r.t != nil {
		share = r.t.name()
	}
	r.c.s.log.Debug(name, "share", share, "answer", status, "bytes", len(r.w.B)-r.last+r.pages, "sealed", r.sealed != nil, "signed", r.signed,
		"user", user, "peer", r.c.peer, "id", r.h.MessageID, "took", time.Since(r.begun))
}
