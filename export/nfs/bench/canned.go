//go:build linux

package main

import (
	"encoding/binary"
	"net"

	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

const (
	batchSize  = 128 << 10 // bytes of replies that are worth a system call
	inSize     = 256 << 10 // bytes read by one system call
	largeSize  = 64 << 10  // data of more bytes is not copied through a batch
	cannedFH   = 32        // bytes
	headerSize = 256       // bytes of a large WRITE that are looked at
)

// canned is the ceiling: a server that moves bytes as the engine does, with one
// goroutine for a connection, large reads from the socket and replies written in
// batches, but that looks at nothing of a call except what selects the reply. It
// shows what the kernel, the runtime and the client leave to be had.
type canned struct {
	replies [nfs3.ProcCommit + 1][]byte // records by NFS procedure, the XID left open
	mnt     []byte
	pages   [][]byte // what every large READ is answered from
}

func newCanned() *canned {
	fh := make([]byte, cannedFH)
	attr := nfs3.PostOpAttr{Follows: true, Attr: nfs3.Fattr{Type: nfs3.TypeReg, Size: fileSize}}
	wcc := nfs3.WccData{HasBefore: true, After: attr}
	dir := nfs3.CreateRes{FH: nfs3.PostOpFH{Follows: true, FH: fh}, Attr: attr, Dir: wcc}
	c := &canned{}
	for proc, res := range map[int]interface{ Encode(*xdr.Writer) }{
		nfs3.ProcNull:    nil,
		nfs3.ProcGetAttr: &nfs3.GetAttrRes{Attr: attr.Attr},
		nfs3.ProcLookup:  &nfs3.LookupRes{FH: fh, Attr: attr, Dir: attr},
		nfs3.ProcRead:    &nfs3.ReadRes{Attr: attr},
		nfs3.ProcWrite:   &nfs3.WriteRes{Wcc: wcc, Committed: nfs3.FileSync},
		nfs3.ProcCreate:  &dir,
		nfs3.ProcMkdir:   &dir,
		nfs3.ProcRemove:  &nfs3.WccRes{Wcc: wcc},
		nfs3.ProcRmdir:   &nfs3.WccRes{Wcc: wcc},
	} {
		c.replies[proc] = cannedReply(res)
	}
	c.mnt = cannedReply(&nfs3.MountRes{FH: fh, Flavors: []uint32{rpc.AuthSys}})
	for range maxData / largeSize {
		c.pages = append(c.pages, make([]byte, largeSize))
	}
	return c
}

func cannedReply(res interface{ Encode(*xdr.Writer) }) []byte {
	var w xdr.Writer
	at := rpc.BeginRecord(&w)
	rpc.Accepted(&w, 0, rpc.Success)
	if res != nil {
		res.Encode(&w)
	}
	rpc.EndRecord(&w, at, 0)
	return w.B
}

func (c *canned) serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go c.serveConn(conn)
	}
}

// serveConn answers what arrives until the connection ends or sends what is not
// in the repertoire.
func (c *canned) serveConn(conn net.Conn) {
	defer conn.Close()
	in := make([]byte, inSize)
	out := make([]byte, 0, batchSize+largeSize+1024)
	hot := make([]byte, maxData)
	vecs := make([][]byte, 0, 1+len(c.pages))
	var unsent net.Buffers
	start, end := 0, 0
	for {
		for end-start >= rpc.MarkSize {
			size, _ := rpc.MarkOf(in[start:])
			rec := in[start+rpc.MarkSize : end]
			if len(rec) < min(size, headerSize) || len(rec) < size && size <= largeSize {
				break
			}
			proc := binary.BigEndian.Uint32(rec[20:])
			reply := c.mnt
			if binary.BigEndian.Uint32(rec[12:]) == rpc.ProgramNFS {
				reply = c.replies[proc]
			}
			if reply == nil {
				return
			}
			at := len(out)
			out = append(out, reply...)
			copy(out[at+rpc.MarkSize:], rec[:4])
			switch {
			case len(rec) < size:
				// A large WRITE: the rest of its data goes into the same memory every time.
				for rest := size - len(rec); rest > 0; {
					n, err := conn.Read(hot[:min(rest, len(hot))])
					if err != nil {
						return
					}
					rest -= n
				}
				start = end
				continue
			case proc == nfs3.ProcRead:
				count := int(binary.BigEndian.Uint32(rec[size-4:])) // the last of the arguments
				binary.BigEndian.PutUint32(out[at:], rpc.LastFragment|uint32(len(reply)-rpc.MarkSize+count))
				binary.BigEndian.PutUint32(out[len(out)-12:], uint32(count))
				binary.BigEndian.PutUint32(out[len(out)-4:], uint32(count))
				if count <= largeSize {
					out = append(out, c.pages[0][:count]...)
					break
				}
				vecs = append(vecs[:0], out)
				vecs = append(vecs, c.pages[:count/largeSize]...)
				unsent = vecs
				if _, err := unsent.WriteTo(conn); err != nil {
					return
				}
				out = out[:0]
			}
			start += rpc.MarkSize + size
			if len(out) >= batchSize {
				if _, err := conn.Write(out); err != nil {
					return
				}
				out = out[:0]
			}
		}
		if len(out) > 0 {
			if _, err := conn.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
		end = copy(in, in[start:end])
		start = 0
		n, err := conn.Read(in[end:])
		if err != nil {
			return
		}
		end += n
	}
}
