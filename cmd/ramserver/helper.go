package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// helperName is the name by which mount(8) calls this program for
//
//	ramdisk /ramdisk ramserver size=4G 0 0
//
// in fstab(5). The first field is free; it only shows in listings of fstab.
const helperName = "mount.ramserver"

// Exit statuses of mount(8).
const (
	mountUsage  = 1
	mountFailed = 32
)

// mountHelper is mount.ramserver SPEC DIR [-sfnv] [-o OPTIONS].
func mountHelper(args []string) int {
	args, err := helperArgs(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", helperName, err)
		return mountUsage
	}
	if args == nil {
		return 0 // -f, only as if
	}
	switch run(args) {
	case 0:
		return 0
	case 1:
		return mountFailed
	default:
		return mountUsage
	}
}

// helperArgs makes the arguments of "ramserver mount" from those that mount(8)
// gives its helpers, nil if nothing is to be done.
func helperArgs(args []string) ([]string, error) {
	var plain, options []string
	fake, sloppy := false, false
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-o" || a == "-t" || a == "-N":
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s: needs a value", a)
			}
			switch a {
			case "-o":
				options = append(options, strings.Split(args[i], ",")...)
			case "-N":
				return nil, fmt.Errorf("-N: other mount namespaces are not supported; use nsenter")
			}
		case len(a) > 1 && a[0] == '-':
			if strings.Trim(a[1:], "sfnv") != "" {
				return nil, fmt.Errorf("%s: unknown; want -s, -f, -n, -v or -o OPTIONS", a)
			}
			fake = fake || strings.Contains(a, "f")
			sloppy = sloppy || strings.Contains(a, "s")
		default:
			plain = append(plain, a)
		}
	}
	if len(plain) != 2 {
		return nil, fmt.Errorf("want SPEC DIR [-sfnv] [-o OPTIONS], as mount(8) calls it")
	}
	out := []string{"mount", plain[1], "--source=" + plain[0]}
	known := newMount(new(instance)).Flags()
	for _, o := range options {
		key, _, _ := strings.Cut(o, "=")
		switch {
		case o == "" || strings.HasPrefix(key, "x-") || strings.HasPrefix(key, "X-") || slices.Contains(forMount, key):
			// It is for mount(8) or systemd, or what holds anyway.
		case slices.Contains(restrictions, o):
			out = append(out, "--options", o)
		case o == "remount":
			return nil, fmt.Errorf("remount: a mount cannot be changed; umount it, with which its store goes")
		case sloppy && known.Lookup(key) == nil:
		default:
			out = append(out, "--"+o)
		}
	}
	if fake {
		return nil, nil
	}
	return out, nil
}

// restrictions are the options of mount(8) that are options of mount here.
var restrictions = []string{"ro", "nosuid", "nodev", "noexec", "noatime"}

// forMount are the options that mount(8) acts on itself, and defaults.
var forMount = []string{
	"defaults", "rw", "suid", "dev", "exec", "async", "sync", "dirsync", "auto", "noauto", "nofail",
	"atime", "relatime", "norelatime", "strictatime", "nostrictatime", "diratime", "nodiratime", "lazytime", "nolazytime",
	"user", "nouser", "users", "nousers", "owner", "noowner", "group", "nogroup", "_netdev", "comment", "silent", "loud", "nomand",
}
