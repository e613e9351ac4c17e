package memstore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ramserver/memstore/arena"
	"ramserver/memstore/internal/extent"
)

// What an inode and a name count against a store's size, in bytes: about what
// they take of the Go heap.
const (
	inodeCost  = 192
	dentryCost = 40
)

// Config describes a store.
type Config struct {
	// Name identifies the store. Its id and the root's handle follow from it,
	// so that they are the same after a restart.
	Name string
	// Size limits data and metadata, in bytes; at least 64 KiB.
	Size int64
	// Inodes limits the number of inodes; 0 means one for each KiB of Size.
	Inodes int64
	// RootUID, RootGID and RootMode are the root directory's; mode 0 means 1777.
	RootUID, RootGID uint32
	RootMode         uint16
	// Arena holds the data. Stores share one; nil makes an arena that is
	// closed with the store.
	Arena *arena.Arena
}

// Store is one RAM disk. Its methods and those of its inodes may be called
// from any number of goroutines.
type Store struct {
	id        uint64
	name      string
	size      int64
	maxInodes int64
	arena     *arena.Arena
	ownArena  bool
	root      *Inode

	used   atomic.Int64 // bytes that count against room
	room   atomic.Int64 // size without the backing's
	inodes atomic.Int64
	orphan atomic.Int64 // inodes without a name, kept by an open
	locks  atomic.Int64 // ranges that are locked, and who waits for one

	watches   atomic.Int64 // watches anywhere, so that changes cost nothing without any
	recursive atomic.Int64 // those on whole trees

	local   atomic.Pointer[Local]   // the mount on this machine, or nil
	backing atomic.Pointer[backing] // where backed files are, or nil

	renameMu sync.Mutex

	pins   pins
	table  table
	reaper reaper

	late    sync.WaitGroup // goroutines that remove what a lease kept
	closing chan struct{}  // closed by Close
}

// New makes an empty store. It fails with ErrInvalid for limits that make no
// sense and with the arena's error if there is no memory.
func New(cfg Config) (*Store, error) {
	if cfg.Size < 64<<10 {
		return nil, fmt.Errorf("store size %d: at least 64 KiB are needed: %w", cfg.Size, ErrInvalid)
	}
	if cfg.Inodes < 0 || cfg.Inodes > math.MaxUint32 {
		return nil, fmt.Errorf("inode limit %d: must be between 0 and %d: %w", cfg.Inodes, uint32(math.MaxUint32), ErrInvalid)
	}
	if cfg.Inodes == 0 {
		cfg.Inodes = min(cfg.Size>>10, math.MaxUint32)
	}
	if cfg.RootMode == 0 {
		cfg.RootMode = 0o1777
	}
	sum := sha256.Sum256([]byte("ramserver store\x00" + cfg.Name))
	s := &Store{
		id:        binary.BigEndian.Uint64(sum[:8]),
		name:      cfg.Name,
		size:      cfg.Size,
		maxInodes: cfg.Inodes,
		arena:     cfg.Arena,
		closing:   make(chan struct{}),
	}
	if s.arena == nil {
		s.arena = arena.New(arena.Config{})
		s.ownArena = true
	}
	s.reaper.s = s
	s.room.Store(s.size)
	root, err := s.newInode(TypeDir, cfg.RootMode&ModeMask, cfg.RootUID, cfg.RootGID, time.Now().UnixNano())
	if err != nil {
		return nil, err
	}
	root.gen = binary.BigEndian.Uint64(sum[8:16])
	root.nlink = 2
	root.home = root
	s.table.put(root)
	s.root = root
	return s, nil
}

// Close gives the store's memory back. Nothing may use the store, its inodes
// or a View of them any more.
func (s *Store) Close() error {
	close(s.closing)
	s.late.Wait()
	s.reaper.drain()
	if b := s.backing.Load(); b != nil {
		b.close()
	}
	if s.ownArena {
		return s.arena.Close()
	}
	s.table.each(func(i *Inode) {
		i.data.Clear(s.freeExtent)
	})
	return nil
}

// Name is the name that the store was made with.
func (s *Store) Name() string { return s.name }

// ID identifies the store; it follows from the name.
func (s *Store) ID() uint64 { return s.id }

// Root is the root directory.
func (s *Store) Root() *Inode { return s.root }

// Statfs is the store's usage. Memory of removed files counts until it is free.
func (s *Store) Statfs() Statfs {
	return Statfs{
		TotalBytes:  s.size,
		UsedBytes:   min(s.used.Load()+s.backing.Load().used(), s.size),
		TotalInodes: s.maxInodes,
		UsedInodes:  s.inodes.Load(),
	}
}

// Handle is the persistent name of an inode: which store, which slot, and 64
// random bits that no other inode of that slot has had. A root's handle
// follows from its store's name.
type Handle struct{ Store, Ino, Gen uint64 }

// ByHandle finds an inode, or answers ErrStale. It takes no lock.
func (s *Store) ByHandle(h Handle) (*Inode, error) {
	i := s.table.get(h.Ino)
	if i == nil || i.gen != h.Gen || h.Store != s.id {
		return nil, ErrStale
	}
	return i, nil
}

// charge counts n more bytes against the limit. It reports false, and counts
// nothing, when the store is full even after everything that waits to be freed
// is free.
func (s *Store) charge(n int64) bool {
	for {
		if s.used.Add(n) <= s.room.Load() {
			return true
		}
		s.used.Add(-n)
		if !s.claim(n) && !s.reaper.help() {
			return false
		}
	}
}

func (s *Store) uncharge(n int64) {
	if used := s.used.Add(-n); s.backing.Load() != nil && s.room.Load()-used > 2*s.slack() {
		s.give(s.slack())
	}
}

// freePages drops the references of a run of pages.
func (s *Store) freeExtent(e extent.Extent) {
	var freed int64
	page := int64(e.Page)
	for off := int64(0); off < e.Len; off += page {
		if s.arena.Free(arena.Addr(e.Addr + uint64(off))) {
			freed += page
		}
	}
	s.uncharge(freed)
}

// table finds inodes by number. Slots of dead inodes are used again, with
// another generation.
type table struct {
	chunks atomic.Pointer[[]*tableChunk] // grows only

	mu   sync.Mutex
	next uint32   // (mu) the last number ever used
	free []uint32 // (mu) numbers that may be used again
}

const tableChunkSize = 1024

type tableChunk [tableChunkSize]atomic.Pointer[Inode]

func (t *table) get(ino uint64) *Inode {
	chunks := t.chunks.Load()
	if chunks == nil || ino/tableChunkSize >= uint64(len(*chunks)) {
		return nil
	}
	return (*chunks)[ino/tableChunkSize][ino%tableChunkSize].Load()
}

// number picks the inode's number; number 0 is never used.
func (t *table) number() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		ino := t.free[n-1]
		t.free = t.free[:n-1]
		return ino
	}
	t.next++
	var chunks []*tableChunk
	if p := t.chunks.Load(); p != nil {
		chunks = *p
	}
	if int(t.next/tableChunkSize) >= len(chunks) {
		// Appending may write behind the end of a slice that readers hold,
		// which they do not look at.
		chunks = append(chunks, new(tableChunk))
		t.chunks.Store(&chunks)
	}
	return t.next
}

func (t *table) put(i *Inode) {
	(*t.chunks.Load())[i.ino/tableChunkSize][i.ino%tableChunkSize].Store(i)
}

func (t *table) remove(ino uint32) {
	(*t.chunks.Load())[ino/tableChunkSize][ino%tableChunkSize].Store(nil)
	t.mu.Lock()
	t.free = append(t.free, ino)
	t.mu.Unlock()
}

// forget returns a number that was never put.
func (t *table) forget(ino uint32) {
	t.mu.Lock()
	t.free = append(t.free, ino)
	t.mu.Unlock()
}

// bytes is what the table takes.
func (t *table) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (int64(t.next)+tableChunkSize)*8 + int64(cap(t.free))*4
}

func (t *table) each(fn func(*Inode)) {
	chunks := t.chunks.Load()
	if chunks == nil {
		return
	}
	for _, c := range *chunks {
		for n := range c {
			if i := c[n].Load(); i != nil {
				fn(i)
			}
		}
	}
}
