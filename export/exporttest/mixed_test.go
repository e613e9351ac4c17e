package exporttest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// sharer is a session of a protocol in which files are opened and locked.
type sharer interface {
	session
	open(dir handle, name string, access, deny memstore.Access) (opened, error)
}

// opened is an open file. Locks are an owner's; length 0 is to the end of any
// file.
type opened interface {
	change(access, deny memstore.Access) error
	read(off int64, n int) (data []byte, eof bool, err error)
	write(off int64, data []byte) (int, error)
	truncate(size int64) error
	lock(owner string, exclusive bool, off, n uint64) error
	unlock(owner string, off, n uint64) error
	test(owner string, exclusive bool, off, n uint64) error
	close() error
}

// errDenied is that another's lock is in the way of a lock.
var errDenied = errors.New("denied")

// mixed enters one store, served by one server, by any protocol.
func mixed(t *testing.T) func(protocol string) sharer {
	st := newStore(t)
	addr, smbAddr := startNFS(t, st, native), startSMB(t, st)
	return func(protocol string) sharer {
		root := users["root"]
		switch protocol {
		case "store":
			return storeSession{st, &memstore.Caller{Cred: root, Holder: &memstore.Holder{Name: "test"}}}
		case "nfs3":
			return enterNFS3(t, addr, root)
		case "nfs40":
			return enterNFS4(t, addr, nfs4.Minor0, root)
		case "nfs4":
			return enterNFS4(t, addr, nfs4.Minor2, root)
		case "smb":
			return enterSMB(t, smbAddr, root)
		}
		t.Fatalf("no protocol %s", protocol)
		return nil
	}
}

// protocols are what a script's P and Q stand for in turn, and what one answers
// where another is in the way: to a READ or WRITE that a share mode or a mandatory
// lock forbids, to a removal or a replacement that a share mode forbids, and to a
// look and an open where a file is to be removed.
var protocols = []struct{ name, shared, locked, removed, replaced, doomed, reopened string }{
	{"store", "share violation", "locked", "share violation", "share violation", "ok", "delete pending"},
	{"nfs3", "acces", "acces", "acces", "acces", "ok", "share violation"},
	{"nfs40", "locked", "locked", "share violation", "share violation", "ok", "share violation"},
	{"nfs4", "locked", "locked", "share violation", "share violation", "ok", "share violation"},
	{"smb", "share violation", "locked", "share violation", "acces", "delete pending", "delete pending"},
}

// TestMixed runs scripts in which every line names a client and its protocol. With
// P or Q among the protocols, a script is run for each that it can stand for, and
// "share refused", "lock refused" and the like are Q's answers.
func TestMixed(t *testing.T) {
	for _, s := range mixedScripts {
		for _, p := range protocols {
			for _, q := range protocols {
				text := strings.NewReplacer(" P ", " "+p.name+" ", " Q ", " "+q.name+" ",
					"share refused", q.shared, "lock refused", q.locked, "removal refused", q.removed, "replacement refused", q.replaced,
					"doomed", q.doomed, "open refused", q.reopened).Replace(s.text)
				if !strings.Contains(s.text, " P ") && p != protocols[0] || !strings.Contains(s.text, " Q ") && q != protocols[0] ||
					s.notSMB != "" && (p.name == "smb" || q.name == "smb") {
					continue
				}
				t.Run(s.name+"/"+p.name+" "+q.name, func(t *testing.T) {
					m := &mix{play: play{t: t, kept: map[string]handle{}}, enter: mixed(t), sessions: map[string]sharer{}, opens: map[string]opened{},
						watches: map[string]func() (string, error){}}
					for line := range strings.Lines(text) {
						if line = strings.TrimSpace(line); line != "" {
							m.line(line)
						}
					}
					for _, o := range m.opens {
						if err := o.close(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
}

// mix is a script of several protocols being run.
type mix struct {
	play
	enter    func(protocol string) sharer
	sessions map[string]sharer // by client and protocol
	opens    map[string]opened // by client, protocol and path
	watches  map[string]func() (string, error)
}

func (m *mix) line(line string) {
	m.t.Helper()
	action, want, found := strings.Cut(line, " -> ")
	if want = strings.TrimSpace(want); !found {
		want = "ok"
	}
	f := strings.Fields(action)
	who := f[0] + " " + f[1]
	s := m.sessions[who]
	if s == nil {
		s = m.enter(f[1])
		m.sessions[who] = s
	}
	m.s = s
	got, err := m.do(s, who, f[2], f[3:])
	if err != nil {
		got = mixedWord(err)
	}
	if got != want {
		m.t.Errorf("%s\n\tgot %s", line, got)
	}
}

// mixedWord is word, with names for what the protocols of version 3 have none
// for.
func mixedWord(err error) string {
	for known, w := range map[error]string{
		memstore.ErrDeletePending: "delete pending",
		errDenied:                 "denied", memstore.ErrShareViolation: "share violation", memstore.ErrLocked: "locked",
		nfs4.ErrShareDenied: "share violation", nfs4.ErrFileOpen: "share violation", nfs4.ErrDenied: "denied",
	} {
		if errors.Is(err, known) {
			return w
		}
	}
	return word(err)
}

// do does what is about an open, or leaves it to play.
func (m *mix) do(s sharer, who, verb string, args []string) (string, error) {
	num := func(i int) uint64 {
		n, err := strconv.ParseUint(args[i], 10, 64)
		if err != nil {
			m.t.Fatalf("%s %v: %v", verb, args, err)
		}
		return n
	}
	path := who + " " + args[0]
	switch verb {
	case "watch":
		dir, err := m.find(args[0])
		if err != nil {
			return "", err
		}
		m.watches[path], err = s.(smbSession).watch(dir, args[1])
		return "ok", err
	case "told":
		return m.watches[path]()
	case "open":
		dir, name, err := m.place(args[0])
		if err != nil {
			return "", err
		}
		o, err := s.open(dir, name, shareBits(args, "access="), shareBits(args, "deny="))
		if err == nil {
			m.opens[path] = o
		}
		return "ok", err
	}
	o := m.opens[path]
	if o == nil {
		return m.play.do(verb, args)
	}
	owner := "owner"
	if last := args[len(args)-1]; strings.HasPrefix(last, "owner=") {
		owner = last
	}
	switch verb {
	case "close":
		delete(m.opens, path)
		return "ok", o.close()
	case "change":
		return "ok", o.change(shareBits(args, "access="), shareBits(args, "deny="))
	case "read":
		data, eof, err := o.read(int64(num(1)), int(num(2)))
		return describeRead(data, eof), err
	case "write":
		n, err := o.write(int64(num(1)), []byte(args[2]))
		return fmt.Sprint(n), err
	case "truncate":
		return "ok", o.truncate(int64(num(1)))
	case "lock":
		return "ok", o.lock(owner, args[1] == "write", num(2), num(3))
	case "test":
		return "ok", o.test(owner, args[1] == "write", num(2), num(3))
	case "unlock":
		return "ok", o.unlock(owner, num(1), num(2))
	case "doom": // as SMB removes
		return "ok", o.(interface{ doom() error }).doom()
	case "mandatory": // as SMB locks
		if st, is := o.(storeOpen); is {
			_, err := st.o.Lock(memstore.LockArgs{Mandatory: true, Exclusive: args[1] == "write", Off: num(2), N: num(3)})
			return "ok", err
		}
	}
	return m.play.do(verb, args)
}

// shareBits is the value of an option: read, write, both, delete or none.
func shareBits(args []string, name string) memstore.Access {
	for _, a := range args {
		if v, is := strings.CutPrefix(a, name); is {
			return map[string]memstore.Access{"read": memstore.AccessRead, "write": memstore.AccessWrite, "both": memstore.AccessRead | memstore.AccessWrite, "delete": memstore.AccessDelete}[v]
		}
	}
	return 0
}

func describeRead(data []byte, eof bool) string {
	if eof {
		return strconv.Quote(string(data)) + " eof"
	}
	return strconv.Quote(string(data))
}

// storeOpen is an open without a protocol.
type storeOpen struct {
	s storeSession
	o *memstore.Open
}

func (s storeSession) open(dir handle, name string, access, deny memstore.Access) (opened, error) {
	h, err := s.lookup(dir, name)
	if err != nil {
		return nil, err
	}
	o, err := h.(*memstore.Inode).Open(s.c, memstore.OpenArgs{Access: access, Deny: deny})
	return storeOpen{s, o}, err
}

func (o storeOpen) change(access, deny memstore.Access) error {
	return o.o.Change(o.s.c, memstore.OpenArgs{Access: access, Deny: deny})
}

func (o storeOpen) read(off int64, n int) ([]byte, bool, error) {
	b := make([]byte, n)
	got, eof, _, err := o.o.Inode().ReadAt(o.s.c, o.o, b, off)
	return b[:got], eof, err
}

func (o storeOpen) write(off int64, data []byte) (int, error) {
	n, _, err := o.o.Inode().WriteAt(o.s.c, o.o, data, off)
	return n, err
}

func (o storeOpen) truncate(size int64) error {
	_, err := o.o.Inode().SetAttr(o.s.c, o.o, &memstore.SetAttr{Mask: memstore.SetSize, Size: size})
	return err
}

func (o storeOpen) args(owner string, exclusive bool, off, n uint64) memstore.LockArgs {
	return memstore.LockArgs{Owner: memstore.LockOwner{Holder: o.s.c.Holder, ID: owner}, Exclusive: exclusive, Off: off, N: n}
}

func (o storeOpen) lock(owner string, exclusive bool, off, n uint64) error {
	_, err := o.o.Lock(o.args(owner, exclusive, off, n))
	return lockDenied(err)
}

func (o storeOpen) test(owner string, exclusive bool, off, n uint64) error {
	_, err := o.o.Inode().TestLock(o.args(owner, exclusive, off, n))
	return lockDenied(err)
}

func lockDenied(err error) error {
	if err == memstore.ErrLocked {
		return errDenied
	}
	return err
}

func (o storeOpen) unlock(owner string, off, n uint64) error {
	return o.o.Unlock(o.args(owner, false, off, n))
}

func (o storeOpen) close() error {
	o.o.Close()
	return nil
}

// nfs3Open is a SHARE of NLM.
type nfs3Open struct {
	s      nfsSession
	h      []byte
	caller string
	shared nfs3.NLMShareArgs
}

func (s nfsSession) open(dir handle, name string, access, deny memstore.Access) (opened, error) {
	h, err := s.lookup(dir, name)
	if err != nil {
		return nil, err
	}
	o := &nfs3Open{s: s, h: h.([]byte), caller: fmt.Sprintf("host-%p", s.c)}
	return o, o.change(access, deny)
}

var nlmBits = map[memstore.Access]uint32{memstore.AccessRead: nfs3.NLMShareRead, memstore.AccessWrite: nfs3.NLMShareWrite,
	memstore.AccessRead | memstore.AccessWrite: nfs3.NLMShareRead | nfs3.NLMShareWrite}

func (o *nfs3Open) change(access, deny memstore.Access) error {
	o.shared = nfs3.NLMShareArgs{Caller: o.caller, FH: o.h, Owner: []byte("opener"), Access: nlmBits[access], Deny: nlmBits[deny]}
	var res nfs3.NLMShareRes
	if err := o.s.c.Call(rpc.ProgramNLM, nfs3.NLMVersion4, nfs3.NLMProcShare, &o.shared, &res); err != nil {
		return err
	}
	return nlmError(res.Status, memstore.ErrShareViolation)
}

func nlmError(s nfs3.NLMStatus, denied error) error {
	switch s {
	case nfs3.NLMGranted:
		return nil
	case nfs3.NLMDenied:
		return denied
	}
	return errors.New(s.String())
}

func (o *nfs3Open) read(off int64, n int) ([]byte, bool, error) { return o.s.read(o.h, off, n) }
func (o *nfs3Open) write(off int64, data []byte) (int, error)   { return o.s.write(o.h, off, data) }

func (o *nfs3Open) truncate(size int64) error {
	return o.s.setattr(o.h, memstore.SetAttr{Mask: memstore.SetSize, Size: size})
}

func (o *nfs3Open) wire(owner string, off, n uint64) nfs3.NLMLock {
	return nfs3.NLMLock{Caller: o.caller, FH: o.h, Owner: []byte(owner), SVID: int32(len(owner)), Off: off, Len: n}
}

func (o *nfs3Open) lock(owner string, exclusive bool, off, n uint64) error {
	var res nfs3.NLMRes
	a := nfs3.NLMLockArgs{Exclusive: exclusive, Lock: o.wire(owner, off, n), State: 1}
	if err := o.s.c.Call(rpc.ProgramNLM, nfs3.NLMVersion4, nfs3.NLMProcLock, &a, &res); err != nil {
		return err
	}
	return nlmError(res.Status, errDenied)
}

func (o *nfs3Open) test(owner string, exclusive bool, off, n uint64) error {
	var res nfs3.NLMTestRes
	a := nfs3.NLMTestArgs{Exclusive: exclusive, Lock: o.wire(owner, off, n)}
	if err := o.s.c.Call(rpc.ProgramNLM, nfs3.NLMVersion4, nfs3.NLMProcTest, &a, &res); err != nil {
		return err
	}
	return nlmError(res.Status, errDenied)
}

func (o *nfs3Open) unlock(owner string, off, n uint64) error {
	var res nfs3.NLMRes
	a := nfs3.NLMUnlockArgs{Lock: o.wire(owner, off, n)}
	if err := o.s.c.Call(rpc.ProgramNLM, nfs3.NLMVersion4, nfs3.NLMProcUnlock, &a, &res); err != nil {
		return err
	}
	return nlmError(res.Status, errDenied)
}

// close gives locks back too: NLM's do not end with the SHARE.
func (o *nfs3Open) close() error {
	for _, owner := range []string{"owner", "owner=x", "owner=y"} {
		if err := o.unlock(owner, 0, 0); err != nil {
			return err
		}
	}
	var res nfs3.NLMShareRes
	if err := o.s.c.Call(rpc.ProgramNLM, nfs3.NLMVersion4, nfs3.NLMProcUnshare, &o.shared, &res); err != nil {
		return err
	}
	return nlmError(res.Status, memstore.ErrShareViolation)
}

// nfs4Open is an OPEN, and what its owners have locked by it.
type nfs4Open struct {
	s     nfs4Session
	dir   []byte
	name  string
	h     []byte
	sid   nfs4.Stateid
	locks map[string]nfs4.Stateid // by owner
}

func shareOf(a memstore.Access) (bits uint32) {
	if a&memstore.AccessRead != 0 {
		bits |= nfs4.ShareRead
	}
	if a&memstore.AccessWrite != 0 {
		bits |= nfs4.ShareWrite
	}
	return bits
}

func (s nfs4Session) open(dir handle, name string, access, deny memstore.Access) (opened, error) {
	o := &nfs4Open{s: s, dir: dir.([]byte), name: name, locks: map[string]nfs4.Stateid{}}
	return o, o.openAgain(access, deny)
}

func (o *nfs4Open) openAgain(access, deny memstore.Access) error {
	res, h, err := o.s.s.Open(o.dir, nfs4.OpenArgs{Access: shareOf(access), Deny: shareOf(deny), Name: o.name,
		Owner: nfs4.Owner{Owner: []byte("opener")}})
	if err == nil {
		o.h, o.sid = h, res.Stateid
	}
	return err
}

// change extends the open by another OPEN, and then gives up what is not wanted.
func (o *nfs4Open) change(access, deny memstore.Access) error {
	if err := o.openAgain(access, deny); err != nil {
		return err
	}
	sid, err := o.s.s.OpenDowngrade(o.h, o.sid, shareOf(access), shareOf(deny))
	if err == nil {
		o.sid = sid
	}
	return err
}

func (o *nfs4Open) read(off int64, n int) ([]byte, bool, error) {
	res, err := o.s.s.Read(o.h, o.sid, uint64(off), uint32(n))
	return res.Data, res.EOF, err
}

func (o *nfs4Open) write(off int64, data []byte) (int, error) {
	res, err := o.s.s.Write(o.h, o.sid, uint64(off), data, nfs4.Unstable)
	return int(res.Count), err
}

func (o *nfs4Open) truncate(size int64) error {
	n := uint64(size)
	return o.s.s.SetAttr(o.h, o.sid, client.SetAttr{Size: &n})
}

func lockType(exclusive bool) nfs4.LockType {
	if exclusive {
		return nfs4.LockWrite
	}
	return nfs4.LockRead
}

func lockLength(n uint64) uint64 {
	if n == 0 {
		return math.MaxUint64
	}
	return n
}

func (o *nfs4Open) lock(owner string, exclusive bool, off, n uint64) error {
	a := nfs4.LockArgs{Type: lockType(exclusive), Offset: off, Length: lockLength(n)}
	if sid, is := o.locks[owner]; is {
		a.Stateid = sid
	} else {
		a.NewOwner, a.Stateid, a.Owner.Owner = true, o.sid, []byte(owner)
	}
	sid, err := o.s.s.Lock(o.h, a)
	if err == nil {
		o.locks[owner] = sid
	}
	return err
}

func (o *nfs4Open) test(owner string, exclusive bool, off, n uint64) error {
	return o.s.s.LockT(o.h, nfs4.LockTArgs{Type: lockType(exclusive), Offset: off, Length: lockLength(n), Owner: nfs4.Owner{Owner: []byte(owner)}})
}

func (o *nfs4Open) unlock(owner string, off, n uint64) error {
	sid, err := o.s.s.LockU(o.h, nfs4.LockUArgs{Type: nfs4.LockRead, Stateid: o.locks[owner], Offset: off, Length: lockLength(n)})
	if err == nil {
		o.locks[owner] = sid
	}
	return err
}

func (o *nfs4Open) close() error { return o.s.s.CloseFile(o.h, o.sid) }
