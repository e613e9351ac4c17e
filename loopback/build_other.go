//go:build !linux && !windows

package loopback

import "errors"

func hasBuild(string) error { return errors.New("this is not Windows") }
