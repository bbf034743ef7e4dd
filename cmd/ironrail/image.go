package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/event"
)

func (a *app) imageCommand() *cobra.Command {
	c := &cobra.Command{Use: "image", Short: "Build, list and verify OS images and package repositories", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return exit{exitUsage, fmt.Errorf("say what: build, list or verify (see `%s --help`)", c.CommandPath())}
		}}
	c.AddCommand(
		&cobra.Command{
			Use:   "build [NAME...]",
			Short: "Build what the site's images and driver stacks need",
			Long: `Build the OS images of the site, the install ramdisk of each, and the signed
package repositories of the driver stacks, into the state folder. What is built
already, by the digest of its recipe, is left alone. Needs root and a package
mirror; apply needs neither afterwards.`,
			RunE: func(c *cobra.Command, args []string) error { return a.buildImages(c.Context(), args) },
		},
		&cobra.Command{Use: "list", Short: "List the images that are built", Args: usage(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return a.listImages() }},
		&cobra.Command{Use: "verify [DIGEST...]", Short: "Read images whole and compare them with their manifests",
			RunE: func(c *cobra.Command, args []string) error { return a.verifyImages(c.Context(), args) }},
	)
	return c
}

func (a *app) buildImages(ctx context.Context, names []string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	built, err := site.Build(ctx, names, func(text string) { fmt.Fprintln(a.err, event.Escape(text)) })
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(built)
	}
	for _, b := range built {
		fmt.Fprintf(a.out, "%-20s %s\n", b.Name, b.Digest)
	}
	return nil
}

func (a *app) listImages() error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	images, err := site.Images.List()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(images)
	}
	for _, i := range images {
		if i.Err != nil {
			fmt.Fprintf(a.out, "%s  damaged: %s\n", i.Digest, event.Escape(i.Err.Error()))
			continue
		}
		fmt.Fprintf(a.out, "%s  %-20s %8s plain, %8s stored\n", i.Digest, i.Manifest.Name, size(i.Manifest.Size), size(i.Manifest.Blob))
	}
	return nil
}

func (a *app) verifyImages(ctx context.Context, digests []string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	if len(digests) == 0 {
		images, err := site.Images.List()
		if err != nil {
			return err
		}
		for _, i := range images {
			digests = append(digests, i.Digest)
		}
	}
	bad := 0
	for _, d := range digests {
		if err := site.Images.Verify(ctx, d); err != nil {
			bad++
			a.complain(err)
			continue
		}
		fmt.Fprintf(a.out, "%s  verified\n", d)
	}
	if bad > 0 {
		return exit{code: exitFailed}
	}
	return nil
}
