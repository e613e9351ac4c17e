package smb

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// The language of the files in testdata/golden. It knows nothing of the server's
// codec: what a message looks like is said in messages.txt, field by field as the
// specifications' tables do.
//
//	def NAME expression
//	message NAME parameter parameter=default ...
//	    WIDTH Field expression    a little-endian number, or as many bytes
//	    utf16 Field expression    a string
//	    bytes Field expression    a string, or bytes
//	    padded Field [list]       structures, each behind the one before at the next
//	                              multiple of 8
//	    chain Field [list]        the same; the first 4 bytes say how far the next is
//	    align N                   zeros
//	set name expression
//	connect
//	> NAME argument=expression    a request
//	+ NAME ...                    another in the same frame, related to the one before
//	< NAME !STATUS ...            a reply, or that of its error
//	<+ NAME ...                   another that has to be in the same frame
//
// An indented line continues the one before. In an expression $name is a parameter or
// what was saved; @Field and #Field are where in the message the field begins and how
// long it is; a|b is or; "text", x"hex", {NAME argument=...} a structure, [a b] a list.
// Where a reply may be anything there is * or ?name, which saves it. Functions are in
// (*golden).call.

// pat is bytes of which some may be anything.
type pat struct {
	b      []byte
	free   []bool // may be anything
	saves  []span
	fields []span // for people
	rest   bool   // and more may follow
}

type span struct {
	name  string
	at, n int
}

func (p *pat) add(b []byte, free bool) {
	p.b = append(p.b, b...)
	for range b {
		p.free = append(p.free, free)
	}
}

func (p *pat) splice(q *pat) {
	at := len(p.b)
	p.b, p.free, p.rest = append(p.b, q.b...), append(p.free, q.free...), p.rest || q.rest
	for _, s := range q.saves {
		p.saves = append(p.saves, span{s.name, s.at + at, s.n})
	}
	for _, f := range q.fields {
		p.fields = append(p.fields, span{f.name, f.at + at, f.n})
	}
}

func (p *pat) save(name string, at int) {
	p.saves = append(p.saves, span{name, at, len(p.b) - at})
}

func literal(b []byte) *pat {
	p := new(pat)
	p.add(b, false)
	return p
}

// value is what an expression is: one of these.
type value struct {
	n    uint64
	text *string
	p    *pat
	list []value
	any  bool   // * or ?
	name string // of ?
}

// layout is a message.
type layout struct {
	params   []string
	defaults map[string]string
	fields   []string
	where    string
}

// block is a statement: a line and those that continue it.
type block struct {
	where string
	head  string
	lines []string
}

func readBlocks(name string) []block {
	text, err := os.ReadFile("testdata/golden/" + name)
	if err != nil {
		panic(err)
	}
	var all []block
	for k, line := range strings.Split(string(text), "\n") {
		if i := strings.Index(line, "# "); i >= 0 && strings.Count(line[:i], `"`)%2 == 0 || strings.TrimSpace(line) == "#" {
			line = line[:max(i, 0)]
		}
		switch body := strings.TrimSpace(line); {
		case body == "":
		case line[0] == ' ' && len(all) > 0:
			b := &all[len(all)-1]
			b.lines = append(b.lines, body)
		default:
			all = append(all, block{where: fmt.Sprintf("%s:%d", name, k+1), head: body})
		}
	}
	return all
}

// text is a statement as one line.
func (b *block) text() string { return strings.Join(append([]string{b.head}, b.lines...), " ") }

// golden is what files have said so far.
type golden struct {
	layouts map[string]*layout
	vars    map[string]value
	where   string // for people: what is being read
}

func (g *golden) fail(format string, args ...any) {
	panic(fmt.Sprintf("%s: %s", g.where, fmt.Sprintf(format, args...)))
}

// define takes a statement that makes no request.
func (g *golden) define(b *block) bool {
	g.where = b.where
	word, rest, _ := strings.Cut(b.head, " ")
	switch word {
	case "def", "set":
		name, _, _ := strings.Cut(rest, " ")
		p := g.parse(strings.TrimPrefix(b.text(), word+" "+name), nil, nil)
		g.vars[name] = p.expression()
	case "message":
		l := &layout{defaults: make(map[string]string), fields: b.lines, where: b.where}
		name, params, _ := strings.Cut(rest, " ")
		for _, f := range strings.Fields(params) {
			k, v, ok := strings.Cut(f, "=")
			l.params = append(l.params, k)
			if ok {
				l.defaults[k] = v
			}
		}
		g.layouts[name] = l
	default:
		return false
	}
	return true
}

// phrase is a text of which expressions are read.
type phrase struct {
	g      *golden
	tokens []string
	args   map[string]value
	labels map[string]span // of the message that is being made; nil on the first pass
}

func (g *golden) parse(text string, args map[string]value, labels map[string]span) *phrase {
	return &phrase{g: g, tokens: g.tokenize(text), args: args, labels: labels}
}

func (g *golden) tokenize(s string) (tokens []string) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == ',':
			i++
		case c == '"' || c == 'x' && i+1 < len(s) && s[i+1] == '"':
			end := i + strings.IndexByte(s[i:], '"') + 1
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(s) {
				g.fail("a quote without an end")
			}
			tokens = append(tokens, s[i:end+1])
			i = end + 1
		case strings.IndexByte("{}()[]=|*!", c) >= 0:
			tokens = append(tokens, string(c))
			i++
		default:
			end := i
			for end < len(s) && strings.IndexByte(" ,{}()[]=|*!\"", s[end]) < 0 {
				end++
			}
			tokens = append(tokens, s[i:end])
			i = end
		}
	}
	return tokens
}

func (p *phrase) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *phrase) next() string {
	t := p.peek()
	if t == "" {
		p.g.fail("something is missing at the end")
	}
	p.tokens = p.tokens[1:]
	return t
}

func (p *phrase) expect(t string) {
	if got := p.next(); got != t {
		p.g.fail("%q, want %q", got, t)
	}
}

func (p *phrase) expression() value {
	v := p.atom()
	for p.peek() == "|" {
		p.next()
		v.n |= p.atom().n
	}
	return v
}

func (p *phrase) atom() value {
	t := p.next()
	switch {
	case t == "*":
		return value{any: true}
	case t[0] == '?':
		return value{any: true, name: t[1:]}
	case t[0] == '"':
		s, err := strconv.Unquote(t)
		if err != nil {
			p.g.fail("%s: %v", t, err)
		}
		return value{text: &s}
	case strings.HasPrefix(t, `x"`):
		b, err := hex.DecodeString(strings.ReplaceAll(t[2:len(t)-1], " ", ""))
		if err != nil {
			p.g.fail("%s: %v", t, err)
		}
		return value{p: literal(b)}
	case t == "{":
		name := p.next()
		v := value{p: p.g.build(name, p.arguments("}"), 0)}
		p.expect("}")
		return v
	case t == "[":
		v := value{list: []value{}}
		for p.peek() != "]" {
			v.list = append(v.list, p.expression())
		}
		p.next()
		return v
	case t[0] == '$':
		if v, ok := p.args[t[1:]]; ok {
			return v
		}
		if v, ok := p.g.vars[t[1:]]; ok {
			return v
		}
		p.g.fail("%s is not known", t)
	case t[0] == '@' || t[0] == '#':
		l, ok := p.labels[t[1:]]
		if p.labels != nil && !ok {
			p.g.fail("there is no field %s", t[1:])
		}
		if t[0] == '@' {
			return value{n: uint64(l.at)}
		}
		return value{n: uint64(l.n)}
	case unicode.IsDigit(rune(t[0])):
		n, err := strconv.ParseUint(t, 0, 64)
		if err != nil {
			p.g.fail("%v", err)
		}
		return value{n: n}
	case p.peek() == "(":
		p.next()
		var args []value
		for p.peek() != ")" {
			args = append(args, p.expression())
		}
		p.next()
		return p.g.call(t, args)
	}
	if v, ok := p.g.vars[t]; ok {
		return v
	}
	if p.labels == nil && p.args == nil || p.peek() == "=" {
		p.g.fail("%s is not known", t)
	}
	return value{text: &t} // a name, for a function
}

// arguments reads name=expression up to a token.
func (p *phrase) arguments(end string) map[string]value {
	args := make(map[string]value)
	for p.peek() != end {
		name := p.next()
		if name == "!" {
			args["status"] = p.expression()
			continue
		}
		p.expect("=")
		args[name] = p.expression()
	}
	return args
}

// call is a function. Lengths are in bytes.
func (g *golden) call(name string, args []value) value {
	p := new(pat)
	switch name {
	case "any": // any(n): bytes that may be anything
		p.add(make([]byte, args[0].n), true)
	case "zero":
		p.add(make([]byte, args[0].n), false)
	case "cat":
		for _, a := range args {
			p.splice(g.bytes(a))
		}
	case "utf16":
		p.add(encode16(*args[0].text), false)
	case "size": // size(e)
		return value{n: uint64(len(g.bytes(args[0]).b))}
	case "offset": // offset(@Field #Field): 0 if it is empty
		if args[1].n == 0 {
			return value{}
		}
		return args[0]
	case "atleast": // atleast(#Field): a zero in the place of what is empty
		if args[0].n == 0 {
			p.add([]byte{0}, false)
		}
	case "save": // save("name" e)
		p.splice(g.bytes(args[1]))
		p.save(*args[0].text, 0)
	case "der": // der(tag e...): a value of ASN.1
		for _, a := range args[1:] {
			p.splice(g.bytes(a))
		}
		head := []byte{byte(args[0].n)}
		switch n := len(p.b); {
		case n < 0x80:
			head = append(head, byte(n))
		case n < 0x100:
			head = append(head, 0x81, byte(n))
		default:
			head = append(head, 0x82, byte(n>>8), byte(n))
		}
		q := literal(head)
		q.splice(p)
		p = q
	default:
		return g.secret(name, args)
	}
	return value{p: p}
}

func encode16(s string) (b []byte) {
	for _, c := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// bytes is a value as bytes.
func (g *golden) bytes(v value) *pat {
	switch {
	case v.p != nil:
		return v.p
	case v.text != nil:
		return literal([]byte(*v.text))
	case v.list != nil:
		p := new(pat)
		for _, e := range v.list {
			p.splice(g.bytes(e))
		}
		return p
	case v.any:
		return &pat{rest: true}
	}
	g.fail("a number where bytes should be")
	return nil
}

// build makes a message of which base bytes stand before it.
func (g *golden) build(name string, args map[string]value, base int) *pat {
	l := g.layouts[name]
	if l == nil {
		g.fail("there is no message %s", name)
	}
	all := make(map[string]value)
	for _, p := range l.params {
		v, ok := args[p]
		if d, has := l.defaults[p]; !ok && has {
			v = g.parse(d, all, nil).expression()
		} else if !ok {
			g.fail("%s without %s", name, p)
		}
		all[p] = v
	}
	for a := range args {
		if _, ok := all[a]; !ok {
			g.fail("%s has no %s", name, a)
		}
	}
	// Twice: lengths and offsets are known after the first time.
	_, labels := g.lay(l, all, nil, base)
	p, _ := g.lay(l, all, labels, base)
	return p
}

func (g *golden) lay(l *layout, args map[string]value, known map[string]span, base int) (*pat, map[string]span) {
	p, labels := new(pat), make(map[string]span)
	for _, line := range l.fields {
		kind, rest, _ := strings.Cut(line, " ")
		if kind == "align" {
			n, _ := strconv.Atoi(strings.TrimSpace(rest))
			for (base+len(p.b))%n != 0 {
				p.add([]byte{0}, false)
			}
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
		at := len(p.b)
		v := g.parse(rest, args, known).expression()
		switch width, err := strconv.Atoi(kind); {
		case kind == "utf16" && v.text != nil:
			p.add(encode16(*v.text), false)
		case kind == "utf16", kind == "bytes":
			p.splice(g.bytes(v))
		case kind == "chain", kind == "padded":
			g.chain(p, v, at, kind == "chain")
		case err != nil:
			g.fail("%s: %q", l.where, line)
		case v.any:
			p.add(make([]byte, width), true)
		case v.p != nil && len(v.p.b) == width:
			p.splice(v.p)
		case v.p != nil || v.text != nil || v.list != nil || width < 8 && v.n>>(8*width) != 0:
			g.fail("%s: %s does not fit", l.where, name)
		default:
			b := make([]byte, max(width, 8))
			binary.LittleEndian.PutUint64(b, v.n)
			p.add(b[:width], false)
		}
		if v.name != "" {
			p.save(v.name, at)
		}
		p.fields = append(p.fields, span{name, at, len(p.b) - at})
		labels[name] = span{name, base + at, len(p.b) - at}
	}
	return p, labels
}

// chain appends structures; linked ones begin with how far the next is away.
func (g *golden) chain(p *pat, v value, at int, linked bool) {
	if v.list == nil {
		p.splice(g.bytes(v))
		return
	}
	last := -1
	for _, e := range v.list {
		if last >= 0 {
			for (len(p.b)-at)%8 != 0 {
				p.add([]byte{0}, false)
			}
			if linked {
				binary.LittleEndian.PutUint32(p.b[last:], uint32(len(p.b)-last))
			}
		}
		last = len(p.b)
		p.splice(g.bytes(e))
	}
}

// diff says where b is not as p has it, nil if nowhere, and saves what is to be saved.
func (g *golden) diff(p *pat, b []byte) (wrong []string) {
	for k, f := range p.fields {
		if f.at+f.n > len(b) {
			continue
		}
		for i := f.at; i < f.at+f.n; i++ {
			if p.free[i] || p.b[i] == b[i] {
				continue
			}
			inner := false
			for _, other := range p.fields[:k] { // a field in it says it better
				inner = inner || other.at <= i && i < other.at+other.n && other.n < f.n
			}
			if !inner {
				wrong = append(wrong, fmt.Sprintf("%s at %d: %x, want %x", f.name, f.at, clip(b[f.at:f.at+f.n]), clip(p.b[f.at:f.at+f.n])))
			}
			break
		}
	}
	if len(b) < len(p.b) || len(b) > len(p.b) && !p.rest {
		wrong = append(wrong, fmt.Sprintf("%d bytes, want %d:\n\t%x\n\t%x", len(b), len(p.b), b, p.b))
	}
	for _, s := range p.saves {
		if s.at+s.n <= len(b) {
			g.vars[s.name] = value{p: literal(bytes.Clone(b[s.at : s.at+s.n]))}
		}
	}
	return wrong
}

func clip(b []byte) []byte { return b[:min(len(b), 256)] }
