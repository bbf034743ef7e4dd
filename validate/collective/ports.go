// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/target"
)

// ends are the ports that the GPUs of all members speak over, those that are out among them.
func (c *collective) ends() (list []rail.End) {
	all := slices.Concat(c.Members, c.Out)
	word := rail.FabricNames(all)
	for _, n := range all {
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

// suspectPorts blames ports whose links are bad. What a rail counted that a slow run is
// blamed on already is evidence of that; of another rail of such a node it is a finding.
func (c *collective) suspectPorts(ports []rail.DegradedPort) {
	var fresh []rail.DegradedPort
	for _, p := range ports {
		i := slices.IndexFunc(c.Findings, func(f stage.Finding) bool { return blames(f, p) })
		if i < 0 {
			fresh = append(fresh, p)
		} else {
			c.Findings[i].Evidence = append(c.Findings[i].Evidence, p.Describe())
		}
	}
	for _, f := range rail.DegradedFindings(fresh) {
		if name := f.Suspects[0].Subject.Name; !slices.Contains(c.Suspects, name) {
			c.Suspects = append(c.Suspects, name)
		}
		c.Findings = append(c.Findings, f)
	}
}

// blames reports whether a finding blames the rail of a port.
func blames(f stage.Finding, p rail.DegradedPort) bool {
	of := subject.OfNode(p.Node.Name)
	return slices.Contains(f.Suspects, stage.Suspect{Subject: of, Part: p.Rail()}) || slices.Contains(f.Suspects, stage.Suspect{Subject: of, Part: fmt.Sprintf("rail %d", p.Port.Rail)})
}
