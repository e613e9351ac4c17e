package nfs

import (
	"bytes"
	"testing"

	"ramserver/export"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/memstore"
)

// afterRestart is a server as it starts with its settings: its stores are empty.
// They are a store, which may be the only export, or besides that a folder of it
// and another store.
func afterRestart(t *testing.T, several bool) *Server {
	t.Helper()
	st := newStore(t, "disk")
	exports := []*export.Export{exportOf(st, "ramdisk")}
	if several {
		made, err := st.Root().Create(memstore.Root(), "folder", &memstore.Create{Type: memstore.TypeDir, Set: memstore.SetAttr{Mask: memstore.SetMode, Mode: 0o1777}})
		if err != nil {
			t.Fatal(err)
		}
		exports = append(exports, exportOf(st, "part"), exportOf(newStore(t, "other"), "other"))
		exports[1].Root = made.Inode
	}
	s, err := NewServer(Config{Exports: newTable(t, exports...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(t.Context()) })
	return s
}

// A client goes on after a restart without mounting anew: the handles of what it
// has mounted are good, all others are STALE. It need not wait until others have
// reclaimed what they had, since nothing can be reclaimed.
func TestRestart(t *testing.T) {
	for _, mounted := range []struct {
		what    string
		several bool
		path    string // by MOUNT
		ops     []op   // by version 4
	}{
		{"the only export", false, "/", []op{putRootFH()}},
		{"a store", true, "/other", []op{putRootFH(), lookup("other")}},
		{"a folder of a store", true, "/part", []op{putRootFH(), lookup("part")}},
	} {
		t.Run(mounted.what, func(t *testing.T) {
			before, after := afterRestart(t, mounted.several), afterRestart(t, mounted.several)
			if after.clients.boot == before.clients.boot {
				after.clients.boot ^= 1 // they are chosen at random
			}
			made := func(s *Server) (root, dir, file []byte) {
				e, _, _ := s.cfg.Exports.Find(mounted.path)
				for _, f := range []struct {
					name string
					t    memstore.Type
					fh   *[]byte
				}{{"d", memstore.TypeDir, &dir}, {"f", memstore.TypeFile, &file}} {
					i, err := e.Root.Create(memstore.Root(), f.name, &memstore.Create{Type: f.t})
					if err != nil {
						t.Fatal(err)
					}
					var b [handleSize]byte
					s.mask.put(&b, e, i.Inode)
					*f.fh = b[:]
				}
				replies, _ := converse(t, s, bytes.NewReader(calls(call3(rpc.ProgramMount, nfs3.MountProcMnt, &nfs3.MountPath{Path: mounted.path}))))
				var mnt nfs3.MountRes
				result(t, replies[0], &mnt)
				return bytes.Clone(mnt.FH), dir, file
			}
			root, dir, file := made(before)
			again, newDir, newFile := made(after)
			if !bytes.Equal(root, again) || bytes.Equal(dir, newDir) || bytes.Equal(file, newFile) {
				t.Errorf("handles of root, folder and file %x %x %x, after the restart %x %x %x", root, dir, file, again, newDir, newFile)
			}

			t.Run("3", func(t *testing.T) {
				for _, tt := range []struct {
					what string
					fh   []byte
					want nfs3.Status
				}{{"root", root, nfs3.OK}, {"folder", dir, nfs3.ErrStale}, {"file", file, nfs3.ErrStale}} {
					var res nfs3.GetAttrRes
					replies, _ := converse(t, after, bytes.NewReader(calls(call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: tt.fh}))))
					if result(t, replies[0], &res); res.Status != tt.want {
						t.Errorf("%s: %v, want %v", tt.what, res.Status, tt.want)
					}
				}
			})

			t.Run("4", func(t *testing.T) {
				old := open4(t, before, "one", 7)
				var opened nfs4.OpenRes
				var fh nfs4.FH
				old.must(nfs4.OK, append(mounted.ops, getFH(&fh), opening("o", "f", nfs4.ShareBoth, 0, &opened))...)
				if !bytes.Equal(fh.FH, root) {
					t.Errorf("root %x, by MOUNT %x", fh.FH, root)
				}

				lost := &client4Test{t: t, s: after, id: old.id, sess: old.sess, seq: old.seq}
				lost.must(nfs4.ErrBadSession, putFH(root))
				if status, _ := send4(t, after, nfs4.Minor2, createSession(old.id, 1, nil)); status != nfs4.ErrStaleClientID {
					t.Errorf("CREATE_SESSION of the client id from before: %v", status)
				}
				var ex nfs4.ExchangeIDRes
				var session nfs4.CreateSessionRes
				if status, _ := send4(t, after, nfs4.Minor2, exchangeID("one", 7, &ex)); status != nfs4.OK || ex.Flags&nfs4.ExchgIDConfirmedR != 0 {
					t.Fatalf("EXCHANGE_ID: %v, flags %#x", status, ex.Flags)
				}
				if status, _ := send4(t, after, nfs4.Minor2, createSession(ex.ClientID, ex.Seq, &session)); status != nfs4.OK {
					t.Fatalf("CREATE_SESSION: %v", status)
				}
				c := &client4Test{t: t, s: after, id: ex.ClientID, sess: session.Session}
				reclaim := op{nfs4.OpOpen, &nfs4.OpenArgs{Access: nfs4.ShareBoth, Owner: nfs4.Owner{Owner: []byte("o")}, Claim: nfs4.ClaimPrevious}, nil}
				relock := func(sid nfs4.Stateid) op {
					return op{nfs4.OpLock, &nfs4.LockArgs{
						Type: nfs4.LockWrite, Reclaim: true, Length: 10, Stateid: sid, NewOwner: true, Owner: nfs4.Owner{Owner: []byte("l")},
					}, nil}
				}
				c.must(nfs4.OK, putFH(root), lookup("f"))
				c.must(nfs4.ErrStale, putFH(dir))
				c.must(nfs4.ErrStale, putFH(file), reclaim)
				c.must(nfs4.ErrNoGrace, putFH(newFile), reclaim)
				c.must(nfs4.ErrBadStateid, putFH(newFile), write4(opened.Stateid, "lost"))
				c.must(nfs4.OK, op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
				c.must(nfs4.ErrCompleteAlready, op{nfs4.OpReclaimComplete, &nfs4.ReclaimCompleteArgs{}, nil})
				c.must(nfs4.ErrNoGrace, putFH(newFile), reclaim)
				c.must(nfs4.OK, putFH(root), opening("o", "f", nfs4.ShareBoth, 0, &opened))
				c.must(nfs4.ErrNoGrace, putFH(newFile), relock(opened.Stateid))
				c.must(nfs4.OK, putFH(newFile), write4(opened.Stateid, "new"), closing(opened.Stateid))
			})

			t.Run("4.0", func(t *testing.T) {
				old := open40(t, before, "one", 7)
				lost := &client40Test{t: t, s: after, xid: 1, id: old.id}
				opening := func(c *client40Test, seq uint32, res *nfs4.OpenRes) op {
					return c.opening("o", seq, "f", nfs4.ShareBoth, 0, res)
				}
				var opened nfs4.OpenRes
				var sid nfs4.StateidArgs
				old.must(nfs4.OK, putFH(root), opening(old, 1, &opened))
				lost.must(nfs4.ErrStaleClientID, renew(old.id))
				lost.must(nfs4.ErrStaleClientID, putFH(root), opening(lost, 2, nil))
				lost.must(nfs4.ErrStaleStateid, putFH(newFile), write4(opened.Stateid, "lost"))
				c := open40(t, after, "one", 7)
				reclaim := nfs4.OpenArgs{Seq: 1, Access: nfs4.ShareBoth, Owner: nfs4.Owner{Client: c.id, Owner: []byte("o")}, Claim: nfs4.ClaimPrevious}
				c.must(nfs4.ErrStale, putFH(file), op{nfs4.OpOpen, &reclaim, nil})
				c.must(nfs4.ErrNoGrace, putFH(newFile), op{nfs4.OpOpen, &reclaim, nil})
				c.must(nfs4.OK, putFH(root), opening(c, 2, &opened))
				c.must(nfs4.OK, putFH(newFile), confirming(opened.Stateid, 3, &sid))
				c.must(nfs4.OK, putFH(newFile), write4(sid.Stateid, "new"), closing40(sid.Stateid, 4))
			})
		})
	}

	// The pseudo root is there again too. An export's folder that is gone is STALE.
	s := afterRestart(t, true)
	var pseudo, part nfs4.FH
	if status, _ := run4(t, afterRestart(t, true), 2, putRootFH(), getFH(&pseudo), lookup("part"), getFH(&part)); status != nfs4.OK {
		t.Fatal(status)
	}
	var attr nfs4.Fattr
	root := bytes.Clone(pseudo.FH)
	if status, _ := run4(t, s, 2, putFH(root), lookup("part"), getAttr(&attr, nfs4.AttrFileID)); status != nfs4.OK {
		t.Errorf("the pseudo root: %v", status)
	}
	folder := bytes.Clone(part.FH)
	if _, err := s.cfg.Exports.All()[0].Root.Remove(memstore.Root(), "folder", memstore.RemoveAny); err != nil {
		t.Fatal(err)
	}
	if status, _ := run4(t, s, 2, putFH(folder), getAttr(&attr, nfs4.AttrFileID)); status != nfs4.ErrStale {
		t.Errorf("a folder that is gone: %v", status)
	}
}
