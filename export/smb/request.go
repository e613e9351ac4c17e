package smb

import (
	"crypto/sha512"
	"encoding/binary"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// request is one command while it is executed, and the frame that it belongs to.
// A connection has one for all it executes itself; a command that has to wait
// gets its own, with the rest of its frame that depends on it.
type request struct {
	c   *conn
	own bool         // it is executed by the connection's goroutine
	w   *wire.Writer // the replies are appended to it
	chain

	h   wire.Header
	msg []byte   // from the header to the end of the command; offsets in it are relative to its beginning
	cmd *command // nil: there is no such
	s   *session // nil: not known
	t   *tree    // nil for commands without one
	who memstore.Caller

	fresh *memstore.Fresh // data of a WRITE that was received into pages

	// What a command sets that ends with StatusPending: it is executed again once
	// ready has been closed, or a value was taken from it.
	ready <-chan struct{}
	wait  *memstore.Wait  // where ready comes from there
	watch *memstore.Watch // likewise
	again bool            // this is not the first time
	woken <-chan struct{} // what ready was the last time

	fatal error         // the connection has to end
	delay time.Duration // before the reply is sent

	errorData []byte             // of the body of an error, if the command has some
	body      bool               // the command has made the body, whatever its status
	async     uint64             // the AsyncId of a command that has waited, or 0
	signed    bool               // the reply is signed
	hash      *[sha512.Size]byte // of preauthentication, to which the reply is added
	pages     int                // bytes of the connection's view that follow the reply
	unsettled memstore.Unsettled
	taken     int64     // bytes of the budget, for replies of a request that has waited
	begun     time.Time // for the trace
}

// chain is what the commands of one frame have in common.
type chain struct {
	rest   []byte   // commands that are not executed yet
	sealed *session // with whose keys the frame is encrypted, or nil
	count  int      // commands that were begun
	asked  int      // credits that were asked for and are not granted

	// What a related command has from those before it.
	same      *session
	sessionID uint64
	treeID    uint32
	f         *file
	failed    wire.Status // of the last command, if it has left no file

	// The frame of replies in w.
	begin  int      // where it begins, -1: there is none
	last   int      // where its last reply begins
	signer *signer  // whose signature the last reply gets, or nil
	before struct { // the reply before the last in the frame
		at, end int // end 0: there is none
		signer  *signer
	}
}

// frame executes the commands of a frame from the network. An error ends the
// connection.
func (r *request) frame(frame []byte) error {
	r.chain = chain{begin: -1}
	switch {
	case isSealed(frame):
		s := r.c.session(sealedSession(frame))
		if s == nil || s.sealer == nil {
			return errFrame
		}
		var err error
		if frame, err = s.sealer.open(frame); err != nil {
			return err
		}
		r.sealed = s
	case isSMB1(frame):
		return r.negotiateUp(frame)
	}
	r.rest = frame
	return r.run()
}

// run executes the rest of the chain. It ends early where a command has to wait
// that the next ones depend on.
func (r *request) run() error {
	for r.rest != nil {
		err := r.next()
		moved := false
		if err == nil {
			moved, err = r.one()
		}
		if err != nil {
			r.endFrame()
			return err
		}
		if moved {
			return nil
		}
	}
	r.endFrame()
	return nil
}

// next takes the next command from the rest.
func (r *request) next() error {
	msg := r.rest
	if !r.h.Decode(msg) {
		return errFrame
	}
	if r.c.dialect == 0 && r.h.Command != wire.CommandNegotiate {
		return errFrame // MS-SMB2 section 3.3.5.2.2
	}
	r.rest = nil
	if n := int(r.h.Next); n > 0 {
		if n < wire.HeaderSize || n%8 != 0 || n > len(msg)-wire.HeaderSize {
			return errFrame
		}
		msg, r.rest = msg[:n:n], msg[n:]
	}
	r.msg = msg
	r.count++
	r.s, r.t, r.cmd = nil, nil, nil
	r.ready, r.wait, r.watch, r.again, r.woken = nil, nil, nil, false, nil
	r.fatal, r.delay = nil, 0
	r.errorData, r.body, r.async, r.signed, r.hash = nil, false, 0, false, nil
	if int(r.h.Command) < len(commands) {
		r.cmd = &commands[r.h.Command]
	}
	return nil
}

// isRelated tells whether the command at the beginning of b depends on the one
// before it.
func isRelated(b []byte) bool {
	var h wire.Header
	return h.Decode(b) && h.Flags&wire.FlagRelated != 0
}

// one executes the command that next took. moved says that it waits elsewhere,
// with the rest of the frame.
func (r *request) one() (moved bool, err error) {
	c := r.c
	if c.s.trace {
		r.begun = time.Now()
	}
	if r.h.Command == wire.CommandCancel {
		if r.check() == wire.StatusOK {
			c.cancel(&r.h)
		}
		return false, nil
	}
	if !c.take(r.h.MessageID, r.charge()) {
		return false, errFrame
	}
	r.asked += max(1, int(r.h.Credits))
	if r.count > 1 && r.h.Flags&wire.FlagRelated == 0 {
		r.f, r.failed = nil, 0
	}
	status := r.check()
	r.beginReply()
	if !r.grow(smallReply) && r.fatal != nil {
		r.cutReply()
		return false, r.fatal
	}
	if status == wire.StatusOK {
		if status = r.execute(); r.fatal != nil {
			r.cutReply()
			return false, r.fatal
		}
	}
	if status == wire.StatusPending {
		return r.park()
	}
	r.endReply(status)
	if r.delay > 0 {
		select {
		case <-time.After(r.delay):
		case <-c.s.done:
		}
	}
	return false, nil
}

// charge is how many message ids the request uses.
func (r *request) charge() int {
	if r.c.dialect <= wire.Dialect202 {
		return 1
	}
	return max(1, int(r.h.CreditCharge))
}

// paid tells whether the credits of the request pay for so many bytes sent or
// received, MS-SMB2 section 3.3.5.2.5.
func (r *request) paid(size int) bool {
	return !r.c.multiCredit() || size <= r.charge()*smallIO
}

// check finds the session and the tree, and verifies that the request is who it
// says; MS-SMB2 sections 3.3.5.2.4, 3.3.5.2.7.2 and 3.3.5.2.9 to 11.
func (r *request) check() wire.Status {
	h := &r.h
	if h.Flags&wire.FlagRelated != 0 {
		if r.count == 1 || r.same == nil {
			return wire.StatusInvalidParameter
		}
		h.SessionID, h.TreeID = r.sessionID, r.treeID
	}
	r.sessionID = h.SessionID
	if h.Flags&wire.FlagAsync == 0 {
		r.treeID = h.TreeID
	}
	if h.Flags&wire.FlagRelated != 0 {
		r.s = r.same
	} else {
		r.s = r.c.session(h.SessionID)
	}
	r.same = r.s
	if r.sealed != nil && r.s != r.sealed {
		return wire.StatusAccessDenied
	}
	need := need(0)
	if r.cmd != nil {
		need = r.cmd.needs
	}
	s := r.s
	switch {
	case s == nil && h.Command == wire.CommandSessionSetup:
		// It finds out itself.
	case s == nil && (need&needSession != 0 || h.Flags&wire.FlagSigned != 0 && h.SessionID != 0):
		return wire.StatusUserSessionDeleted
	case s == nil, r.sealed != nil:
	case s.signer == nil: // nobody has logged on yet
		if need&needSession != 0 {
			return wire.StatusUserSessionDeleted
		}
	case h.Flags&wire.FlagSigned != 0:
		if !s.signer.verify(r.msg, h.Command) {
			return wire.StatusAccessDenied
		}
		r.signed = true
	case need&needSession != 0 && s.mustSign:
		return wire.StatusAccessDenied
	}
	if r.cmd == nil {
		return wire.StatusInvalidParameter
	}
	if len(r.msg) < wire.HeaderSize+int(r.cmd.size&^1) || binary.LittleEndian.Uint16(r.msg[wire.HeaderSize:]) != r.cmd.size {
		return wire.StatusInvalidParameter
	}
	if need&needSession != 0 && r.sealed == nil && s.mustSeal {
		return wire.StatusAccessDenied
	}
	return wire.StatusOK
}

// execute runs the command under its session's lock. A broken invariant is one
// request's failure.
func (r *request) execute() (status wire.Status) {
	defer func() {
		if p := recover(); p != nil {
			r.dropPages()
			r.ready, r.wait, r.watch = nil, nil, nil
			r.c.count.panics.Add(1)
			r.c.s.log.Error("request failed", "command", r.cmd.name, "peer", r.c.peer, "panic", p, "stack", string(debug.Stack()))
			status = wire.StatusInternalError
		}
	}()
	if s := r.s; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ended.Load() && r.cmd.needs&needSession != 0 {
			return wire.StatusUserSessionDeleted
		}
		r.who = memstore.Caller{Cred: s.cred, Holder: &s.holder, Unsettled: &r.unsettled}
		if r.cmd.needs&needTree != 0 {
			r.t = s.trees[r.treeID]
			switch {
			case r.t == nil:
				return wire.StatusNetworkNameDeleted
			case r.t.mustSeal && r.sealed == nil:
				return wire.StatusAccessDenied
			}
		}
	}
	if r.cmd.run == nil {
		return wire.StatusNotSupported
	}
	return r.cmd.run(r)
}

// grow makes room for n more bytes of the reply, in a large buffer if there is none
// in the batch: then what came before the frame is sent. It reports false if the
// frame would become too large, or there is no memory for a request that has waited.
func (r *request) grow(n int) bool {
	w, c := r.w, r.c
	n += slack
	size := len(w.B) - r.begin + n
	switch {
	case size > maxFrame:
		return false
	case n <= cap(w.B)-len(w.B):
		return true
	case !r.own:
		if !c.s.large.TryTake(int64(n)) {
			return false
		}
		r.taken += int64(n)
		w.B = slices.Grow(w.B, n)
		return true
	}
	if r.begin > 0 {
		n, err := c.Send(w.B[:r.begin], nil)
		c.count.out.Add(uint64(n))
		if err != nil {
			r.fatal = err
			return false
		}
	}
	b := c.s.takeLarge(size, true)
	if b == nil {
		r.fatal = net.ErrClosed
		return false
	}
	b = append(b[:0], w.B[r.begin:]...)
	c.giveOut()
	w.B, c.work.large = b, b
	w.Move(-r.begin)
	r.last -= r.begin
	r.before.at -= r.begin
	r.before.end = max(0, r.before.end-r.begin)
	r.begin = 0
	return true
}

// beginReply appends the header of a reply, and what comes before it in the frame.
func (r *request) beginReply() {
	w := r.w
	if r.begin < 0 {
		r.before.end = 0
		r.begin = len(w.B)
		w.B = append(w.B, make([]byte, frameSize)...)
		if r.sealed != nil {
			w.B = append(w.B, make([]byte, sealedSize)...)
		}
	} else {
		// The one before is complete now.
		r.before.at, r.before.end, r.before.signer = r.last, len(w.B), r.signer
		n := (len(w.B) - r.last + 7) &^ 7
		for len(w.B)-r.last < n {
			w.B = append(w.B, 0)
		}
		binary.LittleEndian.PutUint32(w.B[r.last+20:], uint32(n))
		r.signLast()
	}
	r.last = len(w.B)
	r.signer = nil
	w.Begin()
	w.B = append(w.B, make([]byte, wire.HeaderSize)...)
}

// endReply writes the header of a reply whose body is there, or that of an error.
func (r *request) endReply(status wire.Status) {
	w, c := r.w, r.c
	if !r.hasBody(status) {
		r.dropPages()
		w.B = w.B[:r.last+wire.HeaderSize]
		r.errorBody()
	}
	if r.unsettled.Any() {
		r.unsettled.Settle()
	}
	h := wire.Header{
		CreditCharge: r.h.CreditCharge,
		Status:       status,
		Command:      r.h.Command,
		Flags:        wire.FlagReply | r.h.Flags&wire.FlagRelated,
		MessageID:    r.h.MessageID,
		TreeID:       r.h.TreeID,
		SessionID:    r.h.SessionID,
	}
	switch {
	case r.async != 0:
		h.Flags |= wire.FlagAsync
		h.AsyncID = r.async
	case r.rest == nil:
		h.Credits = c.grant(r.asked)
		r.asked = 0
	}
	if r.sealed == nil {
		// Clients take what has the flag and no signature for what it is: an error
		// that was found before the key.
		h.Flags |= r.h.Flags & wire.FlagSigned
		if r.signed {
			h.Flags |= wire.FlagSigned
			r.signer = r.s.signer
		}
	}
	h.Encode(w.B[r.last:])
	if r.hash != nil {
		addHash(r.hash, w.B[r.last:])
	}
	r.failed = 0
	if status.IsError() && r.f == nil {
		r.failed = status
	}
	if r.cmd != nil {
		c.count.calls[r.h.Command].Add(1)
		if status.IsError() {
			c.count.errors[r.h.Command].Add(1)
		}
	}
	if c.s.trace {
		r.trace(status)
	}
}

// hasBody tells whether the reply has the body that the command appended.
func (r *request) hasBody(status wire.Status) bool {
	switch status {
	case wire.StatusOK, wire.StatusBufferOverflow, wire.StatusMoreProcessingRequired, wire.StatusNotifyEnumDir:
		return true
	}
	return r.body
}

// errorBody appends the body of an error, MS-SMB2 section 2.2.2.
func (r *request) errorBody() {
	w, data := r.w, r.errorData
	count := byte(0)
	if len(data) > 0 && r.c.dialect == wire.Dialect311 {
		// As a context without an id.
		head := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
		data = append(head, data...)
		count = 1
	}
	w.B = append(w.B, 9, 0, count, 0)
	w.B = binary.LittleEndian.AppendUint32(w.B, uint32(len(data)))
	if len(data) == 0 {
		w.B = append(w.B, 0)
	}
	w.B = append(w.B, data...)
}

// signLast signs the last reply of the frame.
func (r *request) signLast() {
	if r.signer != nil {
		r.signer.sign(r.w.B[r.last:])
		r.signer = nil
	}
}

// endFrame completes the frame of replies, if there is one.
func (r *request) endFrame() {
	if r.begin < 0 {
		return
	}
	w := r.w
	if r.before.end > 0 {
		// The last of several is as long as the others would be.
		for (len(w.B)-r.last)%8 != 0 {
			w.B = append(w.B, 0)
		}
	}
	r.signLast()
	if r.sealed != nil {
		w.B = r.sealed.sealer.seal(w.B, r.begin+frameSize, r.sealed.id)
	}
	binary.BigEndian.PutUint32(w.B[r.begin:], uint32(len(w.B)-r.begin-frameSize+r.pages))
	r.begin = -1
}

func (r *request) dropPages() {
	if r.pages > 0 {
		r.c.work.view.Release()
		r.c.s.large.Give(int64(r.pages))
		r.pages = 0
	}
}
