package smb

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// notifyBody asks for the changes of a directory.
func notifyBody(id [16]byte, filter uint32, tree bool, size uint32) []byte {
	var w wire.Writer
	w.Uint16(32)
	flags := uint16(0)
	if tree {
		flags = wire.NotifyTree
	}
	w.Uint16(flags)
	w.Uint32(size)
	w.Bytes(id[:])
	w.Uint32(filter)
	w.Uint32(0)
	return w.B
}

// openDir opens or makes a directory.
func (c *client) openDir(name string) (id [16]byte) {
	c.t.Helper()
	b := createBody(name)
	binary.LittleEndian.PutUint32(b[40:], wire.OptDirectory)
	r := c.do(wire.CommandCreate, b)
	if r.Status != wire.StatusOK {
		c.t.Fatalf("create %s: %v", name, r.Status)
	}
	copy(id[:], r.body[64:])
	return id
}

// changes are the names of a reply to CHANGE_NOTIFY, with what happened to them.
func (r *reply) changes(t *testing.T) (all []string) {
	t.Helper()
	if r.Status != wire.StatusOK {
		return []string{r.Status.String()}
	}
	le := binary.LittleEndian
	at, n := int(le.Uint16(r.body[2:])), int(le.Uint32(r.body[4:]))
	b := r.msg[at:][:n]
	for {
		next, name := int(le.Uint32(b)), b[12:][:le.Uint32(b[8:])]
		action := [...]string{1: "+", 2: "-", 3: "*", 4: "<", 5: ">", 6: "+", 7: "-", 8: "*"}[le.Uint32(b[4:])]
		all = append(all, action+wire.String(name))
		switch {
		case next == 0:
			return all
		case next%4 != 0 || next < 12+len(name):
			t.Fatalf("the next entry is at %d", next)
		}
		b = b[next:]
	}
}

// What is told of each change to who asks for one kind of changes: added, removed,
// changed, and renamed from and to. MS-FSCC section 2.7.1, MS-SMB2 section 2.2.35.
func TestNotify(t *testing.T) {
	const files, dirs, attrs, size, write, access, creation = wire.FilterFileName, wire.FilterDirName, wire.FilterAttributes,
		wire.FilterSize, wire.FilterWrite, wire.FilterAccess, wire.FilterCreation
	root := memstore.Root()
	set := func(i *memstore.Inode, mask memstore.SetMask) {
		i.SetAttr(root, nil, &memstore.SetAttr{Mask: mask, Mode: 0o600, DOS: wire.AttrHidden, Size: 100, Atime: 1, Mtime: 1, Btime: 1})
	}
	add := func(d *memstore.Inode, name string, typ memstore.Type) *memstore.Inode {
		r, err := d.Create(root, name, &memstore.Create{Type: typ, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o777}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Inode
	}
	stream := func(i *memstore.Inode, name string, do func(*memstore.Open)) {
		o, _, err := i.OpenStream(root, name, memstore.StreamArgs{Open: memstore.OpenArgs{Access: memstore.AccessWrite | memstore.AccessDelete}, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		do(o)
		o.Close()
	}
	// In the directory are a file f and a directory d with a file g.
	type place struct {
		s       *memstore.Store
		dir, d  *memstore.Inode
		f, g    *memstore.Inode
		outside *memstore.Inode
	}
	for _, tt := range []struct {
		name string
		do   func(p *place)
		told map[uint32]string // by filter; others hear nothing
		deep string            // what who watches the tree hears of all
	}{
		{"create", func(p *place) { add(p.dir, "n", memstore.TypeFile) }, map[uint32]string{files: "+n"}, "+n"},
		{"mkdir", func(p *place) { add(p.dir, "n", memstore.TypeDir) }, map[uint32]string{dirs: "+n"}, "+n"},
		{"symlink", func(p *place) { add(p.dir, "n", memstore.TypeFIFO) }, map[uint32]string{files: "+n"}, "+n"},
		{"link", func(p *place) { p.dir.Link(root, "n", p.g) }, map[uint32]string{files: "+n"}, "+n"},
		{"remove", func(p *place) { p.dir.Remove(root, "f", memstore.RemoveFile) }, map[uint32]string{files: "-f"}, "-f"},
		{"rmdir", func(p *place) {
			p.d.Remove(root, "g", memstore.RemoveFile)
			p.dir.Remove(root, "d", memstore.RemoveDir)
		}, map[uint32]string{dirs: "-d"}, `-d\g -d`},
		{"rename", func(p *place) { p.s.Rename(root, p.dir, "f", p.dir, "n", 0) },
			map[uint32]string{files: "<f >n", attrs: "*n", creation: "*n"}, "<f >n"},
		{"rename a directory", func(p *place) { p.s.Rename(root, p.dir, "d", p.dir, "n", 0) }, map[uint32]string{dirs: "<d >n"}, "<d >n"},
		{"rename to a name that another has", func(p *place) {
			add(p.outside, "n", memstore.TypeFile)
			p.s.Rename(root, p.outside, "n", p.dir, "n", 0)
			p.s.Rename(root, p.dir, "f", p.dir, "n", 0)
		}, map[uint32]string{files: "+n -n <f >n", attrs: "*n", creation: "*n"}, "+n -n <f >n"},
		{"move to a name that another has", func(p *place) { p.s.Rename(root, p.d, "g", p.dir, "f", 0) },
			map[uint32]string{files: "-f +f", attrs: "*f", creation: "*f"}, `-d\g -f +f`},
		{"exchange", func(p *place) { p.s.Rename(root, p.d, "g", p.dir, "f", memstore.RenameExchange) },
			map[uint32]string{files: "*f"}, `*d\g *f`},
		{"move in", func(p *place) { p.s.Rename(root, p.d, "g", p.dir, "n", 0) },
			map[uint32]string{files: "+n", attrs: "*n", creation: "*n"}, `-d\g +n`},
		{"move out", func(p *place) { p.s.Rename(root, p.dir, "f", p.outside, "n", 0) }, map[uint32]string{files: "-f"}, "-f"},
		{"move below", func(p *place) { p.s.Rename(root, p.dir, "f", p.d, "n", 0) }, map[uint32]string{files: "-f"}, `-f +d\n`},
		{"write", func(p *place) { p.f.WriteAt(root, nil, []byte("x"), 0) }, map[uint32]string{size: "*f", write: "*f"}, "*f"},
		{"overwrite", func(p *place) {
			p.f.WriteAt(root, nil, []byte("x"), 0)
			p.f.WriteAt(root, nil, []byte("y"), 0)
		}, map[uint32]string{size: "*f", write: "*f"}, "*f"},
		{"write below", func(p *place) { p.g.WriteAt(root, nil, []byte("x"), 0) }, nil, `*d\g`},
		{"truncate", func(p *place) { set(p.f, memstore.SetSize) }, map[uint32]string{size: "*f", write: "*f"}, "*f"},
		{"chmod", func(p *place) { set(p.f, memstore.SetMode) }, map[uint32]string{attrs: "*f", wire.FilterSecurity: "*f"}, "*f"},
		{"hide", func(p *place) { set(p.f, memstore.SetDOS) }, map[uint32]string{attrs: "*f"}, "*f"},
		{"times", func(p *place) { set(p.f, memstore.SetAtime) }, map[uint32]string{access: "*f"}, "*f"},
		{"time of the last write", func(p *place) { set(p.d, memstore.SetMtime) }, map[uint32]string{write: "*d"}, "*d"},
		{"time of creation", func(p *place) { set(p.f, memstore.SetBtime) }, map[uint32]string{creation: "*f"}, "*f"},
		{"time of change", func(p *place) { set(p.f, memstore.SetCtime) }, nil, ""},
		{"owner", func(p *place) { set(p.f, memstore.SetUID) }, map[uint32]string{wire.FilterSecurity: "*f"}, "*f"},
		{"extended attribute", func(p *place) { p.f.SetXattr(root, "user.x", []byte("y"), 0) }, map[uint32]string{wire.FilterEA: "*f"}, "*f"},
		{"stream", func(p *place) {
			stream(p.f, "s", func(o *memstore.Open) { o.Inode().WriteAt(root, o, []byte("x"), 0) })
		}, map[uint32]string{wire.FilterStreamName: "+f:s", wire.FilterStreamSize: "*f:s", wire.FilterStreamData: "*f:s"}, "+f:s *f:s"},
		{"stream removed", func(p *place) {
			stream(p.f, "s", func(o *memstore.Open) { o.Doom(p.f, "s") })
		}, map[uint32]string{wire.FilterStreamName: "+f:s -f:s"}, "+f:s -f:s"},
		{"stream renamed", func(p *place) {
			stream(p.f, "s", func(o *memstore.Open) { o.RenameStream("t", false) })
		}, map[uint32]string{wire.FilterStreamName: "+f:s -f:s +f:t"}, "+f:s -f:s +f:t"},
		{"stream renamed to a name that another has", func(p *place) {
			stream(p.f, "t", func(*memstore.Open) {})
			stream(p.f, "s", func(o *memstore.Open) { o.RenameStream("T", true) })
		}, map[uint32]string{wire.FilterStreamName: "+f:t +f:s -f:t -f:s +f:T"}, "+f:t +f:s -f:t -f:s +f:T"},
		{"streams dropped", func(p *place) {
			stream(p.f, "s", func(*memstore.Open) {})
			p.f.DropStreams()
		}, map[uint32]string{wire.FilterStreamName: "+f:s -f:s"}, "+f:s -f:s"},
	} {
		s, addr := newServer(t, nil)
		share := s.cfg.Exports.ByName("share")
		p := &place{s: share.Store, outside: share.Root}
		p.dir = add(share.Root, "dir", memstore.TypeDir)
		p.f, p.d = add(p.dir, "f", memstore.TypeFile), add(p.dir, "d", memstore.TypeDir)
		p.g = add(p.d, "g", memstore.TypeFile)
		c := user(t, addr, nil)
		var filters []uint32
		for f := uint32(1); f <= wire.FilterStreamData; f <<= 1 {
			filters = append(filters, f)
		}
		const all = 0xFFF
		want := append([]string(nil), tt.deep)
		for _, f := range filters {
			want = append(want, tt.told[f])
		}
		var ids [][16]byte
		ask := func(k int, id [16]byte) reply {
			if k == 0 {
				return c.do(wire.CommandChangeNotify, notifyBody(id, all, true, 1000))
			}
			return c.do(wire.CommandChangeNotify, notifyBody(id, filters[k-1], false, 1000))
		}
		// What is kept is told when it is asked for: so nobody waits while it happens.
		for k := range want {
			ids = append(ids, c.openDir("dir"))
			if r := ask(k, ids[k]); r.Status != wire.StatusPending {
				t.Fatalf("%s: %v", tt.name, r.Status)
			} else {
				c.send(c.message(wire.CommandCancel, echoBody, func(h *wire.Header) { h.MessageID = r.MessageID }))
			}
			if r := c.one(); r.Status != wire.StatusCancelled {
				t.Fatalf("%s: cancelled: %v", tt.name, r.Status)
			}
		}
		tt.do(p)
		for k, w := range want {
			r := ask(k, ids[k])
			got := strings.Join(r.changes(t), " ")
			if w == "" {
				w = wire.StatusPending.String()
			}
			if got != w {
				t.Errorf("%s, filter %#x: %s, want %s", tt.name, append([]uint32{all}, filters...)[k], got, w)
			}
		}
		c.nc.Close()
	}
}

// Several requests of an open are answered in their order, each when something has
// happened; what does not fit what the first had room for is not told, and the
// client lists the directory.
func TestNotifyOrder(t *testing.T) {
	s, addr := newServer(t, nil)
	dir := s.cfg.Exports.ByName("share").Root
	c := user(t, addr, nil)
	id := c.openDir("")
	ask := func(size uint32) uint64 {
		t.Helper()
		mid := c.id
		if r := c.do(wire.CommandChangeNotify, notifyBody(id, wire.FilterFileName, false, size)); r.Status != wire.StatusPending {
			t.Fatalf("%v", r.Status)
		}
		return mid
	}
	add := func(name string) {
		if _, err := dir.Create(memstore.Root(), name, &memstore.Create{Type: memstore.TypeFile}); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(mid uint64, want ...string) {
		t.Helper()
		if r := c.one(); r.MessageID != mid || !slices.Equal(r.changes(t), want) {
			t.Errorf("request %d: %v, want that of %d: %v", r.MessageID, r.changes(t), mid, want)
		}
	}
	var mids []uint64
	for range 5 {
		mids = append(mids, ask(40))
	}
	c.send(c.message(wire.CommandCancel, echoBody, func(h *wire.Header) { h.MessageID = mids[1] }))
	answered(mids[1], wire.StatusCancelled.String())
	for n, mid := range slices.Delete(mids, 1, 2) {
		add(fmt.Sprint(n))
		answered(mid, fmt.Sprintf("+%d", n))
	}
	add("much longer than there is room")
	if r := c.do(wire.CommandChangeNotify, notifyBody(id, wire.FilterFileName, false, 1000)); r.Status != wire.StatusNotifyEnumDir {
		t.Errorf("what the first had no room for: %v", r.Status)
	}
	last := ask(1000)
	add("n")
	answered(last, "+n")

	// One is answered with the first change, however soon others follow.
	last = ask(1000)
	add("x")
	add("y")
	answered(last, "+x")
	if r := c.do(wire.CommandChangeNotify, notifyBody(id, wire.FilterFileName, false, 1000)); !slices.Equal(r.changes(t), []string{"+y"}) {
		t.Errorf("what was kept: %v", r.changes(t))
	}

	last = ask(1000)
	if _, err := dir.Remove(memstore.Root(), "n", memstore.RemoveFile); err != nil {
		t.Fatal(err)
	}
	answered(last, "-n")
	last = ask(1000)
	c.send(c.message(wire.CommandClose, append([]byte{24, 0, 0, 0, 0, 0, 0, 0}, id[:]...)))
	for range 2 {
		if r := c.one(); r.MessageID == last && r.Status != wire.StatusNotifyCleanup || r.MessageID != last && r.Status != wire.StatusOK {
			t.Errorf("closed: %v", r.Header)
		}
	}
}

// A directory that is to be removed is not watched, until it is spared.
func TestNotifyDoomed(t *testing.T) {
	s, addr := newServer(t, nil)
	root := s.cfg.Exports.ByName("share").Root
	c := user(t, addr, nil)
	id := c.openDir("d")
	d, err := root.Lookup(memstore.Root(), "d")
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.Open(memstore.Root(), memstore.OpenArgs{})
	if err != nil {
		t.Fatal(err)
	}
	notify := func() reply {
		return c.do(wire.CommandChangeNotify, notifyBody(id, wire.FilterFileName, false, 1000))
	}
	status := func(what string, r reply, want wire.Status) {
		t.Helper()
		if r.Status != want {
			t.Errorf("%s: %v, want %v", what, r.Status, want)
		}
	}
	status("watched", notify(), wire.StatusPending)
	if err := o.Doom(root, "d"); err != nil {
		t.Fatal(err)
	}
	status("doomed meanwhile", c.one(), wire.StatusDeletePending)
	status("doomed", notify(), wire.StatusDeletePending)
	o.Spare()
	status("spared", notify(), wire.StatusPending)
	if _, err := d.Create(memstore.Root(), "f", &memstore.Create{Type: memstore.TypeFile}); err != nil {
		t.Fatal(err)
	}
	if r := c.one(); !slices.Equal(r.changes(t), []string{"+f"}) {
		t.Errorf("then: %v", r.changes(t))
	}
	o.Close()
	status("again", notify(), wire.StatusPending)
	for _, name := range []string{"f", "d"} {
		dir := d
		if name == "d" {
			dir = root
		}
		if _, err := dir.Remove(memstore.Root(), name, memstore.RemoveAny); err != nil {
			t.Fatal(err)
		}
		if name == "f" {
			if r := c.one(); !slices.Equal(r.changes(t), []string{"-f"}) {
				t.Errorf("emptied: %v", r.changes(t))
			}
			status("the last time", notify(), wire.StatusPending)
		}
	}
	status("removed by others", c.one(), wire.StatusDeletePending)
	status("asked of what is gone", notify(), wire.StatusDeletePending)
}

// A request that waits can be cancelled, and its session goes on, whatever signs and
// encrypts it.
func TestNotifyProtected(t *testing.T) {
	_, addr := newServer(t, nil)
	cancel := func(name string, change func(*client), seal bool) {
		c := user(t, addr, change)
		c.seal = seal
		id := c.openDir("")
		for range 3 {
			r := c.do(wire.CommandChangeNotify, notifyBody(id, wire.FilterFileName, true, 1000))
			if r.Status != wire.StatusPending {
				t.Fatalf("%s: %v", name, r.Status)
			}
			c.send(c.message(wire.CommandCancel, echoBody, func(h *wire.Header) { h.Flags |= wire.FlagAsync; h.AsyncID = r.AsyncID }))
			if r := c.one(); r.Status != wire.StatusCancelled || r.seal != seal || (r.Flags&wire.FlagSigned != 0) == seal {
				t.Errorf("%s: cancelled: %+v", name, r.Header)
			}
			if r := c.do(wire.CommandEcho, echoBody); r.Status != wire.StatusOK || r.seal != seal {
				t.Errorf("%s: afterwards: %+v", name, r.Header)
			}
		}
		c.nc.Close()
	}
	for _, x := range signings {
		cancel(fmt.Sprint("signing ", x), func(c *client) { c.signing = x }, false)
	}
	for _, x := range ciphers {
		cancel(fmt.Sprint("cipher ", x), func(c *client) { c.cipher = x }, true)
	}
}
