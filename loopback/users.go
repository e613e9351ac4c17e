package loopback

import (
	"fmt"
	"strings"
	"unicode"
)

// User is a process that uses a mount.
type User struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	How  string `json:"how"` // what it has there: the first thing found
}

func (u User) String() string {
	s := fmt.Sprintf("%s (process %d, %s)", u.Name, u.PID, u.How)
	// A file may be named to upset a terminal.
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
