package coherence

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
)

// content is what a file must be.
type content struct {
	data  []byte
	mode  uint32
	nlink uint64

	version int // grows with each change
	seen    map[Side]seen
}

// seen is what a side had for the change counter of a version.
type seen struct {
	version int
	change  uint64
}

// model is what the folder must be.
type model map[string]*content

// largest is up to which size files are made; a little more than that of those
// that are in one piece of memory.
const largest = 100 << 10

// random is a call that makes sense, or now and then one that must fail.
func (m model) random(rnd *rand.Rand, maps bool) Call {
	ops := []string{"create", "write", "write", "write", "append", "truncate", "chmod", "rename", "link", "remove"}
	if maps {
		ops = append(ops, "hold", "hold", "map", "map", "map", "map", "map", "let")
	}
	c := Call{Op: ops[rnd.IntN(len(ops))], Name: name(rnd)}
	if m[c.Name] == nil && rnd.IntN(5) > 0 {
		c.Op = "create"
	}
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	switch c.Op {
	case "create", "append", "write", "map":
		c.Data = make([]byte, 1+rnd.IntN(1<<rnd.IntN(17)))
		for k := range c.Data {
			c.Data[k] = byte(rnd.Uint32())
		}
	}
	switch c.Op {
	case "append":
		if f := m[c.Name]; f != nil && len(f.data) > largest {
			c.Op, c.Data = "truncate", nil
		}
	case "chmod":
		c.Off = 0o600 + rnd.Int64N(0o100)
	case "rename", "link":
		c.To = name(rnd)
	case "hold":
		c.To = pick("writable", "")
	case "let":
		c.To = pick("mapped", "")
	case "map":
		c.Off = rnd.Int64N(largest)
	}
	if c.Op == "write" || c.Op == "truncate" {
		c.Off = rnd.Int64N(largest)
		if maps {
			c.To = pick("held", "")
		}
	}
	return c
}

func name(rnd *rand.Rand) string { return string(rune('a' + rnd.IntN(6))) }

// apply does to the model what a call must do, and returns the error that the call
// must have. A rename to another name of the same file does nothing, but on Windows
// takes the old name away.
func (m model) apply(c Call, windows bool) string {
	f := m[c.Name]
	if f == nil && c.Op != "create" {
		return Absent
	}
	switch c.Op {
	case "hold", "let":
		return ""
	case "create":
		if f == nil {
			f = &content{mode: 0o644, nlink: 1, seen: map[Side]seen{}}
			m[c.Name] = f
		}
		f.data = slices.Clone(c.Data)
	case "write":
		f.resize(max(len(f.data), int(c.Off)+len(c.Data)))
		copy(f.data[c.Off:], c.Data)
	case "append":
		f.data = append(f.data, c.Data...)
	case "truncate":
		f.resize(int(c.Off))
	case "map":
		n := int64(len(f.data))
		if n == 0 {
			return ""
		}
		copy(f.data[c.Off%n:], c.Data)
	case "chmod":
		f.mode = uint32(c.Off)
	case "rename":
		switch {
		case m[c.To] != f:
			m.gone(c.To)
			delete(m, c.Name)
			m[c.To] = f
		case windows && c.To != c.Name:
			m.gone(c.Name)
		}
		return ""
	case "link":
		if m[c.To] != nil {
			return Exists
		}
		f.nlink++
		m[c.To] = f
	case "remove":
		m.gone(c.Name)
	}
	f.version++
	return ""
}

func (f *content) resize(n int) {
	f.data = append(f.data, make([]byte, max(0, n-len(f.data)))...)[:n:n]
}

// gone takes a name away, if it is there.
func (m model) gone(name string) {
	if f := m[name]; f != nil {
		f.nlink--
		f.version++
		delete(m, name)
	}
}

// check compares what a side sees of some names, and of the whole folder, with the
// model.
func (m model) check(s Side, names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		a, f := s.Do(Call{Op: "see", Name: name}), m[name]
		switch {
		case f == nil && a.Err != Absent:
			return fmt.Errorf("%s is there, or %q", name, a.Err)
		case f == nil:
		case a.Err != "":
			return fmt.Errorf("%s: %s", name, a.Err)
		case a.Size != int64(len(f.data)) || a.Mode != f.mode || a.Nlink != f.nlink:
			return fmt.Errorf("%s: size, mode and links are %d, %o, %d, want %d, %o, %d", name, a.Size, a.Mode, a.Nlink, len(f.data), f.mode, f.nlink)
		case !bytes.Equal(a.Data, f.data):
			return fmt.Errorf("%s: %s", name, Differ(a.Data, f.data))
		case a.Change != 0:
			was := f.seen[s]
			if a.Change < was.change || a.Change == was.change && f.version > was.version {
				return fmt.Errorf("%s: change counter %d after a change, was %d before", name, a.Change, was.change)
			}
			f.seen[s] = seen{f.version, a.Change}
		}
	}
	var want []string
	for name := range m {
		want = append(want, name)
	}
	slices.Sort(want)
	if a := s.Do(Call{Op: "list"}); a.Err != "" || !slices.Equal(a.Names, want) {
		return fmt.Errorf("lists %q %s, want %q", a.Names, a.Err, want)
	}
	return nil
}
