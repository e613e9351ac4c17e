package billyfs

import (
	"syscall"

	"ramserver/memstore"
)

func setTimes(st *syscall.Stat_t, a *memstore.Attr) {
	st.Atimespec = syscall.NsecToTimespec(a.Atime)
	st.Mtimespec = syscall.NsecToTimespec(a.Mtime)
	st.Ctimespec = syscall.NsecToTimespec(a.Ctime)
	st.Birthtimespec = syscall.NsecToTimespec(a.Btime)
}
