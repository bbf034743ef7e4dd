// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/provision"
)

func (a *app) imageShowCommand() *cobra.Command {
	var asSBOM bool
	c := &cobra.Command{
		Use:   "show NAME|DIGEST",
		Short: "Show what an image is: system, kernel, packages, files",
		Long: `Show what the signed manifest of an image says. NAME is an image block of the
site, and stands for the image that its nodes are installed with; a DIGEST may be
shortened. The manifest is compared with its digest and this controller's
signature; the files are not read: "image verify" does that.

With --sbom the packages of the image are printed as SPDX 2.3 in JSON.`,
		Example: "  ironrail image show os\n  ironrail image show os --sbom > os.spdx.json",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			site, _, err := a.openReadOnly()
			if err != nil {
				return err
			}
			digest, err := findImage(site, args[0])
			if err != nil {
				return err
			}
			if asSBOM {
				return a.printSBOM(c.Context(), site.Artifacts.Images, digest)
			}
			return a.showImage(site.Artifacts.Images, digest)
		},
	}
	c.Flags().BoolVar(&asSBOM, "sbom", false, "print the packages as SPDX 2.3 in JSON")
	return c
}

// shortest is how many hex digits a shortened digest has at the least.
const shortest = 6

// findImage returns the digest of the image that a name or a digest, perhaps shortened,
// stands for.
func findImage(site *provision.Site, name string) (string, error) {
	all, err := storedImages(site)
	if err != nil {
		return "", err
	}
	blocks, err := site.Artifacts.Digests()
	if err != nil {
		return "", err
	}
	if digest, ok := blocks[name]; ok {
		if digest == "" || site.Artifacts.Images == nil {
			return "", errkind.New(errkind.NotFound, "image %q is not built", name).Do("Build it: `ironrail image build " + name + "`.")
		}
		return digest, nil
	}
	hex := strings.TrimPrefix(name, "sha256:")
	var found []string
	for _, i := range all {
		if len(hex) >= shortest && strings.HasPrefix(i.Digest, "sha256:"+hex) {
			found = append(found, i.Digest)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", errkind.New(errkind.NotFound, "there is no image %q: neither a block of the site nor a digest in the store", name).
			Do("See what is there: `ironrail image list`.")
	}
	return "", errkind.New(errkind.Conflict, "%q begins the digests %s", name, strings.Join(found, ", ")).Do("Write more of the digest.")
}

// shownImage is an image as --json prints it.
type shownImage struct {
	Digest string           `json:"digest"`
	Name   string           `json:"name"`
	Recipe string           `json:"recipe"`
	Format int              `json:"format"` // of the manifest
	Size   int64            `json:"size"`   // bytes on a node's disk
	Stored int64            `json:"stored"` // bytes of the compressed disk
	SHA256 string           `json:"sha256"` // of the disk
	System manifest.System  `json:"system"`
	Files  []manifest.File  `json:"files"`
	Vendor *manifest.Vendor `json:"vendor,omitempty"` // who signed the file that it was made of
	Signer string           `json:"signer"`           // public key, base64
}

func (a *app) showImage(s *store.Store, digest string) error {
	m, err := s.Manifest(digest)
	if err != nil {
		return err
	}
	i := shownImage{Digest: digest, Name: m.Name, Recipe: m.Recipe, Format: m.Format, Size: m.Size, Stored: m.Blob, SHA256: m.SHA256, Files: m.Files, Vendor: m.Vendor, Signer: s.PublicKey()}
	if m.System != nil {
		i.System = *m.System
	}
	if a.json {
		return a.printJSON(i)
	}
	i.page().to(a.out)
	return nil
}

// page is an image for a person.
func (i shownImage) page() *page {
	p := new(page)
	row := func(what, text string) { p.linef("%-10s %s", what, text) }
	row("image", i.Name)
	row("digest", i.Digest)
	row("recipe", i.Recipe)
	if s := i.System; s != (manifest.System{}) {
		row("system", strings.Join(strings.Fields(s.Distribution+" "+s.Release), " "))
		row("arch", s.Arch)
		row("kernel", s.Kernel)
		if s.Packages > 0 {
			p.linef("%-10s %d", "packages", s.Packages)
		} else if s.PackagesUnread != "" {
			row("packages", "not read: "+s.PackagesUnread)
		}
	} else {
		row("system", "not known: the image was built by an older version")
	}
	row("disk", strings.TrimSpace(formatSize(i.Size))+", "+strings.TrimSpace(formatSize(i.Stored))+" stored, SHA-256 "+i.SHA256)
	if v := i.Vendor; v != nil {
		proof := "itself"
		if v.List != "" {
			proof = "in a list of checksums, SHA-256 " + v.List
		}
		row("source", fmt.Sprintf("%s, SHA-256 %s, signed by %s: %s", v.File, v.SHA256, v.Key, proof))
	}
	row("signed", "by this controller, key "+i.Signer)
	for _, f := range i.Files {
		p.linef("%-10s %-20s %10d bytes  SHA-256 %s", "file", f.Name, f.Size, f.SHA256)
	}
	return p
}

// printSBOM prints the packages of an image as they were listed when it was built, if they
// still are what was signed.
func (a *app) printSBOM(ctx context.Context, s *store.Store, digest string) error {
	text, err := s.ReadFile(ctx, digest, images.SBOMFile)
	if errors.Is(err, fs.ErrNotExist) {
		if m, err := s.Manifest(digest); err == nil && m.System != nil && m.System.PackagesUnread != "" {
			return errkind.New(errkind.NotFound, "image %s has no list of its packages: %s", store.Short(digest), m.System.PackagesUnread)
		}
		return errkind.New(errkind.NotFound, "image %s has no list of its packages: an older version built it", store.Short(digest)).
			Do("Build it again where you want one.")
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}
