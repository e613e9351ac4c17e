package fusefs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"ramserver/loopback/coherence"
	"ramserver/loopback/fusefs"
	"ramserver/memstore"
)

func TestMain(m *testing.M) {
	if coherence.Main() {
		return
	}
	os.Exit(m.Run())
}

// newLocal is a local process.
func newLocal(t *testing.T, dir string) *coherence.Process {
	t.Helper()
	return coherence.Start(t, os.Args[0], dir)
}

// client is a client of the network: another holder in the store.
type client struct {
	dir *memstore.Inode
	c   *memstore.Caller
}

func (n *client) Do(c coherence.Call) (a coherence.Answer) {
	i, err := n.dir.Lookup(n.c, c.Name)
	if err != nil && c.Op != "create" && c.Op != "list" {
		return refused(err)
	}
	switch c.Op {
	case "create":
		var r memstore.Created
		r, err = n.dir.Create(n.c, c.Name, &memstore.Create{
			Type:  memstore.TypeFile,
			Set:   memstore.SetAttr{Mask: memstore.SetMode | memstore.SetSize, Mode: 0o644},
			Exist: memstore.ExistOpen,
		})
		if err == nil && len(c.Data) > 0 {
			_, _, err = r.Inode.WriteAt(n.c, nil, c.Data, 0)
		}
	case "write":
		_, _, err = i.WriteAt(n.c, nil, c.Data, c.Off)
	case "append":
		_, _, _, err = i.Append(n.c, nil, c.Data)
	case "truncate":
		_, err = i.SetAttr(n.c, nil, &memstore.SetAttr{Mask: memstore.SetSize, Size: c.Off})
	case "chmod":
		_, err = i.SetAttr(n.c, nil, &memstore.SetAttr{Mask: memstore.SetMode, Mode: uint16(c.Off)})
	case "rename":
		_, _, err = n.dir.Store().Rename(n.c, n.dir, c.Name, n.dir, c.To, 0)
	case "link":
		_, _, err = n.dir.Link(n.c, c.To, i)
	case "remove":
		_, err = n.dir.Remove(n.c, c.Name, memstore.RemoveAny)
	case "list":
		buf := make([]memstore.DirEntry, 100)
		var k int
		k, _, err = n.dir.ReadDir(n.c, 0, buf)
		for _, e := range buf[:k] {
			a.Names = append(a.Names, e.Name)
		}
		slices.Sort(a.Names)
	case "see":
		var attr memstore.Attr
		if attr, err = i.GetAttr(n.c); err != nil {
			break
		}
		a.Size, a.Mode, a.Nlink = attr.Size, uint32(attr.Mode), uint64(attr.Nlink)
		a.Data = make([]byte, attr.Size)
		_, _, _, err = i.ReadAt(n.c, nil, a.Data, 0)
	}
	if err != nil {
		return refused(err)
	}
	return a
}

// testTime is how long tests of many changes go on, if they do so for a time.
func testTime(t *testing.T, usual time.Duration) time.Duration {
	s := os.Getenv("FUSEFS_TEST_TIME")
	if s == "" {
		return usual
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCoherence makes changes by a local process and by clients of the network,
// and looks at once from all sides.
func TestCoherence(t *testing.T) {
	for _, c := range []struct {
		passthrough fusefs.Passthrough
		changes     int
	}{
		{fusefs.PassthroughAuto, 1000}, {fusefs.PassthroughNever, 300}, {fusefs.PassthroughAlways, 300},
	} {
		t.Run(string(c.passthrough), func(t *testing.T) {
			dir, store, mount := newMountWith(t, fusefs.Options{Passthrough: c.passthrough})
			if c.passthrough != fusefs.PassthroughNever {
				passes(t, dir, func() uint64 { return mount.Stats().Passed })
			}
			addr, shared := serveNFS(t, store), 0
			coherence.Run(t, coherence.Options{
				Parties: []coherence.Party{
					{Name: "local process", Side: newLocal(t, dir), Maps: true},
					{Name: "NFS 3", Side: newNFSClient(t, addr)},
					{Name: "NFS 4.2", Side: newNFS4Client(t, addr)},
					{Name: "SMB", Side: newSMBClient(t, serveSMB(t, store)), Windows: true},
				},
				Changes: c.changes,
				Time:    testTime(t, 0) / 3,
				Shared: func(name string) bool {
					i, err := store.Root().Lookup(memstore.Root(), name)
					if err != nil || !i.Loose() {
						return false
					}
					shared++
					return true
				},
			})
			if (c.passthrough == fusefs.PassthroughNever) != (shared == 0) {
				t.Errorf("%d changes by mappings were everybody's at once", shared)
			}
			t.Logf("%d changes by mappings were everybody's at once; %+v", shared, mount.Stats())
		})
	}
}

// TestBothSides changes one directory from all sides at once, and fails when that
// comes to a stop.
func TestBothSides(t *testing.T) {
	dir, store, mount := newMount(t)
	runs := testTime(t, 5*time.Second)
	addr, smbAddr := serveNFS(t, store), serveSMB(t, store)
	var sides []coherence.Side
	for range 2 {
		sides = append(sides, newLocal(t, dir), newLocal(t, dir), newNFSClient(t, addr), newNFS4Client(t, addr),
			newSMBClient(t, smbAddr), &client{store.Root(), &memstore.Caller{Holder: &memstore.Holder{Name: "client"}}})
	}
	end := time.Now().Add(runs)
	done := make(chan int, len(sides))
	for k, s := range sides {
		go func() {
			rnd, n := rand.New(rand.NewPCG(uint64(k), 1)), 0
			ops := []string{"create", "rename", "remove", "link", "see", "list", "append"}
			if _, ok := s.(*coherence.Process); ok {
				ops = append(ops, "hold", "map", "let")
			}
			for ; time.Now().Before(end); n++ {
				c := coherence.Call{Op: ops[rnd.IntN(len(ops))], Name: fmt.Sprint(rnd.IntN(8))}
				switch c.Op {
				case "create", "append", "map":
					c.Data = []byte("data")
				case "rename", "link":
					c.To = fmt.Sprint(rnd.IntN(8))
				}
				s.Do(c)
			}
			done <- n
		}()
	}
	total := 0
	for range sides {
		select {
		case n := <-done:
			total += n
			if n == 0 {
				t.Error("somebody never got to do anything")
			}
		case <-time.After(time.Until(end) + 5*time.Second):
			panic("no progress for 5 s")
		}
	}
	t.Logf("%d calls in %v; %+v", total, runs, mount.Stats())

	// Nothing changes any more: all must see the same.
	near := newLocal(t, dir)
	for _, s := range sides {
		if p, ok := s.(*coherence.Process); ok {
			p.Do(coherence.Call{Op: "reset"})
		}
	}
	for _, far := range []coherence.Side{&client{store.Root(), memstore.Root()}, newNFSClient(t, addr), newSMBClient(t, smbAddr)} {
		if a, b := near.Do(coherence.Call{Op: "list"}), far.Do(coherence.Call{Op: "list"}); a.Err+b.Err != "" || !slices.Equal(a.Names, b.Names) {
			t.Errorf("locally %q %s, %T %q %s", a.Names, a.Err, far, b.Names, b.Err)
		}
		for k := range 8 {
			c := coherence.Call{Op: "see", Name: fmt.Sprint(k)}
			if a, b := near.Do(c), far.Do(c); a.Err != b.Err || !bytes.Equal(a.Data, b.Data) || a.Size != b.Size || a.Nlink != b.Nlink {
				t.Errorf("%s: locally %+v, %T %+v", c.Name, a, far, b)
			}
		}
	}
}
