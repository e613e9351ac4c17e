package gonfs

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"net"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	gonfs "github.com/willscott/go-nfs"

	"ramserver/export"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// handler is what go-nfs asks on behalf of one connection. It is used by one
// goroutine.
type handler struct {
	server *Server
	peer   *export.Peer
	trees  map[uint32]*tree // by export

	call int      // number of the running call
	cred rpc.Cred // its credential

	// go-nfs asks for the handle of a special file before it makes it, and
	// sends what it got after. due is filled in between.
	due     []byte
	duePath string
}

var (
	_ gonfs.Handler        = (*handler)(nil)
	_ gonfs.CachingHandler = (*handler)(nil)
)

func newHandler(s *Server, p *export.Peer) *handler {
	return &handler{server: s, peer: p, trees: make(map[uint32]*tree)}
}

// begin tells as whom the next call runs.
func (h *handler) begin(c *rpc.Cred) {
	h.call++
	h.cred = *c
	h.cred.Machine = "" // aliases the record
	h.due = nil
}

func (h *handler) tree(e *export.Export) *tree {
	t := h.trees[e.ID]
	if t == nil {
		t = &tree{id: e.ID, handler: h, export: e, root: e.Root}
		h.trees[e.ID] = t
	}
	return t
}

// Mount resolves a path as the native engine does. Links are not followed.
func (h *handler) Mount(_ context.Context, _ net.Conn, req gonfs.MountRequest) (gonfs.MountStatus, billy.Filesystem, []gonfs.AuthFlavor) {
	e, rest, ok := h.server.exports.Find(string(req.Dirpath))
	switch {
	case !ok:
		return gonfs.MountStatusErrNoEnt, nil, nil
	case !e.Admit(h.peer):
		return gonfs.MountStatusErrAcces, nil, nil
	}
	t := *h.tree(e)
	for name := range strings.SplitSeq(rest, "/") {
		if name == "" {
			continue
		}
		i, err := t.root.Lookup(t.caller(), name)
		if err != nil {
			return mountStatus(err), nil, nil
		}
		t.root = i
	}
	if t.root.Type() != memstore.TypeDir {
		return gonfs.MountStatusErrNotDir, nil, nil
	}
	return gonfs.MountStatusOk, &t, []gonfs.AuthFlavor{gonfs.AuthFlavorUnix, gonfs.AuthFlavorNull}
}

func mountStatus(err error) gonfs.MountStatus {
	switch err {
	case memstore.ErrAccess:
		return gonfs.MountStatusErrAcces
	case memstore.ErrNotDir:
		return gonfs.MountStatusErrNotDir
	case memstore.ErrNameTooLong:
		return gonfs.MountStatusErrNameTooLong
	case memstore.ErrInvalid:
		return gonfs.MountStatusErrInval
	case memstore.ErrNotExist, memstore.ErrStale:
		return gonfs.MountStatusErrNoEnt
	}
	return gonfs.MountStatusErrServerFault
}

// Change returns the tree itself, which makes special files, too.
func (h *handler) Change(f billy.Filesystem) billy.Change { return f.(*tree) }

// FSStat tells what the store has left. It has no quotas: what is free is
// free for everybody.
func (h *handler) FSStat(_ context.Context, f billy.Filesystem, s *gonfs.FSStat) error {
	st := f.(*tree).export.Store.Statfs()
	s.TotalSize = uint64(st.TotalBytes)
	s.FreeSize = uint64(max(0, st.TotalBytes-st.UsedBytes))
	s.AvailableSize = s.FreeSize
	s.TotalFiles = uint64(st.TotalInodes)
	s.FreeFiles = uint64(max(0, st.TotalInodes-st.UsedInodes))
	s.AvailableFiles = s.FreeFiles
	return nil
}

// ToHandle makes the handle of a path, and of what is not there one that is
// stale.
func (h *handler) ToHandle(f billy.Filesystem, path []string) []byte {
	t, ok := f.(*tree)
	if !ok { // of a MNT that failed
		return nil
	}
	if len(path) == 0 {
		return h.server.mask.put(t.export, t.root)
	}
	p := t.Join(path...)
	i, err := t.lookup(p)
	if err != nil {
		h.due, h.duePath = append([]byte(nil), noHandle[:]...), p
		return h.due
	}
	return h.server.mask.put(t.export, i)
}

// FromHandle makes a path of a handle, see tree. It fails for handles that are
// not the peer's to use.
func (h *handler) FromHandle(fh []byte) (billy.Filesystem, []string, error) {
	e, i, err := h.server.mask.find(h.server.exports, fh)
	if err != nil {
		return nil, nil, err
	}
	if !e.Admit(h.peer) {
		return nil, nil, memstore.ErrAccess
	}
	t := h.tree(e)
	parent := i
	if i.Type() == memstore.TypeDir && i != e.Root {
		if p := i.Parent(); p != nil {
			parent = p
		}
	}
	return t, []string{t.token(parent), string(fh)}, nil
}

// InvalidateHandle has nothing to do: handles go with their inodes.
func (h *handler) InvalidateHandle(billy.Filesystem, []byte) error { return nil }

// HandleLimit bounds the entries of a READDIR's reply, which its size bounds
// already.
func (h *handler) HandleLimit() int { return 1 << 20 }

// VerifierFor keeps a listing and gives it a number.
func (h *handler) VerifierFor(path string, contents []fs.FileInfo) uint64 {
	return h.server.listings.add(path, contents)
}

// DataForVerifier returns the listing of a number, or nil.
func (h *handler) DataForVerifier(path string, verifier uint64) []fs.FileInfo {
	return h.server.listings.find(path, verifier)
}

// listings keeps what READDIR is listing, so that a cookie, which go-nfs makes of
// the position in it, stays good while the directory changes.
type listings struct {
	mu    sync.Mutex
	all   []listing // oldest first
	names int       // in all of them
}

type listing struct {
	verifier uint64
	path     string
	contents []fs.FileInfo
}

// Listings that are kept besides the newest.
const (
	maxListings = 256
	maxNames    = 1 << 16
)

func (l *listings) add(path string, contents []fs.FileInfo) uint64 {
	// Not 0, which is the first call's. It cannot be guessed: who knows it was
	// permitted to list the directory.
	verifier := rand.Uint64() | 1
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, listing{verifier, path, contents})
	l.names += len(contents)
	for len(l.all) > 1 && (len(l.all) > maxListings || l.names > maxNames) {
		l.names -= len(l.all[0].contents)
		l.all[0] = listing{}
		l.all = l.all[1:]
	}
	return verifier
}

func (l *listings) find(path string, verifier uint64) []fs.FileInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.all {
		if k.verifier == verifier && k.path == path {
			return k.contents
		}
	}
	return nil
}
