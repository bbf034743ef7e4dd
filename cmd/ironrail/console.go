// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
)

func (a *app) consoleCommand() *cobra.Command {
	var limit time.Duration
	c := &cobra.Command{
		Use:   "console NODE",
		Short: "Read a node's serial console over its BMC",
		Long: `Print what a node says on its serial console from now on, by serial over LAN of
an IPMI BMC. Nothing is ever typed. Start it before the node boots: a BMC keeps
nothing of what was said before. It takes a session of its own at the BMC, and
waits for a BMC that starts again. A console has one reader: while apply waits
for the node it is apply, and ironrail why NODE shows the last lines.

Lines that name a cause, such as a kernel panic or PXE-E51, are explained on
stderr. Ctrl-C or --for ends it. --json prints one object for each line, with
node, time, text and, where it is known, cause.`,
		Example: "  ironrail console r01-u09\n  ironrail console r01-u09 --for 15m >r01-u09.console",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return errkind.New(errkind.Refused, "--for %v is below zero", limit).Do("Give a time such as 15m.")
			}
			return a.console(c.Context(), args[0], limit)
		},
		ValidArgsFunction: a.completeWords,
	}
	c.Flags().DurationVar(&limit, "for", 0, "how long to read, such as 15m; 0: until Ctrl-C")
	return c
}

func (a *app) console(ctx context.Context, node string, limit time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	site, err := a.openRecords(node)
	if err != nil {
		return err
	}
	reader, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	ob, err := site.Observer(ctx, reader)
	if err != nil {
		return err
	}
	screen := why.Screen{Line: func(text string) { a.consoleLine(node, text) }}
	defer screen.Flush()
	return ob.Console(ctx, reader, node, &screen, func() { a.sayf("The console of %s is open; nothing is typed.", node) })
}

// spoken is one line of a console as data.
type spoken struct {
	Node  string              `json:"node"`
	Time  time.Time           `json:"time"` // when it came here
	Text  string              `json:"text"`
	Cause *why.ConsoleMessage `json:"cause,omitempty"`
}

// consoleLine prints one line of a console, and what it means.
func (a *app) consoleLine(node, text string) {
	message, known := why.ExplainConsoleLine(text)
	if a.json {
		x := spoken{Node: node, Time: time.Now().UTC(), Text: text}
		if known {
			x.Cause = &message
		}
		a.printLine(x)
		return
	}
	var p page
	p.linef("%s", text)
	p.to(a.out)
	if known {
		a.sayf("%s: %s. %s", node, message.Cause, message.Action)
	}
}
