package memstore

import (
	"math"
	"time"
)

// The store's times are nanoseconds since 1970-01-01 UTC, modulo 1<<64, from
// December 1901 to July 2486: those that most other file systems know are among
// them. So what is behind the year 2262 is negative.
const (
	second      = int64(time.Second)
	firstSecond = math.MinInt32
	lastSecond  = firstSecond + int64(math.MaxUint64/uint64(time.Second)) - 1
)

// Time is a time as the store keeps it, of seconds since 1970 and nanoseconds of the
// next. One that it cannot keep becomes the nearest that it can.
func Time(sec, nsec int64) int64 {
	switch {
	case sec < firstSecond:
		sec, nsec = firstSecond, 0
	case sec > lastSecond:
		sec, nsec = lastSecond, second-1
	}
	return sec*second + nsec // which may wrap
}

// Seconds is the inverse of Time; seconds are rounded down.
func Seconds(t int64) (sec, nsec int64) {
	u := sinceFirst(t)
	return int64(u/uint64(second)) + firstSecond, int64(u % uint64(second))
}

// sinceFirst is by what times are compared.
func sinceFirst(t int64) uint64 { return uint64(t - firstSecond*second) }

func now() int64 { return time.Now().UnixNano() }
