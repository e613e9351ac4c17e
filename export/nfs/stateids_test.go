package nfs

import (
	"fmt"
	"testing"

	"ramserver/export/nfs/nfs4"
)

// FuzzStateids lets two clients open, lock and close two files in any order, and
// compares every answer and every stateid with a model. A step is four bytes.
func FuzzStateids(f *testing.F) {
	f.Add([]byte("\x00\x00\x03\x00\x04\x00\x03\x00\x01\x00\x00\x00"))                 // open, lock, close
	f.Add([]byte("\x00\x00\x03\x00\x00\x01\x01\x02\x00\x00\x01\x00\x02\x00\x01\x00")) // open, another's, again, downgrade
	f.Add([]byte("\x00\x00\x03\x00\x00\x04\x03\x00\x04\x00\x83\x00\x04\x04\x81\x00\x05\x00\x07\x00\x06\x00\x00\x00\x07\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		s, _, _ := newServer(t)
		m := &stateModel{t: t, s: s, opens: map[openName]*openModel{}}
		for n := range m.clients {
			m.clients[n] = open4(t, s, fmt.Sprint("client ", n), 1)
		}
		for n := range m.files {
			var fh nfs4.FH
			c := m.clients[0]
			c.must(nfs4.OK, putRootFH(), creating(fmt.Sprint("file ", n), nfs4.Guarded, 0, new(nfs4.OpenRes)), closing(nfs4.CurrentStateid), getFH(&fh))
			m.files[n] = append([]byte(nil), fh.FH...)
		}
		for range 200 {
			if len(steps) < 4 || t.Failed() {
				break
			}
			m.step([4]byte(steps))
			steps = steps[4:]
		}
		for _, o := range m.opens {
			m.close(o)
		}
		if n := s.clients.count.Load(); n != 0 {
			t.Errorf("%d states are left", n)
		}
	})
}

// stateModel is what the clients have open and locked, as they know it.
type stateModel struct {
	t       *testing.T
	s       *Server
	clients [2]*client4Test
	files   [2][]byte
	opens   map[openName]*openModel
	closed  []*openModel
}

// openName is who has opened what.
type openName struct{ client, owner, file int }

type openModel struct {
	openName
	sid          nfs4.Stateid
	access, deny uint32
	// asked has the bit of each access and deny that an OPEN asked for.
	asked [2]uint8
	lock  *lockModel // of the one lock owner that locks by this open
}

type lockModel struct {
	sid    nfs4.Stateid
	ranges [lockable]nfs4.LockType // by byte; 0 if it is not locked
}

// lockable is how many bytes of a file are locked.
const lockable = 8

// step makes one call. b is what, by whom, and two arguments.
func (m *stateModel) step(b [4]byte) {
	name := openName{client: int(b[1]>>2) % 2, owner: int(b[1]) % 2, file: int(b[1]>>1) % 2}
	o := m.opens[name]
	what := b[0] % 9
	switch {
	case what == 0 || o == nil:
		m.open(name, 1+uint32(b[2])%3, uint32(b[3])%4)
	case what == 1:
		m.close(o)
	case what == 2:
		m.downgrade(o, 1+uint32(b[2])%3, uint32(b[3])%4)
	case what <= 4:
		from, n := uint64(b[2])%lockable, uint64(b[3])%lockable
		kind := nfs4.LockRead
		if b[2]&0x80 != 0 {
			kind = nfs4.LockWrite
		}
		m.lock(o, kind, from, min(from+1+n, lockable))
	case what == 5:
		from, n := uint64(b[2])%lockable, uint64(b[3])%lockable
		m.unlock(o, from, min(from+1+n, lockable))
	case what == 6:
		m.read(o, int32(int8(b[2]))%3)
	case what == 7:
		m.free(o)
	default:
		m.gone(o)
	}
}

// run executes an operation on a file as a client.
func (m *stateModel) run(name openName, op op, want nfs4.Status) bool {
	m.t.Helper()
	status, _ := m.clients[name.client].run(putFH(m.files[name.file]), op)
	if status != want {
		m.t.Errorf("%v by %+v: %v, want %v", op.op, name, status, want)
	}
	return status == nfs4.OK
}

// grown checks the stateid after a change of what it stands for.
func (m *stateModel) grown(sid *nfs4.Stateid, now nfs4.Stateid) {
	m.t.Helper()
	if now.Other != sid.Other || now.Seq != sid.Seq+1 {
		m.t.Errorf("stateid %v became %v", *sid, now)
	}
	*sid = now
}

func (m *stateModel) open(name openName, access, deny uint32) {
	want := nfs4.OK
	for _, o := range m.opens {
		if o.file == name.file && (o.deny&access != 0 || o.access&deny != 0) {
			want = nfs4.ErrShareDenied
		}
	}
	var res nfs4.OpenRes
	a := &nfs4.OpenArgs{Access: access, Deny: deny, Owner: nfs4.Owner{Owner: fmt.Append(nil, "owner ", name.owner)}, Claim: nfs4.ClaimFH}
	if !m.run(name, op{nfs4.OpOpen, a, &res}, want) {
		return
	}
	o := m.opens[name]
	if o == nil {
		o = &openModel{openName: name, sid: res.Stateid}
		m.opens[name] = o
		if res.Stateid.Seq != 1 {
			m.t.Errorf("a new stateid is %v", res.Stateid)
		}
	} else {
		m.grown(&o.sid, res.Stateid)
	}
	o.access |= access
	o.deny |= deny
	o.asked[0] |= 1 << access
	o.asked[1] |= 1 << deny
}

func (m *stateModel) close(o *openModel) {
	m.run(o.openName, closing(o.sid), nfs4.OK)
	m.closed = append(m.closed, o)
	delete(m.opens, o.openName)
}

func (m *stateModel) downgrade(o *openModel, access, deny uint32) {
	// Only to what OPENs have asked for, RFC 8881 section 18.18.3.
	want := nfs4.OK
	var left [2]uint8
	for k, v := range [...]uint32{access, deny} {
		all := uint32(0)
		for n := range uint32(4) {
			if o.asked[k]&(1<<n) != 0 && n|v == v {
				left[k] |= 1 << n
				all |= n
			}
		}
		if all != v {
			want = nfs4.ErrInval
		}
	}
	var res nfs4.StateidArgs
	a := &nfs4.OpenDowngradeArgs{Stateid: o.sid, Access: access, Deny: deny}
	if m.run(o.openName, op{nfs4.OpOpenDowngrade, a, &res}, want) {
		m.grown(&o.sid, res.Stateid)
		o.access, o.deny, o.asked = access, deny, left
	}
}

func (m *stateModel) lock(o *openModel, kind nfs4.LockType, from, to uint64) {
	want := nfs4.OK
	if need := map[nfs4.LockType]uint32{nfs4.LockRead: nfs4.ShareRead, nfs4.LockWrite: nfs4.ShareWrite}[kind]; o.access&need == 0 {
		want = nfs4.ErrOpenMode
	} else {
		for _, other := range m.opens {
			if other == o || other.file != o.file || other.lock == nil {
				continue
			}
			for _, held := range other.lock.ranges[from:to] {
				if held == nfs4.LockWrite || held != 0 && kind == nfs4.LockWrite {
					want = nfs4.ErrDenied
				}
			}
		}
	}
	a := &nfs4.LockArgs{Type: kind, Offset: from, Length: to - from, NewOwner: o.lock == nil, Stateid: o.sid,
		Owner: nfs4.Owner{Owner: fmt.Append(nil, "locker ", o.owner)}}
	if o.lock != nil {
		a.Stateid = o.lock.sid
	}
	var res nfs4.StateidArgs
	if !m.run(o.openName, op{nfs4.OpLock, a, &res}, want) {
		return
	}
	if o.lock == nil {
		o.lock = &lockModel{sid: res.Stateid}
		if res.Stateid.Seq != 1 {
			m.t.Errorf("a new stateid is %v", res.Stateid)
		}
	} else {
		m.grown(&o.lock.sid, res.Stateid)
	}
	for n := from; n < to; n++ {
		o.lock.ranges[n] = kind
	}
}

func (m *stateModel) unlock(o *openModel, from, to uint64) {
	a := &nfs4.LockUArgs{Type: nfs4.LockRead, Stateid: o.sid, Offset: from, Length: to - from}
	if o.lock == nil {
		m.run(o.openName, op{nfs4.OpLockU, a, nil}, nfs4.ErrBadStateid)
		return
	}
	a.Stateid = o.lock.sid
	var res nfs4.StateidArgs
	if m.run(o.openName, op{nfs4.OpLockU, a, &res}, nfs4.OK) {
		m.grown(&o.lock.sid, res.Stateid)
		clear(o.lock.ranges[from:to])
	}
}

// read reads by a stateid that is older or newer than the last.
func (m *stateModel) read(o *openModel, off int32) {
	sids := []nfs4.Stateid{o.sid}
	if o.lock != nil {
		sids = append(sids, o.lock.sid)
	}
	for _, sid := range sids {
		want := nfs4.OK
		sid.Seq += uint32(off)
		switch {
		case sid.Seq == 0:
			// Whichever is the last.
		case off > 0:
			want = nfs4.ErrBadStateid
		case off < 0:
			want = nfs4.ErrOldStateid
		}
		if int32(sid.Seq) < 0 {
			continue // before the first
		}
		for _, other := range m.opens {
			// A read by what is open for writing only is one without an open.
			if want == nfs4.OK && o.access&nfs4.ShareRead == 0 && other.file == o.file && other.deny&nfs4.ShareRead != 0 {
				want = nfs4.ErrLocked
			}
		}
		m.run(o.openName, read4(sid, new(nfs4.ReadRes)), want)
	}
}

// free frees the stateid of a lock owner that holds nothing any more.
func (m *stateModel) free(o *openModel) {
	free := func(sid nfs4.Stateid, want nfs4.Status) bool {
		return m.run(o.openName, op{nfs4.OpFreeStateid, &nfs4.StateidArgs{Stateid: sid}, nil}, want)
	}
	free(o.sid, nfs4.ErrLocksHeld)
	if o.lock == nil {
		return
	}
	want := nfs4.OK
	if o.lock.ranges != [lockable]nfs4.LockType{} {
		want = nfs4.ErrLocksHeld
	}
	if free(o.lock.sid, want) {
		o.lock = nil
	}
}

// gone uses stateids that are no longer good, and one of the other client.
func (m *stateModel) gone(o *openModel) {
	other := o.openName
	other.client = 1 - other.client
	m.run(other, read4(o.sid, nil), nfs4.ErrBadStateid)
	m.run(other, closing(o.sid), nfs4.ErrBadStateid)
	for _, c := range m.closed {
		m.run(c.openName, read4(c.sid, nil), nfs4.ErrBadStateid)
		if c.lock != nil {
			m.run(c.openName, read4(c.lock.sid, nil), nfs4.ErrBadStateid)
		}
	}
}
