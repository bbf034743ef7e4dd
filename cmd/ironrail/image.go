// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/overrides"
)

func (a *app) imageCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:     "image",
		Short:   "Build, fetch, show, verify and prune OS images and packages",
		Long:    "Work on what nodes are installed from. All of it lies in the state folder.",
		Example: "  ironrail image build\n  ironrail image verify",
	}, &cobra.Command{
		Use:   "build [NAME...]",
		Short: "Build what the site's images and driver stacks need",
		Long: `Build the OS images of the site, the install ramdisk of each, and the signed
package repositories of the driver stacks, into the state folder. What is built
already, by the digest of its recipe, is left alone. The repositories of the rest
are asked first, and their indexes compared with the keys of the site's files: what
is wrong with any of them is said before anything is built. Needs root and a package
mirror; apply needs neither afterwards.`,
		Example: "  ironrail image build\n  ironrail image build os",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE:    func(c *cobra.Command, args []string) error { return a.buildImages(c.Context(), args) },
	}, &cobra.Command{
		Use:   "fetch [NAME...]",
		Short: "Fetch the sources of images, to be built later",
		Long: `Fetch what images are made of from where it lies, verified by the digest in the
site's files or by the archive's signature: disk images of a URL, the layers of
container images in a registry, the packages of Debian images. A fetch or build that
was stopped goes on where it was, in the middle of a file. Packages of driver stacks
are not fetched apart from the build.`,
		Example: "  ironrail image fetch\n  ironrail image fetch os",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE:    func(c *cobra.Command, args []string) error { return a.fetchImages(c.Context(), args) },
	}, &cobra.Command{
		Use:     "list",
		Short:   "List the images that are built",
		Long:    "List the images that are built, with their digests. What is damaged is marked.",
		Example: "  ironrail image list --json",
		Args:    asUsage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.listImages(c.Context()) },
	}, a.imageShowCommand(), &cobra.Command{
		Use:   "verify [DIGEST...]",
		Short: "Read images whole and compare them with their manifests",
		Long: `Read images whole, all of them when none is named, and compare every byte with
the signed manifest, and the vendor's list of checksums with the vendor's signature,
where an image has one. Exit code 1 when one is damaged.`,
		Example: "  ironrail image verify",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE:    func(c *cobra.Command, args []string) error { return a.verifyImages(c.Context(), args) },
	}, a.imagePruneCommand())
}

func (a *app) buildImages(ctx context.Context, names []string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	built, err := site.Artifacts.Build(ctx, names, func(text string) { a.sayf("%s", text) })
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(append([]artifacts.Built{}, built...))
	}
	var p page
	for _, b := range built {
		p.linef("%-20s %s", b.Name, b.Digest)
	}
	p.to(a.out)
	return nil
}

func (a *app) fetchImages(ctx context.Context, names []string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	fetched, err := site.Artifacts.Fetch(ctx, names, func(text string) { a.sayf("%s", text) })
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(append([]string{}, fetched...))
	}
	var p page
	for _, name := range fetched {
		p.linef("%s is fetched", name)
	}
	if len(fetched) == 0 {
		p.linef("Nothing to fetch: what is not built is made of packages, or of files of this controller.")
	}
	p.to(a.out)
	return nil
}

// storedImages lists the images of a site, which may have no store yet.
func storedImages(site *provision.Site) ([]store.Image, error) {
	if site.Artifacts.Images == nil {
		return nil, nil
	}
	return site.Artifacts.Images.List()
}

// listed is one image as --json prints it.
type listed struct {
	Digest string   `json:"digest"`
	Name   string   `json:"name,omitempty"`
	Size   int64    `json:"size,omitempty"`   // bytes on a node's disk
	Stored int64    `json:"stored,omitempty"` // bytes in the store
	Error  string   `json:"error,omitempty"`  // what is damaged
	Pinned []string `json:"pinned,omitempty"` // nodes that a rollback holds at it: it must stay
}

func (a *app) listImages(ctx context.Context) error {
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	images, err := storedImages(site)
	if err != nil {
		return err
	}
	pinned, err := a.pinned(ctx)
	if err != nil {
		return err
	}
	list := []listed{}
	for _, i := range images {
		if i.Err != nil {
			list = append(list, listed{Digest: i.Digest, Error: i.Err.Error(), Pinned: pinned[i.Digest]})
			continue
		}
		list = append(list, listed{Digest: i.Digest, Name: i.Manifest.Name, Size: i.Manifest.Size, Stored: i.Manifest.Blob, Pinned: pinned[i.Digest]})
	}
	if a.json {
		return a.printJSON(list)
	}
	var p page
	for _, l := range list {
		p.linef("%s", l.line())
	}
	p.to(a.out)
	return nil
}

// line is an image for a person.
func (l listed) line() string {
	text := fmt.Sprintf("%s  %-20s %8s plain, %8s stored", l.Digest, l.Name, formatSize(l.Size), formatSize(l.Stored))
	if l.Error != "" {
		text = fmt.Sprintf("%s  damaged: %s", l.Digest, l.Error)
	}
	if len(l.Pinned) > 0 {
		text += "  keep: pinned to it: " + shortenNames(l.Pinned, mostNames)
	}
	return text
}

// pinned are the nodes that a rollback holds at an image, by digest. While another
// process owns the state they are not known, and that is said.
func (a *app) pinned(ctx context.Context) (map[string][]string, error) {
	r, closeState, err := a.openReader()
	var owned exit
	if errors.As(err, &owned) {
		a.sayf("Which images are pinned is not known: %v", err)
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer closeState()
	return overrides.PinnedNodes(ctx, r)
}

// verified is the verdict on one image as --json prints it.
type verified struct {
	Digest string `json:"digest"`
	Error  string `json:"error,omitempty"`
}

func (a *app) verifyImages(ctx context.Context, digests []string) error {
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	if len(digests) == 0 {
		images, err := storedImages(site)
		if err != nil {
			return err
		}
		for _, i := range images {
			digests = append(digests, i.Digest)
		}
	}
	var failed error
	list := []verified{}
	for _, d := range digests {
		v := verified{Digest: d}
		done := a.during("Reading " + d)
		err := verifyImage(ctx, site, d)
		done()
		if err != nil {
			failed, v.Error = errors.Join(failed, err), err.Error()
		} else if !a.json {
			fmt.Fprintf(a.out, "%s  verified\n", event.Escape(d)) // as it is found: reading one takes a while
		}
		list = append(list, v)
	}
	if a.json {
		return errors.Join(failed, a.printJSON(list))
	}
	return failed
}

// verifyImage reads one image of the store whole.
func verifyImage(ctx context.Context, site *provision.Site, digest string) error {
	if site.Artifacts.Images == nil {
		return errkind.New(errkind.NotFound, "no image is built yet").Do("Build them: `ironrail image build`.")
	}
	return site.Artifacts.Images.Verify(ctx, digest)
}
