package export

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"ramserver/memstore"
)

func newStore(t *testing.T) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Name: "main", Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestTable(t *testing.T) {
	s, other := newStore(t), newStore(t)
	one := func(name string) *Export { return &Export{Name: name, Store: s, Root: s.Root()} }
	for _, tc := range []struct {
		name    string
		exports []*Export
		err     string
	}{
		{"one", []*Export{one("ramdisk")}, ""},
		{"two", []*Export{one("a"), one("b")}, ""},
		{"none", nil, "no exports"},
		{"same name", []*Export{one("a"), one("a")}, "two of that name"},
		{"empty name", []*Export{one("")}, "export name"},
		{"slash", []*Export{one("a/b")}, "export name"},
		{"backslash", []*Export{one(`a\b`)}, "export name"},
		{"blank", []*Export{one("a b")}, "export name"},
		{"dots", []*Export{one("..")}, "export name"},
		{"not UTF-8", []*Export{one("a\xff")}, "export name"},
		{"long", []*Export{one(strings.Repeat("a", 256))}, "export name"},
		{"root of another store", []*Export{{Name: "a", Store: s, Root: other.Root()}}, "not a directory of its store"},
		{"names of one id", []*Export{one("costarring"), one("liquid")}, "same id"}, // FNV-1a 32 collides
	} {
		t.Run(tc.name, func(t *testing.T) {
			table, err := New(tc.exports...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want an error with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range tc.exports {
				if table.ByID(e.ID) != e {
					t.Errorf("%q is not found by its id", e.Name)
				}
			}
			if table.ByID(12345) != nil {
				t.Error("an id of no export finds one")
			}
		})
	}
	a, b := one("scratch"), one("scratch")
	New(a)
	New(one("x"), b)
	if a.ID != b.ID {
		t.Error("the id depends on more than the name")
	}
}

func TestFind(t *testing.T) {
	s := newStore(t)
	table, err := New(&Export{Name: "ramdisk", Store: s, Root: s.Root()}, &Export{Name: "b", Store: s, Root: s.Root()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, name, rest string }{
		{"/", "ramdisk", ""},
		{"", "ramdisk", ""},
		{"/ramdisk", "ramdisk", ""},
		{"ramdisk", "ramdisk", ""},
		{"/ramdisk/", "ramdisk", ""},
		{"/ramdisk/sub", "ramdisk", "sub"},
		{"/sub/dir", "ramdisk", "sub/dir"},
		{"//sub//dir/", "ramdisk", "sub/dir"},
		{"/b", "b", ""},
		{"/./b/./c/d", "b", "c/d"},
		{"/b/b", "b", "b"},
		{"/b/ramdisk", "b", "ramdisk"},
		{"/..", "", ""},
		{"/b/../ramdisk", "", ""},
		{"/b/..", "", ""},
	} {
		e, rest, ok := table.Find(tc.path)
		if ok != (tc.name != "") || ok && (e.Name != tc.name || rest != tc.rest) {
			t.Errorf("Find(%q) = %v, %q, %v; want %q, %q", tc.path, e, rest, ok, tc.name, tc.rest)
		}
	}
}

func TestAdmit(t *testing.T) {
	e := &Export{Allow: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	for _, tc := range []struct {
		peer Peer
		want bool
	}{
		{Peer{addr: netip.MustParseAddrPort("127.0.0.1:700"), local: true}, true},
		{Peer{addr: netip.MustParseAddrPort("10.0.0.1:700"), local: true}, true},
		{Peer{addr: netip.MustParseAddrPort("192.168.3.4:700")}, true},
		{Peer{addr: netip.MustParseAddrPort("[fd00::1]:700")}, true},
		{Peer{addr: netip.MustParseAddrPort("10.0.0.1:700")}, false},
		{Peer{addr: netip.MustParseAddrPort("[fe80::1]:700")}, false},
		{Peer{}, false},
	} {
		if got := e.Admit(&tc.peer); got != tc.want {
			t.Errorf("Admit(%v) = %v", &tc.peer, got)
		}
	}
	s := newStore(t)
	table, err := New(&Export{Name: "a", Store: s, Root: s.Root()}, &Export{Name: "b", Store: s, Root: s.Root(), Allow: e.Allow})
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]bool{
		"127.0.0.2": true, "::1": true, "::ffff:127.0.0.1": true, "::ffff:192.168.1.1": true,
		"192.168.1.1": true, "fd12::1": true, "193.168.1.1": false, "::": false,
	} {
		if got := table.Admits(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Admits(%s) = %v", addr, got)
		}
	}
	if table.Admits(netip.Addr{}) {
		t.Error("Admits no address")
	}
}

func TestCred(t *testing.T) {
	far, near := netip.MustParseAddrPort("10.0.0.1:700"), netip.MustParseAddrPort("127.0.0.1:700")
	farHigh, nearHigh := netip.MustParseAddrPort("10.0.0.1:7000"), netip.MustParseAddrPort("127.0.0.1:7000")
	peers := map[string]*Peer{
		"far":                 {addr: far},
		"far, high port":      {addr: farHigh},
		"near, user 0":        {addr: nearHigh, local: true, owner: ownerKnown},
		"near, user 1000":     {addr: near, local: true, owner: ownerKnown, uid: 1000, gid: 100, hasGID: true, groups: []uint32{100, 44, 0}},
		"near, user unlisted": {addr: near, local: true, owner: ownerKnown, uid: 1001},
		"near, unknown":       {addr: near, local: true},
		"near, unknown, high": {addr: nearHigh, local: true},
		"near, gone":          {addr: near, local: true, owner: ownerGone},
	}
	nobody := memstore.Cred{UID: 7, GID: 8}
	type claim struct {
		uid, gid uint32
		groups   []uint32
	}
	user := claim{1000, 100, []uint32{44, 50}}
	root := claim{0, 0, []uint32{0, 4}}
	cred := func(uid, gid uint32, groups ...uint32) memstore.Cred {
		return memstore.Cred{UID: uid, GID: gid, Groups: groups}
	}
	for _, tc := range []struct {
		peer     string
		squash   Squash
		insecure bool
		claim    claim
		want     memstore.Cred
	}{
		{"far", SquashDefault, false, user, cred(1000, 100, 44, 50)},
		{"far", SquashDefault, false, root, cred(7, 8, 8, 4)},
		{"far", SquashNone, false, root, cred(0, 0, 0, 4)},
		{"far", SquashRoot, false, root, cred(7, 8, 8, 4)},
		{"far", SquashRoot, false, claim{0, 5, nil}, cred(7, 5)},
		{"far", SquashAll, false, user, nobody},
		{"far, high port", SquashNone, false, user, nobody},
		{"far, high port", SquashNone, true, user, cred(1000, 100, 44, 50)},
		{"far, high port", SquashDefault, true, root, cred(7, 8, 8, 4)},

		{"near, user 0", SquashDefault, false, root, cred(0, 0, 0, 4)},
		{"near, user 0", SquashDefault, false, user, cred(1000, 100, 44, 50)},
		{"near, user 0", SquashRoot, false, root, cred(7, 8, 8, 4)},
		{"near, user 0", SquashAll, false, root, nobody},

		// Only what that user is.
		{"near, user 1000", SquashNone, true, root, cred(1000, 0, 0)},
		{"near, user 1000", SquashRoot, false, root, cred(1000, 8, 8)},
		{"near, user 1000", SquashNone, false, claim{1002, 1002, []uint32{50, 44, 4}}, cred(1000, 100, 44)},
		{"near, user 1000", SquashAll, false, user, nobody},
		{"near, user unlisted", SquashNone, true, root, cred(1001, 8)},

		// As from another machine, but root of this one is root.
		{"near, unknown", SquashDefault, false, root, cred(0, 0, 0, 4)},
		{"near, unknown", SquashRoot, false, root, cred(7, 8, 8, 4)},
		{"near, unknown, high", SquashNone, false, user, nobody},
		{"near, unknown, high", SquashDefault, true, root, cred(7, 8, 8, 4)},

		{"near, gone", SquashNone, true, root, nobody},
	} {
		e := &Export{Squash: tc.squash, Anon: IDs{7, 8}, InsecurePorts: tc.insecure}
		got := e.Cred(peers[tc.peer], tc.claim.uid, tc.claim.gid, slices.Clone(tc.claim.groups), true)
		if got.UID != tc.want.UID || got.GID != tc.want.GID || !slices.Equal(got.Groups, tc.want.Groups) {
			t.Errorf("%s, squash %v, insecure %v, claims %v: got %v, want %v", tc.peer, tc.squash, tc.insecure, tc.claim, got, tc.want)
		}
		got = e.Cred(peers[tc.peer], 0, 0, []uint32{0}, false)
		if got.UID != 7 || got.GID != 8 || len(got.Groups) != 0 {
			t.Errorf("%s, squash %v: without AUTH_SYS got %v", tc.peer, tc.squash, got)
		}
	}

	e := &Export{}
	groups := make([]uint32, 16)
	if n := testing.AllocsPerRun(100, func() {
		for _, p := range peers {
			if e.Admit(p) {
				e.Cred(p, 0, 0, groups, true)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/8":          "10.0.0.0/8",
		"10.1.2.3":            "10.1.2.3/32",
		"fd00::1":             "fd00::1/128",
		"::ffff:10.0.0.0/104": "10.0.0.0/8",
		"::ffff:10.1.2.3":     "10.1.2.3/32",
		"0.0.0.0/0":           "0.0.0.0/0",
		"10.0.0.1/8":          "!want 10.0.0.0/8",
		"::/0":                "::/0",
		"::ffff:0.0.0.0/90":   "!mixes",
		"10.0.0.0/33":         "!want a CIDR",
		"fe80::1%eth0":        "!want a CIDR",
		"lan":                 "!want a CIDR",
		"":                    "!want a CIDR",
	} {
		p, err := ParseNetwork(in)
		check(t, "network", in, p.String(), err, want)
	}
	for in, want := range map[string]string{
		"0:0": "0:0", "1000:100": "1000:100", "4294967294:1": "4294967294:1",
		"4294967295:1": "!want uid:gid", "1": "!want uid:gid", "1:": "!want uid:gid", "-1:0": "!want uid:gid",
		"a:b": "!want uid:gid", "1:2:3": "!want uid:gid", "": "!want uid:gid",
	} {
		ids, err := ParseIDs(in)
		check(t, "ids", in, ids.String(), err, want)
	}
	for in, want := range map[string]string{
		"root": "root", "all": "all", "none": "none", "default": "default", "": "!want root", "Root": "!want root",
	} {
		s, err := ParseSquash(in)
		check(t, "squash", in, s.String(), err, want)
	}
}

func check(t *testing.T, what, in, got string, err error, want string) {
	t.Helper()
	if msg, bad := strings.CutPrefix(want, "!"); bad {
		if err == nil || !strings.Contains(err.Error(), msg) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: got %s, %v; want an error with %q", what, in, got, err, msg)
		}
	} else if err != nil || got != want {
		t.Errorf("%s %q: got %s, %v; want %s", what, in, got, err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "::ffff:1.2.3.4/100", "1:2", "root", "/a/../b", "a//b"} {
		f.Add(s)
	}
	store, err := memstore.New(memstore.Config{Name: "main", Size: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	table, err := New(&Export{Name: "a", Store: store, Root: store.Root()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParseNetwork(s); err == nil {
			if again, err := ParseNetwork(p.String()); err != nil || again != p {
				t.Errorf("network %q: %v is read as %v, %v", s, p, again, err)
			}
		}
		if i, err := ParseIDs(s); err == nil {
			if again, err := ParseIDs(i.String()); err != nil || again != i {
				t.Errorf("ids %q: %v is read as %v, %v", s, i, again, err)
			}
		}
		if _, rest, ok := table.Find(s); ok {
			for part := range strings.SplitSeq(rest, "/") {
				if part == "." || part == ".." || part == "" && rest != "" {
					t.Errorf("Find(%q) leaves %q", s, rest)
				}
			}
		}
	})
}
