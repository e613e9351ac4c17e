package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"ramserver/export/smb"
	"ramserver/loopback"

	"github.com/spf13/cobra"
)

// mountFlags are the flags that mount has and serve has not.
type mountFlags struct {
	via        string
	options    []string
	print      bool
	foreground bool
	source     string // what a mount by FUSE is listed as

	passthrough string
}

func newMount(in *instance) *cobra.Command {
	var s settings
	var m mountFlags
	cmd := &cobra.Command{
		Use:   "mount DIR",
		Short: "Mount a new store on this machine",
		Long: `Mount a new, empty store at a folder, which is made if there is none, or on
Windows at a drive. The command returns when it can be used; a server stays in
the background until "ramserver umount" or an umount of the system, and then
what the store held is lost.

The same files are served over the network if one of --listen, --nfs-port,
--allow, --export, --portmap, --smb, --smb-port and --smb-user is given. What is
mounted is the first export; by FUSE it is the whole store of that export.`,
		Example: `  sudo ramserver mount /ramdisk --size 4G
  sudo ramserver mount /ramdisk --via nfs --print
  sudo ramserver mount /scratch --size 50% --listen 0.0.0.0 --allow 192.168.1.0/24`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := in.plan(cmd, &s)
			if err != nil {
				return err
			}
			if !network(cmd.Flags()) {
				p.network, p.listen, p.portmap, p.smb = false, nil, "off", nil
			}
			if err := m.plan(in, p, args[0], cmd.ErrOrStderr()); err != nil {
				return err
			}
			switch {
			case m.print:
				return p.printMount(cmd.OutOrStdout(), in.name)
			case m.foreground:
				if inBackground() {
					return serveInBackground(in, p, cmd.OutOrStdout())
				}
				hardenProcess()
				return serve(in, p, cmd.OutOrStdout(), cmd.ErrOrStderr())
			default:
				return startInBackground(cmd.Context(), in, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
		},
	}
	cmd.Flags().StringVar(&m.via, "via", "auto", "fuse, nfs (the system's own client), smb, or auto: the best that works here")
	cmd.Flags().StringSliceVarP(&m.options, "options", "o", nil, "`restrictions`: ro, nosuid, nodev, noexec, noatime")
	cmd.Flags().StringVar(&m.passthrough, "passthrough", "auto", "by FUSE as root, with Linux 6.9: which files the kernel reads and writes without the server: auto (those that gain by it), never or always")
	cmd.Flags().StringVar(&m.source, "source", "", "what the system lists as mounted there, by FUSE; fstab's first field")
	cmd.Flags().MarkHidden("source")
	cmd.Flags().BoolVar(&m.print, "print", false, "show what would be checked and done, and change nothing")
	cmd.Flags().BoolVar(&m.foreground, "foreground", false, "stay, as serve does")
	s.register(cmd.Flags())
	return cmd
}

// plan adds to p how its store is mounted at a folder. What dead servers have
// left mounted is cleaned up first, since nothing could be asked about it.
func (m *mountFlags) plan(in *instance, p *plan, arg string, msgs io.Writer) error {
	if err := oneOf("--via", m.via, "auto", loopback.FUSE, loopback.NFS, loopback.SMB); err != nil {
		return err
	}
	if err := oneOf("--passthrough", m.passthrough, "auto", "never", "always"); err != nil {
		return err
	}
	p.passthrough = m.passthrough
	if err := loopback.CheckFlags(runtime.GOOS, m.options); err != nil {
		return err
	}
	dir, err := absolute(arg)
	if err != nil {
		return err
	}
	if !in.named {
		in.name = nameOf(dir)
	}
	if !m.print {
		if err := in.sweep(msgs); err != nil {
			return err
		}
		if _, err := cleanLost(dir, msgs); err != nil {
			return err
		}
		if dir, err = checkDir(dir, msgs); err != nil {
			return err
		}
	}

	ways := []string{m.via}
	if m.via == "auto" {
		ways = loopback.Ways(runtime.GOOS)
	}
	var why []string
	for _, via := range ways {
		err := m.planVia(p, via, dir)
		if err != nil && m.via != "auto" {
			return err
		}
		if err == nil && (m.via == "auto" || !m.print) {
			err = p.mount.Check()
		}
		if err == nil {
			return nil
		}
		why = append(why, err.Error())
	}
	return failure{errors.New(strings.Join(why, "; "))}
}

// cleanLost unmounts what a dead server left of which no state folder tells,
// and says so.
func cleanLost(dir string, msgs io.Writer) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTime)
	defer cancel()
	was, err := loopback.CleanLost(ctx, dir)
	if err != nil {
		return false, failure{err}
	}
	if was {
		fmt.Fprintf(msgs, "ramserver: a server died; removed its mount at %s\n", dir)
	}
	return was, nil
}

// maxConns is how many connections the kernel's NFS client gets, if there are
// as many processors.
const maxConns = 4

func (m *mountFlags) planVia(p *plan, via, dir string) (err error) {
	listen, port := p.listen, p.nfsPort
	if via != loopback.FUSE && listen == nil {
		listen = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	var user, secret string
	if via == loopback.SMB {
		if port, err = p.mountSMB(listen[0]); err != nil {
			return err
		}
		user, secret = p.smb.quick, p.smb.secret
	}
	if via == loopback.NFS {
		switch {
		case runtime.GOOS == "windows":
			p.nfsPort, p.portmap = nfsPort, "on" // it asks no other
		case p.listen == nil || p.nfsPort == 0:
			if p.nfsPort, err = freePort(listen[0], nfsPort, 0); err != nil {
				return failure{err}
			}
		}
		port = p.nfsPort
	}
	p.mount, err = loopback.New(loopback.Want{
		System: runtime.GOOS, Via: via, Dir: dir, Export: p.exports[0].name, Flags: m.options, Source: m.source,
		Host: localHost(listen), Port: port, User: user, Secret: secret, Bound: p.portmap == "on", Root: os.Geteuid() == 0,
		Plain3: p.only3(), Alone: len(p.exports) == 1,
		Local: true, Conns: min(maxConns, runtime.NumCPU()), IO: min(p.maxIO, 1<<20),
	})
	if err == nil && via != loopback.FUSE {
		p.noNFS = p.listen == nil && via == loopback.SMB
		p.listen = listen
	}
	return err
}

// nfsPort is the port of NFS.
const nfsPort = 2049

// mountSMB adds to p what a mount by SMB needs: a user of its own, and a port that
// is known before the server has it.
func (p *plan) mountSMB(a netip.Addr) (port uint16, err error) {
	if p.smb == nil {
		p.smb = &smbPlan{ports: []uint16{smbPort, otherSMBPort, 0}, signing: smb.Enabled, encryption: smb.Enabled}
	}
	if p.smb.quick == "" {
		p.smb.quick = "ramserver"
	}
	p.smb.secret = rand.Text()
	if port, err = freePort(a, p.smb.ports...); err != nil {
		return 0, failure{err}
	}
	p.smb.ports = []uint16{port}
	return port, nil
}

// freePort is the first port that nobody has; 0 is any.
func freePort(a netip.Addr, ports ...uint16) (uint16, error) {
	for _, port := range ports {
		l, err := net.Listen("tcp", netip.AddrPortFrom(a, port).String())
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).AddrPort().Port(), nil
	}
	return 0, fmt.Errorf("no free port on %s", a)
}

// localHost is where this machine reaches the server.
func localHost(listen []netip.Addr) string {
	for _, a := range listen {
		switch {
		case a.IsLoopback():
			return a.String()
		case a == netip.IPv4Unspecified():
			return "127.0.0.1"
		case a == netip.IPv6Unspecified():
			return "::1"
		}
	}
	if len(listen) > 0 {
		return listen[0].String()
	}
	return ""
}

// absolute is a folder's absolute path, or a drive with its colon.
func absolute(dir string) (string, error) {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(dir), nil
	}
	return filepath.Abs(dir)
}

// checkDir resolves symlinks and tells whether a store can be mounted there. What
// the mount will hide gets a warning.
func checkDir(dir string, msgs io.Writer) (string, error) {
	if runtime.GOOS != "windows" {
		real, err := resolve(dir)
		if err != nil {
			return "", unresolved(dir, err)
		}
		fi, err := os.Lstat(real)
		if err == nil && fi.Mode().Type() == fs.ModeSymlink {
			return "", fmt.Errorf("%s: is a symlink to what is not there", dir)
		}
		if err == nil && !fi.IsDir() {
			return "", fmt.Errorf("%s: is not a folder", dir)
		}
		dir = real
	}
	m, err := loopback.Find(dir)
	if err != nil {
		return "", failure{err}
	}
	if m != nil {
		return "", failure{fmt.Errorf("%s: %s is mounted there already", dir, strings.TrimSpace(m.Type+" "+m.Source))}
	}
	if !inBackground() && runtime.GOOS != "windows" && !isEmpty(dir) {
		fmt.Fprintf(msgs, "ramserver: %s: is not empty; what is in it cannot be seen until it is unmounted\n", dir)
	}
	return dir, nil
}

// isEmpty tells whether a folder has nothing in it, as far as can be seen.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

// unresolved says why the symlinks of a path cannot be followed.
func unresolved(dir string, err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no folder %s", dir, filepath.Dir(dir))
	case errors.As(err, &path):
		return err
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// resolve follows the symlinks of a path, whose last part need not be there.
func resolve(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if real, err = filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			real = filepath.Join(real, filepath.Base(dir))
		}
	}
	return real, err
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf makes the name of a server from the folder that it mounts.
func nameOf(dir string) string {
	name := strings.Trim(notInName.ReplaceAllString(dir, "-"), "-.")
	if name = name[max(0, len(name)-32):]; name == "" {
		return "root"
	}
	return strings.TrimLeft(name, "-.")
}

// printMount shows what mount would do.
func (p *plan) printMount(out io.Writer, name string) error {
	at := "no network"
	if len(p.listen) > 0 {
		var addrs []string
		for _, a := range p.listen {
			addrs = append(addrs, netip.AddrPortFrom(a, p.nfsPort).String())
		}
		at = "NFS on " + strings.Join(addrs, " and ")
		if p.noNFS {
			at = fmt.Sprintf("SMB on %s", netip.AddrPortFrom(p.listen[0], p.smb.ports[0]))
		}
	}
	fmt.Fprintf(out, "A server named %s would hold %s of memory in the background (%s), and for %s at %s:\n\n", name, p.sizes(), at, p.mount.Via, p.mount.Dir)
	return p.mount.Print(out)
}
