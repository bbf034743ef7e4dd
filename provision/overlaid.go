package provision

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
)

// overlaid is what the state knows better than the site's files: nodes that are
// in no file any more and are being decommissioned, and nodes that are pinned to
// an earlier image. It is laid over a copy of the inventory.
type overlaid struct {
	files  *inventory.Inventory // as it was loaded; nil: nothing was ever laid over it
	key    string               // names what is laid over it now
	pins   []Pin
	staged []Pin           // of a rollback that is not approved yet; they come before those of the state
	gone   map[string]bool // nodes that are being decommissioned
	// stays are nodes that are in no file any more, and that nobody
	// decommissions.
	stays []*inventory.Node
}

// recall lays over the inventory what the state says of pins, and the nodes of
// retire. It does nothing when that has not changed since. It is not to be called
// while another goroutine works with the Site.
func (s *Site) recall(ctx context.Context, r state.Reader, retire []string) error {
	pins, err := pinsOf(ctx, r)
	if err != nil {
		return err
	}
	for _, p := range s.recalls.staged {
		pins = slices.DeleteFunc(pins, func(was Pin) bool { return was.Node == p.Node })
		pins = append(pins, p)
	}
	slices.SortFunc(pins, func(a, b Pin) int { return strings.Compare(a.Node, b.Node) })
	retire = slices.Clone(retire)
	slices.Sort(retire)
	retire = slices.Compact(retire)
	raw, err := json.Marshal(struct {
		P []Pin
		R []string
	}{pins, retire})
	if err != nil {
		return err
	}
	if key := string(raw); key == s.recalls.key || len(pins) == 0 && len(retire) == 0 && s.recalls.files == nil {
		return nil
	} else if s.recalls.files == nil {
		s.recalls.files = s.Inv
	}
	base := s.recalls.files
	ghosts := make([]*inventory.Node, 0, len(retire))
	for _, name := range retire {
		g, err := ghost(ctx, r, base, name)
		if err != nil {
			return err
		}
		ghosts = append(ghosts, g)
	}
	inv := base
	if len(pins) > 0 || len(ghosts) > 0 {
		inv = (&cut{}).apply(base) // a copy
		applyPins(inv, pins)
	}
	gone := map[string]bool{}
	for _, g := range ghosts {
		gone[g.Name] = true
		inv.Nodes = append(inv.Nodes, g)
	}
	slices.SortFunc(inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	s.Inv, s.links = inv, roce.Addresses(inv)
	s.recalls.key, s.recalls.pins, s.recalls.gone = string(raw), pins, gone
	return nil
}

// stay makes those nodes again, of the ones that are gone from the site's files,
// that their schedulers keep: nobody asked to decommission them, and there may be jobs
// on them. One that cannot be made again, such as one whose chassis has another name
// now, is kept by none.
func (s *Site) stay(ctx context.Context, r state.Reader, gone []string) {
	s.recalls.stays = nil
	for _, name := range gone {
		if s.recalls.gone[name] {
			continue
		}
		if n, err := ghost(ctx, r, s.files(), name); err == nil && n.Handover != nil {
			s.recalls.stays = append(s.recalls.stays, n)
		}
	}
}

// files is the inventory as the site's files say it, without what was recalled.
func (s *Site) files() *inventory.Inventory {
	if s.recalls.files != nil {
		return s.recalls.files
	}
	return s.Inv
}

// recallFor is recall for a plan that was made before.
func (s *Site) recallFor(ctx context.Context, r state.Reader, p *plan.Plan) error {
	if err := s.recall(ctx, r, retiredIn(p)); err != nil {
		return err
	}
	var gone []string
	for _, g := range p.Gone {
		gone = append(gone, g.Node)
	}
	s.stay(ctx, r, gone)
	return nil
}

// gone lists the nodes that the state knows and the site's files do not have. A
// node that has another name now is not gone.
func (s *Site) gone(prior plan.Prior) (list []string) {
	moved := map[string]bool{}
	for _, m := range s.Inv.Moves {
		moved[m.From] = true
	}
	inv := s.files()
	for name := range prior.Nodes {
		if _, ok := inv.Node(name); ok || moved[name] {
			continue
		}
		if _, done := prior.Steps[forgetStep(name)]; !done || s.recalls.gone[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// recallWishes puts into the options of a plan what was recalled, and says what
// stands in for the site's files.
func (s *Site) recallWishes(prior plan.Prior, opt *plan.Options) (warnings []string) {
	opt.Retired, opt.Gone = s.recalls.gone, s.gone(prior)
	for _, n := range s.Inv.Nodes {
		if n.Retired && n.Protect {
			opt.Protected[n.Name] = true
		}
	}
	for _, p := range s.recalls.pins {
		if _, ok := s.files().Node(p.Node); ok {
			warnings = append(warnings, p.Warning())
			delete(opt.RoleOf, p.Node) // a rollout passes it by
		}
	}
	if len(opt.Targets) == 0 && len(opt.Replace) == 0 && len(s.recalls.gone) > 0 {
		opt.Targets = map[string]bool{} // nothing else was asked for
	}
	if opt.Targets != nil { // who names a node to decommission means it
		for name := range s.recalls.gone {
			opt.Targets[name] = true
		}
	}
	return warnings
}

// remembers makes durable, before a run begins, what the next one may need that
// the site's files may not say any more; and what a process that died had no time
// for.
func (s *Site) remembers(ctx context.Context, o RunOptions) error {
	if !o.Resume {
		if err := s.forgetRetired(ctx, o.Store, o.Fence); err != nil {
			return err
		}
	}
	if err := s.Remember(ctx, o.Store, o.Fence, o.Plan); err != nil {
		return err
	}
	last, _, err := state.Get[state.Run](ctx, o.Store, state.LastRun)
	if err != nil || last.ID == "" || last.Outcome != "" {
		return err
	}
	return s.RecordAccepted(ctx, o.Store, o.Fence, last.ID) // it died before it could
}

// settles makes durable what a run that has ended means for later ones.
func (s *Site) settles(ctx context.Context, store state.Store, fence state.Fence, res apply.Result) error {
	if err := s.RecordAccepted(ctx, store, fence, res.Run); err != nil {
		return err
	}
	if (state.Run{ID: res.Run, Outcome: res.Outcome}).Resumable() {
		return nil // its steps are gone on with
	}
	return s.forgetRetired(ctx, store, fence)
}
