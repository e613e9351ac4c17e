package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestNameOf(t *testing.T) {
	for dir, want := range map[string]string{
		"/ramdisk": "ramdisk", "/mnt/a b": "mnt-a-b", "/": "root", "R:": "R", "/..x": "x",
		"/" + strings.Repeat("long/", 10) + "x": "long-long-long-long-long-long-x",
	} {
		if got := nameOf(dir); got != want || !nameRE.MatchString(got) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

// What mount(8) says, and what it means.
func TestHelperArgs(t *testing.T) {
	for _, tc := range []struct{ args, want, err string }{
		{args: "ramdisk /ramdisk", want: "mount /ramdisk --source=ramdisk"},
		{args: "ramdisk /ramdisk -o rw,size=4G", want: "mount /ramdisk --source=ramdisk --size=4G"},
		{args: "ramdisk /ramdisk -n -o size=4G,nosuid,noauto,x-systemd.automount,nofail,_netdev", want: "mount /ramdisk --source=ramdisk --size=4G --options nosuid"},
		{args: "ramdisk /ramdisk -sv -o ro,via=nfs -t ramserver -o insecure-ports,allow=10.0.0.0/8", want: "mount /ramdisk --source=ramdisk --options ro --via=nfs --insecure-ports --allow=10.0.0.0/8"},
		{args: "-o defaults ramdisk /ramdisk", want: "mount /ramdisk --source=ramdisk"},
		{args: "ramdisk /ramdisk -f", want: ""},
		{args: "none /ramdisk -n -v -o rw,user,noauto,nodiratime,lazytime,size=1G", want: "mount /ramdisk --source=none --size=1G"},
		{args: "ramdisk /ramdisk -o bogus=1", want: "mount /ramdisk --source=ramdisk --bogus=1"}, // which mount refuses
		{args: "ramdisk /ramdisk -s -o bogus=1,size=1G", want: "mount /ramdisk --source=ramdisk --size=1G"},
		{args: "ramdisk /ramdisk -o remount,size=1G", err: "remount: a mount cannot be changed"},
		{args: "/ramdisk", err: "want SPEC DIR"},
		{args: "ramdisk /ramdisk -o", err: "-o: needs a value"},
		{args: "ramdisk /ramdisk -x", err: "-x: unknown"},
		{args: "ramdisk /ramdisk -N 5", err: "other mount namespaces"},
		{args: "", err: "want SPEC DIR"},
	} {
		got, err := helperArgs(strings.Fields(tc.args))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %q, %v; want %q", tc.args, got, err, tc.err)
			}
		} else if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%s: got %q, %v; want %q", tc.args, got, err, tc.want)
		}
	}
}

func FuzzHelperArgs(f *testing.F) {
	f.Add("ramdisk /ramdisk -sfnv -o size=4G,ro,x-a=b")
	f.Add("-o , a b -t")
	f.Fuzz(func(t *testing.T, args string) {
		got, err := helperArgs(strings.Fields(args))
		if err == nil && got != nil && (len(got) < 2 || got[0] != "mount") {
			t.Errorf("%q: %q", args, got)
		}
	})
}

// A log file starts over when it is full.
func TestBoundedLog(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &boundedLog{file: f}
	line := []byte(strings.Repeat("x", maxLog/4-1) + "\n")
	for i, want := range []int{1, 2, 3, 4, 1, 2} {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
		if fi, err := f.Stat(); err != nil || fi.Size() != int64(want*len(line)) {
			t.Errorf("after %d lines: %d bytes, %v; want %d lines", i+1, fi.Size(), err, want)
		}
	}
}

// What each system's manager is told, on whatever system this runs.
func TestServicePlans(t *testing.T) {
	args := []string{"mount", "/ram disk", "--size", `50%`}
	linux, err := makeService("linux", "ramserver-a", "/usr/bin/ramserver", args)
	if err != nil {
		t.Fatal(err)
	}
	unit := linux.files[0]
	if unit.path != "/etc/systemd/system/ramserver-a.service" ||
		!strings.Contains(unit.content, "\nType=notify\nExecStart=\"/usr/bin/ramserver\" \"mount\" \"/ram disk\" \"--size\" \"50%%\"\n") {
		t.Errorf("unit: %s\n%s", unit.path, unit.content)
	}
	if helper := linux.files[2]; helper.path != "/sbin/mount.ramserver" || helper.link != "/usr/bin/ramserver" {
		t.Errorf("helper: %+v", helper)
	}

	darwin, err := makeService("darwin", "ramserver", "/usr/local/bin/ramserver", []string{"serve", "--export", "a<b"})
	if err != nil {
		t.Fatal(err)
	}
	plist := darwin.files[0]
	for _, want := range []string{"<string>ramserver</string>", "<string>/usr/local/bin/ramserver</string>\n\t\t<string>serve</string>", "<string>a&lt;b</string>"} {
		if plist.path != "/Library/LaunchDaemons/ramserver.plist" || !strings.Contains(plist.content, want) {
			t.Errorf("no %q in %s:\n%s", want, plist.path, plist.content)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(plist.content)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}

	windows, err := makeService("windows", "ramserver", `C:\Program Files\ramserver.exe`, []string{"mount", "R:", "--config", `C:\a "b\`})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := windows.start[0][4], `"C:\Program Files\ramserver.exe" mount R: --config "C:\a \"b\\"`; got != want {
		t.Errorf("binPath: %s, want %s", got, want)
	}
	if _, err := makeService("plan9", "a", "b", nil); err == nil {
		t.Error("plan9 has a service")
	}
}

// What install makes, remove removes, and nothing else.
func TestServiceInstall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("on other systems it would be installed for real")
	}
	root := t.TempDir()
	left := func() string {
		var files []string
		filepath.WalkDir(root, func(path string, d os.DirEntry, _ error) error {
			if !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, root))
			}
			return nil
		})
		return strings.Join(files, " ")
	}
	const (
		one    = "/etc/systemd/system/multi-user.target.wants/ramserver.service /etc/systemd/system/ramserver.service"
		two    = "/etc/systemd/system/multi-user.target.wants/ramserver-b.service /etc/systemd/system/multi-user.target.wants/ramserver.service /etc/systemd/system/ramserver-b.service /etc/systemd/system/ramserver.service"
		helper = " /sbin/mount.ramserver"
	)
	for _, step := range []struct {
		args string
		code int
		said string
		left string
	}{
		{"install -- serve --bogus", 2, "unknown flag: --bogus", ""},
		{"install -- stop", 2, `"stop": want serve or mount`, ""},
		{"install -- mount", 2, "want one folder", ""},
		{"install -- mount here", 2, "here: want an absolute path", ""},
		{"remove", 1, "there is no such service", ""},
		{"install -- mount /ramdisk --size 1G", 0, "/etc/systemd/system/ramserver.service", one + helper},
		{"install", 0, "/etc/systemd/system/ramserver.service", one + helper},
		{"install --name b", 0, "/etc/systemd/system/ramserver-b.service", two + helper},
		{"remove --name b", 0, "removed", one + helper},
		{"remove", 0, "removed", ""},
		{"install --fstab", 0, "/sbin/mount.ramserver", helper[1:]},
		{"remove", 0, "removed", ""},
	} {
		args := strings.Fields("service " + step.args)
		args = slices.Insert(args, 2, "--root", root)
		r := ramserver(t, args...)
		if r.code != step.code || !strings.Contains(r.out+r.err, step.said) {
			t.Errorf("%s: %d, %s%s", step.args, r.code, r.out, r.err)
		}
		if got := left(); got != step.left {
			t.Errorf("%s: there is %q, want %q", step.args, got, step.left)
		}
	}
	// What another has made stays, and nothing is left half.
	os.MkdirAll(root+"/sbin", 0o755)
	os.WriteFile(root+helperAt, nil, 0o755)
	if r := ramserver(t, "service", "install", "--root", root); r.code != 1 || !strings.Contains(r.err, "is no link") || left() != helper[1:] {
		t.Errorf("with another's mount.ramserver: %d, %s; left %s", r.code, r.err, left())
	}
	if r := ramserver(t, "service", "remove", "--root", root); r.code != 1 || left() != helper[1:] {
		t.Errorf("remove with another's mount.ramserver: %d, %s; left %s", r.code, r.err, left())
	}
	os.Remove(root + helperAt)
	unit := root + unitDir + "ramserver.service"
	os.WriteFile(unit, []byte("[Unit]\n"), 0o644)
	for _, command := range []string{"install", "remove"} {
		r := ramserver(t, "service", command, "--root", root)
		if b, _ := os.ReadFile(unit); r.code != 1 || !strings.Contains(r.err, "was not made by this command") || string(b) != "[Unit]\n" || left() != unitDir+"ramserver.service" {
			t.Errorf("%s with another's unit: %d, %s; left %s", command, r.code, r.err, left())
		}
	}
	os.Remove(unit)
	// A reinstallation that fails leaves the service as it was.
	ramserver(t, "service", "install", "--root", root, "--", "serve", "--size", "1G")
	was, _ := os.ReadFile(unit)
	os.Remove(root + helperAt)
	os.WriteFile(root+helperAt, nil, 0o755)
	if r := ramserver(t, "service", "install", "--root", root); r.code != 1 {
		t.Errorf("with another's mount.ramserver: %d, %s", r.code, r.err)
	}
	if b, _ := os.ReadFile(unit); !strings.Contains(string(was), "1G") || string(b) != string(was) {
		t.Errorf("a reinstallation that failed has left\n%s", b)
	}
	os.Remove(root + helperAt)
	if r := ramserver(t, "service", "remove", "--root", root); r.code != 0 || left() != "" {
		t.Errorf("remove: %d, %s; left %s", r.code, r.err, left())
	}

	// fstab(5) is looked at and not changed.
	table := root + fstab
	for _, step := range []struct{ lines, args, said, left string }{
		{"", "install --fstab", "/etc/fstab may have lines such as", "/etc/fstab" + helper},
		{"ramdisk /ram\\040disk ramserver size=1G 0 0\n", "install --fstab", helperAt, "/etc/fstab" + helper},
		{"ramdisk /a ramserver size=1G 0 0\n", "install -- mount /a", "/etc/fstab has a line for /a too", "/etc/fstab " + one + helper},
		{"ramdisk /a ramserver size=1G 0 0\n", "remove", "/sbin/mount.ramserver stays: /etc/fstab needs it", "/etc/fstab" + helper},
		{"# ramdisk /a ramserver size=1G 0 0\n", "remove", "removed", "/etc/fstab"},
	} {
		os.WriteFile(table, []byte(step.lines), 0o644)
		r := ramserver(t, slices.Insert(strings.Fields("service "+step.args), 2, "--root", root)...)
		if b, _ := os.ReadFile(table); r.code != 0 || !strings.Contains(r.out, step.said) || left() != step.left || string(b) != step.lines {
			t.Errorf("%q, %s: %d, %s%s; left %s", step.lines, step.args, r.code, r.out, r.err, left())
		}
	}

	r := ramserver(t, "service", "install", "--print", "--", "mount", "/ramdisk", "--size", "4G")
	if r.code != 0 || !strings.Contains(r.out, `"mount" "--foreground" "/ramdisk" "--size" "4G"`) {
		t.Errorf("--print: %d, %s%s", r.code, r.out, r.err)
	}
}
