// Package memstore is a concurrent file store held in memory: the tree, the
// data and every state that two protocols can see (opens, share modes,
// byte-range locks, leases, watches) of a RAM disk.
//
// A [Store] is one RAM disk with its own limits. An [Inode] is a file, a
// directory or a special file; names are looked up in directories, and a
// [Handle] names an inode for as long as it lives. Every operation is a method
// that takes the [Caller] on whose behalf it runs, checks that caller's
// permission, makes the whole change under the locks of the inodes concerned,
// and returns the attributes from before and after it.
//
// A call that has to wait for another holder (a lease being broken, a lock)
// changes nothing and answers [Wait]; the caller tries again when it is done.
//
// # Locks
//
//	Store.renameMu                     moves of directories between directories
//	  Inode.mu of directories          by inode number
//	    Inode.mu of other inodes       by inode number
//	      inode table, arena, reaper   leaves; never two at once
//
// No caller's code runs with one of these held: events of watches are queued
// and waiters are woken through channels, and what a change frees in bulk is
// left to the reaper. No lock is held while anybody outside is waited for; the
// only system calls under one are the arena's, which copy memory.
//
// # Memory
//
// File data lives in pages of the arena, outside the Go heap (package arena),
// mapped by file offset (package extent). A page never crosses a multiple of
// 64 KiB of its file. Three forms occur in such a slot: one page of 64 KiB; a
// page of any class at the start of the slot that ends at or behind the end of
// the file, which grows as the file does; pages of 4 KiB at multiples of
// 4 KiB, where a sparse file was written. Bytes of a page behind the end of
// the file are undefined; they are cleared when the file grows over them.
// Pages are counted references: a clone shares them, and a write to a shared
// page replaces it by a copy.
//
// The limit of a store counts pages by their size and a fixed cost for each
// inode, name and extended attribute. What was removed counts until it is
// freed; a call that finds the store full frees it itself before it answers
// ErrNoSpace.
//
// # Leases
//
// What breaks which caching grant of other holders; a call that meets one
// answers Wait and changes nothing:
//
//	operation                           breaks
//	open for reading, READ              W
//	open for writing, WRITE, truncate   R W
//	attributes asked for                W of holders that answer for them
//	attributes changed                  W
//	a link added                        W
//	remove, rename, replaced by rename  H
//
// Nothing grants a lease yet. The cache of the store's mount on this machine is a
// lease that is broken after the change instead: see Local.
package memstore
