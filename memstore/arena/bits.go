package arena

import "math/bits"

// A bitmap is a set of small numbers.
type bitmap []uint64

func (b bitmap) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

// set adds [i, i+n).
func (b bitmap) set(i, n int) {
	for n > 0 {
		mask, k := wordMask(i, n)
		b[i/64] |= mask
		i, n = i+k, n-k
	}
}

// clear removes [i, i+n).
func (b bitmap) clear(i, n int) {
	for n > 0 {
		mask, k := wordMask(i, n)
		b[i/64] &^= mask
		i, n = i+k, n-k
	}
}

// wordMask is the part of [i, i+n) that is in one word, and its length.
func wordMask(i, n int) (mask uint64, k int) {
	k = min(n, 64-i%64)
	return ^uint64(0) >> (64 - k) << (i % 64), k
}

// next returns the first member in [i, end), or end.
func (b bitmap) next(i, end int) int {
	for i < end {
		if w := b[i/64] >> (i % 64); w != 0 {
			return min(i+bits.TrailingZeros64(w), end)
		}
		i = i&^63 + 64
	}
	return end
}

// run returns the first number in [i, end) that is no member, or end.
func (b bitmap) run(i, end int) int {
	for i < end {
		k := bits.TrailingZeros64(^(b[i/64] >> (i % 64)))
		if k < 64-i%64 {
			return min(i+k, end)
		}
		i += k
	}
	return end
}

func (b bitmap) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}
