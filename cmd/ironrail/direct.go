// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/selection"
)

// directRules is what every command says that changes something on nodes outside of a plan.
const directRules = `What is done to which node is shown first, and asked for; --auto-approve does not
ask, --dry-run only shows. Left alone are nodes that are on hold, that a running
apply has work for, and whose BMC says another serial number or UUID than the
files. What was done is in ` + "`ironrail why NODE`" + ` and ` + "`ironrail events`" + `; of a command
that was killed the outcome is not known, and what cannot be repeated without harm
then needs --again. While apply runs it does the work. Nodes are named as for plan
--target.

Exit code 3 when it was not done on some of the nodes, 1 when on none. --json
prints an object with what was planned, the nodes that were refused, and the
results.`

// directFlags are the options of direct work.
type directFlags struct {
	control.DirectRequest
	approve, dry bool
}

func (f *directFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.Reason, "reason", "", "`WHY`, for the journal and whoever looks at the node next")
	c.Flags().BoolVar(&f.approve, "auto-approve", false, "do not ask")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "only show what would be done")
}

// addJobs defines the options of what ends the jobs on a node.
func (f *directFlags) addJobs(c *cobra.Command) {
	c.Flags().BoolVar(&f.KillJobs, "kill-jobs", false, "also on nodes under jobs, which are lost")
	c.Flags().BoolVar(&f.JobsUnknown, "jobs-unknown", false, "you know that no job runs where the scheduler cannot be asked")
	c.Flags().BoolVar(&f.Again, "again", false, "also where nobody knows whether the last one was done")
}

// directCommand makes the command of a verb, whose last word is its name.
func (a *app) directCommand(f *directFlags, short, long, example string) *cobra.Command {
	_, name, found := strings.Cut(string(f.Verb), " ")
	if !found {
		name = string(f.Verb)
	}
	c := &cobra.Command{
		Use:               name + " NODE...",
		Short:             short,
		Long:              long + "\n\n" + directRules,
		Example:           example,
		Args:              asUsage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			if f.Wait < 0 {
				return wrongUsage(c, fmt.Errorf("--wait %v: no time to wait", f.Wait))
			}
			return a.direct(c.Context(), f, args)
		},
	}
	f.add(c)
	return c
}

// lastWord makes the last argument of a command the one that says what is to be; the words before it
// name nodes.
func lastWord(c *cobra.Command, words ...string) func(args []string) (string, []string, error) {
	c.Use = c.Name() + " NODE... " + strings.Join(words, "|")
	c.Args = asUsage(cobra.MinimumNArgs(2))
	return func(args []string) (string, []string, error) {
		last := args[len(args)-1]
		if !slices.Contains(words, last) {
			return "", nil, wrongUsage(c, fmt.Errorf("the last word is one of %s, not %q", strings.Join(words, ", "), last))
		}
		return last, args[:len(args)-1], nil
	}
}

func (a *app) bootCommand() *cobra.Command {
	f := &directFlags{DirectRequest: control.DirectRequest{Verb: control.DirectBoot}}
	c := a.directCommand(f, "Set what nodes boot from", `Set what nodes boot from next: pxe and http (UEFI HTTP boot, over Redfish) from
the network, disk from their disk, bios into the set-up of their firmware, none by
the firmware's own order. It is for the next boot alone, unless --persistent is
given, and is read back; nothing is restarted. A protected node is left alone.`,
		"  ironrail boot r01-u09 bios\n  ironrail boot rack.r01 pxe --auto-approve && ironrail power cycle rack.r01\n  ironrail boot r01-u09 none")
	device, once := lastWord(c, "pxe", "http", "disk", "bios", "none"), false
	c.Flags().BoolVar(&once, "once", true, "for the next boot alone")
	c.Flags().BoolVar(&f.Persistent, "persistent", false, "for every boot")
	c.MarkFlagsMutuallyExclusive("once", "persistent")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if !once {
			f.Persistent = true
		}
		if f.Device, args, err = device(args); err != nil {
			return err
		}
		return a.direct(c.Context(), f, args)
	}
	return c
}

func (a *app) locateCommand() *cobra.Command {
	f := &directFlags{DirectRequest: control.DirectRequest{Verb: control.DirectLight}, approve: true}
	c := &cobra.Command{
		Short: "Switch the light on that locates nodes",
		Long: `Switch the light that locates a chassis: Chassis Identify of IPMI,
LocationIndicatorActive of Redfish or the older IndicatorLED. Most BMCs know on
and off alone, and what on looks like is theirs; blink asks for a light that
blinks where there is one. It is read back. Nodes on hold are meant as well, as
who works at them wants it; a BMC that says another serial number or UUID than the
files is left alone. Nodes are named as for plan --target.

Exit code 3 when it was not done on some of the nodes, 1 when on none. --json
prints an object with the nodes that were refused, and the results.`,
		Example:           "  ironrail locate r01-u09 on\n  ironrail locate rack.r01 off",
		ValidArgsFunction: a.completeWords,
		Use:               "locate",
	}
	light := lastWord(c, "on", "off", "blink")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "only show what would be done")
	c.Flags().StringVar(&f.Reason, "reason", "", "`WHY`, for the journal and whoever looks at the node next")
	c.RunE = func(_ *cobra.Command, args []string) (err error) {
		if f.Light, args, err = light(args); err != nil {
			return err
		}
		return a.direct(c.Context(), f, args)
	}
	return c
}

func (a *app) powerOnCommand() *cobra.Command {
	f := &directFlags{DirectRequest: control.DirectRequest{Verb: control.DirectOn}}
	return a.directCommand(f, "Switch nodes on", `Switch nodes on, as ipmitool's power on and Redfish's ResetType On do: as many at
a time as the inrush current of their supplies lets their circuits bear, each
batch once the one before has settled. A node that is on is left as it is.`,
		"  ironrail power on r01-u09\n  ironrail power on rack.r01 --reason 'PDU a is back'")
}

func (a *app) powerOffCommand() *cobra.Command {
	f := &directFlags{DirectRequest: control.DirectRequest{Verb: control.DirectOff}}
	c := a.directCommand(f, "Shut nodes down, and switch them off", `Ask the operating systems of nodes to shut down, as ipmitool's power soft and
Redfish's GracefulShutdown do by ACPI, and wait until their BMCs say that they are
off. A node whose system does not shut down stays on, unless --force is given:
then it is switched off hard after --wait, as ipmitool's power off and Redfish's
ForceOff do. --wait 0 --force does so at once. A protected node, and one under
jobs, is left alone.`,
		"  ironrail power off r01-u09\n  ironrail power off rack.r01 --wait 10m --force --reason 'PDU a is replaced'\n  ironrail power off r01-u09 --wait 0 --force")
	c.Flags().DurationVar(&f.Wait, "wait", 5*time.Minute, "how long a system has to shut down, such as 10m; 0 goes with --force")
	c.Flags().BoolVar(&f.Force, "force", false, "switch off hard what is still on after --wait")
	f.addJobs(c)
	return c
}

func (a *app) powerCycleCommand() *cobra.Command {
	f, outlets := &directFlags{DirectRequest: control.DirectRequest{Verb: control.DirectCycle}}, false
	c := a.directCommand(f, "Switch nodes off hard and on again", `Switch nodes off hard, wait as long as their supplies need, and switch them on:
what ipmitool's power cycle and Redfish's PowerCycle are for, in two commands that
are both read back. A node that is off is switched on. As many are switched on at
a time as their circuits bear. The system of a node does not shut down: see power
off for that. A protected node, and one under jobs, is left alone.

With --outlets it is done at the PDUs, for a node whose BMC is dead or whose
firmware wants a loss of mains: all outlets of all its supplies are switched off,
read back, left off for 30 seconds, and switched on. The files must name the
outlet of each, on a PDU with a control block; an outlet that may feed anything
else is refused. Where some are off already, all are switched on.`,
		"  ironrail power cycle r01-u09\n  ironrail power cycle --outlets r01-u09\n  ironrail power cycle 'r01-*' --kill-jobs --reason 'kernel hangs, case 4711'")
	f.addJobs(c)
	c.Flags().BoolVar(&outlets, "outlets", false, "at the PDUs: switch all outlets of a node off, wait, and on")
	c.RunE = func(c *cobra.Command, args []string) error {
		if outlets {
			f.Verb = control.DirectMains
		}
		return a.direct(c.Context(), f, args)
	}
	return c
}

func (a *app) powerResetCommand() *cobra.Command {
	f := &directFlags{DirectRequest: control.DirectRequest{Verb: control.DirectReset}}
	c := a.directCommand(f, "Reset nodes hard, without loss of power", `Reset nodes hard, as ipmitool's power reset and Redfish's ForceRestart do, without
a loss of power where the BMC can do that. The power reads on before and after:
that the BMC took the command is all that is known of it. A node that is off is
refused, and so is a protected one, or one under jobs.`,
		"  ironrail power reset r01-u09")
	f.addJobs(c)
	return c
}

// directDocument is what --json prints of direct work.
type directDocument struct {
	control.DirectPlan
	Results []control.DirectResult `json:"results"`
}

// direct plans, shows, asks, and does it: through the owner when there is one.
func (a *app) direct(ctx context.Context, f *directFlags, words []string) error {
	if f.Verb == control.DirectOff && f.Wait == 0 && !f.Force {
		return usageOf("ironrail power off", errors.New("--wait 0 leaves no time to shut down: give --force to switch off hard"))
	}
	q := f.DirectRequest
	q.By = operatorName()
	q.Host, _ = os.Hostname() // without it the journal says who, and not where
	owned, err := a.asked(func(c *control.Client) error {
		nodes, err := a.selected(words)
		if err != nil {
			return err
		}
		q.Nodes = nodes
		return a.interruptible(ctx, func(ctx context.Context) error { return a.directWith(ctx, c, f, q) })
	})
	if owned || err != nil {
		return err
	}
	inv, err := a.names()
	if err != nil {
		return err
	}
	if q.Nodes, err = selection.ReadNodes(inv, words); err != nil {
		return err
	}
	return a.interruptible(ctx, func(ctx context.Context) error { return a.directOwning(ctx, inv, f, q) })
}

// director does direct work: the owner's client, or this process when it owns the state.
type director interface {
	PlanDirect(ctx context.Context, q control.DirectRequest) (control.DirectPlan, error)
	DoDirect(ctx context.Context, id string, report func(control.DirectResult)) error
}

// directOwning owns the state for the time of the work, and answers other commands meanwhile.
func (a *app) directOwning(ctx context.Context, inv *inventory.Inventory, f *directFlags, q control.DirectRequest) (err error) {
	site, err := a.openSite(inv, provision.Options{})
	if err != nil {
		return err
	}
	o, err := a.ownAlone(ctx, string(f.Verb))
	if err != nil {
		return err
	}
	defer o.giveBack()
	socket, err := o.Listen()
	if err != nil {
		return err
	}
	bus := event.NewBus(ringSize)
	d, err := site.OpenDirect(ctx, o.store, o.fence, bus, o.Identity)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	side, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := control.Serve(side, socket, d, thisVersion()); err != nil {
			a.sayf("warning: %v", err)
		}
	})
	log := &event.Log{Dir: filepath.Join(a.stateDir(), "events"), Trouble: func(err error) { a.sayf("warning: events are not kept: %v", err) }}
	wg.Go(func() { _ = log.Follow(side, bus.Subscribe(0)) }) // it has said its trouble
	defer func() {
		err = errors.Join(err, d.Close(ctx))
		bus.Close()
		end()
		wg.Wait()
	}()
	return a.directWith(ctx, d, f, q)
}

// directWith plans, shows, asks, and does it.
func (a *app) directWith(ctx context.Context, d director, f *directFlags, q control.DirectRequest) error {
	p, err := d.PlanDirect(ctx, q)
	if err != nil {
		return err
	}
	quiet := f.Verb == control.DirectLight && !f.dry && len(p.Refused) == 0
	if !quiet && (!a.json || !f.approve && !f.dry) {
		a.showDirect(p)
	}
	todo := slices.ContainsFunc(p.Steps, func(st control.DirectStep) bool { return !st.Nothing })
	if todo && !f.approve && !f.dry {
		if err := a.promptFor("yes", "Read what would be done, then add --auto-approve."); err != nil {
			return err
		}
	}
	doc := directDocument{p, []control.DirectResult{}}
	if !f.dry {
		doc.Results, err = a.doDirect(ctx, d, p)
	}
	if a.json {
		err = errors.Join(err, a.printJSON(doc))
	}
	if err != nil {
		return err
	}
	return directExit(doc, f.dry)
}

// doDirect does a plan, and shows what becomes of each node.
func (a *app) doDirect(ctx context.Context, d director, p control.DirectPlan) ([]control.DirectResult, error) {
	results, got := []control.DirectResult{}, map[string]bool{}
	defer context.AfterFunc(ctx, func() {
		a.sayf("Nothing more is begun. What has begun ends; Ctrl-C again leaves it without a record of its outcome.")
	})()
	take := func(x control.DirectResult) {
		got[x.Node] = true
		results = append(results, x)
		a.showDirectResult(x)
	}
	if err := d.DoDirect(ctx, p.ID, take); err != nil {
		return results, err
	}
	for _, st := range p.Steps {
		if !got[st.Node] {
			take(control.DirectResult{Node: st.Node, State: control.DirectUnknown, Text: "the owner of the state ended before it said",
				Action: "`ironrail why " + st.Node + "` shows what is on record.", At: a.now().UTC()})
		}
	}
	return results, nil
}

// directExit is the exit of work that was done, or shown.
func directExit(doc directDocument, dry bool) error {
	good, bad := 0, len(doc.Refused)
	for _, x := range doc.Results {
		if x.State == control.DirectDone {
			good++
		} else {
			bad++
		}
	}
	if dry {
		good = len(doc.Steps)
	}
	switch {
	case bad == 0:
		return nil
	case good > 0:
		return exit{code: exitSomeFailed}
	}
	return exit{code: exitFailed}
}

// showDirect shows what would be done, on standard error when standard output is JSON.
func (a *app) showDirect(p control.DirectPlan) {
	var out page
	out.linef("%s:", p.Verb)
	for _, st := range p.Steps {
		batch := ""
		if st.Batch > 0 {
			batch = fmt.Sprintf("batch %d: ", st.Batch)
		}
		does := batch + st.Does
		if st.Nothing {
			does = "nothing: it is " + st.Power
		}
		out.linef("  %-14s %-3s  %s", st.Node, st.Power, does)
	}
	for _, r := range p.Refused {
		out.linef("  %-14s left alone: %s", r.Node, r.Cause)
		if r.Action != "" {
			out.linef("  %-14s   %s", "", r.Action)
		}
	}
	for _, n := range p.Notes {
		out.linef("%s.", strings.ToUpper(n[:1])+n[1:])
	}
	if a.json {
		out.to(a.err)
		return
	}
	out.to(a.out)
}

// showDirectResult shows what became of it on one node.
func (a *app) showDirectResult(x control.DirectResult) {
	if a.json {
		return
	}
	var out page
	out.linef("%-14s %s: %s", x.Node, x.State, x.Text)
	if x.Action != "" {
		out.linef("%-14s   %s", "", x.Action)
	}
	out.to(a.out)
}
