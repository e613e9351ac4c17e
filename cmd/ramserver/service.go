package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// service is what makes a system run this program at start: files and commands.
type service struct {
	files  []serviceFile
	start  [][]string // after the files are there
	stop   [][]string // before they go; may fail
	forget [][]string // after they have gone; may fail
}

// serviceFile is a file with content or a symlink.
type serviceFile struct {
	path, link string
	content    string
	shared     string // if others that match this pattern are there, it stays
}

const (
	unitDir  = "/etc/systemd/system/"
	helperAt = "/sbin/" + helperName
)

// serviceName is that of a server's service.
func (in *instance) serviceName() string {
	if in.name == "default" {
		return "ramserver"
	}
	return "ramserver-" + in.name
}

// makeService plans the service of a system that runs exe with args, which
// stays in the foreground. It touches nothing.
func makeService(system, name, exe string, args []string) (*service, error) {
	switch system {
	case "linux":
		unit := name + ".service"
		return &service{
			files: []serviceFile{
				{path: unitDir + unit, content: systemdUnit(exe, args)},
				{path: unitDir + "multi-user.target.wants/" + unit, link: unitDir + unit},
				helperFile(exe),
			},
			start:  [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "start", unit}},
			stop:   [][]string{{"systemctl", "stop", unit}},
			forget: [][]string{{"systemctl", "daemon-reload"}},
		}, nil
	case "darwin":
		path := "/Library/LaunchDaemons/" + name + ".plist"
		return &service{
			files: []serviceFile{{path: path, content: launchdPlist(name, exe, args)}},
			start: [][]string{{"launchctl", "bootstrap", "system", path}},
			stop:  [][]string{{"launchctl", "bootout", "system/" + name}},
		}, nil
	case "windows":
		return &service{
			start: [][]string{
				{"sc.exe", "create", name, "binPath=", windowsCommand(exe, args), "start=", "auto", "DisplayName=", name},
				{"sc.exe", "failure", name, "reset=", "3600", "actions=", "restart/5000"},
				{"sc.exe", "start", name},
			},
			stop:   [][]string{{"sc.exe", "stop", name}},
			forget: [][]string{{"sc.exe", "delete", name}},
		}, nil
	default:
		return nil, fmt.Errorf("services on %s are not supported", system)
	}
}

// helperFile is what mount(8) looks for.
func helperFile(exe string) serviceFile {
	return serviceFile{path: helperAt, link: exe, shared: unitDir + "ramserver*.service"}
}

// systemdUnit is a systemd.service(5). It has no sandbox: a mount in a mount
// namespace of its own would be seen by nobody.
func systemdUnit(exe string, args []string) string {
	var command []string
	for _, a := range append([]string{exe}, args...) {
		command = append(command, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(a)+`"`)
	}
	return `[Unit]
Description=Files in memory
Documentation=man:fstab(5)
After=local-fs.target network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart=` + strings.Join(command, " ") + `
Restart=on-failure
RestartSec=1
TimeoutStopSec=30
OOMScoreAdjust=-900
LimitNOFILE=1048576
UMask=0077

[Install]
WantedBy=multi-user.target
`
}

// launchdPlist is a launchd.plist(5).
func launchdPlist(name, exe string, args []string) string {
	var b strings.Builder
	line := func(tabs int, tag, text string) {
		fmt.Fprintf(&b, "%s<%s>", strings.Repeat("\t", tabs), tag)
		xml.EscapeText(&b, []byte(text))
		fmt.Fprintf(&b, "</%s>\n", tag)
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
`)
	line(1, "key", "Label")
	line(1, "string", name)
	line(1, "key", "ProgramArguments")
	b.WriteString("\t<array>\n")
	for _, a := range append([]string{exe}, args...) {
		line(2, "string", a)
	}
	b.WriteString("\t</array>\n")
	b.WriteString("\t<key>RunAtLoad</key>\n\t<true/>\n")
	b.WriteString("\t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n")
	line(1, "key", "StandardErrorPath")
	line(1, "string", "/var/log/"+name+".log")
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// windowsCommand quotes as CommandLineToArgvW reads.
func windowsCommand(exe string, args []string) string {
	out := []string{`"` + exe + `"`} // a path has no quotes
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\"") {
			var b strings.Builder
			slashes := 0
			for _, r := range a {
				if r == '"' {
					b.WriteString(strings.Repeat(`\`, slashes+1))
				}
				if slashes++; r != '\\' {
					slashes = 0
				}
				b.WriteRune(r)
			}
			a = `"` + b.String() + strings.Repeat(`\`, slashes) + `"`
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

func newService(in *instance) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Run a server when the system starts",
		Long: `Run a server when the system starts: by systemd, launchd or as a Windows
service. It is named ramserver, or ramserver-NAME with --name.

On Linux this also makes /sbin/mount.ramserver, a link to this program, with
which a line of /etc/fstab is enough to have a RAM disk:

    ramdisk /ramdisk ramserver size=4G 0 0

Its options are the flags of mount without dashes.`,
		Example: `  sudo ramserver service install -- mount /ramdisk --size 4G
  sudo ramserver service install --fstab
  sudo ramserver service remove`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newServiceInstall(in), newServiceRemove(in))
	return cmd
}

func newServiceInstall(in *instance) *cobra.Command {
	var root string
	var print, fstab bool
	cmd := &cobra.Command{
		Use:   "install [-- serve|mount ARGUMENT...]",
		Short: "Install a service and start it",
		Long: `Install a service that runs this program, where it is now, with the arguments
behind the dashes (without any: serve), and start it.`,
		Example: `  sudo ramserver service install -- mount /ramdisk --size 4G
  sudo ramserver service install --name scratch -- serve --config /etc/ramserver.yaml
  ramserver service install --print -- mount /ramdisk --size 4G`,
		RunE: func(cmd *cobra.Command, args []string) error {
			exe, err := os.Executable()
			if err != nil {
				return failure{err}
			}
			var s *service
			if fstab {
				if runtime.GOOS != "linux" || len(args) > 0 {
					return errors.New("--fstab: is for Linux, and without arguments")
				}
				s = &service{files: []serviceFile{helperFile(exe)}}
			} else if args, err = in.serviceArgs(args); err != nil {
				return err
			} else if s, err = makeService(runtime.GOOS, in.serviceName(), exe, args); err != nil {
				return err
			}
			if print {
				return s.print(cmd.OutOrStdout())
			}
			return s.install(root, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "`folder` to install below, starting nothing")
	cmd.Flags().BoolVar(&print, "print", false, "show the files and commands, and change nothing")
	cmd.Flags().BoolVar(&fstab, "fstab", false, "install only "+helperAt)
	return cmd
}

func newServiceRemove(in *instance) *cobra.Command {
	var root string
	var print bool
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Stop a service and remove what install has made",
		Example: `  sudo ramserver service remove
  sudo ramserver service remove --name scratch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := makeService(runtime.GOOS, in.serviceName(), "ramserver", nil)
			if err != nil {
				return err
			}
			if print {
				return s.printRemoval(cmd.OutOrStdout())
			}
			return s.remove(root, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "`folder` that install was given")
	cmd.Flags().BoolVar(&print, "print", false, "show what would be removed, and change nothing")
	return cmd
}

// serviceArgs checks the command line of a service and adds what makes it one.
func (in *instance) serviceArgs(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{"serve"}
	}
	if args[0] != "serve" && args[0] != "mount" {
		return nil, fmt.Errorf("%q: want serve or mount", args[0])
	}
	root := newRoot(nil)
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		return nil, err
	}
	if args[0] == "mount" {
		if !filepath.IsAbs(cmd.Flags().Arg(0)) && runtime.GOOS != "windows" {
			return nil, fmt.Errorf("%s: want an absolute path", cmd.Flags().Arg(0))
		}
		args = slices.Insert(slices.Clone(args), 1, "--foreground")
	}
	if in.named {
		args = slices.Insert(slices.Clone(args), 1, "--name", in.name)
	}
	return args, nil
}

func (s *service) print(out io.Writer) error {
	for _, f := range s.files {
		if f.link != "" {
			fmt.Fprintf(out, "# %s -> %s\n\n", f.path, f.link)
		} else {
			fmt.Fprintf(out, "# %s\n%s\n", f.path, f.content)
		}
	}
	for _, c := range s.start {
		fmt.Fprintf(out, "# %s\n", strings.Join(c, " "))
	}
	return nil
}

func (s *service) printRemoval(out io.Writer) error {
	for _, c := range s.stop {
		fmt.Fprintf(out, "# %s\n", strings.Join(c, " "))
	}
	for _, f := range s.files {
		fmt.Fprintf(out, "# rm %s\n", f.path)
	}
	for _, c := range s.forget {
		fmt.Fprintf(out, "# %s\n", strings.Join(c, " "))
	}
	return nil
}

// install makes the files below root and, without one, starts the service. If
// something fails, what it has made is removed again.
func (s *service) install(root string, out io.Writer) (err error) {
	var made []string
	defer func() {
		if err != nil {
			for _, path := range made {
				os.Remove(path)
			}
		}
	}()
	for _, f := range s.files {
		path := filepath.Join(root, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return failure{err}
		}
		isNew, err := f.write(path)
		if err != nil {
			return failure{err}
		}
		if isNew {
			made = append(made, path)
		}
		fmt.Fprintf(out, "%s\n", path)
	}
	if root != "" || len(s.start) == 0 {
		return nil
	}
	if !managerRuns() {
		_, err := fmt.Fprintf(out, "systemd does not run here: the service starts where it does\n")
		return err
	}
	for _, c := range s.start {
		if err := command(c); err != nil {
			return failure{err}
		}
	}
	_, err = fmt.Fprintf(out, "started\n")
	return err
}

// write makes the file; one of ours is replaced, another's is left alone.
func (f *serviceFile) write(path string) (isNew bool, err error) {
	fi, err := os.Lstat(path)
	isNew = errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return false, err
	}
	if f.link == "" {
		if !isNew && !fi.Mode().IsRegular() {
			return false, fmt.Errorf("%s: is there already and is no file", path)
		}
		return isNew, os.WriteFile(path, []byte(f.content), 0o644)
	}
	if !isNew && fi.Mode().Type() != fs.ModeSymlink {
		return false, fmt.Errorf("%s: is there already and is no link", path)
	}
	// The new link takes the old one's place in one step.
	tmp := path + ".new"
	os.Remove(tmp)
	if err := os.Symlink(f.link, tmp); err != nil {
		return false, err
	}
	return isNew, os.Rename(tmp, path)
}

// remove stops the service and removes its files.
func (s *service) remove(root string, out io.Writer) error {
	run := root == "" && managerRuns()
	if run {
		for _, c := range s.stop {
			if err := command(c); err != nil {
				fmt.Fprintf(out, "%v\n", err) // it may not run
			}
		}
	}
	found := false
	for _, f := range s.files {
		path := filepath.Join(root, f.path)
		if others, _ := filepath.Glob(filepath.Join(root, f.shared)); f.shared != "" && len(others) > 0 {
			continue
		}
		err := os.Remove(path)
		if err == nil {
			found = true
			fmt.Fprintf(out, "removed %s\n", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return failure{err}
		}
	}
	if len(s.files) > 0 && !found {
		return failure{errors.New("there is no such service")}
	}
	if run {
		for _, c := range s.forget {
			if err := command(c); err != nil {
				return failure{err}
			}
		}
	}
	return nil
}

// managerRuns tells whether there is somebody to start a service.
func managerRuns() bool {
	if runtime.GOOS != "linux" {
		return true
	}
	_, err := os.Stat("/run/systemd/system") // sd_booted(3)
	return err == nil
}

func command(args []string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
