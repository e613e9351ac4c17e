package arena

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What the arena believes to be resident is what its files take.
func TestResident(t *testing.T) {
	a := newArena(t, Config{})
	files := func() (n int64) {
		for _, r := range *a.regions.Load() {
			if r != nil {
				var st unix.Stat_t
				if err := unix.Fstat(r.file, &st); err != nil {
					t.Fatal(err)
				}
				n += st.Blocks * 512
			}
		}
		return n
	}
	want := func(what string) {
		t.Helper()
		if st := a.Stats(); files() != st.Resident {
			t.Errorf("%s: %d bytes in files, %+v", what, files(), st)
		}
	}
	var pages []Addr
	for i := range 2000 {
		addr, n := mustAlloc(t, a, 1+i*7919%MaxPage, 1+i%3, uint64(i), i%2 == 0)
		size := a.PageSize(addr)
		a.Write(addr, ones[:size])
		for k := range n {
			clear(a.Bytes(addr+Addr(k*size), size))
			pages = append(pages, addr+Addr(k*size))
		}
	}
	want("written")
	for i, p := range pages {
		if i%4 != 0 {
			a.Free(p)
		}
	}
	want("freed most")
	a.Trim()
	want("trimmed")
	if st := a.Stats(); st.Free > st.Resident/8 {
		t.Errorf("%d of %d resident bytes are free after Trim", st.Free, st.Resident)
	}
	for i := 0; i < len(pages); i += 4 {
		a.Free(pages[i])
	}
	a.Trim()
	want("all freed")
	if n := files(); n != 0 {
		t.Errorf("%d bytes left in files", n)
	}
}
