// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// examine tests the rails of members that are out or bad by themselves, after all that is
// judged: each in a pair with a node that nothing speaks against. Where a switch or the whole fabric is at
// fault, a slow rail would say nothing about its node.
func (c *collective) examine(ctx context.Context) {
	bad, partners := slices.Concat(c.Out, c.alone), c.remaining()
	if !grouprun.ExaminesRails(c.Group) || len(bad) == 0 || len(partners) == 0 || ctx.Err() != nil || c.Cut != nil || slices.ContainsFunc(c.Findings, isOfFabric) {
		return
	}
	c.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("%s: bad already; the rails are tested all the same, in pairs with nodes that are good", result.NameSome(target.NodeNames(bad)))})
	for batch := range slices.Chunk(bad, min(len(partners), grouprun.AtOnce)) {
		found := make([]verdict.Examined, len(batch))
		var g errgroup.Group
		for i, n := range batch {
			g.Go(func() error { found[i] = c.Examine(ctx, n, partners[i]); return nil })
		}
		_ = g.Wait() // what went wrong is in what was found
		for _, x := range found {
			c.SuspectExamined(x)
		}
	}
}

// isOfFabric reports whether a finding blames more than nodes.
func isOfFabric(f stage.Finding) bool {
	return slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject.Kind != subject.Node })
}
