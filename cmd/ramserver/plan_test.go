package main

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestPlan(t *testing.T) {
	mem := physical{10 << 30, "this machine's memory"}
	const G, M = 1 << 30, 1 << 20
	type want struct {
		sizes   []int64 // of stores
		stores  []int   // of exports
		warning bool
		err     string
	}
	for _, tc := range []struct {
		args string
		want want
	}{
		{"", want{sizes: []int64{5 * G}, stores: []int{0}}},
		{"--size 50%", want{sizes: []int64{5 * G}, stores: []int{0}}},
		{"--size 1000M", want{sizes: []int64{1000 * M}, stores: []int{0}}},
		{"--size 6G", want{sizes: []int64{6 * G}, stores: []int{0}, warning: true}},
		{"--size 90%", want{sizes: []int64{9 * G}, stores: []int{0}, warning: true}},
		{"--size 9G", want{sizes: []int64{9 * G}, stores: []int{0}, warning: true}},
		{"--size 9300M", want{err: "stores of 9.08 GiB: more than 90 % of this machine's memory of 10.0 GiB"}},
		{"--export a,path=/a --export b", want{sizes: []int64{5 * G}, stores: []int{0, 0}}},
		{"--export a,size=2G", want{sizes: []int64{2 * G}, stores: []int{0}}},
		{"--export a,size=2G --export b,size=10%", want{sizes: []int64{2 * G, 1 * G}, stores: []int{0, 1}}},
		{"--export a,size=2G --export b", want{sizes: []int64{3 * G, 2 * G}, stores: []int{1, 0}}},
		{"--size 4G --export a,size=4G --export b", want{sizes: []int64{4 * G, 4 * G}, stores: []int{1, 0}, warning: true}},
		{"--size 4G --export a,size=6G --export b", want{err: "stores of 4.00 GiB and 6.00 GiB: more than 90 %"}},
		{"--size 8E --export a", want{err: `--size: "8E": want a whole number above 0`}},
		{"--export a,size=6G --export b", want{err: "give --size"}},
		{"--size 1G --export a,size=1G", want{err: "every export has a store of its own"}},
		{"--size 1G --export a,size=8191T --export b,size=8191T --export c", want{err: "more than 90 %"}},

		{"--export a --export a", want{err: "--export a: there are two of that name"}},
		{"--export a/b", want{err: `export name "a/b"`}},
		{"--export a,path=b", want{err: `path: "b": want a folder of the store`}},
		{"--export a,path=/../b", want{err: "want a folder of the store"}},
		{"--export a,path=/b,size=1G", want{err: "give one of them"}},
		{"--export a,inodes=5", want{err: "inodes= needs size="}},
		{"--export a,inodes=-5,size=1G", want{err: `inodes: "-5": want a number from 1 to 4294967295`}},
		{"--export a,mode=700", want{err: "owner= and mode= need path= or size="}},
		{"--export a,path=/b,mode=999", want{err: `mode: "999": want octal`}},
		{"--export a,path=/b,owner=root", want{err: `ids "root": want uid:gid`}},
		{"--export a,ro=maybe", want{err: `ro: "maybe": want true or false`}},
		{"--export a,allow=10.0.0.0", want{sizes: []int64{5 * G}, stores: []int{0}, warning: true}}, // nobody reaches it
		{"--export a,allow=ten", want{err: `allow: network "ten": want a CIDR`}},
		{"--export a,squash=some", want{err: `squash "some": want root`}},
		{"--export a,", want{err: `"": unknown; want path`}},
		{"--export a,size=1G,ro,size=2G", want{err: "size: is given twice"}},

		{"--listen 10.0.0.1", want{err: "--listen 10.0.0.1: is open to other machines"}},
		{"--listen 10.0.0.1 --allow 10.0.0.0/8", want{sizes: []int64{5 * G}, stores: []int{0}}},
		{"--listen 10.0.0.1 --export a,allow=10.0.0.0/8", want{sizes: []int64{5 * G}, stores: []int{0}}},
		{"--listen 10.0.0.1 --allow 10.0.0.0/8 --export a,allow=10.0.0.1/8", want{err: "want 10.0.0.0/8"}},
		{"--allow 10.0.0.0/8", want{sizes: []int64{5 * G}, stores: []int{0}, warning: true}}, // the same
		{"--listen 10.0.0.1 --allow 0.0.0.0/0", want{sizes: []int64{5 * G}, stores: []int{0}, warning: true}},
		{"--listen 0.0.0.0 --listen ::1 --allow 10.0.0.0/8", want{sizes: []int64{5 * G}, stores: []int{0}}},
		{"--listen 127.0.0.1 --listen 0.0.0.0 --allow 10.0.0.0/8", want{err: "--listen 127.0.0.1: 0.0.0.0 is that address too"}},
		{"--listen ::1 --listen ::1", want{err: "--listen ::1: is given twice"}},
		{"--listen ::ffff:10.0.0.1 --allow 10.0.0.0/8", want{err: "want an address"}},
		{"--metrics 0.0.0.0:9200", want{err: `--metrics "0.0.0.0:9200": want a loopback address`}},
		{"--metrics 9200", want{err: "want a loopback address"}},
		{"--squash some", want{err: `--squash: squash "some"`}},
		{"--anon nobody", want{err: `--anon: ids "nobody"`}},
		{"--owner 1", want{err: `--owner: ids "1"`}},
		{"--mode 17777", want{err: `--mode: "17777"`}},
		{"--inodes -1", want{err: "--inodes -1: want a number from 1 to 4294967295"}},
		{"--inodes 4294967296", want{err: "--inodes 4294967296: want a number from 1"}},
		{"--max-io 8M", want{err: `--max-io "8M": want a multiple of 64K up to 4M`}},
		{"--max-io 100K", want{err: `--max-io "100K": want a multiple of 64K up to 4M`}},
		{"--log-level loud", want{err: `--log-level "loud": want trace, debug, info, warn or error`}},
		{"--log-format xml", want{err: `--log-format "xml": want text or json`}},
		{"--nfs-engine fast", want{err: `--nfs-engine "fast": want native or go-nfs`}},
	} {
		s := load(t, strings.Fields(tc.args)...)
		p, err := makePlan(&s, mem)
		if tc.want.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want.err) {
				t.Errorf("%s: got %v, want %q", tc.args, err, tc.want.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.args, err)
			continue
		}
		ok := len(p.stores) == len(tc.want.sizes) && len(p.exports) == len(tc.want.stores) && tc.want.warning == (len(p.warnings) == 1)
		for i := range p.stores {
			ok = ok && p.stores[i].size == tc.want.sizes[i]
		}
		for i := range p.exports {
			ok = ok && p.exports[i].store == tc.want.stores[i]
		}
		if !ok {
			t.Errorf("%s: got %+v, want %+v", tc.args, p, tc.want)
		}
	}
}

func TestExportDefaults(t *testing.T) {
	s := load(t, strings.Fields("--allow 10.0.0.0/8 --squash none --anon 1:2 --insecure-ports --owner 3:4 --mode 700 --export a,path=//x/./y/ --export b,size=1M,allow=10.1.0.0/16,allow=fd00::/8,squash=all,anon=5:6,insecure-ports=false,ro,owner=7:8,mode=0755")...)
	p, err := makePlan(&s, physical{1 << 30, "memory"})
	if err != nil {
		t.Fatal(err)
	}
	a, b := p.exports[0], p.exports[1]
	if a.path != "x/y" || len(a.allow) != 1 || a.squash.String() != "none" || a.anon.String() != "1:2" || !a.insecure || a.readOnly || a.owner.String() != "3:4" || a.mode != 0o700 {
		t.Errorf("a: %+v", a)
	}
	if b.path != "" || len(b.allow) != 2 || b.squash.String() != "all" || b.anon.String() != "5:6" || b.insecure || !b.readOnly {
		t.Errorf("b: %+v", b)
	}
	if st := p.stores[1]; st.owner.String() != "7:8" || st.mode != 0o755 || st.size != 1<<20 {
		t.Errorf("b's store: %+v", st)
	}
	if st := p.stores[0]; st.owner.String() != "3:4" || st.mode != 0o700 {
		t.Errorf("main store: %+v", st)
	}
}

func TestSizes(t *testing.T) {
	const total = 1001
	for in, want := range map[string]int64{
		"1": 1, "4096": 4096, "1K": 1 << 10, "512M": 512 << 20, "4G": 4 << 30, "4GiB": 4 << 30, "2T": 2 << 40,
		"50%": 500, "100%": 1001, "1%": 10, "9223372036854775807": math.MaxInt64, "8388607T": 8388607 << 40,
		"": -1, "0": -1, "-1": -1, "0G": -1, "4g": 4 << 30, "4kiB": 4 << 10, "4GB": -1, "1.5G": -1, "G": -1, "0%": -1, "101%": -1, "%": -1, "5K%": -1,
		"8388608T": -1, "9223372036854775808": -1, " 1": -1, "1 G": -1, "0x10": -1, "1_0": -1,
	} {
		got, err := parseSize(in, total)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("parseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1<<20 - 1: "1.00 MiB", 10 << 20: "10.0 MiB", 1<<30 - 256: "1.00 GiB",
		100 << 30: "100 GiB", 5000 << 40: "5000 TiB", 1000 << 10: "1000 KiB",
	} {
		if got := formatSize(in); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", in, got, want)
		}
	}
}

func FuzzExport(f *testing.F) {
	for _, s := range []string{"a", "a,ro", "a,path=/b/../c", "a,size=1G,inodes=5,owner=1:2,mode=1777", "a,allow=10.0.0.0/8,squash=all,anon=1:2,insecure-ports=false", "a,=,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		e, st, err := parseExport(spec, exportPlan{}, 1<<40)
		if err != nil {
			return
		}
		if st.size < 0 || st.inodes < 0 || st.size != 0 && e.path != "" || e.mode > 0o7777 {
			t.Errorf("%q: %+v, %+v", spec, e, st)
		}
		for part := range strings.SplitSeq(e.path, "/") {
			if part == ".." || part == "." || part == "" && e.path != "" {
				t.Errorf("%q: path %q", spec, e.path)
			}
		}
	})
}

func TestMountCommands(t *testing.T) {
	for _, tc := range []struct {
		listen         string
		several, bound bool
		want           []string
	}{
		{"127.0.0.1:2049 [::1]:2049", false, true, []string{
			"sudo mount -t nfs -o vers=4.2 127.0.0.1:/ /mnt",
			"sudo mount -t nfs -o vers=3,proto=tcp,nolock 127.0.0.1:/ramdisk /mnt",
			"sudo mount_nfs -o vers=3,tcp,locallocks,resvport 127.0.0.1:/ramdisk /path/to/folder",
			`mount -o anon,nolock,mtype=hard \\127.0.0.1\ramdisk R:`,
		}},
		{"127.0.0.1:2049", true, false, []string{
			"sudo mount -t nfs -o vers=4.2 127.0.0.1:/ramdisk /mnt",
			"sudo mount -t nfs -o vers=3,proto=tcp,nolock,port=2049,mountport=2049,mountproto=tcp 127.0.0.1:/ramdisk /mnt",
			"sudo mount_nfs -o vers=3,tcp,locallocks,resvport,port=2049,mountport=2049 127.0.0.1:/ramdisk /path/to/folder",
			"Windows:  not with these settings",
		}},
		{"127.0.0.1:12049", false, true, []string{"vers=4.2,port=12049 127.0.0.1:/ ", "port=12049,mountport=12049", "Windows:  not with"}},
		{"[::1]:2049", false, true, []string{"'[::1]:/' /mnt", "'[::1]:/ramdisk'", "Windows:  not with"}},
		{"127.0.0.1:2049 10.0.0.5:2049 [fd00::1]:2049", false, true, []string{" 10.0.0.5:/ramdisk"}},
	} {
		var listen []netip.AddrPort
		for l := range strings.FieldsSeq(tc.listen) {
			listen = append(listen, netip.MustParseAddrPort(l))
		}
		p := &plan{engine: "native", exports: []exportPlan{{name: "ramdisk"}}}
		if tc.several {
			p.exports = append(p.exports, exportPlan{name: "other"})
		}
		got := p.mountCommands(listen, tc.bound)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", tc.listen, want, got)
			}
		}
	}
}

// The README's examples are valid, and it has every flag.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	for _, kind := range []string{"yaml", "toml"} {
		_, rest, ok := strings.Cut(readme, "```"+kind+"\n")
		example, _, ok2 := strings.Cut(rest, "```")
		if !ok || !ok2 {
			t.Fatalf("the README has no example in %s", kind)
		}
		path := filepath.Join(t.TempDir(), "example."+kind)
		if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
			t.Fatal(err)
		}
		s := load(t, "--config", path)
		p, err := makePlan(&s, physical{16 << 30, "memory"})
		if err != nil || len(p.exports) != 3 || len(p.stores) != 2 || len(p.listen) != 2 {
			t.Errorf("the example in %s: %+v, %v", kind, p, err)
		}
	}
	check := func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden && !strings.Contains(readme, "| `--"+f.Name+"` |") {
			t.Errorf("the README's table has no --%s", f.Name)
		}
	}
	for _, name := range []string{"serve", "mount", "umount"} {
		cmd, _, err := newRoot(nil).Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Flags().VisitAll(check)
		cmd.InheritedFlags().VisitAll(check)
	}
}
