package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"ramserver/export"
	"ramserver/export/smb"
	"ramserver/export/smb/client"
	"ramserver/export/smb/ntlm"
	"ramserver/loopback"
	"ramserver/memstore"

	"github.com/spf13/cobra"
)

// finding is what doctor has to say about one thing.
type finding struct {
	Name  string `json:"name"`
	State string `json:"state"` // one of those below
	Found string `json:"found"`
	Help  string `json:"help,omitempty"` // what to do
}

const (
	stateOK      = "ok"
	stateNote    = "note" // something does less than it could
	stateNo      = "no"   // a way to mount that does not work
	stateProblem = "problem"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what works on this machine, and what to do about the rest",
		Long: `Look at what mounting and serving need: memory, the limit of open files, ports
and the kernel's clients; mount a scratch store of 16 MiB in every way that can
work here, and try it.

The exit status is 0 if a store can be mounted in some way and nothing is wrong
that serving needs, else 1.`,
		Example: `  sudo ramserver doctor
  ramserver doctor --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := []finding{checkMemory(), checkFiles()}
			found = append(found, checkPorts()...)
			found = append(found, checkUsers(), checkLogon())
			works := false
			for _, via := range []string{loopback.FUSE, loopback.NFS, loopback.SMB} {
				f := checkWay(cmd.Context(), via)
				works = works || f.State == stateOK
				found = append(found, f)
			}
			if err := printFindings(cmd.OutOrStdout(), found, asJSON); err != nil {
				return err
			}
			if !works {
				return failure{errors.New("a store cannot be mounted here in any way")}
			}
			for _, f := range found {
				if f.State == stateProblem {
					return failure{fmt.Errorf("%s: %s", f.Name, f.Found)}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printFindings(out io.Writer, found []finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(found)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.State, f.Name, f.Found)
		if f.Help != "" {
			fmt.Fprintf(w, "\t\t%s\n", f.Help)
		}
	}
	return w.Flush()
}

// leastMemory is what a machine should have for a store to be of use.
const leastMemory = 256 << 20

func checkMemory() finding {
	m, err := memory()
	switch {
	case err != nil:
		return finding{Name: "memory", State: stateProblem, Found: err.Error()}
	case m.bytes < leastMemory:
		return finding{Name: "memory", State: stateNote, Found: fmt.Sprintf("%s is only %s", m.what, formatSize(m.bytes)), Help: "give a small --size"}
	default:
		return finding{Name: "memory", State: stateOK, Found: fmt.Sprintf("%s is %s; a store has half of it unless --size says else", m.what, formatSize(m.bytes))}
	}
}

// manyFiles is the limit of open files from which on nobody runs into it.
const manyFiles = 4096

func checkFiles() finding {
	n, ok := openFiles()
	switch {
	case !ok:
		return finding{Name: "open files", State: stateOK, Found: "no limit that matters"}
	case n < manyFiles:
		return finding{Name: "open files", State: stateNote, Found: fmt.Sprintf("at most %d, which bounds connections", n), Help: "ulimit -n, or LimitNOFILE= of the service"}
	default:
		return finding{Name: "open files", State: stateOK, Found: fmt.Sprintf("at most %d", n)}
	}
}

func checkPorts() []finding {
	var out []finding
	for _, p := range []struct {
		port       uint16
		what, help string
	}{
		{111, "portmapper", "clients then need port numbers, as the printed commands have; macOS and Linux can, Windows cannot"},
		{2049, "NFS", "stop who has it (systemctl stop nfs-server), or give --nfs-port"},
		{smbPort, "SMB", "Windows' own file server and Samba use it; serve takes port 1445 then, which clients have to be told, and Windows before 11 24H2 cannot be"},
		{otherSMBPort, "SMB where port 445 is taken", "give --smb-port"},
	} {
		f := finding{Name: fmt.Sprintf("port %d", p.port), State: stateOK, Found: p.what + ": free"}
		l, err := net.Listen("tcp4", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), p.port).String())
		switch {
		case err == nil:
			l.Close()
		case errors.Is(err, syscall.EACCES):
			f.State, f.Found, f.Help = stateNote, p.what+": only root can have it", p.help
		case p.port == 111 && rpcbindAnswers():
			f.Found = p.what + ": an rpcbind has it; serve registers there"
		default:
			f.State, f.Found, f.Help = stateNote, p.what+": is in use", p.help
		}
		out = append(out, f)
	}
	return out
}

// rpcbindAnswers calls the NULL procedure of the portmapper, program 100000
// version 2 (RFC 1833 section 3.2), by a record of RFC 5531 section 11.
func rpcbindAnswers() bool {
	const timeout = 2 * time.Second
	conn, err := net.DialTimeout("tcp4", "127.0.0.1:111", timeout)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(timeout))
	call := make([]byte, 4+40)
	copy(call, []byte{0x80, 0, 0, 40, 'r', 'a', 'm', 's', 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa0, 0, 0, 0, 2})
	conn.Write(call)
	reply := make([]byte, 12)
	_, err = io.ReadFull(conn, reply)
	return err == nil && bytes.Equal(reply[4:], []byte{'r', 'a', 'm', 's', 0, 0, 0, 1})
}

// checkUsers looks at who may log on over SMB.
func checkUsers() finding {
	f := finding{Name: "SMB users"}
	path, err := defaultUsers()
	if err != nil {
		f.State, f.Found = stateNote, err.Error()
		return f
	}
	users, err := readUsers(path)
	switch {
	case err != nil:
		f.State, f.Found, f.Help = stateProblem, err.Error(), "serve refuses such a file: mend it, or remove it and add the users again"
	case len(users) == 0:
		f.State, f.Found, f.Help = stateNote, "none in "+path, "ramserver user add NAME, without which SMB is not served"
	default:
		f.State, f.Found = stateOK, fmt.Sprintf("%d in %s", len(users), path)
	}
	return f
}

// logonTime bounds the trial of a logon.
const logonTime = 10 * time.Second

// checkLogon logs on over SMB to a server in this process, and uses a share.
func checkLogon() finding {
	f := finding{Name: "SMB logon", State: stateProblem}
	if err := tryLogon(); err != nil {
		f.Found = err.Error()
		if errors.Is(err, syscall.ENETUNREACH) {
			f.Help = "the loopback network is down: ip link set lo up"
		}
		return f
	}
	f.State, f.Found = stateOK, "works, with a folder in a share"
	return f
}

func tryLogon() error {
	store, err := memstore.New(memstore.Config{Name: "doctor", Size: 16 << 20})
	if err != nil {
		return err
	}
	defer store.Close()
	exports, err := export.New(&export.Export{Name: "doctor", Store: store, Root: store.Root()})
	if err != nil {
		return err
	}
	const name = "doctor"
	password := rand.Text()
	users, err := smb.NewUsers("", smb.User{Name: name, Hash: ntlm.HashPassword(password)})
	if err != nil {
		return err
	}
	s, err := smb.New(smb.Config{Exports: exports, Users: users})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	c, err := client.Dial(l.Addr().String(), client.Options{User: name, Password: password, Share: "doctor", Timeout: logonTime})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Mkdir("folder"); err != nil {
		return err
	}
	if _, err := c.Stat("folder"); err != nil {
		return err
	}
	if err := c.Remove("folder"); err != nil {
		return err
	}
	return c.Logoff()
}

// wayTime bounds the trial of one way to mount.
const wayTime = 60 * time.Second

// checkWay mounts a scratch store by a server of its own and tries it.
func checkWay(ctx context.Context, via string) finding {
	f := finding{Name: "mount by " + via, State: stateNo}
	fail := func(err error) finding {
		f.Found = strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), via+": ")
		return f
	}
	tmp, err := os.MkdirTemp("", "rsdoctor")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "scratch")
	if runtime.GOOS == "windows" {
		if dir, err = freeDrive(); err != nil {
			return fail(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, wayTime)
	defer cancel()
	self := func(args ...string) error {
		var errs bytes.Buffer
		cmd, err := again(ctx, append(args, "--state-dir", filepath.Join(tmp, "state"))...)
		if err != nil {
			return err
		}
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil {
			return errors.New(strings.TrimPrefix(strings.TrimSpace(errs.String()), "ramserver: "))
		}
		return nil
	}
	if err := self("mount", dir, "--via", via, "--size", "16M"); err != nil {
		return fail(err)
	}
	tried := make(chan error, 1)
	go func() { tried <- tryMount(dir) }()
	var ended bool
	select {
	case err = <-tried:
		ended = true
	case <-time.After(wayTime / 3):
		err = fmt.Errorf("a call hangs")
	}
	if e := self("umount", dir, "--force"); err == nil {
		err = e
	}
	if !ended {
		<-tried // the umount has failed what hung
	}
	if err != nil {
		return fail(err)
	}
	f.State, f.Found = stateOK, "works: "+strings.Join(trialNames(), ", ")
	return f
}

// freeDrive finds a drive letter.
func freeDrive() (string, error) {
	for c := 'Z'; c >= 'D'; c-- {
		drive := string(c) + ":"
		if m, err := loopback.Find(drive); err != nil || m == nil {
			return drive, err
		}
	}
	return "", errors.New("no free drive letter")
}

// trials is what doctor tries in a scratch store.
var trials = []struct {
	name string
	try  func(dir string) error
}{
	{"create", func(dir string) error {
		if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
			return err
		}
		return writeAndRead(filepath.Join(dir, "folder", "a"))
	}},
	{"rename", func(dir string) error {
		if err := writeAndRead(filepath.Join(dir, "b")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "folder", "a"))
	}},
	{"lock", func(dir string) error { return tryLock(filepath.Join(dir, "folder", "a")) }},
	{"list", func(dir string) error {
		names, err := os.ReadDir(filepath.Join(dir, "folder"))
		if err == nil && (len(names) != 1 || names[0].Name() != "a") {
			err = fmt.Errorf("found %v", names)
		}
		return err
	}},
	{"temporary files", func(dir string) error {
		tmp, err := os.MkdirTemp(dir, "tmp")
		if err != nil {
			return err
		}
		for range 10 {
			f, err := os.CreateTemp(tmp, "*.txt")
			if err != nil {
				return err
			}
			f.Close()
			if err := writeAndRead(f.Name()); err != nil {
				return err
			}
		}
		return os.RemoveAll(tmp)
	}},
}

func trialNames() []string {
	var names []string
	for _, t := range trials {
		names = append(names, t.name)
	}
	return names
}

// tryMount runs the trials in a folder.
func tryMount(dir string) error {
	if runtime.GOOS == "windows" {
		dir += `\`
	}
	for _, t := range trials {
		if err := t.try(dir); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func writeAndRead(path string) error {
	want := bytes.Repeat([]byte("ramserver\n"), 10000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		return err
	}
	got, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s: reads back as something else", path)
	}
	return err
}
