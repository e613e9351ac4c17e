package nfs

import (
	"testing"

	"ramserver/export/nfs/rpc"
)

func request(xid, proc, uid uint32) *rpc.Call {
	return &rpc.Call{XID: xid, Procedure: proc, Cred: rpc.Cred{UID: uid}}
}

func TestReplayCache(t *testing.T) {
	r := newReplayCache()
	key := r.key(request(1, 8, 0), 7, []byte("args"))

	if _, known, _ := r.begin(key, 0, nil); known {
		t.Fatal("a new request is known")
	}
	if _, known, busy := r.begin(key, 0, nil); !known || !busy {
		t.Fatal("a request in progress is not")
	}
	r.end(key, []byte("reply"))
	got, known, busy := r.begin(key, 5, []byte("head "))
	if !known || busy || string(got) != "head reply" {
		t.Fatalf("got %q, %v, %v", got, known, busy)
	}
	if _, known, _ := r.begin(key, replayAge+1, nil); known {
		t.Fatal("an old request is known")
	}
	r.forget(key)
	if _, known, _ := r.begin(key, replayAge+1, nil); known {
		t.Fatal("a forgotten request is known")
	}
	r.end(key, make([]byte, replayMax+1))
	if _, known, _ := r.begin(key, replayAge+1, nil); known {
		t.Fatal("results that are too large were kept")
	}
	long := make([]byte, replayArgs+1)
	for what, other := range map[string]replayKey{
		"xid":       r.key(request(2, 8, 0), 7, []byte("args")),
		"procedure": r.key(request(1, 9, 0), 7, []byte("args")),
		"user":      r.key(request(1, 8, 1), 7, []byte("args")),
		"client":    r.key(request(1, 8, 0), 6, []byte("args")),
		"arguments": r.key(request(1, 8, 0), 7, []byte("argz")),
	} {
		if other == key {
			t.Errorf("another %s is the same request", what)
		}
	}
	if r.key(request(1, 8, 0), 7, long) != r.key(request(1, 8, 0), 7, long[:replayArgs]) {
		t.Error("more of the arguments counts than is said")
	}
}

// A client that makes many requests does not push out another's.
func TestReplayCacheIsFair(t *testing.T) {
	r := newReplayCache()
	const slow, busy = 1, 2
	var keys []replayKey
	for xid := range uint32(200) {
		k := r.key(request(xid, 8, 0), slow, nil)
		r.begin(k, 0, nil)
		r.end(k, []byte{byte(xid)})
		keys = append(keys, k)
	}
	for xid := range uint32(4 * replaySets * replayWays) {
		k := r.key(request(xid, 8, 0), busy, nil)
		r.begin(k, 0, nil)
		r.end(k, []byte("x"))
	}
	for n, k := range keys {
		if got, known, _ := r.begin(k, 1, nil); !known || got[0] != byte(n) {
			t.Fatalf("request %d is not known", n)
		}
	}
}

func BenchmarkReplayCache(b *testing.B) {
	r := newReplayCache()
	args, reply := make([]byte, 100), make([]byte, 248)
	for xid := uint32(0); b.Loop(); xid++ {
		k := r.key(request(xid, 8, 0), 7, args)
		r.begin(k, 0, nil)
		r.end(k, reply)
	}
}
