package fusefs_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ramserver/loopback/coherence"
	"ramserver/loopback/fusefs"
)

// requestLog keeps what a mount with Trace logs.
type requestLog struct {
	mu   sync.Mutex
	text bytes.Buffer // (mu)
}

func (l *requestLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

var received = regexp.MustCompile(`rx \d+: ([A-Z_]+)`)

// take returns the requests since it was called last for which a process waits:
// not those by which the kernel lets go of something.
func (l *requestLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, m := range received.FindAllStringSubmatch(l.text.String(), -1) {
		if m[1] != "RELEASE" && !strings.HasSuffix(m[1], "FORGET") {
			names = append(names, m[1])
		}
	}
	l.text.Reset()
	return strings.Join(names, " ")
}

// TestRequests is what calls cost: the requests that a process waits for.
//
// After each of its own changes of a directory the kernel asks for the directory's
// attributes, by which it checks permission, and it has an absent name looked up
// before it creates it. So much is the least for what is created or removed.
func TestRequests(t *testing.T) {
	for _, mount := range []struct {
		name  string
		alone bool
		close string
	}{
		{"alone", true, ""},
		{"shared", false, " FLUSH"},
	} {
		t.Run(mount.name, func(t *testing.T) {
			log := &requestLog{}
			dir, _, _ := newMountWith(t, fusefs.Options{
				Alone: mount.alone, Trace: true,
				Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			l := newLocal(t, dir)
			for _, c := range []struct {
				coherence.Call
				want string // ":" stands for a close
			}{
				{coherence.Call{Op: "list"}, "*"}, // with what is asked for once
				{coherence.Call{Op: "create", Name: "f", Data: []byte("data")}, "*"},
				{coherence.Call{Op: "create", Name: "g", Data: []byte("data")}, "GETATTR LOOKUP CREATE WRITE:"},
				{coherence.Call{Op: "stat", Name: "f"}, "GETATTR GETATTR"},
				{coherence.Call{Op: "stat", Name: "g"}, "GETATTR"},
				{coherence.Call{Op: "stat", Name: "g"}, ""},
				{coherence.Call{Op: "stat", Name: "absent"}, "LOOKUP"},
				{coherence.Call{Op: "stat", Name: "absent"}, ""},
				{coherence.Call{Op: "read", Name: "g"}, "OPEN READ:"},
				{coherence.Call{Op: "read", Name: "g"}, "OPEN GETATTR:"}, // the time of the read
				{coherence.Call{Op: "read", Name: "g"}, "OPEN:"},
				{coherence.Call{Op: "write", Name: "g", Data: []byte("DATA")}, "OPEN WRITE:"},
				{coherence.Call{Op: "chmod", Name: "g", Off: 0o600}, "SETATTR"},
				{coherence.Call{Op: "create", Name: "absent", Data: []byte("data")}, "CREATE WRITE:"},
				{coherence.Call{Op: "rename", Name: "g", To: "h"}, "GETATTR LOOKUP RENAME"},
				{coherence.Call{Op: "remove", Name: "h"}, "GETATTR UNLINK"},
				{coherence.Call{Op: "remove", Name: "f"}, "GETATTR UNLINK"},
				{coherence.Call{Op: "stat", Name: "absent"}, "GETATTR GETATTR"},
				{coherence.Call{Op: "list"}, "READDIRPLUS READDIR"},
			} {
				log.take()
				if a := l.Do(c.Call); a.Err != "" && a.Err != "absent" {
					t.Errorf("%s %s: %s", c.Op, c.Name, a.Err)
				}
				want := strings.ReplaceAll(c.want, ":", mount.close)
				if got := log.take(); got != want && want != "*" {
					t.Errorf("%s %s: %q, want %q", c.Op, c.Name, got, want)
				}
			}
		})
	}
}
