// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// TestAmbiguous: of a node whose layout is on one of two equal disks, an installation is
// planned only where it is known on which: it was named, or written before. A state of
// the first version says it by what was chosen before the write.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	two := anyNVMe
	two.Count = 2
	system, _, _ := twoDisks(false)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	learned := func(after time.Duration, f fact.Fact, err error) fact.Fact {
		if err != nil {
			t.Fatal(err)
		}
		f.Observed = at.Add(after)
		return f
	}
	me := subject.OfNode("n1")
	chosen := func(after time.Duration, d wire.Disk) fact.Fact {
		f, err := DiskFact.New(me, d, "")
		return learned(after, f, err)
	}
	wrote := func(w Written) fact.Fact {
		f, err := WriteFact.New(me, w, "")
		return learned(time.Minute, f, err)
	}
	whole := Written{Key: "n1/n1-1/write", Complete: true}
	recorded := whole
	recorded.Disk = &system
	for _, c := range []struct {
		name      string
		n         *inventory.Node
		facts     []fact.Fact
		named     map[string]string
		ambiguous bool
	}{
		{"new", nodeOn(two), nil, nil, true},
		{"new, one disk", nodeOn(anyNVMe), nil, nil, false},
		{"new, named", nodeOn(two), nil, map[string]string{"n1": "SYS1"}, false},
		{"installed", nodeOn(two), []fact.Fact{wrote(recorded)}, nil, false},
		{"installed by the first version", nodeOn(two), []fact.Fact{chosen(0, system), wrote(whole)}, nil, false},
		{"the first version chose again and did not write", nodeOn(two), []fact.Fact{wrote(whole), chosen(time.Hour, system)}, nil, true},
		{"the first version did not come to the end", nodeOn(two), []fact.Fact{chosen(0, system), wrote(Written{Key: whole.Key})}, nil, true},
		{"chosen and not written", nodeOn(two), []fact.Fact{chosen(0, system)}, nil, true},
	} {
		view := memo{facts: map[fact.Key]fact.Fact{}}
		for _, f := range c.facts {
			view.facts[f.Key] = f
		}
		write := plan.Step{ID: "n1/install.write", Stage: Name, Subject: me, Action: plan.Create, May: plan.Effects(plan.Erase)}
		why, err := Ambiguous(&inventory.Inventory{Nodes: []*inventory.Node{c.n}}, view, c.named)(&write)
		if err != nil {
			t.Fatal(err)
		}
		ambiguous := why != plan.Reason{}
		if ambiguous != c.ambiguous || ambiguous && (!strings.Contains(why.Cause, "2 disks of n1") || !strings.Contains(why.Action, "install_disk")) {
			t.Errorf("%s: %+v", c.name, why)
		}
	}
}
