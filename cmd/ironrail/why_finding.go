// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
)

// findingName is the name of findings that are alike; see fold.Finding.ID.
var findingName = lazyregexp.New(`^f-[0-9a-v]{6}$`)

// whyFinding tells all that is known of the findings of one name, where the word is one and no node has
// that name.
func (a *app) whyFinding(ctx context.Context, inv *inventory.Inventory, word string) (bool, error) {
	if _, node := inv.Node(word); node || !findingName.MatchString(word) {
		return false, nil
	}
	all, err := a.onRecord(inv).Findings(ctx)
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
