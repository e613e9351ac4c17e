package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"ramserver/export"
	"ramserver/export/smb"
	"ramserver/export/smb/ntlm"
	"ramserver/memstore"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// defaultUsers is the file of SMB users: one for the machine, or a user's own.
func defaultUsers() (string, error) {
	if runtime.GOOS != "windows" && os.Geteuid() == 0 {
		return "/etc/ramserver/smb-users", nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for the file of SMB users (%w): give --smb-users", err)
	}
	return filepath.Join(dir, "ramserver", "smb-users"), nil
}

// usersFlag is the path that --smb-users gives, or the default one.
func usersFlag(path string) (string, error) {
	if path == "" {
		return defaultUsers()
	}
	return filepath.Abs(path) // a server in the background leaves the current folder
}

func newUser() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Say who may log on over SMB",
		Long: `Say who may log on over SMB, by name and password, and as which user of the
store he acts. Passwords are kept as NT hashes in a file with mode 0600, by
default /etc/ramserver/smb-users for root and ramserver/smb-users in the folder
of settings for others. A running server notices when the file changes.`,
		Example: `  sudo ramserver user add alice
  ramserver user list`,
		Args: cobra.NoArgs,
	}
	cmd.PersistentFlags().StringVar(&path, "smb-users", "", "`file` of the users")
	cmd.AddCommand(newUserAdd(&path), newUserRemove(&path), newUserList(&path))
	return cmd
}

func newUserAdd(path *string) *cobra.Command {
	var ids, groups string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an SMB user, or change his password",
		Long: `Add an SMB user, or change the password of one who is there. The password is
read from the terminal, twice, else as a line from standard input. The user acts
as the user of the same name on this system, with the same groups, unless --ids
says otherwise.`,
		Example: `  sudo ramserver user add alice
  sudo ramserver user add build --ids 1500:1500 <file-with-the-password`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u := smb.User{Name: args[0]}
			if err := smb.CheckUserName(u.Name); err != nil {
				return err
			}
			given := cmd.Flags().Changed("ids") || cmd.Flags().Changed("groups")
			if given {
				if ids == "" {
					return errors.New("--groups: needs --ids")
				}
				if err := parseUserIDs(&u.Cred, ids, groups); err != nil {
					return err
				}
			}
			file, err := usersFlag(*path)
			if err != nil {
				return err
			}
			// What would fail later fails before somebody has typed.
			old, err := readUsers(file)
			if err != nil {
				return err
			}
			if !given && !slices.ContainsFunc(old, sameUser(u.Name)) {
				if u.Cred, err = systemUser(u.Name); err != nil {
					return err
				}
			}
			password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr(), u.Name)
			if err != nil {
				return err
			}
			u.Hash = ntlm.HashPassword(password)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return failure{fmt.Errorf("file of SMB users: %w", err)}
			}
			changed := false
			err = editUsers(file, func(users []smb.User) ([]smb.User, error) {
				i := slices.IndexFunc(users, sameUser(u.Name))
				if changed = i >= 0; !changed {
					return append(users, u), nil
				}
				users[i].Hash = u.Hash
				if given {
					users[i].Cred = u.Cred
				}
				u = users[i]
				return users, nil
			})
			if err != nil {
				return err
			}
			did := "added"
			if changed {
				did = "changed"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "user %q %s: acts as %d:%d\n", u.Name, did, u.Cred.UID, u.Cred.GID)
			return err
		},
	}
	cmd.Flags().StringVar(&ids, "ids", "", "`uid:gid` as whom the user acts (default those of the system's user of that name)")
	cmd.Flags().StringVar(&groups, "groups", "", "further `gids`, separated by commas")
	return cmd
}

func sameUser(name string) func(smb.User) bool {
	return func(u smb.User) bool { return strings.EqualFold(u.Name, name) }
}

func parseUserIDs(c *memstore.Cred, ids, groups string) error {
	who, err := export.ParseIDs(ids)
	if err != nil {
		return fmt.Errorf("--ids: %w", err)
	}
	c.UID, c.GID = who.UID, who.GID
	if groups == "" {
		return nil
	}
	for g := range strings.SplitSeq(groups, ",") {
		n, err := strconv.ParseUint(g, 10, 32)
		if err != nil {
			return fmt.Errorf("--groups %q: want numbers of groups, separated by commas", groups)
		}
		c.Groups = append(c.Groups, uint32(n))
	}
	return nil
}

// systemUser is the system's user of a name, with his groups. Windows has no
// numbers of users: there everybody is nobody.
func systemUser(name string) (c memstore.Cred, err error) {
	if runtime.GOOS == "windows" {
		return memstore.Cred{UID: export.DefaultAnon.UID, GID: export.DefaultAnon.GID}, nil
	}
	u, err := user.Lookup(name)
	if errors.As(err, new(user.UnknownUserError)) {
		return c, fmt.Errorf("user %q: this system has no such user; say as whom he acts with --ids UID:GID", name)
	}
	if err != nil {
		return c, failure{fmt.Errorf("user %q: %w", name, err)}
	}
	if err := parseUserIDs(&c, u.Uid+":"+u.Gid, ""); err != nil {
		return c, failure{fmt.Errorf("user %q: %w", name, err)}
	}
	groups, err := u.GroupIds()
	if err != nil {
		return c, failure{fmt.Errorf("groups of user %q: %w", name, err)}
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil && uint32(n) != c.GID {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return c, nil
}

// maxPassword bounds a password, in bytes.
const maxPassword = 1024

// readPassword reads a password without showing it from a terminal, twice, else a
// line.
func readPassword(in io.Reader, prompts io.Writer, name string) (string, error) {
	var password []byte
	f, ok := in.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) {
		ask := func(prompt string) ([]byte, error) {
			fmt.Fprint(prompts, prompt)
			b, err := term.ReadPassword(int(f.Fd()))
			fmt.Fprintln(prompts)
			if err != nil {
				return nil, failure{fmt.Errorf("password: %w", err)}
			}
			return b, nil
		}
		var again []byte
		var err error
		if password, err = ask(fmt.Sprintf("Password of SMB user %s: ", name)); err != nil {
			return "", err
		}
		if again, err = ask("Again: "); err != nil {
			return "", err
		}
		if !bytes.Equal(password, again) {
			return "", failure{errors.New("password: the two are not the same; nothing was changed")}
		}
	} else {
		line, err := bufio.NewReader(io.LimitReader(in, maxPassword+2)).ReadBytes('\n')
		if err != nil && err != io.EOF {
			return "", failure{fmt.Errorf("password: %w", err)}
		}
		password = bytes.TrimRight(line, "\r\n")
	}
	if len(password) == 0 || len(password) > maxPassword {
		return "", fmt.Errorf("password: has %d bytes; want 1 to %d, from the terminal or as a line of standard input", len(password), maxPassword)
	}
	return string(password), nil
}

// readUsers reads the file; one that is not there has no users.
func readUsers(path string) ([]smb.User, error) {
	users, err := smb.ReadUsers(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure{err}
	}
	return users, nil
}

// editUsers changes the file, whose folder is there. Two who do so at once do it
// one after the other.
func editUsers(path string, edit func([]smb.User) ([]smb.User, error)) error {
	dir := filepath.Dir(path)
	unlock, err := lockFolder(dir)
	if err != nil {
		return failure{fmt.Errorf("file of SMB users: folder %s: %w", dir, err)}
	}
	defer unlock()
	users, err := readUsers(path)
	if err != nil {
		return err
	}
	if users, err = edit(users); err != nil {
		return err
	}
	if err := smb.WriteUsers(path, users); err != nil {
		return failure{err}
	}
	return nil
}

func newUserRemove(path *string) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an SMB user; sessions that he has go on",
		Example: `  sudo ramserver user remove alice`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := usersFlag(*path)
			if err != nil {
				return err
			}
			unknown := failure{fmt.Errorf("user %q: is not in %s", args[0], file)}
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				return unknown
			}
			err = editUsers(file, func(users []smb.User) ([]smb.User, error) {
				i := slices.IndexFunc(users, sameUser(args[0]))
				if i < 0 {
					return nil, unknown
				}
				return slices.Delete(users, i, i+1), nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "user %q removed\n", args[0])
			return err
		},
	}
}

// userReport is a user in JSON.
type userReport struct {
	Name   string   `json:"name"`
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

func newUserList(path *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the SMB users, without their hashes",
		Example: `  ramserver user list --json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := usersFlag(*path)
			if err != nil {
				return err
			}
			users, err := readUsers(file)
			if err != nil {
				return err
			}
			if asJSON {
				list := []userReport{}
				for _, u := range users {
					list = append(list, userReport{u.Name, u.Cred.UID, u.Cred.GID, slices.Concat([]uint32{}, u.Cred.Groups)})
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(list)
			}
			if len(users) == 0 {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "no users in %s\n", file)
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tACTS AS\tGROUPS")
			for _, u := range users {
				groups := strings.Trim(fmt.Sprint(u.Cred.Groups), "[]")
				fmt.Fprintf(w, "%s\t%d:%d\t%s\n", u.Name, u.Cred.UID, u.Cred.GID, groups)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
