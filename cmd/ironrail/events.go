package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/event"
)

func (a *app) eventsCommand() *cobra.Command {
	var follow bool
	var node string
	c := &cobra.Command{
		Use:   "events",
		Short: "Print what happened, or follow what happens",
		Long: `Print the events of a running apply, or those of earlier runs that are kept.
With --follow go on until the run ends. --json prints one JSON object a line.`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.events(c.Context(), follow, func(e event.Event) error {
				if node == "" || e.Node == node {
					a.printEvent(e)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().StringVar(&node, "node", "", "only of this node")
	return c
}

func (a *app) events(ctx context.Context, follow bool, f func(event.Event) error) error {
	_, owned, err := control.Find(a.stateDir())
	switch {
	case err != nil:
		return err
	case owned:
		return control.NewClient(a.stateDir()).Events(ctx, 0, follow, f)
	case follow:
		fmt.Fprintln(a.err, "No run is active; these are the events that are kept.")
	}
	return a.logged(f)
}

func (a *app) printEvent(e event.Event) {
	if a.json {
		a.printLine(e)
		return
	}
	fmt.Fprintf(a.out, "%s %-13s %-26s %s\n", e.Time.Local().Format(time.DateTime), e.Type, or(e.Step, e.Node), event.Escape(e.Text))
}

func or(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// maxLine bounds one event in a segment file.
const maxLine = 1 << 20

// logged gives every event of the segment files to f, oldest first.
func (a *app) logged(f func(event.Event) error) error {
	names, err := event.Segments(filepath.Join(a.stateDir(), "events"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
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
func readSegment(name string, f func(event.Event) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return lines.Err()
}

// loggedEvidence is what the boot services saw of a node, and of clients that
// belong to nobody, in the runs whose events are kept.
func (a *app) loggedEvidence(node string) (out []event.Event, err error) {
	err = a.logged(func(e event.Event) error {
		if e.Type == event.Evidence && (e.Node == node || e.Node == "") {
			out = append(out, e)
		}
		return nil
	})
	return out, err
}
