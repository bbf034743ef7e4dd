// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/keystroke"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/terminal"
)

// consoleFlags are the options of console.
type consoleFlags struct {
	limit  time.Duration
	typing bool
	escape string
}

func (a *app) consoleCommand() *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console NODE",
		Short: "Read a node's serial console over its BMC, or type at it",
		Long: `Print what a node says on its serial console from now on, by serial over LAN of
an IPMI BMC. Nothing is typed without -i. Start it before the node boots: a BMC
keeps nothing of what was said before. It waits for a BMC that starts again. A BMC
opens its console once: while apply or serve runs it shares the one that it reads
with everybody who asks; without them there is one reader, and the console moves to
a run that begins, and back when it has ended.

Lines that name a cause, such as a kernel panic or PXE-E51, are explained on
stderr. Ctrl-C or --for ends it. --json prints one object for each line, with
node, time, text and, where it is known, cause.

With -i what you type goes to the node, Ctrl-C as well, and what the node sends
goes to your terminal as it is. At the beginning of a line ~. ends it, ~B sends a
break (SysRq of Linux on a serial line), ~~ is one ~, and ~? lists these; --escape
takes another character, ^] for Ctrl-], or none. Keys are also taken from a pipe,
whose end ends it. A node that somebody else has on hold is refused, and so is a
BMC that says another serial number or UUID than the files; a hold that comes later
ends typing, and reading goes on. Who typed, from when to when, is in ironrail why
NODE; what was typed is nowhere.`,
		Example: "  ironrail console r01-u09\n  ironrail console r01-u09 --for 15m >r01-u09.console\n  ironrail console -i r01-u09",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.limit < 0:
				return errkind.New(errkind.Refused, "--for %v is below zero", f.limit).Do("Give a time such as 15m.")
			case f.typing && a.json:
				return wrongUsage(c, errors.New("--json is for reading: it does not go with -i"))
			case !f.typing && c.Flags().Changed("escape"):
				return wrongUsage(c, errors.New("--escape goes with -i"))
			}
			escape, err := keystroke.ParseEscape(f.escape)
			if err != nil {
				return wrongUsage(c, err)
			}
			return a.console(c.Context(), args[0], f, escape)
		},
		ValidArgsFunction: a.completeWords,
	}
	c.Flags().DurationVar(&f.limit, "for", 0, "how long to read, such as 15m; 0: until Ctrl-C")
	c.Flags().BoolVarP(&f.typing, "interactive", "i", false, "type at the console")
	c.Flags().StringVar(&f.escape, "escape", "~", "the `CHARACTER` before commands, with -i: ^] for Ctrl-], or none")
	return c
}

func (a *app) console(ctx context.Context, node string, f consoleFlags, escape byte) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	if f.typing {
		return a.typeAt(ctx, node, escape)
	}
	screen := why.Screen{Line: func(text string) { a.consoleLine(node, text) }}
	defer screen.Flush()
	return a.openConsole(ctx, control.ConsoleRequest{Node: node, By: operatorName()}, control.Watcher{To: &screen,
		Up: func() { a.sayf("The console of %s is open; nothing is typed.", node) }, Note: func(text string) { a.sayf("%s: %s", node, text) }})
}

// openConsole opens a console: the one that the owner shares, or one of this process's own.
func (a *app) openConsole(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	c := terminal.Config{Marker: a.marker("console"), Site: func() (*provision.Site, error) { return a.openRecords(q.Node) }}
	return c.Open(ctx, q, w)
}

// typeAt connects this terminal with the console of a node. The terminal is put back however it ends.
func (a *app) typeAt(ctx context.Context, node string, escape byte) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	raw, restore, err := makeRaw(a.in)
	if err != nil {
		return err
	}
	defer restore()
	var mu sync.Mutex                         // one line at a time
	say := func(format string, args ...any) { // a raw terminal needs both characters
		mu.Lock()
		defer mu.Unlock()
		line := "\n"
		if raw {
			line = "\r\n"
		}
		fmt.Fprintf(a.err, line+"["+format+"]"+line, args...)
	}
	keys := make(chan string)
	go func() { // ends with its input, or with the process: a read of a terminal cannot be ended
		defer end()
		a.passKeys(ctx, keystroke.Parser{Escape: escape}, keys, say)
	}()
	leave := "the end of the input"
	if escape != 0 {
		leave = keystroke.Name(escape) + "."
	}
	first := true
	up := func() {
		if first {
			say("console of %s is open; %s ends it", node, leave)
		} else {
			say("console of %s is open again", node)
		}
		first = false
	}
	err = a.openConsole(ctx, control.ConsoleRequest{Node: node, By: operatorName(), Type: true},
		control.Watcher{To: a.out, Keys: keys, Up: up, Note: func(text string) { say("%s: %s", node, text) }})
	if !first {
		say("console of %s is closed", node)
	}
	return err
}

// lastKeys is how long a BMC has to acknowledge the last keys of a pipe.
const lastKeys = time.Second

// mostKeys is how many characters are sent at a time: BMCs take so many in one packet.
const mostKeys = 64

// passKeys passes on what is typed, until it ends or the operator ends it.
func (a *app) passKeys(ctx context.Context, p keystroke.Parser, keys chan<- string, say func(string, ...any)) {
	b := make([]byte, mostKeys)
	for {
		n, err := a.in.Read(b)
		for _, x := range p.Parse(b[:n]) {
			switch x.Command {
			case keystroke.End:
				return
			case keystroke.Help:
				e := keystroke.Name(p.Escape)
				say("%s. ends; %sB sends a break; %s%s sends %s; %s? is this", e, e, e, e, e, e)
				continue
			case keystroke.Break:
				x.Keys = bmc.Break
			}
			select {
			case keys <- x.Keys:
			case <-ctx.Done():
				return
			}
		}
		if err != nil { // the end of a pipe: what was typed last is on its way
			select {
			case <-time.After(lastKeys):
			case <-ctx.Done():
			}
			return
		}
	}
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
