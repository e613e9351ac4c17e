//go:build linux

package main

import (
	"encoding/binary"
	"fmt"

	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs4"
	"ramserver/export/nfs/xdr"
)

// slots is how many compounds may be in flight on a connection.
const slots = 64

// prepare4 makes the session and the file of a connection.
func (t *target) prepare4() (err error) {
	if t.sess, err = t.c.Session(client.SessionOptions{Owner: t.name, Minor: nfs4.Minor1, Slots: slots}); err != nil {
		return fmt.Errorf("%s: session: %w", t.s.name, err)
	}
	res, fh, err := t.sess.Open(t.root, openArgs(t.name))
	if err != nil {
		return fmt.Errorf("%s: open: %w", t.s.name, err)
	}
	t.file, t.open = fh, res.Stateid
	if err := t.write4(&op{depth: 8, calls: fileSize / maxData, bytes: maxData}); err != nil {
		return fmt.Errorf("%s: write: %w", t.s.name, err)
	}
	return nil
}

// openArgs creates a file, which must not be there.
func openArgs(name string) nfs4.OpenArgs {
	mode := uint32(0o644)
	attr := client.SetAttr{Mode: &mode}
	return nfs4.OpenArgs{Access: nfs4.ShareBoth, Owner: nfs4.Owner{Owner: []byte("owner")}, Create: true,
		Mode: nfs4.Guarded, Attr: attr.Fattr(), Name: name}
}

// compound is the bytes of a call up to where it differs from the next: SEQUENCE,
// PUTFH and n operations. With once the server keeps the results.
func (t *target) compound(fh []byte, n int, once bool, first func(w *xdr.Writer)) []byte {
	var w xdr.Writer
	t.sess.AppendCompound(&w, 1+n, once)
	w.Uint32(uint32(nfs4.OpPutFH))
	w.Opaque(fh)
	first(&w)
	return w.B
}

// getattr4 is PUTFH, GETATTR: of what version 3 answers too.
func (t *target) getattr4(op *op) error {
	args := nfs4.GetAttrArgs{Mask: nfs4.Bits(nfs4.AttrType, nfs4.AttrChange, nfs4.AttrSize, nfs4.AttrFSID, nfs4.AttrFileID, nfs4.AttrMode,
		nfs4.AttrNumLinks, nfs4.AttrOwner, nfs4.AttrOwnerGroup, nfs4.AttrRawDev, nfs4.AttrSpaceUsed, nfs4.AttrTimeAccess,
		nfs4.AttrTimeMetadata, nfs4.AttrTimeModify)}
	return t.same4(op, t.compound(t.file, 1, false, func(w *xdr.Writer) {
		w.Uint32(uint32(nfs4.OpGetAttr))
		args.Encode(w)
	}))
}

// lookup4 is PUTFH, LOOKUP, GETFH.
func (t *target) lookup4(op *op) error {
	return t.same4(op, t.compound(t.root, 2, false, func(w *xdr.Writer) {
		w.Uint32(uint32(nfs4.OpLookup))
		w.String(t.name)
		w.Uint32(uint32(nfs4.OpGetFH))
	}))
}

func (t *target) same4(op *op, msg []byte) error {
	return t.sess.Run(op.depth, op.calls, func(_ int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		return nil
	})
}

// read4 is PUTFH, READ as read reads.
func (t *target) read4(op *op) error {
	args := nfs4.ReadArgs{Stateid: t.open, Count: uint32(op.bytes)}
	msg := t.compound(t.file, 1, false, func(w *xdr.Writer) {
		w.Uint32(uint32(nfs4.OpRead))
		args.Encode(w)
	})
	return t.sess.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		binary.BigEndian.PutUint64(w.B[len(w.B)-12:], uint64(i*op.bytes%fileSize))
		return nil
	})
}

// write4 is PUTFH, WRITE as write writes.
func (t *target) write4(op *op) error {
	args := nfs4.WriteArgs{Stateid: t.open, Stable: nfs4.FileSync}
	msg := t.compound(t.file, 1, false, func(w *xdr.Writer) {
		w.Uint32(uint32(nfs4.OpWrite))
		args.EncodeHead(w, uint32(op.bytes))
	})
	data := t.data[:op.bytes]
	return t.sess.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		binary.BigEndian.PutUint64(w.B[len(w.B)-16:], uint64(i*op.bytes%fileSize))
		if op.bytes >= largeSize {
			return data
		}
		w.B = append(w.B, data...)
		return nil
	})
}

// create4 is PUTFH, OPEN, CLOSE: names in a new folder.
func (t *target) create4(op *op) error {
	t.round++
	var err error
	if t.dir, err = t.sess.Create(t.root, nfs4.CreateArgs{Type: nfs4.TypeDir, Name: fmt.Sprintf("%s-dir-%d", t.name, t.round)}); err != nil {
		return err
	}
	args := openArgs("")
	var rest xdr.Writer // behind the name
	rest.Uint32(uint32(nfs4.OpClose))
	closing := nfs4.CloseArgs{Stateid: nfs4.CurrentStateid}
	closing.Encode(&rest)
	msg := t.compound(t.dir, 2, true, func(w *xdr.Writer) {
		w.Uint32(uint32(nfs4.OpOpen))
		args.Encode(w)
		w.B = w.B[:len(w.B)-4] // the empty name
	})
	return t.sess.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		appendName(w, "file-", i)
		w.B = append(w.B, rest.B...)
		return nil
	})
}

// createAndRemove4 makes names in a new folder and takes them away.
func (t *target) createAndRemove4(op *op) error {
	if err := t.create4(op); err != nil {
		return err
	}
	return t.remove4(op)
}

// find4 looks up names that the last create made.
func (t *target) find4(op *op) error { return t.names4(nfs4.OpLookup, false, op) }

// remove4 is PUTFH, REMOVE: of the names that the last create made.
func (t *target) remove4(op *op) error { return t.names4(nfs4.OpRemove, true, op) }

func (t *target) names4(number nfs4.Op, once bool, op *op) error {
	msg := t.compound(t.dir, 1, once, func(w *xdr.Writer) { w.Uint32(uint32(number)) })
	return t.sess.Run(op.depth, op.calls, func(i int, w *xdr.Writer) []byte {
		w.B = append(w.B, msg...)
		appendName(w, "file-", i)
		return nil
	})
}
