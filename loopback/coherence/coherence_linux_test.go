package coherence_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ramserver/loopback/coherence"
)

func TestMain(m *testing.M) {
	if coherence.Main() {
		return
	}
	os.Exit(m.Run())
}

// TestFolder has two processes on a file system that is known to be right.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	coherence.Run(t, coherence.Options{
		Parties: []coherence.Party{
			{Name: "one", Side: coherence.Start(t, os.Args[0], dir), Maps: true},
			{Name: "two", Side: coherence.Start(t, os.Args[0], dir), Maps: true},
		},
		Changes: 300,
		Shared:  func(string) bool { return true },
	})
}

// deaf is a side that does not do everything.
type deaf struct{ coherence.Side }

func (d deaf) Do(c coherence.Call) coherence.Answer {
	if c.Op == "truncate" {
		c.Op = "stat"
	}
	return d.Side.Do(c)
}

// told is a test that only keeps why it failed.
type told struct {
	testing.TB
	why string
}

func (f *told) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	panic(f)
}

// TestFailure: what is wrong is found, and told with few changes.
func TestFailure(t *testing.T) {
	f := &told{TB: t}
	defer func() {
		recover()
		if n := strings.Count(f.why, "\n\t"); n < 2 || n > 3 || !strings.Contains(f.why, "deaf: truncate") {
			t.Errorf("%d changes are told of: %s", n, f.why)
		}
	}()
	dir := t.TempDir()
	process := coherence.Start(t, os.Args[0], dir)
	coherence.Run(f, coherence.Options{
		Parties: []coherence.Party{{Name: "process", Side: process, Maps: true}, {Name: "deaf", Side: deaf{process}}},
		Changes: 200,
	})
}
