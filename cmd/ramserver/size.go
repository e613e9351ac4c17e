package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseSize reads a number of bytes with an optional K, M, G or T (powers of
// 1024, in either case), or a percentage of total.
func parseSize(s string, total int64) (int64, error) {
	bad := fmt.Errorf("%q: want a whole number above 0 with K, M, G or T, as 512M, or 1%% to 100%%", s)
	digits, shift := s, 0
	if n, ok := strings.CutSuffix(s, "%"); ok {
		p, err := strconv.ParseUint(n, 10, 32)
		if err != nil || p < 1 || p > 100 {
			return 0, bad
		}
		return total/100*int64(p) + total%100*int64(p)/100, nil
	}
	if i := strings.IndexAny(s, "KMGTkmgt"); i >= 0 {
		if unit := s[i+1:]; unit != "" && unit != "iB" {
			return 0, bad
		}
		digits, shift = s[:i], 10*(1+strings.Index("KMGT", strings.ToUpper(s[i:i+1])))
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return 0, bad
	}
	return int64(n) << shift, nil
}

// formatSize writes a number of bytes for people.
func formatSize(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1023.5 && i < 3 { // as it will be rounded
		f, i = f/1024, i+1
	}
	digits := 0
	if f < 10 {
		digits = 2
	} else if f < 100 {
		digits = 1
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + " " + "KMGT"[i:i+1] + "iB"
}

// physical is the memory that the stores may be planned with, and whose limit
// it is.
type physical struct {
	bytes int64
	what  string
}

// maxTenths is how many tenths of the memory all stores together may have;
// above half of it there is a warning.
const maxTenths = 9
