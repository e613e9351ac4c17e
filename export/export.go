// Package export says what a server offers, to whom, and as which credential
// a request runs. It knows nothing of any protocol.
//
// An [Export] is a directory of a store with its rules; a [Table] is all
// exports of a server and does not change while it serves. A [Peer] is the
// other end of one connection. Two questions are asked of an export:
// [Export.Admit], whether the peer may use it at all, and [Export.Cred], as
// whom a request of that peer acts.
//
// # Whom to believe
//
// AUTH_SYS (RFC 5531 appendix A) is a claim that nothing proves. It is judged
// by where it comes from:
//
//   - On Linux, from this machine: by the owner of the peer's socket, whom the
//     kernel names. User 0, as whom the kernel's NFS client connects, is
//     believed. Anybody else is who they are, whatever they claim.
//   - From elsewhere: believed from a source port below 1024, which only
//     root of that machine can use, or from any with InsecurePorts.
//   - Otherwise, and without AUTH_SYS: the anonymous user.
//
// Then user 0 and group 0 may be squashed to the anonymous ones.
package export

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"ramserver/memstore"
)

// DefaultAnon is the user and group of those who are nobody, as Linux's
// overflow ids.
var DefaultAnon = IDs{UID: 65534, GID: 65534}

// maxName bounds an export's name, in bytes.
const maxName = 255

// Export is a directory of a store that is offered to clients. It is constant
// once it is in a Table.
type Export struct {
	// Name is what clients mount it by, as "/name".
	Name string
	// ID names the export in handles. New sets it; it follows from the name,
	// so that handles are good after a restart.
	ID uint32
	// Store holds the files; Root is a directory of it and the boundary of
	// the export.
	Store *memstore.Store
	Root  *memstore.Inode
	// ReadOnly refuses every change.
	ReadOnly bool
	// Allow lists the networks that may use the export, besides this machine
	// itself.
	Allow []netip.Prefix
	// Squash says whose claims become the anonymous user, Anon.
	Squash Squash
	Anon   IDs
	// InsecurePorts believes AUTH_SYS from source ports of 1024 and above.
	InsecurePorts bool
}

// Table is all exports of a server.
type Table struct {
	all    []*Export
	byID   map[uint32]*Export
	byName map[string]*Export
}

// New makes a table. The first export is the default one, which clients reach
// as "/" too. It sets the ID of each.
func New(exports ...*Export) (*Table, error) {
	if len(exports) == 0 {
		return nil, errors.New("no exports")
	}
	t := &Table{
		all:    exports,
		byID:   make(map[uint32]*Export, len(exports)),
		byName: make(map[string]*Export, len(exports)),
	}
	for _, e := range exports {
		if err := CheckName(e.Name); err != nil {
			return nil, err
		}
		if e.Store == nil || e.Root == nil || e.Root.Store() != e.Store || e.Root.Type() != memstore.TypeDir {
			return nil, fmt.Errorf("export %q: its root is not a directory of its store", e.Name)
		}
		if t.byName[e.Name] != nil {
			return nil, fmt.Errorf("export %q: there are two of that name", e.Name)
		}
		h := fnv.New32a()
		h.Write([]byte(e.Name))
		e.ID = h.Sum32()
		if other := t.byID[e.ID]; other != nil {
			return nil, fmt.Errorf("exports %q and %q: their names give the same id; change one", other.Name, e.Name)
		}
		t.byName[e.Name] = e
		t.byID[e.ID] = e
	}
	return t, nil
}

// CheckName tells whether s can be an export's name: 1 to 255 bytes of UTF-8
// without white space, control characters, "/", "\", "," and "=".
func CheckName(s string) error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`/\,=`, r)
	}
	if s == "" || s == "." || s == ".." || len(s) > maxName || !utf8.ValidString(s) || strings.ContainsFunc(s, bad) {
		return fmt.Errorf(`export name %q: want 1 to %d bytes without white space, "/", "\", "," and "="`, s, maxName)
	}
	return nil
}

// ByID finds an export by the id in a handle; nil if there is none.
func (t *Table) ByID(id uint32) *Export { return t.byID[id] }

// ByName finds an export by its name; nil if there is none.
func (t *Table) ByName(name string) *Export { return t.byName[name] }

// All is every export, the default one first.
func (t *Table) All() []*Export { return t.all }

// Find resolves a path that a client wants to mount. "/name" and "/name/sub"
// are the export of that name and what is below it; "/" and any other path
// belong to the default export. rest is the path below the export's root
// without slashes around it, "" for the root itself. A path with ".." is
// refused: ok is false.
func (t *Table) Find(path string) (e *Export, rest string, ok bool) {
	var parts []string
	for p := range strings.SplitSeq(path, "/") {
		switch p {
		case "", ".":
		case "..":
			return nil, "", false
		default:
			parts = append(parts, p)
		}
	}
	if len(parts) > 0 {
		if e := t.byName[parts[0]]; e != nil {
			return e, strings.Join(parts[1:], "/"), true
		}
	}
	return t.all[0], strings.Join(parts, "/"), true
}

// Admits tells whether some export is open to an address.
func (t *Table) Admits(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() {
		return true
	}
	for _, e := range t.all {
		if e.allows(a) {
			return true
		}
	}
	return false
}

// Admit tells whether the peer may use the export: this machine always may,
// others by Allow.
func (e *Export) Admit(p *Peer) bool {
	return p.local || e.allows(p.addr.Addr())
}

func (e *Export) allows(a netip.Addr) bool {
	for _, n := range e.Allow {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// Cred is the credential that a request of the peer runs with. sys says that
// it came with AUTH_SYS, and claimed uid, gid and groups. The result may use
// the memory of groups, and changes it.
func (e *Export) Cred(p *Peer, uid, gid uint32, groups []uint32, sys bool) memstore.Cred {
	anon := memstore.Cred{UID: e.Anon.UID, GID: e.Anon.GID}
	reserved := p.addr.Port() < 1024
	switch {
	case !sys, p.owner == ownerGone, e.Squash == SquashAll:
		return anon
	case p.owner == ownerUnknown && !reserved && !e.InsecurePorts:
		return anon
	case p.owner == ownerKnown && p.uid != 0:
		uid = p.uid
		if !p.member(gid) {
			gid = p.gid
			if !p.hasGID {
				gid = anon.GID
			}
		}
		kept := groups[:0]
		for _, g := range groups {
			if p.member(g) {
				kept = append(kept, g)
			}
		}
		groups = kept
	}
	squash := e.Squash == SquashRoot
	if e.Squash == SquashDefault {
		squash = !p.local || p.owner != ownerKnown && !reserved
	}
	if squash {
		if uid == 0 {
			uid = anon.UID
		}
		if gid == 0 {
			gid = anon.GID
		}
		for i, g := range groups {
			if g == 0 {
				groups[i] = anon.GID
			}
		}
	}
	return memstore.Cred{UID: uid, GID: gid, Groups: groups}
}
