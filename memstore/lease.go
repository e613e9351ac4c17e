package memstore

// rights are what a lease lets its holder cache: data read, data written, the
// open itself.
type rights uint8

const (
	cacheRead rights = 1 << iota
	cacheWrite
	cacheHandle
)

// lease is a caching grant. NFS calls it a delegation, SMB an oplock or lease.
type lease struct {
	holder  *Holder
	granted rights
	broken  *Wait // done when the lease is given up or revoked
}

// operation is what a call means to others' leases.
type operation uint8

const (
	opRead    operation = iota // open for reading, READ
	opWrite                    // open for writing, WRITE, truncate
	opGetAttr                  // attributes asked for
	opSetAttr                  // attributes changed
	opLink                     // a name added
	opUnname                   // remove, rename, replaced by a rename
)

// leaseBreaks is the table of package doc's "Leases".
var leaseBreaks = [...]rights{
	opRead:    cacheWrite,
	opWrite:   cacheRead | cacheWrite,
	opGetAttr: cacheWrite,
	opSetAttr: cacheWrite,
	opLink:    cacheWrite,
	opUnname:  cacheHandle,
}

// breakLeases returns what to wait for before op may be done on behalf of c,
// or nil. Called with i.mu held.
func (i *Inode) breakLeases(c *Caller, op operation) *Wait {
	if i.x == nil {
		return nil
	}
	for _, l := range i.x.leases {
		if l.granted&leaseBreaks[op] == 0 || l.holder == c.Holder {
			continue
		}
		if op == opGetAttr && !l.holder.AnswersGetattr {
			continue
		}
		return l.broken
	}
	return nil
}
