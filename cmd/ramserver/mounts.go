package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"ramserver/loopback"
)

// mountCommands says how a client of each system mounts the first of the
// exports, which are several or one. bound says that port 111 tells clients
// where NFS is.
func mountCommands(listen []netip.AddrPort, name string, several, bound bool) string {
	host, port := mountHost(listen)
	var b strings.Builder
	fmt.Fprintf(&b, "Linux:    sudo mount -t nfs -o %s %s /mnt\n", version4(port), source4(host, name, several))
	for _, c := range []struct{ title, system, as, dir string }{
		{"      or", "linux", "sudo ", "/mnt"},
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

// version4 is the options for NFS version 4, which needs no other port.
func version4(port uint16) string {
	if port == 2049 {
		return "vers=4.2"
	}
	return fmt.Sprintf("vers=4.2,port=%d", port)
}

// source4 is what version 4 mounts: the root is the only export itself, or the
// folder of them all.
func source4(host, name string, several bool) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if several {
		return host + ":/" + name
	}
	return host + ":/"
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
