// Package exporttest is one suite of what files do, run over the store itself
// and over every protocol that exports it.
//
// A script is a conversation: who does what, and what comes of it.
//
//	root  mkdir d 0755              -> ok
//	ann   create d/f 0644           -> acces
//
// Who is root, ann (user 1000, group 100), bob (user 1001, groups 100 and 50)
// or eve (user 1002, group 99). Each starts in an empty root directory of mode
// 1777. A name that was kept by keep stands for a handle: @h is the file
// itself, whatever becomes of its name, and @h/x is x in it. Numbers are bytes,
// times nanoseconds since 1970; n*255 is a name of 255 times n. A missing answer is
// ok.
//
// In a script of several protocols every line names a client and how it comes:
//
//	a nfs4  open f access=read deny=write
//	b nfs3  open f access=write            -> share violation
//
// What a protocol or engine answers differently stands in the table differs,
// with the reason. A line there that is answered as the others do is an error,
// so that the table stays true.
package exporttest
