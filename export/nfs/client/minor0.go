package client

import (
	"errors"
	"slices"

	"ramserver/export/nfs/nfs4"
)

// minor0 is what a client of minor version 0 has instead of a session: numbers of
// what its owners did last. Open and lock owners have different names.
//
// All fields are protected by Session.mu.
type minor0 struct {
	seqs   map[string]uint32   // by owner
	owners map[[12]byte]string // by what names the state in a stateid
}

// Minor0 begins to speak minor version 0 of NFS version 4 without callbacks:
// SETCLIENTID and SETCLIENTID_CONFIRM. What it returns has no session;
// [Session.Run] is not for it. The methods number what owners do, whatever stands
// in their arguments for that, and confirm new ones.
func (c *Client) Minor0(owner string, verf uint64) (*Session, error) {
	var id nfs4.ClientConfirm
	args := nfs4.SetClientIDArgs{Verf: verf, ID: []byte(owner), CBAddr: nfs4.ClientAddr{NetID: "tcp", Addr: "0.0.0.0.0.0"}}
	if err := c.Compound(nfs4.Minor0, Op{nfs4.OpSetClientID, &args, &id}); err != nil {
		return nil, err
	}
	if err := c.Compound(nfs4.Minor0, Op{nfs4.OpSetClientIDConfirm, &id, nil}); err != nil {
		return nil, err
	}
	return &Session{c: c, minor: nfs4.Minor0, ClientID: id.ID, zero: &minor0{map[string]uint32{}, map[[12]byte]string{}}}, nil
}

// numbered does what owner asks for, as its next operation, which is given the
// number. sid is the stateid that comes of it. Called with mu held.
func (z *minor0) numbered(owner string, number *uint32, op nfs4.Op, sid *nfs4.Stateid, do func() error) error {
	*number = z.seqs[owner] + 1
	err := do()
	var failed *OpError
	switch {
	case err == nil:
		z.owners[sid.Other] = owner
	case !errors.As(err, &failed) || failed.Op != op || slices.Contains(unnumbered, failed.Status):
		return err
	}
	z.seqs[owner] = *number
	return err
}

// unnumbered is the errors of an operation that does not count, RFC 7530 section
// 9.1.7.
var unnumbered = []nfs4.Status{nfs4.ErrStaleClientID, nfs4.ErrStaleStateid, nfs4.ErrBadStateid, nfs4.ErrBadSeqid, nfs4.ErrBadXDR,
	nfs4.ErrResource, nfs4.ErrNoFileHandle, nfs4.ErrMoved}

func (s *Session) open0(dir []byte, a nfs4.OpenArgs) (res nfs4.OpenRes, fh []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := "open " + string(a.Owner.Owner)
	a.Owner.Client = s.ClientID
	var got nfs4.FH
	err = s.zero.numbered(owner, &a.Seq, nfs4.OpOpen, &res.Stateid, func() error {
		return s.c.Compound(nfs4.Minor0, Op{nfs4.OpPutFH, &nfs4.FH{FH: dir}, nil}, Op{nfs4.OpOpen, &a, &res}, Op{nfs4.OpGetFH, nil, &got})
	})
	if err != nil || res.Flags&nfs4.OpenConfirm == 0 {
		return res, got.FH, err
	}
	confirm := nfs4.OpenConfirmArgs{Stateid: res.Stateid}
	var sid nfs4.StateidArgs
	err = s.zero.numbered(owner, &confirm.Seq, nfs4.OpOpenConfirm, &sid.Stateid, func() error {
		return s.c.Compound(nfs4.Minor0, Op{nfs4.OpPutFH, &got, nil}, Op{nfs4.OpOpenConfirm, &confirm, &sid})
	})
	res.Stateid = sid.Stateid
	return res, got.FH, err
}

// state0 makes a COMPOUND of an operation on the state that sid names.
func (s *Session) state0(fh []byte, sid nfs4.Stateid, number *uint32, op Op, res *nfs4.StateidArgs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.zero.numbered(s.zero.owners[sid.Other], number, op.Op, &res.Stateid, func() error {
		return s.c.Compound(nfs4.Minor0, Op{nfs4.OpPutFH, &nfs4.FH{FH: fh}, nil}, op)
	})
}

func (s *Session) lock0(fh []byte, a nfs4.LockArgs) (nfs4.Stateid, error) {
	var res nfs4.StateidArgs
	op := Op{nfs4.OpLock, &a, &res}
	if !a.NewOwner {
		err := s.state0(fh, a.Stateid, &a.LockSeq, op, &res)
		return res.Stateid, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opener, locker := s.zero.owners[a.Stateid.Other], "lock "+string(a.Owner.Owner)
	a.Owner.Client = s.ClientID
	// The lock's stateid is the locker's, whose number counts if there is one.
	err := s.zero.numbered(opener, &a.OpenSeq, nfs4.OpLock, &res.Stateid, func() error {
		a.LockSeq = s.zero.seqs[locker] + 1
		return s.c.Compound(nfs4.Minor0, Op{nfs4.OpPutFH, &nfs4.FH{FH: fh}, nil}, op)
	})
	if err == nil {
		s.zero.owners[res.Stateid.Other], s.zero.seqs[locker] = locker, a.LockSeq
	}
	return res.Stateid, err
}
