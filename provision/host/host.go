// SPDX-License-Identifier: Apache-2.0

// Package host is the stage of those settings of a host block that take effect without
// an installation: sysctl, locale, who may become root, the hold on the kernel; and of the
// MTU of networks. An installation writes them too, so that a step finds them there and
// does nothing; a change in the files is made on the nodes as they run. User data, which an
// installation alone leaves on a node, is waited for and judged.
package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "host"
	Version = 1
)

// limit is the hang deadline of a step.
const limit = 10 * time.Minute

// usual is how long user data is thought to take. Belief: a script of a site writes files and
// installs a few packages.
const usual = 30 * time.Second

// SettingsFact is what an installation has written, or this stage has last found or made
// so, on a node: what is no longer in the files is taken back by it.
const SettingsFact = fact.Name[wire.HostSettings]("host.settings")

// StepID returns the step of a node.
func StepID(node string) plan.StepID { return plan.StepID(node + "/" + Name + ".settings") }

// bootStep is the step of the install stage that this one follows.
func bootStep(node string) plan.StepID { return plan.StepID(node + "/install.boot") }

// Settings are those of a node, as they are written to it; the zero value where its host
// block gives none.
func Settings(n *inventory.Node) (s wire.HostSettings) {
	h := n.Host
	if h == nil {
		return s
	}
	s = wire.HostSettings{Sysctl: h.Sysctl, Locale: h.Locale, SudoGroups: h.Accounts.SudoGroups}
	if h.HoldKernel {
		s.HoldKernel = distribution.KernelPackages()
	}
	return s
}

// Gives reports whether a node has a step of this stage by its files.
func Gives(n *inventory.Node) bool { return givesSettings(n) || givesNetwork(n) }

// givesSettings reports whether a node's host block gives any of its settings.
func givesSettings(n *inventory.Node) bool {
	return n.Image != nil && !n.Retired && (givesAny(Settings(n)) || hasUserData(n))
}

func hasUserData(n *inventory.Node) bool { return n.Host != nil && n.Host.UserData != "" }

func givesAny(s wire.HostSettings) bool {
	return len(s.Sysctl) > 0 || s.Locale != "" || len(s.SudoGroups) > 0 || s.HoldKernel != nil
}

// Stage is the stage. It is safe for concurrent use.
type Stage struct {
	inv   *inventory.Inventory
	nodes onnode.Nodes
}

// New returns the stage; nodes may be nil when only Plan is called.
func New(inv *inventory.Inventory, nodes onnode.Nodes) *Stage { return &Stage{inv, nodes} }

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// Plan implements stage.Stage: a step for each node whose files give a setting, or that
// has one which they no longer give; and one for its networks.
func (s *Stage) Plan(view stage.View) (steps []plan.Step, diags hcl.Diagnostics) {
	for _, n := range s.inv.Nodes {
		last, known := lastSettings(view, n.Name)
		if givesSettings(n) || n.Image != nil && !n.Retired && givesAny(last) {
			st := stepOf(n)
			st.Inherited = !known
			steps = append(steps, st)
		}
		net, known := lastNetwork(view, n.Name)
		if givesNetwork(n) || n.Image != nil && !n.Retired && hasAny(net) {
			st := networkStep(n)
			st.Inherited = !known
			steps = append(steps, st)
		}
	}
	return steps, s.Check()
}

// lastSettings are what a node has by the state; unreadable ones count as none. False:
// nothing is recorded, since a version that did not write them installed the node, or
// somebody else did.
func lastSettings(view stage.View, node string) (last wire.HostSettings, known bool) {
	f, known := view.Fact(SettingsFact.Of(subject.OfNode(node)))
	if known {
		last, _ = SettingsFact.Get(f)
	}
	return last, known
}

// stepOf is the step of a node. Its inputs are what the site says, and nothing that this
// version adds.
func stepOf(n *inventory.Node) plan.Step {
	me := subject.OfNode(n.Name)
	st := plan.Step{ID: StepID(n.Name), Stage: Name, NonDisruptive: true, Subject: me, Title: "set up the host: " + list(n, Settings(n)), May: plan.Effects(plan.Config),
		Needs:    []plan.Need{{Step: bootStep(n.Name), On: plan.Success, Triggers: true}},
		Decl:     stage.Source(n.Decl),
		Deadline: plan.Budget{Limit: limit, Expected: 2 * time.Second},
		Version:  Version, DepthKey: n.Name, Yields: []fact.Key{SettingsFact.Of(me)}}
	h := n.Host
	if h == nil {
		return st
	}
	if hasUserData(n) {
		st.Deadline = plan.Budget{Limit: limit + userdata.Limit, Expected: usual}
	}
	st.Decl = stage.Source(h.Decl)
	add := func(name, value string, at hcl.Range) {
		if value != "" {
			st.Inputs = append(st.Inputs, plan.Input{Name: name, Value: value, Decl: stage.Source(at)})
		}
	}
	at := func(attribute string) hcl.Range { return inventory.PlaceOf(h.Ranges, attribute, h.Decl) }
	for _, key := range slices.Sorted(maps.Keys(h.Sysctl)) {
		add("sysctl "+key, h.Sysctl[key], at("sysctl"))
	}
	add("locale", h.Locale, at("locale"))
	add("sudo_groups", strings.Join(h.Accounts.SudoGroups, " "), inventory.PlaceOf(h.Accounts.Ranges, "sudo_groups", h.Accounts.Decl))
	if h.HoldKernel {
		add("hold_kernel", "true", at("hold_kernel"))
	}
	return st
}

// list names the settings of a node in words.
func list(n *inventory.Node, s wire.HostSettings) string {
	var words []string
	if n := len(s.Sysctl); n > 0 {
		words = append(words, fmt.Sprintf("%d sysctl", n))
	}
	if s.HoldKernel != nil {
		words = append(words, "hold on the kernel")
	}
	if s.Locale != "" {
		words = append(words, "locale")
	}
	if len(s.SudoGroups) > 0 {
		words = append(words, "sudo groups")
	}
	if hasUserData(n) {
		words = append(words, "user data")
	}
	if len(words) == 0 {
		return "nothing is asked for any more"
	}
	return strings.Join(words, ", ")
}

// Check implements stage.Checker: an image that is built of packages must have those that
// a setting needs.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	type pair struct {
		host  *inventory.HostSettings
		image *inventory.Image
	}
	seen := map[pair]bool{}
	for _, n := range s.inv.Nodes {
		if n.Host == nil || n.Image == nil || n.Retired || seen[pair{n.Host, n.Image}] {
			continue
		}
		seen[pair{n.Host, n.Image}] = true
		for _, x := range lacking(n.Host, n.Image) {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Package for a host setting is missing", Subject: x.at.Ptr(),
				Detail: fmt.Sprintf("%s of host %q needs package %q, which image %q does not have. Add it to the packages of the image, or remove %s.", x.setting, n.Host.Name, x.pkg, n.Image.Name, x.setting)})
		}
	}
	return diags
}

type lack struct {
	setting, pkg string
	at           hcl.Range
}

// lacking are the packages that settings need and an image that is built of packages
// does not have.
func lacking(h *inventory.HostSettings, i *inventory.Image) (list []lack) {
	f, ok := distribution.FamilyOf(i)
	if !ok || i.Source != "" { // not built here: what is in it is seen when it runs
		return nil
	}
	if locales := f.Locales(h.Locale); h.Locale != "" && !builtin(h.Locale) && !slices.ContainsFunc(locales, func(p string) bool { return slices.Contains(i.Packages, p) }) {
		list = append(list, lack{"locale", locales[0], inventory.PlaceOf(h.Ranges, "locale", h.Decl)})
	}
	if userdata.FormOf(h.UserData) == userdata.CloudConfig && !slices.Contains(i.Packages, "cloud-init") {
		list = append(list, lack{"user_data", "cloud-init", inventory.PlaceOf(h.Ranges, "user_data", h.Decl)})
	}
	if a := h.Accounts; len(a.SudoGroups) > 0 && f.Manager == distribution.Apt && // of every image of RHEL
		!slices.Contains(i.Packages, "sudo") {
		list = append(list, lack{"sudo_groups", "sudo", inventory.PlaceOf(a.Ranges, "sudo_groups", a.Decl)})
	}
	return list
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	if st.ID == NetworkStepID(n.Name) {
		return s.observeNetwork(ctx, run, n)
	}
	want := Settings(n)
	last, _ := lastSettings(run, n.Name)
	w := work{s.nodes, n.Name}
	wrong, err := w.compare(ctx, want, last)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if hasUserData(n) {
		d, err := w.readUserData(ctx)
		switch {
		case err != nil:
			return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
		case d.state == userdata.Running:
			wrong = append(wrong, "user data has not ended yet")
		case d.state == userdata.Failed:
			wrong = append(wrong, d.why)
		}
	}
	if len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: list(n, want)}, learn(ctx, run, n, want)
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return err
	}
	if st.ID == NetworkStepID(n.Name) {
		return s.applyNetwork(ctx, run, st, n)
	}
	want, w := Settings(n), work{s.nodes, n.Name}
	last, _ := lastSettings(run, n.Name)
	err = run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s-%d", st.ID, run.Clock().Now().UnixNano()), // idempotent: each attempt is one of its own
		Kind: plan.Config, Repeatable: true, Does: "write host settings of " + n.Name,
		Do: func(ctx context.Context) error {
			run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: list(n, want)})
			return w.apply(ctx, want, last)
		}})
	if err != nil {
		return err
	}
	wrong, err := w.compare(ctx, want, wire.HostSettings{})
	switch {
	case err != nil:
		return errkind.Begun(err)
	case len(wrong) > 0:
		const action = "Correct the host block of the site, or bring to the node what is missing, then run `ironrail apply`."
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "host settings"}},
			Cause: "host settings were written and yet " + wrong[0], Evidence: wrong, Action: action}
		return errors.Join(run.Blame(ctx, f), errkind.Begun(errkind.New(errkind.Mismatch, "%s", f.Cause).Do(action)))
	}
	if hasUserData(n) {
		if err := w.awaitUserData(ctx, run, n); err != nil {
			return err
		}
	}
	return learn(ctx, run, n, want)
}

// learn records what a node has now.
func learn(ctx context.Context, run stage.Run, n *inventory.Node, s wire.HostSettings) error {
	f, err := SettingsFact.New(subject.OfNode(n.Name), s, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// Weave puts the steps of this stage into their place among those of others: what
// follows the boot of a node follows its settings too. They trigger nothing.
func Weave(inv *inventory.Inventory, steps []plan.Step) []plan.Step {
	of := map[plan.StepID][]plan.Need{}
	for _, n := range inv.Nodes {
		if givesSettings(n) {
			of[bootStep(n.Name)] = append(of[bootStep(n.Name)], plan.Need{Step: StepID(n.Name)})
		}
		if givesNetwork(n) {
			of[bootStep(n.Name)] = append(of[bootStep(n.Name)], plan.Need{Step: NetworkStepID(n.Name)})
		}
	}
	plan.Interpose(steps, of, func(st *plan.Step) bool { return st.Stage != Name })
	return steps
}
