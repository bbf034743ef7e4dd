// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/validate/uniform"
)

// reportRoles are the last comparisons of the nodes of each role.
func reportRoles(prior plan.Prior) (out []report.Role) {
	last := map[string]uniform.Report{}
	for k, f := range prior.Facts {
		if k.Name != string(uniform.Fact) {
			continue
		}
		if r, err := uniform.Fact.Get(f); err == nil && !r.At.Before(last[r.Role].At) {
			last[r.Role] = r
		}
	}
	for name, r := range last {
		role := report.Role{Name: name, Nodes: r.Nodes, Rows: []report.RoleRow{}}
		for _, row := range r.Rows {
			role.Rows = append(role.Rows, reportRow(row))
		}
		out = append(out, role)
	}
	slices.SortFunc(out, func(a, b report.Role) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func reportRow(r uniform.Row) report.RoleRow {
	row := report.RoleRow{What: r.Name(), Value: r.Value, With: r.With, Nodes: r.Nodes, Verdict: report.Pass}
	switch {
	case len(r.Groups) > 0:
		row.Verdict = report.NotJudged
	case len(r.Odd) > 0 && r.Kind().Fault:
		row.Verdict = report.Fail
	case len(r.Odd) > 0:
		row.Verdict = report.Allowed
	}
	for _, o := range r.Odd {
		text := o.Node + " has " + o.Value
		if len(o.Parts) > 0 {
			text += " (" + uniform.Parts(o.Parts) + ")"
		}
		row.Other = append(row.Other, text)
	}
	for _, g := range r.Groups {
		row.Other = append(row.Other, g.Value+": "+strings.Join(g.Nodes, ", "))
	}
	return row
}
