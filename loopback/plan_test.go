package loopback

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What each system is told to do, on whatever system this runs.
func TestPlans(t *testing.T) {
	local := Want{Dir: "/ramdisk", Export: "ramdisk", Host: "127.0.0.1", Port: 2049, Root: true, Local: true, Conns: 4, IO: 1 << 20}
	with := func(system, via string, change func(w *Want)) Want {
		w := local
		w.System, w.Via = system, via
		if change != nil {
			change(&w)
		}
		return w
	}
	for _, tc := range []struct {
		name   string
		want   Want
		run    string
		checks string // their names
		undo   string
		force  string
		err    string
	}{
		{name: "Linux, FUSE", want: with("linux", FUSE, nil),
			checks: "fuse /dev/fuse", undo: "umount /ramdisk", force: "umount -l /ramdisk"},
		{name: "Linux, FUSE, a user", want: with("linux", FUSE, func(w *Want) { w.Root = false }),
			checks: "fuse /dev/fuse fusermount3", undo: "fusermount3 -u /ramdisk", force: "fusermount3 -u -z /ramdisk"},
		{name: "Linux, NFS", want: with("linux", NFS, nil), checks: " nfs",
			run:  "mount -i -t nfs4 -o vers=4.2,port=2049,proto=tcp,clientaddr=127.0.0.1,hard,rsize=1048576,wsize=1048576,nconnect=4,actimeo=1,addr=127.0.0.1 127.0.0.1:/ramdisk /ramdisk",
			undo: "umount /ramdisk", force: "umount -f -l /ramdisk"},
		{name: "Linux, NFS, one processor, IPv6", want: with("linux", NFS, func(w *Want) { w.Host, w.Conns, w.Port, w.Alone = "::1", 1, 1234, true }), checks: " nfs",
			run:  "mount -i -t nfs4 -o vers=4.2,port=1234,proto=tcp6,clientaddr=::1,hard,rsize=1048576,wsize=1048576,actimeo=1,addr=::1 '[::1]:/' /ramdisk",
			undo: "umount /ramdisk", force: "umount -f -l /ramdisk"},
		{name: "Linux, NFS from elsewhere", want: with("linux", NFS, func(w *Want) { w.Local, w.Host, w.Alone = false, "host", true }), checks: " nfs",
			run: "mount -t nfs -o vers=4.2 host:/ /ramdisk", undo: "umount /ramdisk", force: "umount -l /ramdisk"},
		{name: "Linux, NFS from elsewhere, another port", want: with("linux", NFS, func(w *Want) { w.Local, w.Host, w.Port = false, "host", 1234 }), checks: " nfs",
			run: "mount -t nfs -o vers=4.2,port=1234 host:/ramdisk /ramdisk", undo: "umount /ramdisk", force: "umount -l /ramdisk"},
		{name: "Linux, a folder with a quote", want: with("linux", NFS, func(w *Want) { w.Local, w.Host, w.Dir = false, "host", "/it's" }), checks: " nfs",
			run: `mount -t nfs -o vers=4.2 host:/ramdisk '/it'\''s'`, undo: `umount '/it'\''s'`, force: `umount -l '/it'\''s'`},
		{name: "Linux, NFS 3", want: with("linux", NFS, func(w *Want) { w.Plain3, w.Alone = true, true }), checks: " nfs",
			run:  "mount -i -t nfs -o vers=3,proto=tcp,nolock,port=2049,mountport=2049,mountproto=tcp,hard,rsize=1048576,wsize=1048576,nconnect=4,actimeo=1,addr=127.0.0.1 127.0.0.1:/ramdisk /ramdisk",
			undo: "umount /ramdisk", force: "umount -f -l /ramdisk"},
		{name: "Linux, NFS 3, one processor, IPv6", want: with("linux", NFS, func(w *Want) { w.Host, w.Conns, w.Port, w.Plain3 = "::1", 1, 1234, true }), checks: " nfs",
			run:  "mount -i -t nfs -o vers=3,proto=tcp6,nolock,port=1234,mountport=1234,mountproto=tcp6,hard,rsize=1048576,wsize=1048576,actimeo=1,addr=::1 '[::1]:/ramdisk' /ramdisk",
			undo: "umount /ramdisk", force: "umount -f -l /ramdisk"},
		{name: "Linux, NFS 3 from elsewhere", want: with("linux", NFS, func(w *Want) { w.Local, w.Bound, w.Host, w.Plain3 = false, true, "host", true }), checks: " nfs",
			run: "mount -t nfs -o vers=3,proto=tcp,nolock host:/ramdisk /ramdisk", undo: "umount /ramdisk", force: "umount -l /ramdisk"},
		{name: "Linux, SMB", want: with("linux", SMB, func(w *Want) { w.Port, w.User, w.Secret = 1445, "me", "hush" }), checks: " cifs",
			run: "mount -i -t cifs -o port=1445,vers=3.1.1,username=me,ip=127.0.0.1,hard,actimeo=1,serverino //127.0.0.1/ramdisk /ramdisk", undo: "umount /ramdisk", force: "umount -l /ramdisk"},
		{name: "Linux, SMB from elsewhere", want: with("linux", SMB, func(w *Want) { w.Local, w.Port, w.User = false, 1445, "me" }), checks: " cifs mount.cifs",
			run: "mount -t cifs -o port=1445,vers=3.1.1,username=me //127.0.0.1/ramdisk /ramdisk", undo: "umount /ramdisk", force: "umount -l /ramdisk"},

		{name: "macOS, NFS", want: with("darwin", NFS, nil), checks: "mount_nfs",
			run:  "mount_nfs -o vers=3,tcp,locallocks,resvport,port=2049,mountport=2049,hard,rsize=1048576,wsize=1048576,actimeo=1 127.0.0.1:/ramdisk /ramdisk",
			undo: "umount /ramdisk", force: "umount -f /ramdisk"},
		{name: "macOS, NFS, a user", want: with("darwin", NFS, func(w *Want) { w.Root, w.Local = false, false }), checks: "mount_nfs",
			run:  "mount_nfs -o vers=3,tcp,locallocks,noresvport,port=2049,mountport=2049 127.0.0.1:/ramdisk /ramdisk",
			undo: "umount /ramdisk", force: "umount -f /ramdisk"},
		{name: "macOS, SMB", want: with("darwin", SMB, func(w *Want) { w.Port, w.User = 1445, "me" }), checks: "mount_smbfs",
			run: "mount_smbfs //me@127.0.0.1:1445/ramdisk /ramdisk", undo: "umount /ramdisk", force: "umount -f /ramdisk"},
		{name: "macOS, SMB, names that a URL cannot have", want: with("darwin", SMB, func(w *Want) { w.Host, w.Port, w.User, w.Export = "::1", 445, "zoë", "50%?" }), checks: "mount_smbfs",
			run: "mount_smbfs '//zo%C3%AB@[::1]:445/50%25%3F' /ramdisk", undo: "umount /ramdisk", force: "umount -f /ramdisk"},
		{name: "macOS, FUSE", want: with("darwin", FUSE, nil), err: "FUSE is for Linux only"},

		{name: "Windows, NFS", want: with("windows", NFS, func(w *Want) { w.Dir, w.Host, w.Bound = "R:", "localhost", true }), checks: "nfsadmin",
			run: `mount -o anon,nolock,mtype=hard \\localhost\ramdisk R:`, undo: "umount R:", force: "umount -f R:"},
		{name: "Windows, NFS without portmapper", want: with("windows", NFS, func(w *Want) { w.Dir = "R:" }), err: "its client needs IPv4, NFS port 2049 and a portmapper"},
		{name: "Windows, NFS at another port", want: with("windows", NFS, func(w *Want) { w.Dir, w.Bound, w.Port = "R:", true, 2050 }), err: "its client needs"},
		{name: "Windows, NFS over IPv6", want: with("windows", NFS, func(w *Want) { w.Dir, w.Bound, w.Host = "R:", true, "::1" }), err: "its client needs"},
		{name: "Windows, SMB", want: with("windows", SMB, func(w *Want) { w.Dir, w.Host, w.Port = "R:", "localhost", 445 }),
			run: `net use R: \\localhost\ramdisk`, undo: "net use R: /delete", force: "net use R: /delete /y"},
		{name: "Windows, SMB, port 445 taken", want: with("windows", SMB, func(w *Want) { w.Dir, w.Host, w.Port = "R:", "localhost", 1445 }), checks: "26100",
			run: `net use R: \\localhost\ramdisk /TCPPORT:1445`, undo: "net use R: /delete", force: "net use R: /delete /y"},
		{name: "Windows, SMB as a user", want: with("windows", SMB, func(w *Want) { w.Dir, w.Host, w.Port, w.User = "R:", "192.168.1.5", 1445, "me" }), checks: "26100",
			run: `net use R: \\192.168.1.5\ramdisk /user:me /TCPPORT:1445`, undo: "net use R: /delete", force: "net use R: /delete /y"},
		{name: "Windows, SMB over IPv6", want: with("windows", SMB, func(w *Want) { w.Dir, w.Host, w.Port = "R:", "fe80::1%4", 445 }),
			run: `net use R: \\fe80--1s4.ipv6-literal.net\ramdisk`, undo: "net use R: /delete", force: "net use R: /delete /y"},
		{name: "Windows, a folder", want: with("windows", SMB, nil), err: `"/ramdisk": want a drive`},

		{name: "restrictions", want: with("linux", FUSE, func(w *Want) { w.Flags = []string{"ro", "noexec"} }),
			checks: "fuse /dev/fuse", undo: "umount /ramdisk", force: "umount -l /ramdisk"},
		{name: "an unknown one", want: with("linux", FUSE, func(w *Want) { w.Flags = []string{"sync"} }), err: `mount option "sync": want ro,`},
		{name: "one elsewhere", want: with("darwin", NFS, func(w *Want) { w.Flags = []string{"ro"} }), err: "only on Linux"},
		{name: "an unknown way", want: with("linux", "afs", nil), err: `"afs": want fuse, nfs or smb`},
		{name: "another system", want: with("plan9", NFS, nil), err: "mounting on plan9 is not supported"},
	} {
		p, err := New(tc.want)
		if tc.err != "" || err != nil {
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want %q", tc.name, err, tc.err)
			}
			continue
		}
		var checks []string
		for _, c := range p.Checks {
			checks = append(checks, c.Name)
			if c.Help == "" || strings.HasPrefix(c.String(), string(c.Kind)+" ") {
				t.Errorf("%s: check %+v says nothing to people", tc.name, c)
			}
		}
		for _, x := range [][3]string{
			{"checks", strings.Join(checks, " "), tc.checks},
			{"run", p.Command(), tc.run},
			{"undo", shell(p.System, p.Undo), tc.undo},
			{"force", shell(p.System, p.Force), tc.force},
		} {
			if x[1] != x[2] {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", tc.name, x[0], x[1], x[2])
			}
		}
		// It survives the state file.
		b, err := json.Marshal(p)
		var again Plan
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		again.user, again.secret = p.user, p.secret
		if strings.Contains(string(b), "hush") {
			t.Errorf("%s: the state file has the password: %s", tc.name, b)
		}
		if err != nil || !reflect.DeepEqual(&again, p) && len(p.Options) > 0 && len(p.Checks) > 0 {
			t.Errorf("%s: %v: %+v\nis not %+v", tc.name, err, again, p)
		}
		var out bytes.Buffer
		if err := p.Print(&out); err != nil || !strings.Contains(out.String(), tc.run) || !strings.Contains(out.String(), "undo") || strings.Contains(out.String(), "hush") {
			t.Errorf("%s: prints %v\n%s", tc.name, err, out.String())
		}
	}
}

// The password goes to a program's standard input, in that program's quotes.
func TestScripts(t *testing.T) {
	for _, tc := range []struct{ system, dir, program, want string }{
		{"darwin", "/it's", "expect -", `spawn mount_smbfs "//me@127.0.0.1:1445/ramdisk" "/it's"
expect {
	"assword" { send -- "a'b\"c\$d\[e]\\` + "\r" + `"; expect eof;`},
		{"windows", "R:", "powershell -NoProfile -NonInteractive -Command -",
			`try { New-SmbMapping -LocalPath 'R:' -RemotePath '\\127.0.0.1\ramdisk' -UserName 'me' -Password 'a''b"c$d[e]\' -TcpPort 1445 | Out-Null }`},
	} {
		p, err := New(Want{System: tc.system, Via: SMB, Dir: tc.dir, Export: "ramdisk", Host: "127.0.0.1", Port: 1445, User: "me", Secret: `a'b"c$d[e]\`})
		if err != nil {
			t.Fatal(err)
		}
		program, in := p.script()
		if strings.Join(program, " ") != tc.program || !strings.Contains(in, tc.want) {
			t.Errorf("%s: %v\n%s\nwant %s\n%s", tc.system, program, in, tc.program, tc.want)
		}
	}
}

func TestWays(t *testing.T) {
	for system, want := range map[string]string{"linux": "fuse nfs", "windows": "smb nfs", "darwin": "nfs smb"} {
		if got := strings.Join(Ways(system), " "); got != want {
			t.Errorf("%s: %s, want %s", system, got, want)
		}
	}
}

// A check that cannot hold says what to do.
func TestCheck(t *testing.T) {
	p := &Plan{Via: NFS, Checks: []Check{{NeedProgram, "no-such-program", "install it"}}}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "no-such-program") || !strings.Contains(err.Error(), "install it") {
		t.Errorf("got %v", err)
	}
}
