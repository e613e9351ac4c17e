package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"ramserver/export/nfs"
	"ramserver/loopback"

	"github.com/spf13/cobra"
)

// report is what a server says about itself: sizes in bytes, counters since
// its start.
type report struct {
	Name        string    `json:"name"`
	PID         int       `json:"pid"`
	Version     string    `json:"version"`
	Started     time.Time `json:"started"`
	Now         time.Time `json:"now"`
	Engine      string    `json:"engine"`
	Listen      []string  `json:"listen"` // empty: a mount on this machine only
	Portmap     string    `json:"portmap"`
	Persistence string    `json:"persistence"`

	Mounts  []mountReport  `json:"mounts"` // on this machine, by this server
	Stores  []storeReport  `json:"stores"`
	Exports []exportReport `json:"exports"`
	Clients []clientReport `json:"clients"`

	Clients4 []client4Report `json:"nfs4_clients"`

	Calls       uint64            `json:"calls"`
	Errors      uint64            `json:"errors"`
	Refused     uint64            `json:"refused"`
	Replayed    uint64            `json:"replayed"`
	Panics      uint64            `json:"panics"`
	Connections uint64            `json:"connections"` // ever accepted
	Evicted     uint64            `json:"evicted"`     // connections
	BytesIn     uint64            `json:"bytes_in"`
	BytesOut    uint64            `json:"bytes_out"`
	Procedures  []procedureReport `json:"procedures"` // that were called; go-nfs does not count

	SMB *smbReport `json:"smb,omitempty"` // nil: not served

	// Rates are between two reports; the status command fills them in.
	Rates *rates `json:"rates,omitempty"`
}

type mountReport struct {
	Dir     string   `json:"dir"`
	Via     string   `json:"via"`
	Type    string   `json:"type"`
	Source  string   `json:"source"`
	Options []string `json:"options"`
	Used    []string `json:"used_by"` // processes, as far as they can be seen
}

type storeReport struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"`
	Used       int64  `json:"used"`
	Inodes     int64  `json:"inodes"`
	UsedInodes int64  `json:"used_inodes"`
}

type exportReport struct {
	Name          string   `json:"name"`
	Store         string   `json:"store"`
	Path          string   `json:"path"`
	ReadOnly      bool     `json:"read_only"`
	Allow         []string `json:"allow"`
	Squash        string   `json:"squash"`
	Anon          string   `json:"anon"`
	InsecurePorts bool     `json:"insecure_ports"`
}

// clientReport is one address from which there are connections.
type clientReport struct {
	Addr        netip.Addr `json:"addr"`
	Connections int        `json:"connections"`
	Since       time.Time  `json:"since"` // of the oldest connection
	Calls       uint64     `json:"calls"`
	BytesIn     uint64     `json:"bytes_in"`
	BytesOut    uint64     `json:"bytes_out"`
	Mounts      []string   `json:"mounts"` // as the client said
}

// client4Report is a client of NFS version 4 and what it holds.
type client4Report struct {
	Name        string         `json:"name"` // what it calls itself
	Addr        netip.AddrPort `json:"addr"`
	Minor0      bool           `json:"minor_0"`
	Idle        float64        `json:"idle_seconds"`
	Callable    bool           `json:"callable"` // it has answered callbacks
	Sessions    int            `json:"sessions"`
	Opens       int            `json:"opens"`
	Locks       int            `json:"locks"` // lock owners by file
	Delegations int            `json:"delegations"`
	Revoked     int            `json:"revoked_delegations"`
}

type procedureReport struct {
	Name   string `json:"name"` // as nfs3.GETATTR
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors"`
	Rate   uint64 `json:"per_second,omitempty"` // filled in as rates are
}

// rates are per second.
type rates struct {
	Seconds  float64 `json:"seconds"` // what they were measured over
	Calls    uint64  `json:"calls"`
	BytesIn  uint64  `json:"bytes_in"`
	BytesOut uint64  `json:"bytes_out"`
}

// report looks at the running server.
func (r *running) report() *report {
	out := &report{
		Name: r.self.Name, PID: r.self.PID, Version: r.self.Version, Started: r.started, Now: time.Now(),
		Engine: r.plan.engine, Portmap: r.portmap.String(), Persistence: "none: the store is empty after a restart",
		Listen: []string{}, Mounts: r.mounts(), Clients: []clientReport{}, Clients4: []client4Report{}, Procedures: []procedureReport{},
	}
	for _, a := range r.addrs() {
		out.Listen = append(out.Listen, a.String())
	}
	for _, s := range r.stores {
		st := s.Statfs()
		out.Stores = append(out.Stores, storeReport{s.Name(), st.TotalBytes, st.UsedBytes, st.TotalInodes, st.UsedInodes})
	}
	for i, e := range r.table.All() {
		x := exportReport{
			Name: e.Name, Store: e.Store.Name(), Path: "/" + r.plan.exports[i].path, ReadOnly: e.ReadOnly,
			Allow: []string{}, Squash: e.Squash.String(), Anon: e.Anon.String(), InsecurePorts: e.InsecurePorts,
		}
		for _, n := range e.Allow {
			x.Allow = append(x.Allow, n.String())
		}
		out.Exports = append(out.Exports, x)
	}
	out.SMB = r.smbReport()
	if r.native == nil {
		return out // go-nfs does not count
	}
	st := r.native.Stats()
	out.Refused, out.Replayed, out.Panics = st.Refused, st.Replayed, st.Panics
	out.Connections, out.Evicted, out.BytesIn, out.BytesOut = st.Accepted, st.Evicted, st.BytesIn, st.BytesOut
	for _, p := range st.Procedures {
		out.Calls += p.Calls
		out.Errors += p.Errors
		if p.Calls > 0 {
			out.Procedures = append(out.Procedures, procedureReport{Name: procedureName(&p), Calls: p.Calls, Errors: p.Errors})
		}
	}
	out.Clients = clients(&st)
	for _, c := range st.Clients4 {
		out.Clients4 = append(out.Clients4, client4Report{
			Name: strings.ToValidUTF8(c.Name, "?"), Addr: c.Addr, Minor0: c.Minor0, Idle: c.Idle.Seconds(), Callable: c.Callable,
			Sessions: c.Sessions, Opens: c.Opens, Locks: c.Locks, Delegations: c.Delegations, Revoked: c.Revoked,
		})
	}
	return out
}

func (r *running) mounts() []mountReport {
	m := r.mounted
	if m == nil {
		return []mountReport{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		return []mountReport{}
	}
	p := m.Plan
	out := mountReport{p.Dir, p.Via, m.at.Type, m.at.Source, slices.Concat(p.Options, p.Flags), []string{}}
	for _, u := range loopback.Users(m.at) {
		out.Used = append(out.Used, u.String())
	}
	return []mountReport{out}
}

func procedureName(p *nfs.ProcedureStats) string {
	return fmt.Sprintf("%s%d.%s", p.Program, p.Version, p.Name)
}

// clients adds the connections up by address.
func clients(st *nfs.Stats) []clientReport {
	byAddr := make(map[netip.Addr]*clientReport)
	for _, c := range st.Conns {
		a := c.Peer.Addr().Unmap()
		r := byAddr[a]
		if r == nil {
			r = &clientReport{Addr: a, Since: c.Since, Mounts: []string{}}
			byAddr[a] = r
		}
		r.Connections++
		r.Calls += c.Calls
		r.BytesIn += c.BytesIn
		r.BytesOut += c.BytesOut
	}
	for _, m := range st.Mounts {
		if a, err := netip.ParseAddr(m.Host); err == nil && byAddr[a] != nil {
			byAddr[a].Mounts = append(byAddr[a].Mounts, m.Path)
		}
	}
	out := []clientReport{}
	for _, r := range byAddr {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b clientReport) int {
		return cmp.Or(a.Since.Compare(b.Since), a.Addr.Compare(b.Addr))
	})
	return out
}

func newStatus(in *instance) *cobra.Command {
	var asJSON bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show mounts, usage, exports, clients and rates",
		Long: `Show what a server has mounted, its usage, exports, clients and rates: of the
server --name, else of every server. What a dead server has left is cleaned up,
which standard error says. With --json there is one object a line.`,
		Example: `  ramserver status
  ramserver status --json --interval 5s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 0 {
				return fmt.Errorf("--interval %s: want 0 or more", interval)
			}
			servers, dir, err := in.running(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), interval+10*time.Second)
			defer cancel()
			reports := func() ([]report, error) {
				out := make([]report, len(servers))
				for i, server := range servers {
					if err := ask(ctx, server.socket(dir), "GET", "/status", &out[i]); err != nil {
						return nil, fmt.Errorf("server %q: %w", server.name, err)
					}
				}
				return out, nil
			}
			last, err := reports()
			if err == nil && interval > 0 {
				first := last
				time.Sleep(interval)
				if last, err = reports(); err == nil {
					for i := range last {
						last[i].rate(&first[i])
					}
				}
			}
			if err != nil {
				return err
			}
			for i := range last {
				if asJSON {
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(&last[i])
				} else {
					err = last[i].print(cmd.OutOrStdout(), i > 0)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "measure rates over this time; 0 for none")
	return cmd
}

// rate fills in the rates since an earlier report.
func (r *report) rate(before *report) {
	seconds := r.Now.Sub(before.Now).Seconds()
	if seconds <= 0 {
		return
	}
	per := func(now, before uint64) uint64 {
		if now < before {
			return 0
		}
		return uint64(float64(now-before)/seconds + 0.5)
	}

	r.Rates = &rates{
		Seconds: seconds,
		Calls:   per(r.Calls, before.Calls), BytesIn: per(r.BytesIn, before.BytesIn), BytesOut: per(r.BytesOut, before.BytesOut),
	}
	old := make(map[string]uint64)
	for _, p := range before.Procedures {
		old[p.Name] = p.Calls
	}
	for i := range r.Procedures {
		p := &r.Procedures[i]
		p.Rate = per(p.Calls, old[p.Name])
	}
}

// running finds the server that was named, else every running one.
func (in *instance) running(msgs io.Writer) (servers []*instance, dir string, err error) {
	if in.named {
		dir, _, err = in.find()
		return []*instance{in}, dir, err
	}
	if dir, err = in.folder(false); err != nil {
		return nil, "", err
	}
	if err := in.sweep(msgs); err != nil {
		return nil, "", err
	}
	for _, other := range in.all(dir) {
		if other.peek(dir) != nil {
			servers = append(servers, other)
		}
	}
	if len(servers) == 0 {
		return nil, "", failure{fmt.Errorf("%w (state folder %s)", errNone, dir)}
	}
	return servers, dir, nil
}

// print writes the report for people, after a rule if it is not the first.
func (r *report) print(out io.Writer, more bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if more {
		fmt.Fprintf(w, "\n%s\n\n", strings.Repeat("-", 72))
	}
	fmt.Fprintf(w, "server\t%s (process %d, version %s, %s engine)\n", r.Name, r.PID, r.Version, r.Engine)
	fmt.Fprintf(w, "up\t%s\n", r.Now.Sub(r.Started).Round(time.Second))
	for _, m := range r.Mounts {
		fmt.Fprintf(w, "mounted\t%s by %s (%s)\n", m.Dir, m.Via, strings.Join(m.Options, ","))
		for _, u := range m.Used {
			fmt.Fprintf(w, "\tused by %s\n", u)
		}
	}
	if len(r.Listen) > 0 {
		fmt.Fprintf(w, "NFS\t%s\n", strings.Join(r.Listen, ", "))
		fmt.Fprintf(w, "port 111\t%s\n", r.Portmap)
	}
	fmt.Fprintf(w, "persistence\t%s\n", r.Persistence)
	if r.Engine != "native" {
		fmt.Fprintf(w, "calls\tnot counted by this engine\n")
	} else {
		r.printCalls(w)
	}
	fmt.Fprintf(w, "\nSTORE\tSIZE\tUSED\tFREE\tINODES\tUSED\n")
	for _, s := range r.Stores {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\n", s.Name, formatSize(s.Size), formatSize(s.Used), formatSize(s.Size-s.Used), s.Inodes, s.UsedInodes)
	}
	fmt.Fprintf(w, "\nEXPORT\tSTORE\tFOLDER\tACCESS\tNETWORKS\tSQUASH\n")
	for _, e := range r.Exports {
		access := "read-write"
		if e.ReadOnly {
			access = "read-only"
		}
		networks := append([]string{"this machine"}, e.Allow...)
		fmt.Fprintf(w, "/%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.Store, e.Path, access, strings.Join(networks, " "), e.Squash)
	}
	if len(r.Clients) > 0 {
		fmt.Fprintf(w, "\nCLIENT\tCONNECTIONS\tSINCE\tCALLS\tIN\tOUT\tMOUNTS\n")
	}
	for _, c := range r.Clients {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\t%s\n", c.Addr, c.Connections, c.Since.Format(time.DateTime), c.Calls, formatSize(int64(c.BytesIn)), formatSize(int64(c.BytesOut)), strings.Join(c.Mounts, " "))
	}
	if len(r.Clients4) > 0 {
		fmt.Fprintf(w, "\nNFS 4 CLIENT\tADDRESS\tSESSIONS\tOPENS\tLOCKS\tDELEGATIONS\tCALLBACKS\tIDLE\n")
	}
	for _, c := range r.Clients4 {
		callbacks := "no"
		if c.Callable {
			callbacks = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%.0fs\n", printable(c.Name), c.Addr, c.Sessions, c.Opens, c.Locks, c.Delegations, callbacks, c.Idle)
	}
	if len(r.Procedures) > 0 {
		fmt.Fprintf(w, "\nPROCEDURE\tCALLS\tERRORS\tPER SECOND\n")
	}
	for _, p := range r.Procedures {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", p.Name, p.Calls, p.Errors, p.Rate)
	}
	if r.SMB != nil {
		r.SMB.print(w)
	}
	return w.Flush()
}

// printable is a client's name for itself, which may be anything, as text of one
// line.
func printable(name string) string {
	const longest = 40
	text := strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, name)
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest-3]) + "..."
	}
	return text
}

func (r *report) printCalls(w io.Writer) {
	fmt.Fprintf(w, "calls\t%d, %d with an error, %d refused, %d repeated, %d failed\n", r.Calls, r.Errors, r.Refused, r.Replayed, r.Panics)
	if r.Rates != nil {
		fmt.Fprintf(w, "now\t%d calls/s, %s/s in, %s/s out\n", r.Rates.Calls, formatSize(int64(r.Rates.BytesIn)), formatSize(int64(r.Rates.BytesOut)))
	}
}
