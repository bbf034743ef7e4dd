// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/parts"
	"github.com/ironrail/ironrail/provision/selection"
)

func (a *app) showPartsCommand() *cobra.Command {
	var bad bool
	c := &cobra.Command{
		Use:   "parts [NODE...]",
		Short: "List parts by serial number, and what was found of them",
		Long: `List the chassis, DIMMs, disks and NICs that nodes had when they were inspected
last, with their serial numbers (of a NIC its MAC), and what was ever found of them,
wherever that was. --bad lists only those that something was found of, and also
those that are in no node any more.

Only what the install ramdisk sees is known, and only of nodes that this state has
installed. GPUs and mainboards have no serial number here: what is found of them is
remembered with the chassis. Nodes are named as for plan --target.`,
		Example:           "  ironrail show parts r01-u09\n  ironrail show parts --bad\n  ironrail show parts --bad --json | jq '.[].serial'",
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE:              func(c *cobra.Command, args []string) error { return a.showParts(c.Context(), args, bad) },
	}
	c.Flags().BoolVar(&bad, "bad", false, "only parts that something was found of")
	return c
}

// partRow is one part as --json prints it.
type partRow struct {
	parts.Part
	Node     string          `json:"node,omitempty"` // where it was seen last; empty: in no node any more
	Slot     string          `json:"slot,omitempty"`
	Seen     []parts.Seen    `json:"seen,omitempty"`
	Findings []parts.Finding `json:"findings,omitempty"`
}

func (a *app) showParts(ctx context.Context, words []string, bad bool) error {
	inv, err := a.names()
	if err != nil {
		return err
	}
	names, err := selection.ReadNodes(inv, words)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		names = nodeNames(inv)
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	rows, err := partRows(ctx, r, names, len(words) == 0)
	if err != nil {
		return err
	}
	if bad {
		rows = slices.DeleteFunc(rows, func(p partRow) bool { return len(p.Findings) == 0 })
	}
	if a.json {
		return a.printJSON(rows)
	}
	a.writeParts(rows, bad)
	return nil
}

// partRows are the parts of nodes, and with gone also those that are in none.
func partRows(ctx context.Context, r state.Reader, nodes []string, gone bool) ([]partRow, error) {
	rows := []partRow{}
	all, err := parts.ReadAll(ctx, r)
	if err != nil {
		return nil, err
	}
	history := map[state.Key]parts.History{}
	for _, h := range all {
		history[h.Key()] = h
	}
	for _, n := range nodes {
		f, err := parts.In(ctx, r, n)
		if err != nil {
			return nil, err
		}
		for _, p := range f.Parts {
			h := history[p.Key()]
			delete(history, p.Key())
			rows = append(rows, partRow{p.Part, n, p.Slot, h.Seen, h.Findings})
		}
	}
	for _, h := range all {
		if _, left := history[h.Key()]; left && gone {
			rows = append(rows, partRow{Part: h.Part, Seen: h.Seen, Findings: h.Findings})
		}
	}
	return rows, nil
}

// writeParts prints a table, and below each part what was found of it.
func (a *app) writeParts(rows []partRow, bad bool) {
	var p page
	if len(rows) == 0 {
		text := "No part is known: nodes are inspected when they are installed."
		if bad {
			text = "Nothing was found of any part."
		}
		p.linef("%s", text)
	}
	for _, x := range rows {
		where := "in no node"
		if x.Node != "" {
			where = strings.TrimSpace(x.Node + " " + x.Slot)
		}
		p.linef("%-8s %-20s %-28s %s", x.Kind, x.Serial, where, strings.TrimSpace(x.Model))
		for _, f := range x.Findings {
			p.linef("         %s on %s: %s (%s)", f.At.UTC().Format(time.DateOnly), strings.TrimSpace(f.Node+" "+f.Slot), f.Cause, f.Step)
		}
	}
	p.to(a.out)
}

// knownBad says which parts of nodes were found bad before.
func (a *app) knownBad(ctx context.Context, r state.Reader, nodes []string) error {
	for _, n := range nodes {
		f, err := parts.In(ctx, r, n)
		if err != nil {
			return err
		}
		bad, err := parts.Suspects(ctx, r, f.Parts)
		if err != nil {
			return err
		}
		for _, s := range bad {
			a.sayf("warning: %s: %s", n, s.Sentence())
		}
	}
	return nil
}
