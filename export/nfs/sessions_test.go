package nfs

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"ramserver/export/nfs/nfs4"
)

// Clients that come and go, in whatever way, leave nothing behind.
func TestManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, file := newServer(t)
		cs := s.clients
		free, heap := cs.memory.Load(), heapInUse()
		for n := range 1000 {
			c := open4(t, s, fmt.Sprint("client ", n), 1)
			var opened nfs4.OpenRes
			var locked nfs4.StateidArgs
			c.must(nfs4.OK, putRootFH(), opening("o", "f", nfs4.ShareBoth, 0, &opened))
			c.must(nfs4.OK, putFH(file), op{nfs4.OpLock, &nfs4.LockArgs{
				Type: nfs4.LockWrite, Offset: uint64(n), Length: 1, Stateid: opened.Stateid,
				NewOwner: true, Owner: nfs4.Owner{Owner: []byte("p")},
			}, &locked})
			switch n % 4 {
			case 0: // ends as it should
				c.must(nfs4.OK, putFH(file), closing(opened.Stateid))
				fallthrough
			case 1: // leaves files open
				c.must(nfs4.OK, op{nfs4.OpDestroySession, &c.sess, nil})
			case 2: // starts anew
				c = open4(t, s, fmt.Sprint("client ", n), 2)
			}
			if n%4 == 0 {
				if status, _ := send4(t, s, nfs4.Minor2, op{nfs4.OpDestroyClientID, &nfs4.ClientID{ID: c.id}, nil}); status != nfs4.OK {
					t.Fatal(status)
				}
			}
		}
		if n, want := cs.count.Load(), int64(2*500); n != want {
			t.Errorf("%d states, want those of 500 clients, %d", n, want)
		}
		t.Logf("%d bytes for 750 clients, %d promised", heapInUse()-heap, free-cs.memory.Load())

		time.Sleep(3 * DefaultClientExpiry)
		synctest.Wait()
		left := 0
		cs.all.each(func(*client4) { left++ })
		cs.sessions.each(func(*session) { left++ })
		cs.states.each(func(*state) { left++ })
		if left != 0 || len(cs.records) != 0 || cs.count.Load() != 0 || cs.memory.Load() != free {
			t.Errorf("left: %d clients, sessions and states, %d names, %d states counted, %d bytes promised",
				left, len(cs.records), cs.count.Load(), free-cs.memory.Load())
		}
		if grown := heapInUse() - heap; grown > 1<<20 {
			t.Errorf("%d bytes more than before", grown)
		}
	})
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
