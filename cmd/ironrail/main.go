// SPDX-License-Identifier: Apache-2.0

// Command ironrail brings up bare-metal GPU clusters: it checks a site's
// inventory, plans what to do, and does it, from power-off to accepted nodes.
//
// Standard output is data, standard error is talk. Only this package prints,
// exits, and reads flags and the environment.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/web/server"
)

// Exit codes, as `ironrail --help` lists them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitChanges     = 2   // plan --detailed-exitcode: there is something to do; apply: it left nodes unmanaged
	exitSomeFailed  = 3   // some nodes failed, the others are done
	exitOwned       = 11  // another process owns the state
	exitUsage       = 64  // wrong usage
	exitInterrupted = 130 // stopped by the operator
)

func main() {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.LookupEnv, now: time.Now}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// app is one run of the command line: where it reads and writes, and the flags
// that every command has.
type app struct {
	in       io.Reader
	out, err io.Writer
	environ  func(string) (string, bool)
	now      func() time.Time

	dir  string // the site's folder
	json bool
	vars []string // NAME=VALUE, of the site's variables
	rack bool     // everything outside is the virtual rack of the site

	where  whereabouts
	notice *notice // what is said to be done, while it takes long

	color string             // when lines on a terminal have colors: auto, always or never
	shown predict.Prediction // of the plan that was shown last

	kept *sockets.Kept // of serve: keeps the sockets of boot services open; nil: nothing does

	metrics server.Listen  // where metrics are served while a run is under way; without an address nowhere
	page    *server.Server // that is served beside a run; nil: none is
}

// exit ends a command with a code other than 1; err may be nil.
type exit struct {
	code int
	err  error
}

// Error returns the text of the wrapped error.
func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the wrapped error.
func (e exit) Unwrap() error { return e.err }

// run runs one command line and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.codeOf(root.ExecuteContext(ctx))
}

// codeOf says what went wrong and returns the exit code for it.
func (a *app) codeOf(err error) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if e, ok := errors.AsType[exit](err); ok {
		code = e.code
	} else if _, owned := errors.AsType[onrecord.OwnedError](err); owned || steppedDown(err) {
		code = exitOwned
	}
	a.complain(err)
	return code
}

// steppedDown reports whether a command ended because another process may be the owner of the
// state: its lease ended, or its fence is an old one.
func steppedDown(err error) bool {
	return errors.Is(err, state.ErrLeaseEnded) || errors.Is(err, state.ErrFenced)
}

// complain prints an error and its next action; errors that were joined one by
// one.
func (a *app) complain(err error) {
	if e, ok := err.(exit); ok {
		if e.err == nil {
			return // all was said
		}
		err = e.err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.complain(e)
		}
		return
	}
	for i, line := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") {
		if i == 0 {
			a.sayf("error: %s", line)
		} else {
			a.sayf("       %s", line)
		}
	}
	if hint := hintOf(err); hint != "" {
		a.sayf("hint: %s", hint)
	}
}

// hintOf is the next action of an error: its own, or that of what the disk says.
func hintOf(err error) string {
	hint := errkind.Action(err)
	switch {
	case hint != "":
	case errors.Is(err, fs.ErrPermission):
		hint = "Run it as the user who owns that file, often root: who ran `ironrail apply` owns the state."
	case errors.Is(err, syscall.EROFS):
		hint = "The file system is mounted read-only: remount it, or copy the site's folder elsewhere to look at it."
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = "The disk is full: free some space and run it again. Nothing that was recorded is lost."
	}
	return hint
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := groupCommands(&cobra.Command{
		Use:           "ironrail [-C DIR] COMMAND",
		Short:         "Bring up bare-metal GPU clusters",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,

		PersistentPreRunE:     a.checkVars,
		DisableFlagsInUseLine: true,
	})
	addGroup(root, "A site on paper", a.initCommand(), a.importCommand(), a.checkCommand(), a.fmtCommand(), a.showCommand(), a.drawCommand(), a.fabricCommand(), a.lockCommand())
	addGroup(root, "On simulated hardware", a.rehearseCommand(), a.rackCommand())
	addGroup(root, "Bring up, test, hand over", a.imageCommand(), a.repoCommand(), a.planCommand(), a.applyCommand(), a.testCommand(), a.handoverCommand())
	addGroup(root, "See", a.statusCommand(), a.whyCommand(), a.eventsCommand(), a.reportCommand(), a.serveCommand(), a.readCommand())
	addGroup(root, "By hand", a.holdCommand(), a.releaseCommand(), a.powerCommand(), a.bootCommand(), a.locateCommand(), a.consoleCommand(), a.selCommand(), a.sensorsCommand())
	addGroup(root, "The second day", a.driftCommand(), a.adoptCommand(), a.rebuildCommand(), a.rollbackCommand(), a.decommissionCommand(), a.stateCommand(), a.controllerCommand())
	root.AddCommand(a.manCommand(), a.versionCommand())
	root.PersistentFlags().StringVarP(&a.dir, "chdir", "C", ".", "folder of the site's *.hcl files")
	root.PersistentFlags().StringArrayVar(&a.vars, "var", nil, "NAME=VALUE of a variable of the site; of a sensitive one, where it lies: NAME=env:OTHER")
	root.PersistentFlags().BoolVar(&a.rack, "rack", false, "work on the virtual rack that \"ironrail rack\" keeps alive, with its own state")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print data as JSON")
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colors of the live view, `WHEN`: auto (on a terminal, unless NO_COLOR is set), always or never")
	root.SetFlagErrorFunc(wrongUsage)
	return root
}

const longHelp = `ironrail takes a room of bare-metal GPU nodes, described in HCL, from power-off
to a tested cluster that a scheduler can use.

  ironrail init DIR          write a first site to start from
  ironrail check             find mistakes in the site's files
  ironrail draw --out F      racks, rows, power and fabrics, to look at and print
  ironrail image build       build the OS images and package repositories
  ironrail rehearse          all of it on simulated hardware, with faults
  ironrail rack              simulated hardware that stays, for the real commands
  ironrail plan              show what would be done, erased, and why
  ironrail apply             do it, with live progress; run again to resume
  ironrail status, why NODE  where everything stands; why a node is not up
  ironrail serve             the same in a browser, live
  ironrail report            what was measured and accepted
  ironrail drift             what is not as it was accepted
  ironrail test --hosts FILE  accept or reject nodes that another tool installed
  ironrail read FILE         what is understood of another program's output

Standard output is data, standard error is talk; --json makes data of all that
is asked for.

Exit codes: 0 done, 1 failed, 2 there are changes (plan --detailed-exitcode), or
nodes are left unmanaged (apply), 3 some nodes failed, 11 owned by another
process, 64 wrong usage, 130 interrupted.`

// addGroup adds commands that help lists together, below a heading.
func addGroup(root *cobra.Command, heading string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: heading, Title: heading + ":"})
	for _, c := range commands {
		c.GroupID = heading
		root.AddCommand(c)
	}
}

// groupCommands makes a command that only holds others: called alone, or with a word
// that is none of theirs, it is wrong usage.
func groupCommands(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.AddCommand(commands...)
	c.SuggestionsMinimumDistance = 2
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return wrongUsage(c, fmt.Errorf("unknown command %q%s", args[0], suggestNames(c.SuggestionsFor(args[0]))))
		}
		if !c.HasParent() {
			return errors.Join(c.Help(), exit{code: exitUsage})
		}
		var names []string
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		return wrongUsage(c, fmt.Errorf("say which: %s", strings.Join(names, ", ")))
	}
	return c
}

// suggestNames offers the names that a word is close to.
func suggestNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(". Did you mean %q?", names[0])
}

// wrongUsage ends a command that was called wrongly.
func wrongUsage(c *cobra.Command, err error) error { return usageOf(c.CommandPath(), err) }

// usageOf is wrongUsage of the command with this path, such as "ironrail plan".
func usageOf(path string, err error) error {
	return exit{exitUsage, fmt.Errorf("%w (see `%s --help`)", err, path)}
}

// asUsage wraps an argument check so that its failure is wrong usage.
func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return wrongUsage(c, err)
		}
		return nil
	}
}
