package billyfs

import (
	"syscall"

	"ramserver/memstore"
)

func setTimes(st *syscall.Stat_t, a *memstore.Attr) {
	st.Atim = syscall.NsecToTimespec(a.Atime)
	st.Mtim = syscall.NsecToTimespec(a.Mtime)
	st.Ctim = syscall.NsecToTimespec(a.Ctime)
}
