package loopback

import (
	"errors"
	"fmt"
	"strings"
)

// tcpPortBuild is Windows 11 24H2, the first whose SMB client can be told a
// port (Microsoft, "Configure alternative SMB ports").
const tcpPortBuild = "26100"

func (p *Plan) windows(w *Want) error {
	if len(w.Dir) != 2 || w.Dir[1] != ':' || !strings.Contains("ABCDEFGHIJKLMNOPQRSTUVWXYZ", strings.ToUpper(w.Dir[:1])) {
		return fmt.Errorf("%q: want a drive, as R: is one", w.Dir)
	}
	p.Source = `\\` + uncHost(w.Host) + `\` + w.Export
	if w.Via == SMB {
		p.windowsSMB(w)
		return nil
	}
	// The client has no option for a port, and resolves \\host by IPv4.
	if w.Port != 2049 || !w.Bound || strings.Contains(w.Host, ":") {
		return errors.New("not with these settings: its client needs IPv4, NFS port 2049 and a portmapper on port 111")
	}
	p.Checks = []Check{{NeedProgram, "nfsadmin", "turn on the Windows feature Client for NFS: Enable-WindowsOptionalFeature -Online -All -FeatureName ClientForNFS-Infrastructure"}}
	p.Options = []string{"anon", "nolock", "mtype=hard"}
	p.Run = []string{"mount", "-o", strings.Join(p.Options, ","), p.Source, w.Dir}
	p.Undo, p.Force = []string{"umount", w.Dir}, []string{"umount", "-f", w.Dir}
	return nil
}

// uncHost is a host in a path of Windows, where a colon cannot be: an address of IPv6
// has a name instead, which Windows knows by itself.
func uncHost(host string) string {
	if !strings.Contains(host, ":") {
		return host
	}
	return strings.NewReplacer(":", "-", "%", "s").Replace(host) + ".ipv6-literal.net"
}

func (p *Plan) windowsSMB(w *Want) {
	p.Run = []string{"net", "use", w.Dir, p.Source}
	if w.User != "" {
		p.Run = append(p.Run, "/user:"+w.User) // it asks for the password
	}
	if w.Port != 445 {
		p.Checks = []Check{{NeedBuild, tcpPortBuild, "before Windows 11 24H2 the client knows port 445 only, which Windows' own file server has; " +
			"give that up (sc config LanmanServer start= disabled, restart) and serve SMB at 445, or use the NFS client"}}
		p.Options = []string{fmt.Sprintf("/TCPPORT:%d", w.Port)}
		p.Run = append(p.Run, p.Options...)
	}
	p.Undo = []string{"net", "use", w.Dir, "/delete"}
	p.Force = append(p.Undo[:3:3], "/delete", "/y")
}

// powerShellScript maps the drive with a password. It goes to PowerShell by standard
// input, since arguments can be seen by everybody.
func (p *Plan) powerShellScript() string {
	word := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	cmd := "New-SmbMapping -LocalPath " + word(p.Dir) + " -RemotePath " + word(p.Source) + " -UserName " + word(p.user) + " -Password " + word(p.secret)
	for _, o := range p.Options {
		if port, ok := strings.CutPrefix(o, "/TCPPORT:"); ok {
			cmd += " -TcpPort " + port
		}
	}
	return "$ErrorActionPreference = 'Stop'\ntry { " + cmd + " | Out-Null } catch { Write-Output $_.Exception.Message; exit 1 }\n"
}
