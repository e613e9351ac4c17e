package smb

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"ramserver/export/smb/ntlm"
	"ramserver/memstore"
)

// User is somebody who may log on, and as whom he acts.
type User struct {
	Name string // compared without regard to case
	Hash ntlm.Hash
	Cred memstore.Cred
}

// MaxUserName bounds a user's name, in characters, as Windows does.
const MaxUserName = 20

// maxUserFile bounds a file of users, in bytes.
const maxUserFile = 1 << 20

// CheckUserName tells whether s can be a user's name: 1 to MaxUserName characters
// without white space, control characters and what Windows forbids.
func CheckUserName(s string) error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`"/\[]:;|=,+*?<>@#%`, r)
	}
	if s == "" || utf8.RuneCountInString(s) > MaxUserName || !utf8.ValidString(s) || strings.ContainsFunc(s, bad) || strings.Trim(s, ".") == "" {
		return fmt.Errorf(`user name %q: want 1 to %d characters without white space and " / \ [ ] : ; | = , + * ? < > @ # %%`, s, MaxUserName)
	}
	return nil
}

// Users finds who may log on: in a file, which is read again when it changes, and
// among a few who are not in it.
type Users struct {
	path  string
	extra []User

	mu   sync.Mutex
	file []User      // (mu)
	read fs.FileInfo // (mu) of the file that was read; nil: there is none
}

// NewUsers finds users in the file of a path, "" for none, and in extra, which
// come first. The file need not exist; one that is there must be good.
func NewUsers(path string, extra ...User) (*Users, error) {
	u := &Users{path: path, extra: extra}
	_, err := u.All()
	return u, err
}

// Find finds a user by name. An error is about the file.
func (u *Users) Find(name string) (user User, ok bool, err error) {
	all, err := u.All()
	i := slices.IndexFunc(all, func(e User) bool { return strings.EqualFold(e.Name, name) })
	if i < 0 {
		return User{}, false, err
	}
	return all[i], true, nil
}

// All is every user. With an error, which is about the file, it is those who are
// not in it.
func (u *Users) All() ([]User, error) {
	if u.path == "" {
		return u.extra, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now, err := os.Stat(u.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		u.file, u.read = nil, nil
		return u.extra, nil
	case err != nil:
		return u.extra, fmt.Errorf("file of SMB users: %w", err)
	case u.read == nil || !os.SameFile(u.read, now) || u.read.ModTime() != now.ModTime() || u.read.Size() != now.Size():
		u.read = nil
		if u.file, err = ReadUsers(u.path); err != nil {
			return u.extra, err
		}
		u.read = now
	}
	return slices.Concat(u.extra, u.file), nil
}

// ReadUsers reads a file of users. One that others can read is refused, since who
// has a hash can log on with it.
func ReadUsers(path string) ([]User, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("file of SMB users: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("file of SMB users: %w", err)
	}
	// Windows has an access list instead, which the file inherits.
	if perm := fi.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("file of SMB users %s: others can use it (mode %04o), and may have read the hashes: chmod 600 it and set the passwords anew", path, perm)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxUserFile+1))
	if err != nil {
		return nil, fmt.Errorf("file of SMB users: %w", err)
	}
	if len(b) > maxUserFile {
		return nil, fmt.Errorf("file of SMB users %s: is larger than %d bytes", path, maxUserFile)
	}
	users, err := parseUsers(b)
	if err != nil {
		// Without the line, which may have a hash.
		return nil, fmt.Errorf("file of SMB users %s: %w", path, err)
	}
	return users, nil
}

// parseUsers reads lines of "name:hash:uid:gid:groups", the hash in hexadecimal,
// the groups separated by commas. Empty lines and those that begin with # are
// comments.
func parseUsers(b []byte) (users []User, err error) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		s := strings.TrimSpace(string(line))
		if s == "" || s[0] == '#' {
			continue
		}
		u, err := parseUser(s)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if slices.ContainsFunc(users, func(e User) bool { return strings.EqualFold(e.Name, u.Name) }) {
			return nil, fmt.Errorf("line %d: there are two users of the name %q", n, u.Name)
		}
		users = append(users, u)
	}
	return users, nil
}

func parseUser(line string) (u User, err error) {
	f := strings.Split(line, ":")
	if len(f) != 5 {
		return u, fmt.Errorf("want name:hash:uid:gid:groups, not %d fields", len(f))
	}
	u.Name = f[0]
	if err := CheckUserName(u.Name); err != nil {
		return u, err
	}
	if n, err := hex.Decode(u.Hash[:], []byte(f[1][:min(len(f[1]), 2*len(u.Hash))])); err != nil || n != len(u.Hash) || len(f[1]) != 2*len(u.Hash) {
		return u, fmt.Errorf("user %q: its hash is not %d hexadecimal digits", u.Name, 2*len(u.Hash))
	}
	if u.Cred.UID, err = parseID(f[2]); err == nil {
		u.Cred.GID, err = parseID(f[3])
	}
	if err == nil && f[4] != "" {
		for s := range strings.SplitSeq(f[4], ",") {
			var g uint32
			if g, err = parseID(s); err != nil {
				break
			}
			u.Cred.Groups = append(u.Cred.Groups, g)
		}
	}
	if err != nil {
		return u, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return u, nil
}

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 1<<32-1 {
		return 0, fmt.Errorf("%q: want a user or group number below 4294967295", s)
	}
	return uint32(n), nil
}

// WriteUsers replaces a file of users, or makes it, with mode 0600. Who reads it
// meanwhile finds the old one or the new one.
func WriteUsers(path string, users []User) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // has mode 0600
	if err != nil {
		return fmt.Errorf("file of SMB users: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var b bytes.Buffer
	fmt.Fprintln(&b, "# Users of ramserver's SMB: name:hash:uid:gid:groups. Who has a hash can log on.")
	for _, u := range users {
		fmt.Fprintf(&b, "%s:%x:%d:%d:", u.Name, u.Hash[:], u.Cred.UID, u.Cred.GID)
		for i, g := range u.Cred.Groups {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(&b, g)
		}
		b.WriteByte('\n')
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		return fmt.Errorf("file of SMB users: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("file of SMB users: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("file of SMB users: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("file of SMB users: %w", err)
	}
	return nil
}
