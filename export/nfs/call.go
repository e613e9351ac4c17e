package nfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"ramserver/export"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// call is one request while it is answered. A connection has one for all it
// executes itself; a request that waits for another holder has its own.
type call struct {
	c    *conn
	w    *xdr.Writer // the reply is appended to it
	work *work       // nil for a request that has left the connection's goroutine

	hdr  rpc.Call
	args xdr.Reader
	exp  *export.Export // of the handles; nil before the first one is resolved
	who  memstore.Caller

	// Clients send the same credential with every call: auth[:known] is the
	// credential and verifier that hdr.Cred was decoded from, and who is what
	// whose makes of it, if that is not nil.
	auth   [256]byte
	known  int
	whose  *export.Export
	groups [16]uint32 // of who

	unsettled memstore.Unsettled // of who

	fresh     *memstore.Fresh // data of the first WRITE, which was received into pages
	freshSize int             // bytes of it, which the record lacks

	pages  int          // bytes of work.view that follow the reply
	pinned int64        // bytes taken from the budget for them
	failed bool         // the results are an error
	good   bool         // there are results
	said   fmt.Stringer // the status of the results, where they do not begin with it
	replay replayKey    // of a procedure that must not be executed twice

	proc  *procedure
	begun int            // where the reply begins in w.B
	wait  *memstore.Wait // another holder is in the way
	again bool           // this is not the first try
	m     compound       // of version 4

	// The export that was used last, and whether the client is admitted to it.
	last     *export.Export
	admitted bool
}

// serve answers the call in rec: it appends a record with the reply to k.w, or
// nothing to a retransmission of what is still in progress. An error says that
// the peer does not speak RPC. With k.wait, the reply is one that gives up
// waiting; the caller may try again instead.
func (k *call) serve(rec []byte) error {
	s, w := k.c.s, k.w
	at := rpc.BeginRecord(w)
	k.exp, k.wait, k.failed, k.said, k.who.Holder = nil, nil, false, nil, nil
	if err := k.header(rec); err != nil {
		var denied rpc.AuthStat
		switch {
		case errors.As(err, &denied):
			rpc.AuthError(w, k.hdr.XID, denied)
		case err == rpc.ErrVersion:
			rpc.RPCMismatch(w, k.hdr.XID)
		default:
			w.B = w.B[:at]
			return err
		}
		k.refused(at)
		return nil
	}
	if !k.c.ready.Load() {
		k.c.ready.Store(true)
	}
	p := k.procedure()
	k.proc, k.begun = p, at
	if p == nil {
		k.refused(at)
		return nil
	}
	var began time.Time
	if s.trace {
		began = time.Now()
	}
	body := at + rpc.MarkSize + rpc.ReplySize
	rpc.Accepted(w, k.hdr.XID, rpc.Success)
	args := k.args
	if p.compound {
		k.m.begin(k)
	}
	if (p.once || p.compound && k.m.minor == nfs4.Minor0) && !k.again {
		rest := args
		k.replay = s.replays.key(&k.hdr, k.c.client, rest.Rest())
		var known, busy bool
		w.B, known, busy = s.replays.begin(k.replay, uint32(s.now.Load()), w.B)
		switch {
		case busy:
			w.B = w.B[:at]
			return nil
		case known:
			k.c.count.replayed.Add(1)
			rpc.EndRecord(w, at, 0)
			if s.trace {
				k.failed = binary.BigEndian.Uint32(w.B[body:]) != 0
				k.trace(p, args, w.B[body:], rpc.Success, began)
			}
			return nil
		}
	}
	k.run(args, began)
	return nil
}

// run executes the procedure and ends the reply.
func (k *call) run(args xdr.Reader, began time.Time) {
	p, w := k.proc, k.w
	body := k.begun + rpc.MarkSize + rpc.ReplySize
	stat := k.execute(p)
	if stat != rpc.Success {
		w.B = w.B[:k.begun+rpc.MarkSize]
		rpc.Accepted(w, k.hdr.XID, stat)
	}
	k.good = stat == rpc.Success
	if k.wait == nil && !k.unsettled.Any() {
		k.keep()
	}
	k.c.count.calls[p.index].Add(1)
	if stat != rpc.Success || k.failed {
		k.c.count.errors[p.index].Add(1)
	}
	rpc.EndRecord(w, k.begun, k.pages+-k.pages&3)
	if k.c.s.trace {
		k.trace(p, args, w.B[body:], stat, began)
	}
}

// keep keeps the results in w.B for a retransmission, if they are to be kept.
func (k *call) keep() {
	results := k.w.B[k.begun+rpc.MarkSize+rpc.ReplySize:]
	switch {
	case k.proc.compound && k.m.minor > nfs4.Minor0:
		k.m.finish(results, k.good)
	case !k.proc.once && !k.proc.compound:
	case k.good && (k.proc.once || k.m.changed):
		k.c.s.replays.end(k.replay, results)
	default:
		k.c.s.replays.forget(k.replay)
	}
}

// refused ends the reply at position at to a call that is not executed.
func (k *call) refused(at int) {
	k.c.count.refused.Add(1)
	rpc.EndRecord(k.w, at, 0)
	if k.c.s.trace {
		h := &k.hdr
		k.c.s.log.Debug("refused", "program", h.Program, "version", h.Version, "procedure", h.Procedure,
			"flavor", h.Cred.Flavor, "peer", k.c.peer, "xid", h.XID)
	}
}

// header decodes the header of a call, RFC 5531 section 9.
func (k *call) header(rec []byte) error {
	const fixed = 24 // xid, message type, RPC version, program, version, procedure
	word := func(at int) uint32 { return binary.BigEndian.Uint32(rec[at:]) }
	if n := k.known; n > 0 && len(rec) >= fixed+n && word(4) == 0 && word(8) == rpc.Version && bytes.Equal(rec[fixed:fixed+n], k.auth[:n]) {
		k.hdr.XID, k.hdr.Program, k.hdr.Version, k.hdr.Procedure = word(0), word(12), word(16), word(20)
		k.args = xdr.NewReader(rec[fixed+n:])
		return nil
	}
	k.known, k.whose = 0, nil
	k.args = xdr.NewReader(rec)
	if err := k.hdr.Decode(&k.args); err != nil {
		return err
	}
	if auth := rec[fixed : len(rec)-k.args.Len()]; len(auth) <= len(k.auth) {
		k.known = copy(k.auth[:], auth)
	}
	return nil
}

// procedure finds what is called. Where there is no such, it writes the
// refusal and returns nil.
func (k *call) procedure() *procedure {
	for i := range programs {
		p := &programs[i]
		if p.number != k.hdr.Program {
			continue
		}
		if k.hdr.Version < p.low || k.hdr.Version > p.high || p.versions[k.hdr.Version-p.low] == nil {
			rpc.RefuseVersion(k.w, k.hdr.XID, p.low, p.high)
			return nil
		}
		procs := p.versions[k.hdr.Version-p.low]
		if k.hdr.Procedure >= uint32(len(procs)) || procs[k.hdr.Procedure].run == nil {
			rpc.Accepted(k.w, k.hdr.XID, rpc.ProcUnavail)
			return nil
		}
		return &procs[k.hdr.Procedure]
	}
	rpc.Accepted(k.w, k.hdr.XID, rpc.ProgUnavail)
	return nil
}

// execute runs a procedure, which may panic: a broken invariant is one
// request's failure.
func (k *call) execute(p *procedure) (stat rpc.AcceptStat) {
	defer func() {
		if r := recover(); r != nil {
			k.dropPages()
			k.m.leave()
			k.wait = nil
			k.c.count.panics.Add(1)
			k.c.s.log.Error("request failed", "procedure", p.name, "peer", k.c.peer, "panic", r, "stack", string(debug.Stack()))
			stat = rpc.SystemErr
		}
	}()
	if !p.run(k) {
		return rpc.GarbageArgs
	}
	return rpc.Success
}

func (k *call) dropPages() {
	if k.work != nil {
		k.work.view.Release()
	}
	k.c.s.large.Give(k.pinned)
	k.pages, k.pinned = 0, 0
}

// decoded tells whether the arguments could be decoded; asked once, after it.
func (k *call) decoded() bool { return k.args.Err() == nil }

// resolve finds the inode that a handle names, and with the first handle of a
// call whether the client may use its export, and as whom.
func (k *call) resolve(fh []byte) (*memstore.Inode, error) {
	id, err := handleExport(fh)
	if err != nil {
		return nil, err
	}
	if k.exp == nil || k.exp.ID != id {
		if k.exp != nil {
			return nil, nfs3.ErrXDev
		}
		e := k.last
		if e == nil || e.ID != id {
			if e = k.c.s.cfg.Exports.ByID(id); e == nil {
				return nil, nfs3.ErrStale
			}
		}
		if !k.admits(e) {
			return nil, nfs3.ErrAcces
		}
		k.use(e)
	}
	return k.c.s.mask.inode(fh, k.exp)
}

// admits tells whether the client may use e.
func (k *call) admits(e *export.Export) bool {
	if k.last != e {
		k.last, k.admitted = e, e.Admit(k.c.peer)
	}
	return k.admitted
}

// use makes the call one to e.
func (k *call) use(e *export.Export) {
	k.exp = e
	if k.whose != e {
		cred := &k.hdr.Cred
		groups := append(k.groups[:0], cred.Groups()...) // Cred changes them
		k.who.Cred = e.Cred(k.c.peer, cred.UID, cred.GID, groups, cred.Flavor == rpc.AuthSys)
		k.whose = e
	}
}

// resolveToChange is resolve for a procedure that changes something. Of a
// read-only export, it returns the inode with ROFS.
func (k *call) resolveToChange(fh []byte) (*memstore.Inode, error) {
	i, err := k.resolve(fh)
	if err == nil && k.exp.ReadOnly {
		err = nfs3.ErrROFS
	}
	return i, err
}

// status is the status of the results for an error of the store.
func (k *call) status(err error) nfs3.Status {
	if err == nil {
		return nfs3.OK
	}
	k.failed = true
	s := statusOf(err)
	if s == nfs3.ErrJukebox {
		errors.As(err, &k.wait)
	}
	return s
}

// post fills in an inode's attributes for a reply, if it lives. i may be nil.
func (k *call) post(p *nfs3.PostOpAttr, i *memstore.Inode) {
	if i == nil {
		return
	}
	if a, err := i.GetAttr(&k.who); err == nil {
		k.attr(p, &a)
	}
}

// attr fills in attributes that the store returned, if it did.
func (k *call) attr(p *nfs3.PostOpAttr, a *memstore.Attr) {
	if a.Ino != 0 {
		p.Follows = true
		setFattr(&p.Attr, a, k.exp.Store.ID())
	}
}

// wcc fills in the weak cache consistency data of a change of i, which may be
// nil or not have got to the store.
func (k *call) wcc(d *nfs3.WccData, i *memstore.Inode, ch *memstore.Changed) {
	if ch.After.Ino == 0 {
		k.post(&d.After, i)
		return
	}
	if ch.Before.Change != 0 {
		d.HasBefore = true
		d.Before = nfs3.WccAttr{
			Size:  uint64(ch.Before.Size),
			Mtime: wireTime(ch.Before.Mtime),
			Ctime: wireTime(ch.Before.Ctime),
		}
	}
	k.attr(&d.After, &ch.After)
}

// handle is the wire's handle of i.
func (k *call) handle(b *[handleSize]byte, i *memstore.Inode) []byte {
	k.c.s.mask.put(b, k.exp, i)
	return b[:]
}

// Bounds for requests that wait for another holder, or for a local process.
const (
	maxParked = 16                     // of one connection
	roomTime  = 100 * time.Millisecond // for one of them to end, if this one may be soon over
	parkTime  = 2 * time.Second        // then JUKEBOX, upon which Linux waits 5 s
)

// park takes a request that met another holder's lease out of the connection's
// way: it is tried again when the holder has given way, and its reply sent
// whenever there is one. The reply in the batch, which asks the client to try
// again later, is removed, unless too many wait already.
func (c *conn) park(k *call, rec []byte) {
	p := &call{c: c, w: new(xdr.Writer), proc: k.proc, replay: k.replay, wait: k.wait, again: true}
	p.who.Unsettled = &p.unsettled
	size := int64(len(rec)) + outSize - flushSize
	if k.fresh != nil || !c.hasRoom(k.wait) || !c.s.large.TryTake(size) {
		k.giveUp()
		return
	}
	rec = slices.Clone(rec)
	if k.proc.compound {
		k.m.moveTo(p, rec)
	}
	k.w.B = k.w.B[:k.begun]
	c.parked.Add(1)
	c.s.busy.Add(1)
	go func() {
		defer c.s.busy.Done()
		defer c.parked.Add(-1)
		defer c.s.large.Give(size)
		p.retry(rec)
	}()
}

// hasRoom tells whether one more request may be parked. One whose wait is over
// leaves its connection only in case that a local process holds it up; if many do
// so, it waits a moment.
func (c *conn) hasRoom(w *memstore.Wait) bool {
	for end := time.Now().Add(roomTime); c.parked.Load() >= maxParked; time.Sleep(100 * time.Microsecond) {
		select {
		case <-w.Done():
		default:
			return false
		}
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// giveUp leaves the reply that asks the client to try again later, with a new
// xid or the same.
func (k *call) giveUp() {
	switch {
	case k.proc.compound:
		k.unsettled.Settle() // what came before the operation
		k.keep()
	case k.proc.once:
		k.c.s.replays.forget(k.replay)
	}
}

// retry executes a parked request until it does not have to wait, or has
// waited for long enough.
func (k *call) retry(rec []byte) {
	late := time.NewTimer(parkTime)
	defer late.Stop()
	for waiting := true; k.wait != nil && waiting; {
		select {
		case <-k.wait.Done():
		case <-late.C:
			waiting = false
		case <-k.c.s.done:
			waiting = false
		}
		if k.proc.compound {
			k.resume()
			continue
		}
		k.w.B = k.w.B[:0]
		k.serve(rec) // it could be decoded before
	}
	switch {
	case k.wait != nil:
		k.giveUp()
	case k.unsettled.Any():
		k.unsettled.Settle()
		k.keep()
	}
	k.c.sendParked(k.w.B)
}

// freshWrite tells whether the record of size bytes that begins with head is a
// WRITE whose n bytes can replace whole pages of i from off on; tail bytes follow
// them. If not, n is 0. It leaves k.args at the data.
func (k *call) freshWrite(head []byte, size int) (i *memstore.Inode, off int64, n, tail int) {
	if k.header(head) != nil || k.hdr.Program != rpc.ProgramNFS {
		return nil, 0, 0, 0
	}
	var fh []byte
	var offset uint64
	var length uint32
	switch {
	case k.hdr.Version == nfs3.Version && k.hdr.Procedure == nfs3.ProcWrite:
		var a nfs3.WriteArgs
		length = a.DecodeHead(&k.args)
		if a.Count != length {
			return nil, 0, 0, 0
		}
		fh, offset = a.FH, a.Offset
	case k.hdr.Version == nfs4.Version && k.hdr.Procedure == nfs4.ProcCompound:
		fh, offset, length = k.freshCompound()
	}
	tail = size - (len(head) - k.args.Len()) - int(length)
	if k.args.Err() != nil || length < freshMin || length%freshMin != 0 || offset%freshMin != 0 ||
		offset > memstore.MaxFileSize-uint64(length) || int(length) > k.c.s.cfg.MaxIO ||
		tail < 0 || tail > maxTail || k.hdr.Version == nfs3.Version && tail > 0 {
		return nil, 0, 0, 0
	}
	k.exp = nil
	i, err := k.resolveToChange(fh)
	if err != nil || i.Type() != memstore.TypeFile {
		return nil, 0, 0, 0
	}
	return i, int64(offset), int(length), tail
}

// freshCompound decodes a COMPOUND up to the data of a WRITE, if it begins as
// clients send one: SEQUENCE, but in minor version 0, then PUTFH and WRITE. Else
// the length is 0.
func (k *call) freshCompound() (fh []byte, off uint64, length uint32) {
	var head nfs4.CompoundArgs
	if head.Decode(&k.args); len(head.Tag) > maxTag {
		return nil, 0, 0
	}
	op := nfs4.Op(k.args.Uint32())
	if op == nfs4.OpSequence {
		var a nfs4.SequenceArgs
		if a.Decode(&k.args); k.c.s.clients.session(&a.Session) == nil {
			return nil, 0, 0
		}
		op = nfs4.Op(k.args.Uint32())
	}
	if op != nfs4.OpPutFH {
		return nil, 0, 0
	}
	var file nfs4.FH
	file.Decode(&k.args)
	if nfs4.Op(k.args.Uint32()) != nfs4.OpWrite {
		return nil, 0, 0
	}
	var a nfs4.WriteArgs
	length = a.DecodeHead(&k.args)
	return file.FH, a.Offset, length
}
