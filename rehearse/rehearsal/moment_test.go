// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// momentPlan has steps of each kind of subject, of two nodes and a group of one.
func momentPlan() *plan.Plan {
	n1, n2 := subject.OfNode("n1"), subject.OfNode("n2")
	return &plan.Plan{Steps: []plan.Step{
		{ID: "site/drivers.rdma.os", Subject: subject.ID{Kind: subject.Site, Name: "os"}},
		{ID: "n1/install.write", Subject: n1}, {ID: "n2/install.write", Subject: n2},
		{ID: "n1/drivers.rdma", Subject: n1}, {ID: "n2/drivers.rdma", Subject: n2},
		{ID: "site/cabling.check", Subject: subject.ID{Kind: subject.Site, Name: "cabling"}},
		{ID: "all/validate.pair@canary", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Group: &plan.Group{Members: []subject.ID{n1}}},
	}}
}

func TestHappensAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, at, node, want string }{
		{"a step of the node", "install.write", "n2", "n2/install.write"},
		{"the first of any node", "install.write", "", "n1/install.write n2/install.write"},
		{"a stage", "drivers", "n2", "n2/drivers.rdma"},
		{"a step of its group, in whatever wave", "validate.pair", "n1", "all/validate.pair@canary"},
		{"a stage of its group", "validate", "n1", "all/validate.pair@canary"},
		{"a group without it", "validate.pair", "n2", ""},
		{"a step of the site", "cabling.check", "n2", "site/cabling.check"},
		{"a stage has no step of the site", "cabling", "n2", ""},
		{"half a word", "install.wri", "n1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, p := fault.Fault{Kind: fault.HighBER, Node: c.node, At: c.at}, momentPlan()
			var got []string
			for i := range p.Steps {
				if happensAt(f, &p.Steps[i]) {
					got = append(got, string(p.Steps[i].ID))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("at %q, want %q", got, c.want)
			}
			if err := timely(p, []fault.Fault{f}); (err == nil) != (c.want != "") {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// TestTimely: what would never happen is refused, with the place, a guess and what
// there is; the step that a kind waits for by itself is not.
func TestTimely(t *testing.T) {
	t.Parallel()
	at := hcl.Range{Filename: "monday.hcl", Start: hcl.Pos{Line: 4, Column: 10}}
	err := timely(momentPlan(), []fault.Fault{
		{Kind: fault.HighBER, Node: "n1", At: "validate.pairs", AtDecl: at},
		{Kind: fault.HighBER, Node: "n2", At: "validate.pair"},
		{Kind: fault.BMCDead, Node: "n2"},
		{Kind: fault.RepoGone, At: "drivers"},
	})
	const want = `monday.hcl:4,10: fault high-ber is to happen at "validate.pairs", which is no step of this plan: it would never happen. Did you mean "validate.pair"? The steps are drivers.rdma.os, install.write, drivers.rdma, cabling.check, validate.pair.
fault high-ber is to happen at "validate.pair", which is no step of n2 or of a group with it: it would never happen. The steps are drivers.rdma.os, install.write, drivers.rdma, cabling.check.`
	lines := []string{}
	for l := range strings.Lines(err.Error()) {
		lines = append(lines, strings.TrimSpace(l))
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
