package loopback

import (
	"fmt"
	"net/url"
	"strings"
)

func (p *Plan) darwin(w *Want) {
	p.Undo, p.Force = []string{"umount", w.Dir}, []string{"umount", "-f", w.Dir}
	if w.Via == SMB {
		// mount_smbfs(8) takes it for a URL.
		p.Source = fmt.Sprintf("//%s@%s:%d/%s", url.PathEscape(w.User), hostInPath(w.Host), w.Port, url.PathEscape(w.Export))
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

// expectScript answers mount_smbfs, which asks for the password on a terminal. It is
// for expect(1), which comes with macOS, on standard input, since arguments can be
// seen by everybody.
func (p *Plan) expectScript() string {
	word := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, `[`, `\[`).Replace(s) + `"`
	}
	return `log_user 0
set timeout 20
spawn mount_smbfs ` + word(p.Source) + " " + word(p.Dir) + `
expect {
	"assword" { send -- ` + word(p.secret+"\r") + `; expect eof; puts $expect_out(buffer) }
	timeout { puts "mount_smbfs does not ask for the password"; exit 1 }
	eof { puts $expect_out(buffer) }
}
exit [lindex [wait] 3]
`
}
