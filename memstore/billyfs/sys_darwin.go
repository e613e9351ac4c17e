package billyfs

import (
	"syscall"

	"ramserver/memstore"
)

func setTimes(st *syscall.Stat_t, a *memstore.Attr) {
	st.Atimespec = timespec(a.Atime)
	st.Mtimespec = timespec(a.Mtime)
	st.Ctimespec = timespec(a.Ctime)
	st.Birthtimespec = timespec(a.Btime)
}
