// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision/artifacts"
)

func (a *app) repoCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:     "repo",
		Short:   "Mirror and verify package repositories",
		Long:    "Work on the package repositories that driver stacks are installed from.",
		Example: "  ironrail repo mirror /srv/mirror\n  ironrail repo verify",
	}, a.repoMirrorCommand(), &cobra.Command{
		Use:   "verify [DRIVER...]",
		Short: "Compare repositories with signatures and lock file",
		Long: `Read the repositories that this controller made for the named drivers, for all when
none is named, once for each image: the signature of each index, every byte of each
package by the index, and names, versions and digests by ironrail.lock. Nothing is
written. Exit code 1 when one is missing, damaged or not what is locked.`,
		Example: "  ironrail repo verify\n  ironrail repo verify r580 --json",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE:    func(c *cobra.Command, args []string) error { return a.verifyRepos(c.Context(), args) },
	})
}

func (a *app) repoMirrorCommand() *cobra.Command {
	from := ""
	c := &cobra.Command{
		Use:   "mirror DIR [DRIVER...]",
		Short: "Copy of the vendors' repositories what the drivers need",
		Long: `Copy of the repositories that driver blocks name what the site's nodes need into
a folder, below host and path of their URLs: the signed index as it is, and the
packages of the drivers in their versions, with what these need of the same
repository. The index is compared with the key of the block first, each file with
its digest. What is there is not fetched again, and what broke off goes on.
Served by any web server under the same names, or with other URLs in the blocks,
the folder is what "image build" needs of the vendors in a network without the
Internet; the distribution's own archives are mirrored by its own programs.

--from names the vendor's URL where that of the block is the mirror's own already.`,
		Example: "  ironrail repo mirror /srv/mirror\n  ironrail repo mirror /srv/mirror r580 --from https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/",
		Args:    asUsage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if from != "" && len(args) != 2 {
				return wrongUsage(c, errors.New("--from goes with one driver"))
			}
			return a.mirrorRepos(c.Context(), args[0], from, args[1:])
		},
	}
	c.Flags().StringVar(&from, "from", "", "URL that the repository of the one named driver is copied from")
	return c
}

func (a *app) mirrorRepos(ctx context.Context, to, from string, drivers []string) error {
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	done, failed := site.Artifacts.MirrorSources(ctx, to, from, drivers, func(text string) { a.sayf("%s", text) })
	if a.json {
		return errors.Join(failed, a.printJSON(append([]artifacts.Mirrored{}, done...)))
	}
	var p page
	for _, m := range done {
		p.linef("driver.%s for image.%s: %d packages, %s, in %s", m.Driver, m.Image, m.Packages, formatSize(m.Size), m.Folder)
		if len(m.Absent) > 0 {
			p.linef("  not in this repository, and from those of the image: %s", strings.Join(m.Absent, ", "))
		}
		if m.Unsigned {
			p.linef("  its index is not signed: each package has to be, which `ironrail image build` looks at")
		}
	}
	if len(done) == 0 && failed == nil {
		p.linef("Nothing to mirror: no driver of a node names a repository.")
	}
	p.to(a.out)
	return failed
}

func (a *app) verifyRepos(ctx context.Context, drivers []string) error {
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	list, err := site.Artifacts.VerifyRepositories(ctx, drivers, func(c artifacts.RepositoryCheck) {
		if a.json {
			return
		}
		text := fmt.Sprintf("driver.%s for image.%s: %s", c.Driver, c.Image, c.State)
		if c.Packages > 0 {
			text += fmt.Sprintf(", %d packages, %s", c.Packages, formatSize(c.Size))
		}
		if c.Problem != "" {
			text += ": " + c.Problem + ". " + c.Action
		}
		fmt.Fprintln(a.out, event.Escape(text)) // as it is found: reading one takes a while
	})
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(append([]artifacts.RepositoryCheck{}, list...)); err != nil {
			return err
		}
	}
	for _, c := range list {
		if c.Bad() {
			return exit{code: exitFailed}
		}
	}
	return nil
}
