package loopback

import (
	"fmt"
	"net/netip"
	"strings"
)

const fuseType = "fuse.ramserver"

func (p *Plan) linux(w *Want) {
	p.Undo, p.Force = []string{"umount", w.Dir}, []string{"umount", "-l", w.Dir}
	switch w.Via {
	case FUSE:
		p.linuxFUSE(w)
	case NFS:
		p.linuxNFS(w)
	case SMB:
		p.linuxSMB(w)
	}
}

func (p *Plan) linuxFUSE(w *Want) {
	p.Type, p.Source = fuseType, "ramserver"
	if w.Source != "" && !strings.ContainsAny(w.Source, `,\`) { // which fusermount3 would take apart
		p.Source = w.Source
	}
	p.Checks = []Check{
		{NeedFilesystem, "fuse", "modprobe fuse; in a container the host has to"},
		{NeedDevice, "/dev/fuse", "modprobe fuse, or use sudo if only root may open it; give a container the device (docker run --device /dev/fuse --cap-add SYS_ADMIN)"},
	}
	p.Options = []string{"nosuid", "nodev", "default_permissions"}
	if w.Root {
		p.Options = append(p.Options, "allow_other")
		return
	}
	p.Checks = append(p.Checks, Check{NeedProgram, "fusermount3", "install fuse3, or mount as root"})
	p.Undo, p.Force = []string{"fusermount3", "-u", w.Dir}, []string{"fusermount3", "-u", "-z", w.Dir}
}

// linuxNFS plans a mount of nfs(5). With local options it is mount(2) itself:
// -i calls no mount.nfs, which need not be installed.
func (p *Plan) linuxNFS(w *Want) {
	proto := "tcp"
	if strings.Contains(w.Host, ":") {
		proto = "tcp6"
	}
	p.Source = hostInPath(w.Host) + ":/"
	if w.Plain3 || !w.Alone {
		p.Source += w.Export
	}
	p.Checks = []Check{
		{Kind: NeedRoot, Help: "use sudo"},
		{NeedFilesystem, "nfs", "modprobe nfsv4, or nfsv3; this kernel may have no NFS client at all"},
	}
	if w.Plain3 {
		p.Type = "nfs"
		ports := nfsPorts(w)
		if len(ports) > 0 {
			ports = append(ports, "mountproto="+proto)
		}
		// Version 3 locks are a program of their own, and on the server's machine
		// the kernel's lockd has its place: locks stay in the client's kernel.
		p.Options = join([]string{"vers=3", "proto=" + proto, "nolock"}, ports)
	} else {
		p.Type = "nfs4"
		p.Options = []string{"vers=4.2"}
		if w.Port != 2049 || w.Local {
			p.Options = append(p.Options, fmt.Sprintf("port=%d", w.Port))
		}
	}
	p.Run = []string{"mount", "-t", "nfs"}
	if w.Local {
		if host, err := netip.ParseAddr(w.Host); err == nil {
			p.Server = netip.AddrPortFrom(host, w.Port)
		}
		if !w.Plain3 { // what mount.nfs would add
			p.Options = append(p.Options, "proto="+proto, "clientaddr="+w.Host)
		}
		p.Options = append(p.Options, "hard", fmt.Sprintf("rsize=%d", w.IO), fmt.Sprintf("wsize=%d", w.IO))
		if w.Conns > 1 {
			p.Options = append(p.Options, fmt.Sprintf("nconnect=%d", w.Conns))
		}
		// Asking again is cheap here, so what others change shows in a second.
		p.Options = append(p.Options, "actimeo=1", "addr="+w.Host)
		p.Run = []string{"mount", "-i", "-t", p.Type}
		p.Force = []string{"umount", "-f", "-l", w.Dir}
	}
	p.Run = append(p.Run, "-o", strings.Join(p.Options, ","), p.Source, w.Dir)
	if w.Local && !w.Plain3 {
		// Only a mount tells whether the kernel has version 4 too.
		w := *w
		w.Plain3 = true
		p.Else = &Plan{System: p.System, Via: p.Via, Dir: p.Dir, Flags: p.Flags}
		p.Else.linux(&w)
	}
}

// linuxSMB plans a mount of cifs. With local options it is mount(2) itself: -i
// calls no mount.cifs, which need not be installed.
func (p *Plan) linuxSMB(w *Want) {
	p.Type, p.Source = "cifs", "//"+w.Host+"/"+w.Export
	p.Checks = []Check{
		{Kind: NeedRoot, Help: "use sudo"},
		{NeedFilesystem, "cifs", "modprobe cifs; this kernel may have no SMB client at all"},
	}
	p.Options = []string{fmt.Sprintf("port=%d", w.Port), "vers=3.1.1", "username=" + w.User}
	p.Run = []string{"mount", "-t", "cifs"}
	if w.Local {
		p.Options = append(p.Options, "ip="+w.Host, "hard", "actimeo=1", "serverino")
		p.Run = []string{"mount", "-i", "-t", "cifs"}
	} else {
		p.Checks = append(p.Checks, Check{NeedProgram, "mount.cifs", "install cifs-utils"})
	}
	p.Run = append(p.Run, "-o", strings.Join(p.Options, ","), p.Source, w.Dir)
}
