// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/keys"
)

// findingName is the name of findings that are alike; see fold.Finding.ID.
var findingName = lazyregexp.New(`^f-[0-9a-v]{6}$`)

// whyFinding tells all that is known of the findings of one name, where the word is one and no node has
// that name.
func (a *app) whyFinding(ctx context.Context, inv *inventory.Inventory, word string) (bool, error) {
	if _, node := inv.Node(word); node || !findingName.MatchString(word) {
		return false, nil
	}
	all, err := a.findingsNow(ctx, inv)
	if err != nil {
		return true, err
	}
	all = slices.DeleteFunc(all, func(f stage.Finding) bool { return ending.Fold(f).ID() != word })
	if len(all) == 0 {
		return true, errkind.New(errkind.NotFound, "nothing that is known now is called %s", word).Do("`ironrail why` lists what nodes wait for, and `ironrail report` what was found.")
	}
	if a.json {
		return true, a.printJSON(struct {
			ID       string          `json:"id"`
			Findings []stage.Finding `json:"findings"`
		}{word, all})
	}
	var p page
	for i, f := range all {
		if i > 0 {
			p.linef("")
		}
		g := fold.Findings([]fold.Finding{ending.Fold(f)})[0]
		p.linef("%s", g.Subjects())
		writeFindings(&p, g, []stage.Finding{f})
	}
	p.to(a.out)
	return true, nil
}

// findingsNow are the findings that nodes are quarantined by, those about the site, and, while nobody
// owns the state, those of all steps: each once.
func (a *app) findingsNow(ctx context.Context, inv *inventory.Inventory) (all []stage.Finding, err error) {
	site, owner, err := a.siteNow(ctx, inv)
	if err != nil {
		return nil, err
	}
	add := func(f stage.Finding) {
		if !slices.ContainsFunc(all, func(o stage.Finding) bool {
			return o.Step == f.Step && o.Cause == f.Cause && slices.Equal(o.Suspects, f.Suspects)
		}) {
			all = append(all, f)
		}
	}
	for _, n := range site.Nodes {
		if q := n.Quarantine; q != nil {
			add(q.Finding)
			for _, f := range q.More {
				add(f)
			}
		}
	}
	for _, f := range site.Findings {
		add(f)
	}
	if owner != nil {
		return all, nil
	}
	return all, a.eachStepFinding(ctx, inv, add)
}

// eachStepFinding hands on the findings of all steps, by their ids.
func (a *app) eachStepFinding(ctx context.Context, inv *inventory.Inventory, add func(stage.Finding)) error {
	r, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	if err := keys.CheckSite(ctx, r, inv.Site.Name); err != nil {
		return err
	}
	steps, err := state.ReadSteps(ctx, r)
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		s := steps[id]
		blamed := s.Blamed
		if len(blamed) == 0 && s.Finding != nil {
			blamed = []stage.Finding{*s.Finding}
		}
		for _, f := range blamed {
			f.Step = string(s.ID)
			add(f)
		}
	}
	return err
}
