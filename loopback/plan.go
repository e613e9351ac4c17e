// Package loopback mounts a store on the machine that serves it.
//
// A Plan says what is to be checked, done and undone. It is data: New touches
// nothing and makes the plan of any system on any other. Check, Mount, Unmount
// and Abandon carry it out on this one.
package loopback

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
)

// The ways to mount a store.
const (
	FUSE = "fuse" // the server itself is the file system
	NFS  = "nfs"  // the system's NFS client
	SMB  = "smb"  // the system's SMB client
)

// Want is what to mount and where.
type Want struct {
	System string   // runtime.GOOS of the client
	Via    string   // FUSE, NFS or SMB
	Dir    string   // a folder, or on Windows a drive such as R:
	Source string   // what a mount by FUSE is listed as; "": ramserver
	Export string   // name of the export, without a slash
	Host   string   // of the server: a name or an address, IPv6 without brackets
	Port   uint16   // of NFS and MOUNT, or of SMB
	Bound  bool     // port 111 of the host says where NFS is
	Plain3 bool     // NFS version 3 also where the system's client has 4.2: Linux
	Alone  bool     // the server has no other export: version 4's root is this one
	Root   bool     // root mounts
	User   string   // of SMB
	Secret string   // the user's password, if the plan is to be carried out
	Flags  []string // restrictions: of ro, nosuid, nodev, noexec, noatime; Linux only

	// Local says that server and client are one machine, and Conns and IO are
	// chosen for it: connections of NFS, and bytes of a READ or WRITE.
	Local bool
	Conns int
	IO    int
}

// Plan is how a store is mounted.
type Plan struct {
	System  string   `json:"system"`
	Via     string   `json:"via"`
	Dir     string   `json:"dir"`
	Type    string   `json:"type,omitempty"`   // of file system, as Linux names it
	Source  string   `json:"source,omitempty"` // as the system shows it
	Options []string `json:"options"`
	Flags   []string `json:"flags,omitempty"` // set by a second step on Linux
	Checks  []Check  `json:"checks"`          // what must hold first
	Run     []string `json:"run,omitempty"`   // the command that mounts; FUSE has none
	Undo    []string `json:"undo"`            // the command that unmounts
	Force   []string `json:"force"`           // the command that unmounts also when files are open or the server is gone
	Else    *Plan    `json:"else,omitempty"`  // instead, if Mount answers ErrNoSuch

	Server netip.AddrPort `json:"server,omitzero"` // of NFS on this machine, on Linux

	user, secret string // of SMB; never shown or written down
}

// Check is something that must hold before a plan can work.
type Check struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	Help string `json:"help"` // what to do if it does not
}

// Kind is what kind of thing a check is about.
type Kind string

// The kinds, and what Name is.
const (
	NeedRoot       Kind = "root"        // nothing
	NeedDevice     Kind = "device"      // a file that can be opened for reading and writing
	NeedFilesystem Kind = "file system" // a type that the Linux kernel has or can load
	NeedProgram    Kind = "program"     // a command that can be found
	NeedBuild      Kind = "build"       // the lowest build number of Windows
)

// ErrBusy says that files are open or somebody's current folder is in there.
var ErrBusy = errors.New("is in use")

// ErrNoSuch says that the kernel has no such file system, or not this version of
// its protocol.
var ErrNoSuch = errors.New("the kernel has no such client")

// Ways lists how a system can mount, the best first.
func Ways(system string) []string {
	switch system {
	case "linux":
		return []string{FUSE, NFS}
	case "windows":
		return []string{SMB, NFS}
	default:
		return []string{NFS, SMB}
	}
}

// New makes a plan. The error says why this system cannot mount in this way.
func New(w Want) (*Plan, error) {
	p := &Plan{System: w.System, Via: w.Via, Dir: w.Dir, Flags: w.Flags, user: w.User, secret: w.Secret}
	if err := CheckFlags(w.System, w.Flags); err != nil {
		return nil, err
	}
	var err error
	switch {
	case w.Via != FUSE && w.Via != NFS && w.Via != SMB:
		err = fmt.Errorf("%q: want fuse, nfs or smb", w.Via)
	case w.System == "linux":
		p.linux(&w)
	case w.Via == FUSE:
		err = errors.New("FUSE is for Linux only")
	case w.System == "darwin":
		p.darwin(&w)
	case w.System == "windows":
		err = p.windows(&w)
	default:
		err = fmt.Errorf("mounting on %s is not supported; use its own mount command", w.System)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// CheckFlags tells whether a system knows the restrictions of a Want.
func CheckFlags(system string, flags []string) error {
	for _, f := range flags {
		if !slices.Contains([]string{"ro", "nosuid", "nodev", "noexec", "noatime"}, f) {
			return fmt.Errorf("mount option %q: want ro, nosuid, nodev, noexec or noatime", f)
		}
	}
	if len(flags) > 0 && system != "linux" {
		return fmt.Errorf("mount options %s: only on Linux", strings.Join(flags, ","))
	}
	return nil
}

// Command is the command that mounts, as typed into a shell; "" for FUSE.
func (p *Plan) Command() string { return shell(p.System, p.Run) }

// Print writes the plan for people.
func (p *Plan) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, c := range p.Checks {
		fmt.Fprintf(w, "check\t%s\n", c)
	}
	if p.Via == FUSE {
		fmt.Fprintf(w, "mount\tby the server itself: %s at %s, type %s, options %s\n", p.Source, p.Dir, p.Type, strings.Join(p.Options, ","))
	} else {
		fmt.Fprintf(w, "mount\t%s\n", p.Command())
		if p.secret != "" {
			fmt.Fprintf(w, "\twith a password for %s that is not shown\n", p.user)
		}
	}
	if p.Else != nil {
		fmt.Fprintf(w, "or\t%s\n", p.Else.Command())
	}
	if len(p.Flags) > 0 {
		fmt.Fprintf(w, "\t%s\n", shell(p.System, []string{"mount", "-o", "remount,bind," + strings.Join(p.Flags, ","), p.Dir}))
	}
	fmt.Fprintf(w, "undo\t%s\n", shell(p.System, p.Undo))
	fmt.Fprintf(w, "force\t%s\n", shell(p.System, p.Force))
	return w.Flush()
}

func (c Check) String() string {
	switch c.Kind {
	case NeedRoot:
		return "it is run by root"
	case NeedDevice:
		return c.Name + " can be opened"
	case NeedFilesystem:
		return "the kernel has the file system " + c.Name
	case NeedProgram:
		return "there is a program " + c.Name
	case NeedBuild:
		return "Windows has build number " + c.Name + " or later"
	default:
		return string(c.Kind) + " " + c.Name
	}
}

// shell quotes what a shell would not take as it is.
func shell(system string, args []string) string {
	var out []string
	for _, a := range args {
		plain := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			safe := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=,./:@%+", r)
			return !safe && !(system == "windows" && r == '\\')
		})
		switch {
		case plain:
		case system == "windows":
			a = `"` + a + `"` // neither a path nor an export has quotes in it
		default:
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// hostInPath is a host before a colon.
func hostInPath(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// nfsPorts are the options without which a client asks port 111.
func nfsPorts(w *Want) []string {
	if w.Bound && w.Port == 2049 && !w.Local {
		return nil
	}
	return []string{fmt.Sprintf("port=%d", w.Port), fmt.Sprintf("mountport=%d", w.Port)}
}

func join(options ...[]string) []string { return slices.Concat(options...) }

// script is a program that carries out the plan of an SMB mount with its password,
// and what it reads from standard input.
func (p *Plan) script() (program []string, in string) {
	if p.System == "windows" {
		return []string{"powershell", "-NoProfile", "-NonInteractive", "-Command", "-"}, p.powerShellScript()
	}
	return []string{"expect", "-"}, p.expectScript()
}
