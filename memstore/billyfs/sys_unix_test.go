//go:build linux || darwin

package billyfs

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ramserver/memstore"
)

func TestStat_t(t *testing.T) {
	s := newStore(t, 64<<20)
	f := New(s, nil)
	plant(t, f, "f text")
	i, err := s.Root().Lookup(memstore.Root(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Root().Link(memstore.Root(), "g", i); err != nil {
		t.Fatal(err)
	}
	f.Chown("f", 1, 2)
	f.Chmod("f", os.ModeSetgid|0o640)
	f.Chtimes("f", time.Unix(5, 6), time.Unix(7, 8))
	fi, err := f.Stat("g")
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	if st.Ino != i.Ino() || st.Nlink != 2 || st.Uid != 1 || st.Gid != 2 || st.Size != 4 || st.Blocks == 0 ||
		st.Mode != unix.S_IFREG|0o2640 {
		t.Errorf("%+v", st)
	}
	if _, err := s.Root().Create(memstore.Root(), "dev", &memstore.Create{Type: memstore.TypeChar, Major: 300, Minor: 70000}); err != nil {
		t.Fatal(err)
	}
	fi, _ = f.Stat("dev")
	rdev := uint64(fi.Sys().(*syscall.Stat_t).Rdev)
	if unix.Major(rdev) != 300 || unix.Minor(rdev) != 70000 {
		t.Errorf("device %d, %d", unix.Major(rdev), unix.Minor(rdev))
	}
}
