package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramserver/export"
	"ramserver/export/nfs"
	"ramserver/loopback"
)

// plan is the settings, checked and in units. Making one touches nothing.
type plan struct {
	stores       []storePlan // those that exports use; the main one first, if used
	exports      []exportPlan
	listen       []netip.Addr
	network      bool // others than a mount of this server's are expected
	optional6    bool // ::1 is among listen by default only
	noNFS        bool // only a mount of this server's, by SMB
	nfsPort      uint16
	portmap      string
	engine       string
	maxIO        int
	clientExpiry time.Duration
	delegations  bool
	smb          *smbPlan       // nil: not served
	metrics      netip.AddrPort // not valid: none
	logLevel     slog.Level
	trace        bool
	logJSON      bool
	warnings     []string
	mount        *loopback.Plan // on this machine; nil: none
	passthrough  string         // of a mount by FUSE
}

type storePlan struct {
	name   string // "main", or that of its export with a slash before
	size   int64
	inodes int64
	owner  export.IDs
	mode   uint16
}

type exportPlan struct {
	name     string
	store    int    // in plan.stores
	path     string // folder of the store, "" for its root
	owner    export.IDs
	mode     uint16
	readOnly bool
	allow    []netip.Prefix
	squash   export.Squash
	anon     export.IDs
	insecure bool
}

const (
	mainStore   = "main"
	defaultName = "ramdisk"
	levelTrace  = slog.LevelDebug - 4
)

// makePlan checks the settings against each other and against the memory.
func makePlan(s *settings, mem physical) (*plan, error) {
	p := &plan{network: true, nfsPort: s.nfsPort, portmap: s.portmap, engine: s.engine}
	if err := p.checkServer(s); err != nil {
		return nil, err
	}
	if err := p.checkExports(s, mem); err != nil {
		return nil, err
	}
	if err := p.checkNetwork(s); err != nil {
		return nil, err
	}
	if err := p.checkMemory(mem); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *plan) checkServer(s *settings) error {
	if err := oneOf("--portmap", s.portmap, "auto", "on", "off"); err != nil {
		return err
	}
	if err := oneOf("--nfs-engine", s.engine, "native", "go-nfs"); err != nil {
		return err
	}
	if err := oneOf("--log-format", s.logFormat, "text", "json"); err != nil {
		return err
	}
	p.logJSON = s.logFormat == "json"
	if err := oneOf("--log-level", s.logLevel, "trace", "debug", "info", "warn", "error"); err != nil {
		return err
	}
	if p.trace = s.logLevel == "trace"; p.trace {
		p.logLevel = levelTrace
	} else if err := p.logLevel.UnmarshalText([]byte(s.logLevel)); err != nil {
		return err
	}
	n, err := parseSize(s.maxIO, 0)
	if err != nil || n < nfs.MinMaxIO || n > nfs.MaxMaxIO || n%nfs.MinMaxIO != 0 {
		return fmt.Errorf("--max-io %q: want a multiple of 64K up to 4M", s.maxIO)
	}
	p.maxIO = int(n)
	if s.clientExpiry < time.Second || s.clientExpiry > time.Hour {
		return fmt.Errorf("--client-expiry %v: want 1s to 1h", s.clientExpiry)
	}
	p.clientExpiry = s.clientExpiry
	if err := oneOf("--delegations", s.delegations, "on", "off"); err != nil {
		return err
	}
	p.delegations = s.delegations == "on"
	return p.checkSMB(s)
}

func oneOf(flag, value string, want ...string) error {
	for _, w := range want {
		if value == w {
			return nil
		}
	}
	last := len(want) - 1
	return fmt.Errorf("%s %q: want %s or %s", flag, value, strings.Join(want[:last], ", "), want[last])
}

// checkExports makes the stores and exports.
func (p *plan) checkExports(s *settings, mem physical) error {
	base := exportPlan{insecure: s.insecurePorts}
	var err error
	if base.squash, err = export.ParseSquash(s.squash); err != nil {
		return fmt.Errorf("--squash: %w", err)
	}
	if base.anon, err = export.ParseIDs(s.anon); err != nil {
		return fmt.Errorf("--anon: %w", err)
	}
	if base.mode, err = parseMode(s.mode); err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	base.owner = export.IDs{UID: uint32(max(0, os.Getuid())), GID: uint32(max(0, os.Getgid()))} // -1 on Windows
	if s.owner != "" {
		if base.owner, err = export.ParseIDs(s.owner); err != nil {
			return fmt.Errorf("--owner: %w", err)
		}
	}
	for _, n := range s.allow {
		network, err := export.ParseNetwork(n)
		if err != nil {
			return fmt.Errorf("--allow: %w", err)
		}
		base.allow = append(base.allow, network)
	}
	if s.inodes < 0 || s.inodes > maxInodes {
		return fmt.Errorf("--inodes %d: %w", s.inodes, errInodes)
	}

	specs := s.exports
	if len(specs) == 0 {
		specs = []string{defaultName}
	}
	names := make(map[string]bool)
	used := false // the main store
	var own int64 // bytes of other stores
	stores := []storePlan{{name: mainStore, inodes: s.inodes, owner: base.owner, mode: base.mode}}
	for _, spec := range specs {
		e, st, err := parseExport(spec, base, mem.bytes)
		if err != nil {
			return fmt.Errorf("--export %s: %w", spec, err)
		}
		if names[e.name] {
			return fmt.Errorf("--export %s: there are two of that name", spec)
		}
		names[e.name] = true
		if st.size != 0 {
			e.store = len(stores)
			own += st.size
			stores = append(stores, st)
		} else {
			used = true
		}
		p.exports = append(p.exports, e)
	}
	switch {
	case !used && (s.size != "" || s.inodes != 0):
		return fmt.Errorf("--size and --inodes: every export has a store of its own, give it size= and inodes=")
	case !used:
		stores = stores[1:]
		for i := range p.exports {
			p.exports[i].store--
		}
	case s.size != "":
		if stores[0].size, err = parseSize(s.size, mem.bytes); err != nil {
			return fmt.Errorf("--size: %w", err)
		}
	default:
		if stores[0].size = mem.bytes/2 - own; stores[0].size < minStore {
			return fmt.Errorf("the exports' own stores take half of the memory: give --size for the main one")
		}
	}
	p.stores = stores
	return nil
}

var errInodes = fmt.Errorf("want a number from 1 to %d", uint32(maxInodes))

// minStore is the smallest store, in bytes, and maxInodes the most inodes of one, as
// memstore wants them.
const (
	minStore  = 64 << 10
	maxInodes = math.MaxUint32
)

// parseExport reads NAME[,key=value...]. What it leaves out is as in base.
// size is 0 in the store of an export that is of the main store.
func parseExport(spec string, base exportPlan, total int64) (exportPlan, storePlan, error) {
	var st storePlan
	e := base
	name, rest, more := strings.Cut(spec, ",")
	if err := export.CheckName(name); err != nil {
		return e, st, err
	}
	e.name = name
	st.name = "/" + name
	var folder bool
	given := make(map[string]bool)
	for more {
		var option string
		option, rest, more = strings.Cut(rest, ",")
		key, value, hasValue := strings.Cut(option, "=")
		err := func() (err error) {
			if given[key] && key != "allow" {
				return fmt.Errorf("is given twice")
			}
			switch key {
			case "path":
				e.path, err = cleanPath(value)
			case "size":
				st.size, err = parseSize(value, total)
			case "inodes":
				if st.inodes, err = strconv.ParseInt(value, 10, 64); err != nil || st.inodes <= 0 || st.inodes > maxInodes {
					err = fmt.Errorf("%q: %w", value, errInodes)
				}
			case "ro":
				e.readOnly, err = parseBool(value, hasValue)
			case "insecure-ports":
				e.insecure, err = parseBool(value, hasValue)
			case "allow":
				if !given[key] {
					e.allow = nil
				}
				var network netip.Prefix
				network, err = export.ParseNetwork(value)
				e.allow = append(e.allow, network)
			case "squash":
				e.squash, err = export.ParseSquash(value)
			case "anon":
				e.anon, err = export.ParseIDs(value)
			case "owner":
				folder = true
				e.owner, err = export.ParseIDs(value)
			case "mode":
				folder = true
				e.mode, err = parseMode(value)
			default:
				err = fmt.Errorf("unknown; want path, size, inodes, ro, allow, squash, anon, owner, mode or insecure-ports")
			}
			return err
		}()
		if err != nil {
			return e, st, fmt.Errorf("%s: %w", cmp.Or(key, `""`), err)
		}
		given[key] = true
	}
	switch {
	case st.size != 0 && e.path != "":
		return e, st, fmt.Errorf("path= is of the main store and size= makes another: give one of them")
	case st.size == 0 && st.inodes != 0:
		return e, st, fmt.Errorf("inodes= needs size=")
	case st.size == 0 && e.path == "" && folder:
		return e, st, fmt.Errorf("owner= and mode= need path= or size=; the main store's root has --owner and --mode")
	}
	st.owner, st.mode = e.owner, e.mode
	return e, st, nil
}

func parseBool(value string, given bool) (bool, error) {
	if !given || value == "true" {
		return true, nil
	}
	if value == "false" {
		return false, nil
	}
	return false, fmt.Errorf("%q: want true or false", value)
}

// parseMode reads permissions in octal, without the file type.
func parseMode(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 8, 16)
	if err != nil || n == 0 || n > 0o7777 {
		return 0, fmt.Errorf("%q: want octal permissions, as 1777 or 0755", s)
	}
	return uint16(n), nil
}

// cleanPath returns a folder's path without slashes around it and between
// two of them, "" for the root.
func cleanPath(s string) (string, error) {
	if !strings.HasPrefix(s, "/") {
		return "", fmt.Errorf("%q: want a folder of the store, as /projects", s)
	}
	var parts []string
	for part := range strings.SplitSeq(s, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..", len(part) > 255, strings.ContainsRune(part, 0):
			return "", fmt.Errorf("%q: want a folder of the store, as /projects", s)
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), nil
}

func (p *plan) checkNetwork(s *settings) error {
	seen := make(map[netip.Addr]bool)
	for _, l := range s.listen {
		a, err := netip.ParseAddr(l)
		if err != nil || a.Is4In6() {
			return fmt.Errorf("--listen %q: want an address, as 192.168.1.5, :: or 0.0.0.0", l)
		}
		if seen[a] {
			return fmt.Errorf("--listen %s: is given twice", l)
		}
		seen[a] = true
		p.listen = append(p.listen, a)
	}
	if len(p.listen) == 0 {
		return fmt.Errorf("--listen: want at least one address")
	}
	var allowed []netip.Prefix
	for _, e := range p.exports {
		allowed = append(allowed, e.allow...)
	}
	reached := false // by other machines
	for _, a := range p.listen {
		all := netip.IPv6Unspecified()
		if a.Is4() {
			all = netip.IPv4Unspecified()
		}
		if a != all && seen[all] {
			return fmt.Errorf("--listen %s: %s is that address too; give one of them", a, all)
		}
		reached = reached || !a.IsLoopback()
		if !a.IsLoopback() && len(allowed) == 0 {
			return fmt.Errorf("--listen %s: is open to other machines; say which with --allow, as --allow 192.168.1.0/24", a)
		}
	}
	if !reached && len(allowed) > 0 {
		p.warnings = append(p.warnings, fmt.Sprintf("--allow %s: no other machine can connect before --listen names an address that it reaches", allowed[0]))
	}
	if i := slices.IndexFunc(allowed, func(n netip.Prefix) bool { return n.Bits() == 0 }); i >= 0 && reached {
		p.warnings = append(p.warnings, fmt.Sprintf("--allow %s: every machine that reaches this one may connect, and NFS believes what it claims", allowed[i]))
	}
	if s.metrics != "" {
		ap, err := netip.ParseAddrPort(s.metrics)
		if err != nil || !ap.Addr().IsLoopback() {
			return fmt.Errorf("--metrics %q: want a loopback address and a port, as 127.0.0.1:9200", s.metrics)
		}
		p.metrics = ap
	}
	return nil
}

// checkMemory compares the sum of the stores with the memory.
func (p *plan) checkMemory(mem physical) error {
	limit := mem.bytes/10*maxTenths + mem.bytes%10*maxTenths/10
	left := limit
	for _, st := range p.stores {
		if st.size < minStore {
			return fmt.Errorf("a store of %s: at least %s are needed", formatSize(st.size), formatSize(minStore))
		}
		if left -= st.size; left < 0 {
			return fmt.Errorf("stores of %s: more than %d0 %% of %s of %s", p.sizes(), maxTenths, mem.what, formatSize(mem.bytes))
		}
	}
	if sum := limit - left; sum > mem.bytes/2 {
		p.warnings = append(p.warnings, fmt.Sprintf("the stores may grow to %s, more than half of %s of %s", formatSize(sum), mem.what, formatSize(mem.bytes)))
	}
	return nil
}

func (p *plan) sizes() string {
	var s []string
	for _, st := range p.stores {
		s = append(s, formatSize(st.size))
	}
	return strings.Join(s, " and ")
}
