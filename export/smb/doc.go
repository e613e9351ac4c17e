// Package smb serves the exports over SMB 2.0.2 to 3.1.1 (MS-SMB2): an export is
// a share of its name, and IPC$ has the pipes that clients ask for lists and names.
//
// # How a request goes
//
//	conn.go       run: one goroutine reads a connection into its buffer
//	              frame: the next complete frame
//	request.go    frame: decrypts it; run: executes its commands one by one
//	              check: session, signature, what the command needs
//	commands.go   the table of commands
//	negotiate.go, session.go, tree.go, cmd_*.go
//	              the commands: decode r.msg, make one call of the store, append
//	              the reply's body to r.w
//	request.go    endReply, endFrame: header, signature, encryption
//	conn.go       flush: the batch goes out when no complete frame is left, when
//	              it is large, or before the connection waits for anything else
//
// A frame may have several commands, a compound. Their replies are in one frame
// too, unless one of them has to wait (async.go): then what came before is sent,
// the client is told that this one waits, and the rest goes on, in place or, if it
// is related, when the one before is done.
//
// # Goroutines
//
// A connection has one, for its life. It executes everything in place and in
// order. A command that waits, for another's lock or lease or for a change, has
// its own until its reply is sent. Each server has a janitor besides.
//
// # Memory
//
// An idle connection holds 528 bytes, into which most requests fit as a whole. For
// executing one, or receiving a larger one, it takes a work: buffers for requests
// and replies, from a pool and from a budget that all connections share. It gives
// it back a second after the last request, or at once when others wait. Frames and
// replies that do not fit, pinned pages and waiting requests count against a
// second budget. Frames are 64 KiB at most until somebody has logged on, and as
// large as the largest WRITE and its header afterwards.
//
// Clients that stop in the middle of a frame, or stop taking replies, hold what
// they have for a minute without progress, or for two seconds while others wait;
// then their connection is closed, as is one on which nobody logs on for a minute.
//
// # Who is believed
//
// Only users with a password; there is no guest and nobody anonymous. Requests are
// signed, or encrypted, unless the server's settings and the client agree that
// they need not be. A session belongs to the connection that made it.
//
// # Locks
//
//	session.mu         held while a request of the session is executed; over calls
//	                   of the store
//	  Users.mu
//	  conn.mu          credits, and requests that wait
//	  Server.mu        connections, listeners, sessions
//	    budget.mu      leaves, as is the next
//	  signer.mu
//	link.Link          sends one batch at a time
package smb
