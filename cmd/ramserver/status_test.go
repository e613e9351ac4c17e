package main

import (
	"net/netip"
	"strings"
	"testing"
)

// What clients call themselves is on one line, whatever it is.
func TestPrintClients4(t *testing.T) {
	r := report{Engine: "native", Clients4: []client4Report{{
		Name: "Linux\n\x1b[31m" + strings.Repeat("x", 100), Addr: netip.MustParseAddrPort("10.0.0.7:800"),
		Idle: 12.4, Callable: true, Sessions: 1, Opens: 2, Locks: 3, Delegations: 40,
	}}}
	var out strings.Builder
	if err := r.print(&out, false); err != nil {
		t.Fatal(err)
	}
	want := "Linux??[31m" + strings.Repeat("x", 26) + "...  10.0.0.7:800  1  2  3  40  yes  12s"
	if got := strings.Join(strings.Fields(out.String()), "  "); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}
