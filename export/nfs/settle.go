package nfs

import (
	"sync"

	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// settling is the replies that a connection cannot send before the mount on this
// machine has forgotten what their calls have made stale. The connection goes
// on meanwhile: a local process that the mount's kernel waits for may itself
// wait for what this client sends next, such as the return of a delegation.
type settling struct {
	mu      sync.Mutex
	replies []*call            // (mu)
	stale   memstore.Unsettled // (mu) what they wait for
	running bool               // (mu) a goroutine is at work
}

// settle takes the reply of k out of the batch, to be sent when it may be. If
// there is no memory to keep it, it is waited for.
func (c *conn) settle(k *call) {
	reply := k.w.B[k.begun:]
	size := int64(len(reply)) + settleCost
	if k.pages > 0 || !c.s.large.TryTake(size) {
		k.unsettled.Settle()
		k.keep()
		return
	}
	p := &call{c: c, proc: k.proc, replay: k.replay, good: k.good}
	p.m.minor, p.m.changed, p.m.slot, p.m.caching = k.m.minor, k.m.changed, k.m.slot, k.m.caching
	p.w = &xdr.Writer{B: append([]byte(nil), reply...)}
	k.w.B = k.w.B[:k.begun]
	l := &c.late
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies = append(l.replies, p)
	l.stale.Move(&k.unsettled)
	if !l.running {
		l.running = true
		c.s.busy.Add(1)
		go c.settleAll()
	}
}

// settleCost is what a reply that waits takes beside itself, in bytes.
const settleCost = 2 << 10

// settleAll sends what waits, all that has come together meanwhile at once.
func (c *conn) settleAll() {
	defer c.s.busy.Done()
	l := &c.late
	for {
		l.mu.Lock()
		replies := l.replies
		var stale memstore.Unsettled
		stale.Move(&l.stale)
		l.replies = nil
		if l.running = len(replies) > 0; !l.running {
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		stale.Settle()
		var batch []byte
		size := int64(0)
		for _, p := range replies {
			p.keep()
			batch = append(batch, p.w.B...)
			size += int64(len(p.w.B)) + settleCost
		}
		c.sendParked(batch)
		c.s.large.Give(size)
	}
}
