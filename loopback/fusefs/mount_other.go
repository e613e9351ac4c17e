//go:build !linux

package fusefs

import (
	"context"
	"errors"
	"fmt"

	"ramserver/memstore"
)

// Mount is a mount of a store on this machine.
type Mount struct{}

// New answers errors.ErrUnsupported: only Linux has the FUSE that is meant.
func New(context.Context, *memstore.Store, string, Options) (*Mount, error) {
	return nil, fmt.Errorf("mount by FUSE: %w", errors.ErrUnsupported)
}
