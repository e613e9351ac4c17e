package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"ramserver/loopback"
)

// mountCommands says how a client of each system mounts the first export. bound
// says that port 111 tells clients where NFS is.
func (p *plan) mountCommands(listen []netip.AddrPort, bound bool) string {
	host, port := mountHost(listen)
	var b strings.Builder
	for _, c := range []struct {
		title, system, as, dir string
		plain3                 bool
	}{
		{"Linux:  ", "linux", "sudo ", "/mnt", false},
		{"      or", "linux", "sudo ", "/mnt", true},
		{"macOS:  ", "darwin", "sudo ", "/path/to/folder", true},
		{"Windows:", "windows", "", "R:", true},
	} {
		if p.only3() && !c.plain3 {
			continue
		}
		p, err := loopback.New(loopback.Want{
			System: c.system, Via: loopback.NFS, Dir: c.dir, Export: p.exports[0].name, Host: host, Port: port, Bound: bound, Root: true,
			Plain3: c.plain3, Alone: len(p.exports) == 1,
		})
		if err != nil {
			fmt.Fprintf(&b, "%s  %v\n", c.title, err)
		} else {
			fmt.Fprintf(&b, "%s  %s%s\n", c.title, c.as, p.Command())
		}
	}
	return b.String()
}

// smbCommands says how a client of each system uses an export over SMB.
func smbCommands(listen []netip.AddrPort, name, user string) string {
	host, port := mountHost(listen)
	if user == "" {
		user = "USER"
	}
	var b strings.Builder
	for _, c := range []struct{ title, system, as, dir string }{
		{"Linux:  ", "linux", "sudo ", "/mnt"},
		{"macOS:  ", "darwin", "", "/path/to/folder"},
		{"Windows:", "windows", "", "R:"},
	} {
		p, err := loopback.New(loopback.Want{
			System: c.system, Via: loopback.SMB, Dir: c.dir, Export: name, Host: host, Port: port, User: user,
		})
		if err != nil {
			fmt.Fprintf(&b, "%s  %v\n", c.title, err)
		} else {
			fmt.Fprintf(&b, "%s  %s%s\n", c.title, c.as, p.Command())
		}
	}
	fmt.Fprintf(&b, "Files:    smbclient //%s/%s -p %d -U %s\n", host, name, port, user)
	return b.String()
}

// only3 tells whether the engine has no version of NFS but 3.
func (p *plan) only3() bool { return p.engine != "native" }

// mountHost picks the address that most clients reach: one that other
// machines can use before loopback, IPv4 before IPv6.
func mountHost(listen []netip.AddrPort) (host string, port uint16) {
	best := listen[0]
	rank := func(a netip.Addr) int {
		r := 0
		if !a.IsLoopback() {
			r += 2
		}
		if a.Is4() {
			r++
		}
		return r
	}
	for _, l := range listen {
		if rank(l.Addr()) > rank(best.Addr()) {
			best = l
		}
	}
	if !best.Addr().IsUnspecified() {
		return best.Addr().String(), best.Port()
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name, best.Port()
	}
	return "HOST", best.Port()
}
