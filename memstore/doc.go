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
//	    Inode.mu of other inodes       two without waiting for the second: lockFiles
//	      Inode.mu of their streams    likewise
//	      inode table, arena, reaper,  leaves; never two at once
//	      backing, pins
//
// No caller's code runs with one of these held: events of watches are queued
// and waiters are woken through channels, and what a change frees in bulk is
// left to the reaper. System calls under a lock copy memory or resize a tmpfs,
// and wait for nobody.
//
// The kernel has a lock of its own for a backed file, which it holds while a local
// process writes there, and such a process may wait for its write's source: a
// mapping of another file which the store is asked to read, of a folder that the
// same machine has mounted from the store's servers, or of something that never
// comes. So what needs the kernel's lock (to change such a file, or to search it
// for holes) is done with no lock of the store held (Inode.leave): who asks for it
// waits, and everything else that is asked of that file and of others is answered.
// Nor does one wait for it in whose way the process's source may come, the reader
// of a connection (Caller.InPlace).
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
// A backed file's bytes are in a file of a tmpfs instead, which is mounted
// nowhere, so that the kernel of the local mount lets processes read, write and
// map them by themselves (Local.Use). It has no name there; a descriptor keeps
// it. A file becomes backed when a process opens it so, or makes it large, and
// stays it, unless it is small or cut to nothing when no process has it any more.
// What is cloned from or to it is copied. While a process may write to it without
// the store it is loose: what the store knows of its size and times is brought up
// to date under its lock when anybody asks, its change counter grows each time,
// as does the change time of those who have only that (Attr.Shown), and nobody gets
// a lease on it. Such writes heed no mandatory lock.
//
// The tmpfs is as large as the store's limit without what else is used, so that
// it is one limit: who needs memory for pages takes it from the tmpfs's size, and
// gives it back.
//
// The limit of a store counts pages by their size and a fixed cost for each
// inode, name and extended attribute. What was removed counts until it is
// freed; a call that finds the store full frees it itself before it answers
// ErrNoSpace.
//
// # Leases
//
// A [Lease] lets its holder cache what it reads (R), what it writes (W) and the
// open itself (H). R is granted while no other holder has the file open for
// writing, W while none has it open at all, and never both R and W, or W twice,
// to different holders. That is decided under the inode's lock, so that a lease
// is either there before another's call, and stops it, or is not granted.
//
// What breaks which rights of other holders, of leases that cover data only
// (SMB) and of those that cover attributes too (NFSv4, Holder.CachesAttrs):
//
//	operation                             data  data, attributes
//	open for reading, READ, SEEK, clone    W     W
//	open for writing, WRITE, truncate      RW    RW
//	open that denies reading               RW    RW
//	attributes asked for                   -     W
//	locks asked for                        W     W
//	mandatory lock taken                   RW    RW
//	attributes, xattrs changed             W     RW
//	link added                             W     RW
//	remove, rename, replaced by rename     H     RWH
//	refused by a share mode                H     H
//
// A call that meets such a lease changes nothing and answers Wait. It begins the
// break: every holder in its way is told, each once and without a lock, and the
// Wait is done when that holder has given up what it was asked for or its
// protocol has revoked it (Lease.Yield). No lease is granted meanwhile, nor for a
// while afterwards.
//
// A holder's own calls break nothing of its own; NFSv3 clients and the server
// itself are nobody's holder. The store's mount on this machine is a holder like
// others, but its own cache is a lease of another kind, which is broken after the
// change: see Local.
package memstore
