// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// places has node nRUU in unit UU of rack R.
func places(s subject.ID) (Place, bool) {
	var rack, unit int
	if s.Kind != subject.Node {
		return Place{}, false
	}
	if _, err := fmt.Sscanf(s.Name, "n%1d%2d", &rack, &unit); err != nil {
		return Place{}, false
	}
	return Place{Rack: fmt.Sprintf("r%d", rack), Order: rack, Unit: unit}, true
}

func suspects(part string, names ...string) (list []stage.Suspect) {
	for _, n := range names {
		list = append(list, stage.Suspect{Subject: subject.OfNode(n), Part: part})
	}
	return list
}

// sample is the end of a run of eight nodes: dead BMCs in two racks, exchanged cables, a finding about
// the site, and two nodes that wait.
func sample() apply.Result {
	dead := func(n string) stage.Finding {
		return stage.Finding{Suspects: suspects("BMC", n), Cause: "the BMC of " + n + " is silent", Action: "Look at " + n + ".", Evidence: []string{"dialed"}, Step: n + "/bmc"}
	}
	d1, d2 := dead("n305"), dead("n112")
	swap := stage.Finding{Suspects: suspects("rail 0", "n201", "n104"), Cause: "cables are exchanged", Action: "Exchange them.", Step: "all/validate.pair"}
	again := swap
	again.Step = "site/cabling.check" // another test saw the same
	site := stage.Finding{Cause: "another DHCP server", Action: "Switch it off.", Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Site, Name: "network.boot"}}}}
	held := &state.Cause{Kind: state.ByHold, Text: "held by ann"}
	return apply.Result{Findings: []stage.Finding{site, d1, d2, swap, again}, Nodes: []apply.NodeResult{
		{Name: "n101", Outcome: apply.NodeDone, Accepted: true}, {Name: "n305", Outcome: apply.NodeQuarantined, Finding: &d1}, {Name: "n112", Outcome: apply.NodeQuarantined, Finding: &d2},
		{Name: "n201", Outcome: apply.NodeQuarantined, Finding: &swap}, {Name: "n104", Outcome: apply.NodeQuarantined, Finding: &again}, {Name: "n401", Outcome: apply.NodeHeld, Cause: held},
		{Name: "n402", Outcome: apply.NodeHeld, Cause: held}, {Name: "n403", Outcome: apply.NodeDone}}}
}

func TestOf(t *testing.T) {
	t.Parallel()
	e := Of(sample(), places)
	if e.Nodes != 8 || e.Accepted != 1 || e.Others[apply.NodeQuarantined] != 4 || e.Others[apply.NodeHeld] != 2 || e.Others[apply.NodeDone] != 1 {
		t.Errorf("%d nodes, %d accepted, %v", e.Nodes, e.Accepted, e.Others)
	}
	var got []string
	for _, c := range e.Causes {
		got = append(got, fmt.Sprintf("%v %v %q: %s", c.Nodes, c.Names, c.Part, c.Text))
	}
	want := []string{`[n305 n112] [n305 n112] "BMC": the BMC of NODE is silent`, `[n201 n104] [n201 n104] "rail 0": cables are exchanged`, `[] [network.boot] "": another DHCP server`}
	if !slices.Equal(got, want) {
		t.Errorf("causes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !e.Causes[0].Alike || e.Causes[1].Alike {
		t.Error("several findings that are alike are not told from one that names several")
	}
	if len(e.Waits) != 1 || !slices.Equal(e.Waits[0].Nodes, []string{"n401", "n402"}) || e.Waits[0].Text != "held by ann" {
		t.Errorf("%+v wait", e.Waits)
	}
	if !slices.Equal(e.Again(), []string{"n305", "n112", "n201", "n104"}) {
		t.Errorf("again %v", e.Again())
	}
}

// TestWaitsAlike: nodes that wait for the same thing are one line, also where the text names each.
func TestWaitsAlike(t *testing.T) {
	t.Parallel()
	var res apply.Result
	for _, n := range []string{"n101", "n102", "n103"} {
		c := &state.Cause{Kind: state.ByFailure, Text: n + " did not answer at 10.0.0." + n[3:]}
		res.Nodes = append(res.Nodes, apply.NodeResult{Name: n, Outcome: apply.NodeSkipped, Cause: c})
	}
	res.Nodes[2].Cause.Text = "n103 did not answer at port 7"
	res.Nodes = append(res.Nodes, apply.NodeResult{Name: "n104", Outcome: apply.NodeInterrupted})
	var got []string
	for _, w := range Of(res, places).Waits {
		got = append(got, fmt.Sprintf("%s %v %q %q", w.Outcome, w.Nodes, w.Text, w.Others))
	}
	want := []string{`skipped [n101 n102] "NODE did not answer at 10.0.0.1" []`, `skipped [n103] "n103 did not answer at port 7" []`, `interrupted [n104] "" []`}
	if !slices.Equal(got, want) {
		t.Errorf("waits\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestWork: work goes by the first place of each cause, within a cause by place, and what has no place
// comes last.
func TestWork(t *testing.T) {
	t.Parallel()
	var got []string
	for _, c := range Of(sample(), places).Work() {
		line := c.Action
		for _, s := range c.Stops {
			line += fmt.Sprintf(" %s/%d %v", s.Rack, s.Unit, s.Suspects)
		}
		got = append(got, line)
	}
	want := []string{"Exchange them. r1/4 [n104 rail 0] r2/1 [n201 rail 0]", "Look at NODE. r1/12 [n112 BMC] r3/5 [n305 BMC]", "Switch it off."}
	if !slices.Equal(got, want) {
		t.Errorf("work\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNames: what is alike has one name in every run, and what is not has another.
// TestWorkApart: findings that are alike and ask for different plugs are one cause, and work for each
// pair; too many are counted.
func TestWorkApart(t *testing.T) {
	t.Parallel()
	var res apply.Result
	for i := range 20 {
		a, b := fmt.Sprintf("n%d%02d", 1+i%2, 2*i+1), fmt.Sprintf("n%d%02d", 1+i%2, 2*i+2)
		f := stage.Finding{Suspects: suspects("rail 0", a, b), Cause: "cables are exchanged", Action: fmt.Sprintf("Exchange leaf/%d and leaf/%d.", 2*i+1, 2*i+2), Step: "site/cabling.check"}
		res.Findings = append(res.Findings, f)
	}
	for _, c := range []struct {
		findings int
		want     []string
	}{
		{1, []string{"[n101 n102] Exchange leaf/1 and leaf/2. 0"}},
		{3, []string{"[n101 n102] Exchange leaf/1 and leaf/2. 0", "[n105 n106] Exchange leaf/5 and leaf/6. 0", "[n203 n204] Exchange leaf/3 and leaf/4. 0"}},
	} {
		e := Of(apply.Result{Findings: res.Findings[:c.findings]}, places)
		var got []string
		for _, w := range e.Work() {
			got = append(got, fmt.Sprintf("%v %s %d", w.Names, w.Action, w.More))
		}
		if len(e.Causes) != 1 || !slices.Equal(got, c.want) {
			t.Errorf("%d causes, work\n%s\nwant\n%s", len(e.Causes), strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	e := Of(res, places)
	subjects, more := 0, 0
	for _, w := range e.Work() {
		subjects += len(w.Names)
		more += w.More
	}
	for _, w := range e.Work() {
		if w.Action == "" {
			t.Errorf("nothing is said of what to do about %v", w.Names)
		}
	}
	if len(e.Work()) != mostWork || subjects != 40 || more != 20-mostWork+1 {
		t.Errorf("%d pieces of work of %d subjects, %d of them counted", len(e.Work()), subjects, more)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	f := sample().Findings
	a, b := Fold(f[1]).ID(), Fold(f[2]).ID()
	if a != b || len(a) != len("f-000000") || !strings.HasPrefix(a, "f-") {
		t.Errorf("%q and %q", a, b)
	}
	seen := map[string]bool{}
	for _, x := range []stage.Finding{f[0], f[1], f[3]} {
		seen[Fold(x).ID()] = true
	}
	if len(seen) != 3 {
		t.Errorf("three findings have the names %v", seen)
	}
}
