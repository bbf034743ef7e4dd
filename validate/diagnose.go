// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/target"
)

// checkGroup finds what of a validation block cannot be tested, by what the view knows of
// its nodes; nil: nothing.
func checkGroup(g target.Group, view stage.View) hcl.Diagnostics {
	p := target.Problems{InService: func(node string) bool { return stage.InService(view, node) }}
	for _, c := range Checks {
		if c.Asks.Block != nil {
			c.Asks.Block(g, &p)
		}
	}
	v := g.Validation
	if (v.Pair != nil || v.AllReduce != nil) && len(g.Nodes) < 2 {
		p.Add(hcl.DiagWarning, v.Decl, "One node alone is not tested", "Validation %q tests nodes against each other, and %q is the only one that it applies to. It is accepted without a measurement.", v.Name, g.Nodes[0].Name)
	}
	for _, l := range v.Limits {
		checkLimit(l, &p)
		if c := checkMeasuring(l.Name); c != nil && c.Asks.Limit != nil {
			c.Asks.Limit(g, l, &p)
		}
	}
	checkAllowed(v, &p)
	return p.Diags
}

// checkMeasuring returns the check that holds a limit; nil: none does.
func checkMeasuring(limit string) *Check {
	i := slices.IndexFunc(Checks, func(c Check) bool { return slices.Contains(c.Asks.Limits, limit) })
	if i < 0 {
		return nil
	}
	return &Checks[i]
}

func checkLimit(l inventory.MeasureLimit, p *target.Problems) {
	if checkMeasuring(l.Name) == nil {
		var known []string
		for _, c := range Checks {
			known = append(known, c.Asks.Limits...)
		}
		slices.Sort(known)
		p.Add(hcl.DiagError, l.Decl, "Limit is not measured", "Nothing measures %q, so that its limit would never be held.%s", l.Name, diag.DidYouMean(l.Name, known))
		return
	}
	if floor.IsCeiling(l.Name) { // the check of the site's files has its unit
		if l.AtMost == nil {
			p.Add(hcl.DiagError, l.Decl, "Limit has no ceiling", "Limit %q is a time: give at_most.", l.Name)
		}
		return
	}
	for _, q := range []*unit.Quantity{l.AtLeast, l.AtMost} {
		if q != nil && q.Dimension != unit.Throughput && q.Dimension != unit.LineRate {
			p.Add(hcl.DiagError, l.Decl, "Limit has the wrong unit", "Limit %q is %s, which is %s; %q is measured in bytes per second, such as \"45GB/s\".", l.Name, q, q.Dimension, l.Name)
		}
	}
	if l.AtMost != nil {
		p.Add(hcl.DiagError, l.Decl, "Limit has no floor", "Limit %q is a bandwidth: give at_least.", l.Name)
	}
}

// checkAllowed finds gates that cannot be allowed to fail, or that there are none of.
func checkAllowed(v *inventory.Validation, p *target.Problems) {
	known := gate.AllowableGates()
	for _, a := range v.Allowed {
		if !slices.Contains(known, a.Gate) {
			p.Add(hcl.DiagError, a.Decl, "Gate cannot be allowed", "Validation %q allows %q to fail, and that is no gate that can be allowed.%s Those are %s.", v.Name, a.Gate, diag.DidYouMean(a.Gate, known), strings.Join(known, ", "))
		}
	}
}
