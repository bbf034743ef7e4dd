// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/capture"
	"github.com/ironrail/ironrail/provision/direct"
	"github.com/ironrail/ironrail/provision/hook"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/services"
)

// sshParallel is how many commands run on nodes at a time: most of them wait for a
// package manager or a test. The test between pairs needs both of its ends at the
// same time (rounds.CommandsAtOnce), and others go on beside it.
const sshParallel = 18_432

// parallel is how many steps of a site run at a time. A step that waits for a
// self-test or a package manager loads nothing, and what loads something is held
// by the resources above; it only bounds goroutines.
func parallel(inv *inventory.Inventory) int { return max(512, 2*len(inv.Nodes)) }

// RunOptions are what a run needs beside its plan.
type RunOptions struct {
	Plan          *plan.Plan
	Store         state.Store
	Fence         state.Fence
	Bus           *event.Bus
	Resume        bool
	EraseApproved int
	Approval      *state.Approval // recorded with the run; nil: nobody was asked
	Drain         <-chan struct{}
}

// Running is a plan being applied: the executor, and the services that nodes
// need meanwhile. Its methods are safe for concurrent use.
type Running struct {
	*apply.Executor
	records
	bus      *event.Bus
	bootLog  *services.BootLog
	services *services.Services
	bmcs     reach.BMCs
	consoles *capture.Recorder
	shared   *reach.Shared // each console once, for consoles and for whoever watches
	ssh      *remote.Pool
	switches *reach.Switches
	restored bool         // the state was put back from a copy
	desk     *direct.Desk // what operators ask of nodes that the plan has no more work for
}

// Site is the site as the plan was made of it, with what the state overrides.
func (r *Running) Site() *Site { return r.site }

// Counters are what the services of a run have counted since it began.
type Counters struct {
	DHCP dhcp.Stats
	Boot []evidence.Count // what clients asked of the boot services, by service and word
	BMC  bmc.Counts
}

// Plus adds the counts of two runs.
func (c Counters) Plus(o Counters) Counters {
	c.DHCP = c.DHCP.Plus(o.DHCP)
	c.Boot = evidence.Sum(c.Boot, o.Boot)
	c.BMC = c.BMC.Plus(o.BMC)
	return c
}

// Counters returns the counts until now.
func (r *Running) Counters() Counters {
	return Counters{DHCP: r.services.DHCPStats(), Boot: r.services.BootCounts(), BMC: r.bmcs.Pool.Counts()}
}

// Begin opens the services and checks the plan against state and safety rules.
// Nothing is done to any node before Run.
func (s *Site) Begin(ctx context.Context, o RunOptions) (*Running, error) {
	if err := s.Keys.BindIdentity(ctx, o.Store, o.Fence, s.Inv.Site.Name); err != nil {
		return nil, err
	}
	s, err := s.For(ctx, o.Store, o.Plan)
	if err != nil {
		return nil, err
	}
	if n := protectedIn(s.Inv, o.Plan); n != "" { // whatever was said when it was planned
		return nil, errkind.New(errkind.Refused, "%s is protected: no plan erases it", n).Do("Remove `protect` from its role, or plan again without it.")
	}
	if err := s.over.ForgetSuperseded(ctx, o.Store, o.Fence); err != nil {
		return nil, err
	}
	rec := records{site: s, store: o.Store, fence: o.Fence}
	if err := rec.recordBefore(ctx, o); err != nil {
		return nil, err
	}
	r := &Running{records: rec, bus: o.Bus, bootLog: services.NewBootLog(o.Bus), ssh: remote.NewPoolOn(sshParallel, s.network),
		bmcs: s.access().BMCs(reach.Facts(o.Store))}
	_, ok, err := o.Store.Object(ctx, state.LastRestoration)
	if err != nil {
		return nil, err
	}
	r.restored = ok
	r.switches = s.access().Switches(r.ssh, r.fact)
	r.shared = reach.NewShared(reach.TerminalOn(s.network))
	r.consoles = capture.NewRecorder(r.captured(o))
	digests, err := s.Artifacts.Digests()
	if err != nil {
		return nil, err
	}
	// The plan is checked before any socket is opened: a refusal needs no root.
	cfg := s.config(o, digests)
	if _, err := apply.New(ctx, cfg); err != nil {
		return nil, err
	}
	if r.services, err = s.openServices(ctx, o.Store, r.bootLog); err != nil {
		return nil, err
	}
	for _, st := range r.world().stages(digests) {
		cfg.Stages[st.Name()] = st
	}
	if r.Executor, err = apply.New(ctx, cfg); err != nil {
		return nil, errors.Join(err, r.services.Close())
	}
	c := s.directConfig(o.Store, o.Fence, o.Bus, r.bmcs, r.ssh)
	c.Limits, c.NextStep = r.Executor, r.NextStep
	r.desk = direct.NewDesk(c)
	return r, nil
}

// captured is what the consoles of the nodes are read with.
func (r *Running) captured(o RunOptions) capture.Config {
	inv := r.site.Inv
	c := capture.Config{Folder: r.site.path("."), Now: time.Now, Bus: o.Bus, Begun: map[string]bool{},
		Has: func(node string) bool { n, ok := inv.Node(node); return ok && oob.HasConsole(n) },
		Open: func(ctx context.Context, node string, to io.Writer, keys <-chan string, up func()) error {
			return r.shared.OpenNode(ctx, r.bmcs, node, to, keys, up)
		}}
	for _, st := range o.Plan.Steps {
		if o.Resume && st.Subject.Kind == subject.Node && st.May.Has(plan.Power) {
			c.Begun[st.Subject.Name] = true
		}
	}
	return c
}

// openServices opens what the site serves, with the install ramdisks of its images, and
// with the boot attempts that the state has.
func (s *Site) openServices(ctx context.Context, r state.Reader, log *services.BootLog) (*services.Services, error) {
	boots, err := services.LoadBoots(ctx, r, s.Inv, s.over.BootMACs(), s.Keys.Boot)
	if err != nil {
		return nil, err
	}
	ramdisk, err := s.Artifacts.Ramdisk(s.agent)
	if err != nil {
		return nil, err
	}
	cfg := s.servicesConfig(log, boots, ramdisk)
	if cfg.ImageLoaders, err = s.Artifacts.Loaders(); err != nil {
		return nil, err
	}
	return services.Open(ctx, cfg)
}

// servicesConfig is what the site serves to nodes that boot the given ramdisk.
func (s *Site) servicesConfig(bootLog *services.BootLog, boots *install.Boots, ramdisk install.Ramdisk) services.Config {
	return services.Config{Inv: s.Inv, Keys: s.Keys, Network: s.network, Loaders: s.loaders, Mounts: s.Artifacts.Mounts(), Boots: boots, Ramdisk: ramdisk, BootLog: bootLog, Kept: s.kept}
}

// config is what the executor needs of a run, with stages that reach nothing yet.
func (s *Site) config(o RunOptions, digests map[string]string) apply.Config {
	cfg := apply.Config{Plan: o.Plan, Store: o.Store, Fence: o.Fence, Bus: o.Bus, Capacity: capacity(s.Inv), Units: units,
		EvidenceDir: s.path("evidence"), Resume: o.Resume, MaxErase: s.Inv.Site.MaxErase, EraseApproved: o.EraseApproved, Approval: o.Approval, Drain: o.Drain, Parallel: parallel(s.Inv),
		Stages: map[string]stage.Stage{}}
	for _, st := range s.offlineWorld().stages(digests) {
		cfg.Stages[st.Name()] = st
	}
	return cfg
}

// Run serves the nodes and applies the plan, until the plan has ended.
func (r *Running) Run(ctx context.Context) (apply.Result, error) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	var wg sync.WaitGroup
	var served error
	wg.Go(func() {
		if served = r.services.Serve(serving); served != nil {
			abort(fmt.Errorf("boot services: %w", served))
		}
	})
	wg.Go(func() { r.bmcs.Pool.KeepAlive(serving) })
	wg.Go(func() { r.services.ReportFindings(serving, r.Executor.Report) })
	res, err := r.Executor.Run(ctx)
	r.desk.Close()
	stop()
	wg.Wait()
	r.consoles.Close()
	r.shared.Close()
	if err := r.recordParts(ctx); err != nil {
		r.bus.Emit(event.Event{Type: event.Note, Text: "warning: the histories of parts are not up to date; the next run does it: " + err.Error()})
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err == nil {
		err = r.recordAfter(end, res)
	}
	return res, errors.Join(err, served, r.bmcs.Pool.Close(end), r.ssh.Close())
}

// fact reads a fact as it stands in the store now.
func (r *Running) fact(k fact.Key) (fact.Fact, bool) { return reach.Facts(r.store)(k) }

// RememberNodes makes durable how the nodes are declared that the state knows: once a
// block is taken out of the site's files, that is all that is left of it.
func (s *Site) RememberNodes(ctx context.Context, store state.Store, fence state.Fence) error {
	s, err := s.Desired(ctx, store, nil)
	if err != nil {
		return err
	}
	return overrides.Remember(ctx, store, fence, s.Inv, nil)
}

// limits hold in every run, by resource. A name that ends in a slash stands for
// each resource that begins with it.
var limits = map[string]int{
	install.InrushUses: 8,               // nodes between power-on and their agent's hello, of one rack whose circuits or power are not known
	"streams":          16,              // images streamed by this controller
	"bmc/":             1,               // sessions of one BMC
	"test/":            1,               // collective tests on one set of nodes
	switchos.Resource:  switchos.AtOnce, // of one fabric: a switch that nodes work through takes them all
	"repo/":            1,               // builds of one repository
	hook.Resource:      32,              // programs of the site's own, on this controller
}

// capacity is how much there is of each resource: the limits, and the room of
// each circuit for nodes that are switched on, in watts.
func capacity(inv *inventory.Inventory) map[string]int {
	all := maps.Clone(limits)
	for circuit, watts := range power.NewInrush(inv).Room {
		all[install.InrushUses+circuit] = watts
	}
	return all
}

// units writes how much of a resource is in use, as an operator reads it.
func units(resource string, used, limit int) string {
	circuit, inrush := strings.CutPrefix(resource, install.InrushUses)
	switch {
	case inrush && strings.Contains(circuit, "/"):
		return fmt.Sprintf("%.1f of %.1f kW in use", float64(used)/1000, float64(limit)/1000)
	case inrush:
		return fmt.Sprintf("%d of %d nodes are being switched on", used, limit)
	}
	return fmt.Sprintf("%d of %d in use", used, limit)
}
