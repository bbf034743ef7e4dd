// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"fmt"
	"strings"
)

// describe writes the sentences of a cause.
func (o *Outage) describe(c Cause) Cause {
	var names, what []string
	for _, p := range c.Parts {
		names = append(names, p.String())
		what = append(what, o.sentence(p, c.Certain))
		c.Evidence = append(c.Evidence, o.evidence(p)...)
	}
	c.Cause = strings.Join(what, ", and ")
	c.Evidence = append(c.Evidence, fmt.Sprintf("%s lost power together, and all of their supplies are on %s", listNodes(c.Nodes), strings.Join(names, " and ")))
	c.Action = o.action(c, strings.Join(names, " and "))
	return c
}

// sentence says what is wrong with a part.
func (o *Outage) sentence(p Part, certain bool) string {
	b, _ := o.breaker(o.Now, p)
	switch {
	case p.Outlet > 0:
		return p.String() + " is switched off"
	case p.Breaker > 0 && b.State == BreakerOpen:
		return p.String() + " is open"
	case p.Breaker > 0:
		return p.String() + " has tripped: nothing flows behind it"
	case certain && isUnpowered(o.Now[p.PDU]):
		return p.String() + " has no power on its input"
	case certain:
		return "every breaker of " + p.String() + " has tripped: nothing flows behind them"
	case o.Silent[p.PDU]:
		return p.String() + " has probably no power: it does not answer, and nothing that hangs on it alone runs"
	}
	return p.String() + " probably has no power, or a breaker of it has tripped: nothing that hangs on it alone runs"
}

// evidence are the readings behind a part.
func (o *Outage) evidence(p Part) (lines []string) {
	r, ok := o.Now[p.PDU]
	if !ok {
		if o.Silent[p.PDU] {
			lines = append(lines, fmt.Sprintf("PDU %s does not answer SNMP", p.PDU))
		}
		return lines
	}
	if p.Breaker == 0 {
		return append(lines, fmt.Sprintf("PDU %s measures %.0f W", p.PDU, r.Watts))
	}
	b, _ := o.breaker(o.Now, p)
	line := fmt.Sprintf("breaker %d of PDU %s: %s, %.1f A", p.Breaker, p.PDU, b.State, b.Amps)
	if b.Rating > 0 {
		line += fmt.Sprintf(" of %.0f A", b.Rating)
	}
	lines = append(lines, line)
	if before, ok := o.breaker(o.Before, p); ok {
		lines = append(lines, fmt.Sprintf("it carried %.1f A at %s", before.Amps, o.Before[p.PDU].At.UTC().Format("15:04:05")))
	}
	return lines
}

// action is what a person should do.
func (o *Outage) action(c Cause, names string) string {
	switch p := c.Parts[0]; {
	case p.Outlet > 0:
		return fmt.Sprintf("Switch %s on, or plug %s elsewhere and correct feeds.", names, listNodes(c.Nodes))
	case p.Breaker > 0:
		return fmt.Sprintf("Find out why %s tripped, close it, and power %s on one after another.", names, listNodes(c.Nodes))
	}
	return fmt.Sprintf("Look at the plug, the input breaker and the breakers of %s, then power %s on one after another.", names, listNodes(c.Nodes))
}

// listNodes names some nodes and counts the others.
func listNodes(nodes []string) string {
	const most = 8
	if len(nodes) > most {
		return fmt.Sprintf("%s and %d more nodes", strings.Join(nodes[:most], ", "), len(nodes)-most)
	}
	if n := len(nodes); n > 1 {
		return strings.Join(nodes[:n-1], ", ") + " and " + nodes[n-1]
	}
	return strings.Join(nodes, "")
}
