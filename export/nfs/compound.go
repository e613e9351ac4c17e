package nfs

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"ramserver/export"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// maxOps bounds the operations of a COMPOUND; a session may have agreed on
// fewer.
const maxOps = 64

// compound is one COMPOUND while it is executed: a list of operations that
// share a current and a saved filehandle, and stop at the first that fails
// (RFC 8881 section 2.3). It is a part of its call.
type compound struct {
	k     *call
	minor uint32
	tag   []byte // aliases the request
	bad   bool   // it could not be decoded

	cur, saved    fileRef
	sid, savedSid nfs4.Stateid // RFC 8881 section 16.2.3.1.2

	sess     *session           // nil before SEQUENCE
	client   *client4           // whose session it is
	slot     *slot              // which the compound has to give back
	uncached bool               // a retransmission of what was not kept
	about    nfs4.ReferringCall // the request, for callbacks

	limit   int  // bytes of the whole reply without its record mark
	caching bool // limit is that of what the session's slot keeps

	index  int // of the operation that is being executed
	count  int // how many there are
	number nfs4.Op
	status nfs4.Status // of the operation executed last
	start  int         // where the results begin in k.w.B
	head   int         // bytes of them before the first operation's
	at     int         // where the operation's result begins
	all    xdr.Reader  // the arguments of the COMPOUND
	left   int         // bytes of them from the operation's number on
	again  bool        // the operation at index has waited for another holder

	owner *openOwner // whom the operation has locked

	// In minor version 0: see v40.go.
	turnOf  *client4    // whose turn the operation has taken
	places  [2]place    // of the operation, in the sequences of its owners
	before  nfs4.Status // of the operation when it was executed before
	changed bool        // an operation that changes something was executed
}

// fileRef is what a filehandle stands for: a file of an export, the pseudo root
// (both nil), or nothing.
type fileRef struct {
	i    *memstore.Inode
	exp  *export.Export
	root bool
}

func (f *fileRef) none() bool { return f.i == nil && !f.root }

// operation is an entry of the table of operations.
type operation struct {
	// args decodes the arguments for the trace; nil if there are none.
	args func(*xdr.Reader) any
	// run decodes its arguments from k.args, executes, and appends to k.w the
	// results behind the status, which it returns. What it appends before an
	// error is dropped unless the results have a form for that. An operation
	// that meets another holder has changed nothing, and is run again.
	run   func(m *compound) nfs4.Status
	flags opFlags
	// size is the most that the results take behind the status, in bytes, but
	// for what the operation itself fits into the room there is.
	size uint16
}

type opFlags uint16

const (
	needsCur     opFlags = 1 << iota // NOFILEHANDLE without a current filehandle
	needsSaved                       // the same for the saved one
	takesRoot                        // can be done on the pseudo root
	changes                          // ROFS in a read-only export
	sessionless                      // may stand without SEQUENCE, as the only operation
	alone                            // is always the only operation
	onlyMinor0                       // NOTSUPP in later minor versions
	resultsOnErr                     // has results with some errors too
	bitmapOnErr                      // has an empty bitmap as results with every error
)

// operations is the table of operations; those without an entry are not
// supported.
var operations = [nfs4.OpEnd]operation{
	nfs4.OpBackchannelCtl:     {decode[nfs4.BackchannelCtlArgs], (*compound).opBackchannelCtl, 0, 0},
	nfs4.OpBindConnToSession:  {decode[nfs4.BindConnToSessionArgs], (*compound).opBindConnToSession, alone, 24},
	nfs4.OpClose:              {decode[nfs4.CloseArgs], (*compound).opClose, needsCur, 16},
	nfs4.OpCreateSession:      {decode[nfs4.CreateSessionArgs], (*compound).opCreateSession, sessionless, 80},
	nfs4.OpDelegReturn:        {decode[nfs4.StateidArgs], (*compound).opDelegReturn, needsCur, 0},
	nfs4.OpDestroyClientID:    {decode[nfs4.ClientID], (*compound).opDestroyClientID, sessionless, 0},
	nfs4.OpDestroySession:     {decode[nfs4.SessionID], (*compound).opDestroySession, sessionless, 0},
	nfs4.OpExchangeID:         {decode[nfs4.ExchangeIDArgs], (*compound).opExchangeID, sessionless, 80},
	nfs4.OpFreeStateid:        {decode[nfs4.StateidArgs], (*compound).opFreeStateid, 0, 0},
	nfs4.OpLock:               {decode[nfs4.LockArgs], (*compound).opLock, needsCur | resultsOnErr, 32},
	nfs4.OpLockT:              {decode[nfs4.LockTArgs], (*compound).opLockT, needsCur | resultsOnErr, 32},
	nfs4.OpLockU:              {decode[nfs4.LockUArgs], (*compound).opLockU, needsCur, 16},
	nfs4.OpOpen:               {decode[nfs4.OpenArgs], (*compound).opOpen, needsCur | takesRoot, 80},
	nfs4.OpOpenConfirm:        {decode[nfs4.OpenConfirmArgs], (*compound).opOpenConfirm, needsCur | onlyMinor0, 16},
	nfs4.OpOpenDowngrade:      {decode[nfs4.OpenDowngradeArgs], (*compound).opOpenDowngrade, needsCur, 16},
	nfs4.OpReclaimComplete:    {decode[nfs4.ReclaimCompleteArgs], (*compound).opReclaimComplete, 0, 0},
	nfs4.OpReleaseLockOwner:   {decode[nfs4.Owner], (*compound).opReleaseLockOwner, onlyMinor0, 0},
	nfs4.OpRenew:              {decode[nfs4.ClientID], (*compound).opRenew, onlyMinor0, 0},
	nfs4.OpSequence:           {decode[nfs4.SequenceArgs], (*compound).opSequence, 0, 0},
	nfs4.OpSetClientID:        {decode[nfs4.SetClientIDArgs], (*compound).opSetClientID, onlyMinor0 | resultsOnErr, 64},
	nfs4.OpSetClientIDConfirm: {decode[nfs4.ClientConfirm], (*compound).opSetClientIDConfirm, onlyMinor0, 0},
	nfs4.OpSetSSV:             {decode[nfs4.SetSSVArgs], (*compound).opSetSSV, 0, 0},
	nfs4.OpTestStateid:        {nil, (*compound).opTestStateid, 0, 4},
	nfs4.OpAllocate:           {decode[nfs4.RangeArgs], (*compound).opAllocate, needsCur | changes, 0},
	nfs4.OpClone:              {decode[nfs4.CloneArgs], (*compound).opClone, needsCur | needsSaved | changes, 0},
	nfs4.OpCopy:               {decode[nfs4.CopyArgs], (*compound).opCopy, needsCur | needsSaved | changes, 32},
	nfs4.OpDeallocate:         {decode[nfs4.RangeArgs], (*compound).opDeallocate, needsCur | changes, 0},
	nfs4.OpGetXattr:           {decode[nfs4.Name], (*compound).opGetXattr, needsCur, 4},
	nfs4.OpIOAdvise:           {decode[nfs4.IOAdviseArgs], (*compound).opIOAdvise, needsCur, 16},
	nfs4.OpListXattrs:         {decode[nfs4.ListXattrsArgs], (*compound).opListXattrs, needsCur, 16},
	nfs4.OpRemoveXattr:        {decode[nfs4.Name], (*compound).opRemoveXattr, needsCur | changes, 20},
	nfs4.OpSeek:               {decode[nfs4.SeekArgs], (*compound).opSeek, needsCur, 12},
	nfs4.OpSetXattr:           {decode[nfs4.SetXattrArgs], (*compound).opSetXattr, needsCur | changes, 20},
	nfs4.OpAccess:             {decode[nfs4.AccessArgs], (*compound).opAccess, needsCur | takesRoot, 8},
	nfs4.OpCommit:             {decode[nfs4.CommitArgs], (*compound).opCommit, needsCur, 8},
	nfs4.OpCreate:             {decode[nfs4.CreateArgs], (*compound).opCreate, needsCur | changes, 20 + 16},
	nfs4.OpGetAttr:            {decode[nfs4.GetAttrArgs], (*compound).opGetAttr, needsCur | takesRoot, attrsMax},
	nfs4.OpGetFH:              {nil, (*compound).opGetFH, needsCur | takesRoot, 4 + handleSize},
	nfs4.OpLink:               {decode[nfs4.Name], (*compound).opLink, needsCur | needsSaved | changes, 20},
	nfs4.OpLookup:             {decode[nfs4.Name], (*compound).opLookup, needsCur | takesRoot, 0},
	nfs4.OpLookupP:            {nil, (*compound).opLookupP, needsCur | takesRoot, 0},
	nfs4.OpNVerify:            {decode[nfs4.Fattr], (*compound).opNVerify, needsCur | takesRoot, 0},
	nfs4.OpPutFH:              {decode[nfs4.FH], (*compound).opPutFH, 0, 0},
	nfs4.OpPutPubFH:           {nil, (*compound).opPutRootFH, 0, 0},
	nfs4.OpPutRootFH:          {nil, (*compound).opPutRootFH, 0, 0},
	nfs4.OpRead:               {decode[nfs4.ReadArgs], (*compound).opRead, needsCur, 8},
	nfs4.OpReadDir:            {decode[nfs4.ReadDirArgs], (*compound).opReadDir, needsCur | takesRoot, 8 + nfs4.DirEndSize},
	nfs4.OpReadLink:           {nil, (*compound).opReadLink, needsCur, 0},
	nfs4.OpRemove:             {decode[nfs4.Name], (*compound).opRemove, needsCur | changes, 20},
	nfs4.OpRename:             {decode[nfs4.RenameArgs], (*compound).opRename, needsCur | needsSaved | changes, 40},
	nfs4.OpRestoreFH:          {nil, (*compound).opRestoreFH, 0, 0},
	nfs4.OpSaveFH:             {nil, (*compound).opSaveFH, needsCur | takesRoot, 0},
	nfs4.OpSecInfo:            {decode[nfs4.Name], (*compound).opSecInfo, needsCur | takesRoot, 12},
	nfs4.OpSecInfoNoName:      {nil, (*compound).opSecInfoNoName, needsCur | takesRoot, 12},
	nfs4.OpSetAttr:            {decode[nfs4.SetAttrArgs], (*compound).opSetAttr, needsCur | changes | bitmapOnErr, 16},
	nfs4.OpVerify:             {decode[nfs4.Fattr], (*compound).opVerify, needsCur | takesRoot, 0},
	nfs4.OpWrite:              {decode[nfs4.WriteArgs], (*compound).opWrite, needsCur | changes, 16},
}

// minorOf is the minor version that an operation came with.
func minorOf(op nfs4.Op) uint32 {
	switch {
	case op <= nfs4.OpReleaseLockOwner:
		return nfs4.Minor0
	case op <= nfs4.OpReclaimComplete:
		return nfs4.Minor1
	}
	return nfs4.Minor2
}

// begin decodes what stands before the operations.
func (m *compound) begin(k *call) {
	*m = compound{}
	m.k, m.all, m.limit = k, k.args, math.MaxInt32
	var a nfs4.CompoundArgs
	a.Decode(&k.args)
	m.minor, m.count, m.tag = a.Minor, int(a.Count), a.Tag
	m.bad = !k.decoded() || len(a.Tag) > maxTag
}

// maxTag bounds a tag, which RFC 8881 does not, so that its echo is no reply
// of any size.
const maxTag = 1024

// compound is COMPOUND, RFC 8881 section 16.2 and RFC 7530 section 15.2.
func (k *call) compound() bool {
	m := &k.m
	if m.bad {
		return false
	}
	if !m.again {
		m.start = len(k.w.B)
		head := nfs4.CompoundRes{Tag: m.tag}
		head.Encode(k.w)
		m.head = len(k.w.B) - m.start
		if m.minor > nfs4.MaxMinor {
			m.status, m.count = nfs4.ErrMinorVersMismatch, 0
		}
	}
	for m.index < m.count && m.step() {
		m.index++
	}
	m.end()
	return true
}

// end fills in the status and the number of results, the last of which is that
// of the operation that failed.
func (m *compound) end() {
	w := m.k.w
	if m.status == replayed {
		m.status = nfs4.Status(binary.BigEndian.Uint32(w.B[m.start:]))
	} else {
		n := m.index
		if m.index < m.count {
			n++
		}
		w.PatchUint32(m.start, uint32(m.status))
		w.PatchUint32(m.start+m.head-4, uint32(n))
	}
	m.k.failed = m.status != nfs4.OK
}

// replayed is what SEQUENCE answers instead of a status when the compound was
// executed before: it has put the results of that time in the place of these,
// from start on.
const replayed nfs4.Status = math.MaxUint32

// step executes the next operation. It reports false if nothing is to be
// executed behind it.
func (m *compound) step() bool {
	k := m.k
	w := k.w
	m.at, m.left = len(w.B), k.args.Len()
	w.Extend(8)
	number := nfs4.Op(k.args.Uint32())
	var op *operation
	switch {
	case !k.decoded():
		number, m.status = nfs4.OpIllegal, nfs4.ErrBadXDR
	case number < nfs4.OpAccess || number >= nfs4.OpEnd || m.minor < minorOf(number):
		number, m.status = nfs4.OpIllegal, nfs4.ErrOpIllegal
	default:
		op = &operations[number]
		m.number = number
		if m.status = m.allowed(op); m.status != nfs4.OK {
			break
		}
		m.changed = m.changed || op.flags&changes != 0
		m.status = op.run(m)
	}
	switch m.status {
	case replayed:
		return false
	case repeated:
		m.status = m.before
	}
	w.PatchUint32(m.at, uint32(number))
	w.PatchUint32(m.at+4, uint32(m.status))
	switch {
	case op == nil || m.status == nfs4.OK:
	case op.flags&bitmapOnErr != 0:
		w.B = w.B[:m.at+8]
		nfs4.Bitmap{}.Encode(w)
	case op.flags&resultsOnErr == 0:
		w.B = w.B[:m.at+8]
	}
	if m.turnOf != nil {
		m.note()
	}
	m.leave()
	m.again = false
	if op != nil {
		k.c.count.ops[number].Add(1)
	}
	return m.status == nfs4.OK
}

// allowed checks everything that does not depend on the arguments.
func (m *compound) allowed(op *operation) nfs4.Status {
	f := op.flags
	if m.minor > nfs4.Minor0 {
		// RFC 8881 section 2.10.2.
		switch {
		case m.number == nfs4.OpSequence:
			if m.index > 0 {
				return nfs4.ErrSequencePos
			}
		case m.index == 0 && f&(sessionless|alone) == 0:
			return nfs4.ErrOpNotInSession
		case m.count > 1 && (f&alone != 0 || m.index == 0):
			return nfs4.ErrNotOnlyOp
		}
	} else if m.index >= maxOps {
		return nfs4.ErrResource
	}
	switch {
	case m.uncached:
		return nfs4.ErrRetryUncachedRep
	case op.run == nil || f&onlyMinor0 != 0 && m.minor > nfs4.Minor0:
		return nfs4.ErrNotSupp
	case f&needsCur != 0 && m.cur.none(), f&needsSaved != 0 && m.saved.none():
		return nfs4.ErrNoFileHandle
	case f&changes != 0 && (m.cur.root || m.cur.exp != nil && m.cur.exp.ReadOnly):
		return nfs4.ErrROFS
	case f&(needsCur|takesRoot) == needsCur && m.cur.root:
		return nfs4.ErrIsDir
	case f&needsSaved != 0 && m.saved.exp != m.cur.exp:
		return nfs4.ErrXDev
	case m.room() < int(op.size):
		return m.tooBig()
	}
	return nfs4.OK
}

// room is how much more the operation may append to the reply, in bytes.
func (m *compound) room() int {
	return min(m.limit, outSize-flushSize) - m.reply()
}

// reply is how long the reply is so far, in bytes.
func (m *compound) reply() int { return len(m.k.w.B) - m.k.begun - rpc.MarkSize }

// tooBig is the status of an operation whose results do not fit.
func (m *compound) tooBig() nfs4.Status {
	switch {
	case m.minor == nfs4.Minor0:
		return nfs4.ErrResource
	case m.caching:
		return nfs4.ErrRepTooBigToCache
	}
	return nfs4.ErrRepTooBig
}

// setCur makes a file the current filehandle; with a new one there is no
// current stateid.
func (m *compound) setCur(i *memstore.Inode, exp *export.Export) {
	m.cur = fileRef{i: i, exp: exp}
	m.sid = nfs4.Stateid{}
}

// fail is the status of the operation for an error of the store. If another
// holder is in the way, the operation may be run again.
func (m *compound) fail(err error) nfs4.Status {
	s := status4Of(err, m.number)
	if s == nfs4.ErrDelay {
		errors.As(err, &m.k.wait)
	}
	return s
}

// moveTo makes p the call that goes on with a compound which has to wait. rec is
// p's own copy of what is left of the request.
func (m *compound) moveTo(p *call, rec []byte) {
	k := m.k
	p.hdr, p.hdr.Cred.Machine = k.hdr, ""
	p.exp, p.last, p.admitted, p.whose = k.exp, k.last, k.admitted, k.whose
	p.who, p.groups = k.who, k.groups
	p.who.Groups = p.groups[:len(k.who.Groups)]
	p.who.Unsettled, p.who.InPlace = &p.unsettled, false
	p.unsettled.Move(&k.unsettled)
	p.w.B = append(p.w.B, k.w.B[k.begun:m.at]...)
	p.m = *m
	m.slot = nil
	p.m.k, p.m.tag, p.m.again = p, nil, true
	p.m.start -= k.begun
	p.m.at -= k.begun
	p.m.all = xdr.NewReader(rec[len(rec)-m.all.Len():])
}

// resume runs the operation again that had to wait, and what follows it.
func (k *call) resume() {
	m := &k.m
	all := m.all
	args := all.Rest()
	k.wait, k.failed, k.args = nil, false, xdr.NewReader(args[len(args)-m.left:])
	k.w.B = k.w.B[:m.at]
	m.again = true
	k.run(m.all, time.Now())
}
