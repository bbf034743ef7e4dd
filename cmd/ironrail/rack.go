// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/keys"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/rehearse/rack"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// What --rack can be given to: commands that reach devices, and commands that read and
// write the state alone, which work after the rack has ended as well.
var (
	onRack      = []string{"adopt", "apply", "boot", "console", "decommission", "drift", "fabric", "locate", "plan", "power", "rebuild", "rollback", "sel", "sensors", "test"}
	rackRecords = []string{"check", "events", "handover", "hold", "release", "report", "serve", "show", "state", "status", "why"}
)

func (a *app) rackCommand() *cobra.Command {
	var f rehearseFlags
	c := &cobra.Command{
		Use:   "rack",
		Short: "Keep simulated hardware alive, for the real commands",
		Long: `Keep a virtual rack alive, made from the site's files, until Ctrl-C. In another
terminal every command that is given --rack works on it instead of the real
hardware: plan, apply, adopt, rebuild, hold, why, drift, power, sel, sensors and
the others, each as it is, with real sockets and a state file. It needs no root, no
image, no package and no secret. The hardware outlives them: end apply with kill -9,
lose the state, edit the files, and look at what the next command makes of it.

Every device answers on a 127.x address and a high port of this machine, also for
tools of others, such as ipmitool and snmpget; ` + "`ironrail rack devices`" + ` lists them.
With --rack nothing else is reached: an address that no device of the rack has is
refused. Images and packages are simulated, programs of hooks do not run, and
passwords are made up.

The state of --rack lies in .ironrail-rack/state and is marked as that of a virtual
rack: without --rack it is refused, and so is that of real nodes with it. Each
` + "`ironrail rack`" + ` is new hardware with an empty state; the last state is kept in
.ironrail-rack/earlier.

Hardware is --speed times faster than in a room; what the controller waits for stays
as long as it is. Faults are planted at once. What technicians and accidents do
to the hardware, ` + "`ironrail rack replace`, `exchange`, `fault`" + ` and ` + "`lift`" + ` do.`,
		Example: "  ironrail rack\n  ironrail rack --speed 600 --fault kind=missing-dimm,node=r01-u17\n  ironrail --rack apply        # in another terminal",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !(f.speed > 0 && f.speed <= mostSpeed) {
				return wrongUsage(c, fmt.Errorf("--speed is above 0 and at most %d", mostSpeed))
			}
			return a.runRack(c.Context(), f)
		},
	}
	fs := c.Flags()
	fs.StringArrayVar(&f.files, "faults", nil, "plant the faults of this `FILE` (HCL: blocks fault \"KIND\" { node = ... })")
	fs.StringArrayVar(&f.faults, "fault", nil, "plant one fault: `kind=KIND,node=NODE`")
	fs.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that all chance comes from")
	fs.Float64Var(&f.speed, "speed", rehearsal.DefaultSpeed, "how many times faster than in a room hardware is")
	c.AddCommand(a.rackDevicesCommand())
	for _, act := range rackActs {
		c.AddCommand(a.rackActCommand(act))
	}
	return c
}

// runRack keeps the rack alive.
func (a *app) runRack(ctx context.Context, f rehearseFlags) error {
	inv, diags, files := a.loadInventory()
	a.showDiagnostics(withoutGaps(diags), files)
	if diags.HasErrors() {
		return hasErrors(diags)
	}
	faults, err := a.plant(inv, f)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return rack.Run(ctx, inv, rack.Options{Seed: f.seed, Speed: f.speed, Faults: faults, Version: thisVersion(), OnReady: func(i rack.Info, all []virtual.Endpoint) {
		a.showEndpoints(all)
		if a.json {
			a.printLine(struct {
				Type string `json:"type"`
				rack.Info
			}{"rack", i})
		}
		a.sayf("The virtual rack of site %s is up: %d %s, all off and blank. In another terminal: ironrail --rack apply. Ctrl-C ends it.", i.Site, i.Nodes, pluralOf(i.Nodes, "node", "nodes"))
	}})
}

// rackDevicesCommand lists where the devices of the rack answer.
func (a *app) rackDevicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List where the devices of the rack answer",
		Long: `List the BMCs, PDUs, power shelves and switches of the virtual rack that runs:
their address in the site's files, the one on this machine that tools of others
use, the user and the password, which is made up.`,
		Example: "  ironrail rack devices\n  ironrail rack devices --json",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := rack.NewClient(a.dir).Endpoints(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			var p page
			listEndpoints(&p, all)
			p.to(a.out)
			return nil
		},
	}
}

// rackAct is something that is done to the hardware of the rack. do returns what was done.
type rackAct struct {
	use, short, long, example string
	words                     int // how many
	do                        func(context.Context, *rack.Client, []string) (string, error)
}

var rackActs = []rackAct{
	{"replace NODE", "Put another chassis in the place of a node",
		`Switch a node off and put another chassis of the same hardware block in its
place, as a technician does: its serial number, UUID and MACs are others, its
disks are blank. Cables, rack unit, the address and the accounts of the BMC stay.`,
		"  ironrail rack replace r01-u09", 1,
		func(ctx context.Context, r *rack.Client, args []string) (string, error) {
			l, err := r.Replace(ctx, args[0])
			return fmt.Sprintf("%s is another chassis now, off and blank. Its label: serial number %s, boot NIC %s.", args[0], l.Serial, l.BootMAC), err
		}},
	{"exchange NODE NODE", "Swap the chassis of two nodes",
		`Switch two nodes off and swap their chassis, with all that is in them. Cables,
rack units and the addresses of the BMCs stay.`,
		"  ironrail rack exchange r01-u01 r01-u09", 2,
		func(ctx context.Context, r *rack.Client, args []string) (string, error) {
			return args[0] + " and " + args[1] + " have each other's chassis now; both are off.", r.Exchange(ctx, args[0], args[1])
		}},
	{"fault kind=KIND[,node=NODE]", "Plant a fault now",
		`Break something of the hardware now. The kinds, and what each needs, are those
that ` + "`ironrail rehearse --help`" + ` lists. Kinds that follow the run of a controller
are for rehearsals, and so are at, after, for, every and probability.`,
		"  ironrail rack fault kind=bmc-dead,node=r01-u09", 1,
		func(ctx context.Context, r *rack.Client, args []string) (string, error) {
			return "Planted: " + args[0], r.Plant(ctx, args[0])
		}},
	{"lift kind=KIND[,node=NODE]", "Take a fault away again",
		`Fix what was broken, for the kinds of faults that can come and go. Others need
another chassis: ` + "`ironrail rack replace`" + `.`,
		"  ironrail rack lift kind=link-down,node=r01-u09,port=rail/1", 1,
		func(ctx context.Context, r *rack.Client, args []string) (string, error) {
			return "Taken away: " + args[0], r.Lift(ctx, args[0])
		}},
}

// rackActCommand is the command that does it.
func (a *app) rackActCommand(act rackAct) *cobra.Command {
	return &cobra.Command{
		Use:     act.use,
		Short:   act.short,
		Long:    act.long,
		Example: act.example,
		Args:    asUsage(cobra.ExactArgs(act.words)),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := act.do(c.Context(), rack.NewClient(a.dir), args)
			if err == nil {
				a.sayf("%s", done)
			}
			return err
		},
	}
}

// checkRack refuses --rack for what does not work on a virtual rack, and where none runs.
func (a *app) checkRack(c *cobra.Command) error {
	words := strings.Fields(c.CommandPath())
	if !a.rack || len(words) < 2 || strings.HasPrefix(words[1], "__") {
		return nil
	}
	switch name := words[1]; {
	case slices.Contains(rackRecords, name):
		return nil
	case !slices.Contains(onRack, name):
		return wrongUsage(c, fmt.Errorf("--rack is for %s", strings.Join(slices.Sorted(slices.Values(slices.Concat(onRack, rackRecords))), ", ")))
	}
	if hosts := c.Flags().Lookup("hosts"); hosts != nil && hosts.Changed {
		return wrongUsage(c, errors.New("--hosts names nodes without a site, and --rack has those of the site"))
	}
	i, err := rack.NewClient(a.dir).Info(c.Context())
	if err != nil {
		return err
	}
	a.sayf("On the virtual rack of site %s; nothing else is reached.", i.Site)
	return nil
}

// openSite opens a loaded site, with --rack on its virtual rack.
func (a *app) openSite(inv *inventory.Inventory, o provision.Options) (*provision.Site, error) {
	o.Environ = a.environ
	if !a.rack {
		if err := a.checkBeforeKeys(inv, o); err != nil {
			return nil, err
		}
		return provision.Open(inv, o)
	}
	s, err := rack.NewClient(a.dir).Open(context.Background(), inv, o.Look) // each of its calls has a deadline
	if o.Look && errkind.Of(err) == errkind.Unreachable {
		return rack.OpenRecords(inv, a.dir)
	}
	return s, err
}

// checkBeforeKeys brings the copy of a state in etcd up to date before keys are made beside it:
// they are not made where nodes trust others.
func (a *app) checkBeforeKeys(inv *inventory.Inventory, o provision.Options) error {
	if o.Look || onrecord.EtcdOf(inv) == nil {
		return nil
	}
	missing, err := keys.ListMissing(filepath.Join(a.stateDir(), keys.Folder))
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := os.MkdirAll(a.stateDir(), 0o700); err != nil {
		return err
	}
	_, done, err := a.openReader()
	if err != nil {
		return err
	}
	done()
	return nil
}

// markVirtual marks the state of a virtual rack, before anything else is written into it.
func markVirtual(ctx context.Context, o ownership) error {
	if err := (keys.Keys{Virtual: true}).CheckVirtual(ctx, o.store); err != nil {
		return err
	}
	if marked, err := keys.IsVirtual(ctx, o.store); err != nil || marked {
		return err
	}
	return keys.MarkVirtual(ctx, o.store, o.fence)
}
