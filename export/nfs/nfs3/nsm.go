package nfs3

import "ramserver/export/nfs/xdr"

// NSMVersion1 is the version of the Network Status Monitor of XNFS. By
// it hosts that hold locks of each other's files tell each other that they have
// restarted.
const NSMVersion1 = 1

// Procedures of the NSM program. All but STAT and NOTIFY are for programs of
// the same host.
const (
	NSMProcNull     = 0
	NSMProcStat     = 1
	NSMProcMon      = 2
	NSMProcUnmon    = 3
	NSMProcUnmonAll = 4
	NSMProcCrash    = 5
	NSMProcNotify   = 6
)

// maxNSMName is SM_MAXSTRLEN, in bytes.
const maxNSMName = 1024

// NSMName is sm_name, the argument of STAT
type NSMName struct{ Name string }

// Decode reads an sm_name.
func (a *NSMName) Decode(r *xdr.Reader) { a.Name = r.String(maxNSMName) }

// Encode writes an sm_name.
func (a *NSMName) Encode(w *xdr.Writer) { w.String(a.Name) }

// NSMStatRes is sm_stat_res, the result of STAT and MON
type NSMStatRes struct {
	Failed bool  // res: the host is not monitored
	State  int32 // of the one who answers: odd while it runs
}

// Decode reads an sm_stat_res.
func (a *NSMStatRes) Decode(r *xdr.Reader) {
	a.Failed = r.Enum(1) == 1
	a.State = r.Int32()
}

// Encode writes an sm_stat_res.
func (a *NSMStatRes) Encode(w *xdr.Writer) {
	w.Bool(a.Failed)
	w.Int32(a.State)
}

// NSMState is sm_stat, the result of UNMON and UNMON_ALL
type NSMState struct{ State int32 }

// Decode reads an sm_stat.
func (a *NSMState) Decode(r *xdr.Reader) { a.State = r.Int32() }

// Encode writes an sm_stat.
func (a *NSMState) Encode(w *xdr.Writer) { w.Int32(a.State) }

// NSMNotify is stat_chge, the argument of NOTIFY
type NSMNotify struct {
	Name  string // of the host that has restarted
	State int32  // its new state
}

// Decode reads a stat_chge.
func (a *NSMNotify) Decode(r *xdr.Reader) {
	a.Name = r.String(maxNSMName)
	a.State = r.Int32()
}

// Encode writes a stat_chge.
func (a *NSMNotify) Encode(w *xdr.Writer) {
	w.String(a.Name)
	w.Int32(a.State)
}
