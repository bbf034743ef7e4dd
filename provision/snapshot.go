// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"io"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/errkind"
)

var _ control.Snapshotter = (*Backend)(nil)

// Snapshot implements control.Snapshotter.
func (b *Backend) Snapshot(ctx context.Context, w io.Writer) error {
	s, ok := b.run.store.(control.Snapshotter)
	if !ok {
		return errkind.New(errkind.Unsupported, "this state is not kept in a file")
	}
	return s.Snapshot(ctx, w)
}
