package memstore

import "time"

// Use is how the local mount's kernel uses an open file.
type Use uint8

// The uses. By the last two processes reach the bytes of a backed file without
// the store: by every read, write and mapping, or by mappings only.
const (
	UseAsked Use = iota // every read and write is asked for; there are no mappings
	UseCached
	UsePassthrough
	UseMapped
)

// Passthrough is how the mount's kernel is given files of the backing.
type Passthrough struct {
	// Register makes the file behind a descriptor one that opens can be passed
	// through to, by the id that it returns. Neither function waits for anything.
	Register   func(fd int) (id int32, err error)
	Unregister func(id int32)
	// Always gives it every file, and not only those that gain by it.
	Always bool
}

// Passthrough lets processes reach files without the store. It is called before
// the mount's kernel asks for anything, and fails where the system cannot do it.
func (l *Local) Passthrough(p Passthrough) error {
	b, err := l.s.makeBacking()
	if err != nil {
		return err
	}
	f, err := b.create()
	if err != nil {
		return err
	}
	defer b.drop(f)
	id, err := p.Register(int(f))
	if err != nil {
		return err
	}
	p.Unregister(id)
	l.kernel = &p
	return nil
}

// Use decides how the kernel uses an open file of the mount's, which a process
// can read or write as access says; id is of what Register registered.
//
// The kernel does not have an inode in its cache and passed through at the same
// time, and what is mapped passed through stays so when it is closed. So opens
// follow those that are there. Else passthrough is for what is large, and for
// what can be changed by a mapping, which others would not see otherwise. Clones
// share memory, which passthrough would end: they are cached, unless they are
// opened to read and write.
func (l *Local) Use(o *Open, access Access) (use Use, id int32) {
	i := o.inode
	if l.kernel != nil && access&AccessWrite != 0 {
		l.s.makeRoom()
		for tries := 0; tries < 10 && access&AccessRead != 0 && i.isCached(); tries++ {
			// It may be closed, and the kernel has not told so yet.
			time.Sleep(100 * time.Microsecond)
		}
	}
	i.lock()
	defer i.mu.Unlock()
	reached := i.reached()
	var pass bool
	switch {
	case l.kernel == nil || i.typ != TypeFile || i.x.cached > 0:
	case reached || l.kernel.Always:
		pass = true
	case access == AccessWrite:
		pass = i.size > smallFile
	case access&AccessWrite != 0:
		pass = true
	default:
		pass = i.size > smallFile && !i.cow
	}
	switch {
	case pass && i.toBacked() && l.register(i.x.backed):
		b := i.x.backed
		b.opens++
		b.held = true
		o.use, o.since = UsePassthrough, b.st.mtime
		if access&AccessWrite != 0 {
			b.loose = true
			if i.mode&(ModeSetUID|ModeSetGID) != 0 || i.x.xattrs[capability] != nil {
				// The kernel leaves it to the store to clear them at a write.
				o.use = UseMapped
			}
		}
		return o.use, b.id
	case access == AccessWrite || reached:
		// A write goes to the store at once, so a cache is of no use. It also must
		// not hide what is mapped.
		o.use = UseAsked
	default:
		o.use = UseCached
		i.x.cached++
	}
	return o.use, 0
}

// isCached tells whether the mount's kernel caches data by any open.
func (i *Inode) isCached() bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.x != nil && i.x.cached > 0
}

// register makes sure that the kernel knows b. Called with the inode's mu held
// for writing.
func (l *Local) register(b *backed) bool {
	if b.opens > 0 {
		return true // by an open that is there
	}
	id, err := l.kernel.Register(int(b.file))
	b.id = id
	return err == nil
}

// unuse ends the use of an open that is closed, and tells whether the file was
// changed without the store meanwhile. Called with i.mu held for writing.
func (i *Inode) unuse(o *Open) (wrote bool) {
	switch o.use {
	case UseCached:
		i.x.cached--
	case UsePassthrough, UseMapped:
		b := i.x.backed
		wrote = b.loose && b.st.mtime != o.since
		if b.opens--; b.opens > 0 {
			break
		}
		if l := i.s.local.Load(); l != nil {
			l.kernel.Unregister(b.id)
		}
		if i.size <= smallFile {
			i.s.backing.Load().tidyLater(i)
		}
	}
	o.use = UseAsked
	return wrote
}
