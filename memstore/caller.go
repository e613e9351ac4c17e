package memstore

import "sync/atomic"

// Cred is on whose behalf a call runs: POSIX ids, after the export's squash.
// Uid 0 passes every permission check.
type Cred struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
}

// Member tells whether the credential has the group.
func (c *Cred) Member(gid uint32) bool {
	if c.GID == gid {
		return true
	}
	for _, g := range c.Groups {
		if g == gid {
			return true
		}
	}
	return false
}

// Holder is who can hold state in a store: an NFSv4 client, an SMB lease key,
// the local mount. What one holder holds never conflicts with its own calls.
type Holder struct {
	// Name appears in listings of locks and opens.
	Name string
	// CachesAttrs says that the holder's leases cover the attributes too, as
	// NFSv4's delegations do (RFC 8881 section 10.4) and SMB's leases do not.
	CachesAttrs bool
	// Expired says that the holder was not heard of for long. It keeps what it
	// holds until that is in another's way: then Drop is called, without a lock,
	// which ends all of it, unless the holder is back.
	Expired atomic.Bool
	Drop    func()

	locks atomic.Int64 // ranges that its owners, or its opens, have locked
}

// expired tells whether what h holds is to go. h may be nil.
func (h *Holder) expired() bool { return h != nil && h.Expired.Load() }

// drop ends what the holder holds, and returns what to wait for until it has.
func (h *Holder) drop() *Wait {
	w := &Wait{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		h.Drop()
	}()
	return w
}

// Caller accompanies every call that a client causes. It is not kept beyond
// the call, and may live on the stack.
type Caller struct {
	Cred
	Holder *Holder // nil: holds nothing, as an NFSv3 client
	// Open is through which open a name is changed, where a protocol does it so:
	// what that one denies to others does not stop the call. nil: none.
	Open *Open
	// Unsettled collects what the caller's changes have made stale in the mount
	// on this machine. Such a change must not be acknowledged to anybody before
	// Unsettled.Settle has returned. nil: every call settles what it changes.
	Unsettled *Unsettled
	// InPlace says that a process of this machine may wait for what the caller
	// does after the call. A call that would wait for such a process then answers
	// a Wait that is over: it is to be tried again without InPlace, where nothing
	// else waits for its end.
	InPlace bool
}

// Root is the caller for work of the server itself.
func Root() *Caller { return &Caller{} }
