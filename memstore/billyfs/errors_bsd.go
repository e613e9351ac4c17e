//go:build darwin || freebsd

package billyfs

import "syscall"

const errNoXattr = syscall.ENOATTR
