// Package nfs serves the exports over NFS versions 3, 4.0, 4.1 and 4.2 (RFC 1813,
// RFC 7530, RFC 8881, RFC 7862, RFC 8276), MOUNT versions 1 and 3, and NLM version 4 with NSM
// for the locks of version 3 (XNFS), by TCP on one port, and finds or is the
// portmapper.
//
// # How a request goes
//
//	conn.go    run: one goroutine reads a connection into its buffer
//	           record: the next complete record, put together in place
//	call.go    serve: RPC header, credential, procedure; the replay cache
//	server.go  programs: the table of procedures
//	proc3.go   a procedure: decode the arguments in place, resolve the handles,
//	           make one call of the store, append the results to the batch
//	handle.go  what a handle on the wire is
//	status.go  what the store's errors are on the wire
//	nlm4.go    the procedures of NLM; nlm.go who holds what by them
//	nsm.go     restarts of clients and of the server
//	conn.go    flush: the batch goes out when no complete record is left, when
//	           it is large, or before the connection waits for anything else
//
// So a client that has many requests under way costs two system calls for all
// of them, and none of them allocates, takes a lock of the server, or moves to
// another goroutine.
//
// Of version 4 there is one procedure, COMPOUND (compound.go): a list of
// operations, each with an entry in a table there, which share a current
// filehandle and stop at the first that fails. The first, SEQUENCE, takes a slot
// of the client's session, which keeps the reply for a retransmission; what the
// client has open or locked is in state.go, session.go and op_*.go. The client is
// called by its own connections (callback.go): what is received there with the
// type of a reply goes to who waits for it. Delegations, which it is called for,
// are in deleg.go.
//
// # Large data
//
// A READ of more than 64 KiB is answered from the store's pages: they stay
// pinned until the write of header and pages returns, and nothing is copied.
//
// A WRITE of whole 64 KiB pages is executed in two parts. As soon as its
// header has arrived, the rest of its record goes from the socket straight
// into new pages; when all of it is there they replace the file's. Until then
// nothing is locked, and nothing shows. So it is of version 4 if the WRITE is the
// first operation on a file of its compound and little follows it. Any other
// WRITE is put together in a buffer and takes one copy.
//
// # Goroutines
//
// A connection has one, for its life. It executes everything in place and in
// order: no procedure touches more than the largest READ or WRITE, or lists
// more than 64 KiB of names. A call of the store that answers memstore.Wait
// leaves it: a goroutine with a copy of the request tries again when the other
// holder has given way, for two seconds, and then answers JUKEBOX. So does a change
// of a file to which a process of this machine may be writing, if the client is of
// this machine too (memstore.Caller.InPlace). Replies to
// changes that the store's mount on this machine has to forget something for are
// sent by a goroutine when it has (settle.go). Each server has a janitor besides.
//
// # Memory
//
// An idle connection holds 512 bytes, into which most calls fit as a whole. For
// executing one, or receiving a larger one, it takes a work: buffers for
// requests and replies, from a pool and from a budget that all connections
// share. It gives it back a second after the last call, or at once when others
// wait. Records that do not fit, payloads and pinned pages count against a
// second budget, so that who waits for one holds at most the other; a READ
// that finds it used up is answered in part. The first record is 64 KiB at
// most, later ones the largest WRITE and its header.
//
// Clients that stop in the middle of a record, or stop taking replies, hold
// what they have for a minute without progress, or for two seconds while
// others wait; then their connection is closed. Connections themselves are
// bounded: the one that has been idle for longest makes room.
//
// # Locks
//
//	client40.turn      what an NFSv4.0 client does in order; over calls of the store
//	  openOwner.mu     what one NFSv4 owner has open; over calls of the store
//	    clients.mu     NFSv4 clients
//	      delegation.mu  one; over calls of the store
//	        client4.mu what a client holds
//	          table.mu, slot.mu, backchannel.mu, callbacks.mu
//	nlmClient.mu       what one NLM client holds; over calls of the store
//	  nlm.mu           NLM clients
//	  hostList.mu
//	nlmClient.back     held over a call to the client
//	Server.mu          connections and listeners
//	  budget.mu        leaves, as are the next
//	replaySet.mu
//	mountList.mu
//	settling.mu
//	link.Link          sends one batch at a time
//
// But for those that say so, and the NLM clients', none is held over a call of the
// store.
package nfs
