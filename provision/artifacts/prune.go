// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"slices"
)

// ImageBlocks are the names of the image blocks that stand for each digest: what is
// pinned, what is locked, and what the recipe was built into. It reads the store.
func (a Artifacts) ImageBlocks() (map[string][]string, error) {
	blocks := map[string][]string{}
	for _, i := range a.inv.Images {
		built, err := a.built(i)
		if err != nil {
			return nil, err
		}
		digests := []string{i.Digest, a.lockedImage(i), built}
		slices.Sort(digests)
		for _, d := range slices.Compact(digests) {
			if d != "" {
				blocks[d] = append(blocks[d], i.Name)
			}
		}
	}
	return blocks, nil
}

// RemoveImages takes images out of the store, one after the other, while nothing is
// built in it. removed is called after each. The packages that were kept beside them stay.
func (a Artifacts) RemoveImages(ctx context.Context, digests []string, removed func(digest string)) error {
	unlock, err := a.Images.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, d := range digests {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.Images.Remove(d); err != nil {
			return err
		}
		removed(d)
	}
	return nil
}
