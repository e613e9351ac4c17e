package memstore

import (
	"math"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	const first, last = -1 << 31, 16299260424
	for _, c := range []struct {
		sec, nsec   int64
		wantS, want int64 // what it becomes
	}{
		{0, 0, 0, 0}, {0, 1, 0, 1}, {-1, 999999999, -1, 999999999}, {1500000000, 123456789, 1500000000, 123456789},
		{9223372036, 854775807, 9223372036, 854775807}, {9223372036, 854775808, 9223372036, 854775808}, // 1<<63 ns
		{15032385535, 999999999, 15032385535, 999999999}, // the last of ext4
		{first, 0, first, 0}, {first - 1, 999999999, first, 0}, {math.MinInt64, 5, first, 0},
		{last, 999999999, last, 999999999}, {last + 1, 0, last, 999999999}, {math.MaxInt64, 5, last, 999999999},
	} {
		kept := Time(c.sec, c.nsec)
		if sec, nsec := Seconds(kept); sec != c.wantS || nsec != c.want {
			t.Errorf("%d s, %d ns became %d, %d", c.sec, c.nsec, sec, nsec)
		}
		if at := time.Unix(c.sec, c.nsec); at.Year() > 1902 && at.Year() < 2262 && kept != at.UnixNano() {
			t.Errorf("%v is %d", at, kept)
		}
	}
	order := []int64{Time(first, 0), Time(-1, 0), Time(0, 0), Time(9223372036, 0), Time(9223372037, 0), Time(last, 0)}
	for k := range len(order) - 1 {
		if sinceFirst(order[k]) >= sinceFirst(order[k+1]) {
			t.Errorf("%d is not before %d", order[k], order[k+1])
		}
	}
}
