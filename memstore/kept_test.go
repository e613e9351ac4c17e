package memstore

import (
	"slices"
	"testing"
	"unsafe"
)

// What is kept of a name after a call is not a part of the caller's buffer, which a
// connection fills anew.
func TestNamesAreKept(t *testing.T) {
	s := newStore(t, 1<<20)
	root := s.Root()
	var told []Stale
	l, err := s.AttachLocal(&Holder{Name: "local"}, func(stale []Stale) { told = append(told, stale...) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Detach()
	if _, err := l.Know(root); err != nil {
		t.Fatal(err)
	}
	defer l.Forget(root, 1)
	w, err := root.Watch(WatchName, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()

	buf := []byte("first")
	var u Unsettled
	c := Root()
	c.Unsettled = &u
	if _, err := root.Create(c, unsafe.String(&buf[0], len(buf)), &Create{Type: TypeFile}); err != nil {
		t.Fatal(err)
	}
	copy(buf, "XXXXX")
	u.Settle()
	if !slices.ContainsFunc(told, func(s Stale) bool { return s.Name == "first" }) {
		t.Errorf("the mount is told to forget %+v", told)
	}
	if events, _, _ := w.Take(nil); len(events) != 1 || events[0].Path != "first" {
		t.Errorf("the watch tells of %+v", events)
	}
	if _, err := root.Lookup(Root(), "first"); err != nil {
		t.Error(err)
	}
}
