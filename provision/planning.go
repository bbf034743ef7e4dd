// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/provision/selection"
)

// planning is one plan in the making. Each pass reads what the passes before it left
// here, and adds its own. It is used by one goroutine.
type planning struct {
	site    *Site        // desired, after the overrides
	reader  state.Reader // the state
	asked   PlanOptions
	prior   plan.Prior             // what the state says was done
	steps   []plan.Step            // of all stages, done or not
	options plan.Options           // of the comparison
	looking *observe.PresenceProbe // at nodes that the state does not know; nil: none
	edits   install.Edits          // host settings that installed nodes do not have
	gaps    gaps.List              // what the files ask for and do not get
	plan    *plan.Plan             // after the comparison
	diags   hcl.Diagnostics        // an error ends planning after its pass
	// Warnings, in the order in which a plan shows them after those of the comparison.
	silent, unread []string
}

// pass is one step of planning.
type pass struct {
	name string
	run  func(*planning, context.Context) error
}

// passes are all that planning does, in this order. Nothing in the world is changed by
// any of them, and only what is said to look asks anything over the network.
var passes = []pass{
	// Whose state is it? Before anything is believed of it.
	{"check identity", (*planning).checkIdentity},
	// Which nodes are not what the files say? Before anything asks who a node is.
	{"apply overrides", (*planning).applyOverrides},
	// What was done? Read once, so that all that follows speaks of the same moment.
	{"read the past", (*planning).readPast},
	// What runs although the state does not know it? Nodes take seconds to be silent:
	// the look begins here and goes on beside the passes below that compute.
	{"begin to look at unknown nodes", (*planning).beginPresence},
	// What do the files ask for in vain? Before anything is refused for it, so that a
	// refusal comes with the whole list.
	{"list gaps", (*planning).listGaps},
	// What should be there? All stages, whether anything of it is done or not. What the
	// files have wrong for a plan ends it here, before anything else is asked.
	{"desire", (*planning).desire},
	// What did the operator ask for? After overrides, so that nodes which are in no file
	// any more can be named; before the looks, which it narrows.
	{"read the options", (*planning).readOptions},
	// Which disk of a node would be erased? A rule for the comparison, which refuses
	// where the answer is not certain.
	{"judge disks", (*planning).judgeDisks},
	// Is what was done still so? It looks at nodes, and with --refresh at BMCs and switches.
	{"look at what was done", (*planning).observe},
	// What would change on switches? After the look, which may have just read them.
	{"preview switches", (*planning).previewSwitches},
	// Which unknown nodes run? The comparison leaves them alone, so that this ends here.
	{"end the look at unknown nodes", (*planning).endPresence},
	// What is left to do: desired steps against the past and all that was seen.
	{"compare", (*planning).compare},
	// Which disks are erased, by serial number, in the words that are approved.
	{"show disks", (*planning).showDisks},
	// How long may each step take? Only for steps that are really planned.
	{"set deadlines", (*planning).setDeadlines},
	// What should be known before this is approved? Last, since it depends on what is in
	// the plan.
	{"warn", (*planning).warn},
}

// Plan compares the site with the state. It changes nothing, and resolves no secret
// but those of BMCs and switches for a Refresh; nodes that the state does not know are looked at
// over the network, so that one that runs is offered for adoption and not for
// erasure.
func (s *Site) Plan(ctx context.Context, r state.Reader, o PlanOptions) (*plan.Plan, hcl.Diagnostics, error) {
	p, err := s.plan(ctx, r, o)
	if err != nil || p.diags.HasErrors() {
		return nil, p.diags, err
	}
	return p.plan, p.diags, nil
}

// plan is Plan with all that it has found on the way.
func (s *Site) plan(ctx context.Context, r state.Reader, o PlanOptions) (*planning, error) {
	ctx, cancel := context.WithCancel(ctx) // ends a look that nobody waits for any more
	p := &planning{site: s, reader: r, asked: o}
	defer func() { cancel(); p.looking.Wait() }()
	for _, pass := range passes {
		if err := pass.run(p, ctx); err != nil || p.diags.HasErrors() {
			return p, err
		}
	}
	return p, nil
}

func (p *planning) checkIdentity(ctx context.Context) error {
	if o := p.asked; o.Offline && o.Refresh {
		return errkind.New(errkind.Refused, "an offline plan contacts nobody, and a refresh looks at everything that was done").Do("Leave out --offline or --refresh.")
	}
	return p.site.Keys.CheckIdentity(ctx, p.reader, p.site.Inv.Site.Name)
}

func (p *planning) applyOverrides(ctx context.Context) (err error) {
	p.site, err = p.site.Desired(ctx, p.reader, p.asked.Decommission)
	return err
}

func (p *planning) readPast(ctx context.Context) (err error) {
	if p.prior, err = state.ReadPrior(ctx, p.reader); err != nil {
		return err
	}
	p.site = p.site.withOrphaned(ctx, p.reader, p.site.over.Gone(p.prior))
	return nil
}

func (p *planning) beginPresence(ctx context.Context) error {
	if !p.asked.Offline {
		p.looking = p.site.observer().BeginPresence(ctx, p.prior, p.asked.Say)
	}
	return nil
}

func (p *planning) listGaps(context.Context) (err error) {
	p.gaps, err = p.site.gapsIn(p.prior)
	if err == nil && p.asked.Gaps != nil {
		p.asked.Gaps(p.gaps)
	}
	return err
}

func (p *planning) desire(context.Context) (err error) {
	p.steps, p.diags, err = p.site.desired(p.prior)
	return err
}

func (p *planning) readOptions(context.Context) (err error) {
	if p.options, err = readOptions(p.site.Inv, p.asked); err != nil {
		return err
	}
	p.options.Rollouts, p.options.RoleOf = listRollouts(p.site.Inv)
	p.site.over.Apply(p.prior, &p.options)
	return nil
}

func (p *planning) judgeDisks(context.Context) error {
	p.options.Ambiguous = install.Ambiguous(p.site.Inv, p.prior, p.asked.Disks)
	return nil
}

func (p *planning) observe(ctx context.Context) (err error) {
	o := p.asked
	if o.Offline {
		return nil
	}
	p.options.Observed, p.unread, err = p.site.observer().ObserveSteps(ctx, p.reader, p.prior, p.steps, p.options,
		observe.Options{Refresh: o.Refresh, Trust: o.Trust, Now: o.Now, Say: o.Say, Looked: o.Looked})
	return err
}

func (p *planning) previewSwitches(context.Context) error {
	p.options.Observed = p.site.observer().PreviewSwitches(p.prior, p.steps, p.options.Observed)
	return nil
}

func (p *planning) endPresence(context.Context) error {
	p.options.Presence, p.silent = p.looking.Result()
	return nil
}

// compare makes the plan; the host settings of installed nodes are compared meanwhile,
// since they change nothing in it but its warnings.
func (p *planning) compare(context.Context) (err error) {
	var wg sync.WaitGroup
	wg.Go(func() { p.edits = install.FindEdits(p.site.Inv, p.prior, p.options.Targets) })
	p.plan, err = plan.Diff(p.steps, p.prior, p.options)
	wg.Wait()
	if err != nil {
		return err
	}
	o := p.asked
	p.plan.ID, p.plan.Created = planID(o.Now), o.Now.UTC()
	p.plan.Request = &plan.Request{Replace: o.Replace, Retest: o.Retest, Targets: o.Targets, Decommission: o.Decommission, Refresh: o.Refresh, Trust: o.Trust, Offline: o.Offline}
	return nil
}

func (p *planning) showDisks(context.Context) error {
	return install.ShowDisks(p.site.Inv, p.prior, p.plan, p.asked.Disks)
}

// setDeadlines takes the site's own past where it is long enough, else the table.
func (p *planning) setDeadlines(ctx context.Context) error {
	if p.plan.Empty() {
		return nil
	}
	profiles := predict.Profiles(p.site.Inv)
	past, err := predict.ReadRecent(ctx, p.reader, profiles, Durations())
	if err != nil {
		return err
	}
	budgets := predict.Budgets(p.plan, predict.Options{Table: Durations(), Profiles: profiles, Images: p.site.Artifacts.ImageSizes(), History: past})
	for i := range p.plan.Steps {
		p.plan.Steps[i].Deadline = budgets[i]
	}
	return nil
}

// offlineWarning is in every plan that contacted nobody.
const offlineWarning = "planned offline: nobody was contacted. Nodes that the state does not know may run, and what was done may be otherwise by now; `ironrail apply` looks before anything is done"

func (p *planning) warn(ctx context.Context) error {
	over := p.site.over
	w := slices.Concat(p.plan.Warnings, p.silent, p.unread, over.ChassisWarnings(), over.PinWarnings(), oob.TrustWarnings(p.site.Inv))
	if p.asked.Offline {
		w = slices.Insert(w, 0, offlineWarning)
	}
	lone, err := p.site.Unmeasured(ctx, p.reader, p.plan)
	if err != nil {
		return err
	}
	edits, err := p.edits.ListWarnings(p.plan)
	w = slices.Concat(w, lone, edits)
	if !p.plan.Empty() {
		w = append(w, p.gaps.Of(gaps.NoEffect).Lines()...)
	}
	p.plan.Warnings = w
	return err
}

// readOptions checks the operator's words against the inventory.
func readOptions(inv *inventory.Inventory, o PlanOptions) (plan.Options, error) {
	opt := plan.Options{Site: inv.Site.Name, MaxErase: inv.Site.MaxErase, Protected: map[string]bool{}}
	var err error
	if opt.Replace, err = selection.ReadSet(inv, o.Replace); err != nil {
		return opt, err
	}
	if opt.Retest, err = selection.ReadSet(inv, o.Retest); err != nil {
		return opt, err
	}
	if opt.Targets, err = selection.ReadSet(inv, o.Targets); err != nil {
		return opt, err
	}
	if err := within(inv, opt); err != nil {
		return opt, err
	}
	for _, n := range inv.Nodes {
		if n.Protect {
			opt.Protected[n.Name] = true
		}
	}
	return opt, nil
}

// within refuses nodes that are to be reinstalled and left alone at once.
func within(inv *inventory.Inventory, opt plan.Options) error {
	if len(opt.Targets) == 0 {
		return nil
	}
	var outside []string
	for _, n := range inv.Nodes {
		if opt.Replace[n.Name] && !opt.Targets[n.Name] {
			outside = append(outside, n.Name)
		}
	}
	if len(outside) == 0 {
		return nil
	}
	and := ""
	if more := len(outside) - 1; more > 0 {
		and = fmt.Sprintf(" and %d more", more)
	}
	return errkind.New(errkind.Refused, "--replace names %s%s, which --target leaves out", outside[0], and).
		Do("Name the same nodes with both, or leave --target out: --replace alone says which nodes are reinstalled.")
}

// planID names a plan; names sort by time.
func planID(now time.Time) string {
	return "p" + now.UTC().Format("20060102T150405") + "-" + rand.Text()[:6]
}
