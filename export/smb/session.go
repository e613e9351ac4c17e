package smb

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// session is one user's logon. It belongs to one connection.
//
// Fields are (c) constant once somebody has logged on, or (m) protected by mu,
// which is held while one of its requests is executed.
type session struct {
	c      *conn           // (c)
	id     uint64          // (c)
	holder memstore.Holder // (c)

	signer   *signer // (c) nil: nobody has logged on yet
	sealer   *sealer // (c) nil: without encryption
	mustSign bool    // (c)
	mustSeal bool    // (c)

	ended atomic.Bool // set with mu held

	mu    sync.Mutex
	user  string           // (m) as the file of users has it
	cred  memstore.Cred    // (m)
	since time.Time        // (m) when the user logged on
	trees map[uint32]*tree // (m)
	files map[uint64]*file // (m) by the volatile part of their ids
	ids   uint32           // (m) last one given to a tree
	apple uint64           // (m) capabilities that were agreed with a Mac

	// Of the logon that is in progress; the connection's goroutine owns them.
	logon   *ntlm.Negotiation
	preauth [sha512.Size]byte
}

// Bounds for one connection, one session and all.
const (
	maxSessions   = 1024
	firstSessions = 16      // before anybody has logged on
	maxTrees      = 256     // of a session
	maxOpen       = 1 << 17 // of a connection
	maxOpenAll    = 1 << 20
)

// session finds a session of the connection; nil if there is none.
func (c *conn) session(id uint64) *session {
	s := c.last
	if s == nil || s.id != id {
		if s = c.sessions[id]; s == nil {
			return nil
		}
	}
	if s.ended.Load() {
		c.forget(s)
		return nil
	}
	c.last = s
	return s
}

func (c *conn) forget(s *session) {
	delete(c.sessions, s.id)
	if c.last == s {
		c.last = nil
	}
}

// Flags of SESSION_SETUP.
const (
	sessionBinding = 1 // of a request
	sessionEncrypt = 4 // of a reply
)

// sessionSetup is SESSION_SETUP, MS-SMB2 section 3.3.5.5.
func (r *request) sessionSetup() wire.Status {
	c := r.c
	var q wire.SessionSetupRequest
	switch {
	case !q.Decode(r.msg):
		return wire.StatusInvalidParameter
	case c.s.cfg.Encryption == Required && c.cipher == 0:
		return wire.StatusAccessDenied
	case q.Flags&sessionBinding != 0:
		// No session has several connections.
		return wire.StatusRequestNotAccepted
	}
	s := r.s
	switch {
	case r.h.SessionID == 0:
		if s = c.newSession(); s == nil {
			return wire.StatusInsufficientResources
		}
		r.s = s
		r.h.SessionID = s.id
	case s == nil:
		return wire.StatusUserSessionDeleted
	}
	if s.logon == nil {
		s.logon = c.s.logons.Begin()
		s.preauth = c.preauth
	}
	if c.dialect == wire.Dialect311 {
		addHash(&s.preauth, r.msg)
	}
	token, who, err := s.logon.Step(q.Token)
	switch {
	case err != nil:
		return r.logonFailed(err)
	case who == nil:
		if c.dialect == wire.Dialect311 {
			r.hash = &s.preauth
		}
		(&wire.SessionSetupReply{Token: token}).Encode(r.w)
		return wire.StatusMoreProcessingRequired
	}
	s.logon = nil
	u, ok, _ := c.s.cfg.Users.Find(who.User)
	if !ok {
		return r.logonFailed(ntlm.ErrLogon) // removed at this moment
	}
	if s.signer == nil {
		if err := s.setKeys(who.Key[:], q.SecurityMode); err != nil {
			c.s.log.Error("no keys for a session", "error", err)
			return wire.StatusInternalError
		}
		if q.PreviousSessionID != 0 {
			if c.s.replace(q.PreviousSessionID, s, u.Name); s.ended.Load() {
				return wire.StatusUserSessionDeleted
			}
		}
	} else if !strings.EqualFold(s.user, u.Name) {
		// A session stays its user's.
		return r.logonFailed(ntlm.ErrLogon)
	}
	s.user, s.cred, s.since = u.Name, u.Cred, time.Now()
	s.holder.Name = u.Name + " at " + c.peer.String()
	c.ready.Store(true)
	r.signed = true
	reply := wire.SessionSetupReply{Token: token}
	if s.mustSeal {
		reply.Flags = sessionEncrypt
	}
	reply.Encode(r.w)
	return wire.StatusOK
}

// newSession makes a session on which nobody has logged on yet. Too many of
// those are an attempt to use up memory.
func (c *conn) newSession() *session {
	limit := maxSessions
	if !c.ready.Load() {
		limit = firstSessions
	}
	if len(c.sessions) >= limit {
		for _, s := range c.sessions {
			if s.ended.Load() {
				c.forget(s)
			}
		}
	}
	if len(c.sessions) >= limit {
		return nil
	}
	s := &session{c: c, trees: make(map[uint32]*tree), files: make(map[uint64]*file)}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for s.id == 0 || s.id == 1<<32-1 || c.s.sessions[s.id] != nil {
		var b [8]byte
		rand.Read(b[:4]) // some clients keep 32 bits of it
		s.id = binary.LittleEndian.Uint64(b[:])
	}
	c.s.sessions[s.id] = s
	c.sessions[s.id] = s
	return s
}

// setKeys makes the session's keys, MS-SMB2 section 3.3.5.5.3.
func (s *session) setKeys(key []byte, mode uint8) error {
	c := s.c
	k := deriveKeys(c.dialect, c.cipher, key, s.preauth[:])
	var err error
	if c.cipher != 0 {
		if s.sealer, err = newSealer(c.cipher, &k); err != nil {
			return err
		}
		s.mustSeal = c.s.cfg.Encryption == Required
	}
	s.mustSign = c.s.cfg.Signing == Required || (uint16(mode)|c.clientMode)&wire.SigningRequired != 0
	s.signer, err = newSigner(c.signing, k.signing)
	return err
}

// logonFailed ends a session after a logon that failed, and tells the client
// after a while.
func (r *request) logonFailed(err error) wire.Status {
	s, c := r.s, r.c
	c.count.failedLogons.Add(1)
	c.s.log.Info("logon failed", "peer", c.peer, "error", err)
	s.endLocked()
	c.forget(s)
	r.delay = c.s.cfg.logonDelay
	switch {
	case errors.Is(err, ntlm.ErrMessage), errors.Is(err, ntlm.ErrOrder):
		return wire.StatusInvalidParameter
	case errors.Is(err, ntlm.ErrTampered):
		return wire.StatusAccessDenied
	}
	return wire.StatusLogonFailure
}

// replace ends a session that the user had on a connection that was lost, which
// may not have been noticed yet. Called with by.mu held, which it lets go of
// meanwhile: the other may be about to replace by.
func (s *Server) replace(id uint64, by *session, user string) {
	s.mu.Lock()
	old := s.sessions[id]
	s.mu.Unlock()
	if old == nil || old == by {
		return
	}
	by.mu.Unlock()
	defer by.mu.Lock()
	old.mu.Lock()
	defer old.mu.Unlock()
	if strings.EqualFold(old.user, user) {
		old.endLocked()
	}
}

// logoff is LOGOFF, MS-SMB2 section 3.3.5.6.
func (r *request) logoff() wire.Status {
	r.s.endLocked()
	r.c.forget(r.s)
	wire.EncodeEmpty(r.w)
	return wire.StatusOK
}

// end closes what the session has open, and is the end of it.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
}

// endLocked is called with s.mu held.
func (s *session) endLocked() {
	if s.ended.Swap(true) {
		return
	}
	for _, t := range s.trees {
		t.end()
	}
	s.c.endPending(func(r *request) bool { return r.s == s }, wire.StatusCancelled)
	s.c.s.mu.Lock()
	delete(s.c.s.sessions, s.id)
	s.c.s.mu.Unlock()
}
