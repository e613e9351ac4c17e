package smb

import (
	"encoding/binary"
	"fmt"
	"testing"

	"ramserver/export/smb/wire"
)

// queryBody is the body of QUERY_INFO.
func queryBody(id [16]byte, kind, class byte) []byte {
	var w wire.Writer
	w.Uint16(41)
	w.Bytes([]byte{kind, class})
	w.Uint32(smallIO)
	w.Bytes(make([]byte, 16))
	w.Bytes(id[:])
	return w.B
}

// setBody is the body of SET_INFO.
func setBody(id [16]byte, kind, class byte, data []byte) []byte {
	var w wire.Writer
	w.Uint16(33)
	w.Bytes([]byte{kind, class})
	w.Uint32(uint32(len(data)))
	w.Uint32(wire.HeaderSize + 32)
	w.Uint32(0)
	w.Bytes(id[:])
	w.Bytes(data)
	return w.B
}

// listBody is the body of QUERY_DIRECTORY.
func listBody(id [16]byte, class byte) []byte {
	var w wire.Writer
	w.Uint16(33)
	w.Bytes([]byte{class, wire.DirRestart})
	w.Uint32(0)
	w.Bytes(id[:])
	w.Uint16(wire.HeaderSize + 32)
	w.Uint16(2)
	w.Uint32(smallIO)
	w.Bytes([]byte("*\x00"))
	return w.B
}

// controlBody is the body of IOCTL.
func controlBody(id [16]byte, code uint32, input []byte) []byte {
	var w wire.Writer
	w.Uint16(57)
	w.Uint16(0)
	w.Uint32(code)
	w.Bytes(id[:])
	w.Uint32(wire.HeaderSize + 56)
	w.Uint32(uint32(len(input)))
	w.Uint32(0)
	w.Uint64(0)
	w.Uint32(smallIO)
	w.Uint32(wire.IoctlFSCTL)
	w.Uint32(0)
	w.Bytes(input)
	return w.B
}

// What a server has never heard of has its error, and the connection goes on.
func TestUnknown(t *testing.T) {
	_, addr := newServer(t, nil)
	c := user(t, addr, nil)
	file, dir := c.create("file"), c.openDir("")
	expect := func(want wire.Status, r reply, what string, args ...any) {
		t.Helper()
		if r.Status != want {
			t.Fatalf("%s: %v, want %v", fmt.Sprintf(what, args...), r.Status, want)
		}
	}
	known := func(_ int, ok bool) bool { return ok }
	for class := range 256 {
		class := byte(class)
		_, _, fs := new(wire.FSInfo).Append(nil, class)
		_, settable := setClasses[class]
		queryable := known(wire.FileInfoSize(class)) || class == wire.FileStream || class == wire.FileFullEA || class == wire.FileAlternateName
		for _, id := range [][16]byte{file, dir} {
			if !queryable {
				expect(wire.StatusInvalidInfoClass, c.do(wire.CommandQueryInfo, queryBody(id, wire.InfoFile, class)), "query class %d", class)
			}
			if !fs {
				expect(wire.StatusInvalidInfoClass, c.do(wire.CommandQueryInfo, queryBody(id, wire.InfoFS, class)), "query class %d of a file system", class)
			}
			if !settable {
				expect(wire.StatusInvalidInfoClass, c.do(wire.CommandSetInfo, setBody(id, wire.InfoFile, class, make([]byte, 64))), "set class %d", class)
			}
			expect(wire.StatusNotSupported, c.do(wire.CommandSetInfo, setBody(id, wire.InfoFS, class, make([]byte, 64))), "set class %d of a file system", class)
		}
		if !known(wire.DirEntrySize(class)) {
			expect(wire.StatusInvalidInfoClass, c.do(wire.CommandQueryDirectory, listBody(dir, class)), "list class %d", class)
		}
		if class < wire.InfoFile || class > wire.InfoQuota {
			expect(wire.StatusInvalidParameter, c.do(wire.CommandQueryInfo, queryBody(file, class, wire.FileBasic)), "query type %d", class)
			expect(wire.StatusInvalidParameter, c.do(wire.CommandSetInfo, setBody(file, class, wire.FileBasic, make([]byte, 64))), "set type %d", class)
		}
	}
	// Codes of the kinds that there are: of DFS, file systems, pipes and networks. The
	// lowest two bits are a method, the highest two an access, the rest a function.
	for _, device := range []uint32{0x06, 0x09, 0x11, 0x14} {
		for low := uint32(0); low < 1<<16; low += 5 {
			code := device<<16 | low
			if fsctls[code].run != nil || low>>2&0xFFF > 0x100 {
				continue
			}
			id := file
			if code%2 == 0 {
				id = dir
			}
			expect(wire.StatusInvalidDeviceRequest, c.do(wire.CommandIoctl, controlBody(id, code, make([]byte, 32))), "control %#x", code)
		}
	}
	for k := range 200 {
		body := withContext(createBody("file"), fmt.Sprintf("Z%03d", k), make([]byte, k))
		r := c.do(wire.CommandCreate, body)
		expect(wire.StatusOK, r, "create context %d", k)
		if n := binary.LittleEndian.Uint32(r.body[84:]); n != 0 {
			t.Fatalf("create context %d is answered by %d bytes", k, n)
		}
	}
	expect(wire.StatusNotSupported, c.do(wire.CommandQueryInfo, queryBody(c.openDir(quotaFile), wire.InfoQuota, 0)), "quotas")
	if r := c.connect(ipcShare); r.Status != wire.StatusOK {
		t.Fatal(r.Status)
	}
	expect(wire.StatusNameNotFound, c.do(wire.CommandCreate, createBody("winreg")), "another pipe")
	pipe := c.create("srvsvc")
	for class := range 256 {
		class := byte(class)
		if class != wire.FileStandard {
			expect(wire.StatusInvalidParameter, c.do(wire.CommandQueryInfo, queryBody(pipe, wire.InfoFile, class)), "query class %d of a pipe", class)
		}
		if class != wire.FilePipe {
			expect(wire.StatusInvalidParameter, c.do(wire.CommandSetInfo, setBody(pipe, wire.InfoFile, class, make([]byte, 64))), "set class %d of a pipe", class)
		}
		if class != wire.InfoFile {
			expect(wire.StatusInvalidParameter, c.do(wire.CommandQueryInfo, queryBody(pipe, class, wire.FileStandard)), "query type %d of a pipe", class)
		}
		expect(wire.StatusInvalidDeviceRequest, c.do(wire.CommandQueryDirectory, listBody(pipe, class)), "list class %d of a pipe", class)
		if code := 0x00110000 | uint32(class)<<2; fsctls[code].run == nil {
			expect(wire.StatusInvalidDeviceRequest, c.do(wire.CommandIoctl, controlBody(pipe, code, make([]byte, 32))), "control %#x of a pipe", code)
		}
	}
	expect(wire.StatusInvalidParameter, c.do(wire.CommandChangeNotify, notifyBody(pipe, 1, false, 1000)), "watch a pipe")
	for command := commandCount; command < 1<<16; command += 256 {
		expect(wire.StatusInvalidParameter, c.do(wire.Command(command), echoBody), "command %d", command)
	}
	expect(wire.StatusOK, c.do(wire.CommandEcho, echoBody), "afterwards")
}

// withContext adds a create context to the body of CREATE.
func withContext(body []byte, name string, data []byte) []byte {
	le := binary.LittleEndian
	for len(body)%8 != 0 {
		body = append(body, 0)
	}
	at := len(body)
	body = le.AppendUint32(body, 0)
	body = le.AppendUint16(body, 16)
	body = le.AppendUint16(body, uint16(len(name)))
	body = le.AppendUint16(body, 0)
	body = le.AppendUint16(body, 24)
	body = le.AppendUint32(body, uint32(len(data)))
	body = append(append(append(body, name...), 0, 0, 0, 0), data...)
	le.PutUint32(body[48:], uint32(wire.HeaderSize+at))
	le.PutUint32(body[52:], uint32(len(body)-at))
	return body
}
