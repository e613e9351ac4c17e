// Package gonfs serves the exports by github.com/willscott/go-nfs over billyfs:
// a second engine, written by others, that says what is the protocol and what
// is only ours, and what speed a server without our care has.
//
// # How a call goes
//
//	conn      reads one record, checks it, and says as whom it runs
//	go-nfs    decodes the call and makes it calls of a file system
//	tree      finds the inode that a handle in the path names
//	billyfs   does it
//
// Each connection has a go-nfs server and a handler of its own, since go-nfs
// tells a handler neither whose connection nor whose credential a call has. It
// reads, executes and answers one call after the other in one goroutine, so
// that the credential of the record read last is that of the running call.
//
// A handle is the store's, in the form of the native engine. The path that
// go-nfs is given for one is the handle itself, see tree: renames and hard links do
// not matter to it, and nothing has to be remembered or searched.
//
// # Made good before go-nfs sees a call
//
// Networks of an export, read-only exports, credentials and squash hold as in
// the native engine. Records of several fragments are joined. Other versions
// are refused with PROG_MISMATCH, other programs with PROG_UNAVAIL, other
// procedures with PROC_UNAVAIL, and what does not decode with GARBAGE_ARGS, so
// that no length in it makes go-nfs allocate more than the record has. READ is cut to 4 MiB; a record of more
// than 4 MiB and some closes the connection. LINK, which go-nfs decodes wrongly,
// is answered NOTSUPP. A listing that takes several calls is kept, so that
// cookies stay good while the directory changes: the newest one, and older ones
// up to 65,536 names.
//
// # Limits of go-nfs v0.0.4
//
//   - One call at a time on a connection; a call that waits for another holder
//     of the store holds up those behind it.
//   - LOOKUP answers NOENT for every error. Other calls know few statuses:
//     REMOVE, RMDIR and RENAME answer IO where the RFC has NOTEMPTY, ISDIR,
//     EXIST or INVAL; CREATE, MKDIR and SYMLINK answer ACCES, as do READ and
//     WRITE of what is not a file. A handle that is none is STALE, not
//     BADHANDLE, as is one that the peer is not admitted to.
//   - CREATE UNCHECKED empties a file that exists. EXCLUSIVE is NOTSUPP.
//   - CREATE, MKDIR, SYMLINK and MKNOD set attributes in steps of their own
//     after making the file.
//   - REMOVE removes empty directories and RMDIR files.
//   - MKNOD of a character device says OK and makes nothing.
//   - ACCESS grants all that is asked for, but writing in a read-only export.
//   - SETATTR cannot set the set-id and sticky bits, and a change of the
//     permissions clears them. It is several steps; where one fails, those
//     before stay. Its guard compares the time of modification.
//   - ctime and atime are shown as the time of modification, used as the size.
//   - Weak cache consistency data are of other instants than the change, and
//     missing before many changes; errors have no attributes.
//   - READDIR costs the whole directory at its first call; BADCOOKIE when the
//     listing was dropped since. "." and ".." have the cookies 0 and 1.
//     READDIRPLUS gives a handle that is STALE for a name that the caller may
//     not look up.
//   - READ may answer less than there is when the file shrinks meanwhile, and
//     then without attributes of that instant.
//   - FSINFO advertises 1 GiB for READ and WRITE, PATHCONF one link.
//   - An error of FSSTAT, FSINFO and PATHCONF is the status alone. What go-nfs
//     calls SYSTEM_ERR has the number of GARBAGE_ARGS.
//   - MKDIR without a mode makes a directory of mode 1363.
//   - MOUNT has MNT and UMNT of version 3 alone; no portmapper.
//   - No duplicate request cache: a repeated REMOVE answers NOENT.
//   - A panic in go-nfs ends the process.
package gonfs
