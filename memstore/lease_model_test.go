package memstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// leaseModel is what one file is, whoever has it in a cache, and whose caches
// there are. Every cache must show what the file is for as long as its lease
// lasts, and a call that waits must not change anything.
type leaseModel struct {
	t     *testing.T
	rnd   *rand.Rand
	s     *Store
	f     *Inode
	name  string // of f
	data  []byte
	mode  uint16
	links uint32
	users []*leaseUser
	waits int // calls that had to wait
	hits  int // answers by a cache
	log   []string
}

// leaseUser is a holder with a cache, or nobody's caller without one.
type leaseUser struct {
	m    *leaseModel
	c    Caller
	open *Open

	lease    *Lease
	recalled bool // told to keep only
	keep     Rights

	// What it has in its cache. data is what it has read or written itself, if
	// full; dirty says that the store does not have it yet. mode and links are
	// kept by one whose lease covers attributes, name by one that may keep the
	// open.
	full, dirty, attrs, named bool
	data                      []byte
	mode                      uint16
	links                     uint32
	name                      string
}

func (u *leaseUser) rights() Rights {
	if u.lease == nil {
		return 0
	}
	return u.lease.Rights()
}

func (m *leaseModel) fail(format string, args ...any) {
	m.t.Helper()
	for _, l := range m.log[max(0, len(m.log)-30):] {
		m.t.Log(l)
	}
	m.t.Fatalf(format, args...)
}

// do makes a call of the store, and reports whether it was done. One that has to
// wait changes nothing, and somebody else is asked to give up a lease.
func (u *leaseUser) do(what string, op func() error) bool {
	m := u.m
	before := snapshot(m.s)
	err := op()
	synctest.Wait()
	m.log = append(m.log, fmt.Sprintf("%s: %s: %v", u.c.name(), what, err))
	switch {
	case err == nil:
		return true
	case !errors.As(err, new(*Wait)):
		m.fail("%s by %s: %v", what, u.c.name(), err)
	case snapshot(m.s) != before:
		m.fail("%s by %s waits, but has changed %q to %q", what, u.c.name(), before, snapshot(m.s))
	}
	m.waits++
	for _, o := range m.users {
		if o != u && o.recalled {
			return false
		}
	}
	m.fail("%s by %s waits for nobody", what, u.c.name())
	return false
}

func (c *Caller) name() string {
	if c.Holder == nil {
		return "nobody"
	}
	return c.Holder.Name
}

// forget drops what the remaining rights do not cover.
func (u *leaseUser) forget() {
	r := u.rights()
	if r&(CacheRead|CacheWrite) == 0 {
		u.full = false
	}
	if r&CacheRead == 0 {
		u.attrs = false
	}
	if r&CacheHandle == 0 {
		u.named = false
	}
	if r == 0 {
		u.lease = nil
	}
}

func (u *leaseUser) yield(keep Rights) {
	if u.dirty && keep&CacheWrite == 0 {
		ok := u.do("flush", func() error {
			_, _, err := u.f().WriteAt(&u.c, nil, u.data, 0)
			return err
		})
		if !ok {
			u.m.fail("%s cannot write what it has the lease for", u.c.name())
		}
		u.dirty = false
	}
	u.m.log = append(u.m.log, fmt.Sprintf("%s: keeps %03b", u.c.name(), keep))
	u.lease.Yield(keep)
	if u.recalled && u.rights()&^u.keep == 0 {
		u.recalled = false
	}
	u.forget()
}

func (u *leaseUser) f() *Inode { return u.m.f }

// step does something at random.
func (u *leaseUser) step() {
	m := u.m
	switch n := m.rnd.IntN(100); {
	case u.recalled && n < 40:
		u.yield(u.keep)
	case u.lease != nil && n < 3:
		u.yield(Rights(m.rnd.IntN(8)))
	case n < 12:
		if u.open != nil {
			u.open.Close()
			u.open = nil
			return
		}
		a := OpenArgs{Access: AccessRead | Access(m.rnd.IntN(2))<<1}
		u.do("open", func() (err error) {
			if a.Access&AccessWrite != 0 && m.rnd.IntN(2) == 0 {
				r, err := m.s.Root().Create(&u.c, m.name, &Create{Type: TypeFile, Exist: ExistOpen, Open: &a})
				u.open = r.Open
				return err
			}
			u.open, err = u.f().Open(&u.c, a)
			return err
		})
	case n < 22:
		m.f.mu.Lock()
		if m.f.x != nil {
			m.f.x.broken = 0
		}
		m.f.mu.Unlock()
		if u.open == nil || u.recalled {
			return
		}
		l := u.open.Lease(&u.c, Rights(m.rnd.IntN(8)), func(keep Rights) {
			if u.recalled {
				m.t.Error("told once more")
			}
			u.recalled, u.keep = true, keep
		})
		if l != nil {
			u.lease = l
			m.log = append(m.log, fmt.Sprintf("%s: granted %03b", u.c.name(), l.Rights()))
		}
	case n < 50:
		u.read()
	case n < 60:
		u.write(m.rnd.IntN(20), byte(n))
	case n < 80:
		u.getattr()
	case n < 83:
		size := m.rnd.IntN(30)
		if u.dirty {
			u.yield(u.rights() &^ CacheWrite)
		}
		if u.do("truncate", func() error {
			_, err := u.f().SetAttr(&u.c, nil, &SetAttr{Mask: SetSize, Size: int64(size)})
			return err
		}) {
			m.data = append(m.data, make([]byte, 30)...)[:size]
			u.data = bytes.Clone(m.data)
		}
	case n < 86:
		mode := uint16(m.rnd.IntN(0o1000))
		if u.do("chmod", func() error {
			_, err := u.f().SetAttr(&u.c, nil, &SetAttr{Mask: SetMode, Mode: mode})
			return err
		}) {
			m.mode, u.mode = mode, mode
		}
	case n < 89:
		name := map[string]string{"f": "h", "h": "f"}[m.name]
		if u.do("rename", func() error {
			_, _, err := m.s.Rename(&u.c, m.s.Root(), m.name, m.s.Root(), name, 0)
			return err
		}) {
			m.name, u.name = name, name
		}
	case n < 92:
		if m.links == 1 {
			if u.do("link", func() error { _, _, err := m.s.Root().Link(&u.c, "l", m.f); return err }) {
				m.links, u.links = 2, 2
			}
		} else if u.do("remove", func() error { _, err := m.s.Root().Remove(&u.c, "l", RemoveFile); return err }) {
			m.links, u.links = 1, 1
		}
	default:
		if u.rights()&CacheHandle != 0 {
			if u.named {
				m.hits++
				if u.name != m.name {
					m.fail("%s keeps the open of %s, which is %s", u.c.name(), u.name, m.name)
				}
			}
			u.named, u.name = true, m.name
		}
	}
}

func (u *leaseUser) read() {
	m := u.m
	if u.full {
		m.hits++
		if !bytes.Equal(u.data, m.data) {
			m.fail("%s has %q in its cache, the file is %q", u.c.name(), u.data, m.data)
		}
		return
	}
	b := make([]byte, 100)
	n := 0
	if !u.do("read", func() (err error) {
		n, _, _, err = m.f.ReadAt(&u.c, u.open, b, 0)
		return err
	}) {
		return
	}
	if b = b[:n]; !bytes.Equal(b, m.data) {
		m.fail("%s reads %q, the file is %q", u.c.name(), b, m.data)
	}
	if u.rights()&CacheRead != 0 {
		u.full, u.data = true, b
	}
}

func (u *leaseUser) write(off int, c byte) {
	m := u.m
	p := []byte{c, c, c}
	if u.full && u.rights()&(CacheRead|CacheWrite) == CacheRead|CacheWrite {
		u.dirty = true
	} else if u.open != nil && u.open.Access()&AccessWrite == 0 || !u.do("write", func() error {
		_, _, err := m.f.WriteAt(&u.c, u.open, p, int64(off))
		return err
	}) {
		return
	}
	if grow := off + len(p) - len(m.data); grow > 0 {
		m.data = append(m.data, make([]byte, grow)...)
	}
	copy(m.data[off:], p)
	if u.full {
		u.data = bytes.Clone(m.data)
	}
}

func (u *leaseUser) getattr() {
	m := u.m
	if u.attrs {
		m.hits++
		if u.mode != m.mode || u.links != m.links {
			m.fail("%s has mode %o and %d links in its cache, the file %o and %d", u.c.name(), u.mode, u.links, m.mode, m.links)
		}
		return
	}
	var a Attr
	if !u.do("getattr", func() (err error) { a, err = m.f.GetAttr(&u.c); return err }) {
		return
	}
	for _, o := range m.users {
		// What data-only leases hide is not asked for; what is one's own one
		// knows.
		if o.dirty && (o == u || !o.c.Holder.CachesAttrs) {
			a.Size = int64(len(m.data))
		}
	}
	if a.Mode != m.mode || a.Nlink != m.links || a.Size != int64(len(m.data)) {
		m.fail("%s is told of %+v, the file has %o, %d links, %d bytes", u.c.name(), a, m.mode, m.links, len(m.data))
	}
	if u.rights()&CacheRead != 0 && u.c.Holder.CachesAttrs {
		u.attrs, u.mode, u.links = true, a.Mode, a.Nlink
	}
}

// TestLeaseModel: several holders work on one file at random, by leases that
// cover attributes or not, beside one who holds nothing.
func TestLeaseModel(t *testing.T) {
	seeds, waits, hits := 200, 0, 0
	if testing.Short() {
		seeds = 15
	}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			m := &leaseModel{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), name: "f", mode: 0, links: 1}
			var err error
			if m.s, err = New(Config{Size: 1 << 20}); err != nil {
				t.Fatal(err)
			}
			defer m.s.Close()
			m.f = mustCreate(t, m.s.Root(), "f", TypeFile)
			for n, name := range []string{"attrs1", "attrs2", "data1", "data2", ""} {
				u := &leaseUser{m: m}
				if name != "" {
					u.c.Holder = &Holder{Name: name, CachesAttrs: n < 2}
				}
				m.users = append(m.users, u)
			}
			if _, err := m.f.SetAttr(Root(), nil, &SetAttr{Mask: SetMode}); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				u := m.users[m.rnd.IntN(len(m.users))]
				for range m.rnd.IntN(20) {
					u.step()
				}
				wantErr(t, "Check", m.s.Check(), nil)
			}
			for _, u := range m.users {
				if u.lease != nil {
					u.yield(0)
				}
				if u.open != nil {
					u.open.Close()
				}
			}
			wantErr(t, "Check", m.s.Check(), nil)
			if m.f.x != nil && len(m.f.x.leases)+len(m.f.x.opens) > 0 {
				t.Errorf("left: %v", m.f.x)
			}
			waits, hits = waits+m.waits, hits+m.hits
		})
	}
	if waits < 100 || hits < 100 {
		t.Errorf("only %d calls had to wait, and %d were answered by a cache", waits, hits)
	}
	t.Logf("%d calls had to wait, %d were answered by a cache", waits, hits)
}
