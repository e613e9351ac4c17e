//go:build !linux

package memstore

// tmpfs is what only Linux has: nobody gets one here.
type tmpfs struct{}

func mountTmpfs(int64) (tmpfs, error) { return tmpfs{}, ErrNotSupported }

func (*tmpfs) close()                   {}
func (*tmpfs) resize(int64) bool        { return false }
func (*tmpfs) used() int64              { return 0 }
func (*tmpfs) create() (tmpFile, error) { return 0, ErrNotSupported }

func mostTmpFiles() int64 { return 0 }

type tmpFile int

func (tmpFile) close()                           {}
func (tmpFile) read(p []byte, _ int64)           { clear(p) }
func (tmpFile) write([]byte, int64) int          { return 0 }
func (tmpFile) append([]byte) int                { return 0 }
func (tmpFile) truncate(int64) bool              { return false }
func (tmpFile) punch(int64, int64) bool          { return false }
func (tmpFile) allocate(int64, int64, bool) bool { return false }
func (tmpFile) seek(int64, bool) (int64, bool)   { return 0, false }
func (tmpFile) stat() tmpStat                    { return tmpStat{} }
func (tmpFile) alone() bool                      { return false }
