package validate

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
)

// ends are the ports that the GPUs of all members speak over.
func (c *collective) ends() (list []end) {
	word := railFabrics(c.list)
	for _, n := range c.list {
		for _, f := range gpuFabrics(n) {
			of, _ := read(c.rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			for _, p := range of {
				list = append(list, end{node: n, port: p, fabric: word(f)})
			}
		}
	}
	return list
}

// loaded does the runs, and looks what the ports counted meanwhile: correction and
// retransmission hide a bad cable from a bandwidth until there are many of them.
func (c *collective) loaded(ctx context.Context, runs func(context.Context)) {
	ends := c.ends()
	before, began := countersOf(ctx, c.nodes, ends), c.rec.Clock().Now()
	runs(ctx)
	after, took := countersOf(ctx, c.nodes, ends), c.rec.Clock().Now().Sub(began)
	c.suspectPorts(wornOf(ends, before, after, took))
}

// suspectPorts blames ports whose links are bad. A node that is suspected already
// has one cause, and what its ports counted is evidence of it.
func (c *collective) suspectPorts(ports []wornPort) {
	var fresh []wornPort
	for _, p := range ports {
		if !slices.Contains(c.suspects, p.node.Name) {
			fresh = append(fresh, p)
			continue
		}
		for i := range c.findings {
			if slices.ContainsFunc(c.findings[i].Suspects, func(s stage.Suspect) bool { return s.Subject == subject.OfNode(p.node.Name) }) {
				c.findings[i].Evidence = append(c.findings[i].Evidence, p.said())
			}
		}
	}
	for _, f := range wornFindings(fresh) {
		c.suspects = append(c.suspects, f.Suspects[0].Subject.Name)
		c.findings = append(c.findings, f)
	}
}
