package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// mayImport says what each package of the module may import besides the
// standard library. A name that ends in "/..." stands for what is below it too.
var mayImport = map[string][]string{
	// The store knows nothing of protocols.
	"memstore":                   {"golang.org/x/sys/...", "memstore/arena", "memstore/internal/..."},
	"memstore/arena":             {"golang.org/x/sys/..."},
	"memstore/internal/extent":   {},
	"memstore/internal/interval": {},
	"memstore/billyfs":           {"memstore", "golang.org/x/sys/...", "github.com/go-git/go-billy/v5/..."},

	"export":            {"memstore", "golang.org/x/sys/..."},
	"export/exporttest": {"memstore/...", "export/..."},

	"export/budget": {"golang.org/x/sys/..."},
	"export/link":   {},

	// Codecs never see files.
	"export/nfs/xdr":    {},
	"export/nfs/rpc":    {"export/nfs/xdr"},
	"export/nfs/nfs3":   {"export/nfs/xdr"},
	"export/nfs/nfs4":   {"export/nfs/xdr"},
	"export/nfs/client": {"export/nfs/xdr", "export/nfs/rpc", "export/nfs/nfs3", "export/nfs/nfs4"},
	"export/nfs": {"memstore", "export", "export/budget", "export/link", "export/nfs/xdr", "export/nfs/rpc", "export/nfs/nfs3", "export/nfs/nfs4",
		"golang.org/x/sys/..."},
	"export/nfs/gonfs": {"memstore", "memstore/billyfs", "export", "export/nfs/xdr", "export/nfs/rpc", "export/nfs/nfs3",
		"github.com/willscott/go-nfs/...", "github.com/go-git/go-billy/v5/..."},
	"export/nfs/bench": {"memstore/...", "export/...", "golang.org/x/sys/...", "github.com/..."},

	"export/smb/wire":           {},
	"export/smb/ntlm":           {"golang.org/x/crypto/..."},
	"export/smb":                {"memstore", "export", "export/budget", "export/link", "export/smb/wire", "export/smb/ntlm", "golang.org/x/sys/..."},
	"export/smb/client":         {"export/smb/wire", "export/smb/ntlm"},
	"export/smb/smbtest":        {"export/smb/wire", "export/smb/ntlm"},
	"export/smb/internal/samba": {},
	"export/smb/bench":          {"export/smb/internal/samba", "export/smb/wire", "export/smb/client", "golang.org/x/sys/...", "github.com/hirochachacha/go-smb2"},

	// Plans know nothing of the store.
	"loopback":              {"golang.org/x/sys/..."},
	"loopback/fusefs":       {"memstore", "golang.org/x/sys/...", "github.com/hanwen/go-fuse/v2/..."},
	"loopback/fusefs/bench": {"golang.org/x/sys/...", "github.com/hanwen/go-fuse/v2/..."},
	"loopback/...":          {"memstore/...", "export/...", "golang.org/x/sys/..."},

	"cmd/ramserver": {"memstore", "memstore/arena", "export", "export/nfs", "export/nfs/gonfs", "export/smb", "export/smb/client", "export/smb/ntlm", "loopback", "loopback/fusefs",
		"golang.org/x/sys/...", "golang.org/x/term",
		"github.com/spf13/...", "github.com/prometheus/client_golang/...",
		"github.com/pelletier/go-toml/v2", "go.yaml.in/yaml/v3"},
}

const module = "ramserver/"

func TestImports(t *testing.T) {
	for _, system := range []string{"linux", "windows", "darwin"} {
		cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports", "./...")
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(out)
		for {
			var p struct {
				ImportPath string
				Imports    []string
			}
			err := dec.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(p.ImportPath, module)
			allowed, ok := rule(name)
			if !ok {
				t.Errorf("%s is not in the table of imports", name)
				continue
			}
			for _, imp := range p.Imports {
				if !strings.Contains(imp, ".") && !strings.HasPrefix(imp, module) {
					continue // the standard library
				}
				if imp = strings.TrimPrefix(imp, module); !matches(allowed, imp) {
					t.Errorf("on %s %s imports %s", system, name, imp)
				}
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func rule(name string) ([]string, bool) {
	if r, ok := mayImport[name]; ok {
		return r, true
	}
	for pattern, r := range mayImport {
		if matches([]string{pattern}, name) {
			return r, true
		}
	}
	return nil, false
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		prefix, below := strings.CutSuffix(p, "/...")
		if name == prefix || below && strings.HasPrefix(name, prefix+"/") {
			return true
		}
	}
	return false
}
