// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// listens is the step in which a node hears its neighbours.
func listens(node string) plan.StepID { return plan.StepID(node + "/install.configure") }

// installed is a room whose nodes have an image.
func installed(nodes int) *inventory.Inventory {
	inv := room(nodes)
	for _, n := range inv.Nodes {
		n.Image = &inventory.Image{Block: inventory.Block{Name: "os"}}
	}
	return inv
}

// recorded is a run in which nodes have heard something.
func recorded(t testing.TB, heard map[string][]wire.Neighbour) *onnodetest.Run {
	t.Helper()
	run := onnodetest.NewRun(Of())
	for node, list := range heard {
		f, err := NeighboursFact.New(subject.OfNode(node), list, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Learn(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// planned is the one step of the stage.
func planned(t testing.TB, inv *inventory.Inventory) plan.Step {
	t.Helper()
	steps, diags := New(inv, listens, nil).Plan(onnodetest.NewRun())
	if len(steps) != 1 || diags.HasErrors() {
		t.Fatalf("%+v %v", steps, diags)
	}
	return steps[0]
}

// blamed lists the suspects of all findings.
func blamed(run *onnodetest.Run) (all []string) {
	for _, f := range run.Findings {
		for _, s := range f.Suspects {
			all = append(all, strings.TrimSpace(s.Subject.String()+" "+s.Part))
		}
	}
	return all
}

func TestPlan(t *testing.T) {
	t.Parallel()
	inv := installed(3)
	inv.Nodes[2].Image = nil // cabled, not installed
	st := planned(t, inv)
	var needs []string
	for _, n := range st.Needs {
		needs = append(needs, fmt.Sprint(n.Step, " ", n.On, " ", n.Triggers))
	}
	if want := []string{"n1/install.configure settled true", "n2/install.configure settled true"}; !slices.Equal(needs, want) || st.ID != "site/cabling.check" || !st.Barrier {
		t.Errorf("%q %+v", needs, st)
	}
	for name, change := range map[string]func(*inventory.Inventory){
		"no cables":    func(i *inventory.Inventory) { i.Cables = nil },
		"InfiniBand":   func(i *inventory.Inventory) { i.Nodes[0].Hardware.NICs[0].Fabric.Kind = "infiniband" },
		"not on a bus": func(i *inventory.Inventory) { i.Nodes[0].Hardware.NICs[0].Ports = make([]inventory.NICPort, 2) },
	} {
		inv := installed(3)
		change(inv)
		if steps, _ := New(inv, listens, nil).Plan(onnodetest.NewRun()); len(steps) != 0 {
			t.Errorf("%s: %+v", name, steps)
		}
	}
}

// TestTakenOut: nodes that hear for themselves that a cable is elsewhere are taken
// out, by its port; what was not heard takes nobody out.
func TestTakenOut(t *testing.T) {
	t.Parallel()
	type world = map[string][]wire.Neighbour
	for _, c := range []struct {
		name   string
		change func(world)
		want   []string
	}{
		{"as intended", func(world) {}, nil},
		{"nothing heard", func(w world) { clear(w) }, nil},
		{"heard nobody", func(w world) { w["n1"] = nil }, nil},
		{"two swapped", func(w world) { swap(w, "n2", 0, "n4", 0) }, []string{"node/n2 rail/0 (OSFP 1/1)", "node/n4 rail/0 (OSFP 1/1)"}},
		{"two of one node", func(w world) { swap(w, "n2", 0, "n2", 1) }, []string{"node/n2 rail/0 (OSFP 1/1)", "node/n2 rail/1 (OSFP 1/2)"}},
		{"in a free port of another switch", func(w world) { w["n3"][0].SystemName, w["n3"][0].PortID = "leaf-2", "etp40" }, []string{"node/n3 rail/0 (OSFP 1/1)"}},
		{"in the port of one that is silent", func(w world) { w["n1"][0].PortID = "etp2"; w["n2"] = w["n2"][1:] },
			[]string{"node/n1 rail/0 (OSFP 1/1)", "link/n2/rail/0 OSFP 1/1"}},
		{"switches of each other's name", func(w world) {
			for n := range w {
				swap(w, n, 0, n, 1)
			}
		}, []string{"switch/net/leaf-1", "switch/net/leaf-2"}},
	} {
		inv := installed(5)
		heard := hear(inv)
		c.change(heard)
		run := recorded(t, heard)
		err := New(inv, listens, nil).Apply(t.Context(), run, planned(t, inv))
		if got := blamed(run); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if (err != nil) != (c.want != nil) || err != nil && (errkind.Of(err) != errkind.Mismatch || errkind.Action(err) == "") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestListenAgain: after somebody was at the rack, the nodes that were taken out
// listen again.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	inv := installed(5)
	right, swapped := hear(inv), hear(inv)
	swap(swapped, "n2", 0, "n4", 0)
	answer := func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		b, err := json.Marshal(wire.Neighbours{Neighbours: right[c.Node]})
		return onnode.Output{Stdout: b}, err, c.Line() == onnode.AgentPath+" neighbours"
	}
	silent := onnodetest.On(onnode.AgentPath+" neighbours", `{"neighbours":null}`, 0)
	gone := func(context.Context, onnodetest.Call) (onnode.Output, error, bool) {
		return onnode.Output{}, errors.New("no route"), true
	}
	for _, c := range []struct {
		name  string
		rule  onnodetest.Rule
		asked int
		want  []string
	}{
		{"fixed", answer, 2, nil},
		{"pulled", silent, 2, []string{"node/n2 rail/0 (OSFP 1/1)", "node/n4 rail/0 (OSFP 1/1)"}},
		{"no answer", gone, 2, []string{"node/n2 rail/0 (OSFP 1/1)", "node/n4 rail/0 (OSFP 1/1)"}},
	} {
		run := recorded(t, swapped)
		nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{c.rule}}
		s, st := New(inv, listens, nodes), planned(t, inv)
		if s.Apply(t.Context(), run, st) == nil || len(nodes.Calls("")) != 0 {
			t.Fatalf("%s: not found at first, or asked at once", c.name)
		}
		run.Findings, st.Needs = nil, nil // the next plan installs nobody
		err := s.Apply(t.Context(), run, st)
		if got := blamed(run); !slices.Equal(got, c.want) || (err == nil) != (c.want == nil) || len(nodes.Calls("neighbours")) != c.asked {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if c.name == "no answer" && !strings.Contains(run.Findings[0].Action, "ironrail rebuild n2") {
			t.Errorf("%s: %q", c.name, run.Findings[0].Action)
		}
		if err := s.Apply(t.Context(), run, st); c.want == nil && (err != nil || len(nodes.Calls("neighbours")) != c.asked) {
			t.Errorf("%s: later: %v", c.name, err)
		}
	}
}

// TestListenAfterSplit: a node whose cages were split in this plan listens again, and what the
// ramdisk heard of them counts for nothing; one that was not set in this plan is not asked.
func TestListenAfterSplit(t *testing.T) {
	t.Parallel()
	inv := installed(5)
	for i := range inv.Nodes[0].Hardware.NICs {
		inv.Nodes[0].Hardware.NICs[i].Split = 2
	}
	right, before := hear(inv), hear(inv)
	swap(before, "n2", 0, "n4", 0) // a cage that is one port hears what its first lanes hear
	answer := func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		b, err := json.Marshal(wire.Neighbours{Neighbours: right[c.Node]})
		return onnode.Output{Stdout: b}, err, c.Line() == onnode.AgentPath+" neighbours"
	}
	gone := func(context.Context, onnodetest.Call) (onnode.Output, error, bool) {
		return onnode.Output{}, errors.New("no route"), true
	}
	for _, c := range []struct {
		name  string
		rule  onnodetest.Rule
		needs []plan.Need // nil: all
		asked int
		heard int // by n2, as it is remembered
	}{
		{"right", answer, nil, 5, len(right["n2"])},
		{"no answer", gone, nil, 5, len(before["n2"])},
		{"another plan", answer, []plan.Need{{Step: "n1/nics.settings", On: plan.Settled}}, 1, len(before["n2"])},
	} {
		run := recorded(t, before)
		nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{c.rule}}
		st := planned(t, inv)
		if c.needs != nil {
			st.Needs = c.needs
		}
		err := New(inv, listens, nodes).Apply(t.Context(), run, st)
		if len(nodes.Calls("neighbours")) != c.asked || c.needs == nil && (err != nil || len(run.Findings) > 0) {
			t.Errorf("%s: %d asked, %v, %v", c.name, len(nodes.Calls("neighbours")), run.Findings, err)
		}
		f, _ := run.Fact(NeighboursFact.Of(subject.OfNode("n2")))
		if list, err := NeighboursFact.Get(f); err != nil || len(list) != c.heard {
			t.Errorf("%s: n2 heard %v, %v", c.name, list, err)
		}
	}
}

// TestOldNews: a node that did not listen in this plan and that no check took out
// keeps its standing, whatever its old fact says.
func TestOldNews(t *testing.T) {
	t.Parallel()
	inv := installed(5)
	heard := hear(inv)
	swap(heard, "n2", 0, "n4", 0)
	run := recorded(t, heard)
	st := planned(t, inv)
	st.Needs = []plan.Need{{Step: listens("n4"), On: plan.Settled}}
	if err := New(inv, listens, nil).Apply(t.Context(), run, st); err == nil {
		t.Error("nothing was found")
	}
	if got, want := blamed(run), []string{"link/n2/rail/0 OSFP 1/1", "node/n4 rail/0 (OSFP 1/1)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// BenchmarkStage is a site of 4,096 nodes with one pair of cables exchanged.
func BenchmarkStage(b *testing.B) {
	inv := installed(4096)
	heard := hear(inv)
	swap(heard, "n1", 0, "n2", 0)
	run, st, s := recorded(b, heard), planned(b, inv), New(inv, listens, nil)
	for b.Loop() {
		run.Findings = nil
		if s.Apply(b.Context(), run, st) == nil || len(run.Findings) != 1 {
			b.Fatal("one finding was expected")
		}
	}
}
