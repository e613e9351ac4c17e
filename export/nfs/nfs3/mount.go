package nfs3

import (
	"fmt"

	"ramserver/export/nfs/xdr"
)

// Versions of the MOUNT program: 1, RFC 1094 appendix A, and 3, RFC 1813
// appendix I.
const (
	MountVersion1 = 1
	MountVersion3 = 3
)

// Procedures of the MOUNT program. Version 1 knows one more than version 3.
const (
	MountProcNull      = 0
	MountProcMnt       = 1
	MountProcDump      = 2
	MountProcUmnt      = 3
	MountProcUmntAll   = 4
	MountProcExport    = 5
	MountProcExportAll = 6 // version 1: the same as EXPORT
)

// Limits in bytes, RFC 1813 section 5.1.4.
const (
	MaxMountPath = 1024 // MNTPATHLEN
	MaxMountName = 255  // MNTNAMLEN
	FHSize1      = 32   // FHSIZE: the fixed length of a version 1 handle, RFC 1094 section 2.3.3
)

// MountStatus is mountstat3, RFC 1813 section 5.1.5; version 1 has the UNIX
// error numbers, which are the same. It is an error to a client when it is not
// [MountOK].
type MountStatus uint32

// Status values of MNT.
const (
	MountOK             MountStatus = 0
	MountErrPerm        MountStatus = 1
	MountErrNoEnt       MountStatus = 2
	MountErrIO          MountStatus = 5
	MountErrAcces       MountStatus = 13
	MountErrNotDir      MountStatus = 20
	MountErrInval       MountStatus = 22
	MountErrNameTooLong MountStatus = 63
	MountErrNotSupp     MountStatus = 10004
	MountErrServerFault MountStatus = 10006
)

// String returns the name in RFC 1813 without its prefix: "NOENT".
func (s MountStatus) String() string {
	switch s {
	case MountOK, MountErrPerm, MountErrNoEnt, MountErrIO, MountErrAcces, MountErrNotDir, MountErrInval,
		MountErrNameTooLong, MountErrNotSupp, MountErrServerFault:
		return Status(s).String() // the values have the same names there
	}
	return fmt.Sprintf("mountstat3 %d", uint32(s))
}

func (s MountStatus) Error() string { return "MNT3ERR_" + s.String() }

// MountPath is dirpath, the argument of MNT and UMNT, RFC 1813 sections 5.2.1
// and 5.2.3.
type MountPath struct{ Path string }

// Decode reads a dirpath.
func (a *MountPath) Decode(r *xdr.Reader) { a.Path = r.String(MaxMountPath) }

// Encode writes a dirpath.
func (a *MountPath) Encode(w *xdr.Writer) { w.String(a.Path) }

// MountRes is mountres3, RFC 1813 section 5.2.1.
type MountRes struct {
	Status  MountStatus
	FH      []byte   // with MountOK only
	Flavors []uint32 // RPC authentication flavors served; with MountOK only
}

// maxFlavors bounds the list of flavors, which the RFC does not: IANA has
// assigned fewer.
const maxFlavors = 256

// Decode reads the results.
func (a *MountRes) Decode(r *xdr.Reader) {
	if a.Status = MountStatus(r.Uint32()); a.Status == MountOK {
		a.FH = r.Opaque(MaxFH)
		a.Flavors = make([]uint32, r.Count(maxFlavors, 4))
		for i := range a.Flavors {
			a.Flavors[i] = r.Uint32()
		}
	}
}

// Encode writes the results.
func (a *MountRes) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	if a.Status == MountOK {
		w.Opaque(a.FH)
		w.Uint32(uint32(len(a.Flavors)))
		for _, f := range a.Flavors {
			w.Uint32(f)
		}
	}
}

// MountRes1 is fhstatus of version 1, RFC 1094 section A.4.
type MountRes1 struct {
	Status MountStatus
	FH     [FHSize1]byte // with MountOK only
}

// Decode reads the results.
func (a *MountRes1) Decode(r *xdr.Reader) {
	if a.Status = MountStatus(r.Uint32()); a.Status == MountOK {
		copy(a.FH[:], r.Fixed(FHSize1))
	}
}

// Encode writes the results.
func (a *MountRes1) Encode(w *xdr.Writer) {
	w.Uint32(uint32(a.Status))
	if a.Status == MountOK {
		w.Fixed(a.FH[:])
	}
}

// Mounted is mountbody, RFC 1813 section 5.2.2: who mounted what.
type Mounted struct{ Host, Path string }

// MountList is mountlist, the result of DUMP, RFC 1813 section 5.2.2.
type MountList []Mounted

// Decode reads a list.
func (l *MountList) Decode(r *xdr.Reader) {
	*l = nil
	for r.Bool() {
		*l = append(*l, Mounted{r.String(MaxMountName), r.String(MaxMountPath)})
	}
}

// Encode writes a list.
func (l MountList) Encode(w *xdr.Writer) {
	for _, m := range l {
		w.Bool(true)
		w.String(m.Host)
		w.String(m.Path)
	}
	w.Bool(false)
}

// Exported is exportnode, RFC 1813 section 5.2.5: a path and who may mount it.
// No group is everybody.
type Exported struct {
	Path   string
	Groups []string
}

// ExportList is exports, the result of EXPORT, RFC 1813 section 5.2.5.
type ExportList []Exported

// Decode reads a list.
func (l *ExportList) Decode(r *xdr.Reader) {
	*l = nil
	for r.Bool() {
		e := Exported{Path: r.String(MaxMountPath)}
		for r.Bool() {
			e.Groups = append(e.Groups, r.String(MaxMountName))
		}
		*l = append(*l, e)
	}
}

// Encode writes a list.
func (l ExportList) Encode(w *xdr.Writer) {
	for _, e := range l {
		w.Bool(true)
		w.String(e.Path)
		for _, g := range e.Groups {
			w.Bool(true)
			w.String(g)
		}
		w.Bool(false)
	}
	w.Bool(false)
}
