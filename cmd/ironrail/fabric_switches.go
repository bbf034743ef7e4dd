// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/fabricreview"
)

// largestDump is the most that is read of a switch's configuration, bytes.
const largestDump = 64 << 20

func (a *app) fabricSwitchesCommand() *cobra.Command {
	var ports []string
	var patches string
	c := &cobra.Command{
		Use:   "switches DUMP...",
		Short: "Compare the configuration of SONiC switches with the site",
		Long: `Compare what SONiC switches have with what the site says they should have: ports,
addresses of links, BGP, and all that keeps RDMA from being dropped. DUMP is a
switch's CONFIG_DB: what "sonic-cfggen -d --print-data" prints, or
/etc/sonic/config_db.json; the switch is known by its host name. With --port, what
mlnx_qos printed on a node is held against what the switch at the other end of the
cable does: priorities, PFC, and DSCPs must be the same on both ends.

Nothing is contacted and nothing is changed. --patch writes a JSON patch for each
switch that differs, for "config apply-patch".

Exit codes: 0 all is as the site says, 2 something is not.`,
		Example: "  ssh admin@leaf-1 sonic-cfggen -d --print-data > leaf-1.json\n  ironrail fabric switches leaf-1.json\n  ironrail fabric switches leaf-1.json --patch patches\n  ironrail fabric switches leaf-1.json --port gpu-1/rail/0=gpu-1-rail0.txt",
		Args:    asUsage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.verifySwitches(args, ports, patches)
		},
	}
	c.Flags().StringArrayVar(&ports, "port", nil, "`NODE/NIC/PORT=FILE`: what mlnx_qos printed for that port; may be repeated")
	c.Flags().StringVar(&patches, "patch", "", "a folder for JSON patches, which is made")
	return c
}

func (a *app) verifySwitches(files, ports []string, patches string) error {
	var dumps []fabricreview.Dump
	read := func(file, port string) error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if info.Size() > largestDump {
			return errkind.New(errkind.Refused, "%s has %d bytes; a CONFIG_DB has %d at most", file, info.Size(), largestDump)
		}
		content, err := os.ReadFile(file)
		dumps = append(dumps, fabricreview.Dump{File: file, Port: port, Content: content})
		return err
	}
	for _, f := range files {
		if err := read(f, ""); err != nil {
			return err
		}
	}
	for _, p := range ports {
		port, file, found := strings.Cut(p, "=")
		if !found || port == "" || file == "" {
			return usageOf("ironrail fabric switches", errors.New("--port is NODE/NIC/PORT=FILE, such as gpu-1/rail/0=qos.txt"))
		}
		if err := read(file, port); err != nil {
			return err
		}
	}
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	list, err := site.FabricReview().VerifySwitches(dumps)
	if err != nil {
		return err
	}
	if err := writePatches(list, patches); err != nil {
		return err
	}
	return a.showSwitches(list)
}

// writePatches writes one file for each switch that differs.
func writePatches(list []fabricreview.SwitchReport, folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, r := range list {
		if r.Patch == nil {
			continue
		}
		name := filepath.Join(folder, strings.ReplaceAll(r.Switch, "/", "-")+".patch.json")
		if err := os.WriteFile(name, r.Patch, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showSwitches(list []fabricreview.SwitchReport) error {
	wrong := 0
	for _, r := range list {
		wrong += r.Findings()
	}
	if a.json {
		if err := a.printJSON(list); err != nil {
			return err
		}
	} else {
		var p page
		for _, r := range list {
			for _, text := range append(append(append([]string{}, r.Mismatches...), r.Headroom...), r.Differences...) {
				p.linef("%s", text)
			}
			p.linef("Switch %s of fabric %s: %d %s.", r.Switch, r.Fabric, r.Findings(), pluralOf(r.Findings(), "finding", "findings"))
		}
		p.to(a.out)
	}
	if wrong > 0 {
		return exit{code: exitChanges}
	}
	return nil
}
