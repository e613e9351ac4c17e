package exporttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ramserver/memstore"
)

// session is a user's view of the files by one protocol: the adapter. Errors
// are memstore's or the protocol's; word gives both one name. A handle is what
// the protocol names a file by.
type session interface {
	root() handle
	lookup(dir handle, name string) (handle, error)
	getattr(h handle) (memstore.Attr, error)
	setattr(h handle, s memstore.SetAttr) error
	access(h handle) (memstore.Access, error)
	read(h handle, off int64, n int) (data []byte, eof bool, err error)
	write(h handle, off int64, data []byte) (int, error)
	create(dir handle, name string, c memstore.Create) error
	remove(dir handle, name string) error
	rmdir(dir handle, name string) error
	rename(from handle, fromName string, to handle, toName string) error
	link(h, dir handle, name string) error
	readlink(h handle) (string, error)
	list(dir handle) ([]string, error) // with "." and ".."
}

type handle any

// target is a protocol and engine to run the suite over.
type target struct {
	name string
	// start makes an empty store and returns how to enter it as a user.
	start func(t *testing.T) (enter func(memstore.Cred) session)
}

var users = map[string]memstore.Cred{
	"root": {},
	"ann":  {UID: 1000, GID: 100},
	"bob":  {UID: 1001, GID: 100, Groups: []uint32{50}},
	"eve":  {UID: 1002, GID: 99},
}

// TestFiles runs every script over every target.
func TestFiles(t *testing.T) {
	for _, tg := range targets {
		t.Run(tg.name, func(t *testing.T) {
			for _, s := range scripts {
				t.Run(s.name, func(t *testing.T) {
					p := &play{t: t, enter: tg.start(t), sessions: map[string]session{}, kept: map[string]handle{}}
					for line := range strings.Lines(s.text) {
						if line = strings.TrimSpace(line); line != "" {
							p.line(tg.name, s.name, line)
						}
					}
				})
			}
		})
	}
	for i, d := range differs {
		for _, line := range d.lines {
			if !met[fmt.Sprint(i, line)] {
				t.Errorf("%s, %s: listed as different, but is not: %s", d.target, d.script, line)
			}
		}
		if d.lines == nil && !met[fmt.Sprint(i)] {
			t.Errorf("%s, %s: listed as different as a whole, but is not", d.target, d.script)
		}
	}
}

// met are the differences that were seen.
var met = map[string]bool{}

// answer is what a target must answer to a line, and whether it must at all.
func answer(target, script, action, want, got string) (string, bool) {
	for i, d := range differs {
		if !strings.HasPrefix(target, d.target) || d.script != script {
			continue
		}
		if d.lines == nil {
			if got != want {
				met[fmt.Sprint(i)] = true
			}
			return want, false
		}
		for _, line := range d.lines {
			if a, other, _ := strings.Cut(line, " -> "); a == action && other != want {
				met[fmt.Sprint(i, line)] = true
				return other, true
			}
		}
	}
	return want, true
}

// play is a script being run.
type play struct {
	t        *testing.T
	enter    func(memstore.Cred) session
	sessions map[string]session
	kept     map[string]handle
	s        session // of the current line
}

func (p *play) line(target, script, line string) {
	p.t.Helper()
	action, want, found := strings.Cut(line, " -> ")
	if want = strings.TrimSpace(want); !found {
		want = "ok"
	}
	fields := strings.Fields(action)
	action = strings.Join(fields, " ")
	for i, f := range fields {
		fields[i] = expand(f)
	}
	if p.s = p.sessions[fields[0]]; p.s == nil {
		p.s = p.enter(users[fields[0]])
		p.sessions[fields[0]] = p.s
	}
	got, err := p.do(fields[1], fields[2:])
	if err != nil {
		got = word(err)
	}
	want, must := answer(target, script, action, want, got)
	if must && got != expandAll(want) {
		p.t.Errorf("%s\n\tgot %s", line, got)
	}
}

// expand makes n*255 a name of 255 bytes.
func expand(word string) string {
	if count, ok := strings.CutPrefix(word, "n*"); ok {
		if n, err := strconv.Atoi(count); err == nil {
			return strings.Repeat("n", n)
		}
	}
	return word
}

func expandAll(words string) string {
	fields := strings.Split(words, " ")
	for i, f := range fields {
		fields[i] = expand(f)
	}
	return strings.Join(fields, " ")
}

// find walks a path to a file.
func (p *play) find(path string) (handle, error) {
	h, rest := p.start(path)
	for _, name := range rest {
		var err error
		if h, err = p.s.lookup(h, name); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// place walks a path to the directory of its last name.
func (p *play) place(path string) (handle, string, error) {
	h, rest := p.start(path)
	if len(rest) == 0 {
		return h, ".", nil
	}
	last := len(rest) - 1
	for _, name := range rest[:last] {
		var err error
		if h, err = p.s.lookup(h, name); err != nil {
			return nil, "", err
		}
	}
	return h, rest[last], nil
}

func (p *play) start(path string) (handle, []string) {
	names := strings.Split(unescape(path), "/")
	if kept, ok := strings.CutPrefix(names[0], "@"); ok {
		h, ok := p.kept[kept]
		if !ok {
			p.t.Fatalf("nothing was kept as %s", kept)
		}
		return h, names[1:]
	}
	if path == "." {
		return p.s.root(), nil
	}
	return p.s.root(), names
}

func unescape(s string) string {
	if u, err := strconv.Unquote(`"` + s + `"`); err == nil {
		return u
	}
	return s
}

// do does one thing and returns its answer in words.
func (p *play) do(verb string, args []string) (string, error) {
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	num := func(i int) int64 {
		n, err := strconv.ParseInt(arg(i), 10, 64)
		if err != nil {
			p.t.Fatalf("%s %v: %v", verb, args, err)
		}
		return n
	}
	mode := func(i int) memstore.SetAttr {
		n, err := strconv.ParseUint(arg(i), 8, 16)
		if err != nil {
			p.t.Fatalf("%s %v: %v", verb, args, err)
		}
		return memstore.SetAttr{Mask: memstore.SetMode, Mode: uint16(n)}
	}
	switch verb {
	case "create", "mkdir", "symlink", "mknod":
		return "ok", p.create(verb, args, mode)
	case "remove", "rmdir":
		dir, name, err := p.place(arg(0))
		switch {
		case err != nil:
			return "", err
		case verb == "rmdir":
			return "ok", p.s.rmdir(dir, name)
		}
		return "ok", p.s.remove(dir, name)
	case "rename":
		from, fromName, err := p.place(arg(0))
		if err != nil {
			return "", err
		}
		to, toName, err := p.place(arg(1))
		if err != nil {
			return "", err
		}
		return "ok", p.s.rename(from, fromName, to, toName)
	case "link":
		h, err := p.find(arg(0))
		if err != nil {
			return "", err
		}
		dir, name, err := p.place(arg(1))
		if err != nil {
			return "", err
		}
		return "ok", p.s.link(h, dir, name)
	case "keep":
		h, err := p.find(arg(1))
		p.kept[arg(0)] = h
		return "ok", err
	case "fill":
		dir, err := p.find(arg(0))
		if err != nil {
			return "", err
		}
		for n := range num(1) {
			if err := p.s.create(dir, fmt.Sprint("n", n), memstore.Create{Type: memstore.TypeFile}); err != nil {
				return "", err
			}
		}
		return "ok", nil
	}

	// The rest is about one file.
	h, err := p.find(arg(0))
	if err != nil {
		return "", err
	}
	switch verb {
	case "lookup":
		return "ok", nil
	case "same":
		other, err := p.find(arg(1))
		if err != nil {
			return "", err
		}
		a, err := p.s.getattr(h)
		if err != nil {
			return "", err
		}
		b, err := p.s.getattr(other)
		return yes(a.Ino == b.Ino), err
	case "stat":
		a, err := p.s.getattr(h)
		if err != nil {
			return "", err
		}
		return describe(a, args[1:]), nil
	case "changes":
		return p.changes(h, args[1:])
	case "read":
		data, eof, err := p.s.read(h, num(1), int(num(2)))
		if err != nil {
			return "", err
		}
		if eof {
			return strconv.Quote(string(data)) + " eof", nil
		}
		return strconv.Quote(string(data)), nil
	case "write":
		n, err := p.s.write(h, num(1), []byte(arg(2)))
		return fmt.Sprint(n), err
	case "pattern":
		return "ok", p.pattern(h, num(1), num(2))
	case "matches":
		return p.matches(h, num(1), num(2))
	case "readlink":
		return p.s.readlink(h)
	case "list":
		names, err := p.s.list(h)
		slices.Sort(names)
		return strings.Join(names, " "), err
	case "count":
		names, err := p.s.list(h)
		slices.Sort(names)
		return fmt.Sprint(len(slices.Compact(names))), err
	case "drain":
		names, err := p.s.list(h)
		for _, name := range names {
			if name != "." && name != ".." && err == nil {
				err = p.s.remove(h, name)
			}
		}
		return "ok", err
	case "access":
		a, err := p.s.access(h)
		b := []byte("---")
		for i, bit := range []memstore.Access{memstore.AccessRead, memstore.AccessWrite, memstore.AccessExecute} {
			if a&bit != 0 {
				b[i] = "rwx"[i]
			}
		}
		return string(b), err
	case "chmod":
		return "ok", p.s.setattr(h, mode(1))
	case "chown":
		var s memstore.SetAttr
		if _, err := fmt.Sscanf(arg(1), "%d:%d", &s.UID, &s.GID); err != nil {
			p.t.Fatal(err)
		}
		s.Mask = memstore.SetUID | memstore.SetGID
		return "ok", p.s.setattr(h, s)
	case "truncate":
		return "ok", p.s.setattr(h, memstore.SetAttr{Mask: memstore.SetSize, Size: num(1)})
	case "utimes":
		return "ok", p.s.setattr(h, memstore.SetAttr{Mask: memstore.SetAtime | memstore.SetMtime, Atime: num(1), Mtime: num(2)})
	case "touch":
		return "ok", p.s.setattr(h, memstore.SetAttr{Mask: memstore.SetAtimeNow | memstore.SetMtimeNow})
	case "guarded", "misguarded":
		a, err := p.s.getattr(h)
		if err != nil {
			return "", err
		}
		s := mode(1)
		s.Mask |= memstore.SetGuard
		if s.GuardCtime = a.Ctime; verb == "misguarded" {
			s.GuardCtime--
		}
		return "ok", p.s.setattr(h, s)
	}
	p.t.Fatalf("what is %s?", verb)
	return "", nil
}

func (p *play) create(verb string, args []string, mode func(int) memstore.SetAttr) error {
	dir, name, err := p.place(args[0])
	if err != nil {
		return err
	}
	var c memstore.Create
	switch verb {
	case "create":
		c = memstore.Create{Type: memstore.TypeFile, Set: mode(1), Exist: memstore.ExistOpen}
		for _, option := range args[2:] {
			verf, exclusive := strings.CutPrefix(option, "exclusive=")
			switch {
			case exclusive:
				c.Exist = memstore.ExistVerifier
				c.Verifier, _ = strconv.ParseUint(verf, 10, 64)
			case option == "guarded":
				c.Exist = memstore.ExistFail
			case option == "size=0":
				c.Set.Mask |= memstore.SetSize
			}
		}
	case "mkdir":
		c = memstore.Create{Type: memstore.TypeDir, Set: mode(1)}
	case "symlink":
		c = memstore.Create{Type: memstore.TypeSymlink, Target: args[1]}
	case "mknod":
		kinds := map[string]memstore.Type{"fifo": memstore.TypeFIFO, "sock": memstore.TypeSocket, "blk": memstore.TypeBlock, "chr": memstore.TypeChar}
		c = memstore.Create{Type: kinds[args[1]], Set: mode(2), Major: 4, Minor: 5}
	}
	return p.s.create(dir, name, c)
}

// changes says which time stamps of a file an action moves.
func (p *play) changes(h handle, action []string) (string, error) {
	before, err := p.s.getattr(h)
	if err != nil {
		return "", err
	}
	if _, err := p.do(action[0], action[1:]); err != nil {
		return "", err
	}
	after, err := p.s.getattr(h)
	if err != nil {
		return "", err
	}
	var moved []string
	if before.Mtime != after.Mtime {
		moved = append(moved, "mtime")
	}
	if before.Ctime != after.Ctime {
		moved = append(moved, "ctime")
	}
	if moved == nil {
		return "nothing", nil
	}
	return strings.Join(moved, " "), nil
}

// pattern writes bytes that follow from their offset.
func (p *play) pattern(h handle, off, n int64) error {
	for n > 0 {
		data := patternAt(off, min(n, 1<<20))
		done, err := p.s.write(h, off, data)
		if err != nil {
			return err
		}
		off, n = off+int64(done), n-int64(done)
	}
	return nil
}

func (p *play) matches(h handle, off, n int64) (string, error) {
	for n > 0 {
		data, _, err := p.s.read(h, off, int(min(n, 1<<20)))
		if err != nil {
			return "", err
		}
		if len(data) == 0 || string(data) != string(patternAt(off, int64(len(data)))) {
			return "no", nil
		}
		off, n = off+int64(len(data)), n-int64(len(data))
	}
	return "yes", nil
}

func patternAt(off, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		at := off + int64(i)
		b[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return b
}

func describe(a memstore.Attr, fields []string) string {
	kinds := map[memstore.Type]string{memstore.TypeFile: "file", memstore.TypeDir: "dir", memstore.TypeSymlink: "symlink",
		memstore.TypeFIFO: "fifo", memstore.TypeSocket: "sock", memstore.TypeBlock: "blk", memstore.TypeChar: "chr"}
	var out []string
	for _, f := range fields {
		out = append(out, map[string]string{
			"type":  kinds[a.Type],
			"mode":  fmt.Sprintf("%04o", a.Mode),
			"uid":   fmt.Sprint(a.UID),
			"gid":   fmt.Sprint(a.GID),
			"size":  fmt.Sprint(a.Size),
			"nlink": fmt.Sprint(a.Nlink),
			"atime": fmt.Sprint(a.Atime),
			"mtime": fmt.Sprint(a.Mtime),
		}[f])
	}
	return strings.Join(out, " ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
