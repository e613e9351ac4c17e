package coherence

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Party is one of the sides, which all begin with the same empty folder.
type Party struct {
	Name string
	Side
	Maps    bool // a Process whose files can be held and mapped
	Windows bool // it removes a file when that is closed by all
}

// Options are what Run needs to know.
type Options struct {
	Parties []Party
	Changes int
	Time    time.Duration // goes on with as many changes again until this is over
	// Shared tells whether what a process stores in a mapping of the file is
	// everybody's at once. Else it is by msync.
	Shared func(name string) bool
}

// step is a change by one party, after which everybody looks at the names that it
// is about, and at another one.
type step struct {
	by int
	Call
	other string
}

// Run makes random changes, each by one party, after which all must see the same.
// COHERENCE_SEED in the environment repeats a run. What fails is told with the
// fewest changes with which it still does.
func Run(t testing.TB, o Options) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("COHERENCE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(o.Time)
	for done := 0; done == 0 || time.Now().Before(end); seed++ {
		steps := o.random(seed)
		at, err := o.run(steps)
		if err != nil {
			small := o.shrink(steps[:at+1], time.Now().Add(20*time.Second))
			_, again := o.run(small)
			t.Fatalf("COHERENCE_SEED=%d, change %d: %s: %v\nwith fewer changes: %v\n%s", seed, at, o.tell(steps[at]), err, again, o.list(small))
		}
		if done += len(steps); time.Now().After(end) {
			t.Logf("%d changes", done)
		}
	}
}

func (o *Options) random(seed uint64) (steps []step) {
	rnd, m := rand.New(rand.NewPCG(seed, 0)), model{}
	for range o.Changes {
		by := rnd.IntN(len(o.Parties))
		if rnd.IntN(4) == 0 {
			by = 0 // the first can do more than others
		}
		p := o.Parties[by]
		s := step{by, m.random(rnd, p.Maps), name(rnd)}
		m.apply(s.Call, p.Windows)
		steps = append(steps, s)
	}
	return steps
}

// run makes the changes in an empty folder, and returns which of them went wrong.
func (o *Options) run(steps []step) (at int, err error) {
	m := model{}
	if err := o.clear(); err != nil {
		return 0, err
	}
	for at, s := range steps {
		p := o.Parties[s.by]
		if p.Windows && s.Op == "remove" {
			o.let(s.Name)
		}
		if s.Op == "map" && (o.Shared == nil || !o.Shared(s.Name)) {
			s.To = "sync"
		}
		want := m.apply(s.Call, p.Windows)
		if a := p.Do(s.Call); a.Err != want {
			return at, fmt.Errorf("it says %q, want %q", a.Err, want)
		}
		to := s.To
		if s.Op != "rename" && s.Op != "link" {
			to = ""
		}
		for _, p := range o.Parties {
			if err := m.check(p.Side, s.Name, to, s.other); err != nil {
				return at, fmt.Errorf("seen by %s: %w", p.Name, err)
			}
		}
	}
	return len(steps), nil
}

// clear lets go of what is held and removes all files.
func (o *Options) clear() error {
	for _, p := range o.Parties {
		if p.Maps {
			if a := p.Do(Call{Op: "reset"}); a.Err != "" {
				return fmt.Errorf("%s: %s", p.Name, a.Err)
			}
		}
	}
	p := o.Parties[0]
	for _, name := range p.Do(Call{Op: "list"}).Names {
		if a := p.Do(Call{Op: "remove", Name: name}); a.Err != "" {
			return fmt.Errorf("%s: remove %s: %s", p.Name, name, a.Err)
		}
	}
	return nil
}

// let has everybody close a file.
func (o *Options) let(name string) {
	for _, p := range o.Parties {
		if p.Maps {
			p.Do(Call{Op: "let", Name: name})
		}
	}
}

// shrink leaves away what is not needed for a failure of the last change.
func (o *Options) shrink(steps []step, until time.Time) []step {
	for n := len(steps) / 2; n > 0; n /= 2 {
		for at := 0; at+n < len(steps) && time.Now().Before(until); {
			fewer := slices.Delete(slices.Clone(steps), at, at+n)
			if k, err := o.run(fewer); err != nil {
				steps = fewer[:min(k+1, len(fewer))]
			} else {
				at += n
			}
		}
	}
	return steps
}

func (o *Options) list(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "\t%s\n", o.tell(s))
	}
	return b.String()
}

func (o *Options) tell(s step) string {
	return fmt.Sprintf("%s: %s %s %s at %d, %d bytes; looked at too: %s", o.Parties[s.by].Name, s.Op, s.Name, s.To, s.Off, len(s.Data), s.other)
}
