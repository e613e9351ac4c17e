package smb

import "strings"

// Error codes that the services return, MS-ERREF section 2.2.
const (
	winInvalidLevel = 124
	winNoShare      = 2310 // NERR_NetNameNotFound
)

const (
	platformNT = 500
	// As a Windows Server 2016 or later does; clients take some features from it.
	versionMajor = 10
	versionMinor = 0
	serverType   = 0x9003 // workstation, server, NT, NT server: SV_TYPE_*

	shareDisk    = 0
	shareIPC     = 3
	shareSpecial = 1 << 31
)

// srvsvc is the Server Service, MS-SRVS section 3.1.4.
var srvsvc = &rpcService{
	uuid:  "\xc8\x4f\x32\x4b\x70\x16\xd3\x01\x12\x78\x5a\x47\xbf\x6e\xe1\x88",
	major: 3,
	ops: map[uint16]func(*rpcHost, *ndrReader, *ndrWriter){
		15: shareEnum,
		16: shareInfo,
		21: serverInfo,
	},
}

// wkssvc is the Workstation Service, MS-WKST section 3.2.4.
var wkssvc = &rpcService{
	uuid:  "\x98\xd0\xff\x6b\x12\xa1\x10\x36\x98\x33\x46\xc3\xf8\x7e\x34\x5a",
	major: 1,
	ops:   map[uint16]func(*rpcHost, *ndrReader, *ndrWriter){0: workstationInfo},
}

// shareLevels are the levels of information about a share that are there.
var shareLevels = map[uint32]bool{0: true, 1: true, 2: true, 501: true, 502: true, 1005: true}

// fixed appends the fixed part of SHARE_INFO of a level, MS-SRVS section 2.2.4.
func (s *rpcShare) fixed(w *ndrWriter, level uint32) {
	if level == 1005 {
		w.uint32(0) // not in DFS
		return
	}
	w.ref()
	if level == 0 {
		return
	}
	kind := uint32(shareDisk)
	if s.ipc {
		kind = shareIPC | shareSpecial
	}
	w.uint32(kind)
	w.ref()
	switch level {
	case 501:
		w.uint32(0) // flags: files are cached as their user chooses
	case 2, 502:
		w.uint32(0)         // permissions, of share-level security
		w.uint32(1<<32 - 1) // no limit of users
		w.uint32(0)         // users now
		w.ref()             // path
		w.uint32(0)         // no password
		if level == 502 {
			w.uint32(0) // length of the security descriptor
			w.uint32(0)
		}
	}
}

// pointed appends what the fixed part points to.
func (s *rpcShare) pointed(w *ndrWriter, level uint32) {
	if level == 1005 {
		return
	}
	w.str(s.name)
	if level == 0 {
		return
	}
	w.str(s.remark)
	if level == 2 || level == 502 {
		// Where a share is on the server nobody has to know.
		w.str(`C:\` + s.name)
	}
}

// shareEnum is NetrShareEnum, MS-SRVS section 3.1.4.8. All shares are one answer.
func shareEnum(h *rpcHost, in *ndrReader, out *ndrWriter) {
	in.uniqueStr() // server
	level, tag := in.uint32(), in.uint32()
	if container := in.uint32(); container != 0 {
		in.uint32() // entries
		if in.uint32() != 0 {
			in.bad = true // a client has no shares to tell
		}
	}
	in.uint32() // preferred length
	resume := in.uint32() != 0
	if resume {
		in.uint32()
	}
	if level != tag {
		in.bad = true
	}
	if in.bad {
		return
	}
	out.uint32(level)
	out.uint32(level)
	total, code := uint32(0), uint32(0)
	if !shareLevels[level] || level == 1005 {
		code = winInvalidLevel
		out.uint32(0)
	} else {
		shares := h.shares()
		total = uint32(len(shares))
		out.ref()
		out.uint32(total)
		out.ref()
		out.uint32(total)
		for i := range shares {
			shares[i].fixed(out, level)
		}
		for i := range shares {
			shares[i].pointed(out, level)
		}
	}
	out.uint32(total)
	if resume {
		out.ref()
	}
	out.uint32(0)
	out.uint32(code)
}

// shareInfo is NetrShareGetInfo, MS-SRVS section 3.1.4.10.
func shareInfo(h *rpcHost, in *ndrReader, out *ndrWriter) {
	in.uniqueStr() // server
	name, level := in.str(), in.uint32()
	if in.bad {
		return
	}
	out.uint32(level)
	if !shareLevels[level] {
		out.uint32(0)
		out.uint32(winInvalidLevel)
		return
	}
	for _, s := range h.shares() {
		if strings.EqualFold(s.name, name) {
			out.ref()
			s.fixed(out, level)
			s.pointed(out, level)
			out.uint32(0)
			return
		}
	}
	out.uint32(0)
	out.uint32(winNoShare)
}

// serverInfo is NetrServerGetInfo, MS-SRVS section 3.1.4.17.
func serverInfo(h *rpcHost, in *ndrReader, out *ndrWriter) {
	in.uniqueStr() // server
	level := in.uint32()
	if in.bad {
		return
	}
	out.uint32(level)
	if level < 100 || level > 102 {
		out.uint32(0)
		out.uint32(winInvalidLevel)
		return
	}
	out.ref()
	out.uint32(platformNT)
	out.ref()
	if level > 100 {
		out.uint32(versionMajor)
		out.uint32(versionMinor)
		out.uint32(serverType)
		out.ref()
	}
	if level > 101 {
		out.uint32(1<<32 - 1) // users: no limit
		out.uint32(15)        // minutes until an idle session ends
		out.uint32(0)         // visible
		out.uint32(240)       // seconds between announcements, of which there are none
		out.uint32(3000)      // milliseconds that they vary by
		out.uint32(0)         // licences
		out.ref()
	}
	out.str(h.name)
	if level > 100 {
		out.str("ramserver")
	}
	if level > 101 {
		out.str(`C:\`)
	}
	out.uint32(0)
}

// workstationInfo is NetrWkstaGetInfo, MS-WKST section 3.2.4.1.
func workstationInfo(h *rpcHost, in *ndrReader, out *ndrWriter) {
	in.uniqueStr() // server
	level := in.uint32()
	if in.bad {
		return
	}
	out.uint32(level)
	if level < 100 || level > 102 {
		out.uint32(0)
		out.uint32(winInvalidLevel)
		return
	}
	out.ref()
	out.uint32(platformNT)
	out.ref()
	out.ref()
	out.uint32(versionMajor)
	out.uint32(versionMinor)
	if level > 100 {
		out.ref()
	}
	if level > 101 {
		out.uint32(0) // users who have logged on there
	}
	out.str(h.name)
	out.str("WORKGROUP")
	if level > 100 {
		out.str("")
	}
	out.uint32(0)
}
