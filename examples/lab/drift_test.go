// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
)

// afterwards asks what an operator asks of a site that is accepted: nothing has
// drifted and nothing is left to do; the state is whole and can be copied; one
// real change on a node is named, exactly, and so is its end.
func afterwards(t *testing.T, l *labtest.Lab) {
	l.Want(labtest.ExitDone, l.Ironrail("drift")) // every kind: cables are heard for half a minute
	l.Want(labtest.ExitDone, l.Ironrail("plan", "--refresh", "--detailed-exitcode"))

	l.OnNode("n1", "ip link set dev enp0s4 mtu 1400")
	drifted(t, l, labtest.ExitChanges,
		"n1 settings  fabric.rail: as the site has it -> rail 0 (0000:00:04.0): MTU is 1400, not 1500",
		"n1 network rail/0 mtu: 1500 -> 1400")
	planned := l.Plan("--refresh")
	for _, s := range planned.Steps {
		t.Logf("planned: %s (%s)", s.ID, strings.Join(s.Why, "; "))
	}
	if !slices.ContainsFunc(planned.Steps, func(s plan.Step) bool { return s.ID == "n1/fabric.rail" }) || len(planned.Erase.Nodes) != 0 {
		t.Errorf("the changed MTU is not fixed by a plan that looks: %d steps, erased %v", len(planned.Steps), planned.Erase.Nodes)
	}
	l.OnNode("n1", "ip link set dev enp0s4 mtu 1500")
	drifted(t, l, labtest.ExitDone)

	l.Want(labtest.ExitDone, l.Ironrail("state", "check"))
	backup := filepath.Join(l.State(), "copy.db")
	l.Want(labtest.ExitDone, l.Ironrail("state", "backup", backup))
	l.Want(labtest.ExitDone, l.Ironrail("state", "check", backup))
	why := l.Ironrail("why", "n1")
	l.Want(labtest.ExitDone, why)
	if first, _, _ := strings.Cut(why.Stdout, "\n"); !strings.Contains(first, "accepted") {
		t.Errorf("why n1 begins with %q", first)
	}
}

// drifted looks for drift of all kinds but cables, and fails the test unless it
// is exactly this.
func drifted(t *testing.T, l *labtest.Lab, code int, want ...string) {
	t.Helper()
	kinds := slices.DeleteFunc(slices.Clone(drift.Kinds), func(k string) bool { return k == drift.Cables })
	res := l.Ironrail("drift", "--json", "--kind", strings.Join(kinds, ","))
	var d observe.Drift
	if err := json.Unmarshal([]byte(res.Stdout), &d); err != nil || res.Code != code {
		t.Errorf("drift: want exit %d (%v): %s", code, err, res)
		return
	}
	if d.Nodes != 2 || len(d.Changes) != len(want) {
		t.Errorf("drift: want %d changes on 2 nodes: %s", len(want), res.Stdout)
		return
	}
	for i, c := range d.Changes {
		line := c.Node + " " + c.Kind + " " + c.Port + " " + c.Name + ": " + c.Was + " -> " + c.Is
		t.Logf("drift: %s; do: %s", line, c.Action)
		if line != want[i] {
			t.Errorf("drift: %q, want %q", line, want[i])
		}
	}
}
