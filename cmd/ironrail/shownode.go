// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/parts"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/provision/status"
)

func (a *app) showNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "node NODE...",
		Short: "Show what a node is and has, from the files and the state",
		Long: `Show where nodes are, what they are made of and what they are given by the site's
files; whether the state knows more (a replaced chassis, a pin, parts that were
found bad elsewhere); and the parts that were inspected last. Why a node is not
up is what ironrail why tells. Nodes are named as for plan --target.`,
		Example:           "  ironrail show node r01-u09\n  ironrail show node rack.r01 --json | jq '.[].notes'",
		Args:              asUsage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeWords,
		RunE:              func(c *cobra.Command, args []string) error { return a.showNodes(c.Context(), args) },
	}
}

// nodeCard is one node as --json prints it.
type nodeCard struct {
	Node       string         `json:"node"`
	Up         bool           `json:"up"`
	Status     why.Status     `json:"standing"`
	State      string         `json:"state"`
	Place      *control.Place `json:"place,omitempty"`
	Image      string         `json:"image,omitempty"`
	Drivers    []string       `json:"drivers"`
	Validation string         `json:"validation,omitempty"`
	Handover   string         `json:"handover,omitempty"`
	Lists      []string       `json:"lists,omitempty"` // further hand-overs that list the node while it is in service
	Notes      []string       `json:"notes"`
	Parts      []parts.Fit    `json:"parts"`
}

// showNodes reads the state as it stands, also while a run is active.
func (a *app) showNodes(ctx context.Context, words []string) error {
	inv, err := a.names()
	if err != nil {
		return err
	}
	names, err := selection.ReadNodes(inv, words)
	if err != nil {
		return err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	cards := make([]nodeCard, 0, len(names))
	for _, name := range names {
		y, err := status.ReadNode(ctx, inv, r, name)
		if err != nil {
			return err
		}
		fitted, err := parts.In(ctx, r, name)
		if err != nil {
			return err
		}
		n, _ := inv.Node(name)
		cards = append(cards, cardOf(n, why.ExplainNode(y, false, a.now()), fitted))
	}
	if a.json {
		return a.printJSON(cards)
	}
	var p page
	for i, c := range cards {
		if i > 0 {
			p.linef("")
		}
		p.card(c)
	}
	p.to(a.out)
	return nil
}

func cardOf(n *inventory.Node, s why.Explanation, fitted parts.Fitted) nodeCard {
	c := nodeCard{Node: n.Name, Up: s.Answer.Up, Status: s.Answer.Status, State: s.Answer.State, Place: s.Place, Drivers: []string{},
		Notes: append([]string{}, s.Notes...), Parts: append([]parts.Fit{}, fitted.Parts...)}
	for _, d := range n.Drivers {
		c.Drivers = append(c.Drivers, d.Name)
	}
	of := n.BlockNames()
	c.Image, c.Handover = of.Image, of.Handover
	for _, h := range n.Exports {
		c.Lists = append(c.Lists, h.Name)
	}
	if n.Validation != nil {
		c.Validation = n.Validation.Name
	}
	return c
}

// card is one node for a person.
func (p *page) card(c nodeCard) {
	up := "is not up"
	if c.Up {
		up = "is up"
	}
	p.linef("%s %s: %s", c.Node, up, c.State)
	for _, n := range c.Notes {
		p.linef("  %s", n)
	}
	row := func(name, value string) {
		if value != "" {
			p.linef("  %-10s %s", name, value)
		}
	}
	if w := c.Place; w != nil {
		row("place", fmt.Sprintf("rack %s, unit %d", w.Rack, w.Unit))
		row("role", strings.TrimSuffix(w.Role+", hardware "+w.Hardware, ", hardware "))
		row("serial", w.Serial)
		row("BMC", strings.TrimSpace(w.BMC+" "+w.Protocol))
		row("mains", strings.Join(w.PDUs, ", "))
		row("boot NIC", strings.TrimSpace(w.BootNIC+" "+w.BootMAC))
	}
	row("image", c.Image)
	row("drivers", strings.Join(c.Drivers, ", "))
	row("validation", c.Validation)
	row("handover", c.Handover)
	row("lists", strings.Join(c.Lists, ", "))
	if len(c.Parts) == 0 {
		row("parts", "none is known: it was not inspected yet")
	}
	for i, x := range c.Parts {
		name := ""
		if i == 0 {
			name = "parts"
		}
		p.linef("  %-10s %-8s %-20s %s", name, x.Kind, x.Serial, strings.TrimSpace(x.Slot+" "+x.Model))
	}
}
