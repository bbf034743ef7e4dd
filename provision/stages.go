// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	stacks "github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/driver/tools"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/encryption"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/ansible"
	"github.com/ironrail/ironrail/provision/handover/command"
	"github.com/ironrail/ironrail/provision/handover/hostfile"
	"github.com/ironrail/ironrail/provision/handover/hostsfile"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	"github.com/ironrail/ironrail/provision/handover/nodelist"
	"github.com/ironrail/ironrail/provision/handover/slurm"
	"github.com/ironrail/ironrail/provision/hook"
	"github.com/ironrail/ironrail/provision/host"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/keys"
	"github.com/ironrail/ironrail/provision/mounts"
	"github.com/ironrail/ironrail/provision/nics"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/supply"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/target"
)

// world is a site as its stages see it, and what they reach there. Where nothing is
// reached, it is enough to plan with: Site.offlineWorld.
type world struct {
	inv        *inventory.Inventory // the site's, or one that plans are made of
	signer     *modsign.Certificate // of the key that signs kernel modules; nil: none does
	links      []*roce.Links        // addresses that were allocated
	orphaned   []*inventory.Node    // nodes of the state that are in no file
	dir        string               // the site's folder, absolute
	exports    string               // folder for what handovers write
	schedulers reach.Schedulers
	programs   hook.Program  // runs those of hooks; nil: the operating system does
	recovery   keys.Recovery // keys of encrypted volumes

	bmc      func(ctx context.Context, node string) (oob.BMC, error)
	ask      func(node string) (*bmc.Handle, error) // as bmc, for what only some can tell; nil: none is asked
	install  install.Dependencies
	nodes    onnode.Nodes
	repos    manager.Repositories
	store    state.Reader
	feeds    *reach.Feeds                        // nil: PDUs are not asked
	accept   func(stage.Stage) stage.Stage       // around the stage that accepts nodes; nil: nothing
	capture  func(stage.Stage) stage.Stage       // around every stage: reads the consoles of nodes; nil: nothing does
	subnets  func(fabric string) infiniband.Host // where a subnet manager runs; nil: nowhere
	switches switchos.Switches                   // nil: they cannot be reached
}

// listens is the step in which a node hears its neighbours.
func listens(node string) plan.StepID { return install.StepOf(node, install.Configure) }

// offlineWorld is the site as its stages see it, with nothing that is reached.
func (s *Site) offlineWorld() world {
	dir, err := filepath.Abs(s.Inv.Dir)
	if err != nil {
		dir = s.Inv.Dir // the working folder is gone; a program of a hook fails by itself
	}
	var signer *modsign.Certificate
	if s.Keys.Modules != nil {
		signer = &s.Keys.Modules.Certificate
	}
	return world{inv: s.Inv, signer: signer, links: s.links, orphaned: s.over.Orphaned, dir: dir, exports: s.path("handover"), schedulers: s.schedulers(), programs: s.programs, recovery: s.Keys.Recovery()}
}

// bareStages is the stage table: the way of a node from power-off to its scheduler.
// A stage's steps need those of stages above it.
func (w world) bareStages(digests map[string]string) []stage.Stage {
	return []stage.Stage{
		oob.New(w.inv, w.bmc).Reaching(w.nodes).Enrolling(w.signer),   // reach the BMC, compare its serial, BIOS settings, keys of Secure Boot
		install.New(w.inv, digests, w.install),                        // power, netboot, identify, write, boot from disk
		host.New(w.inv, w.nodes),                                      // sysctl, locale, sudo, hold on the kernel
		encryption.New(w.inv, w.nodes, w.recovery, target.ReadyNeeds), // LUKS2 volumes of data disks, unlocked by the TPM
		cabling.New(w.inv, listens, w.nodes),                          // cables against what nodes hear by LLDP
		driver.New(w.inv, driverKinds(w)),                             // driver stacks, verified by what runs
		nics.New(w.inv, w.nodes, w.power),                             // what is set in the flash of NICs, and one cold cycle
		fabric.New(w.inv, fabricKinds(w)),                             // InfiniBand, RoCE, NVLink
		w.mounts(),                                                    // shared file systems, which may be reached over fabrics
		w.validate(),                                                  // pairs, collectives, acceptance
		supply.New(w.inv, w.feeds),                                    // PDUs, once their nodes were under load
		w.handover(),                                                  // to the scheduler, and drains
		overrides.Retirement{Inv: w.inv},                              // nodes that are in no file any more
		w.hooks(),                                                     // the site's own programs, before and after the steps of the others
	}
}

// stages is the stage table with what surrounds the stages.
func (w world) stages(digests map[string]string) []stage.Stage {
	all, around := w.bareStages(digests), w.middleware()
	for i := range all {
		for _, wrap := range around {
			all[i] = wrap(all[i])
		}
	}
	return all
}

// validate is the stage that tests and accepts nodes.
func (w world) validate() stage.Stage {
	kinds := fabricKinds(w)
	count := func(ctx context.Context, f *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
		k, can := kinds[f.Kind].(fabric.Counting)
		if !can {
			return nil, fmt.Errorf("fabric %s: the counters of its switches are not read", f.Name)
		}
		return k.SwitchCounters(ctx, f)
	}
	sweep := func(ctx context.Context, run stage.Run, f *inventory.Fabric) (fabric.Swept, error) {
		k, can := kinds[f.Kind].(fabric.Sweeping)
		if !can {
			return fabric.Swept{}, nil
		}
		return k.Resweep(ctx, run, f)
	}
	verify := func(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]stage.Finding, error) {
		k, can := kinds[f.Kind].(fabric.Verifying)
		if !can {
			return nil, nil
		}
		return k.Verify(ctx, run, f, n)
	}
	manage := func(ctx context.Context, run stage.Run, f *inventory.Fabric, seen fabric.Sweep) (lost, weaker []stage.Finding, before bool, err error) {
		k, can := kinds[f.Kind].(fabric.Managed)
		if !can {
			return nil, nil, false, nil
		}
		return k.CheckManager(ctx, run, f, seen)
	}
	return validate.New(w.inv, w.nodes).Collecting().Asking(reach.ChassisBy(w.ask)).Counting(count).Sweeping(sweep, verify).Managing(manage)
}

// mounts is the stage of shared file systems.
func (w world) mounts() stage.Stage { return mounts.New(w.inv, w.nodes, target.ReadyNeeds) }

// handover is the stage that gives nodes to their schedulers and takes them back.
func (w world) handover() stage.Stage {
	return handover.New(w.inv, handoverKinds(w), standings{w.store}).Keeping(w.orphaned)
}

// middleware is put around a stage; one that does not concern a stage returns it as it is.
type middleware func(stage.Stage) stage.Stage

// middleware is what surrounds the stages, from the inside out: each sees what those
// before it have made of a stage.
func (w world) middleware() (list []middleware) {
	weave := func(by func([]plan.Step) []plan.Step) {
		list = append(list, func(st stage.Stage) stage.Stage { return woven{st, by} })
	}
	if withBIOS(w.inv) || slices.ContainsFunc(w.inv.Nodes, oob.Enrols) { // nothing is installed before the firmware is as it should be
		weave(func(steps []plan.Step) []plan.Step { return oob.Weave(w.inv, steps) })
	}
	if slices.ContainsFunc(w.inv.Nodes, host.Gives) { // the host is set up before drivers are installed
		weave(func(steps []plan.Step) []plan.Step { return host.Weave(w.inv, steps) })
	}
	if slices.ContainsFunc(w.inv.Nodes, encryption.Gives) { // volumes are unlocked by every restart that follows
		weave(func(steps []plan.Step) []plan.Step { return encryption.Weave(w.inv, steps, host.Name, accept.ID) })
	}
	if slices.ContainsFunc(w.inv.Nodes, nics.Gives) { // NICs are set up before their fabrics
		weave(func(steps []plan.Step) []plan.Step { return nics.Weave(w.inv, steps) })
	}
	if install.ProvesFirmware(w.inv) { // what restarts a node comes before the proof that its firmware boots
		settles := func(n *inventory.Node) (plan.StepID, bool) { return nics.StepID(n.Name), nics.Gives(n) }
		weave(func(steps []plan.Step) []plan.Step { return install.WeaveFirmware(w.inv, steps, settles) })
	}
	if slices.ContainsFunc(w.inv.Nodes, mounts.Gives) { // a node is accepted with its file systems
		weave(func(steps []plan.Step) []plan.Step { return mounts.Weave(w.inv, steps, accept.ID) })
	}
	if w.accept != nil { // the baseline of a node that is accepted
		list = append(list, func(st stage.Stage) stage.Stage {
			if st.Name() != validate.StageName {
				return st
			}
			return w.accept(st)
		})
	}
	if w.capture != nil { // what nodes print while their steps run
		list = append(list, w.capture)
	}
	if w.feeds != nil { // PDUs are asked before a silent node is blamed
		list = append(list, func(st stage.Stage) stage.Stage { return w.feeds.Around(st) })
	}
	if w.store != nil { // parts that were found bad before are known again
		list = append(list, func(st stage.Stage) stage.Stage { return partRecords{st, w.inv, w.store} })
	}
	return list
}

// world is the site with what the stages of this run reach.
func (r *Running) world() world {
	s := r.site
	ssh := s.access().Nodes(r.ssh, r.fact)
	w := s.offlineWorld()
	w.bmc = func(_ context.Context, node string) (oob.BMC, error) { return r.bmcs.Handle(node) }
	w.ask = r.bmcs.Handle
	w.install = install.Dependencies{
		BMC: func(_ context.Context, node string) (install.Control, error) { return r.bmcs.Handle(node) },
		Hub: r.services.Hub(), Boots: r.services.Boots(), Images: s.Artifacts.Library(r.services.Root()), Nodes: ssh, Evidence: r.bootLog.Of, Printed: r.consoles.Printed, Type: r.consoles.Type,
		BootNetwork: r.services.BootNetwork, OtherOwner: r.services.OtherOwner(), SSHKey: remote.AuthorizedKey(s.Keys.SSH, "ironrail@"+s.Inv.Site.Name),
	}
	w.install.Signer, w.install.Restored = w.signer, r.restored
	w.install.Runs = func(ctx context.Context, n *inventory.Node) string { return s.observer().Banner(ctx, n) }
	w.nodes, w.switches, w.subnets = ssh, r.switches, s.subnets
	w.accept = func(st stage.Stage) stage.Stage {
		return s.observer().RecordBaselines(st, ssh, r.bmcs, drift.Writer{Store: r.store, Fence: r.fence})
	}
	w.capture = func(st stage.Stage) stage.Stage { return r.consoles.Around(s.Inv, st) }
	w.store, w.feeds = r.store, s.access().Feeds(r.fact)
	w.repos = s.Artifacts.Repositories(r.services.Root())
	return w
}

// standings answers where nodes stand from the state. It implements
// handover.NodeStatuses.
type standings struct{ store state.Reader }

// NodeStatus implements handover.NodeStatuses.
func (s standings) NodeStatus(ctx context.Context, node string) (handover.NodeStatus, error) {
	n, _, err := state.Get[state.Node](ctx, s.store, state.NodeKey(node))
	st := handover.NodeStatus{Served: n.Accepted || n.Adopted}
	switch {
	case err != nil:
		return st, err
	case n.Hold != nil:
		st.Reason = "held: " + n.Hold.Reason
	case n.Quarantine != nil:
		st.Reason = n.Quarantine.Finding.Cause
	case n.Doubt != "":
		st.Reason = "not accepted since: " + n.Doubt
	case !st.Served: // an adopted node serves its scheduler as it did before
		st.Reason = "not accepted"
	default:
		st.InService, st.AcceptedAt = true, n.AcceptedAt
	}
	return st, nil
}

// Changed implements handover.NodeStatuses, from the journal's effects.
func (s standings) Changed(ctx context.Context, since map[string]time.Time) (map[string]bool, error) {
	effects, err := state.ReadEffects(ctx, s.store)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, e := range effects {
		node, step, _ := strings.Cut(string(e.Step), "/")
		at, asked := since[node]
		if asked && e.At.After(at) && e.Kind != plan.Load && e.State != state.EffectNotDone && !strings.HasPrefix(step, handover.StageName+".") {
			changed[node] = true
		}
	}
	return changed, nil
}

// The kinds of every seam, each in one place: a new kind is a new package and
// one line here.

// driverKinds are the kinds of `driver` blocks.
func driverKinds(w world) map[string]driver.Kind {
	kinds := map[string]driver.Kind{
		inbox.Name: inbox.New(w.nodes, w.repos),
		tools.Name: tools.New(stacks.Recipes(), w.nodes, w.repos),
	}
	for name, recipe := range stacks.Recipes() {
		kinds[name] = stack.New(recipe, w.nodes, w.repos)
	}
	return kinds
}

// fabricKinds are the kinds of `fabric` blocks.
func fabricKinds(w world) map[string]fabric.Kind {
	return map[string]fabric.Kind{
		roce.Name:       switchos.New(roce.New(w.nodes, w.links...), w.inv, w.switches, w.links),
		infiniband.Name: infiniband.New(w.inv, w.nodes, w.subnets),
		nvlink.Name:     nvlink.New(w.inv, w.nodes),
	}
}

// handoverKinds are the kinds of `handover` blocks.
func handoverKinds(w world) map[string]handover.Kind {
	return map[string]handover.Kind{
		slurm.Name:      slurm.New(filepath.Join(w.exports, "slurm"), w.schedulers.Programs(w.nodes)),
		kubernetes.Name: kubernetes.New(w.schedulers.Clusters(w.nodes)),
		command.Name:    command.Command{},
		ansible.Name:    ansible.New(filepath.Join(w.exports, ansible.Name), w.links),
		hostfile.Name:   hostfile.New(filepath.Join(w.exports, hostfile.Name), w.links),
		hostsfile.Name:  hostsfile.New(filepath.Join(w.exports, hostsfile.Name), w.links),
		nodelist.Name:   nodelist.New(filepath.Join(w.exports, nodelist.Name), w.links),
	}
}

// woven is a stage whose steps stand in the right order with those of another.
type woven struct {
	stage.Stage
	weave func([]plan.Step) []plan.Step
}

// Plan implements stage.Stage.
func (s woven) Plan(v stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps, diags := s.Stage.Plan(v)
	return s.weave(steps), diags
}

// power is what switches a node off and on.
func (w world) power(ctx context.Context, node string) (nics.Power, error) {
	return w.install.BMC(ctx, node)
}

// withBIOS reports whether the site gives settings to any firmware.
func withBIOS(inv *inventory.Inventory) bool {
	for _, h := range inv.Hardware {
		if len(h.BIOS) > 0 {
			return true
		}
	}
	return false
}

// hooks is the stage that runs the site's own programs.
func (w world) hooks() *hook.Stage {
	if w.store == nil {
		return hook.New(w.inv, w.dir, nil)
	}
	return hook.New(w.inv, w.dir, func(ctx context.Context, node string) (string, error) {
		n, _, err := state.Get[state.Node](ctx, w.store, state.NodeKey(node))
		return standingWords(n), err
	}).WithProgram(w.programs)
}

// standingWords says in a few words where a node stands.
func standingWords(n state.Node) string {
	switch {
	case n.Hold != nil:
		return "held: " + n.Hold.Reason
	case n.Quarantine != nil:
		return "quarantined: " + n.Quarantine.Finding.Cause
	case n.Accepted:
		return "accepted"
	case n.Adopted:
		return "adopted"
	}
	return "not accepted"
}
