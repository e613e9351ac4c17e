package export

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Squash says whose AUTH_SYS claims are replaced by the anonymous user.
type Squash uint8

const (
	SquashDefault Squash = iota // root's, from other machines
	SquashRoot                  // root's, from everywhere
	SquashAll                   // everybody's
	SquashNone                  // nobody's
)

var squashNames = [...]string{"default", "root", "all", "none"}

func (s Squash) String() string { return squashNames[s] }

// ParseSquash reads "root", "all", "none" or "default".
func ParseSquash(s string) (Squash, error) {
	for i, name := range squashNames {
		if s == name {
			return Squash(i), nil
		}
	}
	return 0, fmt.Errorf("squash %q: want root, all, none or default", s)
}

// IDs is a user and a group.
type IDs struct{ UID, GID uint32 }

func (i IDs) String() string { return fmt.Sprintf("%d:%d", i.UID, i.GID) }

// ParseIDs reads "uid:gid", both numbers below 4294967295, which means "leave
// as it is" to chown.
func ParseIDs(s string) (IDs, error) {
	u, g, ok := strings.Cut(s, ":")
	uid, err1 := strconv.ParseUint(u, 10, 32)
	gid, err2 := strconv.ParseUint(g, 10, 32)
	if !ok || err1 != nil || err2 != nil || uid == 1<<32-1 || gid == 1<<32-1 {
		return IDs{}, fmt.Errorf("ids %q: want uid:gid in numbers, as 1000:1000", s)
	}
	return IDs{uint32(uid), uint32(gid)}, nil
}

// ParseNetwork reads a network in CIDR notation, or an address for a network
// of that address alone. An IPv4-mapped network is the IPv4 one.
func ParseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(s); err == nil && a.Zone() == "" {
			a = a.Unmap()
			return netip.PrefixFrom(a, a.BitLen()), nil
		}
		return netip.Prefix{}, fmt.Errorf("network %q: want a CIDR or an address, as 192.168.1.0/24 or fd00::/8", s)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("network %q: mixes IPv4 and IPv6; give each its own", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("network %q: has bits set behind its length; want %s", s, p.Masked())
	}
	return p, nil
}
