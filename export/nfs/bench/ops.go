//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

const (
	fileSize = 64 << 20 // bytes of the warm file
	maxData  = 1 << 20  // bytes of the largest READ and WRITE
)

// op is one kind of load and what is asked of the engine under it.
type op struct {
	name  string
	depth int // calls in flight on a connection
	calls int // in one round, on a connection
	bytes int // of data a call
	run   func(t *target, op *op) error

	rate     float64                       // calls a second, at least this part of the canned server's; 0: not asked
	cpu      float64                       // server CPU a call, at most this many times the canned server's
	baseline float64                       // calls a second, at least this many times go-nfs's; 0: not asked
	noAlloc  bool                          // the engine allocates nothing for a call
	warm     func(t *target, op *op) error // what comes before, unmeasured; nil: nothing

	// The same by version 4.1; nil: not measured.
	rate4       float64 // calls a second, at least this part of version 3's
	run4, warm4 func(t *target, op *op) error
}

// The order matters: remove takes away what create made.
var ops = []op{
	{"null", 32, 300000, 0, (*target).null, 0.85, 1.4, 0, false, (*target).null, 0, nil, nil},
	{"getattr", 32, 300000, 0, (*target).getattr, 0.85, 1.4, 0, true, (*target).getattr, 0.75, (*target).getattr4, (*target).getattr4},
	{"lookup", 32, 300000, 0, (*target).lookup, 0.85, 1.4, 0, false, (*target).lookup, 0.75, (*target).lookup4, (*target).lookup4},
	{"read4k", 32, 192 << 10, 4096, (*target).read, 0.85, 1.4, 8, true, (*target).read, 0.75, (*target).read4, (*target).read4},
	{"write4k", 32, 192 << 10, 4096, (*target).write, 0.85, 1.4, 8, true, (*target).write, 0.75, (*target).write4, (*target).write4},
	{"create", 32, 100000, 0, (*target).create, 0.70, 2.5, 10, false, (*target).createAndRemove, 0.75, (*target).create4, (*target).createAndRemove4},
	{"remove", 32, 100000, 0, (*target).remove, 0.70, 2.5, 0, false, (*target).find, 0.75, (*target).remove4, (*target).find4},
	{"read1m", 8, 512, maxData, (*target).read, 0.85, 1.4, 3, false, (*target).read, 0.95, (*target).read4, (*target).read4},
	{"write1m", 8, 512, maxData, (*target).write, 0.85, 1.4, 0, false, (*target).write, 0.95, (*target).write4, (*target).write4},
	{"fresh1m", 8, 128, maxData, (*target).fresh, 0, 0, 0, false, nil, 0, nil, nil},
}

// target is a connection to a server, with the files it works on.
type target struct {
	s     *server
	c     *client.Client
	root  []byte
	name  string // of the warm file
	file  []byte
	dir   []byte // of the names that create makes
	round int
	data  []byte

	sess *client.Session // nil: version 3
	open nfs4.Stateid    // of file, in the session
}

// connect makes a connection to a server and mounts it.
func connect(s *server, name string) (*target, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	mnt, err := c.Mount("/")
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: mount: %w", s.name, err)
	}
	return &target{s: s, c: c, root: mnt.FH, name: name, data: make([]byte, maxData)}, nil
}

// prepare connects and makes the files of the connection of the given number.
func prepare(s *server, number int) (*target, error) {
	t, err := connect(s, fmt.Sprintf("warm-%d", number))
	if err != nil {
		return nil, err
	}
	if s.name == native4 {
		return t, t.prepare4()
	}
	if t.file, err = t.makeFile(t.name); err != nil {
		return nil, fmt.Errorf("%s: create: %w", s.name, err)
	}
	if err := t.write(&op{depth: 8, calls: fileSize / maxData, bytes: maxData}); err != nil {
		return nil, fmt.Errorf("%s: write: %w", s.name, err)
	}
	return t, nil
}

// refresh gets the handles again: go-nfs forgets them after it gave out others.
func (t *target) refresh() error {
	if t.sess != nil {
		return nil
	}
	mnt, err := t.c.Mount("/")
	if err != nil {
		return err
	}
	t.root = mnt.FH
	res, err := t.c.Lookup(t.root, t.name)
	t.file = res.FH
	return err
}

func (t *target) makeFile(name string) ([]byte, error) {
	res, err := t.c.Create(nfs3.CreateArgs{Where: nfs3.DirOp{Dir: t.root, Name: name}, Attr: nfs3.Sattr{SetMode: true, Mode: 0o644}})
	return res.FH.FH, err
}

// template is the bytes of a call up to where it differs from the next.
func (t *target) template(proc uint32, args func(w *xdr.Writer)) []byte {
	var w xdr.Writer
	t.c.AppendCall(&w, rpc.ProgramNFS, nfs3.Version, proc)
	args(&w)
	return w.B
}

// same makes the same call over and over.
func (t *target) same(op *op, proc uint32, args func(w *xdr.Writer)) error {
	msg := t.template(proc, args)
	return t.c.Run(op.depth, op.calls, func(_ int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		return nil
	}, ok)
}

func (t *target) null(op *op) error {
	return t.same(op, nfs3.ProcNull, func(*xdr.Writer) {})
}

func (t *target) getattr(op *op) error {
	return t.same(op, nfs3.ProcGetAttr, (&nfs3.FHArgs{FH: t.file}).Encode)
}

func (t *target) lookup(op *op) error {
	return t.same(op, nfs3.ProcLookup, (&nfs3.DirOp{Dir: t.root, Name: t.name}).Encode)
}

// read reads the warm file from its start to its end, again and again.
func (t *target) read(op *op) error {
	msg := t.template(nfs3.ProcRead, (&nfs3.ReadArgs{FH: t.file, Count: uint32(op.bytes)}).Encode)
	return t.c.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		binary.BigEndian.PutUint64(w.B[len(w.B)-12:], uint64(i*op.bytes%fileSize))
		return nil
	}, ok)
}

// write overwrites the warm file as read reads it.
func (t *target) write(op *op) error { return t.writeTo(t.file, fileSize, op) }

// fresh writes a new file, which stays, so that its memory is as new.
func (t *target) fresh(op *op) error {
	t.round++
	fh, err := t.makeFile(fmt.Sprintf("%s-fresh-%d", t.name, t.round))
	if err != nil {
		return err
	}
	return t.writeTo(fh, op.calls*op.bytes, op)
}

func (t *target) writeTo(fh []byte, size int, op *op) error {
	args := nfs3.WriteArgs{FH: fh, Count: uint32(op.bytes), Stable: nfs3.FileSync}
	msg := t.template(nfs3.ProcWrite, func(w *xdr.Writer) { args.EncodeHead(w, args.Count) })
	data := t.data[:op.bytes]
	return t.c.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		binary.BigEndian.PutUint64(w.B[len(w.B)-20:], uint64(i*op.bytes%size))
		if op.bytes >= largeSize {
			return data
		}
		w.B = append(w.B, data...)
		return nil
	}, ok)
}

// create makes names in a new folder.
func (t *target) create(op *op) error {
	t.round++
	res, err := t.c.Mkdir(t.root, fmt.Sprintf("%s-dir-%d", t.name, t.round), nfs3.Sattr{SetMode: true, Mode: 0o755})
	if err != nil {
		return err
	}
	t.dir = res.FH.FH
	return t.createIn(t.dir, op)
}

func (t *target) createIn(dir []byte, op *op) error {
	msg := t.template(nfs3.ProcCreate, func(w *xdr.Writer) { w.Opaque(dir) })
	how := nfs3.Sattr{SetMode: true, Mode: 0o644}
	return t.c.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		appendName(w, "file-", i)
		w.Uint32(uint32(nfs3.Guarded))
		how.Encode(w)
		return nil
	}, ok)
}

// createAndRemove makes names in a new folder and takes them away.
func (t *target) createAndRemove(op *op) error {
	if err := t.create(op); err != nil {
		return err
	}
	return t.remove(op)
}

// find looks up names that the last create made.
func (t *target) find(op *op) error { return t.names(t.dir, nfs3.ProcLookup, op) }

// remove takes the names away that the last create made.
func (t *target) remove(op *op) error { return t.names(t.dir, nfs3.ProcRemove, op) }

// names calls LOOKUP or REMOVE for the names that createIn makes.
func (t *target) names(dir []byte, proc uint32, op *op) error {
	msg := t.template(proc, func(w *xdr.Writer) { w.Opaque(dir) })
	return t.c.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		appendName(w, "file-", i)
		return nil
	}, ok)
}

// appendName writes the i-th name: the prefix and 10,000,000 + i.
func appendName(w *xdr.Writer, prefix string, i int) {
	at := w.Len()
	w.Uint32(0)
	w.B = append(w.B, prefix...)
	w.B = strconv.AppendInt(w.B, int64(10_000_000+i), 10)
	n := w.Len() - at - 4
	w.PatchUint32(at, uint32(n))
	w.Pad(n)
}

// ok checks the header and the status of a reply, without results but for NULL.
func ok(_ int, reply []byte) error {
	r := xdr.NewReader(reply)
	if _, err := rpc.DecodeReply(&r); err != nil {
		return err
	}
	if r.Len() == 0 {
		return nil
	}
	if s := nfs3.Status(r.Uint32()); s != nfs3.OK {
		return s
	}
	return nil
}
