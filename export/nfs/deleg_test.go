package nfs

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// open opens a file of the root as "o", and returns its handle too.
func (c *live4) open(name string, access uint32) (nfs4.OpenRes, []byte) {
	c.t.Helper()
	var res nfs4.OpenRes
	var fh nfs4.FH
	c.must(nfs4.OK, putRootFH(), opening("o", name, access, 0, &res), getFH(&fh))
	return res, fh.FH
}

// returning is what a client does with a delegation that is recalled: on a
// connection of its own, as its requests may wait for this.
func (c *live4) returning() func(nfs4.CBOp, any) nfs4.Status {
	c.dial4()
	n := len(c.conns) - 1
	var made nfs4.CreateSessionRes
	if status, _ := c.send(n, createSession(c.ex.ClientID, c.ex.Seq+uint32(n), &made)); status != nfs4.OK {
		c.t.Fatalf("CREATE_SESSION: %v", status)
	}
	var returns sync.WaitGroup
	c.t.Cleanup(returns.Wait)
	seq := uint32(0)
	return func(number nfs4.CBOp, args any) nfs4.Status {
		if number != nfs4.OpCBRecall {
			return nfs4.OK
		}
		a := args.(nfs4.CBRecallArgs)
		fh := append([]byte(nil), a.FH...)
		seq++
		sequence := op{nfs4.OpSequence, &nfs4.SequenceArgs{Session: made.Session, Seq: seq}, new(nfs4.SequenceRes)}
		returns.Go(func() {
			if status, _ := c.send(n, sequence, putFH(fh), returned(a.Stateid)); status != nfs4.OK {
				c.t.Errorf("DELEGRETURN: %v", status)
			}
		})
		return nfs4.OK
	}
}

func returned(sid nfs4.Stateid) op {
	return op{nfs4.OpDelegReturn, &nfs4.StateidArgs{Stateid: sid}, nil}
}

// Who gets a delegation, and what the others are told.
func TestDelegationGrants(t *testing.T) {
	const r, w, both = nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth
	type answer struct {
		kind nfs4.DelegationType
		why  nfs4.WhyNone
	}
	read, write := answer{kind: nfs4.DelegateRead}, answer{kind: nfs4.DelegateWrite}
	none := func(why nfs4.WhyNone) answer { return answer{nfs4.DelegateNoneExt, why} }
	for _, tt := range []struct {
		what   string
		back   bool   // the client can be called
		other  uint32 // access of another's open
		access uint32
		want   answer
	}{
		{"for reading", true, 0, r, read},
		{"for writing", true, 0, w, answer{}},
		{"for both", true, 0, both, answer{}},
		{"wants to read", true, 0, both | nfs4.WantReadDeleg, read},
		{"wants to write", true, 0, both | nfs4.WantWriteDeleg, write},
		{"wants to write, reads", true, 0, r | nfs4.WantWriteDeleg, read},
		{"wants any", true, 0, both | nfs4.WantAnyDeleg, write},
		{"wants none", true, 0, r | nfs4.WantNoDeleg, none(nfs4.WhyNotWanted)},
		{"wants none any more", true, 0, r | nfs4.WantCancel, none(nfs4.WhyCancelled)},
		{"wants to be told", true, 0, r | nfs4.WantAnyDeleg | nfs4.WantSignalWhenAvail, read},
		{"another reads", true, r, r, read},
		{"another reads, for writing", true, r, w | nfs4.WantAnyDeleg, none(nfs4.WhyContention)},
		{"another writes", true, w, r | nfs4.WantAnyDeleg, none(nfs4.WhyContention)},
		{"another writes, no preference", true, w, r, answer{}},
		{"cannot be called", false, 0, r, answer{}},
		{"cannot be called and wants one", false, 0, r | nfs4.WantAnyDeleg, none(nfs4.WhyResource)},
	} {
		t.Run(tt.what, func(t *testing.T) {
			rig := start(t, nil)
			rig.create("f")
			if tt.other != 0 {
				rig.connect(t, "other", false).open("f", tt.other)
			}
			c := rig.connect(t, "one", tt.back)
			res, _ := c.open("f", tt.access)
			d := res.Delegation
			if got := (answer{d.Type, d.Why}); got != tt.want || d.Will || d.Recall {
				t.Errorf("got %+v, want %+v", d, tt.want)
			}
			if d.Type == nfs4.DelegateRead || d.Type == nfs4.DelegateWrite {
				if again, _ := c.open("f", r); again.Delegation.Type != nfs4.DelegateNone {
					t.Errorf("a second one: %+v", again.Delegation)
				}
			}
		})
	}
	t.Run("off", func(t *testing.T) {
		rig := start(t, func(c *Config) { c.NoDelegations = true })
		rig.create("f")
		if res, _ := rig.connect(t, "one", true).open("f", r); res.Delegation.Type != nfs4.DelegateNone {
			t.Errorf("got %+v", res.Delegation)
		}
	})
}

// What a client does by its delegation.
func TestDelegationUse(t *testing.T) {
	const r, w, both = nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth
	rig := start(t, nil)
	rig.create("f")
	rig.create("g")
	c, other := rig.connect(t, "one", true), rig.connect(t, "other", true)
	res, f := c.open("f", both|nfs4.WantAnyDeleg)
	mine := res.Delegation.Stateid
	res, g := c.open("g", r)
	reads := res.Delegation.Stateid
	theirs, _ := other.open("g", r)
	claim := func(sid nfs4.Stateid, name string, access uint32) op {
		a := &nfs4.OpenArgs{Access: access, Owner: nfs4.Owner{Owner: []byte("p")}, Claim: nfs4.ClaimDelegCurFH, Stateid: sid}
		if name != "" {
			a.Claim, a.Name = nfs4.ClaimDelegCur, name
		}
		return op{nfs4.OpOpen, a, new(nfs4.OpenRes)}
	}
	resize := func(sid nfs4.Stateid) op {
		return op{nfs4.OpSetAttr, &nfs4.SetAttrArgs{Stateid: sid, Attr: nfs4.Fattr{Mask: nfs4.Bits(nfs4.AttrSize), Vals: uint64s{3}.bytes()}}, new(nfs4.Bitmap)}
	}
	root := putRootFH()
	for _, tt := range []struct {
		what string
		ops  []op
		want nfs4.Status
	}{
		{"close", []op{putFH(f), closing(mine)}, nfs4.ErrBadStateid},
		{"write", []op{putFH(f), write4(mine, "text")}, nfs4.OK},
		{"read", []op{putFH(f), read4(mine, new(nfs4.ReadRes))}, nfs4.OK},
		{"truncate", []op{putFH(f), resize(mine)}, nfs4.OK},
		{"read another file", []op{putFH(g), read4(mine, nil)}, nfs4.ErrBadStateid},
		{"read by one for reading", []op{putFH(g), read4(reads, new(nfs4.ReadRes))}, nfs4.OK},
		{"write by one for reading", []op{putFH(g), write4(reads, "x")}, nfs4.ErrOpenMode},
		{"truncate by one for reading", []op{putFH(g), resize(reads)}, nfs4.ErrOpenMode},
		{"another's", []op{putFH(g), read4(theirs.Delegation.Stateid, nil)}, nfs4.ErrBadStateid},
		{"open", []op{putFH(f), claim(mine, "", both)}, nfs4.OK},
		{"open by name", []op{root, claim(mine, "f", r)}, nfs4.OK},
		{"open another file", []op{root, claim(mine, "g", r)}, nfs4.ErrBadStateid},
		{"open for writing by one for reading", []op{putFH(g), claim(reads, "", w)}, nfs4.ErrOpenMode},
		{"open by an open", []op{putFH(g), claim(theirs.Stateid, "", r)}, nfs4.ErrBadStateid},
		{"free", []op{{nfs4.OpFreeStateid, &nfs4.StateidArgs{Stateid: mine}, nil}}, nfs4.ErrLocksHeld},
		{"return of another file's", []op{putFH(g), returned(mine)}, nfs4.ErrBadStateid},
		{"return", []op{putFH(f), returned(mine)}, nfs4.OK},
		{"return again", []op{putFH(f), returned(mine)}, nfs4.ErrBadStateid},
		{"read by what is returned", []op{putFH(f), read4(mine, nil)}, nfs4.ErrBadStateid},
	} {
		if status := c.run(tt.ops...); status != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, status, tt.want)
		}
	}
	if len(c.saw()) > 0 {
		t.Errorf("the client was called: %v", c.saw())
	}
}

// Whoever is stopped by a delegation goes on when it is returned, whatever he
// speaks.
func TestDelegationRecall(t *testing.T) {
	const r, w, both = nfs4.ShareRead, nfs4.ShareWrite, nfs4.ShareBoth | nfs4.WantAnyDeleg
	local := &memstore.Caller{Holder: &memstore.Holder{Name: "mount"}}
	retry := func(do func() error) error {
		for {
			err := do()
			var wait *memstore.Wait
			if !errors.As(err, &wait) {
				return err
			}
			<-wait.Done()
		}
	}
	for _, tt := range []struct {
		what   string
		access uint32 // of the delegation
		calls  int
		do     func(rig *rig, other *live4, f *memstore.Inode, fh []byte) error
	}{
		{"another opens to read what is read", r, 0, func(_ *rig, other *live4, _ *memstore.Inode, _ []byte) error {
			other.open("f", r)
			return nil
		}},
		{"another opens to write what is read", r, 1, func(_ *rig, other *live4, _ *memstore.Inode, _ []byte) error {
			other.open("f", w)
			return nil
		}},
		{"another opens to read what is written", both, 1, func(_ *rig, other *live4, _ *memstore.Inode, _ []byte) error {
			other.open("f", r)
			return nil
		}},
		{"another asks for attributes", both, 1, func(_ *rig, other *live4, _ *memstore.Inode, fh []byte) error {
			other.must(nfs4.OK, putFH(fh), getAttr(new(nfs4.Fattr), nfs4.AttrSize))
			return nil
		}},
		{"another removes", r, 1, func(_ *rig, other *live4, _ *memstore.Inode, _ []byte) error {
			other.must(nfs4.OK, putRootFH(), op{nfs4.OpRemove, &nfs4.Name{Name: "f"}, new(nfs4.DirRes)})
			return nil
		}},
		{"version 3 writes", r, 1, func(rig *rig, _ *live4, _ *memstore.Inode, fh []byte) error {
			_, err := rig.one.Write(fh, 0, []byte("x"), nfs3.FileSync)
			return err
		}},
		{"version 3 reads", both, 1, func(rig *rig, _ *live4, _ *memstore.Inode, fh []byte) error {
			_, err := rig.one.Read(fh, 0, 1)
			return err
		}},
		{"version 3 asks for attributes", both, 1, func(rig *rig, _ *live4, _ *memstore.Inode, fh []byte) error {
			_, err := rig.one.GetAttr(fh)
			return err
		}},
		{"the mount opens to write", r, 1, func(_ *rig, _ *live4, f *memstore.Inode, _ []byte) error {
			return retry(func() error {
				o, err := f.Open(local, memstore.OpenArgs{Access: memstore.AccessWrite})
				if err == nil {
					o.Close()
				}
				return err
			})
		}},
		{"the server itself truncates", both, 1, func(_ *rig, _ *live4, f *memstore.Inode, _ []byte) error {
			return retry(func() error {
				_, err := f.SetAttr(memstore.Root(), nil, &memstore.SetAttr{Mask: memstore.SetSize})
				return err
			})
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			rig := start(t, nil)
			fh := rig.create("f")
			f, err := rig.store.Root().Lookup(memstore.Root(), "f")
			if err != nil {
				t.Fatal(err)
			}
			c, other := rig.connect(t, "one", true), rig.connect(t, "other", true)
			res, _ := c.open("f", tt.access)
			if res.Delegation.Type == nfs4.DelegateNone {
				t.Fatal("no delegation")
			}
			c.must(nfs4.OK, putFH(fh), closing(res.Stateid))
			answer := c.returning()
			c.mu.Lock()
			c.answer = answer
			c.mu.Unlock()
			began := time.Now()
			if err := tt.do(rig, other, f, fh); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
			if n := len(c.saw()); n != tt.calls {
				t.Errorf("called with %v", c.saw())
			}
			if tt.calls > 0 {
				c.mu.Lock()
				if want := (nfs4.ReferringCall{Session: c.sess, Seq: 2}); len(c.about) != 1 || c.about[0] != want {
					t.Errorf("the call is about %+v, want %+v", c.about, want)
				}
				c.mu.Unlock()
			}
		})
	}
}

// A client that does not return a delegation loses it, sooner if it is not heard
// of at all, and is told.
func TestDelegationRevoked(t *testing.T) {
	for _, tt := range []struct {
		what string
		dead bool
	}{{"silent", false}, {"dead", true}} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const expiry = 10 * time.Second
				r, end := startPiped(t, func(c *Config) { c.ClientExpiry = expiry })
				defer end()
				made, err := r.store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile})
				if err != nil {
					t.Fatal(err)
				}
				c := r.connect(t, "one", true)
				res, fh := c.open("f", nfs4.ShareBoth|nfs4.WantAnyDeleg)
				sid := res.Delegation.Stateid
				if res.Delegation.Type != nfs4.DelegateWrite {
					t.Fatal("no delegation")
				}
				time.Sleep(5 * time.Second)
				began := time.Now()
				written := make(chan error)
				go func() {
					_, _, err := made.Inode.WriteAt(memstore.Root(), nil, []byte("x"), 0)
					var wait *memstore.Wait
					for errors.As(err, &wait) {
						<-wait.Done()
						_, _, err = made.Inode.WriteAt(memstore.Root(), nil, []byte("x"), 0)
					}
					written <- err
				}()
				for over := false; !over; {
					select {
					case err := <-written:
						if over = true; err != nil {
							t.Error(err)
						}
					case <-time.After(2 * time.Second):
						if !tt.dead {
							c.must(nfs4.OK)
						}
					}
				}
				took := time.Since(began)
				if tt.dead {
					synctest.Wait()
					if took > 8*time.Second || c.client() != nil {
						t.Errorf("it took %v; the client is there: %v", took, c.client() != nil)
					}
					return
				}
				if took < expiry || took > expiry+3*time.Second {
					t.Errorf("it took %v", took)
				}
				if n := len(c.saw()); n != 1 {
					t.Errorf("called with %v", c.saw())
				}
				test := op{nfs4.OpTestStateid, testStateids{sid}, new(tested)}
				free := op{nfs4.OpFreeStateid, &nfs4.StateidArgs{Stateid: sid}, nil}
				c.must(nfs4.ErrDelegRevoked, putFH(fh), read4(sid, nil))
				if c.flags != nfs4.SeqRecallableStateRevoked {
					t.Errorf("flags %#x", c.flags)
				}
				c.must(nfs4.ErrDelegRevoked, putFH(fh), returned(sid))
				c.must(nfs4.OK, test)
				if got := *test.res.(*tested); len(got) != 1 || got[0] != nfs4.ErrDelegRevoked {
					t.Errorf("the stateid is %v", got)
				}
				c.must(nfs4.OK, free)
				c.must(nfs4.ErrBadStateid, free)
				if c.flags != 0 {
					t.Errorf("flags %#x", c.flags)
				}
			})
		})
	}
}

// tested is TEST_STATEID4resok.
type tested []nfs4.Status

func (v *tested) Decode(r *xdr.Reader) {
	for range r.Count(10, 4) {
		*v = append(*v, nfs4.Status(r.Uint32()))
	}
}

// A client that says that it has no such delegation is believed in the end.
func TestDelegationUnknown(t *testing.T) {
	r := start(t, nil)
	fh := r.create("f")
	c := r.connect(t, "one", true)
	c.open("f", nfs4.ShareRead)
	tries := 0
	c.mu.Lock()
	c.answer = func(nfs4.CBOp, any) nfs4.Status {
		tries++
		return nfs4.ErrBadStateid
	}
	c.mu.Unlock()
	d := r.dial(client.Options{})
	_, err := d.Write(fh, 0, []byte("x"), nfs3.FileSync)
	for err == error(nfs3.ErrJukebox) {
		_, err = d.Write(fh, 0, []byte("x"), nfs3.FileSync)
	}
	want(t, err, nfs3.OK)
	c.must(nfs4.OK)
	if c.flags != 0 || tries != recallTries {
		t.Errorf("flags %#x after %d recalls", c.flags, tries)
	}
}

// What an operator sees: who holds what, and in the trace a line for each
// compound, callbacks among them.
func TestDelegationSeen(t *testing.T) {
	var log bytes.Buffer
	r := start(t, func(c *Config) {
		c.Trace = true
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	fh := r.create("f")
	c := r.connect(t, "one", true)
	res, _ := c.open("f", nfs4.ShareRead)
	c.must(nfs4.OK, putFH(fh), op{nfs4.OpLock, &nfs4.LockArgs{
		Type: nfs4.LockReadW, Length: 10, Stateid: res.Stateid, NewOwner: true, Owner: nfs4.Owner{Owner: []byte("l")},
	}, new(nfs4.StateidArgs)})
	st := r.s.Stats().Clients4
	if len(st) != 1 {
		t.Fatalf("clients: %+v", st)
	}
	st[0].Addr = netip.AddrPort{}
	if want := (Client4Stats{Name: "one", Callable: true, Sessions: 1, Opens: 1, Locks: 1, Delegations: 1}); st[0] != want {
		t.Errorf("the client is %+v, want %+v", st[0], want)
	}
	answer := c.returning()
	c.mu.Lock()
	c.answer = answer
	c.mu.Unlock()
	if _, err := r.one.Write(fh, 0, []byte("x"), nfs3.FileSync); err != nil {
		t.Fatal(err)
	}
	wait(t, "the callback is answered", func() bool { return c.underWay() == 0 })
	r.s.Shutdown(t.Context())
	for _, want := range []string{
		`args="4.2 SEQUENCE slot 0 number 2 PUTROOTFH OPEN \"f\" access 1 GETFH" answer=OK`,
		`LOCK 0+10 shared or wait" answer=OK`,
		`msg=CB_COMPOUND args="4.2 CB_SEQUENCE" answer=OK`,
		`msg=CB_COMPOUND args="4.2 CB_SEQUENCE CB_RECALL ` + fileText(fh) + `" answer=OK`,
		`DELEGRETURN" answer=OK`,
	} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%d lines with %s in\n%s", n, want, log.String())
		}
	}
}
