// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/fabricreview"
)

func (a *app) fabricCommand() *cobra.Command {
	var name, out string
	verify := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Compare the cables of an InfiniBand fabric with a sweep",
		Long: `Compare the cables that the site intends with those that a sweep of the fabric
finds: missing ones, exchanged ones with the plugs to exchange, additional ones,
and links that are slower or narrower than they should be. FILE is what
ibnetdiscover printed; without one the fabric is swept from this controller.
Nothing is changed, and no subnet manager is needed.

Ports are known by the GUIDs that nodes told of in earlier runs; where there are
none, by what their HCAs call themselves (HOST mlx5_0). Switches are known by
their names, or by what most of their cables are meant for.

Exit codes: 0 every cable that was found is right, 2 some are not.`,
		Example: "  ironrail fabric verify\n  ibnetdiscover > sweep.txt; ironrail fabric verify sweep.txt\n  ironrail fabric verify --fabric compute --json sweep.txt",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.verifyFabric(c.Context(), name, args)
		},
	}
	verify.Flags().StringVar(&name, "fabric", "", "the fabric; needed where the site has several InfiniBand ones")
	render := &cobra.Command{
		Use:   "render [FABRIC...]",
		Short: "Write what fabrics are configured with, for review",
		Long: `Write the files that the subnet managers and switches of fabrics are configured
with into a folder, below it one for each fabric and host. Nothing is loaded.
What only the nodes know, such as GUIDs, is that of earlier runs; members that are
not known yet are left out.`,
		Example: "  ironrail fabric render --out review\n  ironrail fabric render compute --out review",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, args []string) error {
			return a.renderFabrics(c.Context(), args, out)
		},
	}
	render.Flags().StringVar(&out, "out", "", "the folder, which is made")
	return groupCommands(&cobra.Command{
		Use:     "fabric",
		Short:   "Review fabrics: files and cables",
		Long:    "Look at what fabrics are configured with, and how they are cabled.",
		Example: "  ironrail fabric verify sweep.txt\n  ironrail fabric render --out review",
	}, verify, render, a.fabricSwitchesCommand())
}

// largestSweep is the most that is read of a file, bytes; 8,832 devices print 6 MiB.
const largestSweep = 64 << 20

func (a *app) verifyFabric(ctx context.Context, name string, args []string) error {
	var output []byte
	if len(args) > 0 {
		info, err := os.Stat(args[0])
		if err != nil {
			return err
		}
		if info.Size() > largestSweep {
			return errkind.New(errkind.Refused, "%s has %d bytes; the output of ibnetdiscover has %d at most", args[0], info.Size(), largestSweep)
		}
		if output, err = os.ReadFile(args[0]); err != nil {
			return err
		}
	}
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	rep, err := site.FabricReview().VerifyCables(ctx, r, name, output)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(rep)
	} else {
		writeFabric(a, rep)
	}
	if err == nil && len(rep.Findings) > 0 {
		return exit{code: exitChanges}
	}
	return err
}

// writeFabric shows findings, then the sums.
func writeFabric(a *app, rep fabricreview.CableReport) {
	var p page
	for _, f := range rep.Findings {
		p.linef("%s", f.Cause)
		for _, text := range f.Evidence {
			p.linef("  seen: %s", text)
		}
		p.linef("  do:   %s", f.Action)
	}
	const most = 10
	for i, text := range rep.Strange {
		if i == most {
			p.linef("note: %d more devices are none of the site's", len(rep.Strange)-most)
			break
		}
		p.linef("note: %s is none of the site's", text)
	}
	for i, x := range rep.UnknownCables {
		if i == most {
			p.linef("note: %d more cables are unknown; --json lists all", len(rep.UnknownCables)-most)
			break
		}
		p.linef("note: the cable of %s to %s is unknown: %s", x.Cable, x.To, x.Why)
	}
	p.linef("Fabric %s: %d of %d cables are as the site says, %d are unknown; %d %s recognised, %d %s.",
		rep.Fabric, rep.Conform, rep.Cables, rep.Unknown, rep.Switches, pluralOf(rep.Switches, "switch was", "switches were"), len(rep.Findings), pluralOf(len(rep.Findings), "finding", "findings"))
	p.to(a.out)
}

func (a *app) renderFabrics(ctx context.Context, names []string, out string) error {
	if out == "" {
		return usageOf("ironrail fabric render", errors.New("say where with --out FOLDER"))
	}
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	files, err := site.FabricReview().Files(ctx, r, names...)
	if err != nil {
		return err
	}
	type row struct {
		Path  string `json:"path"`
		Bytes int    `json:"bytes"`
	}
	rows := []row{}
	for _, f := range files {
		path := filepath.Join(out, f.Fabric, strings.ReplaceAll(f.Of, "/", "-"), f.Name)
		if !fs.ValidPath(filepath.ToSlash(filepath.Join(f.Fabric, f.Name))) {
			return errkind.New(errkind.Internal, "%q is no name of a file", f.Name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil {
			return err
		}
		rows = append(rows, row{path, len(f.Content)})
	}
	if a.json {
		return a.printJSON(rows)
	}
	var p page
	for _, x := range rows {
		p.linef("%s", x.Path)
	}
	p.linef("%d %s written.", len(rows), pluralOf(len(rows), "file", "files"))
	p.to(a.out)
	return nil
}
