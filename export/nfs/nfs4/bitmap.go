package nfs4

import (
	"math/bits"

	"ramserver/export/nfs/xdr"
)

// Numbers of attributes: RFC 8881 section 5, RFC 7862 section 12.2, RFC 8275
// section 5, RFC 8276 section 8.3 and RFC 9754 section 3.
const (
	AttrSupportedAttrs    = 0
	AttrType              = 1
	AttrFHExpireType      = 2
	AttrChange            = 3
	AttrSize              = 4
	AttrLinkSupport       = 5
	AttrSymlinkSupport    = 6
	AttrNamedAttr         = 7
	AttrFSID              = 8
	AttrUniqueHandles     = 9
	AttrLeaseTime         = 10
	AttrRdAttrError       = 11
	AttrACL               = 12
	AttrACLSupport        = 13
	AttrArchive           = 14
	AttrCanSetTime        = 15
	AttrCaseInsensitive   = 16
	AttrCasePreserving    = 17
	AttrChownRestricted   = 18
	AttrFileHandle        = 19
	AttrFileID            = 20
	AttrFilesAvail        = 21
	AttrFilesFree         = 22
	AttrFilesTotal        = 23
	AttrFSLocations       = 24
	AttrHidden            = 25
	AttrHomogeneous       = 26
	AttrMaxFileSize       = 27
	AttrMaxLink           = 28
	AttrMaxName           = 29
	AttrMaxRead           = 30
	AttrMaxWrite          = 31
	AttrMimeType          = 32
	AttrMode              = 33
	AttrNoTrunc           = 34
	AttrNumLinks          = 35
	AttrOwner             = 36
	AttrOwnerGroup        = 37
	AttrQuotaAvailHard    = 38
	AttrQuotaAvailSoft    = 39
	AttrQuotaUsed         = 40
	AttrRawDev            = 41
	AttrSpaceAvail        = 42
	AttrSpaceFree         = 43
	AttrSpaceTotal        = 44
	AttrSpaceUsed         = 45
	AttrSystem            = 46
	AttrTimeAccess        = 47
	AttrTimeAccessSet     = 48
	AttrTimeBackup        = 49
	AttrTimeCreate        = 50
	AttrTimeDelta         = 51
	AttrTimeMetadata      = 52
	AttrTimeModify        = 53
	AttrTimeModifySet     = 54
	AttrMountedOnFileID   = 55
	AttrDirNotifDelay     = 56
	AttrDirentNotifDelay  = 57
	AttrDACL              = 58
	AttrSACL              = 59
	AttrChangePolicy      = 60
	AttrFSStatus          = 61
	AttrFSLayoutTypes     = 62
	AttrLayoutHint        = 63
	AttrLayoutTypes       = 64
	AttrLayoutBlkSize     = 65
	AttrLayoutAlignment   = 66
	AttrFSLocationsInfo   = 67
	AttrMDSThreshold      = 68
	AttrRetentionGet      = 69
	AttrRetentionSet      = 70
	AttrRetentevtGet      = 71
	AttrRetentevtSet      = 72
	AttrRetentionHold     = 73
	AttrModeSetMasked     = 74
	AttrSuppAttrExclCreat = 75
	AttrFSCharsetCap      = 76
	AttrCloneBlkSize      = 77
	AttrSpaceFreed        = 78
	AttrChangeAttrType    = 79
	AttrSecLabel          = 80
	AttrModeUmask         = 81
	AttrXattrSupport      = 82
	AttrOffline           = 83
	AttrTimeDelegAccess   = 84
	AttrTimeDelegModify   = 85
	AttrOpenArguments     = 86
)

// Bitmap is bitmap4, a set of numbers below 96: enough for every attribute there
// is. Bit n is bit n%32 of word n/32.
type Bitmap [3]uint32

// Bits returns the set of the numbers given.
func Bits(n ...uint) (b Bitmap) {
	for _, n := range n {
		b.Set(n)
	}
	return b
}

// Has reports whether n is in the set.
func (b *Bitmap) Has(n uint) bool { return b[n/32]>>(n%32)&1 != 0 }

// Set adds n.
func (b *Bitmap) Set(n uint) { b[n/32] |= 1 << (n % 32) }

// Clear removes n.
func (b *Bitmap) Clear(n uint) { b[n/32] &^= 1 << (n % 32) }

// And returns what is in both sets.
func (b Bitmap) And(o Bitmap) Bitmap { return Bitmap{b[0] & o[0], b[1] & o[1], b[2] & o[2]} }

// AndNot returns what is in b and not in o.
func (b Bitmap) AndNot(o Bitmap) Bitmap { return Bitmap{b[0] &^ o[0], b[1] &^ o[1], b[2] &^ o[2]} }

// Or returns what is in one of the sets.
func (b Bitmap) Or(o Bitmap) Bitmap { return Bitmap{b[0] | o[0], b[1] | o[1], b[2] | o[2]} }

// Empty reports whether nothing is in the set.
func (b Bitmap) Empty() bool { return b[0]|b[1]|b[2] == 0 }

// Len returns how many numbers are in the set.
func (b Bitmap) Len() int {
	return bits.OnesCount32(b[0]) + bits.OnesCount32(b[1]) + bits.OnesCount32(b[2])
}

// Decode reads a bitmap4. Numbers from 96 on, which nobody has given a meaning,
// are passed over: a server leaves out of its answer what it does not know.
func (b *Bitmap) Decode(r *xdr.Reader) { b.decode(r) }

// decode also reports whether a number from 96 on was passed over.
func (b *Bitmap) decode(r *xdr.Reader) (more bool) {
	n := r.Count(maxArray, 4)
	*b = Bitmap{}
	for i := range min(n, len(b)) {
		b[i] = r.Uint32()
	}
	for range n - len(b) {
		more = r.Uint32() != 0 || more
	}
	return more
}

// Encode writes a bitmap4 of as few words as hold it.
func (b Bitmap) Encode(w *xdr.Writer) {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	w.Uint32(uint32(n))
	for _, v := range b[:n] {
		w.Uint32(v)
	}
}
