// SPDX-License-Identifier: Apache-2.0

package bimodal

import (
	"context"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/target"
)

// Undecided is why a node is not accepted although no finding is about it: its role is in two groups.
// Empty: nothing speaks against it.
type Undecided struct {
	Cause string `json:"cause,omitempty"`
}

// Learn notes what keeps nodes out, by their names, and takes back what did so before.
func Learn(ctx context.Context, run stage.Run, name fact.Name[Undecided], about []*inventory.Node, causes map[string]string) error {
	for _, n := range about {
		id := subject.OfNode(n.Name)
		if was, _ := target.ReadFact(run, name, id); was.Cause == causes[n.Name] {
			continue
		}
		if err := target.LearnFact(ctx, run, name, id, Undecided{causes[n.Name]}); err != nil {
			return err
		}
	}
	return nil
}
