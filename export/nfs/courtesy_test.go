package nfs

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// A client that was not heard of for long keeps what nobody else wants.
func TestCourtesy(t *testing.T) {
	const expiry = 10 * time.Second
	const both = nfs4.ShareBoth
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
		what  string
		loses bool
		do    func(other *live4, f *memstore.Inode) error
	}{
		{"another file is opened", false, func(other *live4, _ *memstore.Inode) error {
			other.must(nfs4.OK, putRootFH(), opening("o", "g", both, both, new(nfs4.OpenRes)))
			return nil
		}},
		{"it is opened", true, func(other *live4, _ *memstore.Inode) error {
			other.must(nfs4.OK, putRootFH(), opening("o", "f", both, 0, new(nfs4.OpenRes)))
			return nil
		}},
		{"it is opened by the mount", true, func(_ *live4, f *memstore.Inode) error {
			return retry(func() error {
				o, err := f.Open(local, memstore.OpenArgs{Access: memstore.AccessWrite})
				if err == nil {
					o.Close()
				}
				return err
			})
		}},
		{"it is written to without an open", true, func(_ *live4, f *memstore.Inode) error {
			return retry(func() error {
				_, _, err := f.WriteAt(memstore.Root(), nil, []byte("x"), 0)
				return err
			})
		}},
		{"its lock is asked for", true, func(_ *live4, f *memstore.Inode) error {
			return retry(func() error {
				_, err := f.TestLock(memstore.LockArgs{Owner: memstore.LockOwner{Holder: local.Holder}})
				return err
			})
		}},
		{"what it has locked is locked", true, func(_ *live4, f *memstore.Inode) error {
			o, err := f.Open(local, memstore.OpenArgs{Access: memstore.AccessRead})
			if err != nil {
				return err
			}
			defer o.Close()
			return retry(func() error {
				_, err := o.Lock(memstore.LockArgs{Owner: memstore.LockOwner{Holder: local.Holder}, Exclusive: true})
				return err
			})
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, end := startPiped(t, func(c *Config) { c.ClientExpiry = expiry })
				defer end()
				for _, name := range []string{"f", "g"} {
					if _, err := r.store.Root().Create(memstore.Root(), name, &memstore.Create{Type: memstore.TypeFile}); err != nil {
						t.Fatal(err)
					}
				}
				f, _ := r.store.Root().Lookup(memstore.Root(), "f")
				c, other := r.connect(t, "one", false), r.connect(t, "other", false)
				var res nfs4.OpenRes
				var fh nfs4.FH
				c.must(nfs4.OK, putRootFH(), opening("o", "f", both, nfs4.ShareWrite, &res), getFH(&fh))
				c.must(nfs4.OK, putFH(fh.FH), op{nfs4.OpLock, &nfs4.LockArgs{
					Type: nfs4.LockWrite, Length: 10, Stateid: res.Stateid, NewOwner: true, Owner: nfs4.Owner{Owner: []byte("l")},
				}, new(nfs4.StateidArgs)})
				other.must(nfs4.ErrShareDenied, putRootFH(), opening("o", "f", both, 0, nil))
				for range 3 {
					time.Sleep(expiry / 2)
					other.must(nfs4.OK)
				}
				if err := tt.do(other, f); err != nil {
					t.Error(err)
				}
				if lost := c.client() == nil; lost != tt.loses {
					t.Errorf("the client is dropped: %v", lost)
				}
				if !tt.loses {
					// It is back, and has what it had.
					c.must(nfs4.OK, putFH(fh.FH), write4(res.Stateid, "text"))
					other.must(nfs4.ErrShareDenied, putRootFH(), opening("o", "f", both, 0, nil))
				}
			})
		})
	}
}
