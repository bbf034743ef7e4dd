// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
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
	return a.logged(f)
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

// maxLine bounds one event in a segment file.
const maxLine = 1 << 20

// logged gives every event of the segment files to f, oldest first.
func (a *app) logged(f func(event.Event) error) error {
	names, err := event.Segments(filepath.Join(a.stateDir(), "events"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := readSegment(name, f); err != nil {
			return err
		}
	}
	return nil
}

// readSegment passes over lines that are torn: a process may have died in one.
// A segment that was rotated away since it was listed has no events.
func readSegment(name string, f func(event.Event) error) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		var e event.Event
		if json.Unmarshal(line, &e) == nil {
			if err := f(e); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull): // what is too long is no event
			return err
		}
	}
}

// loggedEvidence is what the boot services saw of a node, and of clients that
// belong to nobody, in the last run whose events are kept.
func (a *app) loggedEvidence(node string) ([]event.Event, error) {
	out := []event.Event{}
	err := a.logged(func(e event.Event) error {
		switch {
		case e.Type == event.RunStarted:
			out = out[:0]
		case e.Type == event.Evidence && (e.Node == node || e.Node == ""):
			out = append(out, e)
		}
		return nil
	})
	return out, err
}
