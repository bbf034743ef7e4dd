package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/state"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show where every node stands",
		Long: `Show where every node stands, one line each, and what a running apply does now:
the step, what it waits for, since when and until when at the latest. Works from
a second terminal while apply runs, and without a run.

--json prints one object: owner and run (null without a run) and nodes.`,
		Example: "  ironrail status\n  ironrail status --json | jq -r '.nodes[] | select(.quarantine) | .name'",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.status(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			writeStatus(a.out, s, a.now())
			return nil
		},
	}
}

// standings is what status shows. Owner and Run are nil while nobody owns the
// state.
type standings struct {
	Owner *control.Identity `json:"owner"`
	Run   *apply.Status     `json:"run"`
	Nodes []state.Node      `json:"nodes"` // every node of the site, in its order
}

// status asks the owner, or reads the state when there is none.
func (a *app) status(ctx context.Context) (s standings, err error) {
	owned, err := a.asked(func(c *control.Client) error {
		got, err := c.Status(ctx)
		s = standings{Owner: &got.Owner, Run: got.Run, Nodes: got.Nodes}
		return err
	})
	if err != nil {
		return s, err
	}
	if !owned {
		s.Nodes, err = a.storedNodes(ctx)
	}
	if s.Run != nil && s.Run.Active == nil {
		s.Run.Active = []apply.StepStatus{}
	}
	if s.Nodes == nil {
		s.Nodes = []state.Node{}
	}
	return s, err
}

// storedNodes lists the nodes of the site as the state knows them.
func (a *app) storedNodes(ctx context.Context) ([]state.Node, error) {
	inv, err := a.inventory()
	if err != nil {
		return nil, err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return nil, err
	}
	defer closeState()
	return provision.NodeStates(ctx, inv, r)
}

func writeStatus(w io.Writer, s standings, now time.Time) {
	var p page
	defer func() { p.to(w) }()
	if s.Run == nil {
		p.linef("No run is active.")
		for _, n := range s.Nodes {
			p.linef("%-14s %s", n.Name, standing(n, now))
		}
		return
	}
	p.linef("%s runs plan %s.", s.Owner, s.Run.Plan)
	if s.Run.Draining {
		p.linef("It drains: running steps are let end, nothing new starts.")
	}
	steps, of := map[string]apply.NodeStatus{}, map[string]apply.StepStatus{}
	for _, n := range s.Run.Nodes {
		steps[n.Name] = n
	}
	for _, x := range s.Run.Active {
		if x.Node != "" {
			of[x.Node] = x
		}
	}
	for _, n := range s.Nodes {
		p.linef("%-14s %s", n.Name, underWay(n, steps[n.Name], of[n.Name], now))
	}
	for _, x := range s.Run.Active {
		if x.Node == "" {
			p.linef("%-14s %s%s", or(string(x.ID), x.Stage), doing(x, now), members(x))
		}
	}
}

// members names the members of a group step.
func members(x apply.StepStatus) string {
	if len(x.Members) == 0 {
		return ""
	}
	return " [" + shorten(x.Members, mostNames) + "]"
}

// underWay says in a line where a node stands while a run is active.
func underWay(n state.Node, in apply.NodeStatus, x apply.StepStatus, now time.Time) string {
	switch {
	case n.Hold != nil, n.Quarantine != nil, in.Name == "":
		return standing(n, now)
	case x.ID != "":
		return fmt.Sprintf("%2d/%-2d %-20s %s", in.Done, in.Total, short(x.ID), doing(x, now))
	case in.Outcome == apply.NodeActive:
		return fmt.Sprintf("%2d/%-2d waits for a step of others", in.Done, in.Total)
	}
	return fmt.Sprintf("%2d/%-2d %s", in.Done, in.Total, standing(n, now))
}

// doing says what a step does or waits for, since when and until when.
func doing(x apply.StepStatus, now time.Time) string {
	parts := []string{progressed(x.Text, x.Done, x.Total)}
	if when := span(x.Since, x.Until, now); when != "" {
		parts = append(parts, when)
	}
	return strings.Join(parts, ", ")
}

// standing says in a line where a node stands.
func standing(n state.Node, now time.Time) string {
	switch {
	case n.Hold != nil:
		s := fmt.Sprintf("held by %s since %s", n.Hold.By, moment(n.Hold.At, now))
		if n.Hold.Reason != "" {
			s += ": " + n.Hold.Reason
		}
		return s
	case n.Quarantine != nil:
		return fmt.Sprintf("quarantined since %s: %s", moment(n.Quarantine.At, now), n.Quarantine.Finding.Cause)
	case n.Accepted:
		return "accepted " + moment(n.AcceptedAt, now)
	case n.Adopted:
		return "adopted as it was found (unverified) " + moment(n.AdoptedAt, now)
	case n.Run != "":
		return "not accepted yet"
	}
	return "nothing was done yet"
}
