package smb

import (
	"strings"
	"testing"

	"ramserver/export/smb/wire"
)

// Patterns of MS-FSA section 2.1.4.4: "<", ">" and the quote are what programs for
// DOS mean by "*", "?" and ".".
func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "anything.at.all", true}, {"*", "..", true},
		{"a", "A", true}, {"a", "ab", false}, {"ab", "a", false},
		{"É*", "été", true}, {"?", "\U0001F600", false}, {"??", "\U0001F600", true},
		{"*.txt", "a.TXT", true}, {"*.txt", ".txt", true}, {"*.txt", "a.txt.b", false}, {"*.*", "a", false},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYc.", false},
		{"?.c", "a.c", true}, {"?.c", ".c", false}, {"a?", "a", false},
		{">>>.c", "a.c", true}, {">>>.c", "abcd.c", false}, {"a>>", "a", true},
		{"<.c", "a.b.c", true}, {"<.b", "a.b.c", false}, {"<.<", "a.b.c", true}, {"<", "a.b", false}, {"<\"*", "a.b", true}, {"<\"*", "a", true},
		{"a\"", "a", true}, {"a\"", "a.", true}, {"a\"", "ab", false}, {"a\"b", "a.b", true},
		{"a.", "a.", true}, {"a\uF029", "a.", true}, {"*\uF028", "a ", true}, {"? ", "a ", true}, {"?.", "a", false},
	} {
		l, ok := newListing(wire.AppendUTF16(nil, tt.pattern))
		if !ok {
			t.Errorf("%q is no pattern", tt.pattern)
			continue
		}
		if got := matches(l.pattern, wire.AppendUTF16(nil, tt.name)); got != tt.want {
			t.Errorf("%q fits %q: %v", tt.name, tt.pattern, got)
		}
	}
	for _, bad := range []string{"", `a\b`, "a/b", strings.Repeat("*", 511)} {
		if _, ok := newListing(wire.AppendUTF16(nil, bad)); ok {
			t.Errorf("%q is a pattern", bad)
		}
	}
}
