package smb

import (
	"slices"
	"strings"

	"ramserver/export"
	"ramserver/export/smb/wire"
)

// tree is a session's use of a share.
//
// Fields are constant, or protected by the session's mu.
type tree struct {
	s        *session
	id       uint32
	exp      *export.Export // nil: IPC$
	mustSeal bool
}

// ipcShare is the share of the named pipes.
const ipcShare = "IPC$"

// Rights of a share, MS-SMB2 section 2.2.13.1.
const (
	rightsAll      = 0x001F01FF
	rightsReadOnly = 0x001200A9
)

// treeConnect is TREE_CONNECT, MS-SMB2 section 3.3.5.7.
func (r *request) treeConnect() wire.Status {
	s := r.s
	if r.c.dialect == wire.Dialect311 && !r.signed && r.sealed == nil {
		// Nobody else must be able to take the client somewhere.
		r.fatal = errUnsigned
		return wire.StatusAccessDenied
	}
	var q wire.TreeConnectRequest
	if !q.Decode(r.msg) {
		return wire.StatusInvalidParameter
	}
	_, name, ok := cutLast(strings.TrimPrefix(q.Path, `\\`), `\`)
	if !ok {
		return wire.StatusBadNetworkName
	}
	t := &tree{s: s}
	reply := wire.TreeConnectReply{ShareType: wire.ShareDisk, MaximalAccess: rightsAll}
	if strings.EqualFold(name, ipcShare) {
		reply.ShareType = wire.SharePipe
	} else {
		if t.exp = r.c.s.share(name); t.exp == nil {
			return wire.StatusBadNetworkName
		}
		if !t.exp.Admit(r.c.peer) {
			return wire.StatusAccessDenied
		}
		if t.exp.ReadOnly {
			reply.MaximalAccess = rightsReadOnly
		}
		if slices.Contains(r.c.s.cfg.Encrypted, t.exp.Name) {
			if r.c.cipher == 0 {
				return wire.StatusAccessDenied
			}
			t.mustSeal = true
			reply.ShareFlags |= wire.ShareEncryptData
		}
	}
	if len(s.trees) >= maxTrees {
		return wire.StatusInsufficientResources
	}
	for t.id == 0 || t.id == ^uint32(0) || s.trees[t.id] != nil {
		s.ids++
		t.id = s.ids
	}
	s.trees[t.id] = t
	r.h.TreeID, r.treeID = t.id, t.id
	reply.Encode(r.w)
	return wire.StatusOK
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// share finds an export by the name of its share, without regard to case.
func (s *Server) share(name string) *export.Export {
	if e := s.cfg.Exports.ByName(name); e != nil {
		return e
	}
	for _, e := range s.cfg.Exports.All() {
		if strings.EqualFold(e.Name, name) {
			return e
		}
	}
	return nil
}

func (t *tree) name() string {
	if t.exp == nil {
		return ipcShare
	}
	return t.exp.Name
}

// treeDisconnect is TREE_DISCONNECT, MS-SMB2 section 3.3.5.8.
func (r *request) treeDisconnect() wire.Status {
	r.t.end()
	wire.EncodeEmpty(r.w)
	return wire.StatusOK
}

// end closes what is open by the tree. Called with the session's mu held.
func (t *tree) end() {
	for _, f := range t.s.files {
		if f.t == t {
			// As Windows, where the lock in the way is closed first.
			f.end(wire.StatusOK)
		}
	}
	delete(t.s.trees, t.id)
	t.s.c.endPending(func(r *request) bool { return r.s == t.s && r.t == t }, wire.StatusCancelled)
}

// echo is ECHO, MS-SMB2 section 3.3.5.12.
func (r *request) echo() wire.Status {
	wire.EncodeEmpty(r.w)
	return wire.StatusOK
}
