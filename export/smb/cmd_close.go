package smb

import "ramserver/export/smb/wire"

// closeFile is CLOSE, MS-SMB2 section 3.3.5.10.
func (r *request) closeFile() wire.Status {
	var q wire.CloseRequest
	if !q.Decode(r.msg) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	if status != wire.StatusOK {
		return status
	}
	var p wire.CloseReply
	if q.Flags&wire.CloseAttributes != 0 && f.inode != nil {
		if a, err := r.attrs(f); err == nil {
			info := r.fileInfo(f, &a)
			p = wire.CloseReply{Flags: wire.CloseAttributes, Times: info.Times, Allocation: info.Allocation, Size: info.Size, Attributes: info.Attributes}
		}
	}
	f.close()
	p.Encode(r.w)
	return wire.StatusOK
}

// flush is FLUSH, MS-SMB2 section 3.3.5.11. What is written is in memory, where it
// stays.
func (r *request) flush() wire.Status {
	var q wire.FlushRequest
	if !q.Decode(r.msg) {
		return wire.StatusInvalidParameter
	}
	f, status := r.file(q.ID)
	switch {
	case status != wire.StatusOK:
		return status
	case f.inode != nil && f.access&(rightWriteData|rightAppend) == 0:
		return wire.StatusAccessDenied
	}
	wire.EncodeEmpty(r.w)
	return wire.StatusOK
}
