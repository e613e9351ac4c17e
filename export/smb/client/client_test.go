package client_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"ramserver/export"
	"ramserver/export/smb"
	"ramserver/export/smb/client"
	"ramserver/export/smb/ntlm"
	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// serve serves a store as "share" to "user" with "pass".
func serve(t *testing.T) (addr string) {
	t.Helper()
	store, err := memstore.New(memstore.Config{Name: "test", Size: 64 << 20, RootMode: 0o777})
	if err != nil {
		t.Fatal(err)
	}
	table, err := export.New(&export.Export{Name: "share", Store: store, Root: store.Root()})
	if err != nil {
		t.Fatal(err)
	}
	users, err := smb.NewUsers("", smb.User{Name: "user", Hash: ntlm.HashPassword("pass"), Cred: memstore.Cred{UID: 1000, GID: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := smb.New(smb.Config{Exports: table, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := store.Check(); err != nil {
			t.Error(err)
		}
		store.Close()
	})
	return l.Addr().String()
}

func TestClient(t *testing.T) {
	addr := serve(t)
	for name, p := range map[string]client.Protection{"signed": client.Signed, "encrypted": client.Encrypted, "plain": client.Plain} {
		t.Run(name, func(t *testing.T) {
			c, err := client.Dial(addr, client.Options{User: "user", Password: "pass", Share: "share", Protection: p})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Mkdir(name); err != nil {
				t.Fatal(err)
			}
			path := name + `\file`
			id, action, _, err := c.Create(client.Open{Name: path, Access: client.ReadData | client.WriteData, Disposition: wire.FileCreate})
			if err != nil || action != wire.ActionCreated {
				t.Fatalf("create: action %d, %v", action, err)
			}
			data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than the client reads at once
			if n, err := c.WriteAt(id, data, 0); err != nil || n != len(data) {
				t.Fatalf("write: %d bytes, %v", n, err)
			}
			got := make([]byte, len(data))
			if n, err := c.ReadAt(id, got, 0); err != nil || !bytes.Equal(got[:n], data) {
				t.Fatalf("read: %d bytes, %v", n, err)
			}
			if _, err := c.ReadAt(id, got[:1], int64(len(data))); status(err) != wire.StatusEndOfFile {
				t.Errorf("read at the end: %v", err)
			}
			// Many under way.
			const block = 4096
			seen := map[int]bool{}
			if err := c.Run(8, 100, func(i int) { c.BeginRead(id, int64(i)*block, block) }, func(i int, r *client.Reply) error {
				seen[i] = true
				if b, err := r.Data(); err != nil || !bytes.Equal(b, data[i*block:][:block]) {
					return fmt.Errorf("%d bytes, %w", len(b), err)
				}
				return nil
			}); err != nil || len(seen) != 100 {
				t.Errorf("run: %d replies, %v", len(seen), err)
			}
			if n := testing.AllocsPerRun(100, func() {
				if _, err := c.ReadAt(id, got[:block], 0); err != nil {
					t.Fatal(err)
				}
			}); n > 0.5 { // the server's are among them
				t.Errorf("%v allocations for a read", n)
			}
			size := make([]byte, 8)
			if err := c.Set(id, wire.FileEndOfFile, append([]byte{100}, size[1:]...)); err != nil {
				t.Errorf("set the size: %v", err)
			}
			if b, err := c.Query(id, wire.FileStandard, 100); err != nil || len(b) != 24 || b[8] != 100 {
				t.Errorf("query: %x, %v", b, err)
			}
			if err := c.CloseFile(id); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := c.CloseFile(id); status(err) != wire.StatusFileClosed {
				t.Errorf("close again: %v", err)
			}
			if a, err := c.Stat(path); err != nil || a.Size != 100 {
				t.Errorf("stat: %+v, %v", a, err)
			}
			var names []string
			if err := c.List(name, func(b []byte, a *client.Attributes) { names = append(names, wire.String(b)) }); err != nil || fmt.Sprint(names) != "[. .. file]" {
				t.Errorf("list: %v, %v", names, err)
			}
			if err := c.Remove(path); err != nil {
				t.Errorf("remove: %v", err)
			}
			if _, err := c.Stat(path); status(err) != wire.StatusNameNotFound {
				t.Errorf("stat of what was removed: %v", err)
			}
			if err := c.Logoff(); err != nil {
				t.Errorf("log off: %v", err)
			}
		})
	}
	if _, err := client.Dial(addr, client.Options{User: "user", Password: "wrong"}); status(err) != wire.StatusLogonFailure {
		t.Errorf("wrong password: %v", err)
	}
	if _, err := client.Dial(addr, client.Options{User: "user", Password: "pass", Share: "other"}); status(err) != wire.StatusBadNetworkName {
		t.Errorf("wrong share: %v", err)
	}
}

func status(err error) wire.Status {
	s, _ := client.StatusOf(err)
	return s
}
