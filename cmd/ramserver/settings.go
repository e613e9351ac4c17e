package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Every setting of serve is a flag; the environment and the file set flags
// that the command line did not: --nfs-port, RAMSERVER_NFS_PORT, nfs-port.

// settings are the flags of serve as they were given.
type settings struct {
	size          string
	inodes        int64
	listen        []string
	nfsPort       uint16
	allow         []string
	exports       []string
	owner         string
	mode          string
	squash        string
	anon          string
	insecurePorts bool
	portmap       string
	engine        string
	maxIO         string
	clientExpiry  time.Duration
	delegations   string
	smb           string
	smbPort       string
	smbUsers      string
	smbUser       string
	smbSigning    string
	smbEncryption string
	metrics       string
	logLevel      string
	logFormat     string
	config        string
}

func (s *settings) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&s.size, "size", "", "`bytes` of the store, as 4G, 512M or 50% (default half of the memory)")
	f.Int64Var(&s.inodes, "inodes", 0, "limit of files and folders (default one for each KiB of the size)")
	f.StringArrayVar(&s.exports, "export", nil, "offer `NAME[,key=value...]`; keys: path=/folder of the store; size= and inodes= of a store of its own; ro; allow= (repeatable), squash=, anon=, insecure-ports instead of the flags; owner=, mode= of its folder (default one export of the whole store, ramdisk)")
	f.StringSliceVar(&s.listen, "listen", []string{"127.0.0.1", "::1"}, "`address` to listen on, repeatable; other than loopback needs --allow")
	f.Uint16Var(&s.nfsPort, "nfs-port", 2049, "`port` of NFS and MOUNT; 0 takes any that is free")
	f.StringSliceVar(&s.allow, "allow", nil, "`network` (CIDR) that may connect, besides this machine, repeatable")
	f.StringVar(&s.owner, "owner", "", "`uid:gid` of the root folder (default the server's user)")
	f.StringVar(&s.mode, "mode", "1777", "octal `permissions` of the root folder")
	f.StringVar(&s.squash, "squash", "default", "who becomes anonymous: root, all, none, or default: root from other machines")
	f.StringVar(&s.anon, "anon", "65534:65534", "`uid:gid` of the anonymous user")
	f.BoolVar(&s.insecurePorts, "insecure-ports", false, "believe AUTH_SYS from source ports above 1023")
	f.StringVar(&s.portmap, "portmap", "auto", "port 111: auto (serve it, or register with who does, or go without), on (fail instead) or off")
	f.StringVar(&s.engine, "nfs-engine", "native", "native, or go-nfs to compare with")
	f.StringVar(&s.maxIO, "max-io", "1M", "largest READ and WRITE in `bytes`, a multiple of 64K up to 4M")
	f.StringVar(&s.delegations, "delegations", "on", "whether NFS version 4.1 and 4.2 clients may keep files to themselves until another wants them: on or off")
	f.DurationVar(&s.clientExpiry, "client-expiry", 90*time.Second, "how long an NFS version 4 client keeps what it holds without a sign of life, 1s to 1h")
	f.StringVar(&s.smb, "smb", "auto", "SMB: on, off, or auto: on if there is a user who could log on")
	f.StringVar(&s.smbPort, "smb-port", "", "`port` of SMB; 0 takes any that is free (default 445, or 1445 if that is not to be had)")
	f.StringVar(&s.smbUsers, "smb-users", "", "`file` of SMB users, see ramserver user (default /etc/ramserver/smb-users for root, in the folder of settings for others)")
	f.StringVar(&s.smbUser, "smb-user", "", "also let a user of this `name` log on over SMB as the server's user, with a new password, which is shown on a terminal or written to a file")
	f.StringVar(&s.smbSigning, "smb-signing", "required", "required, or enabled: for clients that ask for it")
	f.StringVar(&s.smbEncryption, "smb-encryption", "enabled", "required, enabled: for clients that ask for it, or off")
	f.StringVar(&s.metrics, "metrics", "", "serve Prometheus metrics at `address:port`/metrics")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error; trace logs every request")
	f.StringVar(&s.logFormat, "log-format", "text", "text or json")
	f.StringVar(&s.config, "config", "", "read settings from a .yaml or .toml `file`; its keys are the flags' names")
}

// network tells whether the settings ask to be reached by others than a mount
// on this machine.
func network(f *pflag.FlagSet) bool {
	return slices.ContainsFunc([]string{"listen", "nfs-port", "allow", "export", "portmap", "smb", "smb-port", "smb-user"}, f.Changed)
}

// applyEnv sets from the environment what the command line left: all flags of
// serve and mount, of other commands those that name a server. A list is separated by
// white space, and by commas if its parts have none. An empty variable is as none.
func applyEnv(cmd *cobra.Command) error {
	flags := cmd.InheritedFlags()
	if cmd.Name() == "serve" || cmd.Name() == "mount" {
		flags = cmd.Flags()
	}
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "RAMSERVER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v, ok := os.LookupEnv(name)
		if !ok || v == "" || f.Changed || f.Name == "help" || err != nil {
			return
		}
		values := []string{v}
		if f.Value.Type() == "stringSlice" {
			v = strings.ReplaceAll(v, ",", " ")
		}
		if _, list := f.Value.(pflag.SliceValue); list {
			values = strings.Fields(v)
		}
		if e := setFlag(f, values); e != nil {
			err = fmt.Errorf("%s: %w", name, e)
		}
	})
	return err
}

func setFlag(f *pflag.Flag, values []string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		f.Changed = true
		return list.Replace(values)
	}
	if len(values) != 1 {
		return fmt.Errorf("want one value, not a list")
	}
	if err := f.Value.Set(values[0]); err != nil {
		return valueError(f, values[0], err)
	}
	f.Changed = true
	return nil
}

// valueError says what a flag wants instead of a value.
func valueError(f *pflag.Flag, value string, err error) error {
	switch f.Value.Type() {
	case "uint16":
		err = errors.New("want a number from 0 to 65535")
	case "int64":
		err = errors.New("want a whole number")
	case "duration":
		err = errors.New("want a time, as 90s or 2m")
	case "bool":
		err = errors.New("want true or false")
	}
	return fmt.Errorf("%q: %w", value, err)
}

const maxConfig = 1 << 20

// applyFile sets from a file what the command line and the environment left.
// An unknown key is an error.
func applyFile(flags *pflag.FlagSet, path string) error {
	m, err := readFile(path)
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f := flags.Lookup(key)
		if f == nil || key == "config" || key == "help" {
			return fmt.Errorf("config file %s: unknown key %q", path, key)
		}
		var values []string
		list, ok := m[key].([]any)
		if !ok {
			list = []any{m[key]}
		}
		for _, v := range list {
			s, err := fileValue(key, v)
			if err != nil {
				return fmt.Errorf("config file %s: %w", path, err)
			}
			values = append(values, s)
		}
		if f.Changed {
			continue
		}
		if err := setFlag(f, values); err != nil {
			return fmt.Errorf("config file %s: %s: %w", path, key, err)
		}
	}
	return nil
}

func readFile(path string) (map[string]any, error) {
	unmarshal := toml.Unmarshal
	switch filepath.Ext(path) {
	case ".yaml", ".yml":
		unmarshal = yaml.Unmarshal
	case ".toml":
	default:
		return nil, fmt.Errorf("%s: want a name that ends in .yaml, .yml or .toml", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxConfig {
		return nil, fmt.Errorf("%s: is larger than 1 MiB", path)
	}
	var m map[string]any
	if err := unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, fileError(err))
	}
	return m, nil
}

// fileError is what a file's language says of it, in one line with the place.
func fileError(err error) error {
	var intoml *toml.DecodeError
	if errors.As(err, &intoml) {
		line, column := intoml.Position()
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	var inyaml *yaml.TypeError
	if errors.As(err, &inyaml) {
		said := strings.Join(inyaml.Errors, "; ")
		if strings.Contains(said, "into map") {
			said = "want lines such as size: 4G"
		}
		return errors.New("yaml: " + said)
	}
	return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
}

// fileValue turns a value of a file into what the flag would be given. An
// export may be a table: {name: a, size: 1G} is "a,size=1G".
func fileValue(key string, v any) (string, error) {
	if key == "mode" {
		// As a number its base would be lost: TOML's 0o1777 arrives as 1023.
		if _, ok := v.(string); !ok {
			return "", fmt.Errorf(`%s: want it in quotes, as "1777"`, key)
		}
	}
	switch v := v.(type) {
	case string, bool, int, int64, uint64:
		return fmt.Sprint(v), nil
	case map[string]any:
		if key == "export" {
			return exportValue(v)
		}
	}
	if v == nil {
		return "", fmt.Errorf("%s: has no value", key)
	}
	return "", fmt.Errorf("%s: want a string, a whole number, true or false, not %v", key, v)
}

func exportValue(m map[string]any) (string, error) {
	name, ok := m["name"].(string)
	if !ok {
		return "", fmt.Errorf("export: want a name")
	}
	out := []string{name}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key == "name" {
			continue
		}
		list, ok := m[key].([]any)
		if !ok {
			list = []any{m[key]}
		}
		for _, v := range list {
			s, err := fileValue(key, v)
			if err != nil {
				return "", fmt.Errorf("export %s: %w", name, err)
			}
			if strings.Contains(s, ",") {
				return "", fmt.Errorf("export %s: %s: %q has a comma", name, key, s)
			}
			out = append(out, key+"="+s)
		}
	}
	return strings.Join(out, ","), nil
}
