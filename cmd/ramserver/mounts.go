package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"ramserver/loopback"
)

// mountCommands says how a client of each system mounts the default export.
// bound says that port 111 tells clients where NFS is.
func mountCommands(listen []netip.AddrPort, name string, bound bool) string {
	host, port := mountHost(listen)
	var b strings.Builder
	for _, c := range []struct{ title, system, as, dir string }{
		{"Linux:  ", "linux", "sudo ", "/mnt"},
		{"macOS:  ", "darwin", "sudo ", "/path/to/folder"},
		{"Windows:", "windows", "", "R:"},
	} {
		p, err := loopback.New(loopback.Want{
			System: c.system, Via: loopback.NFS, Dir: c.dir, Export: name, Host: host, Port: port, Bound: bound, Root: true,
		})
		if err != nil {
			fmt.Fprintf(&b, "%s  %v\n", c.title, err)
		} else {
			fmt.Fprintf(&b, "%s  %s%s\n", c.title, c.as, p.Command())
		}
	}
	return b.String()
}

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
