package nfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// cacher is a client that believes what it has read for as long as it has a
// delegation.
type cacher struct {
	*live4
	name   string
	number *atomic.Uint64 // the last that was written and acknowledged

	mu    sync.Mutex
	fh    []byte
	sid   nfs4.Stateid // (mu) of the delegation; zero without one
	value uint64       // (mu) that it has read by it
	hits  int          // (mu)
}

// recalled is what it does when the delegation is recalled: it forgets, and
// returns it a little later.
func (c *cacher) recalled(rnd *rand.Rand) func(nfs4.CBOp, any) nfs4.Status {
	answer := c.returning()
	return func(op nfs4.CBOp, args any) nfs4.Status {
		c.mu.Lock()
		defer c.mu.Unlock()
		if args.(nfs4.CBRecallArgs).Stateid != c.sid {
			// It may not have heard of it yet: it is recalled again.
			return nfs4.ErrBadStateid
		}
		c.sid = nfs4.Stateid{}
		time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
		return answer(op, args)
	}
}

// read is what the client believes that the file contains.
func (c *cacher) read() error {
	written := c.number.Load()
	c.mu.Lock()
	if c.sid != (nfs4.Stateid{}) {
		defer c.mu.Unlock()
		if c.hits++; c.value < written {
			return fmt.Errorf("%s believes in %d, when %d is written", c.name, c.value, written)
		}
		return nil
	}
	c.mu.Unlock()
	var res nfs4.OpenRes
	var data nfs4.ReadRes
	if status := c.run(putFH(c.fh), op{nfs4.OpOpen, &nfs4.OpenArgs{
		Access: nfs4.ShareRead, Owner: nfs4.Owner{Owner: []byte("o")}, Claim: nfs4.ClaimFH,
	}, &res}); status == nfs4.ErrDelay {
		return nil
	} else if status != nfs4.OK {
		return fmt.Errorf("OPEN: %w", status)
	}
	if d := &res.Delegation; d.Type == nfs4.DelegateRead {
		c.mu.Lock()
		c.sid, c.value = d.Stateid, 0
		c.mu.Unlock()
	}
	written = c.number.Load()
	status := c.run(putFH(c.fh), read4(res.Stateid, &data), closing(res.Stateid))
	if status == nfs4.ErrDelay {
		return nil
	} else if status != nfs4.OK {
		return fmt.Errorf("READ: %w", status)
	}
	value := binary.BigEndian.Uint64(data.Data)
	c.mu.Lock()
	c.value = value
	c.mu.Unlock()
	if value < written {
		return fmt.Errorf("%s has read %d, when %d is written", c.name, value, written)
	}
	return nil
}

// TestDelegationModel: what a client believes by its delegation is what was
// written last, whoever writes.
func TestDelegationModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				r, end := startPiped(t, nil)
				defer end()
				made, err := r.store.Root().Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile})
				if err != nil {
					t.Fatal(err)
				}
				write := func(n uint64) error {
					for {
						_, _, err := made.Inode.WriteAt(memstore.Root(), nil, binary.BigEndian.AppendUint64(nil, n), 0)
						var wait *memstore.Wait
						if !errors.As(err, &wait) {
							return err
						}
						<-wait.Done()
					}
				}
				var number atomic.Uint64
				if err := write(0); err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				stop := make(chan struct{})
				clients := make([]*cacher, 3)
				for n := range clients {
					c := &cacher{live4: r.connect(t, fmt.Sprint("client", n), true), name: fmt.Sprint("client ", n), number: &number}
					_, c.fh = c.open("f", nfs4.ShareRead|nfs4.WantNoDeleg)
					answer := c.recalled(rand.New(rand.NewPCG(seed, uint64(n))))
					c.live4.mu.Lock()
					c.answer = answer
					c.live4.mu.Unlock()
					clients[n] = c
					pause := time.Duration(1+rnd.IntN(40)) * 10 * time.Millisecond
					all.Go(func() {
						for {
							select {
							case <-stop:
								return
							case <-time.After(pause):
							}
							if err := c.read(); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				for n := range uint64(8) {
					time.Sleep(time.Duration(rnd.IntN(60)) * time.Second)
					began := time.Now()
					if err := write(n + 1); err != nil {
						t.Fatal(err)
					}
					number.Store(n + 1)
					if took := time.Since(began); took > time.Second {
						t.Errorf("a write took %v", took)
					}
				}
				close(stop)
				all.Wait()
				hits := 0
				for _, c := range clients {
					hits += c.hits
				}
				if hits < 100 {
					t.Errorf("read only %d times by a delegation", hits)
				}
			})
		})
	}
}
