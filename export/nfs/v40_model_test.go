package nfs

import (
	"math/rand/v2"
	"testing"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// model40 is what minor version 0 has to make of what two open owners, and a lock
// owner of each, do with two files.
type model40 struct {
	c      *client40Test
	in     []byte // decides what they do
	owners [2]owner40
}

type owner40 struct {
	name             string
	known, confirmed bool
	seq              uint32
	last             *step40 // which may come again
	closed           bool    // by the last
	opens            [2]*open40Model
	locker           locker40
}

type locker40 struct {
	name string
	seq  uint32
	last *step40
}

type open40Model struct {
	sid          nfs4.Stateid
	access, deny uint32
	asked        [2][4]bool
	lock         *nfs4.Stateid // of what the lock owner has locked by it
	held         [8]uint32     // ShareRead or ShareWrite for each byte
}

// step40 is an operation, and what it answered.
type step40 struct {
	file   int
	op     func(sid *nfs4.Stateid) op
	status nfs4.Status
	sid    nfs4.Stateid
}

var files40 = [...]string{"f", "g"}

// pick takes a number below n from the input.
func (m *model40) pick(n int) int {
	if len(m.in) == 0 {
		return 0
	}
	b := int(m.in[0])
	m.in = m.in[1:]
	return b % n
}

// do executes an operation on a file, which must answer want.
func (m *model40) do(what string, want nfs4.Status, file int, o func(sid *nfs4.Stateid) op) *step40 {
	s := &step40{file: file, op: o}
	number := o(&s.sid)
	ops := []op{putRootFH(), number}
	if number.op != nfs4.OpOpen {
		ops = []op{putRootFH(), lookup(files40[file]), number}
	}
	if s.status, _ = m.c.run(ops...); s.status != want {
		m.c.t.Fatalf("%s of %s: %v, want %v", what, files40[file], s.status, want)
	}
	switch res := number.res.(type) {
	case *nfs4.OpenRes:
		s.sid = res.Stateid
	case *nfs4.StateidArgs:
		s.sid = res.Stateid
	}
	return s
}

// step executes the next operation that the input asks for.
func (m *model40) step() {
	what, o, file := m.pick(11), &m.owners[m.pick(2)], m.pick(2)
	f := o.opens[file]
	switch {
	case what <= 1:
		m.open(o, file)
	case what == 10:
		m.release(o)
	case f == nil:
	case what == 2:
		m.confirm(o, file)
	case what == 3:
		m.close(o, file)
	case what == 4:
		m.downgrade(o, file)
	case what <= 6:
		m.lock(o, file)
	case what == 7:
		m.unlock(o, file)
	case what == 8:
		m.read(o, file)
	case what == 9:
		m.again(o, file)
	}
}

// note is what every operation does to its owner.
func (o *owner40) note(s *step40) {
	if s.status == nfs4.ErrBadStateid {
		return
	}
	o.known, o.seq, o.last, o.closed = true, o.seq+1, s, false
}

func (m *model40) open(o *owner40, file int) {
	access, deny := uint32(1+m.pick(3)), uint32([]int{0, 0, 0, 0, 1, 2}[m.pick(6)])
	if !o.known {
		o.seq = uint32(m.pick(256)) << 24
	}
	if !o.confirmed {
		for f := range o.opens {
			o.drop(f)
		}
	}
	want := nfs4.OK
	for i := range m.owners {
		if x := m.owners[i].opens[file]; x != nil && (x.deny&access != 0 || x.access&deny != 0) {
			want = nfs4.ErrShareDenied
		}
	}
	args := nfs4.OpenArgs{Seq: o.seq + 1, Access: access, Deny: deny, Owner: nfs4.Owner{Client: m.c.id, Owner: []byte(o.name)}, Name: files40[file]}
	if o.confirmed && m.pick(4) == 0 {
		wrong := args
		wrong.Seq += 1 + uint32(m.pick(3))
		m.do("OPEN out of order", nfs4.ErrBadSeqid, file, func(*nfs4.Stateid) op { return op{nfs4.OpOpen, &wrong, nil} })
	}
	s := m.do("OPEN", want, file, func(*nfs4.Stateid) op { return op{nfs4.OpOpen, &args, new(nfs4.OpenRes)} })
	o.note(s)
	if want != nfs4.OK {
		return
	}
	f := o.opens[file]
	if f == nil {
		f = &open40Model{sid: nfs4.Stateid{Other: s.sid.Other}}
		o.opens[file] = f
	}
	f.access |= access
	f.deny |= deny
	f.asked[0][access], f.asked[1][deny] = true, true
	m.changed(&f.sid, s.sid)
}

// changed is that an operation has counted a stateid up.
func (m *model40) changed(sid *nfs4.Stateid, got nfs4.Stateid) {
	sid.Seq++
	if *sid != got {
		m.c.t.Fatalf("the stateid is %v, want %v", got, *sid)
	}
}

func (m *model40) confirm(o *owner40, file int) {
	f, want := o.opens[file], nfs4.OK
	if o.confirmed {
		want = nfs4.ErrBadStateid
	}
	sid, seq := f.sid, o.seq+1
	s := m.do("OPEN_CONFIRM", want, file, func(*nfs4.Stateid) op { return confirming(sid, seq, new(nfs4.StateidArgs)) })
	o.note(s)
	if want == nfs4.OK {
		o.confirmed = true
		m.changed(&f.sid, s.sid)
	}
}

// usable is the status of what an owner has to confirm before.
func (o *owner40) usable() nfs4.Status {
	if !o.confirmed {
		return nfs4.ErrBadStateid
	}
	return nfs4.OK
}

func (m *model40) close(o *owner40, file int) {
	sid, seq := o.opens[file].sid, o.seq+1
	s := m.do("CLOSE", o.usable(), file, func(*nfs4.Stateid) op { return closing40(sid, seq) })
	o.note(s)
	if s.status == nfs4.OK {
		o.drop(file)
		o.closed = true
	}
}

// drop forgets an open and what is locked by it.
func (o *owner40) drop(file int) {
	o.opens[file] = nil
	o.locker.last = nil
}

func (m *model40) downgrade(o *owner40, file int) {
	f, access, deny := o.opens[file], uint32(1+m.pick(3)), uint32(m.pick(4))
	want := o.usable()
	var left [2]uint32
	var asked [2][4]bool
	for i, to := range []uint32{access, deny} {
		for bits := range uint32(4) {
			if f.asked[i][bits] && bits&^to == 0 {
				left[i] |= bits
				asked[i][bits] = true
			}
		}
	}
	if want == nfs4.OK && left != [2]uint32{access, deny} {
		want = nfs4.ErrInval
	}
	sid, seq := f.sid, o.seq+1
	s := m.do("OPEN_DOWNGRADE", want, file, func(*nfs4.Stateid) op {
		return op{nfs4.OpOpenDowngrade, &nfs4.OpenDowngradeArgs{Stateid: sid, Seq: seq, Access: access, Deny: deny}, new(nfs4.StateidArgs)}
	})
	o.note(s)
	if want == nfs4.OK {
		f.access, f.deny, f.asked = access, deny, asked
		m.changed(&f.sid, s.sid)
	}
}

// states is how many stateids the lock owner has.
func (o *owner40) states() (n int) {
	for _, f := range o.opens {
		if f != nil && f.lock != nil {
			n++
		}
	}
	return n
}

func (m *model40) lock(o *owner40, file int) {
	f, l := o.opens[file], &o.locker
	kind, off, n := uint32(1+m.pick(2)), m.pick(8), 1+m.pick(8)
	n = min(n, 8-off)
	want := o.usable()
	switch {
	case want != nfs4.OK:
	case f.access&kind == 0:
		want = nfs4.ErrOpenMode
	default:
		for i := range m.owners {
			if x := m.owners[i].opens[file]; x != nil && x != f {
				for _, held := range x.held[off : off+n] {
					if held != 0 && (held == nfs4.ShareWrite || kind == nfs4.ShareWrite) {
						want = nfs4.ErrDenied
					}
				}
			}
		}
	}
	args := nfs4.LockArgs{Type: nfs4.LockType(kind), Offset: uint64(off), Length: uint64(n), LockSeq: l.seq + 1}
	known := o.states() > 0
	if f.lock != nil {
		args.Stateid = *f.lock
	} else {
		if !known {
			l.seq = uint32(m.pick(256))
			args.LockSeq = l.seq + 1
		}
		args.NewOwner, args.Stateid, args.OpenSeq = true, f.sid, o.seq+1
		args.Owner = nfs4.Owner{Client: m.c.id, Owner: []byte(l.name)}
	}
	s := m.do("LOCK", want, file, func(*nfs4.Stateid) op { return op{nfs4.OpLock, &args, new(nfs4.StateidArgs)} })
	if args.NewOwner {
		o.note(s)
		if known && (want == nfs4.OK || want == nfs4.ErrDenied) {
			l.seq, l.last = l.seq+1, nil
		}
	} else {
		l.seq, l.last = l.seq+1, s
	}
	if want != nfs4.OK {
		return
	}
	if f.lock == nil {
		f.lock = &nfs4.Stateid{Other: s.sid.Other}
		if !known {
			l.seq, l.last = l.seq+1, nil
		}
	}
	m.changed(f.lock, s.sid)
	for i := off; i < off+n; i++ {
		f.held[i] = kind
	}
}

func (m *model40) unlock(o *owner40, file int) {
	f, l := o.opens[file], &o.locker
	if f.lock == nil {
		return
	}
	off := m.pick(8)
	n := min(1+m.pick(8), 8-off)
	args := nfs4.LockUArgs{Type: nfs4.LockRead, Seq: l.seq + 1, Stateid: *f.lock, Offset: uint64(off), Length: uint64(n)}
	s := m.do("LOCKU", nfs4.OK, file, func(*nfs4.Stateid) op { return op{nfs4.OpLockU, &args, new(nfs4.StateidArgs)} })
	l.seq, l.last = l.seq+1, s
	m.changed(f.lock, s.sid)
	clear(f.held[off : off+n])
}

func (m *model40) release(o *owner40) {
	want := nfs4.OK
	for _, f := range o.opens {
		if f != nil && f.held != [8]uint32{} {
			want = nfs4.ErrLocksHeld
		}
	}
	m.do("RELEASE_LOCKOWNER", want, 0, func(*nfs4.Stateid) op {
		return op{nfs4.OpReleaseLockOwner, &nfs4.Owner{Client: m.c.id, Owner: []byte(o.locker.name)}, nil}
	})
	if want == nfs4.OK {
		for _, f := range o.opens {
			if f != nil {
				f.lock = nil
			}
		}
		o.locker.last = nil
	}
}

func (m *model40) read(o *owner40, file int) {
	f, want := o.opens[file], o.usable()
	if want == nfs4.OK && f.access&nfs4.ShareRead == 0 {
		// It is a read without an open.
		for i := range m.owners {
			if x := m.owners[i].opens[file]; x != nil && x.deny&nfs4.ShareRead != 0 {
				want = nfs4.ErrLocked
			}
		}
	}
	m.do("READ", want, file, func(*nfs4.Stateid) op { return read4(f.sid, new(nfs4.ReadRes)) })
	old := f.sid
	old.Seq--
	m.do("READ by an old stateid", nfs4.ErrOldStateid, file, func(*nfs4.Stateid) op { return read4(old, nil) })
}

// again sends the last operation of an owner again.
func (m *model40) again(o *owner40, file int) {
	last := o.last
	if m.pick(2) == 0 {
		last = o.locker.last
	}
	if last == nil {
		return
	}
	s := m.do("again", last.status, last.file, last.op)
	if last.status == nfs4.OK && s.sid != last.sid {
		m.c.t.Fatalf("again it is %v, first it was %v", s.sid, last.sid)
	}
}

// run does all that the input asks for.
func (m *model40) run(s *Server) {
	for i := range m.owners {
		m.owners[i].name = string('A' + rune(i))
		m.owners[i].locker.name = string('a' + rune(i))
	}
	for len(m.in) > 0 {
		m.step()
	}
	want := 0
	for i := range m.owners {
		o := &m.owners[i]
		if o.known {
			want++
		}
		if o.closed {
			want++ // which may come again
		}
		for _, f := range o.opens {
			if f != nil {
				want++
			}
		}
		want += o.states()
	}
	if n := s.clients.count.Load(); int(n) != want {
		m.c.t.Fatalf("%d states and owners, want %d", n, want)
	}
}

// FuzzOwners40 holds the server against the model.
func FuzzOwners40(f *testing.F) {
	st, err := memstore.New(memstore.Config{Name: "fuzz", Size: 8 << 20, RootMode: 0o1777})
	if err != nil {
		f.Fatal(err)
	}
	s, err := NewServer(Config{Exports: newTable(f, exportOf(st, "ramdisk"))})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Shutdown(f.Context()) })
	for _, name := range files40 {
		if _, err := st.Root().Create(memstore.Root(), name, &memstore.Create{Type: memstore.TypeFile}); err != nil {
			f.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		in := make([]byte, 300)
		for i := range in {
			in[i] = byte(random.Uint32())
		}
		f.Add(in)
	}
	verf := uint64(0)
	f.Fuzz(func(t *testing.T, in []byte) {
		verf++
		m := &model40{c: open40(t, s, "model", verf), in: in}
		m.run(s)
		if err := st.Check(); err != nil {
			t.Fatal(err)
		}
		m.c.begin("model", verf<<32)
		if n := s.clients.count.Load(); n != 0 {
			t.Fatalf("%d states and owners are left", n)
		}
	})
}
