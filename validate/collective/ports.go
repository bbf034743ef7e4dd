// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/target"
)

// ends are the ports that the GPUs of all members speak over.
func (c *collective) ends() (list []rail.End) {
	word := rail.FabricNames(c.Members)
	for _, n := range c.Members {
		for _, f := range rail.GPUFabrics(n) {
			of, _ := target.ReadFact(c.Rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			for _, p := range of {
				list = append(list, rail.End{Node: n, Port: p, Fabric: word(f)})
			}
		}
	}
	return list
}

// loaded does the runs, and looks what the ports counted meanwhile: correction and
// retransmission hide a bad cable from a bandwidth until there are many of them.
func (c *collective) loaded(ctx context.Context, runs func(context.Context)) {
	ends := c.ends()
	before, began := rail.ReadCounters(ctx, c.Nodes, ends), c.Rec.Clock().Now()
	runs(ctx)
	after, took := rail.ReadCounters(ctx, c.Nodes, ends), c.Rec.Clock().Now().Sub(began)
	c.suspectPorts(rail.DegradedPorts(ends, before, after, took))
}

// suspectPorts blames ports whose links are bad. A node that is suspected already
// has one cause, and what its ports counted is evidence of it.
func (c *collective) suspectPorts(ports []rail.DegradedPort) {
	var fresh []rail.DegradedPort
	for _, p := range ports {
		if !slices.Contains(c.Suspects, p.Node.Name) {
			fresh = append(fresh, p)
			continue
		}
		for i := range c.Findings {
			if slices.ContainsFunc(c.Findings[i].Suspects, func(s stage.Suspect) bool { return s.Subject == subject.OfNode(p.Node.Name) }) {
				c.Findings[i].Evidence = append(c.Findings[i].Evidence, p.Describe())
			}
		}
	}
	for _, f := range rail.DegradedFindings(fresh) {
		c.Suspects = append(c.Suspects, f.Suspects[0].Subject.Name)
		c.Findings = append(c.Findings, f)
	}
}
