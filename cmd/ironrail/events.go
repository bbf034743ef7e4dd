// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision/onrecord"
)

func (a *app) eventsCommand() *cobra.Command {
	var follow bool
	var node, since string
	c := &cobra.Command{
		Use:   "events",
		Short: "Print what happened, or follow what happens",
		Long: `Print the events of a running apply, or those of earlier runs that are kept.
With --follow go on until the run ends. --json prints one JSON object a line, as
apply --json does. Some 64 MiB of events are kept, the oldest go first; what was
done stays in the journal of the state.`,
		Example: "  ironrail events --follow\n  ironrail events --node n7 --since 2h --json\n  ironrail events --since '2026-03-01 08:00'",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("node") {
				if _, err := a.names(node); err != nil {
					return err
				}
			}
			from, err := a.sinceTime(since)
			if err != nil {
				return wrongUsage(c, err)
			}
			return a.events(c.Context(), follow, func(e event.Event) error {
				if (node == "" || e.Node == node) && !e.Time.Before(from) {
					a.printEvent(e)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().StringVar(&node, "node", "", "only of this `NODE`")
	c.Flags().StringVar(&since, "since", "", "only from this `TIME` on: 90m, 2h, 2026-03-01 or '2026-03-01 08:00'")
	// An error would be a flag that was not defined just above.
	_ = c.RegisterFlagCompletionFunc("node", a.completeNodes)
	return c
}

// sinceTime reads a time that is given as an age or as a date; zero for "".
func (a *app) sinceTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return a.now().Add(-d.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q is neither an age such as 2h nor a time such as '2026-03-01 08:00'", text)
}

func (a *app) events(ctx context.Context, follow bool, f func(event.Event) error) error {
	owned, err := a.asked(func(c *control.Client) error { return c.Events(ctx, 0, follow, f) })
	if owned || err != nil {
		return err
	}
	if follow {
		a.sayf("No run is active; these are the events that are kept.")
	}
	return onrecord.KeptEvents(a.stateDir(), f)
}

func (a *app) printEvent(e event.Event) {
	if a.json {
		a.printLine(e)
		return
	}
	var p page
	p.linef("%s %-13s %-26s %s", e.Time.Local().Format(time.DateTime), e.Type, textOr(e.Step, e.Node), e.Text)
	p.to(a.out)
}
