package smb

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"ramserver/export/smb/wire"
)

// lsarpc is the Local Security Authority, of which clients ask what the owner, the
// group and others in a file's list of rights are called, and the other way (MS-LSAT
// section 3.1.4). A policy has nothing that would have to be kept: its handle is
// always the same.
var lsarpc = &rpcService{
	uuid:  "\x78\x57\x34\x12\x34\x12\xcd\xab\xef\x00\x01\x23\x45\x67\x89\xab",
	major: 0,
	ops: map[uint16]func(*rpcHost, *ndrReader, *ndrWriter){
		0:  lsaClose,
		6:  lsaOpen,
		14: lsaNames(14),
		15: lsaSIDs(15),
		44: lsaOpen,
		57: lsaSIDs(57),
		58: lsaNames(58),
		68: lsaNames(68),
	},
}

// Statuses that the service returns besides those of files, MS-ERREF section 2.3.1.
const (
	ntSomeNotMapped = 0x00000107
	ntNoneMapped    = 0xC0000073
)

const lsaHandle = "\x00\x00\x00\x00ramserver policy"

// principal is somebody who has rights, or nobody known.
type principal struct {
	use    uint16 // SID_NAME_USE, MS-LSAT section 2.2.13
	domain int    // in principalDomains
	name   string
	sid    sid
}

const (
	useUser    = 1
	useGroup   = 2
	useKnown   = 5 // by everybody
	useUnknown = 8
)

// principalDomains are where principals are, by the names that Samba has for those of
// POSIX.
var principalDomains = []struct {
	name string
	sid  sid
}{
	{"Unix User", makeSID(22, 1)},
	{"Unix Group", makeSID(22, 2)},
	{"", makeSID(1)},
	{"NT AUTHORITY", makeSID(5)},
}

const (
	unixUsers = iota
	unixGroups
	noDomain
	ntAuthority
)

// wellKnown are those whom security descriptors have besides users and groups.
var wellKnown = []principal{
	{useKnown, noDomain, "Everyone", sidEveryone},
	{useKnown, ntAuthority, "Authenticated Users", sidAuthUsers},
}

// principalOf finds who has a SID. Users who may log on have their names, others and
// groups their numbers.
func principalOf(s sid, users []User) principal {
	if uid, ok := s.id(1); ok && s == userSID(uid) {
		name := strconv.FormatUint(uint64(uid), 10)
		if i := slices.IndexFunc(users, func(u User) bool { return u.Cred.UID == uid }); i >= 0 {
			name = users[i].Name
		}
		return principal{useUser, unixUsers, name, s}
	}
	if gid, ok := s.id(2); ok && s == groupSID(gid) {
		return principal{useGroup, unixGroups, strconv.FormatUint(uint64(gid), 10), s}
	}
	if i := slices.IndexFunc(wellKnown, func(p principal) bool { return p.sid == s }); i >= 0 {
		return wellKnown[i]
	}
	return principal{use: useUnknown, name: s.String()}
}

// principalNamed finds who has a name, with or without a domain.
func principalNamed(name string, host string, users []User) principal {
	domain, name, ok := cutLast(name, `\`)
	if !ok {
		domain, name = "", domain
	}
	in := func(d int) bool { return strings.EqualFold(domain, principalDomains[d].name) }
	id, err := parseID(name)
	switch {
	case in(unixUsers) && err == nil:
		return principal{useUser, unixUsers, name, userSID(id)}
	case in(unixGroups) && err == nil:
		return principal{useGroup, unixGroups, name, groupSID(id)}
	case domain == "" || in(unixUsers) || strings.EqualFold(domain, host):
		if i := slices.IndexFunc(users, func(u User) bool { return strings.EqualFold(u.Name, name) }); i >= 0 {
			return principal{useUser, unixUsers, users[i].Name, userSID(users[i].Cred.UID)}
		}
	}
	for _, p := range wellKnown {
		if strings.EqualFold(p.name, name) && (domain == "" || in(p.domain)) {
			return p
		}
	}
	return principal{use: useUnknown}
}

// lsaOpen is LsarOpenPolicy and LsarOpenPolicy2, MS-LSAT sections 3.1.4.2 and 3.1.4.1.
// Who has logged on may look up names, and nothing else.
func lsaOpen(_ *rpcHost, _ *ndrReader, out *ndrWriter) {
	out.b = append(out.b, lsaHandle...)
	out.uint32(uint32(wire.StatusOK))
}

// lsaClose is LsarClose, MS-LSAT section 3.1.4.3.
func lsaClose(_ *rpcHost, in *ndrReader, out *ndrWriter) {
	status := lsaPolicy(in)
	out.b = append(out.b, make([]byte, len(lsaHandle))...)
	out.uint32(uint32(status))
}

// lsaPolicy reads the handle of a policy.
func lsaPolicy(in *ndrReader) wire.Status {
	if string(in.bytes(len(lsaHandle))) != lsaHandle {
		return wire.StatusInvalidHandle
	}
	return wire.StatusOK
}

// lsaSIDs is LsarLookupSids and LsarLookupSids2, MS-LSAT sections 3.1.4.11 and 3.1.4.10.
func lsaSIDs(op uint16) func(*rpcHost, *ndrReader, *ndrWriter) {
	return func(h *rpcHost, in *ndrReader, out *ndrWriter) {
		f := found{status: lsaPolicy(in)}
		n := in.uint32()
		if in.uint32() == 0 {
			n = 0
		} else if in.uint32() != n {
			in.bad = true
		}
		users := h.users()
		for _, there := range in.refs(n, 0) {
			s := in.sid()
			if in.bad = in.bad || !there; in.bad {
				return
			}
			f.all = append(f.all, principalOf(s, users))
		}
		// What follows is where the answer goes, and where to look.
		if in.bad {
			return
		}
		domains := f.begin(out)
		for i, p := range f.all {
			out.uint16(p.use)
			out.unicode(p.name)
			out.uint32(domains[i])
			if op == 57 {
				out.uint32(0)
			}
		}
		for _, p := range f.all {
			out.chars(p.name)
		}
		f.end(out)
	}
}

// lsaNames is LsarLookupNames, LsarLookupNames2 and LsarLookupNames3, MS-LSAT sections
// 3.1.4.8, 3.1.4.7 and 3.1.4.6.
func lsaNames(op uint16) func(*rpcHost, *ndrReader, *ndrWriter) {
	return func(h *rpcHost, in *ndrReader, out *ndrWriter) {
		f := found{status: lsaPolicy(in)}
		n := in.uint32()
		if in.uint32() != n {
			in.bad = true
		}
		users := h.users()
		for _, there := range in.refs(n, 4) { // behind lengths, which the string has too
			name := ""
			if there {
				name = in.str()
			}
			f.all = append(f.all, principalNamed(name, h.name, users))
		}
		if in.bad {
			return
		}
		domains := f.begin(out)
		for i, p := range f.all {
			out.uint16(p.use)
			switch {
			case p.sid == "":
				out.uint32(0)
			case op == 68:
				out.ref()
			default:
				out.uint32(binary.LittleEndian.Uint32([]byte(p.sid[len(p.sid)-4:])))
			}
			out.uint32(domains[i])
			if op != 14 {
				out.uint32(0)
			}
		}
		for _, p := range f.all {
			if op == 68 && p.sid != "" {
				out.sid(p.sid)
			}
		}
		f.end(out)
	}
}

// found is who was found for each of what was asked for.
type found struct {
	all    []principal
	status wire.Status // not OK: nothing is told
}

// begin appends the domains of all (LSAPR_REFERENCED_DOMAIN_LIST, MS-LSAT section
// 2.2.12) and how many they are. It returns which domain each is in.
func (f *found) begin(out *ndrWriter) (in []uint32) {
	if f.status != wire.StatusOK {
		f.all = nil
	}
	var domains []int
	for _, p := range f.all {
		at := -1
		if p.use != useUnknown {
			if at = slices.Index(domains, p.domain); at < 0 {
				at = len(domains)
				domains = append(domains, p.domain)
			}
		}
		in = append(in, uint32(at))
	}
	out.ref()
	out.uint32(uint32(len(domains)))
	out.ref()
	out.uint32(32) // more than there are; nobody looks
	out.uint32(uint32(len(domains)))
	for _, d := range domains {
		out.unicode(principalDomains[d].name)
		out.ref()
	}
	for _, d := range domains {
		out.chars(principalDomains[d].name)
		out.sid(principalDomains[d].sid)
	}
	out.uint32(uint32(len(f.all)))
	out.ref()
	out.uint32(uint32(len(f.all)))
	return in
}

// end appends how many are known.
func (f *found) end(out *ndrWriter) {
	known := 0
	for _, p := range f.all {
		if p.use != useUnknown {
			known++
		}
	}
	out.uint32(uint32(known))
	switch {
	case f.status != wire.StatusOK || known == len(f.all):
		out.uint32(uint32(f.status))
	case known == 0:
		out.uint32(ntNoneMapped)
	default:
		out.uint32(ntSomeNotMapped)
	}
}
