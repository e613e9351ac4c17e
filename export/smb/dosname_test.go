package smb

import "testing"

func TestDOSName(t *testing.T) {
	for _, name := range []string{"a", "A.TXT", "readme.md", "eightlet.c", "8-chars_.x~1"} {
		if !short83(name) {
			t.Errorf("%q is not short", name)
		}
	}
	for _, name := range []string{"", ".profile", "a.", "a.b.c", "nine_char", "a.html", "with space", "é", "a+b"} {
		if short83(name) {
			t.Errorf("%q is short", name)
		}
		if s := dosName(name); name != "" && (!short83(s) || s != dosName(name)) {
			t.Errorf("%q is %q", name, s)
		}
	}
	if a, b := dosName("a long name.html"), dosName("a longer name.html"); a == b {
		t.Errorf("two names have the short one %q", a)
	}
}
