package nfs

import (
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// Delegations are the store's leases as clients of minor versions 1 and 2 know
// them (RFC 8881 section 10.4). Who holds one opens, reads and locks the file, and
// with one for writing changes it, without asking. One that is in another's way
// is recalled; the client returns it, when it has told us what it has done with
// the file. If it does not in time, it is revoked.

// delegation is one.
//
// Fields are (c) constant, (a) atomic, or protected by mu, which is held over calls of the
// store, inside of an owner's and outside of client4.mu.
type delegation struct {
	st    *state             // (c) what its stateid stands for
	write bool               // (c)
	fh    [handleSize]byte   // (c)
	about nfs4.ReferringCall // (c) the OPEN
	quit  chan struct{}      // (c) closed when it is over

	open atomic.Pointer[memstore.Open] // (a) by which its stateid reads and writes; nil before it is granted

	mu       sync.Mutex
	lease    *memstore.Lease // (mu) nil before it is granted
	over     bool            // (mu)
	recalled bool            // (mu)
}

// Rights of delegations, by whether they are for writing.
var delegated = map[bool]memstore.Rights{
	false: memstore.CacheRead | memstore.CacheHandle,
	true:  memstore.CacheRead | memstore.CacheWrite | memstore.CacheHandle,
}

// delegate is what OPEN answers of a delegation: of the file that the client has
// opened, if it may have one and wants it. Called with the open owner's mu held.
func (m *compound) delegate(open *memstore.Open, access, want uint32) nfs4.Delegation {
	none := nfs4.Delegation{Type: nfs4.DelegateNoneExt, Why: nfs4.WhyResource}
	write := access&nfs4.ShareWrite != 0
	switch want {
	case nfs4.WantNoPreference:
		none.Type = nfs4.DelegateNone
		if write {
			// Linux does not ask, and by one for writing truncates a file that
			// a user opens with O_TRUNC for reading, on behalf of the user who
			// got the delegation (as of 6.1).
			return none
		}
	case nfs4.WantReadDeleg:
		write = false
	case nfs4.WantNoDeleg:
		none.Why = nfs4.WhyNotWanted
		return none
	case nfs4.WantCancel:
		none.Why = nfs4.WhyCancelled
		return none
	}
	cl := m.client
	switch had := cl.delegationOf(open.Inode()); {
	case had != nil && write && !had.write:
		none.Why = nfs4.WhyNotSuppUpgrade
		return none
	case had != nil, m.minor == nfs4.Minor0, m.k.c.s.cfg.NoDelegations, !cl.callable():
		return none
	}
	d := cl.newDelegation(m, open, write)
	if d == nil {
		return none
	}
	if !d.grant(&m.k.who, open) {
		none.Why = nfs4.WhyContention
		return none
	}
	got := nfs4.Delegation{Type: nfs4.DelegateRead, Stateid: d.st.stateid()}
	if write {
		// Nothing is set aside for what the client has not written yet, so it
		// must ask before a program may think that all is well: at close.
		got.Type, got.Limit = nfs4.DelegateWrite, 0
	}
	return got
}

// delegationOf is the client's delegation of a file, or nil.
func (cl *client4) delegationOf(i *memstore.Inode) *delegation {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.delegations[i]
}

// newDelegation makes one that is not yet granted; nil if there are so many states
// that opens and locks might find no room, or the client has one of the file.
func (cl *client4) newDelegation(m *compound, open *memstore.Open, write bool) *delegation {
	cl.mu.Lock()
	full := cl.count >= maxStatesOfClient/2 || cl.host.states.Load() >= (maxStates-cl.s.count.Load())/2
	cl.mu.Unlock()
	if full {
		return nil
	}
	d := &delegation{write: write, quit: make(chan struct{}), about: m.about}
	m.k.c.s.mask.put(&d.fh, m.cur.exp, open.Inode())
	d.st = &state{client: cl, open: open, deleg: d}
	d.st.access.Store(nfs4.ShareRead)
	if cl.add(d.st) != nfs4.OK {
		return nil
	}
	cl.mu.Lock()
	had := cl.delegations[open.Inode()] != nil || cl.gone.Load()
	if !had {
		if cl.delegations == nil {
			cl.delegations = make(map[*memstore.Inode]*delegation)
		}
		cl.delegations[open.Inode()] = d
	}
	cl.mu.Unlock()
	if had {
		cl.remove(d.st)
		return nil
	}
	return d
}

// grant takes the lease. Its recall, which may begin before it is known here,
// waits for that.
func (d *delegation) grant(c *memstore.Caller, open *memstore.Open) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return false
	}
	if d.lease = open.Lease(c, delegated[d.write], d.recall); d.lease == nil {
		d.end()
		d.st.client.remove(d.st)
		return false
	}
	d.open.Store(d.lease.Open())
	return true
}

// end gives up the lease, and forgets that the client has a delegation of the
// file. Called with d.mu held.
func (d *delegation) end() {
	d.over = true
	close(d.quit)
	if d.lease != nil {
		d.lease.Yield(0)
	}
	cl := d.st.client
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if i := d.st.open.Inode(); cl.delegations[i] == d {
		delete(cl.delegations, i)
	}
}

// giveBack ends a delegation that the client does not hold any more. It reports
// false if it was over already.
func (d *delegation) giveBack() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return false
	}
	d.end()
	d.st.client.remove(d.st)
	return true
}

// lost ends a delegation of a client that was dropped.
func (d *delegation) lost() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		d.end()
	}
}

// revoke ends a delegation that the client does not give back. Its stateid stays
// until the client has taken note (RFC 8881 section 10.2.1).
func (d *delegation) revoke() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	d.end()
	d.st.revoked.Store(true)
	cl := d.st.client
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.revoked++
	cl.flags.Or(nfs4.SeqRecallableStateRevoked)
}

// forgetRevoked frees the stateid of a delegation that was revoked.
func (d *delegation) forgetRevoked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.st.ended {
		return
	}
	cl := d.st.client
	cl.remove(d.st)
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.revoked--; cl.revoked == 0 {
		cl.flags.And(^uint32(nfs4.SeqRecallableStateRevoked))
	}
}

// recallPause is how long the server waits before it recalls once more what the
// client does not know of; recallTries is how often it does, before it believes
// that the client lost the reply that told it.
const (
	recallPause = 100 * time.Millisecond
	recallTries = 20
)

// recall is called by the store on a goroutine of its own. A delegation cannot
// be given back in part.
func (d *delegation) recall(memstore.Rights) {
	cl := d.st.client
	cs := cl.s
	if !cs.begin() {
		d.revoke()
		return
	}
	defer cs.running.Done()
	d.mu.Lock()
	d.recalled = true
	d.mu.Unlock()
	if cl.expired() {
		cs.dropExpired(cl)
		return
	}
	cs.running.Go(d.callBack)
	deadline := time.Now().Add(time.Duration(cs.expiry) * time.Second)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-d.quit:
			return
		case <-cs.done:
			d.revoke()
			return
		case now := <-again.C:
			switch {
			case cl.expired():
				cs.dropExpired(cl)
			case now.After(deadline):
				d.revoke()
			}
		}
	}
}

// callBack tells the client.
func (d *delegation) callBack() {
	op := cbOp{nfs4.OpCBRecall, &nfs4.CBRecallArgs{Stateid: d.st.stateid(), FH: d.fh[:]}, d.about}
	for range recallTries {
		status, err := d.st.client.callBack(&op, d.quit)
		if err != nil || status != nfs4.ErrBadHandle && status != nfs4.ErrBadStateid {
			return
		}
		pause := time.NewTimer(recallPause)
		select {
		case <-pause.C:
		case <-d.quit:
			pause.Stop()
			return
		}
	}
	d.giveBack()
}

// claimed is the delegation by which the client opens a file, or an error.
func (m *compound) claimed(sid *nfs4.Stateid, i *memstore.Inode, access uint32) nfs4.Status {
	st, status := m.state(sid)
	switch {
	case status != nfs4.OK:
		return status
	case st.deleg == nil || st.open.Inode() != i:
		return nfs4.ErrBadStateid
	case access&nfs4.ShareWrite != 0 && !st.deleg.write:
		return nfs4.ErrOpenMode
	}
	return nfs4.OK
}

// opDelegReturn is DELEGRETURN, RFC 8881 section 18.6.
func (m *compound) opDelegReturn() nfs4.Status {
	var a nfs4.StateidArgs
	if a.Decode(&m.k.args); !m.k.decoded() {
		return nfs4.ErrBadXDR
	}
	st, status := m.state(&a.Stateid)
	switch {
	case status != nfs4.OK:
		return status
	case st.deleg == nil || st.open.Inode() != m.cur.i || !st.deleg.giveBack():
		return nfs4.ErrBadStateid
	}
	return nfs4.OK
}
