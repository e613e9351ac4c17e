package memstore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func caller(uid, gid uint32, groups ...uint32) *Caller {
	return &Caller{Cred: Cred{UID: uid, GID: gid, Groups: groups}}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestNames(t *testing.T) {
	s := newStore(t, 16<<20)
	root, c := s.Root(), Root()
	d := mustCreate(t, root, "d", TypeDir)
	f := mustCreate(t, root, "f", TypeFile)
	mustCreate(t, d, "x", TypeFile)
	e := mustCreate(t, root, "e", TypeDir)
	mustCreate(t, root, "l", TypeSymlink)
	long := strings.Repeat("n", MaxName)

	create := func(d *Inode, name string, typ Type, rule ExistRule) error {
		_, err := d.Create(c, name, &Create{Type: typ, Exist: rule, Target: "t"})
		return err
	}
	remove := func(d *Inode, name string, kind RemoveKind) error {
		_, err := d.Remove(c, name, kind)
		return err
	}
	rename := func(a *Inode, an string, b *Inode, bn string, f RenameFlags) error {
		_, _, err := s.Rename(c, a, an, b, bn, f)
		return err
	}
	link := func(d *Inode, name string, i *Inode) error {
		_, _, err := d.Link(c, name, i)
		return err
	}
	lookup := func(d *Inode, name string) error {
		_, err := d.Lookup(c, name)
		return err
	}
	for _, tt := range []struct {
		what string
		got  error
		want error
	}{
		{"create existing", create(root, "f", TypeFile, ExistFail), ErrExist},
		{"create over existing", create(root, "f", TypeFile, ExistOpen), nil},
		{"create over directory", create(root, "d", TypeFile, ExistOpen), ErrExist},
		{"create over symlink", create(root, "l", TypeFile, ExistOpen), ErrExist},
		{"create .", create(root, ".", TypeFile, ExistFail), ErrExist},
		{"create empty name", create(root, "", TypeFile, ExistFail), ErrInvalid},
		{"create with slash", create(root, "a/b", TypeFile, ExistFail), ErrInvalid},
		{"create with NUL", create(root, "a\x00", TypeFile, ExistFail), ErrInvalid},
		{"create longest name", create(root, long, TypeFile, ExistFail), nil},
		{"create too long a name", create(root, long+"n", TypeFile, ExistFail), ErrNameTooLong},
		{"create in a file", create(f, "a", TypeFile, ExistFail), ErrNotDir},
		{"create of no type", create(root, "t", 0, ExistFail), ErrBadType},
		{"lookup missing", lookup(root, "missing"), ErrNotExist},
		{"lookup in a file", lookup(f, "a"), ErrNotDir},
		{"lookup .", lookup(d, "."), nil},
		{"lookup ..", lookup(d, ".."), nil},
		{"lookup too long", lookup(d, long+"n"), ErrNameTooLong},
		{"remove missing", remove(root, "missing", RemoveAny), ErrNotExist},
		{"remove directory as file", remove(root, "d", RemoveFile), ErrIsDir},
		{"remove file as directory", remove(root, "f", RemoveDir), ErrNotDir},
		{"remove full directory", remove(root, "d", RemoveDir), ErrNotEmpty},
		{"remove .", remove(d, ".", RemoveDir), ErrInvalid},
		{"remove ..", remove(d, "..", RemoveDir), ErrNotEmpty},
		{"remove in a file", remove(f, "a", RemoveFile), ErrNotDir},
		{"link to directory", link(root, "ld", d), ErrPerm},
		{"link in a file, of itself", link(f, "x", f), ErrNotDir},
		{"link over existing", link(root, "l", f), ErrExist},
		{"link", link(d, "f2", f), nil},
		{"rename missing", rename(root, "missing", root, "a", 0), ErrNotExist},
		{"rename file over directory", rename(root, "f", root, "e", 0), ErrIsDir},
		{"rename directory over file", rename(root, "e", root, "f", 0), ErrNotDir},
		{"rename directory over full one", rename(root, "e", root, "d", 0), ErrNotEmpty},
		{"rename into itself", rename(root, "d", d, "d", 0), ErrInvalid},
		{"rename without replacing", rename(root, "f", root, "l", RenameNoReplace), ErrExist},
		{"rename to the same inode", rename(root, "f", d, "f2", 0), nil},
		{"both names of an inode are left", lookup(root, "f"), nil},
		{"exchange with missing", rename(root, "f", root, "missing", RenameExchange), ErrNotExist},
		{"exchange below itself", rename(root, "d", d, "x", RenameExchange), ErrInvalid},
		{"exchange", rename(root, "e", d, "x", RenameExchange), nil},
		{"exchanged directory", lookup(d, "x"), nil},
		{"rename directory over empty one", rename(d, "x", root, "e2", 0), nil},
	} {
		wantErr(t, tt.what, tt.got, tt.want)
	}
	if p, ok := e.Path(); p != "e2" || !ok {
		t.Errorf("path %q %v, want e2", p, ok)
	}
	if e.Parent() != root {
		t.Error("moved directory has another parent")
	}
	if a, _ := d.GetAttr(c); a.Nlink != 2 {
		t.Errorf("%d links, want 2", a.Nlink)
	}
	if a, _ := root.GetAttr(c); a.Nlink != 4 {
		t.Errorf("root: %d links, want 4", a.Nlink)
	}
}

func TestLinkCountsAndStale(t *testing.T) {
	s := newStore(t, 16<<20)
	c := Root()
	f := mustCreate(t, s.Root(), "f", TypeFile)
	h := f.Handle()
	if _, _, err := f.WriteAt(c, nil, []byte("content"), 0); err != nil {
		t.Fatal(err)
	}
	if _, a, err := s.Root().Link(c, "g", f); err != nil || a.Nlink != 2 {
		t.Fatal(a.Nlink, err)
	}
	s.Root().Remove(c, "f", RemoveFile)
	if i, err := s.ByHandle(h); i != f || err != nil {
		t.Fatal("handle lost with one of two names", err)
	}
	o, err := f.Open(c, OpenArgs{Access: AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	s.Root().Remove(c, "g", RemoveFile)
	if got := string(content(t, f)); got != "content" {
		t.Errorf("open file without a name has %q", got)
	}
	if _, err := s.ByHandle(h); err != nil {
		t.Error("handle of an open file:", err)
	}
	o.Close()
	o.Close()
	_, err = s.ByHandle(h)
	wantErr(t, "handle of a removed file", err, ErrStale)
	_, err = f.GetAttr(c)
	wantErr(t, "attributes of a removed file", err, ErrStale)
	g := mustCreate(t, s.Root(), "g", TypeFile)
	if g.Ino() != f.Ino() {
		t.Error("the inode number was not used again")
	}
	_, err = s.ByHandle(h)
	wantErr(t, "old handle of a new inode", err, ErrStale)
	other, err := New(Config{Name: t.Name(), Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Root().Handle() != s.Root().Handle() {
		t.Error("the root's handle is not the same after a restart")
	}
}

func TestPermissions(t *testing.T) {
	s := newStore(t, 16<<20)
	root := s.Root()
	owner, member, other := caller(10, 100), caller(11, 7, 100), caller(12, 7)
	chmod := func(i *Inode, mode uint16) {
		if _, err := i.SetAttr(Root(), nil, &SetAttr{Mask: SetMode, Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := root.Create(owner, "f", &Create{Type: TypeFile, Set: SetAttr{Mask: SetMode, Mode: 0o640}})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Inode
	read := func(c *Caller) error { _, _, _, err := f.ReadAt(c, nil, make([]byte, 1), 0); return err }
	write := func(c *Caller) error { _, _, err := f.WriteAt(c, nil, []byte("x"), 0); return err }
	set := func(c *Caller, a SetAttr) error { _, err := f.SetAttr(c, nil, &a); return err }
	for _, tt := range []struct {
		what string
		got  error
		want error
	}{
		{"owner reads", read(owner), nil},
		{"member reads", read(member), nil},
		{"other reads", read(other), ErrAccess},
		{"member writes", write(member), ErrAccess},
		{"other changes mode", set(other, SetAttr{Mask: SetMode}), ErrPerm},
		{"owner gives away", set(owner, SetAttr{Mask: SetUID, UID: 12}), ErrPerm},
		{"owner sets own uid", set(owner, SetAttr{Mask: SetUID, UID: 10}), nil},
		{"owner sets foreign group", set(owner, SetAttr{Mask: SetGID, GID: 7}), ErrPerm},
		{"other sets times", set(other, SetAttr{Mask: SetMtime}), ErrPerm},
		{"other touches", set(other, SetAttr{Mask: SetMtimeNow}), ErrAccess},
		{"guard", set(owner, SetAttr{Mask: SetMode | SetGuard, Mode: 0o600}), ErrNotSync},
		{"negative size", set(owner, SetAttr{Mask: SetSize, Size: -1}), ErrInvalid},
		{"too large a size", set(owner, SetAttr{Mask: SetSize, Size: MaxFileSize + 1}), ErrFileTooLarge},
		{"largest size", set(owner, SetAttr{Mask: SetSize, Size: MaxFileSize}), nil},
		{"smallest size", set(owner, SetAttr{Mask: SetSize, Size: 0}), nil},
	} {
		wantErr(t, tt.what, tt.got, tt.want)
	}
	chmod(f, 0o400)
	wantErr(t, "owner writes a read-only file", write(owner), nil)
	chmod(f, 0o711)
	wantErr(t, "executor reads", read(other), nil)
	if got := f.Access(other, AccessRead|AccessWrite|AccessExecute); got != AccessExecute {
		t.Errorf("access %v, want execute", got)
	}
	chmod(f, 0o6777)
	wantErr(t, "other writes", write(other), nil)
	if a, _ := f.GetAttr(other); a.Mode != 0o777 {
		t.Errorf("mode %o after a write by another, want 777", a.Mode)
	}

	chmod(root, 0o1777)
	_, err = root.Remove(other, "f", RemoveFile)
	wantErr(t, "remove another's file from a sticky directory", err, ErrPerm)
	_, _, err = s.Rename(other, root, "f", root, "g", 0)
	wantErr(t, "rename another's file in a sticky directory", err, ErrPerm)
	chmod(root, 0o755)
	_, err = root.Create(owner, "n", &Create{Type: TypeFile})
	wantErr(t, "create without permission", err, ErrAccess)
	_, err = root.Remove(owner, "f", RemoveFile)
	wantErr(t, "remove without permission", err, ErrAccess)
	chmod(root, 0o700)
	_, err = root.Lookup(owner, "f")
	wantErr(t, "lookup without permission", err, ErrAccess)

	// A set-gid directory hands its group on, and the bit to directories.
	chmod(root, 0o2777)
	if _, err := root.SetAttr(Root(), nil, &SetAttr{Mask: SetGID, GID: 55}); err != nil {
		t.Fatal(err)
	}
	chmod(root, 0o2777)
	r, _ = root.Create(other, "sub", &Create{Type: TypeDir, Set: SetAttr{Mask: SetMode, Mode: 0o755}})
	if r.Attr.GID != 55 || r.Attr.Mode != 0o2755 {
		t.Errorf("directory has group %d, mode %o", r.Attr.GID, r.Attr.Mode)
	}
	r, _ = root.Create(other, "file", &Create{Type: TypeFile, Set: SetAttr{Mask: SetMode, Mode: 0o2775}})
	if r.Attr.GID != 55 || r.Attr.Mode != 0o775 {
		t.Errorf("file has group %d, mode %o", r.Attr.GID, r.Attr.Mode)
	}
	_, err = root.Create(other, "dev", &Create{Type: TypeChar})
	wantErr(t, "device by a user", err, ErrPerm)
	chmod(root, 0o777)
}

func TestExclusiveCreate(t *testing.T) {
	s := newStore(t, 16<<20)
	c := Root()
	args := &Create{Type: TypeFile, Exist: ExistVerifier, Verifier: 0xfedcba9876543210}
	r, err := s.Root().Create(c, "f", args)
	if err != nil || !r.New {
		t.Fatal(r, err)
	}
	again, err := s.Root().Create(c, "f", args)
	if err != nil || again.New || again.Inode != r.Inode {
		t.Error("retransmission:", again, err)
	}
	args.Verifier++
	_, err = s.Root().Create(c, "f", args)
	wantErr(t, "another verifier", err, ErrExist)
}

func TestChangedAttributes(t *testing.T) {
	s := newStore(t, 16<<20)
	c := Root()
	f := mustCreate(t, s.Root(), "f", TypeFile)
	before, _ := f.GetAttr(c)
	_, ch, err := f.WriteAt(c, nil, []byte("xyz"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if ch.Before.Change != before.Change || ch.Before.Size != 0 || ch.After.Size != 3 || ch.After.Change <= before.Change || ch.After.Mtime < before.Mtime {
		t.Errorf("write: %+v", ch)
	}
	root, _ := s.Root().GetAttr(c)
	d, err := s.Root().Remove(c, "f", RemoveFile)
	if err != nil || d.Before.Change != root.Change || d.After.Change <= root.Change {
		t.Errorf("remove: %+v %v", d, err)
	}
}

// list reads a whole directory, n entries at a time.
func list(t testing.TB, d *Inode, n int, between func()) []string {
	t.Helper()
	var names []string
	buf := make([]DirEntry, n)
	var cookie uint64
	for {
		got, eof, err := d.ReadDir(Root(), cookie, buf)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range buf[:got] {
			if e.Inode == nil || e.Cookie <= cookie {
				t.Fatalf("entry %+v behind cookie %d", e, cookie)
			}
			cookie = e.Cookie
			names = append(names, e.Name)
		}
		if eof {
			return names
		}
		if between != nil {
			between()
		}
	}
}

func TestListingWhileTheDirectoryChanges(t *testing.T) {
	for _, stay := range []int{3, 40, 2000} {
		s := newStore(t, 64<<20)
		d, c := s.Root(), Root()
		for n := range stay {
			mustCreate(t, d, fmt.Sprint("stay", n), TypeFile)
			mustCreate(t, d, fmt.Sprint("go", n), TypeFile)
		}
		n := 0
		got := list(t, d, 7, func() {
			for range 9 {
				d.Remove(c, fmt.Sprint("go", n%stay), RemoveFile)
				if n < 3*stay {
					mustCreate(t, d, fmt.Sprint("come", n), TypeFile)
				}
				n++
			}
		})
		seen := map[string]int{}
		for _, name := range got {
			seen[name]++
		}
		for n := range stay {
			if name := fmt.Sprint("stay", n); seen[name] != 1 {
				t.Fatalf("of %d: %s listed %d times", stay, name, seen[name])
			}
		}
	}
}

// TestIndex runs random additions and removals against a map.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	d := directory{next: firstCookie}
	model := map[string]uint32{}
	for step := range 50_000 {
		name := fmt.Sprint(r.IntN(1 + step/10))
		if pos := d.find(name); pos >= 0 {
			if ino := d.at(pos).ino; model[name] != ino {
				t.Fatalf("%d: %s is %d, want %d", step, name, ino, model[name])
			}
			// Grow for a while, then shrink.
			if r.IntN(3) == 0 || step > 40_000 {
				d.remove(pos)
				delete(model, name)
			}
			continue
		}
		if model[name] != 0 {
			t.Fatalf("%d: %s is lost", step, name)
		}
		if step <= 40_000 {
			d.add(name, uint32(step+1))
			model[name] = uint32(step + 1)
		}
	}
	for name, ino := range model {
		if pos := d.find(name); pos < 0 || d.at(pos).ino != ino {
			t.Fatalf("%s is lost", name)
		}
	}
	if d.live != len(model) {
		t.Fatalf("%d names, want %d", d.live, len(model))
	}
}

// A directory whose oldest names are removed all the time stays small, and its
// cookies good.
func TestQueueOfNames(t *testing.T) {
	d := directory{next: firstCookie}
	const live = 100
	for n := range uint64(50_000) {
		if cookie := d.add(fmt.Sprint(n), uint32(n+1)); cookie != firstCookie+n {
			t.Fatalf("cookie %d of name %d", cookie, n)
		}
		if n < live {
			continue
		}
		d.remove(d.find(fmt.Sprint(n - live)))
		if name, _ := d.seek(firstCookie + n - live); name != "" {
			t.Fatalf("%s is found though removed", name)
		}
		name, ino := d.seek(firstCookie + n - live/2)
		if want := n - live/2; name != fmt.Sprint(want) || ino != uint32(want+1) {
			t.Fatalf("cookie of %d has %q, %d", want, name, ino)
		}
		if d.live != live || len(d.leaves)*leafSize > 8*live+1024+leafSize {
			t.Fatalf("%d leaves for %d names", len(d.leaves), d.live)
		}
	}
}

func TestLookupFold(t *testing.T) {
	s := newStore(t, 16<<20)
	d, c := s.Root(), Root()
	mustCreate(t, d, "ReadMe", TypeFile)
	if _, stored, err := d.LookupFold(c, "README"); stored != "ReadMe" || err != nil {
		t.Error(stored, err)
	}
	mustCreate(t, d, "Straße.Ä", TypeFile)
	if _, stored, err := d.LookupFold(c, "STRAßE.ä"); stored != "Straße.Ä" || err != nil {
		t.Error(stored, err)
	}
	mustCreate(t, d, "readme", TypeFile)
	if _, stored, _ := d.LookupFold(c, "readme"); stored != "readme" {
		t.Error(stored)
	}
	d.Remove(c, "ReadMe", RemoveFile)
	if _, stored, _ := d.LookupFold(c, "README"); stored != "readme" {
		t.Error(stored)
	}
	d.Remove(c, "readme", RemoveFile)
	_, _, err := d.LookupFold(c, "README")
	wantErr(t, "removed", err, ErrNotExist)
}

// TestTreeAgainstModel runs random operations on names against a map from
// path to inode number.
func TestTreeAgainstModel(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := newStore(t, 64<<20)
			c := Root()
			model := map[string]uint64{} // path -> inode number
			isDir := map[uint64]bool{s.Root().Ino(): true}
			walk := func(path string) *Inode {
				i := s.Root()
				if path == "" {
					return i
				}
				for _, name := range strings.Split(path, "/") {
					var err error
					if i, err = i.Lookup(c, name); err != nil {
						return nil
					}
				}
				return i
			}
			below := func(path string) bool {
				for p := range model {
					if strings.HasPrefix(p, path+"/") {
						return true
					}
				}
				return false
			}
			dirs := func() []string {
				all := []string{""}
				for p, ino := range model {
					if isDir[ino] {
						all = append(all, p)
					}
				}
				slices.Sort(all)
				return all
			}
			pick := func() (string, string) {
				all := dirs()
				return all[r.IntN(len(all))], fmt.Sprint("n", r.IntN(30))
			}
			join := func(d, n string) string { return strings.TrimPrefix(d+"/"+n, "/") }
			for step := range 1500 {
				dp, name := pick()
				p := join(dp, name)
				d := walk(dp)
				ino, have := model[p]
				switch r.IntN(5) {
				case 0, 1:
					typ := TypeFile
					if r.IntN(3) == 0 {
						typ = TypeDir
					}
					res, err := d.Create(c, name, &Create{Type: typ})
					if have != errors.Is(err, ErrExist) {
						t.Fatalf("%d: create %s: %v", step, p, err)
					}
					if !have {
						model[p], isDir[res.Inode.Ino()] = res.Inode.Ino(), typ == TypeDir
					}
				case 2:
					_, err := d.Remove(c, name, RemoveAny)
					switch {
					case !have:
						wantErr(t, "remove "+p, err, ErrNotExist)
					case isDir[ino] && below(p):
						wantErr(t, "remove "+p, err, ErrNotEmpty)
					default:
						wantErr(t, "remove "+p, err, nil)
						delete(model, p)
					}
				case 3:
					if have && !isDir[ino] {
						tp, tn := pick()
						q := join(tp, tn)
						_, _, err := walk(tp).Link(c, tn, walk(p))
						if _, taken := model[q]; taken {
							wantErr(t, "link "+q, err, ErrExist)
						} else {
							wantErr(t, "link "+q, err, nil)
							model[q] = ino
						}
					}
				case 4:
					tp, tn := pick()
					q := join(tp, tn)
					target, taken := model[q]
					flags := RenameFlags(r.IntN(3))
					_, _, err := s.Rename(c, d, name, walk(tp), tn, flags)
					var want error
					switch {
					case !have || flags == RenameExchange && !taken:
						want = ErrNotExist
					case taken && flags == RenameNoReplace:
						want = ErrExist
					case taken && target == ino:
						continue
					case isDir[ino] && strings.HasPrefix(q, p+"/"), flags == RenameExchange && isDir[target] && strings.HasPrefix(p, q+"/"):
						want = ErrInvalid
					case flags == RenameExchange || !taken:
					case isDir[ino] && !isDir[target]:
						want = ErrNotDir
					case !isDir[ino] && isDir[target]:
						want = ErrIsDir
					case isDir[ino] && below(q):
						want = ErrNotEmpty
					}
					wantErr(t, fmt.Sprintf("rename %s %s %d", p, q, flags), err, want)
					if want == nil {
						next := maps.Clone(model)
						delete(next, p)
						delete(next, q)
						move := func(from, to string) {
							for path, n := range model {
								if path == from || strings.HasPrefix(path, from+"/") {
									delete(next, path)
									next[to+path[len(from):]] = n
								}
							}
						}
						move(p, q)
						if flags == RenameExchange {
							move(q, p)
							// What moved to q may have been deleted again.
							for path, n := range model {
								if path == p || strings.HasPrefix(path, p+"/") {
									next[q+path[len(p):]] = n
								}
							}
						}
						model = next
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			}
			found := map[string]uint64{}
			var visit func(path string, d *Inode)
			visit = func(path string, d *Inode) {
				for _, name := range list(t, d, 10, nil) {
					i, err := d.Lookup(c, name)
					if err != nil {
						t.Fatal(err)
					}
					found[join(path, name)] = i.Ino()
					if i.typ == TypeDir {
						visit(join(path, name), i)
					}
				}
			}
			visit("", s.Root())
			if !maps.Equal(found, model) {
				t.Errorf("tree differs from the model: %d and %d names", len(found), len(model))
			}
		})
	}
}

// TestConcurrentUse has many goroutines at the same few names; Check at the
// end of the test tells whether the store survived.
func TestConcurrentUse(t *testing.T) {
	s := newStore(t, 8<<20)
	dirs := []*Inode{s.Root()}
	for _, n := range []string{"a", "b", "c"} {
		dirs = append(dirs, mustCreate(t, s.Root(), n, TypeDir))
	}
	dirs = append(dirs, mustCreate(t, dirs[1], "inner", TypeDir))
	var wg sync.WaitGroup
	stop := time.Now().Add(time.Second)
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			c := Root()
			name := func() string { return string(rune('p' + r.IntN(6))) }
			buf, p := make([]DirEntry, 16), make([]byte, 100_000)
			for time.Now().Before(stop) {
				d, e := dirs[r.IntN(len(dirs))], dirs[r.IntN(len(dirs))]
				switch r.IntN(8) {
				case 0:
					d.Create(c, name(), &Create{Type: TypeFile, Exist: ExistOpen})
				case 1:
					d.Create(c, name(), &Create{Type: TypeDir})
				case 2:
					d.Remove(c, name(), RemoveAny)
				case 3:
					s.Rename(c, d, name(), e, name(), RenameFlags(r.IntN(3)))
				case 4:
					if i, err := d.Lookup(c, name()); err == nil {
						e.Link(c, name(), i)
					}
				case 5:
					d.ReadDir(c, uint64(r.IntN(50)), buf)
				case 6:
					i, err := d.Lookup(c, name())
					if err != nil {
						continue
					}
					if o, err := i.Open(c, OpenArgs{Access: AccessRead | AccessWrite}); err == nil {
						i.WriteAt(c, o, p[:r.IntN(len(p))], int64(r.IntN(200_000)))
						var v View
						i.ReadView(c, o, 0, len(p), &v)
						i.SetAttr(c, o, &SetAttr{Mask: SetSize, Size: int64(r.IntN(100_000))})
						v.Release()
						o.Close()
					}
				case 7:
					i, err := d.Lookup(c, name())
					j, err2 := e.Lookup(c, name())
					if err == nil && err2 == nil {
						i.Clone(c, nil, 0, j, nil, 0, 0)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestRenameLockIsOnlyForDirectories holds the one lock over the tree while
// everything else goes on.
func TestRenameLockIsOnlyForDirectories(t *testing.T) {
	s := newStore(t, 8<<20)
	a, b := mustCreate(t, s.Root(), "a", TypeDir), mustCreate(t, s.Root(), "b", TypeDir)
	f := mustCreate(t, a, "f", TypeFile)
	s.renameMu.Lock()
	defer s.renameMu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.WriteAt(Root(), nil, []byte("x"), 0)
		mustCreate(t, b, "g", TypeFile)
		mustCreate(t, b, "d", TypeDir)
		b.Remove(Root(), "d", RemoveDir)
		s.Rename(Root(), a, "f", b, "f", 0)
		s.Rename(Root(), b, "f", b, "h", 0)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("an operation waits for the rename lock")
	}
}
