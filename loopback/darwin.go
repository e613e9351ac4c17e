package loopback

import (
	"fmt"
	"strings"
)

func (p *Plan) darwin(w *Want) {
	p.Undo, p.Force = []string{"umount", w.Dir}, []string{"umount", "-f", w.Dir}
	if w.Via == SMB {
		p.Source = fmt.Sprintf("//%s@%s:%d/%s", w.User, hostInPath(w.Host), w.Port, w.Export)
		p.Checks = []Check{{NeedProgram, "mount_smbfs", "it comes with macOS"}}
		p.Run = []string{"mount_smbfs", p.Source, w.Dir}
		return
	}
	// mount_nfs(8). locallocks, since locks of version 3 are a program of
	// their own. The server believes who somebody is from a port below 1024,
	// which only root has.
	port := "resvport"
	if !w.Root {
		port = "noresvport"
	}
	p.Source = hostInPath(w.Host) + ":/" + w.Export
	p.Checks = []Check{{NeedProgram, "mount_nfs", "it comes with macOS"}}
	p.Options = join([]string{"vers=3", "tcp", "locallocks", port}, nfsPorts(w))
	if w.Local {
		p.Options = append(p.Options, "hard", fmt.Sprintf("rsize=%d", w.IO), fmt.Sprintf("wsize=%d", w.IO), "actimeo=1")
	}
	p.Run = []string{"mount_nfs", "-o", strings.Join(p.Options, ","), p.Source, w.Dir}
}
