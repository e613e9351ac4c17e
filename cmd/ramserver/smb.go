package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ramserver/export/smb"
	"ramserver/export/smb/ntlm"
	"ramserver/memstore"

	"golang.org/x/term"
)

// smbPlan is how SMB is served.
type smbPlan struct {
	ports      []uint16 // to be tried in this order
	users      string   // file
	quick      string   // a user who gets a new password; "" for none
	secret     string   // it, if this machine's mount knows it already
	signing    smb.Protection
	encryption smb.Protection
}

// SMB's port, and the one that is taken where it is not to be had: Windows and
// Samba have it, and below 1024 it needs root.
const (
	smbPort      = 445
	otherSMBPort = 1445
)

func (p *plan) checkSMB(s *settings) (err error) {
	if err := oneOf("--smb", s.smb, "auto", "on", "off"); err != nil {
		return err
	}
	if err := oneOf("--smb-signing", s.smbSigning, "required", "enabled"); err != nil {
		return err
	}
	if err := oneOf("--smb-encryption", s.smbEncryption, "required", "enabled", "off"); err != nil {
		return err
	}
	m := &smbPlan{ports: []uint16{smbPort, otherSMBPort}, quick: s.smbUser, signing: protection(s.smbSigning), encryption: protection(s.smbEncryption)}
	if s.smbPort != "" {
		port, err := strconv.ParseUint(s.smbPort, 10, 16)
		if err != nil {
			return fmt.Errorf("--smb-port %q: want a number up to 65535", s.smbPort)
		}
		m.ports = []uint16{uint16(port)}
	}
	if s.smb == "off" {
		if s.smbUser != "" || s.smbPort != "" {
			return errors.New("--smb off: leave --smb-user and --smb-port out")
		}
		return nil
	}
	if m.quick != "" {
		if err := smb.CheckUserName(m.quick); err != nil {
			return fmt.Errorf("--smb-user: %w", err)
		}
	}
	if m.users, err = usersFlag(s.smbUsers); err != nil {
		if m.quick == "" && s.smb == "auto" && s.smbPort == "" {
			return nil // nobody could log on
		}
		m.users = ""
	}
	users, err := smb.NewUsers(m.users)
	if err != nil {
		if s.smb == "auto" && s.smbUsers == "" && s.smbPort == "" && m.quick == "" {
			p.warnings = append(p.warnings, fmt.Sprintf("SMB is not served: %v", err))
			return nil
		}
		return failure{err}
	}
	all, _ := users.All()
	if len(all) == 0 && m.quick == "" {
		if s.smb == "on" || s.smbPort != "" || s.smbUsers != "" {
			return fmt.Errorf("SMB: %s has no user who could log on; add one (ramserver user add NAME), or give --smb-user NAME", m.users)
		}
		return nil
	}
	p.smb = m
	return nil
}

func protection(s string) smb.Protection {
	switch s {
	case "required":
		return smb.Required
	case "off":
		return smb.Off
	}
	return smb.Enabled
}

// startSMB serves SMB as planned. What it cannot open ends the start.
func (r *running) startSMB(in *instance, stateDir string, failed chan<- error) error {
	p := r.plan.smb
	if p == nil {
		return nil
	}
	var extra []smb.User
	if p.quick != "" {
		password := p.secret
		if password == "" {
			password = rand.Text()
		}
		extra = []smb.User{{Name: p.quick, Hash: ntlm.HashPassword(password), Cred: memstore.Cred{
			UID: uint32(max(0, os.Getuid())), GID: uint32(max(0, os.Getgid()))}}}
		if r.plan.network {
			if err := r.tellPassword(in, stateDir, password); err != nil {
				return err
			}
		}
	}
	users, err := smb.NewUsers(p.users, extra...)
	if err != nil {
		return failure{err}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "ramserver"
	}
	r.smb, err = smb.New(smb.Config{
		Exports: r.table, Users: users, Name: host, Signing: p.signing, Encryption: p.encryption,
		Log: r.log, Trace: r.plan.trace,
	})
	if err != nil {
		return err
	}
	if err := r.listenSMB(); err != nil {
		return err
	}
	r.onClose(func() { r.smb.Close() })
	for _, l := range r.smbListen {
		background(failed, func() error { return r.smb.Serve(l) })
	}
	return nil
}

// tellPassword shows a new password on a terminal, else writes it to a file, which
// goes with the server.
func (r *running) tellPassword(in *instance, stateDir, password string) error {
	user := r.plan.smb.quick
	if term.IsTerminal(int(os.Stdout.Fd())) {
		r.password = fmt.Sprintf("SMB user %q has the password %s", user, password)
		return nil
	}
	path := filepath.Join(stateDir, in.name+".password")
	os.Remove(path) // of one who died; a file that is there keeps its mode
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		return failure{fmt.Errorf("password of SMB user %s: %w", user, err)}
	}
	r.onClose(func() { os.Remove(path) })
	r.password = fmt.Sprintf("SMB user %q has the password in %s", user, path)
	return nil
}

// listenSMB opens the first port of the plan that can be had on every address.
func (r *running) listenSMB() error {
	var why []string
	for _, port := range r.plan.smb.ports {
		var err error
		if r.smbListen, err = r.listenAt(port); err == nil {
			r.smbWhy = strings.Join(why, "; ")
			return nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("SMB %w", err)
		}
		why = append(why, err.Error())
	}
	return failure{fmt.Errorf("SMB: %s; give another --smb-port", strings.Join(why, "; "))}
}

// smbAddrs is where SMB is served.
func (r *running) smbAddrs() (addrs []netip.AddrPort) {
	for _, l := range r.smbListen {
		addrs = append(addrs, l.Addr().(*net.TCPAddr).AddrPort())
	}
	return addrs
}

// smbReport is what a server says about SMB: counters since its start.
type smbReport struct {
	Listen       []string          `json:"listen"`
	Signing      string            `json:"signing"`
	Encryption   string            `json:"encryption"`
	Calls        uint64            `json:"calls"`
	Errors       uint64            `json:"errors"`
	Panics       uint64            `json:"panics"`
	FailedLogons uint64            `json:"failed_logons"`
	Connections  uint64            `json:"connections"` // ever accepted
	Evicted      uint64            `json:"evicted"`     // connections
	BytesIn      uint64            `json:"bytes_in"`
	BytesOut     uint64            `json:"bytes_out"`
	Sessions     []smbSession      `json:"sessions"`
	Commands     []procedureReport `json:"commands"` // that were called
}

// smbSession is one user's logon.
type smbSession struct {
	Client    netip.AddrPort `json:"client"`
	User      string         `json:"user"`
	Since     time.Time      `json:"since"`
	Shares    []string       `json:"shares"`
	Files     int            `json:"files"` // open ones
	Encrypted bool           `json:"encrypted"`
}

func (r *running) smbReport() *smbReport {
	if r.smb == nil {
		return nil
	}
	st := r.smb.Stats()
	out := &smbReport{
		Signing: protectionName(r.plan.smb.signing), Encryption: protectionName(r.plan.smb.encryption),
		Panics: st.Panics, FailedLogons: st.FailedLogons, Connections: st.Accepted, Evicted: st.Evicted, BytesIn: st.BytesIn, BytesOut: st.BytesOut,
		Sessions: []smbSession{}, Commands: []procedureReport{},
	}
	for _, a := range r.smbAddrs() {
		out.Listen = append(out.Listen, a.String())
	}
	for _, s := range st.Sessions {
		out.Sessions = append(out.Sessions, smbSession{s.Peer, s.User, s.Since, slices.Concat([]string{}, s.Shares), s.Files, s.Encrypted})
	}
	for _, c := range st.Commands {
		out.Calls += c.Calls
		out.Errors += c.Errors
		if c.Calls > 0 {
			out.Commands = append(out.Commands, procedureReport{Name: "smb." + c.Name, Calls: c.Calls, Errors: c.Errors})
		}
	}
	return out
}

func protectionName(p smb.Protection) string {
	switch p {
	case smb.Required:
		return "required"
	case smb.Off:
		return "off"
	}
	return "enabled"
}

// print writes the report for people.
func (r *smbReport) print(w io.Writer) {
	fmt.Fprintf(w, "\nSMB\t%s; signing %s, encryption %s\n", strings.Join(r.Listen, ", "), r.Signing, r.Encryption)
	fmt.Fprintf(w, "requests\t%d, %d with an error, %d failed; %d failed logons\n", r.Calls, r.Errors, r.Panics, r.FailedLogons)
	if len(r.Sessions) > 0 {
		fmt.Fprintf(w, "\nUSER\tCLIENT\tSINCE\tSHARES\tOPEN FILES\n")
	}
	for _, s := range r.Sessions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", s.User, s.Client, s.Since.Format(time.DateTime), strings.Join(s.Shares, " "), s.Files)
	}
	if len(r.Commands) > 0 {
		fmt.Fprintf(w, "\nCOMMAND\tREQUESTS\tERRORS\n")
	}
	for _, c := range r.Commands {
		fmt.Fprintf(w, "%s\t%d\t%d\n", c.Name, c.Calls, c.Errors)
	}
}
