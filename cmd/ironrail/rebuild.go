// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/provision/selection"
)

// rebuildFlags are the options of one rebuild.
type rebuildFlags struct {
	applyFlags
	serial, uuid, mac, disk, reason string
}

func (a *app) rebuildCommand() *cobra.Command {
	var f rebuildFlags
	c := &cobra.Command{
		Use:   "rebuild NODE...",
		Short: "Reinstall nodes, also in another chassis",
		Long: `Plan and apply the reinstallation of nodes: drain them at their scheduler, erase
and install them, bring up drivers and fabric, test the links and groups that they
are in, and hand them over again. Other nodes get no step but as partners of a
test. The same rules hold as for apply: the plan is shown and the erase budget
counts. A node that is on hold is refused; one that is quarantined gets a new
chance. Nodes are named as for plan --target.

A node under running jobs is never erased. Where jobs run, nothing is done and
they are listed, unless --drain-wait says how long to wait for them. Where the
scheduler cannot be asked, nothing is done either: --jobs-unknown says that you
know that no job runs.

The disk of the last install is erased, or the one with the node's install marker,
and no other: the plan names it by its serial number. Where both are gone, a blank
disk is taken if it is the only one that fits. A disk with data is erased only when
it is named: --disk takes its serial number or WWN. The disk block of the hardware
must fit it all the same.

A node that keeps its system in memory gets it anew: it is drained, restarted into
the ramdisk and started from the image. No disk is touched.

When the chassis is another one, give its serial number with --serial, from its
label. The BMC must say the same number; its certificate, the UUID and the boot MAC
are learned from it (the last must be given with --boot-mac where the BMC does
not report it). The site's files need not be edited first: what was learned is
used in their place, and every plan says what to write there, until they have it.`,
		Example: "  ironrail rebuild n7\n  ironrail rebuild n7 --serial 7XK9Q24 --reason 'board replaced, case 4711'\n" +
			"  ironrail rebuild n7 --disk S6CKNE0X100132\n  ironrail rebuild n7 --serial 7XK9Q24 --boot-mac 9c:6b:00:12:34:56\n  ironrail rebuild n7 n8 --drain-wait 2h --auto-approve",
		Args:              asUsage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			f.replace, f.targets = args, args
			r, err := f.options()
			if err == nil {
				err = f.check(c)
			}
			if err != nil {
				return wrongUsage(c, err)
			}
			return a.rebuild(c.Context(), f, r)
		},
	}
	c.Flags().StringVar(&f.serial, "serial", "", "serial `NUMBER` of the chassis that stands there now")
	c.Flags().StringVar(&f.uuid, "uuid", "", "its SMBIOS `UUID`, where the BMC does not report")
	c.Flags().StringVar(&f.mac, "boot-mac", "", "`MAC` of its NIC that boots, where the BMC does not report")
	c.Flags().StringVar(&f.disk, "disk", "", "serial number or WWN of the `DISK` to install on, where it is not that of the last install")
	c.Flags().StringVar(&f.reason, "reason", "", "`WHY`, for the journal and whoever looks at the node next")
	f.addApproval(c)
	return c
}

// options are what the command line asks for.
func (f rebuildFlags) options() (r rebuild.Request, err error) {
	r = rebuild.Request{Serial: f.serial, UUID: f.uuid, Disk: f.disk, Reason: f.reason, By: operatorName()}
	if f.mac != "" {
		if r.BootMAC, err = addr.ParseMAC(f.mac); err != nil {
			return r, err
		}
	}
	if f.serial == "" && (f.uuid != "" || f.mac != "") {
		return r, errors.New("--uuid and --boot-mac go with --serial")
	}
	return r, nil
}

// rebuild owns the state from here to its end.
func (a *app) rebuild(ctx context.Context, f rebuildFlags, r rebuild.Request) error {
	r.At = a.now()
	site, files, err := a.loadFor(f.words()...)
	if err != nil {
		return err
	}
	if r.Nodes, err = selection.ReadNodes(site.Inv, f.replace); err != nil {
		return err
	}
	o, err := a.own(ctx, "rebuild")
	if err != nil {
		return err
	}
	defer o.giveBack()
	if site, err = site.PrepareRebuild(ctx, o.store, &r); err != nil {
		return err
	}
	for _, n := range r.Notes {
		a.sayf("%s", n)
	}
	if err := a.knownBad(ctx, o.store, r.Nodes); err != nil {
		return err
	}
	return a.rebuildPlanned(ctx, site, files, o, f, &r)
}

// rebuildPlanned plans, asks, and does it.
func (a *app) rebuildPlanned(ctx context.Context, site *provision.Site, files inventory.Files, o ownership, f rebuildFlags, r *rebuild.Request) error {
	options := f.planOptions(a)
	options.Disks = r.Disks()
	p, err := a.makePlan(ctx, site, files, o.store, options)
	if err != nil {
		return err
	}
	approval, err := a.agree(ctx, site, o, p, f.applyFlags, false)
	if err != nil {
		return err
	}
	if p.Empty() {
		return a.nothingDone(p)
	}
	if err := rebuild.Record(ctx, o.store, o.fence, r, p); err != nil {
		return err
	}
	return a.execute(ctx, site, o, provision.RunOptions{Plan: p, Store: o.store, Fence: o.fence, Bus: event.NewBus(ringSize), EraseApproved: approval.Erase, Approval: approval})
}

// drainFlags say how nodes in service are taken from their jobs.
type drainFlags struct {
	wait    time.Duration
	unknown bool
}

func (f *drainFlags) addDrain(c *cobra.Command) {
	c.Flags().DurationVar(&f.wait, "drain-wait", 0, "wait this `TIME` for the jobs on nodes that are drained, instead of refusing at once")
	c.Flags().BoolVar(&f.unknown, "jobs-unknown", false, "you know that no job runs where the scheduler cannot be asked")
}

// to writes the options into the drains of a plan, where they are shown and saved.
func (f drainFlags) to(p *plan.Plan) {
	handover.SetDrainOptions(p, handover.DrainOptions{Wait: f.wait, Unknown: f.unknown})
}
