// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/overrides"
)

// ImageUse is why nodes need an image: names in the order of the alphabet.
type ImageUse struct {
	Pinned   []string // a rollback holds them at it
	Written  []string // it is on their disks
	Accepted []string // they were accepted with it, so that a rollback may go back to it
}

// ReadImageUse reads which images nodes need, by digest. Nodes that are in no file any
// more count too.
func ReadImageUse(ctx context.Context, r state.Reader) (map[string]ImageUse, error) {
	nodes, err := state.ReadNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	uses := map[string]ImageUse{}
	add := func(digest string, change func(*ImageUse)) {
		if digest == "" {
			return
		}
		u := uses[digest]
		change(&u)
		uses[digest] = u
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		digest, err := written(ctx, r, name)
		if err != nil {
			return nil, err
		}
		add(digest, func(u *ImageUse) { u.Written = append(u.Written, name) })
		list, err := ReadHistory(ctx, r, name)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, a := range list {
			if !seen[a.Digest] {
				add(a.Digest, func(u *ImageUse) { u.Accepted = append(u.Accepted, name) })
			}
			seen[a.Digest] = true
		}
	}
	pinned, err := overrides.PinnedNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	for digest, nodes := range pinned {
		add(digest, func(u *ImageUse) { u.Pinned = nodes })
	}
	return uses, nil
}
