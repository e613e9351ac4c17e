// Package fusefs mounts a store on this machine through the kernel's FUSE.
//
// The mount works on the store's own inodes, in the process that serves them
// over the network. It speaks to the kernel by the raw requests of FUSE; a
// node's id is its inode's number, and an inode that the kernel knows outlives
// its last name (memstore.Local), so that what is open, a working directory or
// an O_PATH descriptor stays usable without renaming anything behind the scenes.
//
// # Permissions
//
// The kernel checks every permission (default_permissions): it knows the
// caller's groups and capabilities, which a request does not carry. The store
// is therefore called as root. What is created gets the caller's uid, and its
// gid unless the directory is set-gid. Set-id bits are the store's to clear
// when the kernel says that the writer must not keep them
// (FUSE_HANDLE_KILLPRIV_V2).
//
// # Caching
//
// The kernel caches names, absent names, attributes, symlinks and data without
// a limit of time. A change by anybody else is acknowledged to him after the
// kernel has forgotten what it made stale; see invalidate. Writes go through to
// the store at once. What a process changes through a mapping reaches the store
// when the kernel writes it back: by msync, munmap, fsync, close, or when
// somebody else changes the file.
//
// So what is read through the cache is in memory twice: in the store, and in the
// kernel's cache, which the kernel drops as that of any file when memory is short,
// and when the file changes. It is not dropped sooner: reads would be requests then,
// and mappings need it.
//
// # Passthrough
//
// As root with Linux 6.9 or later the kernel reads, writes and maps a large file,
// or one that is open to read and write, without a request: its bytes are in a
// tmpfs of the store's, which the kernel is given as the file's backing (see
// memstore, Local.Use). Such a file is in memory once. One that others have
// written moves there when it is opened, for which the store needs as much free
// again for a moment; else it is cached. The kernel keeps no attributes of it
// while a process may change it by a mapping. It does not have a file passed
// through and cached at the same time: a file that is small and open for reading
// stays cached when somebody else opens it to read and write.
//
// # Locks
//
// fcntl and flock locks are ranges in the store's lock table, where network
// clients' locks are too. As on a Linux NFS mount, flock is a lock of the whole
// range, and so conflicts with fcntl locks of the same file. On a mount of a store
// that nobody else uses (Options.Alone) the kernel keeps the locks, as on a file
// system of its own, and a close needs no request.
package fusefs
