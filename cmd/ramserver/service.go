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
	runs   []string   // succeeds if the system knows the service already
	again  string     // what to do then for what was changed; "": it must be removed first
	start  [][]string // after the files are there
	stop   [][]string // before they go; may fail
	forget [][]string // after they have gone
}

// serviceFile is a file with content or a symlink.
type serviceFile struct {
	path, link string
	content    string // has serviceMark in it
	helper     bool   // it stays while other services or fstab(5) need it
}

const (
	unitDir  = "/etc/systemd/system/"
	helperAt = "/sbin/" + helperName
	fstab    = "/etc/fstab"

	// serviceMark is in every file that install makes, and only such a file is
	// replaced or removed.
	serviceMark = `Made by "ramserver service install".`
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
			runs:   []string{"systemctl", "is-active", "--quiet", unit},
			again:  "systemctl restart " + unit,
			start:  [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "start", unit}},
			stop:   [][]string{{"systemctl", "stop", unit}},
			forget: [][]string{{"systemctl", "daemon-reload"}},
		}, nil
	case "darwin":
		path := "/Library/LaunchDaemons/" + name + ".plist"
		return &service{
			files: []serviceFile{{path: path, content: launchdPlist(name, exe, args)}},
			runs:  []string{"launchctl", "print", "system/" + name},
			start: [][]string{{"launchctl", "bootstrap", "system", path}},
			stop:  [][]string{{"launchctl", "bootout", "system/" + name}},
		}, nil
	case "windows":
		return &service{
			runs: []string{"sc.exe", "query", name},
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
	return serviceFile{path: helperAt, link: exe, helper: true}
}

// systemdUnit is a systemd.service(5). It has no sandbox: a mount in a mount
// namespace of its own would be seen by nobody.
func systemdUnit(exe string, args []string) string {
	var command []string
	for _, a := range append([]string{exe}, args...) {
		command = append(command, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(a)+`"`)
	}
	return "# " + serviceMark + `
[Unit]
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
<!-- ` + serviceMark + ` -->
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
	var print, onlyHelper bool
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
			if onlyHelper {
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
			if err := s.install(root, cmd.OutOrStdout()); err != nil {
				return err
			}
			adviseFstab(root, args, cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "`folder` to install below, starting nothing")
	cmd.Flags().BoolVar(&print, "print", false, "show the files and commands, and change nothing")
	cmd.Flags().BoolVar(&onlyHelper, "fstab", false, "install only "+helperAt)
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
// something fails, all is as it was before.
func (s *service) install(root string, out io.Writer) (err error) {
	run := root == "" && len(s.start) > 0 && managerRuns()
	known := run && command(s.runs) == nil
	if known && s.again == "" {
		return failure{errors.New("there is such a service already; remove it first, with which its store goes")}
	}
	var undo []func()
	defer func() {
		if err != nil {
			for _, u := range slices.Backward(undo) {
				u()
			}
		}
	}()
	changed := false
	for _, f := range s.files {
		path := filepath.Join(root, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return failure{err}
		}
		was, err := f.find(path)
		if err == nil {
			err = f.write(path)
		}
		if err != nil {
			return failure{err}
		}
		undo = append(undo, func() { was.write(path) })
		changed = changed || *was != f
		fmt.Fprintf(out, "%s\n", path)
	}
	switch {
	case root != "" || len(s.start) == 0:
		return nil
	case !run:
		fmt.Fprintf(out, "systemd does not run here: the service starts where it does\n")
		return nil
	}
	for n, c := range s.start {
		if err := command(c); err != nil {
			if !known && n > 0 { // the first has made it known
				undo = slices.Insert(undo, 0, func() { commands(s.forget) })
				undo = append(undo, func() { commands(s.stop) })
			}
			return failure{err}
		}
	}
	switch {
	case !known:
		fmt.Fprintf(out, "started\n")
	case changed:
		fmt.Fprintf(out, "it runs as before, until: %s (with which its store goes)\n", s.again)
	}
	return nil
}

// find returns what is at a path: a file that install may replace or remove, or
// nothing, which is neither content nor link. Another's is an error.
func (f *serviceFile) find(path string) (*serviceFile, error) {
	was := &serviceFile{path: f.path, helper: f.helper}
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return was, nil
	case err != nil:
		return nil, err
	case f.link != "":
		if fi.Mode().Type() != fs.ModeSymlink {
			return nil, fmt.Errorf("%s: is there already and is no link", path)
		}
		was.link, err = os.Readlink(path)
		return was, err
	case !fi.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is there already and is no file", path)
	}
	b, err := os.ReadFile(path)
	if was.content = string(b); err == nil && !strings.Contains(was.content, serviceMark) {
		err = fmt.Errorf("%s: is there already, and was not made by this command", path)
	}
	return was, err
}

// write makes the file; a new one takes an old one's place in one step.
func (f *serviceFile) write(path string) (err error) {
	tmp := path + ".new"
	os.Remove(tmp)
	switch {
	case f.link != "":
		err = os.Symlink(f.link, tmp)
	case f.content != "":
		err = os.WriteFile(tmp, []byte(f.content), 0o644)
	default:
		return os.Remove(path)
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// adviseFstab says what fstab(5) has to do with what was installed: a line that
// mounts at the same folder, or without args, none that needs the helper.
func adviseFstab(root string, args []string, out io.Writer) {
	lines := fstabLines(root)
	if len(args) == 0 {
		if !slices.ContainsFunc(lines, usesHelper) {
			fmt.Fprintf(out, "%s may have lines such as: ramdisk /ramdisk ramserver size=4G 0 0\n", fstab)
		}
		return
	}
	for _, l := range lines {
		if args[0] == "mount" && slices.Contains(args, l[1]) {
			fmt.Fprintf(out, "%s has a line for %s too: one of them is too many\n", fstab, l[1])
		}
	}
}

// fstabLines are the fields of the lines of fstab(5).
func fstabLines(root string) [][]string {
	table, _ := os.ReadFile(filepath.Join(root, fstab))
	var lines [][]string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) >= 3 && f[0][0] != '#' {
			f[1] = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(f[1])
			lines = append(lines, f)
		}
	}
	return lines
}

// usesHelper tells whether a line of fstab(5) is mounted by this program.
func usesHelper(line []string) bool { return line[2] == "ramserver" }

// remove stops the service and removes its files, but none that install has not
// made.
func (s *service) remove(root string, out io.Writer) error {
	for _, f := range s.files {
		if _, err := f.find(filepath.Join(root, f.path)); err != nil {
			return failure{err}
		}
	}
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
		if others, _ := filepath.Glob(filepath.Join(root, unitDir+"ramserver*.service")); f.helper && len(others) > 0 {
			continue
		}
		if _, err := os.Lstat(path); err == nil && f.helper && slices.ContainsFunc(fstabLines(root), usesHelper) {
			fmt.Fprintf(out, "%s stays: %s needs it\n", path, fstab)
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
		return commands(s.forget)
	}
	return nil
}

// commands runs all, and returns the first error.
func commands(all [][]string) error {
	for _, c := range all {
		if err := command(c); err != nil {
			return failure{err}
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
