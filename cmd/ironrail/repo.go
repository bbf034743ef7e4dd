// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/provision/artifacts"
)

func (a *app) repoCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:     "repo",
		Short:   "Mirror, add to and verify package repositories",
		Long:    "Work on the package repositories that driver stacks are installed from.",
		Example: "  ironrail repo mirror /srv/mirror\n  ironrail repo verify",
	}, a.repoMirrorCommand(), a.repoAddCommand(), &cobra.Command{
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

func (a *app) repoAddCommand() *cobra.Command {
	sum, key := "", ""
	c := &cobra.Command{
		Use:   "add FILE DRIVER",
		Short: "Add a package file to those of a driver",
		Long: `Add a .deb or .rpm file, which no repository has, to what the packages of a driver
are resolved from. It is copied into the state folder once it has the SHA-256 that
its vendor publishes or, an .rpm, the signature of the vendor's key. The signed
repositories of the driver are made again with it by "image build", else by apply,
where the driver asks for it or something that it asks for needs it: name it in the
packages of the block. Twice is the same as once.`,
		Example: "  ironrail repo add mft-4.34.1-10.x86_64.rpm doca --key keys/mellanox.asc\n  ironrail repo add mft_4.34.1-10_amd64.deb doca --checksum sha256:38974e70342150ede0e3fb8fd24bfe60ccbde90fa20241716ba8bb338e6b61a0",
		Args:    asUsage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case (sum == "") == (key == ""):
				return wrongUsage(c, errors.New("give --checksum or --key: nothing is added that nobody vouches for"))
			case sum != "" && !repo.IsSum(sum):
				return wrongUsage(c, fmt.Errorf("--checksum %q is no SHA-256: write sha256: and 64 hex digits", sum))
			}
			return a.addPackage(c.Context(), args[0], args[1], sum, key)
		},
	}
	c.Flags().StringVar(&sum, "checksum", "", "sha256:HEX of the file, as its vendor publishes it")
	c.Flags().StringVar(&key, "key", "", "file with the key that an .rpm is signed with, in ASCII armor")
	return c
}

func (a *app) addPackage(ctx context.Context, file, driver, sum, key string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	proof := repo.Proof{Sum: sum}
	if key != "" {
		if proof.Key, err = os.ReadFile(key); err != nil {
			return err
		}
	}
	done, err := site.Artifacts.AddPackage(ctx, file, driver, proof)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(done)
	}
	var p page
	p.linef("%s %s (%s) is added to driver.%s: %s", done.Name, done.Version, done.Arch, done.Driver, done.File)
	p.to(a.out)
	a.sayf("Name %q in the packages of driver %s, then `ironrail image build` makes its repositories again. To take it back, remove the file.", done.Name, done.Driver)
	return nil
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
