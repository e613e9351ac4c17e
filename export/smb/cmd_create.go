package smb

import (
	"encoding/binary"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Modes of what clients make, who know none.
const (
	newFileMode = 0o644
	newDirMode  = 0o755
)

const (
	// Bits of an access mask that mean nothing.
	badRights = 0x0CE0FE00
	// Bits of attributes that mean nothing.
	badAttrs = 0xFFFF8048
	// Options that mean nothing, and that there are not: to complete a tree
	// connect, to open by number, to reserve a filter.
	badOptions  = 0xFF000000
	lackOptions = 1<<7 | wire.OptOpenByID | 1<<20

	maxImpersonation = 3
)

// newAttrs are the attributes that a new file gets from its CREATE.
const newAttrs = keptAttrs &^ (wire.AttrSparse | wire.AttrNotIndexed)

// mapGeneric replaces generic rights by those that they stand for, MS-SMB2 section
// 2.2.13.1.1.
func mapGeneric(access uint32) uint32 {
	for _, g := range []struct{ generic, rights uint32 }{
		{rightAll, rightsFull}, {rightGenExecute, 0x001200A0}, {rightGenWrite, 0x00120116}, {rightGenRead, 0x00120089},
	} {
		if access&g.generic != 0 {
			access = access&^g.generic | g.rights
		}
	}
	return access
}

// creating is a CREATE while it is executed.
type creating struct {
	r *request
	q *wire.CreateRequest
	path
	access  uint32 // that is asked for, without generic ones
	granted uint32
	attrs   uint32

	open   *memstore.Open
	base   *memstore.Open // of the file, where open is that of a stream
	attr   memstore.Attr
	action uint32

	descriptor []byte // of a new file
	eas        []byte
	allocation uint64 // bytes, of a file that is new or replaced
	maxAccess  bool   // are asked for
	diskID     bool
	apple      []byte // answer to a Mac
}

// create is CREATE, MS-SMB2 section 3.3.5.9; what it does to files is MS-FSA
// section 2.1.5.1.
func (r *request) create() wire.Status {
	var q wire.CreateRequest
	if !q.Decode(r.msg) {
		return wire.StatusInvalidParameter
	}
	if r.t.exp == nil {
		return r.createPipe(&q)
	}
	k := creating{r: r, q: &q, access: mapGeneric(q.Access), attrs: q.Attributes}
	status := k.check()
	if status == wire.StatusOK {
		k.path, status = r.find(q.Name)
	}
	if status == wire.StatusOK {
		status = k.run()
	}
	if status != wire.StatusOK {
		return status
	}
	if k.action != wire.ActionOpened && k.allocation > 0 && k.args().Access&memstore.AccessWrite != 0 {
		ch, err := k.open.Inode().Allocate(&r.who, k.open, 0, int64(min(k.allocation, memstore.MaxFileSize)), true)
		if err != nil {
			k.abandon()
			return r.status(err)
		}
		k.attr = ch.After
	}
	f := &file{
		open: k.open, base: k.base, inode: k.inode, dir: k.dir, name: k.name, stream: k.stream, access: k.granted, options: q.Options,
		deleteOnClose: q.Options&wire.OptDeleteOnClose != 0,
	}
	if !r.addFile(f) {
		k.abandon()
		return wire.StatusInsufficientResources
	}
	return k.reply(f)
}

// check looks at what can be judged without the file.
func (k *creating) check() wire.Status {
	q := k.q
	const both = wire.OptDirectory | wire.OptNonDirectory
	status := wire.StatusOK
	switch {
	case q.Impersonation > maxImpersonation:
		return wire.StatusInvalidImpersonation
	case q.Access == 0, q.Access&badRights != 0:
		return wire.StatusAccessDenied
	case q.Disposition > wire.FileOverwriteIf, q.Options&badOptions != 0, q.Attributes&badAttrs != 0,
		q.Share&^(wire.ShareRead|wire.ShareWrite|wire.ShareDelete) != 0, q.Options&both == both:
		return wire.StatusInvalidParameter
	case q.Options&lackOptions != 0:
		return wire.StatusNotSupported
	case q.Access&rightSystem != 0:
		return wire.StatusPrivilegeNotHeld
	case q.Options&wire.OptDirectory != 0 && (q.Disposition == wire.FileSupersede || q.Disposition >= wire.FileOverwrite):
		return wire.StatusInvalidParameter
	case q.Options&wire.OptDeleteOnClose != 0 && k.access&(rightDelete|rightMaximum) == 0:
		return wire.StatusInvalidParameter
	}
	ok := q.Contexts(func(c wire.CreateContext) {
		switch c.Name {
		case "MxAc":
			k.maxAccess = true
		case "QFid":
			k.diskID = true
		case "SecD":
			k.descriptor = c.Data
		case "ExtA":
			k.eas = c.Data
		case "TWrp", "DHnC", "DH2C":
			status = wire.StatusNameNotFound // no snapshots, nothing durable
		case "AAPL":
			if k.apple = k.r.askApple(c.Data); k.apple == nil {
				status = wire.StatusInvalidParameter
			}
		case "AlSi":
			if len(c.Data) != 8 {
				status = wire.StatusInvalidParameter
				return
			}
			k.allocation = binary.LittleEndian.Uint64(c.Data)
		}
	})
	if !ok {
		return wire.StatusInvalidParameter
	}
	return status
}

// run opens what is there, or makes it.
func (k *creating) run() wire.Status {
	// Somebody may make or remove the name between the two.
	for range 10 {
		status := k.step()
		if status != errAgain {
			return status
		}
	}
	return wire.StatusSharingViolation
}

// errAgain says that the name has changed meanwhile.
const errAgain = ^wire.Status(0)

func (k *creating) step() wire.Status {
	q, r := k.q, k.r
	switch {
	case k.data && q.Options&wire.OptDirectory != 0:
		return wire.StatusNotADirectory
	case k.stream != "":
		return k.openStream()
	case k.inode == nil && (q.Disposition == wire.FileOpen || q.Disposition == wire.FileOverwrite):
		return wire.StatusNameNotFound
	case k.inode == nil:
		return k.make()
	case q.Disposition == wire.FileCreate:
		if k.inode.Doomed() {
			return wire.StatusDeletePending
		}
		return wire.StatusNameCollision
	}
	var err error
	if k.attr, err = k.inode.GetAttr(&r.who); err != nil {
		return k.changed(err)
	}
	switch k.attr.Type {
	case memstore.TypeFile:
		if q.Options&wire.OptDirectory != 0 {
			return wire.StatusNotADirectory
		}
	case memstore.TypeDir:
		if q.Options&wire.OptNonDirectory != 0 || k.data {
			return wire.StatusFileIsADirectory
		}
		if q.Disposition != wire.FileOpen && q.Disposition != wire.FileOpenIf {
			return wire.StatusNameCollision
		}
	case memstore.TypeSymlink:
		if q.Options&wire.OptOpenReparse == 0 {
			return r.stopOnSymlink(k.inode, "", false)
		}
	default:
		if q.Options&wire.OptOpenReparse == 0 {
			return wire.StatusReparseNotHandled
		}
	}
	return k.take()
}

// changed is an error of something that was there just now.
func (k *creating) changed(err error) wire.Status {
	if err != memstore.ErrStale && err != memstore.ErrNotExist && err != memstore.ErrExist {
		return k.r.status(err)
	}
	i, stored, err := k.r.lookup(k.dir, k.name)
	switch {
	case err == memstore.ErrNotExist:
		k.inode = nil
	case err != nil:
		return k.r.status(err)
	default:
		k.inode, k.name = i, stored
	}
	return errAgain
}

// take opens an inode that is there.
func (k *creating) take() wire.Status {
	q, r := k.q, k.r
	kept := uint32(k.attr.DOS)
	replaced := q.Disposition == wire.FileSupersede || q.Disposition >= wire.FileOverwrite
	need := k.access
	if replaced {
		if k.attr.Type != memstore.TypeFile {
			return wire.StatusAccessDenied
		}
		// What is hidden may be replaced by who knows that it is.
		if hidden := uint32(wire.AttrHidden | wire.AttrSystem); kept&hidden&^k.attrs != 0 || kept&wire.AttrReadOnly != 0 {
			return wire.StatusAccessDenied
		}
		need |= rightWriteData
	}
	most := r.maxRights(k.dir, k.inode, &k.attr)
	if kept&wire.AttrReadOnly != 0 && k.attr.Type == memstore.TypeFile {
		switch {
		case q.Options&wire.OptDeleteOnClose != 0:
			return wire.StatusCannotDelete
		case need&(rightWriteData|rightAppend) != 0:
			return wire.StatusAccessDenied
		}
		most &^= rightWriteData | rightAppend | rightDeleteChild
	}
	if need&^(most|rightMaximum) != 0 {
		return wire.StatusAccessDenied
	}
	k.granted = k.access &^ rightMaximum
	if k.access&rightMaximum != 0 {
		k.granted |= most
	}
	if q.Options&wire.OptDeleteOnClose != 0 {
		switch {
		case k.granted&rightDelete == 0:
			return wire.StatusAccessDenied
		case k.dir == nil:
			return wire.StatusAccessDenied
		}
	}
	args := k.args()
	if replaced {
		args.Access |= memstore.AccessWrite
	}
	var err error
	if k.open, err = k.inode.Open(&r.who, args); err != nil {
		return k.changed(err)
	}
	k.action = wire.ActionOpened
	if !replaced {
		return wire.StatusOK
	}
	k.action = wire.ActionOverwritten
	if q.Disposition == wire.FileSupersede {
		k.action = wire.ActionSuperseded
	}
	return k.empty(args)
}

// empty takes away what a file was that is replaced.
func (k *creating) empty(args memstore.OpenArgs) wire.Status {
	r := k.r
	ch, err := k.inode.SetAttr(&r.who, k.open, &memstore.SetAttr{
		Mask: memstore.SetSize | memstore.SetLocked | memstore.SetDOS,
		DOS:  uint16(k.attrs&newAttrs | wire.AttrArchive),
	})
	k.attr = ch.After
	k.inode.DropStreams()
	if err == nil && args.Access != k.args().Access {
		err = k.open.Change(&r.who, k.args())
	}
	if err != nil {
		k.open.Close()
		return r.status(err)
	}
	return wire.StatusOK
}

// args are the access and share mode as the store has them.
func (k *creating) args() memstore.OpenArgs {
	a := memstore.OpenArgs{Pin: true}
	g := k.granted
	dir := k.stream == "" && (k.q.Options&wire.OptDirectory != 0 || k.inode != nil && k.inode.Type() == memstore.TypeDir)
	if g&(rightReadData|rightExecute) != 0 && (!dir || g&rightReadData != 0) {
		a.Access |= memstore.AccessRead
	}
	if g&(rightWriteData|rightAppend) != 0 && !dir {
		a.Access |= memstore.AccessWrite
	}
	if g&rightDelete != 0 {
		a.Access |= memstore.AccessDelete
	}
	const data = rightReadData | rightWriteData | rightAppend | rightExecute | rightDelete
	if g&data == 0 {
		return a // who looks only at attributes denies nothing
	}
	for _, s := range []struct {
		share uint32
		deny  memstore.Access
	}{{wire.ShareRead, memstore.AccessRead}, {wire.ShareWrite, memstore.AccessWrite}, {wire.ShareDelete, memstore.AccessDelete}} {
		if k.q.Share&s.share == 0 {
			a.Deny |= s.deny
		}
	}
	return a
}

// make makes a file or a directory.
func (k *creating) make() wire.Status {
	q, r := k.q, k.r
	switch {
	case r.t.exp.ReadOnly:
		return wire.StatusMediaWriteProtected
	case k.attrs&wire.AttrEncrypted != 0:
		return wire.StatusAccessDenied // nothing is
	}
	a := memstore.Create{Type: memstore.TypeFile, Set: memstore.SetAttr{
		Mask: memstore.SetMode | memstore.SetDOS, Mode: newFileMode, DOS: uint16(k.attrs&newAttrs | wire.AttrArchive),
	}}
	if q.Options&wire.OptDirectory != 0 {
		a.Type, a.Set.Mode, a.Set.DOS = memstore.TypeDir, newDirMode, uint16(k.attrs&newAttrs)
	} else if k.attrs&wire.AttrReadOnly != 0 && q.Options&wire.OptDeleteOnClose != 0 {
		return wire.StatusCannotDelete
	}
	k.granted = k.access &^ rightMaximum
	if k.access&rightMaximum != 0 {
		k.granted |= rightsFull
	}
	args := k.args()
	a.Open = &args
	if k.descriptor != nil {
		now := memstore.Attr{Mode: a.Set.Mode, UID: r.who.UID, GID: r.who.GID}
		set, err := parseSD(k.descriptor, secDACL, &now)
		if err != nil {
			return wire.StatusInvalidSecurityDescriptor
		}
		a.Set.Mode = set.Mode
	}
	made, err := k.dir.Create(&r.who, k.name, &a)
	if err != nil {
		return k.changed(err)
	}
	k.inode, k.open, k.attr = made.Inode, made.Open, made.Attr
	k.action = wire.ActionCreated
	if len(k.eas) > 0 {
		if status := r.setEAs(k.inode, k.eas); status != wire.StatusOK {
			k.undo()
			return status
		}
	}
	return wire.StatusOK
}

// undo removes what was made.
func (k *creating) undo() {
	if k.open.Doom(k.dir, k.name) == nil {
		k.open.Close()
	}
}

// reply appends the reply, with the contexts that were asked for.
func (k *creating) reply(f *file) wire.Status {
	r := k.r
	info := r.fileInfo(f, &k.attr)
	if k.quota {
		info.Times, info.Attributes = wire.FileTimes{}, info.Attributes|wire.AttrHidden|wire.AttrSystem|wire.AttrArchive
	}
	p := wire.CreateReply{
		Action: k.action, Times: info.Times, Allocation: info.Allocation, Size: info.Size, Attributes: info.Attributes,
		ID: wire.FileID{Persistent: f.id, Volatile: f.id},
	}
	le := binary.LittleEndian
	if k.maxAccess {
		b := le.AppendUint32(nil, 0)
		p.Contexts = append(p.Contexts, wire.CreateContext{Name: "MxAc", Data: le.AppendUint32(b, r.maxRights(k.dir, k.inode, &k.attr))})
	}
	if k.diskID {
		b := le.AppendUint64(nil, info.Index)
		b = le.AppendUint64(b, info.Volume)
		p.Contexts = append(p.Contexts, wire.CreateContext{Name: "QFid", Data: append(b, make([]byte, 16)...)})
	}
	if k.apple != nil {
		p.Contexts = append(p.Contexts, wire.CreateContext{Name: "AAPL", Data: k.apple})
	}
	p.Encode(r.w)
	return wire.StatusOK
}

// createPipe opens a pipe of IPC$.
func (r *request) createPipe(q *wire.CreateRequest) wire.Status {
	p := openPipe(wire.String(q.Name), rpcHost{name: r.c.s.logons.Name, shares: r.c.shares, users: r.c.users})
	if p == nil {
		return wire.StatusNameNotFound
	}
	f := &file{pipe: p, access: mapGeneric(q.Access)}
	if !r.addFile(f) {
		return wire.StatusInsufficientResources
	}
	reply := wire.CreateReply{Action: wire.ActionOpened, Allocation: 4096, Attributes: wire.AttrNormal, ID: wire.FileID{Persistent: f.id, Volatile: f.id}}
	reply.Encode(r.w)
	return wire.StatusOK
}

// shares lists what the client may use.
func (c *conn) shares() []rpcShare {
	var all []rpcShare
	for _, e := range c.s.cfg.Exports.All() {
		if e.Admit(c.peer) {
			all = append(all, rpcShare{name: e.Name})
		}
	}
	return append(all, rpcShare{name: ipcShare, remark: "IPC", ipc: true})
}

// users are those who may log on.
func (c *conn) users() []User {
	all, _ := c.s.cfg.Users.All() // without those of a file that cannot be read
	return all
}
