package billyfs

import (
	"syscall"

	"ramserver/memstore"
)

func setTimes(st *syscall.Stat_t, a *memstore.Attr) {
	st.Atim = timespec(a.Atime)
	st.Mtim = timespec(a.Mtime)
	st.Ctim = timespec(a.Ctime)
}
