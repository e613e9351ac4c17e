package loopback

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/windows"
)

func hasBuild(want string) error {
	n, err := strconv.ParseUint(want, 10, 32)
	if err != nil {
		return err
	}
	if have := windows.RtlGetVersion().BuildNumber; uint64(have) < n {
		return fmt.Errorf("Windows has build number %d", have)
	}
	return nil
}
