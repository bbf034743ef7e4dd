// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// record makes the report, and the findings.
func (c *collective) record(ctx context.Context) error {
	rep := result.Report{At: c.Rec.Clock().Now().UTC(), Members: target.NodeNames(c.Members), Suspects: c.Suspects, Proves: c.proves(), NotJudged: c.fabric.NotTested()}
	for _, b := range c.Done {
		rep.Results = append(rep.Results, b.Results(grouprun.EngineOf(c.Group.Validation.AllReduce, b.Nodes[0]), b.Reference(c.Rec))...)
	}
	c.Findings = append(c.Findings, c.fabric.WornFindings()...)
	for _, f := range c.Findings {
		if err := c.Rec.Blame(ctx, f); err != nil {
			return err
		}
	}
	return target.LearnReport(ctx, c.Rec, c.st, result.AllReduceReport, c.Group.Set, rep)
}

// proves says what a good report means.
func (c *collective) proves() string {
	over := map[string]string{"node": "the GPUs of each node", "pair": "each node with a partner over a ring on their rails", "domain": "each NVLink domain over its NVLink", "unit": "each scalable unit", "all": "all nodes"}
	if c.merged {
		over["all"] = "all nodes, which are one scalable unit"
	}
	var parts []string
	for _, scope := range scopes {
		if slices.ContainsFunc(c.Done, func(b *grouprun.Run) bool { return b.Scope == scope }) {
			parts = append(parts, over[scope])
		}
	}
	also := ""
	if list := c.Group.Validation.AllReduce.Operations; len(list) > 0 && slices.ContainsFunc(c.Done, func(b *grouprun.Run) bool { return b.Does != "" }) {
		also = "; and over the last of these " + strings.Join(list, ", ") + ", right in every element"
	}
	return "GPUs compute one sum together, right in every element, at the bandwidth shown: " + strings.Join(parts, ", ") + also + ". It does not prove every path through the spines."
}
