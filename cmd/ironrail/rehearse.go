// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/provision/status"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// rehearseFlags are the options for a rehearsal.
type rehearseFlags struct {
	files    []string
	faults   []string
	seed     uint64
	loopback bool
	speed    float64
	linger   bool
	verbose  bool
	report   string
	keep     string
}

// repoIndexes is the environment variable that names a folder with indexes of real
// repositories.
const repoIndexes = "IRONRAIL_REPO_INDEXES"

// mostSpeed is above what any use was found for: a POST of 5 min takes 30 ms.
const mostSpeed = 10000

func (a *app) rehearseCommand() *cobra.Command {
	var f rehearseFlags
	c := &cobra.Command{
		Use:   "rehearse",
		Short: "Run the whole site on a virtual rack, with faults",
		Long: `Plan and apply the site against simulated hardware made from its own files:
BMCs, firmware, disks, operating systems, PDUs, switches and cables, with the
faults that you plant. The plan, the stages and the protocols are the very ones
of ` + "`ironrail apply`" + `; only the hardware is not there. It needs no root, no
image, no package and no network, resolves no secret, and leaves the site's
state alone.

Packages are empty: by ironrail.lock, else by recorded indexes of repositories
(IRONRAIL_REPO_INDEXES; docs/rehearsal.md), else by the names asked for.

Time is virtual: hours of waiting pass in seconds. With --loopback it is not:
every BMC and PDU answers on its own 127.x address, so that other tools can be
pointed at it, and hardware is --speed times faster than in a room: by default
a second is a minute of POST, of writing disks and of tests. What the controller
waits for stays as long as it is: a fault that shows only by a deadline, such as
dhcp-loss or kernel-hang, takes the real deadline.

On a terminal one line a node shows how far it is. Elsewhere what is found is
printed, and a line for each kind of step when the last node is through; with
--verbose every step. With --json, standard output is one JSON object a line:
every event, and at the end the summary, whose "type" is "summary".

Exit code 0 when every planted fault was found, nothing was blamed beside them,
and every other node was accepted; 3 when something else happened to some nodes,
1 to all of them; 130 when it was stopped by Ctrl-C.

Kinds of faults:
` + faultHelp() + `
The plan is that of ` + "`ironrail plan`" + `: what that refuses is refused here as well, with
the same list, and exit code 1. What a run would have and a rehearsal simulates
(images, packages, hooks, protection) is listed at the end.

What it does not model stands in docs/rehearsal.md.`,
		Example: "  ironrail rehearse\n  ironrail rehearse --faults monday.faults\n  ironrail rehearse --fault kind=bmc-dead,node=r01-u17 --fault kind=pdu-trip,pdu=r02/a,at=install.write\n  ironrail rehearse --json | jq 'select(.type == \"summary\")'",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			return a.rehearse(c.Context(), f)
		},
	}
	fs := c.Flags()
	fs.StringArrayVar(&f.files, "faults", nil, "plant the faults of this `FILE` (HCL: blocks fault \"KIND\" { node = ... })")
	fs.StringArrayVar(&f.faults, "fault", nil, "plant one fault: `kind=KIND,node=NODE[,at=STEP]`")
	fs.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that all chance comes from; the same number gives the same verdicts")
	fs.BoolVar(&f.loopback, "loopback", false, "real sockets on 127.x and high ports, in wall time, for up to 128 nodes")
	fs.Float64Var(&f.speed, "speed", rehearsal.DefaultSpeed, "with --loopback: how many times faster than in a room hardware is")
	fs.BoolVar(&f.linger, "linger", false, "with --loopback: keep the virtual rack running until Ctrl-C")
	fs.BoolVar(&f.verbose, "verbose", false, "where there is no terminal: print every step")
	fs.StringVar(&f.report, "report", "", "write the acceptance report into this `FILE`, in the form that its name says: .html, .json, .txt, .xml (JUnit)")
	fs.StringVar(&f.keep, "keep", "", "leave the site with the state, events and evidence of the rehearsal in this new `FOLDER`, for status, why, events and report")
	return c
}

// check refuses flags that contradict each other.
func (f rehearseFlags) check(c *cobra.Command) error {
	switch {
	case f.report != "" && formOf(f.report) == nil:
		return wrongUsage(c, errors.New("--report: the name of the file ends in .html, .json, .txt or .xml"))
	case !f.loopback && (f.linger || c.Flags().Changed("speed")):
		return wrongUsage(c, errors.New("--linger and --speed need --loopback: in memory, time is virtual"))
	case !(f.speed > 0 && f.speed <= mostSpeed):
		return wrongUsage(c, fmt.Errorf("--speed is above 0 and at most %d", mostSpeed))
	}
	return nil
}

// faultHelp lists the kinds of faults.
func faultHelp() string {
	var p page
	for _, r := range fault.Rows() {
		p.linef("  %-19s %s", r.Kind, strings.Join(append(slices.Clone(r.Needs), r.Takes...), ", "))
	}
	return p.String()
}

// rehearse runs the rehearsal beside its view.
func (a *app) rehearse(ctx context.Context, f rehearseFlags) error {
	inv, diags, files := a.loadInventory()
	if diags.HasErrors() {
		a.showDiagnostics(diags, files)
		return hasErrors(diags)
	}
	a.showDiagnostics(withoutGaps(diags), files)
	faults, err := a.plant(inv, f)
	if err == nil && f.keep != "" {
		err = checkKeep(f.keep)
	}
	if err != nil {
		return err
	}
	show := newRehearsalView(a, f.verbose)
	show.places, show.kept = status.Places(inv), f.keep
	if show.gaps = a.gapsOf(inv); !a.json {
		showGaps(a.err, show.gaps)
	}
	stop, end := show.watchStop(ctx)
	defer end()
	var wg sync.WaitGroup
	var sum rehearsal.Summary
	o := rehearsal.Options{Past: a.past(ctx, inv), Seed: f.seed, Faults: faults, Loopback: f.loopback, Speed: f.speed, Linger: f.linger, Version: thisVersion(), Keep: keptFolder(f.keep), Variables: a.vars, Indexes: repo.Recorded(os.Getenv(repoIndexes)),
		OnPlan: show.planned, OnEvent: show.bus.Emit, OnReady: show.showEndpoints, OnLinger: show.lingers, Interrupted: stop}
	if f.report != "" {
		o.OnReport = func(in report.Input) error {
			return replaceWith(f.report, func(w io.Writer) error { return formOf(f.report)(w, in) })
		}
	}
	if f.keep != "" {
		log := &event.Log{Dir: filepath.Join(keptFolder(f.keep), "events"), Trouble: func(err error) { a.sayf("warning: events are not kept: %v", err) }}
		wg.Go(func() { _ = log.Follow(context.WithoutCancel(ctx), show.bus.Subscribe(0)) }) // it has said its trouble
	}
	wg.Go(func() {
		defer show.over()
		sum, err = rehearsal.Run(ctx, inv, o)
	})
	show.follow()
	wg.Wait()
	return errors.Join(a.rehearsed(sum, err, show, files), a.keepRest(f.keep))
}

// rehearsed says how a rehearsal ended, and turns it into an exit code.
func (a *app) rehearsed(sum rehearsal.Summary, err error, show *rehearsalView, files inventory.Files) error {
	if u, ok := errors.AsType[rehearsal.Unplannable](err); ok {
		found := a.showHCL(u.Diags, files)
		err := diagnosed{errors.New("the site cannot be planned as it stands"), found, show.gaps}
		if a.json {
			a.printLine(struct {
				Type string `json:"type"`
				refusalJSON
			}{"refused", refusalOf(err)})
		}
		return err
	}
	if sum.Result.Run != "" && !show.summaryShown {
		a.showSummary(sum, show)
	}
	switch {
	case errkind.Of(err) == errkind.Interrupted:
		return exit{exitInterrupted, err}
	case err != nil:
		return err
	case sum.Result.Run == "":
		return errors.New("the site has nothing to rehearse: its plan is empty")
	}
	return exitOfRehearsal(sum)
}

// plant reads the faults of files and flags and compares them with the site. All
// that is wrong with them is shown.
func (a *app) plant(inv *inventory.Inventory, f rehearseFlags) ([]fault.Fault, error) {
	var all []fault.Fault
	var wrong error
	for _, path := range f.files {
		faults, src, diags := fault.Read(path)
		for _, one := range faults {
			if err := fault.CheckFits(inv, []fault.Fault{one}); err != nil {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Fault does not fit the site", Detail: capitalize(err.Error()), Subject: one.Decl.Ptr()})
			}
		}
		var list inventory.Diagnostics
		list.Import(diags, "fault")
		a.showDiagnostics(list.Sort(), inventory.Files{path: src})
		if diags.HasErrors() {
			wrong = errors.Join(wrong, fmt.Errorf("%s: the faults cannot be planted", path))
		}
		all = append(all, faults...)
	}
	for _, text := range f.faults {
		one, err := fault.Parse(text)
		if err != nil {
			return nil, exit{exitUsage, errors.Join(wrong, fmt.Errorf("--fault: %w", err))}
		}
		if err := fault.CheckFits(inv, []fault.Fault{one}); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("--fault: %w", err))
		}
		all = append(all, one)
	}
	return all, wrong
}

// capitalize begins a text with a capital letter.
func capitalize(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// exitOfRehearsal is the exit of a rehearsal that came to its end.
func exitOfRehearsal(sum rehearsal.Summary) error {
	switch {
	case sum.AsExpected():
		return nil
	case len(sum.Accepted) == 0:
		return exit{code: exitFailed}
	}
	return exit{code: exitSomeFailed}
}

// past reads how long the steps of earlier real runs took, for the prediction.
// The state is opened for reading only; one that cannot be read now has no past.
func (a *app) past(ctx context.Context, inv *inventory.Inventory) *predict.History {
	r, closeState, err := a.openReader()
	if err != nil {
		return nil
	}
	defer closeState()
	past, err := predict.ReadHistory(ctx, r, predict.Profiles(inv), provision.Durations())
	if err != nil {
		a.sayf("warning: how long earlier runs took cannot be read: %v", err)
	}
	return past
}
