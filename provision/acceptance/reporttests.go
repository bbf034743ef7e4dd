// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/burn"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// reportTests are the last tests of every node, group and switch.
func reportTests(prior plan.Prior) (out []report.Test) {
	shown := slices.DeleteFunc(slices.Clone(validate.Checks), func(c validate.Check) bool { return c.Report.Title == "" })
	for k, f := range prior.Facts {
		for i, c := range shown {
			if k.Name != c.Kind() {
				continue
			}
			if r, err := c.Report.Read(f, k.Subject.Name); err == nil {
				t := reportTest(k.Subject.Name+"/"+k.Name, r)
				t.Title, t.Rank = c.Report.Title, i+1
				out = append(out, t)
			}
		}
		if k.Name == string(switchos.ObservedFact) {
			if st, err := switchos.ObservedFact.Get(f); err == nil {
				out = append(out, switchTest(k.Subject.Name, st))
			}
		}
	}
	slices.SortFunc(out, func(a, b report.Test) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Step, b.Step)) })
	return withoutOutdated(out)
}

// withoutOutdated leaves out tests of one node in which nothing was measured, since there was no other, where the
// node has been in such a test with others since.
func withoutOutdated(all []report.Test) []report.Test {
	return slices.DeleteFunc(slices.Clone(all), func(t report.Test) bool {
		return len(t.Members) == 1 && len(t.Measurements) == 0 && slices.ContainsFunc(all, func(o report.Test) bool {
			return o.Title == t.Title && o.At.After(t.At) && len(o.Members) > 1 && slices.Contains(o.Members, t.Members[0])
		})
	})
}

func reportTest(step string, r result.Report) report.Test {
	t := report.Test{Step: step, At: r.At, Members: r.Members, NotJudged: r.NotJudged, Proves: r.Proves}
	for _, x := range r.Results {
		t.Measurements = append(t.Measurements, report.Measurement{Check: x.Check, Nodes: x.Nodes, Part: x.Part, Measured: x.Measured, Unit: x.Unit,
			Limit: x.Limit, Rule: x.Rule, Verdict: string(x.Verdict), Why: x.Why, Transport: x.Transport, Params: x.Params, Evidence: x.Evidence})
	}
	return t
}

// switchTest is how a switch was read when it was configured last.
func switchTest(name string, st switchos.ObservedState) report.Test {
	m := report.Measurement{Check: "switch.configuration", Part: "switch " + name, Verdict: report.Pass, Params: fmt.Sprintf("QoS of %d ports, read back", len(st.Ports))}
	if !st.Conforms {
		m.Verdict, m.Why = report.Fail, "it is not configured as the site says"
	}
	return report.Test{Step: name + "/" + string(switchos.ObservedFact), Title: "Switches", Measurements: []report.Measurement{m},
		Proves: "The switch has the configuration that the site asks for, as it says itself. It does not prove that traffic is treated so."}
}

// stackVersion says what is installed of a driver stack.
func stackVersion(d *inventory.Driver, have driver.Installed) string {
	text := fmt.Sprintf("%d packages", len(have.Packages))
	if d.Version != "" {
		text = d.Version + ", " + text
	}
	return text
}

// reportUntested are sentences about what no test has looked at, though nodes are in
// service or on their way to it.
func reportUntested(inv *inventory.Inventory, prior plan.Prior, tests []report.Test) (out []string) {
	var alone, unpaired []string
	missing := map[string][]string{} // nodes, by the test
	compared, together := membersOf(tests, string(burn.HeatFact)), testedTogether(tests)
	for _, n := range inv.Nodes {
		has := func(name string) bool {
			_, ok := prior.Fact(fact.Key{Subject: subject.OfNode(n.Name), Name: name})
			return ok
		}
		if !isGPUNode(n) {
			continue
		}
		for _, c := range validate.Checks {
			if c.Report.Untested != "" && !together[c.Name][n.Name] && !has(c.Kind()) {
				missing[c.Name] = append(missing[c.Name], n.Name)
			}
		}
		if has(string(burn.Fact)) && !compared[n.Name] {
			alone = append(alone, n.Name)
		}
		if v := n.Validation; v == nil || v.Pair == nil && v.AllReduce == nil {
			unpaired = append(unpaired, n.Name)
		}
	}
	add := func(what string, nodes []string) {
		if len(nodes) > 0 {
			out = append(out, what+": "+strings.Join(nodes, ", "))
		}
	}
	for _, c := range validate.Checks {
		add(c.Report.Untested, missing[c.Name])
	}
	add("how warm GPUs got was compared with no other node's", alone)
	add("no test between nodes is asked for", unpaired)
	return out
}

func isGPUNode(n *inventory.Node) bool {
	return !n.Retired && n.Hardware != nil && n.Hardware.GPUCount() > 0
}

// testedTogether are the nodes that were in tests of several, by the name of the check.
func testedTogether(tests []report.Test) map[string]map[string]bool {
	of := map[string]map[string]bool{}
	for _, c := range validate.Checks {
		if c.Report.Untested != "" && c.Scope != target.EachNode {
			of[c.Name] = membersOf(tests, c.Kind())
		}
	}
	return of
}

// membersOf are the nodes that were in a test of several whose facts have a name, and in
// which something was measured.
func membersOf(tests []report.Test, kind string) map[string]bool {
	members := map[string]bool{}
	for _, t := range tests {
		if !strings.HasSuffix(t.Step, "/"+kind) || len(t.Measurements) == 0 {
			continue
		}
		for _, name := range t.Members {
			members[name] = true
		}
	}
	return members
}
