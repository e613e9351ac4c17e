package nfs

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// trace logs a request and its reply as one line: who, what, on which file,
// what became of it and how long it took.
func (k *call) trace(p *procedure, args xdr.Reader, results []byte, stat rpc.AcceptStat, began time.Time) {
	answer := stat.String()
	if stat == rpc.Success {
		answer = "OK"
		if k.said != nil {
			answer = k.said.String()
		} else if k.failed && len(results) >= 4 { // not every result begins with a status
			answer = statusText(p, binary.BigEndian.Uint32(results))
		}
	}
	text := ""
	switch {
	case p.compound:
		text = k.m.describe(args)
	case p.args != nil:
		text = describe(p.args(&args))
	}
	k.c.s.log.Debug(p.name, "args", text, "answer", answer, "bytes", len(results)+k.pages,
		"uid", k.who.UID, "gid", k.who.GID, "peer", k.c.peer, "xid", k.hdr.XID, "took", time.Since(began))
}

func statusText(p *procedure, status uint32) string {
	if p.compound {
		return nfs4.Status(status).String()
	}
	return nfs3.Status(status).String()
}

// describe is the operations of a COMPOUND and their main arguments, as far as
// they can be decoded.
func (m *compound) describe(args xdr.Reader) string {
	var head nfs4.CompoundArgs
	head.Decode(&args)
	var b strings.Builder
	fmt.Fprintf(&b, "4.%d", head.Minor)
	for range min(head.Count, maxOps) {
		number := nfs4.Op(args.Uint32())
		if args.Err() != nil {
			break
		}
		fmt.Fprintf(&b, " %v", number)
		if number >= nfs4.OpEnd {
			break
		}
		op := &operations[number]
		text := ""
		switch {
		case op.args != nil:
			text = describe(op.args(&args))
		case op.run == nil, number == nfs4.OpTestStateid, number == nfs4.OpSecInfoNoName:
			return b.String() // whose arguments are not known here
		}
		if args.Err() != nil {
			break
		}
		if text != "" {
			fmt.Fprintf(&b, " %s", text)
		}
	}
	return b.String()
}

// decode makes the decoder of a procedure's arguments that the trace uses.
func decode[A any, P interface {
	*A
	Decode(*xdr.Reader)
}](r *xdr.Reader) any {
	var a A
	P(&a).Decode(r)
	return a
}

// describe is the arguments in short.
func describe(args any) string {
	switch a := args.(type) {
	case nfs3.FHArgs:
		return fileText(a.FH)
	case nfs3.SetAttrArgs:
		return fileText(a.FH) + sattrText(&a.Attr)
	case nfs3.DirOp:
		return nameText(&a)
	case nfs3.AccessArgs:
		return fmt.Sprintf("%s want %#x", fileText(a.FH), a.Access)
	case nfs3.ReadArgs:
		return fmt.Sprintf("%s %d+%d", fileText(a.FH), a.Offset, a.Count)
	case nfs3.WriteArgs:
		return fmt.Sprintf("%s %d+%d", fileText(a.FH), a.Offset, a.Count)
	case nfs3.CreateArgs:
		how := [...]string{"unchecked", "guarded", "exclusive"}[a.Mode]
		return nameText(&a.Where) + " " + how + sattrText(&a.Attr)
	case nfs3.MkdirArgs:
		return nameText(&a.Where) + sattrText(&a.Attr)
	case nfs3.SymlinkArgs:
		return fmt.Sprintf("%s -> %q", nameText(&a.Where), a.Target)
	case nfs3.MknodArgs:
		return fmt.Sprintf("%s type %d %d:%d%s", nameText(&a.Where), a.Type, a.Major, a.Minor, sattrText(&a.Attr))
	case nfs3.RenameArgs:
		return nameText(&a.From) + " to " + nameText(&a.To)
	case nfs3.LinkArgs:
		return fileText(a.FH) + " as " + nameText(&a.Link)
	case nfs3.ReadDirArgs:
		return fmt.Sprintf("%s from %d count %d", fileText(a.FH), a.Cookie, a.Count)
	case nfs3.ReadDirPlusArgs:
		return fmt.Sprintf("%s from %d count %d/%d", fileText(a.FH), a.Cookie, a.DirCount, a.MaxCount)
	case nfs3.CommitArgs:
		return fmt.Sprintf("%s %d+%d", fileText(a.FH), a.Offset, a.Count)
	case nfs3.NLMTestArgs:
		return nlmText(&a.Lock, a.Exclusive)
	case nfs3.NLMLockArgs:
		how := ""
		if a.Block {
			how += " or wait"
		}
		if a.Reclaim {
			how += " again"
		}
		return nlmText(&a.Lock, a.Exclusive) + how
	case nfs3.NLMCancelArgs:
		return nlmText(&a.Lock, a.Exclusive)
	case nfs3.NLMUnlockArgs:
		return nlmText(&a.Lock, false)
	case nfs3.NLMShareArgs:
		return fmt.Sprintf("%s access %d deny %d by %q", fileText(a.FH), a.Access, a.Deny, a.Caller)
	case nfs3.NLMNotify:
		return fmt.Sprintf("%q state %d", a.Name, a.State)
	case nfs3.NSMName:
		return fmt.Sprintf("%q", a.Name)
	case nfs3.NSMNotify:
		return fmt.Sprintf("%q state %d", a.Name, a.State)
	case nfs4.AccessArgs:
		return fmt.Sprintf("want %#x", a.Access)
	case nfs4.SequenceArgs:
		return fmt.Sprintf("slot %d number %d", a.Slot, a.Seq)
	case nfs4.OpenArgs:
		text := fmt.Sprintf("access %d", a.Access&nfs4.ShareBoth)
		if a.Named() {
			text = fmt.Sprintf("%q %s", a.Name, text)
		}
		if a.Deny != 0 {
			text += fmt.Sprintf(" deny %d", a.Deny)
		}
		if a.Create {
			text += " create " + [...]string{"unchecked", "guarded", "exclusive", "exclusive41"}[a.Mode]
		}
		if a.Claim != nfs4.ClaimNull && a.Claim != nfs4.ClaimFH {
			text += fmt.Sprintf(" claim %d", a.Claim)
		}
		return text
	case nfs4.LockArgs:
		return lockText(a.Type, a.Offset, a.Length)
	case nfs4.LockTArgs:
		return lockText(a.Type, a.Offset, a.Length)
	case nfs4.LockUArgs:
		return fmt.Sprintf("%d+%d", a.Offset, a.Length)
	case nfs4.CreateArgs:
		return fmt.Sprintf("%q type %d", a.Name, a.Type)
	case nfs4.ReadArgs:
		return fmt.Sprintf("%d+%d", a.Offset, a.Count)
	case nfs4.WriteArgs:
		return fmt.Sprintf("%d+%d", a.Offset, len(a.Data))
	case nfs4.RenameArgs:
		return fmt.Sprintf("%q to %q", a.From, a.To)
	case nfs4.FH:
		return fileText(a.FH)
	case nfs4.Name:
		return fmt.Sprintf("%q", a.Name)
	case *nfs4.CBRecallArgs:
		return fileText(a.FH)
	case *nfs4.CBNotifyLockArgs:
		return fileText(a.FH)
	case nfs3.MountPath:
		return fmt.Sprintf("%q", a.Path)
	}
	return ""
}

// fileText is the export and inode of a handle.
func fileText(fh []byte) string {
	if pseudoHandle(fh) {
		return "/"
	}
	if _, err := handleExport(fh); err != nil {
		return fmt.Sprintf("bad handle %x", fh)
	}
	return fmt.Sprintf("%08x:%d", binary.BigEndian.Uint32(fh[4:]), binary.BigEndian.Uint64(fh[16:]))
}

func nlmText(l *nfs3.NLMLock, exclusive bool) string {
	kind := "shared"
	if exclusive {
		kind = "exclusive"
	}
	return fmt.Sprintf("%s %d+%d %s by %d of %q", fileText(l.FH), l.Off, l.Len, kind, l.SVID, l.Caller)
}

func lockText(t nfs4.LockType, off, n uint64) string {
	kind := "shared"
	if t.Write() {
		kind = "exclusive"
	}
	if t.Waits() {
		kind += " or wait"
	}
	return fmt.Sprintf("%d+%d %s", off, n, kind)
}

func nameText(a *nfs3.DirOp) string { return fmt.Sprintf("%s/%q", fileText(a.Dir), a.Name) }

func sattrText(a *nfs3.Sattr) string {
	var b strings.Builder
	if a.SetMode {
		fmt.Fprintf(&b, " mode=%04o", a.Mode)
	}
	if a.SetUID {
		fmt.Fprintf(&b, " uid=%d", a.UID)
	}
	if a.SetGID {
		fmt.Fprintf(&b, " gid=%d", a.GID)
	}
	if a.SetSize {
		fmt.Fprintf(&b, " size=%d", a.Size)
	}
	timeText(&b, "atime", a.AtimeHow, a.Atime)
	timeText(&b, "mtime", a.MtimeHow, a.Mtime)
	return b.String()
}

func timeText(b *strings.Builder, name string, how nfs3.TimeHow, t nfs3.Time) {
	switch how {
	case nfs3.SetToServerTime:
		fmt.Fprintf(b, " %s=now", name)
	case nfs3.SetToClientTime:
		fmt.Fprintf(b, " %s=%d.%09d", name, t.Sec, t.Nsec)
	}
}
