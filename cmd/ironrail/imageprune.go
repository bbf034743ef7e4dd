// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/provision/acceptance"
)

func (a *app) imagePruneCommand() *cobra.Command {
	var approve bool
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that nothing refers to",
		Long: `Remove the images of the store that nothing refers to. An image stays while a block
of the files or ironrail.lock stands for it, while it is on the disk of a node or a
node is pinned to it, and while a node was accepted with it: a rollback may go back
to the last five acceptances. All images are listed with what keeps them, and then
you are asked. What is removed can be built again, not always to the same bytes.
What was fetched for images that the files no longer describe goes too.

It is refused while another command owns the state. Variables that choose images are
to be given as they are for apply.`,
		Example: "  ironrail image prune\n  ironrail image prune --auto-approve --json",
		Args:    asUsage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.pruneImages(c.Context(), approve) },
	}
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	return c
}

// pruned is one image as --json prints it.
type pruned struct {
	Digest  string   `json:"digest"`
	Name    string   `json:"name,omitempty"`
	Stored  int64    `json:"stored,omitempty"` // bytes in the store
	Keep    []string `json:"keep,omitempty"`   // what refers to it
	Removed bool     `json:"removed"`
}

func (a *app) pruneImages(ctx context.Context, approve bool) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	o, err := a.ownAlone(ctx, "image prune")
	if err != nil {
		return err
	}
	defer o.giveBack()
	uses, err := acceptance.ReadImageUse(ctx, o.store)
	if err != nil {
		return err
	}
	blocks, err := site.Artifacts.ImageBlocks()
	if err != nil {
		return err
	}
	images, err := storedImages(site)
	if err != nil {
		return err
	}
	list := listPrunable(images, blocks, uses)
	var digests []string
	var size int64
	for _, p := range list {
		if len(p.Keep) == 0 {
			digests, size = append(digests, p.Digest), size+p.Stored
		}
	}
	if !a.json {
		showPrunable(a, list, digests, size)
	}
	if len(digests) > 0 {
		if !approve {
			if err := a.promptFor("remove", "Read the list, then add --auto-approve."); err != nil {
				return err
			}
		}
		if err := site.Artifacts.RemoveImages(ctx, digests, func(digest string) { markRemoved(a, list, digest) }); err != nil {
			return err
		}
	}
	if err := site.Artifacts.PruneDownloads(ctx); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	return nil
}

// listPrunable are the images of a store with what refers to each.
func listPrunable(images []store.Image, blocks map[string][]string, uses map[string]acceptance.ImageUse) []pruned {
	list := []pruned{}
	for _, i := range images {
		p := pruned{Digest: i.Digest}
		if i.Err == nil {
			p.Name, p.Stored = i.Manifest.Name, i.Manifest.Blob
		}
		for _, b := range blocks[i.Digest] {
			p.Keep = append(p.Keep, "image "+b+" of the files")
		}
		u := uses[i.Digest]
		for _, reason := range []struct {
			what  string
			nodes []string
		}{{"pinned to it", u.Pinned}, {"on the disk of", u.Written}, {"a rollback may go back to it", u.Accepted}} {
			if len(reason.nodes) > 0 {
				p.Keep = append(p.Keep, reason.what+": "+shortenNames(reason.nodes, mostNames))
			}
		}
		list = append(list, p)
	}
	return list
}

func showPrunable(a *app, list []pruned, digests []string, size int64) {
	var p page
	for _, i := range list {
		what := "nothing refers to it"
		if len(i.Keep) > 0 {
			what = "stays: " + strings.Join(i.Keep, "; ")
		}
		p.linef("%s  %-20s %8s  %s", i.Digest, i.Name, formatSize(i.Stored), what)
	}
	if len(digests) == 0 {
		p.linef("Nothing to remove.")
	} else {
		p.linef("%d %s to remove, %s.", len(digests), pluralOf(len(digests), "image", "images"), formatSize(size))
	}
	p.to(a.out)
}

// markRemoved notes that an image is gone, and says it.
func markRemoved(a *app, list []pruned, digest string) {
	for i := range list {
		if list[i].Digest == digest {
			list[i].Removed = true
		}
	}
	if !a.json {
		fmt.Fprintf(a.out, "removed %s\n", digest)
	}
}
