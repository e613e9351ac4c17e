package memstore

import (
	"sync"
	"sync/atomic"
	"time"
)

// backing is where the bytes of backed files are: a tmpfs of the store's own. Its
// size and room, which is what else may be used, together are the store's size.
type backing struct {
	s     *Store       // (c)
	most  int64        // (c) files
	files atomic.Int64 // that have a descriptor or are about to

	mu    sync.Mutex
	tmpfs tmpfs // (mu) but for create
	size  int64 // (mu) the tmpfs's, in whole pages, never 0, which would be no limit

	tidy   sync.Mutex // held while small files are made paged again
	closed []*Inode   // (mu) small files that local processes have closed
	awake  bool       // (mu) a goroutine will look at them
}

const (
	backedCost = 1 << 10 // what a file of the tmpfs takes beside its pages, about
	tmpfsPage  = 4 << 10
)

// makeBacking makes the store's tmpfs, once.
func (s *Store) makeBacking() (*backing, error) {
	if b := s.backing.Load(); b != nil {
		return b, nil
	}
	t, err := mountTmpfs(tmpfsPage)
	if err != nil {
		return nil, err
	}
	b := &backing{s: s, most: mostTmpFiles(), tmpfs: t, size: tmpfsPage}
	s.room.Add(-tmpfsPage)
	s.backing.Store(b)
	s.give(s.slack())
	return b, nil
}

// slack is how much room is taken beyond what is needed, or kept, so that few
// changes of the room resize the tmpfs.
func (s *Store) slack() int64 { return max(64<<10, min(s.size/512, 2<<20)) }

// claim makes room for n bytes more than are used, at the tmpfs's cost. It
// reports whether there is room now.
func (s *Store) claim(n int64) bool {
	b := s.backing.Load()
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	need := s.used.Load() + n - s.room.Load()
	if need <= 0 {
		return true
	}
	free := b.size - max(b.tmpfs.used(), tmpfsPage)
	take := roundUp(need, tmpfsPage)
	if take > free {
		return false
	}
	if take = min(roundUp(need+s.slack(), tmpfsPage), roundDown(free, tmpfsPage)); !b.tmpfs.resize(b.size - take) {
		// Somebody was writing.
		if take = roundUp(need, tmpfsPage); !b.tmpfs.resize(b.size - take) {
			return false
		}
	}
	b.size -= take
	s.room.Add(take)
	return true
}

// give gives the tmpfs the room that is not used, but for keep bytes.
func (s *Store) give(keep int64) {
	b := s.backing.Load()
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	room := s.room.Load()
	spare := roundDown(room-s.used.Load()-keep, tmpfsPage)
	if spare <= 0 {
		return
	}
	// One who charges sees the new room, or what he has charged is seen here.
	s.room.Store(room - spare)
	if s.used.Load() > room-spare || !b.tmpfs.resize(b.size+spare) {
		s.room.Store(room)
		return
	}
	b.size += spare
}

// makeRoom is called before a local process writes without the store, which
// cannot make it wait for what is about to be freed then.
func (s *Store) makeRoom() {
	if st := s.Statfs(); st.UsedBytes > st.TotalBytes/8*7 {
		s.reaper.drain()
		s.give(0)
	}
}

// create makes an empty file, or answers ErrNoSpace.
func (b *backing) create() (tmpFile, error) {
	if b.files.Add(1) > b.most || !b.s.charge(backedCost) {
		b.files.Add(-1)
		return 0, ErrNoSpace
	}
	f, err := b.tmpfs.create()
	if err != nil {
		b.files.Add(-1)
		b.s.uncharge(backedCost)
		return 0, ErrNoSpace
	}
	return f, nil
}

// drop frees a file.
func (b *backing) drop(f tmpFile) {
	f.close()
	b.files.Add(-1)
	b.s.uncharge(backedCost)
}

// used is the bytes that files take, also of no backing.
func (b *backing) used() int64 {
	if b == nil {
		return 0
	}
	return b.tmpfs.used()
}

// closeTime is for how long the store's end waits for processes that are writing.
const closeTime = time.Second

// close is for the store's end. What local processes have of its files, passed
// through, would be theirs until they close it: it is cut to nothing, and cannot
// grow.
func (b *backing) close() {
	b.tidyUp()
	var cut sync.WaitGroup
	b.s.table.each(func(i *Inode) {
		i.mu.Lock()
		defer i.mu.Unlock()
		f := i.backed()
		if f == nil {
			return
		}
		i.x.backed = nil
		if !f.loose {
			f.file.truncate(0)
			b.drop(f.file)
			return
		}
		f.away++
		cut.Go(func() {
			f.file.truncate(0)
			i.join(f, true)
			i.mu.Unlock()
		})
	})
	all := make(chan struct{})
	go func() {
		cut.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(closeTime):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tmpfs.resize(tmpfsPage)
	b.tmpfs.close()
}
