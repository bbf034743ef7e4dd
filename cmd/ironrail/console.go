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
	"github.com/ironrail/ironrail/provision/capture"
	"github.com/ironrail/ironrail/provision/terminal"
)

// consoleFlags are the options of console.
type consoleFlags struct {
	limit  time.Duration
	typing bool
	escape string
	log    bool
}

func (a *app) consoleCommand() *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console NODE",
		Short: "Read a node's serial console, or type at it",
		Long: `Print what a node says on its serial console from now on, by serial over LAN of
an IPMI BMC, or by SSH where the node has a console block. Nothing is typed
without -i. Start it before the node boots: a BMC keeps nothing of what was said
before. It waits for a BMC that starts again. A BMC opens its console once: while
apply or serve runs it shares the one that it reads with everybody who asks; without
them there is one reader, and the console moves to a run that begins, and back when
it has ended.

Lines that name a cause, such as a kernel panic or PXE-E51, are explained on
stderr. Ctrl-C or --for ends it. --json prints one object for each line, with
node, time, text and, where it is known, cause.

A run reads the consoles of its nodes by itself, from the first step that may switch
a node until it is accepted: --log prints what is kept of that, 256 KiB of a node at
most, with the time of each line and where the console was lost. It asks nothing.

With -i what you type goes to the node, Ctrl-C as well, and what the node sends
goes to your terminal as it is. At the beginning of a line ~. ends it, ~B sends a
break (SysRq of Linux on a serial line), ~~ is one ~, and ~? lists these; --escape
takes another character, ^] for Ctrl-], or none. Keys are also taken from a pipe,
whose end ends it. A node that somebody else has on hold is refused, and so is a
BMC that says another serial number or UUID than the files; a hold that comes later
ends typing, and reading goes on. Who typed, from when to when, is in ironrail why
NODE; what was typed is nowhere, but for what the node prints of it in a run's log.`,
		Example: "  ironrail console r01-u09\n  ironrail console r01-u09 --for 15m >r01-u09.console\n  ironrail console -i r01-u09\n  ironrail console --log r01-u09",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.limit < 0:
				return errkind.New(errkind.Refused, "--for %v is below zero", f.limit).Do("Give a time such as 15m.")
			case f.log && (f.typing || f.limit > 0):
				return wrongUsage(c, errors.New("--log prints what is kept: it does not go with -i or --for"))
			case f.log:
				return a.consoleLog(args[0])
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
	c.Flags().BoolVar(&f.log, "log", false, "print what runs have kept of the console")
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
	Note  bool                `json:"note,omitempty"` // a remark of a log, such as that the console was lost
	Cause *why.ConsoleMessage `json:"cause,omitempty"`
}

// consoleLine prints one line of a console, and what it means.
func (a *app) consoleLine(node, text string) {
	a.spokenLine(spoken{Node: node, Time: time.Now().UTC(), Text: text}, text)
}

// spokenLine prints one line of a console as a text, or as data, and what it means.
func (a *app) spokenLine(x spoken, shown string) {
	message, known := why.ExplainConsoleLine(x.Text)
	known = known && !x.Note
	if a.json {
		if known {
			x.Cause = &message
		}
		a.printLine(x)
		return
	}
	var p page
	p.linef("%s", shown)
	p.to(a.out)
	if known {
		a.sayf("%s: %s. %s", x.Node, message.Cause, message.Action)
	}
}

// consoleLog prints what runs have kept of a console.
func (a *app) consoleLog(node string) error {
	if _, err := a.names(node); err != nil {
		return err
	}
	return capture.Read(a.stateDir(), node, func(l capture.Line) error {
		x := spoken{Node: node, Time: l.At, Text: l.Text, Note: l.Note}
		shown := l.At.Local().Format("2006-01-02 15:04:05  ") + l.Text
		if l.Note {
			shown = l.At.Local().Format("2006-01-02 15:04:05  ") + "[" + l.Text + "]"
		}
		a.spokenLine(x, shown)
		return nil
	})
}
