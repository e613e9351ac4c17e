package nfs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
	"ramserver/memstore"
)

// nlm is what clients of NFS version 3 hold by NLM: byte-range locks and share
// modes. They live in the store; here is whose they are.
//
// A client keeps them until it gives them up, says that it has restarted (NSM),
// or is gone: somebody wants what it has locked, nothing was heard of it for
// expiry, and it is found no more where it was found before. One that could
// never be called back keeps its locks.
type nlm struct {
	s        *Server
	hosts    *hostList
	expiry   time.Duration // (c)
	bindPort uint16        // (c) of the clients' portmappers

	ctx    context.Context // (c) done when no more clients are called
	cancel func()

	shares atomic.Int64 // of all clients

	mu       sync.Mutex
	clients  map[nlmKey]*nlmClient           // (mu)
	byHolder map[*memstore.Holder]*nlmClient // (mu)
	closed   bool                            // (mu)
}

// Bounds of what clients can make the server keep.
const (
	maxNLMClients = 1024  // of all
	maxNLMNames   = 64    // clients of one address
	maxNLMLocks   = 16384 // ranges of one client
	maxNLMFiles   = 4096  // locked or shared by one client
	maxNLMWaits   = 256   // of one client
	maxNLMPosts   = 64    // results on their way to one client
)

const (
	nlmExpiry = 90 * time.Second
	// For how long a client is told that it has a lock it waited for. If it
	// cannot be reached it asks again by itself; Linux does every 30 s.
	grantTime  = 90 * time.Second
	grantAgain = 5 * time.Second
	nlmIdle    = time.Minute // after which a client that holds nothing is forgotten
)

// nlmKey is who a client is: its address, on this machine also the user whom
// its socket belongs to, and the name that it gives itself.
type nlmKey struct {
	addr netip.Addr
	uid  uint32
	name string
}

// nlmClient is a client that holds something, or did a moment ago.
//
// Its mu is held over the store calls that take and release its locks, so that
// a file is open exactly as long as something of it is locked. These calls wait
// for nobody.
type nlmClient struct {
	n      *nlm
	key    nlmKey
	server netip.Addr      // (c) our address that it uses
	holder memstore.Holder // (c)

	seen    atomic.Int64 // unix time of the last call, in nanoseconds
	reached atomic.Bool  // it was called back once
	probing atomic.Bool
	posts   atomic.Int32 // results on their way

	mu     sync.Mutex
	gone   bool                         // (mu) no more among nlm.clients
	state  int32                        // (mu) of its NSM; 0 is unknown
	ranges int                          // (mu) at least as many as it has locked
	files  map[*memstore.Inode]*nlmFile // (mu)
	shares map[nlmShare]*memstore.Open  // (mu)
	waits  []*nlmWait                   // (mu)

	back     sync.Mutex // held over a call to the client
	backConn *remote    // (back)
	backUsed time.Time  // (back)
}

// nlmFile is a file of which a client has locked something or wants to.
type nlmFile struct {
	open  *memstore.Open
	waits int
}

// nlmShare is who shares what: NLM's SHARE knows one share mode of an owner.
type nlmShare struct {
	inode *memstore.Inode
	owner string
}

// nlmWait is a lock that a client waits for.
type nlmWait struct {
	inode   *memstore.Inode
	args    nfs3.NLMTestArgs // what GRANTED says
	stop    chan struct{}    // closed when it is over
	granted bool             // it has the lock, and does not know yet
	over    bool
}

func newNLM(s *Server, hosts *hostList) *nlm {
	n := &nlm{
		s: s, hosts: hosts, expiry: cmp.Or(s.cfg.expiry, nlmExpiry), bindPort: cmp.Or(s.cfg.bindPort, rpc.PortmapPort),
		clients: make(map[nlmKey]*nlmClient), byHolder: make(map[*memstore.Holder]*nlmClient),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// client returns the client that makes a call, locked. With make it is made if
// it is not known; nil if there are too many.
func (n *nlm) client(k *call, name string, make bool) *nlmClient {
	key := nlmKey{addr: k.c.peer.Addr().Addr(), name: name}
	key.uid, _ = k.c.peer.Owner()
	for {
		n.mu.Lock()
		c := n.clients[key]
		if c == nil && make {
			c = n.add(key, localAddr(k.c.Conn))
		}
		n.mu.Unlock()
		if c == nil {
			return nil
		}
		c.seen.Store(time.Now().UnixNano())
		c.mu.Lock()
		if !c.gone {
			return c
		}
		c.mu.Unlock()
	}
}

// add makes a client. Called with n.mu held.
func (n *nlm) add(key nlmKey, server netip.Addr) *nlmClient {
	names := 0
	for k := range n.clients {
		if k.addr == key.addr {
			names++
		}
	}
	if n.closed || len(n.clients) >= maxNLMClients || names >= maxNLMNames {
		return nil
	}
	key.name = strings.Clone(key.name)
	c := &nlmClient{
		n: n, key: key, server: server,
		holder: memstore.Holder{Name: "nlm " + key.name + " at " + key.addr.String()},
		files:  make(map[*memstore.Inode]*nlmFile), shares: make(map[nlmShare]*memstore.Open),
	}
	n.clients[key], n.byHolder[&c.holder] = c, c
	// Whether it can be found decides what its silence will mean.
	n.s.running.Go(func() { c.call(nfs3.NLMProcNull, nil, nil) })
	return c
}

// localAddr is our end of a connection.
func localAddr(c net.Conn) netip.Addr {
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// lock takes a lock, or with block has the client wait for it.
func (c *nlmClient) lock(i *memstore.Inode, a *nfs3.NLMLockArgs, block bool) error {
	for _, w := range c.waits {
		if !w.is(i, &a.Lock, a.Exclusive) {
			continue
		}
		if w.granted {
			c.end(w)
			return nil
		}
		w.args.Cookie = bytes.Clone(a.Cookie)
		return errBlocked
	}
	test := nfs3.NLMTestArgs{Cookie: a.Cookie, Exclusive: a.Exclusive, Lock: a.Lock}
	info, err := c.take(i, &test, block)
	var wait *memstore.Wait
	switch {
	case err == nil:
		c.settle(i, &a.Lock)
		return nil
	case block && errors.As(err, &wait):
		if len(c.waits) >= maxNLMWaits {
			wait.Cancel()
			c.drop(i)
			return memstore.ErrNoSpace
		}
		w := &nlmWait{inode: i, args: test, stop: make(chan struct{})}
		w.args.Cookie = bytes.Clone(a.Cookie)
		l := &w.args.Lock
		l.Caller, l.FH, l.Owner = strings.Clone(l.Caller), bytes.Clone(l.FH), bytes.Clone(l.Owner)
		c.waits = append(c.waits, w)
		if c.files[i] != nil {
			c.files[i].waits++
		} else {
			c.files[i] = &nlmFile{waits: 1} // its open has to wait
		}
		c.n.s.running.Add(1)
		go c.wait(w, wait, info.Owner.Holder)
		return errBlocked
	case err == memstore.ErrLocked:
		c.n.contested(info.Owner.Holder)
	}
	c.drop(i)
	return err
}

// errBlocked is the answer to who has to wait.
var errBlocked error = nfs3.NLMBlocked

// is tells whether a wait is for this lock.
func (w *nlmWait) is(i *memstore.Inode, l *nfs3.NLMLock, exclusive bool) bool {
	k := &w.args.Lock
	return w.inode == i && w.args.Exclusive == exclusive && k.SVID == l.SVID && bytes.Equal(k.Owner, l.Owner) && k.Off == l.Off && k.Len == l.Len
}

// take is one attempt to lock: it opens the file as who locks it has to have it
// open, unless it is, and locks the range.
func (c *nlmClient) take(i *memstore.Inode, a *nfs3.NLMTestArgs, wait bool) (memstore.LockInfo, error) {
	if c.ranges >= maxNLMLocks {
		c.ranges = 0
		for f := range c.files {
			c.ranges += f.LocksOf(&c.holder)
		}
		if c.ranges >= maxNLMLocks {
			return memstore.LockInfo{}, memstore.ErrNoSpace
		}
	}
	f := c.files[i]
	if f == nil {
		if len(c.files)+len(c.shares) >= maxNLMFiles {
			return memstore.LockInfo{}, memstore.ErrNoSpace
		}
		if err := c.n.hosts.add(c.key.addr, c.server); err != nil {
			c.n.s.log.Warn("the list of hosts with locks cannot be written", "error", err)
		}
	}
	// Permissions were checked. What the open is for: others' delegations go,
	// and share modes apply.
	access := memstore.AccessRead
	if a.Exclusive {
		access |= memstore.AccessWrite
	}
	for s := range c.shares {
		if s.inode == i {
			access = 0 // it is open already
		}
	}
	who := memstore.Caller{Holder: &c.holder}
	open, err := i.Open(&who, memstore.OpenArgs{Access: access, Owner: c})
	if err != nil {
		return memstore.LockInfo{}, err
	}
	if f == nil {
		f = new(nlmFile)
		c.files[i] = f
	}
	f.open = open
	args := c.lockArgs(&a.Lock)
	args.Exclusive, args.Wait = a.Exclusive, wait
	info, err := open.Lock(args)
	if err == nil {
		c.ranges++
	}
	return info, err
}

// lockArgs is a range and its owner. The client's own numbers of owners are
// kept as they are, to be told to who asks what is in the way.
func (c *nlmClient) lockArgs(l *nfs3.NLMLock) memstore.LockArgs {
	id := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(l.Owner)), uint32(l.SVID))
	return memstore.LockArgs{
		Owner: memstore.LockOwner{Holder: &c.holder, ID: string(append(id, l.Owner...))},
		Off:   l.Off, N: l.Len,
	}
}

// drop closes a file of which nothing is locked or waited for any more.
func (c *nlmClient) drop(i *memstore.Inode) {
	f := c.files[i]
	if f == nil || f.waits > 0 || f.open != nil && i.LocksOf(&c.holder) > 0 {
		return
	}
	delete(c.files, i)
	if f.open != nil {
		f.open.Close()
	}
}

// unlock releases what the owner has of a range.
func (c *nlmClient) unlock(i *memstore.Inode, l *nfs3.NLMLock) error {
	c.settle(i, l)
	f := c.files[i]
	if f == nil || f.open == nil {
		return nil
	}
	err := f.open.Unlock(c.lockArgs(l))
	c.ranges++ // it may have cut one in two
	c.drop(i)
	return err
}

// settle says that the client knows of the locks that it was granted in a range:
// it has asked for or given up one of them since.
func (c *nlmClient) settle(i *memstore.Inode, l *nfs3.NLMLock) {
	for _, w := range slices.Clone(c.waits) {
		if w.granted && w.inode == i && w.args.Lock.SVID == l.SVID && bytes.Equal(w.args.Lock.Owner, l.Owner) {
			c.end(w)
		}
	}
}

// share opens a file with a share mode, or changes the one that the owner has.
func (c *nlmClient) share(i *memstore.Inode, a *nfs3.NLMShareArgs) error {
	key := nlmShare{i, string(a.Owner)}
	if c.shares[key] == nil && len(c.files)+len(c.shares) >= maxNLMFiles {
		return memstore.ErrNoSpace
	}
	who := memstore.Caller{Holder: &c.holder} // permissions were checked
	args := memstore.OpenArgs{Access: shareModes[a.Access], Deny: shareModes[a.Deny]}
	if o := c.shares[key]; o != nil {
		return o.Change(&who, args)
	}
	o, err := i.Open(&who, args)
	if err == nil {
		c.shares[key] = o
		c.n.shares.Add(1)
	}
	return err
}

// shareModes are fsh4_mode and fsh4_access in the store.
var shareModes = [...]memstore.Access{
	nfs3.NLMShareRead:                      memstore.AccessRead,
	nfs3.NLMShareWrite:                     memstore.AccessWrite,
	nfs3.NLMShareRead | nfs3.NLMShareWrite: memstore.AccessRead | memstore.AccessWrite,
}

func (c *nlmClient) unshare(i *memstore.Inode, a *nfs3.NLMShareArgs) {
	key := nlmShare{i, string(a.Owner)}
	if o := c.shares[key]; o != nil {
		delete(c.shares, key)
		c.n.shares.Add(-1)
		o.Close()
	}
}

// shared is the open by which the caller's host shares a file that it reads or
// writes, or nil: the share mode is for others.
func (k *call) shared(i *memstore.Inode, want memstore.Access) *memstore.Open {
	n := k.c.s.nlm
	if n.shares.Load() == 0 {
		return nil
	}
	for _, c := range n.of(k.c.peer.Addr().Addr()) {
		if o := c.sharing(i, want); o != nil {
			return o
		}
	}
	return nil
}

func (c *nlmClient) sharing(i *memstore.Inode, want memstore.Access) *memstore.Open {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, o := range c.shares {
		if s.inode == i && o.Access()&want == want {
			return o
		}
	}
	return nil
}

// cancel ends a wait; if the lock was granted already, it is released.
func (c *nlmClient) cancel(i *memstore.Inode, l *nfs3.NLMLock, exclusive bool) error {
	at := slices.IndexFunc(c.waits, func(w *nlmWait) bool { return w.is(i, l, exclusive) })
	if at < 0 {
		return memstore.ErrLocked
	}
	w := c.waits[at]
	c.end(w)
	if w.granted {
		return c.unlock(i, l)
	}
	return nil
}

// end forgets a wait. Called with c.mu held.
func (c *nlmClient) end(w *nlmWait) {
	if w.over {
		return
	}
	w.over = true
	close(w.stop)
	c.waits = slices.DeleteFunc(c.waits, func(v *nlmWait) bool { return v == w })
	c.files[w.inode].waits--
	c.drop(w.inode)
}

// wait takes a lock when it can be had. holder is in the way at first.
func (c *nlmClient) wait(w *nlmWait, wait *memstore.Wait, holder *memstore.Holder) {
	defer c.n.s.running.Done()
	again := time.NewTicker(max(c.n.expiry/4, time.Millisecond))
	defer again.Stop()
	for {
		select {
		case <-wait.Done():
		case <-w.stop:
			wait.Cancel()
			return
		case <-c.n.s.done:
			wait.Cancel()
			return
		case <-again.C:
			c.n.contested(holder)
			continue
		}
		c.mu.Lock()
		if w.over {
			c.mu.Unlock()
			return
		}
		info, err := c.take(w.inode, &w.args, true)
		if errors.As(err, &wait) {
			c.mu.Unlock()
			holder = info.Owner.Holder
			continue
		}
		if err != nil {
			c.end(w) // it asks again, and is told
			c.mu.Unlock()
			return
		}
		w.granted = true
		c.mu.Unlock()
		c.grant(w)
		return
	}
}

// grant tells the client that it has a lock that it waited for. If it does not
// want it any more, or is not to be found, the lock is released.
func (c *nlmClient) grant(w *nlmWait) {
	late := time.NewTimer(grantTime)
	defer late.Stop()
	again := time.NewTicker(grantAgain)
	defer again.Stop()
	for waiting := true; ; {
		c.mu.Lock()
		args := w.args
		c.mu.Unlock()
		var res nfs3.NLMRes
		err := c.call(nfs3.NLMProcGranted, &args, &res)
		c.mu.Lock()
		switch {
		case w.over: // it has said itself what it wants
			c.mu.Unlock()
			return
		case err == nil && res.Status == nfs3.NLMGranted:
			c.end(w)
			c.mu.Unlock()
			return
		case !waiting, err == nil && res.Status != nfs3.NLMDeniedGracePeriod:
			c.end(w)
			c.unlock(w.inode, &args.Lock)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		select {
		case <-again.C:
		case <-late.C:
			waiting = false
		case <-w.stop:
			return
		case <-c.n.s.done:
			return
		}
	}
}

// call makes a call to the client's NLM, or without res sends a message there.
func (c *nlmClient) call(proc uint32, args encoder, res interface{ Decode(*xdr.Reader) }) error {
	c.back.Lock()
	defer c.back.Unlock()
	kept := c.backConn != nil
	for {
		if c.backConn == nil {
			var err error
			c.backConn, err = dialProgram(c.n.ctx, c.server, c.key.addr, c.n.bindPort, rpc.ProgramNLM, nfs3.NLMVersion4)
			if err != nil {
				return err
			}
		}
		err := c.exchange(proc, args, res)
		c.backUsed = time.Now()
		if err == nil {
			c.reached.Store(true)
			return nil
		}
		c.backConn.Close()
		c.backConn = nil
		if !kept {
			return err
		}
		kept = false // the client has closed it meanwhile
	}
}

func (c *nlmClient) exchange(proc uint32, args encoder, res interface{ Decode(*xdr.Reader) }) error {
	if res == nil && proc != nfs3.NLMProcNull {
		return c.backConn.send(proc, args)
	}
	r, err := c.backConn.call(proc, args)
	if err != nil || res == nil {
		return err
	}
	res.Decode(&r)
	return r.Err()
}

// post sends a result to a client that has made its request as a message.
func (c *nlmClient) post(proc uint32, res encoder) {
	if c.posts.Add(1) > maxNLMPosts {
		c.posts.Add(-1) // it makes the request again
		return
	}
	c.n.s.running.Go(func() {
		defer c.posts.Add(-1)
		if err := c.call(proc, res, nil); err != nil {
			c.n.s.log.Debug("a client's NLM cannot be reached", "client", c.holder.Name, "error", err)
		}
	})
}

// contested is called when somebody is kept from something by what h holds. If
// that is a client of NLM that is gone, its locks are released soon.
func (n *nlm) contested(h *memstore.Holder) {
	n.mu.Lock()
	c := n.byHolder[h]
	n.mu.Unlock()
	if c == nil || !c.reached.Load() || c.heard() < n.expiry || !c.probing.CompareAndSwap(false, true) {
		return
	}
	n.s.running.Go(func() {
		defer c.probing.Store(false)
		for range 3 {
			if c.call(nfs3.NLMProcNull, nil, nil) == nil || c.heard() < n.expiry {
				return
			}
			select {
			case <-time.After(n.expiry / 40):
			case <-n.s.done:
				return
			}
		}
		n.s.log.Info("a client is gone: its locks are released", "client", c.holder.Name)
		c.mu.Lock()
		c.release()
		c.mu.Unlock()
	})
}

// heard is how long ago the client, or its host, has sent something.
func (c *nlmClient) heard() time.Duration {
	last := time.Unix(0, c.seen.Load())
	if t := c.n.s.heardFrom(c.key.addr); t.After(last) {
		last = t
	}
	return time.Since(last)
}

// release gives up all that the client holds and waits for. Called with c.mu
// held.
func (c *nlmClient) release() {
	for len(c.waits) > 0 {
		c.end(c.waits[0])
	}
	for i, f := range c.files {
		delete(c.files, i)
		f.open.Close()
	}
	for s, o := range c.shares {
		delete(c.shares, s)
		c.n.shares.Add(-1)
		o.Close()
	}
	c.ranges = 0
}

// restart notes the state of the client's NSM, 0 if it does not tell. Another one
// than before says that the client has restarted since it took its locks, and
// so does a notice of an unknown one. Called with c.mu held.
func (c *nlmClient) restart(state int32, notice bool) {
	if state == c.state && state != 0 || state == 0 && !notice {
		return
	}
	if notice || c.state != 0 {
		c.release()
	}
	c.state = state
}

// notified is called when a host says that it has restarted: that of the name,
// with or without its domain, or the only one of the address.
func (n *nlm) notified(addr netip.Addr, name string, state int32) {
	all := n.of(addr)
	for _, c := range all {
		if len(all) == 1 || firstLabel(c.key.name) == firstLabel(name) {
			c.mu.Lock()
			c.restart(state, true)
			c.mu.Unlock()
		}
	}
}

// of is the clients of an address.
func (n *nlm) of(addr netip.Addr) (all []*nlmClient) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, c := range n.clients {
		if key.addr == addr {
			all = append(all, c)
		}
	}
	return all
}

func firstLabel(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// sweep forgets clients that hold nothing, and closes connections to clients.
func (n *nlm) sweep(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, c := range n.clients {
		if now.Sub(time.Unix(0, c.seen.Load())) < nlmIdle || !c.back.TryLock() {
			continue
		}
		if c.backConn != nil && now.Sub(c.backUsed) > nlmIdle {
			c.backConn.Close()
			c.backConn = nil
		}
		if c.backConn == nil && c.mu.TryLock() {
			if len(c.files) == 0 && len(c.shares) == 0 {
				c.gone = true
				delete(n.clients, key)
				delete(n.byHolder, &c.holder)
			}
			c.mu.Unlock()
		}
		c.back.Unlock()
	}
}

// close releases everything, at the server's end, when no more calls are
// executed.
func (n *nlm) close() {
	n.cancel()
	n.mu.Lock()
	n.closed = true
	all := slices.Collect(maps.Values(n.clients))
	n.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		c.gone = true
		c.release()
		c.mu.Unlock()
		c.back.Lock()
		if c.backConn != nil {
			c.backConn.Close()
		}
		c.back.Unlock()
	}
}
