// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
)

// runMemory brings the image of p into memory. What of it is there already stays: no disk is
// looked at, and nothing is lost.
func (w *Writer) runMemory(ctx context.Context, p wire.WriteParams, key []byte) (wire.WriteResult, error) {
	if w.Memory == nil {
		return wire.WriteResult{}, errkind.New(errkind.Unsupported, "this agent keeps no system in memory")
	}
	image, err := w.manifestOf(ctx, p, key)
	if err != nil {
		return wire.WriteResult{}, err
	}
	if image.Form != manifest.Squashfs {
		return wire.WriteResult{}, errkind.New(errkind.Conflict, "image %s is a disk, and not a root file system that is kept in memory", path.Base(image.Name)).
			Do("Build the image again: `ironrail image build`.")
	}
	dev, err := w.Memory.Image(image.Size)
	if err != nil {
		return wire.WriteResult{}, fmt.Errorf("image in memory: %w", err)
	}
	defer dev.Close()
	j := &job{Writer: w, params: p, image: image, dev: dev, resume: true, unmarked: true}
	w.begin(image.Size)
	began := time.Now()
	if err := j.stream(ctx); err != nil {
		return wire.WriteResult{}, fmt.Errorf("image in memory: %w", err)
	}
	fetched := time.Since(began)
	if err := j.verify(ctx); err != nil {
		return wire.WriteResult{}, fmt.Errorf("image in memory: %w", err)
	}
	return wire.WriteResult{Written: j.written.Load(), Size: image.Size, Digest: image.SHA256, Retried: int(j.retried.Load()),
		Seconds: fetched.Seconds(), Verified: j.verified.Seconds(), Already: j.written.Load() == 0}, nil
}

// isDisk refuses an image that cannot be written to a disk.
func isDisk(m manifest.Manifest) error {
	if m.Form == "" {
		return nil
	}
	return errkind.New(errkind.Conflict, "image %s is a %s, and no disk", path.Base(m.Name), m.Form).Do("Build the image again: `ironrail image build`.")
}
